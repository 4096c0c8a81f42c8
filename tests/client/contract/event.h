/* event.h - what is in an event, there and back. */
#ifndef WEIR_TESTS_CONTRACT_EVENT_H
#define WEIR_TESTS_CONTRACT_EVENT_H

#include "place.h"

/* One of everything. */
static const struct weir_property sample_properties[] = {
    {{"text", 4},
     {.type = WEIR_TEXT,
      .bytes = {"21 \xc2\xb0"
                "C",
                6}}},
    {{"int", 3}, {.type = WEIR_INT, .integer = INT64_MIN}},
    {{"uint", 4}, {.type = WEIR_UINT, .natural = UINT64_MAX}},
    {{"double", 6}, {.type = WEIR_DOUBLE, .real = -0.1}},
    {{"bool", 4}, {.type = WEIR_BOOL, .boolean = true}},
    {{"time", 4}, {.type = WEIR_TIME, .time_ms = -1}},
    {{"binary", 6}, {.type = WEIR_BINARY, .bytes = {"\0\xff", 2}}},
    {{"uuid", 4}, {.type = WEIR_UUID, .bytes = {"0123456789abcdef", 16}}},
    {{"null", 4}, {.type = WEIR_NULL}},
    {{"decimal", 7}, {.type = WEIR_ENCODED, .bytes = {"\x74\1\2\3\4", 5}}},
};

#define SAMPLE_PROPERTIES (sizeof sample_properties / sizeof sample_properties[0])

static const struct weir_system_properties sample_system = {
    .message_id = {.type = WEIR_TEXT, .bytes = {"m-1", 3}},
    .correlation_id = {.type = WEIR_UINT, .natural = 7},
    .user_id = {"\xfe", 1},
    .to = {"to", 2},
    .subject = {"subject", 7},
    .reply_to = {"reply", 5},
    .content_type = {"application/json", 16},
    .content_encoding = {"gzip", 4},
    .group_id = {"group", 5},
    .reply_to_group_id = {"back", 4},
    .creation_time_ms = 1700000000000,
    .absolute_expiry_time_ms = 1800000000000,
    .has_group_sequence = true,
};

static void assert_same(struct weir_bytes got, struct weir_bytes sent)
{
    assert_bytes(got, sent.at, sent.len);
}

static void assert_value(const struct weir_value *got, const struct weir_value *sent)
{
    assert_int_equal(got->type, sent->type);
    switch (sent->type) {
    case WEIR_NULL: break;
    case WEIR_BOOL: assert_int_equal(got->boolean, sent->boolean); break;
    case WEIR_DOUBLE: assert_memory_equal(&got->real, &sent->real, sizeof sent->real); break;
    case WEIR_INT:
    case WEIR_UINT:
    case WEIR_TIME: assert_int_equal(got->integer, sent->integer); break;
    default: assert_same(got->bytes, sent->bytes);
    }
}

static void assert_system(const struct weir_system_properties *got,
                          const struct weir_system_properties *sent)
{
    assert_non_null(got);
    assert_value(&got->message_id, &sent->message_id);
    assert_value(&got->correlation_id, &sent->correlation_id);
    assert_same(got->user_id, sent->user_id);
    assert_same(got->to, sent->to);
    assert_same(got->subject, sent->subject);
    assert_same(got->reply_to, sent->reply_to);
    assert_same(got->content_type, sent->content_type);
    assert_same(got->content_encoding, sent->content_encoding);
    assert_same(got->group_id, sent->group_id);
    assert_same(got->reply_to_group_id, sent->reply_to_group_id);
    assert_int_equal(got->creation_time_ms, sent->creation_time_ms);
    assert_int_equal(got->absolute_expiry_time_ms, sent->absolute_expiry_time_ms);
    assert_int_equal(got->group_sequence, sent->group_sequence);
    assert_int_equal(got->has_group_sequence, sent->has_group_sequence);
}

static void events_come_back_as_they_were(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_bytes("a\0b\n", 4),
                           .properties = sample_properties,
                           .property_count = SAMPLE_PROPERTIES,
                           .system = &sample_system,
                           .partition_key = weir_text("home-7")};
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_receipt at;
    struct weir_event got;

    make_hub(w, 4);
    p = open_producer(w);
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, &at, &err));
    r = open_receiver(w, at.partition);
    got = receive_one(r);
    assert_same(got.body, e.body);
    assert_int_equal(got.body_type, WEIR_BODY_DATA);
    assert_same(got.partition_key, e.partition_key);
    assert_int_equal(got.property_count, SAMPLE_PROPERTIES);
    for (size_t i = 0; i < SAMPLE_PROPERTIES; i++) {
        assert_same(got.properties[i].name, sample_properties[i].name);
        assert_value(&got.properties[i].value, &sample_properties[i].value);
    }
    assert_system(got.system, &sample_system);
    weir_receiver_close(r);
    close_producer(p);
}

static void events_say_where_they_lie(void **state)
{
    struct weir *w = *state;
    char offset[WEIR_OFFSET_TEXT_BYTES], number[32];
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_receipt at;
    struct weir_event got;

    make_hub(w, 1);
    p = open_producer(w);
    send_text(p, "a");
    at = send_text(p, "b");
    r = open_receiver(w, 0);
    assert_next(r, "a");
    got = receive_one(r);
    assert_int_equal(got.partition, 0);
    assert_int_equal(got.sequence, 1);
    assert_int_equal(at.sequence, at.placed ? got.sequence : WEIR_UNPLACED);
    assert_int_equal(at.offset, at.placed ? got.offset : WEIR_UNPLACED);
    assert_int_equal(at.enqueued_time_ms, at.placed ? got.enqueued_time_ms : 0);
    assert_true(got.enqueued_time_ms > 1700000000000);
    snprintf(number, sizeof number, "%llu", (unsigned long long)got.offset);
    assert_string_equal(weir_event_offset_text(&got, offset), number);
    weir_receiver_close(r);
    close_producer(p);
}

static void what_is_absent_stays_absent(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.system = &(struct weir_system_properties){.subject = weir_text("s")}};
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_event got;

    make_hub(w, 1);
    p = open_producer(w);
    send_text(p, "bare");
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    r = open_receiver(w, 0);
    got = receive_one(r);
    assert_null(got.system);
    assert_int_equal(got.property_count, 0);
    assert_null(got.partition_key.at);
    got = receive_one(r);
    assert_int_equal(got.body.len, 0);
    assert_null(got.system->to.at);
    assert_int_equal(got.system->message_id.type, WEIR_NULL);
    assert_int_equal(got.system->creation_time_ms, 0);
    assert_false(got.system->has_group_sequence);
    weir_receiver_close(r);
    close_producer(p);
}

static void malformed_events_are_refused(void **state)
{
    struct weir *w = *state;
    char key[258]; /* 129 times a character of two bytes */
    struct weir_property bad[] = {
        {weir_text("x"), {.type = WEIR_TEXT, .bytes = weir_bytes("\xff", 1)}},
        {weir_bytes("\xc0\x80", 2), weir_value_int(1)},
        {weir_text("x"), {.type = WEIR_UUID, .bytes = weir_bytes("short", 5)}},
        {weir_text("x"), {.type = WEIR_ENCODED, .bytes = weir_bytes("\xc0\xff", 2)}},
        {weir_text("x"), {.type = (enum weir_type)99}},
    };
    struct weir_event e = {.property_count = 1};
    struct weir_producer *p;

    make_hub(w, 1);
    p = open_producer(w);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        e.properties = &bad[i];
        assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    }
    e = (struct weir_event){.body_type = WEIR_BODY_VALUE};
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    e = (struct weir_event){
        .system = &(struct weir_system_properties){.message_id = weir_value_double(1)}};
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    assert_int_equal(weir_producer_send(p, &e, 0, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    assert_int_equal(weir_producer_send(p, NULL, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    e = (struct weir_event){.body = weir_bytes(NULL, 5)};
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    e.system = &(struct weir_system_properties){.subject = weir_bytes("\xff", 1)};
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    e.system = &(struct weir_system_properties){.content_type = weir_text("\xc3\xa9")};
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    for (size_t i = 0; i < sizeof key; i++) key[i] = i % 2 ? '\xa9' : '\xc3';
    e = (struct weir_event){.partition_key = weir_bytes(key, 258)};
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    e.partition_key.len = 256;
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    e.partition_key.len = 3;
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_EINVAL);
    close_producer(p);
}

#define PROPERTIES_MAX 4096u /* of one event */

static void as_many_properties_as_there_may_be(void **state)
{
    static struct weir_property many[PROPERTIES_MAX + 1];
    static char names[PROPERTIES_MAX + 1][8];
    struct weir_event e = {.properties = many, .property_count = PROPERTIES_MAX}, got;
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(*state, 1);
    for (uint32_t i = 0; i <= PROPERTIES_MAX; i++) {
        snprintf(names[i], sizeof names[i], "%u", i);
        many[i] = (struct weir_property){weir_text(names[i]), weir_value_int(i)};
    }
    p = open_producer(*state);
    assert_ok(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err));
    e.property_count++;
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ETOOBIG);
    r = open_receiver(*state, 0);
    got = receive_one(r);
    assert_int_equal(got.property_count, PROPERTIES_MAX);
    assert_text(got.properties[PROPERTIES_MAX - 1].name, "4095");
    weir_receiver_close(r);
    close_producer(p);
}

#endif
