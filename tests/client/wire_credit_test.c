/* How many messages a receiver lets come, and when it lets more come: what fits into bytes_max beside
 * what it holds, by the size of those before, and no more than events_max. */
#include "client/contract/place.h"

#include <inttypes.h>
#include <unistd.h>

#include "amqp/message.h"
#include "amqp/state.h"
#include "base/thread.h"
#include "client/moody.h"
#include "client/weir.h"
#include "hub/stored.h"

#define HANG_S 60
#define FLOWS_MAX 16
#define MESSAGE_BYTES 8192
#define LENGTH_BYTES 4u  /* that a receiver adds to the size of a message */
#define SECTION_BYTES 8u /* of a long body */

static struct moody moody;
static size_t size;               /* of the messages */
static unsigned sends[FLOWS_MAX]; /* how many go out when credit has come so often */
static atomic_uint flow_count;
static atomic_uint asked, echoed; /* whether the client has taken in what was sent, and it has */
static char flows[256];           /* the credit each time; the server's until it ends */
static uint64_t sequence;

/* ---- the server ---- */

/* A message of just this many bytes with what a receiver adds. */
static size_t compose(uint8_t to[MESSAGE_BYTES])
{
    struct weir__amqp_stamp stamp = {.sequence = (int64_t)sequence, .offset = 4096};
    uint8_t stored[MESSAGE_BYTES] = {0x00, 0x53, 0x75, 0xb0};
    size_t len = 0, body = 0;

    for (int round = 0; round < 2; round++) { /* the first finds out what the stamp takes */
        for (int i = 0; i < 4; i++) stored[4 + i] = (uint8_t)(body >> (24 - 8 * i));
        if (weir__amqp_compose(weir__bytes_of(stored, SECTION_BYTES + body), &stamp, to,
                               MESSAGE_BYTES, &len, NULL) != 0)
            abort();
        if (round == 0) body = size - LENGTH_BYTES - len;
    }
    if (len + LENGTH_BYTES != size) abort();
    return len;
}

/* The client answers when it has taken in all that was sent before. */
static void ask_for_echo(struct weir__amqp_session *s)
{
    struct weir__amqp_composite c;

    weir__amqp_composite_init(&c, WEIR__AMQP_FLOW);
    c.flow.next_incoming_id = weir__amqp_unsigned(WEIR__AMQP_UINT, s->next_incoming_id);
    c.flow.incoming_window = weir__amqp_unsigned(WEIR__AMQP_UINT, s->incoming_window);
    c.flow.next_outgoing_id = weir__amqp_unsigned(WEIR__AMQP_UINT, s->next_outgoing_id);
    c.flow.outgoing_window = weir__amqp_unsigned(WEIR__AMQP_UINT, UINT32_MAX);
    c.flow.echo = weir__amqp_unsigned(WEIR__AMQP_BOOL, 1);
    atomic_fetch_add(&asked, 1);
    weir__amqp_answer(s->e, s->channel, &c);
}

/* It is asked twice: the first answer is written before the client's loop has looked at what the messages
 * change, the second after that. */
static void on_echo(struct moody *m, struct weir__amqp_session *s)
{
    (void)m;
    if (atomic_load(&echoed) % 2 == 0) ask_for_echo(s);
    atomic_fetch_add(&echoed, 1);
}

static void on_flow(struct moody *m, struct weir__amqp_link *l)
{
    unsigned number = atomic_load(&flow_count);
    size_t used = strlen(flows);
    uint8_t message[MESSAGE_BYTES];

    (void)m;
    snprintf(flows + used, sizeof flows - used, "%s%s%u", used ? " " : "", l->drain ? "drain " : "",
             weir__amqp_link_credit(l));
    used = strlen(flows);
    if (l->limit != UINT64_MAX) snprintf(flows + used, sizeof flows - used, "/%" PRIu64, l->limit);
    for (unsigned i = 0; number < FLOWS_MAX && i < sends[number]; i++, sequence++)
        if (weir__amqp_send(l, weir__bytes_of(message, compose(message)), 0, true, NULL) != 0)
            abort();
    if (number < FLOWS_MAX && sends[number]) ask_for_echo(l->s);
    atomic_store(&flow_count, number + 1);
}

static int start(void **state)
{
    (void)state;
    alarm(HANG_S);
    memset(&moody, 0, sizeof moody);
    memset(sends, 0, sizeof sends);
    *flows = '\0';
    atomic_store(&flow_count, 0);
    atomic_store(&asked, 0);
    atomic_store(&echoed, 0);
    sequence = 0;
    moody.flowed = on_flow;
    moody.echoed = on_echo;
    return 0;
}

/* ---- the client ---- */

/* And until what was sent for them is there. */
static void await_flows(unsigned count)
{
    while (atomic_load(&flow_count) < count) sched_yield();
    while (atomic_load(&echoed) < atomic_load(&asked)) sched_yield();
}

/* A receiver with these limits reads one message after another; credits[i] have come, in all, before
 * it reads message i. In the end they were these. */
static void check(size_t bytes_max, uint32_t events_max, const unsigned *credits, unsigned count,
                  const char *want)
{
    const struct weir_receiver_options ro = {.size = sizeof ro,
                                             .bytes_max = bytes_max,
                                             .events_max = events_max};
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    struct weir_receiver *r;
    char text[256];
    struct weir *w;

    moody_start(&moody);
    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             moody.address);
    assert_ok(weir_open(&w, text, &o, &err));
    assert_ok(weir_receiver_open(&r, w, "h", 0, &ro, &err));
    await_flows(1);
    for (unsigned i = 0; i < count; i++) {
        await_flows(credits[i]);
        assert_int_equal(receive_one(r).sequence, i);
    }
    weir_receiver_close(r);
    assert_ok(weir_close(w, &err));
    moody_stop(&moody);
    assert_string_equal(flows, want);
}

/* Of a message that nobody has seen 4 KiB are expected, and one may always come. */
static void the_first_credit(void **state)
{
    static const struct {
        size_t bytes_max;
        uint32_t events_max;
        const char *credit;
    } cases[] = {
        {0, 0, "64"},
        {1, 0, "1"},
        {4095, 0, "1"},
        {8191, 0, "1"},
        {8192, 0, "2"},
        {0, 10, "10"},
        {0, 64, "64"},
        {0, 65, "64"},
        {4095, 3, "1"},
        {4096, 1, "1"},
        {4096u * 4096, 0, "4096"},
        {4096u * 4095, 0, "4095"},
        {4096u * 4097, 0, "4096"},
        {1u << 26, 4095, "4095"},
        {1u << 26, 4097, "4096"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        start(NULL);
        check(cases[i].bytes_max, cases[i].events_max, NULL, 0, cases[i].credit);
    }
}

/* Ten fit, or nine. A quarter is read before more may come, and it is said when that is twice as much as may
 * come already. */
static void credit_follows_what_was_read(void **state)
{
    static const unsigned credits[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3};

    (void)state;
    size = 4096;
    sends[0] = 10;
    sends[3] = 1; /* which comes when all is read and somebody waits */
    check(10 * size, 0, credits, 11, "10 2 5 10");
    start(NULL);
    sends[0] = 9;
    check(9 * size, 0, credits, 9, "9 2 5");
}

/* What comes just now counts beside what waits: together they leave no room, until some were read. */
static void what_comes_and_what_waits_count_together(void **state)
{
    static const unsigned credits[] = {1, 1, 1, 2, 2, 2, 3};

    (void)state;
    size = 4096;
    sends[0] = 10;
    sends[1] = 2;
    check(10 * size, 0, credits, 7, "10 2 3");
}

/* The same by number, without regard to size. */
static void credit_follows_how_many_were_read(void **state)
{
    static const unsigned credits[] = {1, 1, 2, 3, 3};

    (void)state;
    size = 200;
    sends[0] = 4;
    sends[3] = 1;
    check(0, 4, credits, 5, "4 1 2 4");
}

/* Messages that are larger than expected count from the first on: five were let come, and two would
 * have fit. */
static void large_messages_count_at_once(void **state)
{
    static const unsigned credits[] = {1, 1, 1, 1, 1, 2};

    (void)state;
    size = 8000;
    sends[0] = 5;
    sends[2] = 1;
    check(5 * 4096, 0, credits, 6, "5 1 2");
}

/* Smaller ones by an eighth: 3609 bytes are expected behind one of 196, and two such fit, or not. */
static void small_messages_count_little_by_little(void **state)
{
    (void)state;
    size = 196;
    sends[0] = 1;
    check(196 + 2 * 3609, 0, (const unsigned[]){2}, 1, "1 2");
    start(NULL);
    sends[0] = 1;
    check(196 + 2 * 3609 - 1, 0, (const unsigned[]){2}, 1, "1 1");
}

/* A server that knows of limits in bytes is told how many may come in all: those that came, and what
 * fits beside the ones that wait. It is said again when more than a quarter was read. */
static void bytes_follow_what_was_read(void **state)
{
    static const unsigned limits[] = {1, 1, 1, 2, 2, 2, 3, 3, 3, 4};

    (void)state;
    moody.offers = WEIR__STORED_CAPABILITY;
    size = 4096;
    sends[0] = 10;
    check(10 * size, 0, limits, 10, "4096/40960 4096/53208 4096/65496 4096/77784");
}

/* It may offer more than that. */
static void one_offer_of_several_is_found(void **state)
{
    static const uint8_t others[] = "\xa3\1a\1b";
    uint8_t array[64] = "\xa3\1a";
    size_t len = strlen(WEIR__STORED_CAPABILITY);

    (void)state;
    array[3] = (uint8_t)len;
    memcpy(array + 4, WEIR__STORED_CAPABILITY, len);
    moody.offers_all = weir__amqp_bytes(WEIR__AMQP_ARRAY, array, 4 + len);
    moody.offers_all.count = 2;
    check(4096, 0, NULL, 0, "4096/4096");
    start(NULL);
    moody.offers_all = weir__amqp_bytes(WEIR__AMQP_ARRAY, others, sizeof others - 1);
    moody.offers_all.count = 2;
    check(4096, 0, NULL, 0, "1");
}

/* One that offers something else, even if it is called nearly the same, is told of no bytes. */
static void other_offers_mean_nothing(void **state)
{
    static char name[] = WEIR__STORED_CAPABILITY;
    static const unsigned credits[] = {1, 1, 1, 2, 2, 2, 3, 3, 3};

    (void)state;
    for (size_t at = 0; at < sizeof name - 1; at++) {
        start(NULL);
        name[at] ^= 1;
        moody.offers = name;
        size = 4096;
        sends[0] = 9;
        check(9 * size, 0, credits, 9, "9 2 5");
        name[at] ^= 1;
    }
}

/* ---- the end ---- */

static void send_last(struct moody *m, struct weir__amqp_link *l)
{
    on_flow(m, l);
    if (l->drain) weir__amqp_drained(l);
}

static struct weir_receiver *open_on(struct weir **w, size_t bytes_max)
{
    const struct weir_receiver_options ro = {.size = sizeof ro, .bytes_max = bytes_max};
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    struct weir_receiver *r;
    char text[256];

    moody_start(&moody);
    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             moody.address);
    assert_ok(weir_open(w, text, &o, &err));
    assert_ok(weir_receiver_open(&r, *w, "h", 0, &ro, &err));
    await_flows(1);
    return r;
}

static void close_both(struct weir *w, struct weir_receiver *r)
{
    weir_receiver_close(r);
    assert_ok(weir_close(w, &err));
    moody_stop(&moody);
}

/* Behind the end there is nothing to wait for. */
static void assert_at_once(struct weir_receiver *r)
{
    int64_t since_ns = weir__mono_ns();
    struct weir_received got;

    assert_int_equal(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err), WEIR_ETIMEDOUT);
    assert_true(weir__mono_ns() - since_ns < PATIENCE_MS / 2 * INT64_C(1000000));
}

/* A server that knows of limits is asked, once, and what it sends before it answers is read before
 * the end is there. */
static void the_end_is_asked_for(void **state)
{
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    moody.offers = WEIR__STORED_CAPABILITY;
    moody.flowed = send_last;
    size = 4096;
    sends[0] = sends[1] = 1;
    r = open_on(&w, 10 * size);
    assert_int_equal(receive_one(r).sequence, 0);
    assert_nothing(r);
    for (int i = 0; i < 3; i++) assert_false(weir__receiver_ended(r));
    await_flows(2);
    for (int i = 0; i < 3; i++) assert_false(weir__receiver_ended(r));
    assert_int_equal(receive_one(r).sequence, 1);
    while (!weir__receiver_ended(r)) assert_nothing(r);
    assert_true(weir__receiver_ended(r));
    assert_at_once(r);
    close_both(w, r);
    assert_string_equal(flows, "4096/40960 drain 4096/45052");
}

/* A batch that is none, and what comes by the next link. */
static void send_broken_first(struct moody *m, struct weir__amqp_link *l)
{
    static const uint8_t broken[] = "x";

    if (atomic_load(&flow_count) > 0) {
        send_last(m, l);
        return;
    }
    on_flow(m, l);
    if (weir__amqp_send(l, weir__bytes_of(broken, 1), WEIR__STORED_FORMAT, true, NULL) != 0)
        abort();
}

/* A receiver that was asked for events instead of batches answers as before. */
static void the_end_is_asked_for_behind_a_broken_batch(void **state)
{
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    moody.offers = WEIR__STORED_CAPABILITY;
    moody.flowed = send_broken_first;
    size = 4096;
    sends[1] = 1;
    r = open_on(&w, 10 * size);
    assert_int_equal(receive_one(r).sequence, 0);
    do {
        assert_nothing(r);
    } while (!weir__receiver_ended(r));
    close_both(w, r);
    assert_string_equal(flows, "4096/40960 10 drain 10");
}

/* Whoever does not answer may still send, and so may any other, which is not asked. */
static void the_end_is_not_guessed(void **state)
{
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    for (int knows = 0; knows < 2; knows++) {
        start(NULL);
        moody.offers = knows ? WEIR__STORED_CAPABILITY : NULL;
        size = 4096;
        sends[1] = 1;
        r = open_on(&w, 10 * size);
        assert_nothing(r);
        assert_false(weir__receiver_ended(r));
        if (knows) assert_int_equal(receive_one(r).sequence, 0);
        assert_nothing(r);
        assert_false(weir__receiver_ended(r));
        close_both(w, r);
        assert_string_equal(flows, knows ? "4096/40960 drain 4096/40960" : "10");
    }
}

#define TEST(name) cmocka_unit_test_setup(name, start)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_credit),
        TEST(credit_follows_what_was_read),
        TEST(what_comes_and_what_waits_count_together),
        TEST(credit_follows_how_many_were_read),
        TEST(large_messages_count_at_once),
        TEST(small_messages_count_little_by_little),
        TEST(bytes_follow_what_was_read),
        TEST(one_offer_of_several_is_found),
        TEST(other_offers_mean_nothing),
        TEST(the_end_is_asked_for),
        TEST(the_end_is_asked_for_behind_a_broken_batch),
        TEST(the_end_is_not_guessed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
