/* receiving_memory_test.c - the memory of what was read for receivers: it is booked, and is not kept
 * while memory is short; what is read again is sent once. */
#include "amqp/state.h"
#include "hub/stored.h"
#include "server/links.h"

#define BATCHES 6
#define EACH 50 /* events of a batch */
#define ALL (BATCHES * EACH)
#define TAKE 32                /* events that a receiver takes at once */
#define ONE_READER (128 << 10) /* all batches, and the rest of a block */

/* Long enough for the output to be full before all are sent. */
static const char *text_of_events(void)
{
    static char text[240];

    memset(text, 'x', sizeof text - 1);
    return text;
}

static struct weir__hub *use(struct scene *s)
{
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    return hub;
}

static void publish(struct scene *s, uint32_t partition, const char *text, int batches)
{
    struct weir__hub *hub = use(s);

    for (int i = 0; i < batches; i++)
        assert_int_equal(world_publish(&s->world, hub, partition, text, EACH, NULL), 0);
    weir__hub_release(hub);
}

static void publish_all(struct scene *s)
{
    publish(s, 1, text_of_events(), BATCHES);
}

static struct weir__hub_stats count_delivered(struct scene *s)
{
    struct weir__hub *hub = use(s);
    struct weir__hub_stats stats;

    weir__hub_stats(hub, &stats);
    weir__hub_release(hub);
    return stats;
}

static struct weir__amqp_link *receive_from(struct scene *s, uint32_t partition, const char *name,
                                            bool batches)
{
    struct weir__claim claim = {.rights = WEIR__RIGHT_LISTEN, .expires_s = INT64_MAX};
    struct weir__amqp_terms terms = {0};
    char address[64];

    snprintf(address, sizeof address, "eh1/ConsumerGroups/$Default/Partitions/%u", partition);
    if (batches)
        terms.desired_capabilities = weir__amqp_bytes(WEIR__AMQP_SYMBOL, WEIR__STORED_CAPABILITY,
                                                      strlen(WEIR__STORED_CAPABILITY));
    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
    return attach(s, WEIR__AMQP_RECEIVER, name, address, NULL, terms);
}

static struct weir__amqp_link *receive(struct scene *s, const char *name, bool batches)
{
    return receive_from(s, 1, name, batches);
}

static size_t booked(const struct scene *s)
{
    return atomic_load(&s->server.budget.used);
}

/* Whatever is held is more than half of it. */
static void be_short(struct scene *s)
{
    s->server.budget.limits.bytes = 1;
}

/* Every event came once, in order. */
static void heard_all_events(struct scene *s)
{
    struct weir__amqp_message m;
    char body[256];

    assert_int_equal(s->heard_count, ALL);
    for (int i = 0; i < ALL; i++) {
        int len = snprintf(body, sizeof body, "%s %d", text_of_events(), i % EACH);
        assert_int_equal(weir__amqp_message_scan(&m,
                                                 weir__bytes_of(s->heard[i].bytes, s->heard[i].len),
                                                 WEIR__AMQP_DEEP, NULL),
                         0);
        assert_int_equal(m.data.len, len);
        assert_memory_equal(m.data.at, body, (size_t)len);
    }
}

/* The events that came by this link are the first of a batch, each of them. */
static void heard_in_order(struct scene *s, const struct weir__amqp_link *link, const char *text)
{
    struct weir__amqp_message m;
    char body[1200];
    int n = 0;

    for (uint32_t i = 0; i < s->heard_count; i++) {
        const struct heard *h = &s->heard[i];
        int len = snprintf(body, sizeof body, "%s %d", text, n);
        if (h->link != link) continue;
        assert_int_equal(weir__amqp_message_scan(&m, weir__bytes_of(h->bytes, h->len),
                                                 WEIR__AMQP_DEEP, NULL),
                         0);
        assert_int_equal(m.data.len, len);
        assert_memory_equal(m.data.at, body, (size_t)len);
        n++;
    }
    assert_int_equal(n, EACH);
}

/* The batches that came by this link are so many, from the first on. */
static void heard_batches_in_order(struct scene *s, const struct weir__amqp_link *link,
                                   uint32_t count)
{
    struct weir__log_view view;
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->heard_count; i++) {
        if (s->heard[i].link != link) continue;
        weir__stored_view(weir__bytes_of(s->heard[i].bytes, s->heard[i].len), &view);
        assert_int_equal(view.sequence, n++ * EACH);
    }
    assert_int_equal(n, count);
}

/* ---- what is held ---- */

static void what_was_read_is_booked_until_the_link_goes(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *one = receive(s, "one", false), *two = receive(s, "two", true);
    size_t first;

    publish_all(s);
    assert_int_equal(booked(s), 0);
    weir__amqp_flow(one, 1, false);
    talk(s);
    first = booked(s);
    assert_in_range(first, EACH * 240, 256 << 10);
    weir__amqp_flow(two, 1, false);
    talk(s);
    assert_in_range(booked(s), first + EACH * 240, 512 << 10);
    assert_int_equal(s->c.reader_bytes, booked(s));
    weir__amqp_detach(one, NULL);
    talk(s);
    assert_int_equal(s->c.reader_bytes, booked(s));
    assert_in_range(booked(s), EACH * 240, 256 << 10);
    weir__amqp_detach(two, NULL);
    talk(s);
    assert_int_equal(booked(s), 0);
}

/* Its memory is given back at once, not when the peer has answered. */
static void who_loses_its_place_keeps_nothing(void **state)
{
    const struct weir__receiver_options better = {.group = "$Default",
                                                  .partition = 1,
                                                  .from = {.kind = WEIR__FROM_LATEST},
                                                  .epoch = 1,
                                                  .credit = WEIR__CREDIT_UNLIMITED};
    struct scene *s = *state;
    struct weir__amqp_link *link = receive(s, "r", false);
    struct weir__hub *hub = use(s);
    struct weir__receiver *r;

    publish_all(s);
    weir__amqp_flow(link, 1, false);
    talk(s);
    assert_in_range(booked(s), EACH * 240, 256 << 10);
    assert_int_equal(weir__receiver_attach(&r, hub, &better, NULL), 0);
    weir__duty_take_ready(&s->c);
    assert_int_equal(booked(s), 0);
    assert_int_equal(s->c.reader_bytes, 0);
    weir__receiver_close(r);
    weir__hub_release(hub);
    talk(s);
    assert_int_equal(s->detached, 1);
}

static void at_the_end_little_is_kept(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *events = receive(s, "events", false);
    struct weir__amqp_link *batches = receive(s, "batches", true);

    publish_all(s);
    weir__amqp_flow(events, ALL, false);
    weir__amqp_flow(batches, BATCHES, false);
    talk(s);
    assert_int_equal(s->heard_count, BATCHES + ALL);
    assert_in_range(booked(s), 2 * EACH * 240, 2 * ONE_READER); /* there might be more */
    weir__amqp_flow(events, 1, false);
    weir__amqp_flow(batches, 1, false);
    talk(s);
    assert_int_equal(booked(s), 0);
}

/* ---- while memory is short ---- */

static void nothing_is_kept_for_who_has_no_credit(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link = receive(s, "r", false);

    be_short(s);
    publish_all(s);
    weir__amqp_flow(link, 1, false);
    talk(s);
    assert_int_equal(s->heard_count, 1);
    assert_int_equal(booked(s), 0);
    for (int left = ALL - 1; left > 0; left -= 23) {
        weir__amqp_flow(link, 23, false);
        talk(s);
        assert_int_equal(booked(s), 0);
    }
    heard_all_events(s);
    assert_int_equal(count_delivered(s).delivered_events, ALL);
}

/* As a connection does when something was written. */
static void pump_the_starved(struct scene *s)
{
    while (s->c.starved) {
        s->c.starved = false;
        weir__duty_pump_all(&s->c);
        assert_in_range(booked(s), 0, 3 * ONE_READER);
        talk(s);
    }
}

static uint64_t reads(struct scene *s)
{
    struct weir__hub_stats stats = count_delivered(s);

    return stats.log.tail_reads + stats.log.disk_reads;
}

/* The output takes one delivery at a time. What waits for that is kept, and not read with every write. All is
 * sent and counted once. */
static void what_found_no_room_is_read_again(void **state)
{
    struct scene *s = *state;
    struct weir__hub_stats once;
    uint64_t before, batches, events;

    be_short(s);
    publish_all(s);
    s->no_room = true;
    before = reads(s);
    weir__amqp_flow(receive(s, "batches", true), BATCHES, false);
    weir__amqp_flow(receive(s, "more batches", true), BATCHES, false);
    weir__amqp_flow(receive(s, "events", false), ALL, false);
    talk(s);
    assert_true(s->c.starved);
    pump_the_starved(s);
    assert_int_equal(s->heard_count, 2 * BATCHES + ALL);
    assert_int_equal(booked(s), 0);
    assert_in_range(reads(s) - before, 3, 4 * BATCHES + 2 * ALL / TAKE);
    once = count_delivered(s);
    assert_int_equal(once.delivered_events, 3 * ALL);

    s->no_room = false;
    s->server.budget.limits.bytes = WEIR__BUDGET_BYTES;
    weir__amqp_flow(receive(s, "all batches", true), BATCHES, false);
    talk(s);
    batches = count_delivered(s).delivered_bytes - once.delivered_bytes;
    weir__amqp_flow(receive(s, "all events", false), ALL, false);
    talk(s);
    events = count_delivered(s).delivered_bytes - once.delivered_bytes - batches;
    assert_int_equal(once.delivered_bytes, 2 * batches + events);
}

static void narrow_the_window(struct scene *s, uint32_t frames)
{
    for (struct weir__amqp_session *at = s->c.engine->sessions; at; at = at->next)
        at->remote_window = frames;
}

/* A peer whose window is closed may be silent for long; what it has not taken is read again, once. */
static void nothing_is_kept_for_who_has_closed_its_window(void **state)
{
    struct scene *s = *state;

    for (int batches = 0; batches < 2; batches++) {
        struct weir__amqp_link *link = receive(s, batches ? "b" : "e", batches);
        uint32_t all = batches ? BATCHES : ALL;
        s->heard_count = 0;
        be_short(s);
        if (!batches) publish_all(s);
        weir__amqp_flow(link, all, false);
        carry(s->client, s->c.engine);
        narrow_the_window(s, batches ? 1 : 3);
        while (weir__amqp_next(s->c.engine, &s->c.event)) {
            narrow_the_window(s, batches ? 1 : 3);
            assert_true(weir__connection_on_event(&s->c, &s->c.event));
        }
        weir__duty_take_ready(&s->c);
        assert_int_equal(booked(s), 0);
        talk(s);
        weir__amqp_flow(link, all, false); /* says how wide the window is */
        talk(s);
        assert_int_equal(s->heard_count, all);
        if (!batches) heard_all_events(s);
        if (batches) heard_batches_in_order(s, link, BATCHES);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
    assert_int_equal(count_delivered(s).delivered_events, 2 * ALL);
}

/* Ten receivers of both kinds, each with batches of 60 KB to read; the first fills the output. Of the others,
 * some keep 1 MiB together, and the rest do not read again before there is room. */
static void few_keep_what_found_no_room(void **state)
{
    static char text[1100];
    const size_t each = 256 << 10, kept = (1 << 20) + each;
    struct scene *s = *state;
    struct weir__amqp_link *links[10];
    uint64_t before;

    memset(text, 'x', sizeof text - 1);
    be_short(s);
    for (uint32_t i = 0; i < 2; i++) publish(s, i, text, 6);
    for (uint32_t i = 0; i < 10; i++)
        links[i] = receive_from(s, i % 2, (char[]){(char)('a' + i), '\0'}, i % 3 == 0);
    s->no_room = true;
    for (uint32_t i = 0; i < 10; i++) weir__amqp_flow(links[i], i % 3 == 0 ? 6 : EACH, false);
    carry(s->client, s->c.engine); /* and nobody writes what is put out */
    while (weir__amqp_next(s->c.engine, &s->c.event))
        assert_true(weir__connection_on_event(&s->c, &s->c.event));
    assert_in_range(booked(s), 2 * each, kept);
    before = reads(s);
    for (int i = 0; i < 20; i++) weir__duty_pump_all(&s->c);
    for (struct weir__duty *d = s->c.duties; d; d = d->next) {
        s->c.starved = false;
        weir__duty_pump(d);
        assert_true(s->c.starved); /* each of them waits for room, and for nothing else */
        assert_null(s->c.ready);
    }
    assert_int_equal(reads(s), before);
    while (s->c.starved) {
        s->c.starved = false;
        weir__duty_pump_all(&s->c);
        assert_in_range(booked(s), 0, kept);
        talk(s);
    }
    assert_int_equal(s->heard_count, 4 * 6 + 6 * EACH);
    for (uint32_t i = 0; i < 10; i++)
        if (i % 3 == 0)
            heard_batches_in_order(s, links[i], 6);
        else
            heard_in_order(s, links[i], text);
    assert_int_equal(booked(s), 0);
}

/* Two sessions with a window of one small frame each: the rest of one message has its place, and there is
 * no memory for that of the other. */
static void a_receiver_without_memory_is_pumped_again(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *one = receive(s, "one", true), *two;

    weir__amqp_flow(one, 1, false);
    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    talk(s);
    two = receive(s, "two", true);
    weir__amqp_flow(two, 1, false);
    talk(s);
    s->c.engine->peer_frame = s->c.engine->peer_large_frame = 512;
    for (struct weir__amqp_session *at = s->c.engine->sessions; at; at = at->next)
        at->remote_window = 1;
    s->no_room = true;
    publish(s, 1, text_of_events(), 1);
    weir__duty_take_ready(&s->c);
    assert_int_equal(s->c.engine->rests, 1);
    assert_true(s->c.cramped);
    s->no_room = s->c.cramped = false;
    weir__duty_pump_all(&s->c);
    assert_int_equal(s->c.engine->rests, 2);
    assert_false(s->c.cramped);
    weir__amqp_flow(one, 1, false);
    weir__amqp_flow(two, 1, false);
    talk(s);
    assert_int_equal(s->heard_count, 2);
}

static void batches_are_read_again(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link = receive(s, "r", true);
    struct weir__log_view view;

    be_short(s);
    publish_all(s);
    for (uint32_t i = 0; i < BATCHES; i++) {
        weir__amqp_flow(link, 1, false);
        talk(s);
        assert_int_equal(s->heard_count, i + 1);
        assert_int_equal(booked(s), 0);
        weir__stored_view(weir__bytes_of(s->heard[i].bytes, s->heard[i].len), &view);
        assert_int_equal(view.sequence, i * EACH);
    }
    assert_int_equal(count_delivered(s).delivered_events, ALL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(what_was_read_is_booked_until_the_link_goes),
        TEST(at_the_end_little_is_kept),
        TEST(nothing_is_kept_for_who_has_no_credit),
        TEST(what_found_no_room_is_read_again),
        TEST(nothing_is_kept_for_who_has_closed_its_window),
        TEST(few_keep_what_found_no_room),
        TEST(a_receiver_without_memory_is_pumped_again),
        TEST(batches_are_read_again),
        TEST(who_loses_its_place_keeps_nothing),
    };

    return cmocka_run_group_tests_name("receiving_memory", tests, NULL, NULL);
}
