#include "amqp/writer.h"

#include "sample.h"

static void heads_grow_with_their_content(void **state)
{
    static const uint8_t zeros[70000];
    static const struct {
        size_t len;
        size_t head;
        uint8_t code;
    } rows[] = {{0, 2, 0xa0}, {255, 2, 0xa0}, {256, 5, 0xb0}, {70000, 5, 0xb0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_writer w;
        struct weir__amqp_value v;
        struct weir__bytes out;
        struct weir__amqp_cursor c;
        struct weir__buf buf;

        weir__buf_init(&buf, 100000);
        weir__amqp_writer_append(&w, &buf);
        weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_BINARY, zeros, rows[i].len));
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_int_equal(out.len, rows[i].head + rows[i].len);
        assert_int_equal(out.at[0], rows[i].code);
        c = weir__amqp_cursor_of(out);
        assert_true(weir__amqp_read(&c, &v));
        assert_int_equal(v.bytes.len, rows[i].len);
        weir__buf_fini(&buf);
    }
}

/* A list of n nulls takes n bytes: 254 is the most that fit beside the count of a list8. */
static void lists_take_their_smallest_form(void **state)
{
    static const struct {
        uint32_t count;
        uint8_t code;
    } rows[] = {{0, 0x45}, {1, 0xc0}, {254, 0xc0}, {255, 0xd0}, {300, 0xd0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_writer w;
        struct weir__amqp_cursor c;
        struct weir__amqp_value v;
        struct weir__bytes out;
        uint8_t room[400];
        size_t mark;

        weir__amqp_writer_init(&w, room, sizeof room);
        mark = weir__amqp_put_open(&w);
        for (uint32_t k = 0; k < rows[i].count; k++)
            weir__amqp_put(&w, (struct weir__amqp_value){0});
        weir__amqp_put_close(&w, mark, WEIR__AMQP_LIST, rows[i].count);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_int_equal(out.at[0], rows[i].code);
        c = weir__amqp_cursor_of(out);
        assert_true(weir__amqp_check(&c) && c.at == c.end);
        c = weir__amqp_cursor_of(out);
        assert_true(weir__amqp_read(&c, &v));
        assert_int_equal(v.count, rows[i].count);
    }
}

static void put_sample(struct weir__amqp_writer *w)
{
    struct weir__bytes names[] = {weir__bytes_of("one", 3), weir__bytes_of("three", 5)};
    size_t outer = weir__amqp_put_open(w), inner;

    weir__amqp_put(w, weir__amqp_unsigned(WEIR__AMQP_ULONG, 1u << 20));
    inner = weir__amqp_put_open(w);
    for (int i = 0; i < 130; i++) {
        weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_SYMBOL, "k", 1));
        weir__amqp_put(w, weir__amqp_signed(WEIR__AMQP_INT, i << 7));
    }
    weir__amqp_put_close(w, inner, WEIR__AMQP_MAP, 260);
    weir__amqp_put_array(w, WEIR__AMQP_STRING, names, 2);
    weir__amqp_put_close(w, outer, WEIR__AMQP_LIST, 3);
}

/* Into memory that is too small by any number of bytes, nothing is written behind it. */
static void no_room_at_any_length(void **state)
{
    struct weir__amqp_writer w;
    struct weir__bytes whole, out;
    struct weir_error err;
    struct weir__buf buf;

    (void)state;
    weir__buf_init(&buf, 4096);
    weir__amqp_writer_append(&w, &buf);
    put_sample(&w);
    assert_int_equal(weir__amqp_writer_finish(&w, &whole, NULL), 0);
    for (size_t room = 0; room <= whole.len; room++) {
        uint8_t *to = malloc(room ? room : 1);
        assert_non_null(to);
        weir__amqp_writer_init(&w, to, room);
        put_sample(&w);
        if (room < whole.len) {
            assert_int_equal(weir__amqp_writer_finish(&w, &out, &err), WEIR_ETOOBIG);
            assert_string_equal(err.text, "encoding: there is no room");
        } else {
            assert_int_equal(weir__amqp_writer_finish(&w, &out, &err), 0);
            assert_bytes(out, whole);
        }
        free(to);
    }
    weir__buf_fini(&buf);
}

static void a_buf_keeps_what_it_had(void **state)
{
    struct weir__amqp_writer w;
    struct weir__bytes out;
    struct weir__buf buf;

    (void)state;
    weir__buf_init(&buf, 300);
    assert_true(weir__buf_add(&buf, "before", 6));
    weir__amqp_writer_append(&w, &buf);
    put_sample(&w); /* longer than the maximum */
    assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), WEIR_ETOOBIG);
    assert_bytes(weir__buf_bytes(&buf), weir__bytes_of("before", 6));

    weir__amqp_writer_append(&w, &buf);
    weir__amqp_put(&w, weir__amqp_unsigned(WEIR__AMQP_UINT, 7));
    assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
    assert_bytes(out, weir__bytes_of("\x52\x07", 2));
    assert_bytes(weir__buf_bytes(&buf), weir__bytes_of("before\x52\x07", 8));
    weir__buf_fini(&buf);
}

static void a_buf_keeps_its_maximum(void **state)
{
    struct weir__amqp_writer w;
    struct weir_error err;
    struct weir__buf buf;

    (void)state;
    weir__buf_init(&buf, 8);
    weir__amqp_writer_append(&w, &buf);
    weir__amqp_put(&w, weir__amqp_bytes(WEIR__AMQP_STRING, "123456", 6));
    assert_int_equal(weir__amqp_writer_finish(&w, NULL, NULL), 0);
    assert_int_equal(buf.len, 8);
    weir__amqp_writer_append(&w, &buf);
    weir__amqp_put(&w, (struct weir__amqp_value){0});
    assert_int_equal(weir__amqp_writer_finish(&w, NULL, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, "encoding: the buffer is at its maximum or there is no memory");
    assert_int_equal(buf.len, 8);
    weir__buf_fini(&buf);
}

#define TOO_LARGE "encoding: a number is too large for its type"
#define WRONG_LENGTH "encoding: a uuid or decimal of the wrong length"

static void numbers_must_fit_their_type(void **state)
{
    const struct {
        struct weir__amqp_value v;
        const char *why; /* NULL: it does */
    } rows[] = {
        {weir__amqp_unsigned(WEIR__AMQP_UBYTE, 255), NULL},
        {weir__amqp_unsigned(WEIR__AMQP_UBYTE, 256), TOO_LARGE},
        {weir__amqp_unsigned(WEIR__AMQP_USHORT, 65535), NULL},
        {weir__amqp_unsigned(WEIR__AMQP_USHORT, 65536), TOO_LARGE},
        {weir__amqp_unsigned(WEIR__AMQP_UINT, UINT32_MAX), NULL},
        {weir__amqp_unsigned(WEIR__AMQP_UINT, 1ull << 32), TOO_LARGE},
        {weir__amqp_unsigned(WEIR__AMQP_ULONG, UINT64_MAX), NULL},
        {weir__amqp_signed(WEIR__AMQP_BYTE, -128), NULL},
        {weir__amqp_signed(WEIR__AMQP_BYTE, -129), TOO_LARGE},
        {weir__amqp_signed(WEIR__AMQP_BYTE, 127), NULL},
        {weir__amqp_signed(WEIR__AMQP_BYTE, 128), TOO_LARGE},
        {weir__amqp_signed(WEIR__AMQP_SHORT, -32768), NULL},
        {weir__amqp_signed(WEIR__AMQP_SHORT, -32769), TOO_LARGE},
        {weir__amqp_signed(WEIR__AMQP_SHORT, 32768), TOO_LARGE},
        {weir__amqp_signed(WEIR__AMQP_INT, INT32_MIN), NULL},
        {weir__amqp_signed(WEIR__AMQP_INT, (int64_t)INT32_MIN - 1), TOO_LARGE},
        {weir__amqp_signed(WEIR__AMQP_INT, (int64_t)INT32_MAX + 1), TOO_LARGE},
        {weir__amqp_signed(WEIR__AMQP_LONG, INT64_MIN), NULL},
        {weir__amqp_signed(WEIR__AMQP_LONG, INT64_MAX), NULL},
        {weir__amqp_bytes(WEIR__AMQP_UUID, "0123456789abcde", 15), WRONG_LENGTH},
        {weir__amqp_bytes(WEIR__AMQP_UUID, "0123456789abcdef0", 17), WRONG_LENGTH},
        {weir__amqp_bytes(WEIR__AMQP_DECIMAL64, "0123", 4), WRONG_LENGTH},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__amqp_writer w;
        struct weir_error err;
        uint8_t room[32];
        int rc = rows[i].why ? WEIR_EINVAL : 0;

        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_put(&w, rows[i].v);
        if (rc) weir__amqp_put(&w, weir__amqp_unsigned(WEIR__AMQP_UBYTE, 0)); /* a failure sticks */
        assert_int_equal(weir__amqp_writer_finish(&w, NULL, &err), rc);
        if (rc) assert_string_equal(err.text, rows[i].why);
    }
}

/* The form of an array and that of its items, on both sides of where each grows. */
static void arrays_take_their_smallest_form(void **state)
{
    static const struct {
        size_t len;
        uint8_t code, item;
    } rows[] = {{252, 0xe0, 0xa3}, {253, 0xf0, 0xa3}, {255, 0xf0, 0xa3}, {256, 0xf0, 0xb3}};
    static const uint8_t zeros[256];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes name = weir__bytes_of(zeros, rows[i].len), out;
        struct weir__amqp_writer w;
        uint8_t room[300];

        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_put_array(&w, WEIR__AMQP_SYMBOL, &name, 1);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_int_equal(out.at[0], rows[i].code);
        assert_int_equal(out.at[rows[i].code == 0xe0 ? 3 : 9], rows[i].item);
    }
}

/* Items without bytes: only their number decides. */
static void many_empty_items_take_the_smallest_form(void **state)
{
    static const uint8_t few[] = {0xe0, 0x02, 0xff, 0x40},
                         many[] = {0xf0, 0, 0, 0, 5, 0, 0, 1, 0, 0x40};
    struct weir__amqp_value v = {.type = WEIR__AMQP_ARRAY,
                                 .bytes = weir__bytes_of("\x40", 1),
                                 .count = 255};

    (void)state;
    for (int i = 0; i < 2; i++, v.count++) {
        struct weir__amqp_writer w;
        struct weir__bytes out;
        uint8_t room[16];

        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_put(&w, v);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_bytes(out, i ? weir__bytes_of(many, sizeof many) : weir__bytes_of(few, sizeof few));
    }
}

static void array_items_share_a_form(void **state)
{
    char longer[300];
    struct weir__bytes names[] = {weir__bytes_of("x", 1), weir__bytes_of(longer, sizeof longer)};
    struct weir__amqp_writer w;
    struct weir__amqp_items items;
    struct weir__amqp_cursor c;
    struct weir__amqp_value v, item;
    struct weir__bytes out;
    struct weir_error err;
    uint8_t room[400];

    (void)state;
    memset(longer, 'y', sizeof longer);
    weir__amqp_writer_init(&w, room, sizeof room);
    weir__amqp_put_array(&w, WEIR__AMQP_STRING, names, 2);
    assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
    c = weir__amqp_cursor_of(out);
    assert_true(weir__amqp_check(&c) && c.at == c.end);
    c = weir__amqp_cursor_of(out);
    assert_true(weir__amqp_read(&c, &v));
    weir__amqp_items_init(&items, &v);
    for (int i = 0; i < 2; i++) {
        assert_true(weir__amqp_items_next(&items, &item));
        assert_bytes(item.bytes, names[i]);
    }
    weir__amqp_writer_init(&w, room, sizeof room);
    weir__amqp_put_array(&w, WEIR__AMQP_ULONG, names, 2);
    assert_int_equal(weir__amqp_writer_finish(&w, &out, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "encoding: an array of this type is not written");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_grow_with_their_content),
        cmocka_unit_test(lists_take_their_smallest_form),
        cmocka_unit_test(no_room_at_any_length),
        cmocka_unit_test(a_buf_keeps_what_it_had),
        cmocka_unit_test(a_buf_keeps_its_maximum),
        cmocka_unit_test(numbers_must_fit_their_type),
        cmocka_unit_test(arrays_take_their_smallest_form),
        cmocka_unit_test(many_empty_items_take_the_smallest_form),
        cmocka_unit_test(array_items_share_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
