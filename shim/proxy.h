/*
 * The worker of the role `pty`: everything that can go wrong happens here, in a process of its own.
 * It copies between the person's terminal and the shell's, keeps the tail of each command's output,
 * and holds the conversation with the shell.
 */
#ifndef FLIGHTREC_PROXY_H
#define FLIGHTREC_PROXY_H

#include "conversation.h"
#include "screen.h"

enum { PROXY_IN = 8 * 1024, PROXY_OUT = 64 * 1024 };

/* One byte each, from the worker to the holder. */
enum proxy_note {
    NOTE_DONE = 'd',   /* all output is with the terminal: it may be given back */
    NOTE_FOLDER = 'c', /* the shell may be in another folder now */
    NOTE_JOB = 'j',    /* another program may be in the foreground now */
};

struct proxy {
    struct conversation talk;
    struct screen screen;
    int master;       /* the shell's terminal */
    int terminal_in;  /* the person's */
    int terminal_out; /* an open of our own, non-blocking */
    int gone;         /* readable when the shell has ended, or the holder has something to see to */
    int notes;        /* to the holder */
    bool is_hung_up;  /* nobody types any more */
    int64_t look_us;  /* when to see which program is in the foreground */
    pid_t foreground;
    size_t in_size;
    char in[PROXY_IN]; /* typed, not yet taken */
    size_t out_at, out_size;
    char out[PROXY_OUT + SCREEN_MARK_MAX]; /* written, not yet shown */
};

/* Copy until the shell or the terminal is gone, and tell the daemon. Never returns to the holder's
 * code. The conversation must be open. */
_Noreturn void proxy_run(struct proxy *, const char *starter);

/* Copy without looking: what is left when the worker has died. Return true when `gone` is readable,
 * false when either side has closed. */
bool proxy_copy_plainly(struct proxy *);

#endif
