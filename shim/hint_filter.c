#include "hint_filter.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static const char MAGIC[8] = {'f', 'r', 'w', 'o', 'r', 'd', 's', '1'};
enum { PID_AT = 8, BITS_AT = 16 };

static void let_go(struct hint_filter *filter)
{
    if (filter->is_open)
        close(filter->fd);
    filter->is_open = false;
}

/* A daemon keeps its file open and changes it in place; another one's is another file. */
static bool follow(struct hint_filter *filter, const char *path, unsigned generation)
{
    if (filter->is_open && filter->generation == generation)
        return true;
    let_go(filter);
    filter->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    filter->is_open = filter->fd >= 0;
    filter->generation = generation;
    return filter->is_open;
}

static int64_t owner_of(const struct hint_filter *filter)
{
    const uint8_t *owner = filter->bytes + PID_AT;

    return (int64_t)owner[0] | (int64_t)owner[1] << 8 | (int64_t)owner[2] << 16 |
           (int64_t)owner[3] << 24;
}

static bool is_there(int64_t pid)
{
    return pid > 0 && pid <= INT_MAX && kill((pid_t)pid, 0) == 0;
}

static bool load(struct hint_filter *filter, int64_t pid)
{
    if (pread(filter->fd, filter->bytes, sizeof filter->bytes, 0) != sizeof filter->bytes ||
        memcmp(filter->bytes, MAGIC, sizeof MAGIC) != 0)
        return false;
    return pid == HINT_FILTER_ANY_DAEMON ? is_there(owner_of(filter)) : owner_of(filter) == pid;
}

static bool has_bit(const struct hint_filter *filter, uint32_t bit)
{
    return (filter->bytes[BITS_AT + bit / 8] >> (bit % 8) & 1) != 0;
}

static bool has_word(const struct hint_filter *filter, const char *word, size_t size)
{
    uint32_t hash = 0x811c9dc5;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (uint8_t)word[i]) * 0x01000193;
    return has_bit(filter, hash & 0xffff) && has_bit(filter, hash >> 16);
}

static bool is_separator(char byte)
{
    return byte == '\0' || strchr(" \t\n\v\f\r;|&()<>`\"'$\\{}", byte) != NULL;
}

bool hint_filter_may_match(struct hint_filter *filter, const char *path, int64_t pid,
                           unsigned generation, const char *text, size_t size)
{
    size_t start = 0;

    if ((pid <= 0 && pid != HINT_FILTER_ANY_DAEMON) || !follow(filter, path, generation))
        return true;
    if (!load(filter, pid)) {
        let_go(filter);
        return true;
    }
    for (size_t at = 0; at <= size; at++) {
        if (at < size && !is_separator(text[at]))
            continue;
        if (at > start && has_word(filter, text + start, at - start))
            return true;
        start = at + 1;
    }
    return false;
}
