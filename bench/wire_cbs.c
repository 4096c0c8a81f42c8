#include "bench/wire_cbs.h"

#include <string.h>

#include "base/clock.h"

#define TOKEN_SECONDS 3600
#define REQUEST_BYTES 8192
#define REPLY_CREDIT 10
#define REPLY_ADDRESS "weir-bench"

static void put_property(struct weir__amqp_writer *w, const char *name, const char *value)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, name, strlen(name)));
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, value, strlen(value)));
}

/* put-token: who asks, the operation, and the token as the value of the body. */
static void put_request(struct weir__amqp_writer *w, const char *audience, const char *token)
{
    struct weir__amqp_value null = {0};
    size_t mark;

    weir__amqp_put_descriptor(w, 0x73);
    mark = weir__amqp_put_open(w);
    weir__amqp_put(w, weir__amqp_unsigned(WEIR__AMQP_ULONG, 1));
    weir__amqp_put(w, null);
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, "$cbs", 4));
    weir__amqp_put(w, null);
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, REPLY_ADDRESS, strlen(REPLY_ADDRESS)));
    weir__amqp_put_close(w, mark, WEIR__AMQP_LIST, 5);
    weir__amqp_put_descriptor(w, 0x74);
    mark = weir__amqp_put_open(w);
    put_property(w, "operation", "put-token");
    put_property(w, "type", "servicebus.windows.net:sastoken");
    put_property(w, "name", audience);
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, 6);
    weir__amqp_put_descriptor(w, 0x77);
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, token, strlen(token)));
}

static int send_token(struct weir__bench_wire_cbs *c, const struct weir__bench_wire_target *target,
                      struct weir_error *err)
{
    struct weir__clock clock = weir__clock_system();
    char audience[WEIR__BENCH_WIRE_AUDIENCE_BYTES], token[WEIR__ACCESS_TOKEN_MAX];
    uint8_t space[REQUEST_BYTES];
    struct weir__amqp_writer w;
    struct weir__bytes message;
    int rc = weir__bench_wire_target_token(target, clock.wall_ms(clock.self) / 1000 + TOKEN_SECONDS,
                                           token, err);

    if (rc != 0) return rc;
    weir__bench_wire_target_audience(target, audience);
    weir__amqp_writer_init(&w, space, sizeof space);
    put_request(&w, audience, token);
    rc = weir__amqp_writer_finish(&w, &message, err);
    if (rc == 0) rc = weir__amqp_send(c->request, message, 0, true, NULL);
    return rc;
}

int weir__bench_wire_cbs_attach(struct weir__bench_wire_cbs *c, struct weir__amqp *engine,
                                struct weir_error *err)
{
    struct weir__amqp_terms to = {.name = weir__bytes_of("cbs-request", 11),
                                  .role = WEIR__AMQP_SENDER};
    struct weir__amqp_terms from = {.name = weir__bytes_of("cbs-reply", 9),
                                    .role = WEIR__AMQP_RECEIVER,
                                    .credit = REPLY_CREDIT};
    struct weir__amqp_composite target, source;
    struct weir__amqp_session *session;
    uint8_t space[2][64];
    int rc = weir__amqp_begin(engine, &session, err);

    weir__amqp_composite_init(&target, WEIR__AMQP_TARGET);
    target.target.address = weir__amqp_bytes(WEIR__AMQP_STRING, "$cbs", 4);
    to.target = weir__amqp_composite_value(&target, space[0], sizeof space[0]);
    weir__amqp_composite_init(&source, WEIR__AMQP_SOURCE);
    source.source.address = weir__amqp_bytes(WEIR__AMQP_STRING, "$cbs", 4);
    from.source = weir__amqp_composite_value(&source, space[1], sizeof space[1]);
    if (rc == 0) rc = weir__amqp_attach(session, &to, &c->request, err);
    if (rc == 0) rc = weir__amqp_attach(session, &from, &c->reply, err);
    return rc;
}

/* The reply's status must be one of success. */
static int read_reply(const struct weir__amqp_delivery *d, struct weir_error *err)
{
    struct weir__amqp_value map, status = {0}, text = {0};
    struct weir__amqp_message m;
    int rc = weir__amqp_message_scan(&m, d->payload, WEIR__AMQP_DEEP, err);

    if (rc != 0) return rc;
    map = weir__amqp_message_map(&m, WEIR__AMQP_APPLICATION_PROPERTIES);
    weir__amqp_map_find(&map, "status-code", &status);
    weir__amqp_map_find(&map, "status-description", &text);
    if (status.i >= 200 && status.i < 300) return 0;
    return weir__fail(err, WEIR_EDENIED, "the token was refused with %d: %.*s", (int)status.i,
                      (int)text.bytes.len, text.bytes.at ? (const char *)text.bytes.at : "");
}

int weir__bench_wire_cbs_event(struct weir__bench_wire_cbs *c,
                               const struct weir__bench_wire_target *target,
                               const struct weir__amqp_event *ev, bool *accepted,
                               struct weir_error *err)
{
    int rc;

    if (ev->type == WEIR__AMQP_EVENT_TRANSFER) {
        rc = read_reply(&ev->delivery, err);
        if (!ev->delivery.settled)
            weir__amqp_settle(c->reply, ev->delivery.id, ev->delivery.id, WEIR__AMQP_ACCEPTED,
                              NULL);
        *accepted = rc == 0;
        return rc;
    }
    if (c->asked || ev->link != c->request || !weir__amqp_sendable(c->request)) return 0;
    c->asked = true;
    return send_token(c, target, err);
}
