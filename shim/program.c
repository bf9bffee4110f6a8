#include "program.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

static const char USUAL_PATH[] = "/usr/local/bin:/usr/bin:/bin";

/* One folder of PATH. */
struct folder {
    const char *name;
    size_t size;
};

/* Take the next folder off `*rest`, which becomes NULL behind the last one. */
static struct folder next_folder(const char **rest)
{
    const char *end = strchrnul(*rest, ':');
    struct folder folder = {*rest, (size_t)(end - *rest)};

    *rest = *end == '\0' ? NULL : end + 1;
    return folder;
}

static bool is_folder(struct folder folder, const char *name)
{
    size_t size = folder.size;

    if (name == NULL)
        return false;
    while (size > 1 && folder.name[size - 1] == '/')
        size--;
    return strlen(name) == size && memcmp(folder.name, name, size) == 0;
}

/* By the name under which the kernel found us: /proc/self/exe costs ten times as much. */
static bool is_this_program(const struct stat *found)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    struct stat self;

    return ((path != NULL && stat(path, &self) == 0) || stat("/proc/self/exe", &self) == 0) &&
           self.st_dev == found->st_dev && self.st_ino == found->st_ino;
}

static bool leads_to_helper(const char *path)
{
    char target[PATH_MAX];
    ssize_t size = readlink(path, target, sizeof target - 1);

    if (size < 0)
        return false;
    target[size] = '\0';
    return strncmp(program_base(target), HELPER_NAME, sizeof HELPER_NAME - 1) == 0;
}

/* An empty folder is the present one, for every shell. */
static int join(char *out, struct folder folder, const char *name)
{
    int written = folder.size == 0
                      ? snprintf(out, PATH_MAX, "./%s", name)
                      : snprintf(out, PATH_MAX, "%.*s/%s", (int)folder.size, folder.name, name);

    return written < PATH_MAX ? 0 : -1;
}

/* 0, or an errno that says what is wrong with the file at program->path. */
static int check(struct program *program)
{
    struct stat found;

    if (stat(program->path, &found) < 0 || !S_ISREG(found.st_mode) || is_this_program(&found) ||
        leads_to_helper(program->path))
        return ENOENT;
    if (access(program->path, X_OK) < 0)
        return EACCES;
    program->privileged = (found.st_mode & (S_ISUID | S_ISGID)) != 0;
    return 0;
}

static int try_candidate(struct program *program, struct folder folder, const char *name)
{
    if (folder.size >= PATH_MAX || join(program->path, folder, name) < 0)
        return ENOENT;
    return check(program);
}

int program_take(struct program *program, const char *path)
{
    if (path == NULL || strlen(path) >= sizeof program->path) {
        errno = ENOENT;
        return -1;
    }
    strcpy(program->path, path);
    errno = check(program);
    return errno == 0 ? 0 : -1;
}

int program_find(struct program *program, const char *name, const char *path, const char *ours)
{
    const char *rest = path == NULL ? USUAL_PATH : path;
    int reason = ENOENT;

    while (rest != NULL) {
        struct folder folder = next_folder(&rest);
        int trouble = is_folder(folder, ours) ? ENOENT : try_candidate(program, folder, name);
        if (trouble == 0)
            return 0;
        if (trouble != ENOENT)
            reason = trouble;
    }
    errno = reason;
    return -1;
}

const char *program_base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

void program_path_without(char *out, const char *path, const char *ours)
{
    const char *rest = path;
    char *at = out;
    bool first = true; /* `at` does not tell: the first folder may be empty */

    while (rest != NULL) {
        struct folder folder = next_folder(&rest);
        if (is_folder(folder, ours))
            continue;
        if (!first)
            *at++ = ':';
        first = false;
        memcpy(at, folder.name, folder.size);
        at += folder.size;
    }
    *at = '\0';
}

char *program_own_name(struct program *program, char *given, const char *called_as)
{
    return strchr(given, '/') != NULL && strcmp(given, called_as) == 0 ? program->path : given;
}

const char *program_called_as(char *const argv[])
{
    uintptr_t path = (uintptr_t)getauxval(AT_EXECFN);

    return path == 0 ? argv[0] : (const char *)path;
}
