/* Stored batches from a server that is not ours: whole ones and broken ones, mixed with messages, and
 * what a client makes of them. The server sends what a script says, one delivery after another, each
 * once, whatever the client asks for. */
#include "client/contract/place.h"

#include "amqp/message.h"
#include "amqp/state.h"
#include "base/crc.h"
#include "client/moody.h"
#include "hub/batch.h"
#include "hub/stored.h"

#define EVENTS 3u /* of a batch */
#define DELIVERIES_MAX 8
#define PAYLOAD_BYTES 512
#define FLOOD_EVENT_MAX ((size_t)100 << 10)
#define HANG_S 60
#define TOO_MUCH "the other side sent %lu bytes, though only %lu were allowed"
#define SELECTOR "apache.org:selector-filter:string"

struct delivery {
    uint32_t format;
    size_t len;
    uint8_t at[PAYLOAD_BYTES];
};

static struct moody moody;
static atomic_uint_fast64_t sent_bytes; /* of the flood */
static size_t flood_event;              /* bytes of an event in it */
static unsigned flood_len;
static struct delivery script[DELIVERIES_MAX];
static unsigned script_len, said;
static unsigned desired;     /* attaches that wanted batches */
static char selector[128];   /* of the last attach */
static atomic_uint attaches; /* that the server has seen */
static uint32_t asked_for;   /* the partition */
static unsigned sessions;    /* in which links were attached, one after the other */
static struct weir__amqp_session *session;

/* ---- the server ---- */

static bool desires(const struct weir__amqp_value *v)
{
    return v->type == WEIR__AMQP_SYMBOL && v->bytes.len == strlen(WEIR__STORED_CAPABILITY) &&
           memcmp(v->bytes.at, WEIR__STORED_CAPABILITY, v->bytes.len) == 0;
}

static void note_attach(struct moody *m, const struct weir__amqp_event *ev)
{
    struct weir__amqp_composite source;
    struct weir__amqp_value v, descriptor;

    (void)m;
    sessions += ev->link->s != session;
    session = ev->link->s;
    desired += desires(&ev->fields->attach.desired_capabilities);
    if (weir__amqp_composite_of(&ev->fields->attach.source, WEIR__AMQP_KIND_SET(WEIR__AMQP_SOURCE),
                                &source, NULL) == 0 &&
        weir__amqp_map_find(&source.source.filter, SELECTOR, &v) &&
        weir__amqp_described(&v, &descriptor, &v))
        snprintf(selector, sizeof selector, "%.*s", (int)v.bytes.len, (const char *)v.bytes.at);
    atomic_fetch_add(&attaches, 1);
}

static void send_script(struct moody *m, struct weir__amqp_link *l)
{
    (void)m;
    while (said < script_len && weir__amqp_sendable(l) > 0) {
        struct delivery *d = &script[said++];
        if (weir__amqp_send(l, weir__bytes_of(d->at, d->len), d->format, true, NULL) != 0) abort();
    }
}

static int start(void **state)
{
    (void)state;
    alarm(HANG_S);
    script_len = said = desired = sessions = 0;
    session = NULL;
    asked_for = 0;
    atomic_store(&attaches, 0);
    atomic_store(&sent_bytes, 0);
    memset(&moody, 0, sizeof moody);
    moody.attached = note_attach;
    moody.flowed = send_script;
    return 0;
}

/* ---- what it says ---- */

/* A batch of EVENTS that are all this; returns its length. */
static size_t write_batch(uint8_t *to, uint64_t sequence, struct weir__bytes body)
{
    struct weir__amqp_content content = {.data = body};
    struct weir__batch_writer w;
    struct weir__batch b;
    struct weir__log_view view = {.sequence = sequence, .offset = 4096 + sequence, .time_ms = 77};
    size_t head;

    weir__batch_writer_init(&w, 0);
    assert_ok(weir__batch_writer_start(&w, weir__bytes_of("key", 3), &err));
    for (unsigned i = 0; i < EVENTS; i++) assert_ok(weir__batch_writer_add(&w, &content, &err));
    assert_ok(weir__batch_writer_batch(&w, &b, &err));
    view.attrs = b.attrs;
    view.count = b.count;
    view.body = b.body[0];
    view.body_crc = weir__crc32c(0, view.body.at, view.body.len);
    head = weir__stored_head(to, &view, NULL);
    memcpy(to + head, view.body.at, view.body.len);
    weir__batch_writer_fini(&w);
    return head + view.body.len;
}

static struct delivery *say_batch(uint64_t sequence)
{
    struct delivery *d = &script[script_len++];

    d->len = write_batch(d->at, sequence, weir__bytes_of("stored", 6));
    d->format = WEIR__STORED_FORMAT;
    return d;
}

static uint8_t flood[EVENTS * FLOOD_EVENT_MAX + PAYLOAD_BYTES];

static size_t write_flood(uint64_t sequence)
{
    static uint8_t body[FLOOD_EVENT_MAX];

    return write_batch(flood, sequence, weir__bytes_of(body, flood_event));
}

/* As many batches as the client lets come, up to flood_len. */
static void send_flood(struct moody *m, struct weir__amqp_link *l)
{
    (void)m;
    while (said < flood_len && weir__amqp_sendable(l) > 0) {
        size_t len = write_flood((uint64_t)said * EVENTS);
        if (weir__amqp_send(l, weir__bytes_of(flood, len), WEIR__STORED_FORMAT, true, NULL) != 0)
            return;
        said++;
        atomic_fetch_add(&sent_bytes, len);
    }
}

static void say_message(uint64_t sequence)
{
    struct delivery *d = &script[script_len++];
    static const char message[] = "\x00\x53\x75\xa0\x06single";
    struct weir__amqp_stamp stamp = {.sequence = (int64_t)sequence, .offset = 4096 + sequence};

    assert_ok(weir__amqp_compose(weir__bytes_of(message, sizeof message - 1), &stamp, d->at,
                                 PAYLOAD_BYTES, &d->len, &err));
    d->format = 0;
}

/* Both checksums are right again. */
static void seal(struct delivery *d)
{
    size_t head = WEIR__STORED_HEAD_BYTES;

    weir__store32(d->at + 8, weir__crc32c(0, d->at + head, d->len - head));
    weir__store32(d->at, weir__crc32c(0, d->at + 4, head - 4));
}

/* ---- the client ---- */

#define LINE_BYTES 256

static char lines[4]
                 [LINE_BYTES]; /* of the log, with what is wrong; the client's until it is closed */
static unsigned line_count;

static void note(enum weir_level level, const char *room, const char *line, void *user)
{
    static const char *const names[] = {"", "", "warn", "error"};

    (void)room, (void)user;
    if (level >= WEIR_WARN && line_count < 4)
        snprintf(lines[line_count++], LINE_BYTES, "%s %s", names[level], line);
}

#define LINK "h/ConsumerGroups/$Default/Partitions/0: "

static struct weir *open_moody(void)
{
    struct weir_options o = {.size = sizeof o,
                             .patience_ms = PATIENCE_MS,
                             .idle_ms = 5000,
                             .log = note};
    char text[256];
    struct weir *w;

    line_count = 0;
    moody_start(&moody);
    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             moody.address);
    assert_ok(weir_open(&w, text, &o, &err));
    return w;
}

static void close_moody(struct weir *w, struct weir_receiver *r)
{
    weir_receiver_close(r);
    assert_ok(weir_close(w, &err));
    moody_stop(&moody);
}

static void assert_event(struct weir_receiver *r, uint64_t sequence, const char *text,
                         uint64_t missed)
{
    struct weir_received got;

    assert_ok(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err));
    assert_int_equal(got.count, 1);
    assert_int_equal(got.missed, missed);
    assert_int_equal(got.events[0].partition, asked_for);
    assert_int_equal(got.events[0].sequence, sequence);
    assert_int_equal(got.events[0].offset, 4096 + sequence);
    assert_text(got.events[0].body, text);
}

static void batches_and_messages_may_follow_each_other(void **state)
{
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    say_message(0);
    say_batch(1);
    say_batch(4);
    say_message(7);
    say_message(8);
    say_batch(9);
    asked_for = 3;
    w = open_moody();
    r = open_receiver(w, asked_for);
    assert_event(r, 0, "single", 0);
    for (unsigned i = 1; i < 7; i++) assert_event(r, i, "stored", 0);
    assert_event(r, 7, "single", 0);
    assert_event(r, 8, "single", 0);
    for (unsigned i = 9; i < 12; i++) assert_event(r, i, "stored", 0);
    assert_nothing(r);
    close_moody(w, r);
    assert_int_equal(desired, 1);
}

/* An event that others have written need not be in the usual form; it comes as all others do. */
static void unusual_events_of_a_batch_come(void **state)
{
    static const char body[] = "\x00\x53\x75\xa0\x0b"
                               "\x00\x53\x75\xa0\x06stored"
                               "\x00\x80\0\0\0\0\0\0\0\x75\xa0\x0b"
                               "\x00\x53\x75\xa0\x06stored"
                               "\x00\x53\x75\xa0\x0b"
                               "\x00\x53\x75\xa0\x06stored";
    struct weir__log_view view = {.offset = 4096, .time_ms = 77, .count = EVENTS};
    struct delivery *d = &script[script_len++];
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    view.body = weir__bytes_of(body, sizeof body - 1);
    view.body_crc = weir__crc32c(0, body, sizeof body - 1);
    d->len = weir__stored_head(d->at, &view, NULL);
    memcpy(d->at + d->len, body, sizeof body - 1);
    d->len += sizeof body - 1;
    d->format = WEIR__STORED_FORMAT;
    say_batch(3);
    w = open_moody();
    r = open_receiver(w, 0);
    for (unsigned i = 0; i < 6; i++) assert_event(r, i, "stored", 0);
    close_moody(w, r);
}

/* What has come is not asked for again, though the caller has had nothing of it yet. */
static void a_new_link_goes_on_behind_the_newest_message(void **state)
{
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    for (unsigned i = 0; i < 4; i++) say_message(i);
    *script[script_len].at = 'x'; /* no batch: it costs the link, and comes behind the others */
    script[script_len].len = 1;
    script[script_len++].format = WEIR__STORED_FORMAT;
    w = open_moody();
    r = open_receiver(w, 0);
    while (atomic_load(&attaches) < 2) sched_yield();
    assert_string_equal(selector, "amqp.annotation.x-opt-sequence-number > '3'");
    for (unsigned i = 0; i < 4; i++) assert_event(r, i, "single", 0);
    close_moody(w, r);
}

/* Whatever is broken about it, it is not used, and what is behind the last good one is asked for
 * again: as events, this time. */
static void check_broken(void (*spoil)(struct delivery *))
{
    struct weir_receiver *r;
    struct weir *w;

    start(NULL);
    say_batch(0);
    spoil(say_batch(3));
    say_message(3);
    w = open_moody();
    r = open_receiver(w, 0);
    for (unsigned i = 0; i < 3; i++) assert_event(r, i, "stored", 0);
    /* What was under way behind it on the first link may have been lost: it comes by the second. */
    while (atomic_load(&attaches) < 2) assert_nothing(r);
    close_moody(w, r);
    assert_int_equal(desired, 1);
    assert_string_equal(selector, "amqp.annotation.x-opt-sequence-number > '2'");
    assert_int_equal(line_count, 1);
    assert_memory_equal(lines[0], "warn " LINK "a stored batch ", 59);
    assert_non_null(strstr(lines[0], "; asking for its events instead"));
}

static void spoil_body(struct delivery *d)
{
    d->at[d->len - 1] ^= 1;
}

static void spoil_head(struct delivery *d)
{
    d->at[24] ^= 1;
}

static void spoil_length(struct delivery *d)
{
    d->len--;
}

static void spoil_all(struct delivery *d)
{
    d->len = 7;
}

static void spoil_attributes(struct delivery *d)
{
    d->at[7] = 0x80;
    seal(d);
}

static void spoil_count(struct delivery *d)
{
    weir__store32(d->at + 16, UINT32_MAX);
    seal(d);
}

static void spoil_skip(struct delivery *d)
{
    weir__store32(d->at + 20, EVENTS);
    seal(d);
}

static void a_broken_batch_is_asked_for_again_as_events(void **state)
{
    void (*const all[])(struct delivery *) = {spoil_body, spoil_head,       spoil_length,
                                              spoil_all,  spoil_attributes, spoil_count,
                                              spoil_skip};

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) check_broken(all[i]);
}

/* One that nobody asked for, from a server that would only send the same again. */
static void a_broken_batch_that_was_not_desired_ends_it(void **state)
{
    const struct weir_receiver_options o = {.size = sizeof o, .events_max = 100};
    struct weir_received got;
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    say_batch(0);
    spoil_body(say_batch(3));
    w = open_moody();
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    for (unsigned i = 0; i < 3; i++) assert_event(r, i, "stored", 0);
    assert_int_equal(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err), WEIR_ECORRUPT);
    close_moody(w, r);
    assert_int_equal(desired, 0);
    assert_int_equal(line_count, 1);
    assert_string_equal(lines[0], "warn " LINK "a stored batch has a body that fails its checksum");
}

/* Its place in the session is free then, and only once. */
static void a_link_that_was_ended_leaves_room_for_another(void **state)
{
    const struct weir_receiver_options o = {.size = sizeof o, .events_max = 100};
    struct weir_receiver *r[2];
    struct weir_received got;
    struct weir *w;

    (void)state;
    spoil_body(say_batch(0));
    w = open_moody();
    assert_ok(weir_receiver_open(&r[0], w, "h", 0, &o, &err));
    assert_int_equal(weir_receiver_receive(r[0], 1, PATIENCE_MS, &got, &err), WEIR_ECORRUPT);
    weir_receiver_close(r[0]);
    assert_ok(weir_receiver_open(&r[1], w, "h", 0, &o, &err));
    close_moody(w, r[1]);
    assert_int_equal(atomic_load(&attaches), 2);
    assert_int_equal(sessions, 1);
}

/* Whole, and still no row of events from its second one on: these are missing, and told so. */
static void a_body_that_cannot_be_walked_is_passed_over(void **state)
{
    struct weir_receiver *r;
    struct weir *w;
    struct delivery *d;

    (void)state;
    say_batch(0);
    d = say_batch(3);
    d->at[d->len - (d->len - WEIR__STORED_HEAD_BYTES - 5) * 2 / 3] = 0xff;
    seal(d);
    d = say_batch(6);
    weir__store16(d->at + WEIR__STORED_HEAD_BYTES, UINT16_MAX); /* of the key */
    seal(d);
    say_batch(9);
    w = open_moody();
    r = open_receiver(w, 0);
    for (unsigned i = 0; i < 4; i++) assert_event(r, i, "stored", 0);
    assert_event(r, 9, "stored", 5);
    close_moody(w, r);
    assert_int_equal(line_count, 2);
    for (int i = 0; i < 2; i++) assert_memory_equal(lines[i], "error " LINK, 45);
}

/* However large batches are, and however they change, no more of them is under way or in memory than
 * bytes_max, one batch, and what the caller has. And they never stop coming. */
static void check_flood(size_t event, size_t bytes_max, unsigned batches)
{
    const struct weir_receiver_options o = {.size = sizeof o, .bytes_max = bytes_max};
    uint64_t batch, next = 0;
    struct weir_received got;
    struct weir_receiver *r;
    struct weir *w;

    start(NULL);
    moody.offers = WEIR__STORED_CAPABILITY;
    moody.flowed = send_flood;
    flood_event = event;
    flood_len = batches;
    batch = write_flood(0);
    w = open_moody();
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    while (next < (uint64_t)batches * EVENTS) {
        uint64_t sent = atomic_load(&sent_bytes), read = next / EVENTS * batch + batch;
        assert_true(sent < read || sent - read <= bytes_max);
        assert_ok(weir_receiver_receive(r, 100, PATIENCE_MS, &got, &err));
        assert_int_equal(got.missed, 0);
        next += got.count;
        assert_int_equal(got.events[got.count - 1].sequence, next - 1);
    }
    close_moody(w, r);
}

static void memory_is_limited_in_bytes(void **state)
{
    (void)state;
    check_flood(1, 4096, 5000);
    check_flood(1000, 65536, 1000);
    check_flood(FLOOD_EVENT_MAX, 4096, 30);
    check_flood(FLOOD_EVENT_MAX, (size_t)1 << 20, 30);
    check_flood(1, SIZE_MAX, 5000);
}

/* What is no message is passed over: it would cost nothing of a limit in bytes. */
static void empty_deliveries_are_passed_over(void **state)
{
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    moody.offers = WEIR__STORED_CAPABILITY;
    for (int i = 0; i < 3; i++) script[script_len++] = (struct delivery){.format = 0};
    say_batch(0);
    w = open_moody();
    assert_ok(weir_receiver_open(&r, w, "h", 0, NULL, &err));
    for (uint64_t i = 0; i < EVENTS; i++) assert_event(r, i, "stored", 0);
    close_moody(w, r);
}

static void send_without_limit(struct moody *m, struct weir__amqp_link *l)
{
    l->limit = UINT64_MAX;
    send_flood(m, l);
}

/* Nobody can make a client hold more than it has asked for. */
static void a_server_that_sends_too_much_is_left(void **state)
{
    const struct weir_receiver_options o = {.size = sizeof o, .bytes_max = 65536};
    unsigned long sent, allowed;
    struct weir_received got;
    struct weir_receiver *r;
    const char *said_of;
    struct weir *w;

    (void)state;
    moody.offers = WEIR__STORED_CAPABILITY;
    moody.flowed = send_without_limit;
    flood_event = 20000;
    flood_len = 20000;
    w = open_moody();
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    while (weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err) == 0)
        assert_int_equal(got.count, 1);
    assert_int_equal(err.code, WEIR_EIO);
    said_of = strstr(err.text, "the other side sent ");
    assert_non_null(said_of);
    assert_int_equal(sscanf(said_of, TOO_MUCH, &sent, &allowed), 2);
    assert_true(allowed >= 65536);
    assert_in_range(sent - allowed, 1, 2 * EVENTS * (flood_event + 100));
    close_moody(w, r);
}

static void detach_once_full(struct moody *m, struct weir__amqp_link *l)
{
    static const char forced[] = "amqp:link:detach-forced";
    struct weir__amqp_error why = {weir__bytes_of(forced, strlen(forced)), {0}};

    send_flood(m, l);
    if (atomic_load(&attaches) == 1) weir__amqp_detach(l, &why);
}

/* It lets nothing come before the program has made room, and then all of it. */
static void a_full_client_attaches_again(void **state)
{
    const struct weir_receiver_options o = {.size = sizeof o, .bytes_max = 65536};
    struct weir_received got;
    struct weir_receiver *r;
    struct weir *w;
    uint64_t batch;

    (void)state;
    moody.offers = WEIR__STORED_CAPABILITY;
    moody.flowed = detach_once_full;
    flood_event = 20000;
    flood_len = 5;
    batch = write_flood(0);
    w = open_moody();
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    while (atomic_load(&attaches) < 2) sched_yield();
    for (unsigned i = 0; i < 5 * EVENTS; i++) {
        assert_ok(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err));
        assert_int_equal(got.events[0].sequence, i);
        if (i < 2) assert_int_equal(atomic_load(&sent_bytes), 2 * batch);
    }
    close_moody(w, r);
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(batches_and_messages_may_follow_each_other),
        TEST(unusual_events_of_a_batch_come),
        TEST(a_new_link_goes_on_behind_the_newest_message),
        TEST(a_broken_batch_is_asked_for_again_as_events),
        TEST(a_broken_batch_that_was_not_desired_ends_it),
        TEST(a_link_that_was_ended_leaves_room_for_another),
        TEST(a_body_that_cannot_be_walked_is_passed_over),
        TEST(memory_is_limited_in_bytes),
        TEST(a_server_that_sends_too_much_is_left),
        TEST(a_full_client_attaches_again),
        TEST(empty_deliveries_are_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
