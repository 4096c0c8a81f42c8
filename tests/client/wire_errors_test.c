/* What goes wrong over a connection, each with a code of its own whose class says what to do. */
#include "client/contract/place.h"

#include "client/token.h"
#include "client/wire_place.h"

#define SOON_MS 400     /* of patience, where nobody will answer */
#define AT_ONCE_MS 5000 /* on a busy machine; a name server may be slow to say no */
#define FLAG "UseDevelopmentEmulator=true"

static int start(void **state)
{
    (void)state;
    place.tls = true;
    place.options = (struct weir_options){.patience_ms = PATIENCE_MS};
    if (place_start() != 0) return -1;
    place_make_hub("h", 2);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return place_stop();
}

/* A place for the text, with the CA and this patience. */
static struct weir *open_with(const char *text, uint32_t patience_ms)
{
    struct weir_options o = {.size = sizeof o,
                             .patience_ms = patience_ms,
                             .ca_file = place.serve.ca_file};
    struct weir *w;

    assert_ok(weir_open(&w, text, &o, &err));
    return w;
}

/* Every way in gives this code, and a text that says this. */
static void assert_refused(struct weir *w, const char *hub, int code, enum weir_error_class class,
                           const char *says)
{
    struct weir_hub_info info;
    struct weir_producer *p;
    struct weir_receiver *r;
    int rc = weir_hub_info(w, hub, &info, &err);

    if (rc != code || !strstr(err.text, says)) fail_msg("%s: %s", weir_error_name(rc), err.text);
    rc = weir_producer_open(&p, w, hub, NULL, &err);
    if (rc != code || !strstr(err.text, says)) fail_msg("%s: %s", weir_error_name(rc), err.text);
    assert_null(p);
    rc = weir_receiver_open(&r, w, hub, 0, NULL, &err);
    if (rc != code || !strstr(err.text, says)) fail_msg("%s: %s", weir_error_name(rc), err.text);
    assert_null(r);
    assert_int_equal(weir_error_class(code), class);
    assert_null(strstr(err.text, "SAS_KEY_VALUE"));
}

/* The server's string with one part replaced. */
static const char *with(const char *part, const char *instead)
{
    static char text[2048];
    const char *whole = place_string(NULL), *at = strstr(whole, part);

    assert_non_null(at);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, instead, at + strlen(part));
    return text;
}

/* Which part, what is expected there, and never the key. */
static void a_malformed_string_says_where(void **state)
{
    static const struct {
        const char *text, *part, *expected;
    } cases[] = {
        {"Endpoint=sb://h;SharedAccessKeyName=a;hush", "part 3", "NAME=VALUE"},
        {"Endpoint=http://h;SharedAccessKeyName=a;SharedAccessKey=hush", "Endpoint", "sb://HOST"},
        {"Endpoint=sb://h:99999;SharedAccessKeyName=a;SharedAccessKey=hush", "Endpoint", "PORT"},
        {"Endpoint=sb://h;SharedAccessKey=hush", "SharedAccessKeyName", "there is no"},
        {"Endpoint=sb://h;SharedAccessKeyName=a", "SharedAccessKey", "there is no"},
        {"SharedAccessKeyName=a;SharedAccessKey=hush;Endpoint=", "Endpoint", "expected"},
        {"Endpoint=sb://h;SharedAccessSignature=hush", "SharedAccessSignature", "expected"},
        {"Endpoint=sb://h;SharedAccessKeyName=a;SharedAccessKey=hush;UseDevelopmentEmulator=yes",
         "UseDevelopmentEmulator", "true or false"},
    };
    struct weir *w;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(weir_open(&w, cases[i].text, NULL, &err), WEIR_EINVAL);
        if (!strstr(err.text, cases[i].part) || !strstr(err.text, cases[i].expected))
            fail_msg("%zu: %s", i, err.text);
        assert_null(strstr(err.text, "hush"));
        assert_int_equal(weir_error_class(err.code), WEIR_CLASS_CALLER);
    }
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Every way in says so at once, whatever patience there is, and says this. */
static void assert_at_once(const char *text, const char *says)
{
    struct weir *w = open_with(text, PATIENCE_MS);
    int64_t since_ms = now_ms();

    assert_refused(w, "h", WEIR_EUNREACHABLE, WEIR_CLASS_RETRY, says);
    assert_in_range(now_ms() - since_ms, 0, AT_ONCE_MS);
    assert_ok(weir_close(w, &err));
}

static void nobody_is_there(void **state)
{
    (void)state;
    assert_at_once("Endpoint=sb://nobody.invalid;SharedAccessKeyName=a;SharedAccessKey=b",
                   "nobody.invalid");
    assert_null(strstr(err.text, FLAG));
    assert_at_once("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b;" FLAG,
                   "refused");
    assert_null(strstr(err.text, FLAG));
    assert_at_once("Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b", FLAG);
    assert_non_null(strstr(err.text, "refused"));
}

static void somebody_else_is_there(void **state)
{
    char text[SERVE_CONNECTION_BYTES];

    (void)state;
    serve_connection(text, place.serve.amqp, true); /* TLS to the plain port */
    assert_at_once(text, FLAG " may be missing");
    serve_connection(text, place.serve.amqps, false); /* and the other way round */
    assert_at_once(text, "leave it out if TLS is spoken there");
    serve_connection(text, place.serve.http, false);
    assert_at_once(text, "AMQP 1.0");
    serve_connection(text, place.serve.http, true);
    assert_at_once(text, "TLS is not spoken there");
}

/* Where WebSockets are not, it is said that one was asked for. */
static void where_no_websocket_is(void **state)
{
    char text[SERVE_CONNECTION_BYTES], string[SERVE_CONNECTION_BYTES + 32];

    (void)state;
    serve_connection(text, place.serve.amqp, false);
    snprintf(string, sizeof string, "%s;TransportType=AmqpWebSockets", text);
    assert_at_once(string, "WebSocket");
}

/* One line for a trouble, however often it is tried again. */
static void count_line(enum weir_level level, const char *room, const char *line, void *user)
{
    (void)room, (void)line;
    if (level >= WEIR_WARN) ++*(unsigned *)user;
}

static void whoever_waits_is_patient(void **state)
{
    unsigned lines = 0;
    struct weir_options o = {.size = sizeof o,
                             .patience_ms = 2 * SOON_MS,
                             .wait = true,
                             .log = count_line,
                             .log_user = &lines};
    int64_t since_ms = now_ms();
    struct weir_hub_info info;
    struct weir *w;

    (void)state;
    assert_ok(weir_open(&w,
                        "Endpoint=sb://127.0.0.1:1;SharedAccessKeyName=a;SharedAccessKey=b;" FLAG,
                        &o, &err));
    assert_int_equal(weir_hub_info(w, "h", &info, &err), WEIR_EUNREACHABLE);
    assert_in_range(now_ms() - since_ms, 2 * SOON_MS, PATIENCE_MS);
    assert_ok(weir_close(w, &err));
    assert_int_equal(lines, 1);
}

/* Whoever was there once is waited for. */
static void the_met_are_waited_for(void **state)
{
    const uint32_t patience_ms = 8 * SOON_MS; /* enough for an answer on a slow machine */
    struct weir *w = open_with(place_string(NULL), patience_ms);
    struct weir_hub_info info;
    int64_t since_ms;

    (void)state;
    assert_ok(weir_hub_info(w, "h", &info, &err));
    serve_kill(&place.serve);
    since_ms = now_ms();
    assert_int_equal(weir_hub_info(w, "h", &info, &err), WEIR_EUNREACHABLE);
    assert_in_range(now_ms() - since_ms, patience_ms, PATIENCE_MS);
    assert_int_equal(serve_again(&place.serve, place.data), 0);
    assert_ok(weir_close(w, &err));
}

/* At once, also for who waits: no patience is needed for what will not change. */
static void strangers_are_not_trusted(void **state)
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    struct weir *w;

    (void)state;
    for (int wait = 0; wait < 2; wait++) {
        o.wait = wait;
        assert_ok(weir_open(&w, place_string(NULL), &o, &err));
        assert_refused(w, "h", WEIR_EDENIED, WEIR_CLASS_CALLER, "certificate");
        assert_null(strstr(err.text, "no answer"));
        assert_ok(weir_close(w, &err));
    }
    o.ca_file = "/nowhere/ca.pem";
    assert_int_not_equal(weir_open(&w, place_string(NULL), &o, &err), 0);
    assert_non_null(strstr(err.text, "/nowhere/ca.pem"));
    w = open_with(with("localhost", "ip6-localhost"), SOON_MS); /* not the certificate's name */
    assert_int_not_equal(weir_hub_info(w, "h", &(struct weir_hub_info){0}, &err), 0);
    assert_ok(weir_close(w, &err));
}

static void a_wrong_key_is_denied(void **state)
{
    struct weir *w = open_with(with("SAS_KEY_VALUE", "SAS_KEY_VALUE_NOT"), PATIENCE_MS);

    (void)state;
    assert_refused(w, "h", WEIR_EDENIED, WEIR_CLASS_CALLER, "InvalidSignature");
    assert_ok(weir_close(w, &err));
    w = open_with(with("=RootManageSharedAccessKey", "=nobody"), PATIENCE_MS);
    assert_refused(w, "h", WEIR_EDENIED, WEIR_CLASS_CALLER, "InvalidSignature");
    assert_ok(weir_close(w, &err));
}

/* A connection string with a signature that ends then. */
static const char *with_signature(int64_t expires_s)
{
    static char signature[WEIR__ACCESS_TOKEN_MAX + 32];
    char token[WEIR__ACCESS_TOKEN_MAX + 1];

    assert_ok(weir__token_make(token, "sb://localhost/h", "RootManageSharedAccessKey",
                               "SAS_KEY_VALUE", expires_s, &err));
    snprintf(signature, sizeof signature, "SharedAccessSignature=%s", token);
    return with("SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
                signature);
}

static void an_old_token_is_denied(void **state)
{
    struct weir *w = open_with(with_signature(time(NULL) - 1), PATIENCE_MS);

    (void)state;
    assert_refused(w, "h", WEIR_EDENIED, WEIR_CLASS_CALLER, "ExpiredToken");
    assert_ok(weir_close(w, &err));
}

/* Nobody can make another: what was open ends with it. */
static void a_token_that_ends_ends_everything(void **state)
{
    struct weir *w = open_with(with_signature(time(NULL) + 3), PATIENCE_MS);
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p = open_pinned(w, 1);
    struct weir_receiver *r = open_receiver(w, 0);
    struct weir_received got;
    int rc = 0;

    (void)state;
    send_text(p, "in time");
    assert_int_equal(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err), WEIR_EDENIED);
    assert_non_null(strstr(err.text, "ExpiredToken"));
    for (int i = 0; rc == 0 || rc == WEIR_EUNKNOWN; i++) {
        assert_true(i < 100000);
        rc = weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err);
    }
    assert_int_equal(rc, WEIR_EDENIED);
    weir_receiver_close(r);
    close_producer(p);
    assert_ok(weir_close(w, &err));
}

static void what_is_missing_is_not_found(void **state)
{
    struct weir_producer_options po = {.size = sizeof po, .pinned = true, .partition = 2};
    struct weir_receiver_options ro = {.size = sizeof ro, .group = "nope"};
    struct weir *w = open_with(place_string(NULL), PATIENCE_MS);
    struct weir_producer *p;
    struct weir_receiver *r;

    (void)state;
    assert_refused(w, "nope", WEIR_ENOTFOUND, WEIR_CLASS_CALLER, "nope");
    assert_int_equal(weir_producer_open(&p, w, "h", &po, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_receiver_open(&r, w, "h", 0, &ro, &err), WEIR_ENOTFOUND);
    assert_non_null(strstr(err.text, "nope"));
    assert_int_equal(weir_receiver_open(&r, w, "h", 2, NULL, &err), WEIR_ENOTFOUND);
    assert_ok(weir_close(w, &err));
}

/* What no hub can be called is not asked for, nor cut to what one could be. */
static void names_have_their_longest(void **state)
{
    struct weir *w = open_with(place_string(NULL), PATIENCE_MS);
    static char hub[258];

    (void)state;
    memset(hub, 'x', sizeof hub - 1);
    assert_refused(w, hub, WEIR_EINVAL, WEIR_CLASS_CALLER, "1 to 256 bytes");
    assert_refused(w, "", WEIR_EINVAL, WEIR_CLASS_CALLER, "1 to 256 bytes");
    hub[256] = '\0';
    assert_refused(w, hub, WEIR_ENOTFOUND, WEIR_CLASS_CALLER, "xxxx");
    assert_ok(weir_close(w, &err));
}

static void a_string_for_one_hub_is_for_that_hub(void **state)
{
    char text[SERVE_CONNECTION_BYTES + 32];
    struct weir_partition_info partition;
    struct weir_hub_info info;
    struct weir *w;

    (void)state;
    snprintf(text, sizeof text, "%s;EntityPath=H", place_string(NULL));
    w = open_with(text, PATIENCE_MS);
    assert_ok(weir_hub_info(w, "h", &info, &err));
    assert_ok(weir_partition_info(w, "h", 0, &partition, &err));
    assert_int_equal(weir_hub_info(w, "other", &info, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "hub 'other': the connection string is for hub 'H' only, not"
                                  " 'other'");
    assert_int_equal(weir_partition_info(w, "other", 0, &partition, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "hub 'other', partition 0: the connection string is for hub 'H'"
                                  " only, not 'other'");
    assert_refused(w, "other", WEIR_EINVAL, WEIR_CLASS_CALLER, "'H'");
    assert_ok(weir_close(w, &err));
}

static void too_large_is_too_large(void **state)
{
    struct weir *w = open_with(place_string(NULL), PATIENCE_MS);
    static char large[1100000];
    struct weir_event e = {.body = weir_bytes(large, sizeof large)};
    struct weir_producer *p = open_pinned(w, 1);

    (void)state;
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    assert_int_equal(weir_error_class(WEIR_ETOOBIG), WEIR_CLASS_CALLER);
    send_text(p, "small");
    close_producer(p);
    assert_ok(weir_close(w, &err));
}

/* The server's limit, to the byte, and one of our own below it. */
static void a_batch_is_as_large_as_it_may_be(void **state)
{
    struct weir_options o = {.size = sizeof o, .batch_bytes_max = 4096};
    struct weir *w = open_with(place_string(NULL), PATIENCE_MS);
    struct weir_producer *p = open_pinned(w, 1);

    (void)state;
    assert_batch_edge(p, 1 << 20);
    close_producer(p);
    assert_ok(weir_close(w, &err));
    o.ca_file = place.serve.ca_file;
    assert_ok(weir_open(&w, place_string(NULL), &o, &err));
    p = open_pinned(w, 1);
    assert_batch_edge(p, o.batch_bytes_max);
    close_producer(p);
    assert_ok(weir_close(w, &err));
}

/* Closing does not wait for a server that is not there, and tells everybody. */
static void lost_told(void *user, int rc, const struct weir_receipt *at,
                      const struct weir_error *why)
{
    (void)at;
    if (rc == WEIR_EUNKNOWN && why->code == rc) ++*(unsigned *)user;
}

static void closing_needs_no_server(void **state)
{
    struct weir *w = open_with(place_string(NULL), PATIENCE_MS);
    struct weir_event e = {.body = weir_text("x")};
    struct weir_producer *p = open_pinned(w, 0);
    struct weir_receiver *r = open_receiver(w, 1);
    unsigned told = 0;
    int rc;

    (void)state;
    serve_kill(&place.serve);
    for (int i = 0; i < 10; i++)
        assert_ok(weir_producer_send_async(p, &e, 1, 0, lost_told, &told, &err));
    rc = weir_producer_close(p, 50, &err);
    if (rc != 0)
        assert_int_equal(rc, WEIR_EUNKNOWN); /* 0: the loss was noticed, and told, before */
    assert_int_equal(told, 10);
    weir_receiver_close(r);
    assert_ok(weir_close(w, &err));
    assert_int_equal(serve_again(&place.serve, place.data), 0);
}

/* What waits for a connection is bounded in bytes. */
static void too_much_on_its_way_is_busy(void **state)
{
    struct weir *w = open_with(place_string(NULL), PATIENCE_MS);
    static char large[100000];
    struct weir_event e = {.body = weir_bytes(large, sizeof large)};
    struct weir_producer *p = open_pinned(w, 0);
    unsigned told = 0, taken = 0;
    int rc;

    (void)state;
    serve_kill(&place.serve);
    while ((rc = weir_producer_send_async(p, &e, 1, 0, lost_told, &told, &err)) == 0) taken++;
    assert_int_equal(rc, WEIR_EBUSY);
    assert_int_equal(weir_error_class(rc), WEIR_CLASS_RETRY);
    assert_in_range(taken, 35, 42); /* of 4 MiB */
    assert_int_equal(weir_producer_send(p, &e, 1, 20, NULL, &err), WEIR_EBUSY);
    assert_int_equal(weir_producer_close(p, 0, &err), WEIR_EUNKNOWN);
    assert_int_equal(told, taken);
    assert_ok(weir_close(w, &err));
    assert_int_equal(serve_again(&place.serve, place.data), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_malformed_string_says_where),
        cmocka_unit_test(nobody_is_there),
        cmocka_unit_test(somebody_else_is_there),
        cmocka_unit_test(where_no_websocket_is),
        cmocka_unit_test(whoever_waits_is_patient),
        cmocka_unit_test(the_met_are_waited_for),
        cmocka_unit_test(strangers_are_not_trusted),
        cmocka_unit_test(a_wrong_key_is_denied),
        cmocka_unit_test(an_old_token_is_denied),
        cmocka_unit_test(a_token_that_ends_ends_everything),
        cmocka_unit_test(what_is_missing_is_not_found),
        cmocka_unit_test(names_have_their_longest),
        cmocka_unit_test(a_string_for_one_hub_is_for_that_hub),
        cmocka_unit_test(too_large_is_too_large),
        cmocka_unit_test(a_batch_is_as_large_as_it_may_be),
        cmocka_unit_test(closing_needs_no_server),
        cmocka_unit_test(too_much_on_its_way_is_busy),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
