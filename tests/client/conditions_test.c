/* What the other side's conditions mean: the code that a caller gets, whole texts, and how long it
 * takes until the next try. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "client/wire.h"

static struct weir_error err;

static struct weir__bytes bytes(const char *text)
{
    return weir__bytes_of(text, strlen(text));
}

/* The code elsewhere, the code for a batch, which may have been stored, and what is tried next. */
static void conditions_have_meanings(void **state)
{
    static const struct {
        const char *condition;
        int code, batch;
        enum weir__wire_cure cure;
    } cases[] = {
        {"amqp:internal-error", WEIR_EUNREACHABLE, WEIR_EUNKNOWN, WEIR__WIRE_AGAIN},
        {"com.microsoft:server-busy", WEIR_EBUSY, WEIR_EBUSY, WEIR__WIRE_BUSY},
        {"com.microsoft:timeout", WEIR_ETIMEDOUT, WEIR_EUNKNOWN, WEIR__WIRE_AGAIN},
        {"com.microsoft:container-close", WEIR_EUNREACHABLE, WEIR_EUNKNOWN, WEIR__WIRE_BUSY},
        {"amqp:unauthorized-access", WEIR_EDENIED, WEIR_EDENIED, WEIR__WIRE_CLAIM},
        {"amqp:link:detach-forced", WEIR_EUNREACHABLE, WEIR_EUNKNOWN, WEIR__WIRE_AGAIN},
        {"amqp:link:transfer-limit-exceeded", WEIR_EBUSY, WEIR_EBUSY, WEIR__WIRE_AGAIN},
        {"amqp:not-found", WEIR_ENOTFOUND, WEIR_ENOTFOUND, WEIR__WIRE_FATAL},
        {"amqp:link:stolen", WEIR_ESTOLEN, WEIR_ESTOLEN, WEIR__WIRE_FATAL},
        {"amqp:resource-limit-exceeded", WEIR_ELIMIT, WEIR_ELIMIT, WEIR__WIRE_FATAL},
        {"amqp:link:message-size-exceeded", WEIR_ETOOBIG, WEIR_ETOOBIG, WEIR__WIRE_FATAL},
        {"com.microsoft:argument-out-of-range", WEIR_ENOTFOUND, WEIR_ENOTFOUND, WEIR__WIRE_FATAL},
        {"com.microsoft:out-of-order-sequence", WEIR_ESEQUENCE, WEIR_ESEQUENCE, WEIR__WIRE_FATAL},
        {"com.microsoft:producer-epoch-stolen", WEIR_EFENCED, WEIR_EFENCED, WEIR__WIRE_FATAL},
        {"amqp:not-foun", WEIR_EUNREACHABLE, WEIR_EUNKNOWN, WEIR__WIRE_AGAIN},
        {"amqp:not-found!", WEIR_EUNREACHABLE, WEIR_EUNKNOWN, WEIR__WIRE_AGAIN},
        {"amqp:not-founD", WEIR_EUNREACHABLE, WEIR_EUNKNOWN, WEIR__WIRE_AGAIN},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__amqp_settlement s = {.outcome = WEIR__AMQP_REJECTED,
                                          .error = {.condition = bytes(cases[i].condition)}};
        assert_int_equal(weir__wire_error(&s.error, &err), cases[i].cure);
        assert_int_equal(err.code, cases[i].code);
        assert_string_equal(err.text, cases[i].condition);
        assert_int_equal(weir__wire_rejection(&s, &err), cases[i].cure);
        assert_int_equal(err.code, cases[i].batch);
        assert_string_equal(err.text, cases[i].condition);
    }
}

/* Neither accepted nor rejected: what is told beside it does not count. */
static void outcomes_have_meanings(void **state)
{
    struct weir__amqp_settlement s = {.outcome = WEIR__AMQP_RELEASED,
                                      .error = {.condition = bytes("amqp:not-found")}};

    (void)state;
    assert_int_equal(weir__wire_rejection(&s, &err), WEIR__WIRE_AGAIN);
    assert_int_equal(err.code, WEIR_EBUSY);
    assert_string_equal(err.text, "the batch was given back untouched");
    s.outcome = WEIR__AMQP_MODIFIED;
    assert_int_equal(weir__wire_rejection(&s, &err), WEIR__WIRE_AGAIN);
    assert_int_equal(err.code, WEIR_EBUSY);
    s.outcome = WEIR__AMQP_KINDS;
    assert_int_equal(weir__wire_rejection(&s, &err), WEIR__WIRE_AGAIN);
    assert_int_equal(err.code, WEIR_EUNKNOWN);
    assert_string_equal(err.text, "the batch was settled without an outcome");
}

/* A status counts where no condition is told. */
static void statuses_have_meanings(void **state)
{
    static const struct {
        int64_t status;
        int code;
        enum weir__wire_cure cure;
    } cases[] = {
        {400, WEIR_EINVAL, WEIR__WIRE_FATAL},       {401, WEIR_EDENIED, WEIR__WIRE_CLAIM},
        {403, WEIR_EDENIED, WEIR__WIRE_CLAIM},      {404, WEIR_ENOTFOUND, WEIR__WIRE_FATAL},
        {408, WEIR_ETIMEDOUT, WEIR__WIRE_AGAIN},    {410, WEIR_ESTOLEN, WEIR__WIRE_FATAL},
        {500, WEIR_EUNREACHABLE, WEIR__WIRE_AGAIN}, {501, WEIR_ENOTSUP, WEIR__WIRE_FATAL},
        {503, WEIR_EBUSY, WEIR__WIRE_BUSY},
    };
    struct weir__amqp_error none = {0}, busy = {.condition = bytes("com.microsoft:server-busy")};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(weir__wire_status(cases[i].status, &none, &err), cases[i].cure);
        assert_int_equal(err.code, cases[i].code);
        assert_int_equal(weir__wire_status(cases[i].status, &busy, &err), WEIR__WIRE_BUSY);
        assert_int_equal(err.code, WEIR_EBUSY);
    }
    weir__wire_status(404, &none, &err);
    assert_string_equal(err.text, "amqp:not-found");
}

/* What is told is "text (condition)", without the service's advertisement, and not endless. */
static void texts_are_told(void **state)
{
    static const struct {
        const char *condition, *text, *says;
    } cases[] = {
        {"", "", "closed by the other side, which gave no reason"},
        {"", "text", "closed by the other side, which gave no reason"},
        {"amqp:not-found", "", "amqp:not-found"},
        {"amqp:not-found", "x", "x (amqp:not-found)"},
        {"amqp:not-found", "Gone. To know more visit https://aka.ms/x and more.",
         "Gone. (amqp:not-found)"},
        {"amqp:not-found", "Gone. To know more visit http://aka.ms/x.",
         "Gone. To know more visit http://aka.ms/x. (amqp:not-found)"},
        {"amqp:not-found", " To know more visit https://", "amqp:not-found"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__amqp_error e = {bytes(cases[i].condition), bytes(cases[i].text)};
        weir__wire_error(&e, &err);
        assert_string_equal(err.text, cases[i].says);
    }
}

static void long_texts_are_cut(void **state)
{
    char text[401], condition[65], want[480];
    struct weir__amqp_error e;

    (void)state;
    memset(text, 't', sizeof text);
    memset(condition, 'c', sizeof condition);
    snprintf(want, sizeof want, "%.400s (%.64s)", text, condition);
    for (size_t more = 0; more < 2; more++) {
        e = (struct weir__amqp_error){weir__bytes_of(condition, 64 + more),
                                      weir__bytes_of(text, 400 + more)};
        weir__wire_error(&e, &err);
        assert_string_equal(err.text, want);
    }
    e = (struct weir__amqp_error){weir__bytes_of(condition, 63), weir__bytes_of(text, 399)};
    snprintf(want, sizeof want, "%.399s (%.63s)", text, condition);
    weir__wire_error(&e, &err);
    assert_string_equal(err.text, want);
}

/* Twice as long each time, up to a limit, and by chance between half of it and all. */
static void pauses_grow(void **state)
{
    static const struct {
        unsigned attempts;
        int64_t most;
    } cases[] = {{0, 100},  {1, 100},  {2, 200},  {3, 400},    {4, 800},
                 {6, 3200}, {7, 5000}, {8, 5000}, {100, 5000}, {UINT_MAX, 5000}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t least = INT64_MAX, longest = 0;
        for (int n = 0; n < 2000; n++) {
            int64_t ms = weir__wire_delay_ms(cases[i].attempts);
            assert_in_range(ms, cases[i].most / 2, cases[i].most);
            least = ms < least ? ms : least;
            longest = ms > longest ? ms : longest;
        }
        assert_true(least < cases[i].most * 6 / 10); /* not always the same */
        assert_true(longest > cases[i].most * 9 / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conditions_have_meanings), cmocka_unit_test(outcomes_have_meanings),
        cmocka_unit_test(statuses_have_meanings),   cmocka_unit_test(texts_are_told),
        cmocka_unit_test(long_texts_are_cut),       cmocka_unit_test(pauses_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
