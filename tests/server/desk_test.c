/* desk_test.c - requests to $cbs and $management, and where their replies go. */
#include "amqp/state.h"
#include "server/links.h"
#include "support/allocs.h"

#define LOTS 60000

struct desk_links {
    struct weir__amqp_link *out, *in;
};

/* in gets no credit. */
static struct desk_links open_desk(struct scene *s, const char *name, const char *target)
{
    struct weir__amqp_terms terms = {.max_message_size = 1 << 20};
    struct desk_links d;
    char other[64];

    snprintf(other, sizeof other, "%s-out", name);
    d.out = attach(s, WEIR__AMQP_SENDER, other, "$management", NULL, (struct weir__amqp_terms){0});
    d.in = attach(s, WEIR__AMQP_RECEIVER, name, "$management", target, terms);
    assert_int_equal(s->detached, 0);
    assert_int_equal(weir__amqp_link_credit(d.out), 100);
    return d;
}

/* A request that is called id, padded with a property of so many bytes, leaves the client; its size. */
static size_t post(struct weir__amqp_link *link, const char *id, const char *reply_to,
                   size_t padding, bool settled)
{
    static char pad[LOTS + 10000];
    static uint8_t space[sizeof pad + 1024];
    struct weir__amqp_properties p = {.message_id = text_of(id)};
    struct weir__amqp_pair pairs[] = {
        {weir__bytes_of("operation", 9), text_of("NAP")},
        {weir__bytes_of("x", 1), weir__amqp_bytes(WEIR__AMQP_STRING, pad, padding)},
    };
    struct weir__amqp_content content = {.properties = &p,
                                         .application_properties = pairs,
                                         .application_property_count = 2};
    struct weir__amqp_writer w;
    struct weir__bytes message;

    memset(pad, 'x', sizeof pad);
    if (reply_to) p.reply_to = text_of(reply_to);
    weir__amqp_writer_init(&w, space, sizeof space);
    assert_int_equal(weir__amqp_message_write(&w, &content, NULL), 0);
    assert_int_equal(weir__amqp_writer_finish(&w, &message, NULL), 0);
    assert_int_equal(weir__amqp_send(link, message, 0, settled, NULL), 0);
    return message.len;
}

static void request(struct scene *s, struct weir__amqp_link *link, const char *id,
                    const char *reply_to, size_t padding, bool settled)
{
    post(link, id, reply_to, padding, settled);
    talk(s);
}

static void expect_text(const struct weir__amqp_value *map, const char *name,
                        enum weir__amqp_type type, const char *text)
{
    struct weir__amqp_value v;

    if (!text) {
        assert_false(weir__amqp_map_find(map, name, &v));
        return;
    }
    assert_true(weir__amqp_map_find(map, name, &v));
    assert_int_equal(v.type, type);
    assert_int_equal(v.bytes.len, strlen(text));
    assert_memory_equal(v.bytes.at, text, v.bytes.len);
}

/* The nth reply came by this link and answers that request, which wanted it there (NULL: anywhere). */
static void expect_reply_to(struct scene *s, uint32_t n, struct weir__amqp_link *link,
                            const char *id, const char *reply_to)
{
    const struct heard *h = &s->heard[n];
    struct weir__amqp_properties p = {0};
    struct weir__amqp_message m;
    struct weir__amqp_value map, status;

    assert_true(n < s->heard_count);
    assert_ptr_equal(h->link, link);
    assert_int_equal(weir__amqp_message_scan(&m, weir__bytes_of(h->bytes, h->len), WEIR__AMQP_DEEP,
                                             NULL),
                     0);
    assert_int_equal(weir__amqp_message_properties(&m, &p, NULL), 0);
    assert_int_equal(p.correlation_id.type, WEIR__AMQP_STRING);
    assert_int_equal(p.correlation_id.bytes.len, strlen(id));
    assert_memory_equal(p.correlation_id.bytes.at, id, strlen(id));
    assert_int_equal(p.to.type, reply_to ? WEIR__AMQP_STRING : WEIR__AMQP_NULL);
    assert_int_equal(p.to.bytes.len, reply_to ? strlen(reply_to) : 0);
    if (reply_to) assert_memory_equal(p.to.bytes.at, reply_to, p.to.bytes.len);
    map = weir__amqp_message_map(&m, WEIR__AMQP_APPLICATION_PROPERTIES);
    assert_int_equal(map.count, 6);
    assert_true(weir__amqp_map_find(&map, "status-code", &status));
    assert_int_equal(status.type, WEIR__AMQP_INT);
    assert_int_equal(status.i, 400);
    expect_text(&map, "status-description", WEIR__AMQP_STRING, "Invalid command 'NAP'.");
    expect_text(&map, "error-condition", WEIR__AMQP_SYMBOL, "amqp:not-allowed");
    expect_text(&map, "operation", WEIR__AMQP_STRING, NULL);
}

static void expect_reply(struct scene *s, uint32_t n, struct weir__amqp_link *link, const char *id)
{
    expect_reply_to(s, n, link, id, NULL);
}

/* ---- where replies go ---- */

static void a_reply_goes_where_the_request_says(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", "at-a"), b = open_desk(s, "b", NULL),
                      c = open_desk(s, "c", "at-c");
    static const char *const reply_tos[] = {"a", "at-a", "b", "at-", NULL, "", "a-out", "b-out"};
    struct weir__amqp_link *const to[] = {a.in, a.in, b.in, c.in, c.in, c.in, c.in, c.in};

    weir__amqp_flow(a.in, 10, false);
    weir__amqp_flow(b.in, 10, false);
    weir__amqp_flow(c.in, 10, false);
    talk(s);
    for (uint32_t i = 0; i < 8; i++) {
        request(s, a.out, "id", reply_tos[i], 0, i % 2);
        assert_int_equal(s->heard_count, i + 1);
        expect_reply_to(s, i, to[i], "id", reply_tos[i]);
    }
    assert_int_equal(s->accepted, 4);
    assert_int_equal(s->rejected, 0);
}

/* Links of other sessions are not looked at, whatever they are called. */
static void a_reply_stays_in_its_session(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", "at-a"), b;

    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    b = open_desk(s, "b", "at-b");
    weir__amqp_flow(a.in, 10, false);
    weir__amqp_flow(b.in, 10, false);
    request(s, a.out, "one", NULL, 0, false);
    request(s, a.out, "two", "at-b", 0, false);
    request(s, b.out, "three", "a", 0, false);
    assert_int_equal(s->heard_count, 3);
    expect_reply(s, 0, a.in, "one");
    expect_reply_to(s, 1, a.in, "two", "at-b");
    expect_reply_to(s, 2, b.in, "three", "a");
}

/* Its client has just let go of the link, and is not punished for that. */
static void without_a_link_a_request_is_dropped(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *out =
        attach(s, WEIR__AMQP_SENDER, "out", "$management", NULL, (struct weir__amqp_terms){0});
    struct weir__amqp_link *cbs =
        attach(s, WEIR__AMQP_RECEIVER, "in", "$cbs", NULL, (struct weir__amqp_terms){0});

    weir__amqp_flow(cbs, 10, false);
    request(s, out, "id", NULL, 0, false);
    assert_int_equal(s->accepted, 1);
    assert_int_equal(s->heard_count, 0);
}

static void a_target_that_is_long_is_not_kept(void **state)
{
    struct scene *s = *state;
    struct desk_links a, b;
    char long_one[300], just[257];

    memset(long_one, 'l', sizeof long_one);
    long_one[257] = '\0';
    memset(just, 'j', sizeof just);
    just[256] = '\0';
    a = open_desk(s, "a", long_one);
    b = open_desk(s, "b", just);
    open_desk(s, "c", NULL);
    weir__amqp_flow(a.in, 10, false);
    weir__amqp_flow(b.in, 10, false);
    request(s, a.out, "id", just, 0, false);
    assert_int_equal(s->heard_count, 1);
    expect_reply_to(s, 0, b.in, "id", just);
    request(s, a.out, "id", long_one, 0, false);
    assert_int_equal(s->heard_count, 1); /* c, the newest, has it */
}

/* ---- what replies say ---- */

static struct weir__amqp_pair pair_of(const char *name, struct weir__amqp_value value)
{
    return (struct weir__amqp_pair){weir__bytes_of(name, strlen(name)), value};
}

/* A request of these pairs and this body, a text or NULL, leaves the client, and its reply comes. */
static struct weir__amqp_message ask(struct scene *s, struct desk_links d,
                                     const struct weir__amqp_pair *pairs, uint32_t count,
                                     const char *body)
{
    struct weir__amqp_message reply;
    struct weir__amqp_writer w;
    struct weir__bytes message;
    uint8_t space[2048];
    size_t mark;

    weir__amqp_writer_init(&w, space, sizeof space);
    weir__amqp_put_descriptor(&w, 0x74);
    mark = weir__amqp_put_open(&w);
    for (uint32_t i = 0; i < count; i++) {
        weir__amqp_put(&w,
                       weir__amqp_bytes(WEIR__AMQP_STRING, pairs[i].name.at, pairs[i].name.len));
        weir__amqp_put(&w, pairs[i].value);
    }
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 2 * count);
    weir__amqp_put_descriptor(&w, 0x77);
    weir__amqp_put(&w, body ? text_of(body) : (struct weir__amqp_value){0});
    assert_int_equal(weir__amqp_writer_finish(&w, &message, NULL), 0);
    assert_int_equal(weir__amqp_send(d.out, message, 0, true, NULL), 0);
    s->heard_count = 0;
    weir__amqp_flow(d.in, 1, false);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_int_equal(s->heard[0].format, 0);
    assert_int_equal(weir__amqp_message_scan(&reply,
                                             weir__bytes_of(s->heard[0].bytes, s->heard[0].len),
                                             WEIR__AMQP_DEEP, NULL),
                     0);
    return reply;
}

static struct weir__amqp_value body_of(const struct weir__amqp_message *m)
{
    const struct weir__amqp_span *at = &m->section[WEIR__AMQP_BODY];
    struct weir__amqp_cursor c;
    struct weir__amqp_value out;

    assert_int_equal(m->body, WEIR__AMQP_BODY_VALUE);
    c = weir__amqp_cursor_of(weir__bytes_of(m->raw.at + at->value, at->end - at->value));
    assert_true(weir__amqp_read(&c, &out));
    return out;
}

static void expect_status(const struct weir__amqp_message *m, int64_t code, const char *text,
                          const char *operation)
{
    struct weir__amqp_value map = weir__amqp_message_map(m, WEIR__AMQP_APPLICATION_PROPERTIES), v;

    assert_true(weir__amqp_map_find(&map, "status-code", &v));
    assert_int_equal(v.type, WEIR__AMQP_INT);
    assert_int_equal(v.i, code);
    expect_text(&map, "status-description", WEIR__AMQP_STRING, text);
    expect_text(&map, "operation", WEIR__AMQP_STRING, operation);
    expect_text(&map, "error-condition", WEIR__AMQP_SYMBOL, NULL);
    assert_int_equal(map.count, 2 + (text ? 2 : 0) + (operation ? 2 : 0));
}

/* Names and texts may be symbols. What was read is the body, and the operation is named. */
static void what_was_read_is_the_body(void **state)
{
    struct weir__claim claim = {.rights = WEIR__RIGHT_LISTEN, .expires_s = INT64_MAX};
    const struct weir__amqp_pair pairs[] = {pair_of("operation", symbol("READ")),
                                            pair_of("type", text_of("com.microsoft:eventhub")),
                                            pair_of("name", symbol("eh1"))};
    struct scene *s = *state;
    struct desk_links d = open_desk(s, "a", NULL);
    struct weir__amqp_message m;
    struct weir__amqp_value body, count;

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
    m = ask(s, d, pairs, 3, NULL);
    expect_status(&m, 200, NULL, "READ");
    body = body_of(&m);
    assert_int_equal(body.type, WEIR__AMQP_MAP);
    expect_text(&body, "name", WEIR__AMQP_STRING, "eh1");
    assert_true(weir__amqp_map_find(&body, "partition_count", &count));
    assert_int_equal(count.i, 2);
}

/* Made by Microsoft's JavaScript client for sb://localhost/eh1, good until second 1700000000. */
#define TOKEN                                                                                      \
    "SharedAccessSignature sr=sb%3A%2F%2Flocalhost%2Feh1&"                                         \
    "sig=bXwnzzxeV2PFlM%2BGaXaWproC2URqPYHFIhvxuIqXTAA%3D&se=1700000000&"                          \
    "skn=RootManageSharedAccessKey"

/* Nothing but its status is said of a token, and no operation is named. */
static void a_good_token_is_accepted(void **state)
{
    static const struct weir__rule rule = {"RootManageSharedAccessKey",
                                           WEIR__RIGHTS_ALL,
                                           {"SAS_KEY_VALUE", "other"}};
    const struct weir__amqp_pair pairs[] = {pair_of("operation", text_of("put-token")),
                                            pair_of("type",
                                                    text_of("servicebus.windows.net:sastoken")),
                                            pair_of("name", text_of("sb://localhost/eh1"))};
    struct scene *s = *state;
    struct desk_links d;
    struct weir__amqp_message m;

    d.out = attach(s, WEIR__AMQP_SENDER, "out", "$cbs", NULL, (struct weir__amqp_terms){0});
    d.in = attach(s, WEIR__AMQP_RECEIVER, "in", "$cbs", NULL, (struct weir__amqp_terms){0});
    s->world.time.wall_ms = INT64_C(1699999000000);
    assert_int_equal(weir__namespace_rule_add(s->world.ns, NULL, &rule, NULL), 0);
    m = ask(s, d, pairs, 3, TOKEN);
    expect_status(&m, 202, "Accepted", NULL);
    assert_int_equal(body_of(&m).type, WEIR__AMQP_NULL);
    assert_int_equal(s->c.claims.count, 1);
}

/* ---- limits ---- */

static void replies_wait_for_credit_up_to_a_number(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);
    char id[16];

    for (int i = 0; i <= WEIR__SERVER_REPLIES_MAX; i++) {
        snprintf(id, sizeof id, "%d", i);
        request(s, a.out, id, NULL, 0, false);
    }
    assert_int_equal(s->accepted, WEIR__SERVER_REPLIES_MAX);
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, "amqp:resource-limit-exceeded");
    assert_string_equal(s->text, "32 replies wait for credit");
    assert_int_equal(s->heard_count, 0);
    assert_true(s->c.reply_bytes > 0);
    weir__amqp_flow(a.in, 10, false);
    talk(s);
    assert_int_equal(s->heard_count, 10);
    weir__amqp_flow(a.in, 100, true);
    talk(s);
    assert_int_equal(s->heard_count, WEIR__SERVER_REPLIES_MAX);
    for (uint32_t i = 0; i < WEIR__SERVER_REPLIES_MAX; i++) {
        snprintf(id, sizeof id, "%u", i);
        expect_reply(s, i, a.in, id);
    }
    assert_int_equal(s->c.reply_bytes, 0);
    request(s, a.out, "more", NULL, 0, false); /* the credit was taken back by the drain */
    assert_int_equal(s->heard_count, WEIR__SERVER_REPLIES_MAX);
    weir__amqp_flow(a.in, 1, false);
    talk(s);
    expect_reply(s, WEIR__SERVER_REPLIES_MAX, a.in, "more");
}

/* A reply repeats the name of its request. Strangers may keep fewer bytes waiting. */
static void replies_wait_for_credit_up_to_a_size(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);
    char id[1001];

    memset(id, 'i', sizeof id);
    id[1000] = '\0';
    while (!s->rejected) request(s, a.out, id, NULL, 0, false);
    assert_int_equal(s->accepted, 3); /* of 4 KiB */
    assert_true(s->c.reply_bytes <= WEIR__SERVER_STRANGER_REPLY_BYTES_MAX);
    s->c.trusted = true;
    request(s, a.out, id, NULL, 0, false);
    assert_int_equal(s->accepted, 4);
    s->c.trusted = false;
    request(s, a.out, id, NULL, 0, false);
    assert_int_equal(s->rejected, 2);
    assert_string_equal(s->text, "4 replies wait for credit");
}

/* To the byte; and what can go at once does not have to wait, however large it is. */
static void a_reply_that_waits_has_its_largest(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);
    char id[5001];
    size_t more;

    memset(id, 'i', sizeof id);
    id[300] = '\0';
    request(s, a.out, id, NULL, 0, false);
    more = s->c.reply_bytes - 300;
    weir__amqp_flow(a.in, 1, false);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    id[300] = 'i';
    id[WEIR__SERVER_STRANGER_REPLY_BYTES_MAX - more + 1] = '\0';
    request(s, a.out, id, NULL, 0, false);
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->text, "0 replies wait for credit");
    id[WEIR__SERVER_STRANGER_REPLY_BYTES_MAX - more] = '\0';
    request(s, a.out, id, NULL, 0, false);
    assert_int_equal(s->accepted, 2);
    assert_int_equal(s->c.reply_bytes, WEIR__SERVER_STRANGER_REPLY_BYTES_MAX);
    weir__amqp_flow(a.in, 2, false);
    talk(s);
    memset(id, 'i', sizeof id);
    id[5000] = '\0';
    request(s, a.out, id, NULL, 0, false);
    assert_int_equal(s->accepted, 3);
    assert_int_equal(s->heard_count, 3);
}

/* Requests come in; what the server says stays with it. */
static void only_ask(struct scene *s)
{
    do {
        while (weir__amqp_next(s->c.engine, &s->c.event))
            assert_true(weir__connection_on_event(&s->c, &s->c.event));
    } while (carry(s->client, s->c.engine));
}

/* A link with credit that finds the output full is remembered, and comes when there is room again. */
static void replies_wait_for_room(void **state)
{
    static char id[50001];
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);
    uint32_t asked = 0;

    s->c.trusted = true;
    memset(id, 'i', sizeof id - 1);
    weir__amqp_flow(a.in, 100, false);
    talk(s);
    assert_false(s->c.starved);
    while (!s->c.starved && asked < 90) {
        post(a.out, id, NULL, 0, false);
        only_ask(s);
        asked++;
    }
    assert_true(s->c.starved);
    assert_true(s->c.reply_bytes > sizeof id);
    talk(s);
    assert_int_equal(s->heard_count, asked - 1);
    weir__duty_pump_all(&s->c);
    talk(s);
    assert_int_equal(s->heard_count, asked);
    assert_int_equal(s->c.reply_bytes, 0);
}

/* Wherever memory ends, the request is refused and nothing of its reply is left, or it is answered. */
static void no_memory_for_a_reply(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);
    uint32_t refused = 0;
    bool failed = true;

    weir__amqp_flow(a.in, 10, false);
    request(s, a.out, "first", NULL, 0, false);
    for (uint64_t at = 1; failed; at++) {
        post(a.out, "id", NULL, 0, false);
        carry(s->client, s->c.engine);
        allocs_fail(at);
        only_ask(s);
        failed = allocs_failed();
        allocs_fail(0);
        talk(s);
        refused += failed;
        assert_int_equal(s->rejected, refused);
        assert_int_equal(s->heard_count, at + 1 - refused);
        assert_int_equal(s->c.reply_bytes, 0);
    }
    assert_true(refused >= 2);
    assert_string_equal(s->condition, WEIR__COND_SERVER_BUSY);
}

static void a_request_has_a_size(void **state)
{
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);
    size_t most;

    weir__amqp_flow(a.in, 10, false);
    most = LOTS + 65536 - post(a.out, "lots", NULL, LOTS, true);
    talk(s);
    expect_reply(s, 0, a.in, "lots");
    request(s, a.out, "fits", NULL, most, false);
    assert_int_equal(s->accepted, 1);
    expect_reply(s, 1, a.in, "fits");
    request(s, a.out, "over", NULL, most + 1, false);
    assert_int_equal(s->heard_count, 2);
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, "amqp:link:message-size-exceeded");
    assert_string_equal(s->text, "The request has more than 65536 bytes.");
}

/* A value or properties that break off are not answered: the sender is told. */
static void what_is_no_message_is_rejected(void **state)
{
    static const uint8_t cut[] = {0x00, 0x53, 0x77, 0xa1, 0x05, 'x'};
    static const uint8_t short_properties[] = {0x00, 0x53, 0x73, 0xc0, 0x03, 0x01, 0xa1};
    struct scene *s = *state;
    struct desk_links a = open_desk(s, "a", NULL);

    weir__amqp_flow(a.in, 10, false);
    weir__amqp_send(a.out, weir__bytes_of(cut, sizeof cut), 0, false, NULL);
    talk(s);
    assert_int_equal(s->rejected, 1);
    weir__amqp_send(a.out, weir__bytes_of(short_properties, sizeof short_properties), 0, false,
                    NULL);
    talk(s);
    assert_int_equal(s->rejected, 2);
    request(s, a.out, "good", NULL, 0, false);
    assert_int_equal(s->accepted, 1);
    assert_int_equal(s->heard_count, 1);
    expect_reply(s, 0, a.in, "good");
}

static void tokens_come_by_one_link(void **state)
{
    struct scene *s = *state;

    for (int i = 0; i < 2; i++)
        attach(s, WEIR__AMQP_RECEIVER, i ? "in1" : "in0", "$cbs", NULL,
               (struct weir__amqp_terms){0});
    attach(s, WEIR__AMQP_SENDER, "m", "$management", NULL, (struct weir__amqp_terms){0});
    attach(s, WEIR__AMQP_SENDER, "out0", "$cbs", NULL, (struct weir__amqp_terms){0});
    assert_int_equal(s->detached, 0);
    attach(s, WEIR__AMQP_SENDER, "out1", "$cbs", NULL, (struct weir__amqp_terms){0});
    assert_int_equal(s->detached, 1);
    assert_string_equal(s->condition, "amqp:not-allowed");
    assert_non_null(strstr(s->text, "$cbs node has already been opened."));
}

/* Two sessions with a window of one small frame each: the rest of one reply has its place, and there is no
 * memory for that of the other. */
static void a_reply_without_memory_is_sent_later(void **state)
{
    struct scene *s = *state;
    struct desk_links one = open_desk(s, "one", "here"), two;
    char id[900];

    memset(id, 'i', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    talk(s);
    two = open_desk(s, "two", "there");
    weir__amqp_flow(one.in, 1, false);
    weir__amqp_flow(two.in, 1, false);
    talk(s);
    s->c.engine->peer_frame = 512;
    for (struct weir__amqp_session *at = s->c.engine->sessions; at; at = at->next)
        at->remote_window = 1;
    s->no_room = true;
    post(one.out, id, "here", 0, true);
    post(two.out, id, "there", 0, true);
    carry(s->client, s->c.engine);
    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_int_equal(s->c.engine->rests, 1);
    assert_true(s->c.cramped);
    s->no_room = s->c.cramped = false;
    weir__duty_pump_all(&s->c);
    assert_int_equal(s->c.engine->rests, 2);
    assert_false(s->c.cramped);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_reply_goes_where_the_request_says),
        TEST(a_reply_stays_in_its_session),
        TEST(without_a_link_a_request_is_dropped),
        TEST(a_target_that_is_long_is_not_kept),
        TEST(what_was_read_is_the_body),
        TEST(a_good_token_is_accepted),
        TEST(replies_wait_for_credit_up_to_a_number),
        TEST(replies_wait_for_credit_up_to_a_size),
        TEST(a_reply_that_waits_has_its_largest),
        TEST(replies_wait_for_room),
        TEST(no_memory_for_a_reply),
        TEST(a_request_has_a_size),
        TEST(what_is_no_message_is_rejected),
        TEST(tokens_come_by_one_link),
        TEST(a_reply_without_memory_is_sent_later),
    };

    return cmocka_run_group_tests_name("desk", tests, NULL, NULL);
}
