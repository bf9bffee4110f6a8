#include "send.h"

#include "clock.h"
#include "link.h"
#include "marks.h"
#include "terminal.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { COMMIT_LIMIT_US = 250 * 1000 };

/* What the command line of either role says. Ids are 32 hex digits. */
struct request {
    uint8_t run[WIRE_ID_SIZE], session[WIRE_ID_SIZE];
    struct bytes command, agent, tool_use_id;
    const char *shell;
    int64_t exit, usec;
    char cwd[WIRE_PATH_MAX];
    bool wants_tail;
};

static int parse_id(const char *text, uint8_t id[WIRE_ID_SIZE])
{
    if (strlen(text) != 2 * WIRE_ID_SIZE || strspn(text, "0123456789abcdef") != 2 * WIRE_ID_SIZE)
        return -1;
    for (size_t i = 0; i < WIRE_ID_SIZE; i++) {
        char pair[] = {text[2 * i], text[2 * i + 1], '\0'};
        id[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return 0;
}

static int parse_number(const char *text, int64_t *number)
{
    char *end;

    *number = strtoll(text, &end, 10);
    return end == text || *end != '\0' ? -1 : 0;
}

static int parse_text(const char *text, struct bytes *field)
{
    *field = bytes_of(text);
    return field->size > WIRE_WORD_MAX ? -1 : 0;
}

/* Return 0, or -1 where the option or its value is none. */
static int parse_option(struct request *request, const char *name, const char *value)
{
    if (strcmp(name, "--run") == 0)
        return parse_id(value, request->run);
    if (strcmp(name, "--session") == 0)
        return parse_id(value, request->session);
    if (strcmp(name, "--exit") == 0)
        return parse_number(value, &request->exit);
    if (strcmp(name, "--usec") == 0)
        return parse_number(value, &request->usec);
    if (strcmp(name, "--agent") == 0)
        return parse_text(value, &request->agent);
    if (strcmp(name, "--tool-use-id") == 0)
        return parse_text(value, &request->tool_use_id);
    if (strcmp(name, "--shell") == 0) {
        request->shell = value;
        return strlen(value) > WIRE_WORD_MAX ? -1 : 0;
    }
    if (strcmp(name, "--cwd") == 0 && strlen(value) < sizeof request->cwd) {
        strcpy(request->cwd, value);
        return 0;
    }
    return -1;
}

static int parse(struct request *request, int argc, char **argv)
{
    int at = 1;

    *request = (struct request){.exit = WIRE_UNKNOWN, .usec = WIRE_UNKNOWN, .shell = "sh"};
    if (getrandom(request->run, WIRE_ID_SIZE, GRND_NONBLOCK) != WIRE_ID_SIZE ||
        getrandom(request->session, WIRE_ID_SIZE, GRND_NONBLOCK) != WIRE_ID_SIZE)
        return -1;
    if (getcwd(request->cwd, sizeof request->cwd) == NULL)
        request->cwd[0] = '\0';
    for (; at < argc && strncmp(argv[at], "--", 2) == 0; at++) {
        if (argv[at][2] == '\0') {
            at++;
            break;
        }
        if (strcmp(argv[at], "--tail") == 0)
            request->wants_tail = true;
        else if (at + 1 >= argc || parse_option(request, argv[at], argv[at + 1]) < 0)
            return -1;
        else
            at++;
    }
    if (at < argc)
        request->command = bytes_of(argv[at++]);
    return at < argc ? -1 : 0;
}

static int set_up(struct link *link, struct paths *paths)
{
    if (paths_check_person() < 0 || paths_find(paths) < 0)
        return -1;
    link_open(link, paths, "hook", NULL); /* a hook may run in a sandbox: it starts nothing */
    return link_connect(link, false) ? 0 : -1;
}

static void announce(struct link *link, const struct request *request, bool wants_reply)
{
    static uint8_t out[WIRE_OUT_MAX];
    struct frame frame;
    struct wire_starting starting = {
        .source = SOURCE_HOOK,
        .shell = bytes_of(request->shell),
        .pid = getppid(),
        .tty = bytes_of(""),
        .cwd = bytes_of(request->cwd),
        .command = request->command,
        .command_total = request->command.size,
        .boot = bytes_of(""),
        .mono_us = clock_mono_us(),
        .wall_us = clock_wall_us(),
        .wants_reply = wants_reply,
        .agent = request->agent.data == NULL ? bytes_of(marks_agent()) : request->agent,
        .tool_use_id = request->tool_use_id,
    };

    if (starting.command.size > WIRE_COMMAND_MAX)
        starting.command.size = WIRE_COMMAND_MAX;
    memcpy(starting.run, request->run, WIRE_ID_SIZE);
    memcpy(starting.session, request->session, WIRE_ID_SIZE);
    if (wire_encode_starting(&starting, out, sizeof out, &frame) == 0)
        link_post(link, request->run, out, frame);
}

/* The last WIRE_TAIL_MAX bytes of standard input. */
static struct bytes read_tail(uint64_t *total)
{
    static char kept[2 * WIRE_TAIL_MAX];
    size_t size = 0;
    ssize_t got;

    while ((got = read(STDIN_FILENO, kept + size, sizeof kept - size)) > 0) {
        *total += (uint64_t)got;
        size += (size_t)got;
        if (size > WIRE_TAIL_MAX) {
            memmove(kept, kept + size - WIRE_TAIL_MAX, WIRE_TAIL_MAX);
            size = WIRE_TAIL_MAX;
        }
    }
    return (struct bytes){kept, size};
}

static void conclude(struct link *link, const struct request *request, struct bytes tail,
                     uint64_t tail_total)
{
    static uint8_t out[WIRE_OUT_MAX];
    struct frame frame;
    struct wire_finished finished = {
        .exit = request->exit,
        .signal = WIRE_UNKNOWN,
        .usec = request->usec,
        .cwd = bytes_of(request->cwd),
        .mono_us = clock_mono_us(),
        .wall_us = clock_wall_us(),
        .tail = tail,
        .tail_total = tail_total,
        .tail_source = tail.size > 0 ? TAIL_MERGED : TAIL_NONE,
    };

    memcpy(finished.run, request->run, WIRE_ID_SIZE);
    if (wire_encode_finished(&finished, out, sizeof out, &frame) == 0)
        link_post(link, request->run, out, frame);
}

/* Until the daemon has committed the run, or long enough. */
static void wait_for_commit(struct link *link)
{
    int64_t deadline_us = clock_mono_us() + COMMIT_LIMIT_US;

    while (link->connection.fd >= 0 && queue_runs(&link->queue) > 0 &&
           clock_mono_us() < deadline_us) {
        short events;
        struct pollfd ready = {link_fd(link, &events), 0, 0};
        ready.events = events;
        poll(&ready, 1, clock_poll_ms(deadline_us));
        link_serve(link);
    }
}

static int complain(const char *role, const char *usage)
{
    /* Still 0: a hook that fails blocks somebody's session. */
    fprintf(stderr, "flightrec-helper %s: usage: flightrec-helper %s %s\n", role, role, usage);
    return 0;
}

int hint_main(int argc, char **argv)
{
    static struct link link;
    static char text[WIRE_REPLY_MAX + 1];
    struct paths paths;
    struct request request;
    char out[HINT_LINES * HINT_LINE_BYTES];

    if (parse(&request, argc, argv) < 0 || request.command.size == 0)
        return complain("hint", "[--run ID] [--session ID] [--cwd DIR] [--shell NAME] [--agent NAME]"
                                " [--tool-use-id ID] [--] COMMAND");
    if (set_up(&link, &paths) < 0)
        return 0;
    announce(&link, &request, true);
    if (link_wait(&link, request.run, PHASE_START, clock_mono_us(), text) == VERDICT_HINT) {
        size_t size = terminal_clean(text, out, sizeof out);
        printf("%.*s\n", (int)size, out);
        fflush(stdout);
    }
    return 0;
}

int send_main(int argc, char **argv)
{
    static struct link link;
    struct paths paths;
    struct request request;
    struct bytes tail = {NULL, 0};
    uint64_t tail_total = 0;

    if (parse(&request, argc, argv) < 0)
        return complain("send", "[--run ID] [--session ID] [--exit N] [--usec N] [--cwd DIR]"
                                " [--shell NAME] [--agent NAME] [--tool-use-id ID] [--tail]"
                                " [--] [COMMAND]");
    if (request.wants_tail)
        tail = read_tail(&tail_total);
    if (set_up(&link, &paths) < 0)
        return 0;
    if (request.command.size > 0)
        announce(&link, &request, false);
    conclude(&link, &request, tail, tail_total);
    wait_for_commit(&link);
    return 0;
}
