#include "io/mailbox.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void nothing(void *arg)
{
    (void)arg;
}

static void keeps_order_and_takes_each_once(void **state)
{
    struct weir__mailbox m;
    struct weir__post p[4];
    bool wake;

    (void)state;
    weir__mailbox_init(&m);
    for (int i = 0; i < 4; i++) {
        weir__post_init(&p[i], nothing, NULL);
        assert_int_equal(weir__mailbox_put(&m, &p[i], &wake), 0);
        assert_false(wake);
    }
    assert_int_equal(weir__mailbox_put(&m, &p[1], &wake), 0);
    weir__mailbox_drop(&m, &p[2]);
    weir__mailbox_drop(&m, &p[2]);
    assert_ptr_equal(weir__mailbox_take(&m), &p[0]);
    assert_ptr_equal(weir__mailbox_take(&m), &p[1]);
    assert_int_equal(weir__mailbox_put(&m, &p[1], &wake), 0);
    assert_ptr_equal(weir__mailbox_take(&m), &p[3]);
    assert_ptr_equal(weir__mailbox_take(&m), &p[1]);
    assert_null(weir__mailbox_take(&m));
    weir__mailbox_fini(&m);
}

static void wakes_only_who_rests_and_only_once(void **state)
{
    struct weir__post a, b;
    struct weir__mailbox m;
    bool wake;

    (void)state;
    weir__mailbox_init(&m);
    weir__post_init(&a, nothing, NULL);
    weir__post_init(&b, nothing, NULL);
    assert_true(weir__mailbox_rest(&m));
    weir__mailbox_put(&m, &a, &wake);
    assert_true(wake);
    weir__mailbox_put(&m, &b, &wake);
    assert_false(wake);
    assert_false(weir__mailbox_rest(&m)); /* there is mail */
    weir__mailbox_take(&m);
    weir__mailbox_take(&m);
    assert_true(weir__mailbox_rest(&m));
    weir__mailbox_wake(&m);
    weir__mailbox_put(&m, &a, &wake);
    assert_false(wake);
    weir__mailbox_take(&m);
    weir__mailbox_fini(&m);
}

static void closed_it_still_gives(void **state)
{
    struct weir__post a, b;
    struct weir__mailbox m;
    bool wake;

    (void)state;
    weir__mailbox_init(&m);
    weir__post_init(&a, nothing, NULL);
    weir__post_init(&b, nothing, NULL);
    weir__mailbox_put(&m, &a, &wake);
    weir__mailbox_close(&m);
    assert_int_equal(weir__mailbox_put(&m, &b, &wake), WEIR_ECLOSED);
    assert_ptr_equal(weir__mailbox_take(&m), &a);
    assert_null(weir__mailbox_take(&m));
    weir__mailbox_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_order_and_takes_each_once),
        cmocka_unit_test(wakes_only_who_rests_and_only_once),
        cmocka_unit_test(closed_it_still_gives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
