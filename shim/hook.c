#include "hook.h"

#include "agent.h"
#include "autostart.h"
#include "breaker.h"
#include "clock.h"
#include "counters.h"
#include "link.h"
#include "program.h"
#include "sock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    HOOK_LIMIT_US = 100 * 1000,         /* for the daemon's answer */
    HOOK_INPUT_LIMIT_US = 1000 * 1000,  /* for a client that does not close its end */
    HOOK_ALARM_S = 8,                   /* for one that does not read: more than any limit above */
    HOOK_HEADER_ROOM = 48 * 1024,       /* a frame without its payload, PATH being the largest field */
};

static const char HOOK_ROLE[] = "hook of an agent";

static struct {
    struct paths paths;
    struct connection connection;
    struct wire_hook message;
    char cwd[WIRE_PATH_MAX], path[WIRE_VARIABLE_MAX];
    uint8_t session[WIRE_ID_SIZE];
    uint8_t header[HOOK_HEADER_ROOM];
    uint8_t payload[WIRE_HOOK_PAYLOAD_MAX + 1];
} hook;

/* ---- never longer than that, and never another status than 0 ---- */

static void leave(int number)
{
    (void)number;
    _exit(0);
}

static void bound_everything(void)
{
    sigset_t alarms;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, leave);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    signal(SIGPIPE, SIG_IGN);
    alarm(HOOK_ALARM_S);
}

static bool is_ready(int fd, short events, int64_t deadline_us)
{
    struct pollfd ready = {fd, events, 0};
    int count;

    do
        count = poll(&ready, 1, clock_poll_ms(deadline_us));
    while (count < 0 && errno == EINTR);
    return count > 0;
}

/* ---- what the client says ---- */

/* Of more than fits only the size is taken, but all is read: the client must not fail for us. */
static void read_payload(void)
{
    int64_t deadline_us = clock_mono_us() + HOOK_INPUT_LIMIT_US;
    size_t size = 0;
    ssize_t got = 0;

    while (is_ready(STDIN_FILENO, POLLIN, deadline_us)) {
        if (size == sizeof hook.payload)
            size = 0;
        got = read(STDIN_FILENO, hook.payload + size, sizeof hook.payload - size);
        if (got <= 0)
            break;
        size += (size_t)got;
        hook.message.total += (uint64_t)got;
    }
    if (hook.message.total <= WIRE_HOOK_PAYLOAD_MAX)
        hook.message.payload = (struct bytes){hook.payload, size};
}

static struct bytes variable(const char *name, size_t limit)
{
    const char *value = getenv(name);

    return bytes_of(value != NULL && value[0] != '\0' && strlen(value) <= limit ? value : NULL);
}

/* Below a command that is recorded, the session of `flightrec run` is that of the agent outside. */
static const uint8_t *find_session(void)
{
    bool is_ours = getenv(AGENT_INSIDE) == NULL &&
                   agent_parse_id(getenv(AGENT_SESSION), hook.session) == 0;

    return is_ours ? hook.session : NULL;
}

static struct bytes persons_path(void)
{
    const char *path = getenv("PATH");

    if (path == NULL || strlen(path) >= sizeof hook.path)
        return bytes_of(NULL);
    program_path_without(hook.path, path, getenv(AGENT_SHIMS));
    return bytes_of(hook.path);
}

static int describe(const char *agent)
{
    struct wire_hook *message = &hook.message;

    message->agent = bytes_of(agent);
    if (message->agent.size > WIRE_WORD_MAX ||
        getrandom(message->id, WIRE_ID_SIZE, GRND_NONBLOCK) != WIRE_ID_SIZE)
        return -1;
    if (getcwd(hook.cwd, sizeof hook.cwd) == NULL)
        hook.cwd[0] = '\0';
    message->session = find_session();
    message->client_session = variable("CODEX_THREAD_ID", WIRE_WORD_MAX);
    message->pid = getppid();
    message->cwd = bytes_of(hook.cwd);
    message->path = persons_path();
    read_payload();
    return 0;
}

/* ---- to the daemon and back ---- */

static int connect_to_daemon(const char *starter)
{
    if (sock_connect(&hook.connection, hook.paths.socket, HOOK_ROLE) == 0)
        return 0;
    if (errno == EPERM)
        counters_add(hook.paths.counters, COUNTER_FOREIGN_SERVERS, 1);
    else if ((errno == ENOENT || errno == ECONNREFUSED) &&
             autostart_daemon(&hook.paths, starter) == 0)
        counters_add(hook.paths.counters, COUNTER_AUTOSTARTS, 1);
    return -1;
}

static int send_all(const void *data, size_t size, int64_t deadline_us)
{
    const char *at = data;

    while (size > 0) {
        ssize_t sent = send(hook.connection.fd, at, size, MSG_NOSIGNAL);
        if (sent >= 0) {
            at += sent;
            size -= (size_t)sent;
        } else if (errno != EINTR &&
                   (errno != EAGAIN || !is_ready(hook.connection.fd, POLLOUT, deadline_us))) {
            return -1;
        }
    }
    return 0;
}

static int tell(int64_t deadline_us)
{
    struct frame frame;

    if (wire_encode_hook(&hook.message, hook.header, sizeof hook.header, &frame) < 0 ||
        send_all(hook.connection.hello, hook.connection.hello_size, deadline_us) < 0 ||
        send_all(hook.header, frame.size, deadline_us) < 0)
        return -1;
    return send_all(hook.message.payload.data, hook.message.payload.size, deadline_us);
}

static bool is_answer(const struct wire_message *message)
{
    return message->tag == WIRE_HOOK_REPLY &&
           memcmp(message->reply.run, hook.message.id, WIRE_ID_SIZE) == 0;
}

/* Return the answer; NULL data where none came, with ETIMEDOUT where the daemon hangs. */
static struct bytes await_answer(int64_t deadline_us)
{
    struct wire_message message;
    int found;

    errno = ETIMEDOUT;
    while (is_ready(hook.connection.fd, POLLIN, deadline_us)) {
        if (sock_receive(&hook.connection) < 0)
            break;
        while ((found = sock_next(&hook.connection, &message)) > 0)
            if (is_answer(&message))
                return message.reply.text;
        if (found < 0)
            break;
        errno = ETIMEDOUT;
    }
    return (struct bytes){NULL, 0};
}

static void print(struct bytes text)
{
    const char *at = text.data;
    size_t left = text.size;
    ssize_t written;

    for (; left > 0 && (written = write(STDOUT_FILENO, at, left)) > 0; at += written)
        left -= (size_t)written;
}

static void ask(void)
{
    int64_t deadline_us = clock_mono_us() + link_patience_us(HOOK_LIMIT_US);
    struct bytes answer = {NULL, 0};

    hook.message.wants_reply = !breaker_is_open(hook.paths.hook_breaker);
    if (tell(deadline_us) < 0) {
        counters_add(hook.paths.counters, COUNTER_LOST_RUNS, 1);
        return;
    }
    if (!hook.message.wants_reply)
        return;
    answer = await_answer(deadline_us);
    if (answer.data == NULL && errno == ETIMEDOUT) {
        counters_add(hook.paths.counters, COUNTER_MISSED_REPLIES, 1);
        breaker_open(hook.paths.hook_breaker);
    }
    print(answer);
}

int hook_main(int argc, char **argv)
{
    const char *starter = argc > 2 ? argv[2] : getenv(AGENT_STARTER);

    bound_everything();
    if (argc < 2 || getenv(AGENT_OFF) != NULL || describe(argv[1]) < 0 ||
        paths_check_person() < 0 || paths_find(&hook.paths) < 0)
        return 0;
    if (connect_to_daemon(starter == NULL ? "" : starter) == 0)
        ask();
    return 0;
}
