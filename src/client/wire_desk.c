/* wire_desk.c - $cbs and $management: a link that takes requests there, and one that brings the
 * replies.
 *
 *   request   properties: message-id (ulong), reply-to
 *             application properties and a value, which are the asker's
 *   reply     properties: correlation-id, the request's message-id
 *             application properties: status-code, status-description, error-condition
 *             a value
 *
 * Requests wait in one list, those that were sent in front; an asker is told once, and may ask
 * again at once. */
#include <stdio.h>

#include "client/wire.h"

#define REQUEST_BYTES 8192
#define REPLY_CREDIT 50
#define REPLY_BYTES_MAX 262144
#define NAME_BYTES 64

#define CAPABILITY "weir:administration" /* wire_admin.h has what it means */
#define PROPERTY_HTTP "weir:http"
#define PROPERTY_HTTPS "weir:https"

enum { REQUEST, REPLY };

void weir__wire_put_text(struct weir__amqp_writer *w, const char *name, const char *value)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, name, strlen(name)));
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, value, strlen(value)));
}

struct weir__amqp_value weir__wire_written(struct weir__amqp_writer *w)
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__bytes bytes;

    if (weir__amqp_writer_finish(w, &bytes, NULL) != 0) return out;
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

struct weir__amqp_value weir__wire_terminus(enum weir__amqp_kind kind, const char *address,
                                            struct weir__amqp_value filter, uint8_t *space,
                                            size_t room)
{
    struct weir__amqp_value text = weir__amqp_bytes(WEIR__AMQP_STRING, address, strlen(address));
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, kind);
    if (kind == WEIR__AMQP_SOURCE) {
        c.source.address = text;
        c.source.filter = filter;
    } else {
        c.target.address = text;
    }
    return weir__amqp_composite_value(&c, space, room);
}

bool weir__wire_desk_ready(const struct weir__wire_desk *d)
{
    return d->open[REQUEST] && d->open[REPLY];
}

/* ---- requests ---- */

static void put_request(const struct weir__wire_desk *d, struct weir__wire_request *r,
                        struct weir__amqp_writer *w)
{
    struct weir__amqp_value null = {0};
    struct weir__bytes name = weir__amqp_link_name(d->reply.link);
    uint32_t count;
    size_t mark;

    weir__amqp_put_descriptor(w, 0x73);
    mark = weir__amqp_put_open(w);
    weir__amqp_put(w, weir__amqp_unsigned(WEIR__AMQP_ULONG, r->id));
    weir__amqp_put(w, null);
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, d->address, strlen(d->address)));
    weir__amqp_put(w, null);
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, name.at, name.len));
    weir__amqp_put_close(w, mark, WEIR__AMQP_LIST, 5);
    weir__amqp_put_descriptor(w, 0x74);
    mark = weir__amqp_put_open(w);
    count = r->put_properties(r, w);
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, count);
    weir__amqp_put_descriptor(w, 0x77);
    if (r->put_body)
        r->put_body(r, w);
    else
        weir__amqp_put(w, null);
}

static int send_request(struct weir__wire_desk *d, struct weir__wire_request *r,
                        struct weir_error *err)
{
    uint8_t space[REQUEST_BYTES];
    struct weir__amqp_writer w;
    struct weir__bytes message;
    int rc;

    r->id = ++d->wire->numbers;
    weir__amqp_writer_init(&w, space, sizeof space);
    put_request(d, r, &w);
    rc = weir__amqp_writer_finish(&w, &message, err);
    if (rc == 0) rc = weir__amqp_send(d->request.link, message, 0, true, NULL);
    if (rc != 0) r->id = 0;
    return rc;
}

void weir__wire_desk_forget(struct weir__wire_desk *d, struct weir__wire_request *r)
{
    struct weir__wire_request **at = &d->first;

    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
}

static void pump(struct weir__wire_desk *d)
{
    struct weir__amqp_value null = {0};
    struct weir__wire_request *r, *next;
    struct weir_error err;
    int rc;

    if (!weir__wire_desk_ready(d)) return;
    for (r = d->first; r && weir__amqp_sendable(d->request.link) > 0; r = next) {
        next = r->next;
        if (r->id) continue;
        rc = send_request(d, r, &err);
        if (rc == WEIR_EBUSY) break;
        if (rc == 0) continue;
        weir__wire_desk_forget(d, r);
        r->done(r, WEIR__WIRE_FATAL, &null, &err);
    }
    weir__wire_write_soon(d->wire);
}

void weir__wire_desk_ask(struct weir__wire_desk *d, struct weir__wire_request *r)
{
    struct weir__wire_request **last = &d->first;

    while (*last) last = &(*last)->next;
    r->next = NULL;
    r->id = 0;
    *last = r;
    pump(d);
}

/* ---- replies ---- */

static struct weir__amqp_value body_of(const struct weir__amqp_message *m)
{
    const struct weir__amqp_span *span = &m->section[WEIR__AMQP_BODY];
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;

    if (m->body != WEIR__AMQP_BODY_VALUE) return out;
    at = weir__amqp_cursor_of(weir__bytes_of(m->raw.at + span->value, span->end - span->value));
    weir__amqp_read(&at, &out);
    return out;
}

static struct weir__bytes text_in(const struct weir__amqp_value *map, const char *name)
{
    struct weir__amqp_value v;

    return weir__amqp_map_find(map, name, &v) ? v.bytes : (struct weir__bytes){0};
}

static void answer(struct weir__wire_request *r, const struct weir__amqp_message *m)
{
    struct weir__amqp_value map = weir__amqp_message_map(m, WEIR__AMQP_APPLICATION_PROPERTIES);
    struct weir__amqp_value status = {0}, body = body_of(m), null = {0};
    struct weir__amqp_error e = {text_in(&map, "error-condition"),
                                 text_in(&map, "status-description")};
    struct weir_error why = {0};
    enum weir__wire_cure cure;

    weir__amqp_map_find(&map, "status-code", &status);
    if (status.i >= 200 && status.i < 300) {
        r->done(r, WEIR__WIRE_AGAIN, &body, &why);
        return;
    }
    cure = weir__wire_status(status.i, &e, &why);
    r->done(r, cure, &null, &why);
}

static void on_reply(struct weir__wire_desk *d, const struct weir__amqp_delivery *delivery)
{
    struct weir__amqp_properties p;
    struct weir__wire_request *r = d->first;
    struct weir__amqp_message m;

    if (!delivery->settled)
        weir__amqp_settle(d->reply.link, delivery->id, delivery->id, WEIR__AMQP_ACCEPTED, NULL);
    if (weir__amqp_message_scan(&m, delivery->payload, WEIR__AMQP_DEEP, NULL) != 0 ||
        weir__amqp_message_properties(&m, &p, NULL) != 0)
        return;
    if (p.correlation_id.type != WEIR__AMQP_ULONG) return;
    while (r && r->id != p.correlation_id.u) r = r->next;
    if (!r || r->id == 0) return; /* nobody waits for it any more */
    weir__wire_desk_forget(d, r);
    answer(r, &m);
}

/* ---- the two links ---- */

/* Without $cbs a connection is of no use; another $management is attached when it is needed, in a
 * session of its own. */
static void on_detach(struct weir__wire_desk *d, struct weir__wire_end *end,
                      struct weir__amqp_session *session)
{
    struct weir__wire_end *other = end == &d->request ? &d->reply : &d->request;

    end->link = NULL;
    if (other->link) weir__amqp_link_set_user(other->link, NULL);
    weir__amqp_end(session, NULL);
    weir__wire_desk_lost(d);
    if (d == &d->wire->cbs) weir__wire_break(d->wire, "the link for tokens was detached");
}

/* What the other side tells of itself, if it is weir serve. */
static void take_told(struct weir__wire *w, const struct weir__amqp_event *ev)
{
    const struct weir__amqp_value *map = &ev->fields->attach.properties;
    struct weir__amqp_value http, https;

    if (map->type != WEIR__AMQP_MAP || !weir__amqp_map_find(map, PROPERTY_HTTP, &http) ||
        !weir__amqp_map_find(map, PROPERTY_HTTPS, &https))
        return;
    if (http.type != WEIR__AMQP_USHORT || https.type != WEIR__AMQP_USHORT) return;
    w->told = (struct weir__wire_told){true, (uint16_t)http.u, (uint16_t)https.u};
}

static void on_event(struct weir__wire_desk *d, int which, const struct weir__amqp_event *ev)
{
    switch (ev->type) {
    case WEIR__AMQP_EVENT_ATTACH:
        d->open[which] = true;
        if (d == &d->wire->cbs) take_told(d->wire, ev);
        weir__wire_advance_all(d->wire);
        pump(d);
        break;
    case WEIR__AMQP_EVENT_FLOW: pump(d); break;
    case WEIR__AMQP_EVENT_TRANSFER: on_reply(d, &ev->delivery); break;
    case WEIR__AMQP_EVENT_DETACH:
        on_detach(d, which == REQUEST ? &d->request : &d->reply, ev->session);
        break;
    default: break;
    }
}

static void on_request_event(struct weir__wire_end *end, const struct weir__amqp_event *ev)
{
    struct weir__wire_desk *d =
        (struct weir__wire_desk *)((char *)end - offsetof(struct weir__wire_desk, request));

    on_event(d, REQUEST, ev);
}

static void on_reply_event(struct weir__wire_end *end, const struct weir__amqp_event *ev)
{
    struct weir__wire_desk *d =
        (struct weir__wire_desk *)((char *)end - offsetof(struct weir__wire_desk, reply));

    on_event(d, REPLY, ev);
}

static int attach(struct weir__wire_desk *d, struct weir__amqp_session *session, bool role,
                  struct weir__wire_end *end, struct weir_error *err)
{
    struct weir__amqp_value none = {0};
    struct weir__amqp_terms terms = {.role = role};
    uint8_t space[2][128];
    char name[NAME_BYTES];
    int len = snprintf(name, sizeof name, "%s-%s-%llu", d->address, role ? "reply" : "request",
                       (unsigned long long)++d->wire->numbers);
    int rc;

    terms.name = weir__bytes_of(name, (size_t)len);
    terms.source = weir__wire_terminus(WEIR__AMQP_SOURCE, role ? d->address : name, none, space[0],
                                       sizeof space[0]);
    terms.target = weir__wire_terminus(WEIR__AMQP_TARGET, role ? name : d->address, none, space[1],
                                       sizeof space[1]);
    if (role) {
        terms.credit = REPLY_CREDIT;
        terms.max_message_size = REPLY_BYTES_MAX;
    }
    if (d == &d->wire->cbs)
        terms.desired_capabilities =
            weir__amqp_bytes(WEIR__AMQP_SYMBOL, CAPABILITY, strlen(CAPABILITY));
    rc = weir__amqp_attach(session, &terms, &end->link, err);
    if (rc == 0) weir__amqp_link_set_user(end->link, end);
    return rc;
}

int weir__wire_desk_open(struct weir__wire_desk *d, struct weir__wire *w, const char *address,
                         struct weir_error *err)
{
    struct weir__amqp_session *session;
    int rc;

    d->wire = w;
    d->address = address;
    d->request.event = on_request_event;
    d->reply.event = on_reply_event;
    rc = weir__amqp_begin(w->engine, &session, err);
    if (rc == 0) rc = attach(d, session, WEIR__AMQP_SENDER, &d->request, err);
    if (rc == 0) rc = attach(d, session, WEIR__AMQP_RECEIVER, &d->reply, err);
    weir__wire_write_soon(w);
    return rc;
}

void weir__wire_desk_lost(struct weir__wire_desk *d)
{
    struct weir__amqp_value null = {0};
    struct weir__wire_request *r, *all = d->first;
    struct weir_error why;

    weir__fail(&why, WEIR_ECANCELED, "the connection was lost");
    d->request.link = d->reply.link = NULL;
    d->open[REQUEST] = d->open[REPLY] = false;
    d->first = NULL;
    while ((r = all) != NULL) {
        all = r->next;
        r->done(r, WEIR__WIRE_AGAIN, &null, &why);
    }
}
