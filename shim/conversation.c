#include "conversation.h"

#include "clock.h"
#include "marks.h"
#include "process.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LINGER_US = 5 * 1000 * 1000, /* for what the daemon has not committed when the shell ends */
    SECOND_WRITE_US = 200,
};

#define NOBODY_KNOWS UINT_MAX
static const size_t VARIABLE_LIMITS[VARIABLES] = {WIRE_VARIABLE_MAX, WIRE_PATH_MAX, WIRE_PATH_MAX};

/* ---- towards the shell ---- */

enum answer { ANSWER_GO = '0', ANSWER_REPEAT = 'a', ANSWER_PRIVATE = 'A', ANSWER_HOLD = 'K' };

/* One byte, for bash reads byte by byte: the kind of answer and the question's number, 0 to 9, by
 * which the shell knows a late answer to an earlier question. */
static void answer(struct conversation *talk, const struct record *record, enum answer kind)
{
    int digit = record->head[0] >= '0' && record->head[0] <= '9' ? record->head[0] - '0' : 0;
    char byte = (char)((int)kind + digit);

    if (write(talk->channel.out, &byte, 1) < 0)
        return; /* a full FIFO: 64 KiB of answers that nobody wanted */
}

/* ---- towards the daemon ---- */

static struct bytes variable_to_send(const struct conversation *talk, int which)
{
    const struct variable *variable = &talk->variables[which];

    if (talk->variables_sent == talk->link.generation || !variable->is_set)
        return bytes_of(NULL);
    return (struct bytes){variable->text, variable->size};
}

static struct bytes text_or_nothing(const char *text)
{
    return bytes_of(text[0] == '\0' ? NULL : text);
}

/* Whether the shell is to be held up by a question about this run. */
static bool is_to_ask(struct conversation *talk)
{
    const struct run *run = &talk->run;

    return link_may_ask(&talk->link) &&
           hint_filter_may_match(&talk->filter, talk->paths.hint_words, talk->link.daemon_pid,
                                 talk->link.generation, run->text, run->size);
}

/* Tell the daemon that the run starts (or, where it was deferred, that it did), and wait for its word
 * where that is wanted. */
static enum wire_verdict announce(struct conversation *talk, bool asks)
{
    struct run *run = &talk->run;
    struct frame frame;
    struct wire_starting starting = {
        .source = talk->source,
        .shell = bytes_of(talk->shell),
        .pid = talk->pid,
        .tty = bytes_of(talk->terminal.name),
        .cwd = bytes_of(run->cwd),
        .command = {run->text, run->size},
        .command_total = run->total,
        .boot = bytes_of(talk->boot),
        .mono_us = run->mono_us,
        .wall_us = run->wall_us,
        .word_kind = run->word_kind,
        .tmux_pane = text_or_nothing(talk->tmux_pane),
        .agent = bytes_of(marks_agent()),
    };

    link_connect(&talk->link, false);
    starting.wants_reply = asks;
    starting.path = variable_to_send(talk, 0);
    starting.virtual_env = variable_to_send(talk, 1);
    starting.conda_prefix = variable_to_send(talk, 2);
    memcpy(starting.run, run->id, WIRE_ID_SIZE);
    memcpy(starting.session, talk->session, WIRE_ID_SIZE);
    if (wire_encode_starting(&starting, talk->out, sizeof talk->out, &frame) < 0)
        return VERDICT_NONE;
    link_post(&talk->link, run->id, talk->out, frame);
    talk->variables_sent = talk->link.generation;
    if (!starting.wants_reply)
        return VERDICT_NONE;
    return link_wait(&talk->link, run->id, PHASE_START, clock_mono_us(), talk->reply);
}

/* A line of several commands may hide a failure behind the last one's success. */
static bool has_several_commands(const struct run *run)
{
    for (size_t i = 0; i < run->size; i++)
        if (run->text[i] == '|' || run->text[i] == ';' || run->text[i] == '\n' ||
            (run->text[i] == '&' && i + 1 < run->size && run->text[i + 1] == '&'))
            return true;
    return false;
}

static bool wants_tail(const struct run *run, const struct wire_finished *finished)
{
    if (finished->exit == WIRE_UNKNOWN)
        return false; /* what was written last is another command's */
    for (size_t i = 0; i < finished->pipestatus_count; i++)
        if (finished->pipestatus[i] != 0)
            return true;
    return finished->exit != 0 || has_several_commands(run);
}

static void show_hint(struct conversation *talk)
{
    if (talk->witness.print != NULL)
        talk->witness.print(talk->witness.context, talk->reply);
    else
        terminal_print_hint(&talk->terminal, talk->reply);
}

/* Tell the daemon how the run ended. The exit status may be WIRE_UNKNOWN. */
static enum wire_verdict conclude(struct conversation *talk, struct wire_finished *finished)
{
    struct run *run = &talk->run;
    int64_t began_us = clock_mono_us();
    struct frame frame;

    memcpy(finished->run, run->id, WIRE_ID_SIZE);
    finished->signal = WIRE_UNKNOWN; /* a shell tells only the exit status */
    finished->mono_us = clock_mono_us();
    finished->wall_us = clock_wall_us();
    finished->wants_reply =
        finished->exit != 0 && finished->exit != WIRE_UNKNOWN && is_to_ask(talk);
    run->is_open = false;
    if (talk->witness.look != NULL && wants_tail(run, finished))
        talk->witness.look(talk->witness.context, finished);
    if (wire_encode_finished(finished, talk->out, sizeof talk->out, &frame) < 0)
        return VERDICT_NONE;
    link_post(&talk->link, run->id, talk->out, frame);
    if (!finished->wants_reply)
        return VERDICT_NONE;
    return link_wait(&talk->link, run->id, PHASE_FINISH, began_us, talk->reply);
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

static void open_run(struct conversation *talk, const struct typed_line *line, struct bytes cwd)
{
    struct run *run = &talk->run;

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
        process_folder(talk->pid, run->cwd, sizeof run->cwd);
}

/* The shell went on without telling how the last command ended: nobody knows. */
static void close_forgotten_run(struct conversation *talk)
{
    struct wire_finished finished = {.exit = WIRE_UNKNOWN, .usec = WIRE_UNKNOWN};

    finished.cwd = bytes_of(talk->run.cwd);
    if (talk->run.is_open && !talk->run.is_deferred)
        conclude(talk, &finished);
    talk->run.is_open = false;
}

/* Judge the line and, if it may be recorded, open a run for it. */
static enum line_verdict begin(struct conversation *talk, const struct record *record,
                               const struct typed_line *line, enum wire_word_kind word_kind)
{
    struct bytes first_command =
        flag_of(record) == LINE_TYPED ? bytes_of("") : field(record, 2);
    enum line_verdict verdict = history_judge(&talk->history, flag_of(record), line, first_command);

    close_forgotten_run(talk);
    /* The shell may have become another one since the last record, by `exec`. */
    talk->shell = flag_of(record) == LINE_TYPED ? "zsh" : "bash";
    if (verdict == LINE_PRIVATE)
        return verdict;
    open_run(talk, line, field(record, 1));
    talk->run.word_kind = word_kind;
    return talk->run.is_open ? verdict : LINE_PRIVATE;
}

/* What history printed, from the entry with the number in the record's head on. */
static struct bytes printed_history(const struct record *record)
{
    const char *number = record->head + strcspn(record->head, "#");

    return history_from_entry(field(record, 0), strtoul(number + (*number == '#'), NULL, 10));
}

static enum line_verdict begin_in_bash(struct conversation *talk, const struct record *record)
{
    struct bytes text = printed_history(record);
    uint64_t cut = record->totals[0] - record->sizes[0];
    struct typed_line line = history_parse(text, text.size + cut);

    return begin(talk, record, &line, history_word_kind(&line, field(record, 2)));
}

static enum line_verdict begin_in_zsh(struct conversation *talk, const struct record *record)
{
    struct typed_line line = typed_in_zsh(record);

    return begin(talk, record, &line, kind_in_zsh(record));
}

/* The shell may go on: the command's time begins. */
static void let_go_on(struct conversation *talk, const struct record *record, enum answer kind)
{
    talk->run.released_us = clock_mono_us();
    answer(talk, record, kind);
}

static void ask_first(struct conversation *talk, const struct record *record)
{
    enum wire_verdict told = announce(talk, true);
    enum answer kind = ANSWER_GO;

    if (told == VERDICT_HINT || told == VERDICT_HOLD)
        show_hint(talk);
    if (told == VERDICT_HOLD)
        kind = ANSWER_HOLD;
    if (told == VERDICT_PRIVATE) {
        link_forget(&talk->link, talk->run.id);
        talk->run.is_open = false;
        kind = ANSWER_PRIVATE;
    }
    let_go_on(talk, record, kind);
}

static void on_starting(struct conversation *talk, const struct record *record)
{
    enum line_verdict verdict = flag_of(record) == LINE_TYPED ? begin_in_zsh(talk, record)
                                                              : begin_in_bash(talk, record);

    if (verdict == LINE_PRIVATE) {
        talk->run.is_open = false;
        answer(talk, record, ANSWER_PRIVATE);
        return;
    }
    if (verdict == LINE_REPEAT) {
        talk->run.is_deferred = true;
        let_go_on(talk, record, ANSWER_REPEAT);
        return;
    }
    link_connect(&talk->link, true);
    if (is_to_ask(talk)) {
        ask_first(talk, record);
        return;
    }
    /* Before the daemon wakes up and takes the processor from both of us. */
    let_go_on(talk, record, ANSWER_GO);
    announce(talk, false);
}

/* Lines that have run already. Of several (a paste) only the last one's status can be told. */
static void on_late_lines(struct conversation *talk, const struct record *record)
{
    struct bytes rest = printed_history(record);
    uint64_t cut = record->totals[0] - record->sizes[0];

    do {
        struct bytes entry = history_cut_entry(&rest);
        struct typed_line line = history_parse(entry, entry.size + (rest.size == 0 ? cut : 0));
        if (talk->run.is_open)
            announce(talk, false); /* the one before: it stays without an end */
        talk->run.is_deferred = false;
        if (begin(talk, record, &line, WORD_UNKNOWN) != LINE_RECORD)
            talk->run.is_open = false;
        talk->run.is_deferred = true;
    } while (rest.size > 0);
    /* It began at the earliest after the record before this one. */
    talk->run.released_us = talk->last_record_us;
    answer(talk, record, ANSWER_GO);
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
static int64_t duration_us(const struct conversation *talk, const char *measured)
{
    int64_t passed = clock_mono_us() - talk->run.released_us;
    int64_t told = measured[0] == '\0' ? passed : strtoll(measured, NULL, 10);

    return told < 0 || told > passed ? passed : told;
}

static void on_finished(struct conversation *talk, const struct record *record)
{
    bool is_known = record->sizes[0] > 0;
    struct wire_finished finished = {
        .exit = is_known ? strtol(record->fields[0], NULL, 10) : WIRE_UNKNOWN,
    };
    struct run *run = &talk->run;

    if (run->is_open) {
        finished.usec = is_known ? duration_us(talk, record->fields[3]) : WIRE_UNKNOWN;
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
            announce(talk, false);
        } else {
            link_connect(&talk->link, false);
        }
        if (conclude(talk, &finished) == VERDICT_HINT)
            show_hint(talk);
    }
    if (is_known && finished.exit != 0)
        answer(talk, record, ANSWER_GO);
}

static void on_environment(struct conversation *talk, const struct record *record)
{
    for (int i = 0; i < VARIABLES; i++) {
        struct variable *variable = &talk->variables[i];
        variable->is_set = record->totals[i] > 0 && record->totals[i] <= VARIABLE_LIMITS[i];
        variable->size = variable->is_set ? record->sizes[i] : 0;
        memcpy(variable->text, record->fields[i], variable->size);
    }
    talk->variables_sent = NOBODY_KNOWS;
}

static void on_history(struct conversation *talk, const struct record *record)
{
    struct typed_line line = history_parse(field(record, 0), record->totals[0]);

    history_note(&talk->history, &line);
}

static void on_successor(struct conversation *talk, const struct record *record)
{
    if (strtoull(record->fields[0], NULL, 10) == process_start_time(talk->pid))
        talk->is_leaving = true;
}

/* The person has answered, and the command runs: its time begins now. */
static void on_released(struct conversation *talk, const struct record *record)
{
    (void)record;
    talk->run.released_us = clock_mono_us();
}

static void on_probe(struct conversation *talk, const struct record *record)
{
    answer(talk, record, ANSWER_GO);
}

static void on_record(struct conversation *talk, const struct record *record)
{
    static const struct {
        char kind;
        void (*handle)(struct conversation *, const struct record *);
    } HANDLERS[] = {{'S', on_starting},    {'F', on_finished}, {'L', on_late_lines},
                    {'E', on_environment}, {'H', on_history},  {'X', on_successor},
                    {'P', on_probe},       {'G', on_released}};

    talk->digit = record->head[0];
    for (size_t i = 0; i < sizeof HANDLERS / sizeof *HANDLERS; i++)
        if (HANDLERS[i].kind == record->kind)
            HANDLERS[i].handle(talk, record);
    if (record->kind != 'E' && record->kind != 'P') /* they come while a command waits */
        talk->last_record_us = clock_mono_us();
}

static void take_records(struct conversation *talk, const char *at, size_t size)
{
    struct record record;

    while (record_next(&talk->reader, &at, &size, &record))
        on_record(talk, &record);
}

/* A record comes in two writes, microseconds apart: to sleep between them costs more than to look
 * again for a moment. */
void conversation_read(struct conversation *talk)
{
    int64_t patience_us = clock_mono_us() + SECOND_WRITE_US;
    char chunk[16 * 1024];

    for (;;) {
        ssize_t got = read(talk->channel.in, chunk, sizeof chunk);
        if (got > 0)
            take_records(talk, chunk, (size_t)got);
        else if (record_is_partial(&talk->reader) && clock_mono_us() < patience_us)
            sched_yield();
        else
            return;
    }
}

/* ---- life ---- */

void conversation_connect(struct conversation *talk, const char *role, const char *starter)
{
    const struct rlimit no_core = {0, 0};

    prlimit(0, RLIMIT_CORE, &no_core, NULL); /* commands are in this memory, before they are redacted */
    talk->last_record_us = clock_mono_us();
    link_open(&talk->link, &talk->paths, role, starter);
    link_connect(&talk->link, true);
}

void conversation_end(struct conversation *talk)
{
    int64_t deadline_us = clock_mono_us() + LINGER_US;
    struct frame frame;

    conversation_read(talk);
    close_forgotten_run(talk);
    channel_remove(&talk->channel);
    if (talk->link.generation == 0 && queue_runs(&talk->link.queue) == 0)
        return; /* the daemon never heard of this session */
    wire_encode_session_ended(talk->session, clock_wall_us(), talk->out, sizeof talk->out, &frame);
    link_post(&talk->link, talk->session, talk->out, frame);
    while (clock_mono_us() < deadline_us) {
        short events;
        struct pollfd ready = {link_fd(&talk->link, &events), 0, 0};
        int64_t due_us = link_due_us(&talk->link);

        if (ready.fd >= 0 && queue_unsent(&talk->link.queue).size == 0) {
            link_forget(&talk->link, talk->session); /* nobody acknowledges this one */
            if (queue_runs(&talk->link.queue) == 0)
                break;
        }
        ready.events = events;
        poll(&ready, 1, clock_poll_ms(due_us < deadline_us ? due_us : deadline_us));
        link_serve(&talk->link);
    }
    link_forget(&talk->link, talk->session);
    link_close(&talk->link);
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

int conversation_open(struct conversation *talk)
{
    const char *pane = getenv("TMUX_PANE");

    if (paths_check_person() < 0 || paths_find(&talk->paths) < 0 ||
        paths_make_folders(&talk->paths) < 0)
        return -1;
    if (getrandom(talk->session, sizeof talk->session, GRND_NONBLOCK) !=
        (ssize_t)sizeof talk->session)
        return -1;
    read_boot_id(talk->boot, sizeof talk->boot);
    copy_cut(talk->tmux_pane, sizeof talk->tmux_pane, bytes_of(pane == NULL ? "" : pane));
    channel_sweep(&talk->paths, talk->pid);
    return channel_make(&talk->channel, &talk->paths, talk->pid);
}
