#include "landlock.h"

#include <linux/landlock.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

// Later than Debian 12's headers: Linux 6.2, version 3.
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

// Version 2 (Linux 5.19) is the first under which a file can be moved or linked into another directory at all.
static const int oldest_usable = 2;

static const uint64_t on_files = LANDLOCK_ACCESS_FS_WRITE_FILE;
static const uint64_t on_sockets = LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_REMOVE_FILE;
static const uint64_t changes = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER;

static uint64_t all(void) { return earshot_landlock_version() >= 3 ? changes | LANDLOCK_ACCESS_FS_TRUNCATE : changes; }

static int allow(int ruleset, int descriptor, uint64_t access) {
    struct landlock_path_beneath_attr rule;
    memset(&rule, 0, sizeof rule);
    rule.allowed_access = access;
    rule.parent_fd = descriptor;
    return (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

int earshot_landlock_version(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    return version < oldest_usable ? 0 : (int)version;
}

int earshot_landlock_ruleset(void) {
    struct landlock_ruleset_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.handled_access_fs = all();
    // Close-on-exec by itself. The size is that of the first version's part: a kernel takes a shorter one than its own.
    return (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0);
}

int earshot_landlock_allow(int ruleset, int directory) { return allow(ruleset, directory, all()); }

int earshot_landlock_allow_sockets(int ruleset, int directory) { return allow(ruleset, directory, on_sockets); }

int earshot_landlock_allow_writing(int ruleset, int descriptor) { return allow(ruleset, descriptor, on_files); }

int earshot_landlock_enter(int ruleset) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}
