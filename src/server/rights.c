/* rights.c - rights end: with the time of their token, or with the rule, or the key of an issuer, that
 * they rest on.
 *
 *   rule removed, rotated, narrowed; an issuer's keys replaced > weir__rights_changed > each loop, slice by slice:
 *       connection > claims, each asked what it is worth now > links that have no right any more
 *
 * Nobody is asked per event: a change walks over all connections once. Claims and links are as many as
 * peers like, so every walk ends with the turn and goes on in a later one, from where it was. What
 * happens meanwhile begins another walk behind it, so that no walk begins again before its end. */
#include "base/steps.h"
#include "server/state.h"

#define STEPS_PER_LOOK 64u /* claims or links, between looks at the clock: so many in any case */
#define LATE_NS (WEIR__LOOP_TURN_NS / 2) /* for connections, also when the turn is over */

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

static void end_link(struct weir__connection *c, struct weir__duty *d)
{
    struct weir__amqp_error changed =
        weir__amqp_error_of(WEIR__AMQP_COND_UNAUTHORIZED,
                            "Unauthorized access. The access rule or key of this link was removed "
                            "or changed.");
    struct weir__amqp_error expired =
        weir__amqp_error_of(WEIR__AMQP_COND_UNAUTHORIZED,
                            "ExpiredToken: The token of this link is expired.");

    bar(c, d, c->walk.of_rules ? &changed : &expired);
}

/* ---- the walk over one connection ---- */

static unsigned worth_now(const struct weir__claim *claim, void *user)
{
    struct weir__server *s = user;

    if (claim->basis.ground == WEIR__GROUND_ISSUER) return weir__issuer_rights(s, claim);
    return weir__namespace_rights(s->ns, &claim->basis, &claim->path);
}

static void begin_links(struct weir__connection *c)
{
    c->walk.step = WEIR__WALK_LINKS;
    c->walk.next = c->duties;
    c->expires_s = INT64_MAX;
}

/* false: there is no need. */
static bool begin_walk(struct weir__connection *c)
{
    struct weir__rights_walk *w = &c->walk;

    if (!w->asked && (c->expires_s == INT64_MAX || weir__connection_now_s(c) < c->expires_s))
        return false;
    w->of_rules = w->asked;
    w->asked = false;
    if (w->of_rules) {
        w->step = WEIR__WALK_CLAIMS;
        weir__claims_review(&c->claims);
    } else {
        begin_links(c);
    }
    return true;
}

/* Where only time has passed, a link whose claim has not run out is not asked. */
static void check_link(struct weir__connection *c, struct weir__duty *d)
{
    int64_t now_s = weir__connection_now_s(c);

    WEIR__STEP();
    if (!d->rights) return;
    if (c->walk.of_rules || d->expires_s <= now_s)
        d->expires_s = weir__claims_until(&c->claims, d->path, d->rights, now_s);
    if (d->expires_s == 0)
        end_link(c, d);
    else if (d->expires_s < c->expires_s)
        c->expires_s = d->expires_s;
}

/* One claim, or one link. */
static void take_step(struct weir__connection *c)
{
    struct weir__rights_walk *w = &c->walk;
    struct weir__duty *d = w->next;

    if (w->step == WEIR__WALK_CLAIMS) {
        if (!weir__claims_review_next(&c->claims, worth_now, c->server)) begin_links(c);
    } else if (d) {
        w->next = d->next;
        check_link(c, d);
    } else {
        w->step = WEIR__WALK_NONE;
    }
}

void weir__rights_pass(struct weir__connection *c)
{
    struct weir__rights_walk *w = &c->walk;
    unsigned steps = 0;

    while (w->step != WEIR__WALK_NONE || begin_walk(c)) {
        take_step(c);
        if (++steps % STEPS_PER_LOOK == 0 && weir__loop_turn_over(c->loop)) return;
    }
}

bool weir__rights_pending(const struct weir__connection *c)
{
    return c->walk.asked || c->walk.step != WEIR__WALK_NONE;
}

void weir__rights_review(struct weir__connection *c)
{
    c->rights_seen = atomic_load(&c->server->rights);
    c->walk.asked = true;
}

void weir__rights_forget(struct weir__duty *d)
{
    struct weir__rights_walk *w = &d->connection->walk;

    if (w->next == d) w->next = d->next;
}

/* ---- all connections of a loop ---- */

/* One that comes later has shown its tokens later, too. */
static void begin_review(struct weir__server_loop *l)
{
    l->review_rights = atomic_load(&l->server->rights);
    l->review_next = l->connections;
}

static int64_t end_of_slice_ns(const struct weir__loop *loop)
{
    int64_t ns = weir__loop_turn_ns(loop) + LATE_NS;

    return ns > WEIR__LOOP_TURN_NS ? ns : WEIR__LOOP_TURN_NS;
}

static void review_loop(void *arg)
{
    struct weir__server_loop *l = arg;
    struct weir__loop *loop = weir__loops_at(l->server->loops, (unsigned)(l - l->server->at));
    int64_t until_ns = end_of_slice_ns(loop);
    struct weir__connection *c;

    if (!l->review_next) begin_review(l);
    while ((c = l->review_next) && weir__loop_turn_ns(loop) < until_ns) {
        l->review_next = c->next;
        if (c->rights_seen < l->review_rights) weir__connection_review(c);
    }
    if (l->review_next || l->review_rights != atomic_load(&l->server->rights))
        weir__loop_put_off(loop, &l->review_more);
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
        weir__post_init(&s->at[i].review_more, review_loop, &s->at[i]);
    }
    weir__namespace_watch_rules(s->ns, weir__rights_changed, s);
}
