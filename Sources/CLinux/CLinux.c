#include "CLinux.h"

#include <malloc.h>
#include <sys/timex.h>

int earshot_clock_is_synchronised(void) {
    struct timex state = {0};
    int answer = adjtimex(&state);
    if (answer < 0) return -1;
    return answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}

void earshot_bound_heap(int arenas, int mapped, int spare) {
    mallopt(M_ARENA_MAX, arenas);
    mallopt(M_MMAP_THRESHOLD, mapped);
    mallopt(M_TRIM_THRESHOLD, spare);
}
