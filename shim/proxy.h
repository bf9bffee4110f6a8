/*
 * The worker of the role `pty`: everything that can go wrong happens here, in a process of its own. It
 * copies between the person's terminal and the shell's, keeps the tail of each command's output, and
 * holds the conversation with the shell.
 */
#ifndef FLIGHTREC_PROXY_H
#define FLIGHTREC_PROXY_H

#include "conversation.h"
#include "pump.h"
#include "screen.h"

/* One byte each, from the worker to the holder. */
enum proxy_note {
    NOTE_DONE = 'd', /* all output is with the terminal: it may be given back */
    NOTE_LOOK = 'l', /* another program or folder may be there now */
};

struct proxy {
    struct conversation talk;
    struct screen screen;
    struct pump pump;
    int gone;        /* readable when the shell has ended */
    int notes;       /* to the holder */
    int64_t look_us; /* when the holder is to look again; INT64_MAX while nothing happens */
    unsigned talked; /* the command with which the person has talked last, as screen.begun */
    size_t typed_size;
};

/* Copy until the shell or the terminal is gone, and tell the daemon. The conversation must be open, and
 * its terminal. */
_Noreturn void proxy_run(struct proxy *, const char *starter);

#endif
