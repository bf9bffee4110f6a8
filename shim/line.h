/*
 * What a line that an agent gave a shell is to us. Pure, and by functions that every libc has: the library
 * that bash loads (bash_door.c) holds it, too.
 */
#ifndef FLIGHTREC_LINE_H
#define FLIGHTREC_LINE_H

enum line_kind {
    LINE_COMMAND,
    LINE_OUTER,   /* an agent's own shell, which starts the model's */
    LINE_SILENT,  /* an agent's own work */
    LINE_PRIVATE, /* it leaves no trace, nor does what it starts */
};
enum line_kind line_judge(const char *line);

#endif
