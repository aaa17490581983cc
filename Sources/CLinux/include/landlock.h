#ifndef EARSHOT_LANDLOCK_H
#define EARSHOT_LANDLOCK_H

/// The version of Landlock that the kernel offers (landlock(7)), or 0 where it has none, it is switched off, or a sandbox hides it.
int earshot_landlock_version(void);

/// A ruleset under which nothing may be changed in the file system: a descriptor, or -1 with errno. Reading and running stay free.
int earshot_landlock_ruleset(void);

/// Lets files and directories below `directory` be changed, and linked and moved between directories that are allowed so.
int earshot_landlock_allow(int ruleset, int directory);

/// Lets sockets be made below `directory`, and files removed.
int earshot_landlock_allow_sockets(int ruleset, int directory);

/// Lets the one file behind `descriptor` be written to.
int earshot_landlock_allow_writing(int ruleset, int descriptor);

/// Confines the calling thread, and every thread and process that it makes from now on, for good. Returns 0, or -1 with errno.
int earshot_landlock_enter(int ruleset);

#endif
