/*
 * What passes from the shell to the terminal. The shell marks in it where a command begins and ends;
 * the marks are taken out again, and the tail of what a command wrote is kept.
 *
 * A mark is an operating system command with a number of ours and a nonce of this session, since any
 * program may print such sequences. One that slips through is invisible: no terminal knows it.
 *
 *     ESC ] 6973 ; NONCE ; C BEL        a command begins
 *     ESC ] 6973 ; NONCE ; D DIGIT BEL  it has ended; the digit is that of the record that tells so
 */
#ifndef FLIGHTREC_SCREEN_H
#define FLIGHTREC_SCREEN_H

#include "tail.h"

#include <stdbool.h>
#include <stddef.h>

enum { SCREEN_NONCE_SIZE = 16, SCREEN_MARK_MAX = 40 };

struct screen {
    char mark[SCREEN_MARK_MAX]; /* up to and with the second semicolon */
    size_t mark_size;
    char held[SCREEN_MARK_MAX]; /* the beginning of what may be a mark */
    size_t held_size;
    unsigned begun;      /* how many commands have */
    bool is_command;     /* between the marks */
    bool is_full_screen; /* the command has switched to the alternate screen */
    char ended;          /* the digit of the last end mark; '\0' since a beginning */
    int mode_step;       /* how much of a switch to the alternate screen was seen */
    unsigned mode;
    struct tail tail;
};

/* `nonce` has SCREEN_NONCE_SIZE characters. */
void screen_open(struct screen *, const char *nonce);

/* Take bytes from the shell, move those for the terminal to the front of `bytes`, and return how many
 * there are. `bytes` needs room for SCREEN_MARK_MAX more than `size`. */
size_t screen_filter(struct screen *, char *bytes, size_t size);

/* What was held back is no mark after all: copy it to `out` and return its size. */
size_t screen_release(struct screen *, char out[SCREEN_MARK_MAX]);

#endif
