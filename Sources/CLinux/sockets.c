#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
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
        moved = splice(from, NULL, to, NULL, count, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    } while (moved < 0 && errno == EINTR);
    return moved;
}

int earshot_pipe(int ends[2], int capacity) {
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    // Beyond what one user may have of it a pipe keeps its usual size, and is only slower.
    int size = fcntl(ends[1], F_SETPIPE_SZ, capacity);
    return size > 0 ? size : fcntl(ends[1], F_GETPIPE_SZ);
}

int earshot_receive_descriptor(int socket, int *descriptor) {
    char byte;
    struct iovec content = {.iov_base = &byte, .iov_len = 1};
    // Two have room, so that one too many is noticed. The kernel closes those that have no room.
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    ssize_t count;
    do count = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (count < 0 && errno == EINTR);
    if (count < 0) return -1;
    int received[2];
    int number = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        size_t length = header->cmsg_len - CMSG_LEN(0);
        for (size_t offset = 0; offset + sizeof(int) <= length && number < 2; offset += sizeof(int))
            memcpy(&received[number++], CMSG_DATA(header) + offset, sizeof(int));
    }
    if (count == 1 && number == 1) {
        *descriptor = received[0];
        return 1;
    }
    for (int index = 0; index < number; index++) close(received[index]);
    if (count == 1) return number;
    errno = EPIPE;
    return -1;
}

int earshot_send_descriptor(int socket, int descriptor) {
    char byte = 0;
    struct iovec content = {.iov_base = &byte, .iov_len = 1};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr message = {
        .msg_iov = &content, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
    ssize_t count;
    do count = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (count < 0 && errno == EINTR);
    return count < 0 ? -1 : 0;
}

int earshot_is_readable(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_WRONLY;
}

int earshot_is_writable(int descriptor) {
    int flags = fcntl(descriptor, F_GETFL);
    return flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
}

int earshot_event(void) {
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}
