#include "sandbox.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char MAGIC[8] = {'f', 'r', 'h', 'i', 'n', 't', 's', '1'};

enum { LOOK_EVERY_NS = 500 * 1000 };

bool sandbox_is_around(const struct paths *paths)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int trouble;

    if (fd < 0)
        return errno == EPERM || errno == EACCES || errno == EAFNOSUPPORT;
    memcpy(address.sun_path, paths->socket, strlen(paths->socket) + 1);
    trouble = connect(fd, (const struct sockaddr *)&address, sizeof address) < 0 ? errno : 0;
    close(fd);
    return trouble == EPERM || trouble == EACCES;
}

/* Whether this is the daemon's FIFO and nothing waits in it. */
static bool is_idle_fifo(int fd)
{
    struct stat found;
    int waiting = 0;

    return fstat(fd, &found) == 0 && S_ISFIFO(found.st_mode) && found.st_uid == geteuid() &&
           ioctl(fd, FIONREAD, &waiting) == 0 && waiting == 0;
}

bool sandbox_write(const struct paths *paths, const uint8_t *frame, size_t size)
{
    /* fails where no daemon holds the other end */
    int fd = open(paths->events_fifo, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    bool served;

    if (fd < 0)
        return false;
    served = is_idle_fifo(fd);
    if (write(fd, frame, size) != (ssize_t)size)
        served = false; /* full: there is no place to count it, everything here is read-only */
    close(fd);
    return served;
}

static const struct sandbox_answers *map_answers(const char *path)
{
    struct stat found;
    void *answers = MAP_FAILED;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0)
        return NULL;
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
        found.st_size >= (off_t)sizeof(struct sandbox_answers))
        answers = mmap(NULL, sizeof(struct sandbox_answers), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (answers == MAP_FAILED)
        return NULL;
    if (memcmp(((const struct sandbox_answers *)answers)->magic, MAGIC, sizeof MAGIC) == 0)
        return answers;
    munmap(answers, sizeof(struct sandbox_answers));
    return NULL;
}

static const struct sandbox_slot *find_slot(const struct sandbox_answers *answers,
                                            const uint8_t run[WIRE_ID_SIZE])
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE); /* another process writes: look again each time */
    for (size_t i = 0; i < SANDBOX_SLOTS; i++)
        if (memcmp(answers->slots[i].run, run, WIRE_ID_SIZE) == 0)
            return &answers->slots[i];
    return NULL;
}

static enum wire_verdict take_answer(const struct sandbox_slot *slot, char *text)
{
    uint32_t size = slot->size < SANDBOX_TEXT_MAX ? slot->size : SANDBOX_TEXT_MAX;

    memcpy(text, slot->text, size);
    text[size] = '\0';
    return slot->verdict == VERDICT_HINT || slot->verdict == VERDICT_PRIVATE
               ? (enum wire_verdict)slot->verdict
               : VERDICT_NONE;
}

enum wire_verdict sandbox_wait(const struct paths *paths, const uint8_t run[WIRE_ID_SIZE],
                               int64_t limit_us, char text[WIRE_REPLY_MAX + 1])
{
    const struct timespec pause = {0, LOOK_EVERY_NS};
    const struct sandbox_answers *answers = map_answers(paths->hint_file);
    const struct sandbox_slot *slot = NULL;
    int64_t deadline_us = clock_mono_us() + limit_us;

    text[0] = '\0';
    if (answers == NULL)
        return VERDICT_NONE;
    while ((slot = find_slot(answers, run)) == NULL && clock_mono_us() < deadline_us)
        nanosleep(&pause, NULL);
    return slot == NULL ? VERDICT_NONE : take_answer(slot, text);
}
