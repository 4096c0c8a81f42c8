/* engine_fuzz.c - one engine, in either role, between a hostile peer and a restless owner.
 *
 * The input is a program: bytes for the engine, whole frames whose body is the input's, and
 * commands of the owner in any order. Beyond not crashing: every link and session that is named is
 * alive, each ends once and in order, what the engine writes is well-formed and within the frames
 * that the peer takes, and memory stays within its limits. */
#include "fuzz.h"

#include <stdlib.h>

#include "amqp/engine.h"
#include "amqp/frame.h"

#define THINGS_MAX 64
#define BEFORE_TRUST_MAX 32768
#define BEGUN_BEFORE_TRUST_MAX 8

struct program {
    const uint8_t *at, *end;
};

struct world {
    struct weir__amqp *e;
    struct weir__amqp_session *sessions[THINGS_MAX];
    struct weir__amqp_link *links[THINGS_MAX];
    bool detached[THINGS_MAX]; /* the owner has asked for it */
    size_t session_count, link_count;
    bool client, trusted, closed;
    bool layer; /* the output is past its headers */
    uint32_t frame_max;
    int64_t now_ms;
    uint64_t delivered; /* bytes of payload that were handed out */
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

static size_t find_link(const struct world *w, const struct weir__amqp_link *l)
{
    size_t i = 0;

    while (i < w->link_count && w->links[i] != l) i++;
    return i;
}

static size_t find_session(const struct world *w, const struct weir__amqp_session *s)
{
    size_t i = 0;

    while (i < w->session_count && w->sessions[i] != s) i++;
    return i;
}

static void add_link(struct world *w, struct weir__amqp_link *l)
{
    ORACLE(w->link_count < THINGS_MAX && find_link(w, l) == w->link_count);
    w->detached[w->link_count] = false;
    w->links[w->link_count++] = l;
}

static void add_session(struct world *w, struct weir__amqp_session *s)
{
    ORACLE(w->session_count < THINGS_MAX);
    w->sessions[w->session_count++] = s;
}

static void drop_link(struct world *w, struct weir__amqp_link *l)
{
    size_t i = find_link(w, l);

    ORACLE(i < w->link_count);
    w->links[i] = w->links[--w->link_count];
    w->detached[i] = w->detached[w->link_count];
}

static void drop_session(struct world *w, struct weir__amqp_session *s)
{
    size_t i = find_session(w, s);

    ORACLE(i < w->session_count);
    for (size_t k = 0; k < w->link_count; k++) ORACLE(weir__amqp_link_session(w->links[k]) != s);
    w->sessions[i] = w->sessions[--w->session_count];
}

static void answer_attach(struct world *w, struct program *p, struct weir__amqp_link *l)
{
    struct weir__amqp_error error = weir__amqp_error_of(WEIR__AMQP_COND_STOLEN, "taken");
    uint8_t choice = take(p);
    struct weir__amqp_terms t = {.credit = choice % 50, .max_message_size = choice > 200 ? 300 : 0};

    add_link(w, l);
    t.no_outcomes = choice & 1;
    if (choice < 200)
        weir__amqp_accept(l, &t, NULL);
    else
        weir__amqp_refuse(l, &error, (enum weir__amqp_echo)(choice % 3), NULL);
}

static void check_event(struct world *w, const struct weir__amqp_event *ev)
{
    bool made = ev->type == WEIR__AMQP_EVENT_ATTACH && ev->incoming;

    ORACLE(!w->closed);
    if (ev->link && !made) ORACLE(find_link(w, ev->link) < w->link_count);
    if (ev->link) ORACLE(weir__amqp_link_session(ev->link) == ev->session);
    if (ev->session && ev->type != WEIR__AMQP_EVENT_BEGIN)
        ORACLE(find_session(w, ev->session) < w->session_count);
    if (ev->type == WEIR__AMQP_EVENT_SETTLE)
        ORACLE(ev->settle.last - ev->settle.first < 32768 && ev->link);
}

static void on_transfer(struct world *w, struct program *p, const struct weir__amqp_event *ev)
{
    const struct weir__amqp_delivery *d = &ev->delivery;

    ORACLE(weir__amqp_link_role(ev->link) == WEIR__AMQP_RECEIVER);
    ORACLE(d->too_large ? !d->payload.len : d->payload.len == d->size);
    for (size_t i = 0; i < d->payload.len; i += 64) w->delivered += d->payload.at[i];
    if (!d->settled && take(p) & 1)
        weir__amqp_settle(ev->link, d->id, d->id, WEIR__AMQP_ACCEPTED, NULL);
}

static void take_events(struct world *w, struct program *p)
{
    struct weir__amqp_event ev;

    while (weir__amqp_next(w->e, &ev)) {
        check_event(w, &ev);
        switch (ev.type) {
        case WEIR__AMQP_EVENT_PROTOCOL: break;
        case WEIR__AMQP_EVENT_SASL: weir__amqp_sasl_answer(w->e, take(p) != 0xff); break;
        case WEIR__AMQP_EVENT_OPEN:
            w->frame_max = (uint32_t)ev.fields->open.max_frame_size.u;
            break;
        case WEIR__AMQP_EVENT_BEGIN:
            if (find_session(w, ev.session) == w->session_count) add_session(w, ev.session);
            break;
        case WEIR__AMQP_EVENT_ATTACH:
            if (ev.incoming) answer_attach(w, p, ev.link);
            break;
        case WEIR__AMQP_EVENT_FLOW:
        case WEIR__AMQP_EVENT_PAUSE: break;
        case WEIR__AMQP_EVENT_TRANSFER: on_transfer(w, p, &ev); break;
        case WEIR__AMQP_EVENT_SETTLE: break;
        case WEIR__AMQP_EVENT_DETACH: drop_link(w, ev.link); break;
        case WEIR__AMQP_EVENT_END: drop_session(w, ev.session); break;
        case WEIR__AMQP_EVENT_CLOSE:
            ORACLE(!w->session_count && !w->link_count);
            w->closed = true;
            break;
        }
    }
    if (!w->trusted) ORACLE(weir__amqp_memory(w->e) <= BEFORE_TRUST_MAX);
}

/* Every frame as it is written. */
static void see_frame(void *data, bool outgoing, struct weir__bytes b)
{
    struct world *w = data;
    struct weir__amqp_composite c;
    struct weir__amqp_frame f;
    struct weir__amqp_cursor in;
    const char *why;
    char line[200];

    ORACLE(weir__amqp_dump(b, line, sizeof line) < sizeof line);
    if (!outgoing || (b.len == 8 && !memcmp(b.at, "AMQP", 4))) return;
    ORACLE(weir__amqp_frame_read(b, UINT32_MAX, &f, &why) == WEIR__AMQP_FRAME_WHOLE);
    ORACLE(f.size == b.len);
    if (!f.body.len) return;
    in = weir__amqp_cursor_of(f.body);
    ORACLE(weir__amqp_composite_read(&in, WEIR__AMQP_PERFORMATIVES | WEIR__AMQP_SASL_FRAMES, &c,
                                     NULL) == 0);
    ORACLE(c.kind == WEIR__AMQP_TRANSFER || in.at == in.end);
    if (c.kind != WEIR__AMQP_OPEN && f.type == WEIR__AMQP_FRAME_AMQP)
        ORACLE(b.len <= (w->frame_max ? w->frame_max : UINT32_MAX));
}

/* Into the engine, in pieces of its own choice. */
static void feed(struct world *w, struct program *p, struct weir__bytes b)
{
    while (b.len) {
        size_t room, n;
        uint8_t *to = weir__amqp_input(w->e, &room);
        if (!room) return;
        n = b.len < room ? b.len : room;
        memcpy(to, b.at, n);
        weir__amqp_received(w->e, n);
        b.at += n;
        b.len -= n;
        take_events(w, p);
    }
}

static void feed_frame(struct world *w, struct program *p, uint8_t type)
{
    uint8_t head[WEIR__AMQP_FRAME_HEAD], channel = take(p) % 4;
    struct weir__bytes body = take_bytes(p, take(p));

    weir__amqp_frame_head(head, (uint32_t)(sizeof head + body.len),
                          (enum weir__amqp_frame_type)type, channel);
    feed(w, p, weir__bytes_of(head, sizeof head));
    feed(w, p, body);
}

static struct weir__amqp_link *some_link(struct world *w, struct program *p)
{
    return w->link_count ? w->links[take(p) % w->link_count] : NULL;
}

static struct weir__amqp_session *some_session(struct world *w, struct program *p)
{
    return w->session_count ? w->sessions[take(p) % w->session_count] : NULL;
}

static void send_some(struct weir__amqp_link *l, struct program *p)
{
    static const uint8_t payload[20000];
    size_t len = (size_t)take(p) * 78;
    uint32_t before = weir__amqp_sendable(l), id;
    int rc = weir__amqp_send(l, weir__bytes_of(payload, len), 0, take(p) & 1, &id);

    ORACLE(rc == 0 || rc == WEIR_EBUSY);
    ORACLE(rc != 0 || before > 0);
}

static void attach_some(struct world *w, struct program *p)
{
    struct weir__amqp_session *s = some_session(w, p);
    uint8_t choice = take(p);
    struct weir__amqp_terms t = {.name = take_bytes(p, choice % 4), .credit = choice % 16};
    struct weir__amqp_link *l;

    t.role = choice & 1;
    t.rcv_settle_mode = choice >> 1 & 1;
    if (s && w->link_count < THINGS_MAX && weir__amqp_attach(s, &t, &l, NULL) == 0) add_link(w, l);
}

/* Nobody begins many sessions by himself with a peer he does not trust; the limit is for the peer. */
static void begin_some(struct world *w)
{
    uint32_t most = w->trusted ? THINGS_MAX : BEGUN_BEFORE_TRUST_MAX;
    struct weir__amqp_session *s;

    if (w->session_count < most && weir__amqp_begin(w->e, &s, NULL) == 0) add_session(w, s);
}

static void command_link(struct world *w, struct program *p, uint8_t op)
{
    struct weir__amqp_error error = weir__amqp_error_of(WEIR__AMQP_COND_DETACH_FORCED, "enough");
    struct weir__amqp_link *l = some_link(w, p);
    uint32_t first = take(p), last = first + take(p) % 8;

    if (!l) return;
    if (op == 0) weir__amqp_detach(l, first & 1 ? &error : NULL);
    if (op == 1 && weir__amqp_link_role(l) == WEIR__AMQP_RECEIVER)
        weir__amqp_flow(l, first, last & 1);
    if (op == 2) weir__amqp_drained(l);
    if (op == 3) send_some(l, p);
    if (op == 4)
        weir__amqp_settle(l, first, last, last & 1 ? WEIR__AMQP_REJECTED : WEIR__AMQP_ACCEPTED,
                          last & 1 ? &error : NULL);
}

static void command(struct world *w, struct program *p, uint8_t op)
{
    struct weir__amqp_session *s;

    switch (op) {
    case 5: begin_some(w); break;
    case 6: attach_some(w, p); break;
    case 7:
        s = some_session(w, p);
        if (s) weir__amqp_end(s, NULL);
        break;
    case 8: weir__amqp_close(w->e, NULL); break;
    case 9: weir__amqp_lost(w->e); break;
    case 10:
        w->trusted = true;
        weir__amqp_trust(w->e);
        break;
    case 11:
        w->now_ms += (int64_t)take(p) * 100;
        weir__amqp_tick(w->e, w->now_ms);
        break;
    case 12: weir__amqp_sent(w->e, weir__amqp_output(w->e).len); break;
    case 13: weir__amqp_sent(w->e, weir__amqp_output(w->e).len / 2); break;
    default: command_link(w, p, op % 5); break;
    }
    take_events(w, p);
}

/* A good beginning, so that not every program has to find it. */
static void shake_hands(struct world *w, struct program *p)
{
    static const uint8_t hello[] = {'A', 'M', 'Q', 'P', 0, 1, 0, 0};
    static const uint8_t open[] = {0x00, 0x00, 0x00, 0x1a, 0x02, 0x00, 0x00, 0x00, 0x00,
                                   0x53, 0x10, 0xc0, 0x0d, 0x04, 0xa1, 0x01, 0x70, 0x40,
                                   0x70, 0x00, 0x00, 0x02, 0x00, 0x60, 0x00, 0x03};

    feed(w, p, weir__bytes_of(hello, sizeof hello));
    feed(w, p, weir__bytes_of(open, sizeof open));
}

static void run(struct world *w, struct program *p)
{
    while (p->at < p->end) {
        uint8_t op = take(p);
        if (op < 64)
            feed_frame(w, p, 0);
        else if (op < 72)
            feed_frame(w, p, 1);
        else if (op < 128)
            feed(w, p, take_bytes(p, take(p)));
        else
            command(w, p, (uint8_t)((op - 128) % 18));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct program p = {at, at + len};
    struct world w = {.now_ms = 1000};
    uint8_t mode = take(&p);
    struct weir__amqp_options o = {.client = mode & 1, .trace = see_frame, .trace_data = &w};

    w.client = mode & 1;
    o.handle_max = 7;
    o.channel_max = 3;
    o.after.sessions = 8;
    o.after.links = 32;
    o.after.frame_bytes = 4096;
    o.after.partial_bytes = 65536;
    o.after.unsettled = 64;
    o.sasl_required = mode & 4;
    if (mode & 8) o.mechanisms = WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN);
    ORACLE(weir__amqp_new(&w.e, &o, NULL) == 0);
    weir__amqp_tick(w.e, w.now_ms);
    if (mode & 2) shake_hands(&w, &p);
    run(&w, &p);
    weir__amqp_lost(w.e);
    take_events(&w, &p);
    ORACLE(!w.link_count && !w.session_count && w.closed);
    weir__amqp_free(w.e);
    return 0;
}
