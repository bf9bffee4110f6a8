/*
 * Which program a name stands for when we are not there.
 *
 * Our own folder comes first on PATH, so that a name finds us; the search goes on behind us as the
 * shell would have done it. We know ourselves by device and inode, not by the folder's name: HOME,
 * the folder or the link may be another one by now, and a stand-in that runs itself forks for ever.
 * We know other copies of us by the name that a link leads to.
 */
#ifndef FLIGHTREC_PROGRAM_H
#define FLIGHTREC_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define HELPER_NAME "flightrec-helper"

struct program {
    bool privileged; /* runs as somebody else: nothing of it may be touched */
    char path[PATH_MAX];
};

/* Search the folders of `path` (NULL: the system's usual ones) for an executable file `name` that is
 * no helper and not in the folder `ours` (may be NULL). -1 with ENOENT, or EACCES where only
 * files without the right to execute them were found. */
int program_find(struct program *, const char *name, const char *path, const char *ours);

/* Take this file for the program. -1 with ENOENT where it is a helper, or errno. */
int program_take(struct program *, const char *path);

/* The last part of a path. */
const char *program_base(const char *path);

/* Copy PATH without the folder `ours` into `out`, which has room for all of it. */
void program_path_without(char *out, const char *path, const char *ours);

/* The name that the program is to have for itself: what we were given, but where that is the path by
 * which we were found, the path of the program. It stands in its messages, and it finds itself by it. */
char *program_own_name(struct program *, char *given, const char *called_as);

/* The path by which the kernel was asked to execute us. argv[0] may say anything. */
const char *program_called_as(char *const argv[]);

#endif
