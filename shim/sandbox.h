/*
 * The way to the daemon where a sandbox forbids sockets and lets nobody write files.
 *
 * A FIFO that the daemon holds open takes frames: one atomic write each, at most PIPE_BUF bytes. Its
 * answers stand in a small file that can only be read; daemon/flightrec/sandbox.py writes it.
 */
#ifndef FLIGHTREC_SANDBOX_H
#define FLIGHTREC_SANDBOX_H

#include "paths.h"
#include "wire.h"

enum {
    SANDBOX_FRAME_MAX = 4096, /* PIPE_BUF: what one write puts there stays in one piece */
    SANDBOX_SLOTS = 64,
    SANDBOX_TEXT_MAX = 1000,
};

/* The file of answers: each goes to the next slot, its run id last. */
struct sandbox_slot {
    uint8_t run[WIRE_ID_SIZE];
    uint32_t verdict, size; /* little-endian, as this machine has them */
    char text[SANDBOX_TEXT_MAX];
};

struct sandbox_answers {
    char magic[8];
    struct sandbox_slot slots[SANDBOX_SLOTS];
};

/* Whether nobody here may connect to the daemon, whoever listens. */
bool sandbox_is_around(const struct paths *);

/* Hand a frame to the daemon. Return whether it is waiting for such: false where it is not there, or
 * behind with what others wrote. */
bool sandbox_write(const struct paths *, const uint8_t *frame, size_t size);

/* Wait for the answer to this run's first message, but not for ever. `text` gets a hint. */
enum wire_verdict sandbox_wait(const struct paths *, const uint8_t run[WIRE_ID_SIZE],
                               int64_t limit_us, char text[WIRE_REPLY_MAX + 1]);

#endif
