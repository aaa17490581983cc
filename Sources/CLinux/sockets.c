#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

int earshot_peer_groups(int socket, gid_t *groups, uint32_t *count) {
    if (*count > 65536) {
        errno = EINVAL;
        return -1;
    }
    socklen_t length = (socklen_t)(*count * sizeof(gid_t));
    int result = getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups, &length);
    if (result == 0 || errno == ERANGE) *count = (uint32_t)(length / sizeof(gid_t));
    return result;
}

void earshot_socket_block(int socket) {
    int flags = fcntl(socket, F_GETFL);
    if (flags >= 0) fcntl(socket, F_SETFL, flags & ~O_NONBLOCK);
}

ssize_t earshot_send_file(int socket, int file, uint64_t offset, size_t count) {
    if (offset > INT64_MAX) {
        errno = EINVAL;
        return -1;
    }
    ssize_t sent;
    do {
        off_t from = (off_t)offset;
        sent = sendfile(socket, file, &from, count);
    } while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t earshot_send(int socket, const void *bytes, size_t count, int more) {
    ssize_t sent;
    do {
        sent = send(socket, bytes, count, MSG_NOSIGNAL | (more ? MSG_MORE : 0));
    } while (sent < 0 && errno == EINTR);
    return sent;
}

ssize_t earshot_splice(int from, int to, size_t count) {
    ssize_t moved;
    do {
        moved = splice(from, NULL, to, NULL, count, SPLICE_F_MOVE);
    } while (moved < 0 && errno == EINTR);
    return moved;
}

int earshot_pipe(int ends[2], int capacity) {
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    // Beyond what one user may have of it a pipe keeps its usual size, and is only slower.
    int size = fcntl(ends[1], F_SETPIPE_SZ, capacity);
    return size > 0 ? size : fcntl(ends[1], F_GETPIPE_SZ);
}
