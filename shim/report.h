/*
 * What a stand-in tells the daemon about its one command, and the hint that it gets for it.
 *
 * The way is the daemon's socket; where a sandbox forbids that, the FIFO that the daemon holds open.
 * Where there is neither, nothing is said. Nothing here waits longer than for one hint.
 */
#ifndef FLIGHTREC_REPORT_H
#define FLIGHTREC_REPORT_H

#include "agent.h"
#include "observe.h"
#include "parts.h"
#include "wire.h"

struct report_command {
    enum wire_source source;
    const char *shell;    /* which one runs it, or the program */
    struct bytes command; /* cut at WIRE_COMMAND_MAX */
    uint64_t command_total;
    const char *cwd;       /* NULL: where we are */
    const uint8_t *run;    /* NULL: a new one */
    const uint8_t *parent; /* the run of which it is a part, or NULL */
    int64_t begin_us;      /* wall clock, or 0: now */
    bool may_hint;         /* print a hint on standard error before it runs */
};

/* The command is about to run: print a hint that it may have. Only where some rule may be about it does
 * the daemon hear of it now. Return its run id. */
const uint8_t *report_start(const struct agent *, const struct report_command *);

/* The command runs: tell the daemon, if it does not know. A part of another command is only remembered,
 * and told when it has finished: one connection, one write. So is one that has begun before. Return the
 * descriptor that must stay open until report_finish, or -1. */
int report_running(void);

/* What is known of the end. */
struct report_end {
    int64_t exit, signal; /* or WIRE_UNKNOWN */
    int64_t usec;
    const int64_t *pipestatus;
    size_t pipestatus_count;
    const struct observation *seen; /* for the tails, or NULL */
    bool wants_tail;
    const struct parts *parts; /* what the stand-ins below have told, or NULL */
};

void report_finish(const struct report_end *);

/* The end of a program that was observed. */
struct report_end report_end_of(const struct observation *);

/* Whether messages go through the FIFO, each in a write of its own: known once the command runs. */
bool report_is_sandboxed(void);

#endif
