#include "agent.h"

#include "marks.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static const char PRELOAD[] = "LD_PRELOAD";

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0';
}

static int digit(char character)
{
    static const char DIGITS[] = "0123456789abcdef";
    const char *found = character == '\0' ? NULL : strchr(DIGITS, character);

    return found == NULL ? -1 : (int)(found - DIGITS);
}

void agent_format_id(char text[AGENT_ID_TEXT], const uint8_t id[WIRE_ID_SIZE])
{
    static const char DIGITS[] = "0123456789abcdef";

    for (size_t i = 0; i < WIRE_ID_SIZE; i++) {
        text[2 * i] = DIGITS[id[i] >> 4];
        text[2 * i + 1] = DIGITS[id[i] & 15];
    }
    text[AGENT_ID_TEXT - 1] = '\0';
}

int agent_parse_id(const char *text, uint8_t id[WIRE_ID_SIZE])
{
    if (text == NULL || strlen(text) != AGENT_ID_TEXT - 1)
        return -1;
    for (size_t i = 0; i < WIRE_ID_SIZE; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return -1;
        id[i] = (uint8_t)(high << 4 | low);
    }
    return 0;
}

static bool is_silent(void)
{
    const char *pid = getenv(AGENT_SILENT);

    return pid != NULL && strtol(pid, NULL, 10) > 0 && kill((pid_t)strtol(pid, NULL, 10), 0) == 0;
}

bool agent_find(struct agent *agent)
{
    *agent = (struct agent){.name = NULL};
    if (is_set(AGENT_OFF) || is_silent() || (!is_set(AGENT_SESSION) && marks_adopt() < 0) ||
        agent_parse_id(getenv(AGENT_SESSION), agent->session) < 0)
        return false;
    agent->name = getenv(AGENT_NAME);
    agent->shims = getenv(AGENT_SHIMS);
    if (agent->name == NULL)
        agent->name = "";
    if (agent_parse_id(getenv(AGENT_PARENT), agent->parent_id) == 0)
        agent->parent = agent->parent_id;
    agent->inside = is_set(AGENT_INSIDE);
    return true;
}

bool agent_is_root(void)
{
    const char *root = getenv(AGENT_ROOT);

    return root != NULL && strtol(root, NULL, 10) == (long)getpid();
}

static long depth(void)
{
    const char *text = getenv(AGENT_DEPTH);

    return text == NULL ? 0 : strtol(text, NULL, 10);
}

const char *agent_search_path(void)
{
    return depth() < AGENT_DEPTH_MAX ? getenv("PATH") : NULL;
}

char *agent_silent_assignment(void)
{
    static char assignment[sizeof AGENT_SILENT + 24];

    snprintf(assignment, sizeof assignment, AGENT_SILENT "=%ld", (long)getpid());
    return assignment;
}

char *agent_depth_assignment(void)
{
    static char assignment[sizeof AGENT_DEPTH + 24];

    snprintf(assignment, sizeof assignment, AGENT_DEPTH "=%ld", depth() + 1);
    return assignment;
}

static size_t name_size(const char *assignment)
{
    return strcspn(assignment, "=");
}

static size_t find(const struct environment *environment, const char *name, size_t size)
{
    size_t at = 0;

    while (at < environment->count && (strncmp(environment->entries[at], name, size) != 0 ||
                                       environment->entries[at][size] != '='))
        at++;
    return at;
}

int environment_copy(struct environment *environment)
{
    environment->count = 0;
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (environment->count == AGENT_VARIABLES) {
            errno = E2BIG;
            return -1;
        }
        environment->entries[environment->count++] = *entry;
    }
    environment->entries[environment->count] = NULL;
    return 0;
}

int environment_set(struct environment *environment, char *assignment)
{
    size_t at = find(environment, assignment, name_size(assignment));

    if (at == AGENT_VARIABLES) {
        errno = E2BIG;
        return -1;
    }
    environment->entries[at] = assignment;
    if (at == environment->count)
        environment->entries[++environment->count] = NULL;
    return 0;
}

void environment_remove(struct environment *environment, const char *name)
{
    size_t at = find(environment, name, strlen(name));

    if (at == environment->count)
        return;
    /* the terminating NULL moves too: the order of the others stays */
    memmove(&environment->entries[at], &environment->entries[at + 1],
            (environment->count - at) * sizeof environment->entries[0]);
    environment->count--;
}

/* `variable` holds our own `file` in the folder of scripts: give it the value of `persons`. */
static void restore(struct environment *environment, const char *variable, const char *file,
                    const char *persons)
{
    const char *scripts = getenv(AGENT_SCRIPTS), *value = getenv(variable);
    size_t size = scripts == NULL ? 0 : strlen(scripts);
    size_t at;

    if (value == NULL || size == 0 || strncmp(value, scripts, size) != 0 ||
        strcmp(value + size, file) != 0)
        return; /* somebody has set it anew meanwhile */
    at = find(environment, persons, strlen(persons));
    if (at == environment->count)
        environment_remove(environment, variable);
    else /* FLIGHTREC_BASH_ENV=... without its prefix is BASH_ENV=... */
        environment_set(environment, environment->entries[at] + sizeof "FLIGHTREC_" - 1);
}

void environment_switch_off(void)
{
    static char off[] = AGENT_OFF "=1";
    const char *session = AGENT_SESSION "=";

    for (char **entry = environ; entry != NULL && *entry != NULL; entry++)
        if (strncmp(*entry, session, strlen(session)) == 0)
            *entry = off;
}

/* What follows our library, where `value` of LD_PRELOAD begins with it, or NULL. */
static char *behind_preload(char *value)
{
    static const char FILE_NAME[] = "/flightrec-preload.so";
    const char *scripts = getenv(AGENT_SCRIPTS);
    size_t size = scripts == NULL ? 0 : strlen(scripts);

    if (value == NULL || size == 0 || strncmp(value, scripts, size) != 0 ||
        strncmp(value + size, FILE_NAME, sizeof FILE_NAME - 1) != 0)
        return NULL;
    return value + size + sizeof FILE_NAME - 1;
}

bool agent_is_preloaded(void)
{
    return behind_preload(getenv(PRELOAD)) != NULL;
}

void environment_restore_preload(struct environment *environment)
{
    size_t at = find(environment, PRELOAD, sizeof PRELOAD - 1);
    char *value = at == environment->count ? NULL : environment->entries[at] + sizeof PRELOAD;
    char *rest = behind_preload(value);

    if (rest == NULL)
        return;
    if (*rest == '\0')
        environment_remove(environment, PRELOAD);
    else
        memmove(value, rest + 1, strlen(rest)); /* a separator stands between */
}

void environment_restore_scripts(struct environment *environment)
{
    restore(environment, "BASH_ENV", "/bash-env.bash", AGENT_BASH_ENV);
    restore(environment, "ZDOTDIR", "/zdotdir", AGENT_ZDOTDIR);
}
