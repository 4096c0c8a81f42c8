/* view_test.c - what the stores have in common: rows that somebody else may have written, limits of
 * names and numbers, views that are read again and again. */
#include "processor/store/view.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/allocs.h"

static struct weir_error err;

/* ---- rows ---- */

static struct weir__store_row good_row(void)
{
    return (struct weir__store_row){.partition = 3,
                                    .instance = -1,
                                    .epoch = 0,
                                    .acquired_ms = 0,
                                    .modified_ms = WEIR__STORE_TIME_MAX_MS,
                                    .version = 1,
                                    .marked = 1,
                                    .sequence = 7,
                                    .rewinds = 0,
                                    .turn = 0,
                                    .owner = weir__bytes_of("me", 2),
                                    .offset = weir__bytes_of("11", 2)};
}

static void expect_corrupt(const struct weir__store_row *row)
{
    struct weir_record r;

    assert_true(weir__store_record(row, &r));
    assert_int_equal(r.rc, WEIR_ECORRUPT);
    assert_int_equal(r.partition, 3);
    assert_string_equal(r.owner, "");
    assert_false(r.marked);
}

static void a_good_row_is_a_record(void **state)
{
    struct weir__store_row row = good_row();
    struct weir_record r;

    (void)state;
    assert_true(weir__store_record(&row, &r));
    assert_int_equal(r.rc, 0);
    assert_int_equal(r.partition, 3);
    assert_true(r.instance == UINT64_MAX);
    assert_int_equal(r.epoch, 0);
    assert_true(r.marked);
    assert_int_equal(r.sequence, 7);
    assert_string_equal(r.owner, "me");
    assert_string_equal(r.offset, "11");
    assert_string_equal(r.version, "1");
    assert_true(r.modified_ms == WEIR__STORE_TIME_MAX_MS);
    row.marked = 0;
    row.epoch = 5;
    row.rewinds = 2;
    row.version = INT64_MAX;
    row.owner.len = row.offset.len = 0;
    row.partition = UINT32_MAX;
    assert_true(weir__store_record(&row, &r));
    assert_int_equal(r.rc, 0);
    assert_true(r.partition == UINT32_MAX && r.epoch == 5 && r.rewinds == 2 && !r.marked);
    assert_string_equal(r.version, "9223372036854775807");
    assert_string_equal(r.owner, "");
    row.partition = -1;
    assert_false(weir__store_record(&row, &r));
    row.partition = (int64_t)UINT32_MAX + 1;
    assert_false(weir__store_record(&row, &r));
}

#define EXPECT_CORRUPT(field, value)                                                               \
    do {                                                                                           \
        struct weir__store_row row = good_row();                                                   \
        row.field = value;                                                                         \
        expect_corrupt(&row);                                                                      \
    } while (0)

static void a_bad_row_is_a_corrupt_record(void **state)
{
    char name[WEIR_OWNER_BYTES + 64];

    (void)state;
    memset(name, 'x', sizeof name);
    EXPECT_CORRUPT(bad, true);
    EXPECT_CORRUPT(epoch, -1);
    EXPECT_CORRUPT(version, 0);
    EXPECT_CORRUPT(marked, -1);
    EXPECT_CORRUPT(marked, 2);
    EXPECT_CORRUPT(rewinds, -1);
    EXPECT_CORRUPT(turn, -1);
    EXPECT_CORRUPT(acquired_ms, -1);
    EXPECT_CORRUPT(acquired_ms, WEIR__STORE_TIME_MAX_MS + 1);
    EXPECT_CORRUPT(modified_ms, -1);
    EXPECT_CORRUPT(modified_ms, WEIR__STORE_TIME_MAX_MS + 1);
    EXPECT_CORRUPT(owner, weir__bytes_of(name, WEIR_OWNER_BYTES));
    EXPECT_CORRUPT(owner, weir__bytes_of("a\0", 2));
    EXPECT_CORRUPT(offset, weir__bytes_of(name, sizeof((struct weir_record *)0)->offset));
    EXPECT_CORRUPT(offset, weir__bytes_of("\0a", 2));
}

static void an_owner_may_be_as_long_as_its_room(void **state)
{
    struct weir__store_row row = good_row();
    char name[WEIR_OWNER_BYTES];
    struct weir_record r;

    (void)state;
    memset(name, 'x', sizeof name);
    row.owner = weir__bytes_of(name, sizeof name - 1);
    assert_true(weir__store_record(&row, &r));
    assert_int_equal(r.rc, 0);
    assert_int_equal(strlen(r.owner), WEIR_OWNER_BYTES - 1);
}

static bool is_member(const char *id, size_t len, int64_t weight, int64_t expire_ms,
                      int64_t beat_ms)
{
    struct weir_member m;

    return weir__store_member(weir__bytes_of(id, len), -1, weight, expire_ms, beat_ms, &m);
}

static void members_have_their_limits(void **state)
{
    struct weir_member m;

    (void)state;
    assert_true(weir__store_member(weir__bytes_of("me", 2), -1, 7, 3000, 5, &m));
    assert_string_equal(m.id, "me");
    assert_true(m.instance == UINT64_MAX && m.weight == 7 && m.expire_ms == 3000 && m.beat_ms == 5);
    assert_true(is_member("a", 1, 0, 1, 0));
    assert_true(is_member("a", 1, UINT32_MAX, WEIR__STORE_EXPIRE_MAX_MS, WEIR__STORE_TIME_MAX_MS));
    assert_false(is_member("", 0, 1, 1, 0));
    assert_false(is_member("a\0b", 3, 1, 1, 0));
    assert_false(is_member("a", 1, -1, 1, 0));
    assert_false(is_member("a", 1, (int64_t)UINT32_MAX + 1, 1, 0));
    assert_false(is_member("a", 1, 1, 0, 0));
    assert_false(is_member("a", 1, 1, WEIR__STORE_EXPIRE_MAX_MS + 1, 0));
    assert_false(is_member("a", 1, 1, 1, -1));
    assert_false(is_member("a", 1, 1, 1, WEIR__STORE_TIME_MAX_MS + 1));
}

static void versions_are_whole_numbers(void **state)
{
    (void)state;
    assert_true(weir__store_version("") == 0);
    assert_true(weir__store_version("1") == 1);
    assert_true(weir__store_version("1234567890123456789") == INT64_C(1234567890123456789));
    assert_true(weir__store_version("0") == -1);
    assert_true(weir__store_version("000") == -1);
    assert_true(weir__store_version("-1") == -1);
    assert_true(weir__store_version("1 ") == -1);
    assert_true(weir__store_version("1:") == -1);
    assert_true(weir__store_version("1/") == -1);
    assert_true(weir__store_version("99999999999999999999") == -1);
}

/* ---- arguments ---- */

static int check(const char *space, const char *hub, const char *group)
{
    struct weir_scope s = {space, hub, group};

    return weir__store_check_scope(&s, &err);
}

static void names_are_checked(void **state)
{
    char name[WEIR__STORE_NAME_MAX + 2];
    struct weir_scope s = {"s", "h", "g"};
    struct weir_member m = {.id = "me", .expire_ms = 1};

    (void)state;
    memset(name, 'x', sizeof name);
    name[WEIR__STORE_NAME_MAX] = '\0';
    assert_int_equal(check(name, name, name), 0);
    name[WEIR__STORE_NAME_MAX] = 'x';
    name[WEIR__STORE_NAME_MAX + 1] = '\0';
    assert_int_equal(check(name, "h", "g"), WEIR_EINVAL);
    assert_memory_equal(err.text, "the namespace's name is longer than ", 36);
    assert_int_equal(check("s", name, "g"), WEIR_EINVAL);
    assert_memory_equal(err.text, "the hub's name is longer than ", 30);
    assert_int_equal(check("s", "h", name), WEIR_EINVAL);
    assert_memory_equal(err.text, "the consumer group's name is longer than ", 41);
    assert_int_equal(check("", "h", "g"), WEIR_EINVAL);
    assert_string_equal(err.text, "the namespace has no name");
    assert_int_equal(check("s", NULL, "g"), WEIR_EINVAL);
    assert_int_equal(weir__store_check_member(&s, &m, &err), 0);
    m.expire_ms = WEIR__STORE_EXPIRE_MAX_MS;
    assert_int_equal(weir__store_check_member(&s, &m, &err), 0);
    m.expire_ms++;
    assert_int_equal(weir__store_check_member(&s, &m, &err), WEIR_EINVAL);
    m.expire_ms = 0;
    assert_int_equal(weir__store_check_member(&s, &m, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "an expiry of 0 ms");
    m.id[0] = '\0';
    assert_int_equal(weir__store_check_member(&s, &m, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the copy has no name");
    s.hub = "";
    assert_int_equal(weir__store_check_member(&s, &m, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the hub has no name");
}

static void an_owner_may_be_nobody(void **state)
{
    struct weir_scope s = {"s", "h", "g"};
    char name[WEIR_OWNER_BYTES + 1];

    (void)state;
    memset(name, 'x', sizeof name);
    name[WEIR_OWNER_BYTES] = '\0';
    assert_int_equal(weir__store_check_owner(&s, "", &err), 0);
    assert_int_equal(weir__store_check_owner(&s, name + 1, &err), 0);
    assert_int_equal(weir__store_check_owner(&s, name, &err), WEIR_EINVAL);
    s.group = "";
    assert_int_equal(weir__store_check_owner(&s, "", &err), WEIR_EINVAL);
}

static void refusals_have_their_words(void **state)
{
    (void)state;
    assert_int_equal(weir__store_fail_alive(&err, "me", 7, 3000), WEIR_EEXIST);
    assert_string_equal(err.text, "a copy named 'me' is in the group already, last heard of 7 ms "
                                  "ago; it counts as dead after 3000 ms of silence");
    weir__store_fail_alive(&err, "me", -7, 3000);
    assert_non_null(strstr(err.text, "last heard of 0 ms ago"));
    assert_int_equal(weir__store_fail_left(&err, "me"), WEIR_EFENCED);
    assert_string_equal(err.text, "this start of 'me' has left the group");
    assert_int_equal(weir__store_fail_moved(&err, 7), WEIR_EFENCED);
    assert_string_equal(err.text,
                        "the record of partition 7 is not the one that was read any more");
}

static void a_call_takes_so_long_at_most(void **state)
{
    struct weir_store_options o = {.size = sizeof o};
    int64_t ms;

    (void)state;
    assert_int_equal(weir__store_options(NULL, &ms, &err), 0);
    assert_int_equal(ms, WEIR__STORE_CALL_MS);
    assert_int_equal(weir__store_options(&o, &ms, &err), 0);
    assert_int_equal(ms, WEIR__STORE_CALL_MS);
    o.call_ms = 1;
    assert_int_equal(weir__store_options(&o, &ms, &err), 0);
    assert_int_equal(ms, 1);
    o.call_ms = WEIR__STORE_CALL_MAX_MS + 1;
    assert_int_equal(weir__store_options(&o, &ms, &err), 0);
    assert_int_equal(ms, WEIR__STORE_CALL_MAX_MS);
    o.size = 1;
    assert_int_equal(weir__store_options(&o, &ms, &err), WEIR_EINVAL);
}

/* ---- views ---- */

static void a_view_grows_to_its_limit(void **state)
{
    struct weir_view v = {0};
    size_t cap = WEIR__STORE_ROWS_MAX;
    void *at = NULL;

    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        struct weir_member m = {.weight = i};
        struct weir_record r = {.partition = i};
        assert_int_equal(weir__view_add_member(&v, &m, &err), 0);
        assert_int_equal(weir__view_add_record(&v, &r, &err), 0);
    }
    for (uint32_t i = 0; i < 40; i++)
        assert_true(v.members[i].weight == i && v.records[i].partition == i);
    assert_int_equal(v.member_count, 40);
    assert_int_equal(v.record_count, 40);
    weir_view_free(&v);
    assert_null(v.members);
    assert_int_equal(v.record_count, 0);
    assert_int_equal(weir__store_grow(&at, &cap, WEIR__STORE_ROWS_MAX - 1, 1, &err), 0);
    assert_int_equal(weir__store_grow(&at, &cap, WEIR__STORE_ROWS_MAX, 1, &err), WEIR_ELIMIT);
    assert_null(at);
    weir_view_free(NULL);
    weir_store_close(NULL);
}

static void without_memory_a_view_stays_as_it_was(void **state)
{
    struct weir_view v = {0};
    struct weir_member m = {.weight = 1};

    (void)state;
    assert_int_equal(weir__view_add_member(&v, &m, &err), 0);
    while (v.member_count < v.member_cap) assert_int_equal(weir__view_add_member(&v, &m, &err), 0);
    allocs_fail(1);
    assert_int_equal(weir__view_add_member(&v, &m, &err), WEIR_ENOMEM);
    allocs_fail(0);
    assert_int_equal(v.member_count, v.member_cap);
    assert_int_equal(weir__view_add_member(&v, &m, &err), 0);
    weir_view_free(&v);
}

/* Records that did not change are not read again: the old ones stay. */
static void records_stay_when_nothing_changed(void **state)
{
    struct weir_view view = {.change = 5, .now_ms = 1}, fresh = {.change = 5, .now_ms = 2};
    struct weir_record r = {.partition = 9};
    struct weir_member m = {.weight = 3};

    (void)state;
    assert_int_equal(weir__view_add_record(&view, &r, &err), 0);
    assert_int_equal(weir__view_add_member(&fresh, &m, &err), 0);
    weir__view_take(&view, &fresh);
    assert_true(view.now_ms == 2 && view.member_count == 1 && view.record_count == 1);
    assert_int_equal(view.records[0].partition, 9);
    assert_int_equal(fresh.record_count, 0);
    weir_view_free(&fresh);
    fresh = (struct weir_view){.change = 6, .now_ms = 3};
    weir__view_take(&view, &fresh);
    assert_true(view.change == 6 && view.record_count == 0 && fresh.record_count == 1);
    weir_view_free(&fresh);
    weir_view_free(&view);
    view = (struct weir_view){0}; /* 0 says nothing of changes */
    fresh = (struct weir_view){0};
    assert_int_equal(weir__view_add_record(&fresh, &r, &err), 0);
    weir__view_take(&view, &fresh);
    assert_int_equal(view.record_count, 1);
    weir_view_free(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_row_is_a_record),
        cmocka_unit_test(a_bad_row_is_a_corrupt_record),
        cmocka_unit_test(an_owner_may_be_as_long_as_its_room),
        cmocka_unit_test(members_have_their_limits),
        cmocka_unit_test(versions_are_whole_numbers),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(an_owner_may_be_nobody),
        cmocka_unit_test(refusals_have_their_words),
        cmocka_unit_test(a_call_takes_so_long_at_most),
        cmocka_unit_test(a_view_grows_to_its_limit),
        cmocka_unit_test(without_memory_a_view_stays_as_it_was),
        cmocka_unit_test(records_stay_when_nothing_changed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
