/*
 * A door for shells that read no file of ours: dash, which is most systems' /bin/sh, by its full path.
 *
 * `flightrec run --preload` names this library in LD_PRELOAD. Every program that the agent starts loads
 * it; in a shell with -c it becomes the helper, before the shell's own first instruction, and the helper
 * runs the same shell with the same words. In all others, and wherever anything is unexpected, it does
 * nothing. No function of anybody is replaced.
 *
 * Made without a library's name in it, since it must load wherever the program's own libc does, and by
 * nothing of libc that has to be set up first.
 */
#include "agent.h"

#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

enum { WORDS_MAX = 4096 };

static const char *const SHELLS[] = {"sh", "dash", "bash", "zsh"};

static const char *base(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static bool is_set(const char *value)
{
    return value != NULL && value[0] != '\0';
}

static const char *variable(char *const *envp, const char *name)
{
    size_t size = strlen(name);

    for (; *envp != NULL; envp++)
        if (strncmp(*envp, name, size) == 0 && (*envp)[size] == '=')
            return *envp + size + 1;
    return NULL;
}

/* A pid, or 0. By hand: strtol(3) has another name in each libc. */
static pid_t process(char *const *envp, const char *name)
{
    const char *at = variable(envp, name);
    pid_t pid = 0;

    for (; at != NULL && *at >= '0' && *at <= '9' && pid < INT_MAX / 10; at++)
        pid = 10 * pid + (*at - '0');
    return pid;
}

/* ---- which program this is ---- */

/* By the name under which the system found it, which a script's first line may be behind as well. */
static bool is_shell(const char *path, char *const *argv)
{
    bool known = false;

    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++)
        known |= strcmp(base(path), SHELLS[i]) == 0;
    for (; known && *argv != NULL; argv++)
        known = argv[1] == NULL || strcmp(argv[1], path) != 0;
    return known;
}

/* The helper too is started under shells' names. */
static bool is_really_shell(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);

    if (size < 0)
        return false;
    path[size] = '\0';
    for (size_t i = 0; i < sizeof SHELLS / sizeof *SHELLS; i++)
        if (strncmp(base(path), SHELLS[i], strlen(SHELLS[i])) == 0)
            return true;
    return false;
}

/* A rough look for -c among the options and the words that belong to some: the helper looks closely,
 * and where there is no text after all the shell comes back with AGENT_DOOR set. */
static bool has_text(char *const *words)
{
    bool takes_next = false;

    for (; *words != NULL && (takes_next || (*words)[0] == '-' || (*words)[0] == '+'); words++) {
        const char *word = *words;
        bool is_long = strncmp(word, "--", 2) == 0;
        if (word[0] == '-' && !is_long && strchr(word, 'c') != NULL)
            return true;
        takes_next = is_long || (word[0] != '\0' && strchr("oO", word[strlen(word) - 1]) != NULL);
    }
    return false;
}

/* ---- whether it is to be caught ---- */

static bool is_recorded(char *const *envp)
{
    pid_t silent = process(envp, AGENT_SILENT);

    return is_set(variable(envp, AGENT_SESSION)) && !is_set(variable(envp, AGENT_INSIDE)) &&
           !is_set(variable(envp, AGENT_OFF)) && process(envp, AGENT_ROOT) != getpid() &&
           (silent <= 0 || kill(silent, 0) < 0);
}

/* Whether this shell comes from the helper; no child of a shell without a script of ours may think so. */
static bool take_door(char **envp, const char *shell)
{
    pid_t door = process(envp, AGENT_DOOR);

    if (door <= 0 || (door != getpid() && door != getppid()))
        return false;
    if (strcmp(shell, "sh") == 0 || strcmp(shell, "dash") == 0) {
        while (strncmp(*envp, AGENT_DOOR "=", sizeof AGENT_DOOR) != 0)
            envp++;
        do /* with the NULL behind the last */
            envp[0] = envp[1];
        while (*envp++ != NULL);
    }
    return true;
}

static void become_helper(const char *helper, const char *path, int argc, char **argv, char **envp)
{
    char *words[WORDS_MAX + 4] = {
        (char *)(uintptr_t)helper,
        (char *)(uintptr_t)"sh",
        (char *)(uintptr_t)path,
    };

    memcpy(words + 3, argv, (size_t)argc * sizeof *argv); /* NULL stands behind them */
    execve(helper, words, envp);
}

/* Some systems' libc gives a library's start no arguments: then they are no arguments. */
static bool are_arguments(int argc, char **argv, char **envp)
{
    return argc > 0 && argc <= WORDS_MAX && argv != NULL && argv + argc + 1 == envp;
}

__attribute__((constructor)) static void go_round_through_helper(int argc, char **argv, char **envp)
{
    const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN), *helper;

    if (path == NULL || !are_arguments(argc, argv, envp) || !is_shell(path, argv) ||
        take_door(envp, base(path)) || !has_text(argv + 1) || !is_recorded(envp))
        return;
    helper = variable(envp, AGENT_HELPER);
    if (is_set(helper) && is_really_shell())
        become_helper(helper, path, argc, argv, envp); /* or else go on unseen */
}
