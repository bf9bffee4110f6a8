/*
 * What passes between a bash that has made two of itself (bash_door.c) and the helper, which one of them has
 * become: `flightrec-helper sh --waiting FD PID TEXT`. At FD the shell, which is process PID, waits for
 * one message; where the helper closes FD without one, it goes on unseen.
 *
 * The message: a byte with the bits of the streams (1 << 1, 1 << 2) that the shell is to replace by the
 * descriptors that come along, in that order; then its new variables, "NAME=VALUE" with a NUL each.
 */
#ifndef FLIGHTREC_BASH_DOOR_H
#define FLIGHTREC_BASH_DOOR_H

enum { BASH_DOOR_FDS = 2, BASH_DOOR_SIZE = 1024 };

/* The builtin's statuses, beside those of the role `report`. */
enum { BASH_DOOR_NOT_POSSIBLE = 1, BASH_DOOR_UNSEEN = 6 };

#endif
