#include "paths.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char STATE_FOLDER[] = "/.local/state/flightrec";

/* FNV-1a, 32 bit, over the host's name. */
static int find_host(char hash[9])
{
    char name[256] = "";
    uint32_t value = 0x811c9dc5;

    if (gethostname(name, sizeof name - 1) < 0)
        return -1;
    for (const char *at = name; *at != '\0'; at++)
        value = (value ^ (uint8_t)*at) * 0x01000193;
    snprintf(hash, 9, "%08x", value);
    return 0;
}

/* No printf: this is a part of what every command of an agent takes. */
static int join(char path[PATHS_MAX], const char *one, const char *two, const char *three)
{
    const char *pieces[] = {one, two, three};
    size_t used = 0;

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t size = strlen(pieces[i]);
        if (size >= PATHS_MAX - used) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(path + used, pieces[i], size + 1);
        used += size;
    }
    return 0;
}

static int join_run(struct paths *paths, const char *end, char path[PATHS_MAX])
{
    char host[sizeof paths->host + 1] = "/";

    memcpy(host + 1, paths->host, sizeof paths->host);
    return join(path, paths->run, host, end);
}

int paths_find(struct paths *paths)
{
    const char *home = getenv("HOME");

    if (home == NULL || home[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    if (find_host(paths->host) < 0 || join(paths->state, home, STATE_FOLDER, "") < 0 ||
        join(paths->run, paths->state, "/run", "") < 0 ||
        join_run(paths, ".sock", paths->socket) < 0 ||
        join_run(paths, ".counters", paths->counters) < 0 ||
        join_run(paths, ".autostart", paths->autostart) < 0 ||
        join_run(paths, ".words", paths->hint_words) < 0 ||
        join_run(paths, ".events", paths->events_fifo) < 0 ||
        join_run(paths, ".hints", paths->hint_file) < 0 ||
        join_run(paths, ".breaker", paths->breaker) < 0 ||
        join_run(paths, ".hook-breaker", paths->hook_breaker) < 0)
        return -1;
    if (strlen(paths->socket) > SUN_PATH_BYTES) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return 0;
}

int paths_check_person(void)
{
    const char *home = getenv("HOME");
    struct stat found;

    if (home == NULL || stat(home, &found) < 0)
        return -1;
    if (getenv("SUDO_UID") != NULL || found.st_uid != geteuid() || geteuid() != getuid()) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

/* mkdir -p with 0700 for each new folder: never chmod afterwards, there is no moment when others
 * could look in. */
static int make_folder(const char *path)
{
    char partial[PATHS_MAX];

    for (size_t i = 1;; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(partial, path, i);
        partial[i] = '\0';
        if (mkdir(partial, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
            return -1;
        if (path[i] == '\0')
            return 0;
    }
}

static int check_folder(const char *path)
{
    struct stat found;

    if (lstat(path, &found) < 0)
        return -1;
    if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid() || (found.st_mode & 077) != 0) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

/* Checked before anything is made below it: a link would lead somewhere else. */
static int keep_folder(const char *path)
{
    if (check_folder(path) == 0)
        return 0;
    return make_folder(path) < 0 ? -1 : check_folder(path);
}

int paths_make_folders(const struct paths *paths)
{
    return keep_folder(paths->state) < 0 ? -1 : keep_folder(paths->run);
}
