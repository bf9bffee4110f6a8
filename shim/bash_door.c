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
#include "line.h"
#include "script.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_FD = 10 }; /* 0, 1 and 2 may be closed, and stay so; the next belong to the text */

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
extern void *bind_variable(const char *name, char *value, int flags) __attribute__((weak));

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

static void take_streams(int which, const struct cmsghdr *given)
{
    int fds[BASH_DOOR_FDS], count = 0, at = 0;

    if (given != NULL && given->cmsg_type == SCM_RIGHTS) {
        count = (int)((given->cmsg_len - CMSG_LEN(0)) / sizeof *fds);
        memcpy(fds, CMSG_DATA(given), (size_t)count * sizeof *fds);
    }
    for (int stream = STDOUT_FILENO; stream <= STDERR_FILENO; stream++)
        if ((which & 1 << stream) != 0 && at < count)
            dup2(fds[at++], stream);
    while (count-- > 0)
        close(fds[count]);
}

static int await_helper(int door, pid_t front)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(BASH_DOOR_FDS * sizeof(int))];
    } control;
    char text[BASH_DOOR_SIZE + 1];
    struct iovec room = {text, BASH_DOOR_SIZE};
    struct msghdr message = {.msg_iov = &room, .msg_iovlen = 1,
                             .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t size;

    do
        size = recvmsg(door, &message, MSG_CMSG_CLOEXEC);
    while (size < 0 && errno == EINTR);
    close(door);
    if (getppid() != front)
        _exit(128 + SIGKILL);
    if (size <= 0)
        return BASH_DOOR_UNSEEN;
    text[size] = '\0';
    take_streams(text[0], CMSG_FIRSTHDR(&message));
    take_variables(text + 1, text + size);
    return REPORT_RECORDED;
}

static int go_on(int door, pid_t front)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* whoever kills the helper means the shell */
    dollar_dollar_pid = getpid();
    return await_helper(door, front);
}

/* ---- the helper ---- */

/* By hand: snprintf(3) is much to load. */
static char *decimal(char room[12], int number)
{
    char *at = room + 11;

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

static void become_helper(char *helper, int door, pid_t shell, char *text)
{
    char fd[12], pid[12];
    char *words[] = {helper,           literal("sh"),       literal("--waiting"),
                     decimal(fd, door), decimal(pid, shell), text, NULL};

    execve(helper, words, export_env);
}

/* ---- one that becomes two ---- */

/* The first end is the helper's, and stays open as it becomes that. */
static int open_door(int door[2])
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    door[0] = fcntl(pair[0], F_DUPFD, FIRST_FD);
    door[1] = fcntl(pair[1], F_DUPFD_CLOEXEC, FIRST_FD);
    close(pair[0]);
    close(pair[1]);
    if (door[0] >= 0 && door[1] >= 0)
        return 0;
    close(door[0]);
    close(door[1]);
    return -1;
}

static int make_two(char *helper, char *text)
{
    int door[2], answer = BASH_DOOR_NOT_POSSIBLE;
    pid_t front = getpid(), shell;

    if (open_door(door) < 0)
        return BASH_DOOR_NOT_POSSIBLE;
    maybe_make_export_env();
    shell = fork();
    if (shell == 0) {
        close(door[0]);
        return go_on(door[1], front);
    }
    close(door[1]);
    if (shell > 0) {
        become_helper(helper, door[0], shell, text);
        kill(shell, SIGKILL); /* before it learns that nobody answers: we go on, and not both */
        waitpid(shell, NULL, 0);
        answer = BASH_DOOR_UNSEEN; /* no other way leads through the helper either */
    }
    close(door[0]);
    return answer;
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
