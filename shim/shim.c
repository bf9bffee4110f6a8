#include "shim.h"

#include "agent.h"
#include "observe.h"
#include "program.h"
#include "report.h"
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { PATH_LIMIT = 64 * 1024 };

struct tool {
    const char *name;
    char **argv;
    bool is_given; /* to `flightrec run`: it is watched on a terminal too */
    bool is_open;  /* an agent may run below it, whose commands are commands */
    struct program program;
};

static struct environment environment;

/* What agents are written for; daemon/flightrec/shimmed_programs.py has the same names. */
static const char *const RUNTIMES[] = {"python", "python3", "node", "npx",  "uvx",  "uv",
                                       "bun",    "bunx",    "deno", "pipx", "ruby", "php"};

static bool is_runtime(const char *name)
{
    for (size_t i = 0; i < sizeof RUNTIMES / sizeof *RUNTIMES; i++)
        if (strcmp(RUNTIMES[i], name) == 0)
            return true;
    return false;
}

/* ---- stepping aside ---- */

/* As a shell says it, which would have found no program either. */
static int complain(const char *name)
{
    int reason = errno;

    fprintf(stderr, "%s: %s\n", name, reason == ENOENT ? "command not found" : strerror(reason));
    return reason == ENOENT ? 127 : 126;
}

/* A file without `#!` is a script for the shell, as execvp(3) has it. */
static void become_script(const struct tool *tool, char **with)
{
    size_t words = 0;

    while (tool->argv[words] != NULL)
        words++;
    char *argv[words + 2];
    argv[0] = (char *)(uintptr_t)"/bin/sh";
    argv[1] = (char *)(uintptr_t)tool->program.path;
    memcpy(argv + 2, tool->argv + 1, words * sizeof *argv);
    execve(argv[0], argv, with);
}

static _Noreturn void become(const struct tool *tool, char **with)
{
    execve(tool->program.path, tool->argv, with);
    if (errno == ENOEXEC)
        become_script(tool, with);
    _exit(complain(tool->name));
}

/* The agent itself: its PATH stays. It finds itself by its full name, not us by its short one. */
static _Noreturn void become_agent(struct tool *tool)
{
    if (strchr(tool->argv[0], '/') == NULL)
        tool->argv[0] = tool->program.path;
    become(tool, environ);
}

/* ---- what the program gets ---- */

/* The person's own PATH, so that the program's children run at their own speed and unobserved, and
 * a program that looks for itself there does not find us. */
static char *path_assignment(void)
{
    static const char NAME[] = "PATH=";
    static char assignment[sizeof NAME + PATH_LIMIT];
    const char *path = getenv("PATH");

    if (path == NULL || strlen(path) >= PATH_LIMIT)
        return NULL;
    memcpy(assignment, NAME, sizeof NAME);
    program_path_without(assignment + sizeof NAME - 1, path, getenv(AGENT_SHIMS));
    return assignment;
}

static char *parent_assignment(const uint8_t *run)
{
    static char assignment[sizeof AGENT_PARENT + AGENT_ID_TEXT];
    char id[AGENT_ID_TEXT];

    agent_format_id(id, run);
    snprintf(assignment, sizeof assignment, AGENT_PARENT "=%s", id);
    return assignment;
}

/* `run` is NULL where nothing is recorded. */
static char **set_up_environment(const struct tool *tool, const uint8_t *run)
{
    static char inside[] = AGENT_INSIDE "=1";
    char *assignments[] = {
        tool->is_open ? NULL : path_assignment(),
        run == NULL || tool->is_open ? NULL : parent_assignment(run),
        run == NULL || tool->is_open ? NULL : inside,
        agent_depth_assignment(),
    };

    if (environment_copy(&environment) < 0)
        return environ;
    if (run != NULL && !tool->is_open) {
        environment_restore_scripts(&environment);
        environment_restore_preload(&environment);
    }
    for (size_t i = 0; i < sizeof assignments / sizeof *assignments; i++)
        if (assignments[i] != NULL && environment_set(&environment, assignments[i]) < 0)
            return environ;
    return environment.entries;
}

/* ---- a recorded program ---- */

static const uint8_t *announce(const struct agent *agent, const struct tool *tool)
{
    static char line[WIRE_COMMAND_MAX];
    uint64_t total = words_join(line, sizeof line, tool->name, tool->argv + 1);
    struct report_command command = {
        .source = SOURCE_SHIM,
        .shell = "",
        .command = {line, total < sizeof line ? (size_t)total : sizeof line},
        .command_total = total,
        .parent = agent->parent,
        /* never into a substitution or a pipe that two streams share */
        .may_hint = tool->is_given || !observe_is_merged(),
    };

    return report_start(agent, &command);
}

static _Noreturn void record(const struct agent *agent, const struct tool *tool)
{
    static struct observation seen;
    const uint8_t *run = announce(agent, tool);
    struct observed_program program = {
        .path = tool->program.path,
        .argv = tool->argv,
        .envp = set_up_environment(tool, run),
        .errors_only = !tool->is_given,
        .kept = {-1, -1},
        .meanwhile = report_running,
    };
    struct report_end end;

    if (observe(&seen, &program) < 0)
        become(tool, (char **)(uintptr_t)program.envp);
    end = report_end_of(&seen);
    report_finish(&end);
    observe_end_like(seen.status);
}

static bool is_on_terminal(void)
{
    return isatty(STDIN_FILENO) || isatty(STDOUT_FILENO) || isatty(STDERR_FILENO);
}

/* `which` is one of us only so that it does not find the rest of us. */
static bool is_worth_recording(const struct tool *tool)
{
    return !tool->program.privileged && !is_on_terminal() && strcmp(tool->name, "which") != 0 &&
           getenv(AGENT_PROFILE) == NULL;
}

int shim_main_as_program(char **argv)
{
    static struct tool tool;
    struct agent agent;
    const char *called_as = program_called_as(argv);

    observe_hold_closed_fds();
    tool.name = program_base(called_as);
    tool.argv = argv;
    if (program_find(&tool.program, tool.name, agent_search_path(), getenv(AGENT_SHIMS)) < 0)
        return complain(tool.name);
    argv[0] = program_own_name(&tool.program, argv[0], called_as);
    if (agent_is_root())
        become_agent(&tool);
    if (!agent_find(&agent) || !is_worth_recording(&tool))
        become(&tool, set_up_environment(&tool, NULL));
    tool.is_open = agent.parent != NULL && !agent.inside && is_runtime(tool.name);
    record(&agent, &tool);
}

int shim_main(int argc, char **argv)
{
    static struct tool tool; /* zeroed: it has no place in the file */
    struct agent agent;

    observe_hold_closed_fds();
    if (argc < 3) {
        fputs("flightrec-helper shim: usage: flightrec-helper shim PROGRAM ARGV0 [ARGUMENT...]\n",
              stderr);
        return 2;
    }
    tool.is_given = true;
    tool.name = program_base(argv[1]);
    tool.argv = argv + 2;
    if (program_take(&tool.program, argv[1]) < 0)
        return complain(tool.name);
    if (!agent_find(&agent) || tool.program.privileged)
        become(&tool, environ);
    record(&agent, &tool);
}
