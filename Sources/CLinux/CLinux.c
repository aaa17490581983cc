#include "CLinux.h"

#include <sys/timex.h>

int earshot_clock_is_synchronised(void) {
    struct timex state = {0};
    int answer = adjtimex(&state);
    if (answer < 0) return -1;
    return answer != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}
