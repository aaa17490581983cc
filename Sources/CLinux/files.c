#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

int earshot_open_beneath(int directory, const char *path, int flags, mode_t mode) {
    struct open_how how;
    memset(&how, 0, sizeof how);
    how.flags = (unsigned int)(flags | O_CLOEXEC);
    how.mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? mode : 0;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

int earshot_rename_no_replace(int from_directory, const char *from, int to_directory, const char *to) {
    if (renameat2(from_directory, from, to_directory, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    return earshot_rename_in_steps(from_directory, from, to_directory, to);
}

int earshot_rename_in_steps(int from_directory, const char *from, int to_directory, const char *to) {
    struct stat status;
    if (fstatat(from_directory, from, &status, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    if (!S_ISDIR(status.st_mode)) {
        // A hard link cannot replace anything.
        if (linkat(from_directory, from, to_directory, to, 0) != 0) return -1;
        return unlinkat(from_directory, from, 0);
    }
    // A new directory cannot either, and rename(2) puts a directory in the place of none but an empty one.
    if (mkdirat(to_directory, to, 0700) != 0) return -1;
    if (renameat(from_directory, from, to_directory, to) == 0) return 0;
    int code = errno;
    unlinkat(to_directory, to, AT_REMOVEDIR);
    // Some put no directory in the place of another (vboxsf, rclone). Without one there, nothing can be replaced but an empty directory that
    // somebody makes at this very moment.
    if ((code == EEXIST || code == ENOTEMPTY || code == EPERM) && renameat(from_directory, from, to_directory, to) == 0) return 0;
    errno = code;
    return -1;
}

int earshot_open_unnamed(int directory, mode_t mode) {
    return openat(directory, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int earshot_clone_file(int to, int from) { return ioctl(to, FICLONE, from); }

ssize_t earshot_copy_range(int to, int from, uint64_t offset, size_t count) {
    off_t source = (off_t)offset;
    off_t target = (off_t)offset;
    return copy_file_range(from, &source, to, &target, count, 0);
}

int earshot_link_unnamed(int descriptor, int directory, const char *name) {
    // By way of /proc, as open(2) shows: AT_EMPTY_PATH would need a capability.
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return linkat(AT_FDCWD, path, directory, name, AT_SYMLINK_FOLLOW);
}

const char *earshot_error_text(int code) {
    const char *text = strerrordesc_np(code);
    return text != NULL ? text : "unknown error";
}

int earshot_lock_file(int descriptor) {
    struct flock lock;
    memset(&lock, 0, sizeof lock);
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}

int earshot_reserve(int descriptor, uint64_t size) {
    if (size > INT64_MAX) {
        errno = EFBIG;
        return -1;
    }
    int result;
    do {
        result = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
    } while (result != 0 && errno == EINTR);
    return result;
}

int earshot_is_in_memory(int descriptor) {
    struct statfs status;
    return fstatfs(descriptor, &status) == 0 && status.f_type == TMPFS_MAGIC;
}

int earshot_is_saved_by_entry(int descriptor) {
    struct statfs status;
    if (fstatfs(descriptor, &status) != 0) return 0;
    // Of FUSE the kernel asks nothing in syncfs(2). eCryptfs has no sync_fs: what is written there goes on to the file system below, and
    // nothing has that save it.
    return status.f_type == FUSE_SUPER_MAGIC || status.f_type == ECRYPTFS_SUPER_MAGIC;
}

int earshot_mount(int descriptor, uint64_t *mount) {
    struct statx status;
    if (statx(descriptor, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) != 0) return -1;
    if ((status.stx_mask & STATX_MNT_ID) == 0) return -1;
    *mount = status.stx_mnt_id;
    return 0;
}

void earshot_name_thread(const char *name) {
    prctl(PR_SET_NAME, name);
}
