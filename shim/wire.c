#include "wire.h"

#include <errno.h>
#include <string.h>

enum {
    MP_FIXARRAY = 0x90,
    MP_FIXSTR = 0xa0,
    MP_NIL = 0xc0,
    MP_FALSE = 0xc2,
    MP_TRUE = 0xc3,
    MP_BIN8 = 0xc4,
    MP_BIN16 = 0xc5,
    MP_BIN32 = 0xc6,
    MP_UINT8 = 0xcc,
    MP_UINT64 = 0xcf,
    MP_INT8 = 0xd0,
    MP_INT64 = 0xd3,
    MP_STR8 = 0xd9,
    MP_STR32 = 0xdb,
    MP_ARRAY16 = 0xdc,
    MP_ARRAY32 = 0xdd,
};

struct bytes bytes_of(const char *text)
{
    return (struct bytes){text, text == NULL ? 0 : strlen(text)};
}

/* ---- writing ---- */

/* `full` stays set once something did not fit, so that only the end needs a check. */
struct writer {
    uint8_t *start, *at, *end;
    bool full;
};

static void put_raw(struct writer *w, const void *data, size_t size)
{
    if ((size_t)(w->end - w->at) < size) {
        w->full = true;
        return;
    }
    if (size > 0)
        memcpy(w->at, data, size);
    w->at += size;
}

static void put_byte(struct writer *w, unsigned byte)
{
    uint8_t raw = (uint8_t)byte;

    put_raw(w, &raw, 1);
}

static void put_big_endian(struct writer *w, uint64_t value, int size)
{
    for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
        put_byte(w, (unsigned)(value >> shift) & 0xff);
}

/* The shortest form, as the daemon's encoder chooses it. */
static void put_uint(struct writer *w, uint64_t value)
{
    int log2_size = value <= 0xff ? 0 : value <= 0xffff ? 1 : value <= 0xffffffff ? 2 : 3;

    if (value < 0x80) {
        put_byte(w, (unsigned)value);
        return;
    }
    put_byte(w, (unsigned)(MP_UINT8 + log2_size));
    put_big_endian(w, value, 1 << log2_size);
}

static void put_int(struct writer *w, int64_t value)
{
    int log2_size = value >= INT8_MIN ? 0 : value >= INT16_MIN ? 1 : value >= INT32_MIN ? 2 : 3;

    if (value >= 0) {
        put_uint(w, (uint64_t)value);
        return;
    }
    if (value >= -32) {
        put_byte(w, (unsigned)(value & 0xff));
        return;
    }
    put_byte(w, (unsigned)(MP_INT8 + log2_size));
    put_big_endian(w, (uint64_t)value, 1 << log2_size);
}

static void put_known(struct writer *w, int64_t value)
{
    if (value == WIRE_UNKNOWN)
        put_byte(w, MP_NIL);
    else
        put_int(w, value);
}

static void put_array(struct writer *w, size_t count)
{
    if (count < 16) {
        put_byte(w, (unsigned)(MP_FIXARRAY + count));
        return;
    }
    put_byte(w, MP_ARRAY16);
    put_big_endian(w, count, 2);
}

static void put_bytes_header(struct writer *w, size_t size)
{
    if (size <= 0xff) {
        put_byte(w, MP_BIN8);
        put_big_endian(w, size, 1);
    } else if (size <= 0xffff) {
        put_byte(w, MP_BIN16);
        put_big_endian(w, size, 2);
    } else {
        put_byte(w, MP_BIN32);
        put_big_endian(w, size, 4);
    }
}

static void put_bytes(struct writer *w, const void *data, size_t size)
{
    put_bytes_header(w, size);
    put_raw(w, data, size);
}

static void put_text(struct writer *w, struct bytes text)
{
    put_bytes(w, text.data, text.size);
}

static void put_optional(struct writer *w, struct bytes text)
{
    if (text.data == NULL)
        put_byte(w, MP_NIL);
    else
        put_text(w, text);
}

static void put_optional_id(struct writer *w, const uint8_t *id)
{
    put_optional(w, (struct bytes){id, WIRE_ID_SIZE});
}

static void put_bool(struct writer *w, bool value)
{
    put_byte(w, value ? MP_TRUE : MP_FALSE);
}

static struct writer begin(uint8_t *out, size_t room, enum wire_tag tag, size_t fields)
{
    struct writer w = {out, out, out + room, false};

    put_raw(&w, (const uint8_t[WIRE_LENGTH_SIZE]){0}, WIRE_LENGTH_SIZE);
    put_array(&w, 1 + fields);
    put_uint(&w, tag);
    return w;
}

/* `behind` bytes of the same frame follow what was written. */
static int finish_before(struct writer *w, size_t behind, struct frame *frame)
{
    size_t size = (size_t)(w->at - w->start), body = size - WIRE_LENGTH_SIZE + behind;

    if (w->full || size - WIRE_LENGTH_SIZE > WIRE_FRAME_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    for (int i = 0; i < WIRE_LENGTH_SIZE; i++)
        w->start[i] = (uint8_t)(body >> (8 * i));
    *frame = (struct frame){size, 0};
    return 0;
}

static int finish(struct writer *w, size_t wants_reply_at, struct frame *frame)
{
    int result = finish_before(w, 0, frame);

    frame->wants_reply_at = wants_reply_at;
    return result;
}

int wire_encode_hello(const struct wire_hello *hello, uint8_t *out, size_t room, struct frame *frame)
{
    struct writer w = begin(out, room, WIRE_HELLO, 4);

    put_int(&w, hello->protocol);
    put_text(&w, hello->version);
    put_text(&w, hello->role);
    put_int(&w, hello->pid);
    return finish(&w, 0, frame);
}

int wire_encode_starting(const struct wire_starting *run, uint8_t *out, size_t room,
                         struct frame *frame)
{
    struct writer w = begin(out, room, WIRE_COMMAND_STARTING, 22);
    size_t wants_reply_at;

    put_bytes(&w, run->run, WIRE_ID_SIZE);
    put_bytes(&w, run->session, WIRE_ID_SIZE);
    put_uint(&w, run->source);
    put_text(&w, run->shell);
    put_int(&w, run->pid);
    put_text(&w, run->tty);
    put_text(&w, run->cwd);
    put_text(&w, run->command);
    put_uint(&w, run->command_total);
    put_text(&w, run->boot);
    put_int(&w, run->mono_us);
    put_int(&w, run->wall_us);
    wants_reply_at = (size_t)(w.at - w.start);
    put_bool(&w, run->wants_reply);
    put_uint(&w, run->word_kind);
    put_optional_id(&w, run->parent);
    put_int(&w, run->depth);
    put_optional(&w, run->path);
    put_optional(&w, run->virtual_env);
    put_optional(&w, run->conda_prefix);
    put_optional(&w, run->agent);
    put_optional(&w, run->tool_use_id);
    put_optional(&w, run->tmux_pane);
    return finish(&w, wants_reply_at, frame);
}

int wire_encode_finished(const struct wire_finished *run, uint8_t *out, size_t room,
                         struct frame *frame)
{
    struct writer w = begin(out, room, WIRE_COMMAND_FINISHED, 12);

    put_bytes(&w, run->run, WIRE_ID_SIZE);
    put_known(&w, run->exit);
    put_known(&w, run->signal);
    put_array(&w, run->pipestatus_count);
    for (size_t i = 0; i < run->pipestatus_count; i++)
        put_int(&w, run->pipestatus[i]);
    put_known(&w, run->usec);
    put_text(&w, run->cwd);
    put_int(&w, run->mono_us);
    put_int(&w, run->wall_us);
    put_uint(&w, run->tail_source);
    put_text(&w, run->tail);
    put_uint(&w, run->tail_total);
    put_bool(&w, run->wants_reply);
    return finish(&w, (size_t)(w.at - w.start) - 1, frame);
}

int wire_encode_session_ended(const uint8_t session[WIRE_ID_SIZE], int64_t wall_us, uint8_t *out,
                              size_t room, struct frame *frame)
{
    struct writer w = begin(out, room, WIRE_SESSION_ENDED, 2);

    put_bytes(&w, session, WIRE_ID_SIZE);
    put_int(&w, wall_us);
    return finish(&w, 0, frame);
}

int wire_encode_hook(const struct wire_hook *hook, uint8_t *out, size_t room, struct frame *frame)
{
    struct writer w = begin(out, room, WIRE_HOOK_FIRED, 10);

    put_bytes(&w, hook->id, WIRE_ID_SIZE);
    put_text(&w, hook->agent);
    put_bool(&w, hook->wants_reply);
    put_optional_id(&w, hook->session);
    put_optional(&w, hook->client_session);
    put_int(&w, hook->pid);
    put_text(&w, hook->cwd);
    put_optional(&w, hook->path);
    put_uint(&w, hook->total);
    put_bytes_header(&w, hook->payload.size);
    return finish_before(&w, hook->payload.size, frame);
}

void wire_clear_wants_reply(uint8_t *out, size_t wants_reply_at)
{
    if (wants_reply_at > 0)
        out[wants_reply_at] = MP_FALSE;
}

/* ---- reading ---- */

/* `bad` stays set: a value read after that is 0 or empty. */
struct reader {
    const uint8_t *at, *end;
    bool bad;
};

static size_t left(const struct reader *r)
{
    return (size_t)(r->end - r->at);
}

static const uint8_t *take(struct reader *r, size_t size)
{
    const uint8_t *at = r->at;

    if (r->bad || left(r) < size) {
        r->bad = true;
        return NULL;
    }
    r->at += size;
    return at;
}

static uint64_t take_big_endian(struct reader *r, size_t size)
{
    const uint8_t *at = take(r, size);
    uint64_t value = 0;

    for (size_t i = 0; at != NULL && i < size; i++)
        value = value << 8 | at[i];
    return value;
}

static int64_t take_int(struct reader *r)
{
    unsigned kind = (unsigned)take_big_endian(r, 1);
    uint64_t value;

    if (kind < 0x80)
        return (int64_t)kind;
    if (kind >= 0xe0)
        return (int8_t)kind;
    if (kind >= MP_UINT8 && kind <= MP_UINT64) {
        value = take_big_endian(r, (size_t)1 << (kind - MP_UINT8));
        r->bad |= value > INT64_MAX;
        return r->bad ? 0 : (int64_t)value;
    }
    if (kind >= MP_INT8 && kind <= MP_INT64) {
        int bits = 8 << (kind - MP_INT8);
        value = take_big_endian(r, (size_t)bits / 8) << (64 - bits);
        return (int64_t)value >> (64 - bits);
    }
    r->bad = true;
    return 0;
}

/* bin and str alike: a daemon may one day send text as str. */
static struct bytes take_bytes(struct reader *r)
{
    unsigned kind = (unsigned)take_big_endian(r, 1);
    size_t size;
    struct bytes found = {NULL, 0};

    if (kind >= MP_BIN8 && kind <= MP_BIN32)
        size = (size_t)take_big_endian(r, (size_t)1 << (kind - MP_BIN8));
    else if (kind >= MP_STR8 && kind <= MP_STR32)
        size = (size_t)take_big_endian(r, (size_t)1 << (kind - MP_STR8));
    else if ((kind & 0xe0) == MP_FIXSTR)
        size = kind & 0x1f;
    else {
        r->bad = true;
        return found;
    }
    found.data = take(r, size);
    found.size = found.data == NULL ? 0 : size;
    return found;
}

static void take_id(struct reader *r, uint8_t id[WIRE_ID_SIZE])
{
    struct bytes raw = take_bytes(r);

    if (raw.size != WIRE_ID_SIZE) {
        r->bad = true;
        return;
    }
    memcpy(id, raw.data, WIRE_ID_SIZE);
}

static size_t take_array(struct reader *r)
{
    unsigned kind = (unsigned)take_big_endian(r, 1);

    if ((kind & 0xf0) == MP_FIXARRAY)
        return kind & 0x0f;
    if (kind == MP_ARRAY16)
        return (size_t)take_big_endian(r, 2);
    if (kind == MP_ARRAY32)
        return (size_t)take_big_endian(r, 4);
    r->bad = true;
    return 0;
}

ssize_t wire_frame_length(const uint8_t prefix[WIRE_LENGTH_SIZE])
{
    uint32_t length = (uint32_t)prefix[0] | (uint32_t)prefix[1] << 8 | (uint32_t)prefix[2] << 16 |
                      (uint32_t)prefix[3] << 24;

    if (length == 0 || length > WIRE_FRAME_MAX) {
        errno = EPROTO;
        return -1;
    }
    return (ssize_t)length;
}

/* Fields that a newer daemon adds behind these stay unread; those that an older one lacks keep their
 * zero. `fields` counts those present. */
static void decode_hello(struct reader *r, size_t fields, struct wire_message *message)
{
    message->hello.protocol = take_int(r);
    message->hello.version = take_bytes(r);
    if (fields > 2)
        message->hello.role = take_bytes(r);
    if (fields > 3)
        message->hello.pid = take_int(r);
}

static void decode_reply(struct reader *r, size_t fields, struct wire_message *message)
{
    take_id(r, message->reply.run);
    message->reply.phase = take_int(r);
    message->reply.verdict = take_int(r);
    if (fields > 3)
        message->reply.text = take_bytes(r);
    r->bad |= message->reply.text.size > WIRE_REPLY_MAX;
}

static void decode_hook_reply(struct reader *r, struct wire_message *message)
{
    take_id(r, message->reply.run);
    message->reply.text = take_bytes(r);
    r->bad |= message->reply.text.size > WIRE_HOOK_REPLY_MAX;
}

static void decode_committed(struct reader *r, struct wire_message *message)
{
    size_t count = take_array(r);

    r->bad |= count > left(r); /* each run takes more than a byte */
    message->committed.at = r->at;
    message->committed.end = r->end;
    message->committed.left = r->bad ? 0 : count;
}

int wire_decode(const uint8_t *body, size_t size, struct wire_message *message)
{
    struct reader r = {body, body + size, false};
    size_t count = take_array(&r);

    *message = (struct wire_message){.tag = take_int(&r)};
    if (!r.bad && message->tag == WIRE_HELLO)
        decode_hello(&r, count - 1, message);
    else if (!r.bad && message->tag == WIRE_REPLY)
        decode_reply(&r, count - 1, message);
    else if (!r.bad && message->tag == WIRE_HOOK_REPLY)
        decode_hook_reply(&r, message);
    else if (!r.bad && message->tag == WIRE_COMMITTED)
        decode_committed(&r, message);
    if (r.bad || count == 0) {
        errno = EPROTO;
        return -1;
    }
    return 0;
}

int wire_next_committed(struct wire_message *message, uint8_t run[WIRE_ID_SIZE])
{
    struct reader r = {message->committed.at, message->committed.end, false};

    if (message->committed.left == 0)
        return 0;
    take_id(&r, run);
    if (r.bad) {
        errno = EPROTO;
        return -1;
    }
    message->committed.at = r.at;
    message->committed.left--;
    return 1;
}
