/* websocket_fuzz.c - any bytes as the frames of a client, and as those of a server.
 *
 * Beyond not crashing: what they carry, and what is answered until a close, do not depend on how
 * the bytes were cut; nothing comes out that did not come in; nothing follows a close. */
#include "fuzz.h"

#include "base/buf.h"
#include "http/websocket.h"

#define TALE_BYTES_MAX (4 << 20)

struct tale {
    struct weir__buf payload, out;
    bool closed;
};

static void note(struct weir__websocket *w, struct tale *t)
{
    struct weir__bytes b = weir__websocket_payload(w);
    size_t half = b.len / 2;

    ORACLE(weir__buf_add(&t->payload, b.at, b.len));
    weir__websocket_taken(w, half);
    weir__websocket_taken(w, b.len - half);
    ORACLE(weir__websocket_payload(w).len == 0);
    while ((b = weir__websocket_output(w)).len) {
        ORACLE(b.len <= WEIR__WEBSOCKET_OUTPUT_MAX && weir__buf_add(&t->out, b.at, b.len));
        weir__websocket_sent(w, b.len);
    }
}

/* A client's masks, the same ones each time. */
static int fill_mask(void *self, void *out, size_t len, struct weir_error *err)
{
    (void)self, (void)err;
    memset(out, 0x5a, len);
    return 0;
}

static const struct weir__rand client = {fill_mask, NULL};

/* piece 0: as much as there is room for. */
static void play(const struct weir__rand *role, const uint8_t *at, size_t len, size_t piece,
                 struct tale *t)
{
    struct weir__websocket *w;

    weir__buf_init(&t->payload, TALE_BYTES_MAX);
    weir__buf_init(&t->out, TALE_BYTES_MAX);
    ORACLE(weir__websocket_new(&w, role, NULL) == 0);
    while (len) {
        size_t room, n;
        uint8_t *to = weir__websocket_input(w, &room);
        if (!to) break;
        n = piece && piece < room ? piece : room;
        if (n > len) n = len;
        memcpy(to, at, n);
        weir__websocket_received(w, n);
        at += n;
        len -= n;
        note(w, t);
    }
    t->closed = weir__websocket_closed(w);
    ORACLE(t->closed || len == 0);
    ORACLE(!t->closed || weir__websocket_send(w, weir__bytes_of("x", 1)) == 0);
    weir__websocket_free(w);
}

static void forget(struct tale *t)
{
    weir__buf_fini(&t->payload);
    weir__buf_fini(&t->out);
}

static bool is_same(const struct weir__buf *a, const struct weir__buf *b)
{
    return a->len == b->len && (!a->len || memcmp(a->at, b->at, a->len) == 0);
}

static void check(const struct weir__rand *role, const uint8_t *at, size_t len)
{
    static const size_t pieces[] = {1, 2, 5, 97};
    struct tale whole, cut;

    play(role, at, len, 0, &whole);
    ORACLE(whole.payload.len <= len);
    if (!role) ORACLE(whole.out.len <= len + 4);    /* and a close */
    if (role) ORACLE(whole.out.len <= 3 * len + 8); /* a ping of two bytes has a pong of six */
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        play(role, at, len, pieces[i], &cut);
        ORACLE(is_same(&cut.payload, &whole.payload));
        /* wslay answers a close before a ping that came with it, and may see earlier or later that
         * the text of an unfinished close is wrong. */
        ORACLE(whole.closed || cut.closed || is_same(&cut.out, &whole.out));
        forget(&cut);
    }
    forget(&whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    check(NULL, at, len);
    check(&client, at, len);
    return 0;
}
