#include "marks.h"

#include "agent.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct mark {
    const char *agent;
    const char *variable; /* is set in the shells of its model */
    const char *session;  /* holds the agent's own name for the session; NULL: none does */
};

/* A plugin of ours says the session where the agent does not. */
#define CLIENT_SESSION "FLIGHTREC_CLIENT_SESSION"

static const struct mark MARKS[] = {
    {"claude", "CLAUDECODE", "CLAUDE_CODE_SESSION_ID"},
    {"codex", "CODEX_THREAD_ID", "CODEX_THREAD_ID"},
    {"opencode", "OPENCODE", CLIENT_SESSION},
    {"pi", "PI_CODING_AGENT", CLIENT_SESSION},
    {"copilot", "COPILOT_CLI", NULL},
    {"gemini", "GEMINI_CLI", NULL},
    {"qwen", "QWEN_CODE", NULL},
};

enum { ANCESTORS_MAX = 16, ENVIRON_MAX = 256 * 1024 };

static const char *value_of(const char *name)
{
    const char *value = name == NULL ? NULL : getenv(name);

    return value == NULL || value[0] == '\0' ? NULL : value;
}

const char *marks_agent(void)
{
    const char *name = value_of(AGENT_NAME);

    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS && name == NULL; i++)
        if (value_of(MARKS[i].variable) != NULL)
            name = MARKS[i].agent;
    return name != NULL && strlen(name) <= WIRE_WORD_MAX ? name : NULL;
}

/* The agent's own shells have the mark of its model's, but this. */
static bool is_harness(void)
{
    const char *who = value_of("AI_AGENT");
    size_t size = who == NULL ? 0 : strlen(who);

    return size > 8 && strcmp(who + size - 8, "_harness") == 0;
}

static const struct mark *find_mark(void)
{
    for (size_t i = 0; i < sizeof MARKS / sizeof *MARKS; i++)
        if (value_of(MARKS[i].variable) != NULL)
            return is_harness() ? NULL : &MARKS[i];
    return NULL;
}

/* ---- the agent's process ---- */

static ssize_t read_of(pid_t pid, const char *name, char *text, size_t room)
{
    char path[64];
    ssize_t got, size = 0;
    int fd;

    snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    while ((size_t)size < room && (got = read(fd, text + size, room - (size_t)size)) > 0)
        size += got;
    close(fd);
    return size;
}

/* The field with this number, as proc(5) counts; `rest` begins with the blank before the third. */
static const char *stat_field(const char *rest, int number)
{
    for (; number > 3 && rest != NULL; number--)
        rest = strchr(rest + 1, ' ');
    return rest == NULL ? "" : rest;
}

struct ancestor {
    pid_t pid, parent;
    char name[32];
    unsigned long long started;
};

/* Return -1 where there is no such process. */
static int look_at(struct ancestor *ancestor, pid_t pid)
{
    char text[1024], *name, *rest;
    ssize_t size = read_of(pid, "stat", text, sizeof text - 1);

    if (size <= 0)
        return -1;
    text[size] = '\0';
    name = strchr(text, '(');
    rest = strrchr(text, ')');
    if (name == NULL || rest == NULL)
        return -1;
    *rest = '\0';
    snprintf(ancestor->name, sizeof ancestor->name, "%s", name + 1);
    ancestor->pid = pid;
    ancestor->parent = (pid_t)strtol(stat_field(rest + 1, 4), NULL, 10);
    ancestor->started = strtoull(stat_field(rest + 1, 22), NULL, 10);
    return 0;
}

static bool is_shell(const char *name)
{
    static const char *const NAMES[] = {"bash", "zsh", "sh", "dash", "env", "timeout"};

    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (strcmp(NAMES[i], name) == 0)
            return true;
    return strncmp(name, "flightrec-helpe", 15) == 0; /* the system keeps 15 letters */
}

/* The nearest process above us that is no shell. */
static int find_agent(struct ancestor *agent)
{
    pid_t pid = getppid();

    for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++, pid = agent->parent) {
        if (look_at(agent, pid) < 0)
            return -1;
        if (!is_shell(agent->name))
            return 0;
    }
    return -1;
}

/* ---- the session ---- */

/* FNV-1a of 128 bits. */
static unsigned __int128 hash_add(unsigned __int128 hash, const char *text, size_t size)
{
    const unsigned __int128 prime = ((unsigned __int128)1 << 88) + 0x13b;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)text[i]) * prime;
    return hash;
}

static void hash_session(uint8_t id[WIRE_ID_SIZE], const char *agent, const char *session)
{
    unsigned __int128 hash =
        (unsigned __int128)0x6c62272e07bb0142ULL << 64 | 0x62b821756295c58dULL;

    hash = hash_add(hash, agent, strlen(agent) + 1);
    hash = hash_add(hash, session, strlen(session));
    for (size_t i = WIRE_ID_SIZE; i-- > 0; hash >>= 8)
        id[i] = (uint8_t)hash;
}

/* Without a name of its own, a session is as long as the agent's process. */
static void describe_process(char *text, size_t room, const struct ancestor *agent)
{
    char boot[64];
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, boot, sizeof boot - 1);

    boot[size < 0 ? 0 : size] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
    if (fd >= 0)
        close(fd);
    snprintf(text, room, "%s %ld %llu", boot, (long)agent->pid, agent->started);
}

/* ---- the person's variables ---- */

static char agents_environment[ENVIRON_MAX];

/* A variable as the agent was started with it, NULL where it had none. */
static const char *agents_value(const char *name, size_t size)
{
    size_t length = strlen(name);

    for (const char *at = agents_environment; at < agents_environment + size; at += strlen(at) + 1)
        if (strncmp(at, name, length) == 0 && at[length] == '=')
            return at + length + 1;
    return NULL;
}

/* Our own value, which the settings gave, is none of the person's. */
static void keep_persons(struct environment *changed, const char *variable, const char *kept,
                         char assignment[WIRE_PATH_MAX], size_t size)
{
    const char *persons = agents_value(variable, size), *now = getenv(variable);

    if (persons == NULL || getenv(kept) != NULL || (now != NULL && strcmp(now, persons) == 0))
        return;
    if (snprintf(assignment, WIRE_PATH_MAX, "%s=%s", kept, persons) < WIRE_PATH_MAX)
        environment_set(changed, assignment);
}

static void keep_persons_variables(struct environment *changed, const struct ancestor *agent)
{
    static char bash_env[WIRE_PATH_MAX], zdotdir[WIRE_PATH_MAX];
    ssize_t size = read_of(agent->pid, "environ", agents_environment, sizeof agents_environment - 1);

    if (size <= 0)
        return;
    keep_persons(changed, "BASH_ENV", AGENT_BASH_ENV, bash_env, (size_t)size);
    keep_persons(changed, "ZDOTDIR", AGENT_ZDOTDIR, zdotdir, (size_t)size);
}

/* Who installed us left a link to flightrec beside the scripts. */
static void name_starter(struct environment *changed)
{
    static char assignment[PATH_MAX];
    const char *scripts = value_of(AGENT_SCRIPTS);
    int size = snprintf(assignment, sizeof assignment, AGENT_STARTER "=%s/flightrec",
                        scripts == NULL ? "" : scripts);

    if (scripts != NULL && (size_t)size < sizeof assignment && getenv(AGENT_STARTER) == NULL &&
        access(assignment + sizeof AGENT_STARTER, X_OK) == 0)
        environment_set(changed, assignment);
}

/* Return -1 where neither the agent nor the system tells one session from another. */
static int find_session(uint8_t id[WIRE_ID_SIZE], const struct mark *mark,
                        const struct ancestor *agent)
{
    const char *session = value_of(mark->session);
    char process[128];

    if (session == NULL && agent == NULL)
        return -1;
    if (session == NULL)
        describe_process(process, sizeof process, agent);
    hash_session(id, mark->agent, session == NULL ? process : session);
    return 0;
}

int marks_adopt(void)
{
    static char session[sizeof AGENT_SESSION + AGENT_ID_TEXT], name[sizeof AGENT_NAME + 32];
    static struct environment changed; /* becomes ours: there is no heap */
    const struct mark *mark = find_mark();
    struct ancestor agent;
    bool found = mark != NULL && find_agent(&agent) == 0;
    uint8_t id[WIRE_ID_SIZE];
    char text[AGENT_ID_TEXT];

    if (mark == NULL || find_session(id, mark, found ? &agent : NULL) < 0 ||
        environment_copy(&changed) < 0)
        return -1;
    agent_format_id(text, id);
    snprintf(session, sizeof session, AGENT_SESSION "=%s", text);
    snprintf(name, sizeof name, AGENT_NAME "=%s", mark->agent);
    environment_set(&changed, session);
    environment_set(&changed, name);
    name_starter(&changed);
    if (found)
        keep_persons_variables(&changed, &agent);
    environ = changed.entries;
    return 0;
}
