#ifndef EARSHOT_COMMANDS_H
#define EARSHOT_COMMANDS_H

#include <stddef.h>
#include <sys/types.h>

/// A file in memory (memfd_create(2)) with these bytes, open at its start. Returns a descriptor, or -1 with errno.
int earshot_memory_file(const void *bytes, size_t count);

/// Runs the program at `path` with `input` as its standard input (posix_spawn(3)), and `output` as its standard output unless that is -1.
/// The program keeps this process's standard error, its standard output if `output` is -1, and no other descriptor. It has a session of its
/// own, without a terminal, and default actions for all signals. Returns 0 and the process, or an errno.
int earshot_spawn(const char *path, char *const arguments[], char *const environment[], int input, int output, pid_t *process);

/// Ends this process by a signal, whose action and mask in this thread are reset first. Returns only if the signal does not end processes.
void earshot_die(int signal);

#endif
