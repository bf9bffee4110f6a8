#include "pane.h"

#include "clock.h"
#include "counters.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKED_US = 30 * 1000 * 1000 };

/* Behind the lines, so that it is there also where they are too many. The terminal is the last word. */
#define STATE "#{session_activity} #{pane_width} #{alternate_on} #{pane_tty}"

bool pane_find(struct pane *pane, const char *terminal, const char *counters)
{
    const char *server = getenv("TMUX"), *id = getenv("TMUX_PANE");
    size_t size = server == NULL ? 0 : strcspn(server, ","); /* SOCKET,PID,SESSION */

    if (getenv("FLIGHTREC_NO_TAIL") != NULL || id == NULL || strlen(id) >= sizeof pane->id ||
        size == 0 || size >= sizeof pane->socket || terminal[0] == '\0')
        return false;
    memcpy(pane->socket, server, size);
    memcpy(pane->id, id, strlen(id) + 1);
    pane->terminal = terminal;
    pane->counters = counters;
    return true;
}

/* `-J` puts a line together that was too long for the pane. */
static pid_t start_tmux(const struct pane *pane, int out)
{
    const char *words[] = {"tmux", "-S", pane->socket, "capture-pane", "-p", "-J", "-S", "-1000",
                           "-t", pane->id, ";", "display-message", "-p", "-t", pane->id, STATE, NULL};
    pid_t pid = vfork();

    if (pid == 0) {
        dup2(out, STDOUT_FILENO);
        execvp(words[0], (char *const *)words);
        _exit(127);
    }
    return pid;
}

/* Keep the end, where there is more than we have room for. */
static void make_room(struct pane *pane)
{
    if (pane->size < sizeof pane->text)
        return;
    pane->size = sizeof pane->text / 2;
    memmove(pane->text, pane->text + pane->size, pane->size);
}

/* Return whether all has come in time. */
static bool read_text(struct pane *pane, int in, int64_t deadline_us)
{
    pane->size = 0;
    for (;;) {
        struct pollfd ready = {in, POLLIN, 0};
        int count = poll(&ready, 1, clock_poll_ms(deadline_us));
        ssize_t got;
        if (count == 0 || (count < 0 && errno != EINTR))
            return false;
        if (count < 0)
            continue;
        make_room(pane);
        got = read(in, pane->text + pane->size, sizeof pane->text - pane->size);
        if (got <= 0)
            return got == 0;
        pane->size += (size_t)got;
    }
}

/* Take the last line off, which is the state. Return whether it is one, and of our terminal: what a shell
 * in another terminal inherits from one in tmux leads to that one's pane. */
static bool take_state(struct pane *pane)
{
    char *state, *at;

    if (pane->size == 0 || pane->text[pane->size - 1] != '\n')
        return false;
    pane->text[pane->size - 1] = '\0';
    state = memrchr(pane->text, '\n', pane->size);
    state = state == NULL ? pane->text : state + 1;
    pane->key_s = strtoll(state, &at, 10);
    pane->columns = (size_t)strtoul(at, &at, 10);
    pane->is_full_screen = strtoul(at, &at, 10) != 0;
    pane->size = (size_t)(state - pane->text);
    return *at == ' ' && strcmp(at + 1, pane->terminal) == 0;
}

bool pane_capture(struct pane *pane, int64_t limit_us)
{
    int64_t now_us = clock_mono_us();
    bool is_known = false;
    int ends[2];
    pid_t pid;

    if (now_us < pane->blocked_until_us || pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid = start_tmux(pane, ends[1]);
    close(ends[1]);
    if (pid > 0) {
        if (!read_text(pane, ends[0], now_us + limit_us))
            counters_add(pane->counters, COUNTER_SILENT_PANES, 1);
        else
            is_known = take_state(pane);
        kill(pid, SIGKILL); /* all that it had to say is said, or comes too late */
        waitpid(pid, NULL, 0);
    }
    close(ends[0]);
    if (!is_known)
        pane->blocked_until_us = clock_mono_us() + BLOCKED_US;
    return is_known;
}
