/*
 * The two FIFOs between a shell and its relay, in a folder of their own: `i` from the shell, `o` to it.
 *
 * The relay holds both ends of both open, so that the shell's open never blocks, nothing is lost while
 * nobody reads, and no write ends in SIGPIPE.
 */
#ifndef FLIGHTREC_CHANNEL_H
#define FLIGHTREC_CHANNEL_H

#include "paths.h"

enum { CHANNEL_PATH_MAX = PATHS_MAX + 48 };

struct channel {
    char folder[CHANNEL_PATH_MAX], in_path[CHANNEL_PATH_MAX], out_path[CHANNEL_PATH_MAX];
    int in, out;
};

/* Make a channel for the shell `pid`. Return 0, or -1 with errno and nothing left behind. */
int channel_make(struct channel *, const struct paths *, pid_t pid);

/* Remove the channels of this host whose relay is gone, and ask the relay of an earlier shell in this
 * very process (before `exec bash`) to leave. */
void channel_sweep(const struct paths *, pid_t pid);

void channel_remove(struct channel *);

#endif
