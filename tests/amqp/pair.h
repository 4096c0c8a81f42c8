/* pair.h - two engines wired mouth to ear, and an owner for each that keeps what it was told. */
#ifndef WEIR_TESTS_AMQP_PAIR_H
#define WEIR_TESTS_AMQP_PAIR_H

#include <stdio.h>

#include "amqp/engine.h"
#include "sample.h"

#define PAIR_EVENTS_MAX 4096
#define PAIR_STEPS_MAX 2000000

/* What an owner was told; pointers are not kept beyond their time. */
struct told {
    enum weir__amqp_event_type type;
    struct weir__amqp_session *session;
    struct weir__amqp_link *link;
    struct weir__amqp_delivery delivery; /* its bytes are not kept */
    struct weir__amqp_settlement settle;
    uint64_t sum; /* of the payload's bytes */
    bool local, incoming;
    char condition[64];
    char text[128];
};

struct side {
    struct weir__amqp *e;
    struct told told[PAIR_EVENTS_MAX];
    size_t count, taken;
    /* Answers an event while it is current; may be NULL. */
    void (*on)(struct side *, const struct weir__amqp_event *);
    void *user;
    uint8_t *kept; /* all payloads, when room was given for them */
    size_t kept_len, kept_max;
};

struct pair {
    struct side client, server;
    uint64_t seed;    /* of the split; 0: as much as there is room for */
    size_t piece_max; /* of the split: at most this many bytes at a time */
    int64_t now_ms;
};

static inline uint64_t sum_of(struct weir__bytes b)
{
    uint64_t sum = b.len * 0x9e3779b97f4a7c15u;

    for (size_t i = 0; i < b.len; i++) sum = sum * 31 + b.at[i];
    return sum;
}

static inline void copy_text_of(char *to, size_t room, struct weir__bytes b)
{
    snprintf(to, room, "%.*s", (int)b.len, b.at ? (const char *)b.at : "");
}

static inline void keep_told(struct side *s, const struct weir__amqp_event *ev)
{
    struct told *t = &s->told[s->count % PAIR_EVENTS_MAX];

    if (ev->type == WEIR__AMQP_EVENT_PAUSE) return;
    *t = (struct told){.type = ev->type, .session = ev->session, .link = ev->link};
    s->count++;
    if (ev->type == WEIR__AMQP_EVENT_TRANSFER) {
        assert_null(ev->fields);
        t->delivery = ev->delivery;
        t->sum = sum_of(ev->delivery.payload);
        if (s->kept && ev->delivery.payload.len <= s->kept_max - s->kept_len) {
            if (ev->delivery.payload.len)
                memcpy(s->kept + s->kept_len, ev->delivery.payload.at, ev->delivery.payload.len);
            s->kept_len += ev->delivery.payload.len;
        }
    } else if (ev->type == WEIR__AMQP_EVENT_SETTLE) {
        t->settle = ev->settle;
        copy_text_of(t->condition, sizeof t->condition, ev->settle.error.condition);
    } else if (ev->type >= WEIR__AMQP_EVENT_DETACH) {
        t->local = ev->local;
        copy_text_of(t->condition, sizeof t->condition, ev->error.condition);
        copy_text_of(t->text, sizeof t->text, ev->error.description);
    } else if (ev->type == WEIR__AMQP_EVENT_ATTACH) {
        t->incoming = ev->incoming;
    }
}

static inline void take_events(struct side *s)
{
    struct weir__amqp_event ev;

    memset(&ev, 1, sizeof ev); /* an event says all that it promises */
    while (weir__amqp_next(s->e, &ev)) {
        keep_told(s, &ev);
        if (s->on) s->on(s, &ev);
        memset(&ev, 1, sizeof ev);
    }
}

/* Carries one piece; false when there was nothing to carry. */
static inline bool carry(struct pair *p, struct side *from, struct side *to)
{
    struct weir__bytes out = weir__amqp_output(from->e);
    size_t room, n = out.len;
    uint8_t *in;

    if (!n || weir__amqp_closed(to->e)) return false;
    in = weir__amqp_input(to->e, &room);
    if (p->piece_max && n > p->piece_max) n = p->piece_max;
    if (p->seed && n > 1) n = 1 + (size_t)random_below(&p->seed, n);
    if (n > room) n = room;
    if (n) memcpy(in, out.at, n);
    weir__amqp_received(to->e, n);
    weir__amqp_sent(from->e, n);
    take_events(to);
    return n > 0;
}

/* Until both have said everything. */
static inline void settle_down(struct pair *p)
{
    unsigned steps = 0;
    bool moved = true;

    take_events(&p->client);
    take_events(&p->server);
    while (moved) {
        moved = carry(p, &p->client, &p->server);
        moved = carry(p, &p->server, &p->client) || moved;
        assert_true(++steps < PAIR_STEPS_MAX);
    }
}

/* The next event that was not looked at must be of this type. */
static inline struct told *expect(struct side *s, enum weir__amqp_event_type type)
{
    assert_true(s->taken < s->count);
    assert_int_equal(s->told[s->taken % PAIR_EVENTS_MAX].type, type);
    return &s->told[s->taken++ % PAIR_EVENTS_MAX];
}

static inline void expect_nothing(const struct side *s)
{
    assert_int_equal(s->taken, s->count);
}

static inline void pair_init(struct pair *p, const struct weir__amqp_options *client,
                             const struct weir__amqp_options *server)
{
    struct weir__amqp_options c = *client, s = *server;

    memset(p, 0, sizeof *p);
    c.client = true;
    s.client = false;
    assert_int_equal(weir__amqp_new(&p->client.e, &c, NULL), 0);
    assert_int_equal(weir__amqp_new(&p->server.e, &s, NULL), 0);
    weir__amqp_trust(p->client.e);
    weir__amqp_trust(p->server.e);
}

static inline void pair_fini(struct pair *p)
{
    weir__amqp_free(p->client.e);
    weir__amqp_free(p->server.e);
}

/* A server that lets everybody in and accepts every link, with credit where it receives. */
struct manners {
    uint32_t credit;
    uint64_t max_message;
    bool no_outcomes;
    bool accept_deliveries; /* settles what comes */
    bool trusted;           /* from the beginning, for peer_open */
};

static inline void be_kind(struct side *s, const struct weir__amqp_event *ev)
{
    const struct manners *m = s->user;

    if (ev->type == WEIR__AMQP_EVENT_SASL) weir__amqp_sasl_answer(s->e, true);
    if (ev->type == WEIR__AMQP_EVENT_ATTACH && ev->incoming) {
        struct weir__amqp_terms t = {.credit = m->credit,
                                     .max_message_size = m->max_message,
                                     .no_outcomes = m->no_outcomes};
        assert_int_equal(weir__amqp_accept(ev->link, &t, NULL), 0);
    }
    if (ev->type == WEIR__AMQP_EVENT_TRANSFER && m->accept_deliveries && !ev->delivery.settled)
        weir__amqp_settle(ev->link, ev->delivery.id, ev->delivery.id, WEIR__AMQP_ACCEPTED, NULL);
}

static inline struct weir__amqp_error error_text(const char *condition, const char *text)
{
    return weir__amqp_error_of(condition, text);
}

#endif
