#include "clock.h"

#include <limits.h>
#include <time.h>

static int64_t now_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t clock_mono_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

int64_t clock_wall_us(void)
{
    return now_us(CLOCK_REALTIME);
}

int clock_poll_ms(int64_t deadline_us)
{
    int64_t left = deadline_us - clock_mono_us();

    if (left <= 0)
        return 0;
    left = (left + 999) / 1000;
    return left > INT_MAX ? INT_MAX : (int)left;
}
