/*
 * Encodes and decodes what tests/test_wire.py asks for, with the helper's own wire.c; never shipped.
 *
 * A line of standard input is a message: its name and its fields in order, bytes as x and hex digits,
 * what is absent as -. The answer is the frame in hex. `decode` takes a frame's body instead.
 */
#include "hint_filter.h"
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 3 * 1024 * 1024 };

static char *next_word(void)
{
    char *word = strtok(NULL, " \n");

    if (word == NULL) {
        fputs("wire-check: a field is missing\n", stderr);
        exit(2);
    }
    return word;
}

/* In place: two digits become one byte. */
static struct bytes next_bytes(void)
{
    char *word = next_word();
    size_t size = strlen(word) / 2;

    if (word[0] != 'x')
        return (struct bytes){NULL, 0};
    for (size_t i = 0; i < size; i++) {
        char pair[] = {word[1 + 2 * i], word[2 + 2 * i], '\0'};
        word[i] = (char)strtoul(pair, NULL, 16);
    }
    return (struct bytes){word, size};
}

static int64_t next_number(void)
{
    const char *word = next_word();

    return strcmp(word, "-") == 0 ? WIRE_UNKNOWN : strtoll(word, NULL, 10);
}

static void next_id(uint8_t id[WIRE_ID_SIZE])
{
    struct bytes raw = next_bytes();

    memcpy(id, raw.data, WIRE_ID_SIZE);
}

static void print_bytes(const void *data, size_t size)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < size; i++)
        printf("%02x", at[i]);
}

static void print_frame(int result, const uint8_t *out, struct frame frame)
{
    if (result < 0)
        printf("too large");
    else
        print_bytes(out, frame.size);
}

static void check_hello(uint8_t *out)
{
    struct wire_hello hello;
    struct frame frame = {0, 0};

    hello.protocol = next_number();
    hello.version = next_bytes();
    hello.role = next_bytes();
    hello.pid = next_number();
    print_frame(wire_encode_hello(&hello, out, WIRE_OUT_MAX, &frame), out, frame);
}

static void check_starting(uint8_t *out)
{
    struct wire_starting run = {.depth = 0};
    uint8_t parent[WIRE_ID_SIZE];
    struct bytes raw_parent;
    struct frame frame = {0, 0};

    next_id(run.run);
    next_id(run.session);
    run.source = (enum wire_source)next_number();
    run.shell = next_bytes();
    run.pid = next_number();
    run.tty = next_bytes();
    run.cwd = next_bytes();
    run.command = next_bytes();
    run.command_total = (uint64_t)next_number();
    run.boot = next_bytes();
    run.mono_us = next_number();
    run.wall_us = next_number();
    run.wants_reply = next_number() != 0;
    run.word_kind = (enum wire_word_kind)next_number();
    raw_parent = next_bytes();
    if (raw_parent.data != NULL)
        run.parent = memcpy(parent, raw_parent.data, WIRE_ID_SIZE);
    run.depth = next_number();
    run.path = next_bytes();
    run.virtual_env = next_bytes();
    run.conda_prefix = next_bytes();
    run.agent = next_bytes();
    run.tool_use_id = next_bytes();
    run.tmux_pane = next_bytes();
    print_frame(wire_encode_starting(&run, out, WIRE_OUT_MAX, &frame), out, frame);
    if (frame.wants_reply_at > 0 && (out[frame.wants_reply_at] & ~1u) != 0xc2)
        printf(" wants_reply is elsewhere");
}

static void check_finished(uint8_t *out)
{
    struct wire_finished run = {.usec = 0};
    struct frame frame = {0, 0};

    next_id(run.run);
    run.exit = next_number();
    run.signal = next_number();
    run.pipestatus_count = (size_t)next_number();
    for (size_t i = 0; i < run.pipestatus_count; i++)
        run.pipestatus[i] = next_number();
    run.usec = next_number();
    run.cwd = next_bytes();
    run.mono_us = next_number();
    run.wall_us = next_number();
    run.tail_source = (enum wire_tail_source)next_number();
    run.tail = next_bytes();
    run.tail_total = (uint64_t)next_number();
    run.wants_reply = next_number() != 0;
    print_frame(wire_encode_finished(&run, out, WIRE_OUT_MAX, &frame), out, frame);
    if (frame.wants_reply_at > 0 && (out[frame.wants_reply_at] & ~1u) != 0xc2)
        printf(" wants_reply is elsewhere");
}

static void check_ended(uint8_t *out)
{
    uint8_t session[WIRE_ID_SIZE];
    struct frame frame = {0, 0};

    next_id(session);
    print_frame(wire_encode_session_ended(session, next_number(), out, WIRE_OUT_MAX, &frame), out,
                frame);
}

static void check_hook(uint8_t *out)
{
    struct wire_hook hook;
    uint8_t session[WIRE_ID_SIZE];
    struct bytes raw_session;
    struct frame frame = {0, 0};
    int result;

    next_id(hook.id);
    hook.agent = next_bytes();
    hook.wants_reply = next_number() != 0;
    raw_session = next_bytes();
    hook.session = raw_session.data == NULL ? NULL : memcpy(session, raw_session.data, WIRE_ID_SIZE);
    hook.client_session = next_bytes();
    hook.pid = next_number();
    hook.cwd = next_bytes();
    hook.path = next_bytes();
    hook.total = (uint64_t)next_number();
    hook.payload = next_bytes();
    result = wire_encode_hook(&hook, out, WIRE_OUT_MAX, &frame);
    print_frame(result, out, frame);
    if (result == 0)
        print_bytes(hook.payload.data, hook.payload.size);
}

static void print_committed(struct wire_message *message)
{
    uint8_t run[WIRE_ID_SIZE];
    int more;

    printf("committed");
    while ((more = wire_next_committed(message, run)) > 0) {
        printf(" x");
        print_bytes(run, sizeof run);
    }
    if (more < 0)
        printf(" bad");
}

static void check_decode(uint8_t *unused)
{
    struct bytes body = next_bytes();
    /* A copy of exactly this size: whatever is read beyond it, the sanitizer sees. */
    uint8_t *copy = malloc(body.size);
    struct wire_message message;

    (void)unused;
    memcpy(copy, body.data, body.size);
    if (wire_decode(copy, body.size, &message) < 0) {
        printf("bad");
    } else if (message.tag == WIRE_HELLO) {
        printf("hello %lld x", (long long)message.hello.protocol);
        print_bytes(message.hello.version.data, message.hello.version.size);
    } else if (message.tag == WIRE_REPLY) {
        printf("reply x");
        print_bytes(message.reply.run, WIRE_ID_SIZE);
        printf(" %lld %lld x", (long long)message.reply.phase, (long long)message.reply.verdict);
        print_bytes(message.reply.text.data, message.reply.text.size);
    } else if (message.tag == WIRE_HOOK_REPLY) {
        printf("hook-reply x");
        print_bytes(message.reply.run, WIRE_ID_SIZE);
        printf(" x");
        print_bytes(message.reply.text.data, message.reply.text.size);
    } else if (message.tag == WIRE_COMMITTED) {
        print_committed(&message);
    } else {
        printf("other %lld", (long long)message.tag);
    }
    free(copy);
}

/* filter xPATH PID xLINE */
static void check_filter(uint8_t *unused)
{
    static struct hint_filter filter;
    static unsigned generation;
    struct bytes path = next_bytes();
    char name[4096];
    int64_t pid;
    struct bytes line;

    (void)unused;
    snprintf(name, sizeof name, "%.*s", (int)path.size, (const char *)path.data);
    pid = next_number();
    line = next_bytes();
    printf(hint_filter_may_match(&filter, name, pid, ++generation, line.data, line.size) ? "ask" : "go");
}

static const struct {
    const char *name;
    void (*check)(uint8_t *out);
} CHECKS[] = {{"hello", check_hello},
              {"starting", check_starting},
              {"finished", check_finished},
              {"ended", check_ended},
              {"hook", check_hook},
              {"decode", check_decode},
              {"filter", check_filter}};

int main(void)
{
    static char line[LINE_MAX_BYTES];
    static uint8_t out[WIRE_OUT_MAX];

    while (fgets(line, sizeof line, stdin) != NULL) {
        const char *name = strtok(line, " \n");
        for (size_t i = 0; name != NULL && i < sizeof CHECKS / sizeof *CHECKS; i++)
            if (strcmp(name, CHECKS[i].name) == 0)
                CHECKS[i].check(out);
        putchar('\n');
        fflush(stdout);
    }
    return 0;
}
