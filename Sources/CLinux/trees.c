#include "trees.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int earshot_sync_file_system(int descriptor) { return syncfs(descriptor); }

int64_t earshot_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int64_t earshot_seek_hole(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_HOLE); }

int earshot_exchange(int from_directory, const char *from, int to_directory, const char *to) {
    return renameat2(from_directory, from, to_directory, to, RENAME_EXCHANGE);
}
