/* roster_test.c - who is alive, from views that are made up. */
#include "processor/roster.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "processor/balance.h"
#include "support/allocs.h"

#define STORE_MS 1000000 /* the store's clock is ahead by this */
#define MEMBERS 70

static struct weir__roster r;
static struct weir_member members[MEMBERS];
static struct weir_record records[8];
static struct weir_view view;
static int64_t now_ms;

static int begin(void **state)
{
    (void)state;
    r = (struct weir__roster){.beat_ms = 1000,
                              .expire_ms = 3000,
                              .foreign_expire_ms = 120000,
                              .partitions = 8};
    view = (struct weir_view){.members = members, .records = records};
    now_ms = 5000;
    return 0;
}

static int end(void **state)
{
    (void)state;
    weir__roster_free(&r);
    return 0;
}

static void add_member(const char *id, int64_t silent_ms)
{
    struct weir_member *m = &members[view.member_count++];

    *m = (struct weir_member){.instance = 1, .weight = 1, .expire_ms = 3000};
    snprintf(m->id, sizeof m->id, "%s", id);
    m->beat_ms = now_ms + STORE_MS - silent_ms;
}

static void add_record(uint32_t partition, const char *owner, int64_t silent_ms)
{
    struct weir_record *record = &records[view.record_count++];

    *record = (struct weir_record){.partition = partition};
    snprintf(record->owner, sizeof record->owner, "%s", owner);
    record->modified_ms = now_ms + STORE_MS - silent_ms;
}

static int look(void)
{
    view.now_ms = now_ms + STORE_MS;
    return weir__roster_update(&r, &view, now_ms, NULL);
}

static void update(void)
{
    assert_int_equal(look(), 0);
}

/* Alone in a view, so long after its last beat. */
static bool lives(int64_t silent_ms, int64_t expire_ms)
{
    view.member_count = 0;
    add_member("a", silent_ms);
    members[0].expire_ms = expire_ms;
    update();
    return weir__roster_find(&r, "a") == 0;
}

static void silence_kills_behind_the_expiry(void **state)
{
    (void)state;
    assert_true(lives(0, 3000));
    assert_true(lives(3000, 3000));
    assert_false(lives(3001, 3000));
    assert_true(lives(-3000, 3000)); /* a clock that was set back */
    assert_false(lives(-3001, 3000));
    assert_true(lives(0, -1));
    assert_false(lives(1, -1));
    assert_true(lives(86400000, INT64_MAX));
    assert_false(lives(86400001, INT64_MAX));
    members[0].beat_ms = INT64_MIN;
    update();
    assert_int_equal(r.count, 0);
}

/* An owner that missed a beat is looked at again when its ownership would expire. */
static void a_missed_beat_is_looked_at_in_time(void **state)
{
    (void)state;
    lives(1500, 3000);
    assert_true(r.due_ms == INT64_MAX);
    lives(1501, 3000);
    assert_int_equal(r.due_ms - now_ms, 1500);
    add_member("b", 2000);
    add_member("c", 1600);
    update();
    assert_int_equal(r.due_ms - now_ms, 1001);
}

static void many_are_found_by_name(void **state)
{
    char id[16];

    (void)state;
    for (unsigned count = 15; count <= MEMBERS; count += 11) {
        view.member_count = 0;
        for (unsigned i = 0; i < count; i++) { /* backwards */
            snprintf(id, sizeof id, "m%02u", count - 1 - i);
            add_member(id, i % 3 == 1 ? 4000 : 0);
        }
        update();
        for (unsigned i = 0, rank = 0; i < count; i++) {
            bool silent = (count - 1 - i) % 3 == 1;
            snprintf(id, sizeof id, "m%02u", i);
            assert_true(weir__roster_find(&r, id) == (silent ? WEIR__NOBODY : rank++));
        }
        assert_true(weir__roster_find(&r, "m") == WEIR__NOBODY);
    }
}

static void the_print_tells_members_apart(void **state)
{
    uint64_t before;

    (void)state;
    add_member("a", 0);
    add_member("b", 0);
    update();
    before = r.print;
    now_ms += 100;
    update();
    assert_true(r.print == before);
    members[1].weight = 2;
    update();
    assert_true(r.print != before);
    members[1].weight = 1;
    members[1].instance = 2;
    update();
    assert_true(r.print != before);
    members[1].instance = 1;
    members[1].beat_ms = 0;
    update();
    assert_true(r.print != before);
    members[1].beat_ms = members[0].beat_ms;
    update();
    assert_true(r.print == before);
}

/* ---- breaks ---- */

static int64_t dead_after(void)
{
    return weir__roster_dead_ms(&r, "x") - 3000 - 1000;
}

static void a_break_starts_a_new_series(void **state)
{
    (void)state;
    update();
    assert_int_equal(dead_after(), 5000);
    now_ms += 1500;
    update();
    assert_int_equal(dead_after(), 5000);
    now_ms += 1501;
    update();
    assert_true(dead_after() == now_ms);
    now_ms += 10;
    r.broken = true;
    update();
    assert_true(dead_after() == now_ms && !r.broken);
    for (int sign = -1; sign <= 1; sign += 2) { /* the store's clock is set */
        int64_t series = dead_after();
        now_ms += 10;
        view.now_ms = r.seen_at + 10 + sign * 1500;
        assert_int_equal(weir__roster_update(&r, &view, now_ms, NULL), 0);
        assert_true(dead_after() == series);
        now_ms += 10;
        view.now_ms = r.seen_at + 10 + sign * 1501;
        assert_int_equal(weir__roster_update(&r, &view, now_ms, NULL), 0);
        assert_true(dead_after() == now_ms);
    }
}

static void death_waits_for_the_members_own_expiry(void **state)
{
    (void)state;
    add_member("a", 0);
    members[0].expire_ms = 7000;
    update();
    assert_int_equal(weir__roster_dead_ms(&r, "a"), 5000 + 7000 + 1000);
    assert_int_equal(weir__roster_dead_ms(&r, "b"), 5000 + 3000 + 1000);
}

/* ---- foreign owners ---- */

static void foreign_owners_come_behind_the_members(void **state)
{
    (void)state;
    add_member("z", 0);
    members[0].weight = 9;
    add_record(0, "js", 0);
    add_record(1, "go", 119999);
    add_record(2, "z", 0); /* a member's own name is not foreign */
    add_record(3, "", 0);
    add_record(4, "old", 120001);
    add_record(5, "bad", 0);
    records[5].rc = WEIR_ECORRUPT;
    add_record(6, "own", 0);
    records[6].instance = 7;
    update();
    assert_int_equal(r.count, 3);
    assert_int_equal(r.foreign_alive, 2);
    assert_int_equal(weir__roster_find(&r, "z"), 0);
    assert_true(weir__roster_find(&r, "old") == WEIR__NOBODY);
    assert_true(weir__roster_find(&r, "bad") == WEIR__NOBODY);
    assert_true(weir__roster_find(&r, "own") == WEIR__NOBODY);
    assert_int_equal(r.weights[0], 1); /* they count heads */
    assert_null(weir__roster_foreign(&r, 0));
    assert_null(weir__roster_foreign(&r, 3));
    assert_null(weir__roster_foreign(&r, WEIR__NOBODY));
    assert_int_equal(weir__roster_foreign(&r, weir__roster_find(&r, "js"))->records, 1);
    assert_true(weir__roster_owner(&r, &records[2]) == 0);
    assert_true(weir__roster_owner(&r, &records[0]) == weir__roster_find(&r, "js"));
    view.record_count = 0; /* one that owns nothing cannot be known */
    update();
    assert_int_equal(r.count, 1);
    assert_int_equal(r.foreign_count, 0);
    assert_int_equal(r.weights[0], 9);
}

static void they_are_sorted_by_name_and_counted_again(void **state)
{
    (void)state;
    add_record(0, "js", 0);
    add_record(1, "go", 0);
    add_record(2, "js", 0);
    for (int i = 0; i < 3; i++) {
        update();
        assert_string_equal(r.foreigns[0].member.id, "go");
        assert_int_equal(r.foreigns[0].records, 1);
        assert_int_equal(r.foreigns[1].records, 2);
        assert_int_equal(weir__roster_find(&r, "go"), 0);
    }
    assert_int_equal(r.foreign_alive, 2);
}

/* A living owner's record that it has not renewed is not its any more. */
static void a_record_lives_by_its_own_renewal(void **state)
{
    (void)state;
    add_record(0, "js", 0);
    add_record(1, "js", 120000);
    add_record(2, "js", 120001);
    update();
    assert_int_equal(weir__roster_owner(&r, &records[0]), 0);
    assert_int_equal(weir__roster_owner(&r, &records[1]), 0);
    assert_true(weir__roster_owner(&r, &records[2]) == WEIR__NOBODY);
    records[2].modified_ms = INT64_MIN;
    assert_true(weir__roster_owner(&r, &records[2]) == WEIR__NOBODY);
}

/* Records are looked at again only when the store says that something changed. */
static void an_unchanged_view_is_not_looked_at(void **state)
{
    (void)state;
    view.change = 5;
    add_record(0, "js", 0);
    update();
    assert_int_equal(r.foreign_alive, 1);
    view.record_count = 0;
    update();
    assert_int_equal(r.foreign_alive, 1);
    view.change = 6;
    update();
    assert_int_equal(r.foreign_alive, 0);
}

static void without_memory_nobody_is_alive(void **state)
{
    const struct weir__roster empty = r;
    uint64_t at = 0;

    (void)state;
    for (int i = 0; i < 20; i++) add_member((char[]){(char)('a' + i), '\0'}, 0);
    add_record(0, "js", 0);
    for (int rc = WEIR_ENOMEM; rc != 0;) {
        weir__roster_free(&r);
        r = empty;
        allocs_fail(++at);
        rc = look();
        assert_int_equal(rc, allocs_failed() ? WEIR_ENOMEM : 0);
        allocs_fail(0);
        assert_int_equal(r.count, rc == 0 ? 21 : 0);
    }
    assert_int_equal(at, 8); /* seven lists */
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(silence_kills_behind_the_expiry),
        CASE(a_missed_beat_is_looked_at_in_time),
        CASE(many_are_found_by_name),
        CASE(the_print_tells_members_apart),
        CASE(a_break_starts_a_new_series),
        CASE(death_waits_for_the_members_own_expiry),
        CASE(foreign_owners_come_behind_the_members),
        CASE(they_are_sorted_by_name_and_counted_again),
        CASE(a_record_lives_by_its_own_renewal),
        CASE(an_unchanged_view_is_not_looked_at),
        CASE(without_memory_nobody_is_alive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
