/* Every allocation of a client of a server fails once, whichever thread makes it: there is an error
 * or there is success, and nothing crashes, hangs, or stays open. */
#include "client/wire_place.h"

#include <stdatomic.h>
#include <unistd.h>

#include "io/loop.h"
#include "support/allocs.h"
#include "support/descriptors.h"

#define ALLOCATIONS_MAX 2000
#define SOON_MS 10000 /* what was refused memory is tried again before that */
#define STALE_MS 900
#define HANG_S 300

static int start(void **state)
{
    (void)state;
    alarm(HANG_S);
    if (place_start() != 0) return -1;
    place_make_hub("h", 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return place_stop();
}

/* One of everything. Returns the first error. */
static int use_everything(struct weir *w)
{
    struct weir_producer_options po = {.size = sizeof po, .pinned = true, .idempotent = true};
    struct weir_event e = {.body = weir_text("x"), .partition_key = weir_text("k")};
    struct weir_producer *plain = NULL, *marked = NULL;
    struct weir_receiver *r = NULL;
    struct weir_hub_info info;
    struct weir_received got;
    int rc = weir_hub_info(w, "h", &info, NULL);

    if (rc == 0) rc = weir_producer_open(&plain, w, "h", NULL, NULL);
    if (rc == 0) rc = weir_producer_send(plain, &e, 1, SOON_MS, NULL, NULL);
    e.partition_key = weir_bytes(NULL, 0);
    if (rc == 0) rc = weir_producer_open(&marked, w, "h", &po, NULL);
    if (rc == 0) rc = weir_producer_send(marked, &e, 1, SOON_MS, NULL, NULL);
    if (rc == 0) rc = weir_receiver_open(&r, w, "h", 0, NULL, NULL);
    if (rc == 0) rc = weir_receiver_receive(r, 2, SOON_MS, &got, NULL);
    weir_receiver_close(r);
    weir_producer_close(plain, SOON_MS, NULL);
    weir_producer_close(marked, SOON_MS, NULL);
    return rc;
}

static int open_and_use(void)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = SOON_MS};
    struct weir *w = NULL;
    int rc = weir_open(&w, place_string(NULL), &o, NULL);

    if (rc == 0) rc = use_everything(w);
    weir_close(w, NULL);
    return rc;
}

/* Timers that were set for a moment long gone: such a one would come again and again. */
static atomic_uint stale;

void __real_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t);
void __wrap_weir__loop_timer_start(struct weir__loop *, struct weir__timer *, int64_t);

void __wrap_weir__loop_timer_start(struct weir__loop *l, struct weir__timer *t, int64_t at_ms)
{
    if (at_ms < weir__loop_now_ms(l) - STALE_MS) atomic_fetch_add(&stale, 1);
    __real_weir__loop_timer_start(l, t, at_ms);
}

static void memory_may_run_out_on_any_thread(void **state)
{
    unsigned before, failures = 0;
    bool failed = true;
    uint64_t at;

    (void)state;
    assert_int_equal(open_and_use(), 0); /* what is made once and stays */
    before = descriptors_count();
    for (at = 1; failed; at++) {
        int rc;
        assert_true(at < ALLOCATIONS_MAX);
        allocs_fail_anywhere(at);
        rc = open_and_use();
        failed = allocs_failed_anywhere();
        allocs_fail_anywhere(0);
        if (!failed) assert_int_equal(rc, 0);
        if (rc == WEIR_ETIMEDOUT || rc == WEIR_EUNKNOWN)
            fail_msg("allocation %llu was waited for", (unsigned long long)at);
        if (atomic_load(&stale) > 0)
            fail_msg("a pause behind allocation %llu was none", (unsigned long long)at);
        failures += rc != 0;
        if (descriptors_count() != before)
            fail_msg("%u are open after allocation %llu, not %u", descriptors_count(),
                     (unsigned long long)at, before);
    }
    assert_true(at > 10);
    print_message("%llu allocations failed, one at a time; %u were told\n",
                  (unsigned long long)at - 2, failures);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_run_out_on_any_thread),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
