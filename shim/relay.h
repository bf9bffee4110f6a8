/* The role `relay`: one per interactive shell, between its two FIFOs and the daemon's socket. */
#ifndef FLIGHTREC_RELAY_H
#define FLIGHTREC_RELAY_H

/* `flightrec-helper relay SHELL PID [STARTER]`: print assignments for the shell to eval and leave a
 * detached process behind; or print nothing where nothing is to be recorded. Always 0. */
int relay_main(int argc, char **argv);

#endif
