/* Time, in microseconds. */
#ifndef FLIGHTREC_CLOCK_H
#define FLIGHTREC_CLOCK_H

#include <stdint.h>

int64_t clock_mono_us(void); /* never jumps: durations and deadlines */
int64_t clock_wall_us(void); /* since 1970: for people */

/* Milliseconds for poll(2) until `deadline_us`, rounded up, never negative. */
int clock_poll_ms(int64_t deadline_us);

#endif
