#include "server/errors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct weir__refusal refusal(int code, const char *text)
{
    struct weir__refusal r = {.why.code = code};

    snprintf(r.why.text, sizeof r.why.text, "%s", text);
    return r;
}

static void assert_says(const struct weir__refusal *r, const char *condition, const char *text)
{
    struct weir__amqp_error e = weir__errors_say(r);

    assert_int_equal(e.condition.len, strlen(condition));
    assert_memory_equal(e.condition.at, condition, e.condition.len);
    assert_int_equal(e.description.len, strlen(text));
    assert_memory_equal(e.description.at, text, e.description.len);
}

static void a_code_has_a_condition_and_a_status(void **state)
{
    struct weir__refusal r = refusal(WEIR_ENOTFOUND, "why");

    (void)state;
    assert_says(&r, "amqp:not-found", "why");
    r.condition = "com.microsoft:entity-disabled";
    assert_says(&r, "com.microsoft:entity-disabled", "why");
    assert_int_equal(weir__errors_status(WEIR_ENOTFOUND), 404);
    assert_int_equal(weir__errors_status(WEIR_EDENIED), 401);
    assert_int_equal(weir__errors_status(WEIR_ECLOSED), 503);
    assert_int_equal(weir__errors_status(WEIR_EIO), 500);
}

/* Whatever is wrong with the disk is nobody's business. */
static void our_own_failures_are_not_told(void **state)
{
    struct weir__refusal r = refusal(WEIR_EIO, "/data/hub-1: input/output error");

    (void)state;
    assert_says(&r, "amqp:internal-error",
                "The service was unable to process the request; please retry the operation.");
}

static void what_is_said_is_utf8(void **state)
{
    struct weir__refusal r = refusal(WEIR_EINVAL, "gr\xc3\xbc\xc3\x9f"
                                                  "e");
    static const char *const cut[] = {"x\xc3", "x\xe6\x97", "x\xf0\x9f\x98", "x\xff...", "x\x80"};

    (void)state;
    assert_says(&r, "com.microsoft:argument-error", r.why.text);
    for (size_t i = 0; i < sizeof cut / sizeof cut[0]; i++) {
        r = refusal(WEIR_EINVAL, cut[i]);
        assert_says(&r, "com.microsoft:argument-error", "x");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_has_a_condition_and_a_status),
        cmocka_unit_test(our_own_failures_are_not_told),
        cmocka_unit_test(what_is_said_is_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
