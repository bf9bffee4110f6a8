/*
 * What helpers had to drop, and why, in a mapped file that `flightrec status` reads without a daemon.
 *
 * The file is 8 bytes of magic and COUNTER_COUNT unsigned 64-bit little-endian numbers in the order
 * of the enumeration; new ones are only ever added at the end.
 */
#ifndef FLIGHTREC_COUNTERS_H
#define FLIGHTREC_COUNTERS_H

#include <stdint.h>

enum counter {
    COUNTER_LOST_RUNS,       /* never committed: no daemon for too long, or no room */
    COUNTER_MISSED_REPLIES,  /* the daemon did not answer within the deadline */
    COUNTER_FOREIGN_SERVERS, /* the socket was served by another uid; nothing was sent */
    COUNTER_BAD_FRAMES,      /* the daemon sent what is no message */
    COUNTER_AUTOSTARTS,      /* a helper started the daemon */
    COUNTER_SILENT_PANES,    /* tmux did not answer in time: no tails for a while */
    COUNTER_COUNT,
};

/* Best effort: a file that cannot be written counts nothing. */
void counters_add(const char *path, enum counter, uint64_t amount);

#endif
