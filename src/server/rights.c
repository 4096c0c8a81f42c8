/* rights.c - rights end: with the time of their token, or with the rule, or the key of an issuer, that
 * they rest on.
 *
 *   rule removed, rotated, narrowed; an issuer's keys replaced > weir__rights_changed > each loop, slice by slice:
 *       connection > claims, each asked what it is worth now > links that have no right any more
 *
 * Nobody is asked per event: a change walks over all connections once. */
#include "server/state.h"

/* A batch that the log was too busy for is not given to it any more. */
static void bar(struct weir__connection *c, struct weir__duty *d,
                const struct weir__amqp_error *why)
{
    d->rights = 0;
    d->barred = true;
    if (c->run.sender == d) weir__run_drop(&c->run);
    if (d->calls->leave) d->calls->leave(d);
    weir__amqp_detach(d->link, why);
}

static void check_duties(struct weir__connection *c, const struct weir__amqp_error *why)
{
    int64_t now_s = weir__connection_now_s(c);

    c->expires_s = INT64_MAX;
    for (struct weir__duty *d = c->duties; d; d = d->next) {
        if (!d->rights) continue;
        d->expires_s = weir__claims_until(&c->claims, d->path, d->rights, now_s);
        if (d->expires_s == 0)
            bar(c, d, why);
        else if (d->expires_s < c->expires_s)
            c->expires_s = d->expires_s;
    }
}

void weir__rights_expire(struct weir__connection *c)
{
    struct weir__amqp_error error =
        weir__amqp_error_of(WEIR__AMQP_COND_UNAUTHORIZED,
                            "ExpiredToken: The token of this link is expired.");

    if (weir__connection_now_s(c) >= c->expires_s) check_duties(c, &error);
}

static unsigned worth_now(const struct weir__claim *claim, void *user)
{
    struct weir__server *s = user;

    if (claim->basis.ground == WEIR__GROUND_ISSUER) return weir__issuer_rights(s, claim);
    return weir__namespace_rights(s->ns, &claim->basis, &claim->path);
}

void weir__rights_review(struct weir__connection *c)
{
    struct weir__amqp_error error =
        weir__amqp_error_of(WEIR__AMQP_COND_UNAUTHORIZED,
                            "Unauthorized access. The access rule or key of this link was removed "
                            "or changed.");

    c->rights_seen = atomic_load(&c->server->rights);
    weir__claims_review(&c->claims, worth_now, c->server);
    check_duties(c, &error);
}

/* ---- all connections of a loop ---- */

static void review_loop(void *arg)
{
    struct weir__server_loop *l = arg;
    struct weir__loop *loop = weir__loops_at(l->server->loops, (unsigned)(l - l->server->at));
    uint64_t rights = atomic_load(&l->server->rights);
    struct weir__connection *next;
    unsigned done = 0;

    for (struct weir__connection *c = l->connections; c && done < WEIR__RIGHTS_SLICE; c = next) {
        next = c->next;
        if (c->rights_seen == rights) continue;
        weir__connection_review(c);
        done++;
    }
    if (done == WEIR__RIGHTS_SLICE)
        weir__loop_timer_start(loop, &l->review_more, weir__loop_now_ms(loop));
}

void weir__rights_changed(void *server)
{
    struct weir__server *s = server;

    atomic_fetch_add(&s->rights, 1);
    for (unsigned i = 0; i < weir__loops_count(s->loops); i++)
        weir__loop_post(weir__loops_at(s->loops, i), &s->at[i].review);
}

void weir__rights_watch(struct weir__server *s)
{
    for (unsigned i = 0; i < weir__loops_count(s->loops); i++) {
        weir__post_init(&s->at[i].review, review_loop, &s->at[i]);
        weir__timer_init(&s->at[i].review_more, review_loop, &s->at[i]);
    }
    weir__namespace_watch_rules(s->ns, weir__rights_changed, s);
}
