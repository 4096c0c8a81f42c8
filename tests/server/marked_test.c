/* marked_test.c - idempotent producers: what they are told when they attach, and what becomes of batches
 * that carry their marks. */
#include "server/links.h"
#include "server/mark.h"

#define ADDRESS "eh1/Partitions/1"
#define ID "com.microsoft:producer-id"
#define EPOCH "com.microsoft:producer-epoch"
#define SEQUENCE "com.microsoft:producer-sequence-number"
#define UNSAID INT64_MIN

/* A producer as its client says it, or as it is told. */
struct mark {
    int64_t id, epoch, sequence;
};

static void let_in(struct scene *s)
{
    struct weir__claim claim = {.rights = WEIR__RIGHT_SEND, .expires_s = INT64_MAX};

    assert_int_equal(weir__claims_add(&s->c.claims, &claim, 0, NULL), 0);
}

static uint32_t put_number(struct weir__amqp_writer *w, const char *name, int64_t n)
{
    if (n == UNSAID) return 0;
    weir__amqp_put(w, symbol(name));
    weir__amqp_put(w, weir__amqp_signed(WEIR__AMQP_LONG, n));
    return 2;
}

static struct weir__amqp_value map_of(const struct mark *m, uint8_t space[256])
{
    struct weir__amqp_value out;
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    uint32_t count;
    size_t open;

    weir__amqp_writer_init(&w, space, 256);
    open = weir__amqp_put_open(&w);
    count = put_number(&w, ID, m->id);
    count += put_number(&w, EPOCH, m->epoch);
    count += put_number(&w, SEQUENCE, m->sequence);
    weir__amqp_put_close(&w, open, WEIR__AMQP_MAP, count);
    assert_int_equal(weir__amqp_writer_finish(&w, &bytes, NULL), 0);
    at = weir__amqp_cursor_of(bytes);
    assert_true(weir__amqp_read(&at, &out));
    return out;
}

static struct weir__amqp_link *come(struct scene *s, const char *name, const char *address,
                                    struct mark said)
{
    struct weir__amqp_terms terms = {.desired_capabilities = symbol(WEIR__MARK_CAPABILITY)};
    uint8_t space[256];

    terms.properties = map_of(&said, space);
    return attach(s, WEIR__AMQP_SENDER, name, address, NULL, terms);
}

static int64_t told(struct scene *s, const char *name, enum weir__amqp_type type)
{
    struct weir__amqp_value v;

    if (!weir__amqp_map_find(&s->properties, name, &v)) return UNSAID;
    assert_int_equal(v.type, type);
    return v.i;
}

static void expect_told(struct scene *s, struct mark m)
{
    assert_int_equal(s->detached, 0);
    assert_int_equal(told(s, ID, WEIR__AMQP_LONG), m.id);
    assert_int_equal(told(s, EPOCH, WEIR__AMQP_SHORT), m.epoch);
    assert_int_equal(told(s, SEQUENCE, WEIR__AMQP_INT), m.sequence);
}

static void send(struct scene *s, struct weir__amqp_link *link, struct mark m)
{
    struct weir__amqp_pair pairs[] = {{weir__bytes_of(ID, strlen(ID)),
                                       weir__amqp_signed(WEIR__AMQP_LONG, m.id)},
                                      {weir__bytes_of(EPOCH, strlen(EPOCH)),
                                       weir__amqp_signed(WEIR__AMQP_SHORT, m.epoch)},
                                      {weir__bytes_of(SEQUENCE, strlen(SEQUENCE)),
                                       weir__amqp_signed(WEIR__AMQP_INT, m.sequence)}};
    struct weir__amqp_content content = {.annotations = pairs,
                                         .annotation_count = 3,
                                         .data = weir__bytes_of("x", 1)};
    struct weir__amqp_writer w;
    struct weir__bytes message;
    struct weir__hub *hub;
    uint8_t space[512];

    weir__amqp_writer_init(&w, space, sizeof space);
    assert_int_equal(weir__amqp_message_write(&w, &content, NULL), 0);
    assert_int_equal(weir__amqp_writer_finish(&w, &message, NULL), 0);
    assert_int_equal(weir__amqp_send(link, message, 0, false, NULL), 0);
    talk(s);
    if (s->c.run.sender) assert_true(weir__run_end(&s->c));
    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    assert_int_equal(weir__hub_flush(hub, INT64_MAX, NULL), 0);
    weir__hub_release(hub);
    if (weir__publish_take_done(&s->c)) weir__connection_let_go(&s->c);
    talk(s);
}

static int64_t events(struct scene *s, uint32_t partition)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "eh1", &hub, NULL), 0);
    assert_int_equal(weir__hub_partition_properties(hub, partition, &p, NULL), 0);
    weir__hub_release(hub);
    return p.last_sequence + 1;
}

/* A producer without an id gets one; one that names its id goes on where it was. */
static void a_producer_is_told_who_it_is(void **state)
{
    const struct {
        struct mark said, told;
    } rows[] = {
        {{UNSAID, UNSAID, UNSAID}, {1, 0, 0}},
        {{UNSAID, 7, UNSAID}, {2, 7, 0}},
        {{UNSAID, UNSAID, 5}, {3, 0, 5}},
        {{9, UNSAID, UNSAID}, {9, 0, 0}},
        {{9, 4, UNSAID}, {9, 4, 0}},
        {{9, 4, 30}, {9, 4, 30}},
        {{9, UNSAID, UNSAID}, {9, 4, 0}},
        {{INT64_MAX, INT16_MAX, INT32_MAX}, {INT64_MAX, INT16_MAX, INT32_MAX}},
    };
    struct scene *s = *state;

    let_in(s);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_link *link = come(s, "p", ADDRESS, rows[i].said);
        expect_told(s, rows[i].told);
        weir__amqp_detach(link, NULL);
        talk(s);
    }
}

static void a_batch_is_stored_once(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *link;

    let_in(s);
    link = come(s, "p", ADDRESS, (struct mark){UNSAID, UNSAID, UNSAID});
    for (uint32_t times = 1; times <= 2; times++) {
        send(s, link, (struct mark){1, 0, 1});
        assert_int_equal(s->accepted, times);
        assert_int_equal(events(s, 1), 1);
    }
    send(s, link, (struct mark){1, 0, 2});
    assert_int_equal(events(s, 1), 2);
    send(s, link, (struct mark){1, 0, 4});
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, WEIR__COND_OUT_OF_ORDER);
    assert_int_equal(events(s, 1), 2);
    come(s, "q", ADDRESS, (struct mark){1, UNSAID, UNSAID});
    expect_told(s, (struct mark){1, 0, 2});
}

static void a_newer_epoch_ends_the_older(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *old, *new;

    let_in(s);
    old = come(s, "old", ADDRESS, (struct mark){5, 1, UNSAID});
    send(s, old, (struct mark){5, 1, 1});
    new = come(s, "new", ADDRESS, (struct mark){5, 2, UNSAID});
    send(s, old, (struct mark){5, 1, 2});
    assert_int_equal(s->rejected, 1);
    assert_string_equal(s->condition, WEIR__COND_EPOCH_STOLEN);
    send(s, new, (struct mark){5, 2, 1});
    assert_int_equal(s->accepted, 2);
    assert_int_equal(events(s, 1), 2);
    come(s, "older", ADDRESS, (struct mark){5, 1, UNSAID});
    assert_int_equal(s->detached, 1);
    assert_string_equal(s->condition, WEIR__COND_EPOCH_STOLEN);
}

static void numbers_have_a_range(void **state)
{
    static const struct mark rows[] = {
        {-1, 0, 0}, {1, -1, 0}, {1, 0, -1}, {1, UINT16_MAX + 1, 0}, {1, 0, INT64_C(1) + INT32_MAX}};
    struct scene *s = *state;

    let_in(s);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        come(s, "p", ADDRESS, rows[i]);
        assert_int_equal(s->detached, i + 1);
        assert_string_equal(s->condition, WEIR__COND_RANGE);
        assert_string_equal(s->text,
                            "Invalid range for idempotent producer state. Producer Id, Epoch, and "
                            "Sequence Number must be zero or positive.");
    }
}

/* Of a link that did not ask for it, or goes to no partition of its own. */
static void other_marks_mean_nothing(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *links[2];

    let_in(s);
    links[0] = attach(s, WEIR__AMQP_SENDER, "plain", ADDRESS, NULL, (struct weir__amqp_terms){0});
    expect_told(s, (struct mark){UNSAID, UNSAID, UNSAID});
    links[1] = come(s, "hub", "eh1", (struct mark){UNSAID, UNSAID, UNSAID});
    expect_told(s, (struct mark){UNSAID, UNSAID, UNSAID});
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t times = 0; times < 2; times++) send(s, links[i], (struct mark){1, 0, 1});
    assert_int_equal(s->accepted, 4);
    assert_int_equal(events(s, 0) + events(s, 1), 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_producer_is_told_who_it_is), TEST(a_batch_is_stored_once),
        TEST(a_newer_epoch_ends_the_older), TEST(numbers_have_a_range),
        TEST(other_marks_mean_nothing),
    };

    return cmocka_run_group_tests_name("marked", tests, NULL, NULL);
}
