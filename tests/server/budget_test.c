/* The budget of a server: sums, shares, and who goes when there is no room. */
#include "server/budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GUESTS 9
#define WITH_REST(bytes) ((bytes)*65 / 64) /* a 64th is not for those who ask */
#define MANY (2 * WEIR__BUDGET_ORIGINS)

/* All lists are touched on the loop, as connections do it. */
struct guest {
    struct weir__newcomer as;
    struct weir__account account;
    atomic_int evicted;
};

struct scene {
    struct weir__budget budget;
    struct weir__loops *loops;
    struct weir__loop *loop;
    struct guest guests[GUESTS];
    const char *peers[GUESTS];
    unsigned count;
    struct weir__post enter, leave;
    atomic_bool done;
};

static void on_evict(void *arg)
{
    struct guest *g = arg;

    atomic_store(&g->evicted, 1);
}

static void enter_all(void *arg)
{
    struct scene *s = arg;

    for (unsigned i = 0; i < s->count; i++)
        weir__newcomer_enter(&s->guests[i].as, &s->guests[i].account, s->loop, s->peers[i],
                             on_evict, &s->guests[i]);
    atomic_store(&s->done, true);
}

static void leave_all(void *arg)
{
    struct scene *s = arg;

    for (unsigned i = 0; i < GUESTS; i++) weir__newcomer_leave(&s->guests[i].as, &s->budget);
    atomic_store(&s->done, true);
}

static void enter_and_leave(void *arg)
{
    struct scene *s = arg;

    for (unsigned i = 0; i < s->count; i++)
        weir__newcomer_enter(&s->guests[i].as, &s->guests[i].account, s->loop, s->peers[i],
                             on_evict, &s->guests[i]);
    leave_all(s);
}

static void run(struct scene *s, struct weir__post *post)
{
    atomic_store(&s->done, false);
    assert_int_equal(weir__loop_post(s->loop, post), 0);
    while (!atomic_load(&s->done)) sched_yield();
}

static struct scene *begin(const struct weir__budget_limits *limits)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    weir__budget_init(&s->budget, limits);
    for (unsigned i = 0; i < GUESTS; i++)
        s->guests[i].account = (struct weir__account){.budget = &s->budget, .stranger = true};
    assert_int_equal(weir__loops_start(&s->loops, &(struct weir__loops_options){.count = 1}, NULL),
                     0);
    s->loop = weir__loops_at(s->loops, 0);
    weir__post_init(&s->enter, enter_all, s);
    weir__post_init(&s->leave, leave_all, s);
    return s;
}

static void end(struct scene *s)
{
    for (unsigned i = 0; i < GUESTS; i++) weir__account_set(&s->guests[i].account, 0);
    run(s, &s->leave);
    assert_int_equal(weir__budget_strangers(&s->budget), 0);
    assert_int_equal(atomic_load(&s->budget.leaving), 0);
    weir__loops_free(s->loops);
    weir__budget_fini(&s->budget);
    free(s);
}

static void await_evicted(struct scene *s, unsigned i)
{
    while (!atomic_load(&s->guests[i].evicted)) sched_yield();
}

/* Wherever it lies, and whatever lay there before. */
static void a_new_one_is_empty(void **state)
{
    static struct weir__budget b;

    (void)state;
    memset(&b, 0xff, sizeof b);
    weir__budget_init(&b, &(struct weir__budget_limits){.bytes = 1});
    assert_int_equal(atomic_load(&b.used), 0);
    assert_int_equal(atomic_load(&b.refused), 0);
    assert_int_equal(b.count, 0);
    for (unsigned i = 0; i < WEIR__BUDGET_ORIGINS; i++) assert_null(b.origins[i]);
    weir__budget_fini(&b);
}

/* One account after the other, until there is no more; what one gives back another may have. */
static void accounts_share_one_sum(void **state)
{
    struct weir__budget b;
    struct weir__account one = {.budget = &b}, other = {.budget = &b};

    (void)state;
    weir__budget_init(&b, &(struct weir__budget_limits){.bytes = WITH_REST(1000)});
    assert_true(weir__account_grow(&one, 600));
    assert_false(weir__account_grow(&other, 500));
    assert_int_equal(atomic_load(&b.used), 600);
    assert_int_equal(atomic_load(&b.peak), 600);
    assert_true(weir__account_grow(&other, 400));
    assert_int_equal(atomic_load(&b.peak), 1000);
    weir__account_set(&one, 100);
    assert_true(weir__account_grow(&other, 500));
    assert_int_equal(atomic_load(&other.bytes), 900);
    assert_false(weir__account_grow(&other, SIZE_MAX));
    weir__account_set(&one, 5000); /* what is there cannot be denied */
    assert_int_equal(atomic_load(&b.used), 5900);
    assert_true(weir__account_grow(&other, 0)); /* nothing is always there */
    weir__account_set(&one, 0);
    weir__account_set(&other, 0);
    assert_int_equal(atomic_load(&b.used), 0);
    assert_int_equal(atomic_load(&b.peak), 5900);
    weir__budget_fini(&b);
}

/* Whoever asks for more gets all but a 64th, to the byte; what must be there may have that. */
static void a_64th_is_not_for_those_who_ask(void **state)
{
    struct weir__budget b;
    struct weir__account one = {.budget = &b};

    (void)state;
    weir__budget_init(&b, &(struct weir__budget_limits){.bytes = 64 * 65});
    assert_false(weir__account_grow(&one, 63 * 65 + 1));
    assert_int_equal(atomic_load(&b.used), 0);
    assert_true(weir__account_grow(&one, 63 * 65));
    assert_false(weir__account_grow(&one, 1));
    assert_int_equal(atomic_load(&one.bytes), 63 * 65);
    assert_int_equal(atomic_load(&b.peak), 63 * 65);
    weir__account_set(&one, 64 * 65);
    assert_int_equal(atomic_load(&b.peak), 64 * 65);
    weir__account_set(&one, 0);
    weir__budget_fini(&b);
}

static void strangers_have_a_share(void **state)
{
    struct weir__budget b;
    struct weir__account known = {.budget = &b}, stranger = {.budget = &b, .stranger = true};

    (void)state;
    weir__budget_init(&b, &(struct weir__budget_limits){.bytes = WITH_REST(1000),
                                                        .stranger_bytes = 100});
    assert_true(weir__account_grow(&stranger, 100));
    assert_false(weir__account_grow(&stranger, 1));
    assert_true(weir__account_grow(&known, 900));
    assert_false(weir__account_grow(&known, 1));
    weir__account_set(&known, 0);
    weir__account_trust(&stranger);
    assert_int_equal(atomic_load(&b.strangers), 0);
    assert_true(weir__account_grow(&stranger, 900));
    weir__account_set(&stranger, 0);
    weir__budget_fini(&b);
}

/* Also those who went by themselves are not told, and an address is forgotten with its last. */
static void the_oldest_stranger_goes_first(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.bytes = 1000, .stranger_bytes = 100});

    (void)state;
    s->count = 3;
    s->peers[0] = s->peers[2] = "10.0.0.1:5";
    s->peers[1] = "10.0.0.2:5";
    run(s, &s->enter);
    assert_true(weir__budget_make_room(&s->budget));
    await_evicted(s, 0);
    assert_true(weir__account_grow(&s->guests[1].account, 80));
    assert_true(weir__account_grow(&s->guests[2].account, 60)); /* above the share: one more goes */
    await_evicted(s, 1);
    assert_int_equal(weir__budget_strangers(&s->budget), 1);
    assert_true(weir__budget_make_room(&s->budget));
    assert_false(weir__budget_make_room(&s->budget));
    assert_int_equal(atomic_load(&s->budget.evicted), 3);
    end(s);
}

/* Closing a stranger that holds nothing makes no room: strangers that came before and are silent would otherwise go, one
 * for each that sends much, and those would hold more and more. */
static void strangers_go_until_there_is_room(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.bytes = 1000, .stranger_bytes = 100});

    (void)state;
    s->count = 6;
    for (unsigned i = 0; i < s->count; i++) s->peers[i] = "10.0.0.1:5";
    run(s, &s->enter);
    assert_true(weir__account_grow(&s->guests[3].account, 50));
    assert_true(weir__account_grow(&s->guests[4].account, 50));
    assert_true(weir__account_grow(&s->guests[5].account, 50));
    assert_int_equal(weir__budget_strangers(&s->budget), 2);
    await_evicted(s, 3);
    assert_true(weir__account_grow(&s->guests[5].account, 1)); /* it goes, and makes room, once */
    assert_int_equal(weir__budget_strangers(&s->budget), 1);
    assert_true(weir__account_grow(&s->guests[5].account, 49));
    assert_int_equal(weir__budget_strangers(&s->budget), 1);
    end(s);
}

/* What is there whether there is room or not counts, too. */
static void strangers_go_for_what_is_there(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.bytes = 1000, .stranger_bytes = 100});

    (void)state;
    s->count = 2;
    s->peers[0] = s->peers[1] = "10.0.0.1:5";
    run(s, &s->enter);
    weir__account_set(&s->guests[0].account, 60);
    weir__account_set(&s->guests[1].account, 40);
    assert_int_equal(weir__budget_strangers(&s->budget), 2);
    weir__account_set(&s->guests[1].account, 41);
    await_evicted(s, 0);
    assert_int_equal(weir__budget_strangers(&s->budget), 1);
    end(s);
}

/* A quarter, but not more than the usual. */
static void a_small_budget_is_not_all_for_strangers(void **state)
{
    static const struct {
        size_t bytes, stranger_bytes;
    } rows[] = {{0, WEIR__BUDGET_STRANGER_BYTES},
                {(size_t)32 << 20, (size_t)8 << 20},
                {((size_t)128 << 20) - 4, WEIR__BUDGET_STRANGER_BYTES - 1},
                {(size_t)128 << 20, WEIR__BUDGET_STRANGER_BYTES},
                {((size_t)128 << 20) + 4, WEIR__BUDGET_STRANGER_BYTES}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__budget b;
        memset(&b, 'x', sizeof b);
        weir__budget_init(&b, &(struct weir__budget_limits){.bytes = rows[i].bytes});
        assert_int_equal(b.limits.stranger_bytes, rows[i].stranger_bytes);
        assert_int_equal(b.limits.per_address, WEIR__BUDGET_PER_ADDRESS);
        assert_int_equal(weir__budget_strangers(&b), 0);
        weir__budget_fini(&b);
    }
}

static void a_budget_is_tight_above_its_half(void **state)
{
    struct weir__budget b;
    struct weir__account one = {.budget = &b};

    (void)state;
    weir__budget_init(&b, &(struct weir__budget_limits){.bytes = 1000});
    weir__account_set(&one, 500);
    assert_false(weir__budget_is_tight(&b));
    weir__account_set(&one, 501);
    assert_true(weir__budget_is_tight(&b));
    weir__account_set(&one, 0);
    weir__budget_fini(&b);
}

/* Longer than is kept of a name. */
#define LONG_NAME "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static void an_address_has_so_many_places(void **state)
{
    static const char *const rows[][2] = {{"10.0.0.1:5", "10.0.0.1:6"},
                                          {"[2001:db8:1:2:3::1]:5", "[2001:db8:1:2:4::9]:6"},
                                          {"[2001:db8::1]:5", "[2001:db8:0:0:1::]:6"},
                                          {"[fe80::1%eth0]:5", "[fe80::2%eth0]:6"},
                                          {"[::ffff:10.0.0.1]:5", "10.0.0.1:6"},
                                          {LONG_NAME ":5", LONG_NAME "y:6"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene *s = begin(&(struct weir__budget_limits){.per_address = 2});
        s->count = 5;
        s->peers[0] = "10.0.0.9:1";
        s->peers[1] = s->peers[2] = rows[i][0];
        s->peers[3] = "[::ffff:10.0.0.2]:1";
        s->peers[4] = rows[i][1];
        run(s, &s->enter);
        await_evicted(s, 1);
        assert_int_equal(weir__budget_strangers(&s->budget), 4);
        assert_int_equal(atomic_load(&s->budget.evicted), 1);
        end(s);
    }
}

#define X62 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

/* Up to the last character that is kept. */
static void long_names_are_not_taken_for_one_another(void **state)
{
    static const char *const peers[] = {X62 ":5", X62 "a:5", X62 "b:5", X62 "ca:5", X62 "cb:5"};
    struct scene *s = begin(&(struct weir__budget_limits){.per_address = 1});

    (void)state;
    s->count = 5;
    memcpy(s->peers, peers, sizeof peers);
    run(s, &s->enter);
    await_evicted(s, 3);
    assert_int_equal(weir__budget_strangers(&s->budget), 4);
    end(s);
}

/* Of its first stay nothing is left: not who came behind it, nor what it held when it had to go. */
static void who_comes_again_is_new(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.bytes = 1000, .stranger_bytes = 100});

    (void)state;
    s->count = 2;
    s->peers[0] = s->peers[1] = "10.0.0.1:5";
    run(s, &s->enter);
    assert_true(weir__account_grow(&s->guests[0].account, 50));
    assert_true(weir__budget_make_room(&s->budget));
    await_evicted(s, 0);
    assert_int_equal(atomic_load(&s->budget.leaving), 50);
    weir__account_set(&s->guests[0].account, 0);
    run(s, &s->leave);
    assert_int_equal(atomic_load(&s->budget.leaving), 0);
    run(s, &s->enter);
    run(s, &s->leave);
    assert_int_equal(atomic_load(&s->budget.leaving), 0);
    s->count = 1;
    run(s, &s->enter);
    assert_true(weir__budget_make_room(&s->budget));
    assert_false(weir__budget_make_room(&s->budget));
    end(s);
}

/* At one address they go in the order in which they came, one for each that is too many. */
static void the_oldest_of_an_address_goes_first(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.per_address = 2});

    (void)state;
    s->count = GUESTS;
    for (unsigned i = 0; i < GUESTS; i++) s->peers[i] = "10.0.0.1:5";
    run(s, &s->enter);
    for (unsigned i = 0; i < GUESTS - 2; i++) await_evicted(s, i);
    assert_int_equal(weir__budget_strangers(&s->budget), 2);
    assert_int_equal(atomic_load(&s->budget.evicted), GUESTS - 2);
    end(s);
}

/* Each byte of a /64 makes it another. */
static void networks_are_not_taken_for_one_another(void **state)
{
    static const char *const peers[GUESTS] = {
        "[1122:3344:5566:7788::1]:5", "[ff22:3344:5566:7788::1]:5", "[11ff:3344:5566:7788::1]:5",
        "[1122:ff44:5566:7788::1]:5", "[1122:33ff:5566:7788::1]:5", "[1122:3344:ff66:7788::1]:5",
        "[1122:3344:55ff:7788::1]:5", "[1122:3344:5566:ff88::1]:5", "[1122:3344:5566:77ff::1]:5"};
    struct scene *s = begin(&(struct weir__budget_limits){.per_address = 1});

    (void)state;
    s->count = GUESTS;
    memcpy(s->peers, peers, sizeof peers);
    run(s, &s->enter);
    assert_int_equal(weir__budget_strangers(&s->budget), GUESTS);
    end(s);
}

/* Nor are those of IPv4 that come by IPv6, which has them all in one network. */
static void mapped_addresses_are_not_taken_for_one_another(void **state)
{
    static const char *const peers[] = {"[::ffff:10.0.0.1]:5", "[::ffff:10.0.0.2]:5", "[::1]:5"};
    struct scene *s = begin(&(struct weir__budget_limits){.per_address = 1});

    (void)state;
    s->count = 3;
    memcpy(s->peers, peers, sizeof peers);
    run(s, &s->enter);
    assert_int_equal(weir__budget_strangers(&s->budget), 3);
    end(s);
}

static struct guest *many[2];

static void enter_many(void *arg)
{
    struct scene *s = arg;
    char peer[32];

    for (unsigned twice = 0; twice < 2; twice++)
        for (unsigned i = 0; i < MANY; i++) {
            struct guest *g = &many[twice][i];
            g->account = (struct weir__account){.budget = &s->budget, .stranger = true};
            snprintf(peer, sizeof peer, "10.0.%u.%u:5", i / 256, i % 256);
            weir__newcomer_enter(&g->as, &g->account, s->loop, peer, on_evict, g);
        }
    atomic_store(&s->done, true);
}

static void leave_many(void *arg)
{
    struct scene *s = arg;

    for (unsigned i = 0; i < 2 * MANY; i++)
        weir__newcomer_leave(&many[i / MANY][i % MANY].as, &s->budget);
    atomic_store(&s->done, true);
}

/* More addresses than there are heads of lists, each twice: it is found again, and its first goes. */
static void every_address_is_found_again(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.per_address = 1});
    struct weir__post post;

    (void)state;
    for (int i = 0; i < 2; i++) assert_non_null(many[i] = calloc(MANY, sizeof *many[i]));
    weir__post_init(&post, enter_many, s);
    run(s, &post);
    assert_int_equal(weir__budget_strangers(&s->budget), MANY);
    assert_int_equal(atomic_load(&s->budget.evicted), MANY);
    weir__post_init(&post, leave_many, s);
    run(s, &post);
    end(s);
    for (int i = 0; i < 2; i++) free(many[i]);
}

/* Whoever leaves in the same turn in which it was told to go is not called any more. */
static void who_has_left_is_not_called(void **state)
{
    struct scene *s = begin(&(struct weir__budget_limits){.per_address = 1});
    struct weir__post post;

    (void)state;
    s->count = 2;
    s->peers[0] = s->peers[1] = "10.0.0.1:5";
    weir__post_init(&post, enter_and_leave, s);
    run(s, &post);
    assert_int_equal(atomic_load(&s->budget.evicted), 1);
    run(s, &s->leave); /* in a later turn */
    assert_int_equal(atomic_load(&s->guests[0].evicted), 0);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_one_is_empty),
        cmocka_unit_test(accounts_share_one_sum),
        cmocka_unit_test(a_64th_is_not_for_those_who_ask),
        cmocka_unit_test(strangers_have_a_share),
        cmocka_unit_test(the_oldest_stranger_goes_first),
        cmocka_unit_test(strangers_go_until_there_is_room),
        cmocka_unit_test(strangers_go_for_what_is_there),
        cmocka_unit_test(a_small_budget_is_not_all_for_strangers),
        cmocka_unit_test(a_budget_is_tight_above_its_half),
        cmocka_unit_test(an_address_has_so_many_places),
        cmocka_unit_test(the_oldest_of_an_address_goes_first),
        cmocka_unit_test(networks_are_not_taken_for_one_another),
        cmocka_unit_test(mapped_addresses_are_not_taken_for_one_another),
        cmocka_unit_test(every_address_is_found_again),
        cmocka_unit_test(who_has_left_is_not_called),
        cmocka_unit_test(long_names_are_not_taken_for_one_another),
        cmocka_unit_test(who_comes_again_is_new),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
