/* The way of a durable message and nothing else: what the same processes, sockets, threads and transactions take by themselves, without TLS,
 * HTTP, JSON, frames or a decision. Nothing that goes this way can be faster.
 *   benchmark-bare receive PORT FILE               commits each message to the SQLite database FILE on a thread of its own, then answers
 *   benchmark-bare relay SOCKET HOST PORT          passes on what comes on the Unix socket, and the answers,
 *                                                  of one sender after the other
 *   benchmark-bare send SOCKET COUNT               sends COUNT messages one after the other, each once the one before is answered, and prints
 *                                                  what each took in microseconds, a line each */
#include "../clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* About what 128 bytes are with everything around them, in a request as in a frame. */
enum { MESSAGE = 256, BODY = 128 };

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static int unix_socket(const char *path, int listens) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    if (!listens) {
        if (connect(made, (struct sockaddr *)&address, sizeof address) != 0) fail(path);
    } else if (bind(made, (struct sockaddr *)&address, sizeof address) != 0 || listen(made, 1) != 0) {
        fail(path);
    }
    return made;
}

static int tcp_socket(const char *host, const char *port, int listens) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int made = socket(AF_INET, SOCK_STREAM, 0), yes = 1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (!listens) {
        if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
        if (connect(made, (struct sockaddr *)&address, sizeof address) != 0) fail(host);
    } else if (bind(made, (struct sockaddr *)&address, sizeof address) != 0 || listen(made, 1) != 0) {
        fail(port);
    }
    return made;
}

static void put(int socket, const char *bytes) {
    if (send(socket, bytes, MESSAGE, MSG_NOSIGNAL) != MESSAGE) fail("send");
}

/* A whole message; whether there was one. */
static int take(int socket, char *bytes) {
    for (size_t length = 0; length < MESSAGE;) {
        ssize_t count = read(socket, bytes + length, MESSAGE - length);
        if (count <= 0) return 0;
        length += (size_t)count;
    }
    return 1;
}

static int watching(int one, int other) {
    int watch = epoll_create1(0);
    for (int index = 0; index < 2; index++) {
        struct epoll_event event = {.events = EPOLLIN, .data.fd = index == 0 ? one : other};
        if (epoll_ctl(watch, EPOLL_CTL_ADD, event.data.fd, &event) != 0) fail("epoll_ctl");
    }
    return watch;
}

static int next(int watch) {
    struct epoll_event event;
    if (epoll_wait(watch, &event, 1, -1) != 1) fail("epoll_wait");
    return event.data.fd;
}

static sqlite3 *database;
static sqlite3_stmt *begin, *insert, *commit;

static void check(int isDone) {
    if (isDone) return;
    fprintf(stderr, "benchmark-bare: %s\n", sqlite3_errmsg(database));
    exit(1);
}

static void run(sqlite3_stmt *statement) {
    check(sqlite3_step(statement) == SQLITE_DONE);
    sqlite3_reset(statement);
}

/* The table and its indices, as far as a message fills them, are the daemon's (StoreSchema.swift). */
static void open_database(const char *path) {
    check(sqlite3_open_v2(path, &database, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) == SQLITE_OK);
    const char *layout = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                         "CREATE TABLE messages (place INTEGER PRIMARY KEY, sender BLOB NOT NULL, id BLOB NOT NULL, sent_at INTEGER NOT NULL,"
                         " read_at INTEGER, body BLOB NOT NULL) STRICT;"
                         "CREATE UNIQUE INDEX messages_by_id ON messages (id, sender);"
                         "CREATE INDEX messages_unread ON messages (place) WHERE read_at IS NULL;"
                         "CREATE INDEX messages_read ON messages (read_at) WHERE read_at IS NOT NULL";
    check(sqlite3_exec(database, layout, NULL, NULL, NULL) == SQLITE_OK);
    check(sqlite3_prepare_v2(database, "BEGIN IMMEDIATE", -1, &begin, NULL) == SQLITE_OK);
    check(sqlite3_prepare_v2(database, "COMMIT", -1, &commit, NULL) == SQLITE_OK);
    const char *insertion = "INSERT INTO messages (sender, id, sent_at, body) VALUES (zeroblob(32), randomblob(16), 1, ?)";
    check(sqlite3_prepare_v2(database, insertion, -1, &insert, NULL) == SQLITE_OK);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int waits, done;
static char waiting[BODY];

static void *store(void *unused) {
    for (;;) {
        pthread_mutex_lock(&mutex);
        while (!waits) pthread_cond_wait(&condition, &mutex);
        waits = 0;
        pthread_mutex_unlock(&mutex);
        run(begin);
        check(sqlite3_bind_blob(insert, 1, waiting, BODY, SQLITE_STATIC) == SQLITE_OK);
        run(insert);
        run(commit);
        if (eventfd_write(done, 1) != 0) fail("eventfd_write");
    }
    return unused;
}

static void receive(const char *port, const char *path) {
    char message[MESSAGE];
    open_database(path);
    int from = accept(tcp_socket(NULL, port, 1), NULL, NULL), yes = 1;
    setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    done = eventfd(0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, store, NULL) != 0) fail("pthread_create");
    for (int watch = watching(from, done);;) {
        if (next(watch) == from) {
            if (!take(from, message)) return;
            pthread_mutex_lock(&mutex);
            memcpy(waiting, message, BODY);
            waits = 1;
            pthread_mutex_unlock(&mutex);
            pthread_cond_signal(&condition);
        } else {
            eventfd_t count;
            eventfd_read(done, &count);
            put(from, message);
        }
    }
}

static void relay(const char *path, const char *host, const char *port) {
    char message[MESSAGE];
    int to = tcp_socket(host, port, 0), listener = unix_socket(path, 1);
    for (;;) {
        int from = accept(listener, NULL, NULL), watch = watching(from, to);
        for (int ready = next(watch); take(ready, message); ready = next(watch)) put(ready == from ? to : from, message);
        close(watch);
        close(from);
    }
}

static void send_all(const char *path, long count) {
    char message[MESSAGE] = {0};
    double *times = calloc((size_t)count, sizeof *times);
    int to = unix_socket(path, 0);
    for (long index = 0; index < count; index++) {
        double began = now();
        put(to, message);
        if (!take(to, message)) fail("answer");
        times[index] = (now() - began) * 1e6;
    }
    for (long index = 0; index < count; index++) printf("%.1f\n", times[index]);
    free(times);
}

int main(int count, char **words) {
    if (count == 4 && strcmp(words[1], "receive") == 0) receive(words[2], words[3]);
    else if (count == 5 && strcmp(words[1], "relay") == 0) relay(words[2], words[3], words[4]);
    else if (count == 4 && strcmp(words[1], "send") == 0) send_all(words[2], atol(words[3]));
    else {
        fprintf(stderr, "usage: see the source\n");
        return 64;
    }
    return 0;
}
