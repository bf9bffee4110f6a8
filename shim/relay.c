#include "relay.h"

#include "clock.h"
#include "conversation.h"
#include "pane.h"
#include "pane_text.h"
#include "process.h"
#include "tail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    SHELL_CHECK_US = 5 * 1000 * 1000, /* where the system has no pidfd */
};

struct relay {
    struct conversation talk;
    struct pane pane;
    int watch; /* readable when the shell has ended, or -1 */
};

/* Whether the person has pressed keys since the command began: then the pane holds what was typed, to a
 * shell below this one or for the next line, which is not the command's and may be private. */
static bool is_typed_into(const struct relay *relay)
{
    int ahead = 0;

    return relay->pane.key_s > relay->talk.run.wall_us / 1000000 ||
           (ioctl(relay->talk.terminal.fd, FIONREAD, &ahead) == 0 && ahead > 0);
}

/* After a failure the shell waits for us, and the pane ends in what the command wrote. A question to the
 * daemon has to do with the time that is left. */
static void look(void *context, struct wire_finished *finished)
{
    struct relay *relay = context;
    struct pane *pane = &relay->pane;
    const struct run *run = &relay->talk.run;
    int64_t limit_us = relay->talk.link.ask_limit_us * 3 / 4, began_us = clock_mono_us();
    struct bytes output = {NULL, 0};

    if (finished->exit == 0 || run->total > run->size)
        return;
    if (pane_capture(pane, limit_us) && !pane->is_full_screen && !is_typed_into(relay))
        output = pane_text_output((struct bytes){pane->text, pane->size}, pane->columns,
                                  (struct bytes){run->text, run->size});
    if (clock_mono_us() - began_us >= limit_us)
        finished->wants_reply = false;
    if (output.data == NULL)
        return;
    finished->tail_source = TAIL_PANE;
    finished->tail_total = output.size;
    finished->tail.size = output.size < TAIL_SIZE ? output.size : TAIL_SIZE;
    finished->tail.data = (const char *)output.data + output.size - finished->tail.size;
}

static bool is_shell_gone(const struct relay *relay)
{
    return relay->watch < 0 && kill(relay->talk.pid, 0) < 0 && errno == ESRCH;
}

static int poll_timeout(const struct relay *relay)
{
    int64_t due_us = link_due_us(&relay->talk.link);
    int64_t check_us = relay->watch < 0 ? clock_mono_us() + SHELL_CHECK_US : INT64_MAX;

    if (check_us < due_us)
        due_us = check_us;
    return due_us == INT64_MAX ? -1 : clock_poll_ms(due_us);
}

static void serve(struct relay *relay)
{
    while (!relay->talk.is_leaving) {
        short events;
        struct pollfd ready[] = {
            {relay->talk.channel.in, POLLIN, 0},
            {relay->watch, POLLIN, 0},
            {link_fd(&relay->talk.link, &events), 0, 0},
        };
        int count;

        ready[2].events = events;
        count = poll(ready, 3, poll_timeout(relay));
        if (count < 0 && errno != EINTR)
            return;
        if (ready[0].revents != 0)
            conversation_read(&relay->talk);
        if (count == 0 || ready[2].revents != 0)
            link_serve(&relay->talk.link);
        if (ready[1].revents != 0 || is_shell_gone(relay))
            relay->talk.is_leaving = true;
    }
}

static void let_go_of_terminal(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setsid();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    if (null > 2)
        close(null);
    if (chdir("/") < 0)
        return; /* then some folder stays busy: no reason to give up */
}

static void ignore_signals(void)
{
    static const int IGNORED[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTOU, SIGTTIN};

    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++)
        signal(IGNORED[i], SIG_IGN);
    signal(SIGCHLD, SIG_DFL);
}

/* 'it'\''s': the one form that both shells read back byte for byte. */
static void print_assignment(const char *name, const char *value)
{
    printf("%s='", name);
    for (; *value != '\0'; value++)
        if (*value == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*value);
    fputs("'; ", stdout);
}

int relay_main(int argc, char **argv)
{
    static struct relay relay; /* zeroed, and only the pages in use cost memory */
    pid_t child;

    if (argc < 3 || (relay.talk.pid = (pid_t)strtol(argv[2], NULL, 10)) <= 1)
        return 0;
    relay.talk.shell = argv[1];
    process_close_from(3); /* what we keep would hold back whoever waits for its end */
    terminal_open(&relay.talk.terminal);
    if (conversation_open(&relay.talk) < 0)
        return 0;
    if (pane_find(&relay.pane, relay.talk.terminal.name, relay.talk.paths.counters))
        relay.talk.witness = (struct witness){.context = &relay, .look = look};
    relay.watch = process_watch(relay.talk.pid);
    ignore_signals();
    /* The shell's command substitution was the first fork, this is the second. */
    child = fork();
    if (child < 0) {
        channel_remove(&relay.talk.channel);
        return 0;
    }
    if (child > 0) {
        print_assignment("__flightrec_in", relay.talk.channel.in_path);
        print_assignment("__flightrec_out", relay.talk.channel.out_path);
        printf("__flightrec_relay=%ld\n", (long)child);
        return fflush(stdout) == 0 ? 0 : 1;
    }
    let_go_of_terminal();
    conversation_connect(&relay.talk, "relay", argc > 3 ? argv[3] : "");
    serve(&relay);
    conversation_end(&relay.talk);
    return 0;
}
