/* The role `pty`: a whole session of a shell inside a terminal of its own, so that the tail of what
 * each command writes is known, in order, and no program sees a difference. */
#ifndef FLIGHTREC_PTY_H
#define FLIGHTREC_PTY_H

/* `flightrec-helper pty PROGRAM STARTER -- ARGV0 ARGUMENTS…`: run the shell PROGRAM there until it ends,
 * and end as it did. Where that cannot be done, become PROGRAM. */
int pty_main(int argc, char **argv);

#endif
