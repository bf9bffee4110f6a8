/*
 * The policy above one connection: when to connect, how long to wait, what to keep.
 *
 * A daemon that is dead, slow, hostile or full costs at most ASK_LIMIT_US once per BREAKER_US, and
 * nothing after that: the link goes on sending without waiting. FLIGHTREC_PATIENCE_MS is another limit,
 * for a machine that is too slow for this one.
 */
#ifndef FLIGHTREC_LINK_H
#define FLIGHTREC_LINK_H

#include "paths.h"
#include "sock.h"

enum {
    ASK_LIMIT_US = 20 * 1000,
    PATIENCE_MAX_MS = 5000,
    BREAKER_US = 30 * 1000 * 1000,
    RETRY_MIN_US = 250 * 1000,
    RETRY_MAX_US = 30 * 1000 * 1000,
    RETRY_COMMAND_US = 2 * 1000 * 1000, /* at the latest after this a command brings the next try */
};

struct link {
    const struct paths *paths;
    const char *role;
    const char *starter; /* the command that starts the daemon; "" to find it on PATH, NULL: never */
    int64_t tried_us, retry_us; /* last try, and how long after it the next is due */
    int64_t asked_us;           /* last try for a command */
    int64_t blocked_until_us;   /* no connection before that: an impostor or garbage was there */
    int64_t breaker_until_us;   /* no waiting before that */
    int64_t ask_limit_us;
    unsigned generation;        /* which connection this is */
    int64_t daemon_pid;         /* who says hello there; 0 before that */
    struct connection connection;
    struct queue queue;
};

/* How long an answer is waited for where that is usually `usual_us`. */
int64_t link_patience_us(int64_t usual_us);

void link_open(struct link *, const struct paths *, const char *role, const char *starter);

/* Be connected if that is possible at once. `for_command` tells that a command is about to run: then a
 * missing daemon is started, for the next one. */
bool link_connect(struct link *, bool for_command);

/* Whether a question would be waited for: connected, and the breaker is closed. */
bool link_may_ask(const struct link *);

/* Keep a frame of `run` until it is committed, and send what can be sent. */
void link_post(struct link *, const uint8_t run[WIRE_ID_SIZE], uint8_t *bytes, struct frame);

/* Wait for the reply to a message that wanted one, for the shell that has waited since `since_us`. Return
 * its verdict; VERDICT_NONE also where none came. `text` gets a copy of the reply's text,
 * NUL-terminated. */
enum wire_verdict link_wait(struct link *, const uint8_t run[WIRE_ID_SIZE], enum wire_phase,
                            int64_t since_us, char text[WIRE_REPLY_MAX + 1]);

/* Drop what is kept of a run. */
void link_forget(struct link *, const uint8_t run[WIRE_ID_SIZE]);

/* Send and receive what is possible now; for the caller's poll loop. */
void link_serve(struct link *);

/* What to poll for: the socket or -1, and the events; and when to call link_serve at the latest,
 * INT64_MAX for never. */
int link_fd(const struct link *, short *events);
int64_t link_due_us(const struct link *);

/* Hang up and count what was not kept. */
void link_close(struct link *);

#endif
