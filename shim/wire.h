/*
 * What helper and daemon say to each other; daemon/flightrec/wire.py is the definition.
 *
 * A frame is a 32-bit little-endian length and a MessagePack array [tag, fields...]. Encoding goes
 * into a buffer of the caller's, decoding points into the caller's bytes: no heap, and every length
 * is checked before it is used.
 */
#ifndef FLIGHTREC_WIRE_H
#define FLIGHTREC_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    WIRE_PROTOCOL = 1,
    WIRE_LENGTH_SIZE = 4,
    WIRE_FRAME_MAX = 256 * 1024, /* bytes of a frame's body */
    WIRE_COMMAND_MAX = 16 * 1024,
    WIRE_TAIL_MAX = 8 * 1024,
    WIRE_REPLY_MAX = 4 * 1024,
    WIRE_PATH_MAX = 4096,
    WIRE_WORD_MAX = 256,
    WIRE_VARIABLE_MAX = 32 * 1024,
    WIRE_PIPESTATUS_MAX = 256,
    WIRE_ID_SIZE = 16,
    WIRE_HOOK_PAYLOAD_MAX = 1024 * 1024,
    WIRE_HOOK_REPLY_MAX = 32 * 1024,
    /* holds the largest CommandStarting: its command, three variables, and eight short fields */
    WIRE_OUT_MAX = 96 * 1024,
};

enum wire_tag {
    WIRE_HELLO = 1,
    WIRE_COMMAND_STARTING = 2,
    WIRE_COMMAND_FINISHED = 3,
    WIRE_REPLY = 4,
    WIRE_COMMITTED = 5,
    WIRE_SESSION_ENDED = 8,
    WIRE_HOOK_FIRED = 9,
    WIRE_HOOK_REPLY = 10,
};

enum wire_source { SOURCE_RELAY, SOURCE_PTY, SOURCE_SH, SOURCE_ENV, SOURCE_SHIM, SOURCE_HOOK };
enum wire_tail_source { TAIL_NONE, TAIL_STDERR, TAIL_MERGED, TAIL_STDOUT, TAIL_PANE };
enum wire_word_kind { WORD_UNKNOWN, WORD_ALIAS, WORD_FUNCTION, WORD_BUILTIN };
enum wire_phase { PHASE_START, PHASE_FINISH };
/* VERDICT_HOLD is a hint, and the person wants to be asked before the command runs. */
enum wire_verdict { VERDICT_NONE, VERDICT_HINT, VERDICT_PRIVATE, VERDICT_HOLD };

/* Bytes somewhere else. `data` is NULL where an optional field is absent. */
struct bytes {
    const void *data;
    size_t size;
};

struct bytes bytes_of(const char *text);

struct wire_hello {
    int64_t protocol;
    struct bytes version, role;
    int64_t pid;
};

struct wire_starting {
    uint8_t run[WIRE_ID_SIZE], session[WIRE_ID_SIZE];
    enum wire_source source;
    struct bytes shell;
    int64_t pid;
    struct bytes tty, cwd, command;
    uint64_t command_total; /* bytes; more than `command` has where it was cut */
    struct bytes boot;
    int64_t mono_us, wall_us;
    bool wants_reply;
    enum wire_word_kind word_kind;
    const uint8_t *parent; /* NULL or an id */
    int64_t depth;
    struct bytes path, virtual_env, conda_prefix, agent, tool_use_id, tmux_pane; /* optional */
};

struct wire_finished {
    uint8_t run[WIRE_ID_SIZE];
    int64_t exit, signal; /* WIRE_UNKNOWN where nobody could see it */
    int64_t pipestatus[WIRE_PIPESTATUS_MAX];
    size_t pipestatus_count;
    int64_t usec; /* or WIRE_UNKNOWN */
    struct bytes cwd;
    int64_t mono_us, wall_us;
    enum wire_tail_source tail_source;
    struct bytes tail;
    uint64_t tail_total;
    bool wants_reply;
};

#define WIRE_UNKNOWN INT64_MIN

struct wire_hook {
    uint8_t id[WIRE_ID_SIZE];
    struct bytes agent;
    bool wants_reply;
    const uint8_t *session;      /* NULL or an id */
    struct bytes client_session; /* optional */
    int64_t pid;
    struct bytes cwd, path; /* `path` is optional */
    uint64_t total;         /* bytes; more than `payload` has where it was too large to send */
    struct bytes payload;
};

/* A whole frame in the caller's buffer. `wants_reply_at` is the offset of that field's byte, so that
 * a copy which is sent again can say no; 0 where the message has none. */
struct frame {
    size_t size, wants_reply_at;
};

/* Each fills `out` and returns 0, or -1 with EMSGSIZE where the frame does not fit. Fields longer
 * than the wire allows must have been cut before. */
int wire_encode_hello(const struct wire_hello *, uint8_t *out, size_t room, struct frame *);
int wire_encode_starting(const struct wire_starting *, uint8_t *out, size_t room, struct frame *);
int wire_encode_finished(const struct wire_finished *, uint8_t *out, size_t room, struct frame *);
int wire_encode_session_ended(const uint8_t session[WIRE_ID_SIZE], int64_t wall_us, uint8_t *out,
                              size_t room, struct frame *);

/* All of the frame but the payload itself, whose bytes are to be sent behind it. */
int wire_encode_hook(const struct wire_hook *, uint8_t *out, size_t room, struct frame *);

/* Let a frame in `out` say that it wants no reply. */
void wire_clear_wants_reply(uint8_t *out, size_t wants_reply_at);

/* One decoded message; `bytes` fields point into the frame. */
struct wire_message {
    int64_t tag;
    struct wire_hello hello;
    struct {
        uint8_t run[WIRE_ID_SIZE];
        int64_t phase, verdict;
        struct bytes text;
    } reply; /* of a hook: `run` and `text` */
    struct {
        const uint8_t *at, *end;
        size_t left;
    } committed;
};

/* Return the body's length from the 4 bytes before it, or -1 with EPROTO when out of bounds. */
ssize_t wire_frame_length(const uint8_t prefix[WIRE_LENGTH_SIZE]);

/* Decode a body. A tag that helpers do not know is no error: the caller ignores the message.
 * Return 0, or -1 with EPROTO. */
int wire_decode(const uint8_t *body, size_t size, struct wire_message *);

/* Take the next run of a Committed message: 1, or 0 at the end, or -1 with EPROTO. */
int wire_next_committed(struct wire_message *, uint8_t run[WIRE_ID_SIZE]);

#endif
