/*
 * A daemon that did not answer in time is not waited for again for BREAKER_US, by no process of this
 * person: the time of a file says so.
 */
#ifndef FLIGHTREC_BREAKER_H
#define FLIGHTREC_BREAKER_H

#include <stdbool.h>

bool breaker_is_open(const char *path);
void breaker_open(const char *path);

#endif
