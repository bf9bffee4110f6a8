#include "proxy.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    HELD_US = 5 * 1000,    /* an ESC at the end of what was read is the person's soon */
    SETTLE_US = 10 * 1000, /* for a mark that was written before the record that we have */
    LOOK_US = 30 * 1000,   /* a program is there this long after its command began */
    LAST_OUTPUT_US = 2 * 1000 * 1000,
    STREAM_US = 60, /* while output streams: let some gather instead of waking for each line */
};

/* ---- the two terminals ---- */

static volatile sig_atomic_t is_resized = 1;

static void on_resize(int signal)
{
    (void)signal;
    is_resized = 1;
}

static void copy_size(struct proxy *proxy)
{
    struct winsize size;

    is_resized = 0;
    if (ioctl(proxy->terminal_in, TIOCGWINSZ, &size) == 0)
        ioctl(proxy->master, TIOCSWINSZ, &size); /* the kernel sends SIGWINCH to who is there */
}

static bool is_over(ssize_t got)
{
    return got == 0 || (errno != EAGAIN && errno != EINTR);
}

static void type_on(struct proxy *proxy)
{
    ssize_t took = write(proxy->master, proxy->in, proxy->in_size);

    if (took <= 0)
        return;
    proxy->in_size -= (size_t)took;
    memmove(proxy->in, proxy->in + took, proxy->in_size);
}

static void read_typed(struct proxy *proxy)
{
    ssize_t got = read(proxy->terminal_in, proxy->in + proxy->in_size, PROXY_IN - proxy->in_size);

    if (got > 0)
        proxy->in_size += (size_t)got;
    else if (is_over(got))
        proxy->is_hung_up = true;
    if (proxy->in_size > 0)
        type_on(proxy);
}

static void show_on(struct proxy *proxy)
{
    while (proxy->out_size > 0) {
        ssize_t took = write(proxy->terminal_out, proxy->out + proxy->out_at, proxy->out_size);
        if (took < 0) {
            if (errno != EAGAIN && errno != EINTR)
                proxy->is_hung_up = true;
            return;
        }
        proxy->out_at += (size_t)took;
        proxy->out_size -= (size_t)took;
    }
}

/* Read what the shell's side has written until there is no more or the buffer is full. Return bytes, 0
 * for none now, -1 for never again. Many short reads make one long write. */
static ssize_t gather(struct proxy *proxy, char *into)
{
    size_t size = 0;

    while (size < PROXY_OUT) {
        ssize_t got = read(proxy->master, into + size, PROXY_OUT - size);
        if (got > 0)
            size += (size_t)got;
        else if (is_over(got))
            return size > 0 ? (ssize_t)size : -1;
        else
            break;
    }
    return (ssize_t)size;
}

/* Move on what the shell's side has written. Return false when its terminal is closed. Does nothing
 * while the person's terminal does not take what it was given before: so the shell has to wait, as it
 * would without us. */
static bool show(struct proxy *proxy)
{
    ssize_t got;

    if (proxy->out_size > 0)
        return true;
    got = gather(proxy, proxy->out);
    if (got < 0)
        return false;
    proxy->out_at = 0;
    proxy->out_size = screen_filter(&proxy->screen, proxy->out, (size_t)got);
    show_on(proxy);
    return true;
}

static void release_held(struct proxy *proxy)
{
    if (proxy->screen.held_size == 0 || proxy->out_size > 0)
        return;
    proxy->out_at = 0;
    proxy->out_size = screen_release(&proxy->screen, proxy->out);
    show_on(proxy);
}

/* ---- the conversation's witness ---- */

static void show_until(struct proxy *proxy, bool (*is_enough)(const struct proxy *))
{
    int64_t deadline_us = clock_mono_us() + SETTLE_US;

    while (!is_enough(proxy) && clock_mono_us() < deadline_us) {
        struct pollfd ready = {proxy->master, POLLIN, 0};
        if (proxy->out_size > 0)
            show_on(proxy); /* a slow terminal may keep the mark from us: then there is no tail */
        poll(&ready, 1, proxy->out_size > 0 ? 1 : clock_poll_ms(deadline_us));
        if (!show(proxy))
            return;
    }
}

static bool has_begun(const struct proxy *proxy)
{
    return proxy->screen.is_command;
}

static bool has_ended(const struct proxy *proxy)
{
    return proxy->screen.ended == proxy->talk.digit;
}

static void settle(void *context)
{
    struct proxy *proxy = context;

    if (proxy->talk.run.is_open)
        show_until(proxy, has_begun);
}

static void look(void *context, struct wire_finished *finished)
{
    static char tail[TAIL_SIZE];
    struct proxy *proxy = context;
    size_t size;

    show_until(proxy, has_ended);
    if (!has_ended(proxy) || proxy->screen.is_full_screen)
        return;
    size = tail_size(&proxy->screen.tail);
    tail_copy(&proxy->screen.tail, tail, size);
    finished->tail_source = TAIL_MERGED;
    finished->tail = (struct bytes){tail, size};
    finished->tail_total = proxy->screen.tail.total;
}

/* ---- what the holder shows of us ---- */

static void note(const struct proxy *proxy, enum proxy_note which)
{
    char byte = (char)which;

    if (write(proxy->notes, &byte, 1) < 0)
        return; /* the holder is gone or busy: the next note tells the same */
}

static void look_at_foreground(struct proxy *proxy)
{
    pid_t foreground = tcgetpgrp(proxy->master);

    proxy->look_us = INT64_MAX;
    if (foreground <= 0 || foreground == proxy->foreground)
        return;
    proxy->foreground = foreground;
    note(proxy, NOTE_JOB);
}

static void read_records(struct proxy *proxy)
{
    conversation_read(&proxy->talk);
    look_at_foreground(proxy);
    proxy->look_us = clock_mono_us() + LOOK_US;
    note(proxy, NOTE_FOLDER);
}

/* ---- the loop ---- */

enum { TYPED, SHELL, SHOWN, RECORDS, DAEMON, GONE, FDS };

static int64_t due_us(const struct proxy *proxy)
{
    int64_t due_us = link_due_us(&proxy->talk.link);
    int64_t held_us = proxy->screen.held_size > 0 ? clock_mono_us() + HELD_US : INT64_MAX;

    if (proxy->look_us < due_us)
        due_us = proxy->look_us;
    return held_us < due_us ? held_us : due_us;
}

static int wait_for_any(struct proxy *proxy, struct pollfd *ready, const sigset_t *mask)
{
    struct timespec limit = {0, 0};
    short events;
    int64_t due = due_us(proxy), left;
    int link = link_fd(&proxy->talk.link, &events);

    left = due == INT64_MAX ? 0 : due - clock_mono_us();
    if (left > 0) {
        limit.tv_sec = left / 1000000;
        limit.tv_nsec = left % 1000000 * 1000;
    }
    ready[TYPED] = (struct pollfd){proxy->in_size < PROXY_IN ? proxy->terminal_in : -1, POLLIN, 0};
    ready[SHELL] = (struct pollfd){
        proxy->master,
        (short)((proxy->out_size == 0 ? POLLIN : 0) | (proxy->in_size > 0 ? POLLOUT : 0)), 0};
    ready[SHOWN] = (struct pollfd){proxy->out_size > 0 ? proxy->terminal_out : -1, POLLOUT, 0};
    ready[RECORDS] = (struct pollfd){proxy->talk.channel.in, POLLIN, 0};
    ready[DAEMON] = (struct pollfd){link, events, 0};
    ready[GONE] = (struct pollfd){proxy->gone, POLLIN, 0};
    return ppoll(ready, FDS, due == INT64_MAX ? NULL : &limit, mask);
}

/* Return false when the shell's terminal is closed. */
static bool serve_once(struct proxy *proxy, const struct pollfd *ready, int count)
{
    if (ready[SHOWN].revents != 0)
        show_on(proxy);
    if (ready[TYPED].revents != 0)
        read_typed(proxy);
    else if ((ready[SHELL].revents & POLLOUT) != 0)
        type_on(proxy);
    if ((ready[SHELL].revents & (POLLIN | POLLHUP)) != 0 && !show(proxy))
        return false;
    if (count == 0)
        release_held(proxy);
    if (ready[RECORDS].revents != 0)
        read_records(proxy);
    if (count == 0 || ready[DAEMON].revents != 0)
        link_serve(&proxy->talk.link);
    if (clock_mono_us() >= proxy->look_us)
        look_at_foreground(proxy);
    return true;
}

/* A stream is faster in large pieces: give the writer a moment to fill the buffer. */
static void let_gather(const struct pollfd *ready, int64_t *busy_us)
{
    struct timespec pause = {0, STREAM_US * 1000};
    int64_t now_us = clock_mono_us();
    bool is_stream = (ready[SHELL].revents & POLLIN) != 0 && now_us - *busy_us < 4 * STREAM_US;

    if ((ready[SHELL].revents & POLLIN) != 0)
        *busy_us = now_us;
    if (is_stream && ready[TYPED].revents == 0)
        nanosleep(&pause, NULL);
}

static void serve(struct proxy *proxy)
{
    struct pollfd ready[FDS];
    struct sigaction resized = {.sa_handler = on_resize};
    sigset_t winch, unmasked;
    int64_t busy_us = 0;

    sigemptyset(&winch);
    sigaddset(&winch, SIGWINCH);
    sigprocmask(SIG_BLOCK, &winch, &unmasked);
    sigdelset(&unmasked, SIGWINCH);
    sigaction(SIGWINCH, &resized, NULL);
    while (!proxy->is_hung_up) {
        int count;
        if (is_resized)
            copy_size(proxy);
        count = wait_for_any(proxy, ready, &unmasked);
        if (count < 0) {
            if (errno != EINTR)
                return;
            continue;
        }
        if (!serve_once(proxy, ready, count) || ready[GONE].revents != 0)
            return;
        let_gather(ready, &busy_us);
    }
}

/* The shell has ended: what it wrote last is still to be shown. */
static void show_rest(struct proxy *proxy)
{
    int64_t deadline_us = clock_mono_us() + LAST_OUTPUT_US;

    while (!proxy->is_hung_up && clock_mono_us() < deadline_us) {
        struct pollfd ready = {proxy->terminal_out, POLLOUT, 0};
        if (proxy->out_size == 0 && (!show(proxy) || proxy->out_size == 0))
            break;
        poll(&ready, 1, clock_poll_ms(deadline_us));
        show_on(proxy);
    }
    release_held(proxy);
}

static void leave_terminal(struct proxy *proxy)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    close(proxy->terminal_out);
    close(proxy->master);
    proxy->talk.terminal.fd = -1;
}

void proxy_run(struct proxy *proxy, const char *starter)
{
    proxy->look_us = INT64_MAX;
    proxy->talk.witness = (struct witness){proxy, settle, look};
    conversation_connect(&proxy->talk, "pty", starter);
    serve(proxy);
    conversation_read(&proxy->talk); /* the last command's end, before its output is gone */
    show_rest(proxy);
    note(proxy, NOTE_DONE);
    close(proxy->notes);
    leave_terminal(proxy);
    conversation_end(&proxy->talk);
    _exit(0);
}

bool proxy_copy_plainly(struct proxy *proxy)
{
    for (;;) {
        struct pollfd ready[] = {
            {proxy->in_size < PROXY_IN ? proxy->terminal_in : -1, POLLIN, 0},
            {proxy->master,
             (short)((proxy->out_size == 0 ? POLLIN : 0) | (proxy->in_size > 0 ? POLLOUT : 0)), 0},
            {proxy->out_size > 0 ? proxy->terminal_out : -1, POLLOUT, 0},
            {proxy->gone, POLLIN, 0},
        };
        copy_size(proxy); /* without a handler: cheap enough five times a second */
        if (poll(ready, 4, 200) < 0 && errno != EINTR)
            return false;
        if (ready[2].revents != 0)
            show_on(proxy);
        if (ready[0].revents != 0)
            read_typed(proxy);
        else if ((ready[1].revents & POLLOUT) != 0)
            type_on(proxy);
        if ((ready[1].revents & (POLLIN | POLLHUP)) != 0 && !show(proxy))
            return false;
        if (proxy->is_hung_up)
            return false;
        if (ready[3].revents != 0)
            return true;
    }
}
