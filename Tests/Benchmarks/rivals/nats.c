/* A client of NATS JetStream, which Debian has as a library only.
 *   benchmark-nats HOST PORT COUNT SIZE [KEYS]   publishes COUNT messages one after the other, each once the server has acknowledged the one
 *                                                before, and prints what each took in microseconds, a line each; over TLS where KEYS is a
 *                                                file of the key and the certificate that both sides have
 *   benchmark-nats HOST PORT COUNT SIZE - IN_FLIGHT   publishes COUNT messages, of which at most IN_FLIGHT wait for their acknowledgement, and
 *                                                prints how many a second the server acknowledged
 * The stream is in files. Whether the server syncs each before it answers is the server's setting. */
#include "../clock.h"

#include <nats/nats.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(natsStatus status, const char *what) {
    if (status == NATS_OK) return;
    const char *last = nats_GetLastError(NULL);
    fprintf(stderr, "benchmark-nats: %s: %s: %s\n", what, natsStatus_GetText(status), last ? last : "");
    exit(1);
}

int main(int count, char **words) {
    if (count < 5 || count > 7) {
        fprintf(stderr, "usage: see the source\n");
        return 64;
    }
    long messages = atol(words[3]);
    int size = atoi(words[4]);
    char url[256];
    snprintf(url, sizeof url, "nats://%s:%s", words[1], words[2]);
    natsOptions *options = NULL;
    natsConnection *connection = NULL;
    jsCtx *jetstream = NULL;
    check(natsOptions_Create(&options), "options");
    check(natsOptions_SetURL(options, url), url);
    /* Out at once, and not with the next tick of the client's own flusher. */
    check(natsOptions_SetSendAsap(options, true), "options");
    if (count == 6) {
        check(natsOptions_SetSecure(options, true), "TLS");
        check(natsOptions_LoadCATrustedCertificates(options, words[5]), words[5]);
        check(natsOptions_LoadCertificatesChain(options, words[5], words[5]), words[5]);
        check(natsOptions_SetExpectedHostname(options, "benchmark"), "TLS");
    }
    check(natsConnection_Connect(&connection, options), url);
    check(natsConnection_JetStream(&jetstream, connection, NULL), "JetStream");

    const char *subjects[] = {"x"};
    jsStreamConfig stream;
    check(jsStreamConfig_Init(&stream), "stream");
    stream.Name = "X";
    stream.Subjects = subjects;
    stream.SubjectsLen = 1;
    stream.Storage = js_FileStorage;
    /* The same stream again is no error. */
    check(js_AddStream(NULL, jetstream, &stream, NULL, NULL), "stream");

    char *bytes = malloc((size_t)size);
    if (count == 7) {
        if (!bytes) return 1;
        memset(bytes, 'x', (size_t)size);
        jsOptions limits;
        jsCtx *asynchronous = NULL;
        check(jsOptions_Init(&limits), "options");
        limits.PublishAsync.MaxPending = atol(words[6]);
        /* In milliseconds: the longest wait for one of them, which is an error. */
        limits.PublishAsync.StallWait = 60000;
        check(natsConnection_JetStream(&asynchronous, connection, &limits), "JetStream");
        double began = now();
        for (long index = 0; index < messages; index++) check(js_PublishAsync(asynchronous, "x", bytes, size, NULL), "publish");
        check(js_PublishAsyncComplete(asynchronous, NULL), "acknowledgements");
        printf("%.1f\n", (double)messages / (now() - began));
        jsCtx_Destroy(asynchronous);
        messages = 0;
    }
    double *times = calloc((size_t)messages + 1, sizeof *times);
    if (!bytes || !times) return 1;
    memset(bytes, 'x', (size_t)size);
    for (long index = 0; index < messages; index++) {
        jsPubAck *acknowledged = NULL;
        double began = now();
        check(js_Publish(&acknowledged, jetstream, "x", bytes, size, NULL, NULL), "publish");
        times[index] = (now() - began) * 1e6;
        jsPubAck_Destroy(acknowledged);
    }
    for (long index = 0; index < messages; index++) printf("%.1f\n", times[index]);
    free(times);
    free(bytes);
    jsCtx_Destroy(jetstream);
    natsConnection_Destroy(connection);
    natsOptions_Destroy(options);
    nats_Close();
    return 0;
}
