/* links.h - the server's side of a connection without a socket, over a namespace on a simulated disk,
 * and a client's engine that attaches links, sends, and keeps what it hears. */
#ifndef WEIR_TESTS_SERVER_LINKS_H
#define WEIR_TESTS_SERVER_LINKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "amqp/dialect.h"
#include "hub/world.h"
#include "server/state.h"

#define HEARD_MAX 700
#define TEXT_MAX 512

/* A message that came, as far as there is room for it. */
struct heard {
    struct weir__amqp_link *link;
    uint32_t format;
    bool settled;
    size_t len;
    uint8_t bytes[2048];
};

struct scene {
    struct world world;
    struct weir__server server;
    struct weir__connection c;
    struct weir__amqp *client;
    struct weir__amqp_session *session;
    struct heard heard[HEARD_MAX];
    uint32_t heard_count;
    uint32_t accepted, rejected;        /* of what the client sent */
    uint32_t flows;                     /* that were about a link */
    char condition[64], text[TEXT_MAX]; /* of the last rejection or detach */
    uint32_t detached;
    uint8_t answer[256]; /* properties of the last attach that was answered */
    struct weir__amqp_value properties;
    bool source, target; /* whether that attach had them */
    uint64_t most;       /* its max-message-size, and how deliveries are settled */
    uint64_t snd_settle_mode, rcv_settle_mode;
    char lines[2048]; /* of the log */
    bool no_room;     /* the server's buffers may not grow */
};

static inline void keep_line(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;
    size_t len = strlen(s->lines);

    (void)level;
    (void)room;
    snprintf(s->lines + len, sizeof s->lines - len, "%s\n", line);
}

static inline void keep_error(struct scene *s, const struct weir__amqp_error *e)
{
    snprintf(s->condition, sizeof s->condition, "%.*s", (int)e->condition.len,
             e->condition.len ? (const char *)e->condition.at : "");
    snprintf(s->text, sizeof s->text, "%.*s", (int)e->description.len,
             e->description.len ? (const char *)e->description.at : "");
}

static inline void keep_message(struct scene *s, const struct weir__amqp_event *ev)
{
    struct heard *h = &s->heard[s->heard_count++];

    assert_true(s->heard_count < HEARD_MAX);
    h->link = ev->link;
    h->format = ev->delivery.format;
    h->settled = ev->delivery.settled;
    h->len = ev->delivery.payload.len;
    memcpy(h->bytes, ev->delivery.payload.at, h->len < sizeof h->bytes ? h->len : sizeof h->bytes);
}

static inline void keep_properties(struct scene *s, const struct weir__amqp_value *v)
{
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    struct weir__amqp_cursor at;

    s->properties = (struct weir__amqp_value){0};
    weir__amqp_writer_init(&w, s->answer, sizeof s->answer);
    weir__amqp_put(&w, *v);
    assert_int_equal(weir__amqp_writer_finish(&w, &bytes, NULL), 0);
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &s->properties);
}

static inline void hear(struct scene *s, const struct weir__amqp_event *ev)
{
    if (ev->type == WEIR__AMQP_EVENT_TRANSFER) keep_message(s, ev);
    if (ev->type == WEIR__AMQP_EVENT_FLOW && ev->link) s->flows++;
    if (ev->type == WEIR__AMQP_EVENT_ATTACH) {
        keep_properties(s, &ev->fields->attach.properties);
        s->source = ev->fields->attach.source.type != WEIR__AMQP_NULL;
        s->target = ev->fields->attach.target.type != WEIR__AMQP_NULL;
        s->most = ev->fields->attach.max_message_size.u;
        s->snd_settle_mode = ev->fields->attach.snd_settle_mode.u;
        s->rcv_settle_mode = ev->fields->attach.rcv_settle_mode.u;
    }
    if (ev->type == WEIR__AMQP_EVENT_SETTLE) {
        bool good = ev->settle.outcome == WEIR__AMQP_ACCEPTED;
        *(good ? &s->accepted : &s->rejected) += ev->settle.last - ev->settle.first + 1;
        if (!good) keep_error(s, &ev->settle.error);
    }
    if (ev->type == WEIR__AMQP_EVENT_DETACH && !ev->local) {
        s->detached++;
        keep_error(s, &ev->error);
    }
}

static inline bool carry(struct weir__amqp *from, struct weir__amqp *to)
{
    struct weir__bytes out = weir__amqp_output(from);
    size_t room;
    uint8_t *in = weir__amqp_input(to, &room);
    size_t n = out.len < room ? out.len : room;

    if (n) memcpy(in, out.at, n);
    weir__amqp_received(to, n);
    weir__amqp_sent(from, n);
    return n > 0;
}

/* Until neither has anything to say. */
static inline void talk(struct scene *s)
{
    struct weir__amqp_event ev;
    bool moved = true;

    while (moved) {
        moved = carry(s->client, s->c.engine);
        while (weir__amqp_next(s->c.engine, &s->c.event))
            assert_true(weir__connection_on_event(&s->c, &s->c.event));
        weir__duty_take_ready(&s->c);
        moved = carry(s->c.engine, s->client) || moved;
        while (weir__amqp_next(s->client, &ev)) hear(s, &ev);
    }
}

static inline struct weir__amqp_value text_of(const char *text)
{
    return weir__amqp_bytes(WEIR__AMQP_STRING, text, strlen(text));
}

static inline struct weir__amqp_value symbol(const char *text)
{
    return weir__amqp_bytes(WEIR__AMQP_SYMBOL, text, strlen(text));
}

/* Two symbols. */
static inline struct weir__amqp_value symbols(const char *first, const char *second,
                                              uint8_t space[128])
{
    struct weir__bytes names[] = {weir__bytes_of(first, strlen(first)),
                                  weir__bytes_of(second, strlen(second))};
    struct weir__amqp_value out;
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;

    weir__amqp_writer_init(&w, space, 128);
    weir__amqp_put_array(&w, WEIR__AMQP_SYMBOL, names, 2);
    assert_int_equal(weir__amqp_writer_finish(&w, &bytes, NULL), 0);
    at = weir__amqp_cursor_of(bytes);
    assert_true(weir__amqp_read(&at, &out));
    return out;
}

static inline void no_work(void *arg)
{
    (void)arg; /* talk does it */
}

static inline bool has_room(void *data, size_t more)
{
    const struct scene *s = data;

    (void)more;
    return !s->no_room;
}

static inline void make_connection(struct scene *s)
{
    struct weir__amqp_options o = {.client = true};

    s->c.server = &s->server;
    s->c.account = (struct weir__account){.budget = &s->server.budget};
    s->c.loop = weir__loops_at(s->server.loops, 0);
    s->c.expires_s = INT64_MAX;
    s->c.done_last = &s->c.done;
    snprintf(s->c.host, sizeof s->c.host, "localhost");
    atomic_init(&s->c.refs, 1);
    weir__mutex_init(&s->c.lock);
    weir__post_init(&s->c.work, no_work, NULL);
    weir__post_init(&s->c.visit, no_work, NULL);
    assert_int_equal(weir__amqp_new(&s->client, &o, NULL), 0);
    o = (struct weir__amqp_options){.reserve = has_room, .reserve_data = s};
    assert_int_equal(weir__amqp_new(&s->c.engine, &o, NULL), 0);
    weir__amqp_trust(s->c.engine);
    weir__amqp_trust(s->client);
    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    talk(s);
}

static inline int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    world_init(&s->world, simfs_new());
    s->world.options.segment_bytes_min = s->world.options.segment_bytes_max; /* nobody rolls */
    assert_int_equal(world_open(&s->world), 0);
    assert_int_equal(world_create(&s->world, "eh1", 2), 0);
    s->server.ns = s->world.ns;
    s->server.clock = simclock(&s->world.time);
    s->server.logger = (struct weir__logger){keep_line, s};
    weir__mutex_init(&s->server.lock);
    assert_int_equal(weir__loops_start(&s->server.loops, &(struct weir__loops_options){.count = 1},
                                       NULL),
                     0);
    weir__report_init(&s->server);
    weir__budget_init(&s->server.budget, &(struct weir__budget_limits){0});
    make_connection(s);
    *state = s;
    return 0;
}

static inline int tear_down(void **state)
{
    struct scene *s = *state;

    weir__amqp_lost(s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_null(s->c.duties);
    assert_int_equal(s->c.reply_bytes, 0);
    assert_int_equal(s->c.reader_bytes, 0);
    assert_int_equal(atomic_load(&s->server.budget.used), 0);
    assert_int_equal(atomic_load(&s->server.links), 0);
    weir__amqp_free(s->c.engine);
    weir__amqp_free(s->client);
    weir__claims_fini(&s->c.claims);
    weir__loops_free(s->server.loops);
    weir__budget_fini(&s->server.budget);
    weir__mutex_fini(&s->c.lock);
    weir__mutex_fini(&s->server.lock);
    world_fini(&s->world);
    free(s);
    return 0;
}

/* The client's wish for a link; ours is where its own end is, NULL: nowhere. */
static inline struct weir__amqp_link *ask_link(struct scene *s, bool role, const char *name,
                                               const char *theirs, const char *ours,
                                               struct weir__amqp_terms terms)
{
    struct weir__amqp_composite target, source;
    uint8_t target_space[1024], source_space[1024];
    struct weir__amqp_link *link;
    bool sends = role == WEIR__AMQP_SENDER;

    weir__amqp_composite_init(&target, WEIR__AMQP_TARGET);
    weir__amqp_composite_init(&source, WEIR__AMQP_SOURCE);
    if (sends || ours) target.target.address = text_of(sends ? theirs : ours);
    if (!sends) source.source.address = text_of(theirs);
    if (!sends) source.source.filter = terms.source;
    terms.name = weir__bytes_of(name, strlen(name));
    terms.role = role;
    terms.target = weir__amqp_composite_value(&target, target_space, sizeof target_space);
    terms.source = weir__amqp_composite_value(&source, source_space, sizeof source_space);
    assert_int_equal(weir__amqp_attach(s->session, &terms, &link, NULL), 0);
    return link;
}

/* And the server's answer. */
static inline struct weir__amqp_link *attach(struct scene *s, bool role, const char *name,
                                             const char *theirs, const char *ours,
                                             struct weir__amqp_terms terms)
{
    struct weir__amqp_link *link = ask_link(s, role, name, theirs, ours, terms);

    talk(s);
    return link;
}

#endif
