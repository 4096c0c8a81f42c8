/* store_memory_test.c - the store in memory. */
#define _GNU_SOURCE
#include "contract/store_suite.h"

static struct weir_store *store_open(int64_t call_ms)
{
    struct weir_store_options o = {.size = sizeof o, .call_ms = call_ms};
    struct weir_store *s;

    if (weir_store_memory(&s, "suite", &o, &err) != 0) abort();
    return s;
}

static void names_are_stores(void **state)
{
    struct world *w = *state, other = *w;

    claim_first(w, 0, "a");
    assert_ok(weir_store_memory(&other.store, "other", NULL, &err));
    other.view = (struct weir_view){0};
    assert_string_equal(record_of(&other, 0).version, "");
    claim_first(&other, 0, "b");
    weir_store_close(other.store);
    assert_ok(weir_store_memory(&other.store, "other", NULL, &err)); /* the last one was closed */
    assert_string_equal(record_of(&other, 0).version, "");
    weir_store_close(other.store);
    weir_view_free(&other.view);
    assert_string_equal(record_of(w, 0).owner, "a");
}

static void handles_of_one_name_share(void **state)
{
    struct world *w = *state, other = *w;

    other.store = store_open(0);
    other.view = (struct weir_view){0};
    claim_first(w, 0, "a");
    assert_string_equal(record_of(&other, 0).owner, "a");
    weir_store_close(other.store);
    weir_view_free(&other.view);
    assert_string_equal(record_of(w, 0).owner, "a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {STORE_CASES, STORE_CASE(names_are_stores),
                                       STORE_CASE(handles_of_one_name_share)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
