// Tells the Thread Sanitizer of the locks of Swift's Mutex, for Tests/sanitize to load before everything else.
//
// The quick way through Synchronization.Mutex, one compare-and-exchange, is compiled into its users, and the sanitizer sees it. The
// slow way, taken when two threads want the lock at once, lies in libswiftSynchronization, which is not instrumented, and ends in the
// kernel (FUTEX_LOCK_PI): who gets the lock there is taken for not having waited, and every value behind a Mutex for a race. The shortest
// program shows it: four threads that append to a Mutex<[Int]> are reported in every run without this, in none with it, and a race that
// no lock guards is reported with it as well. So nothing has to be suppressed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// Synchronization._MutexHandle._lockSlow(Swift.UInt32) -> () and ._unlockSlow() -> ()
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

// The sanitizer's, where the process has one: a tool that a test starts has not.
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

typedef __attribute__((swiftcall)) void (*Lock)(uint32_t, __attribute__((swift_context)) void *);
typedef __attribute__((swiftcall)) void (*Unlock)(__attribute__((swift_context)) void *);

__attribute__((swiftcall)) void lock_slow(uint32_t thread, __attribute__((swift_context)) void *handle) __asm__(LOCK);
__attribute__((swiftcall)) void unlock_slow(__attribute__((swift_context)) void *handle) __asm__(UNLOCK);

static void *original(const char *name) {
    void *function = dlsym(RTLD_NEXT, name);
    if (function == NULL) abort();
    return function;
}

__attribute__((swiftcall)) void lock_slow(uint32_t thread, __attribute__((swift_context)) void *handle) {
    ((Lock)original(LOCK))(thread, handle);
    if (__tsan_acquire) __tsan_acquire(handle);
}

__attribute__((swiftcall)) void unlock_slow(__attribute__((swift_context)) void *handle) {
    if (__tsan_release) __tsan_release(handle);
    ((Unlock)original(UNLOCK))(handle);
}
