#include "xxh3_avx2.h"

#if defined(__x86_64__)

#include <immintrin.h>

// Debian's compilers must make programs for every x86-64, and then xxhash gets along with SSE2, at half the speed. So the same source is
// compiled once more here for AVX2, and chosen while the program runs. Its state is the same for both.
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#define XXH_VECTOR 2 /* XXH_AVX2, which only the header itself can name */
#define XXH_INLINE_ALL
#include <xxhash.h>

void earshot_xxh3_update_avx2(void *state, const void *bytes, size_t length) {
    XXH3_128bits_update((XXH3_state_t *)state, bytes, length);
}
#pragma clang attribute pop

#endif
