/* posting_test.c - what HTTP carries and what is stored of it. */
#include "server/posting.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/steps.h"
#include "http/http.h"
#include "support/allocs.h"

#define POST "POST /eh1/messages HTTP/1.1\r\nHost: h\r\n"
#define BATCH POST "Content-Type: application/vnd.microsoft.servicebus.json\r\n\r\n"

struct scene {
    struct weir__http *http;
    struct weir__http_event event;
    struct weir__batch_writer writer;
    struct weir__batch batch;
    struct weir_error err;
};

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);

    weir__batch_writer_init(&s->writer, 0);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__batch_writer_fini(&s->writer);
    weir__http_free(s->http);
    free(s);
    return 0;
}

static int read_bytes(struct scene *s, const char *head, const void *body, size_t len)
{
    size_t room;
    int rc;

    weir__http_free(s->http);
    assert_int_equal(weir__http_new(&s->http, NULL, NULL), 0);
    memcpy(weir__http_input(s->http, &room), head, strlen(head));
    weir__http_received(s->http, strlen(head));
    assert_true(weir__http_next(s->http, &s->event));
    assert_int_equal(s->event.type, WEIR__HTTP_EVENT_REQUEST);
    weir__batch_writer_fini(&s->writer);
    weir__batch_writer_init(&s->writer, 0);
    memset(&s->err, 0, sizeof s->err);
    errno = ERANGE; /* what went wrong before is nobody's business */
    rc = weir__posting_read(&s->writer, s->event.request, weir__bytes_of(body, len), &s->err);
    if (rc == 0) rc = weir__batch_writer_batch(&s->writer, &s->batch, &s->err);
    return rc;
}

static int read(struct scene *s, const char *head, const char *body)
{
    return read_bytes(s, head, body, strlen(body));
}

/* The message of the i-th event. */
static struct weir__amqp_message message(struct scene *s, unsigned i)
{
    struct weir__log_view view = {.attrs = s->batch.attrs, .count = s->batch.count};
    struct weir__batch_walk walk;
    struct weir__event event = {0};
    struct weir__amqp_message m;

    assert_int_equal(s->batch.parts, 1);
    view.body = s->batch.body[0];
    assert_int_equal(weir__batch_walk_start(&walk, &view, NULL), 0);
    for (unsigned k = 0; k <= i; k++)
        assert_int_equal(weir__batch_walk_next(&walk, &event, NULL), 1);
    assert_int_equal(weir__amqp_message_scan(&m, event.message, WEIR__AMQP_DEEP, NULL), 0);
    return m;
}

static void expect_bytes(struct weir__bytes got, const char *wanted)
{
    assert_int_equal(got.len, strlen(wanted));
    assert_memory_equal(got.at, wanted, got.len);
}

static struct weir__amqp_value property(const struct weir__amqp_message *m, const char *name)
{
    struct weir__amqp_value map = weir__amqp_message_map(m, WEIR__AMQP_APPLICATION_PROPERTIES), v;

    if (!weir__amqp_map_find(&map, name, &v)) fail_msg("there is no property %s", name);
    return v;
}

static uint32_t count_properties(const struct weir__amqp_message *m)
{
    return weir__amqp_message_map(m, WEIR__AMQP_APPLICATION_PROPERTIES).count / 2;
}

static void one_event_has_a_body_and_fields(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_properties p;
    struct weir__amqp_message m;

    assert_int_equal(
        read(s,
             POST "Content-Type: text/plain\r\nAuthorization: x\r\nUser-Agent: c\r\n"
                  "WindAlert: Strong Winds\r\nX-Ms-Retrypolicy: NoRetry\r\nn: 7\r\nn: 8\r\n"
                  "BrokerProperties: {\"PartitionKey\": \"h\\u00e9\", \"MessageId\":\"m1\", "
                  "\"Label\":\"l\",\"TimeToLive\":[1,{}],\"CorrelationId\":null}\r\n\r\n",
             "hello"),
        0);
    assert_int_equal(s->batch.count, 1);
    expect_bytes(s->batch.key, "h\xc3\xa9");
    m = message(s, 0);
    expect_bytes(m.data, "hello");
    assert_int_equal(count_properties(&m), 2);
    expect_bytes(property(&m, "WindAlert").bytes, "Strong Winds");
    expect_bytes(property(&m, "n").bytes, "8"); /* the last one */
    assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
    expect_bytes(p.content_type.bytes, "text/plain");
    expect_bytes(p.message_id.bytes, "m1");
    expect_bytes(p.subject.bytes, "l");
    assert_int_equal(p.correlation_id.type, WEIR__AMQP_NULL);
}

static void an_event_may_be_bare(void **state)
{
    struct scene *s = *state;
    static const uint8_t binary[] = {0, 0xff, '"'};
    struct weir__amqp_message m;

    assert_int_equal(read(s, POST "\r\n", ""), 0);
    assert_null(s->batch.key.at);
    m = message(s, 0);
    assert_int_equal(m.body, WEIR__AMQP_BODY_DATA);
    assert_int_equal(m.data.len, 0);
    assert_int_equal(read_bytes(s, POST "\r\n", binary, sizeof binary), 0);
    m = message(s, 0);
    assert_int_equal(m.data.len, sizeof binary);
    assert_memory_equal(m.data.at, binary, sizeof binary);
    assert_int_equal(read(s, POST "BrokerProperties: {\"PartitionKey\":\"\"}\r\n\r\n", "x"), 0);
    assert_non_null(s->batch.key.at);
    assert_int_equal(s->batch.key.len, 0);
}

static void a_batch_keeps_kinds(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_properties p;
    struct weir__amqp_message m;

    assert_int_equal(
        read(s, BATCH,
             " [ "
             "{\"Body\":\"one\",\"UserProperties\":{\"t\":\"x\",\"i\":-7,\"most\":"
             "9223372036854775807,\"d\":0.5,\"e\":1e3,"
             "\"big\":9223372036854775808,\"yea\":true,\"yes\":false,\"z\":null},"
             "\"BrokerProperties\":{\"PartitionKey\":\"k\",\"CorrelationId\":\"c\"}},"
             "{\"BrokerProperties\":{\"PartitionKey\":\"k\"},\"Body\":\"tw\\u00f6\\n\"} ] "),
        0);
    assert_int_equal(s->batch.count, 2);
    expect_bytes(s->batch.key, "k");
    m = message(s, 0);
    expect_bytes(m.data, "one");
    assert_int_equal(count_properties(&m), 9);
    expect_bytes(property(&m, "t").bytes, "x");
    assert_int_equal(property(&m, "i").type, WEIR__AMQP_LONG);
    assert_int_equal(property(&m, "i").i, -7);
    assert_int_equal(property(&m, "most").type, WEIR__AMQP_LONG);
    assert_int_equal(property(&m, "most").i, INT64_MAX);
    assert_true(property(&m, "d").d == 0.5);
    assert_true(property(&m, "e").d == 1000);
    assert_int_equal(property(&m, "big").type, WEIR__AMQP_DOUBLE);
    assert_true(property(&m, "yea").u == 1 && property(&m, "yes").u == 0);
    assert_int_equal(property(&m, "z").type, WEIR__AMQP_NULL);
    assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
    expect_bytes(p.correlation_id.bytes, "c");
    m = message(s, 1);
    expect_bytes(m.data, "tw\xc3\xb6\n");
    assert_int_equal(count_properties(&m), 0);
}

static void long_bodies_are_fine(void **state)
{
    struct scene *s = *state;
    size_t len = 500000;
    char *body = malloc(len + 64);
    struct weir__amqp_message m;
    int head = snprintf(body, 64, "[{\"Body\":\"");

    memset(body + head, 'x', len);
    memcpy(body + (size_t)head + len, "\"}]", sizeof "\"}]");
    assert_int_equal(read(s, BATCH, body), 0);
    m = message(s, 0);
    assert_int_equal(m.data.len, len);
    free(body);
}

static void too_much_is_too_big(void **state)
{
    struct scene *s = *state;
    size_t len = WEIR__BATCH_BYTES_MAX + 1;
    char *body = calloc(1, len);

    assert_int_equal(read_bytes(s, POST "\r\n", body, len), WEIR_ETOOBIG);
    free(body);
}

static void expect_refusal(struct scene *s, const char *head, const char *body, const char *text)
{
    int rc = read(s, head, body);

    if (rc != WEIR_EINVAL || strcmp(s->err.text, text) != 0)
        fail_msg("'%s' gave %d: %s, not: %s", body, rc, s->err.text, text);
}

#define FIRST "event 0 of the batch: "
#define SECOND "event 1 of the batch: "
#define BODY "Body must be there once, and be a string"
#define OTHER_KEY                                                                                  \
    "its PartitionKey is not that of the first event, and a batch goes to one partition"
#define KINDS "' must be a text, a number, true, false or null"
#define P63 "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"
#define P64 P63 "p"

static void mistakes_are_named(void **state)
{
    static const struct {
        const char *body, *text;
    } rows[] = {
        {"", "line 1, column 1: a value should be here, but the text ends"},
        {"{}", "the body must be an array of events"},
        {"[]", "there is no event in the batch"},
        {"[1]", FIRST "it must be an object"},
        {"[{}]", FIRST "Body is missing"},
        {"[{\"Body\":\"a\"},{\"Body\":1}]", SECOND BODY},
        {"[{\"Body\":\"a\"},{}]", SECOND "Body is missing"},
        {"[{\"Body\":\"a\",\"Body\":\"b\"}]", FIRST BODY},
        {"[{\"Body\":\"a\",\"Bodi\":\"b\"}]",
         FIRST "'Bodi' is none of Body, UserProperties and BrokerProperties"},
        {"[{\"" P64 "q\":\"b\"}]",
         FIRST "'" P64 "' is none of Body, UserProperties and BrokerProperties"},
        {"[{\"Body\":\"a\",\"UserProperties\":[]}]", FIRST "UserProperties must be an object"},
        {"[{\"Body\":\"a\",\"BrokerProperties\":1}]", FIRST "BrokerProperties must be an object"},
        {"[{\"Body\":\"a\",\"UserProperties\":{\"x\":{}}}]", FIRST "property 'x" KINDS},
        {"[{\"UserProperties\":{\"" P63 "\":[]}}]", FIRST "property '" P63 KINDS},
        {"[{\"UserProperties\":{\"" P64 "\":[]}}]", FIRST "property '" P64 KINDS},
        {"[{\"UserProperties\":{\"" P64 "q\":[]}}]", FIRST "property '" P64 KINDS},
        {"[{\"Body\":\"a\",\"BrokerProperties\":{\"PartitionKey\":7}}]",
         FIRST "PartitionKey must be a string"},
        {"[{\"Body\":\"a\"},{\"Body\":\"b\",\"BrokerProperties\":{\"PartitionKey\":\"k\"}}]",
         SECOND OTHER_KEY},
        {"[{\"Body\":\"b\",\"BrokerProperties\":{\"PartitionKey\":\"k\"}},{\"Body\":\"a\"}]",
         SECOND OTHER_KEY},
        {"[{\"Body\":\"a\"}", "line 1, column 14: ',' or ']' should be here, but the text ends"},
        {"[{\"UserProperties\":{\"x\":y}}]", FIRST "line 1, column 25: a value should be here"},
        {"[{1}]", FIRST "line 1, column 3: a name in quotes should be here"},
        {"[{\"Body\":\"a\"},]", "line 1, column 15: a value should be here"},
        {"[{\"Body\":\"a\"}] x", "line 1, column 16: something follows the end"},
        {"[{\"Body\":\"\\u0000\"}]", FIRST "line 1, column 17: a NUL is not allowed in a string"},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_refusal(s, BATCH, rows[i].body, rows[i].text);
}

static void mistakes_in_fields_are_named(void **state)
{
    static const struct {
        const char *fields, *text;
    } rows[] = {
        {"BrokerProperties: {",
         "BrokerProperties: line 1, column 2: a name in quotes should be here, but the text ends"},
        {"BrokerProperties: {} {}",
         "BrokerProperties: line 1, column 4: something follows the end"},
        {"BrokerProperties: \"k\"", "BrokerProperties: it must be an object"},
        {"BrokerProperties: 12345", "BrokerProperties: it must be an object"},
        {"Alert: \xff", "property 'Alert' is not UTF-8"},
        {P63 ": \xff", "property '" P63 "' is not UTF-8"},
        {P64 ": \xff", "property '" P64 "' is not UTF-8"},
        {P64 "q: \xff", "property '" P64 "' is not UTF-8"},
        {"Content-Type: a/\xc3\xa9", "a content type is ASCII, byte 3 is not"},
        {"Content-Type: \xc3\xa9", "a content type is ASCII, byte 1 is not"},
    };
    struct scene *s = *state;
    char head[1200], key[600];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        snprintf(head, sizeof head, POST "%s\r\n\r\n", rows[i].fields);
        expect_refusal(s, head, "", rows[i].text);
    }
    memset(key, 'k', sizeof key);
    snprintf(head, sizeof head, POST "BrokerProperties: {\"PartitionKey\":\"%.513s\"}\r\n\r\n",
             key);
    expect_refusal(s, head, "",
                   "BrokerProperties: PartitionKey has 513 bytes, at most 512 are allowed");
}

/* Of the event before nothing is left, also where both say the same. */
static void each_event_has_its_own_properties(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_properties p;

    assert_int_equal(read(s, BATCH,
                          "[{\"UserProperties\":{\"a\":1,\"bb\":2},\"Body\":\"x\","
                          "\"BrokerProperties\":{\"Label\":\"l\"}},"
                          "{\"UserProperties\":{\"a\":3,\"bb\":4},\"Body\":\"y\"},"
                          "{\"Body\":\"z\"}]"),
                     0);
    assert_int_equal(s->batch.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        struct weir__amqp_message m = message(s, i);
        expect_bytes(m.data, (const char *[]){"x", "y", "z"}[i]);
        assert_int_equal(count_properties(&m), i < 2 ? 2 : 0);
        assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
        assert_int_equal(p.subject.type, i ? WEIR__AMQP_NULL : WEIR__AMQP_STRING);
        if (i == 2) continue;
        assert_int_equal(property(&m, "a").i, 2 * i + 1);
        assert_int_equal(property(&m, "bb").i, 2 * i + 2);
    }
}

/* Also the first, and a type ends where its field does. */
static void each_field_is_looked_at(void **state)
{
    static const char type[] = "text/plain\xff";
    struct scene *s = *state;
    struct weir__http_request q = {.field_count = 2,
                                   .fields = {{weir__bytes_of("color", 5),
                                               weir__bytes_of("red", 3)},
                                              {weir__bytes_of("content-type", 12),
                                               weir__bytes_of(type, strlen("text/plain"))}}};
    struct weir__amqp_message m;

    assert_int_equal(weir__posting_read(&s->writer, &q, weir__bytes_of("x", 1), NULL), 0);
    assert_int_equal(weir__batch_writer_batch(&s->writer, &s->batch, NULL), 0);
    m = message(s, 0);
    assert_int_equal(count_properties(&m), 1);
    expect_bytes(property(&m, "color").bytes, "red");
}

/* Wherever memory ends, that is what is said. */
static void no_memory_for_an_event(void **state)
{
    static const char *const heads[] = {POST "BrokerProperties: {\"Label\":\"l\"}\r\n\r\n", BATCH};
    struct scene *s = *state;

    for (int i = 0; i < 2; i++) {
        bool failed = true;
        assert_int_equal(read(s, heads[i], "[{\"Body\":\"x\"}]"), 0);
        for (uint64_t at = 1; failed; at++) {
            struct weir__batch_writer w;
            int rc;
            weir__batch_writer_init(&w, 0);
            allocs_fail(at);
            rc = weir__posting_read(&w, s->event.request, weir__bytes_of("[{\"Body\":\"x\"}]", 14),
                                    &s->err);
            failed = allocs_failed();
            allocs_fail(0);
            weir__batch_writer_fini(&w);
            assert_int_equal(rc, failed ? WEIR_ENOMEM : 0);
            if (failed) assert_non_null(strstr(s->err.text, "memory"));
        }
    }
}

static void properties_have_a_limit(void **state)
{
    struct scene *s = *state;
    char body[8192] = "[{\"Body\":\"\",\"UserProperties\":{";
    size_t len = strlen(body);

    for (int i = 0; i <= WEIR__POSTING_PROPERTIES_MAX; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s\"p%d\":%d", i ? "," : "", i, i);
    snprintf(body + len, sizeof body - len, "}}]");
    expect_refusal(s, BATCH, body, FIRST "an event has at most 256 properties");
}

static void limits_are_within(void **state)
{
    struct scene *s = *state;
    char body[8192] = "[{\"Body\":\"\",\"UserProperties\":{", head[1200], key[513];
    size_t len = strlen(body);
    struct weir__amqp_message m;

    for (int i = 0; i < WEIR__POSTING_PROPERTIES_MAX; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s\"p%d\":%d", i ? "," : "", i, i);
    snprintf(body + len, sizeof body - len, ",\"p0\":7}}]"); /* again, and not one more */
    assert_int_equal(read(s, BATCH, body), 0);
    m = message(s, 0);
    assert_int_equal(count_properties(&m), WEIR__POSTING_PROPERTIES_MAX);
    assert_int_equal(property(&m, "p0").i, 7);
    memset(key, 'k', sizeof key);
    snprintf(head, sizeof head, POST "BrokerProperties: {\"PartitionKey\":\"%.512s\"}\r\n\r\n",
             key);
    assert_int_equal(read(s, head, ""), 0);
    assert_int_equal(s->batch.key.len, 512);
}

#define REPEATS 20000u
#define STEPS_FOR_A_NAME 9u /* of as many as there may be */

/* However often a body says the same names, to find one takes no longer; and the last word counts. */
static void names_may_be_said_again_and_again(void **state)
{
    static char body[32 * REPEATS] = "[{\"Body\":\"\",\"UserProperties\":{";
    struct scene *s = *state;
    size_t len = strlen(body);
    uint64_t began = WEIR__STEPS();
    struct weir__amqp_message m;
    char name[16];

    for (unsigned i = 0; i < REPEATS; i++)
        len += (size_t)snprintf(body + len, sizeof body - len, "%s\"p%u\":%u", i ? "," : "",
                                97 * i % WEIR__POSTING_PROPERTIES_MAX, i);
    snprintf(body + len, sizeof body - len, "}}]");
    assert_int_equal(read(s, BATCH, body), 0);
    assert_true(WEIR__STEPS() - began < 4 * (uint64_t)REPEATS * STEPS_FOR_A_NAME);
    m = message(s, 0);
    assert_int_equal(count_properties(&m), WEIR__POSTING_PROPERTIES_MAX);
    for (unsigned i = REPEATS - WEIR__POSTING_PROPERTIES_MAX; i < REPEATS; i++) {
        snprintf(name, sizeof name, "p%u", 97 * i % WEIR__POSTING_PROPERTIES_MAX);
        assert_int_equal(property(&m, name).i, i);
    }
}

/* What HTTP itself uses is no property of an event; what only looks like it is one. */
static void fields_of_http_are_left_out(void **state)
{
    static const char *const known[] = {"Age",        "AGE",   "Accept", "accept-Language", "If-",
                                        "X-MS-thing", "Sec-x", "TE",     "Upgrade"};
    static const char *const others[] = {"Ag",  "Ages", "Accep",  "If", "X-M",  "TEE",
                                         "Sec", "Vi",   "upgrad", "x",  "Host2"};
    struct scene *s = *state;
    struct weir__amqp_message m;
    char head[256];

    for (size_t i = 0; i < sizeof known / sizeof known[0] + sizeof others / sizeof others[0]; i++) {
        bool is_known = i < sizeof known / sizeof known[0];
        const char *name = is_known ? known[i] : others[i - sizeof known / sizeof known[0]];
        snprintf(head, sizeof head, POST "%s: v\r\n\r\n", name);
        assert_int_equal(read(s, head, "x"), 0);
        m = message(s, 0);
        if (count_properties(&m) != !is_known) fail_msg("%s", name);
    }
}

static void a_batch_is_known_by_its_type(void **state)
{
    static const char *const many[] = {"", ";charset=utf-8", " ; x"}, *const one[] = {"x", "/",
                                                                                      "-"};
    struct scene *s = *state;
    char head[256];

    for (size_t i = 0; i < 3; i++) {
        snprintf(head, sizeof head,
                 POST "Content-Type: Application/vnd.microsoft.servicebus.json%s\r\n\r\n", many[i]);
        assert_int_equal(read(s, head, "[{\"Body\":\"a\"},{\"Body\":\"b\"}]"), 0);
        assert_int_equal(s->batch.count, 2);
        snprintf(head, sizeof head,
                 POST "Content-Type: application/vnd.microsoft.servicebus.json%s\r\n\r\n", one[i]);
        assert_int_equal(read(s, head, "[{\"Body\":\"a\"},{\"Body\":\"b\"}]"), 0);
        assert_int_equal(s->batch.count, 1);
    }
}

/* Each under its own name, in any case; and the next event has none of them. */
static void properties_of_the_broker(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_properties p;
    struct weir__amqp_message m;

    assert_int_equal(
        read(s, BATCH,
             "[{\"body\":\"1\",\"brokerproperties\":{\"CONTENTTYPE\":\"~\",\"to\":\"t\","
             "\"ReplyTo\":\"r\",\"SessionId\":\"s\",\"ReplyToSessionId\":\"q\"},"
             "\"UserProperties\":null},{\"Body\":\"2\",\"BrokerProperties\":null}]"),
        0);
    m = message(s, 0);
    assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
    assert_int_equal(p.content_type.type, WEIR__AMQP_SYMBOL);
    expect_bytes(p.content_type.bytes, "~");
    expect_bytes(p.to.bytes, "t");
    expect_bytes(p.reply_to.bytes, "r");
    expect_bytes(p.group_id.bytes, "s");
    expect_bytes(p.reply_to_group_id.bytes, "q");
    m = message(s, 1);
    memset(&p, 0, sizeof p);
    assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
    assert_int_equal(p.content_type.type, WEIR__AMQP_NULL);
    assert_int_equal(p.to.type, WEIR__AMQP_NULL);
    expect_refusal(s, BATCH, "[{\"Body\":\"\",\"BrokerProperties\":{\"ContentType\":\"ab\x7f\"}}]",
                   FIRST "a content type is ASCII, byte 3 is not");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_event_has_a_body_and_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_event_may_be_bare, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_keeps_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_bodies_are_fine, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_much_is_too_big, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mistakes_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(mistakes_in_fields_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_event_has_its_own_properties, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_field_is_looked_at, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_memory_for_an_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(properties_have_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limits_are_within, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_may_be_said_again_and_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(fields_of_http_are_left_out, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_batch_is_known_by_its_type, set_up, tear_down),
        cmocka_unit_test_setup_teardown(properties_of_the_broker, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("posting", tests, NULL, NULL);
}
