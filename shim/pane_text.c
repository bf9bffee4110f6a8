#include "pane_text.h"

#include <string.h>

enum {
    GAP = 2,          /* blanks, at least, between a line and what a shell shows at the right */
    RIGHT_MARGIN = 4, /* columns: where that ends, and a few for characters of two columns */
    PROMPT_BEGIN = 5, /* by so many bytes, or its last two, a prompt is known again */
    PROMPT_END = 2,
};

/* A line, or part of one. */
struct line {
    const char *at, *end;
};

static struct line last_line(const char *text, const char *end)
{
    const char *newline = memrchr(text, '\n', (size_t)(end - text));

    return (struct line){newline == NULL ? text : newline + 1, end};
}

static const char *without(const char *set, const char *at, const char *end)
{
    while (end > at && strchr(set, end[-1]) != NULL)
        end--;
    return end;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Whether a prompt may end here: not in the midst of a word. */
static bool may_be_prompt(struct line line, const char *end)
{
    char byte = end > line.at ? end[-1] : ' ';

    return !is_digit(byte) && (byte < 'a' || byte > 'z') && (byte < 'A' || byte > 'Z') &&
           strchr("/_-.", byte) == NULL;
}

static bool ends_in(struct line line, struct line part)
{
    size_t size = (size_t)(part.end - part.at);

    return (size_t)(line.end - line.at) >= size && memcmp(line.end - size, part.at, size) == 0;
}

/* ---- the line that was typed ---- */

static size_t width(struct line line)
{
    size_t count = 0;

    for (; line.at < line.end; line.at++)
        count += (*line.at & 0xc0) != 0x80; /* the first byte of a character */
    return count;
}

/* Where the line ends in `typed`, or has it before a gap and a prompt at the right margin; NULL where it
 * does not. */
static const char *find_typed(struct line line, size_t columns, struct line typed)
{
    size_t size = (size_t)(typed.end - typed.at);
    const char *at = line.at, *end = line.end;

    if (ends_in(line, typed) && may_be_prompt(line, end - size))
        return end - size;
    if (width(line) + RIGHT_MARGIN < columns)
        return NULL;
    for (; (at = memmem(at, (size_t)(end - at), typed.at, size)) != NULL; at++)
        if (end - at > (ptrdiff_t)size + GAP && memcmp(at + size, "  ", GAP) == 0 &&
            may_be_prompt(line, at))
            return at;
    return NULL;
}

/* A line that goes on with a command has ended in `typed`: return where what it goes on from ends in
 * that, or NULL. Both shells show a prompt that ends in "> ", and bash keeps several lines as one. */
static const char *continued(struct line line, struct line typed)
{
    const char *prompt = memmem(line.at, (size_t)(line.end - line.at), "> ", 2);

    if (line.end > line.at && line.end[-1] == '>')
        line.at = line.end; /* an empty line of a text */
    else if (prompt != NULL)
        line.at = prompt + 2;
    else
        return NULL;
    return ends_in(typed, line) ? without(" ;\n\\", typed.at, typed.end - (line.end - line.at)) : NULL;
}

/* Find the first line of the command whose last is `line`, and set `prompt` to what stands before it. */
static bool find_command(const char *text, struct line line, size_t columns, struct line typed,
                         struct line *prompt)
{
    line.end = without(" ", line.at, line.end);
    for (;;) {
        const char *found = find_typed(line, columns, typed);
        struct line above;
        if (found != NULL) {
            *prompt = (struct line){line.at, found};
            return true;
        }
        if (line.at == text)
            return false;
        above = last_line(text, line.at - 1);
        if (width(above) == columns && ends_in(typed, line)) {
            typed.end -= line.end - line.at; /* zsh goes on there by itself */
        } else {
            typed.end = continued(line, typed);
            above.end = without(" \\", above.at, above.end);
        }
        if (typed.end == NULL || typed.end == typed.at)
            return false;
        line = above;
    }
}

/* ---- another prompt ---- */

static bool begins_alike(struct line line, struct line prompt)
{
    size_t size = (size_t)(prompt.end - prompt.at), i = 0;

    if (size > PROMPT_BEGIN)
        size = PROMPT_BEGIN;
    if (size == 0 || (size_t)(line.end - line.at) < size)
        return false;
    while (i < size && (line.at[i] == prompt.at[i] || (is_digit(line.at[i]) && is_digit(prompt.at[i]))))
        i++; /* digits: of a time */
    return i == size;
}

/* Behind whatever stands first in another folder. */
static bool has_end_of(struct line prompt, struct line line)
{
    const char *end = prompt.end - PROMPT_END, *at = line.at;

    if (end <= prompt.at || end[0] == ' ')
        return false;
    for (; (at = memmem(at, (size_t)(line.end - at), end, PROMPT_END)) != NULL; at++)
        if (at > line.at && !is_digit(at[-1])) /* `45% ` is no prompt of zsh's */
            return true;
    return false;
}

static bool has_prompt(const char *at, const char *end, struct line prompt)
{
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        struct line line = {at, newline == NULL ? end : newline};
        if (begins_alike(line, prompt) || has_end_of(prompt, line))
            return true;
        at = line.end + 1;
    }
    return false;
}

/* ---- the story ---- */

struct bytes pane_text_output(struct bytes shown, size_t columns, struct bytes command)
{
    const struct bytes none = {NULL, 0};
    const char *text = shown.data, *end = without(" \n", text, text + shown.size);
    struct line typed = {command.data, (const char *)command.data + command.size}, prompt;

    typed.end = without(" \n", typed.at, typed.end);
    if (typed.end == typed.at)
        return none;
    for (const char *below = end;;) {
        struct line line = last_line(text, below);
        if (find_command(text, line, columns, typed, &prompt)) {
            const char *output = line.end < end ? line.end + 1 : end;
            return has_prompt(output, end, prompt)
                       ? none
                       : (struct bytes){output, (size_t)(end - output)};
        }
        if (line.at == text)
            return none;
        below = line.at - 1;
    }
}
