/* spare_test.c - which file becomes the next segment: the spare, or a new one. */
#include "stepped.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/thread.h"

#define SPARE (256 * KIB)

/* Started, with a spare. */
static int set_up(void **state)
{
    struct world *w = world_new((struct weir__log_options){.partitions = 1});

    start(w);
    assert_int_equal(weir__log_make_segment(w->log, SPARE, SPARE, &w->log->spare, NULL), 0);
    *state = w;
    return 0;
}

enum got { NOTHING, THE_SPARE, A_NEW_ONE };

struct taking {
    struct weir__spare_order order;
    uint64_t room; /* on the disk; 0: any */
    enum got got;
    uint64_t bytes;   /* of what was got */
    bool spare_stays; /* it is the spare again */
};

#define ANY_ROOM 0
#define NO_ROOM 1

static void take(const struct taking *t, size_t number)
{
    void *state;
    struct world *w;
    struct weir__segment *spare, *seg;
    char name[WEIR__SEGMENT_NAME_BYTES]; /* of the spare; another one can get its memory */
    bool same;
    int rc;

    set_up(&state);
    w = state;
    spare = w->log->spare;
    memcpy(name, spare->name, sizeof name);
    if (t->room != ANY_ROOM)
        simfs_capacity(w->disk, simfs_used(w->disk) + (t->room == NO_ROOM ? 0 : t->room));
    rc = weir__spare_take(w->log, &t->order, &seg, NULL);
    assert_int_equal(rc, t->got == NOTHING ? WEIR_ENOSPACE : 0);
    same = seg && strcmp(seg->name, name) == 0;
    if (!seg != (t->got == NOTHING) || same != (t->got == THE_SPARE))
        fail_msg("case %zu: got %s", number, !seg ? "nothing" : same ? "it" : "another");
    if (seg && seg->h.capacity != t->bytes)
        fail_msg("case %zu: got %d bytes", number, (int)seg->h.capacity);
    if (w->log->spare != (t->spare_stays ? spare : NULL)) fail_msg("case %zu: the spare", number);
    if (seg) assert_int_equal(weir__log_remove_segment(w->log, seg), 0);
    tear_down(&state);
}

static void take_all(const struct taking *t, size_t count)
{
    for (size_t i = 0; i < count; i++) take(&t[i], i);
}

/* Behind a full segment a spare may be larger than what is wanted, or a little smaller; else it has to
 * be of that size. */
static void a_spare_that_suits_is_taken(void **state)
{
    static const struct taking cases[] = {
        {{true, 512 * KIB, SPARE, SPARE, SPARE}, ANY_ROOM, THE_SPARE, SPARE, false},
        {{true, 128 * KIB, 128 * KIB, 64 * KIB, SPARE}, ANY_ROOM, THE_SPARE, SPARE, false},
        {{true, 512 * KIB, SPARE + 1, SPARE, MIB}, ANY_ROOM, A_NEW_ONE, 512 * KIB, true},
        {{true, 512 * KIB, SPARE, SPARE + 1, MIB}, ANY_ROOM, A_NEW_ONE, 512 * KIB, true},
        {{true, 128 * KIB, 128 * KIB, 64 * KIB, SPARE - 1}, ANY_ROOM, A_NEW_ONE, 128 * KIB, true},
        {{false, SPARE, MIB, SPARE, SPARE}, ANY_ROOM, THE_SPARE, SPARE, false},
        {{false, 128 * KIB, 64 * KIB, 64 * KIB, MIB}, ANY_ROOM, A_NEW_ONE, 128 * KIB, true},
        {{false, 512 * KIB, 64 * KIB, 64 * KIB, MIB}, ANY_ROOM, A_NEW_ONE, 512 * KIB, true},
    };

    (void)state;
    take_all(cases, sizeof cases / sizeof cases[0]);
}

/* On a full disk any that holds the batch will do, before a new one that is smaller than wanted. One
 * that does not goes, so that its space can be had. */
static void on_a_full_disk_a_spare_has_to_do(void **state)
{
    static const struct taking cases[] = {
        {{true, 512 * KIB, 512 * KIB, SPARE, MIB}, NO_ROOM, THE_SPARE, SPARE, false},
        {{true, 512 * KIB, 512 * KIB, 64 * KIB, MIB}, 128 * KIB, THE_SPARE, SPARE, false},
        {{false, 128 * KIB, 128 * KIB, 64 * KIB, SPARE}, NO_ROOM, THE_SPARE, SPARE, false},
        {{true, 512 * KIB, 512 * KIB, SPARE + 1, MIB}, NO_ROOM, NOTHING, 0, false},
        {{true, 512 * KIB, 512 * KIB, SPARE + 1, MIB}, SPARE, A_NEW_ONE, 512 * KIB, false},
        {{true, 2 * MIB, 2 * MIB, 512 * KIB, 2 * MIB}, SPARE, A_NEW_ONE, 512 * KIB, false},
        {{false, 128 * KIB, 128 * KIB, 64 * KIB, SPARE - 1}, NO_ROOM, A_NEW_ONE, 128 * KIB, false},
    };

    (void)state;
    take_all(cases, sizeof cases / sizeof cases[0]);
}

/* Without a spare, smaller ones are tried. */
static void without_a_spare_less_is_tried(void **state)
{
    const struct weir__spare_order order = {true, MIB, MIB, 128 * KIB, MIB};
    struct world *w = *state;
    struct weir__segment *seg;

    assert_int_equal(weir__spare_take(w->log,
                                      &(struct weir__spare_order){false, SPARE, 0, 0, SPARE}, &seg,
                                      NULL),
                     0);
    assert_null(w->log->spare);
    assert_int_equal(weir__log_remove_segment(w->log, seg), 0);
    simfs_capacity(w->disk, simfs_used(w->disk) + 128 * KIB);
    assert_int_equal(weir__spare_take(w->log, &order, &seg, NULL), 0);
    assert_int_equal(seg->h.capacity, 128 * KIB);
    assert_int_equal(weir__log_remove_segment(w->log, seg), 0);
}

/* An error that is no want of space says nothing about the spare: it stays. */
static void a_spare_outlives_an_error(void **state)
{
    const struct weir__spare_order larger = {true, 512 * KIB, 512 * KIB, SPARE, MIB};
    struct simfs_fault fault = {.kinds = SIMFS_ALLOCATE, .at = 1, .rc = WEIR_EIO};
    struct world *w = *state;
    struct weir__segment *spare = w->log->spare, *seg;

    simfs_fail(w->disk, &fault);
    assert_int_equal(weir__spare_take(w->log, &larger, &seg, NULL), WEIR_EIO);
    assert_null(seg);
    assert_ptr_equal(w->log->spare, spare);
    simfs_fail(w->disk, NULL);
}

/* The active segment gets back what it gave, or nothing has changed. */
static void what_was_given_back_is_had_again(void **state)
{
    struct simfs_fault full = {.kinds = SIMFS_ALLOCATE, .at = 1, .rc = WEIR_ENOSPACE};
    struct world *w = *state;
    struct weir__segment *seg = weir__log_active(w->log);

    seg->hole_at = 16 * KIB;
    seg->hole_len = 32 * KIB;
    seg->disk_bytes = seg->h.capacity - 32 * KIB;
    simfs_fail(w->disk, &full);
    assert_false(weir__spare_wake(w->log));
    assert_int_equal(seg->hole_len, 32 * KIB);
    assert_int_equal(seg->disk_bytes, seg->h.capacity - 32 * KIB);
    simfs_fail(w->disk, NULL);
    assert_true(weir__spare_wake(w->log));
    assert_int_equal(seg->hole_len, 0);
    assert_int_equal(seg->disk_bytes, seg->h.capacity);
}

/* ---- the keeper's own attempt ---- */

struct keeper {
    struct world *w;
    struct weir__thread thread;
    atomic_bool has;   /* the space that its spare takes */
    atomic_uint tries; /* of the roll, meanwhile */
};

static _Thread_local bool is_keeper;

static void run_until(atomic_uint *count, unsigned least)
{
    int64_t deadline_ns = WAIT;

    while (atomic_load(count) < least && weir__mono_ns() < deadline_ns) sched_yield();
    assert_true(atomic_load(count) >= least);
}

/* The keeper has allocated, and goes on when the roll has found no room for the least that it needs. */
static void hold_space(struct simfs *disk, enum simfs_call call, bool entering, void *user)
{
    struct keeper *k = user;

    (void)disk;
    if (call != SIMFS_ALLOCATE || entering) return;
    if (!is_keeper) {
        atomic_fetch_add(&k->tries, 1);
        return;
    }
    atomic_store(&k->has, true);
    run_until(&k->tries, 3); /* 256, 128 and 64 KiB */
}

static void *keep(void *user)
{
    struct keeper *k = user;
    struct weir__log *log = k->w->log;

    is_keeper = true;
    weir__mutex_lock(&log->lock);
    assert_int_equal(weir__spare_prepare(log, NULL), 0);
    weir__mutex_unlock(&log->lock);
    return NULL;
}

/* All room that there is goes into a spare while the roll looks for some: it gets the spare. */
static void room_that_the_keeper_has_is_waited_for(void **state)
{
    const struct weir__spare_order order = {true, SPARE, SPARE, 64 * KIB, MIB};
    struct world *w = *state;
    struct keeper k = {.w = w};
    struct weir__segment *seg = NULL;
    uint64_t capacity;
    int rc;

    assert_int_equal(weir__spare_take(w->log, &order, &seg, NULL), 0);
    assert_int_equal(weir__log_remove_segment(w->log, seg), 0);
    while (w->log->tail.end - weir__log_active(w->log)->h.base <
           weir__log_active(w->log)->h.capacity / 2)
        put(w, 4096);
    capacity = weir__capacity_next(w->log, true, 0);
    simfs_capacity(w->disk, simfs_used(w->disk) + capacity);
    simfs_hook(w->disk, hold_space, &k);
    assert_int_equal(weir__thread_start(&k.thread, "keeper", keep, &k, NULL), 0);
    while (!atomic_load(&k.has)) sched_yield();
    rc = weir__spare_take(w->log, &order, &seg, NULL);
    weir__thread_join(&k.thread);
    simfs_hook(w->disk, NULL, NULL);
    assert_int_equal(rc, 0);
    assert_int_equal(seg->h.capacity, capacity);
    assert_int_equal(weir__log_remove_segment(w->log, seg), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spare_that_suits_is_taken),
        cmocka_unit_test(on_a_full_disk_a_spare_has_to_do),
        CASE(without_a_spare_less_is_tried),
        CASE(what_was_given_back_is_had_again),
        CASE(a_spare_outlives_an_error),
        CASE(room_that_the_keeper_has_is_waited_for),
    };

    return cmocka_run_group_tests_name("spare", tests, NULL, NULL);
}
