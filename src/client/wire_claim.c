/* wire_claim.c - tokens: each audience's is shown to $cbs before the first link that needs it, and
 * again when three quarters of its life are over. With a connection and when a link says that the
 * other side does not know it, a claim begins anew.
 *
 * A token that is refused fails who waits for it; a link that is open lives until the other side
 * ends it, and is then among those who wait. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "client/token.h"
#include "client/wire.h"

#define ANSWER_MS 20000 /* then the connection is taken for dead */
#define SPARE_MAX 64    /* claims that are kept, until their time, though nobody uses them */
#define TOKEN_TYPE "servicebus.windows.net:sastoken"

static struct weir__wire_claim *claim_of(struct weir__wire_request *r)
{
    return (struct weir__wire_claim *)((char *)r - offsetof(struct weir__wire_claim, request));
}

static int64_t wall_ms(void)
{
    struct weir__clock clock = weir__clock_system();

    return clock.wall_ms(clock.self);
}

int weir__wire_token(struct weir__wire *w, const char *resource, int64_t *out_expires_s,
                     char out[WEIR__ACCESS_TOKEN_MAX + 1], struct weir_error *err)
{
    if (*w->to.signature) {
        memcpy(out, w->to.signature, sizeof w->to.signature);
        *out_expires_s = weir__token_expiry(out);
        return 0;
    }
    *out_expires_s = (wall_ms() + 999) / 1000 + w->token_s;
    return weir__token_make(out, resource, w->to.key_name, w->to.key, *out_expires_s, err);
}

static uint32_t put_properties(struct weir__wire_request *r, struct weir__amqp_writer *w)
{
    weir__wire_put_text(w, "operation", "put-token");
    weir__wire_put_text(w, "type", TOKEN_TYPE);
    weir__wire_put_text(w, "name", claim_of(r)->audience);
    return 6;
}

static void put_body(struct weir__wire_request *r, struct weir__amqp_writer *w)
{
    struct weir__wire_claim *c = claim_of(r);
    char token[WEIR__ACCESS_TOKEN_MAX + 1];

    /* A name too long for a token is too long for a hub: the other side will say so. */
    if (weir__wire_token(c->wire, c->audience, &c->expires_s, token, NULL) != 0) *token = '\0';
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, token, strlen(token)));
}

static void ask(struct weir__wire_claim *c)
{
    if (c->asking) return;
    c->asking = true;
    if (c->state != WEIR__WIRE_CLAIM_GOOD) c->state = WEIR__WIRE_CLAIM_ASKED;
    weir__loop_timer_start(c->wire->loop, &c->timer, weir__loop_now_ms(c->wire->loop) + ANSWER_MS);
    weir__wire_desk_ask(&c->wire->cbs, &c->request);
}

static void free_claim(struct weir__wire_claim *c)
{
    struct weir__wire_claim **at = &c->wire->claims;

    while (*at != c) at = &(*at)->next;
    *at = c->next;
    if (c->asking) weir__wire_desk_forget(&c->wire->cbs, &c->request);
    weir__loop_timer_stop(c->wire->loop, &c->timer);
    free(c);
}

void weir__wire_claim_release(struct weir__wire_claim *c)
{
    unsigned spare = 0;

    if (!c || --c->users > 0) return;
    for (struct weir__wire_claim *o = c->wire->claims; o; o = o->next) spare += o->users == 0;
    if (c->state != WEIR__WIRE_CLAIM_GOOD || spare > SPARE_MAX) free_claim(c);
}

/* Links and queries that can do nothing without it hear why. */
static void fail_users(struct weir__wire_claim *c, const struct weir_error *why)
{
    struct weir__wire_link *l, *next_link;
    struct weir__wire_query *q, *next_query;

    c->users++; /* it outlives those */
    for (l = c->wire->links; l; l = next_link) {
        next_link = l->next;
        if (l->claim == c && l->state <= WEIR__WIRE_LINK_RESTING && l->calls->wanted(l))
            weir__wire_link_fail(l, why);
    }
    for (q = c->wire->queries; q; q = next_query) {
        next_query = q->next;
        if (q->claim == c && !q->asked) weir__wire_query_end(q, why);
    }
    weir__wire_claim_release(c);
}

/* A quarter of its life is left for tries that fail; a token that somebody else made is all there
 * is, and is not shown twice. */
static void plan_renewal(struct weir__wire_claim *c)
{
    int64_t left_ms = c->expires_s * 1000 - wall_ms();
    int64_t at = INT64_MAX;

    if (!*c->wire->to.signature && left_ms > 0)
        at = weir__loop_now_ms(c->wire->loop) + left_ms / 4 * 3;
    weir__loop_timer_start(c->wire->loop, &c->timer, at);
}

/* Which key it was: the service does not say. */
static struct weir_error name_key(const struct weir__wire_claim *c, const struct weir_error *why)
{
    struct weir_error named = *why;

    if (why->code == WEIR_EDENIED && !*c->wire->to.signature)
        weir__wrap(&named, WEIR_EDENIED, "the key '%s' was refused", c->wire->to.key_name);
    return named;
}

static void on_done(struct weir__wire_request *r, enum weir__wire_cure cure,
                    const struct weir__amqp_value *body, const struct weir_error *why)
{
    struct weir__wire_claim *c = claim_of(r);
    int64_t now_ms = weir__loop_now_ms(c->wire->loop);
    struct weir_error named;
    bool again;

    (void)body;
    c->asking = false;
    weir__loop_timer_stop(c->wire->loop, &c->timer);
    if (why->code == 0) {
        c->state = WEIR__WIRE_CLAIM_GOOD;
        c->attempts = 0;
        plan_renewal(c);
        weir__wire_advance_all(c->wire);
        return;
    }
    if (c->state == WEIR__WIRE_CLAIM_ASKED) c->state = WEIR__WIRE_CLAIM_NONE;
    if (why->code == WEIR_ECANCELED) return;
    named = name_key(c, why);
    again = cure == WEIR__WIRE_AGAIN || cure == WEIR__WIRE_BUSY || weir__wire_claim_late(c);
    if (!again && c->state == WEIR__WIRE_CLAIM_NONE) {
        fail_users(c, &named);
        return;
    }
    weir__wire_log(c->wire, WEIR__WARN, "the token for %s: %s", c->audience, named.text);
    if (again)
        weir__loop_timer_start(c->wire->loop, &c->timer,
                               now_ms + (cure == WEIR__WIRE_BUSY
                                             ? WEIR__WIRE_BUSY_MS
                                             : weir__wire_delay_ms(++c->attempts)));
}

static void on_timer(void *arg)
{
    struct weir__wire_claim *c = arg;

    if (c->asking)
        weir__wire_break(c->wire, "no answer to a token");
    else if (c->users > 0)
        ask(c);
    else
        free_claim(c);
}

struct weir__wire_claim *weir__wire_claim_use(struct weir__wire *w, const char *audience)
{
    struct weir__wire_claim *c = w->claims;

    while (c && strcasecmp(c->audience, audience) != 0) c = c->next;
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c) return NULL;
        c->wire = w;
        c->request.put_properties = put_properties;
        c->request.put_body = put_body;
        c->request.done = on_done;
        weir__timer_init(&c->timer, on_timer, c);
        snprintf(c->audience, sizeof c->audience, "%s", audience);
        c->next = w->claims;
        w->claims = c;
    }
    c->users++;
    return c;
}

bool weir__wire_claim_ready(struct weir__wire_claim *c)
{
    if (c->state == WEIR__WIRE_CLAIM_GOOD) return true;
    if (c->state == WEIR__WIRE_CLAIM_NONE && !c->timer.running) ask(c);
    return false;
}

void weir__wire_claim_doubt(struct weir__wire_claim *c)
{
    if (c->state != WEIR__WIRE_CLAIM_GOOD) return;
    c->state = c->asking ? WEIR__WIRE_CLAIM_ASKED : WEIR__WIRE_CLAIM_NONE;
    if (!c->asking) weir__loop_timer_stop(c->wire->loop, &c->timer);
}

bool weir__wire_claim_late(const struct weir__wire_claim *c)
{
    return !*c->wire->to.signature && c->expires_s * 1000 <= wall_ms();
}

void weir__wire_claims_lost(struct weir__wire *w)
{
    for (struct weir__wire_claim *c = w->claims; c; c = c->next) {
        c->state = WEIR__WIRE_CLAIM_NONE;
        c->attempts = 0;
        weir__loop_timer_stop(w->loop, &c->timer);
    }
}

void weir__wire_claims_free(struct weir__wire *w)
{
    for (struct weir__wire_claim *c = w->claims, *next; c; c = next) {
        next = c->next;
        free_claim(c);
    }
}
