#include "link.h"

#include "autostart.h"
#include "clock.h"
#include "counters.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

int64_t link_patience_us(int64_t usual_us)
{
    const char *patience = getenv("FLIGHTREC_PATIENCE_MS");
    long ms = patience == NULL ? 0 : strtol(patience, NULL, 10);

    return ms > 0 && ms <= PATIENCE_MAX_MS ? ms * 1000 : usual_us;
}

void link_open(struct link *link, const struct paths *paths, const char *role, const char *starter)
{
    link->ask_limit_us = link_patience_us(ASK_LIMIT_US);
    link->paths = paths;
    link->role = role;
    link->starter = starter;
    link->connection.fd = -1;
    link->retry_us = 0;
    link->tried_us = link->asked_us = link->blocked_until_us = link->breaker_until_us =
        INT64_MIN / 2;
}

static void count(const struct link *link, enum counter counter)
{
    counters_add(link->paths->counters, counter, 1);
}

static void hang_up(struct link *link)
{
    sock_close(&link->connection);
    queue_rewind(&link->queue);
    link->daemon_pid = 0;
}

/* Nothing good comes from this server: leave it alone for as long as a breaker is open. */
static void block(struct link *link, enum counter reason)
{
    hang_up(link);
    count(link, reason);
    link->blocked_until_us = clock_mono_us() + BREAKER_US;
}

static bool is_nobody_there(int error)
{
    return error == ENOENT || error == ECONNREFUSED;
}

static void back_off(struct link *link)
{
    link->retry_us = link->retry_us == 0 ? RETRY_MIN_US : link->retry_us * 2;
    if (link->retry_us > RETRY_MAX_US)
        link->retry_us = RETRY_MAX_US;
}

static bool is_due(const struct link *link, int64_t now_us, bool for_command)
{
    if (now_us < link->blocked_until_us)
        return false;
    if (for_command && now_us >= link->asked_us + RETRY_COMMAND_US)
        return true;
    return now_us >= link->tried_us + link->retry_us;
}

bool link_connect(struct link *link, bool for_command)
{
    int64_t now_us;

    if (link->connection.fd >= 0)
        return true;
    now_us = clock_mono_us();
    if (!is_due(link, now_us, for_command))
        return false;
    link->tried_us = now_us;
    if (for_command)
        link->asked_us = now_us;
    if (sock_connect(&link->connection, link->paths->socket, link->role) == 0) {
        queue_rewind(&link->queue);
        link->generation++;
        return true;
    }
    back_off(link);
    if (errno == EPERM)
        block(link, COUNTER_FOREIGN_SERVERS);
    else if (for_command && is_nobody_there(errno) && link->starter != NULL &&
             autostart_daemon(link->paths, link->starter) == 0)
        count(link, COUNTER_AUTOSTARTS);
    return false;
}

bool link_may_ask(const struct link *link)
{
    return link->connection.fd >= 0 && clock_mono_us() >= link->breaker_until_us;
}

static void flush(struct link *link)
{
    if (link->connection.fd >= 0 && sock_flush(&link->connection, &link->queue) < 0)
        hang_up(link);
}

void link_post(struct link *link, const uint8_t run[WIRE_ID_SIZE], uint8_t *bytes,
               struct frame frame)
{
    int given_up = queue_add(&link->queue, run, bytes, frame.size);

    if (given_up < 0 && errno == EBUSY) {
        /* 256 KiB behind and in the middle of a frame: this daemon does not read. */
        hang_up(link);
        given_up = queue_add(&link->queue, run, bytes, frame.size);
    }
    counters_add(link->paths->counters, COUNTER_LOST_RUNS, (uint64_t)(given_up < 0 ? 1 : given_up));
    flush(link);
    if (given_up >= 0)
        queue_clear_wants_reply(&link->queue, frame.wants_reply_at);
}

void link_forget(struct link *link, const uint8_t run[WIRE_ID_SIZE])
{
    queue_mark(&link->queue, run);
    queue_compact(&link->queue);
}

static int forget_committed(struct link *link, struct wire_message *message)
{
    uint8_t run[WIRE_ID_SIZE];
    int more;

    while ((more = wire_next_committed(message, run)) > 0)
        queue_mark(&link->queue, run);
    queue_compact(&link->queue);
    return more;
}

/* A daemon one release away still understands us, and we it. */
static int greet(struct link *link, const struct wire_message *message)
{
    int64_t protocol = message->hello.protocol;

    if (protocol < WIRE_PROTOCOL - 1 || protocol > WIRE_PROTOCOL + 1)
        return -1;
    link->retry_us = 0;
    link->daemon_pid = message->hello.pid;
    return 0;
}

/* Return 1 with a message for the caller, 0 where no more has come, -1 where the connection had to be
 * closed. */
static int next_message(struct link *link, struct wire_message *message)
{
    int found;

    while ((found = sock_next(&link->connection, message)) > 0) {
        if (message->tag == WIRE_COMMITTED)
            found = forget_committed(link, message);
        else if (message->tag == WIRE_HELLO)
            found = greet(link, message);
        else
            return 1;
        if (found < 0)
            break;
    }
    if (found < 0)
        block(link, COUNTER_BAD_FRAMES);
    return found;
}

/* Read once; return as next_message does. */
static int receive(struct link *link, struct wire_message *message)
{
    if (sock_receive(&link->connection) == 0)
        return next_message(link, message);
    hang_up(link);
    return -1;
}

static bool is_reply_to(const struct wire_message *message, const uint8_t run[WIRE_ID_SIZE],
                        enum wire_phase phase)
{
    return message->tag == WIRE_REPLY && message->reply.phase == (int64_t)phase &&
           memcmp(message->reply.run, run, WIRE_ID_SIZE) == 0;
}

/* Return true with the reply, false where the connection is gone or the time is over. */
static bool await(struct link *link, const uint8_t run[WIRE_ID_SIZE], enum wire_phase phase,
                  int64_t deadline_us, struct wire_message *message)
{
    while (link->connection.fd >= 0) {
        struct pollfd ready = {link->connection.fd, POLLIN, 0};
        int found, count_ready = poll(&ready, 1, clock_poll_ms(deadline_us));

        if (count_ready < 0 && errno != EINTR)
            break;
        if (count_ready == 0) {
            count(link, COUNTER_MISSED_REPLIES);
            link->breaker_until_us = clock_mono_us() + BREAKER_US;
            return false;
        }
        if (count_ready < 0)
            continue;
        for (found = receive(link, message); found > 0; found = next_message(link, message))
            if (is_reply_to(message, run, phase))
                return true;
    }
    return false;
}

enum wire_verdict link_wait(struct link *link, const uint8_t run[WIRE_ID_SIZE],
                            enum wire_phase phase, int64_t since_us, char text[WIRE_REPLY_MAX + 1])
{
    struct wire_message message;

    text[0] = '\0';
    if (!await(link, run, phase, since_us + link->ask_limit_us, &message))
        return VERDICT_NONE;
    if ((message.reply.verdict == VERDICT_HINT || message.reply.verdict == VERDICT_HOLD) &&
        message.reply.text.size > 0) {
        memcpy(text, message.reply.text.data, message.reply.text.size);
        text[message.reply.text.size] = '\0';
        return (enum wire_verdict)message.reply.verdict;
    }
    return message.reply.verdict == VERDICT_PRIVATE ? VERDICT_PRIVATE : VERDICT_NONE;
}

void link_serve(struct link *link)
{
    struct wire_message message;
    int found;

    if (link->connection.fd < 0 && queue_unsent(&link->queue).size > 0)
        link_connect(link, false);
    flush(link);
    if (link->connection.fd < 0)
        return;
    /* Replies that come here are late: nobody waits for them any more. */
    for (found = receive(link, &message); found > 0;)
        found = next_message(link, &message);
}

int link_fd(const struct link *link, short *events)
{
    *events = (short)(sock_is_behind(&link->connection, &link->queue) ? POLLIN | POLLOUT : POLLIN);
    return link->connection.fd;
}

int64_t link_due_us(const struct link *link)
{
    int64_t due_us = link->tried_us + link->retry_us;

    if (link->connection.fd >= 0 || queue_unsent(&link->queue).size == 0)
        return INT64_MAX;
    return due_us > link->blocked_until_us ? due_us : link->blocked_until_us;
}

void link_close(struct link *link)
{
    counters_add(link->paths->counters, COUNTER_LOST_RUNS, queue_runs(&link->queue));
    sock_close(&link->connection);
}
