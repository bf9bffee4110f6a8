/* Starts the daemon where nobody listens. */
#ifndef FLIGHTREC_AUTOSTART_H
#define FLIGHTREC_AUTOSTART_H

#include "paths.h"

enum { AUTOSTART_GAP_S = 30 };

/* Run `COMMAND daemon start`, detached and silent, unless some helper did so less than
 * AUTOSTART_GAP_S ago. `command` is an absolute path, or "" to find flightrec on PATH.
 * Return 0, or -1 with errno: EALREADY where it was tried a moment ago, ENOENT where there is no
 * such command. */
int autostart_daemon(const struct paths *, const char *command);

#endif
