#include "record.h"

#include <string.h>

static const struct {
    char kind;
    size_t fields; /* before the last one */
} RECORDS[] = {{'S', 3}, {'L', 3}, {'F', 4}, {'E', 3}, {'H', 1}, {'X', 1}, {'P', 0}, {'G', 0}};

static bool is_valid(char kind, size_t fields)
{
    for (size_t i = 0; i < sizeof RECORDS / sizeof *RECORDS; i++)
        if (RECORDS[i].kind == kind)
            return RECORDS[i].fields == fields;
    return false;
}

static void reset(struct record_reader *r)
{
    r->used = r->field = 0;
    r->starts[0] = 0;
    memset(r->cut, 0, sizeof r->cut);
}

/* Keep what fits. The first field leaves room for those after it, each for its NUL. */
static void append(struct record_reader *r, const char *data, size_t size)
{
    size_t limit = r->field == 0 ? RECORD_LONGEST : RECORD_MAX - RECORD_FIELDS - 1;
    size_t room = r->used < limit ? limit - r->used : 0;
    size_t kept = size < room ? size : room;

    memcpy(r->bytes + r->used, data, kept);
    r->used += kept;
    r->cut[r->field] += size - kept;
}

/* The field that was just ended closes a record: it is marked and as many came before it as should. */
static bool close_record(struct record_reader *r, struct record *record)
{
    const char *last = r->bytes + r->starts[r->field];

    if (last[0] != RECORD_MARK || !is_valid(last[1], r->field))
        return false;
    *record = (struct record){.kind = last[1], .head = last + 2};
    for (size_t i = 0; i < r->field; i++) {
        record->fields[i] = r->bytes + r->starts[i];
        record->sizes[i] = strlen(record->fields[i]);
        record->totals[i] = record->sizes[i] + r->cut[i];
    }
    return true;
}

/* Return whether a record is whole. What does not come from our scripts is dropped: at a mark where
 * none should be, or after too many fields without one. */
static bool end_field(struct record_reader *r, struct record *record)
{
    bool is_marked = r->bytes[r->starts[r->field]] == RECORD_MARK;
    bool is_whole;

    r->bytes[r->used++] = '\0';
    is_whole = close_record(r, record);
    if (is_whole || is_marked || r->field == RECORD_FIELDS)
        reset(r);
    else
        r->starts[++r->field] = r->used;
    return is_whole;
}

bool record_next(struct record_reader *r, const char **data, size_t *size, struct record *record)
{
    while (*size > 0) {
        const char *end = memchr(*data, '\0', *size);
        size_t length = end == NULL ? *size : (size_t)(end - *data);

        append(r, *data, length);
        *data += length;
        *size -= length;
        if (end == NULL)
            return false;
        *data += 1;
        *size -= 1;
        if (end_field(r, record))
            return true;
    }
    return false;
}

bool record_is_partial(const struct record_reader *r)
{
    return r->used > 0 || r->cut[0] > 0;
}
