/*
 * A builtin that bash loads from our script (shell-integration/bash-env.bash), where it was started past
 * our stand-ins: it makes two processes of the shell. The one that the agent has started becomes the
 * helper and sees how the shell ends; the other one goes on as that very shell, which is not started
 * again.
 *
 *     _flightrec_door HELPER TEXT
 *
 * As a library it is made like preload.c, and for the same reason: of no libc but by names that all of
 * them have. What it needs of bash are names that bash has for builtins from elsewhere.
 */
#include "bash_door.h"
#include "far_end.h"
#include "line.h"
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FIRST_FD = 10, /* 0, 1 and 2 may be closed, and stay so; the next belong to the text */
    INIT = 1,      /* of a namespace of processes */
    HELPER_SIZE = 16 << 20, /* in memory, and more than that */
};

/* ---- bash's own, as in its command.h, builtins.h, variables.h ---- */

struct word {
    char *text;
    int flags;
};
struct words {
    struct words *next;
    struct word *word;
};
struct builtin {
    const char *name;
    int (*function)(struct words *);
    int flags;
    const char *const *long_doc;
    const char *short_doc;
    char *handle;
};
enum { ENABLED = 1 };

/* NULL in a bash that was made without them. */
extern pid_t dollar_dollar_pid __attribute__((weak)); /* $$ */
extern char **export_env __attribute__((weak));       /* of the programs that it starts */
extern void maybe_make_export_env(void) __attribute__((weak));
extern void (*original_signals[])(int) __attribute__((weak)); /* what it was started with */
extern void *bind_variable(const char *name, char *value, int flags) __attribute__((weak));

/* ---- what the two of them share ---- */

enum { READING, WRITING, ENDS };

struct pair {
    int ends[ENDS]; /* the helper's and the shell's, or -1 */
};

struct door {
    struct pair answer; /* from the helper to the shell, so the other way round */
    struct pair output, error;
    bool merged; /* `output` is for both */
};

static const struct pair NONE = {{-1, -1}};

static void close_pair(const struct pair *pair)
{
    for (int end = 0; end < ENDS; end++)
        if (pair->ends[end] >= 0)
            close(pair->ends[end]);
}

/* Away from the descriptors that belong to the shell's text. */
static struct pair moved(const int given[ENDS])
{
    struct pair pair = {{fcntl(given[READING], F_DUPFD_CLOEXEC, FIRST_FD),
                         fcntl(given[WRITING], F_DUPFD_CLOEXEC, FIRST_FD)}};

    close(given[READING]);
    close(given[WRITING]);
    if (pair.ends[READING] >= 0 && pair.ends[WRITING] >= 0)
        return pair;
    close_pair(&pair);
    return NONE;
}

static struct pair open_pipe(void)
{
    int given[ENDS];

    return pipe2(given, O_CLOEXEC) < 0 ? NONE : moved(given);
}

static struct pair open_sockets(void)
{
    int given[ENDS];

    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, given) < 0 ? NONE : moved(given);
}

/* Not every libc has an fstat(2) that a library can name. The kernel's structure is that of every libc
 * only where all is 64 bits wide; elsewhere there is no such library. */
_Static_assert(sizeof(long) == 8, "of 64 bits");

static int get_file(int fd, struct stat *file)
{
    return (int)syscall(SYS_fstat, fd, file);
}

/* This and what follows as observe.c has it: both must come to the same. */
static struct pair open_like(int fd)
{
    struct stat file;

    if (!far_end_has_reader(fd) || get_file(fd, &file) < 0)
        return NONE; /* the first write fails, and not later */
    if (S_ISFIFO(file.st_mode))
        return open_pipe();
    return far_end_is_byte_stream(fd) ? open_sockets() : NONE;
}

static bool is_one_file(int one, int other)
{
    struct stat files[2];

    return get_file(one, &files[0]) == 0 && get_file(other, &files[1]) == 0 &&
           files[0].st_dev == files[1].st_dev && files[0].st_ino == files[1].st_ino;
}

static int open_door(struct door *door)
{
    *door = (struct door){open_pipe(), NONE, NONE, false};
    if (door->answer.ends[READING] < 0)
        return -1;
    door->output = open_like(STDOUT_FILENO);
    door->merged = door->output.ends[READING] >= 0 &&
                   is_one_file(STDOUT_FILENO, STDERR_FILENO);
    if (!door->merged)
        door->error = open_like(STDERR_FILENO);
    return 0;
}

static void close_door(const struct door *door)
{
    close_pair(&door->answer);
    close_pair(&door->output);
    close_pair(&door->error);
}

/* ---- the shell, which goes on ---- */

static void take_variables(char *at, const char *end)
{
    while (at < end) {
        char *next = at + strlen(at) + 1, *value = strchr(at, '=');
        if (value != NULL) {
            *value = '\0';
            bind_variable(at, value + 1, 0);
        }
        at = next;
    }
}

static void close_end(struct pair *pair, int end)
{
    if (pair->ends[end] >= 0)
        close(pair->ends[end]);
    pair->ends[end] = -1;
}

/* Not what the helper has given up meanwhile: it had no descriptors left. */
static void take_stream(const struct pair *pair, int fd)
{
    if (pair->ends[WRITING] >= 0 && far_end_has_reader(pair->ends[WRITING]))
        dup2(pair->ends[WRITING], fd);
}

static void take_streams(struct door *door)
{
    close_end(&door->output, READING); /* or we would be a reader */
    close_end(&door->error, READING);
    take_stream(&door->output, STDOUT_FILENO);
    take_stream(door->merged ? &door->output : &door->error, STDERR_FILENO);
}

/* All of the message, or nothing: it is written at once. */
static ssize_t await_answer(struct door *door, char *text)
{
    ssize_t size;

    close_end(&door->answer, WRITING); /* or its end would never be seen */
    do
        size = read(door->answer.ends[READING], text, BASH_DOOR_SIZE);
    while (size < 0 && errno == EINTR);
    return size;
}

static int go_on(struct door *door, pid_t front)
{
    char text[BASH_DOOR_SIZE + 1];
    ssize_t size;

    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever kills the helper means the shell */
    dollar_dollar_pid = getpid();
    size = await_answer(door, text);
    if (size <= 0 || getppid() != front)
        _exit(128 + SIGKILL); /* killed, though we may learn of it first */
    if (text[0] == BASH_DOOR_SEEN)
        take_streams(door);
    close_door(door);
    if (text[0] != BASH_DOOR_SEEN)
        return BASH_DOOR_UNSEEN;
    text[size] = '\0';
    take_variables(text + 1, text + size);
    return REPORT_RECORDED;
}

/* ---- the helper ---- */

enum { DECIMAL_SIZE = 12 };

/* By hand: snprintf(3) is much to load. */
static char *decimal(char room[DECIMAL_SIZE], int number)
{
    char *at = room + DECIMAL_SIZE - 1;

    if (number < 0)
        return memcpy(room, "-1", sizeof "-1");
    *at = '\0';
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    return at;
}

static char *literal(const char *text)
{
    return (char *)(uintptr_t)text;
}

static void become_helper(char *helper, const struct door *door, pid_t shell, char *text)
{
    const int fds[] = {door->answer.ends[WRITING], door->output.ends[READING],
                       door->error.ends[READING]};
    char numbers[4][DECIMAL_SIZE];
    char *words[] = {helper,
                     literal("sh"),
                     literal("--waiting"),
                     decimal(numbers[0], fds[0]),
                     decimal(numbers[1], shell),
                     decimal(numbers[2], fds[1]),
                     decimal(numbers[3], fds[2]),
                     text,
                     NULL};

    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            fcntl(fds[i], F_SETFD, 0);
    execve(helper, words, export_env);
}

/* ---- one that becomes two ---- */

/* What the helper passes on (observe.c). */
static const int PASSED_ON[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM};
enum { PASSED = sizeof PASSED_ON / sizeof *PASSED_ON };

/* One that comes while we become the helper must not be lost in a handler of bash's, nor end what the
 * shell would have caught: it waits until the helper passes it on. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;

    sigemptyset(&held);
    for (int i = 0; i < PASSED; i++)
        sigaddset(&held, PASSED_ON[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

/* What bash ignores, or a profile: the helper would do so as well, and the text may want it back. */
static void hear_signals(struct sigaction was[PASSED])
{
    const struct sigaction by_default = {.sa_handler = SIG_DFL};

    for (int i = 0; i < PASSED; i++) {
        sigaction(PASSED_ON[i], NULL, &was[i]);
        if (was[i].sa_handler == SIG_IGN && &original_signals != NULL &&
            original_signals[PASSED_ON[i]] == SIG_DFL)
            sigaction(PASSED_ON[i], &by_default, NULL);
    }
}

static void give_signals_back(const struct sigaction was[PASSED])
{
    for (int i = 0; i < PASSED; i++)
        sigaction(PASSED_ON[i], &was[i], NULL);
}

/* Returns where the helper cannot be executed. The shell dies before it learns that nobody answers: we go
 * on, and not both. */
static void be_front(char *helper, const struct door *door, pid_t shell, char *text)
{
    struct sigaction was[PASSED];

    hear_signals(was);
    become_helper(helper, door, shell, text);
    give_signals_back(was);
    kill(shell, SIGKILL);
    waitpid(shell, NULL, 0);
}

/* Where a limit leaves no room for the helper, execve(2) does not fail: it ends the process. */
static bool has_memory(void)
{
    struct rlimit all, data;

    return getrlimit(RLIMIT_AS, &all) == 0 && all.rlim_cur >= HELPER_SIZE &&
           getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur >= HELPER_SIZE;
}

static int make_two(char *helper, char *text)
{
    struct door door;
    sigset_t before;
    pid_t front = getpid(), shell;

    if (front == INIT || !has_memory()) /* the first has other signals, and all orphans */
        return BASH_DOOR_UNSEEN;
    if (open_door(&door) < 0)
        return BASH_DOOR_NOT_POSSIBLE;
    maybe_make_export_env();
    hold_signals(&before);
    shell = fork();
    if (shell == 0) {
        sigprocmask(SIG_SETMASK, &before, NULL);
        return go_on(&door, front);
    }
    if (shell > 0)
        be_front(helper, &door, shell, text);
    sigprocmask(SIG_SETMASK, &before, NULL);
    close_door(&door);
    return BASH_DOOR_UNSEEN; /* no other way leads through the helper either */
}

static int run(struct words *words)
{
    char *helper, *text;

    if (&dollar_dollar_pid == NULL || &export_env == NULL || maybe_make_export_env == NULL ||
        bind_variable == NULL || words == NULL || words->next == NULL)
        return BASH_DOOR_NOT_POSSIBLE;
    helper = words->word->text;
    text = words->next->word->text;
    switch (line_judge(text)) {
    case LINE_OUTER:
        return REPORT_OUTER;
    case LINE_SILENT:
        return REPORT_SILENT;
    case LINE_PRIVATE:
        return REPORT_PRIVATE;
    case LINE_COMMAND:
        break;
    }
    return make_two(helper, text);
}

static const char *const NO_DOC[] = {NULL};

/* bash looks for it by this name. */
extern struct builtin _flightrec_door_struct;
__attribute__((visibility("default"))) struct builtin _flightrec_door_struct = {
    "_flightrec_door", run, ENABLED, NO_DOC, "_flightrec_door HELPER TEXT", NULL,
};
