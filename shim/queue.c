#include "queue.h"

#include <errno.h>
#include <string.h>

static bool same_run(const uint8_t *one, const uint8_t *other)
{
    return memcmp(one, other, WIRE_ID_SIZE) == 0;
}

/* The connection has begun this frame and not ended it: taking it out would garble the stream. */
static bool is_under_way(const struct queue *q, const struct queue_entry *entry)
{
    return entry->offset < q->sent && q->sent < entry->offset + entry->size;
}

void queue_mark(struct queue *q, const uint8_t run[WIRE_ID_SIZE])
{
    for (size_t i = 0; i < q->count; i++)
        if (same_run(q->entries[i].run, run))
            q->entries[i].done = true;
}

void queue_compact(struct queue *q)
{
    size_t kept = 0, used = 0, sent = 0;

    for (size_t i = 0; i < q->count; i++) {
        struct queue_entry entry = q->entries[i];
        if (entry.done && !is_under_way(q, &entry))
            continue;
        if (entry.offset < q->sent)
            sent = used + (q->sent - entry.offset < entry.size ? q->sent - entry.offset : entry.size);
        memmove(q->bytes + used, q->bytes + entry.offset, entry.size);
        entry.offset = (uint32_t)used;
        used += entry.size;
        q->entries[kept++] = entry;
    }
    q->count = kept;
    q->used = used;
    q->sent = sent;
}

static bool fits(const struct queue *q, size_t size)
{
    return q->count < QUEUE_ENTRIES && QUEUE_MAX - q->used >= size;
}

int queue_add(struct queue *q, const uint8_t run[WIRE_ID_SIZE], const uint8_t *frame, size_t size)
{
    int given_up = 0;
    struct queue_entry *entry;

    if (size > QUEUE_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    while (!fits(q, size)) {
        if (is_under_way(q, &q->entries[0])) {
            errno = EBUSY;
            return -1;
        }
        queue_mark(q, q->entries[0].run);
        queue_compact(q);
        given_up++;
    }
    entry = &q->entries[q->count++];
    *entry = (struct queue_entry){.offset = (uint32_t)q->used, .size = (uint32_t)size};
    memcpy(entry->run, run, WIRE_ID_SIZE);
    memcpy(q->bytes + q->used, frame, size);
    q->used += size;
    return given_up;
}

void queue_clear_wants_reply(struct queue *q, size_t wants_reply_at)
{
    if (q->count > 0)
        wire_clear_wants_reply(q->bytes + q->entries[q->count - 1].offset, wants_reply_at);
}

size_t queue_runs(const struct queue *q)
{
    size_t runs = 0;

    for (size_t i = 0; i < q->count; i++) {
        bool seen = false;
        for (size_t j = i; j > 0 && !seen; j--)
            seen = same_run(q->entries[j - 1].run, q->entries[i].run);
        runs += !seen;
    }
    return runs;
}

struct bytes queue_unsent(const struct queue *q)
{
    return (struct bytes){q->bytes + q->sent, q->used - q->sent};
}

void queue_advance(struct queue *q, size_t sent)
{
    q->sent += sent;
}

void queue_rewind(struct queue *q)
{
    q->sent = 0;
}
