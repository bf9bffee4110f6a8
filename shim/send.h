/* The roles `hint` and `send`: for scripts and for hooks of other programs. Both say nothing and exit
 * 0 where no daemon answers. */
#ifndef FLIGHTREC_SEND_H
#define FLIGHTREC_SEND_H

/* `flightrec-helper hint [options] [--] COMMAND`: announce a command and print the daemon's hint. */
int hint_main(int argc, char **argv);

/* `flightrec-helper send [options] [--] [COMMAND]`: report how a command ended; without COMMAND, one
 * that `hint --run` announced. */
int send_main(int argc, char **argv);

#endif
