#include "proxy.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum {
    HELD_MS = 5,         /* an ESC at the end of what was read is the person's soon */
    LOOK_US = 50 * 1000, /* between something that happens and a look at what it was */
    LAST_OUTPUT_US = 2 * 1000 * 1000,
    ANSWER_MAX = 3,  /* `yes`: more is a conversation */
    REPORT_MAX = 64, /* what a terminal or a key says by itself */
};

/* ---- what passes ---- */

static size_t filter(void *context, char *bytes, size_t size)
{
    struct proxy *proxy = context;

    return screen_filter(&proxy->screen, bytes, size);
}

static void release_held(struct proxy *proxy)
{
    char held[SCREEN_MARK_MAX];

    if (proxy->screen.held_size > 0)
        pump_add(&proxy->pump, held, screen_release(&proxy->screen, held));
    pump_show(&proxy->pump);
}

/* What a terminal or a key says by itself, as opposed to text, also text that was pasted. */
static bool is_report(const char *bytes, size_t size)
{
    static const char PASTE[] = {'\033', '[', '2', '0', '0', '~'};

    return bytes[0] == '\033' && size <= REPORT_MAX &&
           (size < sizeof PASTE || memcmp(bytes, PASTE, sizeof PASTE) != 0);
}

/* Where the person talks with a command (a shell below this one, a remote one, an interpreter) or types
 * the next line ahead, the screen holds what was typed, which is not the command's and may be private.
 * A password is neither: whoever reads one shows nothing. */
static void on_typed(void *context, const char *bytes, size_t size)
{
    struct proxy *proxy = context;
    struct termios termios;
    bool is_line;

    if (!proxy->screen.is_command || is_report(bytes, size) ||
        tcgetattr(proxy->pump.master, &termios) < 0)
        return;
    is_line = (termios.c_lflag & ICANON) != 0;
    if (is_line && (termios.c_lflag & ECHO) == 0)
        return;
    if (proxy->talked != proxy->screen.begun)
        proxy->typed_size = 0;
    proxy->talked = proxy->screen.begun;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)bytes[i] >= ' ' && bytes[i] != '\177')
            proxy->typed_size++;
        else if (bytes[i] == '\r' && !is_line)
            proxy->typed_size += ANSWER_MAX + 1; /* a line of its history, maybe */
}

static bool is_conversation(const struct proxy *proxy)
{
    return proxy->talked == proxy->screen.begun && proxy->typed_size > ANSWER_MAX;
}

/* ---- the conversation's witness ---- */

/* What the shell wrote before the record at hand is in its terminal by now. */
static void print(void *context, const char *text)
{
    struct proxy *proxy = context;
    char hint[HINT_MAX];

    pump_take(&proxy->pump);
    pump_add(&proxy->pump, hint, terminal_format_hint(text, hint));
    pump_show(&proxy->pump);
}

static void look(void *context, struct wire_finished *finished)
{
    static char tail[TAIL_SIZE];
    struct proxy *proxy = context;
    struct screen *screen = &proxy->screen;
    size_t size;

    pump_take(&proxy->pump);
    pump_show(&proxy->pump);
    if (screen->ended != proxy->talk.digit || screen->is_full_screen || is_conversation(proxy))
        return;
    size = tail_size(&screen->tail);
    tail_copy(&screen->tail, tail, size);
    finished->tail_source = TAIL_MERGED;
    finished->tail = (struct bytes){tail, size};
    finished->tail_total = screen->tail.total;
}

/* ---- what the holder shows of us ---- */

static void note(const struct proxy *proxy, enum proxy_note which)
{
    char byte = (char)which;

    if (write(proxy->notes, &byte, 1) < 0)
        return; /* the holder is gone or busy: the next note tells the same */
}

static void plan_look(struct proxy *proxy)
{
    if (proxy->look_us == INT64_MAX)
        proxy->look_us = clock_mono_us() + LOOK_US;
    else if (proxy->look_us <= clock_mono_us()) {
        proxy->look_us = INT64_MAX;
        note(proxy, NOTE_LOOK);
    }
}

/* ---- the loop ---- */

enum { RECORDS = PUMP_FDS, DAEMON, GONE, FDS };

static int limit_ms(const struct proxy *proxy)
{
    int64_t due_us = link_due_us(&proxy->talk.link);
    int limit;

    if (proxy->look_us < due_us)
        due_us = proxy->look_us;
    limit = due_us == INT64_MAX ? -1 : clock_poll_ms(due_us);
    return proxy->screen.held_size > 0 && (limit < 0 || limit > HELD_MS) ? HELD_MS : limit;
}

static int wait_for_any(struct proxy *proxy, struct pollfd ready[FDS])
{
    short events;
    int link = link_fd(&proxy->talk.link, &events);

    pump_poll(&proxy->pump, ready);
    ready[RECORDS] = (struct pollfd){proxy->talk.channel.in, POLLIN, 0};
    ready[DAEMON] = (struct pollfd){link, events, 0};
    ready[GONE] = (struct pollfd){proxy->gone, POLLIN, 0};
    return poll(ready, FDS, limit_ms(proxy));
}

static void serve(struct proxy *proxy)
{
    struct pollfd ready[FDS];
    int count;

    do {
        count = wait_for_any(proxy, ready);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 || !pump_serve(&proxy->pump, ready))
            return;
        if (count == 0)
            release_held(proxy);
        if (ready[RECORDS].revents != 0)
            conversation_read(&proxy->talk);
        if (count == 0 || ready[DAEMON].revents != 0)
            link_serve(&proxy->talk.link);
        plan_look(proxy);
    } while (!proxy->pump.is_hung_up && ready[GONE].revents == 0);
}

/* The shell has ended: what it wrote last is still to be shown. */
static void show_rest(struct proxy *proxy)
{
    int64_t deadline_us = clock_mono_us() + LAST_OUTPUT_US;
    bool is_more = true;

    while (!proxy->pump.is_hung_up && clock_mono_us() < deadline_us) {
        struct pollfd ready = {proxy->pump.terminal_out, POLLOUT, 0};
        is_more = is_more && pump_take(&proxy->pump);
        pump_show(&proxy->pump);
        if (proxy->pump.out_size == 0)
            break;
        poll(&ready, 1, clock_poll_ms(deadline_us));
    }
    release_held(proxy);
}

/* Nobody is to wait for us while we wait for the daemon. */
static void leave_terminal(struct proxy *proxy)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    close(proxy->pump.terminal_out);
    close(proxy->pump.master);
    proxy->talk.witness = (struct witness){0};
    proxy->talk.terminal.fd = -1;
}

void proxy_run(struct proxy *proxy, const char *starter)
{
    proxy->look_us = 0; /* at once */
    proxy->pump.context = proxy;
    proxy->pump.filter = filter;
    proxy->pump.on_typed = on_typed;
    proxy->talk.witness = (struct witness){proxy, print, look};
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
