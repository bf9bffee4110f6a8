/*
 * What the shell writes into its FIFO: records of NUL-terminated fields. NUL is the one byte that no
 * shell string holds, so a command or a folder's name needs no quoting and cannot break the frame.
 *
 *   S  seq+flag, cwd, first simple command, text        a command is about to run; wants an answer
 *   L  seq+flag, cwd, first simple command, text        the same, seen only at the prompt after it;
 *                                                      several history entries where several ran
 *   F  seq, exit or nothing, pipestatus, cwd, usec      it has finished; wants an answer if exit != 0
 *   E  PATH, VIRTUAL_ENV, CONDA_PREFIX                  they changed
 *   H  text                                             history's last entry, where no command ran
 *   X  start time of the shell's process                a newer relay serves this process
 *
 * The first byte of the first field is the letter. The last field may be of any length; what does
 * not fit is counted.
 */
#ifndef FLIGHTREC_RECORD_H
#define FLIGHTREC_RECORD_H

#include "wire.h"

enum { RECORD_MAX = 64 * 1024, RECORD_FIELDS = 5 };

struct record {
    char kind;
    /* NUL-terminated; fields[0] starts after the letter */
    const char *fields[RECORD_FIELDS];
    size_t sizes[RECORD_FIELDS];  /* bytes that are here */
    size_t totals[RECORD_FIELDS]; /* bytes that were sent */
};

/* Collects bytes until a record is whole. Zero it to begin. */
struct record_reader {
    char bytes[RECORD_MAX];
    size_t used;
    size_t starts[RECORD_FIELDS], cut[RECORD_FIELDS];
    size_t field;
};

/* Take bytes from `*data` up to the end of one record and advance `*data` and `*size` past them.
 * Return true when `record` is filled; it points into the reader until the next call. */
bool record_next(struct record_reader *, const char **data, size_t *size, struct record *);

#endif
