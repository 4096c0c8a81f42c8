#include "amqp/codec.h"

#include "sample.h"

#define SEEDS 2000

static struct weir__amqp_value number(enum weir__amqp_type type, uint64_t u)
{
    return weir__amqp_unsigned(type, u);
}

static struct weir__amqp_value text(enum weir__amqp_type type, const char *s)
{
    return weir__amqp_bytes(type, s, strlen(s));
}

/* Reads all of b as one value, shallow and deep. */
static bool read_all(struct weir__bytes b, struct weir__amqp_value *out)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b), deep = c;
    bool good = weir__amqp_read(&c, out) && c.at == c.end;

    if (weir__amqp_check(&deep) && deep.at == deep.end)
        assert_true(good); /* what check lets pass, read can read */
    else
        good = false;
    return good;
}

static const char *why_not(const char *hex)
{
    struct weir__bytes b = sample_hex(hex);
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
    bool good = weir__amqp_check(&c);

    sample_free(b);
    assert_int_equal(good, !c.why);
    return good ? "good" : c.why;
}

static void spec_encodings(void **state)
{
    static const uint8_t uuid[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const struct {
        const char *hex;
        bool smallest; /* the writer writes the same */
        struct weir__amqp_value want;
    } rows[] = {
        {"40", true, {0}},
        {"41", true, number(WEIR__AMQP_BOOL, 1)},
        {"42", true, number(WEIR__AMQP_BOOL, 0)},
        {"56 01", false, number(WEIR__AMQP_BOOL, 1)},
        {"56 00", false, number(WEIR__AMQP_BOOL, 0)},
        {"50 ff", true, number(WEIR__AMQP_UBYTE, 255)},
        {"60 ff fe", true, number(WEIR__AMQP_USHORT, 0xfffe)},
        {"43", true, number(WEIR__AMQP_UINT, 0)},
        {"52 00", false, number(WEIR__AMQP_UINT, 0)},
        {"52 ff", true, number(WEIR__AMQP_UINT, 255)},
        {"70 00000100", true, number(WEIR__AMQP_UINT, 256)},
        {"70 ffffffff", true, number(WEIR__AMQP_UINT, 0xffffffff)},
        {"44", true, number(WEIR__AMQP_ULONG, 0)},
        {"53 70", true, number(WEIR__AMQP_ULONG, 0x70)},
        {"80 0000468c00000004", true, number(WEIR__AMQP_ULONG, 0x0000468c00000004)},
        {"80 0000000000000070", false, number(WEIR__AMQP_ULONG, 0x70)},
        {"51 80", true, weir__amqp_signed(WEIR__AMQP_BYTE, -128)},
        {"61 8000", true, weir__amqp_signed(WEIR__AMQP_SHORT, -32768)},
        {"54 ff", true, weir__amqp_signed(WEIR__AMQP_INT, -1)},
        {"71 ffffff7f", true, weir__amqp_signed(WEIR__AMQP_INT, -129)},
        {"71 80000000", true, weir__amqp_signed(WEIR__AMQP_INT, INT32_MIN)},
        {"55 7f", true, weir__amqp_signed(WEIR__AMQP_LONG, 127)},
        {"81 0000000000000080", true, weir__amqp_signed(WEIR__AMQP_LONG, 128)},
        {"81 8000000000000000", true, weir__amqp_signed(WEIR__AMQP_LONG, INT64_MIN)},
        {"72 3fc00000", true, {.type = WEIR__AMQP_FLOAT, .f = 1.5f}},
        {"82 bff8000000000000", true, {.type = WEIR__AMQP_DOUBLE, .d = -1.5}},
        {"73 0001f600", true, number(WEIR__AMQP_CHAR, 0x1f600)},
        {"83 000000e8d4a51000", true, weir__amqp_signed(WEIR__AMQP_TIMESTAMP, 1000000000000)},
        {"83 ffffffffffffffff", true, weir__amqp_signed(WEIR__AMQP_TIMESTAMP, -1)},
        {"74 30313233", true, text(WEIR__AMQP_DECIMAL32, "0123")},
        {"84 '01234567'", true, text(WEIR__AMQP_DECIMAL64, "01234567")},
        {"94 '0123456789abcdef'", true, text(WEIR__AMQP_DECIMAL128, "0123456789abcdef")},
        {"98 000102030405060708090a0b0c0d0e0f", true,
         weir__amqp_bytes(WEIR__AMQP_UUID, uuid, sizeof uuid)},
        {"a0 00", true, text(WEIR__AMQP_BINARY, "")},
        {"a0 02 'ab'", true, text(WEIR__AMQP_BINARY, "ab")},
        {"b0 00000002 'ab'", false, text(WEIR__AMQP_BINARY, "ab")},
        {"a1 1e 'Hello Glorious Messaging World'", true,
         text(WEIR__AMQP_STRING, "Hello Glorious Messaging World")},
        {"b1 00000001 'x'", false, text(WEIR__AMQP_STRING, "x")},
        {"a3 09 'ANONYMOUS'", true, text(WEIR__AMQP_SYMBOL, "ANONYMOUS")},
        {"b3 00000000", false, text(WEIR__AMQP_SYMBOL, "")},
        {"45", true, {.type = WEIR__AMQP_LIST}},
        {"c0 01 00", false, {.type = WEIR__AMQP_LIST}},
        {"d0 00000004 00000000", false, {.type = WEIR__AMQP_LIST}},
        {"c1 01 00", true, {.type = WEIR__AMQP_MAP}},
        {"d1 00000004 00000000", false, {.type = WEIR__AMQP_MAP}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].hex), out;
        struct weir__amqp_writer w;
        struct weir__amqp_value v;
        uint8_t room[64];

        assert_true(read_all(b, &v));
        assert_value(&v, &rows[i].want);
        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_put(&w, rows[i].want);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_true(out.len <= b.len);
        if (rows[i].smallest) assert_bytes(out, b);
        sample_free(b);
    }
}

/* What @azure/event-hubs 6.0.4 sends. */
static void golden_performatives(void **state)
{
    struct weir__bytes b = sample_hex("00 53 15 d0 0000000c 00000005 41 43 43 41 00 53 24 45");
    struct weir__amqp_value v, descriptor, item;
    struct weir__amqp_items items;

    (void)state;
    assert_true(read_all(b, &v));
    assert_int_equal(v.type, WEIR__AMQP_DESCRIBED);
    assert_true(weir__amqp_described(&v, &descriptor, &v));
    assert_int_equal(descriptor.u, 0x15);
    assert_int_equal(v.count, 5);
    weir__amqp_items_init(&items, &v);
    for (int i = 0; i < 5; i++) assert_true(weir__amqp_items_next(&items, &item));
    assert_int_equal(item.type, WEIR__AMQP_DESCRIBED);
    assert_true(weir__amqp_described(&item, &descriptor, &v));
    assert_int_equal(descriptor.u, 0x24);
    assert_int_equal(v.type, WEIR__AMQP_LIST);
    assert_false(weir__amqp_items_next(&items, &item));
    assert_null(items.in.why);
    sample_free(b);
}

static void golden_filter(void **state)
{
    struct weir__bytes b = sample_hex(
        "d1 00000056 00000002 a3 21 'apache.org:selector-filter:string' 00 80 0000468c00000004 "
        "a1 23 'amqp.annotation.x-opt-offset > ' 27 '-1' 27");
    struct weir__amqp_value map, v, descriptor;

    (void)state;
    assert_true(read_all(b, &map));
    assert_true(weir__amqp_map_find(&map, "apache.org:selector-filter:string", &v));
    assert_true(weir__amqp_described(&v, &descriptor, &v));
    assert_int_equal(descriptor.u, 0x0000468c00000004);
    assert_bytes(v.bytes, weir__bytes_of("amqp.annotation.x-opt-offset > '-1'", 35));
    assert_false(weir__amqp_map_find(&map, "apache.org", &v));
    assert_false(weir__amqp_map_find(&map, "apache.org:selector-filter:strinG", &v));
    assert_false(weir__amqp_map_find(&map, "Apache.org:selector-filter:string", &v));
    assert_false(weir__amqp_map_find(&map, "apache.org:selector-filter:strings", &v));
    assert_false(weir__amqp_map_find(&map, "", &v));
    sample_free(b);
}

static void golden_capabilities(void **state)
{
    static const char *const names[] = {"com.microsoft:georeplication",
                                        "com.microsoft:enable-receiver-runtime-metric"};
    struct weir__bytes b = sample_hex("f0 0000004f 00000002 a3 1c 'com.microsoft:georeplication' "
                                      "2c 'com.microsoft:enable-receiver-runtime-metric'");
    struct weir__bytes symbols[2], out;
    struct weir__amqp_value v, item;
    struct weir__amqp_items items;
    struct weir__amqp_writer w;
    uint8_t room[128];

    (void)state;
    assert_true(read_all(b, &v));
    assert_int_equal(v.count, 2);
    weir__amqp_items_init(&items, &v);
    for (int i = 0; i < 2; i++) {
        symbols[i] = weir__bytes_of(names[i], strlen(names[i]));
        assert_true(weir__amqp_items_next(&items, &item));
        assert_int_equal(item.type, WEIR__AMQP_SYMBOL);
        assert_bytes(item.bytes, symbols[i]);
    }
    assert_false(weir__amqp_items_next(&items, &item));
    assert_null(items.in.why);

    weir__amqp_writer_init(&w, room, sizeof room);
    weir__amqp_put_array(&w, WEIR__AMQP_SYMBOL, symbols, 2);
    assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
    assert_int_equal(out.len, b.len - 6);
    assert_int_equal(out.at[0], 0xe0);
    assert_memory_equal(out.at + 3, b.at + 9, b.len - 9);
    sample_free(b);
}

static void arrays(void **state)
{
    struct weir__bytes b;
    struct weir__amqp_value v, item;
    struct weir__amqp_items items;

    (void)state;
    b = sample_hex("e0 08 03 61 0001 ffff 7fff");
    assert_true(read_all(b, &v));
    weir__amqp_items_init(&items, &v);
    assert_true(weir__amqp_items_next(&items, &item) && item.i == 1);
    assert_true(weir__amqp_items_next(&items, &item) && item.i == -1);
    assert_true(weir__amqp_items_next(&items, &item) && item.i == 32767);
    assert_false(weir__amqp_items_next(&items, &item));
    sample_free(b);

    b = sample_hex("e0 0a 02 00 a3 03 'foo' a1 00 00");
    assert_true(read_all(b, &v));
    weir__amqp_items_init(&items, &v);
    assert_bytes(items.descriptor, weir__bytes_of("\xa3\x03"
                                                  "foo",
                                                  5));
    assert_true(weir__amqp_items_next(&items, &item) && item.type == WEIR__AMQP_STRING);
    sample_free(b);

    assert_string_equal(why_not("e0 01 00"), "good");
    assert_string_equal(why_not("e0 02 00 a1"), "good");
    assert_string_equal(why_not("e0 09 02 c0 02 01 40 02 01 41 40"), "bytes after the last item");
    assert_string_equal(why_not("e0 08 02 c0 02 01 40 02 01 41"), "good");
}

/* What cannot be walked has no item, and says why; whoever counts what is left counts nothing. */
static void some_values_have_no_items(void **state)
{
    static const struct {
        const char *value, *why;
        uint32_t left;
    } rows[] = {
        {"a1 02 'ab'", "a value that has no items", 0},
        {"e0 02 02 ff", "an unknown constructor in an array", 0},
        {"e0 03 03 60 00", "an array with more items than bytes", 0},
        {"e0 01 02", "an array without a constructor", 2},
        {"45", NULL, 0},
        {"c1 01 00", NULL, 0},
        {"e0 01 00", NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].value);
        struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
        struct weir__amqp_value v, item;
        struct weir__amqp_items items;
        assert_true(weir__amqp_read(&c, &v));
        weir__amqp_items_init(&items, &v);
        assert_int_equal(items.left, rows[i].left);
        assert_false(weir__amqp_items_next(&items, &item));
        assert_string_equal(items.in.why ? items.in.why : "", rows[i].why ? rows[i].why : "");
        sample_free(b);
    }
}

/* The items of an array may need no bytes, so their count proves nothing. */
static void giant_counts(void **state)
{
    (void)state;
    assert_string_equal(why_not("f0 00000005 ffffffff 40"),
                        "too many items without bytes in an array");
    assert_string_equal(why_not("f0 00000005 ffffffff 45"),
                        "too many items without bytes in an array");
    assert_string_equal(why_not("f0 00000005 00001000 41"), "good");
    assert_string_equal(why_not("f0 00000005 00001001 41"),
                        "too many items without bytes in an array");
    assert_string_equal(why_not("f0 00000006 ffffffff 50 00"),
                        "an array with more items than bytes");
    assert_string_equal(why_not("f0 00000006 ffffffff a1 00"),
                        "an array with more items than bytes");
    assert_string_equal(why_not("f0 00000004 ffffffff"), "ends too early");
    assert_string_equal(why_not("d0 00000005 ffffffff 40"), "more items than bytes");
    assert_string_equal(why_not("c0 02 ff 40"), "more items than bytes");
    assert_string_equal(why_not("d1 00000006 80000002 40 40"), "more items than bytes");
}

static void broken_sizes(void **state)
{
    (void)state;
    assert_string_equal(why_not(""), "ends too early");
    assert_string_equal(why_not("c0 00 00"), "a size that is smaller than its count");
    assert_string_equal(why_not("d0 00000003 00000000"), "a size that is smaller than its count");
    assert_string_equal(why_not("f0 00000000 00000000"), "a size that is smaller than its count");
    assert_string_equal(why_not("d0 ffffffff 00000000"), "a size that is beyond the end");
    assert_string_equal(why_not("b0 ffffffff 00"), "ends too early");
    assert_string_equal(why_not("b0 fffffffb 00"), "ends too early");
    assert_string_equal(why_not("c0 03 01 40 40"), "bytes after the last item");
    assert_string_equal(why_not("c0 03 02 a1 05"), "ends too early");
    assert_string_equal(why_not("c1 02 01 40"), "a map with a key that has no value");
    assert_string_equal(why_not("56 02"), "a boolean that is neither 0 nor 1");
    assert_string_equal(why_not("46"), "an unknown constructor");
    assert_string_equal(why_not("e0 02 01 46"), "an unknown constructor in an array");
    assert_string_equal(why_not("00"), "ends too early");
    assert_string_equal(why_not("00 53 70"), "ends too early");
}

/* An item that reaches past the end of its list must not borrow from what follows the list. */
static void items_stay_inside(void **state)
{
    struct weir__bytes b = sample_hex("c0 03 01 a1 05 'hello'");
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
    struct weir__amqp_value v, item;
    struct weir__amqp_items items;

    (void)state;
    assert_true(weir__amqp_read(&c, &v));
    weir__amqp_items_init(&items, &v);
    assert_false(weir__amqp_items_next(&items, &item));
    assert_string_equal(items.in.why, "ends too early");
    assert_false(weir__amqp_items_next(&items, &item));
    sample_free(b);
}

/* Opens `depth` lists or described values around a null. */
static struct weir__bytes nested(size_t depth, bool described)
{
    size_t head = described ? 2 : 9, len = depth * head + 1;
    uint8_t *at = malloc(len);

    assert_non_null(at);
    for (size_t i = 0; i < depth; i++) {
        uint8_t *p = at + i * head;
        p[0] = described ? 0x00 : 0xd0;
        if (described) {
            p[1] = 0x44;
        } else {
            weir__store_be32(p + 1, (uint32_t)(len - i * head - 5));
            weir__store_be32(p + 5, 1);
        }
    }
    at[len - 1] = 0x40;
    return weir__bytes_of(at, len);
}

static void nesting_is_limited(void **state)
{
    (void)state;
    for (int described = 0; described < 2; described++) {
        for (size_t depth = 1; depth < WEIR__AMQP_DEPTH_MAX + 8; depth++) {
            struct weir__bytes b = nested(depth, described);
            struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
            assert_int_equal(weir__amqp_check(&c), depth <= WEIR__AMQP_DEPTH_MAX);
            sample_free(b);
        }
    }
}

static void a_mebibyte_of_one_byte(void **state)
{
    static const uint8_t fill[] = {0x00, 0x45, 0xc0, 0xd0, 0xe0, 0xf0, 0xff};
    size_t len = 1 << 20;
    uint8_t *at = malloc(len);

    (void)state;
    assert_non_null(at);
    for (size_t i = 0; i < sizeof fill; i++) {
        struct weir__amqp_cursor c = weir__amqp_cursor_of(weir__bytes_of(at, len)), skip = c;
        memset(at, fill[i], len);
        assert_int_equal(weir__amqp_check(&c), fill[i] == 0x45);
        assert_int_equal(weir__amqp_skip(&skip), fill[i] == 0x45 || fill[i] == 0xe0);
    }
    free(at);
}

/* Puts a random value, with lists, maps, arrays and described values down to `depth`. */
static void put_random(struct weir__amqp_writer *w, uint64_t *seed, unsigned depth)
{
    uint64_t pick = random_below(seed, 10);
    uint32_t count = (uint32_t)random_below(seed, 6) * 2;
    struct weir__bytes names[10];
    size_t mark;

    if (!depth || pick < 5) {
        weir__amqp_put(w, random_simple(seed));
    } else if (pick == 5) {
        weir__amqp_put_descriptor(w, random_number(seed, 64));
        put_random(w, seed, depth - 1);
    } else if (pick == 6) {
        for (uint32_t i = 0; i < count; i++) names[i] = random_bytes(seed);
        weir__amqp_put_array(w, WEIR__AMQP_STRING, names, count);
    } else {
        mark = weir__amqp_put_open(w);
        for (uint32_t i = 0; i < count; i++) put_random(w, seed, depth - 1);
        weir__amqp_put_close(w, mark, pick == 7 ? WEIR__AMQP_MAP : WEIR__AMQP_LIST, count);
    }
}

/* Writes again what was read, value by value. */
static void put_again(struct weir__amqp_writer *w, const struct weir__amqp_value *v)
{
    struct weir__amqp_value item, descriptor;
    struct weir__amqp_items items;
    size_t mark;

    if (v->type == WEIR__AMQP_LIST || v->type == WEIR__AMQP_MAP) {
        mark = weir__amqp_put_open(w);
        weir__amqp_items_init(&items, v);
        while (weir__amqp_items_next(&items, &item)) put_again(w, &item);
        assert_null(items.in.why);
        weir__amqp_put_close(w, mark, v->type, v->count);
    } else if (v->type == WEIR__AMQP_DESCRIBED) {
        assert_true(weir__amqp_described(v, &descriptor, &item));
        weir__amqp_put_descriptor(w, descriptor.u);
        put_again(w, &item);
    } else {
        weir__amqp_put(w, *v);
    }
}

static void random_values_round_trip(void **state)
{
    (void)state;
    for (uint64_t run = 1; run <= SEEDS; run++) {
        struct weir__amqp_writer w;
        struct weir__buf first, second;
        struct weir__amqp_value v;
        struct weir__bytes exact;
        uint64_t seed = run * 0x9e3779b97f4a7c15;

        weir__buf_init(&first, SAMPLE_BYTES_MAX);
        weir__buf_init(&second, SAMPLE_BYTES_MAX);
        weir__amqp_writer_append(&w, &first);
        put_random(&w, &seed, 4);
        assert_int_equal(weir__amqp_writer_finish(&w, NULL, NULL), 0);
        exact = sample_copy(weir__buf_bytes(&first));
        assert_true(read_all(exact, &v));
        weir__amqp_writer_append(&w, &second);
        put_again(&w, &v);
        assert_int_equal(weir__amqp_writer_finish(&w, NULL, NULL), 0);
        assert_bytes(weir__buf_bytes(&second), exact);
        sample_free(exact);
        weir__buf_fini(&first);
        weir__buf_fini(&second);
    }
}

static void random_simple_values_are_equal(void **state)
{
    uint64_t seed = 0x1234567;

    (void)state;
    for (int run = 0; run < 20 * SEEDS; run++) {
        struct weir__amqp_value want = random_simple(&seed), got;
        struct weir__amqp_writer w;
        struct weir__bytes out;
        uint8_t room[400];

        weir__amqp_writer_init(&w, room, sizeof room);
        weir__amqp_put(&w, want);
        assert_int_equal(weir__amqp_writer_finish(&w, &out, NULL), 0);
        assert_true(read_all(out, &got));
        assert_value(&got, &want);
    }
}

/* No prefix of a value is a value, and looking for one reads nothing outside. */
static void truncation_at_every_byte(void **state)
{
    (void)state;
    for (uint64_t run = 1; run <= 200; run++) {
        struct weir__amqp_writer w;
        struct weir__buf whole;
        uint64_t seed = run * 0xbf58476d1ce4e5b9;

        weir__buf_init(&whole, SAMPLE_BYTES_MAX);
        weir__amqp_writer_append(&w, &whole);
        put_random(&w, &seed, 2);
        assert_int_equal(weir__amqp_writer_finish(&w, NULL, NULL), 0);
        for (size_t len = 0; len < whole.len; len++) {
            struct weir__bytes cut = sample_copy(weir__bytes_of(whole.at, len));
            struct weir__amqp_cursor c = weir__amqp_cursor_of(cut), skip = c;
            assert_false(weir__amqp_check(&c));
            assert_non_null(c.why);
            assert_false(weir__amqp_skip(&skip));
            sample_free(cut);
        }
        weir__buf_fini(&whole);
    }
}

static void types_asked_for(void **state)
{
    struct weir__bytes b = sample_hex("a1 01 'x' 53 05");
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
    struct weir__amqp_value v;

    (void)state;
    assert_true(weir__amqp_read_one(&c, WEIR__AMQP_SET(WEIR__AMQP_STRING), &v));
    assert_false(weir__amqp_read_one(&c, WEIR__AMQP_SET(WEIR__AMQP_STRING), &v));
    assert_int_equal(weir__amqp_offset(&c), 3);
    assert_string_equal(c.why, "a value of another type than belongs here");
    assert_false(weir__amqp_read(&c, &v)); /* it sticks */
    sample_free(b);
}

static void utf8(void **state)
{
    static const char *const good[] = {"",
                                       "plain",
                                       "h\xc3\xa9llo",
                                       "\xe6\x97\xa5",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc3",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe6\x97",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "a\xe6\x97\xa5\xa5",
                                      "\xc3(",
                                      "\xe6(\xa5"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(weir__amqp_utf8(weir__bytes_of(good[i], strlen(good[i]))));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(weir__amqp_utf8(weir__bytes_of(bad[i], strlen(bad[i]))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spec_encodings),
        cmocka_unit_test(golden_performatives),
        cmocka_unit_test(golden_filter),
        cmocka_unit_test(golden_capabilities),
        cmocka_unit_test(arrays),
        cmocka_unit_test(some_values_have_no_items),
        cmocka_unit_test(giant_counts),
        cmocka_unit_test(broken_sizes),
        cmocka_unit_test(items_stay_inside),
        cmocka_unit_test(nesting_is_limited),
        cmocka_unit_test(a_mebibyte_of_one_byte),
        cmocka_unit_test(random_values_round_trip),
        cmocka_unit_test(random_simple_values_are_equal),
        cmocka_unit_test(truncation_at_every_byte),
        cmocka_unit_test(types_asked_for),
        cmocka_unit_test(utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
