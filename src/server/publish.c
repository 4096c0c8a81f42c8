/* publish.c - batches on their way to the disk: from a sender to the log and back.
 *
 *   put > the log takes it ... is done with it, on its own thread > counted > (the loop) settled
 *
 * A log is done with the batches of a sender in the order in which it took them. So all that comes
 * back is a number, how many are done, and all that is remembered of a batch lies in a ring that
 * only the loop touches. The number and "the loop was told" are one word, so that a group of
 * thousands costs its thread one addition each and wakes the loop once. What failed is rare and
 * comes besides, with its place in the row.
 *
 * A lane is looked at by the loop only when it was told of it, and the log's thread touches it no
 * more once it has counted and found the loop told: so the one who sees the last batch done may free
 * it. */
#include <assert.h>
#include <stdlib.h>

#include "server/state.h"

#define ITEMS_FIRST 64u
#define SETTLED_BIT 0x80000000u /* in an item's bytes: its sender does not want to know */
#define TOLD 1u                 /* in counted; the number is above it */
#define ONE 2u

/* Bytes that a connection may have with the log without the server's sum knowing; from the first
 * byte to the last it is never told that there are none. */
#define REPORT_BYTES ((size_t)64 << 10)

struct weir__publish_item {
    uint32_t first, last; /* deliveries */
    uint32_t bytes;
};

/* What the log could not store. */
struct weir__publish_failure {
    struct weir__publish_failure *next;
    uint64_t number; /* of the batch, in its lane */
    struct weir_error why;
};

void weir__publish_init(struct weir__publish *p, struct weir__duty *duty)
{
    *p = (struct weir__publish){.duty = duty};
    p->failures_last = &p->failures;
    p->lost_from = UINT64_MAX;
    atomic_init(&p->counted, 0);
}

void weir__publish_fini(struct weir__publish *p)
{
    assert(p->settled == p->put && !p->failures);
    free(p->items);
}

/* The sum of all connections is told in steps. */
static void report(struct weir__connection *c)
{
    struct weir__server *s = c->server;
    size_t now = c->unflushed, before = c->reported;
    size_t step = now > before ? now - before : before - now;

    if (step < REPORT_BYTES && (now != 0) == (before != 0)) return;
    c->reported = now;
    if (now > before) {
        atomic_fetch_add(&s->unflushed, step);
    } else if (atomic_fetch_sub(&s->unflushed, step) == step && atomic_load(&s->stopping)) {
        weir__mutex_lock(&s->lock);
        weir__cond_broadcast(&s->changed);
        weir__mutex_unlock(&s->lock);
    }
}

static struct weir__publish_item *item_at(struct weir__publish *p, uint64_t number)
{
    return &p->items[number & (p->items_cap - 1)];
}

static bool grow(struct weir__publish *p)
{
    uint32_t cap = p->items_cap ? 2 * p->items_cap : ITEMS_FIRST;
    struct weir__publish_item *items;

    if (cap > WEIR__PUBLISH_ITEMS_MAX) return false;
    items = malloc(cap * sizeof *items);
    if (!items) return false;
    for (uint64_t n = p->settled; n != p->put; n++) items[n & (cap - 1)] = *item_at(p, n);
    free(p->items);
    p->items = items;
    p->items_cap = cap;
    return true;
}

bool weir__publish_put(struct weir__publish *p, uint32_t first, uint32_t last, size_t bytes,
                       bool settled)
{
    struct weir__connection *c = p->duty->connection;

    assert(bytes < SETTLED_BIT);
    if (p->put - p->settled == p->items_cap && !grow(p)) return false;
    *item_at(p, p->put++) =
        (struct weir__publish_item){first, last, (uint32_t)bytes | (settled ? SETTLED_BIT : 0)};
    if (c->batches++ == 0) atomic_fetch_add(&c->refs, 1);
    c->unflushed += bytes;
    report(c);
    return true;
}

/* It is no longer with the log. The reference stays with the caller. */
static void forget(struct weir__connection *c, const struct weir__publish_item *item)
{
    c->unflushed -= item->bytes & ~SETTLED_BIT;
    c->batches--;
}

void weir__publish_take_back(struct weir__publish *p)
{
    struct weir__connection *c = p->duty->connection;

    forget(c, item_at(p, --p->put));
    report(c);
    if (c->batches == 0) weir__connection_let_go(c);
}

/* ---- on the log's thread ---- */

/* Without memory to say why, this batch and all behind it count as lost: their outcome is unknown. */
static void note_failure(struct weir__publish *p, int rc, const struct weir_error *err)
{
    struct weir__connection *c = p->duty->connection;
    uint64_t number = atomic_load(&p->counted) / ONE;
    struct weir__publish_failure *f = malloc(sizeof *f);

    if (f) *f = (struct weir__publish_failure){.number = number};
    if (f && err) f->why = *err;
    if (f) f->why.code = rc;
    weir__mutex_lock(&c->lock);
    if (f) {
        *p->failures_last = f;
        p->failures_last = &f->next;
    } else if (number < p->lost_from) {
        p->lost_from = number;
    }
    weir__mutex_unlock(&c->lock);
}

/* The loops run until the log has done all that it was given, so there is always somebody to take
 * the mail. */
static void tell_loop(struct weir__publish *p)
{
    struct weir__connection *c = p->duty->connection;
    int rc;

    weir__mutex_lock(&c->lock);
    atomic_fetch_or(&p->counted, TOLD);
    p->done_next = NULL;
    *c->done_last = p;
    c->done_last = &p->done_next;
    rc = weir__loop_post(c->loop, &c->work);
    assert(rc == 0);
    weir__mutex_unlock(&c->lock);
}

void weir__publish_done(void *publish, int rc, const struct weir__log_receipt *receipt,
                        const struct weir_error *err)
{
    struct weir__publish *p = publish;

    (void)receipt;
    if (rc != 0) note_failure(p, rc, err);
    if (!(atomic_fetch_add(&p->counted, ONE) & TOLD)) tell_loop(p);
}

/* ---- on the loop ---- */

/* What came back from the log: batches up to a number, and the failures among them. */
struct news {
    uint64_t done, lost_from;
    struct weir__publish_failure *failures;
};

/* A failure is noted before its batch is counted, so those of all that were counted are there. */
static void take_news(struct weir__publish *p, struct news *out)
{
    struct weir__publish_failure **at = &out->failures;

    out->done = atomic_fetch_and(&p->counted, ~(uint64_t)TOLD) / ONE;
    out->lost_from = p->lost_from;
    out->failures = p->failures;
    while (*at && (*at)->number < out->done) at = &(*at)->next;
    p->failures = *at;
    *at = NULL;
    if (!p->failures) p->failures_last = &p->failures;
}

static struct weir__publish *take_lane(struct weir__connection *c, struct news *out)
{
    struct weir__publish *p;

    weir__mutex_lock(&c->lock);
    p = c->done;
    if (p) {
        c->done = p->done_next;
        if (!c->done) c->done_last = &c->done;
        take_news(p, out);
    }
    weir__mutex_unlock(&c->lock);
    return p;
}

/* Accepts deliveries first to last; last is before first when there are none, and afterwards. */
static void accept_run(struct weir__publish *p, uint32_t *first, uint32_t last)
{
    if (last + 1 != *first)
        weir__amqp_settle(p->duty->link, *first, last, WEIR__AMQP_ACCEPTED, NULL);
    *first = last + 1;
}

/* Whether a batch failed, and why. */
static bool has_failed(struct news *news, uint64_t number, struct weir__refusal *out)
{
    struct weir__publish_failure *f = news->failures;

    if (f && f->number == number) {
        *out = (struct weir__refusal){f->why, NULL};
        news->failures = f->next;
        free(f);
        return true;
    }
    if (number < news->lost_from) return false;
    *out = (struct weir__refusal){{.code = WEIR_EUNKNOWN}, NULL};
    return true;
}

/* One outcome for every run of deliveries that follow one another. */
static void settle_lane(struct weir__publish *p, struct news *news)
{
    struct weir__connection *c = p->duty->connection;
    uint32_t first = 0, last = first - 1;
    struct weir__refusal r;

    for (; p->settled != news->done; p->settled++) {
        const struct weir__publish_item *item = item_at(p, p->settled);
        bool failed = has_failed(news, p->settled, &r);
        forget(c, item);
        if (!p->duty->link || item->bytes & SETTLED_BIT) continue;
        if (failed || item->first != last + 1) {
            accept_run(p, &first, last);
            first = item->first;
        }
        last = item->last;
        if (!failed) continue;
        weir__sender_reject(p->duty->link, first, last, &r);
        first = last + 1;
    }
    if (p->duty->link) accept_run(p, &first, last);
}

bool weir__publish_take_done(struct weir__connection *c)
{
    struct weir__publish *p;
    struct news news;
    bool busy = c->batches > 0;

    while ((p = take_lane(c, &news))) {
        settle_lane(p, &news);
        if (p->settled == p->put) weir__sender_drained(p->duty);
    }
    report(c);
    return busy && c->batches == 0;
}

int weir__server_publish(struct weir__server *s, struct weir__hub *hub,
                         const struct weir__batch *batch, uint32_t partition,
                         const struct weir__log_producer *producer, weir__log_done_fn done,
                         void *user, struct weir_error *err)
{
    if (atomic_load(&s->sealed)) return weir__fail(err, WEIR_ECLOSED, "The server is stopping.");
    return weir__hub_publish(hub, batch, partition, producer, 0, done, user, err);
}
