#include "server/claims.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/steps.h"
#include "server/server.h"

#define NOW 1000

static struct weir__claim claim_of(const char *path, unsigned rights, int64_t expires_s)
{
    struct weir__claim c = {.rights = rights,
                            .expires_s = expires_s,
                            .basis = {.ground = WEIR__GROUND_ISSUER}};

    snprintf(c.path.text, sizeof c.path.text, "%s", path);
    return c;
}

static int add(struct weir__claims *c, const char *path, unsigned rights, int64_t expires_s)
{
    struct weir__claim claim = claim_of(path, rights, expires_s);

    return weir__claims_add(c, &claim, NOW, NULL);
}

static int64_t until(const struct weir__claims *c, const char *path, unsigned rights, int64_t now_s)
{
    struct weir__claim claim = claim_of(path, rights, 0);

    return weir__claims_until(c, &claim.path, rights, now_s);
}

static void covers_what_is_below(void **state)
{
    struct weir__claims c = {0};

    (void)state;
    assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, NOW), 0);
    assert_int_equal(add(&c, "eh1/Partitions/1", WEIR__RIGHT_SEND, 2000), 0);
    assert_int_equal(until(&c, "eh1/partitions/1", WEIR__RIGHT_SEND, NOW), 2000);
    assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, NOW), 0);
    assert_int_equal(until(&c, "eh1/Partitions/12", WEIR__RIGHT_SEND, NOW), 0);
    assert_int_equal(until(&c, "eh1/Partitions/1", WEIR__RIGHT_LISTEN, NOW), 0);
    assert_int_equal(add(&c, "", WEIR__RIGHTS_ALL, 1500), 0);
    assert_int_equal(until(&c, "eh2", WEIR__RIGHT_LISTEN, NOW), 1500);
    assert_int_equal(until(&c, "eh1/Partitions/1", WEIR__RIGHT_SEND, NOW), 2000);
    weir__claims_fini(&c);
}

static void ends_and_is_renewed(void **state)
{
    struct weir__claims c = {0};

    (void)state;
    assert_int_equal(add(&c, "eh1", WEIR__RIGHT_SEND, 1100), 0);
    assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, 1099), 1100);
    assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, 1100), 0);
    assert_int_equal(add(&c, "EH1", WEIR__RIGHT_SEND, 1200), 0);
    assert_int_equal(c.count, 1);
    assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, 1100), 1200);
    weir__claims_fini(&c);
}

/* What is left is what is asked for: eh2's right goes, eh3's becomes another. */
static unsigned worth(const struct weir__claim *claim, void *user)
{
    ++*(int *)user;
    assert_int_equal(claim->expires_s, 2000);
    assert_int_equal(claim->rights, WEIR__RIGHT_SEND);
    assert_int_equal(claim->basis.ground, WEIR__GROUND_ISSUER);
    if (strcmp(claim->path.text, "eh2") == 0) return 0;
    return strcmp(claim->path.text, "eh3") == 0 ? WEIR__RIGHT_LISTEN : claim->rights;
}

static void is_reviewed(void **state)
{
    struct weir__claims c = {0};
    int asked = 0;

    (void)state;
    assert_int_equal(add(&c, "eh2", WEIR__RIGHT_SEND, 2000), 0);
    assert_int_equal(add(&c, "eh1", WEIR__RIGHT_SEND, 2000), 0);
    assert_int_equal(add(&c, "eh3", WEIR__RIGHT_SEND, 2000), 0);
    weir__claims_review(&c);
    while (weir__claims_review_next(&c, worth, &asked)) continue;
    assert_int_equal(asked, 3);
    assert_int_equal(c.count, 2);
    assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, NOW), 2000);
    assert_int_equal(until(&c, "eh2", WEIR__RIGHTS_ALL, NOW), 0);
    assert_int_equal(until(&c, "eh3", WEIR__RIGHT_SEND, NOW), 0);
    assert_int_equal(until(&c, "eh3", WEIR__RIGHT_LISTEN, NOW), 2000);
    weir__claims_fini(&c);
}

/* Counts who was asked; those of eh1 are worth nothing. */
static unsigned count(const struct weir__claim *claim, void *user)
{
    unsigned *asked = user;

    asked[strtoul(claim->path.text + 4, NULL, 10)]++;
    return claim->path.text[2] == '1' ? 0 : claim->rights;
}

static void add_some(struct weir__claims *c, char hub, int from, int to, int64_t now_s)
{
    struct weir__claim claim;
    char path[32];

    for (int i = from; i < to; i++) {
        snprintf(path, sizeof path, "eh%c/%d", hub, i);
        claim = claim_of(path, WEIR__RIGHT_SEND, hub == '2' ? NOW + 1 : 2000);
        assert_int_equal(weir__claims_add(c, &claim, now_s, NULL), 0);
    }
}

/* Whatever comes before and behind it meanwhile, and whatever goes to make room. */
static void is_reviewed_bit_by_bit(void **state)
{
    unsigned asked[64] = {0};
    struct weir__claims c = {0};

    (void)state;
    add_some(&c, '1', 0, 10, NOW);
    add_some(&c, '2', 10, 15, NOW);
    add_some(&c, '3', 15, 30, NOW);
    weir__claims_review(&c);
    for (int i = 0; i < 20; i++) assert_true(weir__claims_review_next(&c, count, asked));
    add_some(&c, '0', 40, 50, NOW + 1);
    add_some(&c, '4', 50, 60, NOW + 1); /* which needs the room of eh2 */
    while (weir__claims_review_next(&c, count, asked)) continue;
    assert_int_equal(c.count, 15 + 10 + 10);
    for (int i = 0; i < 30; i++) assert_int_equal(asked[i], 1);
    for (int i = 30; i < 50; i++) assert_int_equal(asked[i], 0);
    for (int i = 50; i < 60; i++) assert_int_equal(asked[i], 1);
    assert_int_equal(until(&c, "eh1/3", WEIR__RIGHT_SEND, NOW), 0);
    assert_int_equal(until(&c, "eh3/20/x", WEIR__RIGHT_SEND, NOW), 2000);
    weir__claims_fini(&c);
}

/* A review begins again with the first, and one that has not begun leaves nobody out when the first
 * makes room for another. */
static void every_review_is_of_all(void **state)
{
    unsigned asked[64] = {0};
    struct weir__claims c = {0};

    (void)state;
    add_some(&c, '2', 0, 1, NOW);
    add_some(&c, '3', 1, 4, NOW);
    for (unsigned times = 1; times <= 2; times++) {
        weir__claims_review(&c);
        while (weir__claims_review_next(&c, count, asked)) continue;
        for (int i = 0; i < 4; i++) assert_int_equal(asked[i], times);
    }
    weir__claims_review(&c);
    add_some(&c, '4', 4, 5, NOW + 1); /* in the room of the first */
    while (weir__claims_review_next(&c, count, asked)) continue;
    assert_int_equal(c.count, 4);
    assert_int_equal(asked[0], 2);
    for (int i = 1; i < 4; i++) assert_int_equal(asked[i], 3);
    assert_int_equal(asked[4], 1);
    weir__claims_fini(&c);
}

static void none_are_left_at_the_end(void **state)
{
    struct weir__claims c = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(add(&c, "eh1", WEIR__RIGHT_SEND, 2000), 0);
        assert_int_equal(c.count, 1);
        weir__claims_fini(&c);
        assert_int_equal(until(&c, "eh1", WEIR__RIGHT_SEND, NOW), 0);
    }
}

/* However many there are. */
static void few_are_looked_at(void **state)
{
    struct weir__claims c = {0};
    uint64_t before;

    (void)state;
    add_some(&c, '1', 0, WEIR__SERVER_CLAIMS_MAX - 1, NOW);
    assert_int_equal(add(&c, "eh1/ConsumerGroups/g", WEIR__RIGHT_SEND, 3000), 0);
    before = WEIR__STEPS();
    assert_int_equal(until(&c, "EH1/consumergroups/G/Partitions/1", WEIR__RIGHT_SEND, NOW), 3000);
    assert_true(WEIR__STEPS() - before <= 6 * 12); /* beginnings, halvings */
    assert_int_equal(until(&c, "eh1/77/Partitions", WEIR__RIGHT_SEND, NOW), 2000);
    assert_int_equal(until(&c, "eh1/7x", WEIR__RIGHT_SEND, NOW), 0);
    weir__claims_fini(&c);
}

static void not_too_many(void **state)
{
    struct weir__claim one = claim_of("one more", WEIR__RIGHT_SEND, 2000);
    struct weir__claims c = {0};
    struct weir_error err;
    char path[32];

    (void)state;
    for (int i = 0; i < WEIR__SERVER_CLAIMS_MAX; i++) {
        snprintf(path, sizeof path, "eh%d", i);
        assert_int_equal(add(&c, path, WEIR__RIGHT_SEND, i == 7 ? NOW : 2000), 0);
    }
    assert_int_equal(add(&c, "more", WEIR__RIGHT_SEND, 2000), 0); /* in the place of eh7 */
    assert_int_equal(weir__claims_add(&c, &one, NOW, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "A connection has tokens for at most 2048 audiences.");
    assert_int_equal(until(&c, "eh7", WEIR__RIGHT_SEND, NOW - 1), 0);
    assert_int_equal(until(&c, "eh8", WEIR__RIGHT_SEND, NOW), 2000);
    assert_int_equal(add(&c, "eh3", WEIR__RIGHT_SEND, 3000), 0);
    assert_int_equal(until(&c, "eh3", WEIR__RIGHT_SEND, NOW), 3000);
    weir__claims_fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(covers_what_is_below),
        cmocka_unit_test(ends_and_is_renewed),
        cmocka_unit_test(is_reviewed),
        cmocka_unit_test(is_reviewed_bit_by_bit),
        cmocka_unit_test(few_are_looked_at),
        cmocka_unit_test(not_too_many),
        cmocka_unit_test(every_review_is_of_all),
        cmocka_unit_test(none_are_left_at_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
