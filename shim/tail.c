#include "tail.h"

#include <string.h>

void tail_add(struct tail *tail, const char *bytes, size_t size)
{
    size_t at, first;

    if (size > TAIL_SIZE) {
        tail->total += size - TAIL_SIZE;
        bytes += size - TAIL_SIZE;
        size = TAIL_SIZE;
    }
    at = tail->total % TAIL_SIZE;
    first = size < TAIL_SIZE - at ? size : TAIL_SIZE - at;
    memcpy(tail->ring + at, bytes, first);
    memcpy(tail->ring, bytes + first, size - first);
    tail->total += size;
}

size_t tail_size(const struct tail *tail)
{
    return tail->total < TAIL_SIZE ? (size_t)tail->total : TAIL_SIZE;
}

void tail_copy(const struct tail *tail, char *out, size_t size)
{
    size_t at = (tail->total - size) % TAIL_SIZE;
    size_t first = size < TAIL_SIZE - at ? size : TAIL_SIZE - at;

    memcpy(out, tail->ring + at, first);
    memcpy(out + first, tail->ring, size - first);
}
