/* Messages with numbers that are missing between them: what one receive gives, what it says of those
 * that are missing, and which of the messages the metrics are of. */
#include "client/contract/place.h"

#include <unistd.h>

#include "amqp/message.h"
#include "base/crc.h"
#include "client/moody.h"
#include "hub/stored.h"

#define HANG_S 60
#define MESSAGES_MAX 8
#define MESSAGE_BYTES 512
#define LAST 100u /* what a message says is newest, less its own number */

struct gaps {
    struct weir_position from;
    int64_t sent[MESSAGES_MAX]; /* up to -1 */
    uint64_t missed;            /* in front of the first */
};

static struct moody moody;
static const struct gaps *current;
static bool done;

/* ---- the server ---- */

/* A map of the four facts about the partition, of which the number counts. */
static struct weir__bytes write_facts(uint8_t *to, size_t room, int64_t sequence)
{
    struct weir__amqp_writer w;
    struct weir__bytes out;
    size_t mark;

    weir__amqp_writer_init(&w, to, room);
    weir__amqp_put_descriptor(&w, 0x71);
    mark = weir__amqp_put_open(&w);
    moody_put(&w, WEIR__AMQP_SYMBOL, "last_enqueued_sequence_number");
    weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_LONG, sequence + LAST));
    moody_put(&w, WEIR__AMQP_SYMBOL, "runtime_info_retrieval_time_utc");
    weir__amqp_put(&w, weir__amqp_signed(WEIR__AMQP_TIMESTAMP, 7));
    weir__amqp_put_close(&w, mark, WEIR__AMQP_MAP, 4);
    if (weir__amqp_writer_finish(&w, &out, NULL) != 0) abort();
    return out;
}

static void send_one(struct weir__amqp_link *l, int64_t sequence)
{
    static const char stored[] = "\x00\x53\x75\xa0\x01x";
    uint8_t facts[MESSAGE_BYTES], message[2 * MESSAGE_BYTES];
    struct weir__amqp_stamp stamp = {.sequence = sequence,
                                     .delivery_annotations =
                                         write_facts(facts, sizeof facts, sequence)};
    size_t len;

    if (weir__amqp_compose(weir__bytes_of(stored, sizeof stored - 1), &stamp, message,
                           sizeof message, &len, NULL) != 0 ||
        weir__amqp_send(l, weir__bytes_of(message, len), 0, true, NULL) != 0)
        abort();
}

static void send_all(struct moody *m, struct weir__amqp_link *l)
{
    (void)m;
    for (unsigned i = 0; !done && current->sent[i] >= 0; i++) send_one(l, current->sent[i]);
    done = true;
}

/* ---- the client ---- */

static struct weir *open_server(void (*send)(struct moody *, struct weir__amqp_link *))
{
    struct weir_options o = {.size = sizeof o, .patience_ms = PATIENCE_MS};
    char text[256];
    struct weir *w;

    moody = (struct moody){.flowed = send};
    done = false;
    moody_start(&moody);
    snprintf(text, sizeof text,
             "Endpoint=sb://%s/;SharedAccessKeyName=any;SharedAccessKey=any;"
             "UseDevelopmentEmulator=true",
             moody.address);
    assert_ok(weir_open(&w, text, &o, &err));
    return w;
}

/* Reads all of them: a receive gives what follows without a gap, all of it, and no more. */
static void read_all(struct weir_receiver *r, const struct gaps *g)
{
    struct weir_receiver_metrics metrics;
    uint64_t expected = (uint64_t)g->sent[0] - g->missed;
    unsigned runs = 1, receives = 0;
    struct weir_received got;

    for (unsigned i = 0; g->sent[i] >= 0; receives++) {
        assert_ok(weir_receiver_receive(r, MESSAGES_MAX, PATIENCE_MS, &got, &err));
        assert_int_equal(got.missed, got.events[0].sequence - expected);
        for (size_t k = 0; k < got.count; k++, i++) {
            assert_int_equal(got.events[k].sequence, g->sent[i]);
            runs += i > 0 && g->sent[i] != g->sent[i - 1] + 1;
            assert_int_equal(got.events[k].sequence, got.events[0].sequence + k);
        }
        expected = got.events[got.count - 1].sequence + 1;
        assert_ok(weir_receiver_metrics(r, &metrics, &err));
        assert_int_equal(metrics.last_sequence, expected - 1 + LAST);
    }
    assert_int_equal(receives, runs); /* they came in one piece */
}

static void what_is_missing_is_told_in_front(void **state)
{
    static const struct gaps cases[] = {
        {{.from = WEIR_FROM_EARLIEST}, {5, 6, 9, 10, 11, 20, -1}, 0},
        {{.from = WEIR_FROM_SEQUENCE, .value = 0}, {2, 3, -1}, 2},
        {{.from = WEIR_FROM_SEQUENCE, .value = 2}, {2, 3, 5, -1}, 0},
        {{.from = WEIR_FROM_SEQUENCE, .value = 2}, {3, 4, -1}, 1},
        {{.from = WEIR_FROM_SEQUENCE, .value = 2, .after = true}, {3, 4, -1}, 0},
        {{.from = WEIR_FROM_SEQUENCE, .value = 2, .after = true}, {5, -1}, 2},
        {{.from = WEIR_FROM_SEQUENCE, .value = -1}, {7, -1}, 0},
        {{.from = WEIR_FROM_OFFSET, .value = 0}, {7, 9, -1}, 0},
    };

    (void)state;
    alarm(HANG_S);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir_receiver_options o = {.size = sizeof o,
                                          .position = cases[i].from,
                                          .metrics = true};
        struct weir_receiver *r;
        struct weir *w;
        current = &cases[i];
        w = open_server(send_all);
        assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
        read_all(r, current);
        weir_receiver_close(r);
        assert_ok(weir_close(w, &err));
        moody_stop(&moody);
    }
}

/* ---- batches ---- */

#define FACTS_MAX 4

/* Batches of one event each; known_ms 0: without facts. */
static const struct weir__stored_facts *told;

static void send_batch(struct weir__amqp_link *l, uint64_t sequence,
                       const struct weir__stored_facts *facts)
{
    static const uint8_t body[] = "\x00\x53\x75\xa0\x06\x00\x53\x75\xa0\x01x";
    struct weir__log_view view = {.sequence = sequence, .offset = 4096, .time_ms = 5, .count = 1};
    uint8_t payload[MESSAGE_BYTES];
    size_t head;

    view.body = weir__bytes_of(body, sizeof body - 1);
    view.body_crc = weir__crc32c(0, view.body.at, view.body.len);
    head = weir__stored_head(payload, &view, facts->known_ms ? facts : NULL);
    memcpy(payload + head, body, view.body.len);
    if (weir__amqp_send(l, weir__bytes_of(payload, head + view.body.len), WEIR__STORED_FORMAT, true,
                        NULL) != 0)
        abort();
}

static void send_batches(struct moody *m, struct weir__amqp_link *l)
{
    (void)m;
    for (unsigned i = 0; !done && i < FACTS_MAX; i++) send_batch(l, i, &told[i]);
    done = true;
}

/* Those of the batch that an event came in; where there are none, those of before stay. */
static void facts_come_with_batches(void **state)
{
    static const struct weir__stored_facts sent[FACTS_MAX] = {{0, 0, 0, 0},
                                                              {12, 77, 1700000000123, 9},
                                                              {99, 99, 99, 0},
                                                              {13, -1, 6, 10}};
    static const struct weir_receiver_metrics wanted[FACTS_MAX] = {{0},
                                                                   {12, 77, 1700000000123, 9},
                                                                   {12, 77, 1700000000123, 9},
                                                                   {13, 0, 6, 10}};
    struct weir_receiver_options o = {.size = sizeof o, .metrics = true};
    struct weir_receiver_metrics metrics;
    struct weir_receiver *r;
    struct weir *w;

    (void)state;
    alarm(HANG_S);
    told = sent;
    w = open_server(send_batches);
    assert_ok(weir_receiver_open(&r, w, "h", 0, &o, &err));
    for (unsigned i = 0; i < FACTS_MAX; i++) {
        assert_int_equal(receive_one(r).sequence, i);
        assert_ok(weir_receiver_metrics(r, &metrics, &err));
        assert_int_equal(metrics.last_sequence, wanted[i].last_sequence);
        assert_int_equal(metrics.last_offset, wanted[i].last_offset);
        assert_int_equal(metrics.last_time_ms, wanted[i].last_time_ms);
        assert_int_equal(metrics.retrieved_ms, wanted[i].retrieved_ms);
    }
    weir_receiver_close(r);
    assert_ok(weir_close(w, &err));
    moody_stop(&moody);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_come_with_batches),
        cmocka_unit_test(what_is_missing_is_told_in_front),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
