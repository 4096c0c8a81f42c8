/* foreign_test.c - what one copy's control does beside foreign owners, written down as place.h
 * says. "js" is one: its instance is 0. */
#include "processor/control.h"

#include "processor/place.h"

static void own_all(uint32_t count, const char *owner)
{
    for (uint32_t p = 0; p < count; p++) own(p, owner, 0);
}

static uint64_t count_renewals(void)
{
    struct weir__control_counts counts;

    weir__control_counts(w.control, &counts);
    return counts.renewals;
}

/* ---- what we take ---- */

static void takes_its_share_at_once(void **state)
{
    (void)state;
    own_all(4, "js");
    start(4);
    pass(400, "");
    expect("2>a +2s 3>a +3s ");
    pass_renewed(15000);
    expect("");
}

static void takes_the_smaller_share_from_a_living_one(void **state)
{
    (void)state;
    own_all(5, "js");
    start(5);
    pass(5000, "");
    expect("3>a +3s 4>a +4s ");
}

static void takes_the_larger_share_of_what_is_free(void **state)
{
    (void)state;
    own_all(2, "js");
    start(5);
    pass(5000, "");
    expect("2>a +2s 3>a +3s 4>a +4s ");
}

static void counts_heads_not_weights(void **state)
{
    struct weir__control_options o = {.id = "a",
                                      .instance = 1,
                                      .weight = 7,
                                      .partitions = 4,
                                      .beat_ms = 1000,
                                      .expire_ms = 3000,
                                      .settle_ms = 300,
                                      .start_ms = 2000,
                                      .handover_ms = 10000,
                                      .poll_ms = 50};

    (void)state;
    own_all(4, "js");
    assert_int_equal(weir__control_new(&w.control, &o, NULL), 0);
    pass(5000, "");
    expect("2>a +2s 3>a +3s ");
}

static void takes_its_name_back_from_a_record_without_instance(void **state)
{
    (void)state;
    own(0, "a", 0);
    own(1, "js", 0);
    start(2);
    pass(500, "");
    expect("0>a +0s ");
}

/* ---- when it is dead ---- */

static void waits_two_minutes_for_one_that_is_silent(void **state)
{
    (void)state;
    own_all(2, "js");
    start(2);
    pass(119000, "");
    w.log[0] = '\0'; /* its own share, and renewals */
    pass(5000, "");
    assert_non_null(strstr(w.log, "0>a +0 "));
}

static void one_that_renews_lives(void **state)
{
    (void)state;
    own_all(2, "js");
    start(2);
    pass_renewed(600000);
    assert_null(strstr(w.log, "0>a"));
    assert_string_equal(w.rows[0].owner, "js");
}

/* It was seen to take 100 s from one renewal to the next. */
static void waits_longer_for_one_that_is_slow(void **state)
{
    (void)state;
    own_all(2, "js");
    start(2);
    pass(100000, "");
    renew("js");
    pass(290000, "");
    assert_null(strstr(w.log, "0>a"));
    pass(15000, "");
    assert_non_null(strstr(w.log, "0>a +0 "));
}

/* What it lost and took again after 100 s was not renewed by it meanwhile. */
static void what_it_takes_again_is_no_renewal(void **state)
{
    (void)state;
    own_all(2, "js");
    start(2);
    pass_renewed(100000);
    own(1, "js", 0);
    pass(119000, "");
    assert_null(strstr(w.log, "0>a"));
    pass(5000, "");
    assert_non_null(strstr(w.log, "0>a +0 "));
}

static void an_outage_kills_no_foreign_one(void **state)
{
    (void)state;
    own_all(2, "js");
    start(2);
    pass(5000, "");
    w.away = true;
    pass(300000, "");
    w.away = false;
    w.log[0] = '\0';
    pass(60000, "");
    assert_null(strstr(w.log, "0>a"));
    pass(70000, "");
    assert_non_null(strstr(w.log, "0>a +0 "));
}

static void a_record_that_is_not_renewed_is_free(void **state)
{
    (void)state;
    own_all(4, "js");
    start(4);
    pass(3000, "");
    expect("2>a +2s 3>a +3s ");
    for (int i = 0; i < 20; i++) { /* two minutes, and one in which js may take it again */
        own(0, "js", 0);           /* and not 1 */
        pass(10000, "");
    }
    assert_non_null(strstr(w.log, "1>a +1s "));
    assert_string_equal(w.rows[0].owner, "js");
}

/* ---- what it looks at ---- */

static void renews_while_foreign_ones_live(void **state)
{
    (void)state;
    own_all(4, "js");
    start(4);
    pass_renewed(10000);
    expect("2>a +2s 3>a +3s ");
    for (int i = 0; i < 60; i++) {
        int64_t epoch = w.rows[2].epoch;
        pass_renewed(10000);
        assert_in_range(w.now_ms + w.store_ms - w.rows[2].modified_ms, 0, 21500);
        assert_int_equal(w.rows[2].epoch, epoch);
    }
    assert_in_range(count_renewals(), 2 * 600 / 22, 2 * 600 / 20);
    assert_null(strstr(w.log, "+"));
}

/* Nothing changes meanwhile. */
static void renews_beside_one_that_is_silent(void **state)
{
    struct weir__control_counts counts;

    (void)state;
    own_all(4, "js");
    start(4);
    pass(500, "");
    expect("2>a +2s 3>a +3s ");
    for (int i = 0; i < 100; i++) {
        pass(1000, "");
        for (int p = 2; p < 4; p++)
            assert_in_range(w.now_ms + w.store_ms - w.rows[p].modified_ms, 0, 21000);
    }
    assert_in_range(count_renewals(), 8, 10);
    weir__control_counts(w.control, &counts);
    assert_int_equal(counts.fenced, 0);
}

static void renews_nothing_while_the_store_is_away(void **state)
{
    (void)state;
    own_all(4, "js");
    start(4);
    pass_renewed(10000);
    expect("2>a +2s 3>a +3s ");
    w.away = true;
    pass(60000, "");
    expect("");
}

static void goes_where_a_checkpoint_was_set_beside_others(void **state)
{
    (void)state;
    own_all(4, "js");
    start(4);
    pass_renewed(10000);
    expect("2>a +2s 3>a +3s ");
    w.rows[2].rewinds++;
    w.change++;
    pass(1000, "");
    expect("<2s ");
}

/* The first view is enough, and so is the first partition. */
static void takes_its_share_without_a_pause(void **state)
{
    (void)state;
    own_all(4, "js");
    start_paced(4, 0, 0);
    run();
    expect("2>a +2s 3>a +3s ");
    assert_int_equal(w.reads, 1);
}

static void takes_up_the_first_that_lies(void **state)
{
    (void)state;
    own(0, "", 0);
    own(1, "js", 0);
    for (uint32_t p = 2; p < 4; p++) own(p, "a", 1);
    start(4);
    pass_renewed(50000);
    expect("+2s +3s 2>a 3>a 2>a 3>a ");
    pass_renewed(30000);
    assert_string_equal(w.rows[0].owner, "a");
}

/* Not one by one, as when it stays. */
static void leaves_everything_to_foreign_ones_at_once(void **state)
{
    (void)state;
    own(0, "js", 0);
    for (uint32_t p = 1; p < 4; p++) own(p, "a", 1);
    start(4);
    pass(500, "");
    w.log[0] = '\0';
    weir__control_leave(w.control, w.now_ms);
    pass(100, "");
    for (uint32_t p = 1; p < 4; p++) assert_string_equal(w.rows[p].owner, "");
    assert_null(strstr(w.log, ">a"));
}

static void renews_nothing_among_its_own(void **state)
{
    (void)state;
    start(4);
    pass(600000, "");
    expect("0>a +0 1>a +1 2>a +2 3>a +3 ");
    assert_int_equal(count_renewals(), 0);
}

static void a_refused_renewal_is_a_loss(void **state)
{
    (void)state;
    own_all(4, "js");
    start(4);
    pass_renewed(10000);
    w.log[0] = '\0';
    own(2, "js", 0);
    pass(2000, "");
    assert_non_null(strstr(w.log, "-2lost "));
}

/* ---- what we give ---- */

/* One at a time, to nobody, and the next when it was taken. */
static void gives_up_what_is_too_much_one_by_one(void **state)
{
    (void)state;
    start(6);
    pass(1000, "");
    w.log[0] = '\0';
    own(5, "js", 0);
    pass(3000, "");
    assert_non_null(strstr(w.log, "-5lost "));
    assert_non_null(strstr(w.log, "~3 3>nobody -3moved "));
    assert_null(strstr(w.log, "4>nobody"));
    own(3, "js", 0);
    pass(3000, "");
    assert_non_null(strstr(w.log, "~4 4>nobody -4moved "));
    assert_null(strstr(w.log, "js"));
}

static void takes_up_what_is_left_lying(void **state)
{
    (void)state;
    start(4);
    pass(1000, "");
    own(3, "js", 0);
    pass_renewed(3000);
    assert_non_null(strstr(w.log, "~2 2>nobody -2moved "));
    w.log[0] = '\0';
    pass_renewed(55000);
    assert_null(strstr(w.log, "+2"));
    pass_renewed(10000);
    assert_non_null(strstr(w.log, "2>a +2s "));
    w.log[0] = '\0';
    pass_renewed(100000); /* it is offered nothing for two minutes, */
    assert_null(strstr(w.log, "~2"));
    pass_renewed(30000);
    assert_non_null(strstr(w.log, "~2 2>nobody -2moved "));
    pass_renewed(70000);
    w.log[0] = '\0';
    pass_renewed(200000); /* then for four */
    assert_null(strstr(w.log, "~2"));
}

/* By us, though the foreign one has less than we. */
static void what_lies_is_not_left_to_the_foreign_one_with_the_fewest(void **state)
{
    (void)state;
    start(5);
    pass(1000, "");
    own(4, "js", 0);
    pass_renewed(3000);
    assert_non_null(strstr(w.log, "~3 3>nobody -3moved "));
    w.log[0] = '\0';
    pass_renewed(65000);
    assert_non_null(strstr(w.log, "3>a +3s "));
}

/* js has 0; b and c, who leaves, live; 66 s pass. */
static void leave_one_lying(uint32_t partitions)
{
    own(0, "js", 0);
    start(partitions);
    for (int i = 0; i < 27; i++) {
        beat("c", 1, 0);
        pass(2500, "b");
        renew("js");
    }
}

static void a_copy_with_the_fewest_takes_up_what_lies(void **state)
{
    (void)state;
    for (uint32_t p = 1; p < 5; p++) own(p, p < 3 ? "a" : "b", 1);
    leave_one_lying(6);
    assert_string_equal(w.rows[5].owner, "a");
}

static void a_copy_with_more_leaves_it_to_the_others(void **state)
{
    (void)state;
    for (uint32_t p = 1; p < 6; p++) own(p, p < 4 ? "a" : "b", 1);
    leave_one_lying(7);
    assert_string_equal(w.rows[6].owner, "");
    assert_string_equal(w.rows[3].owner, "a");
}

/* What a has counts from the first partition on. */
static void the_first_partition_counts(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < 6; p++) own(p, p < 3 ? "a" : p < 5 ? "b" : "js", p < 5);
    start(7);
    for (int i = 0; i < 27; i++) {
        pass(2500, "b");
        renew("js");
    }
    assert_string_equal(w.rows[6].owner, "");
    assert_string_equal(w.rows[0].owner, "a");
}

/* Two have lain as long: the second is for who has the fewest when the first is taken up. */
static void each_takes_up_one_of_two(void **state)
{
    (void)state;
    for (uint32_t p = 0; p < 4; p++) own(p, p < 2 ? "a" : "b", 1);
    own(4, "js", 0);
    own(5, "py", 0);
    start(8);
    for (int i = 0; i < 27; i++) {
        pass(2500, "b");
        renew("js");
        renew("py");
    }
    assert_string_equal(w.rows[6].owner, "a");
    assert_string_equal(w.rows[7].owner, "");
}

/* Each time it lets one lie it is offered the next after twice as long, up to an hour. */
static void offers_less_and_less_to_one_that_is_slow(void **state)
{
    static const int64_t pauses_s[] = {180, 300, 540, 1020, 1980, 3660, 3660};
    int64_t last_ms = 0;
    size_t count = 0;

    (void)state;
    own(0, "js", 0);
    for (uint32_t p = 1; p < 4; p++) own(p, "a", 1);
    start(4);
    while (count < sizeof pauses_s / sizeof pauses_s[0]) {
        pass_renewed(10000);
        if (strstr(w.log, ">nobody ")) {
            if (last_ms != 0) assert_int_equal(w.now_ms - last_ms, pauses_s[count++] * 1000);
            last_ms = w.now_ms;
        }
        w.log[0] = '\0';
    }
}

static void leaves_to_nobody_what_is_a_foreign_ones(void **state)
{
    (void)state;
    own(0, "js", 0);
    start(2);
    pass(1000, "");
    expect("1>a +1s ");
    weir__control_leave(w.control, w.now_ms);
    run();
    expect("~1 1>nobody -1shutdown leave ");
    assert_true(w.done);
}

/* ---- without memory ---- */

/* Lets the at-th allocation fail of a copy that starts among records; false: there were fewer. */
static bool run_short_of(uint64_t at)
{
    bool failed;

    start(6);
    allocs_fail(at);
    pass(2000, "");
    failed = allocs_failed();
    allocs_fail(0);
    return failed;
}

/* A plan that there is no memory for is made again, and nothing is done meanwhile. */
static void without_memory_it_plans_again(void **state)
{
    bool failed = true;

    (void)state;
    for (uint64_t at = 1; failed; at++) {
        tear_down(NULL);
        set_up(NULL);
        own_all(6, "js");
        failed = run_short_of(at);
        expect("3>a +3s 4>a +4s 5>a +5s ");
    }
    failed = true;
    for (uint64_t at = 1; failed; at++) {
        tear_down(NULL);
        set_up(NULL);
        own(0, "js", 0);
        for (uint32_t p = 1; p < 6; p++) own(p, "a", 1);
        failed = run_short_of(at);
        expect("+1s +2s +3s +5s 4>nobody ");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(takes_its_share_at_once),
        TEST(takes_the_smaller_share_from_a_living_one),
        TEST(takes_the_larger_share_of_what_is_free),
        TEST(counts_heads_not_weights),
        TEST(takes_its_name_back_from_a_record_without_instance),
        TEST(waits_two_minutes_for_one_that_is_silent),
        TEST(one_that_renews_lives),
        TEST(waits_longer_for_one_that_is_slow),
        TEST(what_it_takes_again_is_no_renewal),
        TEST(an_outage_kills_no_foreign_one),
        TEST(a_record_that_is_not_renewed_is_free),
        TEST(renews_while_foreign_ones_live),
        TEST(renews_beside_one_that_is_silent),
        TEST(renews_nothing_while_the_store_is_away),
        TEST(goes_where_a_checkpoint_was_set_beside_others),
        TEST(takes_its_share_without_a_pause),
        TEST(takes_up_the_first_that_lies),
        TEST(leaves_everything_to_foreign_ones_at_once),
        TEST(renews_nothing_among_its_own),
        TEST(a_refused_renewal_is_a_loss),
        TEST(gives_up_what_is_too_much_one_by_one),
        TEST(takes_up_what_is_left_lying),
        TEST(what_lies_is_not_left_to_the_foreign_one_with_the_fewest),
        TEST(a_copy_with_the_fewest_takes_up_what_lies),
        TEST(a_copy_with_more_leaves_it_to_the_others),
        TEST(the_first_partition_counts),
        TEST(each_takes_up_one_of_two),
        TEST(offers_less_and_less_to_one_that_is_slow),
        TEST(leaves_to_nobody_what_is_a_foreign_ones),
        TEST(without_memory_it_plans_again),
    };
    return cmocka_run_group_tests_name("foreign", tests, NULL, NULL);
}
