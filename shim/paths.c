#include "paths.h"

#include <errno.h>
#include <stdarg.h>
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

static int format(char path[PATHS_MAX], const char *pattern, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, pattern);
    length = vsnprintf(path, PATHS_MAX, pattern, arguments);
    va_end(arguments);
    if (length >= 0 && length < PATHS_MAX)
        return 0;
    errno = ENAMETOOLONG;
    return -1;
}

int paths_find(struct paths *paths)
{
    const char *home = getenv("HOME");

    if (home == NULL || home[0] != '/') {
        errno = EINVAL;
        return -1;
    }
    if (find_host(paths->host) < 0 || format(paths->state, "%s%s", home, STATE_FOLDER) < 0 ||
        format(paths->run, "%s/run", paths->state) < 0 ||
        format(paths->socket, "%s/%s.sock", paths->run, paths->host) < 0 ||
        format(paths->counters, "%s/%s.counters", paths->run, paths->host) < 0 ||
        format(paths->autostart, "%s/%s.autostart", paths->run, paths->host) < 0 ||
        format(paths->hint_words, "%s/%s.words", paths->run, paths->host) < 0 ||
        format(paths->events_fifo, "%s/%s.events", paths->run, paths->host) < 0 ||
        format(paths->hint_file, "%s/%s.hints", paths->run, paths->host) < 0 ||
        format(paths->breaker, "%s/%s.breaker", paths->run, paths->host) < 0 ||
        format(paths->hook_breaker, "%s/%s.hook-breaker", paths->run, paths->host) < 0)
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
