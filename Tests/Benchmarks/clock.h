/* What the clients of the benchmark share. */
#include <time.h>

/* Seconds by a clock that is never set. */
static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}
