/* receiver.c - attaching, handing out events, waiting.
 *
 * Two threads meet here: the one that reads, which owns the cursor and needs no lock for it, and
 * whoever has news for it (the log, a receiver that pushes it out, a cancel). News goes through
 * atomics and r->lock, the last in the lock order, so it can be told from under any other lock. */
#include "hub/receiver.h"

#include <assert.h>
#include <stdlib.h>

#include "hub/state.h"

#define VIEWS_MAX 64 /* batches that one read of the log gives at most */

struct weir__receiver {
    struct weir__epoch_member member; /* first: a place's member is its receiver */
    char name[WEIR__RECEIVER_NAME_MAX + 1];
    struct weir__hub *hub;
    struct weir__epoch_place *place; /* hub lock; NULL when it has left */

    /* The reading thread's own. */
    struct weir__log_reader *reader;
    bool batches;                          /* whole ones are given */
    struct weir__log_view view[VIEWS_MAX]; /* what the last read gave */
    uint32_t view_count, view_at;
    struct weir__batch_walk walk; /* through view[view_at] when walking */
    bool walking;
    struct weir__event ahead; /* the next event when has_ahead: it did not fit the last time */
    bool has_ahead;
    uint64_t sequence; /* of the next event to give */
    uint64_t credit;
    uint64_t missed;                          /* expired and not told yet */
    uint64_t returned_events, returned_bytes; /* that came back, and were not given again yet */
    struct weir_error broken;                 /* code is 0, or WEIR_ECORRUPT until skip */
    uint64_t broken_first, broken_last;       /* first > last: nothing */

    /* News. */
    struct weir__log_watch watch;
    bool watching;
    void (*wake)(void *user);
    void *user;
    struct weir__mutex lock;
    struct weir__cond changed;
    bool canceled;          /* lock */
    struct weir_error over; /* lock; why there is nothing more to come */
    atomic_bool is_over;    /* over is set */
    atomic_bool ready;      /* there is news that next has not looked for yet */
};

/* ---- news ---- */

/* Once until next looks again. */
static void tell(struct weir__receiver *r)
{
    if (atomic_exchange(&r->ready, true)) return;
    weir__mutex_lock(&r->lock);
    weir__cond_broadcast(&r->changed);
    weir__mutex_unlock(&r->lock);
    if (r->wake) r->wake(r->user);
}

static void tell_of_events(void *user)
{
    tell(user);
}

/* It has left its place; call under the hub's lock, which keeps it from being closed meanwhile. */
static void end(struct weir__receiver *r, const struct weir_error *why)
{
    r->place = NULL;
    r->hub->receivers--;
    weir__mutex_lock(&r->lock);
    r->over = *why;
    weir__mutex_unlock(&r->lock);
    atomic_store(&r->is_over, true);
    atomic_store(&r->ready, false); /* also to somebody who has not looked at the last news yet */
    tell(r);
}

void weir__group_dismiss(struct weir__hub *hub, struct weir__group *group,
                         const struct weir_error *why)
{
    (void)hub;
    for (uint32_t i = 0; i < group->place_count; i++) {
        struct weir__epoch_place *place = &group->places[i];
        while (place->count > 0) end((struct weir__receiver *)place->member[--place->count], why);
    }
}

void weir__receiver_cancel(struct weir__receiver *r)
{
    weir__mutex_lock(&r->lock);
    r->canceled = true;
    weir__cond_broadcast(&r->changed);
    weir__mutex_unlock(&r->lock);
}

/* ---- attaching ---- */

/* One place for each partition, also when there have become more of them: those who sit in a place
 * move with it. Call under the hub's lock. */
static int make_places(struct weir__group *g, uint32_t count, struct weir_error *err)
{
    struct weir__epoch_place *places = calloc(count, sizeof *places);

    if (!places) return weir__fail(err, WEIR_ENOMEM, "out of memory for a group's places");
    for (uint32_t i = 0; i < g->place_count; i++) {
        places[i] = g->places[i];
        for (uint32_t k = 0; k < places[i].count; k++)
            ((struct weir__receiver *)places[i].member[k])->place = &places[i];
    }
    free(g->places);
    g->places = places;
    g->place_count = count;
    return 0;
}

/* The place of a group and partition; call under the hub's lock. */
static int find_place(struct weir__hub *hub, const char *group, uint32_t partition,
                      struct weir__epoch_place **out, struct weir_error *err)
{
    struct weir__group *g = hub->groups;
    int rc;

    if (atomic_load(&hub->gone)) return weir__hub_not_found(hub->name, err);
    while (g && !weir__name_equal(g->name, group)) g = g->next;
    if (!g) return weir__group_missing(hub->name, group, err);
    rc = partition < g->place_count ? 0 : make_places(g, weir__hub_partitions(hub), err);
    if (rc == 0) *out = &g->places[partition];
    return rc;
}

/* Takes the place, and tells those who lose theirs. */
static int take_place(struct weir__receiver *r, const char *group, uint32_t partition,
                      struct weir_error *err)
{
    struct weir__epoch_member *out[WEIR__EPOCH_SHARED_MAX];
    struct weir__hub *hub = r->hub;
    struct weir__epoch_place *place = NULL;
    struct weir_error why = {0};
    uint32_t count = 0;
    int rc;

    weir__mutex_lock(&hub->lock);
    rc = find_place(hub, group, partition, &place, err);
    if (rc == 0) {
        rc = weir__epoch_attach(place, &r->member, out, &count, err);
        if (rc != 0) hub->receivers_refused++;
    }
    if (rc == 0) {
        r->place = place;
        hub->receivers++;
        hub->receivers_attached++;
        hub->receivers_displaced += count;
    }
    for (uint32_t i = 0; i < count; i++) {
        weir__epoch_stolen(out[i], &r->member, &why);
        end((struct weir__receiver *)out[i], &why);
    }
    weir__mutex_unlock(&hub->lock);
    return rc;
}

static int set_name(struct weir__receiver *r, const char *name, struct weir_error *err)
{
    size_t len = name ? strlen(name) : 0;

    if (len > WEIR__RECEIVER_NAME_MAX)
        return weir__fail(err, WEIR_EINVAL, "a receiver's name has %zu bytes, the most is %d", len,
                          WEIR__RECEIVER_NAME_MAX);
    if (len) memcpy(r->name, name, len);
    return 0;
}

static struct weir__receiver *new_receiver(struct weir__hub *hub,
                                           const struct weir__receiver_options *o)
{
    struct weir__receiver *r = calloc(1, sizeof *r);

    if (!r) return NULL;
    r->member = (struct weir__epoch_member){.epoch = o->epoch, .name = r->name};
    r->hub = hub;
    r->credit = o->credit;
    r->batches = o->batches;
    r->broken_first = 1;
    r->wake = o->wake;
    r->user = o->user;
    r->watch = (struct weir__log_watch){.fn = tell_of_events, .user = r, .partition = o->partition};
    weir__mutex_init(&r->lock);
    weir__cond_init(&r->changed);
    weir__hub_retain(hub);
    return r;
}

int weir__receiver_attach(struct weir__receiver **out, struct weir__hub *hub,
                          const struct weir__receiver_options *o, struct weir_error *err)
{
    const char *group = o->group ? o->group : WEIR__GROUP_DEFAULT;
    struct weir__receiver *r = new_receiver(hub, o);
    int rc;

    *out = NULL;
    if (!r) return weir__fail(err, WEIR_ENOMEM, "out of memory for a receiver");
    rc = set_name(r, o->name, err);
    if (rc == 0) rc = weir__position_find(hub, o->partition, &o->from, &r->sequence, err);
    if (rc == 0)
        rc = weir__log_reader_open(&r->reader, hub->log, o->partition, r->sequence, o->memory_bytes,
                                   err);
    if (rc == 0) rc = take_place(r, group, o->partition, err);
    if (rc == 0 && r->batches) weir__log_reader_uncheck(r->reader);
    if (rc != 0) {
        weir__receiver_close(r);
        return rc;
    }
    weir__log_watch(hub->log, &r->watch);
    r->watching = true;
    *out = r;
    return 0;
}

void weir__receiver_close(struct weir__receiver *r)
{
    struct weir__hub *hub;

    if (!r) return;
    hub = r->hub;
    weir__mutex_lock(&hub->lock);
    if (r->place) {
        weir__epoch_detach(r->place, &r->member);
        hub->receivers--;
    }
    weir__mutex_unlock(&hub->lock);
    if (r->watching) weir__log_unwatch(hub->log, &r->watch);
    weir__log_reader_close(r->reader);
    weir__cond_fini(&r->changed);
    weir__mutex_fini(&r->lock);
    free(r);
    weir__hub_release(hub);
}

/* ---- reading ---- */

static int say_over(struct weir__receiver *r, struct weir_error *err)
{
    struct weir_error over;

    weir__mutex_lock(&r->lock);
    over = r->over;
    weir__mutex_unlock(&r->lock);
    if (err) *err = over;
    return over.code;
}

int weir__receiver_over(struct weir__receiver *r, struct weir_error *err)
{
    return atomic_load(&r->is_over) ? say_over(r, err) : 0;
}

/* Reads on in the log. With nothing there, says so, or why nothing can come any more. */
static int load_views(struct weir__receiver *r, struct weir_error *err)
{
    uint64_t missed = 0;
    int rc;

    r->view_at = r->view_count = 0;
    rc = weir__log_reader_next(r->reader, r->view, VIEWS_MAX, &r->view_count, &missed, err);
    r->missed += missed;
    if (rc == WEIR_ECORRUPT || rc == WEIR_EIO)
        weir__log_reader_damage(r->reader, &r->broken_first, &r->broken_last);
    if (rc != 0) r->view_count = 0;
    if (rc == 0 && r->view_count == 0) rc = weir__log_state(r->hub->log, err);
    return rc;
}

/* A batch that passed its checksum but cannot be walked: the rest of it is lost. False: there is no rest,
 * only something behind the events that it has. */
static bool note_broken(struct weir__receiver *r, int rc)
{
    const struct weir__log_view *view = &r->view[r->view_at];
    uint64_t last = view->sequence + view->count - 1;

    r->broken.code = r->walk.next.sequence > last ? 0 : rc;
    if (r->broken.code == 0) return false;
    r->broken_first = r->walk.next.sequence;
    r->broken_last = last;
    return true;
}

/* The next event; false when the views are used up, or broken here. It is written where it goes:
 * each copy of it would wait for the one before. */
static bool walk_on(struct weir__receiver *r, struct weir__event *out)
{
    if (r->has_ahead) {
        *out = r->ahead;
        r->has_ahead = false;
        return true;
    }
    while (r->view_at < r->view_count) {
        int rc = 0;
        if (!r->walking) rc = weir__batch_walk_start(&r->walk, &r->view[r->view_at], &r->broken);
        if (rc == 0) rc = weir__batch_walk_next(&r->walk, out, &r->broken);
        if (rc < 0 && note_broken(r, rc)) return false;
        r->walking = rc == 1;
        if (r->walking) return true;
        r->view_at++;
    }
    return false;
}

/* As delivered. What came back was counted before, and a counter never falls. */
static void count(struct weir__receiver *r, uint64_t events, uint64_t bytes)
{
    uint64_t again = events < r->returned_events ? events : r->returned_events;
    uint64_t again_bytes = bytes < r->returned_bytes ? bytes : r->returned_bytes;

    r->returned_events -= again;
    r->returned_bytes -= again_bytes;
    atomic_fetch_add_explicit(&r->hub->delivered_events, events - again, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->hub->delivered_bytes, bytes - again_bytes, memory_order_relaxed);
}

/* Hands out what the views hold, as far as room, bytes and credit go. */
static void fill(struct weir__receiver *r, struct weir__receiver_take *take)
{
    uint64_t room = r->credit < take->events_max ? r->credit : take->events_max;
    size_t bytes = 0;

    while (take->count < room && walk_on(r, &take->events[take->count])) {
        const struct weir__event *e = &take->events[take->count];
        if (take->bytes_max && take->count > 0 && bytes + e->message.len > take->bytes_max) {
            r->ahead = *e;
            r->has_ahead = true;
            break;
        }
        bytes += e->message.len;
        take->count++;
    }
    if (take->count == 0) return;
    r->sequence = take->events[take->count - 1].sequence + 1;
    if (r->credit != WEIR__CREDIT_UNLIMITED) r->credit -= take->count;
    take->missed = r->missed;
    r->missed = 0;
    count(r, take->count, bytes);
}

/* Before looking, so that what comes from now on is told again. The order matters: what is told
 * between the two lines must not be forgotten. */
static void listen_again(struct weir__receiver *r)
{
    if (!atomic_load(&r->ready)) return; /* it was not told since: it still listens */
    atomic_store(&r->ready, false);
    weir__log_watch(r->hub->log, &r->watch);
}

int weir__receiver_next(struct weir__receiver *r, struct weir__receiver_take *take,
                        struct weir_error *err)
{
    int rc;

    assert(!r->batches); /* their bodies are not checked */
    take->count = 0;
    take->missed = 0;
    listen_again(r);
    if (atomic_load(&r->is_over)) return say_over(r, err);
    if (r->credit == 0 || take->events_max == 0) return 0;
    if (!r->broken.code) fill(r, take);
    if (!r->broken.code && take->count == 0) {
        rc = load_views(r, err);
        if (rc != 0) return rc;
        fill(r, take);
    }
    if (take->count > 0 || !r->broken.code) return 0;
    if (err) *err = r->broken;
    return r->broken.code;
}

int weir__receiver_next_batch(struct weir__receiver *r, const struct weir__log_view **out,
                              struct weir_error *err)
{
    const struct weir__log_view *view;
    int rc = 0;

    *out = NULL;
    listen_again(r);
    if (atomic_load(&r->is_over)) return say_over(r, err);
    if (r->view_at == r->view_count) rc = load_views(r, err);
    if (rc != 0 || r->view_count == 0) return rc;
    view = &r->view[r->view_at++];
    r->sequence = view->sequence + view->count;
    count(r, view->count - view->skip, view->body.len);
    *out = view;
    return 0;
}

/* What was read is forgotten, also that it was broken: it is found again. */
static void read_from(struct weir__receiver *r, uint64_t sequence)
{
    r->walking = r->has_ahead = false;
    r->view_at = r->view_count = 0;
    r->sequence = sequence;
    r->broken.code = 0;
    r->broken_first = 1;
    r->broken_last = 0;
    weir__log_reader_seek(r->reader, sequence);
}

void weir__receiver_rest(struct weir__receiver *r)
{
    if (r->view_at < r->view_count) read_from(r, r->sequence);
    weir__log_reader_rest(r->reader);
}

size_t weir__receiver_memory(const struct weir__receiver *r)
{
    return weir__log_reader_memory(r->reader);
}

void weir__receiver_return(struct weir__receiver *r, const struct weir__event *events,
                           uint32_t count)
{
    if (count == 0) return;
    for (uint32_t i = 0; i < count; i++) r->returned_bytes += events[i].message.len;
    r->returned_events += count;
    if (r->credit != WEIR__CREDIT_UNLIMITED) weir__receiver_credit_add(r, count);
    read_from(r, events[0].sequence);
}

void weir__receiver_return_batch(struct weir__receiver *r, const struct weir__log_view *view)
{
    r->returned_events += view->count - view->skip;
    r->returned_bytes += view->body.len;
    read_from(r, view->sequence + view->skip);
}

static bool take_cancel(struct weir__receiver *r)
{
    bool canceled;

    weir__mutex_lock(&r->lock);
    canceled = r->canceled;
    r->canceled = false;
    weir__mutex_unlock(&r->lock);
    return canceled;
}

/* false: the deadline passed and there is no news. */
static bool wait_for_news(struct weir__receiver *r, int64_t deadline_ns)
{
    bool news, in_time = true;

    weir__mutex_lock(&r->lock);
    while (!(news = atomic_load(&r->ready) || r->canceled) && in_time)
        in_time = weir__cond_wait(&r->changed, &r->lock, deadline_ns);
    weir__mutex_unlock(&r->lock);
    return news;
}

int weir__receiver_pull(struct weir__receiver *r, struct weir__receiver_take *take,
                        int64_t deadline_ns, struct weir_error *err)
{
    int rc;

    do {
        take->count = 0;
        take->missed = 0;
        if (take_cancel(r)) return weir__fail(err, WEIR_ECANCELED, "the wait was cancelled");
        rc = weir__receiver_next(r, take, err);
        if (rc != 0 || take->count > 0) return rc;
    } while (wait_for_news(r, deadline_ns));
    return weir__fail(err, WEIR_ETIMEDOUT, "no event came in time");
}

void weir__receiver_skip(struct weir__receiver *r, uint64_t *out_first, uint64_t *out_last)
{
    *out_first = r->broken_first;
    *out_last = r->broken_last;
    if (r->broken_first > r->broken_last) return; /* nothing is broken here */
    assert(r->broken_last >= r->sequence);        /* or it would give events again */
    read_from(r, r->broken_last + 1);
}

void weir__receiver_credit_add(struct weir__receiver *r, uint64_t events)
{
    if (__builtin_add_overflow(r->credit, events, &r->credit)) r->credit = WEIR__CREDIT_UNLIMITED;
}

void weir__receiver_credit_set(struct weir__receiver *r, uint64_t events)
{
    r->credit = events;
}

uint64_t weir__receiver_credit(const struct weir__receiver *r)
{
    return r->credit;
}

uint64_t weir__receiver_sequence(const struct weir__receiver *r)
{
    return r->sequence;
}
