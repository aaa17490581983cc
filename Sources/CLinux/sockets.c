#include "sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
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

int earshot_link_changes(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) == 0) return descriptor;
    int error = errno;
    close(descriptor);
    errno = error;
    return -1;
}

static int set(int descriptor, int level, int option, const void *value, socklen_t length) {
    return setsockopt(descriptor, level, option, value, length);
}

static int send_on(int descriptor, const void *group, size_t length, uint16_t port, uint32_t interface, const void *bytes, size_t count) {
    const int one = 1;
    if (set(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0) return -1;
    if (set(descriptor, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one) != 0) return -1;
    if (length == 4) {
        struct ip_mreqn request = {.imr_ifindex = (int)interface};
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(port)};
        struct sockaddr_in to = from;
        memcpy(&to.sin_addr, group, length);
        if (set(descriptor, IPPROTO_IP, IP_MULTICAST_IF, &request, sizeof request) != 0) return -1;
        if (set(descriptor, IPPROTO_IP, IP_MULTICAST_TTL, &one, sizeof one) != 0) return -1;
        if (bind(descriptor, (struct sockaddr *)&from, sizeof from) != 0) return -1;
        return sendto(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to) < 0 ? -1 : 0;
    }
    const int index = (int)interface;
    struct sockaddr_in6 from = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in6 to = from;
    to.sin6_scope_id = interface;
    memcpy(&to.sin6_addr, group, length);
    if (set(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one) != 0) return -1;
    if (set(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index) != 0) return -1;
    if (set(descriptor, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &one, sizeof one) != 0) return -1;
    if (bind(descriptor, (struct sockaddr *)&from, sizeof from) != 0) return -1;
    return sendto(descriptor, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof to) < 0 ? -1 : 0;
}

int earshot_send_to_group(
    const void *group, size_t length, uint16_t port, uint32_t interface, const void *bytes, size_t count) {
    if ((length != 4 && length != 16) || interface == 0 || interface > INT32_MAX) {
        errno = EINVAL;
        return -1;
    }
    int descriptor = socket(length == 4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0) return -1;
    int result = send_on(descriptor, group, length, port, interface, bytes, count);
    int error = errno;
    close(descriptor);
    errno = error;
    return result;
}
