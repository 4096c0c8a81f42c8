#include "amqp/performative.h"

#include "sample.h"

#define ALL UINT32_MAX

static struct weir__amqp_composite read_hex(const char *hex, int want)
{
    struct weir__bytes b = sample_hex(hex);
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
    struct weir__amqp_composite out;
    struct weir_error err = {0};

    memset(&out, 0, sizeof out);
    if (weir__amqp_composite_read(&c, ALL, &out, &err) != want)
        fail_msg("%s: %s, not %s: %s", hex, weir_error_name(err.code), weir_error_name(want),
                 err.text);
    sample_free(b);
    return out; /* its bytes are gone, its numbers are not */
}

/* Clients read fields by their position, so all of them are there and their number is known. */
static void every_field_is_written(void **state)
{
    static const struct {
        enum weir__amqp_kind kind;
        uint8_t code, count;
    } rows[] = {{WEIR__AMQP_OPEN, 0x10, 10},     {WEIR__AMQP_BEGIN, 0x11, 8},
                {WEIR__AMQP_ATTACH, 0x12, 14},   {WEIR__AMQP_FLOW, 0x13, 11},
                {WEIR__AMQP_TRANSFER, 0x14, 11}, {WEIR__AMQP_DISPOSITION, 0x15, 6},
                {WEIR__AMQP_DETACH, 0x16, 3},    {WEIR__AMQP_END, 0x17, 1},
                {WEIR__AMQP_CLOSE, 0x18, 1},     {WEIR__AMQP_ERROR, 0x1d, 3},
                {WEIR__AMQP_SOURCE, 0x28, 11},   {WEIR__AMQP_TARGET, 0x29, 7}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_composite c;
        struct weir__amqp_writer w;
        struct weir__bytes out;
        uint8_t room[64];

        weir__amqp_composite_init(&c, rows[i].kind);
        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_composite_write(&w, &c);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_int_equal(out.len, 6 + rows[i].count);
        assert_memory_equal(out.at, ((uint8_t[]){0x00, 0x53, rows[i].code, 0xc0}), 4);
        assert_int_equal(out.at[5], rows[i].count);
    }
}

static void absent_fields_have_their_defaults(void **state)
{
    struct weir__amqp_composite c = read_hex("00 53 10 c0 04 01 a1 01 'c'", 0);

    (void)state;
    assert_int_equal(c.open.max_frame_size.u, UINT32_MAX);
    assert_int_equal(c.open.channel_max.u, 65535);
    assert_int_equal(c.open.hostname.type, WEIR__AMQP_NULL);
    c = read_hex("00 53 12 c0 06 03 a1 01 'a' 43 42", 0);
    assert_int_equal(c.attach.snd_settle_mode.u, WEIR__AMQP_SEND_MIXED);
    assert_int_equal(c.attach.rcv_settle_mode.u, WEIR__AMQP_RECEIVE_FIRST);
    assert_int_equal(c.attach.initial_delivery_count.type, WEIR__AMQP_NULL);
    c = read_hex("00 53 13 c0 07 05 40 43 43 43 52 07", 0);
    assert_int_equal(c.flow.handle.u, 7);
    assert_int_equal(c.flow.drain.type, WEIR__AMQP_BOOL);
}

static void what_is_wrong_is_told_apart(void **state)
{
    static const struct {
        int want;
        const char *hex;
    } rows[] = {
        {0, "00 a3 0f 'amqp:close:list' 45"},
        {0, "00 80 0000000000000018 45"},
        {0, "00 53 17 c0 02 01 40"},
        {WEIR_EINVAL, "00 53 10 45"},                           /* no container-id */
        {WEIR_EINVAL, "00 53 10 c0 02 01 40"},                  /* null there */
        {WEIR_EINVAL, "00 53 10 c0 02 01 43"},                  /* a uint there */
        {WEIR_EINVAL, "00 53 11 c0 04 03 40 43 43"},            /* begin without outgoing-window */
        {WEIR_EINVAL, "00 53 12 c0 05 02 a1 01 'a' 43"},        /* attach without role */
        {WEIR_EINVAL, "00 53 14 45"},                           /* transfer without handle */
        {WEIR_EINVAL, "00 53 15 c0 02 01 41"},                  /* disposition without first */
        {WEIR_EINVAL, "00 53 41 c0 02 01 40"},                  /* sasl-init without mechanism */
        {WEIR_EINVAL, "00 53 40 c0 08 01 e0 05 01 a1 02 'ab'"}, /* mechanisms that are strings */
        {WEIR_EINVAL, "00 53 77 45"},                           /* no composite at all */
        {WEIR_ECORRUPT, ""},
        {WEIR_ECORRUPT, "45"},
        {WEIR_ECORRUPT, "00 53"},
        {WEIR_ECORRUPT, "00 53 18 40"},             /* null for a list */
        {WEIR_ECORRUPT, "00 53 18 c0 02 02 40"},    /* more fields than bytes */
        {WEIR_ECORRUPT, "00 53 18 c0 03 02 40 40"}, /* more fields than there are */
        {WEIR_ECORRUPT, "00 53 18 c0 03 01 40 40"}, /* more bytes than fields */
        {WEIR_ECORRUPT, "00 53 18 c0 05 01 a1 05 'ab'"},
        {WEIR_ECORRUPT, "00 53 10 c0 0b 0a a1 01 'c' 40 40 40 40 40 40 40 40"},
        {WEIR_ECORRUPT, "00 53 18 c0 07 01 00 53 1d c0 01 01"}, /* inside the error */
        {WEIR_ECORRUPT, "00 53 17 d0 ffffffff 00000001 40"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) read_hex(rows[i].hex, rows[i].want);
}

/* Where it is wrong, and what is expected there. */
static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *hex, *text;
    } rows[] = {
        {"00 53 10 c0 02 01 43", "open.container-id may not be a uint"},
        {"00 53 10 c0 02 01 40", "open.container-id is missing"},
        {"00 53 40 c0 08 01 e0 05 01 a1 02 'ab'",
         "sasl-mechanisms.sasl-server-mechanisms may not be a array"},
        {"00 53 18 c0 03 02 40 40", "close with 2 fields"},
        {"00 53 18 c0 03 01 40 40", "close with bytes after its fields"},
        {"00 53 18 c0 05 01 a1 05 'ab'", "close.error, byte 2: ends too early"},
        {"45", "a composite must begin with 00"},
        {"00 53 77 45", "an unknown descriptor does not belong here"},
    };
    struct weir__amqp_value v = weir__amqp_unsigned(WEIR__AMQP_UINT, 1);
    struct weir__amqp_composite c;
    struct weir_error err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].hex);
        struct weir__amqp_cursor in = weir__amqp_cursor_of(b);
        assert_int_not_equal(weir__amqp_composite_read(&in, ALL, &c, &err), 0);
        assert_string_equal(err.text, rows[i].text);
        sample_free(b);
    }
    assert_int_equal(weir__amqp_composite_of(&v, ALL, &c, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "a uint where a composite should be");
}

/* Sixty descriptors within each other are refused wherever they stand. */
static void depth_is_limited(void **state)
{
    uint8_t deep[140] = {0x00, 0x53, 0x18, 0xc0, 126, 1};
    struct weir__amqp_cursor c;
    struct weir__amqp_composite out;

    (void)state;
    for (size_t i = 6; i < sizeof deep; i += 2) {
        deep[i] = 0x00;
        deep[i + 1] = 0x44;
    }
    deep[131] = 0x40;
    c = weir__amqp_cursor_of(weir__bytes_of(deep, sizeof deep));
    assert_int_equal(weir__amqp_composite_read(&c, ALL, &out, NULL), WEIR_ECORRUPT);
}

/* A value that this field may have. */
static struct weir__amqp_value value_for(enum weir__amqp_kind kind, unsigned field, uint64_t *seed)
{
    struct weir__amqp_composite probe;
    uint8_t room[700];

    for (int tries = 0; tries < 200; tries++) {
        struct weir__amqp_value v = random_simple(seed);
        struct weir__amqp_writer w;
        struct weir__amqp_cursor c;
        struct weir__bytes out;
        struct weir_error err;
        size_t mark;

        if (v.type == WEIR__AMQP_NULL) continue;
        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_composite_init(&probe, kind);
        probe.field[field] = v;
        weir__amqp_composite_write(&w, &probe);
        mark = (size_t)(w.at - w.start);
        if (weir__amqp_writer_finish(&w, &out, NULL) != 0 || !mark) continue;
        c = weir__amqp_cursor_of(out);
        if (weir__amqp_composite_read(&c, ALL, &probe, &err) == 0) return v;
        if (strstr(err.text, "missing")) return v; /* another field, so this one was taken */
    }
    return (struct weir__amqp_value){0};
}

static void random_composites_survive(void **state)
{
    uint64_t seed = 42;
    unsigned good = 0;
    uint8_t room[8000];

    (void)state;
    for (unsigned round = 0; round < 3000; round++) {
        enum weir__amqp_kind kind = (enum weir__amqp_kind)(round % WEIR__AMQP_KINDS);
        struct weir__amqp_composite c, again;
        struct weir__amqp_writer w;
        struct weir__amqp_cursor in;
        struct weir__bytes out;

        weir__amqp_composite_init(&c, kind);
        for (unsigned i = 0; i < weir__amqp_kind_fields(kind); i++)
            if (random_below(&seed, 4)) c.field[i] = value_for(kind, i, &seed);
        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_composite_write(&w, &c);
        if (weir__amqp_writer_finish(&w, &out, NULL) != 0) continue;
        in = weir__amqp_cursor_of(out);
        if (weir__amqp_composite_read(&in, ALL, &again, NULL) != 0) continue;
        assert_true(in.at == in.end && again.kind == kind);
        for (unsigned i = 0; i < weir__amqp_kind_fields(kind); i++)
            if (c.field[i].type != WEIR__AMQP_NULL) assert_value(&again.field[i], &c.field[i]);
        good++;
    }
    assert_true(good > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_is_written),
        cmocka_unit_test(absent_fields_have_their_defaults),
        cmocka_unit_test(what_is_wrong_is_told_apart),
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(depth_is_limited),
        cmocka_unit_test(random_composites_survive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
