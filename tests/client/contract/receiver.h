/* receiver.h - positions, deadlines, epochs, lifetimes, metrics. */
#ifndef WEIR_TESTS_CONTRACT_RECEIVER_H
#define WEIR_TESTS_CONTRACT_RECEIVER_H

#include "client/weir.h"
#include "place.h"

static void receivers_start_where_they_are_told(void **state)
{
    struct weir *w = *state;
    struct weir_receiver_options o = {.size = sizeof o};
    struct weir_event at[4]; /* of which only the numbers are looked at */
    struct weir_producer *p;
    struct weir_receiver *r, *latest;
    struct timespec pause = {.tv_nsec = 3000000};

    make_hub(w, 1);
    p = open_producer(w);
    for (int i = 0; i < 4; i++) {
        send_text(p, (const char *[]){"0", "1", "2", "3"}[i]);
        nanosleep(&pause, NULL); /* so that each has a time of its own */
    }
    r = open_receiver(w, 0);
    for (int i = 0; i < 4; i++) at[i] = receive_one(r);
    weir_receiver_close(r);
    struct {
        struct weir_position position;
        const char *first; /* NULL: nothing yet */
    } cases[] = {
        {{0}, "0"},
        {{.from = WEIR_FROM_LATEST}, NULL},
        {{.from = WEIR_FROM_SEQUENCE, .value = 2}, "2"},
        {{.from = WEIR_FROM_SEQUENCE, .value = 2, .after = true}, "3"},
        {{.from = WEIR_FROM_SEQUENCE, .value = 3, .after = true}, NULL},
        {{.from = WEIR_FROM_OFFSET, .value = (int64_t)at[1].offset}, "1"},
        {{.from = WEIR_FROM_OFFSET, .value = (int64_t)at[1].offset, .after = true}, "2"},
        {{.from = WEIR_FROM_OFFSET, .value = -1, .after = true}, "0"},
        {{.from = WEIR_FROM_TIME, .value = at[2].enqueued_time_ms}, "2"},
        {{.from = WEIR_FROM_TIME, .value = at[2].enqueued_time_ms, .after = true}, "3"},
        {{.from = WEIR_FROM_TIME, .value = at[3].enqueued_time_ms + 1}, NULL},
        {{.from = WEIR_FROM_TIME, .value = 0}, "0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        r = open_at(w, cases[i].position);
        if (cases[i].first)
            assert_next(r, cases[i].first);
        else
            assert_nothing(r);
        weir_receiver_close(r);
    }
    o.position = (struct weir_position){.from = WEIR_FROM_SEQUENCE, .value = 99};
    assert_int_equal(weir_receiver_open(&r, w, "h", 0, &o, &err), WEIR_EINVAL);
    o.position = (struct weir_position){.from = (enum weir_from)77};
    assert_int_equal(weir_receiver_open(&r, w, "h", 0, &o, &err), WEIR_EINVAL);
    latest = open_at(w, (struct weir_position){.from = WEIR_FROM_LATEST});
    send_text(p, "4");
    assert_next(latest, "4");
    weir_receiver_close(latest);
    close_producer(p);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void a_receive_keeps_its_deadline(void **state)
{
    struct weir *w = *state;
    struct weir_received got = {.count = 1};
    struct weir_receiver *r;
    int64_t start = now_ms();

    make_hub(w, 1);
    r = open_receiver(w, 0);
    assert_int_equal(weir_receiver_receive(r, 10, 50, &got, &err), WEIR_ETIMEDOUT);
    assert_int_equal(got.count, 0);
    assert_true(now_ms() - start >= 50);
    assert_int_equal(weir_receiver_receive(r, 0, 0, &got, &err), WEIR_EINVAL);
    weir_receiver_close(r);
}

/* A receive on a thread of its own. */
struct waiter {
    struct weir_receiver *receiver;
    pthread_t thread;
    int rc;
};

static void *wait_for_event(void *arg)
{
    struct waiter *waiter = arg;
    struct weir_received got;
    struct weir_error why;

    waiter->rc = weir_receiver_receive(waiter->receiver, 1, PATIENCE_MS, &got, &why);
    return NULL;
}

static void start_waiting(struct waiter *waiter)
{
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_for_event, waiter), 0);
}

static int joined(struct waiter *waiter)
{
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    return waiter->rc;
}

static void a_wait_ends_with_an_event_or_a_cancel(void **state)
{
    struct weir *w = *state;
    struct weir_producer *p;
    struct weir_receiver *r;
    struct waiter waiter;

    make_hub(w, 1);
    p = open_producer(w);
    r = waiter.receiver = open_receiver(w, 0);
    start_waiting(&waiter);
    send_text(p, "come");
    assert_int_equal(joined(&waiter), 0);
    start_waiting(&waiter);
    weir_receiver_cancel(r);
    assert_int_equal(joined(&waiter), WEIR_ECANCELED);
    weir_receiver_cancel(r); /* nobody waits: the next one is told, once */
    weir_receiver_cancel(r);
    start_waiting(&waiter);
    assert_int_equal(joined(&waiter), WEIR_ECANCELED);
    send_text(p, "still here");
    assert_next(r, "still here");
    weir_receiver_close(r);
    close_producer(p);
}

static void what_was_received_lives_until_the_next(void **state)
{
    struct weir *w = *state;
    struct weir_event many[64];
    struct weir_property property = {weir_text("n"), weir_value_text("value")};
    struct weir_received got;
    struct weir_producer *p;
    struct weir_receiver *r;
    size_t seen = 0;

    make_hub(w, 1);
    p = open_producer(w);
    for (int i = 0; i < 64; i++)
        many[i] = (struct weir_event){.body = weir_text("body"),
                                      .properties = &property,
                                      .property_count = 1};
    for (int i = 0; i < 10; i++)
        assert_ok(weir_producer_send(p, many, 64, PATIENCE_MS, NULL, &err));
    r = open_receiver(w, 0);
    while (seen < 640) {
        assert_ok(weir_receiver_receive(r, 100, PATIENCE_MS, &got, &err));
        assert_true(got.count <= 100);
        send_text(p, "more"); /* others go on; ours stays */
        for (size_t i = 0; i < got.count && seen < 640; i++, seen++) {
            assert_int_equal(got.events[i].sequence, seen);
            assert_text(got.events[i].body, "body");
            assert_text(got.events[i].properties[0].value.bytes, "value");
        }
    }
    weir_receiver_close(r);
    close_producer(p);
}

static int open_with_epoch(struct weir_receiver **out, struct weir *w, int64_t epoch,
                           const char *name)
{
    struct weir_receiver_options o = {.size = sizeof o,
                                      .exclusive = epoch >= 0,
                                      .epoch = epoch,
                                      .name = name};

    return weir_receiver_open(out, w, "h", 0, &o, &err);
}

static void epochs_decide_who_reads(void **state)
{
    struct weir *w = *state;
    struct weir_receiver *plain[6], *one, *two, *low;
    struct weir_received got;

    make_hub(w, 1);
    for (int i = 0; i < 5; i++) assert_ok(open_with_epoch(&plain[i], w, -1, "plain"));
    assert_int_equal(open_with_epoch(&plain[5], w, -1, "sixth"), WEIR_ELIMIT);
    assert_ok(open_with_epoch(&one, w, 1, "one"));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(weir_receiver_receive(plain[i], 1, PATIENCE_MS, &got, &err), WEIR_ESTOLEN);
        weir_receiver_close(plain[i]);
    }
    assert_int_equal(open_with_epoch(&low, w, -1, "plain"), WEIR_EEPOCH);
    assert_int_equal(open_with_epoch(&low, w, 0, "low"), WEIR_EEPOCH);
    assert_non_null(strstr(err.text, "one"));
    assert_ok(open_with_epoch(&two, w, 1, "two"));
    assert_int_equal(weir_receiver_receive(one, 1, PATIENCE_MS, &got, &err), WEIR_ESTOLEN);
    assert_non_null(strstr(err.text, "two"));
    weir_receiver_close(two);
    assert_ok(open_with_epoch(&low, w, 0, "low")); /* a place does not remember */
    weir_receiver_close(low);
    weir_receiver_close(one);
}

static struct weir_receiver_metrics metrics_of(struct weir_receiver *r)
{
    struct weir_receiver_metrics m;

    assert_ok(weir_receiver_metrics(r, &m, &err));
    return m;
}

static void metrics_tell_what_is_newest(void **state)
{
    struct weir_receiver_options o = {.size = sizeof o, .metrics = true};
    struct weir_receiver_metrics m;
    struct weir_partition_info info;
    struct weir *w = *state;
    struct weir_producer *p;
    struct weir_receiver *r, *other;

    make_hub(w, 1);
    p = open_producer(w);
    for (int i = 0; i < 3; i++) send_text(p, "old");
    assert_ok(weir_partition_info(w, "h", 0, &info, &err));
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    assert_int_equal(metrics_of(r).retrieved_ms, 0); /* nothing came yet */
    assert_next(r, "old");
    m = metrics_of(r);
    assert_int_equal(m.last_sequence, 2);
    assert_int_equal(m.last_offset, info.last_offset);
    assert_int_equal(m.last_time_ms, info.last_time_ms);
    assert_true(m.retrieved_ms >= m.last_time_ms);
    for (int i = 0; i < 2; i++) assert_next(r, "old");
    send_text(p, "new");
    assert_next(r, "new");
    assert_int_equal(metrics_of(r).last_sequence, 3);
    assert_nothing(r); /* which tells nothing else */
    assert_int_equal(metrics_of(r).last_sequence, 3);
    other = open_receiver(w, 0);
    assert_next(other, "old");
    assert_int_equal(weir_receiver_metrics(other, &m, &err), WEIR_EINVAL);
    weir_receiver_close(other);
    weir_receiver_close(r);
    close_producer(p);
}

/* Names and numbers that nothing can have, each refused before anybody is asked. */
static void what_makes_no_sense_is_refused(void **state)
{
    static char hub[258], group[52];
    struct weir_receiver_options backwards = {.size = sizeof backwards,
                                              .exclusive = true,
                                              .epoch = -1};
    struct weir_receiver_options nowhere = {.size = sizeof nowhere,
                                            .position.from = (enum weir_from)99};
    struct weir_receiver_options crowd = {.size = sizeof crowd, .group = group};
    const struct {
        const char *hub;
        const struct weir_receiver_options *options;
        int rc, other; /* a folder looks for what a wire refuses to ask for */
    } cases[] = {
        {"h", &backwards, WEIR_EINVAL, WEIR_EINVAL}, {"h", &nowhere, WEIR_EINVAL, WEIR_EINVAL},
        {NULL, NULL, WEIR_EINVAL, WEIR_EINVAL},      {"", NULL, WEIR_EINVAL, WEIR_ENOTFOUND},
        {hub, NULL, WEIR_EINVAL, WEIR_ENOTFOUND},    {"h", &crowd, WEIR_ENOTFOUND, WEIR_ENOTFOUND},
    };
    struct weir_receiver *r;

    make_hub(*state, 1);
    memset(hub, 'x', sizeof hub - 1);
    memset(group, 'x', sizeof group - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int rc = weir_receiver_open(&r, *state, cases[i].hub, 0, cases[i].options, &err);
        if (rc != cases[i].rc && rc != cases[i].other)
            fail_msg("%zu: %s: %s", i, weir_error_name(rc), err.text);
        assert_null(r);
        assert_true(*err.text != '\0');
    }
}

/* ---- without waiting ---- */

struct wakes {
    atomic_uint more;
    atomic_int over;
};

static void note_wake(void *user, int over)
{
    struct wakes *wakes = user;

    if (over == 0)
        atomic_fetch_add(&wakes->more, 1);
    else
        atomic_store(&wakes->over, over);
}

static void sleep_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* A receive that does not wait, again after each wake until it has something. */
static uint64_t receive_woken(struct weir_receiver *r, struct wakes *wakes, unsigned since)
{
    struct weir_received got;
    int rc;

    do {
        for (int64_t ms = 0; atomic_load(&wakes->more) == since; ms++) {
            assert_true(ms < PATIENCE_MS);
            sleep_a_moment();
        }
        since = atomic_load(&wakes->more);
        rc = weir_receiver_receive(r, 1, 0, &got, &err);
    } while (rc == WEIR_ETIMEDOUT);
    assert_ok(rc);
    assert_int_equal(got.count, 1);
    return got.events[0].sequence;
}

/* After each receive that found nothing. */
static void who_does_not_wait_is_woken(void **state)
{
    struct wakes wakes = {0};
    struct weir_receiver_options o = {.size = sizeof o, .wake = note_wake, .user = &wakes};
    struct weir *w = *state;
    struct weir_received got;
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(w, 1);
    p = open_producer(w);
    assert_int_equal(weir_receiver_open(&r, w, "h", 1, &o, &err), WEIR_ENOTFOUND);
    assert_int_equal(atomic_load(&wakes.more) + (unsigned)atomic_load(&wakes.over), 0);
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    for (uint64_t i = 0; i < 5; i++) {
        unsigned since;
        assert_int_equal(weir_receiver_receive(r, 1, 0, &got, &err), WEIR_ETIMEDOUT);
        since = atomic_load(&wakes.more);
        send_text(p, "x");
        assert_int_equal(receive_woken(r, &wakes, since), i);
    }
    assert_int_equal(atomic_load(&wakes.over), 0);
    close_producer(p);
    weir_receiver_close(r);
}

/* Whether anybody has asked or not, and every receive says the same. */
static void who_does_not_wait_is_told_of_the_end(void **state)
{
    struct wakes wakes = {0};
    struct weir_receiver_options o = {.size = sizeof o, .wake = note_wake, .user = &wakes};
    struct weir *w = *state;
    struct weir_received got;
    struct weir_receiver *r;

    make_hub(w, 1);
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    assert_ok(weir_hub_delete(w, "h", &err));
    for (int64_t ms = 0; atomic_load(&wakes.over) == 0; ms++) {
        assert_true(ms < PATIENCE_MS);
        sleep_a_moment();
    }
    assert_int_equal(atomic_load(&wakes.over), WEIR_ENOTFOUND);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_receiver_receive(r, 1, 0, &got, &err), WEIR_ENOTFOUND);
    weir_receiver_close(r);
}

/* Reads, hardly waiting, until nothing is under way either; how many events there were. */
static uint64_t count_until_end(struct weir_receiver *r)
{
    uint64_t count = 0;

    for (int64_t ms = 0;;) {
        struct weir_received got;
        int rc = weir_receiver_receive(r, 3, 1, &got, &err);
        count += got.count;
        if (rc == 0) continue;
        assert_int_equal(rc, WEIR_ETIMEDOUT);
        if (weir__receiver_ended(r)) return count;
        assert_true(++ms < PATIENCE_MS);
    }
}

/* All that was there when it was first asked has come by then. A receiver that does not know says no. */
static void the_end_is_behind_all_events(void **state)
{
    const struct weir_receiver_options o = {.size = sizeof o, .bytes_max = 4096};
    struct weir_event events[10];
    struct weir *w = *state;
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(w, 1);
    if (!contract_knows_ends()) {
        r = open_receiver(w, 0);
        for (int i = 0; i < 2; i++) {
            assert_nothing(r);
            assert_false(weir__receiver_ended(r));
        }
        weir_receiver_close(r);
        return;
    }
    p = open_producer(w);
    for (size_t i = 0; i < 10; i++)
        events[i] = (struct weir_event){.body = weir_text("one of ten, and of many more")};
    for (uint64_t batches = 0; batches < 40; batches += 20) {
        assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
        assert_int_equal(count_until_end(r), 10 * batches);
        assert_true(weir__receiver_ended(r));
        weir_receiver_close(r);
        for (int i = 0; i < 20; i++)
            assert_ok(weir_producer_send(p, events, 10, PATIENCE_MS, NULL, &err));
    }
    close_producer(p);
}

#endif
