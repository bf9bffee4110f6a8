#include "history.h"

#include <string.h>

static bool equal(struct bytes one, struct bytes other)
{
    return one.size == other.size && (one.size == 0 || memcmp(one.data, other.data, one.size) == 0);
}

static bool is_word(struct bytes word, const char *text)
{
    return equal(word, bytes_of(text));
}

static struct bytes skip(struct bytes text, size_t count)
{
    return (struct bytes){(const char *)text.data + count, text.size - count};
}

static size_t span(struct bytes text, const char *set)
{
    const char *at = text.data;
    size_t i = 0;

    while (i < text.size && at[i] != '\0' && strchr(set, at[i]) != NULL)
        i++;
    return i;
}

static size_t span_until(struct bytes text, const char *set)
{
    const char *at = text.data;
    size_t i = 0;

    while (i < text.size && at[i] != '\0' && strchr(set, at[i]) == NULL)
        i++;
    return i;
}

/* The entry's number, or 0 where the text does not begin like an entry. */
static unsigned long entry_number(struct bytes text)
{
    size_t at = span(text, " ");
    size_t digits = span(skip(text, at), "0123456789");
    const char *data = text.data;
    unsigned long number = 0;

    if (digits == 0 || at + digits + 2 > text.size)
        return 0;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (unsigned long)(data[at + i] - '0');
    at += digits;
    return (data[at] == ' ' || data[at] == '*') && data[at + 1] == ' ' ? number : 0;
}

struct typed_line history_parse(struct bytes raw, uint64_t total)
{
    struct typed_line line = {.total = 0};
    struct bytes rest = raw;

    /* "%5d%c %s\n": number, '*' where the entry was edited, text */
    if (entry_number(rest) == 0) {
        size_t name = span_until(rest, "\n");
        line.is_function = name > 0 && name < rest.size;
        rest = skip(rest, name + (name < rest.size));
    }
    if (entry_number(rest) == 0)
        return line;
    rest = skip(rest, span(rest, " "));
    rest = skip(rest, span(rest, "0123456789") + 2);
    line.total = total - (raw.size - rest.size);
    if (line.total > rest.size)
        line.total--; /* what was cut off ends in a newline too */
    while (line.total == rest.size && rest.size > 0 &&
           ((const char *)rest.data)[rest.size - 1] == '\n')
        line.total = --rest.size; /* and so does the entry of a here-document */
    if (rest.size > WIRE_COMMAND_MAX)
        rest.size = WIRE_COMMAND_MAX;
    line.text = rest;
    return line;
}

/* Where the line after `at` begins; raw.size where there is none. */
static size_t next_line(struct bytes raw, size_t at)
{
    at += span_until(skip(raw, at), "\n");
    return at + (at < raw.size);
}

struct bytes history_from_entry(struct bytes raw, unsigned long number)
{
    size_t at = 0, before = 0;

    while (at < raw.size && entry_number(skip(raw, at)) != number) {
        before = at;
        at = next_line(raw, at);
    }
    if (at >= raw.size || at == 0)
        return raw;
    /* `declare -F` may have printed a line of its own, which is no entry. */
    return skip(raw, entry_number(skip(raw, before)) == 0 ? before : at);
}

struct bytes history_cut_entry(struct bytes *raw)
{
    unsigned long number = entry_number(*raw);
    struct bytes entry = *raw;
    size_t at = 0;

    /* An entry of several lines may hold anything, but hardly a line that begins with the number of
     * the entry after it. */
    while (at < raw->size) {
        at = next_line(*raw, at);
        if (at < raw->size && number > 0 && entry_number(skip(*raw, at)) == number + 1)
            break;
    }
    entry.size = at;
    *raw = skip(*raw, at);
    return entry;
}

static bool is_last(const struct history *history, const struct typed_line *line)
{
    return line->total == history->last_total &&
           equal(line->text, (struct bytes){history->last, history->last_size});
}

static void remember(struct history *history, const struct typed_line *line, bool recorded)
{
    history->last_size = line->text.size;
    history->last_total = line->total;
    history->last_recorded = recorded;
    if (line->text.size > 0)
        memcpy(history->last, line->text.data, line->text.size);
}

/* A line that equals the last entry is kept out by ignoredups, and so is a private variant of it: a
 * leading space, or ` cd /tmp && false` after `cd /tmp && true`, which leaves both the entry and the
 * first command as they were. Only a line of one simple command can be told from its variants. */
static enum line_verdict judge_repeat(const struct history *history, const struct typed_line *line,
                                      struct bytes first_command)
{
    if (is_last(history, line) && history->last_recorded && equal(line->text, first_command))
        return LINE_REPEAT;
    return LINE_PRIVATE;
}

static enum line_verdict judge(const struct history *history, enum line_flag flag,
                               const struct typed_line *line, struct bytes first_command)
{
    if (line->text.size == 0 || span(line->text, " \t") > 0)
        return LINE_PRIVATE;
    if (flag == LINE_ADDED || flag == LINE_TYPED)
        return LINE_RECORD;
    if (flag == LINE_UNSURE && !is_last(history, line))
        return LINE_RECORD;
    return judge_repeat(history, line, first_command);
}

enum line_verdict history_judge(struct history *history, enum line_flag flag,
                                const struct typed_line *line, struct bytes first_command)
{
    enum line_verdict verdict = judge(history, flag, line, first_command);
    /* A kept out line leaves the entry before it as it was, recorded or not. */
    bool is_same_entry = flag != LINE_ADDED && is_last(history, line);

    if (!is_same_entry)
        remember(history, line, verdict != LINE_PRIVATE);
    return verdict;
}

void history_note(struct history *history, const struct typed_line *line)
{
    if (!is_last(history, line))
        remember(history, line, false);
}

static bool is_one_of(struct bytes word, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_word(word, words[i]))
            return true;
    return false;
}

/* Words after which the first command is not the first word: nothing can be said of an alias. */
static const char *const RESERVED[] = {"!",  "{",      "[[",   "case",  "coproc", "for",
                                       "if", "select", "time", "until", "while",  "function"};

/* bash's own, asked here because asking bash costs it a search along PATH. */
static const char *const BUILTINS[] = {
    ".",       ":",        "[",       "alias",   "bg",        "bind",   "break",   "builtin",
    "caller",  "cd",       "command", "compgen", "complete",  "compopt", "continue", "declare",
    "dirs",    "disown",   "echo",    "enable",  "eval",      "exec",   "exit",    "export",
    "false",   "fc",       "fg",      "getopts", "hash",      "help",   "history", "jobs",
    "kill",    "let",      "local",   "logout",  "mapfile",   "popd",   "printf",  "pushd",
    "pwd",     "read",     "readarray", "readonly", "return", "set",    "shift",   "shopt",
    "source",  "suspend",  "test",    "times",   "trap",      "true",   "type",    "typeset",
    "ulimit",  "umask",    "unalias", "unset",   "wait",
};

static bool is_plain(struct bytes word)
{
    return word.size > 0 && span_until(word, "'\"\\$`=*?[{~") == word.size &&
           !is_one_of(word, RESERVED, sizeof RESERVED / sizeof *RESERVED);
}

static struct bytes first_word(struct bytes text)
{
    return (struct bytes){text.data, span_until(text, " \t\n;|&<>()")};
}

enum wire_word_kind history_word_kind(const struct typed_line *line, struct bytes first_command)
{
    struct bytes typed = first_word(line->text), run = first_word(first_command);

    if (is_plain(typed) && is_plain(run) && !equal(typed, run))
        return WORD_ALIAS;
    if (line->is_function)
        return WORD_FUNCTION;
    if (is_one_of(run, BUILTINS, sizeof BUILTINS / sizeof *BUILTINS))
        return WORD_BUILTIN;
    return WORD_UNKNOWN;
}
