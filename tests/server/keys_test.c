/* keys_test.c - what is answered about access rules. http.sh tests who may ask. */
#include "server/question.h"

#define STRING(host, name, key, path)                                                              \
    "\"connection_string\":\"Endpoint=sb://" host ";SharedAccessKeyName=" name                     \
    ";SharedAccessKey=" key ";" path "UseDevelopmentEmulator=true;\"}"
#define SECRETS(first, second) "\"primary_key\":\"" first "\",\"secondary_key\":\"" second "\","
#define ONE "{\"name\":\"one\",\"rights\":[\"send\",\"listen\"]"
#define GIVEN "{\"rights\":[\"send\",\"listen\"],\"primary_key\":\"k1\",\"secondary_key\":\"k2\"}"
#define ALL                                                                                        \
    "{\"rights\":[\"send\",\"listen\",\"manage\"],\"primary_key\":\"k\",\"secondary_key\":\"l\"}"
#define RULE_ALL "{\"name\":\"all\",\"rights\":[\"send\",\"listen\",\"manage\"]"
#define BAD(code, detail, name)                                                                    \
    "{\"code\":" code ",\"detail\":\"" detail "\",\"error\":\"WEIR_" name "\"}\n"

static const char *amqp; /* where the server listens */

const char *__wrap_weir__server_amqp(const struct weir__server *s);

const char *__wrap_weir__server_amqp(const struct weir__server *s)
{
    (void)s;
    return amqp;
}

static void rules_are_made_and_agreed_with(void **state)
{
#define PUT weir__keys_put
    static const struct row rows[] = {
        {{.answer = PUT, "one", NULL, GIVEN, "h:80"},
         201,
         ONE "," SECRETS("k1", "k2") STRING("h", "one", "k1", "")},
        {{.answer = PUT, "one", NULL, GIVEN}, 200, ONE "}"},
        {{.answer = PUT, "one", NULL, GIVEN, .only_new = true},
         412,
         BAD("412", "access rule 'one' exists already", "EEXIST")},
        {{.answer = PUT, "one", NULL, "{\"rights\":[\"manage\"]}"},
         409,
         BAD("409", "access rule 'one' has the rights send, listen, not manage", "EEXIST")},
        {{.answer = PUT, "one", NULL, "{\"rights\":[\"send\",\"listen\"],\"primary_key\":\"k2\"}"},
         409,
         BAD("409", "access rule 'one' has another primary key", "EEXIST")},
        {{.answer = PUT,
          "one",
          NULL,
          "{\"rights\":[\"listen\",\"send\"],\"secondary_key\":\"k1\"}"},
         409,
         BAD("409", "access rule 'one' has another secondary key", "EEXIST")},
        {{.answer = PUT, "two", NULL, "{}"},
         400,
         BAD("400", "the body must have \\\"rights\\\": some of send, listen and manage",
             "EINVAL")},
        {{.answer = PUT, "two", NULL, "{\"rights\":[\"send\"],\"name\":\"two\"}"},
         400,
         BAD("400", "the body: there is no member 'name'", "EINVAL")},
        {{.answer = PUT, "a", "one", GIVEN, "[::1]:80", .of_hub = true},
         201,
         ONE "," SECRETS("k1", "k2") STRING("[::1]", "one", "k1", "EntityPath=a;")},
        {{.answer = PUT, "all", NULL, ALL},
         201,
         RULE_ALL "," SECRETS("k", "l") STRING("localhost", "all", "k", "")},
        {{.answer = PUT, "ALL", NULL, "{\"rights\":[\"listen\"]}"},
         409,
         BAD("409", "access rule 'all' has the rights send, listen, manage, not listen", "EEXIST")},
        {{.answer = PUT, "all", NULL, "{\"rights\":[\"manage\"],\"primary_key\":\"m\"}"},
         409,
         BAD("409", "access rule 'all' has another primary key", "EEXIST")},
        {{.answer = PUT, "all", NULL, "{\"rights\":[\"manage\"],\"secondary_key\":\"l\"}"},
         200,
         RULE_ALL "}"},
        {{.answer = weir__keys_list}, 200, "{\"keys\":[" ONE "}," RULE_ALL "}]}"},
        {{.answer = weir__keys_list, "a", .of_hub = true}, 200, "{\"keys\":[" ONE "}]}"},
        {{.answer = weir__keys_show, "All"}, 200, RULE_ALL "}"},
        {{.answer = weir__keys_show, "two"},
         404,
         BAD("404", "The access rule 'two' could not be found.", "ENOTFOUND")},
        {{.answer = weir__keys_show, "c", "one", .of_hub = true},
         404,
         BAD("404", "there is no hub 'c'", "ENOTFOUND")},
        {{.answer = weir__keys_list, "c", .of_hub = true},
         404,
         BAD("404", "there is no hub 'c'", "ENOTFOUND")},
    };
    struct scene *s = *state;

    assert_int_equal(world_create(&s->world, "a", 1), 0);
    EXPECT_ALL(s, rows);
#undef PUT
}

static void keys_are_rotated(void **state)
{
#define POST weir__keys_rotate
#define TOLD(first, second) ONE "," SECRETS(first, second) STRING("localhost", "one", first, "")
    static const struct row rows[] = {
        {{.answer = weir__keys_put, "one", NULL, GIVEN}, 201, TOLD("k1", "k2")},
        {{.answer = POST, "one", NULL, "{\"secondary_key\":\"k3\"}", .query = "rotate=secondary"},
         200,
         TOLD("k1", "k3")},
        {{.answer = POST, "one", NULL, "{\"primary_key\":\"k4\"}", .query = "rotate=primary"},
         200,
         TOLD("k4", "k3")},
        {{.answer = POST, "one", NULL, "{\"primary_key\":\"k5\"}", .query = "rotate"},
         200,
         TOLD("k5", "k3")},
        {{.answer = POST, "one", NULL, "{\"primary_key\":\"k6\"}", .query = "rotate=secondary"},
         400,
         BAD("400", "the body: there is no member 'primary_key'", "EINVAL")},
        {{.answer = POST, "one", .query = "rotate=both"},
         400,
         "{\"code\":400,\"detail\":\"POST here is ?rotate=primary, ?rotate=secondary or "
         "?rotate=next.\"}\n"},
        {{.answer = POST, "one", .query = "rotate=nexT"},
         400,
         "{\"code\":400,\"detail\":\"POST here is ?rotate=primary, ?rotate=secondary or "
         "?rotate=next.\"}\n"},
        {{.answer = POST, "one", .query = "rotates=next"},
         400,
         "{\"code\":400,\"detail\":\"POST here is ?rotate=primary, ?rotate=secondary or "
         "?rotate=next.\"}\n"},
        {{.answer = POST, "two", .query = "rotate=primary"},
         404,
         BAD("404", "there is no access rule 'two'", "ENOTFOUND")},
        {{.answer = POST, "two", .query = "rotate=next"},
         404,
         BAD("404", "The access rule 'two' could not be found.", "ENOTFOUND")},
    };
    struct scene *s = *state;
    const char *made;

    EXPECT_ALL(s, rows);
    assert_int_equal(ask(s, &(struct question){.answer = POST, "one", .query = "rotate=next"}),
                     200);
    made = strstr(s->text, "\"primary_key\":\"") + strlen("\"primary_key\":\"");
    assert_true(strcspn(made, "\"") > 40);
    assert_non_null(strstr(s->text, "\"secondary_key\":\"k5\""));
#undef POST
}

/* The host is the one that the client found us by, without its port. */
static void whom_to_connect_to(void **state)
{
    static char longest[256], longer[257], told[1024];
    const struct {
        const char *asked, *host;
    } rows[] = {
        {"h", "h"},
        {"h:5300", "h"},
        {"h:", "h"},
        {":80", "localhost"},
        {"", "localhost"},
        {"[::1]", "[::1]"},
        {"[::1]:80", "[::1]"},
        {"[fe80::a:1]:1", "[fe80::a:1]"},
        {longest, longest},
        {longer, "localhost"},
    };
    struct question put = {.answer = weir__keys_put, "one", NULL, GIVEN};
    struct question drop = {.answer = weir__keys_delete, "one"};
    struct scene *s = *state;

    memset(longest, 'x', sizeof longest - 1);
    memset(longer, 'x', sizeof longer - 1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        put.host = rows[i].asked;
        assert_int_equal(ask(s, &put), 201);
        snprintf(told, sizeof told, ONE "," SECRETS("k1", "k2") STRING("%s", "one", "k1", ""),
                 rows[i].host);
        assert_string_equal(s->text, told);
        assert_int_equal(ask(s, &drop), 204);
    }
}

/* The port is said where clients would not guess it. */
static void which_port_to_connect_to(void **state)
{
    static const struct {
        const char *amqp, *told;
    } rows[] = {
        {"127.0.0.1:5672", "h"},
        {"127.0.0.1:5673", "h:5673"},
        {"[::1]:65535", "h:65535"},
        {"[::1]:5672", "h"},
    };
    struct question put = {.answer = weir__keys_put, "one", NULL, GIVEN, "h:80"};
    struct question drop = {.answer = weir__keys_delete, "one"};
    struct scene *s = *state;
    char told[1024];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        amqp = rows[i].amqp;
        assert_int_equal(ask(s, &put), 201);
        snprintf(told, sizeof told, ONE "," SECRETS("k1", "k2") STRING("%s", "one", "k1", ""),
                 rows[i].told);
        assert_string_equal(s->text, told);
        assert_int_equal(ask(s, &drop), 204);
    }
    amqp = NULL;
}

static const char *of_length(char *to, char c, size_t len)
{
    memset(to, c, len);
    to[len] = '\0';
    return to;
}

/* Host, port, rule, key and hub, each as long as can be. */
static void the_longest_connection_string(void **state)
{
    static char host[256], rule[WEIR__RULE_NAME_MAX + 1], key[WEIR__ACCESS_KEY_MAX + 1],
        hub[WEIR__HUB_NAME_MAX + 1], body[512], told[2048];
    struct question put = {.answer = weir__keys_put,
                           of_length(hub, 'b', sizeof hub - 1),
                           of_length(rule, 'r', sizeof rule - 1),
                           body,
                           of_length(host, 'h', sizeof host - 1),
                           .of_hub = true};
    struct scene *s = *state;

    amqp = "127.0.0.1:65535";
    of_length(key, 'k', sizeof key - 1);
    snprintf(body, sizeof body,
             "{\"rights\":[\"listen\"],\"primary_key\":\"%s\",\"secondary_key\":\"l\"}", key);
    assert_int_equal(world_create(&s->world, hub, 1), 0);
    assert_int_equal(ask(s, &put), 201);
    snprintf(told, sizeof told,
             "{\"name\":\"%s\",\"rights\":[\"listen\"]," SECRETS("%s", "l")
                 STRING("%s:65535", "%s", "%s", "EntityPath=%s;"),
             rule, key, host, rule, key, hub);
    assert_string_equal(s->text, told);
    amqp = NULL;
}

/* A key without Manage can always be removed, once. */
static void others_may_go(void **state)
{
    static const struct row rows[] = {
        {{.answer = weir__keys_put, "all", NULL, ALL},
         201,
         RULE_ALL "," SECRETS("k", "l") STRING("localhost", "all", "k", "")},
        {{.answer = weir__keys_put, "one", NULL, GIVEN, "h"},
         201,
         ONE "," SECRETS("k1", "k2") STRING("h", "one", "k1", "")},
        {{.answer = weir__keys_delete, "ONE"}, 204, ""},
        {{.answer = weir__keys_delete, "one"},
         404,
         BAD("404", "there is no access rule 'one'", "ENOTFOUND")},
        {{.answer = weir__keys_delete, "ALL"},
         409,
         "{\"code\":409,\"detail\":\"access rule 'ALL' is the last of the namespace with Manage: "
         "make another one first\"}\n"},
    };

    EXPECT_ALL((struct scene *)*state, rows);
}

/* Of two who may manage each can go, and then the other cannot; one of a hub does not count. */
static void the_last_manager_stays(void **state)
{
#define MANAGER "{\"rights\":[\"manage\"],\"primary_key\":\"k\",\"secondary_key\":\"l\"}"
    static const char *const names[] = {"one", "two"};
    struct question put = {.answer = weir__keys_put, .body = MANAGER},
                    drop = {.answer = weir__keys_delete};
    struct question of_hub = {.answer = weir__keys_put, "a", "one", MANAGER, .of_hub = true};
    struct scene *s = *state;

    assert_int_equal(world_create(&s->world, "a", 1), 0);
    assert_int_equal(ask(s, &of_hub), 201);
    for (int i = 0; i < 2; i++) {
        for (put.first = names[0]; put.first; put.first = put.first == names[0] ? names[1] : NULL)
            assert_int_equal(ask(s, &put), i && put.first == names[1] ? 200 : 201);
        drop.first = names[i];
        assert_int_equal(ask(s, &drop), 204);
        drop.first = names[1 - i];
        assert_int_equal(ask(s, &drop), 409);
        assert_non_null(strstr(s->text, "' is the last of the namespace with Manage: make another "
                                        "one first\"}"));
    }
    of_hub.answer = weir__keys_delete;
    assert_int_equal(ask(s, &of_hub), 204);
    assert_int_equal(ask(s, &of_hub), 404);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(rules_are_made_and_agreed_with),
        TEST(keys_are_rotated),
        TEST(whom_to_connect_to),
        TEST(which_port_to_connect_to),
        TEST(the_longest_connection_string),
        TEST(others_may_go),
        TEST(the_last_manager_stays),
    };

    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
