#include "sock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static int check_server(int fd)
{
    struct ucred server;
    socklen_t size = sizeof server;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) < 0)
        return -1;
    if (server.uid == geteuid())
        return 0;
    errno = EPERM;
    return -1;
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    int fd, saved_errno;

    if (size >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, size + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&address, sizeof address) < 0) {
        if (errno == EPERM)
            errno = EACCES; /* a sandbox's word: EPERM is an impostor */
    } else if (check_server(fd) == 0) {
        return fd;
    }
    saved_errno = errno;
    close(fd);
    errno = saved_errno;
    return -1;
}

int sock_connect(struct connection *c, const char *path, const char *role)
{
    struct wire_hello hello = {WIRE_PROTOCOL, bytes_of(FLIGHTREC_VERSION), bytes_of(role), getpid()};
    struct frame frame;

    if (wire_encode_hello(&hello, c->hello, sizeof c->hello, &frame) < 0)
        return -1;
    c->fd = connect_to(path);
    if (c->fd < 0)
        return -1;
    c->hello_size = frame.size;
    c->hello_sent = c->got = c->taken = 0;
    return 0;
}

/* Send as much as the socket takes; return how much, or -1 where nobody is there. */
static ssize_t send_some(int fd, struct iovec pieces[2])
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = 2};
    ssize_t sent;

    do
        sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return 0;
    return sent;
}

int sock_flush(struct connection *c, struct queue *queue)
{
    while (sock_is_behind(c, queue)) {
        struct bytes unsent = queue_unsent(queue);
        size_t hello = c->hello_size - c->hello_sent;
        struct iovec pieces[] = {
            {c->hello + c->hello_sent, hello},
            {(void *)(uintptr_t)unsent.data, unsent.size},
        };
        ssize_t sent = send_some(c->fd, pieces); /* in one call: the daemon wakes up once */
        if (sent <= 0)
            return (int)sent;
        hello = hello < (size_t)sent ? hello : (size_t)sent;
        c->hello_sent += hello;
        queue_advance(queue, (size_t)sent - hello);
    }
    return 0;
}

bool sock_is_behind(const struct connection *c, const struct queue *queue)
{
    return c->fd >= 0 && (c->hello_sent < c->hello_size || queue_unsent(queue).size > 0);
}

int sock_receive(struct connection *c)
{
    ssize_t got;

    memmove(c->in, c->in + c->taken, c->got - c->taken);
    c->got -= c->taken;
    c->taken = 0;
    do
        got = recv(c->fd, c->in + c->got, sizeof c->in - c->got, 0);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
    if (got == 0) {
        errno = ECONNRESET;
        return -1;
    }
    c->got += (size_t)got;
    return 0;
}

int sock_next(struct connection *c, struct wire_message *message)
{
    const uint8_t *at = c->in + c->taken;
    size_t size = c->got - c->taken;
    ssize_t length;

    if (size < WIRE_LENGTH_SIZE)
        return 0;
    length = wire_frame_length(at);
    if (length < 0)
        return -1;
    if (size - WIRE_LENGTH_SIZE < (size_t)length)
        return 0;
    c->taken += WIRE_LENGTH_SIZE + (size_t)length;
    return wire_decode(at + WIRE_LENGTH_SIZE, (size_t)length, message) < 0 ? -1 : 1;
}

void sock_close(struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}
