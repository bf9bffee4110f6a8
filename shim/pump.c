#include "pump.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { TYPED, SHELL, SHOWN };

enum {
    STREAM_READ = 2048,
    STREAM_ROUNDS = 8,
};

static bool is_over(ssize_t got)
{
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

/* ---- from the person to the shell ---- */

static void type_on(struct pump *pump)
{
    ssize_t took = write(pump->master, pump->in, pump->in_size);

    if (took <= 0)
        return;
    pump->in_size -= (size_t)took;
    memmove(pump->in, pump->in + took, pump->in_size);
}

static void read_typed(struct pump *pump)
{
    char *at = pump->in + pump->in_size;
    ssize_t got = read(pump->terminal_in, at, PUMP_TYPED - pump->in_size);

    if (got <= 0) {
        pump->is_hung_up = is_over(got);
        return;
    }
    if (pump->on_typed != NULL)
        pump->on_typed(pump->context, at, (size_t)got);
    pump->in_size += (size_t)got;
    type_on(pump);
}

/* ---- from the shell to the person ---- */

static size_t room(const struct pump *pump)
{
    size_t used = pump->out_at + pump->out_size + PUMP_SLACK;

    return used < sizeof pump->out ? sizeof pump->out - used : 0;
}

void pump_show(struct pump *pump)
{
    while (pump->out_size > 0) {
        ssize_t took = write(pump->terminal_out, pump->out + pump->out_at, pump->out_size);
        if (took < 0) {
            pump->is_hung_up = is_over(took);
            return;
        }
        pump->out_at += (size_t)took;
        pump->out_size -= (size_t)took;
    }
    pump->out_at = 0;
}

static void make_room(struct pump *pump)
{
    memmove(pump->out, pump->out + pump->out_at, pump->out_size);
    pump->out_at = 0;
}

void pump_add(struct pump *pump, const char *bytes, size_t size)
{
    make_room(pump);
    if (size > sizeof pump->out - pump->out_size)
        return;
    memcpy(pump->out + pump->out_size, bytes, size);
    pump->out_size += size;
}

/* Read once, and on while there is a stream. Return how much, 0 for nothing now, -1 where the shell's
 * terminal is closed. */
static ssize_t take(struct pump *pump, size_t limit)
{
    char *at = pump->out + pump->out_at + pump->out_size;
    ssize_t got = read(pump->master, at, limit);
    size_t size = got > 0 ? (size_t)got : 0;

    while (got >= STREAM_READ && size < limit) {
        got = read(pump->master, at + size, limit - size);
        size += got > 0 ? (size_t)got : 0;
    }
    if (size == 0)
        return is_over(got) ? -1 : 0;
    pump->out_size += pump->filter == NULL ? size : pump->filter(pump->context, at, size);
    return (ssize_t)size;
}

/* Show what was written, and go on for a while without asking who else has something to say. Return as
 * pump_serve does. */
static bool stream(struct pump *pump)
{
    ssize_t took = STREAM_READ;

    for (int i = 0; i < STREAM_ROUNDS && took >= STREAM_READ && pump->out_size == 0; i++) {
        took = take(pump, PUMP_GATHER);
        pump_show(pump);
    }
    return took >= 0;
}

bool pump_take(struct pump *pump)
{
    ssize_t took = 1;

    while (took > 0) {
        make_room(pump);
        took = room(pump) > 0 ? take(pump, room(pump)) : 0;
    }
    return took == 0;
}

/* ---- both ---- */

void pump_poll(const struct pump *pump, struct pollfd ready[PUMP_FDS])
{
    short events = (short)((pump->out_size == 0 ? POLLIN : 0) | (pump->in_size > 0 ? POLLOUT : 0));

    ready[TYPED] = (struct pollfd){pump->in_size < PUMP_TYPED ? pump->terminal_in : -1, POLLIN, 0};
    /* A terminal that is closed shows whatever one asks for: not while nothing is to be done there. */
    ready[SHELL] = (struct pollfd){events != 0 ? pump->master : -1, events, 0};
    ready[SHOWN] = (struct pollfd){pump->out_size > 0 ? pump->terminal_out : -1, POLLOUT, 0};
}

bool pump_serve(struct pump *pump, const struct pollfd ready[PUMP_FDS])
{
    if (ready[SHOWN].revents != 0)
        pump_show(pump);
    if (ready[TYPED].revents != 0)
        read_typed(pump);
    else if ((ready[SHELL].revents & POLLOUT) != 0)
        type_on(pump);
    if ((ready[SHELL].revents & (POLLIN | POLLHUP)) == 0)
        return true;
    return stream(pump);
}
