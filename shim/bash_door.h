/*
 * What passes between a bash that has made two of itself (bash_door.c) and the helper, which one of them has
 * become:
 *
 *     flightrec-helper sh --waiting FD PID OUTPUT ERROR TEXT
 *
 * The shell, which is process PID, waits at the other end of the pipe FD for one message: a byte, then its new
 * variables, "NAME=VALUE" with a NUL each, where it is seen. OUTPUT and ERROR are our ends of what a shell
 * that is seen writes into from then on, or -1; both streams may share the first. No sockets for all that:
 * sandboxes forbid most of what one does with them.
 */
#ifndef FLIGHTREC_BASH_DOOR_H
#define FLIGHTREC_BASH_DOOR_H

enum { BASH_DOOR_SIZE = 1024, BASH_DOOR_SEEN = '+', BASH_DOOR_NOT_SEEN = '-' };

/* The builtin's statuses, beside those of the role `report`. */
enum { BASH_DOOR_NOT_POSSIBLE = 1, BASH_DOOR_UNSEEN = 6 };

#endif
