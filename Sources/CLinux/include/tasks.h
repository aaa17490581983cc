#ifndef EARSHOT_TASKS_H
#define EARSHOT_TASKS_H

/// Has Swift's tasks that run anywhere run on so many threads of our own, which sleep until there is something to do. On Linux they run on libdispatch's
/// otherwise, whose manager wakes up once a second for as long as the process lives, and whose threads come and go.
/// To be called once, before any of them runs. Returns 0, or -1 where no thread can be had, and nothing has changed.
int earshot_run_tasks(int threads);

#endif
