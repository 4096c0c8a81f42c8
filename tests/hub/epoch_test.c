#include "hub/epoch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "support/dice.h"

#define HISTORIES 100000
#define STEPS_MAX 24
#define MEMBERS 9

/* ---- the texts ---- */

static struct weir__epoch_place place;
static struct weir__epoch_member *out[WEIR__EPOCH_SHARED_MAX];
static uint32_t out_count;
static struct weir_error err;

static int clear(void **state)
{
    (void)state;
    memset(&place, 0, sizeof place);
    memset(&err, 0, sizeof err);
    return 0;
}

static int come(struct weir__epoch_member *m)
{
    return weir__epoch_attach(&place, m, out, &out_count, &err);
}

static void equal_epoch_takes_over(void **state)
{
    struct weir__epoch_member first = {0, NULL}, second = {0, ""};

    (void)state;
    assert_int_equal(come(&first), 0);
    assert_int_equal(out_count, 0);
    assert_int_equal(come(&second), 0);
    assert_int_equal(out_count, 1);
    assert_ptr_equal(out[0], &first);
    assert_int_equal(weir__epoch_stolen(&first, &second, &err), WEIR_ESTOLEN);
    assert_string_equal(err.text,
                        "New receiver 'nil' with higher epoch of '0' is created hence current "
                        "receiver 'nil' with epoch '0' is getting disconnected. If you are "
                        "recreating the receiver, make sure a higher epoch is used.");
}

static void lower_epoch_is_refused_by_name(void **state)
{
    struct weir__epoch_member holder = {7, "old"}, low = {6, "new"};

    (void)state;
    assert_int_equal(come(&holder), 0);
    assert_int_equal(come(&low), WEIR_EEPOCH);
    assert_string_equal(
        err.text,
        "Receiver 'old' with a higher epoch '7' already exists. Receiver 'new' with epoch "
        "6 cannot be created. Make sure you are creating receiver with increasing epoch "
        "value to ensure connectivity, or ensure all old epoch receivers are closed or "
        "disconnected.");
    weir__epoch_detach(&place, &holder);
    assert_int_equal(come(&low), 0); /* a place does not remember */
}

static void without_epoch_is_refused_beside_one(void **state)
{
    struct weir__epoch_member holder = {3, "a"}, other = {WEIR__EPOCH_NONE, "b"};

    (void)state;
    assert_int_equal(come(&holder), 0);
    assert_int_equal(come(&other), WEIR_EEPOCH);
    assert_string_equal(
        err.text,
        "At least one receiver for the endpoint is created with epoch of '3', and so "
        "non-epoch receiver is not allowed. Either reconnect with a higher epoch, or make "
        "sure all epoch receivers are closed or disconnected.");
}

static void sixth_without_epoch_is_refused(void **state)
{
    struct weir__epoch_member five[] = {{WEIR__EPOCH_NONE, "a"},
                                        {WEIR__EPOCH_NONE, "b"},
                                        {WEIR__EPOCH_NONE, NULL},
                                        {WEIR__EPOCH_NONE, "d"},
                                        {WEIR__EPOCH_NONE, "e"}};
    struct weir__epoch_member sixth = {WEIR__EPOCH_NONE, "f"}, owner = {0, "g"};

    (void)state;
    for (int i = 0; i < 5; i++) assert_int_equal(come(&five[i]), 0);
    assert_int_equal(come(&sixth), WEIR_ELIMIT);
    assert_string_equal(
        err.text, "Exceeded the maximum number of allowed receivers per partition in a "
                  "consumer group which is 5. List of connected receivers - a, b, nil, d, e.");
    weir__epoch_detach(&place, &five[1]);
    assert_int_equal(come(&sixth), 0);
    assert_int_equal(come(&owner), 0);
    assert_int_equal(out_count, 5);
    weir__epoch_stolen(out[1], &owner, &err);
    assert_string_equal(err.text,
                        "New receiver 'g' with higher epoch of '0' is created hence current "
                        "receiver 'nil' with epoch '' is getting disconnected. If you are "
                        "recreating the receiver, make sure a higher epoch is used.");
}

static void longest_names_fit(void **state)
{
    char name[WEIR__RECEIVER_NAME_MAX + 1];
    struct weir__epoch_member six[6];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 6; i++) six[i] = (struct weir__epoch_member){WEIR__EPOCH_NONE, name};
    for (int i = 0; i < 5; i++) assert_int_equal(come(&six[i]), 0);
    assert_int_equal(come(&six[5]), WEIR_ELIMIT);
    assert_int_equal(err.text[strlen(err.text) - 1], '.');
    six[0].epoch = six[1].epoch = INT64_MAX;
    weir__epoch_stolen(&six[0], &six[1], &err);
    assert_int_equal(err.text[strlen(err.text) - 1], '.');
}

static void negative_epoch_is_refused(void **state)
{
    struct weir__epoch_member bad = {-2, "a"};

    (void)state;
    assert_int_equal(come(&bad), WEIR_EINVAL);
    assert_string_equal(err.text, "epoch -2 is negative");
    assert_int_equal(place.count, 0);
}

/* ---- the rules against a plain model: the sentences of the documentation, one by one ---- */

struct model {
    bool attached[MEMBERS];
    int64_t epoch[MEMBERS];
};

/* What must happen when `who` comes with its epoch: the code, and who is thrown out. */
static int model_attach(struct model *m, int who, bool thrown_out[MEMBERS])
{
    int64_t highest = WEIR__EPOCH_NONE;
    int without = 0;

    memset(thrown_out, 0, MEMBERS * sizeof *thrown_out);
    for (int i = 0; i < MEMBERS; i++) {
        if (!m->attached[i]) continue;
        if (m->epoch[i] == WEIR__EPOCH_NONE) without++;
        if (m->epoch[i] > highest) highest = m->epoch[i];
    }
    if (m->epoch[who] == WEIR__EPOCH_NONE) {
        if (highest >= 0) return WEIR_EEPOCH;
        if (without >= 5) return WEIR_ELIMIT;
    } else {
        if (m->epoch[who] < highest) return WEIR_EEPOCH;
        for (int i = 0; i < MEMBERS; i++) {
            thrown_out[i] = m->attached[i];
            m->attached[i] = false;
        }
    }
    m->attached[who] = true;
    return 0;
}

static void assert_same(const struct weir__epoch_place *p, const struct model *m,
                        const struct weir__epoch_member *members)
{
    uint32_t attached = 0;

    for (int i = 0; i < MEMBERS; i++) {
        bool there = false;
        for (uint32_t k = 0; k < p->count; k++) there |= p->member[k] == &members[i];
        assert_int_equal(there, m->attached[i]);
        attached += m->attached[i];
    }
    assert_int_equal(p->count, attached);
}

static void try_to_come(struct weir__epoch_place *p, struct model *m,
                        struct weir__epoch_member *members, int who)
{
    struct weir__epoch_member *pushed[WEIR__EPOCH_SHARED_MAX];
    bool thrown_out[MEMBERS];
    uint32_t pushed_count = 0, expected = 0;
    int rc = weir__epoch_attach(p, &members[who], pushed, &pushed_count, NULL);

    assert_int_equal(rc, model_attach(m, who, thrown_out));
    for (int i = 0; i < MEMBERS; i++) {
        bool told = false;
        for (uint32_t k = 0; k < pushed_count; k++) told |= pushed[k] == &members[i];
        assert_int_equal(told, thrown_out[i]);
        expected += thrown_out[i];
    }
    assert_int_equal(pushed_count, expected);
}

static void play_history(uint64_t seed)
{
    struct weir__epoch_member members[MEMBERS];
    struct weir__epoch_place p = {0};
    struct model m = {0};
    uint64_t dice = seed, shape = dice_roll(&dice, 3);
    uint64_t steps = 1 + dice_roll(&dice, STEPS_MAX);

    for (uint64_t s = 0; s < steps; s++) {
        int who = (int)dice_roll(&dice, MEMBERS);
        if (m.attached[who]) {
            weir__epoch_detach(&p, &members[who]);
            m.attached[who] = false;
        } else {
            /* Histories with mostly epochs, mostly none, and both alike. */
            bool with = dice_roll(&dice, 4) < 1 + shape;
            m.epoch[who] = with ? (int64_t)dice_roll(&dice, 4) : WEIR__EPOCH_NONE;
            members[who] = (struct weir__epoch_member){m.epoch[who], NULL};
            try_to_come(&p, &m, members, who);
        }
        assert_same(&p, &m, members);
    }
}

static void random_histories_agree_with_the_model(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < HISTORIES; i++) play_history(i * 7919 + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(equal_epoch_takes_over, clear),
        cmocka_unit_test_setup(lower_epoch_is_refused_by_name, clear),
        cmocka_unit_test_setup(without_epoch_is_refused_beside_one, clear),
        cmocka_unit_test_setup(sixth_without_epoch_is_refused, clear),
        cmocka_unit_test_setup(longest_names_fit, clear),
        cmocka_unit_test_setup(negative_epoch_is_refused, clear),
        cmocka_unit_test(random_histories_agree_with_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
