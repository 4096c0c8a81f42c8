/* knock_fuzz.c - any bytes as the answer to a client that asks for a WebSocket.
 *
 * Beyond not crashing: what is made of them does not depend on how they were cut; a yes has the one
 * accept that our key gives and ends with an empty line; a no says why. */
#define _GNU_SOURCE
#include "fuzz.h"

#include <string.h>

#include "http/knock.h"

#define ACCEPT "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="

/* The nonce of RFC 6455, 1.3. */
static int fill_key(void *self, void *out, size_t len, struct weir_error *err)
{
    (void)self, (void)err;
    ORACLE(len == 16);
    memcpy(out, "the sample nonce", len);
    return 0;
}

static void knock(struct weir__knock *k)
{
    static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};
    const struct weir__knock_options o = {"h", "/$servicebus/websocket", protocols};
    const struct weir__rand rand = {fill_key, NULL};
    struct weir__buf request;

    weir__buf_init(&request, WEIR__KNOCK_REQUEST_MAX);
    ORACLE(weir__knock_write(k, &o, &rand, &request, NULL) == 0);
    weir__buf_fini(&request);
}

/* piece 0: all at once, up to what a reader would hold. */
static int hear(const uint8_t *at, size_t len, size_t piece, size_t *used)
{
    struct weir_error err = {0};
    struct weir__knock k;
    size_t there = 0;
    int rc = 0;

    knock(&k);
    if (len > WEIR__KNOCK_ANSWER_MAX) len = WEIR__KNOCK_ANSWER_MAX;
    *used = 0;
    while (rc == 0 && *used == 0 && there < len) {
        there = piece && piece < len - there ? there + piece : len;
        rc = weir__knock_read(&k, weir__bytes_of(at, there), used, &err);
    }
    ORACLE(rc == 0 || (rc == WEIR_EUNREACHABLE && err.code == rc && *err.text));
    ORACLE(rc != 0 || *used == 0 || (k.protocol && *used <= there));
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    static const size_t pieces[] = {1, 2, 7, 61};
    size_t used, cut;
    int rc = hear(at, len, 0, &used);

    if (rc == 0 && used) {
        ORACLE(memmem(at, used, ACCEPT, sizeof ACCEPT - 1));
        ORACLE(memcmp(at + used - 4, "\r\n\r\n", 4) == 0);
    }
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        ORACLE(hear(at, len, pieces[i], &cut) == rc);
        ORACLE(rc != 0 || cut == used);
    }
    return 0;
}
