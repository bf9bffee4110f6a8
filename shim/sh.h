/*
 * The role `sh`: stands in for a shell that an agent starts with `-c TEXT`, sees the text, the true end
 * and the last output, and is that shell in everything else. All other ways of starting a shell lead
 * straight to the real one.
 */
#ifndef FLIGHTREC_SH_H
#define FLIGHTREC_SH_H

#include <stdbool.h>

/* Whether this is the name of a shell that we stand in for. */
bool sh_is_shell(const char *name);

/* Under a shell's own name, first on PATH or as SHELL: argv is the shell's. */
int sh_main_as_shell(char **argv);

/* `flightrec-helper sh [--root] [--last _=WORD] SHELL ARGV0 [ARGUMENT...]`: from the scripts in
 * shell-integration/, by a shell that was started by its full path, and from `flightrec run`.
 * The form in bash_door.h: from a bash that waits. */
int sh_main(int argc, char **argv);

#endif
