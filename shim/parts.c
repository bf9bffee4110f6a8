#include "parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

void parts_open(struct parts *parts)
{
    parts->fd = memfd_create("flightrec-parts", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    /* by a path, since a descriptor would be inherited by every program below */
    snprintf(parts->assignment, sizeof parts->assignment, AGENT_PARTS "=/proc/%ld/fd/%d",
             (long)getpid(), parts->fd);
}

/* Not closed: its number would soon be another file's. */
void parts_refuse(const struct parts *parts)
{
    if (parts->fd >= 0)
        fcntl(parts->fd, F_ADD_SEALS, F_SEAL_WRITE);
}

bool parts_next(const struct parts *parts, struct part *part)
{
    static uint8_t bytes[PARTS_MAX];
    static size_t size;
    uint8_t *at = bytes + part->next;
    ssize_t length;

    if (part->next == 0) {
        ssize_t got = parts->fd < 0 ? 0 : pread(parts->fd, bytes, sizeof bytes, 0);
        size = got < 0 ? 0 : (size_t)got;
    }
    if (size - part->next < WIRE_ID_SIZE + WIRE_LENGTH_SIZE)
        return false;
    length = wire_frame_length(at + WIRE_ID_SIZE);
    if (length < 0 || size - part->next - WIRE_ID_SIZE - WIRE_LENGTH_SIZE < (size_t)length)
        return false;
    memcpy(part->run, at, WIRE_ID_SIZE);
    part->frame = at + WIRE_ID_SIZE;
    part->size = WIRE_LENGTH_SIZE + (size_t)length;
    part->next += WIRE_ID_SIZE + part->size;
    return true;
}

/* A file in memory, and no other: the path may lead to what another process has there by now. */
static bool is_in_memory(int fd, const struct stat *found)
{
    return S_ISREG(found->st_mode) && found->st_nlink == 0 && fcntl(fd, F_GET_SEALS) >= 0;
}

static bool has_room(int fd, size_t size)
{
    struct stat found;

    return fstat(fd, &found) == 0 && is_in_memory(fd, &found) && found.st_uid == geteuid() &&
           (size_t)found.st_size + size <= PARTS_MAX;
}

int parts_add(const uint8_t run[WIRE_ID_SIZE], const struct bytes frames[2])
{
    uint8_t id[WIRE_ID_SIZE];
    const struct iovec pieces[] = {
        {id, sizeof id},
        {(void *)(uintptr_t)frames[0].data, frames[0].size},
        {id, sizeof id},
        {(void *)(uintptr_t)frames[1].data, frames[1].size},
    };
    size_t size = 2 * sizeof id + frames[0].size + frames[1].size;
    const char *path = getenv(AGENT_PARTS);
    int fd = path == NULL ? -1 : open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    int result = -1;

    if (fd < 0)
        return -1;
    memcpy(id, run, sizeof id);
    /* appended in one call: others may do so at the same time */
    if (has_room(fd, size) && writev(fd, pieces, 4) == (ssize_t)size)
        result = 0;
    close(fd);
    return result;
}
