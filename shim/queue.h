/*
 * Frames that the daemon has not committed yet, in order, at most QUEUE_MAX bytes of them.
 *
 * No raw command ever waits on disk: what does not fit here is lost and counted. A new connection
 * sends all of it again; the daemon drops what it has already by run id.
 */
#ifndef FLIGHTREC_QUEUE_H
#define FLIGHTREC_QUEUE_H

#include "wire.h"

enum { QUEUE_MAX = 256 * 1024, QUEUE_ENTRIES = 2048 };

struct queue_entry {
    uint8_t run[WIRE_ID_SIZE];
    uint32_t offset, size;
    bool done;
};

struct queue {
    size_t used, sent; /* bytes; `sent`: how much of it the present connection has taken */
    size_t count;
    struct queue_entry entries[QUEUE_ENTRIES];
    uint8_t bytes[QUEUE_MAX];
};

/* Append a frame of `run`, for which the oldest runs make room. Return how many were given up, or
 * -1 with EBUSY where the connection is in the middle of the oldest frame: hang up and try again;
 * or -1 with EMSGSIZE where the frame alone is too large. */
int queue_add(struct queue *, const uint8_t run[WIRE_ID_SIZE], const uint8_t *frame, size_t size);

/* Let the newest frame say that it wants no reply (when it is sent again, or it is late). */
void queue_clear_wants_reply(struct queue *, size_t wants_reply_at);

/* Mark a run as kept by the daemon, or of no interest; `queue_compact` drops all marked ones. */
void queue_mark(struct queue *, const uint8_t run[WIRE_ID_SIZE]);
void queue_compact(struct queue *);

/* How many different runs wait. */
size_t queue_runs(const struct queue *);

/* What is to be sent next; empty where all was sent. */
struct bytes queue_unsent(const struct queue *);
void queue_advance(struct queue *, size_t sent);

/* A new connection begins at the oldest frame. */
void queue_rewind(struct queue *);

#endif
