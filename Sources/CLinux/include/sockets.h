#ifndef EARSHOT_SOCKETS_H
#define EARSHOT_SOCKETS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// The supplementary groups of the process at the other end of a Unix socket, as they were when it connected (SO_PEERGROUPS, Linux 4.13).
/// `count` is how many `groups` has room for, then how many there are. Returns 0, or -1 with errno: ERANGE where there are more.
int earshot_peer_groups(int socket, gid_t *groups, uint32_t *count);

/// Has calls on the socket wait.
void earshot_socket_block(int socket);

/// sendfile(2) of at most `count` bytes at the offset. Returns how many, 0 at the end of the file, or -1 with errno. A lost connection is
/// EPIPE, and SIGPIPE where the process does not ignore it (SwiftNIO has it ignored).
ssize_t earshot_send_file(int socket, int file, uint64_t offset, size_t count);

/// send(2) without a signal; with `more`, the kernel waits for what follows before it sends a small segment.
ssize_t earshot_send(int socket, const void *bytes, size_t count, int more);

/// Receives one byte with its descriptors, which are close-on-exec (unix(7), SCM_RIGHTS). Returns how many descriptors came with the byte. If
/// exactly one came, it is in `descriptor`; any other number is closed. Returns -1 with errno; at the connection's end, EPIPE.
int earshot_receive_descriptor(int socket, int *descriptor);

/// Sends one byte with a descriptor (unix(7), SCM_RIGHTS), without a signal. Returns 0, or -1 with errno.
int earshot_send_descriptor(int socket, int descriptor);

/// Whether the descriptor is open for reading (fcntl(2), F_GETFL). A descriptor that only names a file (O_PATH) is not.
int earshot_is_readable(int descriptor);

/// Whether the descriptor is open for writing. A descriptor that only names a file is not.
int earshot_is_writable(int descriptor);

/// eventfd(2): a descriptor that can be polled, and is ready for reading from the first write of a number on.
int earshot_event(void);

/// splice(2): moves at most `count` bytes between descriptors of which one is a pipe, within the kernel. Returns how many, 0 at the end, or -1
/// with errno: EINVAL where a descriptor knows no such thing, and EAGAIN where a pipe is not ready. A socket waits unless its own flags forbid
/// that. A lost connection is EPIPE, and SIGPIPE where the process does not ignore it.
ssize_t earshot_splice(int from, int to, size_t count);

/// A pipe, to be read from `ends[0]`, that holds `capacity` bytes where the kernel permits that. Returns how many it holds, or -1 with
/// errno.
int earshot_pipe(int ends[2], int capacity);

/// A netlink socket that receives the changes of interfaces and addresses (rtnetlink(7)). Returns a descriptor, or -1 with errno.
int earshot_link_changes(void);

/// Sends one datagram to a multicast group on one interface, with a time to live of 1, from `port` to `port`. Other sockets of this machine
/// may use the port too. `group` is an address in network order with `length` 4 or 16. Returns 0, or -1 with errno.
int earshot_send_to_group(
    const void *group, size_t length, uint16_t port, uint32_t interface, const void *bytes, size_t count);

#endif
