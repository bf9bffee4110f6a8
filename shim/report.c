#include "report.h"

#include "breaker.h"
#include "clock.h"
#include "hint_filter.h"
#include "link.h"
#include "program.h"
#include "sandbox.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIFO_TEXT_MAX = 1500, /* of a command or a tail */
    ERROR_SHARE = WIRE_TAIL_MAX * 3 / 4, /* of a tail, when standard output wants a part as well */
};

enum way { WAY_NONE, WAY_SOCKET, WAY_FIFO };

/* What a command touches in any case comes first and lies together: each page costs time. */
static struct {
    enum way way;
    bool begun_before;
    bool announced; /* the daemon has, or had, the first message */
    const char *shims;
    struct wire_starting starting;
    char boot[64];
    struct paths paths;
    struct link link;
    char cwd[WIRE_PATH_MAX], path[WIRE_VARIABLE_MAX];
    uint8_t out[WIRE_OUT_MAX];
    char reply[WIRE_REPLY_MAX + 1];
    char tail[WIRE_TAIL_MAX];
} report;

/* ---- the way to the daemon ---- */

/* The daemon lets the connection of a stand-in be silent for as long as the command runs. */
static const char *role_of(enum wire_source source)
{
    return source == SOURCE_SH ? "sh" : source == SOURCE_SHIM ? "shim" : "hook";
}

/* A first guess, without looking. */
static enum way guess_way(void)
{
    if (paths_check_person() < 0 || paths_find(&report.paths) < 0)
        return WAY_NONE;
    link_open(&report.link, &report.paths, role_of(report.starting.source), getenv(AGENT_STARTER));
    return WAY_SOCKET;
}

/* `starts` a missing daemon, for later commands. */
static enum way find_way(bool starts)
{
    if (link_connect(&report.link, starts))
        return WAY_SOCKET;
    /* a missing daemon may be back at the end */
    return sandbox_is_around(&report.paths) ? WAY_FIFO : WAY_SOCKET;
}

/* Return whether an answer may be waited for. */
static bool send_frame(struct frame frame)
{
    if (report.way == WAY_FIFO)
        return sandbox_write(&report.paths, report.out, frame.size);
    link_post(&report.link, report.starting.run, report.out, frame);
    return true;
}

static size_t frame_room(void)
{
    return report.way == WAY_FIFO ? SANDBOX_FRAME_MAX : sizeof report.out;
}

/* ---- the first message ---- */

static void read_boot_id(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, report.boot, sizeof report.boot - 1);

    report.boot[size < 0 ? 0 : size] = '\0';
    report.boot[strcspn(report.boot, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

static struct bytes cut(struct bytes text, size_t limit)
{
    return (struct bytes){text.data, text.size < limit ? text.size : limit};
}

static struct bytes variable(const char *name, size_t limit)
{
    const char *value = getenv(name);

    return bytes_of(value != NULL && value[0] != '\0' && strlen(value) <= limit ? value : NULL);
}

/* The person's own PATH: what the daemon asks of it is whether a program is there without us. */
static struct bytes real_path(const char *shims)
{
    const char *path = getenv("PATH");

    if (path == NULL || strlen(path) >= sizeof report.path)
        return bytes_of(NULL);
    program_path_without(report.path, path, shims);
    return bytes_of(report.path);
}

/* What the command may change is looked at before it runs, and all else when somebody wants to know. */
static void describe(const struct agent *agent, const struct report_command *command)
{
    struct wire_starting *starting = &report.starting;
    int64_t since_us = command->begin_us == 0 ? 0 : clock_wall_us() - command->begin_us;

    report.shims = agent->shims;
    report.begun_before = command->begin_us != 0;
    if (command->cwd == NULL && getcwd(report.cwd, sizeof report.cwd) == NULL)
        report.cwd[0] = '\0';
    *starting = (struct wire_starting){
        .source = command->source,
        .shell = cut(bytes_of(command->shell), WIRE_WORD_MAX),
        .pid = getpid(),
        .tty = bytes_of(""),
        .cwd = cut(bytes_of(command->cwd == NULL ? report.cwd : command->cwd), WIRE_PATH_MAX),
        .command = cut(command->command, WIRE_COMMAND_MAX),
        .command_total = command->command_total,
        .mono_us = clock_mono_us() - since_us,
        .wall_us = clock_wall_us() - since_us,
        .parent = command->parent,
        .depth = command->parent != NULL,
        .agent = cut(bytes_of(agent->name[0] == '\0' ? NULL : agent->name), WIRE_WORD_MAX),
    };
    memcpy(starting->session, agent->session, WIRE_ID_SIZE);
}

static void describe_surroundings(void)
{
    struct wire_starting *starting = &report.starting;

    if (starting->boot.data != NULL)
        return;
    read_boot_id();
    starting->boot = bytes_of(report.boot);
    starting->path = real_path(report.shims);
    starting->virtual_env = variable("VIRTUAL_ENV", WIRE_PATH_MAX);
    starting->conda_prefix = variable("CONDA_PREFIX", WIRE_PATH_MAX);
    starting->tool_use_id = variable("CODEX_TOOL_CALL_ID", WIRE_WORD_MAX);
}

/* What no rule needs is left out, so that the frame is written in one piece. */
static void shorten_for_fifo(struct wire_starting *starting)
{
    starting->command = cut(starting->command, FIFO_TEXT_MAX);
    starting->cwd = cut(starting->cwd, FIFO_TEXT_MAX / 2);
    if (starting->path.size > FIFO_TEXT_MAX / 2)
        starting->path = bytes_of(NULL);
    starting->virtual_env = starting->conda_prefix = bytes_of(NULL);
}

static bool is_told_at_once(void)
{
    return report.starting.parent == NULL && !report.begun_before;
}

/* Return whether an answer is to be waited for. */
static bool announce(bool wants_reply)
{
    struct frame frame;

    describe_surroundings();
    report.starting.wants_reply = wants_reply;
    if (report.way == WAY_FIFO)
        shorten_for_fifo(&report.starting);
    if (wire_encode_starting(&report.starting, report.out, frame_room(), &frame) < 0)
        return false;
    report.announced = true;
    return send_frame(frame) && wants_reply;
}

static void print_hint(const char *text)
{
    char out[HINT_LINES * HINT_LINE_BYTES];
    size_t size = terminal_clean(text, out, sizeof out - 1);

    out[size] = '\n';
    if (size > 0 && write(STDERR_FILENO, out, size + 1) < 0)
        return; /* nobody reads standard error: the command matters, the hint does not */
}

static enum wire_verdict await_answer(void)
{
    int64_t breaker_us = report.link.breaker_until_us;
    enum wire_verdict verdict;

    if (report.way == WAY_FIFO)
        return sandbox_wait(&report.paths, report.starting.run, report.link.ask_limit_us,
                            report.reply);
    verdict = link_wait(&report.link, report.starting.run, PHASE_START, clock_mono_us(),
                        report.reply);
    if (report.link.breaker_until_us != breaker_us)
        breaker_open(report.paths.breaker);
    return verdict;
}

/* Wait for the answer; print it if it is a hint. */
static void take_answer(void)
{
    enum wire_verdict verdict = await_answer();

    if (verdict == VERDICT_HINT)
        print_hint(report.reply);
    if (verdict == VERDICT_PRIVATE)
        report.way = WAY_NONE;
}

/* Most commands are in no rule, and need not wait for an answer that says so. */
static bool may_be_in_a_rule(void)
{
    static struct hint_filter filter;
    const struct bytes *command = &report.starting.command;

    return hint_filter_may_match(&filter, report.paths.hint_words, HINT_FILTER_ANY_DAEMON, 0,
                                 command->data, command->size);
}

static void ask(void)
{
    bool may_wait;

    report.way = find_way(false);
    may_wait = report.way == WAY_FIFO || link_may_ask(&report.link);
    if (may_wait && announce(!breaker_is_open(report.paths.breaker)))
        take_answer();
}

const uint8_t *report_start(const struct agent *agent, const struct report_command *command)
{
    describe(agent, command);
    if (command->run != NULL)
        memcpy(report.starting.run, command->run, WIRE_ID_SIZE);
    else if (getrandom(report.starting.run, WIRE_ID_SIZE, GRND_NONBLOCK) != WIRE_ID_SIZE)
        return report.starting.run; /* early in boot: unseen */
    report.way = guess_way();
    if (report.way != WAY_NONE && command->may_hint && is_told_at_once() && may_be_in_a_rule())
        ask();
    return report.starting.run;
}

int report_running(void)
{
    if (report.way == WAY_NONE)
        return -1;
    if (is_told_at_once() && !report.announced) {
        report.way = find_way(true);
        announce(false);
    }
    describe_surroundings();
    return report.way == WAY_SOCKET && report.announced ? report.link.connection.fd : -1;
}

bool report_is_sandboxed(void)
{
    return report.way == WAY_FIFO;
}

/* ---- the second message ---- */

struct report_end report_end_of(const struct observation *seen)
{
    bool signalled = WIFSIGNALED(seen->status);

    return (struct report_end){
        .exit = signalled ? 128 + WTERMSIG(seen->status) : WEXITSTATUS(seen->status),
        .signal = signalled ? WTERMSIG(seen->status) : WIRE_UNKNOWN,
        .usec = seen->usec,
        .seen = seen,
        .wants_tail = seen->status != 0,
    };
}

static size_t smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* The end of standard output and, behind it, of standard error, which says what went wrong. */
static void add_tail(struct wire_finished *finished, const struct observation *seen, size_t room)
{
    const struct tail *output = &seen->tails[STREAM_OUTPUT], *error = &seen->tails[STREAM_ERROR];
    size_t error_size = tail_size(error), output_size = tail_size(output);

    error_size = smaller(error_size, output_size == 0 ? room : room * ERROR_SHARE / WIRE_TAIL_MAX);
    output_size = smaller(output_size, room - error_size);
    tail_copy(output, report.tail, output_size);
    tail_copy(error, report.tail + output_size, error_size);
    finished->tail = (struct bytes){report.tail, output_size + error_size};
    finished->tail_total = output->total + error->total;
    if (output_size > 0 && (seen->merged || error_size > 0))
        finished->tail_source = TAIL_MERGED;
    else if (output_size > 0)
        finished->tail_source = TAIL_STDOUT;
    else if (error_size > 0)
        finished->tail_source = TAIL_STDERR;
}

static int encode_end(const struct report_end *end, uint8_t *out, size_t room, struct frame *frame)
{
    size_t tail_room = report.way == WAY_FIFO ? FIFO_TEXT_MAX : WIRE_TAIL_MAX;
    struct wire_finished finished = {
        .exit = end->exit,
        .signal = end->signal,
        .usec = end->usec,
        .cwd = report.starting.cwd,
        .mono_us = clock_mono_us(),
        .wall_us = clock_wall_us(),
        .pipestatus_count = end->pipestatus_count,
    };

    memcpy(finished.run, report.starting.run, WIRE_ID_SIZE);
    for (size_t i = 0; i < end->pipestatus_count; i++)
        finished.pipestatus[i] = end->pipestatus[i];
    if (end->seen != NULL && end->wants_tail)
        add_tail(&finished, end->seen, tail_room);
    return wire_encode_finished(&finished, out, room, frame);
}

static void conclude(const struct report_end *end)
{
    struct frame frame;

    if (encode_end(end, report.out, frame_room(), &frame) == 0)
        send_frame(frame);
}

/* Hand on what the stand-ins below have left, before the command itself ends. */
static void send_parts(const struct parts *parts)
{
    struct part part = {.next = 0};

    while (parts != NULL && report.way == WAY_SOCKET && parts_next(parts, &part))
        link_post(&report.link, part.run, part.frame, (struct frame){part.size, 0});
}

/* Leave both messages of a part with the shell's stand-in. */
static int leave_with_shell(const struct report_end *end)
{
    static uint8_t out[WIRE_OUT_MAX];
    struct frame starting, finished;

    describe_surroundings();
    report.starting.wants_reply = false;
    if (wire_encode_starting(&report.starting, report.out, sizeof report.out, &starting) < 0 ||
        encode_end(end, out, sizeof out, &finished) < 0)
        return -1;
    return parts_add(report.starting.run, (struct bytes[2]){{report.out, starting.size},
                                                            {out, finished.size}});
}

/* Sent is as good as kept: this process has no time to wait for the commit. */
static void let_go(void)
{
    if (report.way != WAY_SOCKET)
        return;
    if (queue_unsent(&report.link.queue).size > 0)
        link_serve(&report.link); /* the daemon was replaced meanwhile: tell the new one */
    if (report.link.connection.fd >= 0 && queue_unsent(&report.link.queue).size == 0)
        sock_close(&report.link.connection);
    else
        link_close(&report.link);
}

void report_finish(const struct report_end *end)
{
    if (report.way == WAY_NONE)
        return;
    if (report.starting.parent != NULL && leave_with_shell(end) == 0)
        return;
    if (!report.announced)
        report.way = find_way(false);
    else if (report.way == WAY_SOCKET)
        link_connect(&report.link, false);
    if (!report.announced)
        announce(false);
    send_parts(end->parts);
    conclude(end);
    let_go();
}
