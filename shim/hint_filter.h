/*
 * Whether any rule of the daemon's may be about a command, from a file that the daemon keeps
 * (daemon/flightrec/hint_words.py): a command in no rule is not held up by a question.
 */
#ifndef FLIGHTREC_HINT_FILTER_H
#define FLIGHTREC_HINT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HINT_FILTER_BITS = 65536 };

struct hint_filter {
    bool is_open;
    int fd;
    unsigned generation; /* the connection that the file was opened for */
    uint8_t bytes[16 + HINT_FILTER_BITS / 8];
};

/* For who is not connected: the file's owner is believed where a process of ours has that pid. */
enum { HINT_FILTER_ANY_DAEMON = -1 };

/* True also where there is no file of the daemon `pid`, or it is odd: then only asking helps.
 * `generation` tells connections apart. */
bool hint_filter_may_match(struct hint_filter *, const char *path, int64_t pid, unsigned generation,
                           const char *text, size_t size);

#endif
