#ifndef EARSHOT_XXH3_H
#define EARSHOT_XXH3_H

#include <stddef.h>
#include <stdint.h>

/// XXH3-128 as it is fed: an integrity check against accidents at memory speed, not a defence against an adversary.
typedef struct earshot_xxh3 earshot_xxh3;

/// A fresh state, or NULL without memory.
earshot_xxh3 *earshot_xxh3_create(void);
/// Hashes `length` more bytes.
void earshot_xxh3_update(earshot_xxh3 *state, const void *bytes, size_t length);
/// Writes the 16 bytes of the digest of everything so far, big-endian (the canonical form of xxhash.h). Feeding may go on.
void earshot_xxh3_digest(const earshot_xxh3 *state, uint8_t *digest);
/// Frees the state; NULL is allowed.
void earshot_xxh3_free(earshot_xxh3 *state);

#endif
