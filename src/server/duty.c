/* duty.c - the duties of a connection: which there are, what they may do, and whose turn it is.
 *
 * Two lists: all of them, touched by the loop only, and those with news, which any thread may put
 * there and the loop takes off, first come first served. */
#include <assert.h>
#include <stdlib.h>

#include "base/steps.h"
#include "server/state.h"

#define DUTIES_PER_TURN 128 /* of one connection with news; then the loop's others have theirs */

void weir__duty_start(struct weir__duty *d, struct weir__connection *c, struct weir__amqp_link *l,
                      const struct weir__duty_calls *calls)
{
    assert(d->connection == c); /* which whoever wakes it reads already */
    d->calls = calls;
    d->link = l;
    d->next = c->duties;
    if (d->next) d->next->prev = d;
    c->duties = d;
    atomic_fetch_add(&c->server->links, 1);
    weir__amqp_link_set_user(l, d);
    if (d->rights && d->expires_s < c->expires_s) c->expires_s = d->expires_s;
}

void weir__duty_end(struct weir__duty *d)
{
    struct weir__connection *c = d->connection;

    weir__amqp_link_set_user(d->link, NULL);
    d->link = NULL;
    atomic_fetch_sub(&c->server->links, 1);
    weir__rights_forget(d);
    if (d->next) d->next->prev = d->prev;
    if (d->prev)
        d->prev->next = d->next;
    else
        c->duties = d->next;
    weir__duty_unready(d);
}

/* Takes one off the list; the lock is held. */
static void drop_ready(struct weir__connection *c, struct weir__duty *d)
{
    if (d->ready_prev)
        d->ready_prev->ready_next = d->ready_next;
    else
        c->ready = d->ready_next;
    if (d->ready_next)
        d->ready_next->ready_prev = d->ready_prev;
    else
        c->ready_last = d->ready_prev;
    d->is_ready = false;
}

void weir__duty_unready(struct weir__duty *d)
{
    struct weir__connection *c = d->connection;

    weir__mutex_lock(&c->lock);
    if (d->is_ready) drop_ready(c, d);
    weir__mutex_unlock(&c->lock);
}

int weir__duty_allow(struct weir__duty *d, struct weir__connection *c,
                     const struct weir__address *a, unsigned right, const char *name,
                     struct weir__refusal *r)
{
    d->path = malloc(sizeof *d->path);
    if (!d->path) return weir__fail(&r->why, WEIR_ENOMEM, "out of memory for a link");
    *d->path = a->path;
    d->rights = right | WEIR__RIGHT_MANAGE;
    d->expires_s = weir__claims_until(&c->claims, &a->path, d->rights, weir__connection_now_s(c));
    return d->expires_s > 0 ? 0 : weir__claims_denied(name, &r->why);
}

void weir__duty_wake(struct weir__duty *d)
{
    struct weir__connection *c = d->connection;

    weir__mutex_lock(&c->lock);
    if (!d->is_ready) {
        d->is_ready = true;
        d->ready_next = NULL;
        d->ready_prev = c->ready_last;
        if (d->ready_prev)
            d->ready_prev->ready_next = d;
        else
            c->ready = d;
        c->ready_last = d;
    }
    weir__loop_post(c->loop, &c->work); /* a loop that has stopped pumps nothing, which is fine */
    weir__mutex_unlock(&c->lock);
}

void weir__duty_pump(struct weir__duty *d)
{
    if (d->link && d->calls->pump) d->calls->pump(d);
}

void weir__duty_await_room(struct weir__duty *d)
{
    d->connection->starved = true;
    if (weir__amqp_sendable(d->link) > 0) d->connection->cramped = true;
}

void weir__duty_pump_all(struct weir__connection *c)
{
    struct weir__duty *d = c->duties, *first;
    uint32_t count = 0;

    for (; d; d = d->next) count++;
    for (first = c->duties, count = count ? c->turn++ % count : 0; count; count--)
        first = first->next;
    for (d = first; d; d = d->next) weir__duty_pump(d);
    for (d = c->duties; d != first; d = d->next) weir__duty_pump(d);
}

/* A peer says often that its window is open again: the duties of other sessions are not looked at.
 * Those that find the output full are pumped with all others. */
void weir__duty_pump_session(const struct weir__amqp_session *s)
{
    for (struct weir__amqp_link *l = weir__amqp_session_links(s); l; l = weir__amqp_link_next(l)) {
        WEIR__STEP();
        if (weir__amqp_link_user(l)) weir__duty_pump(weir__amqp_link_user(l));
    }
}

void weir__duty_take_ready(struct weir__connection *c)
{
    struct weir__duty *d;

    for (int i = 0; i < DUTIES_PER_TURN; i++) {
        weir__mutex_lock(&c->lock);
        d = c->ready;
        if (d) drop_ready(c, d);
        weir__mutex_unlock(&c->lock);
        if (!d) return;
        weir__duty_pump(d);
    }
    weir__loop_defer(c->loop, &c->visit); /* the rest when the loop's others had their turn */
}

static bool is_symbol(const struct weir__amqp_value *v, const char *name)
{
    return v->type == WEIR__AMQP_SYMBOL && v->bytes.len == strlen(name) &&
           memcmp(v->bytes.at, name, v->bytes.len) == 0;
}

/* One symbol, or an array or a list of them. */
bool weir__duty_desires(const struct weir__amqp_event *ev, const char *capability)
{
    const struct weir__amqp_value *v = &ev->fields->attach.desired_capabilities;
    struct weir__amqp_items items;
    struct weir__amqp_value one;

    if (is_symbol(v, capability)) return true;
    if (v->type != WEIR__AMQP_ARRAY && v->type != WEIR__AMQP_LIST) return false;
    weir__amqp_items_init(&items, v);
    while (weir__amqp_items_next(&items, &one))
        if (is_symbol(&one, capability)) return true;
    return false;
}
