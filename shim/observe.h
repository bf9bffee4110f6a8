/*
 * Run a program as if nobody stood between it and whoever started us, and learn how it ended and
 * what it wrote last.
 *
 * What it writes into a pipe or a socket goes through one of the same kind and is passed on at once;
 * two names of one pipe stay one, so that the order is kept. Regular files are read afterwards, and
 * terminals and devices are left alone. Signals are passed on. Where a background job still holds our
 * pipe when the program ends, or the reader is slow, a process stays behind that goes on passing on.
 */
#ifndef FLIGHTREC_OBSERVE_H
#define FLIGHTREC_OBSERVE_H

#include "tail.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { STREAM_OUTPUT, STREAM_ERROR, STREAMS };
enum { OBSERVE_KEPT = 2 };

struct observation {
    bool merged; /* one file was behind both: all is in tails[STREAM_OUTPUT] */
    int status;  /* as waitpid(2) gives it */
    int64_t usec;
    struct tail tails[STREAMS];
};

/* A shell that waits for us (bash_door.h), a child of ours already. */
struct waiting_shell {
    int answer;
    pid_t pid;
    int sources[STREAMS];
    bool unseen;              /* it is only waited for, and goes on as it is */
    char *const *assignments; /* its new variables, and NULL */
};

struct observed_program {
    const struct waiting_shell *waiting; /* instead of what is to be started, or NULL */
    const char *path;
    char *const *argv, *const *envp;
    bool errors_only;       /* leave standard output alone, unless it is standard error as well */
    int kept[OBSERVE_KEPT]; /* descriptors of the caller's that stay open meanwhile, or -1 */
    int (*meanwhile)(void); /* called when the program runs; returns one more of those */
};

/* Run it to its end. -1 with errno where it was not started: nothing has changed then, and the
 * caller may still become the program. */
int observe(struct observation *, const struct observed_program *);

/* End with the same exit status, or by the same signal without another core. */
_Noreturn void observe_end_like(int status);

/* Whether standard output and standard error are one file. */
bool observe_is_merged(void);

/* To be called first: a standard descriptor that is closed must not become one of ours. The program
 * finds it closed. */
void observe_hold_closed_fds(void);

#endif
