/* Steps through a thread of a running program, and prints the addresses of the instructions that it meets, each once and in the order in which
 * it is met first. On x86-64.
 *   benchmark-steps THREAD COUNT   for COUNT instructions, of some 20 microseconds each; the thread goes on by itself then */
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>

/* Many times more than a message meets. */
#define PLACES (1 << 20)

static uint64_t seen[PLACES];

/* Whether it is met for the first time. */
static int is_new(uint64_t address) {
    size_t place = (address * 0x9E3779B97F4A7C15u) >> 44;
    while (seen[place] && seen[place] != address) place = (place + 1) % PLACES;
    if (seen[place]) return 0;
    seen[place] = address;
    return 1;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

int main(int count, char **words) {
    if (count != 3) {
        fprintf(stderr, "usage: see the source\n");
        return 64;
    }
    pid_t thread = atoi(words[1]);
    /* On one processor with it: to wake another for each step takes three times as long. */
    cpu_set_t all, one;
    if (sched_getaffinity(thread, sizeof all, &all) != 0) fail("sched_getaffinity");
    CPU_ZERO(&one);
    for (int processor = 0; processor < CPU_SETSIZE; processor++) {
        if (!CPU_ISSET(processor, &all)) continue;
        CPU_SET(processor, &one);
        break;
    }
    sched_setaffinity(0, sizeof one, &one);
    sched_setaffinity(thread, sizeof one, &one);
    int status, signal = 0;
    if (ptrace(PTRACE_SEIZE, thread, 0, 0) != 0) fail("PTRACE_SEIZE");
    if (ptrace(PTRACE_INTERRUPT, thread, 0, 0) != 0 || waitpid(thread, &status, __WALL) < 0) fail("PTRACE_INTERRUPT");
    for (long step = 0; step < atol(words[2]); step++) {
        if (ptrace(PTRACE_SINGLESTEP, thread, 0, signal) != 0 || waitpid(thread, &status, __WALL) < 0) fail("PTRACE_SINGLESTEP");
        if (!WIFSTOPPED(status)) break;
        signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        uint64_t address = (uint64_t)ptrace(PTRACE_PEEKUSER, thread, offsetof(struct user_regs_struct, rip), 0);
        if (is_new(address)) printf("%lx\n", (unsigned long)address);
    }
    ptrace(PTRACE_DETACH, thread, 0, 0);
    sched_setaffinity(thread, sizeof all, &all);
    return 0;
}
