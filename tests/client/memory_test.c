/* Every allocation fails once: each time there is an error or there is success, never a crash, and
 * what was acknowledged is there. Nothing stays open behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/allocs.h"
#include "support/descriptors.h"
#include "support/tempdir.h"
#include "weir/weir.h"

#define ALLOCATIONS_MAX 2000

struct account {
    size_t stored;  /* acknowledged: must be there */
    size_t unknown; /* may be there */
};

/* Publishes and reads. Returns the first error. */
static int use_hub(struct weir *w, struct account *account)
{
    struct weir_property property = {weir_text("n"), weir_value_int(1)};
    struct weir_event e = {.body = weir_text("body"),
                           .properties = &property,
                           .property_count = 1,
                           .system = &(struct weir_system_properties){.subject = weir_text("s")}};
    struct weir_producer *p = NULL;
    struct weir_receiver *r = NULL;
    struct weir_received got;
    int rc = weir_hub_create(w, "h", NULL, NULL);

    if (rc == WEIR_EEXIST) rc = 0;
    if (rc == 0) rc = weir_producer_open(&p, w, "h", NULL, NULL);
    e.partition_key = weir_text("key");
    if (rc == 0) rc = weir_producer_send(p, &e, 1, -1, NULL, NULL);
    account->stored += rc == 0;
    account->unknown += rc == WEIR_EUNKNOWN;
    if (rc == 0)
        rc = weir_receiver_open(&r, w, "h", weir_partition_of_key(e.partition_key, 4), NULL, NULL);
    if (rc == 0) rc = weir_receiver_receive(r, 10, 1000, &got, NULL);
    if (rc == 0) assert_in_range(got.count, account->stored, account->stored + account->unknown);
    weir_receiver_close(r);
    weir_producer_close(p, -1, NULL);
    return rc;
}

static void memory_may_run_out_anywhere(void **state)
{
    char dir[TEMPDIR_BYTES];
    uint64_t at = 0;
    bool failed = true;

    (void)state;
    for (at = 1; failed; at++) {
        struct weir *w = NULL;
        struct account account = {0};
        unsigned before = descriptors_count();
        int rc;
        assert_true(at < ALLOCATIONS_MAX);
        assert_int_equal(tempdir_make(dir), 0);
        allocs_fail(at);
        rc = weir_open(&w, dir, NULL, NULL);
        if (rc == 0) rc = use_hub(w, &account);
        failed = allocs_failed();
        allocs_fail(0);
        if (!failed) assert_int_equal(rc, 0);
        weir_close(w, NULL);
        assert_int_equal(descriptors_count(), before);
        assert_int_equal(weir_open(&w, dir, NULL, NULL), 0); /* and it works again */
        assert_int_equal(use_hub(w, &account), 0);
        assert_int_equal(weir_close(w, NULL), 0);
        tempdir_remove(dir);
    }
    assert_true(at > 10);
    print_message("%llu allocations failed, one at a time\n", (unsigned long long)at - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
