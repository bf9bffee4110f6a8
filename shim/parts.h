/*
 * A file in memory that the stand-ins below a recorded shell put their messages into. The shell's own
 * stand-in sends them before its own last one: the daemon hears of the parts before the whole, over
 * one connection.
 */
#ifndef FLIGHTREC_PARTS_H
#define FLIGHTREC_PARTS_H

#include "agent.h"
#include "wire.h"

enum { PARTS_MAX = 128 * 1024 }; /* bytes; what comes later is told to the daemon directly */

struct parts {
    int fd;
    char assignment[sizeof AGENT_PARTS + 48]; /* tells the stand-ins below where it is */
};

/* -1 in `fd` where there is none. */
void parts_open(struct parts *);

/* Take nothing: the stand-ins below tell the daemon themselves. */
void parts_refuse(const struct parts *);

/* One frame of some run; `next` is where the following one begins, 0 at first. */
struct part {
    uint8_t run[WIRE_ID_SIZE];
    uint8_t *frame;
    size_t size, next;
};

/* Take the next frame: false at the end, or where something else was written. */
bool parts_next(const struct parts *, struct part *);

/* Add the frames of a run, in one piece: -1 where no shell's stand-in is there to take them. */
int parts_add(const uint8_t run[WIRE_ID_SIZE], const struct bytes frames[2]);

#endif
