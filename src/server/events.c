/* events.c - what a peer says on a connection, and who is asked about it. */
#include <stdio.h>
#include <strings.h>

#include "server/state.h"

#define RULE_SHOWN_MAX 64 /* bytes of a name that nobody knows */

static void on_protocol(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    c->last_words = weir__mistake_plain(c->server, weir__connection_peer(c), ev->bytes);
}

static bool login_certified(struct weir__connection *c, struct weir__bytes as)
{
    struct weir__tls_identity who;
    struct weir_error err;

    if (!weir__connection_certified(c, &who)) return false;
    if (weir__cbs_login_certified(c, &who, as, &err) == 0) return true;
    weir__report_refused(c->server, "server", c->id, weir__connection_peer(c), err.text);
    return false;
}

static bool login_plain(struct weir__connection *c, struct weir__bytes rule, struct weir__bytes key)
{
    char text[RULE_SHOWN_MAX + 64];

    if (weir__cbs_login(c, rule, key)) return true;
    snprintf(text, sizeof text, "there is no access rule '%.*s' with this key",
             rule.len < RULE_SHOWN_MAX ? (int)rule.len : RULE_SHOWN_MAX,
             rule.at ? (const char *)rule.at : "");
    weir__report_refused(c->server, "server", c->id, weir__connection_peer(c), text);
    return false;
}

/* Everybody may come in; what they may do, the token says that comes later. Who has a key, or a
 * certificate, has no need of one. */
static void on_sasl(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    bool welcome = ev->mechanism == WEIR__AMQP_MSSBCBS || ev->mechanism == WEIR__AMQP_ANONYMOUS;

    if (ev->mechanism == WEIR__AMQP_PLAIN) welcome = login_plain(c, ev->user, ev->password);
    if (ev->mechanism == WEIR__AMQP_EXTERNAL) welcome = login_certified(c, ev->bytes);
    weir__amqp_sasl_answer(c->engine, welcome);
}

static void on_open(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    struct weir__bytes host = ev->fields->open.hostname.bytes;

    if (host.len >= sizeof c->host) host.len = sizeof c->host - 1;
    if (host.len) memcpy(c->host, host.at, host.len);
}

/* What the peer calls the thing that it sends to or receives from. */
static int read_address(const struct weir__amqp_event *ev, struct weir__address *out,
                        struct weir__refusal *r)
{
    bool sends = weir__amqp_link_role(ev->link) == WEIR__AMQP_RECEIVER;
    const struct weir__amqp_value *terminus =
        sends ? &ev->fields->attach.target : &ev->fields->attach.source;
    enum weir__amqp_kind kind = sends ? WEIR__AMQP_TARGET : WEIR__AMQP_SOURCE;
    struct weir__amqp_composite c;
    int rc = weir__amqp_composite_of(terminus, WEIR__AMQP_KIND_SET(kind), &c, &r->why);

    if (rc != 0) {
        r->condition = WEIR__AMQP_COND_NOT_IMPLEMENTED;
        return weir__wrap(&r->why, WEIR_EINVAL, "a link without an address");
    }
    return weir__address_parse(out, sends ? c.target.address.bytes : c.source.address.bytes,
                               &r->why);
}

static int open_nothing(struct weir__connection *c, const struct weir__amqp_event *ev,
                        const struct weir__address *a, struct weir__refusal *r)
{
    size_t len = strlen(a->path.text), word = sizeof "/Partitions" - 1;

    (void)ev;
    if (len > word && strcasecmp(a->path.text + len - word, "/Partitions") == 0)
        return weir__fail(&r->why, WEIR_EINVAL,
                          "Invalid EventHub address. It must be either of the following. Sender: "
                          "<EventHubName>. Partition Sender: <EventHubName>/Partitions/"
                          "<PartitionNumber>. Partition Receiver: <EventHubName>/ConsumerGroups/"
                          "<ConsumerGroupName>/Partitions/<PartitionNumber>.");
    return weir__connection_not_found(c, a->path.text, &r->why);
}

/* Who answers an attach: by what the address is, and by our role. */
static const weir__duty_open_fn doors[WEIR__ADDRESS_KINDS][2] = {
    [WEIR__ADDRESS_UNKNOWN] = {open_nothing, open_nothing},
    [WEIR__ADDRESS_CBS] = {weir__serve_desk, weir__serve_desk},
    [WEIR__ADDRESS_MANAGEMENT] = {weir__serve_desk, weir__serve_desk},
    [WEIR__ADDRESS_PUBLISH] = {open_nothing, weir__serve_sender},
    [WEIR__ADDRESS_RECEIVE] = {weir__serve_receiver, open_nothing},
};

/* Whether a receiver's own end has an address. */
static bool names_target(const struct weir__amqp_event *ev)
{
    struct weir__amqp_composite c;

    return weir__amqp_composite_of(&ev->fields->attach.target,
                                   WEIR__AMQP_KIND_SET(WEIR__AMQP_TARGET), &c, NULL) == 0 &&
           c.target.address.type == WEIR__AMQP_STRING && c.target.address.bytes.len > 0;
}

/* Nothing is repeated, as with Azure, but for two clients. Go's asks for both ends when its place was
 * stolen; in all else it takes either end for success. uAMQP, which C++ has, attaches a receiver again
 * and again when its own target is not repeated, and that one has no address; Go's has. */
static enum weir__amqp_echo echo_of(const struct weir__amqp_event *ev, int rc)
{
    if (rc == WEIR_EEPOCH || rc == WEIR_ESTOLEN) return WEIR__AMQP_ECHO_BOTH;
    if (weir__amqp_link_role(ev->link) == WEIR__AMQP_SENDER && !names_target(ev))
        return WEIR__AMQP_ECHO_THEIRS;
    return WEIR__AMQP_ECHO_NONE;
}

static void on_attach(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    struct weir__refusal r = {{0}, NULL};
    struct weir__amqp_error error;
    struct weir__address a;
    int rc = read_address(ev, &a, &r);

    if (rc == 0) rc = doors[a.kind][weir__amqp_link_role(ev->link)](c, ev, &a, &r);
    if (rc == 0) return;
    error = weir__errors_say(&r);
    weir__amqp_refuse(ev->link, &error, echo_of(ev, rc), NULL);
    if (!weir__report_allows(c->server, c->trusted)) return;
    weir__report(c->server, WEIR__INFO, "server", c->id, weir__connection_peer(c),
                 "link '%.*s' refused: %s", (int)weir__amqp_link_name(ev->link).len,
                 (const char *)weir__amqp_link_name(ev->link).at, r.why.text);
}

static void on_flow(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    struct weir__duty *d = ev->link ? weir__amqp_link_user(ev->link) : NULL;

    (void)c;
    if (d)
        weir__duty_pump(d);
    else if (!ev->link)
        weir__duty_pump_session(ev->session);
}

static bool take_transfer(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    struct weir__duty *d = weir__amqp_link_user(ev->link);

    if (c->run.sender && c->run.sender != d && !weir__run_end(c)) return false;
    if (d && d->barred) return true; /* what came before the peer heard of it */
    return !d || !d->link || !d->calls->transfer || d->calls->transfer(d, &ev->delivery);
}

static void on_detach(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    struct weir__duty *d = weir__amqp_link_user(ev->link);

    (void)c;
    if (d) d->calls->gone(d);
}

static void on_close(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    c->closing = true;
    if (!ev->error.condition.at || !c->tcp || !weir__report_allows(c->server, c->trusted)) return;
    weir__report(c->server, WEIR__INFO, "server", c->id, weir__connection_peer(c),
                 "closed by %s: %.*s, %.*s", ev->local ? "us" : "the client",
                 (int)ev->error.condition.len, (const char *)ev->error.condition.at,
                 (int)ev->error.description.len, (const char *)ev->error.description.at);
}

static void (*const on_event[])(struct weir__connection *, const struct weir__amqp_event *) = {
    [WEIR__AMQP_EVENT_PROTOCOL] = on_protocol, [WEIR__AMQP_EVENT_SASL] = on_sasl,
    [WEIR__AMQP_EVENT_OPEN] = on_open,         [WEIR__AMQP_EVENT_BEGIN] = NULL,
    [WEIR__AMQP_EVENT_ATTACH] = on_attach,     [WEIR__AMQP_EVENT_FLOW] = on_flow,
    [WEIR__AMQP_EVENT_TRANSFER] = NULL,        [WEIR__AMQP_EVENT_SETTLE] = NULL,
    [WEIR__AMQP_EVENT_DETACH] = on_detach,     [WEIR__AMQP_EVENT_END] = NULL,
    [WEIR__AMQP_EVENT_CLOSE] = on_close,
};

bool weir__connection_on_event(struct weir__connection *c, const struct weir__amqp_event *ev)
{
    if (ev->type == WEIR__AMQP_EVENT_TRANSFER) return take_transfer(c, ev);
    if (!on_event[ev->type]) return true;
    if (c->run.sender && !weir__run_end(c)) return false;
    on_event[ev->type](c, ev);
    return true;
}
