/* desk.c - $cbs and $management: a link that brings requests, and a link on the same session that
 * takes the replies away: the one whose name or target is the request's reply-to. As clients fill
 * that with whatever they like, or not at all, it is otherwise the newest.
 *
 *   request   application properties, a value   transfer > answered at once > accepted
 *             a stranger may ask, too: Azure's Java client has its token in the request to $management
 *   reply     properties: correlation-id is the request's message-id, type and all
 *             application properties: operation, status-code (int), status-description, error-condition
 *             a value, or none */
#include <stdlib.h>

#include "amqp/dialect.h"
#include "server/server.h"
#include "server/state.h"

#define REQUEST_BYTES_MAX ((size_t)64 << 10)
#define REQUEST_CREDIT 100
#define REPLY_BYTES_MAX ((size_t)64 << 10)
#define TARGET_BYTES_MAX 256 /* a longer one is not kept */
#define STATUS_ACCEPTED 202
#define STATUS_OK 200

/* A client that is administered by HTTP asks where that is: client/wire_admin.h. */
#define CAPABILITY "weir:administration"
#define TOLD_BYTES 128

struct reply {
    struct reply *next;
    size_t len;
    uint8_t bytes[];
};

struct desk {
    struct weir__duty duty;
    enum weir__address_kind kind;
    struct reply *first, **last; /* for which there was no credit */
    uint32_t waiting;
    size_t target_len;
    uint8_t target[]; /* of the link that takes replies */
};

static const struct {
    weir__request_fn answer;
    int status;
    const char *text;      /* status-description of success, NULL: none */
    const char *operation; /* which success names, NULL: none */
} kinds[WEIR__ADDRESS_KINDS] = {
    [WEIR__ADDRESS_CBS] = {weir__cbs_answer, STATUS_ACCEPTED, "Accepted", NULL},
    [WEIR__ADDRESS_MANAGEMENT] = {weir__management_answer, STATUS_OK, NULL, WEIR__EH_READ},
};

static struct weir__bytes bytes_of_text(const char *text)
{
    return weir__bytes_of(text, text ? strlen(text) : 0);
}

struct weir__bytes weir__request_text(const struct weir__request *r, const char *name)
{
    struct weir__amqp_value v;

    if (!weir__amqp_map_find(&r->properties, name, &v)) return (struct weir__bytes){0};
    return v.type == WEIR__AMQP_STRING || v.type == WEIR__AMQP_SYMBOL ? v.bytes
                                                                      : (struct weir__bytes){0};
}

/* ---- replies ---- */

static void put_text(struct weir__amqp_writer *w, enum weir__amqp_type type, const char *text)
{
    weir__amqp_put(w, weir__amqp_bytes(type, text, strlen(text)));
}

static void put_nulls(struct weir__amqp_writer *w, int count)
{
    while (count-- > 0) weir__amqp_put(w, (struct weir__amqp_value){0});
}

/* properties: to is the request's reply-to, correlation-id its message-id. */
static void put_properties(struct weir__amqp_writer *w, const struct weir__amqp_properties *request)
{
    size_t mark;

    weir__amqp_put_descriptor(w, 0x73);
    mark = weir__amqp_put_open(w);
    put_nulls(w, 2);
    weir__amqp_put(w, request->reply_to);
    put_nulls(w, 2);
    weir__amqp_put(w, request->message_id);
    weir__amqp_put_close(w, mark, WEIR__AMQP_LIST, 6);
}

/* One pair of a reply's application properties; nothing without a value. */
static uint32_t put_pair(struct weir__amqp_writer *w, const char *name, enum weir__amqp_type type,
                         struct weir__bytes value)
{
    if (!value.at) return 0;
    put_text(w, WEIR__AMQP_STRING, name);
    weir__amqp_put(w, weir__amqp_bytes(type, value.at, value.len));
    return 2;
}

static void put_status(struct weir__amqp_writer *w, struct weir__bytes operation, int status,
                       const struct weir__amqp_error *say)
{
    uint32_t count = 2;
    size_t mark;

    weir__amqp_put_descriptor(w, 0x74);
    mark = weir__amqp_put_open(w);
    count += put_pair(w, WEIR__EH_OPERATION, WEIR__AMQP_STRING, operation);
    put_text(w, WEIR__AMQP_STRING, WEIR__EH_STATUS);
    weir__amqp_put(w, weir__amqp_signed(WEIR__AMQP_INT, status));
    count += put_pair(w, WEIR__EH_STATUS_TEXT, WEIR__AMQP_STRING, say->description);
    count += put_pair(w, WEIR__EH_CONDITION, WEIR__AMQP_SYMBOL, say->condition);
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, count);
}

static void put_body(struct weir__amqp_writer *w, struct weir__bytes body)
{
    weir__amqp_put_descriptor(w, 0x77);
    if (body.len)
        weir__amqp_put_raw(w, body);
    else
        put_nulls(w, 1);
}

/* Answers a request into `out`. */
static int write_reply(const struct desk *d, const struct weir__request *request,
                       const struct weir__amqp_properties *properties, struct weir__buf *out,
                       struct weir_error *err)
{
    struct weir__refusal refusal = {{0}, NULL};
    struct weir__amqp_error say = {{0}, {0}};
    struct weir__amqp_writer w;
    struct weir__bytes body = {0}, operation = {0};
    struct weir__buf value;
    int rc, status = kinds[d->kind].status;

    weir__buf_init(&value, REPLY_BYTES_MAX);
    weir__amqp_writer_append(&w, &value);
    rc = kinds[d->kind].answer(request, &w, &refusal);
    if (rc == 0) rc = weir__amqp_writer_finish(&w, &body, &refusal.why);
    if (rc == 0) {
        say.description = bytes_of_text(kinds[d->kind].text);
        operation = bytes_of_text(kinds[d->kind].operation);
    } else {
        body = (struct weir__bytes){0};
        say = weir__errors_say(&refusal);
        status = weir__errors_status(rc);
    }
    weir__amqp_writer_append(&w, out);
    put_properties(&w, properties);
    put_status(&w, operation, status, &say);
    put_body(&w, body);
    rc = weir__amqp_writer_finish(&w, NULL, err);
    weir__buf_fini(&value);
    return rc;
}

/* A reply repeats what its request was called by, so replies are as large as the client likes. */
static bool may_wait(const struct desk *d, size_t bytes)
{
    const struct weir__connection *c = d->duty.connection;
    size_t most = c->trusted ? WEIR__SERVER_REPLY_BYTES_MAX : WEIR__SERVER_STRANGER_REPLY_BYTES_MAX;

    return d->waiting < WEIR__SERVER_REPLIES_MAX && bytes <= most && c->reply_bytes <= most - bytes;
}

/* Puts a reply where pump finds it. */
static int queue_reply(struct desk *to, struct weir__bytes message, struct weir_error *err)
{
    bool goes_now = !to->first && weir__amqp_sendable(to->duty.link) > 0;
    struct reply *r;

    if (!goes_now && !may_wait(to, message.len))
        return weir__fail(err, WEIR_ELIMIT, "%u replies wait for credit", to->waiting);
    r = malloc(sizeof *r + message.len);
    if (!r) return weir__fail(err, WEIR_ENOMEM, "out of memory for a reply");
    r->next = NULL;
    r->len = message.len;
    memcpy(r->bytes, message.at, message.len);
    *to->last = r;
    to->last = &r->next;
    to->waiting++;
    to->duty.connection->reply_bytes += message.len;
    return 0;
}

static void drop_first(struct desk *d)
{
    struct reply *r = d->first;

    d->first = r->next;
    if (!d->first) d->last = &d->first;
    d->waiting--;
    d->duty.connection->reply_bytes -= r->len;
    free(r);
}

static void pump(struct weir__duty *duty)
{
    struct desk *d = (struct desk *)duty;
    bool settled = weir__amqp_link_settled(duty->link);

    if (weir__amqp_link_role(duty->link) != WEIR__AMQP_SENDER) return;
    while (d->first && weir__amqp_send(duty->link, weir__bytes_of(d->first->bytes, d->first->len),
                                       0, settled, NULL) == 0)
        drop_first(d);
    if (!d->first && weir__amqp_link_drain(duty->link)) weir__amqp_drained(duty->link);
    if (d->first && weir__amqp_link_credit(duty->link) > 0) weir__duty_await_room(duty);
}

/* ---- requests ---- */

static bool take_request(struct weir__duty *duty, const struct weir__amqp_delivery *d);

static void gone(struct weir__duty *duty)
{
    struct desk *d = (struct desk *)duty;

    weir__duty_end(duty);
    while (d->first) drop_first(d);
    free(d);
}

static const struct weir__duty_calls calls = {.transfer = take_request, .pump = pump, .gone = gone};

static bool is_same(struct weir__bytes a, struct weir__bytes b)
{
    return a.len && a.len == b.len && !memcmp(a.at, b.at, a.len);
}

/* Where the replies of a desk are fetched. */
static struct desk *find_other(const struct desk *d, struct weir__bytes reply_to)
{
    struct weir__amqp_session *session = weir__amqp_link_session(d->duty.link);
    struct desk *newest = NULL;

    for (struct weir__duty *o = d->duty.connection->duties; o; o = o->next) {
        struct desk *other = (struct desk *)o;
        if (o->calls != &calls || other->kind != d->kind ||
            weir__amqp_link_role(o->link) != WEIR__AMQP_SENDER ||
            weir__amqp_link_session(o->link) != session)
            continue;
        if (is_same(reply_to, weir__amqp_link_name(o->link)) ||
            is_same(reply_to, weir__bytes_of(other->target, other->target_len)))
            return other;
        if (!newest) newest = other;
    }
    return newest;
}

static int read_request(const struct weir__amqp_delivery *d, struct weir__request *out,
                        struct weir__amqp_properties *properties, struct weir_error *err)
{
    struct weir__amqp_message m;
    struct weir__amqp_span body;
    struct weir__amqp_cursor at;
    int rc;

    if (d->too_large && d->size <= REQUEST_BYTES_MAX)
        return weir__fail(err, WEIR_ENOMEM, "no memory for a request of %zu bytes",
                          (size_t)d->size);
    if (d->too_large)
        return weir__fail(err, WEIR_ETOOBIG, "The request has more than %zu bytes.",
                          REQUEST_BYTES_MAX);
    rc = weir__amqp_message_scan(&m, d->payload, WEIR__AMQP_DEEP, err);
    if (rc == 0) rc = weir__amqp_message_properties(&m, properties, err);
    if (rc != 0) return rc;
    out->properties = weir__amqp_message_map(&m, WEIR__AMQP_APPLICATION_PROPERTIES);
    out->body = (struct weir__amqp_value){0};
    body = m.section[WEIR__AMQP_BODY];
    if (m.body != WEIR__AMQP_BODY_VALUE) return 0;
    at = weir__amqp_cursor_of(weir__bytes_of(m.raw.at + body.value, body.end - body.value));
    weir__amqp_read(&at, &out->body);
    return 0;
}

/* Leaves the reply with the link that fetches it, which *to is. A request without such a link is
 * dropped: its client has just let go of the link and is not to be punished for that. */
static int answer(struct desk *d, const struct weir__amqp_delivery *delivery, struct desk **to,
                  struct weir_error *err)
{
    struct weir__request request = {.connection = d->duty.connection};
    struct weir__amqp_properties properties = {0};
    struct weir__buf message;
    int rc = read_request(delivery, &request, &properties, err);

    if (rc != 0) return rc;
    *to = find_other(d, properties.reply_to.bytes);
    if (!*to) return 0;
    weir__buf_init(&message, REPLY_BYTES_MAX);
    rc = write_reply(d, &request, &properties, &message, err);
    if (rc == 0) rc = queue_reply(*to, weir__buf_bytes(&message), err);
    weir__buf_fini(&message);
    return rc;
}

/* The outcome goes before the reply, as clients know it from the service. */
static bool take_request(struct weir__duty *duty, const struct weir__amqp_delivery *delivery)
{
    struct weir__refusal r = {{0}, NULL};
    struct weir__amqp_error error;
    struct desk *to = NULL;
    int rc = answer((struct desk *)duty, delivery, &to, &r.why);

    if (rc != 0) error = weir__errors_say(&r);
    if (!delivery->settled)
        weir__amqp_settle(duty->link, delivery->id, delivery->id,
                          rc == 0 ? WEIR__AMQP_ACCEPTED : WEIR__AMQP_REJECTED,
                          rc == 0 ? NULL : &error);
    if (rc == 0 && to) pump(&to->duty);
    return true;
}

static struct weir__bytes read_target(const struct weir__amqp_event *ev)
{
    struct weir__amqp_composite c;
    int rc = weir__amqp_composite_of(&ev->fields->attach.target,
                                     WEIR__AMQP_KIND_SET(WEIR__AMQP_TARGET), &c, NULL);

    if (rc != 0 || c.target.address.bytes.len > TARGET_BYTES_MAX) return (struct weir__bytes){0};
    return c.target.address.bytes;
}

/* Whether a connection has a link for tokens already. Who sends to $cbs twice does not know which
 * reply belongs to which request; the service refuses it. */
static bool is_second(const struct weir__connection *c, bool role)
{
    if (role != WEIR__AMQP_RECEIVER) return false;
    for (const struct weir__duty *o = c->duties; o; o = o->next)
        if (o->calls == &calls && ((const struct desk *)o)->kind == WEIR__ADDRESS_CBS &&
            weir__amqp_link_role(o->link) == role)
            return true;
    return false;
}

static uint16_t port_of(const char *address)
{
    const char *colon = address ? strrchr(address, ':') : NULL;

    return colon ? (uint16_t)strtoul(colon + 1, NULL, 10) : 0;
}

static void put_port(struct weir__amqp_writer *w, const char *name, const char *address)
{
    put_text(w, WEIR__AMQP_SYMBOL, name);
    weir__amqp_put(w, weir__amqp_unsigned(WEIR__AMQP_USHORT, port_of(address)));
}

/* The ports of HTTP, 0 for none. Strangers may know them: mistake.c tells them, too. */
static struct weir__amqp_value write_told(const struct weir__server *s, uint8_t to[TOLD_BYTES])
{
    struct weir__amqp_value out = {0};
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&w, to, TOLD_BYTES);
    mark = weir__amqp_put_open(&w);
    put_port(&w, "weir:http", weir__server_http(s));
    put_port(&w, "weir:https", weir__server_https(s));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 4);
    if (weir__amqp_writer_finish(&w, &bytes, NULL) != 0) return out;
    at = weir__amqp_cursor_of(bytes);
    weir__amqp_read(&at, &out);
    return out;
}

int weir__serve_desk(struct weir__connection *c, const struct weir__amqp_event *ev,
                     const struct weir__address *a, struct weir__refusal *r)
{
    struct weir__amqp_terms terms = {.max_message_size = REQUEST_BYTES_MAX,
                                     .credit = REQUEST_CREDIT,
                                     .no_outcomes = true};
    struct weir__bytes target = read_target(ev);
    uint8_t told[TOLD_BYTES];
    struct desk *d;
    int rc;

    if (a->kind == WEIR__ADDRESS_CBS && is_second(c, weir__amqp_link_role(ev->link))) {
        r->condition = WEIR__AMQP_COND_NOT_ALLOWED;
        return weir__fail(&r->why, WEIR_EINVAL,
                          "A link to connection '%s' $cbs node has already been opened.",
                          weir__connection_peer(c));
    }
    d = calloc(1, sizeof *d + target.len);
    if (!d) return weir__fail(&r->why, WEIR_ENOMEM, "out of memory for a link");
    d->target_len = target.len;
    if (target.len) memcpy(d->target, target.at, target.len);
    d->duty.connection = c;
    d->kind = a->kind;
    d->last = &d->first;
    if (a->kind == WEIR__ADDRESS_CBS && weir__duty_desires(ev, CAPABILITY))
        terms.properties = write_told(c->server, told);
    rc = weir__amqp_accept(ev->link, &terms, &r->why);
    if (rc == 0)
        weir__duty_start(&d->duty, c, ev->link, &calls);
    else
        free(d);
    return rc;
}
