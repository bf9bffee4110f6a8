#include "channel.h"

#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A channel without a reader may be one that is just being made. */
enum { STALE_AFTER_S = 60 };

static void name_files(struct channel *channel)
{
    size_t length = strlen(channel->folder);

    memcpy(channel->in_path, channel->folder, length);
    memcpy(channel->in_path + length, "/i", 3);
    memcpy(channel->out_path, channel->folder, length);
    memcpy(channel->out_path + length, "/o", 3);
}

static int open_fifo(const char *path)
{
    if (mkfifo(path, 0600) < 0)
        return -1;
    return open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
}

int channel_make(struct channel *channel, const struct paths *paths, pid_t pid)
{
    uint32_t salt;
    int saved_errno;

    channel->in = channel->out = -1;
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        return -1;
    snprintf(channel->folder, sizeof channel->folder - 2, "%s/%s.%ld.%08x", paths->run, paths->host,
             (long)pid, salt);
    name_files(channel);
    if (mkdir(channel->folder, 0700) < 0)
        return -1;
    channel->in = open_fifo(channel->in_path);
    channel->out = open_fifo(channel->out_path);
    if (channel->in >= 0 && channel->out >= 0)
        return 0;
    saved_errno = errno;
    channel_remove(channel);
    errno = saved_errno;
    return -1;
}

void channel_remove(struct channel *channel)
{
    if (channel->in >= 0)
        close(channel->in);
    if (channel->out >= 0)
        close(channel->out);
    unlink(channel->in_path);
    unlink(channel->out_path);
    rmdir(channel->folder);
}

static bool is_old(const char *folder)
{
    struct stat found;

    return lstat(folder, &found) == 0 && S_ISDIR(found.st_mode) &&
           time(NULL) - found.st_mtime > STALE_AFTER_S;
}

/* The start time proves that the other relay means the same process: pids repeat in containers. */
static void ask_to_leave(int fifo, pid_t pid)
{
    char record[32];
    int size = snprintf(record, sizeof record, "%llu%c\1X", process_start_time(pid), '\0');

    if (write(fifo, record, (size_t)size + 1) < 0)
        return; /* a full FIFO has a stuck relay behind it: nothing to be done */
}

static void sweep_one(struct channel *channel, bool is_this_process, pid_t pid)
{
    int fifo;

    name_files(channel);
    fifo = open(channel->in_path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (fifo >= 0) {
        if (is_this_process)
            ask_to_leave(fifo, pid);
        close(fifo);
    } else if ((errno == ENXIO || errno == ENOENT) && is_old(channel->folder)) {
        channel_remove(channel);
    }
}

/* As the system call gives them. opendir(3) would bring a heap along, a tenth of this program's size. */
struct entry {
    uint64_t inode, offset;
    unsigned short size;
    unsigned char type;
    char name[];
};

/* Sweep what stands in the folder under this name, if it is a channel of this host. */
static void sweep_entry(const struct paths *paths, const char *name, pid_t pid)
{
    struct channel found = {.in = -1, .out = -1};
    size_t host = strlen(paths->host);
    char process[32];
    int size;

    /* socket, lock, counters: "<host>.<word>"; channels: "<host>.<digits>.<salt>" */
    if (strncmp(name, paths->host, host) != 0 || name[host] != '.' || name[host + 1] < '0' ||
        name[host + 1] > '9')
        return;
    size = snprintf(found.folder, sizeof found.folder - 2, "%s/%s", paths->run, name);
    if (size < 0 || (size_t)size >= sizeof found.folder - 2)
        return;
    snprintf(process, sizeof process, "%ld.", (long)pid);
    sweep_one(&found, strncmp(name + host + 1, process, strlen(process)) == 0, pid);
}

void channel_sweep(const struct paths *paths, pid_t pid)
{
    int folder = open(paths->run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _Alignas(struct entry) char entries[4096];
    long size;

    if (folder < 0)
        return;
    while ((size = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for (long at = 0; at < size;) {
            const struct entry *entry = (const void *)(entries + at);
            sweep_entry(paths, entry->name, pid);
            at += entry->size;
        }
    close(folder);
}
