/*
 * The holder: it owns the terminal, the shell and the worker, and does nothing else, so that there is
 * little in it that could fail. The shell survives the worker; when the holder dies, the kernel hangs
 * the shell's terminal up, as it does when a terminal's window is closed.
 */
#include "pty.h"

#include "process.h"
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

#define VARIABLE "FLIGHTREC_PTY"

enum {
    GRACE_MS = 3000, /* for the worker to show the rest, and for the shell to take its leave */
    NAME_ROOM = 256,
    TITLE_MAX = 4096,
};

struct holder {
    const char *starter, *program;
    char **arguments;   /* the shell's, and its name */
    char *title;        /* our own arguments' memory: what ps and tmux read */
    size_t title_room;
    struct proxy proxy; /* the worker's; the holder copies with its pump when the worker is dead */
    char terminal_name[WIRE_WORD_MAX]; /* the shell's */
    char nonce[SCREEN_NONCE_SIZE + 1];
    struct termios termios;
    struct winsize size;
    sigset_t signals, mask; /* those that arrive at signal_fd, and what was blocked before */
    int signal_fd, notes, gone;
    pid_t shell, worker;
    int status;
    bool has_ended; /* the shell */
    bool is_shown;  /* all that it wrote, by the worker */
};

/* ---- setting up ---- */

/* All three standard descriptors are one terminal, and it is ours to read. */
static bool is_on_terminal(void)
{
    struct stat in, out, err;

    return isatty(0) && isatty(1) && isatty(2) && fstat(0, &in) == 0 && fstat(1, &out) == 0 &&
           fstat(2, &err) == 0 && in.st_rdev == out.st_rdev && in.st_rdev == err.st_rdev &&
           tcgetpgrp(0) == getpgrp();
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
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

    holder->proxy.pump.master = master;
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        return -1;
    if (ptsname_r(master, holder->terminal_name, sizeof holder->terminal_name) != 0)
        return -1;
    return fcntl(master, F_SETFL, O_RDWR | O_NONBLOCK);
}

static int set_up(struct holder *holder)
{
    struct conversation *talk = &holder->proxy.talk;

    if (!is_on_terminal() || tcgetattr(0, &holder->termios) < 0 ||
        ioctl(0, TIOCGWINSZ, &holder->size) < 0)
        return -1;
    talk->source = SOURCE_PTY;
    talk->pid = getpid(); /* names the FIFOs; the shell's pid follows */
    terminal_open(&talk->terminal);
    holder->proxy.pump.terminal_out = talk->terminal.fd;
    if (talk->terminal.fd < 0 || make_nonce(holder) < 0 || open_master(holder) < 0)
        return -1;
    return conversation_open(talk);
}

static void remove_channel(const struct holder *holder)
{
    const struct channel *channel = &holder->proxy.talk.channel;

    unlink(channel->in_path);
    unlink(channel->out_path);
    rmdir(channel->folder);
}

/* Signals that are meant for the shell, whose place we have, and those that concern us. */
static int take_signals(struct holder *holder)
{
    static const int TAKEN[] = {SIGCHLD, SIGWINCH, SIGHUP,  SIGTERM, SIGINT,
                                SIGQUIT, SIGUSR1,  SIGUSR2, SIGCONT};

    sigemptyset(&holder->signals);
    for (size_t i = 0; i < sizeof TAKEN / sizeof *TAKEN; i++)
        sigaddset(&holder->signals, TAKEN[i]);
    sigprocmask(SIG_BLOCK, &holder->signals, &holder->mask);
    holder->signal_fd = signalfd(-1, &holder->signals, SFD_CLOEXEC | SFD_NONBLOCK);
    return holder->signal_fd;
}

/* ---- the shell ---- */

static _Noreturn void become_program(const struct holder *holder)
{
    sigprocmask(SIG_SETMASK, &holder->mask, NULL);
    execv(holder->program, holder->arguments);
    fprintf(stderr, "flightrec: cannot start %s: %s\n", holder->program, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

/* With this in the environment, in place of whatever is there under its name. */
static _Noreturn void become_program_with(const struct holder *holder, char *variable)
{
    size_t count = 0, kept = 0;

    while (environ[count] != NULL)
        count++;
    char *variables[count + 2]; /* no heap: this process is another one in a moment */
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], VARIABLE "=", sizeof VARIABLE) != 0)
            variables[kept++] = environ[i];
    variables[kept++] = variable;
    variables[kept] = NULL;
    environ = variables;
    become_program(holder);
}

/* The rc file must not come here again in this process: hence the pid. */
static _Noreturn void do_without_proxy(const struct holder *holder)
{
    char variable[48];

    snprintf(variable, sizeof variable, VARIABLE "=%ld", (long)getpid());
    become_program_with(holder, variable);
}

/* What the shell's script needs. It holds for this very process on this very terminal, which it
 * checks: a shell below it, in tmux or in a window that was opened from here is another. */
static _Noreturn void become_shell(const struct holder *holder, pid_t worker)
{
    char variable[CHANNEL_PATH_MAX + WIRE_WORD_MAX + 96];

    snprintf(variable, sizeof variable, VARIABLE "=%ld:%ld:%s:%s:%s", (long)getpid(), (long)worker,
             holder->nonce, holder->terminal_name, holder->proxy.talk.channel.folder);
    become_program_with(holder, variable);
}

/* `go` brings the worker's pid. */
static _Noreturn void run_shell(struct holder *holder, int go)
{
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
    become_shell(holder, worker);
}

/* ---- the worker ---- */

static bool is_one_of(int fd, const int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fds[i] == fd)
            return true;
    return false;
}

/* Whoever waits for the end of what a descriptor of the shell's leads to must not wait for us, who may
 * outlive the shell. */
static void close_others(const int *kept, size_t count)
{
    int last = 2;

    for (size_t i = 0; i < count; i++)
        last = kept[i] > last ? kept[i] : last;
    for (int fd = 3; fd < last; fd++)
        if (!is_one_of(fd, kept, count))
            close(fd);
    process_close_from(last + 1);
}

static void ignore_signals(void)
{
    /* The terminal's end shows in reading it; the rest is meant for the shell. */
    static const int IGNORED[] = {SIGHUP, SIGPIPE, SIGINT, SIGQUIT, SIGTSTP, SIGTTOU};

    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++)
        signal(IGNORED[i], SIG_IGN);
}

static _Noreturn void run_worker(struct holder *holder, int gone, int notes)
{
    struct proxy *proxy = &holder->proxy;
    const int kept[] = {gone,
                        notes,
                        proxy->pump.master,
                        proxy->pump.terminal_out,
                        proxy->talk.channel.in,
                        proxy->talk.channel.out};

    close_others(kept, sizeof kept / sizeof *kept);
    prctl(PR_SET_NAME, "flightrec");
    ignore_signals();
    sigprocmask(SIG_SETMASK, &holder->mask, NULL);
    fcntl(notes, F_SETFL, O_WRONLY | O_NONBLOCK);
    proxy->gone = gone;
    proxy->notes = notes;
    proxy_run(proxy, holder->starter);
}

/* The shell waits for the worker's pid before it becomes the program. */
static int start_both(struct holder *holder)
{
    struct conversation *talk = &holder->proxy.talk;
    int go[2], gone[2], notes[2];

    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(gone, O_CLOEXEC) < 0 || pipe2(notes, O_CLOEXEC) < 0)
        return -1;
    holder->shell = fork();
    if (holder->shell == 0) {
        close(go[1]);
        run_shell(holder, go[0]);
    }
    if (holder->shell < 0)
        return -1;
    talk->pid = holder->shell;
    snprintf(talk->terminal.name, sizeof talk->terminal.name, "%s", holder->terminal_name);
    holder->worker = fork();
    if (holder->worker == 0)
        run_worker(holder, gone[0], notes[1]);
    if (holder->worker < 0 || write(go[1], &holder->worker, sizeof holder->worker) < 0)
        return -1; /* the shell ends as the pipe closes */
    holder->gone = gone[1];
    holder->notes = notes[0];
    for (size_t i = 0; i < 2; i++)
        close(go[i]);
    close(gone[0]);
    close(notes[1]);
    close(talk->channel.in); /* nobody reads there when the worker is dead */
    close(talk->channel.out);
    return 0;
}

/* ---- what others see of us ---- */

static size_t read_about(pid_t pid, const char *what, char *out, size_t room)
{
    char path[40];
    ssize_t size;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, what);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size = read(fd, out, room);
    close(fd);
    return size < 0 ? 0 : (size_t)size;
}

/* tmux, ps and terminals show the terminal's foreground process, which is this one: let them read the
 * name of the program that runs inside. */
static void take_name(struct holder *holder)
{
    pid_t job = tcgetpgrp(holder->proxy.pump.master);
    char words[TITLE_MAX], name[NAME_ROOM];
    size_t size = read_about(job, "cmdline", words, holder->title_room - 1);

    if (size == 0) {
        job = holder->shell; /* a pipeline whose first program has ended */
        size = read_about(job, "cmdline", words, holder->title_room - 1);
    }
    memcpy(holder->title, words, size);
    memset(holder->title + size, 0, holder->title_room - size);
    size = read_about(job, "comm", name, sizeof name - 1);
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

/* ---- the terminal ---- */

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

static void copy_size(struct holder *holder)
{
    if (ioctl(0, TIOCGWINSZ, &holder->size) == 0)
        ioctl(holder->proxy.pump.master, TIOCSWINSZ, &holder->size); /* tells who is there */
}

/* ---- waiting ---- */

/* `suspend` in the shell: what waits for us is to go on, until somebody continues us. */
static void stop_with_shell(struct holder *holder)
{
    give_terminal_back(holder);
    kill(0, SIGSTOP); /* the worker too: it would read a terminal that is not ours now */
    make_raw(holder);
    copy_size(holder);
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
        } else if (pid == holder->worker && WIFSTOPPED(status)) {
            kill(holder->worker, SIGCONT); /* without it nobody could type */
        } else if (pid == holder->worker) {
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
        else if (signal == SIGWINCH)
            copy_size(holder);
        else if (signal == SIGHUP)
            return false;
        else
            kill(holder->shell, signal);
    }
    return true;
}

/* Return false when the worker is done or dead. */
static bool on_notes(struct holder *holder)
{
    char notes[64];
    ssize_t size = read(holder->notes, notes, sizeof notes);

    if (size <= 0)
        return size < 0 && errno == EINTR;
    if (memchr(notes, NOTE_LOOK, (size_t)size) != NULL) {
        take_name(holder);
        follow_folder(holder);
    }
    holder->is_shown = memchr(notes, NOTE_DONE, (size_t)size) != NULL;
    return !holder->is_shown;
}

/* The worker has died: copy here, without looking, until the shell or the terminal is gone. */
static void do_without_worker(struct holder *holder)
{
    struct pollfd ready[PUMP_FDS + 1];
    struct pump *pump = &holder->proxy.pump;

    remove_channel(holder); /* the shell sees that, and stops reporting */
    while (!holder->has_ended && !pump->is_hung_up) {
        pump_poll(pump, ready);
        ready[PUMP_FDS] = (struct pollfd){holder->signal_fd, POLLIN, 0};
        if (poll(ready, PUMP_FDS + 1, -1) < 0 && errno != EINTR)
            return;
        if (!pump_serve(pump, ready) || (ready[PUMP_FDS].revents != 0 && !on_signal(holder)))
            return;
    }
    pump_take(pump);
    pump_show(pump);
}

/* Until the shell or the terminal is gone, or the worker. Return whether the worker is still there. */
static bool wait_for_end(struct holder *holder)
{
    bool has_terminal = true;

    while (has_terminal && !holder->has_ended) {
        struct pollfd ready[] = {{holder->signal_fd, POLLIN, 0}, {holder->notes, POLLIN, 0}};
        if (poll(ready, 2, -1) < 0 && errno != EINTR)
            return true;
        if (ready[1].revents != 0 && !on_notes(holder))
            return false;
        if (ready[0].revents != 0)
            has_terminal = on_signal(holder);
    }
    return true;
}

static void let_worker_show_rest(struct holder *holder)
{
    struct pollfd ready = {holder->notes, POLLIN, 0};
    bool is_showing = true;

    while (is_showing && poll(&ready, 1, GRACE_MS) > 0)
        is_showing = on_notes(holder);
    if (is_showing && holder->worker > 0)
        kill(holder->worker, SIGKILL); /* it holds the shell's terminal open */
}

static void hold(struct holder *holder)
{
    bool has_worker = wait_for_end(holder);

    close(holder->gone);
    if (has_worker)
        let_worker_show_rest(holder);
    else if (!holder->is_shown)
        do_without_worker(holder);
}

/* Closing its terminal hangs the shell up, as when a window is closed. */
static void see_shell_off(struct holder *holder)
{
    const struct timespec grace = {GRACE_MS / 1000, 0};
    sigset_t child;

    close(holder->proxy.pump.master);
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
    prlimit(0, RLIMIT_CORE, &no_core, NULL);
    signal(WTERMSIG(holder->status), SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &holder->signals, NULL);
    kill(getpid(), WTERMSIG(holder->status));
    _exit(128 + WTERMSIG(holder->status));
}

/* ---- the story ---- */

/* Our own arguments, which the system shows as ours: from the program's name, which stands before the
 * role's, up to where the environment begins. They are written over once nobody needs them. */
static void find_title(struct holder *holder, int argc, char **argv)
{
    holder->title = argv[-1];
    holder->title_room = (size_t)(argv[argc - 1] + strlen(argv[argc - 1]) + 1 - holder->title);
    if (holder->title_room > TITLE_MAX)
        holder->title_room = TITLE_MAX;
}

int pty_main(int argc, char **argv)
{
    static struct holder holder; /* zeroed, and only the pages in use cost memory */

    if (argc < 5 || strcmp(argv[3], "--") != 0)
        return 2;
    holder.program = argv[1];
    holder.starter = argv[2];
    holder.arguments = argv + 4;
    find_title(&holder, argc, argv);
    sigprocmask(SIG_BLOCK, NULL, &holder.mask);
    if (set_up(&holder) < 0)
        do_without_proxy(&holder);
    if (take_signals(&holder) < 0 || start_both(&holder) < 0) {
        remove_channel(&holder);
        do_without_proxy(&holder);
    }
    signal(SIGTTOU, SIG_IGN); /* from here on: the shell must not inherit it */
    signal(SIGCHLD, SIG_DFL);
    make_raw(&holder);
    hold(&holder);
    give_terminal_back(&holder);
    see_shell_off(&holder);
    remove_channel(&holder);
    end_as_shell(&holder);
}
