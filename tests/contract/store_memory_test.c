/* store_memory_test.c - the store in memory. */
#define _GNU_SOURCE
#include "contract/store_suite.h"

#include "support/allocs.h"

#define GROUPS_MAX 4096 /* of one store */

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

/* ---- limits ---- */

static int beat_in(struct world *w, int number)
{
    char group[32];
    struct weir_scope scope = {"space.example", "many", group};
    struct weir_member m = member_named("a", 1, EXPIRE_MS);

    snprintf(group, sizeof group, "%d", number);
    return w->ops->beat(w->store, &scope, &m, &err);
}

static void groups_have_a_limit(void **state)
{
    struct weir_scope fresh = {"space.example", "many", "fresh"};
    struct world *w = *state, other = *w;
    struct weir_record r = {.partition = 1};

    assert_ok(weir_store_memory(&other.store, "groups", NULL, &err));
    for (int i = 0; i < GROUPS_MAX; i++) assert_ok(beat_in(&other, i));
    assert_int_equal(beat_in(&other, GROUPS_MAX), WEIR_ELIMIT);
    assert_string_equal(err.text, "more than 4096 groups in one store");
    assert_int_equal(other.ops->claim(other.store, &fresh, &r, "a", 1, &r, &err), WEIR_ELIMIT);
    assert_int_equal(other.ops->set(other.store, &fresh, 1, NULL, &err), WEIR_ELIMIT);
    assert_ok(beat_in(&other, 0));
    assert_ok(beat_in(&other, GROUPS_MAX - 1));
    weir_store_close(other.store);
}

static int beat_here(struct world *w)
{
    return beat(w, "a", 1, EXPIRE_MS);
}

static int claim_here(struct world *w)
{
    struct weir_record r = {.partition = 1};

    return claim(w, &r, "a", 1);
}

static int set_here(struct world *w)
{
    return w->ops->set(w->store, &w->scope, 2, NULL, &err);
}

/* In a group that nobody has seen. */
static int set_elsewhere(struct world *w)
{
    struct weir_scope scope = {w->scope.space, w->scope.hub, "elsewhere"};

    return w->ops->set(w->store, &scope, 2, NULL, &err);
}

static int read_here(struct world *w)
{
    struct weir_view view = {0};
    int rc = w->ops->read(w->store, &w->scope, &view, &err);

    assert_int_equal(view.member_count, rc == 0 ? 1 : 0);
    assert_int_equal(view.record_count, rc == 0 ? 2 : 0);
    weir_view_free(&view);
    return rc;
}

/* A call without memory fails and does nothing; the same call succeeds afterwards. */
static void memory_runs_out(void **state)
{
    static int (*const calls[])(struct world *) = {beat_here, claim_here, set_here, set_elsewhere,
                                                   read_here};
    struct world *w = *state;
    int failures = 0;

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        for (uint64_t at = 1;; at++) {
            int rc;

            allocs_fail(at);
            rc = calls[i](w);
            if (!allocs_failed()) {
                allocs_fail(0);
                assert_ok(rc);
                break;
            }
            allocs_fail(0);
            assert_int_equal(rc, WEIR_ENOMEM);
            failures++;
        }
    assert_true(failures >= 7);
    read_ok(w);
    assert_int_equal(w->view.member_count, 1);
    assert_int_equal(w->view.record_count, 2);
}

static void options_without_a_size(void **state)
{
    struct weir_store_options o = {.call_ms = 1};
    struct weir_store *s;

    (void)state;
    assert_int_equal(weir_store_memory(&s, "suite", &o, &err), WEIR_EINVAL);
    assert_null(s);
}

static void a_group_of_no_hub_cannot_be_read(void **state)
{
    struct world *w = *state;
    struct weir_scope scope = {w->scope.space, NULL, w->scope.group};

    assert_ok(beat_here(w));
    assert_int_equal(w->ops->read(w->store, &scope, &w->view, &err), WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {STORE_CASES,
                                       STORE_CASE(names_are_stores),
                                       STORE_CASE(handles_of_one_name_share),
                                       STORE_CASE(groups_have_a_limit),
                                       STORE_CASE(options_without_a_size),
                                       STORE_CASE(a_group_of_no_hub_cannot_be_read),
                                       STORE_CASE(memory_runs_out)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
