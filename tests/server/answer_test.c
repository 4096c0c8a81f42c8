/* answer_test.c - how failures are told over HTTP: the status, what is said, and whether to come
 * again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/web.h"

#define DETAIL "<what> it was & why"

struct scene {
    struct weir__server server;
    struct weir__http_request request;
    struct weir__visit visit;
    unsigned lines; /* that were logged */
};

static void count_line(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)level, (void)room, (void)line;
    ++*(unsigned *)user;
}

static struct scene *set_scene(const char *path)
{
    struct scene *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->server.logger = (struct weir__logger){.fn = count_line, .user = &s->lines};
    s->request.path = weir__bytes_of(path, strlen(path));
    s->request.method = WEIR__HTTP_POST;
    s->visit.server = &s->server;
    s->visit.request = &s->request;
    weir__buf_init(&s->visit.answer.body, WEIR__WEB_ANSWER_MAX);
    return s;
}

static void clear_scene(struct scene *s)
{
    weir__buf_fini(&s->visit.answer.body);
    free(s);
}

static bool says(const struct scene *s, const char *text)
{
    char body[2 * WEIR_ERROR_TEXT_BYTES];

    snprintf(body, sizeof body, "%.*s", (int)s->visit.answer.body.len, s->visit.answer.body.at);
    return strstr(body, text) != NULL;
}

static void tell(struct scene *s, int code)
{
    struct weir_error why;

    weir__fail(&why, code, DETAIL);
    weir__answer_failure(&s->visit, &why);
}

/* A client that is told to come again knows when; no other is asked to. */
static void each_failure_has_its_status(void **state)
{
    static const struct {
        int code;
        unsigned status;
        bool retry, told, logged;
    } cases[] = {
        {WEIR_EINVAL, 400, false, true, false},   {WEIR_ENOTFOUND, 404, false, true, false},
        {WEIR_EDENIED, 403, false, true, false},  {WEIR_EEXIST, 409, false, true, false},
        {WEIR_ETOOBIG, 413, false, true, false},  {WEIR_EBUSY, 503, true, false, true},
        {WEIR_ENOMEM, 503, true, false, true},    {WEIR_ENOSPACE, 503, true, true, true},
        {WEIR_ECORRUPT, 500, false, false, true}, {WEIR_EIO, 500, false, false, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *s = set_scene("/eh1/messages");
        tell(s, cases[i].code);
        if (s->visit.answer.status != cases[i].status)
            fail_msg("%s: %u", weir_error_name(cases[i].code), s->visit.answer.status);
        assert_int_equal(s->visit.answer.retry, cases[i].retry);
        assert_int_equal(says(s, "&#60;what&#62; it was &#38; why"), cases[i].told);
        assert_int_equal(s->lines > 0, cases[i].logged);
        clear_scene(s);
    }
}

static void our_own_paths_answer_in_json(void **state)
{
    struct scene *s = set_scene("/$weir/hubs/x");

    (void)state;
    tell(s, WEIR_ENOTFOUND);
    assert_true(says(s, "{\"code\":404,\"detail\":\""));
    assert_true(says(s, DETAIL));
    assert_string_equal(s->visit.answer.type, "application/json");
    clear_scene(s);
}

/* One that only begins alike is not ours, though what is behind it in the buffer would make it so. */
static void other_paths_answer_in_xml(void **state)
{
    struct scene *s = set_scene("/$weirdo/hubs/x");

    (void)state;
    tell(s, WEIR_ENOTFOUND);
    assert_true(says(s, "<Error><Code>404</Code>"));
    s->request.path = weir__bytes_of("/$weir/hubs", 6);
    tell(s, WEIR_ENOTFOUND);
    assert_true(says(s, "<Error><Code>404</Code>"));
    s->request.path = weir__bytes_of("/$weir/hubs", 7);
    tell(s, WEIR_ENOTFOUND);
    assert_true(says(s, "{\"code\":404"));
    clear_scene(s);
}

/* What would break out of a string, or the page, does not. */
static void texts_are_quoted(void **state)
{
    struct scene *s = set_scene("/$weir/hubs/x");

    (void)state;
    weir__answer_error(&s->visit, 400, "a \"b\" \\ \x1b \n \xc2\x9b");
    assert_true(says(s, "a \\\"b\\\" \\\\ ? ? ??"));
    clear_scene(s);
}

/* Half an answer is none. */
static void an_error_replaces_what_was_said(void **state)
{
    struct scene *s = set_scene("/eh1/messages");

    (void)state;
    weir__answer_add(&s->visit.answer, "half of the list");
    s->visit.answer.incomplete = true;
    tell(s, WEIR_EBUSY);
    assert_false(says(s, "half"));
    assert_false(s->visit.answer.incomplete);
    clear_scene(s);
}

static void an_empty_answer_has_nothing(void **state)
{
    struct scene *s = set_scene("/eh1/messages");

    (void)state;
    weir__answer_add(&s->visit.answer, "half of the list");
    weir__answer_json(&s->visit, 200);
    assert_int_equal(s->visit.answer.status, 200);
    assert_string_equal(s->visit.answer.type, "application/json");
    weir__answer_empty(&s->visit, 201);
    assert_int_equal(s->visit.answer.status, 201);
    assert_int_equal(s->visit.answer.body.len, 0);
    assert_null(s->visit.answer.type);
    clear_scene(s);
}

/* Text by text; what is too long for the rest is left out whole, and nothing at all always fits. */
static void an_answer_has_a_limit(void **state)
{
    struct scene *s = set_scene("/eh1/messages");
    struct weir__answer *a = &s->visit.answer;

    (void)state;
    weir__buf_init(&a->body, 16);
    weir__answer_add(a, "%s", "");
    weir__answer_add(a, "%d", 1234567);
    weir__answer_add(a, "%s", "89abcdef");
    assert_false(a->incomplete);
    assert_int_equal(a->body.len, 15);
    weir__answer_add(a, "%s", "");
    assert_false(a->incomplete);
    weir__answer_add(a, "x");
    assert_true(a->incomplete);
    assert_int_equal(a->body.len, 15);
    assert_memory_equal(a->body.at, "123456789abcdef", 15);
    a->incomplete = false;
    a->body.len = 14;
    weir__answer_add(a, "xy");
    assert_true(a->incomplete);
    assert_memory_equal(a->body.at, "123456789abcde", 14);
    weir__answer_add(a, "z"); /* it stays so, whatever else fits */
    assert_true(a->incomplete);
    clear_scene(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failure_has_its_status),
        cmocka_unit_test(our_own_paths_answer_in_json),
        cmocka_unit_test(other_paths_answer_in_xml),
        cmocka_unit_test(texts_are_quoted),
        cmocka_unit_test(an_error_replaces_what_was_said),
        cmocka_unit_test(an_empty_answer_has_nothing),
        cmocka_unit_test(an_answer_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
