/*
 * flightrec-helper: what stands between a shell and the daemon.
 *
 * It fails open: no daemon, a slow daemon, a folder that cannot be written or a bad argument all end
 * in a silent exit 0, and the shell is as it was.
 */
#include "hook.h"
#include "program.h"
#include "pty.h"
#include "relay.h"
#include "script.h"
#include "send.h"
#include "sh.h"
#include "shim.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

struct role {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the role's name */
};

static int version_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("flightrec-helper " FLIGHTREC_VERSION);
    return 0;
}

static const struct role ROLES[] = {
    {"relay", relay_main},
    {"pty", pty_main},
    {"hint", hint_main},
    {"send", send_main},
    {"sh", sh_main},
    {"shim", shim_main},
    {"report", report_main},
    {"hook", hook_main},
    {"--version", version_main},
};

static const struct role *find_role(const char *name)
{
    for (size_t i = 0; name != NULL && i < sizeof ROLES / sizeof *ROLES; i++)
        if (strcmp(ROLES[i].name, name) == 0)
            return &ROLES[i];
    return NULL;
}

/* The name under which the system found this program; argv[0] is whatever the caller liked
 * (`exec -a`, a login shell's dash). */
static const char *executed_name(void)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    const char *slash = path == NULL ? NULL : strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

/* Under a name of its own, the program stands in for the one of that name. */
static bool is_helper(const char *name)
{
    return name == NULL || strncmp(name, HELPER_NAME, sizeof HELPER_NAME - 1) == 0;
}

int main(int argc, char **argv)
{
    const char *name = executed_name();
    const struct role *role;

    if (!is_helper(name))
        return sh_is_shell(name) ? sh_main_as_shell(argv) : shim_main_as_program(argv);
    role = argc > 1 ? find_role(argv[1]) : NULL;
    if (role != NULL)
        return role->run(argc - 1, argv + 1);
    fputs("flightrec-helper: roles are relay, pty, hint, send, sh, shim, report and hook;"
          " flightrec starts it, not you\n", stderr);
    return 2;
}
