/*
 * What is at the other end of a descriptor. By functions that every libc has: the library that bash loads
 * (bash_door.c) holds it, too, and must come to the same as the helper.
 */
#ifndef FLIGHTREC_FAR_END_H
#define FLIGHTREC_FAR_END_H

#include <stdbool.h>

/* Of a socket: whether what is written there is a stream of bytes. */
bool far_end_is_byte_stream(int fd);

/* Of a pipe or a socket: whether somebody may still read. */
bool far_end_has_reader(int fd);

#endif
