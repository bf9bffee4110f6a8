#include "sh.h"

#include "agent.h"
#include "line.h"
#include "observe.h"
#include "program.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern char **environ;

static const char *const SHELLS[] = {"bash", "sh", "zsh", "dash"};

bool sh_is_shell(const char *name)
{
    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++)
        if (strcmp(SHELLS[i], name) == 0)
            return true;
    return false;
}

struct shell {
    const char *name;
    char **argv;
    const char *text; /* after -c, or NULL */
    bool is_login;
    bool reads_script; /* BASH_ENV or ZDOTDIR/.zshenv */
    bool is_caught;   /* by a script or library of ours in it, which must not catch it again */
    bool is_root;     /* what `flightrec run` was given: an agent may run below it */
    char *last;       /* "_=VALUE", the value that the shell began with; or NULL */
    struct waiting_shell waiting; /* its pid is 0 where there is none, and the shell is to be started */
    struct program program;
};

/* ---- what the shell was asked to do ---- */

/* Options that take the next word, in bash and zsh. */
static bool takes_word(const char *option)
{
    return strcmp(option, "--rcfile") == 0 || strcmp(option, "--init-file") == 0 ||
           strcmp(option, "--emulate") == 0;
}

static bool is(const struct shell *shell, const char *name)
{
    return strcmp(shell->name, name) == 0;
}

/* How many words the letters of an option consume; zsh takes what follows the `o` in its own word. */
static int read_letters(struct shell *shell, const char *option, bool *has_text)
{
    const char *without_script = is(shell, "zsh") ? "f" : "ip";
    int words = 0;

    for (const char *at = option + 1; *at != '\0'; at++) {
        *has_text |= *at == 'c' && option[0] == '-';
        shell->is_login |= *at == 'l' && option[0] == '-';
        shell->reads_script &= strchr(without_script, *at) == NULL;
        if (*at == 'o' && at[1] != '\0' && is(shell, "zsh"))
            return words;
        words += *at == 'o' || (*at == 'O' && is(shell, "bash"));
    }
    return words;
}

static void read_arguments(struct shell *shell)
{
    char **at = shell->argv + 1;
    bool has_text = false;

    shell->is_login = shell->argv[0][0] == '-';
    shell->reads_script = is(shell, "bash") || is(shell, "zsh");
    for (; *at != NULL && ((*at)[0] == '-' || (*at)[0] == '+'); at++) {
        int words = 0;
        if (strcmp(*at, "-") == 0 || strcmp(*at, "--") == 0) {
            at++;
            break;
        }
        if (strncmp(*at, "--", 2) == 0)
            words = takes_word(*at);
        else
            words = read_letters(shell, *at, &has_text);
        shell->is_login |= strcmp(*at, "--login") == 0;
        shell->reads_script &= strcmp(*at, "--posix") != 0;
        while (words-- > 0 && at[1] != NULL)
            at++;
    }
    shell->text = has_text ? *at : NULL;
}

/* ---- the shell ---- */

static struct environment environment;

/* As a shell says it. */
static int complain(const char *name)
{
    int reason = errno;

    fprintf(stderr, "%s: %s\n", name, reason == ENOENT ? "command not found" : strerror(reason));
    return reason == ENOENT ? 127 : 126;
}

static _Noreturn void become(const struct shell *shell, char **with)
{
    execve(shell->program.path, shell->argv, with);
    _exit(complain(shell->name));
}

static _Noreturn void become_unseen(const struct shell *shell)
{
    environment_switch_off();
    become(shell, environ);
}

/* Step aside, with this variable added (NULL: none). */
static _Noreturn void become_with(const struct shell *shell, char *assignment, bool restore)
{
    char *assignments[] = {agent_depth_assignment(), assignment, shell->last};

    if (environment_copy(&environment) < 0)
        become_unseen(shell);
    for (size_t i = 0; i < sizeof assignments / sizeof *assignments; i++)
        if (assignments[i] != NULL && environment_set(&environment, assignments[i]) < 0)
            become_unseen(shell);
    if (restore) {
        environment_restore_scripts(&environment);
        environment_restore_preload(&environment);
    }
    become(shell, environment.entries);
}

/* A file in memory that the shell's script writes $? and PIPESTATUS into, by a path that no program
 * inherits a descriptor of. */
struct status_file {
    int fd;
    char assignment[64];
};

static void open_status_file(struct status_file *file)
{
    file->fd = memfd_create("flightrec-status", MFD_CLOEXEC);
    snprintf(file->assignment, sizeof file->assignment, AGENT_STATUS "=/proc/%ld/fd/%d",
             (long)getpid(), file->fd);
}

/* Read "EXIT STATUS..." and return how many statuses there are; 0 where they are not to be trusted:
 * after some builtins PIPESTATUS is that of an earlier pipeline, and then seldom ends like $?. */
static size_t read_status_file(const struct status_file *file, int64_t exit_status,
                               int64_t pipestatus[WIRE_PIPESTATUS_MAX])
{
    char text[1024], *at = text, *end;
    ssize_t size = pread(file->fd, text, sizeof text - 1, 0);
    size_t count = 0;

    if (size <= 0)
        return 0;
    text[size] = '\0';
    if (strtol(at, &end, 10) != exit_status)
        return 0;
    for (at = end; count < WIRE_PIPESTATUS_MAX; at = end) {
        long value = strtol(at, &end, 10);
        if (end == at)
            break;
        pipestatus[count++] = value;
    }
    return count > 0 && pipestatus[count - 1] == exit_status ? count : 0;
}

/* ---- a recorded command ---- */

static struct parts parts;

static char INSIDE[] = AGENT_INSIDE "=1", OFF[] = AGENT_OFF "=1", PROFILE[] = AGENT_PROFILE "=1";

/* "FLIGHTREC_DOOR=PID": the script in the shell that we start finds us as its parent, or itself. */
static char *door_assignment(void)
{
    static char assignment[sizeof AGENT_DOOR + 24];

    snprintf(assignment, sizeof assignment, AGENT_DOOR "=%ld", (long)getpid());
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

/* A script of ours costs the shell time: most shells do without. Below a root, which is no more than
 * the place where an agent was started, the doors stay. */
static bool needs_script(const struct shell *shell)
{
    return shell->reads_script &&
           (shell->is_root || shell->is_login || strchr(shell->text, '|') != NULL);
}

static int set_up_environment(const struct shell *shell, const uint8_t *run,
                              struct status_file *status)
{
    bool script = needs_script(shell);
    char *assignments[] = {
        parent_assignment(run),
        shell->is_root ? NULL : INSIDE,
        shell->last,
        agent_depth_assignment(),
        parts.fd < 0 ? NULL : parts.assignment,
        script || (shell->is_root && agent_is_preloaded()) ? door_assignment() : NULL,
        script && shell->is_login ? PROFILE : NULL,
        script && status->fd >= 0 ? status->assignment : NULL,
    };

    if (environment_copy(&environment) < 0)
        return -1;
    if (!script && !shell->is_root)
        environment_restore_scripts(&environment);
    if (!shell->is_root)
        environment_restore_preload(&environment);
    for (size_t i = 0; i < sizeof assignments / sizeof *assignments; i++)
        if (assignments[i] != NULL && environment_set(&environment, assignments[i]) < 0)
            return -1;
    return 0;
}

static const uint8_t *announce(const struct agent *agent, const struct shell *shell)
{
    struct report_command command = {
        .source = SOURCE_SH,
        .shell = shell->name,
        .command = bytes_of(shell->text),
        .command_total = strlen(shell->text),
        .may_hint = true,
    };

    return report_start(agent, &command);
}

static void conclude(const struct shell *shell, const struct observation *seen,
                     const struct status_file *status)
{
    int64_t pipestatus[WIRE_PIPESTATUS_MAX];
    struct report_end end = report_end_of(seen);

    end.parts = &parts;
    end.pipestatus = pipestatus;
    end.pipestatus_count = read_status_file(status, end.exit, pipestatus);
    /* a success may hide a failure: `pytest | tail`, `x || true` */
    end.wants_tail |= strpbrk(shell->text, "|;&\n") != NULL;
    report_finish(&end);
}

/* A shell that waits has read our script by now, and goes on with it. */
static char *const *new_variables(const uint8_t *run, struct status_file *status)
{
    static char *assignments[7], session[sizeof AGENT_SESSION + AGENT_ID_TEXT];
    size_t count = 0;

    snprintf(session, sizeof session, AGENT_SESSION "=%s", getenv(AGENT_SESSION));
    assignments[count++] = session; /* by the agent's marks it is known to us alone */
    assignments[count++] = parent_assignment(run);
    assignments[count++] = INSIDE;
    assignments[count++] = agent_depth_assignment();
    if (parts.fd >= 0)
        assignments[count++] = parts.assignment;
    if (status->fd >= 0)
        assignments[count++] = status->assignment;
    return assignments;
}

static int tell_meanwhile(void)
{
    int fd = report_running();

    if (report_is_sandboxed())
        parts_refuse(&parts);
    return fd;
}

static _Noreturn void record(const struct agent *agent, struct shell *shell)
{
    static struct observation seen;
    struct status_file status = {.fd = -1};
    const uint8_t *run;

    if (needs_script(shell) && strchr(shell->text, '|') != NULL)
        open_status_file(&status);
    run = announce(agent, shell);
    parts_open(&parts);
    if (shell->waiting.pid > 0)
        shell->waiting.assignments = new_variables(run, &status);
    else if (set_up_environment(shell, run, &status) < 0)
        become_unseen(shell);
    struct observed_program program = {
        .waiting = shell->waiting.pid > 0 ? &shell->waiting : NULL,
        .path = shell->program.path,
        .argv = shell->argv,
        .envp = environment.entries,
        .kept = {status.fd, parts.fd},
        .meanwhile = tell_meanwhile,
    };
    if (observe(&seen, &program) < 0)
        become(shell, environment.entries);
    conclude(shell, &seen, &status);
    observe_end_like(seen.status);
}

static _Noreturn void leave_unseen(struct shell *shell)
{
    static struct observation seen;
    struct observed_program program = {.waiting = &shell->waiting, .kept = {-1, -1}};

    shell->waiting.unseen = true;
    observe(&seen, &program);
    observe_end_like(seen.status);
}

static _Noreturn void stand_in(struct shell *shell)
{
    struct agent agent;
    bool recorded = agent_find(&agent) && !agent.inside;

    if (shell->waiting.pid > 0) {
        if (!recorded)
            leave_unseen(shell);
        record(&agent, shell);
    }
    read_arguments(shell);
    if (!recorded || shell->text == NULL || shell->text[0] == '\0')
        become_with(shell, shell->is_caught ? door_assignment() : NULL, false);
    switch (line_judge(shell->text)) {
    case LINE_OUTER:
        become_with(shell, door_assignment(), false);
    case LINE_SILENT:
        become_with(shell, agent_silent_assignment(), false);
    case LINE_PRIVATE:
        become_with(shell, OFF, true);
    case LINE_COMMAND:
        break;
    }
    record(&agent, shell);
}

/* ---- which shell ---- */

/* The person's SHELL where we were called by that name. */
static int find_for_wrapper(struct shell *shell)
{
    const char *persons = getenv(AGENT_SHELL);

    if (persons == NULL || strcmp(program_base(persons), shell->name) != 0)
        return -1;
    return program_take(&shell->program, persons);
}

static bool is_in(const char *folder, const char *path)
{
    size_t size = folder == NULL ? 0 : strlen(folder);

    return size > 0 && strncmp(path, folder, size) == 0 && path[size] == '/' &&
           strchr(path + size + 1, '/') == NULL;
}

static int find_on_path(struct shell *shell)
{
    char usual[64];

    if (program_find(&shell->program, shell->name, agent_search_path(), getenv(AGENT_SHIMS)) == 0)
        return 0;
    snprintf(usual, sizeof usual, "/bin/%s", shell->name);
    return program_take(&shell->program, usual);
}

int sh_main_as_shell(char **argv)
{
    static struct shell shell;
    const char *called_as = program_called_as(argv);

    observe_hold_closed_fds();
    shell.name = program_base(called_as);
    shell.argv = argv;
    if ((is_in(getenv(AGENT_SHIMS), called_as) || find_for_wrapper(&shell) < 0) &&
        find_on_path(&shell) < 0)
        return complain(shell.name);
    argv[0] = program_own_name(&shell.program, argv[0], called_as);
    stand_in(&shell);
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

/* Return how many words were options. */
static int read_own_options(struct shell *shell, int argc, char **argv)
{
    int at = 1;

    while (at < argc) {
        if (strcmp(argv[at], "--root") == 0) {
            shell->is_root = true;
            at++;
        } else if (strcmp(argv[at], "--waiting") == 0 && at + 5 < argc) {
            shell->waiting = (struct waiting_shell){
                .answer = number(argv[at + 1]),
                .pid = number(argv[at + 2]),
                .sources = {number(argv[at + 3]), number(argv[at + 4])},
            };
            at += 5;
        } else if (strcmp(argv[at], "--last") == 0 && at + 1 < argc) {
            shell->last = argv[at + 1];
            at += 2;
        } else {
            break;
        }
    }
    return at;
}

int sh_main(int argc, char **argv)
{
    static struct shell shell;
    int at = read_own_options(&shell, argc, argv);

    observe_hold_closed_fds();
    if (shell.waiting.pid > 0) {
        shell.name = "bash";
        shell.text = argv[at];
        shell.reads_script = true;
        stand_in(&shell);
    }
    if (argc - at < 2) {
        fputs("flightrec-helper sh: usage: flightrec-helper sh [--root] [--last _=WORD] SHELL ARGV0"
              " [ARGUMENT...]\n", stderr);
        return 2;
    }
    shell.is_caught = !shell.is_root;
    shell.name = program_base(argv[at]);
    shell.argv = argv + at + 1;
    if (program_take(&shell.program, argv[at]) < 0 && find_on_path(&shell) < 0)
        return complain(shell.name);
    stand_in(&shell);
}
