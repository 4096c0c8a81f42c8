#include "base/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* One struct as three releases have it; the second is ours. */
struct first {
    size_t size;
    uint64_t a;
};

struct ours {
    size_t size;
    uint64_t a, b;
};

struct later {
    size_t size;
    uint64_t a, b;
    unsigned char c[8];
};

static void structs_of_every_age(void **state)
{
    struct first old = {.size = sizeof old, .a = 7};
    struct ours same = {.size = sizeof same, .a = 7, .b = UINT64_MAX}, got, zero = {0};
    struct later young = {.size = sizeof young, .a = 9, .b = 10};

    (void)state;
    memset(&got, '#', sizeof got);
    assert_int_equal(weir__options_copy(&got, sizeof got, NULL, NULL), 0);
    assert_memory_equal(&got, &zero, sizeof got);
    memset(&got, '#', sizeof got);
    assert_int_equal(weir__options_copy(&got, sizeof got, &old, NULL), 0);
    assert_int_equal(got.size, sizeof old);
    assert_int_equal(got.a, 7);
    assert_int_equal(got.b, 0);
    assert_int_equal(weir__options_copy(&got, sizeof got, &same, NULL), 0);
    assert_memory_equal(&got, &same, sizeof got);
    assert_int_equal(weir__options_copy(&got, sizeof got, &young, NULL), 0);
    assert_int_equal(got.a, 9);
    assert_int_equal(got.b, 10);
}

static void what_is_not_known_is_refused(void **state)
{
    struct later young = {.size = sizeof young, .a = 9};
    struct ours got;
    struct weir_error err;

    (void)state;
    for (size_t i = 0; i < sizeof young.c; i++) {
        memset(young.c, 0, sizeof young.c);
        young.c[i] = 1;
        assert_int_equal(weir__options_copy(&got, sizeof got, &young, &err), WEIR_EINVAL);
        assert_string_equal(err.text, "options: of a later release");
        young.size = sizeof got + i; /* as if it ended before that byte */
        assert_int_equal(weir__options_copy(&got, sizeof got, &young, &err), 0);
        young.size = sizeof young;
    }
    young.size = ~(SIZE_MAX >> 1); /* in its last byte only */
    young.c[0] = 1;
    assert_int_equal(weir__options_copy(&got, sizeof got, &young, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "options: of a later release");
}

static void the_size_has_to_be_set(void **state)
{
    struct ours unset = {.a = 1}, got, zero = {0};
    struct weir_error err;

    (void)state;
    for (unset.size = 0; unset.size < sizeof unset.size; unset.size++) {
        assert_int_equal(weir__options_copy(&got, sizeof got, &unset, &err), WEIR_EINVAL);
        assert_int_equal(err.code, WEIR_EINVAL);
        assert_string_equal(err.text, "options: size is not set to sizeof the struct");
        assert_memory_equal(&got, &zero, sizeof got);
    }
    assert_int_equal(weir__options_copy(&got, sizeof got, &unset, &err), 0);
    assert_int_equal(got.a, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structs_of_every_age),
        cmocka_unit_test(what_is_not_known_is_refused),
        cmocka_unit_test(the_size_has_to_be_set),
    };

    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
