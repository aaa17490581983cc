#include "xxh3.h"
#include "xxh3_avx2.h"

#include <string.h>

// The whole of xxhash in this file, so that nothing is linked at run time.
#define XXH_INLINE_ALL
#include <xxhash.h>

earshot_xxh3 *earshot_xxh3_create(void) {
    XXH3_state_t *state = XXH3_createState();
    if (state != NULL && XXH3_128bits_reset(state) != XXH_OK) {
        XXH3_freeState(state);
        return NULL;
    }
    return (earshot_xxh3 *)state;
}

void earshot_xxh3_update(earshot_xxh3 *state, const void *bytes, size_t length) {
    if (length == 0) return;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        earshot_xxh3_update_avx2(state, bytes, length);
        return;
    }
#endif
    XXH3_128bits_update((XXH3_state_t *)state, bytes, length);
}

void earshot_xxh3_digest(const earshot_xxh3 *state, uint8_t *digest) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest((const XXH3_state_t *)state));
    memcpy(digest, canonical.digest, sizeof canonical.digest);
}

void earshot_xxh3_free(earshot_xxh3 *state) {
    XXH3_freeState((XXH3_state_t *)state);
}
