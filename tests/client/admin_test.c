/* Administration over HTTP, against a server that says what a test wants: whole requests, and what
 * becomes of every answer. */
#include "client/http_server.h"

#include <inttypes.h>

#include "hub/access.h"
#include "weir/weir.h"

#define STRING                                                                                     \
    "Endpoint=sb://"                                                                               \
    "127.0.0.1:1;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true"
#define OK "HTTP/1.1 200 OK\r\n\r\n"

static struct weir *w;
static struct weir_error err;

static int open_with(const char *text)
{
    struct weir_options o = {.size = sizeof o, .admin = server.url};

    return weir_open(&w, text, &o, &err);
}

static int start(void **state)
{
    (void)state;
    return server_start() != 0 ? -1 : open_with(STRING);
}

static int stop(void **state)
{
    (void)state;
    server_stop();
    return weir_close(w, &err);
}

static int came;

/* What came of it, which the error says, too. */
static int end_asking(void)
{
    server_end();
    if (came < 0) assert_int_equal(err.code, came);
    return came;
}

/* Asks for one thing, which is answered so. */
#define ASK(answer, call) (server_begin(answer, NULL), came = (call), end_asking())

/* What was heard: its first line, whether it must be new, and its body. */
static void assert_heard(const char *line, bool only_new, const char *body)
{
    const char *end = strstr(server.heard, "\r\n\r\n");

    assert_memory_equal(server.heard, line, strlen(line));
    assert_memory_equal(server.heard + strlen(line), " HTTP/1.0\r\n", 11);
    assert_int_equal(strstr(server.heard, "\r\nIf-None-Match: *\r\n") != NULL, only_new);
    assert_non_null(end);
    assert_string_equal(end + 4, body);
}

static void assert_token_for(const char *resource)
{
    char start[256];

    snprintf(start, sizeof start,
             "\r\nAuthorization: SharedAccessSignature sr=sb%%3A%%2F%%2F127.0.0.1%%2F%s&sig=",
             resource);
    assert_non_null(strstr(server.heard, start));
}

static void hubs_are_asked_for(void **state)
{
    static const char *const groups[] = {"a", "b\"\\\x01"};
    struct weir_hub_options o = {.size = sizeof o,
                                 .partitions = 1,
                                 .retain_ms = -1,
                                 .retain_bytes = UINT64_MAX,
                                 .groups = groups,
                                 .group_count = 2};

    (void)state;
    assert_int_equal(ASK(OK, weir_hub_create(w, "h", NULL, &err)), 0);
    assert_heard("PUT /$weir/hubs/h", true, "{\"groups\":[]}");
    assert_token_for("h");
    assert_int_equal(ASK(OK, weir_hub_create(w, "h", &o, &err)), 0);
    assert_heard("PUT /$weir/hubs/h", true,
                 "{\"groups\":[\"a\",\"b\\\"\\\\\\u0001\"],\"partitions\":1,\"retain_ms\":-1,"
                 "\"retain_bytes\":18446744073709551615}");
    assert_int_equal(ASK(OK, weir_hub_delete(w, "h", &err)), 0);
    assert_heard("DELETE /$weir/hubs/h", false, "");
    assert_int_equal(ASK(OK, weir_hub_adopt(w, 0x2a, "h", &err)), 0);
    assert_heard("PUT /$weir/hubs/h", true, "{\"adopt\":\"2a\"}");
}

/* Only what changes is said. */
static void changes_are_asked_for(void **state)
{
    static const struct {
        struct weir_hub_changes changes;
        const char *body;
    } cases[] = {
        {{.partitions = 3}, "{\"partitions\":3}"},
        {{.retain_ms = -1}, "{\"retain_ms\":-1}"},
        {{.retain_bytes = 4}, "{\"retain_bytes\":4}"},
        {{.retain_bytes = WEIR_RETAIN_ALL}, "{\"retain_bytes\":0}"},
        {{.partitions = 3, .retain_bytes = 4}, "{\"partitions\":3,\"retain_bytes\":4}"},
        {{.retain_ms = 5, .retain_bytes = 4}, "{\"retain_ms\":5,\"retain_bytes\":4}"},
        {{.partitions = 3, .retain_ms = 5, .retain_bytes = 4},
         "{\"partitions\":3,\"retain_ms\":5,\"retain_bytes\":4}"},
        {{.partitions = 0}, "{}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_hub_changes c = cases[i].changes;
        c.size = sizeof c;
        assert_int_equal(ASK(OK, weir_hub_update(w, "h", &c, &err)), 0);
        assert_heard("PATCH /$weir/hubs/h", false, cases[i].body);
    }
}

static void groups_are_asked_for(void **state)
{
    (void)state;
    assert_int_equal(ASK(OK, weir_group_create(w, "h", "g", &err)), 0);
    assert_heard("PUT /$weir/hubs/h/groups/g", true, "");
    assert_int_equal(ASK(OK, weir_group_delete(w, "h", "$default", &err)), 0);
    assert_heard("DELETE /$weir/hubs/h/groups/$default", false, "");
    assert_int_equal(weir_group_create(w, "h", "$other", &err), WEIR_EINVAL);
    assert_int_equal(weir_group_create(w, "h", "a/b", &err), WEIR_EINVAL);
}

#define RULE(more)                                                                                 \
    OK "{\"name\":\"r\",\"rights\":[\"send\",\"fly\",\"listen\"],\"primary_key\":\"1\"" more "}"

static void rules_are_asked_for(void **state)
{
    struct weir_rule rule = {.name = "r", .rights = WEIR_SEND | WEIR_LISTEN, .key = {"x", "y"}};

    (void)state;
    assert_int_equal(ASK(RULE(""), weir_rule_create(w, NULL, &rule, &err)), WEIR_ENOTSUP);
    assert_heard(
        "PUT /$weir/keys/r", true,
        "{\"rights\":[\"send\",\"listen\"],\"primary_key\":\"x\",\"secondary_key\":\"y\"}");
    assert_token_for("");
    assert_string_equal(rule.key[0], "x"); /* as it was */
    rule = (struct weir_rule){.name = "r", .rights = WEIR_LISTEN};
    assert_int_equal(ASK(RULE(",\"secondary_key\":\"2\""), weir_rule_create(w, "h", &rule, &err)),
                     0);
    assert_heard("PUT /$weir/hubs/h/keys/r", true, "{\"rights\":[\"listen\"]}");
    assert_int_equal(rule.rights,
                     WEIR_SEND | WEIR_LISTEN); /* as the server said; others are not known here */
    assert_string_equal(rule.key[WEIR_PRIMARY_KEY], "1");
    assert_string_equal(rule.key[WEIR_SECONDARY_KEY], "2");
    assert_int_equal(ASK(OK, weir_rule_delete(w, "h", "r", &err)), 0);
    assert_heard("DELETE /$weir/hubs/h/keys/r", false, "");
    assert_int_equal(ASK(OK, weir_rule_rotate(w, "h", "r", WEIR_PRIMARY_KEY, NULL, &err)), 0);
    assert_heard("POST /$weir/hubs/h/keys/r?rotate=primary", false, "");
    assert_int_equal(ASK(OK, weir_rule_rotate(w, "h", "r", WEIR_PRIMARY_KEY, "t", &err)), 0);
    assert_heard("POST /$weir/hubs/h/keys/r?rotate=primary", false, "{\"primary_key\":\"t\"}");
    assert_int_equal(ASK(OK, weir_rule_rotate(w, "h", "r", WEIR_SECONDARY_KEY, "t", &err)), 0);
    assert_heard("POST /$weir/hubs/h/keys/r?rotate=secondary", false, "{\"secondary_key\":\"t\"}");
    assert_int_equal(ASK(RULE(",\"secondary_key\":\"2\""),
                         weir_rule_renew(w, "h", "r", &rule, &err)),
                     0);
    assert_heard("POST /$weir/hubs/h/keys/r?rotate=next", false, "");
    assert_int_equal(ASK(RULE(""), weir_rule_renew(w, "h", "r", &rule, &err)), WEIR_ENOTSUP);
}

/* ---- answers ---- */

static int sum_orphans(const struct weir_orphan *o, void *user)
{
    *(uint64_t *)user = o->id - o->partitions;
    return o->partitions == 9 ? 5 : 0;
}

static void orphans_have_ids(void **state)
{
    uint64_t got = 0;

    (void)state;
    assert_int_equal(ASK(OK "{\"orphans\":[{\"id\":\"ffffffffffffffff\",\"partitions\":1}]}",
                         weir_orphan_list(w, sum_orphans, &got, &err)),
                     0);
    assert_heard("GET /$weir/orphans", false, "");
    assert_int_equal(got, UINT64_MAX - 1);
    assert_int_equal(ASK(OK "{\"orphans\":[{\"id\":\"2a\",\"partitions\":9},{\"id\":\"1\"}]}",
                         weir_orphan_list(w, sum_orphans, &got, &err)),
                     5);
    assert_int_equal(got, 0x2a - 9);
    assert_int_equal(ASK(OK "{\"orphans\":[{\"id\":\"0ffffffffffffffff\"}]}",
                         weir_orphan_list(w, sum_orphans, &got, &err)),
                     WEIR_ENOTSUP);
}

static int count_hub(const struct weir_hub_info *h, void *user)
{
    (void)h;
    ++*(unsigned *)user;
    return 0;
}

static void hubs_have_names(void **state)
{
    unsigned count = 0;

    (void)state;
    assert_int_equal(ASK(OK "{\"hubs\":[{\"name\":\"h\"},{\"name\":\"-\"},{\"name\":\"i\"}]}",
                         weir_hub_list(w, count_hub, &count, &err)),
                     WEIR_ENOTSUP);
    assert_int_equal(count, 1);
}

static int say_hub(const struct weir_hub_info *h, void *user)
{
    (void)h;
    return *(const int *)user;
}

static int say_group(const char *group, void *user)
{
    (void)group;
    return *(const int *)user;
}

static int say_rule(const struct weir_rule *r, void *user)
{
    (void)r;
    return *(const int *)user;
}

/* What the reader of a list says is returned as it is, also when it is what a bad list would be. */
static void readers_have_the_last_word(void **state)
{
    static const char hubs[] = OK "{\"hubs\":[{\"name\":\"h\"}]}";
    static const char groups[] = OK "{\"groups\":[\"g\"]}";
    static const char rules[] = OK "{\"keys\":[{\"name\":\"r\"}]}";
    int words[] = {WEIR_EINVAL, WEIR_ENOTSUP, 1, 2, 0};

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        server_begin(hubs, NULL);
        assert_int_equal(weir_hub_list(w, say_hub, &words[i], NULL), words[i]);
        server_end();
        server_begin(groups, NULL);
        assert_int_equal(weir_group_list(w, "h", say_group, &words[i], NULL), words[i]);
        server_end();
        server_begin(rules, NULL);
        assert_int_equal(weir_rule_list(w, "h", say_rule, &words[i], NULL), words[i]);
        server_end();
    }
}

/* JSON of another kind, and what is no JSON: the place is said, and where the answer came from. */
static void what_is_not_understood_is_told(void **state)
{
    static const struct {
        const char *answer, *says;
    } cases[] = {
        {OK "{\"hubs\":5}", "line 1, column 9: an array is expected"},
        {OK "{\"hubs\":[{\"name\":1}]}", "line 1, column 18: a string is expected"},
        {OK "{\"keys\":[]}", "line 1, column 2: it is another member"},
    };
    char text[WEIR_ERROR_TEXT_BYTES];
    struct weir_hub_stats stats;
    int none = 0;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(ASK(cases[i].answer, weir_hub_list(w, say_hub, &none, &err)),
                         WEIR_ENOTSUP);
        snprintf(text, sizeof text, "what %s says is not understood: %s", server.url,
                 cases[i].says);
        assert_string_equal(err.text, text);
        server_begin(cases[i].answer, NULL);
        assert_int_equal(weir_hub_list(w, say_hub, &none, NULL), WEIR_ENOTSUP);
        server_end();
    }
    assert_int_equal(ASK(OK "{\"events_in\":\"\"}", weir_hub_stats(w, "h", &stats, &err)),
                     WEIR_ENOTSUP);
    snprintf(text, sizeof text,
             "what %s says is not understood: line 1, column 14: a number is expected", server.url);
    assert_string_equal(err.text, text);
}

static void numbers_go_where_they_belong(void **state)
{
    struct weir_hub_stats s = {.events_in = 77};

    (void)state;
    assert_int_equal(ASK(OK "{\"name\":\"h\"}", weir_hub_stats(w, "h", &s, &err)), WEIR_EFAILED);
    assert_string_equal(err.text, "hub 'h' cannot be opened by its server, whose log says why");
    assert_int_equal(s.events_in, 77);
    assert_int_equal(
        ASK(OK "{\"batches_in\":1,\"events_in\":2,\"bytes_in\":3,\"batches_refused\":4,"
               "\"events_out\":5,\"bytes_out\":6,\"syncs\":7,\"segments\":8,\"disk_bytes\":0,"
               "\"receivers\":10,\"damaged_ranges\":11,\"stored_bytes\":12,\"producers\":17}",
            weir_hub_stats(w, "h", &s, &err)),
        0);
    assert_heard("GET /$weir/hubs/h", false, "");
    assert_int_equal(s.batches_in, 1);
    assert_int_equal(s.events_in, 2);
    assert_int_equal(s.batches_refused, 4);
    assert_int_equal(s.segments, 8);
    assert_int_equal(s.disk_bytes, 0);
    assert_int_equal(s.receivers, 10);
    assert_int_equal(s.producers, 17);
    assert_int_equal(s.producers_forgotten, 0);
}

static void refusals_have_codes(void **state)
{
    static const struct {
        const char *answer;
        int code;
        const char *text;
    } cases[] = {
        {"400 X\r\n\r\n{\"code\":400,\"detail\":\"d\"}", WEIR_EINVAL, "d"},
        {"401 X\r\n\r\n{\"code\":401,\"detail\":\"d\"}", WEIR_EDENIED, "d"},
        {"403 X\r\n\r\n{\"code\":403,\"detail\":\"d\"}", WEIR_EDENIED, "d"},
        {"404 X\r\n\r\n{\"code\":404,\"detail\":\"d\"}", WEIR_ENOTFOUND, "d"},
        {"409 X\r\n\r\n{\"code\":409,\"detail\":\"d\"}", WEIR_EDENIED, "d"},
        {"412 X\r\n\r\n{\"code\":412,\"detail\":\"d\"}", WEIR_EEXIST, "d"},
        {"413 X\r\n\r\n{\"code\":413,\"detail\":\"d\"}", WEIR_ETOOBIG, "d"},
        {"503 X\r\n\r\n{\"code\":503,\"detail\":\"d\"}", WEIR_EBUSY, "d"},
        {"500 X\r\n\r\n{\"code\":500,\"detail\":\"d\"}", WEIR_EFAILED, "HTTP 500: d"},
        {"400 X\r\n\r\n{\"code\":400,\"error\":\"WEIR_ELIMIT\",\"detail\":\"d\"}", WEIR_ELIMIT,
         "d"},
        {"404 X\r\n\r\n{\"code\":404,\"error\":\"WEIR_OK\",\"detail\":\"d\"}", WEIR_ENOTFOUND, "d"},
        {"404 X\r\n\r\n{\"code\":404,\"error\":\"WEIR_ELATER\",\"detail\":\"d\"}", WEIR_ENOTFOUND,
         "d"},
        {"199 X\r\n\r\n{\"code\":199,\"detail\":\"d\"}", WEIR_EFAILED, "HTTP 199: d"},
        {"300 X\r\n\r\n{\"code\":300,\"detail\":\"d\"}", WEIR_EFAILED, "HTTP 300: d"},
        {"299 X\r\n\r\n{\"code\":299,\"detail\":\"d\"}", 0, NULL},
    };
    char answer[256];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(answer, sizeof answer, "HTTP/1.1 %s", cases[i].answer);
        assert_int_equal(ASK(answer, weir_hub_delete(w, "h", &err)), cases[i].code);
        if (cases[i].text) assert_string_equal(err.text, cases[i].text);
    }
}

#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

/* As much of what came as can be printed, up to 120 bytes. */
static void strangers_are_quoted(void **state)
{
    static const struct {
        const char *body, *quoted;
    } cases[] = {
        {"", ""},
        {"{}", ": {}"},
        {"{\"code\":404}", ": {\"code\":404}"},
        {"{\"code\":405,\"detail\":\"d\"}", ": {\"code\":405,\"detail\":\"d\"}"},
        {" ~\x7f", ":  ~"},
        {"a\x1f", ": a"},
        {HUNDRED TEN TEN "more", ": " HUNDRED TEN TEN},
    };
    char answer[512], text[512];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        snprintf(answer, sizeof answer, "HTTP/1.1 404 No\r\n\r\n%s", cases[i].body);
        snprintf(text, sizeof text,
                 "what answers at %s is not the administration of weir serve (HTTP 404%s)",
                 server.url, cases[i].quoted);
        assert_int_equal(ASK(answer, weir_hub_delete(w, "h", &err)), WEIR_ENOTSUP);
        assert_string_equal(err.text, text);
    }
}

/* ---- what is not even asked ---- */

static void too_much_is_not_asked(void **state)
{
    static char name[WEIR_NAME_BYTES];
    static const char *groups[4096];
    struct weir_hub_options o = {.size = sizeof o, .groups = groups, .group_count = 4096};

    (void)state;
    memset(name, 'g', sizeof name - 1);
    for (size_t i = 0; i < 4096; i++) groups[i] = name;
    assert_int_equal(weir_hub_create(w, "h", &o, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, "there is too much in one request");
}

static void a_string_for_one_hub_administers_it(void **state)
{
    struct weir *all = w;

    (void)state;
    assert_int_equal(open_with(STRING ";EntityPath=Mine"), 0);
    assert_int_equal(ASK(OK, weir_hub_delete(w, "mine", &err)), 0);
    assert_int_equal(weir_hub_delete(w, "other", &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the connection string is for hub 'Mine' only, not 'other'");
    assert_int_equal(weir_hub_list(w, NULL, NULL, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the connection string is for hub 'Mine' only, and this is about "
                                  "all of them");
    assert_int_equal(weir_close(w, &err), 0);
    w = all;
}

/* A token that somebody else made goes as it is. */
static void a_signature_goes_as_it_is(void **state)
{
    struct weir *all = w;

    (void)state;
    assert_int_equal(open_with("Endpoint=sb://127.0.0.1:1;UseDevelopmentEmulator=true;"
                               "SharedAccessSignature=SharedAccessSignature sr=a&sig=b&se=1"),
                     0);
    assert_int_equal(ASK(OK, weir_hub_delete(w, "h", &err)), 0);
    assert_non_null(
        strstr(server.heard, "\r\nAuthorization: SharedAccessSignature sr=a&sig=b&se=1\r\n"));
    assert_int_equal(weir_close(w, &err), 0);
    w = all;
}

/* To its last byte. */
static void the_longest_signature_goes_as_it_is(void **state)
{
    static const char front[] = "Endpoint=sb://127.0.0.1:1;UseDevelopmentEmulator=true;"
                                "SharedAccessSignature=";
    char text[sizeof front + WEIR__ACCESS_TOKEN_MAX] = "", line[WEIR__ACCESS_TOKEN_MAX + 32];
    struct weir *all = w;

    (void)state;
    memset(text, 's', sizeof text - 1);
    memcpy(text, front, sizeof front - 1);
    memcpy(text + sizeof front - 1, "SharedAccessSignature se=1&", 27);
    snprintf(line, sizeof line, "\r\nAuthorization: %s\r\n", text + sizeof front - 1);
    assert_int_equal(open_with(text), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ASK(OK, weir_hub_delete(w, "h", &err)), 0);
        assert_non_null(strstr(server.heard, line));
    }
    assert_int_equal(weir_close(w, &err), 0);
    w = all;
}

/* ---- who cannot be asked ---- */

/* A port that is taken and not listened on. */
static int take_port(char *out, size_t room)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (void *)&at, size), 0);
    assert_int_equal(getsockname(fd, (void *)&at, &size), 0);
    snprintf(out, room, "127.0.0.1:%u", ntohs(at.sin_port));
    return fd;
}

static void who_is_not_there_is_told(void **state)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = 1};
    char port[32], url[64], text[256], want[64];
    int fd = take_port(port, sizeof port);
    struct weir *all = w;

    (void)state;
    snprintf(text, sizeof text,
             "Endpoint=sb://%s;SharedAccessKeyName=n;SharedAccessKey=k;UseDevelopmentEmulator=true",
             port);
    assert_int_equal(weir_open(&w, text, &o, &err), 0); /* who is to tell where to ask */
    assert_int_equal(weir_error_class(weir_hub_delete(w, "h", &err)), WEIR_CLASS_RETRY);
    snprintf(want, sizeof want, "%s", port);
    assert_non_null(strstr(err.text, want));
    assert_int_equal(weir_close(w, &err), 0);

    snprintf(url, sizeof url, "http://%s", port);
    o.admin = url; /* who is to be asked */
    o.patience_ms = 10000;
    assert_int_equal(weir_open(&w, STRING, &o, &err), 0);
    assert_int_equal(weir_hub_delete(w, "h", &err), WEIR_EUNREACHABLE);
    assert_int_equal(err.code, WEIR_EUNREACHABLE);
    assert_int_equal(weir_close(w, &err), 0);
    close(fd);
    w = all;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hubs_are_asked_for),
        cmocka_unit_test(changes_are_asked_for),
        cmocka_unit_test(groups_are_asked_for),
        cmocka_unit_test(rules_are_asked_for),
        cmocka_unit_test(orphans_have_ids),
        cmocka_unit_test(hubs_have_names),
        cmocka_unit_test(readers_have_the_last_word),
        cmocka_unit_test(what_is_not_understood_is_told),
        cmocka_unit_test(numbers_go_where_they_belong),
        cmocka_unit_test(refusals_have_codes),
        cmocka_unit_test(strangers_are_quoted),
        cmocka_unit_test(too_much_is_not_asked),
        cmocka_unit_test(a_string_for_one_hub_administers_it),
        cmocka_unit_test(a_signature_goes_as_it_is),
        cmocka_unit_test(the_longest_signature_goes_as_it_is),
        cmocka_unit_test(who_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
