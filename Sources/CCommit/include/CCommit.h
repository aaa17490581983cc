#ifndef EARSHOT_CCOMMIT_H
#define EARSHOT_CCOMMIT_H

/// The commit that this was built from, or `unknown`.
const char *earshot_commit(void);

#endif
