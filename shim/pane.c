#include "pane.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BLOCKED_US = 30 * 1000 * 1000,
    RIGHT_PROMPT_GAP = 2, /* blanks between a line and what a shell shows at the right */
};

bool pane_find(struct pane *pane)
{
    const char *server = getenv("TMUX"), *id = getenv("TMUX_PANE");
    size_t size = server == NULL ? 0 : strcspn(server, ","); /* SOCKET,PID,SESSION */

    if (getenv("FLIGHTREC_NO_TAIL") != NULL || id == NULL || strlen(id) >= sizeof pane->id ||
        size == 0 || size >= sizeof pane->socket)
        return false;
    memcpy(pane->socket, server, size);
    pane->socket[size] = '\0';
    memcpy(pane->id, id, strlen(id) + 1);
    return true;
}

/* ---- asking ---- */

static pid_t start_tmux(const struct pane *pane, int out)
{
    const char *words[] = {"tmux", "-S", pane->socket, "capture-pane", "-p", "-J", "-S", "-40", "-t",
                           pane->id, NULL};
    pid_t pid = vfork();

    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        execvp(words[0], (char *const *)words);
        _exit(127);
    }
    return pid;
}

/* Keep the end, where there is more than we have room for. */
static size_t make_room(struct pane *pane, size_t size)
{
    if (size < sizeof pane->text)
        return size;
    memmove(pane->text, pane->text + sizeof pane->text / 2, sizeof pane->text / 2);
    return sizeof pane->text / 2;
}

/* Return the text's size, or -1 where it has not come to its end in time. */
static ssize_t read_text(struct pane *pane, int in, int64_t deadline_us)
{
    size_t size = 0;

    for (;;) {
        struct pollfd ready = {in, POLLIN, 0};
        int count = poll(&ready, 1, clock_poll_ms(deadline_us));
        ssize_t got;
        if (count == 0 || (count < 0 && errno != EINTR))
            return -1;
        if (count < 0)
            continue;
        size = make_room(pane, size);
        got = read(in, pane->text + size, sizeof pane->text - size);
        if (got <= 0)
            return got == 0 ? (ssize_t)size : -1;
        size += (size_t)got;
    }
}

size_t pane_capture(struct pane *pane, int64_t limit_us)
{
    int64_t now_us = clock_mono_us();
    ssize_t size = -1;
    int ends[2];
    pid_t pid;

    if (now_us < pane->blocked_until_us || pipe2(ends, O_CLOEXEC) < 0)
        return 0;
    pid = start_tmux(pane, ends[1]);
    close(ends[1]);
    if (pid > 0) {
        size = read_text(pane, ends[0], now_us + limit_us);
        kill(pid, SIGKILL); /* all that it had to say is said, or comes too late */
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    if (size < 0)
        pane->blocked_until_us = clock_mono_us() + BLOCKED_US;
    return size < 0 ? 0 : (size_t)size;
}

/* ---- lines ---- */

static struct bytes without_blanks_behind(const char *at, size_t size)
{
    while (size > 0 && (at[size - 1] == ' ' || at[size - 1] == '\n'))
        size--;
    return (struct bytes){at, size};
}

static bool ends_with(struct bytes line, struct bytes text)
{
    const char *at = line.data;

    return line.size >= text.size &&
           memcmp(at + line.size - text.size, text.data, text.size) == 0;
}

/* Where `text` stands in the line with a gap behind it, as it does before a prompt at the right. */
static const char *find_before_gap(struct bytes line, struct bytes text)
{
    const char *at = line.data, *end = at + line.size;

    while ((at = memmem(at, (size_t)(end - at), text.data, text.size)) != NULL) {
        const char *behind = at + text.size;
        if (end - behind > RIGHT_PROMPT_GAP && memcmp(behind, "  ", RIGHT_PROMPT_GAP) == 0)
            return at;
        at++;
    }
    return NULL;
}

static bool starts_in(struct bytes text, const char *prefix, size_t size)
{
    const char *at = text.data, *end = at + text.size;

    while (at != NULL && (size_t)(end - at) >= size) {
        if (memcmp(at, prefix, size) == 0)
            return true;
        at = memchr(at, '\n', (size_t)(end - at));
        at = at == NULL ? NULL : at + 1;
    }
    return false;
}

/* ---- commands that are talked with ---- */

/* The next word, without its folder; an empty one at the end. */
static struct bytes next_word(const char **at, const char *end)
{
    const char *slash;
    struct bytes word;

    while (*at < end && **at == ' ')
        (*at)++;
    word.data = *at;
    while (*at < end && **at != ' ')
        (*at)++;
    word.size = (size_t)(*at - (const char *)word.data);
    slash = memrchr(word.data, '/', word.size);
    if (slash != NULL)
        word = (struct bytes){slash + 1, (size_t)(*at - slash - 1)};
    return word;
}

static bool is_one_of(const char *const *names, struct bytes word)
{
    for (; *names != NULL; names++)
        if (strlen(*names) == word.size && memcmp(*names, word.data, word.size) == 0)
            return true;
    return false;
}

/* A shell, here or elsewhere, that reads what is typed. */
static bool is_talk(struct bytes command)
{
    static const char *const BEFORE[] = {"exec", "command", "env", NULL};
    static const char *const PRIVILEGE[] = {"sudo", "doas", NULL};
    static const char *const ELSEWHERE[] = {"ssh", "su", "mosh", "telnet", "login", "-i", "-s", NULL};
    static const char *const SHELLS[] = {"bash", "zsh", "sh", "dash", "fish", "ksh", NULL};
    const char *at = command.data, *end = at + command.size;
    struct bytes word = next_word(&at, end);

    while (is_one_of(BEFORE, word))
        word = next_word(&at, end);
    if (is_one_of(PRIVILEGE, word))
        while (word.size > 0 && !is_one_of(ELSEWHERE, word) && !is_one_of(SHELLS, word))
            word = next_word(&at, end);
    if (is_one_of(ELSEWHERE, word))
        return true;
    if (!is_one_of(SHELLS, word))
        return false;
    word = next_word(&at, end);
    return word.size == 0 || is_one_of((const char *const[]){"-i", "-l", "-s", "--login", NULL}, word);
}

/* ---- what of it is the command's ---- */

/* The command's last line, which the shell has shown behind a prompt. */
static struct bytes last_line(struct bytes command)
{
    struct bytes text = without_blanks_behind(command.data, command.size);
    const char *newline = memrchr(text.data, '\n', text.size);

    if (newline == NULL)
        return text;
    return (struct bytes){newline + 1, text.size - (size_t)(newline + 1 - (const char *)text.data)};
}

/* Where the command was typed: the last line that ends in it. NULL where there is none. `line` and
 * `line_end` are that line's. */
static const char *find_typed(struct bytes shown, struct bytes typed, const char **line,
                              const char **line_end)
{
    const char *text = shown.data;

    *line_end = text + shown.size;
    for (;; *line_end = *line - 1) {
        const char *newline = memrchr(text, '\n', (size_t)(*line_end - text)), *found;
        struct bytes whole;
        *line = newline == NULL ? text : newline + 1;
        whole = without_blanks_behind(*line, (size_t)(*line_end - *line));
        if (ends_with(whole, typed))
            return *line + whole.size - typed.size;
        found = find_before_gap(whole, typed);
        if (found != NULL || *line == text)
            return found;
    }
}

struct bytes pane_output(const char *text, size_t size, struct bytes command)
{
    const struct bytes none = {NULL, 0};
    struct bytes shown = without_blanks_behind(text, size);
    struct bytes typed = last_line(command), output;
    const char *line, *line_end, *typed_at;

    if (typed.size == 0 || is_talk(command))
        return none;
    typed_at = find_typed(shown, typed, &line, &line_end);
    if (typed_at == NULL)
        return none;
    if (line_end < text + shown.size)
        line_end++;
    output = (struct bytes){line_end, (size_t)(text + shown.size - line_end)};
    /* The same prompt once more: a shell below, and what was typed there. */
    if (typed.data == command.data && typed_at - line > 1 &&
        starts_in(output, line, (size_t)(typed_at - line)))
        return none;
    return output;
}
