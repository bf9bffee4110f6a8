/*
 * What the shell writes into its FIFO: records of NUL-terminated fields. NUL is the one byte that no
 * shell string holds, so a command or a folder's name needs no quoting and cannot break the frame.
 * The last field of a record begins with the byte 1 and its letter; the longest one comes first, so
 * that bash can send what its builtins print as they print it, in two writes.
 *
 *   text, cwd, first simple command, S seq flag #n  a command is about to run; wants an answer;
 *                                                   n is the number of the first history entry
 *   text, cwd, first simple command, L seq flag #n  the same, seen only at the prompt after it, with
 *                                                   several history entries where several ran
 *   exit or nothing, pipestatus, cwd, usec, F seq   it has finished; wants an answer if exit != 0
 *   PATH, VIRTUAL_ENV, CONDA_PREFIX, E              they changed
 *   text, H                                         history's last entry, where no command ran
 *   start time of the shell's process, X            a newer relay serves this process
 *   P seq                                           are you there? wants an answer
 *   G seq                                           the person said that the held command may run
 */
#ifndef FLIGHTREC_RECORD_H
#define FLIGHTREC_RECORD_H

#include "wire.h"

enum { RECORD_MAX = 80 * 1024, RECORD_LONGEST = 48 * 1024, RECORD_FIELDS = 4, RECORD_MARK = 1 };

struct record {
    char kind;
    const char *head; /* what follows the letter */
    /* NUL-terminated */
    const char *fields[RECORD_FIELDS];
    size_t sizes[RECORD_FIELDS];  /* bytes that are here */
    size_t totals[RECORD_FIELDS]; /* bytes that were sent: more where the field was cut */
};

/* Collects bytes until a record is whole. Zero it to begin. */
struct record_reader {
    char bytes[RECORD_MAX];
    size_t used;
    size_t starts[RECORD_FIELDS + 1], cut[RECORD_FIELDS + 1];
    size_t field; /* which one is being read */
};

/* Take bytes from `*data` up to the end of one record and advance `*data` and `*size` past them.
 * Return true when `record` is filled; it points into the reader until the next call. */
bool record_next(struct record_reader *, const char **data, size_t *size, struct record *);

/* Whether a record has begun and not ended. */
bool record_is_partial(const struct record_reader *);

#endif
