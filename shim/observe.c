#include "observe.h"

#include "bash_door.h"
#include "clock.h"
#include "far_end.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHUNK_SIZE = 64 * 1024,   /* read at a time: what a pipe holds */
    FLOOD_SIZE = 32 * 1024,   /* in a pipe: worth another call */
    WIDE_SIZE = 256 * 1024,   /* no less than a socket holds */
    BUFFER_SIZE = CHUNK_SIZE + WIDE_SIZE, /* when the end has to be read at once, behind a chunk */
    FIRST_FREE_FD = 3,
};

enum stream_kind {
    KIND_ALONE, /* a terminal, a device, or closed: not touched */
    KIND_PIPE,
    KIND_SOCKET,
    KIND_FILE,
};

/* One of the program's standard streams on its way through us. */
struct stream {
    enum stream_kind kind;
    int fd;       /* 1 or 2 */
    int source;   /* our end of what the program writes into, or -1 */
    int given;    /* the program's end, or -1 */
    int target;   /* where it belongs, or -1 before the first byte */
    bool blocking; /* a write into `target` may block: at most PIPE_BUF at a time */
    bool flooded;  /* the last read was a whole chunk: much is coming */
    bool waiting; /* for room in `target`; nothing is read meanwhile */
    size_t start, end; /* in `buffer`: read and not yet passed on */
    char *buffer;
    off_t begin; /* where in a regular file the program's output begins */
    struct tail *tail;
};

static char buffers[STREAMS][BUFFER_SIZE];
static struct stream streams[STREAMS];
static int events = -1; /* epoll: reports in the order in which things happened, unlike poll */

/* ---- the two streams ---- */

static enum stream_kind kind_of(int fd)
{
    struct stat file;

    if (fstat(fd, &file) < 0)
        return KIND_ALONE;
    if (S_ISFIFO(file.st_mode))
        return KIND_PIPE;
    if (S_ISSOCK(file.st_mode) && far_end_is_byte_stream(fd))
        return KIND_SOCKET;
    return S_ISREG(file.st_mode) ? KIND_FILE : KIND_ALONE;
}

static bool same_file(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

bool observe_is_merged(void)
{
    struct stat output, error;

    return fstat(STDOUT_FILENO, &output) == 0 && fstat(STDERR_FILENO, &error) == 0 &&
           same_file(&output, &error);
}

void observe_hold_closed_fds(void)
{
    int fd;

    do /* the lowest that is free */
        fd = open("/", O_PATH | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

/* Where the next byte goes: the end of a file that is appended to, else the shared position. */
static off_t write_position(int fd)
{
    struct stat file;
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && (flags & O_APPEND) != 0)
        return fstat(fd, &file) == 0 ? file.st_size : -1;
    return lseek(fd, 0, SEEK_CUR);
}

/* A pair of the stream's own kind: a program that opens /dev/stderr or asks what it is sees no
 * difference. */
static int open_pair(struct stream *stream)
{
    int pair[2];
    int result = stream->kind == KIND_SOCKET
                     ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)
                     : pipe2(pair, O_CLOEXEC);

    if (result < 0)
        return -1;
    stream->source = pair[0];
    stream->given = pair[1];
    return fcntl(stream->source, F_SETFL, O_NONBLOCK);
}

static void let_go(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void leave_alone(struct stream *stream)
{
    let_go(&stream->source);
    let_go(&stream->given);
    stream->kind = KIND_ALONE;
}

static void prepare_stream(struct stream *stream)
{
    stream->kind = kind_of(stream->fd);
    if ((stream->kind == KIND_PIPE || stream->kind == KIND_SOCKET) && !far_end_has_reader(stream->fd))
        stream->kind = KIND_ALONE; /* the first write fails, and not later */
    if (stream->kind == KIND_FILE)
        stream->begin = write_position(stream->fd);
    else if (stream->kind != KIND_ALONE && open_pair(stream) < 0)
        leave_alone(stream); /* no descriptors left: unseen is better than broken */
}

/* It has what it writes into already; ours is the other end. */
static void prepare_waiting(struct stream *stream, int source)
{
    stream->kind = kind_of(stream->fd);
    stream->source = source;
    if (stream->kind == KIND_FILE)
        stream->begin = write_position(stream->fd);
    else if (source < 0 || fcntl(source, F_SETFL, O_NONBLOCK) < 0)
        leave_alone(stream);
}

static void prepare_streams(struct observation *seen, const struct observed_program *program)
{
    struct stream *output = &streams[STREAM_OUTPUT], *error = &streams[STREAM_ERROR];

    for (int i = 0; i < STREAMS; i++)
        streams[i] = (struct stream){.fd = STDOUT_FILENO + i, .source = -1, .given = -1,
                                     .target = -1, .buffer = buffers[i], .tail = &seen->tails[i]};
    seen->merged = observe_is_merged();
    if (program->waiting != NULL) {
        prepare_waiting(output, program->waiting->sources[STREAM_OUTPUT]);
        if (!seen->merged)
            prepare_waiting(error, program->waiting->sources[STREAM_ERROR]);
        return;
    }
    if (seen->merged || !program->errors_only)
        prepare_stream(output);
    if (seen->merged)
        error->given = output->given;
    else
        prepare_stream(error);
}

static void close_given(void)
{
    if (streams[STREAM_ERROR].given >= 0)
        close(streams[STREAM_ERROR].given);
    if (streams[STREAM_OUTPUT].given >= 0 &&
        streams[STREAM_OUTPUT].given != streams[STREAM_ERROR].given)
        close(streams[STREAM_OUTPUT].given);
    streams[STREAM_OUTPUT].given = streams[STREAM_ERROR].given = -1;
}

/* `subject` is a stream, or its `fd` where only the reader's end is of interest. */
static int watch(int operation, int fd, uint32_t what, void *subject)
{
    struct epoll_event event = {.events = what, .data.ptr = subject};

    return epoll_ctl(events, operation, fd, &event);
}

/* A pipe with a name may get another reader. */
static bool may_be_read_again(const struct stream *stream)
{
    struct stat theirs, ours;

    return stream->kind == KIND_PIPE && fstat(stream->fd, &theirs) == 0 &&
           fstat(stream->source, &ours) == 0 && theirs.st_dev != ours.st_dev;
}

/* Once nobody reads, the program's next write has to fail, as it would without us. */
static void watch_reader(struct stream *stream)
{
    if (!may_be_read_again(stream))
        watch(EPOLL_CTL_ADD, stream->fd, 0, &stream->fd);
}

/* Before it is closed: others hold it too, and then epoll goes on telling of it. */
static void leave_reader(struct stream *stream)
{
    watch(EPOLL_CTL_DEL, stream->fd, 0, NULL);
}

static bool any_open(void)
{
    return streams[STREAM_OUTPUT].source >= 0 || streams[STREAM_ERROR].source >= 0;
}

static int watch_streams(void)
{
    struct epoll_event nothing;

    if (!any_open())
        return 0;
    events = epoll_create1(EPOLL_CLOEXEC);
    if (events < 0)
        return -1;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *stream = &streams[i];
        if (stream->source < 0)
            continue;
        if (watch(EPOLL_CTL_ADD, stream->source, EPOLLIN, stream) < 0)
            return -1;
        watch_reader(stream);
    }
    /* Where a sandbox forbids to wait for both, nobody could pass on what the program writes. */
    return epoll_pwait(events, &nothing, 1, 0, NULL) < 0 && errno != EINTR ? -1 : 0;
}

/* Undo what was prepared: unseen is better than broken. */
static void forget_streams(void)
{
    close_given(); /* first: two streams may share one */
    for (int i = 0; i < STREAMS; i++)
        leave_alone(&streams[i]);
    if (events >= 0)
        close(events);
    events = -1;
}

/* ---- passing on ---- */

/* Nothing more comes from the program, or nobody takes it. Whoever writes learns that nobody reads, and
 * whoever reads learns that this was the end, also where the program itself goes on. */
static void end_stream(struct stream *stream)
{
    leave_reader(stream);
    let_go(&stream->source);
    if (stream->target != stream->fd)
        let_go(&stream->target);
    let_go(&stream->fd);
    stream->start = stream->end = 0;
}

/* A write must never block: signals and the other stream would have to wait. A socket takes that
 * per call; a pipe is opened once more, since O_NONBLOCK on the descriptor that we were given would
 * reach everybody who shares it. */
static void open_target(struct stream *stream)
{
    char path[] = "/proc/self/fd/1";

    path[sizeof path - 2] = (char)('0' + stream->fd);
    if (stream->kind != KIND_SOCKET)
        stream->target = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (stream->target >= 0)
        return;
    stream->blocking = stream->kind != KIND_SOCKET;
    leave_reader(stream); /* it is to be watched for room */
    stream->target = stream->fd;
}

static bool has_room(const struct stream *stream)
{
    struct pollfd target = {stream->target, POLLOUT, 0};

    return poll(&target, 1, 0) > 0;
}

static ssize_t write_target(struct stream *stream)
{
    const char *data = stream->buffer + stream->start;
    size_t size = stream->end - stream->start;

    if (stream->kind == KIND_SOCKET)
        return send(stream->target, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (!stream->blocking)
        return write(stream->target, data, size);
    if (!has_room(stream)) {
        errno = EAGAIN;
        return -1;
    }
    return write(stream->target, data, size < PIPE_BUF ? size : PIPE_BUF);
}

static void await_room(struct stream *stream, bool waiting)
{
    if (stream->waiting == waiting)
        return;
    stream->waiting = waiting;
    /* removed, not only silenced: epoll tells of a hang-up in any case */
    watch(EPOLL_CTL_DEL, waiting ? stream->source : stream->target, 0, stream);
    watch(EPOLL_CTL_ADD, waiting ? stream->target : stream->source, waiting ? EPOLLOUT : EPOLLIN,
          stream);
}

/* Pass on what is in the buffer, as far as there is room. */
static void flush(struct stream *stream)
{
    if (stream->target < 0)
        open_target(stream);
    while (stream->start < stream->end) {
        ssize_t written = write_target(stream);
        if (written > 0) {
            stream->start += (size_t)written;
        } else if (written < 0 && (errno == EAGAIN || errno == EINTR)) {
            if (errno == EAGAIN) {
                await_room(stream, true);
                return;
            }
        } else {
            await_room(stream, false);
            end_stream(stream); /* the reader is gone, and soon the writer knows */
            return;
        }
    }
    await_room(stream, false);
}

/* Wider pipes let all sides work for longer. Not at once: a person's pipes have a budget. What somebody has
 * made of another size stays so. */
static void widen(struct stream *stream)
{
    stream->flooded = true;
    if (stream->kind != KIND_PIPE)
        return;
    fcntl(stream->source, F_SETPIPE_SZ, WIDE_SIZE);
    if (fcntl(stream->fd, F_GETPIPE_SZ) == CHUNK_SIZE)
        fcntl(stream->fd, F_SETPIPE_SZ, WIDE_SIZE);
}

/* Much is coming, and only its end will be looked at: move the rest from pipe to pipe unread. Return how
 * much is to be read then: no less than the tail holds, so that it is as if all had been read. */
static size_t move_flood(struct stream *stream)
{
    int queued = 0;
    ssize_t moved;

    if (!stream->flooded || stream->kind != KIND_PIPE || stream->blocking ||
        ioctl(stream->source, FIONREAD, &queued) < 0 || queued < FLOOD_SIZE)
        return CHUNK_SIZE;
    moved = splice(stream->source, NULL, stream->target, NULL, (size_t)queued - TAIL_SIZE,
                   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (moved <= 0)
        return CHUNK_SIZE;
    stream->tail->total += (uint64_t)moved;
    return (size_t)queued - (size_t)moved;
}

static void fill(struct stream *stream)
{
    size_t wanted = move_flood(stream);
    ssize_t size = read(stream->source, stream->buffer, wanted < CHUNK_SIZE ? wanted : CHUNK_SIZE);

    if (size > 0) {
        stream->start = 0;
        stream->end = (size_t)size;
        if (size == CHUNK_SIZE && !stream->flooded)
            widen(stream);
        tail_add(stream->tail, stream->buffer, (size_t)size);
        flush(stream);
    } else if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_stream(stream);
    }
}

static struct stream *stream_without_reader(const void *subject)
{
    for (int i = 0; i < STREAMS; i++)
        if (subject == &streams[i].fd)
            return &streams[i];
    return NULL;
}

/* Nobody reads any more; what was written until now is for the tail alone. */
static void give_up(struct stream *stream)
{
    ssize_t size = read(stream->source, stream->buffer, CHUNK_SIZE);

    if (size > 0)
        tail_add(stream->tail, stream->buffer, (size_t)size);
    await_room(stream, false);
    end_stream(stream);
}

/* Wait, with the signals of `mask` blocked, and move what there is to move. Return how many streams
 * had something, -1 with EINTR after a signal. */
static int pass_on(int timeout_ms, const sigset_t *mask)
{
    struct epoll_event happened[STREAMS * 2];
    int count = epoll_pwait(events, happened, STREAMS * 2, timeout_ms, mask);

    for (int i = 0; i < count; i++) {
        struct stream *unread = stream_without_reader(happened[i].data.ptr);
        struct stream *stream = unread == NULL ? happened[i].data.ptr : unread;
        if (stream->source < 0)
            continue;
        if (unread != NULL)
            give_up(stream);
        else if (stream->waiting)
            flush(stream);
        else
            fill(stream);
    }
    return count;
}

/* ---- signals and the child ---- */

/* Sent to us and meant for the program. The terminal sends its own to the whole group, and the
 * program is in it: those are not passed on, since "once more" means something to many programs. Nobody
 * can tell kill(2) of the group from kill(2) of us, so such a signal may come twice, never not at all.
 * SIGALRM comes from the kernel too, but an alarm set before we were started is ours alone, and so is the
 * terminal's hang-up (and the SIGCONT after it) where we lead the session. */
static const int PASSED_ON[] = {SIGTERM, SIGHUP, SIGINT,  SIGQUIT, SIGUSR1,
                                SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};

static volatile sig_atomic_t child_pid; /* 0 as soon as the number may be another process's */
static volatile sig_atomic_t child_changed;

static bool is_ours_alone(int number)
{
    return number == SIGALRM || ((number == SIGHUP || number == SIGCONT) && getsid(0) == getpid());
}

static void pass_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (child_pid > 0 && (info->si_code != SI_KERNEL || is_ours_alone(number)))
        kill((pid_t)child_pid, number);
}

static void note_child(int number)
{
    (void)number;
    child_changed = 1;
}

/* Take over the signals that do what they do by default; an ignored one stays ignored. `waiting` is
 * the mask to wait with. */
static void take_signals(const sigset_t *before, sigset_t *waiting)
{
    struct sigaction pass = {.sa_sigaction = pass_signal, .sa_flags = SA_SIGINFO}, was;

    *waiting = *before;
    sigdelset(waiting, SIGCHLD);
    for (size_t i = 0; i < sizeof PASSED_ON / sizeof *PASSED_ON; i++) {
        if (sigaction(PASSED_ON[i], &pass, &was) == 0 && was.sa_handler == SIG_IGN)
            sigaction(PASSED_ON[i], &was, NULL);
        else
            sigdelset(waiting, PASSED_ON[i]);
    }
    signal(SIGPIPE, SIG_IGN);
}

struct launch {
    const struct observed_program *program;
    const sigset_t *mask;
    bool children_ignored; /* SIGCHLD was ignored when we were started: so it is for the program */
    pid_t parent;
    volatile int failure; /* errno of the child's exec, which shares our memory */
};

static void become_program(struct launch *launch)
{
    /* A killed stand-in must not leave the program behind: whoever kills us means the program. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launch->parent)
        _exit(128 + SIGKILL);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].given >= 0)
            dup2(streams[i].given, streams[i].fd);
    if (launch->children_ignored)
        signal(SIGCHLD, SIG_IGN);
    sigprocmask(SIG_SETMASK, launch->mask, NULL);
    execve(launch->program->path, launch->program->argv, launch->program->envp);
    launch->failure = errno;
    _exit(127);
}

/* vfork, since this is the price of every command; all signals are blocked, so no handler of ours
 * runs in the child. -1 with errno where there is no child. */
static pid_t start(struct launch *launch)
{
    pid_t pid = vfork();

    if (pid == 0)
        become_program(launch);
    if (pid > 0 && launch->failure != 0) {
        waitpid(pid, NULL, 0);
        errno = launch->failure;
        pid = -1;
    }
    return pid;
}

static pid_t let_go_on(const struct waiting_shell *shell)
{
    char text[BASH_DOOR_SIZE] = {shell->unseen ? BASH_DOOR_NOT_SEEN : BASH_DOOR_SEEN};
    char *end = text + 1;
    ssize_t written;

    for (char *const *at = shell->assignments; at != NULL && *at != NULL; at++)
        if (strlen(*at) < (size_t)(text + sizeof text - end))
            end = stpcpy(end, *at) + 1;
    written = write(shell->answer, text, (size_t)(end - text)); /* all or nothing: a pipe's */
    (void)written;
    close(shell->answer);
    return shell->pid;
}

static pid_t launch(const struct observed_program *program, const sigset_t *mask)
{
    struct sigaction note = {.sa_handler = note_child}, was;
    struct launch launch = {.program = program, .mask = mask, .parent = getpid()};
    pid_t pid;

    sigaction(SIGCHLD, &note, &was);
    launch.children_ignored = was.sa_handler == SIG_IGN;
    pid = program->waiting == NULL ? start(&launch) : let_go_on(program->waiting);
    if (pid < 0)
        sigaction(SIGCHLD, &was, NULL);
    return pid;
}

/* Return whether the child has ended. A stopped one stops us as well: whoever waits for us may be
 * a shell with job control. */
static bool reap(int *status)
{
    pid_t pid = waitpid((pid_t)child_pid, status, WNOHANG | WUNTRACED);

    if (pid != (pid_t)child_pid)
        return false;
    if (WIFSTOPPED(*status)) {
        kill(getpid(), SIGSTOP);
        kill(pid, SIGCONT);
        return false;
    }
    child_pid = 0;
    return true;
}

/* ---- the story ---- */

static void close_fds(unsigned first, unsigned last)
{
    if (first <= last && syscall(SYS_close_range, first, last, 0) < 0)
        for (unsigned fd = first; fd <= last && fd < 1024; fd++) /* before Linux 5.9 */
            close((int)fd);
}

/* The lowest descriptor from `first` on that is ours, or INT_MAX. */
static int next_of_ours(int first, const int *kept)
{
    const int ours[] = {events,
                        streams[STREAM_OUTPUT].source,
                        streams[STREAM_ERROR].source,
                        streams[STREAM_OUTPUT].target,
                        streams[STREAM_ERROR].target,
                        kept[0],
                        kept[1],
                        kept[2]}; /* and what `meanwhile` has opened */
    int lowest = INT_MAX;

    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] >= first && ours[i] < lowest)
            lowest = ours[i];
    return lowest;
}

/* Close standard input, what we left alone, and everything else that is not ours: somebody may wait for the end of a pipe
 * that only the program was meant to hold. `kept` holds OBSERVE_KEPT + 1 descriptors or -1. */
static void close_others(const int *kept)
{
    int next = FIRST_FREE_FD, ours;

    if (next_of_ours(STDIN_FILENO, kept) != STDIN_FILENO)
        close(STDIN_FILENO);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].kind == KIND_ALONE)
            let_go(&streams[i].fd);
    while ((ours = next_of_ours(next, kept)) != INT_MAX) {
        close_fds((unsigned)next, (unsigned)ours - 1);
        next = ours + 1;
    }
    close_fds((unsigned)next, UINT_MAX);
}

/* Where nothing is left to pass on: wait for the program alone. Signals are blocked again before it is
 * taken off the list of processes, since they are passed on by its number. */
static void await_child(const sigset_t *waiting)
{
    sigset_t others = *waiting, blocked;
    siginfo_t info;

    sigaddset(&others, SIGCHLD); /* this is what we wait for */
    sigprocmask(SIG_SETMASK, &others, &blocked);
    while (waitid(P_PID, (id_t)child_pid, &info, WEXITED | WSTOPPED | WNOWAIT) < 0 && errno == EINTR)
        continue;
    sigprocmask(SIG_SETMASK, &blocked, NULL);
}

static int stay_until_end(const sigset_t *waiting)
{
    int status = 0;
    bool ended = false;

    while (any_open() || !ended) {
        if (!any_open()) {
            await_child(waiting);
            ended = reap(&status);
            continue;
        }
        int moved = pass_on(ended ? 0 : -1, waiting);
        if (ended && moved == 0)
            return status; /* drained, or the reader is slow: that is not the program's concern */
        if (!ended && child_changed) {
            child_changed = 0;
            ended = reap(&status);
        }
    }
    return status;
}

static void pass_on_until_end(const sigset_t *mask)
{
    while (any_open())
        if (pass_on(-1, mask) < 0 && errno != EINTR)
            break;
}

/* Go on for a background job in a process that holds nothing else. */
static void leave_pump_behind(const sigset_t *mask)
{
    static const int nothing[OBSERVE_KEPT + 1] = {-1, -1, -1};
    pid_t pid = fork();

    if (pid < 0)
        pass_on_until_end(mask); /* late, but the job's output arrives */
    if (pid != 0)
        return;
    setsid(); /* a signal for the job's group ends the job, and then us by end of file */
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].source >= 0 && streams[i].target < 0)
            open_target(&streams[i]);
        if (streams[i].source >= 0 && streams[i].target == streams[i].fd)
            continue;
        leave_reader(&streams[i]);
        let_go(&streams[i].fd);
    }
    close_others(nothing);
    if (chdir("/") == 0)
        pass_on_until_end(mask);
    _exit(0);
}

/* Read what the program wrote last and nobody has taken yet: the tail needs it now. */
static void read_ahead(struct stream *stream)
{
    ssize_t size;

    while (stream->waiting && stream->end < BUFFER_SIZE) {
        size = read(stream->source, stream->buffer + stream->end, BUFFER_SIZE - stream->end);
        if (size <= 0)
            return;
        tail_add(stream->tail, stream->buffer + stream->end, (size_t)size);
        stream->end += (size_t)size;
    }
}

static void read_file_tail(struct stream *stream)
{
    char path[] = "/proc/self/fd/1", last[TAIL_SIZE];
    off_t end = write_position(stream->fd), from;
    int fd;
    ssize_t size;

    if (stream->begin < 0 || end <= stream->begin)
        return;
    path[sizeof path - 2] = (char)('0' + stream->fd);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return;
    from = end - stream->begin > TAIL_SIZE ? end - TAIL_SIZE : stream->begin;
    size = pread(fd, last, (size_t)(end - from), from);
    close(fd);
    if (size != end - from)
        return; /* somebody has cut it */
    stream->tail->total = (uint64_t)(from - stream->begin);
    tail_add(stream->tail, last, (size_t)size);
}

int observe(struct observation *seen, const struct observed_program *program)
{
    sigset_t all, before, waiting;
    int64_t begin = clock_mono_us();
    pid_t pid;

    prepare_streams(seen, program);
    if ((program->waiting != NULL && program->waiting->unseen) || watch_streams() < 0)
        forget_streams();
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid = launch(program, &before);
    if (pid < 0) {
        int saved_errno = errno;
        forget_streams();
        sigprocmask(SIG_SETMASK, &before, NULL);
        errno = saved_errno;
        return -1;
    }
    child_pid = pid;
    close_given();
    take_signals(&before, &waiting);
    close_others((int[OBSERVE_KEPT + 1]){program->kept[0], program->kept[1],
                                         program->meanwhile == NULL ? -1 : program->meanwhile()});
    seen->status = stay_until_end(&waiting);
    seen->usec = clock_mono_us() - begin;
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].source >= 0)
            read_ahead(&streams[i]);
    if (any_open())
        leave_pump_behind(&before);
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].kind == KIND_FILE)
            read_file_tail(&streams[i]);
    return 0;
}

_Noreturn void observe_end_like(int status)
{
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        struct rlimit no_core = {0, 0};
        sigset_t only;
        prlimit(0, RLIMIT_CORE, &no_core, NULL); /* the program has left its own */
        signal(number, SIG_DFL);
        sigemptyset(&only);
        sigaddset(&only, number);
        kill(getpid(), number);
        sigprocmask(SIG_UNBLOCK, &only, NULL);
        _exit(128 + number); /* a signal that cannot kill: it was one of the real-time ones */
    }
    _exit(WEXITSTATUS(status));
}
