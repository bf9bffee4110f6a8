/*
 * Inside tmux, and without the proxy: tmux knows what the pane shows, so it is asked after a failure.
 */
#ifndef FLIGHTREC_PANE_H
#define FLIGHTREC_PANE_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

enum { PANE_MAX = 64 * 1024 }; /* of a pane's text, the end */

struct pane {
    char socket[WIRE_WORD_MAX], id[WIRE_WORD_MAX];
    const char *terminal;      /* the shell's: the pane must be on it */
    const char *counters;
    int64_t blocked_until_us;  /* it did not answer, or not in time */
    char text[PANE_MAX];       /* what tmux has said last, and of that: */
    size_t size;               /* the pane's lines, and behind them */
    int64_t key_s;             /* when the last key was pressed in its session, seconds since 1970 */
    size_t columns;
    bool is_full_screen;       /* some program's picture */
};

/* Return whether this process is in a pane whose text may be looked at. Both names must stay. */
bool pane_find(struct pane *, const char *terminal, const char *counters);

/* Ask for the text, and wait so long. Return whether it is there. */
bool pane_capture(struct pane *, int64_t limit_us);

#endif
