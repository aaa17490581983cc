#ifndef EARSHOT_CAVAHI_H
#define EARSHOT_CAVAHI_H

#include <avahi-client/client.h>
#include <avahi-client/lookup.h>
#include <avahi-client/publish.h>
#include <avahi-common/address.h>
#include <avahi-common/alternative.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <avahi-common/simple-watch.h>
#include <avahi-common/strlst.h>
#include <avahi-core/core.h>
#include <avahi-core/log.h>
#include <avahi-core/lookup.h>
#include <avahi-core/publish.h>
#include <avahi-core/rr.h>
#include <dlfcn.h>
#include <stddef.h>

// libavahi-client and libavahi-core both export a function `avahi_entry_group_free`, with different parameters, and both call theirs
// through the dynamic linker: linked into one process, one library calls the other's and the process crashes. So neither is linked. Each is
// loaded on first use into a scope of its own (RTLD_LOCAL), where it finds itself first. Only libavahi-common is linked.
//
// The tables' types come from Avahi's own headers, so that a wrong call does not compile.
#define EARSHOT_AVAHI_FUNCTION(prefix, name) __typeof__(&prefix##name) name;
#define EARSHOT_AVAHI_LOAD(prefix, name)                                     \
    if (!(*(void **)&table->name = dlsym(library, #prefix #name))) return 0;

#define EARSHOT_AVAHI_CLIENT(X)                 \
    X(avahi_, client_new)                       \
    X(avahi_, client_free)                      \
    X(avahi_, client_errno)                     \
    X(avahi_, entry_group_new)                  \
    X(avahi_, entry_group_free)                 \
    X(avahi_, entry_group_commit)               \
    X(avahi_, entry_group_get_client)           \
    X(avahi_, entry_group_is_empty)             \
    X(avahi_, entry_group_add_service_strlst)   \
    X(avahi_, service_browser_new)              \
    X(avahi_, service_browser_free)             \
    X(avahi_, service_resolver_new)             \
    X(avahi_, service_resolver_free)            \
    X(avahi_, record_browser_new)               \
    X(avahi_, record_browser_free)

#define EARSHOT_AVAHI_CORE(X)                   \
    X(avahi_, server_config_init)               \
    X(avahi_, server_config_free)               \
    X(avahi_, server_new)                       \
    X(avahi_, server_free)                      \
    X(avahi_, server_errno)                     \
    X(avahi_, server_add_address)               \
    X(avahi_, server_add_service_strlst)        \
    X(avahi_, s_entry_group_new)                \
    X(avahi_, s_entry_group_free)               \
    X(avahi_, s_entry_group_commit)             \
    X(avahi_, s_service_browser_new)            \
    X(avahi_, s_service_browser_free)           \
    X(avahi_, s_service_resolver_new)           \
    X(avahi_, s_service_resolver_free)          \
    X(avahi_, s_record_browser_new)             \
    X(avahi_, s_record_browser_free)            \
    X(avahi_, key_new)                          \
    X(avahi_, key_unref)                        \
    X(avahi_, set_log_function)

/// libavahi-client's functions, named without their `avahi_`.
struct earshot_avahi_client { EARSHOT_AVAHI_CLIENT(EARSHOT_AVAHI_FUNCTION) };

/// libavahi-core's functions, named without their `avahi_`.
struct earshot_avahi_core { EARSHOT_AVAHI_CORE(EARSHOT_AVAHI_FUNCTION) };

/// The library by its name with the version that the headers describe; never unloaded. NULL where it is not installed, or where one of the
/// two is linked into the process after all, which would crash it.
static inline void *earshot_avahi_open(const char *name) {
    if (dlsym(NULL, "avahi_entry_group_free")) return NULL;
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

/// Fills the table; 0 when the library cannot be had.
static inline int earshot_avahi_client_load(struct earshot_avahi_client *table) {
    void *library = earshot_avahi_open("libavahi-client.so.3");
    if (!library) return 0;
    EARSHOT_AVAHI_CLIENT(EARSHOT_AVAHI_LOAD)
    return 1;
}

/// Fills the table; 0 when the library cannot be had.
static inline int earshot_avahi_core_load(struct earshot_avahi_core *table) {
    void *library = earshot_avahi_open("libavahi-core.so.7");
    if (!library) return 0;
    EARSHOT_AVAHI_CORE(EARSHOT_AVAHI_LOAD)
    return 1;
}

#endif
