#include "tasks.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The Swift runtime's (stdlib/public/Concurrency): called, where it is set, for every job that may run anywhere.
typedef __attribute__((swiftcall)) void (*enqueue_original)(void *job);
typedef __attribute__((swiftcall)) void (*enqueue_hook)(void *job, enqueue_original original);
extern enqueue_hook swift_task_enqueueGlobal_hook;
// Runs one; no executor is that of any place.
extern __attribute__((swiftcall)) void swift_job_run(void *job, void *executor, uintptr_t implementation);

static struct {
    pthread_mutex_t lock;
    pthread_cond_t news;
    // A ring.
    void **jobs;
    size_t first, count, room;
    unsigned idle;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static void push(void *job) {
    if (pool.count == pool.room) {
        size_t room = pool.room ? pool.room * 2 : 64;
        void **jobs = realloc(pool.jobs, room * sizeof *jobs);
        // As Swift itself ends where there is no memory left.
        if (!jobs) abort();
        // What lay before the first one comes behind the old end.
        memcpy(jobs + pool.room, jobs, pool.first * sizeof *jobs);
        pool.jobs = jobs;
        pool.room = room;
    }
    pool.jobs[(pool.first + pool.count++) % pool.room] = job;
}

static __attribute__((swiftcall)) void take(void *job, enqueue_original original) {
    (void)original;
    pthread_mutex_lock(&pool.lock);
    push(job);
    int wakes = pool.idle > 0;
    pthread_mutex_unlock(&pool.lock);
    if (wakes) pthread_cond_signal(&pool.news);
}

static void *work(void *number) {
    char name[16];
    snprintf(name, sizeof name, "earshot-task-%d", (int)(intptr_t)number);
    // By the thread itself: a confined process may not write into another thread's files.
    pthread_setname_np(pthread_self(), name);
    pthread_mutex_lock(&pool.lock);
    while (1) {
        while (!pool.count) {
            pool.idle++;
            pthread_cond_wait(&pool.news, &pool.lock);
            pool.idle--;
        }
        void *job = pool.jobs[pool.first];
        pool.first = (pool.first + 1) % pool.room;
        pool.count--;
        pthread_mutex_unlock(&pool.lock);
        swift_job_run(job, NULL, 0);
        pthread_mutex_lock(&pool.lock);
    }
    return NULL;
}

int earshot_run_tasks(int threads) {
    int begun = 0;
    for (; begun < threads; begun++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)(begun + 1)) != 0) break;
        pthread_detach(thread);
    }
    if (!begun) return -1;
    swift_task_enqueueGlobal_hook = take;
    return 0;
}
