#include "CLinux.h"

#include <malloc.h>
#include <sched.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

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

void earshot_trim_heap(void) { malloc_trim(0); }

// As linux/sched/types.h has it, which Debian 12 does not let stand beside sched.h.
struct earshot_scheduling {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void earshot_take_long_turns(void) {
    struct earshot_scheduling scheduling = {0};
    if (syscall(SYS_sched_getattr, 0, &scheduling, sizeof scheduling, 0) != 0) return;
    if (scheduling.policy != SCHED_OTHER && scheduling.policy != SCHED_BATCH) return;
    scheduling.size = sizeof scheduling;
    scheduling.runtime = 100 * 1000 * 1000;
    scheduling.deadline = 0;
    scheduling.period = 0;
    syscall(SYS_sched_setattr, 0, &scheduling, 0);
}
