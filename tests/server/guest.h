/* guest.h - a client that speaks AMQP to the server of visitor.h, with an engine of its own. */
#ifndef WEIR_TESTS_SERVER_GUEST_H
#define WEIR_TESTS_SERVER_GUEST_H

#include "server/visitor.h"

#define LONG_MS 20000000 /* between signs of life: longer than all else that is waited for */
#define PLAIN WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_PLAIN)
#define ANONYMOUS WEIR__AMQP_MECHANISM_SET(WEIR__AMQP_ANONYMOUS)

static struct {
    struct weir__amqp *engine;
    struct weir__amqp_session *session;
    unsigned begun, flows, settled, detached, closed;
    bool accepted; /* what was settled last */
    char condition[64], text[256];
} client;

static inline void keep_error(const struct weir__amqp_error *e)
{
    snprintf(client.condition, sizeof client.condition, "%.*s", (int)e->condition.len,
             e->condition.len ? (const char *)e->condition.at : "");
    snprintf(client.text, sizeof client.text, "%.*s", (int)e->description.len,
             e->description.len ? (const char *)e->description.at : "");
}

static inline void note_event(const struct weir__amqp_event *ev)
{
    client.begun += ev->type == WEIR__AMQP_EVENT_BEGIN;
    client.flows += ev->type == WEIR__AMQP_EVENT_FLOW && ev->link;
    client.settled += ev->type == WEIR__AMQP_EVENT_SETTLE;
    if (ev->type == WEIR__AMQP_EVENT_SETTLE) {
        client.accepted = ev->settle.outcome == WEIR__AMQP_ACCEPTED;
        keep_error(&ev->settle.error);
    }
    client.detached += ev->type == WEIR__AMQP_EVENT_DETACH;
    client.closed += ev->type == WEIR__AMQP_EVENT_CLOSE;
    if (ev->type == WEIR__AMQP_EVENT_DETACH || ev->type == WEIR__AMQP_EVENT_CLOSE)
        keep_error(&ev->error);
}

static inline void speak(struct scene *s)
{
    struct weir__bytes out;

    while ((out = weir__amqp_output(client.engine)).len) {
        ssize_t n = send(s->fd, out.at, out.len, MSG_NOSIGNAL);
        assert_true(n > 0);
        weir__amqp_sent(client.engine, (size_t)n);
    }
}

/* false: the server has said its last. */
static inline bool listen_once(struct scene *s)
{
    struct weir__amqp_event ev;
    size_t room;
    uint8_t *to = weir__amqp_input(client.engine, &room);
    ssize_t n = patience_recv(s->fd, to, room);

    assert_true(n >= 0);
    weir__amqp_received(client.engine, (size_t)n);
    while (weir__amqp_next(client.engine, &ev)) note_event(&ev);
    return n > 0;
}

/* Speaks and listens until there is one of these, which is forgotten. */
static inline void await(struct scene *s, unsigned *what)
{
    while (*what == 0) {
        speak(s);
        assert_true(listen_once(s));
    }
    *what = 0;
}

/* Begins a session, which the server answers when it reads. */
static inline void begin(void)
{
    assert_int_equal(weir__amqp_begin(client.engine, &client.session, NULL), 0);
}

static inline void come_in(struct scene *s, uint32_t mechanisms)
{
    struct weir__amqp_options o = {.client = true,
                                   .idle_ms = LONG_MS,
                                   .mechanisms = mechanisms,
                                   .user = "RootManageSharedAccessKey",
                                   .password = "SAS_KEY_VALUE"};

    s->server->idle_ms = LONG_MS;
    look_at_visit(s); /* from here on the loop knows it */
    close(s->fd);
    dial_at(s, weir__server_amqp(s->server));
    assert_int_equal(weir__amqp_new(&client.engine, &o, NULL), 0);
    begin();
    await(s, &client.begun);
}

static inline struct weir__amqp_link *attach_to(struct scene *s, const char *name,
                                                const char *address)
{
    struct weir__amqp_terms terms = {.name = weir__bytes_of(name, strlen(name)),
                                     .role = WEIR__AMQP_SENDER};
    struct weir__amqp_composite target;
    struct weir__amqp_link *link;
    uint8_t space[64];

    weir__amqp_composite_init(&target, WEIR__AMQP_TARGET);
    target.target.address = weir__amqp_bytes(WEIR__AMQP_STRING, address, strlen(address));
    terms.target = weir__amqp_composite_value(&target, space, sizeof space);
    assert_int_equal(weir__amqp_attach(client.session, &terms, &link, NULL), 0);
    await(s, &client.flows);
    return link;
}

static inline struct weir__amqp_link *attach(struct scene *s, const char *name)
{
    return attach_to(s, name, "eh1");
}

static inline int tear_down_client(void **state)
{
    weir__amqp_free(client.engine);
    memset(&client, 0, sizeof client);
    return tear_down(state);
}

#endif
