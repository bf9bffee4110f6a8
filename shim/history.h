/*
 * What a person typed, as the shell's history tells it, and whether it may be recorded.
 *
 * bash has no variable with the line that was accepted. The last entry of its history is that line,
 * unless it was kept out (HISTCONTROL, HISTIGNORE): then the last entry is an *older* line, which
 * must never be filed with the new line's exit status.
 */
#ifndef FLIGHTREC_HISTORY_H
#define FLIGHTREC_HISTORY_H

#include "wire.h"

enum line_verdict {
    LINE_RECORD,
    LINE_REPEAT, /* the last entry once more, if no second command shows up in the line */
    LINE_PRIVATE,
};

/* What the shell's script found out about the history list. */
enum line_flag {
    LINE_ADDED = '+',   /* the list grew by this line */
    LINE_KEPT_OUT = '=', /* it did not */
    LINE_UNSURE = '?',  /* erasedups, or HISTCMD unset: only the text can tell */
    LINE_TYPED = 'z',   /* zsh hands over the line itself */
};

struct typed_line {
    struct bytes text; /* cut at WIRE_COMMAND_MAX */
    uint64_t total;    /* bytes */
    bool is_function; /* the first command's first word */
};

struct history {
    char last[WIRE_COMMAND_MAX];
    size_t last_size;
    uint64_t last_total;
    bool last_recorded;
};

/* Take apart what bash's `declare -F WORD` (nothing, or a line for a function) and `history 1` print. `total` is what
 * there was before the bytes were cut. */
struct typed_line history_parse(struct bytes raw, uint64_t total);

/* Leave out what stands before the entry with this number: the rest of a record that was interrupted. */
struct bytes history_from_entry(struct bytes raw, unsigned long number);

/* Cut the first entry off what `history N` printed, which is left with the others. */
struct bytes history_cut_entry(struct bytes *raw);

/* Decide about a line whose first simple command is `first_command`, and remember it. */
enum line_verdict history_judge(struct history *, enum line_flag, const struct typed_line *,
                                struct bytes first_command);

/* Remember the last entry where no command ran: after a syntax error, or at the first prompt. */
void history_note(struct history *, const struct typed_line *);

/* What the shell makes of the line's first word. An alias shows in that the first command's word is
 * another than the one that was typed. */
enum wire_word_kind history_word_kind(const struct typed_line *, struct bytes first_command);

#endif
