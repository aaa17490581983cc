#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

int earshot_memory_file(const void *bytes, size_t count) {
    int file = memfd_create("earshot", MFD_CLOEXEC);
    if (file < 0) return -1;
    size_t written = 0;
    while (written < count) {
        ssize_t now = pwrite(file, (const char *)bytes + written, count - written, (off_t)written);
        if (now < 0 && errno == EINTR) continue;
        if (now <= 0) {
            int code = now < 0 ? errno : EIO;
            close(file);
            errno = code;
            return -1;
        }
        written += (size_t)now;
    }
    return file;
}

int earshot_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output, pid_t *process) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    code = posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    if (code == 0 && output >= 0) code = posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (code == 0) code = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (code == 0) code = posix_spawnattr_setsigdefault(&attributes, &all);
    if (code == 0) code = posix_spawnattr_setsigmask(&attributes, &none);
    if (code == 0) code = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    if (code == 0) code = posix_spawn(process, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

void earshot_die(int number) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    raise(number);
}
