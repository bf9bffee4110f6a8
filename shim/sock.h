/*
 * One connection to the daemon: never blocks, speaks only to a server of this uid.
 */
#ifndef FLIGHTREC_SOCK_H
#define FLIGHTREC_SOCK_H

#include "queue.h"
#include "wire.h"

enum { HELLO_ROOM = 128 };

struct connection {
    int fd; /* -1: none */
    uint8_t hello[HELLO_ROOM];
    size_t hello_size, hello_sent;
    size_t got, taken; /* bytes in `in`, and of those the ones of messages already handed out */
    uint8_t in[WIRE_LENGTH_SIZE + WIRE_FRAME_MAX];
};

/* Connect and have a hello ready. Return 0, or -1 with errno: EPERM where the server is of another
 * uid, ENOENT or ECONNREFUSED where there is none, EAGAIN where it accepts nobody, EACCES where a
 * sandbox forbids it. */
int sock_connect(struct connection *, const char *path, const char *role);

/* Send what is unsent. Return 0, also where the daemon takes no more for now; -1 where it is gone. */
int sock_flush(struct connection *, struct queue *);

/* Whether sock_flush has more to do once the socket can be written. */
bool sock_is_behind(const struct connection *, const struct queue *);

/* Read what is there. Return 0, or -1: ECONNRESET where the daemon hung up, EPROTO where it sends
 * what is no message. */
int sock_receive(struct connection *);

/* Take one whole message: 1, or 0 where there is none yet, or -1 with EPROTO. It points into the
 * connection until the next sock_receive. */
int sock_next(struct connection *, struct wire_message *);

void sock_close(struct connection *);

#endif
