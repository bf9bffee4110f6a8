/*
 * The holder: it owns the terminal, the shell and the worker, and does nothing else, so that there is
 * little in it that could fail. The shell survives the worker; when the holder dies, the kernel hangs
 * the shell's terminal up, as it does when a terminal's window is closed.
 */
#include "pty.h"

#include "proxy.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { GRACE_MS = 3000, NAME_MAX_SIZE = 256 };

struct holder {
    const char *starter;
    char **program;      /* and its arguments */
    char *title;         /* our own arguments' memory: what ps and tmux read */
    size_t title_room;
    bool is_login;
    struct proxy proxy;  /* the worker's; here for what both need */
    char terminal_name[WIRE_WORD_MAX]; /* the shell's */
    char nonce[SCREEN_NONCE_SIZE + 1];
    struct termios termios;
    struct winsize size;
    sigset_t signals, mask; /* those that arrive at signal_fd, and what was blocked before */
    int signal_fd, notes, gone;
    pid_t shell, worker;
    int status;
    bool has_ended;      /* the shell */
    bool is_worker_done; /* as opposed to dead */
};

static _Noreturn void become_program(const struct holder *holder)
{
    char name[NAME_MAX_SIZE];
    const char *base = strrchr(holder->program[0], '/');

    if (holder->is_login) {
        snprintf(name, sizeof name, "-%s", base == NULL ? holder->program[0] : base + 1);
        execvp(holder->program[0], (char *[]){name, NULL});
    } else {
        execvp(holder->program[0], holder->program);
    }
    fprintf(stderr, "flightrec: cannot start %s: %s\n", holder->program[0], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* ---- setting up ---- */

/* All three standard descriptors are one terminal. */
static bool is_on_terminal(void)
{
    struct stat in, out, err;

    return isatty(0) && isatty(1) && isatty(2) && fstat(0, &in) == 0 && fstat(1, &out) == 0 &&
           fstat(2, &err) == 0 && in.st_rdev == out.st_rdev && in.st_rdev == err.st_rdev;
}

static int make_nonce(struct holder *holder)
{
    uint64_t random;

    if (getrandom(&random, sizeof random, GRND_NONBLOCK) != (ssize_t)sizeof random)
        return -1;
    snprintf(holder->nonce, sizeof holder->nonce, "%016llx", (unsigned long long)random);
    screen_open(&holder->proxy.screen, holder->nonce);
    return 0;
}

static int open_master(struct holder *holder)
{
    struct proxy *proxy = &holder->proxy;

    proxy->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (proxy->master < 0 || grantpt(proxy->master) < 0 || unlockpt(proxy->master) < 0)
        return -1;
    if (ptsname_r(proxy->master, holder->terminal_name, sizeof holder->terminal_name) != 0)
        return -1;
    return fcntl(proxy->master, F_SETFL, O_RDWR | O_NONBLOCK);
}

static int set_up(struct holder *holder)
{
    struct proxy *proxy = &holder->proxy;

    if (!is_on_terminal() || tcgetattr(0, &holder->termios) < 0 ||
        ioctl(0, TIOCGWINSZ, &holder->size) < 0)
        return -1;
    proxy->talk.pid = getpid(); /* names the FIFOs; the shell's pid follows */
    terminal_open(&proxy->talk.terminal);
    if (proxy->talk.terminal.fd < 0 || make_nonce(holder) < 0 || open_master(holder) < 0)
        return -1;
    return conversation_open(&proxy->talk);
}

static void clean_up(struct holder *holder)
{
    unlink(holder->proxy.talk.channel.in_path);
    unlink(holder->proxy.talk.channel.out_path);
    rmdir(holder->proxy.talk.channel.folder);
}

/* ---- the shell ---- */

static void export_number(const char *name, long value)
{
    char text[24];

    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

/* What the shell's script needs. It holds for this very process on this very terminal, which it
 * checks: a shell below it, in tmux or over ssh is another. */
static void tell_shell(const struct holder *holder, pid_t worker)
{
    setenv("FLIGHTREC_PTY", holder->terminal_name, 1);
    setenv("FLIGHTREC_PTY_IN", holder->proxy.talk.channel.in_path, 1);
    setenv("FLIGHTREC_PTY_OUT", holder->proxy.talk.channel.out_path, 1);
    setenv("FLIGHTREC_PTY_NONCE", holder->nonce, 1);
    export_number("FLIGHTREC_PTY_WORKER", worker);
    export_number("FLIGHTREC_PTY_SHELL", getpid());
}

/* `go` brings the worker's pid. */
static _Noreturn void run_shell(struct holder *holder, int go)
{
    struct proxy *proxy = &holder->proxy;
    pid_t worker = 0;
    int terminal;

    setsid();
    terminal = open(holder->terminal_name, O_RDWR);
    if (terminal < 0 || ioctl(terminal, TIOCSCTTY, 0) < 0)
        _exit(126);
    tcsetattr(terminal, TCSANOW, &holder->termios);
    ioctl(terminal, TIOCSWINSZ, &holder->size);
    for (int fd = 0; fd < 3; fd++)
        dup2(terminal, fd);
    if (terminal > 2)
        close(terminal);
    if (read(go, &worker, sizeof worker) != (ssize_t)sizeof worker)
        _exit(126);
    close(go);
    close(proxy->master);
    tell_shell(holder, worker);
    sigprocmask(SIG_SETMASK, &holder->mask, NULL);
    become_program(holder);
}

static pid_t start_worker(struct holder *holder, const int *gone, const int *notes)
{
    pid_t worker = fork();

    if (worker != 0)
        return worker;
    close(gone[1]);
    close(notes[0]);
    close(holder->signal_fd);
    prctl(PR_SET_NAME, "flightrec");
    signal(SIGHUP, SIG_IGN); /* the terminal's end shows in reading it */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_SETMASK, &holder->mask, NULL);
    holder->proxy.gone = gone[0];
    holder->proxy.notes = notes[1];
    fcntl(notes[1], F_SETFL, O_WRONLY | O_NONBLOCK);
    proxy_run(&holder->proxy, holder->starter);
}

/* The shell waits for the worker's pid before it becomes the program. */
static int start_both(struct holder *holder)
{
    int go[2], gone[2], notes[2];

    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(gone, O_CLOEXEC) < 0 || pipe2(notes, O_CLOEXEC) < 0)
        return -1;
    holder->shell = fork();
    if (holder->shell == 0) {
        close(go[1]);
        run_shell(holder, go[0]);
    }
    close(go[0]);
    if (holder->shell < 0)
        return -1;
    holder->proxy.talk.pid = holder->shell;
    snprintf(holder->proxy.talk.terminal.name, sizeof holder->proxy.talk.terminal.name, "%s",
             holder->terminal_name);
    holder->worker = start_worker(holder, gone, notes);
    close(gone[0]);
    close(notes[1]);
    holder->gone = gone[1];
    holder->notes = notes[0];
    if (holder->worker < 0 || write(go[1], &holder->worker, sizeof holder->worker) < 0)
        return -1; /* the shell ends as the pipe closes */
    close(go[1]);
    return 0;
}

/* ---- what others see of us ---- */

/* tmux, ps and terminals show the terminal's foreground process, which is this one: let them read the
 * name of the program that runs inside. */
static void take_name(struct holder *holder)
{
    char path[40], name[NAME_MAX_SIZE];
    pid_t job = tcgetpgrp(holder->proxy.master);
    ssize_t size;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)job);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return;
    if ((size_t)size > holder->title_room - 1)
        size = (ssize_t)holder->title_room - 1;
    memset(holder->title, 0, holder->title_room);
    memcpy(holder->title, name, (size_t)size);
    snprintf(path, sizeof path, "/proc/%ld/comm", (long)job);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    if (fd >= 0)
        close(fd);
    if (size <= 0)
        return;
    name[size] = '\0';
    name[strcspn(name, "\n")] = '\0';
    prctl(PR_SET_NAME, name);
}

/* A terminal opens its next tab where its process is. */
static void follow_folder(const struct holder *holder)
{
    char path[40];

    snprintf(path, sizeof path, "/proc/%ld/cwd", (long)holder->shell);
    if (chdir(path) < 0)
        return; /* a folder that is closed to us, or gone: stay */
}

/* ---- waiting ---- */

static void make_raw(const struct holder *holder)
{
    struct termios raw = holder->termios;

    cfmakeraw(&raw);
    tcsetattr(0, TCSANOW, &raw);
}

static void give_terminal_back(const struct holder *holder)
{
    tcsetattr(0, TCSADRAIN, &holder->termios);
}

/* `suspend` in the shell: what waits for us is to go on, until somebody continues us. */
static void stop_with_shell(struct holder *holder)
{
    give_terminal_back(holder);
    kill(0, SIGSTOP); /* the worker too: it would read a terminal that is not ours now */
    make_raw(holder);
    kill(holder->shell, SIGCONT);
}

/* Take in who has ended or stopped. */
static void reap(struct holder *holder)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        if (pid == holder->shell && WIFSTOPPED(status)) {
            stop_with_shell(holder);
        } else if (pid == holder->shell) {
            holder->status = status;
            holder->has_ended = true;
        } else if (pid == holder->worker && !WIFSTOPPED(status)) {
            holder->worker = 0;
        }
    }
}

/* Return false when the terminal is gone. */
static bool on_signal(struct holder *holder)
{
    struct signalfd_siginfo info;

    while (read(holder->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        int signal = (int)info.ssi_signo;
        if (signal == SIGCHLD)
            reap(holder);
        else if (signal == SIGHUP)
            return false;
        else if (signal != SIGWINCH)
            kill(holder->shell, signal); /* meant for the shell, whose place we have */
    }
    return true;
}

/* Return false when the worker is done (all output is shown, or the terminal is gone) or dead. */
static bool on_notes(struct holder *holder)
{
    char notes[64];
    ssize_t size = read(holder->notes, notes, sizeof notes);

    if (size <= 0)
        return size < 0 && errno == EINTR;
    if (memchr(notes, NOTE_FOLDER, (size_t)size) != NULL)
        follow_folder(holder);
    if (memchr(notes, NOTE_JOB, (size_t)size) != NULL)
        take_name(holder);
    holder->is_worker_done = memchr(notes, NOTE_DONE, (size_t)size) != NULL;
    return !holder->is_worker_done;
}

/* The worker has died: copy here, without looking, until the shell or the terminal is gone. */
static void do_without_worker(struct holder *holder)
{
    clean_up(holder); /* the shell sees that its FIFOs are gone and stops reporting */
    holder->proxy.gone = holder->signal_fd;
    while (!holder->has_ended && proxy_copy_plainly(&holder->proxy) && on_signal(holder))
        ;
}

static void hold(struct holder *holder)
{
    bool has_terminal = true, is_done = false;

    take_name(holder);
    while (has_terminal && !holder->has_ended && !is_done) {
        struct pollfd ready[] = {{holder->signal_fd, POLLIN, 0}, {holder->notes, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            break;
        if (ready[1].revents != 0)
            is_done = !on_notes(holder);
        if (ready[0].revents != 0)
            has_terminal = on_signal(holder);
    }
    close(holder->gone);
    if (is_done && !holder->is_worker_done && has_terminal)
        do_without_worker(holder);
    /* Let the worker show the rest. */
    while (!is_done) {
        struct pollfd ready = {holder->notes, POLLIN, 0};
        if (poll(&ready, 1, GRACE_MS) <= 0)
            break;
        is_done = !on_notes(holder);
    }
}

/* Closing its terminal hangs the shell up, as when a window is closed. */
static void see_shell_off(struct holder *holder)
{
    struct timespec grace = {GRACE_MS / 1000, 0};
    sigset_t child;

    close(holder->proxy.master);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    while (!holder->has_ended) {
        if (waitpid(holder->shell, &holder->status, WNOHANG) == holder->shell)
            holder->has_ended = true;
        else if (sigtimedwait(&child, NULL, &grace) < 0 && errno == EAGAIN)
            break; /* it wants to stay: so it would without us */
    }
}

static _Noreturn void end_as_shell(const struct holder *holder)
{
    const struct rlimit no_core = {0, 0};

    if (!holder->has_ended || !WIFSIGNALED(holder->status))
        _exit(holder->has_ended ? WEXITSTATUS(holder->status) : 128 + SIGHUP);
    setrlimit(RLIMIT_CORE, &no_core);
    signal(WTERMSIG(holder->status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &holder->signals, NULL);
    kill(getpid(), WTERMSIG(holder->status));
    _exit(128 + WTERMSIG(holder->status));
}

static int take_signals(struct holder *holder)
{
    static const int TAKEN[] = {SIGCHLD, SIGHUP, SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCONT};

    sigemptyset(&holder->signals);
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++)
        sigaddset(&holder->signals, TAKEN[i]);
    sigprocmask(SIG_BLOCK, &holder->signals, &holder->mask);
    holder->signal_fd = signalfd(-1, &holder->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return holder->signal_fd;
}

/* Our own arguments, which the system shows as ours, up to where the environment begins. */
static void find_title(struct holder *holder, int argc, char **argv)
{
    holder->title = argv[0];
    holder->title_room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - argv[0]);
    holder->program = calloc((size_t)argc + 1, sizeof *holder->program);
    if (holder->program == NULL)
        _exit(126);
    for (int i = 0; i < argc; i++)
        holder->program[i] = strdup(argv[i]); /* before the memory is written over */
}

int pty_main(int argc, char **argv)
{
    static struct holder holder; /* zeroed, and only the pages in use cost memory */
    int at = 3;

    if (argc > at && strcmp(argv[at], "-l") == 0) {
        holder.is_login = true;
        at++;
    }
    if (argc <= at + 1 || strcmp(argv[at], "--") != 0)
        return 2;
    find_title(&holder, argc, argv);
    holder.proxy.talk.shell = holder.program[1];
    holder.starter = holder.program[2];
    holder.program += at + 1;
    holder.proxy.terminal_in = 0;
    if (set_up(&holder) < 0)
        become_program(&holder);
    holder.proxy.terminal_out = holder.proxy.talk.terminal.fd;
    if (take_signals(&holder) < 0 || start_both(&holder) < 0) {
        clean_up(&holder);
        sigprocmask(SIG_SETMASK, &holder.mask, NULL);
        become_program(&holder);
    }
    signal(SIGTTOU, SIG_IGN); /* from here on: the shell must not inherit it */
    make_raw(&holder);
    hold(&holder);
    give_terminal_back(&holder);
    see_shell_off(&holder);
    clean_up(&holder);
    end_as_shell(&holder);
}
