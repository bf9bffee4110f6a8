/* The shell as the system sees it. Linux; another system needs these functions. */
#ifndef FLIGHTREC_PROCESS_H
#define FLIGHTREC_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

/* A descriptor that becomes readable when the process ends, or -1. */
int process_watch(pid_t);

/* When the process began, in the system's ticks: tells it from a later one with its pid, and is the
 * same after exec. 0 where it is gone. */
unsigned long long process_start_time(pid_t);

/* The working folder, or "" where that cannot be seen. */
void process_folder(pid_t, char *folder, size_t room);

/* Close every descriptor from this one on. */
void process_close_from(int first);

#endif
