#include "relay.h"

#include "channel.h"
#include "clock.h"
#include "history.h"
#include "link.h"
#include "process.h"
#include "record.h"
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LINGER_US = 5 * 1000 * 1000,      /* for what the daemon has not committed when the shell ends */
    SHELL_CHECK_US = 5 * 1000 * 1000, /* where the system has no pidfd */
    SECOND_WRITE_US = 200,
};

/* The one command that the shell is running. */
struct run {
    bool is_open, is_deferred; /* deferred: the daemon hears of it when it has finished */
    uint8_t id[WIRE_ID_SIZE];
    int64_t mono_us, wall_us;
    int64_t released_us; /* when the shell was let go on: durations begin here */
    size_t size;
    uint64_t total; /* bytes of the line, more than `size` where it was cut */
    char text[WIRE_COMMAND_MAX];
    char cwd[WIRE_PATH_MAX];
    enum wire_word_kind word_kind;
};

/* A variable as the shell last reported it. */
struct variable {
    bool is_set;
    size_t size;
    char text[WIRE_VARIABLE_MAX];
};

enum { VARIABLES = 3 }; /* PATH, VIRTUAL_ENV, CONDA_PREFIX */
#define NOBODY_KNOWS UINT_MAX
static const size_t VARIABLE_LIMITS[VARIABLES] = {WIRE_VARIABLE_MAX, WIRE_PATH_MAX, WIRE_PATH_MAX};

struct relay {
    const char *shell;
    pid_t pid;
    int watch; /* readable when the shell has ended, or -1 */
    bool is_leaving;
    struct paths paths;
    struct channel channel;
    struct terminal terminal;
    struct link link;
    struct record_reader reader;
    struct history history;
    struct run run;
    struct variable variables[VARIABLES];
    unsigned variables_sent; /* the generation of the connection that knows them */
    uint8_t session[WIRE_ID_SIZE];
    char boot[64];
    char tmux_pane[WIRE_WORD_MAX];
    int64_t last_record_us;
    uint8_t out[WIRE_OUT_MAX];
    char reply[WIRE_REPLY_MAX + 1];
};

/* ---- towards the shell ---- */

enum answer { ANSWER_GO = '0', ANSWER_REPEAT = 'a', ANSWER_PRIVATE = 'A' };

/* One byte, for bash reads byte by byte: the kind of answer and the question's number, 0 to 9, by
 * which the shell knows a late answer to an earlier question. */
static void answer(struct relay *relay, const struct record *record, enum answer kind)
{
    int digit = record->head[0] >= '0' && record->head[0] <= '9' ? record->head[0] - '0' : 0;
    char byte = (char)((int)kind + digit);

    if (write(relay->channel.out, &byte, 1) < 0)
        return; /* a full FIFO: 64 KiB of answers that nobody wanted */
}

/* ---- towards the daemon ---- */

static struct bytes variable_to_send(const struct relay *relay, int which)
{
    const struct variable *variable = &relay->variables[which];

    if (relay->variables_sent == relay->link.generation || !variable->is_set)
        return bytes_of(NULL);
    return (struct bytes){variable->text, variable->size};
}

static struct bytes text_or_nothing(const char *text)
{
    return bytes_of(text[0] == '\0' ? NULL : text);
}

/* Tell the daemon that the run starts (or, where it was deferred, that it did). */
static enum wire_verdict announce(struct relay *relay, bool may_ask)
{
    struct run *run = &relay->run;
    struct frame frame;
    struct wire_starting starting = {
        .source = SOURCE_RELAY,
        .shell = bytes_of(relay->shell),
        .pid = relay->pid,
        .tty = bytes_of(relay->terminal.name),
        .cwd = bytes_of(run->cwd),
        .command = {run->text, run->size},
        .command_total = run->total,
        .boot = bytes_of(relay->boot),
        .mono_us = run->mono_us,
        .wall_us = run->wall_us,
        .word_kind = run->word_kind,
        .tmux_pane = text_or_nothing(relay->tmux_pane),
    };

    link_connect(&relay->link, may_ask);
    starting.wants_reply = may_ask && link_may_ask(&relay->link);
    starting.path = variable_to_send(relay, 0);
    starting.virtual_env = variable_to_send(relay, 1);
    starting.conda_prefix = variable_to_send(relay, 2);
    memcpy(starting.run, run->id, WIRE_ID_SIZE);
    memcpy(starting.session, relay->session, WIRE_ID_SIZE);
    if (wire_encode_starting(&starting, relay->out, sizeof relay->out, &frame) < 0)
        return VERDICT_NONE;
    link_post(&relay->link, run->id, relay->out, frame);
    relay->variables_sent = relay->link.generation;
    if (!starting.wants_reply)
        return VERDICT_NONE;
    return link_wait(&relay->link, run->id, PHASE_START, relay->reply);
}

/* Tell the daemon how the run ended. The exit status may be WIRE_UNKNOWN. */
static enum wire_verdict conclude(struct relay *relay, struct wire_finished *finished)
{
    struct run *run = &relay->run;
    struct frame frame;

    memcpy(finished->run, run->id, WIRE_ID_SIZE);
    finished->signal = WIRE_UNKNOWN; /* a shell tells only the exit status */
    finished->mono_us = clock_mono_us();
    finished->wall_us = clock_wall_us();
    finished->wants_reply =
        finished->exit != 0 && finished->exit != WIRE_UNKNOWN && link_may_ask(&relay->link);
    run->is_open = false;
    if (wire_encode_finished(finished, relay->out, sizeof relay->out, &frame) < 0)
        return VERDICT_NONE;
    link_post(&relay->link, run->id, relay->out, frame);
    if (!finished->wants_reply)
        return VERDICT_NONE;
    return link_wait(&relay->link, run->id, PHASE_FINISH, relay->reply);
}

/* ---- records ---- */

static void copy_cut(char *out, size_t room, struct bytes text)
{
    size_t size = text.size < room - 1 ? text.size : room - 1;

    memcpy(out, text.data, size);
    out[size] = '\0';
}

static struct bytes field(const struct record *record, int which)
{
    return (struct bytes){record->fields[which], record->sizes[which]};
}

static enum line_flag flag_of(const struct record *record)
{
    char flag = record->head[0] == '\0' ? '\0' : record->head[1];

    return flag == LINE_ADDED || flag == LINE_TYPED || flag == LINE_UNSURE ? (enum line_flag)flag
                                                                            : LINE_KEPT_OUT;
}

/* zsh sends the line itself, cut, and "KIND TOTAL" in place of the first command. */
static struct typed_line typed_in_zsh(const struct record *record)
{
    unsigned long long total = strtoull(record->fields[2] + (record->sizes[2] > 0), NULL, 10);
    struct typed_line line = {.text = field(record, 0)};

    if (line.text.size > WIRE_COMMAND_MAX)
        line.text.size = WIRE_COMMAND_MAX;
    line.total = total > line.text.size ? total : line.text.size;
    return line;
}

static enum wire_word_kind kind_in_zsh(const struct record *record)
{
    char digit = record->fields[2][0];

    return digit >= '0' && digit <= '0' + WORD_BUILTIN ? (enum wire_word_kind)(digit - '0')
                                                       : WORD_UNKNOWN;
}

static void open_run(struct relay *relay, const struct typed_line *line, struct bytes cwd)
{
    struct run *run = &relay->run;

    run->is_open = true;
    run->is_deferred = false;
    if (getrandom(run->id, sizeof run->id, GRND_NONBLOCK) != (ssize_t)sizeof run->id)
        run->is_open = false; /* without an id there is no run */
    run->mono_us = run->released_us = clock_mono_us();
    run->wall_us = clock_wall_us();
    run->size = line->text.size;
    run->total = line->total;
    memcpy(run->text, line->text.data, line->text.size);
    copy_cut(run->cwd, sizeof run->cwd, cwd);
    if (run->cwd[0] != '/')
        process_folder(relay->pid, run->cwd, sizeof run->cwd);
}

/* The shell went on without telling how the last command ended: nobody knows. */
static void close_forgotten_run(struct relay *relay)
{
    struct wire_finished finished = {.exit = WIRE_UNKNOWN, .usec = WIRE_UNKNOWN};

    finished.cwd = bytes_of(relay->run.cwd);
    if (relay->run.is_open && !relay->run.is_deferred)
        conclude(relay, &finished);
    relay->run.is_open = false;
}

/* Judge the line and, if it may be recorded, open a run for it. */
static enum line_verdict begin(struct relay *relay, const struct record *record,
                               const struct typed_line *line, enum wire_word_kind word_kind)
{
    struct bytes first_command =
        flag_of(record) == LINE_TYPED ? bytes_of("") : field(record, 2);
    enum line_verdict verdict = history_judge(&relay->history, flag_of(record), line, first_command);

    close_forgotten_run(relay);
    if (verdict == LINE_PRIVATE)
        return verdict;
    open_run(relay, line, field(record, 1));
    relay->run.word_kind = word_kind;
    return relay->run.is_open ? verdict : LINE_PRIVATE;
}

/* What history printed, from the entry with the number in the record's head on. */
static struct bytes printed_history(const struct record *record)
{
    const char *number = record->head + strcspn(record->head, "#");

    return history_from_entry(field(record, 0), strtoul(number + (*number == '#'), NULL, 10));
}

static enum line_verdict begin_in_bash(struct relay *relay, const struct record *record)
{
    struct bytes text = printed_history(record);
    uint64_t cut = record->totals[0] - record->sizes[0];
    struct typed_line line = history_parse(text, text.size + cut);

    return begin(relay, record, &line, history_word_kind(&line, field(record, 2)));
}

static enum line_verdict begin_in_zsh(struct relay *relay, const struct record *record)
{
    struct typed_line line = typed_in_zsh(record);

    return begin(relay, record, &line, kind_in_zsh(record));
}

static void on_starting(struct relay *relay, const struct record *record)
{
    enum line_verdict verdict = flag_of(record) == LINE_TYPED ? begin_in_zsh(relay, record)
                                                              : begin_in_bash(relay, record);
    enum wire_verdict told = VERDICT_NONE;

    if (verdict == LINE_RECORD)
        told = announce(relay, true);
    if (told == VERDICT_HINT)
        terminal_print_hint(&relay->terminal, relay->reply);
    if (told == VERDICT_PRIVATE)
        link_forget(&relay->link, relay->run.id);
    if (told == VERDICT_PRIVATE || verdict == LINE_PRIVATE) {
        relay->run.is_open = false;
        answer(relay, record, ANSWER_PRIVATE);
        return;
    }
    relay->run.is_deferred = verdict == LINE_REPEAT;
    relay->run.released_us = clock_mono_us();
    answer(relay, record, verdict == LINE_REPEAT ? ANSWER_REPEAT : ANSWER_GO);
}

/* Lines that have run already. Of several (a paste) only the last one's status can be told. */
static void on_late_lines(struct relay *relay, const struct record *record)
{
    struct bytes rest = printed_history(record);
    uint64_t cut = record->totals[0] - record->sizes[0];

    do {
        struct bytes entry = history_cut_entry(&rest);
        struct typed_line line = history_parse(entry, entry.size + (rest.size == 0 ? cut : 0));
        if (relay->run.is_open)
            announce(relay, false); /* the one before: it stays without an end */
        relay->run.is_deferred = false;
        if (begin(relay, record, &line, WORD_UNKNOWN) != LINE_RECORD)
            relay->run.is_open = false;
        relay->run.is_deferred = true;
    } while (rest.size > 0);
    /* It began at the earliest after the record before this one. */
    relay->run.released_us = relay->last_record_us;
    answer(relay, record, ANSWER_GO);
}

static void parse_pipestatus(const char *text, struct wire_finished *finished)
{
    char *end;

    while (finished->pipestatus_count < WIRE_PIPESTATUS_MAX) {
        long status = strtol(text, &end, 10);
        if (end == text)
            return;
        finished->pipestatus[finished->pipestatus_count++] = status;
        text = end;
    }
}

/* The shell measures only what it reports late, and by a clock that may be set meanwhile: more than
 * has passed here, or less than nothing, is not true. */
static int64_t duration_us(const struct relay *relay, const char *measured)
{
    int64_t passed = clock_mono_us() - relay->run.released_us;
    int64_t told = measured[0] == '\0' ? passed : strtoll(measured, NULL, 10);

    return told < 0 || told > passed ? passed : told;
}

static void on_finished(struct relay *relay, const struct record *record)
{
    bool is_known = record->sizes[0] > 0;
    struct wire_finished finished = {
        .exit = is_known ? strtol(record->fields[0], NULL, 10) : WIRE_UNKNOWN,
    };
    struct run *run = &relay->run;

    if (run->is_open) {
        finished.usec = is_known ? duration_us(relay, record->fields[3]) : WIRE_UNKNOWN;
        finished.cwd = field(record, 2);
        if (finished.cwd.size == 0 || finished.cwd.size > WIRE_PATH_MAX)
            finished.cwd = bytes_of(run->cwd);
        parse_pipestatus(record->fields[1], &finished);
        if (run->is_deferred) {
            /* Its start is when it began, not when we heard of it. */
            if (is_known) {
                run->wall_us = clock_wall_us() - finished.usec;
                run->mono_us = clock_mono_us() - finished.usec;
            }
            announce(relay, false);
        } else {
            link_connect(&relay->link, false);
        }
        if (conclude(relay, &finished) == VERDICT_HINT)
            terminal_print_hint(&relay->terminal, relay->reply);
    }
    if (is_known && finished.exit != 0)
        answer(relay, record, ANSWER_GO);
}

static void on_environment(struct relay *relay, const struct record *record)
{
    for (int i = 0; i < VARIABLES; i++) {
        struct variable *variable = &relay->variables[i];
        variable->is_set = record->totals[i] > 0 && record->totals[i] <= VARIABLE_LIMITS[i];
        variable->size = variable->is_set ? record->sizes[i] : 0;
        memcpy(variable->text, record->fields[i], variable->size);
    }
    relay->variables_sent = NOBODY_KNOWS;
}

static void on_history(struct relay *relay, const struct record *record)
{
    struct typed_line line = history_parse(field(record, 0), record->totals[0]);

    history_note(&relay->history, &line);
}

static void on_successor(struct relay *relay, const struct record *record)
{
    if (strtoull(record->fields[0], NULL, 10) == process_start_time(relay->pid))
        relay->is_leaving = true;
}

static void on_probe(struct relay *relay, const struct record *record)
{
    answer(relay, record, ANSWER_GO);
}

static void on_record(struct relay *relay, const struct record *record)
{
    static const struct {
        char kind;
        void (*handle)(struct relay *, const struct record *);
    } HANDLERS[] = {{'S', on_starting},    {'F', on_finished}, {'L', on_late_lines},
                    {'E', on_environment}, {'H', on_history},  {'X', on_successor},
                    {'P', on_probe}};

    for (size_t i = 0; i < sizeof HANDLERS / sizeof *HANDLERS; i++)
        if (HANDLERS[i].kind == record->kind)
            HANDLERS[i].handle(relay, record);
    if (record->kind != 'E' && record->kind != 'P') /* they come while a command waits */
        relay->last_record_us = clock_mono_us();
}

static void take_records(struct relay *relay, const char *at, size_t size)
{
    struct record record;

    while (record_next(&relay->reader, &at, &size, &record))
        on_record(relay, &record);
}

/* A record comes in two writes, microseconds apart: to sleep between them costs more than to look
 * again for a moment. */
static void read_records(struct relay *relay)
{
    int64_t patience_us = clock_mono_us() + SECOND_WRITE_US;
    char chunk[16 * 1024];

    for (;;) {
        ssize_t got = read(relay->channel.in, chunk, sizeof chunk);
        if (got > 0)
            take_records(relay, chunk, (size_t)got);
        else if (record_is_partial(&relay->reader) && clock_mono_us() < patience_us)
            sched_yield();
        else
            return;
    }
}

/* ---- life ---- */

static bool is_shell_gone(const struct relay *relay)
{
    return relay->watch < 0 && kill(relay->pid, 0) < 0 && errno == ESRCH;
}

static int poll_timeout(const struct relay *relay)
{
    int64_t due_us = link_due_us(&relay->link);
    int64_t check_us = relay->watch < 0 ? clock_mono_us() + SHELL_CHECK_US : INT64_MAX;

    if (check_us < due_us)
        due_us = check_us;
    return due_us == INT64_MAX ? -1 : clock_poll_ms(due_us);
}

static void serve(struct relay *relay)
{
    while (!relay->is_leaving) {
        short events;
        struct pollfd ready[] = {
            {relay->channel.in, POLLIN, 0},
            {relay->watch, POLLIN, 0},
            {link_fd(&relay->link, &events), 0, 0},
        };
        int count;

        ready[2].events = events;
        count = poll(ready, 3, poll_timeout(relay));
        if (count < 0 && errno != EINTR)
            return;
        if (ready[0].revents != 0)
            read_records(relay);
        if (count == 0 || ready[2].revents != 0)
            link_serve(&relay->link);
        if (ready[1].revents != 0 || is_shell_gone(relay))
            relay->is_leaving = true;
    }
}

/* The session is over: tell the daemon, and wait a little for what it has not committed. */
static void take_leave(struct relay *relay)
{
    int64_t deadline_us = clock_mono_us() + LINGER_US;
    struct frame frame;

    read_records(relay);
    close_forgotten_run(relay);
    channel_remove(&relay->channel);
    if (relay->link.generation == 0 && queue_runs(&relay->link.queue) == 0)
        return; /* the daemon never heard of this session */
    wire_encode_session_ended(relay->session, clock_wall_us(), relay->out, sizeof relay->out, &frame);
    link_post(&relay->link, relay->session, relay->out, frame);
    while (clock_mono_us() < deadline_us) {
        short events;
        struct pollfd ready = {link_fd(&relay->link, &events), 0, 0};
        int64_t due_us = link_due_us(&relay->link);

        if (ready.fd >= 0 && queue_unsent(&relay->link.queue).size == 0) {
            link_forget(&relay->link, relay->session); /* nobody acknowledges this one */
            if (queue_runs(&relay->link.queue) == 0)
                break;
        }
        ready.events = events;
        poll(&ready, 1, clock_poll_ms(due_us < deadline_us ? due_us : deadline_us));
        link_serve(&relay->link);
    }
    link_forget(&relay->link, relay->session);
    link_close(&relay->link);
}

/* Nothing of the shell's: a descriptor that we keep would hold back whoever waits for its end. */
static void close_inherited(void)
{
#ifdef SYS_close_range
    if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
        return;
#endif
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static void let_go_of_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    if (chdir("/") < 0)
        return; /* then some folder stays busy: no reason to give up */
}

static void ignore_signals(void)
{
    static const int IGNORED[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU, SIGTTIN};

    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++)
        signal(IGNORED[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

static void read_boot_id(char *boot, size_t room)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, boot, room - 1);

    boot[size < 0 ? 0 : size] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
}

static int set_up(struct relay *relay)
{
    const char *pane = getenv("TMUX_PANE");
    const struct rlimit no_core = {0, 0};

    if (paths_check_person() < 0 || paths_find(&relay->paths) < 0 ||
        paths_make_folders(&relay->paths) < 0)
        return -1;
    if (getrandom(relay->session, sizeof relay->session, GRND_NONBLOCK) !=
        (ssize_t)sizeof relay->session)
        return -1;
    setrlimit(RLIMIT_CORE, &no_core); /* commands are in this memory, before they are redacted */
    relay->watch = process_watch(relay->pid);
    terminal_open(&relay->terminal);
    read_boot_id(relay->boot, sizeof relay->boot);
    copy_cut(relay->tmux_pane, sizeof relay->tmux_pane, bytes_of(pane == NULL ? "" : pane));
    channel_sweep(&relay->paths, relay->pid);
    return channel_make(&relay->channel, &relay->paths, relay->pid);
}

/* 'it'\''s': the one form that both shells read back byte for byte. */
static void print_assignment(const char *name, const char *value)
{
    printf("%s='", name);
    for (; *value != '\0'; value++)
        if (*value == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*value);
    fputs("'; ", stdout);
}

int relay_main(int argc, char **argv)
{
    static struct relay relay; /* zeroed, and only the pages in use cost memory */
    pid_t child;

    if (argc < 3 || (relay.pid = (pid_t)strtol(argv[2], NULL, 10)) <= 1)
        return 0;
    relay.shell = argv[1];
    close_inherited();
    if (set_up(&relay) < 0)
        return 0;
    ignore_signals();
    /* The shell's command substitution was the first fork, this is the second. */
    child = fork();
    if (child < 0) {
        channel_remove(&relay.channel);
        return 0;
    }
    if (child > 0) {
        print_assignment("__flightrec_in", relay.channel.in_path);
        print_assignment("__flightrec_out", relay.channel.out_path);
        printf("__flightrec_relay=%ld\n", (long)child);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    let_go_of_terminal();
    relay.last_record_us = clock_mono_us();
    link_open(&relay.link, &relay.paths, "relay", argc > 3 ? argv[3] : "");
    link_connect(&relay.link, true);
    serve(&relay);
    take_leave(&relay);
    return 0;
}
