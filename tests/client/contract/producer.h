/* producer.h - batches, keys, completions, idempotence, many threads. */
#ifndef WEIR_TESTS_CONTRACT_PRODUCER_H
#define WEIR_TESTS_CONTRACT_PRODUCER_H

#include "place.h"

static void a_batch_is_one_piece(void **state)
{
    struct weir *w = *state;
    static char large[700000];
    struct weir_event e[3] = {{.body = weir_text("a")},
                              {.body = weir_text("b")},
                              {.body = weir_text("c")}};
    struct weir_event both[2] = {{.body = weir_bytes(large, sizeof large)},
                                 {.body = weir_bytes(large, sizeof large)}};
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_receipt at;
    uint32_t where = 0;

    make_hub(w, 3);
    p = open_producer(w);
    assert_ok(weir_producer_send(p, e, 3, PATIENCE_MS, &at, &err));
    while (where < 2 && events_in(w, where) == 0) where++;
    if (at.placed) assert_int_equal(at.partition, where);
    assert_int_equal(weir_producer_send(p, both, 2, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(events_in(w, i), i == where ? 3 : 0);
    assert_ok(weir_producer_send(p, both, 1, PATIENCE_MS, NULL, &err));
    r = open_receiver(w, where);
    assert_next(r, "a");
    assert_next(r, "b");
    assert_next(r, "c");
    weir_receiver_close(r);
    close_producer(p);
}

static void keys_choose_the_partition(void **state)
{
    struct weir *w = *state;
    struct weir_event mixed[2] = {{.body = weir_text("1"), .partition_key = weir_text("a")},
                                  {.body = weir_text("2"), .partition_key = weir_text("b")}};
    struct weir_producer *p, *pinned;
    struct weir_receiver *r;
    struct weir_receipt at;
    uint64_t before;
    char key[16];

    make_hub(w, 16);
    p = open_producer(w);
    for (int i = 0; i < 100; i++) {
        struct weir_event e = {0};
        snprintf(key, sizeof key, "home-%d", i);
        e.partition_key = weir_text(key);
        assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, &at, &err));
        assert_int_equal(at.partition, weir_partition_of_key(weir_text(key), 16));
    }
    assert_int_equal(weir_partition_of_key(weir_text("TheBestParitionEver"), 4), 2);
    assert_int_equal(weir_partition_of_key(weir_text("TheBestParitionEver"), 0), 0);
    assert_int_equal(weir_producer_send(p, mixed, 2, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    pinned = open_pinned(w, 9);
    before = events_in(w, 9);
    assert_ok(weir_producer_send(pinned, mixed, 2, PATIENCE_MS, &at, &err));
    assert_int_equal(at.partition, 9);
    r = open_at(w, (struct weir_position){0});
    weir_receiver_close(r);
    assert_ok(
        weir_receiver_open(&r, w, "h", 9,
                           &(struct weir_receiver_options){
                               .size = sizeof(struct weir_receiver_options),
                               .position = {.from = WEIR_FROM_SEQUENCE, .value = (int64_t)before}},
                           &err));
    assert_text(receive_one(r).partition_key, "a");
    assert_text(receive_one(r).partition_key, "b");
    weir_receiver_close(r);
    close_producer(pinned);
    close_producer(p);
}

static void without_a_key_partitions_take_turns(void **state)
{
    struct weir *w = *state;
    struct weir_producer *p;

    make_hub(w, 5);
    p = open_producer(w);
    for (int i = 0; i < 20; i++) send_text(p, "x");
    for (uint32_t i = 0; i < 5; i++) assert_int_equal(events_in(w, i), 4);
    close_producer(p);
}

static void unknown_places_are_not_found(void **state)
{
    struct weir *w = *state;
    struct weir_producer_options po = {.size = sizeof po, .pinned = true, .partition = 4};
    struct weir_receiver_options ro = {.size = sizeof ro, .group = "nope"};
    struct weir_partition_info info;
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(w, 4);
    assert_int_equal(weir_producer_open(&p, w, "nope", NULL, &err), WEIR_ENOTFOUND);
    assert_null(p);
    assert_int_equal(weir_producer_open(&p, w, "h", &po, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_receiver_open(&r, w, "nope", 0, NULL, &err), WEIR_ENOTFOUND);
    assert_null(r);
    assert_int_equal(weir_receiver_open(&r, w, "h", 4, NULL, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_receiver_open(&r, w, "h", 0, &ro, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_partition_info(w, "h", 4, &info, &err), WEIR_ENOTFOUND);
}

/* ---- asynchronous publishing ---- */

struct count {
    struct weir_producer *producer;
    atomic_uint_fast64_t done;
    uint64_t in_order, unknown;
    int64_t last;   /* sequence */
    uint64_t again; /* publishes to make from inside */
    int refused[4];
    atomic_bool begun, closing;
};

static void count_done(void *user, int rc, const struct weir_receipt *at,
                       const struct weir_error *why)
{
    struct count *c = user;

    atomic_fetch_add(&c->done, 1);
    if (rc == 0 && !why && (!at->placed || (int64_t)at->sequence > c->last)) c->in_order++;
    if (rc == 0) c->last = (int64_t)at->sequence;
    if (rc == WEIR_EUNKNOWN && !at && why->code == rc) c->unknown++;
}

static void completions_come_once_and_in_order(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};
    struct count c = {.last = -1};
    struct weir_partition_info info;
    struct weir_producer *p;

    make_hub(w, 1);
    p = open_producer(w);
    for (int i = 0; i < 2000; i++)
        assert_ok(weir_producer_send_async(p, &e, 1, PATIENCE_MS, count_done, &c, &err));
    assert_ok(weir_producer_flush(p, PATIENCE_MS, &err));
    assert_int_equal(c.done, 2000);
    for (int i = 0; i < 500; i++)
        assert_ok(weir_producer_send_async(p, &e, 1, PATIENCE_MS, count_done, &c, &err));
    close_producer(p);
    assert_int_equal(c.done, 2500);
    assert_int_equal(c.in_order, 2500);
    assert_ok(weir_partition_info(w, "h", 0, &info, &err));
    assert_int_equal(info.next_sequence, 2500);
}

static void publish_again(void *user, int rc, const struct weir_receipt *at,
                          const struct weir_error *why)
{
    struct count *c = user;
    struct weir_event e = {.body = weir_text("again")};
    struct weir_error inside;

    count_done(user, rc, at, why);
    if (c->again == 0) return;
    c->again--;
    c->refused[0] = weir_producer_send(c->producer, &e, 1, 10, NULL, &inside);
    c->refused[1] = weir_producer_flush(c->producer, 10, &inside);
    c->refused[2] = weir_producer_close(c->producer, 10, &inside);
    c->refused[3] = weir_producer_send_async(c->producer, &e, 1, 10, count_done, c, &inside);
    if (weir_producer_send_async(c->producer, &e, 1, 0, publish_again, c, &inside) != 0)
        c->again = 0;
}

static void completions_publish_but_do_not_block(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};
    struct count c = {.last = -1, .again = 50};

    make_hub(w, 1);
    c.producer = open_producer(w);
    assert_ok(weir_producer_send_async(c.producer, &e, 1, 0, publish_again, &c, &err));
    while (atomic_load(&c.done) < 51) /* each flush waits for those that were there */
        assert_ok(weir_producer_flush(c.producer, PATIENCE_MS, &err));
    close_producer(c.producer);
    assert_int_equal(c.in_order, 51);
    for (int i = 0; i < 4; i++) assert_int_equal(c.refused[i], WEIR_EDEADLOCK);
}

static void publish_for_ever(void *user, int rc, const struct weir_receipt *at,
                             const struct weir_error *why)
{
    struct count *c = user;
    struct weir_event e = {.body = weir_text("again")};
    int again;

    count_done(user, rc, at, why);
    again = weir_producer_send_async(c->producer, &e, 1, 0, publish_for_ever, c, NULL);
    if (again == WEIR_ECLOSED) c->refused[0]++;
    if (again == WEIR_EBUSY) c->refused[1]++; /* the next segment is not there yet */
}

static void closing_ends_a_chain_of_completions(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};
    struct count c = {.last = -1};
    uint64_t done;

    make_hub(w, 1);
    c.producer = open_producer(w);
    for (int i = 0; i < 3; i++)
        assert_ok(weir_producer_send_async(c.producer, &e, 1, 0, publish_for_ever, &c, &err));
    assert_ok(weir_producer_flush(c.producer, PATIENCE_MS, &err));
    close_producer(c.producer);
    done = atomic_load(&c.done);
    assert_int_equal(c.refused[0] + c.refused[1], 3);
    assert_int_equal(c.in_order, done);
    weir_hub_delete(w, "h", &err); /* waits for the hub's thread: nothing comes late */
    assert_int_equal(atomic_load(&c.done), done);
}

/* Whatever the disk is doing when it is closed: each completion runs once, before close returns. */
static void a_hasty_close_tells_everybody(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};

    make_hub(w, 1);
    for (int round = 0; round < 20; round++) {
        struct weir_producer *p = open_producer(w);
        struct count c = {.last = -1};
        int rc;
        for (int i = 0; i < 100; i++)
            assert_ok(weir_producer_send_async(p, &e, 1, PATIENCE_MS, count_done, &c, &err));
        rc = weir_producer_close(p, 0, &err);
        assert_int_equal(c.done, 100);
        assert_int_equal(c.in_order + c.unknown, 100);
        assert_int_equal(rc, c.unknown > 0 ? WEIR_EUNKNOWN : 0);
    }
    assert_true(events_in(w, 0) <= 2000);
}

/* Until somebody closes the producer, which it learns by publishing, and then a moment more: who
 * closes is to be waiting for it by then. */
static void last_until_closing(void *user, int rc, const struct weir_receipt *at,
                               const struct weir_error *why)
{
    struct count *c = user;
    struct weir_event e = {.body = weir_text("again")};
    int again = 0;

    atomic_store(&c->begun, true);
    while (!atomic_load(&c->closing)) sched_yield();
    for (int told = 0; told < 100; told += again == WEIR_ECLOSED) {
        again = weir_producer_send_async(c->producer, &e, 1, 0, count_done, c, NULL);
        c->again += again == 0;
        sched_yield();
    }
    count_done(user, rc, at, why);
}

/* A close that has no time for what is on its way waits for the completion that runs. */
static void a_hasty_close_waits_for_a_completion(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};

    make_hub(w, 1);
    for (int round = 0; round < 20; round++) {
        struct count c = {.last = -1};
        c.producer = open_producer(w);
        assert_ok(
            weir_producer_send_async(c.producer, &e, 1, PATIENCE_MS, last_until_closing, &c, &err));
        while (!atomic_load(&c.begun)) sched_yield();
        atomic_store(&c.closing, true);
        weir_producer_close(c.producer, 0, &err);
        assert_int_equal(c.done, 1 + c.again);
        assert_int_equal(c.in_order + c.unknown, 1 + c.again);
    }
}

static void a_send_needs_a_completion(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p;

    make_hub(w, 1);
    p = open_producer(w);
    assert_int_equal(weir_producer_send_async(p, &e, 1, 0, NULL, NULL, &err), WEIR_EINVAL);
    close_producer(p);
}

/* ---- idempotent producers ---- */

static struct weir_producer *open_idempotent(struct weir *w, uint64_t id, uint16_t epoch)
{
    struct weir_producer_options o = {
        .size = sizeof o, .pinned = true, .idempotent = true, .id = id, .epoch = epoch};
    struct weir_producer *p;

    assert_ok(weir_producer_open(&p, w, "h", &o, &err));
    return p;
}

/* Whether the hasty sends got through or not, repeating each until it is sure stores it once. */
static void a_repeated_batch_is_stored_once(void **state)
{
    struct weir *w = *state;
    struct weir_producer_identity me;
    struct weir_partition_info info;
    struct weir_producer *p;
    struct weir_receiver *r;
    char text[16];

    make_hub(w, 1);
    p = open_idempotent(w, 0, 0);
    weir_producer_identity(p, &me);
    assert_int_not_equal(me.id, 0);
    assert_int_equal(me.next_sequence, 0);
    for (int i = 0; i < 100; i++) {
        struct weir_event e = {.body = weir_text(text)};
        int rc;
        snprintf(text, sizeof text, "%d", i);
        e.body = weir_text(text);
        rc = weir_producer_send(p, &e, 1, 0, NULL, &err);
        while (rc == WEIR_EUNKNOWN || rc == WEIR_EBUSY)
            rc = weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err);
        assert_ok(rc);
    }
    close_producer(p);
    assert_ok(weir_partition_info(w, "h", 0, &info, &err));
    assert_int_equal(info.next_sequence, 100);
    p = open_idempotent(w, me.id, 0);
    weir_producer_identity(p, &me);
    assert_int_equal(me.next_sequence, 100);
    close_producer(p);
    r = open_receiver(w, 0);
    for (int i = 0; i < 100; i++) {
        snprintf(text, sizeof text, "%d", i);
        assert_next(r, text);
    }
    weir_receiver_close(r);
}

static void a_higher_epoch_fences_the_lower(void **state)
{
    struct weir *w = *state;
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer_identity me;
    struct weir_producer *old, *young, *late;

    make_hub(w, 1);
    old = open_idempotent(w, 0, 0);
    weir_producer_identity(old, &me);
    send_text(old, "old");
    young = open_idempotent(w, me.id, 1);
    send_text(young, "young");
    assert_int_equal(weir_producer_send(old, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EFENCED);
    o.id = me.id;
    assert_int_equal(weir_producer_open(&late, w, "h", &o, &err), WEIR_EFENCED);
    o.pinned = false;
    assert_int_equal(weir_producer_open(&late, w, "h", &o, &err), WEIR_EINVAL);
    close_producer(old);
    close_producer(young);
}

enum { THREADS = 8, EACH = 200 };

struct sharer {
    struct weir_producer *producer;
    int number;
    int rc;
};

static void *share_producer(void *arg)
{
    struct sharer *s = arg;
    char text[32];

    for (int i = 0; s->rc == 0 && i < EACH; i++) {
        struct weir_event e;
        snprintf(text, sizeof text, "%d %d", s->number, i);
        e = (struct weir_event){.body = weir_text(text)};
        s->rc = weir_producer_send(s->producer, &e, 1, PATIENCE_MS, NULL, NULL);
    }
    return NULL;
}

static void threads_share_a_producer(void **state)
{
    struct weir *w = *state;
    struct sharer sharer[THREADS];
    pthread_t thread[THREADS];
    int next[THREADS] = {0};
    struct weir_receiver *r;
    struct weir_producer *p;

    make_hub(w, 1);
    p = open_producer(w);
    for (int i = 0; i < THREADS; i++) {
        sharer[i] = (struct sharer){p, i, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, share_producer, &sharer[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(sharer[i].rc, 0);
    }
    r = open_receiver(w, 0);
    for (int i = 0; i < THREADS * EACH; i++) {
        struct weir_event e = receive_one(r);
        char text[32] = "", *rest;
        long who, what;
        memcpy(text, e.body.at, e.body.len);
        who = strtol(text, &rest, 10);
        what = strtol(rest, &rest, 10);
        assert_in_range(who, 0, THREADS - 1);
        assert_int_equal(what, next[who]++);
        assert_int_equal(*rest, '\0');
    }
    assert_nothing(r);
    weir_receiver_close(r);
    close_producer(p);
}

#endif
