#include "CCommit.h"

// Package.swift defines it.
#ifndef EARSHOT_COMMIT
#define EARSHOT_COMMIT "unknown"
#endif

const char *earshot_commit(void) {
    return EARSHOT_COMMIT;
}
