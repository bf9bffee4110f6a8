/*
 * What a shell's script and the helper say to each other: a command is about to run, it has finished.
 * The same for the relay, which sees these messages alone, and for the proxy, which also sees what the
 * terminal is shown.
 */
#ifndef FLIGHTREC_CONVERSATION_H
#define FLIGHTREC_CONVERSATION_H

#include "channel.h"
#include "hint_filter.h"
#include "history.h"
#include "link.h"
#include "paths.h"
#include "record.h"
#include "terminal.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The one command that the shell is running. */
struct run {
    bool is_open, is_deferred; /* deferred: the daemon hears of it when it has finished */
    uint8_t id[WIRE_ID_SIZE];
    int64_t mono_us, wall_us;
    int64_t released_us; /* when the shell was let go on: durations begin here */
    size_t size;
    uint64_t total; /* bytes of the line, more than `size` where it was cut */
    char text[WIRE_COMMAND_MAX];
    char cwd[WIRE_PATH_MAX];
    enum wire_word_kind word_kind;
};

/* A variable as the shell last reported it. */
struct variable {
    bool is_set;
    size_t size;
    char text[WIRE_VARIABLE_MAX];
};

enum { VARIABLES = 3 }; /* PATH, VIRTUAL_ENV, CONDA_PREFIX */

/* Whoever sees the terminal's output. A member that is NULL is not called. */
struct witness {
    void *context;
    /* Print a hint behind what the shell has written so far. */
    void (*print)(void *context, const char *text);
    /* The command has finished: fill in the tail of what it wrote, if that is known. */
    void (*look)(void *context, struct wire_finished *);
};

/* Fill in `source`, `shell`, `pid`, `terminal` and `witness`, and zero the rest. */
struct conversation {
    enum wire_source source;
    const char *shell; /* until its first record says so */
    pid_t pid;
    bool is_leaving; /* a newer helper serves this shell */
    struct paths paths;
    struct channel channel;
    struct terminal terminal;
    struct witness witness;
    struct link link;
    struct hint_filter filter;
    struct record_reader reader;
    struct history history;
    char digit; /* the number of the record at hand, by which a mark in the output is known */
    struct run run;
    struct variable variables[VARIABLES];
    unsigned variables_sent; /* the generation of the connection that knows them */
    uint8_t session[WIRE_ID_SIZE];
    char boot[64];
    char tmux_pane[WIRE_WORD_MAX];
    int64_t last_record_us;
    uint8_t out[WIRE_OUT_MAX];
    char reply[WIRE_REPLY_MAX + 1];
};

/* Make the FIFOs. Return 0, or -1 with nothing left behind: then nothing is to be recorded. */
int conversation_open(struct conversation *);

/* Connect to the daemon, in the process that is to hold the connection. `starter` starts one. */
void conversation_connect(struct conversation *, const char *role, const char *starter);

/* Take what the shell has sent. For the caller's poll loop, beside link_serve. */
void conversation_read(struct conversation *);

/* The session is over: tell the daemon, and wait a little for what it has not committed. */
void conversation_end(struct conversation *);

#endif
