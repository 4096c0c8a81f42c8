/* web_test.c - requests on one connection of HTTP: what each is answered, byte by byte, and what is
 * left of one when the next comes. */
#include "server/visitor.h"

/* ---- one after the other ---- */

#define NAME256 A64 A64 A64 A64
#define A64 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define XML "Content-Type: application/xml; charset=utf-8\r\n"
#define ERROR(code, text) "<Error><Code>" code "</Code><Detail>" text "</Detail></Error>"
#define MISSING "MissingToken: There is no Authorization. "
#define CLAIM "claim(s) are required to perform this operation."
#define NOTHING                                                                                    \
    "HTTP/1.1 404 Not Found\r\n" XML                                                               \
    "Content-Length: 78\r\n\r\n" ERROR("404", "There is nothing at this path.")
#define ALL "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n"

/* As TOKEN, for the longest name there may be. */
#define TOKEN256                                                                                   \
    "Authorization: SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2F" NAME256                      \
    "&sig=G0qyOXiaIMZPzQRByDctTFAfEpiCqX0NJtDLF%2BgESTQ%3D&se=1700000000&"                         \
    "skn=RootManageSharedAccessKey\r\n"

/* On one connection: each answer is of its own request, and has nothing of those before. */
static const struct {
    const char *request, *answer;
} dialog[] = {
    {"GET /livez" HOST "\r\n", ALIVE},
    {"POST /eh1/messages" HOST "Content-Length: 1\r\n\r\nx",
     "HTTP/1.1 401 Unauthorized\r\n" XML
     "WWW-Authenticate: SharedAccessSignature\r\nContent-Length: 144\r\n\r\n" ERROR(
         "401", MISSING "'Send' " CLAIM)},
    {"GET /livez" HOST "\r\n", ALIVE},
    {"HEAD /livez" HOST "\r\n", "HTTP/1.1 200 OK\r\n" JSON "18\r\n\r\n"},
    {"POST /eh1/messages" HOST TOKEN "Content-Length: 5\r\n\r\nfirst", POSTED},
    {"GET /$weir/hubs/eh1/groups" HOST TOKEN "\r\n",
     "HTTP/1.1 200 OK\r\n" JSON "23\r\n\r\n{\"groups\":[\"$Default\"]}"},
    {"GET /$weir/keys" HOST "\r\n",
     "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\n"
     "WWW-Authenticate: SharedAccessSignature\r\nContent-Length: 123\r\n\r\n"
     "{\"code\":401,\"detail\":\"" MISSING "'Manage' " CLAIM "\"}\n"},
    {"PUT /$weir/hubs/eh1" HOST TOKEN "If-None-Match: x\r\n"
     "Content-Length: 16\r\n\r\n{\"partitions\":3}",
     "HTTP/1.1 409 Conflict\r\n"},
    {"PUT /$weir/hubs/eh1" HOST TOKEN "If-None-Match: *\r\n"
     "Content-Length: 16\r\n\r\n{\"partitions\":3}",
     "HTTP/1.1 412 Precondition Failed\r\n"},
    {"OPTIONS *" HOST "\r\n", "HTTP/1.1 204 No Content\r\n" ALL "\r\n"},
    {"OPTIONS /eh1/messages" HOST "\r\n",
     "HTTP/1.1 204 No Content\r\nAllow: POST, OPTIONS\r\n\r\n"},
    {"OPTIONS /eh1" HOST "\r\n", NOTHING},
    {"PATCH /livez" HOST "\r\n", "HTTP/1.1 405 Method Not Allowed\r\n" XML
                                 "Allow: GET, HEAD, OPTIONS\r\nContent-Length: 83\r\n\r\n" ERROR(
                                     "405", "The method PATCH is not known here.")},
    {"GET /LIVE%5a/" HOST "\r\n", ALIVE},
    {"GET /livezz" HOST "\r\n", NOTHING},
    {"GET /live" HOST "\r\n", NOTHING},
    {"GET /livez//" HOST "\r\n", NOTHING},
    {"POST //messages" HOST TOKEN "\r\n", NOTHING},
    {"POST /" NAME256 "a/messages" HOST TOKEN "\r\n", NOTHING},
    {"POST /" NAME256 "/messages" HOST TOKEN "\r\n", "HTTP/1.1 401 Unauthorized\r\n"},
    {"POST /" NAME256 "/messages" HOST TOKEN256 "\r\n", "HTTP/1.1 404 Not Found\r\n"},
    {"POST /eh1/partitions/2/messages" HOST TOKEN "\r\n",
     "HTTP/1.1 400 Bad Request\r\n" XML "Content-Length: 158\r\n\r\n" ERROR(
         "400", "The specified partition is invalid for an EventHub partition sender or receiver. "
                "It should be between 0 and 1.")},
    {"GET /$servicebus/websocket" HOST "\r\n",
     "HTTP/1.1 426 Upgrade Required\r\n" XML
     "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nContent-Length: 104\r\n\r\n" ERROR(
         "426", "A WebSocket is wanted here: GET with Upgrade: websocket.")},
    {"GET /livez" HOST "\r\n", ALIVE},
};

/* Those that end with their head are compared as far as that. */
static void one_answer_after_the_other(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof dialog / sizeof dialog[0]; i++) {
        const char *wanted = dialog[i].answer, *heard;
        size_t len = strlen(wanted);
        say(s, dialog[i].request);
        heard = hear(s, strncmp(dialog[i].request, "HEAD", 4) == 0);
        if (wanted[len - 1] != '\n') len++;
        if (strncmp(heard, wanted, len) != 0) fail_msg("%s: %s", dialog[i].request, heard);
    }
}

/* The body of one is not that of the next. */
static void each_request_has_its_own_body(void **state)
{
    struct scene *s = *state;
    uint64_t before = 0, first = 0;

    for (int i = 0; i < 3; i++) {
        struct weir__hub_stats stats;
        struct weir__hub *hub;
        say(s, "POST /eh1/partitions/1/messages" HOST TOKEN "Content-Length: 5\r\n\r\nevent");
        assert_string_equal(hear(s, false), POSTED);
        assert_int_equal(weir__namespace_use(s->ns, "eh1", &hub, NULL), 0);
        weir__hub_stats(hub, &stats);
        weir__hub_release(hub);
        assert_int_equal(stats.log.events, i + 1);
        if (i == 0) first = stats.log.bytes;
        assert_int_equal(stats.log.bytes - before, first);
        before = stats.log.bytes;
    }
}

/* The client may come again; what it asks for next is answered. */
static void a_body_without_room_is_refused(void **state)
{
    struct scene *s = *state;
    size_t most = s->server->budget.limits.bytes;

    s->server->budget.limits.bytes = 1;
    look_at_visit(s); /* from here on the loop knows it */
    say(s, "POST /eh1/messages" HOST TOKEN "Content-Length: 5\r\n\r\nevent");
    assert_string_equal(hear(s, false), "HTTP/1.1 503 Service Unavailable\r\n" XML
                                        "Retry-After: 4\r\nContent-Length: 87\r\n\r\n" ERROR(
                                            "503", "The server holds too many requests now."));
    assert_int_equal(atomic_load(&s->server->budget.refused), 1);
    s->server->budget.limits.bytes = most;
    look_at_visit(s);
    say(s, "POST /eh1/messages" HOST TOKEN "Content-Length: 5\r\n\r\nevent");
    assert_string_equal(hear(s, false), POSTED);
    assert_int_equal(atomic_load(&s->server->budget.refused), 1);
}

/* Whose key is changed before the body is there is refused behind it. */
static void rights_are_looked_at_again_behind_the_body(void **state)
{
    static const char name[] = "RootManageSharedAccessKey";
    struct scene *s = *state;

    say(s, "POST /eh1/messages" HOST TOKEN "Expect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    assert_string_equal(hear(s, false), "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(weir__namespace_rule_rotate(s->ns, NULL, name, WEIR__KEY_PRIMARY, "new", NULL),
                     0);
    say(s, "event");
    assert_non_null(strstr(hear(s, false), "401</Code><Detail>InvalidSignature: "));
}

/* Until it has shown a good token its client may have to go for others. */
static void a_good_token_makes_a_stranger_known(void **state)
{
    struct scene *s = *state;

    say(s, "GET /livez" HOST "\r\n");
    assert_non_null(strstr(hear(s, false), "200 OK"));
    assert_int_equal(weir__budget_strangers(&s->server->budget), 1);
    say(s, "POST /eh1/messages" HOST TOKEN "Content-Length: 5\r\n\r\nevent");
    assert_string_equal(hear(s, false), POSTED);
    assert_int_equal(weir__budget_strangers(&s->server->budget), 0);
}

/* From there on it is none of HTTP's. */
static void a_websocket_is_a_visit_no_more(void **state)
{
    struct scene *s = *state;

    say(s, "GET /$servicebus/websocket" HOST "Upgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Protocol: AMQPWSB10\r\n\r\n");
    assert_string_equal(hear(s, true), "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                                       "Connection: Upgrade\r\n"
                                       "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                                       "Sec-WebSocket-Protocol: AMQPWSB10\r\n\r\n");
    expect_visits(s, 0);
    assert_int_equal(weir__budget_strangers(&s->server->budget), 1);
}

/* ---- a client that does not read ---- */

#define GROUPS 900
#define OUTPUT_BYTES 65536 /* that wait for a client */
#define REQUESTS_MAX 1000  /* more answers than sockets hold */
#define LIST "GET /$weir/hubs/eh1/groups" HOST TOKEN

/* Another eh1, whose groups take 38 KB to list. */
static void make_groups(struct scene *s)
{
    static char names[GROUPS][41];
    const char *groups[GROUPS];
    struct weir__hub_config hub = {.name = "eh1",
                                   .partitions = 1,
                                   .groups = groups,
                                   .group_count = GROUPS};

    for (int i = 0; i < GROUPS; i++) {
        snprintf(names[i], sizeof names[i], "%040d", i);
        groups[i] = names[i];
    }
    assert_int_equal(weir__namespace_hub_delete(s->ns, "eh1", NULL), 0);
    assert_int_equal(weir__namespace_hub_create(s->ns, &hub, NULL), 0);
}

/* At such length that few wait inside the server. */
static void say_list(struct scene *s)
{
    char field[4096];

    snprintf(field, sizeof field, "X: %04000d\r\n\r\n", 0);
    say(s, LIST);
    say(s, field);
}

/* Its answers wait up to a limit, then its requests do; all are answered when it reads. */
static void answers_wait_for_who_does_not_read(void **state)
{
    static char first[65536];
    struct scene *s = *state;
    int count = 0;

    make_groups(s);
    say_list(s);
    snprintf(first, sizeof first, "%s", hear(s, false));
    assert_true(strlen(first) > 38000);
    do {
        if (!atomic_load(&s->away)) {
            assert_true(++count < REQUESTS_MAX);
            say_list(s);
        }
        look_at_visit(s);
    } while (atomic_load(&s->away) || !atomic_load(&s->held));
    assert_in_range(atomic_load(&s->used), OUTPUT_BYTES, 4 * OUTPUT_BYTES);
    while (count-- > 0) assert_string_equal(hear(s, false), first);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_answer_after_the_other),          TEST(each_request_has_its_own_body),
        TEST(a_body_without_room_is_refused),      TEST(rights_are_looked_at_again_behind_the_body),
        TEST(a_websocket_is_a_visit_no_more),      TEST(answers_wait_for_who_does_not_read),
        TEST(a_good_token_makes_a_stranger_known),
    };

    return cmocka_run_group_tests_name("web", tests, NULL, NULL);
}
