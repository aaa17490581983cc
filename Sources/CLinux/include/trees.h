#ifndef EARSHOT_TREES_H
#define EARSHOT_TREES_H

#include <stdint.h>

/// syncfs(2): waits until everything on the descriptor's file system is on disk. Returns 0, or -1 with errno.
int earshot_sync_file_system(int descriptor);

/// lseek(2) with SEEK_DATA: the first byte of data at or after `offset`; -1 with ENXIO where there is none.
int64_t earshot_seek_data(int descriptor, int64_t offset);

/// lseek(2) with SEEK_HOLE: the first byte of a hole at or after `offset`; the end of the file counts as one.
int64_t earshot_seek_hole(int descriptor, int64_t offset);

/// The rights of the owning group (0 to 7) in the access control list (acl(5)) of an open file; -1 where it has none, so that its mode has them.
int earshot_listed_group_rights(int descriptor);

/// The same of an entry of an open directory, which is no link.
int earshot_listed_group_rights_at(int directory, const char *name);

/// fnmatch(3) with FNM_LEADING_DIR and UTF-8 characters: whether a pattern matches a path, or the path of a directory above it. As with
/// `tar --exclude`, wildcards match slashes, and the pattern may match from the beginning of any component on. Its time is bounded by the
/// product of both lengths.
int earshot_is_excluded(const char *pattern, const char *path);

/// renameat2(2) with RENAME_EXCHANGE: the two entries change places at once.
int earshot_exchange(int from_directory, const char *from, int to_directory, const char *to);

#endif
