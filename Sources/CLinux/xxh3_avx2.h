#ifndef EARSHOT_XXH3_AVX2_H
#define EARSHOT_XXH3_AVX2_H

#include <stddef.h>

/// XXH3_128bits_update for a processor that has AVX2; `state` is an XXH3_state_t.
void earshot_xxh3_update_avx2(void *state, const void *bytes, size_t length);

#endif
