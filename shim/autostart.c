#include "autostart.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Many terminals open at once and all miss the daemon: the lock lets one of them through, the
 * file's time keeps the others out afterwards. */
static int take_turn(const char *stamp)
{
    int fd = open(stamp, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    struct stat found;
    struct timespec now;
    int result = -1;

    if (fd < 0)
        return -1;
    clock_gettime(CLOCK_REALTIME, &now);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &found) < 0)
        goto done;
    /* A new file has the size 0; one in the future comes from a clock that was set back. */
    if (found.st_size > 0 && now.tv_sec - found.st_mtime < AUTOSTART_GAP_S &&
        found.st_mtime <= now.tv_sec)
        goto done;
    if (pwrite(fd, "1", 1, 0) == 1)
        result = 0;
done:
    if (result < 0)
        errno = EALREADY;
    close(fd);
    return result;
}

/* Only absolute entries: what `.` holds is not ours to run. */
static int find_on_path(char found[PATH_MAX])
{
    const char *at = getenv("PATH");

    while (at != NULL && *at != '\0') {
        size_t size = strcspn(at, ":");
        if (at[0] == '/' && size + sizeof "/flightrec" < PATH_MAX) {
            snprintf(found, PATH_MAX, "%.*s/flightrec", (int)size, at);
            if (access(found, X_OK) == 0)
                return 0;
        }
        at += size + (at[size] == ':');
    }
    errno = ENOENT;
    return -1;
}

static void be_detached(void)
{
    sigset_t none;
    int null = open("/dev/null", O_RDWR);

    setsid();
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int autostart_daemon(const struct paths *paths, const char *command)
{
    char found[PATH_MAX];
    pid_t child;

    if (command[0] == '\0') {
        if (find_on_path(found) < 0)
            return -1;
        command = found;
    }
    if (access(command, X_OK) < 0 || take_turn(paths->autostart) < 0)
        return -1;
    child = fork();
    if (child < 0)
        return -1;
    if (child == 0) {
        /* A grandchild, so that nobody has to wait for it. */
        if (fork() == 0) {
            be_detached();
            execl(command, command, "daemon", "start", (char *)NULL);
        }
        _exit(0);
    }
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 0;
}
