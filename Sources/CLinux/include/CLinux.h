#ifndef EARSHOT_CLINUX_H
#define EARSHOT_CLINUX_H

#include <stdint.h>
#include <sys/types.h>

#include "commands.h"
#include "files.h"
#include "landlock.h"
#include "sockets.h"
#include "tasks.h"
#include "trees.h"
#include "xxh3.h"

/// The kernel's word on who is at the other end of a Unix socket (unix(7), SO_PEERCRED).
/// glibc hides `struct ucred` behind _GNU_SOURCE, which Swift's Glibc module does not set.
struct earshot_ucred {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

/// Whether something keeps the system's clock right (adjtimex(2)): 1 or 0, or -1 where the kernel does not say.
int earshot_clock_is_synchronised(void);

/// Bounds what the heap holds beyond what is in use (mallopt(3)): at most so many arenas, allocations of at least `mapped` bytes given back
/// at once, and no more than `spare` bytes kept at the end of an arena. To be called before a second thread exists.
void earshot_bound_heap(int arenas, int mapped, int spare);

/// Gives free pages of the heap back to the system, also those that lie between what is in use (malloc_trim(3)). Takes milliseconds.
void earshot_trim_heap(void);

/// Has the calling thread take its turns in pieces of 100 ms, as it is fair to all; what wakes up meanwhile comes first (sched_setattr(2), a
/// slice of one's own since Linux 6.12; nothing happens before, or where it is not permitted). Nothing else of its scheduling changes.
void earshot_take_long_turns(void);

#endif
