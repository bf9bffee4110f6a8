/*
 * The role `shim`: stands in for a development tool of the allow-list in an agent's run. It reports the
 * tool as a part of the shell command around it, or, where no shell was seen, as a command of its own.
 */
#ifndef FLIGHTREC_SHIM_H
#define FLIGHTREC_SHIM_H

/* Under the tool's name, first on PATH: argv is the tool's. */
int shim_main_as_program(char **argv);

/* `flightrec-helper shim PROGRAM ARGV0 [ARGUMENT...]`: from `flightrec run`, whose command it is. */
int shim_main(int argc, char **argv);

#endif
