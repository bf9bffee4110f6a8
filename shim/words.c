#include "words.h"

#include <stdbool.h>
#include <string.h>

/* Letters, digits and what no shell looks at. */
static const char SAFE[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           "@%+=:,./_-";

struct line {
    char *bytes;
    size_t room;
    uint64_t total;
};

static void put(struct line *line, const char *bytes, size_t size)
{
    size_t left = line->total < line->room ? line->room - (size_t)line->total : 0;

    memcpy(line->bytes + line->room - left, bytes, size < left ? size : left);
    line->total += size;
}

static void put_word(struct line *line, const char *word)
{
    if (word[0] != '\0' && word[strspn(word, SAFE)] == '\0') {
        put(line, word, strlen(word));
        return;
    }
    put(line, "'", 1);
    for (;;) {
        size_t size = strcspn(word, "'");
        put(line, word, size);
        if (word[size] == '\0')
            break;
        put(line, "'\\''", 4);
        word += size + 1;
    }
    put(line, "'", 1);
}

uint64_t words_join(char *line, size_t room, const char *first, char *const *others)
{
    struct line out = {line, room, 0};

    put_word(&out, first);
    for (; *others != NULL; others++) {
        put(&out, " ", 1);
        put_word(&out, *others);
    }
    return out.total;
}
