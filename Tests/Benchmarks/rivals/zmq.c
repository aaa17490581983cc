/* ZeroMQ's push and pull sockets over TCP, and its round trip: what Debian has as a library only.
 *   benchmark-zmq pull PORT COUNT SIZE     prints messages a second
 *   benchmark-zmq push HOST PORT COUNT SIZE
 *   benchmark-zmq echo PORT COUNT          answers COUNT requests
 *   benchmark-zmq ask HOST PORT COUNT SIZE prints the round trips' median and 99th percentile in microseconds */
#include "../clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

static void fail(const char *what) {
    fprintf(stderr, "benchmark-zmq: %s: %s\n", what, zmq_strerror(zmq_errno()));
    exit(1);
}

static int compare(const void *left, const void *right) {
    double difference = *(const double *)left - *(const double *)right;
    return (difference > 0) - (difference < 0);
}

static void *open_socket(void *context, int type, const char *host, const char *port) {
    char address[256];
    snprintf(address, sizeof address, "tcp://%s:%s", host ? host : "*", port);
    void *socket = zmq_socket(context, type);
    if (!socket || (host ? zmq_connect(socket, address) : zmq_bind(socket, address)) != 0) fail(address);
    return socket;
}

static void receive(void *socket, zmq_msg_t *message) {
    if (zmq_msg_recv(message, socket, 0) < 0) fail("receive");
}

static void transmit(void *socket, const char *bytes, size_t size) {
    if (zmq_send(socket, bytes, size, 0) < 0) fail("send");
}

int main(int count, char **words) {
    void *context = zmq_ctx_new();
    void *socket;
    zmq_msg_t message;
    zmq_msg_init(&message);
    if (count == 5 && strcmp(words[1], "pull") == 0) {
        long messages = atol(words[3]);
        socket = open_socket(context, ZMQ_PULL, NULL, words[2]);
        receive(socket, &message);
        double began = now();
        for (long index = 1; index < messages; index++) receive(socket, &message);
        printf("%.0f\n", (double)(messages - 1) / (now() - began));
    } else if (count == 6 && strcmp(words[1], "push") == 0) {
        long messages = atol(words[4]);
        size_t size = (size_t)atol(words[5]);
        char *bytes = calloc(size, 1);
        socket = open_socket(context, ZMQ_PUSH, words[2], words[3]);
        for (long index = 0; index < messages; index++) transmit(socket, bytes, size);
        free(bytes);
    } else if (count == 4 && strcmp(words[1], "echo") == 0) {
        long messages = atol(words[3]);
        socket = open_socket(context, ZMQ_REP, NULL, words[2]);
        for (long index = 0; index < messages; index++) {
            receive(socket, &message);
            transmit(socket, zmq_msg_data(&message), zmq_msg_size(&message));
        }
    } else if (count == 6 && strcmp(words[1], "ask") == 0) {
        long messages = atol(words[4]);
        size_t size = (size_t)atol(words[5]);
        char *bytes = calloc(size, 1);
        double *times = calloc((size_t)messages, sizeof *times);
        socket = open_socket(context, ZMQ_REQ, words[2], words[3]);
        for (long index = 0; index < messages; index++) {
            double began = now();
            transmit(socket, bytes, size);
            receive(socket, &message);
            times[index] = (now() - began) * 1e6;
        }
        qsort(times, (size_t)messages, sizeof *times, compare);
        printf("%.1f %.1f\n", times[messages / 2], times[messages * 99 / 100]);
        free(times);
        free(bytes);
    } else {
        fprintf(stderr, "usage: see the source\n");
        return 64;
    }
    zmq_msg_close(&message);
    zmq_close(socket);
    zmq_ctx_term(context);
    return 0;
}
