#include "line.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* What agents start for themselves; daemon/flightrec/unwrap.py has the same lines with their owners. */
static const char *const SILENT_PREFIXES[] = {
    "SNAPSHOT_FILE=",
    "if [ -z \"${BASH_ENV-}\" ] && [ -n \"${HOME-}\" ]",
    "if [[ -n \"${ZDOTDIR-}\" ]]; then\n  rc=\"$ZDOTDIR/.zshrc\"",
    "set -e; . \"",
    "printf '%s' mistralai-vibe-login-env-",
    "printf %s '__copilot_login_env_snapshot_",
    ": flightrec;", /* a hook of ours */
    NULL,
};
static const char *const OUTER_PREFIXES[] = {
    "__CODEX_SNAPSHOT_",
    "owner_is_alive() {",
    "{ echo 1000 >/proc/self/oom_score_adj; }",
    "{ socat TCP",
    NULL,
};

static bool begins_with_one_of(const char *text, const char *const *prefixes)
{
    for (; *prefixes != NULL; prefixes++)
        if (strncmp(text, *prefixes, strlen(*prefixes)) == 0)
            return true;
    return false;
}

/* A sandbox may start it by the person's shell, or ours: "/bin/bash -c '{ socat TCP...". */
static bool begins_with_sandbox(const char *text)
{
    static const char REST[] = " -c '{ socat TCP";

    return text[0] == '/' && strncmp(text + strcspn(text, " "), REST, sizeof REST - 1) == 0;
}

enum line_kind line_judge(const char *text)
{
    const char *first = text + strspn(text, " \t\n");

    if (begins_with_one_of(first, OUTER_PREFIXES) || begins_with_sandbox(first))
        return LINE_OUTER;
    if (strcmp(first, "env") == 0 || begins_with_one_of(first, SILENT_PREFIXES))
        return LINE_SILENT;
    return text[0] == ' ' ? LINE_PRIVATE : LINE_COMMAND;
}
