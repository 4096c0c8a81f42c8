/* work_fuzz.c - no byte of a peer's may cost more than a fixed number of steps.
 *
 * The input is read three ways: as a value, a message and a batch; as frames for an engine, before
 * trust and after it; and as frames of which each may be said many times over, which is what a peer
 * does that has found an expensive one. Steps are counted by base/steps.h: in builds without it this
 * target only looks for crashes. */
#include "fuzz.h"

#include <stdlib.h>

#include "amqp/engine.h"
#include "amqp/frame.h"
#include "base/steps.h"
#include "hub/batch.h"

/* The dearest that is known: a link that comes and goes while UNSETTLED deliveries of others wait for
 * their outcome, which are looked through for its own; 20 steps for each of some 50 bytes. */
#define STEPS_PER_BYTE_MAX 32u
#define STEPS_FREE 4096u /* an engine's birth and end */
#define UNSETTLED 1024u
#define REPEATS_MAX 64u

struct program {
    const uint8_t *at, *end;
};

struct peer {
    struct weir__amqp *e;
    uint64_t bytes; /* that it said */
    int64_t now_ms;
};

static uint8_t take(struct program *p)
{
    return p->at < p->end ? *p->at++ : 0;
}

static struct weir__bytes take_bytes(struct program *p, size_t len)
{
    struct weir__bytes b = {p->at, len < (size_t)(p->end - p->at) ? len : (size_t)(p->end - p->at)};

    p->at += b.len;
    return b;
}

static void check_work(uint64_t before, uint64_t bytes)
{
    ORACLE(WEIR__STEPS() - before <= STEPS_PER_BYTE_MAX * bytes + STEPS_FREE);
}

/* ---- as content ---- */

static void read_content(struct weir__bytes b)
{
    uint64_t before = WEIR__STEPS();
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
    struct weir__amqp_message m;
    struct weir__batch batch;

    weir__amqp_check(&c);
    weir__amqp_message_scan(&m, b, WEIR__AMQP_DEEP, NULL);
    weir__batch_of_payload(&batch, 0, b, 0, NULL);
    weir__batch_of_payload(&batch, WEIR__AMQP_FORMAT_BATCH, b, 0, NULL);
    check_work(before, b.len);
}

/* ---- as frames ---- */

static void answer(struct peer *peer, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms terms = {.credit = 100, .max_message_size = 65536};
    struct weir__amqp_link *l = ev->link;

    if (ev->type == WEIR__AMQP_EVENT_SASL) weir__amqp_sasl_answer(peer->e, true);
    if (ev->type == WEIR__AMQP_EVENT_ATTACH) weir__amqp_accept(l, &terms, NULL);
    if (ev->type == WEIR__AMQP_EVENT_TRANSFER && ev->delivery.id % 2)
        weir__amqp_settle(l, ev->delivery.id, ev->delivery.id, WEIR__AMQP_ACCEPTED, NULL);
    if (ev->type != WEIR__AMQP_EVENT_FLOW || !l) return;
    for (unsigned i = 0; i < UNSETTLED && weir__amqp_sendable(l); i++)
        weir__amqp_send(l, weir__bytes_of("event", 5), 0, false, NULL);
}

static void hear(struct peer *peer, struct weir__bytes b)
{
    struct weir__amqp_event ev;

    peer->bytes += b.len;
    while (b.len && !weir__amqp_closed(peer->e)) {
        size_t room, n;
        uint8_t *to = weir__amqp_input(peer->e, &room);
        if (!room) break;
        n = b.len < room ? b.len : room;
        memcpy(to, b.at, n);
        b.at += n;
        b.len -= n;
        weir__amqp_received(peer->e, n);
        while (weir__amqp_next(peer->e, &ev)) answer(peer, &ev);
        weir__amqp_sent(peer->e, weir__amqp_output(peer->e).len);
    }
    weir__amqp_tick(peer->e, peer->now_ms);
    while (weir__amqp_next(peer->e, &ev)) answer(peer, &ev);
}

static void hear_frame(struct peer *peer, uint8_t channel, struct weir__bytes body)
{
    uint8_t head[WEIR__AMQP_FRAME_HEAD];

    weir__amqp_frame_head(head, (uint32_t)(sizeof head + body.len), WEIR__AMQP_FRAME_AMQP, channel);
    hear(peer, weir__bytes_of(head, sizeof head));
    hear(peer, body);
}

static void shake_hands(struct peer *peer)
{
    static const uint8_t hello[] = {'A', 'M', 'Q', 'P', 0, 1, 0, 0};
    static const uint8_t open[] = {0x00, 0x53, 0x10, 0xc0, 0x04, 0x01, 0xa1, 0x01, 'p'};
    static const uint8_t begin[] = {0x00, 0x53, 0x11, 0xc0, 0x0a, 0x04, 0x40, 0x43,
                                    0x70, 0x00, 0x01, 0x00, 0x00, 0x52, 0x08};

    hear(peer, weir__bytes_of(hello, sizeof hello));
    hear_frame(peer, 0, weir__bytes_of(open, sizeof open));
    hear_frame(peer, 0, weir__bytes_of(begin, sizeof begin));
}

/* Channel, repeats, length, body; again. */
static void read_frames(struct program *p, bool trusted)
{
    struct weir__amqp_options o = {.after = {.unsettled = UNSETTLED}, .before = {.unsettled = 64}};
    struct peer peer = {.now_ms = 1000};
    uint64_t before = WEIR__STEPS();

    ORACLE(weir__amqp_new(&peer.e, &o, NULL) == 0);
    if (trusted) weir__amqp_trust(peer.e);
    shake_hands(&peer);
    while (p->at < p->end && !weir__amqp_closed(peer.e)) {
        uint8_t channel = take(p) % 4, times = take(p) % REPEATS_MAX, len = take(p);
        struct weir__bytes body = take_bytes(p, len);
        for (unsigned i = 0; i <= times; i++) hear_frame(&peer, channel, body);
        peer.now_ms++;
        check_work(before, peer.bytes);
    }
    weir__amqp_free(peer.e);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct program p = {at, at + len};

    read_content(weir__bytes_of(at, len));
    read_frames(&p, false);
    p = (struct program){at, at + len};
    read_frames(&p, true);
    return 0;
}
