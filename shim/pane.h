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
    int64_t blocked_until_us; /* it did not answer in time */
    char text[PANE_MAX];
};

/* Return whether this process is in a pane whose text may be looked at. */
bool pane_find(struct pane *);

/* Ask for the text, and wait so long. Return its size, 0 for none. */
size_t pane_capture(struct pane *, int64_t limit_us);

/* What stands in such a text behind the line with which this command was typed. Its `data` is NULL where
 * that line is not there, or where the person talks with the command: what is typed then may be private,
 * and is no error text. */
struct bytes pane_output(const char *text, size_t size, struct bytes command);

#endif
