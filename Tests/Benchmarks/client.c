/* A client of the control API, to be measured beside clients of rivals that are written in C.
 *   benchmark-client SOCKET TO COUNT SIZE   sends COUNT messages to the peer TO over one connection, each once the one before is on its
 *                                           receiver's disk, and prints what each took in microseconds, a line each */
#include "clock.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "benchmark-client: %s: %s\n", what, detail);
    exit(1);
}

/* Reads one answer, whose head says how long its body is. */
static void answer(int socket, char *text, size_t size) {
    size_t length = 0;
    /* As libraries for HTTP do: a read that blocks is woken by the kernel when the request is taken, too. */
    struct pollfd readable = {.fd = socket, .events = POLLIN};
    for (;;) {
        if (poll(&readable, 1, -1) < 0) fail("poll", "the connection cannot be waited for");
        ssize_t count = read(socket, text + length, size - 1 - length);
        if (count <= 0) fail("read", "the connection has ended");
        length += (size_t)count;
        text[length] = 0;
        char *end = strstr(text, "\r\n\r\n");
        if (!end) continue;
        char *field = strcasestr(text, "\r\ncontent-length:");
        if (!field || field > end) fail("no length", text);
        if (length >= (size_t)(end + 4 - text) + strtoul(field + 17, NULL, 10)) return;
    }
}

int main(int count, char **words) {
    if (count != 5) {
        fprintf(stderr, "usage: see the source\n");
        return 64;
    }
    long messages = atol(words[3]);
    int size = atoi(words[4]);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", words[1]);
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connection < 0 || connect(connection, (struct sockaddr *)&address, sizeof address) != 0) fail("connect", words[1]);

    char *body = malloc((size_t)size + 256), *request = malloc((size_t)size + 1024);
    double *times = calloc((size_t)messages, sizeof *times);
    if (!body || !request || !times) return 1;
    int length = sprintf(body, "{\"to\":[\"%s\"],\"body\":\"", words[2]);
    memset(body + length, 'x', (size_t)size);
    length += size + sprintf(body + length + size, "\"}");
    int whole = sprintf(
        request, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body);
    char text[4096];
    for (long index = 0; index < messages; index++) {
        double began = now();
        if (write(connection, request, (size_t)whole) != whole) fail("write", "not taken whole");
        answer(connection, text, sizeof text);
        times[index] = (now() - began) * 1e6;
        if (!strstr(text, "\"delivered\"")) fail("not delivered", text);
    }
    for (long index = 0; index < messages; index++) printf("%.1f\n", times[index]);
    free(times);
    free(request);
    free(body);
    close(connection);
    return 0;
}
