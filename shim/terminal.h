/* The person's terminal, for one line of ours now and then. */
#ifndef FLIGHTREC_TERMINAL_H
#define FLIGHTREC_TERMINAL_H

#include "wire.h"

struct terminal {
    int fd; /* an open of our own, non-blocking; -1 where there is none */
    char name[WIRE_WORD_MAX];
};

/* Open the terminal that standard input or error is. */
void terminal_open(struct terminal *);

/* Print a hint, at most HINT_LINES lines, or as much as the terminal takes at once. Whatever could
 * command the terminal is left out, whoever sent it. */
enum { HINT_LINES = 2, HINT_LINE_BYTES = 1024, HINT_MAX = HINT_LINES * HINT_LINE_BYTES };
void terminal_print_hint(const struct terminal *, const char *text);

/* What that would print: return its size, 0 where nothing is left. */
size_t terminal_format_hint(const char *text, char out[HINT_MAX]);

/* Copy `text` to `out` without anything that a terminal obeys; return the size. `room` >= 4. */
size_t terminal_clean(const char *text, char *out, size_t room);

#endif
