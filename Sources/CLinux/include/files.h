#ifndef EARSHOT_FILES_H
#define EARSHOT_FILES_H

#include <stdint.h>
#include <sys/types.h>

/// openat2(2): opens `path` below `directory`, never outside it and never through a symbolic link.
/// Returns a descriptor, or -1 with errno; ENOSYS before Linux 5.6 and where a sandbox hides the call.
int earshot_open_beneath(int directory, const char *path, int flags, mode_t mode);

/// renameat2(2) with RENAME_NOREPLACE: fails with EEXIST rather than replace anything. In steps where the file system knows no such
/// flag, as NFS and ZFS before 2.2 do not.
int earshot_rename_no_replace(int from_directory, const char *from, int to_directory, const char *to);

/// The same by calls that every file system has: a process that is killed in between leaves a second name of a file, or an empty directory.
int earshot_rename_in_steps(int from_directory, const char *from, int to_directory, const char *to);

/// O_TMPFILE: a file without a name in `directory`, which linkat can give one. EOPNOTSUPP where the file system cannot.
int earshot_open_unnamed(int directory, mode_t mode);

/// Gives a file from earshot_open_unnamed its name; fails with EEXIST rather than replace anything.
int earshot_link_unnamed(int descriptor, int directory, const char *name);

/// What an errno means, in words; a constant that any thread may read.
const char *earshot_error_text(int code);

/// Takes an exclusive open-file-description lock on the whole file (fcntl(2), F_OFD_SETLK).
/// Returns 0 when it was taken, or -1 with errno: EAGAIN when another description holds it.
int earshot_lock_file(int descriptor);

/// fallocate(2) from the start of the file: the blocks up to `size` are its own, and its size stays. Returns 0, or -1 with errno.
int earshot_reserve(int descriptor, uint64_t size);

/// ioctl_ficlone(2): has the empty file `to` share the blocks of `from`. Returns 0, or -1 with errno where the file system cannot, or the
/// files lie on different ones.
int earshot_clone_file(int to, int from);

/// copy_file_range(2) of at most `count` bytes at the same offset of both files, within the kernel. Returns how many, or -1 with errno: EXDEV
/// where the files lie on different file systems. Some file systems return 0 for a file of which they can copy nothing.
ssize_t earshot_copy_range(int to, int from, uint64_t offset, size_t count);

/// Whether an open file or directory lies on a tmpfs: 1 or 0.
int earshot_is_in_memory(int descriptor);

/// Whether an open file or directory lies on a file system of which syncfs(2) saves nothing, but fsync(2) each entry (FUSE and eCryptfs):
/// 1 or 0.
int earshot_is_saved_by_entry(int descriptor);

/// Which mount an open file or directory was reached by (statx(2), STATX_MNT_ID). Returns 0, or -1 where the kernel does not say, as none does
/// before Linux 5.8.
int earshot_mount(int descriptor, uint64_t *mount);

/// Names the calling thread (at most 15 bytes), as ps and a debugger show it.
void earshot_name_thread(const char *name);

#endif
