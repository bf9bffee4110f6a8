/*
 * Bytes on their way between the person's terminal and the shell's. What one side does not take yet is
 * kept, and while too much is kept the other side has to wait, as it would without us.
 */
#ifndef FLIGHTREC_PUMP_H
#define FLIGHTREC_PUMP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

enum {
    PUMP_TYPED = 8 * 1024,
    PUMP_GATHER = 8 * 1024,  /* shown at once */
    PUMP_BEHIND = 32 * 1024, /* more than a terminal of the kernel's holds back */
    PUMP_SLACK = 4 * 1024,   /* for what is put in between: a hint, a filter's rest */
};

struct pump {
    int terminal_in;  /* the person's */
    int terminal_out; /* the same, an open of our own, non-blocking */
    int master;       /* the shell's, non-blocking */
    bool is_hung_up;  /* nobody is at the person's terminal any more */

    /* Both may be NULL. `filter` moves what is to be shown to the front and returns its size, which may
     * be up to PUMP_SLACK / 2 more than it was given. */
    void *context;
    size_t (*filter)(void *context, char *bytes, size_t size);
    void (*on_typed)(void *context, const char *bytes, size_t size);

    size_t in_size; /* typed, not yet taken */
    char in[PUMP_TYPED];
    size_t out_at, out_size; /* written, not yet shown */
    char out[PUMP_GATHER + PUMP_BEHIND + PUMP_SLACK];
};

enum { PUMP_FDS = 3 };

/* Say what to wait for. */
void pump_poll(const struct pump *, struct pollfd ready[PUMP_FDS]);

/* Move on what can be moved. Return false when the shell's terminal is closed. */
bool pump_serve(struct pump *, const struct pollfd ready[PUMP_FDS]);

/* Take what the shell's side has written, also where earlier output is not shown yet. Return as
 * pump_serve does. */
bool pump_take(struct pump *);

/* Show what the person's terminal takes. */
void pump_show(struct pump *);

/* Show these bytes behind all that was taken so far, or not at all where there is no room. */
void pump_add(struct pump *, const char *bytes, size_t size);

#endif
