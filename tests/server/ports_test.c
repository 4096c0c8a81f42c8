/* ports_test.c - who asks for it with its link for tokens is told where HTTP is spoken. */
#include "server/links.h"

#define WISH "weir:administration"

static const char *http, *https; /* where the server listens; NULL: it does not */

const char *__wrap_weir__server_http(const struct weir__server *s);
const char *__wrap_weir__server_https(const struct weir__server *s);

const char *__wrap_weir__server_http(const struct weir__server *s)
{
    (void)s;
    return http;
}

const char *__wrap_weir__server_https(const struct weir__server *s)
{
    (void)s;
    return https;
}

/* -1: nothing is told of it. */
static int64_t told(struct scene *s, const char *name)
{
    struct weir__amqp_value v;

    if (!weir__amqp_map_find(&s->properties, name, &v)) return -1;
    assert_int_equal(v.type, WEIR__AMQP_USHORT);
    return (int64_t)v.u;
}

static void ask(struct scene *s, const char *address, const char *wish)
{
    struct weir__amqp_terms terms = {.desired_capabilities = symbol(wish)};
    struct weir__amqp_link *link = attach(s, WEIR__AMQP_RECEIVER, "r", address, NULL, terms);

    assert_int_equal(s->detached, 0);
    weir__amqp_detach(link, NULL);
    talk(s);
}

static void the_ports_of_http_are_told(void **state)
{
    static const struct {
        const char *http, *https;
        int64_t ports[2];
    } rows[] = {
        {"127.0.0.1:8080", NULL, {8080, 0}},
        {NULL, "[::1]:65535", {0, 65535}},
        {"0.0.0.0:1", "[fe80::1]:443", {1, 443}},
        {NULL, NULL, {0, 0}},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        http = rows[i].http;
        https = rows[i].https;
        ask(s, "$cbs", WISH);
        assert_int_equal(s->properties.type, WEIR__AMQP_MAP);
        assert_int_equal(s->properties.count, 4);
        assert_int_equal(told(s, "weir:http"), rows[i].ports[0]);
        assert_int_equal(told(s, "weir:https"), rows[i].ports[1]);
    }
}

static void nobody_else_is_told(void **state)
{
    struct scene *s = *state;

    http = https = "127.0.0.1:8080";
    ask(s, "$cbs", "x");
    assert_int_equal(s->properties.type, WEIR__AMQP_NULL);
    ask(s, "$management", WISH);
    assert_int_equal(s->properties.type, WEIR__AMQP_NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(the_ports_of_http_are_told),
        TEST(nobody_else_is_told),
    };

    return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
