/*
 * What `flightrec run` (daemon/flightrec/agent_session.py) has put into the environment, and how it is
 * handed on to a program: the names are known here and there, and in shell-integration/.
 */
#ifndef FLIGHTREC_AGENT_H
#define FLIGHTREC_AGENT_H

#include "wire.h"

#define AGENT_SESSION "FLIGHTREC_SESSION"   /* 32 hex digits: everything below belongs to it */
#define AGENT_NAME "FLIGHTREC_AGENT"        /* the program that `run` was given */
#define AGENT_STARTER "FLIGHTREC_COMMAND"   /* absolute path of flightrec: starts the daemon */
#define AGENT_SHIMS "FLIGHTREC_SHIMS"       /* our folder, first on PATH */
#define AGENT_SCRIPTS "FLIGHTREC_SCRIPTS"   /* the folder of bash-env.bash and zdotdir */
#define AGENT_HELPER "FLIGHTREC_HELPER"     /* absolute path of the helper, for doors */
#define AGENT_SHELL "FLIGHTREC_SHELL"       /* the person's SHELL */
#define AGENT_BASH_ENV "FLIGHTREC_BASH_ENV" /* the person's BASH_ENV */
#define AGENT_ZDOTDIR "FLIGHTREC_ZDOTDIR"   /* the person's ZDOTDIR */
#define AGENT_ROOT "FLIGHTREC_ROOT"         /* pid of the agent itself, which is no command */
#define AGENT_OFF "FLIGHTREC_OFF"           /* nothing below is recorded */

/* Pid of a shell that does an agent's own work: nothing below it is recorded while it is there. An
 * agent's snapshot of that shell's environment must not switch off the shells that it is put into. */
#define AGENT_SILENT "FLIGHTREC_SILENT"

#define AGENT_INSIDE "FLIGHTREC_INSIDE" /* a shell around us is recorded: only its parts are wanted */
#define AGENT_PARENT "FLIGHTREC_PARENT" /* the run of which our programs are parts */
#define AGENT_PARTS "FLIGHTREC_PARTS"   /* the file that takes what our programs tell */
#define AGENT_DOOR "FLIGHTREC_DOOR"     /* pid of a stand-in whose shell need not be caught again */
#define AGENT_PROFILE "FLIGHTREC_PROFILE" /* a login shell is still at its profile */
#define AGENT_DEPTH "FLIGHTREC_DEPTH" /* how many stand-ins are around us */
#define AGENT_STATUS "FLIGHTREC_STATUS" /* the file that wants to know PIPESTATUS */

struct agent {
    uint8_t session[WIRE_ID_SIZE];
    const char *name;     /* never NULL */
    const char *shims;    /* NULL where unknown */
    const uint8_t *parent; /* NULL, or into `parent_id` */
    uint8_t parent_id[WIRE_ID_SIZE];
    bool inside;
};

/* Read the environment. Return false where nothing is to be recorded. */
bool agent_find(struct agent *);

/* Whether this very process was started as the agent, not by it. */
bool agent_is_root(void);

/* Where a stand-in looks for the program that it stands for: PATH, or NULL for the usual folders once
 * there are AGENT_DEPTH_MAX around us. Copies of the helper that take each other for that program
 * would go on for ever. */
enum { AGENT_DEPTH_MAX = 40 };
const char *agent_search_path(void);

/* "FLIGHTREC_SILENT=PID", ours. */
char *agent_silent_assignment(void);

/* "FLIGHTREC_DEPTH=N" for what runs below us. */
char *agent_depth_assignment(void);

/* 32 hex digits and back. */
enum { AGENT_ID_TEXT = 2 * WIRE_ID_SIZE + 1 };
void agent_format_id(char text[AGENT_ID_TEXT], const uint8_t id[WIRE_ID_SIZE]);
int agent_parse_id(const char *text, uint8_t id[WIRE_ID_SIZE]);

/* An environment for a program: ours, with changes. No heap: at most AGENT_VARIABLES of them. */
enum { AGENT_VARIABLES = 64 * 1024 };
struct environment {
    size_t count;
    char *entries[AGENT_VARIABLES + 1];
};

/* -1 with E2BIG where there are too many variables. */
int environment_copy(struct environment *);

/* `assignment` is NAME=value and must live as long as the environment. */
int environment_set(struct environment *, char *assignment);
void environment_remove(struct environment *, const char *name);

/* Where there are more: let the program and all below it go unseen, in our own environment. A shell that
 * found the doors open would come back here, for ever. */
void environment_switch_off(void);

/* Give a shell that needs no script of ours the person's own BASH_ENV and ZDOTDIR back. */
void environment_restore_scripts(struct environment *);

/* Whether LD_PRELOAD names our library (preload.c) first; and take it out again, the person's own stay. */
bool agent_is_preloaded(void);
void environment_restore_preload(struct environment *);

#endif
