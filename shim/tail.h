/* The last bytes of a stream: a ring that never grows, whatever passes by. */
#ifndef FLIGHTREC_TAIL_H
#define FLIGHTREC_TAIL_H

#include <stddef.h>
#include <stdint.h>

enum { TAIL_SIZE = 8 * 1024 };

/* Zero it to begin. */
struct tail {
    uint64_t total; /* bytes that were added; the next one goes to ring[total % TAIL_SIZE] */
    char ring[TAIL_SIZE];
};

void tail_add(struct tail *, const char *bytes, size_t size);

/* How many of the last bytes are still here. */
size_t tail_size(const struct tail *);

/* Copy the last `size` bytes, which must be here, in their order. */
void tail_copy(const struct tail *, char *out, size_t size);

#endif
