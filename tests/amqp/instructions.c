/* instructions.c - what the engine costs for one event, in instructions: counted, so the same on a
 * busy machine as on an idle one.
 *
 *     instructions out|in|check MESSAGES
 *
 * Two engines in one process, server and client, wired mouth to ear. Callgrind counts what the
 * server's side does, and not the copies that a socket would make (--collect-atstart=no):
 *
 *   out   100-byte events, each composed with its annotations into a transfer of its own, to a
 *         client that gives credit
 *   in    100-byte events, each in a transfer of its own: bytes to event, and accepted
 *   check whether such an event is a message, which is what the hub asks of it
 *
 * The wires are pieces of WIRE_BYTES, as a socket gives them. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <valgrind/callgrind.h>

#include "amqp/engine.h"

#define EVENT_BYTES 100
#define CREDIT 1000
#define WIRE_BYTES ((size_t)256 << 10)

struct side {
    struct weir__amqp *e;
    struct weir__amqp_link *link; /* the one that carries the events */
    uint64_t events;              /* server: sent or taken in */
    uint32_t first, unsettled;    /* deliveries that came and were not accepted yet */
    struct weir__amqp_stamp stamp;
    bool counted; /* the server */
};

static uint8_t message[5 + EVENT_BYTES] = {0x00, 0x53, 0x75, 0xa0, EVENT_BYTES};

static void check(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "instructions: %s\n", what);
    exit(1);
}

static void carry(const struct side *s, uint8_t *to, const uint8_t *from, size_t len)
{
    if (s->counted) CALLGRIND_TOGGLE_COLLECT;
    if (len) memcpy(to, from, len);
    if (s->counted) CALLGRIND_TOGGLE_COLLECT;
}

static void on_attach(struct side *s, const struct weir__amqp_event *ev)
{
    struct weir__amqp_terms terms = {.credit = CREDIT, .no_outcomes = true};

    s->link = ev->link;
    if (ev->incoming) check(weir__amqp_accept(ev->link, &terms, NULL) == 0, "accept");
}

static void on_transfer(struct side *s, const struct weir__amqp_delivery *d)
{
    if (!d->settled && !s->unsettled++) s->first = d->id;
    s->events++;
}

static void on_event(struct side *s, const struct weir__amqp_event *ev)
{
    switch (ev->type) {
    case WEIR__AMQP_EVENT_SASL: weir__amqp_sasl_answer(s->e, true); break;
    case WEIR__AMQP_EVENT_ATTACH: on_attach(s, ev); break;
    case WEIR__AMQP_EVENT_TRANSFER: on_transfer(s, &ev->delivery); break;
    case WEIR__AMQP_EVENT_CLOSE: check(false, "the connection ended"); break;
    default: break;
    }
}

static void hear(struct side *s, const uint8_t *bytes, size_t len)
{
    struct weir__amqp_event ev;

    while (len) {
        size_t room, n;
        uint8_t *to = weir__amqp_input(s->e, &room);
        n = len < room ? len : room;
        check(n > 0, "no room to read");
        carry(s, to, bytes, n);
        weir__amqp_received(s->e, n);
        while (weir__amqp_next(s->e, &ev)) on_event(s, &ev);
        bytes += n;
        len -= n;
    }
    if (s->unsettled)
        weir__amqp_settle(s->link, s->first, s->first + s->unsettled - 1, WEIR__AMQP_ACCEPTED,
                          NULL);
    s->unsettled = 0;
}

static size_t speak(struct side *s, uint8_t *to)
{
    struct weir__bytes out = weir__amqp_output(s->e);
    size_t n = out.len < WIRE_BYTES ? out.len : WIRE_BYTES;

    carry(s, to, out.at, n);
    weir__amqp_sent(s->e, n);
    return n;
}

/* As the server's receivers do it; false when there is no credit or no room. */
static bool deliver_one(struct side *s)
{
    struct weir__amqp_stamp *stamp = &s->stamp;
    struct weir__bytes stored = weir__bytes_of(message, sizeof message);
    size_t bound = weir__amqp_compose_bound(stored.len, stamp), bytes;
    uint8_t *to = s->link ? weir__amqp_deliver(s->link, bound) : NULL;

    if (!to) return false;
    stamp->sequence = (int64_t)s->events;
    stamp->enqueued_ms = 1700000000000;
    stamp->offset = 1000000000000000 + s->events;
    check(weir__amqp_compose(stored, stamp, to, bound, &bytes, NULL) == 0, "compose");
    weir__amqp_delivered(s->link, bytes, 0, true);
    s->events++;
    return true;
}

/* What came is heard, what there is is delivered, what is to be said is put on the wire. */
static size_t take_turn(struct side *server, bool out, uint64_t messages, const uint8_t *in,
                        size_t in_len, uint8_t *to)
{
    size_t n;

    CALLGRIND_TOGGLE_COLLECT;
    hear(server, in, in_len);
    while (out && server->events < messages && deliver_one(server)) continue;
    n = speak(server, to);
    CALLGRIND_TOGGLE_COLLECT;
    return n;
}

static void start(struct side *client, struct side *server, bool out)
{
    struct weir__amqp_options o = {.client = true};
    struct weir__amqp_terms terms = {.name = weir__bytes_of("link", 4),
                                     .role = out ? WEIR__AMQP_RECEIVER : WEIR__AMQP_SENDER,
                                     .credit = out ? CREDIT : 0};
    struct weir__amqp_session *session;

    check(weir__amqp_new(&client->e, &o, NULL) == 0, "a client");
    o.client = false;
    check(weir__amqp_new(&server->e, &o, NULL) == 0, "a server");
    weir__amqp_trust(client->e);
    weir__amqp_trust(server->e);
    check(weir__amqp_begin(client->e, &session, NULL) == 0, "begin");
    check(weir__amqp_attach(session, &terms, &client->link, NULL) == 0, "attach");
}

static void check_messages(uint64_t messages)
{
    struct weir__bytes m = weir__bytes_of(message, sizeof message), annotations;
    int rc = 0;

    CALLGRIND_TOGGLE_COLLECT;
    while (messages--) rc |= weir__amqp_message_check(m, &annotations, NULL);
    CALLGRIND_TOGGLE_COLLECT;
    check(rc == 0, "a message");
}

int main(int argc, char **argv)
{
    static uint8_t to_server[WIRE_BYTES], to_client[WIRE_BYTES];
    bool out = argc == 3 && !strcmp(argv[1], "out");
    uint64_t messages = argc == 3 ? strtoull(argv[2], NULL, 10) : 0, sent = 0;
    struct side client = {0}, server = {.counted = true};
    struct weir__bytes m = weir__bytes_of(message, sizeof message);
    size_t n = 0;

    check(messages != 0, "out|in|check MESSAGES");
    if (!strcmp(argv[1], "check")) {
        check_messages(messages);
        return 0;
    }
    start(&client, &server, out);
    while ((out ? client.events : server.events) < messages) {
        while (!out && sent < messages && weir__amqp_send(client.link, m, 0, false, NULL) == 0)
            sent++;
        n = speak(&client, to_server);
        n = take_turn(&server, out, messages, to_server, n, to_client);
        hear(&client, to_client, n);
    }
    weir__amqp_free(client.e);
    weir__amqp_free(server.e);
    return 0;
}
