#include "record.h"

#include <string.h>

static const struct {
    char kind;
    size_t fields;
} RECORDS[] = {{'S', 4}, {'L', 4}, {'F', 5}, {'E', 3}, {'H', 1}, {'X', 1}};

static size_t fields_of(char kind)
{
    for (size_t i = 0; i < sizeof RECORDS / sizeof *RECORDS; i++)
        if (RECORDS[i].kind == kind)
            return RECORDS[i].fields;
    return 0;
}

static void reset(struct record_reader *r)
{
    r->used = 0;
    r->field = 0;
    memset(r->cut, 0, sizeof r->cut);
}

/* Keep what fits, with room for the field's NUL and those of the fields that may still come. */
static void append(struct record_reader *r, const char *data, size_t size)
{
    size_t limit = RECORD_MAX - RECORD_FIELDS;
    size_t room = r->used < limit ? limit - r->used : 0;
    size_t kept = size < room ? size : room;

    memcpy(r->bytes + r->used, data, kept);
    r->used += kept;
    r->cut[r->field] += size - kept;
}

static void fill(const struct record_reader *r, size_t fields, struct record *record)
{
    *record = (struct record){.kind = r->bytes[0]};
    for (size_t i = 0; i < fields; i++) {
        size_t start = r->starts[i] + (i == 0);
        record->fields[i] = r->bytes + start;
        record->sizes[i] = strlen(record->fields[i]);
        record->totals[i] = record->sizes[i] + r->cut[i];
    }
}

bool record_next(struct record_reader *r, const char **data, size_t *size, struct record *record)
{
    while (*size > 0) {
        const char *end = memchr(*data, '\0', *size);
        size_t length = end == NULL ? *size : (size_t)(end - *data);
        size_t fields;

        if (r->field == 0 && r->used == 0)
            r->starts[0] = 0;
        append(r, *data, length);
        *data += length;
        *size -= length;
        if (end == NULL)
            return false;
        *data += 1;
        *size -= 1;
        r->bytes[r->used++] = '\0';
        fields = fields_of(r->bytes[0]);
        if (++r->field < fields) {
            r->starts[r->field] = r->used;
            continue;
        }
        /* An unknown letter: not from our script. Drop the field and go on with the next one. */
        if (fields > 0)
            fill(r, fields, record);
        reset(r);
        if (fields > 0)
            return true;
    }
    return false;
}
