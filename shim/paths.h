/*
 * Where everything lies: a pure function of $HOME and the host's name, the same as
 * daemon/flightrec/paths.py. XDG variables, TMPDIR and config move nothing.
 */
#ifndef FLIGHTREC_PATHS_H
#define FLIGHTREC_PATHS_H

#include <sys/types.h>

enum { PATHS_MAX = 160, SUN_PATH_BYTES = 107 };

struct paths {
    char host[9]; /* 8 hex digits: tells hosts with a shared home apart */
    char state[PATHS_MAX], run[PATHS_MAX];
    char socket[PATHS_MAX], counters[PATHS_MAX], autostart[PATHS_MAX], hint_words[PATHS_MAX];
    char events_fifo[PATHS_MAX], hint_file[PATHS_MAX]; /* for sandboxes, which forbid the socket */
    /* their time: when a stand-in, or a hook, last waited in vain */
    char breaker[PATHS_MAX], hook_breaker[PATHS_MAX];
};

/* Fill in the paths. -1 with EINVAL where HOME is no absolute path, ENAMETOOLONG where the socket's
 * path would be too long for the system. */
int paths_find(struct paths *);

/* Whether this process may record: not under sudo or su, where the files of one person would be
 * written by another. -1 with EPERM, or stat's errno for HOME. */
int paths_check_person(void);

/* Create the state and run folders, 0700, or check that they are folders of mine, no links, and
 * closed to others. -1 with errno; EPERM where they are somebody else's or open. */
int paths_make_folders(const struct paths *);

#endif
