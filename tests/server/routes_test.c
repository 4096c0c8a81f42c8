/* routes_test.c - who may come in by HTTP: with which token, until when, and how that is seen. */
#include "server/question.h"

#include "hub/issuer_world.h"
#include "io/state.h"

/* Made by Microsoft's JavaScript client for sb://localhost/eh1, good until second 1700000000. */
#define TOKEN                                                                                      \
    "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                         \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey"
#define EXPIRY INT64_C(1700000000)

static struct weir__tcp tcp = {.peer = "128.0.0.1:5"}; /* not of this machine */
static struct weir__loops *loops;

static int set_up_routes(void **state)
{
    static const struct weir__rule rule = {"RootManageSharedAccessKey",
                                           WEIR__RIGHTS_ALL,
                                           {"SAS_KEY_VALUE", "other"}};
    struct scene *s;

    assert_int_equal(set_up(state), 0);
    s = *state;
    assert_int_equal(weir__loops_start(&loops, &(struct weir__loops_options){.count = 1}, NULL), 0);
    s->server.loops = loops;
    s->server.clock = simclock(&s->world.time);
    s->world.time.wall_ms = (EXPIRY - 1) * 1000;
    weir__mutex_init(&s->server.lock);
    weir__report_init(&s->server);
    weir__budget_init(&s->server.budget, &(struct weir__budget_limits){0});
    s->visit.tcp = &tcp;
    s->visit.account = (struct weir__account){.budget = &s->server.budget, .stranger = true};
    assert_int_equal(weir__namespace_rule_add(s->world.ns, NULL, &rule, NULL), 0);
    return 0;
}

static int tear_down_routes(void **state)
{
    struct scene *s = *state;

    weir__budget_fini(&s->server.budget);
    weir__mutex_fini(&s->server.lock);
    weir__loops_free(loops);
    return tear_down(state);
}

/* 0: it may come in. */
static unsigned come(struct scene *s, enum weir__http_method method, const char *path,
                     const char *token)
{
    struct weir__visit *v = &s->visit;

    s->request = (struct weir__http_request){.method = method,
                                             .path = bytes(path),
                                             .field_count = token != NULL};
    s->request.fields[0] = (struct weir__http_field){bytes("authorization"), bytes(token)};
    v->route = NULL;
    v->answer.status = 0;
    v->answer.challenge = NULL;
    v->account.stranger = true;
    weir__buf_clear(&v->answer.body);
    if (weir__route_find(v)) return 0;
    snprintf(s->text, sizeof s->text, "%.*s", (int)v->answer.body.len,
             (const char *)v->answer.body.at);
    return v->answer.status;
}

/* To the second; and who has shown it is no stranger any more, whatever it may. */
static void a_token_is_good_until_its_time(void **state)
{
    struct scene *s = *state;

    for (int late = 0; late < 2; late++) {
        s->world.time.wall_ms = EXPIRY * 1000 - !late;
        assert_int_equal(come(s, WEIR__HTTP_POST, "/eh1/messages", TOKEN), late ? 401 : 0);
        assert_int_equal(s->visit.account.stranger, late);
    }
    assert_non_null(strstr(s->text, "ExpiredToken: "));
    assert_string_equal(s->visit.answer.challenge, "SharedAccessSignature");
}

static void each_path_has_its_own_right(void **state)
{
    static const struct {
        enum weir__http_method method;
        const char *path, *token;
        unsigned status;
        const char *text;
    } rows[] = {
        {WEIR__HTTP_GET, "/livez", NULL, 0, ""},
        {WEIR__HTTP_HEAD, "/health", NULL, 0, ""},
        {WEIR__HTTP_GET, "/metrics", NULL, 401,
         "MissingToken: There is no Authorization. 'Manage'"},
        {WEIR__HTTP_POST, "/eh1/messages", NULL, 401,
         "MissingToken: There is no Authorization. 'Send'"},
        {WEIR__HTTP_POST, "/EH1/Partitions/0/Messages", TOKEN, 0, ""},
        {WEIR__HTTP_POST, "/eh2/messages", TOKEN, 401, "InvalidAudience: "},
        {WEIR__HTTP_GET, "/$weir/hubs/eh1", TOKEN, 0, ""},
        {WEIR__HTTP_GET, "/$weir/hubs", TOKEN, 401, "InvalidAudience: "},
        {WEIR__HTTP_GET, "/$weir/keys", TOKEN, 401, "InvalidAudience: "},
        {WEIR__HTTP_PUT, "/$weir/hubs/eh1/keys/k", TOKEN, 0, ""},
        {WEIR__HTTP_DELETE, "/eh1/messages", TOKEN, 405, "The method DELETE is not known here."},
        {WEIR__HTTP_POST, "/eh1", TOKEN, 404, "There is nothing at this path."},
        {WEIR__HTTP_POST, "/eh1/messages/more", TOKEN, 404, "There is nothing at this path."},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (come(s, rows[i].method, rows[i].path, rows[i].token) != rows[i].status)
            fail_msg("%s: %u %s", rows[i].path, s->visit.answer.status, s->text);
        if (rows[i].status && !strstr(s->text, rows[i].text)) fail_msg("%s", s->text);
        assert_int_equal(s->visit.account.stranger, rows[i].status || !rows[i].token);
    }
}

/* Its name is read without regard to case; nothing else makes a token one of the issuer's. */
static void an_issuer_s_token_is_a_bearer_s(void **state)
{
    static const struct weir__jwt_role role = {"sender", WEIR__RIGHT_SEND};
    static const struct weir__jwt_issuer policy = {.name = "https://issuer",
                                                   .audience = {"me"},
                                                   .role_claim = WEIR__JWT_ROLE_CLAIM,
                                                   .roles = &role,
                                                   .role_count = 1};
    static char jwk[TEXT_BYTES / 2], text[TEXT_BYTES], token[2048], value[4096];
    static const struct {
        const char *form, *path;
        unsigned status;
    } rows[] = {
        {"Bearer %s", "/eh1/messages", 0},     {"bEARER %s", "/eh1/messages", 0},
        {"Bearer %s", "/$weir/hubs/eh1", 401}, {"Bearer  %s", "/eh1/messages", 401},
        {"Bearer%s", "/eh1/messages", 401},    {"%s", "/eh1/messages", 401},
        {"Bearer %sx", "/eh1/messages", 401},  {"Bearer %.9s", "/eh1/messages", 401},
    };
    struct scene *s = *state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    struct weir__jwks *keys;

    put_jwk(jwk, key, "k", "");
    snprintf(text, sizeof text, "{\"keys\":[%s]}", jwk);
    assert_int_equal(weir__jwks_parse(&keys, bytes_of(text), NULL), 0);
    put_token(
        token, key, "{\"alg\":\"ES256\",\"kid\":\"k\"}",
        "{\"iss\":\"https://issuer\",\"aud\":\"me\",\"exp\":1700000100,\"roles\":[\"sender\"]}");
    EVP_PKEY_free(key);
    weir__issuer_init(&s->server.issuer,
                      &(struct weir__server_options){.issuer = &policy, .issuer_keys = keys});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        enum weir__http_method method = i == 2 ? WEIR__HTTP_GET : WEIR__HTTP_POST;
        snprintf(value, sizeof value, rows[i].form, token);
        if (come(s, method, rows[i].path, value) != rows[i].status)
            fail_msg("%s: %u %s", value, s->visit.answer.status, s->text);
        if (rows[i].status)
            assert_string_equal(s->visit.answer.challenge, "SharedAccessSignature, Bearer");
    }
    assert_int_equal(come(s, WEIR__HTTP_POST, "/eh1/messages", TOKEN), 0); /* as before */
    weir__issuer_fini(&s->server.issuer);
    weir__jwks_release(keys);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_routes, tear_down_routes)
    const struct CMUnitTest tests[] = {
        TEST(a_token_is_good_until_its_time),
        TEST(each_path_has_its_own_right),
        TEST(an_issuer_s_token_is_a_bearer_s),
    };

    return cmocka_run_group_tests_name("routes", tests, NULL, NULL);
}
