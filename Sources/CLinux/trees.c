#include "trees.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

int earshot_sync_file_system(int descriptor) { return syncfs(descriptor); }

int64_t earshot_seek_data(int descriptor, int64_t offset) { return lseek(descriptor, offset, SEEK_DATA); }

int64_t earshot_seek_hole(int descriptor, int64_t offset) {
    // A caller's program may share the open file and its position.
    off_t before = lseek(descriptor, 0, SEEK_CUR);
    off_t hole = lseek(descriptor, offset, SEEK_HOLE);
    int code = errno;
    if (before >= 0) lseek(descriptor, before, SEEK_SET);
    errno = code;
    return hole;
}

// A list has few entries: one of the kernel's that does not fit is as good as none for its group.
enum { LIST_SIZE = 4096 };
static const char list_name[] = "system.posix_acl_access";

static int group_rights(const unsigned char *list, ssize_t length) {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entry;
    if (length < (ssize_t)sizeof header) return -1;
    memcpy(&header, list, sizeof header);
    if (le32toh(header.a_version) != POSIX_ACL_XATTR_VERSION) return -1;
    int group = -1;
    int mask = 7;
    for (size_t offset = sizeof header; offset + sizeof entry <= (size_t)length; offset += sizeof entry) {
        memcpy(&entry, list + offset, sizeof entry);
        if (le16toh(entry.e_tag) == ACL_GROUP_OBJ) group = le16toh(entry.e_perm) & 7;
        if (le16toh(entry.e_tag) == ACL_MASK) mask = le16toh(entry.e_perm) & 7;
    }
    return group < 0 ? -1 : group & mask;
}

int earshot_listed_group_rights(int descriptor) {
    unsigned char list[LIST_SIZE];
    return group_rights(list, fgetxattr(descriptor, list_name, list, sizeof list));
}

int earshot_listed_group_rights_at(int directory, const char *name) {
    unsigned char list[LIST_SIZE];
    char path[64 + NAME_MAX];
    int length = snprintf(path, sizeof path, "/proc/self/fd/%d/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path) return -1;
    return group_rights(list, lgetxattr(path, list_name, list, sizeof list));
}

int earshot_exchange(int from_directory, const char *from, int to_directory, const char *to) {
    return renameat2(from_directory, from, to_directory, to, RENAME_EXCHANGE);
}

static locale_t utf8;

static void make_utf8(void) { utf8 = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0); }

int earshot_is_excluded(const char *pattern, const char *path) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_utf8);
    // Without that locale, `?` matches one byte. Only this thread's locale changes.
    locale_t before = utf8 ? uselocale(utf8) : (locale_t)0;
    int found = fnmatch(pattern, path, FNM_LEADING_DIR) == 0;
    for (const char *rest = path; !found && *rest; rest++) {
        if (*rest == '/') found = fnmatch(pattern, rest + 1, FNM_LEADING_DIR) == 0;
    }
    if (before) uselocale(before);
    return found;
}
