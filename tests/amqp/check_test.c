/* The quick check of a value to its bottom, beside one that reads each value on its way: whatever the
 * bytes are, both say the same, and stop at the same place when the value is good. */
#include "sample.h"

#define RUNS 3000
#define CHANGES 12 /* of each value */
#define VALUE_BYTES_MAX 4096

static bool is_good(struct weir__amqp_cursor *c, unsigned depth);

/* Whether these bytes are so many good values, and no more. */
static bool are_good(struct weir__bytes b, uint32_t count, unsigned depth)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(b);

    for (uint32_t i = 0; i < count; i++)
        if (!is_good(&c, depth)) return false;
    return c.at == c.end;
}

/* Of a value that was read: what is inside it. */
static bool is_good_inside(const struct weir__amqp_value *v, unsigned depth)
{
    struct weir__amqp_items items;
    struct weir__amqp_value item;

    if (v->type == WEIR__AMQP_LIST && !v->count && !v->bytes.len) return true; /* 45, maybe */
    if (v->type < WEIR__AMQP_LIST) return true;
    if (depth == WEIR__AMQP_DEPTH_MAX) return false;
    if (v->type != WEIR__AMQP_ARRAY) return are_good(v->bytes, v->count, depth + 1);
    if (!v->count && !v->bytes.len) return true;
    weir__amqp_items_init(&items, v);
    if (items.in.why) return false;
    if (items.descriptor.len && !are_good(items.descriptor, 1, depth + 1)) return false;
    while (weir__amqp_items_next(&items, &item))
        if (!is_good_inside(&item, depth + 1)) return false;
    return !items.in.why;
}

static bool is_good(struct weir__amqp_cursor *c, unsigned depth)
{
    struct weir__amqp_value v;

    if (c->at < c->end && *c->at == 0) {
        if (depth == WEIR__AMQP_DEPTH_MAX) return false;
        c->at++;
        return is_good(c, depth + 1) && is_good(c, depth + 1);
    }
    return weir__amqp_read(c, &v) && is_good_inside(&v, depth);
}

static void compare(const uint8_t *bytes, size_t len)
{
    struct weir__bytes exact = sample_copy(weir__bytes_of(bytes, len));
    struct weir__amqp_cursor quick = weir__amqp_cursor_of(exact), slow = quick;
    bool good = is_good(&slow, 0);

    assert_int_equal(weir__amqp_check(&quick), good);
    assert_int_equal(quick.why == NULL, good);
    if (good) assert_ptr_equal(quick.at, slow.at);
    sample_free(exact);
}

/* As it is, cut, and with a byte that is another: near to what it was, a code, or anything. */
static void compare_changed(uint8_t *bytes, size_t len, uint64_t *seed)
{
    static const uint8_t codes[] = {0x00, 0x3f, 0x40, 0x41, 0x45, 0x46, 0x50, 0x53, 0x56,
                                    0x57, 0x60, 0x70, 0x80, 0x94, 0x98, 0xa0, 0xa1, 0xa3,
                                    0xb0, 0xb1, 0xc0, 0xc1, 0xd0, 0xd1, 0xe0, 0xf0, 0xff};

    compare(bytes, len);
    for (int i = 0; i < CHANGES; i++) {
        size_t at = (size_t)random_below(seed, len);
        uint8_t was = bytes[at];
        uint64_t pick = random_below(seed, 4);
        bytes[at] = pick == 0   ? (uint8_t)(was + 1)
                    : pick == 1 ? (uint8_t)(was - 1)
                    : pick == 2 ? codes[random_below(seed, sizeof codes)]
                                : (uint8_t)next_random(seed);
        compare(bytes, len);
        bytes[at] = was;
    }
    compare(bytes, (size_t)random_below(seed, len));
}

/* ---- values ---- */

static void put_any(struct weir__amqp_writer *w, uint64_t *seed, unsigned depth);

/* Many that need a byte or two each, as most messages have, and here and there another. */
static void put_many(struct weir__amqp_writer *w, uint64_t *seed, unsigned depth)
{
    static const uint8_t small[][2] = {{0x40, 0}, {0x41, 0}, {0x42, 0}, {0x43, 0}, {0x44, 0},
                                       {0x45, 0}, {0x50, 7}, {0x56, 1}, {0xa0, 0}, {0xa1, 0}};
    uint32_t count = (uint32_t)random_below(seed, 40);
    size_t mark = weir__amqp_put_open(w);

    for (uint32_t i = 0; i < count; i++) {
        size_t pick = (size_t)random_below(seed, random_below(seed, 6) ? 6 : 10);
        if (random_below(seed, 24) == 0)
            put_any(w, seed, depth);
        else
            weir__amqp_put_raw(w, weir__bytes_of(small[pick], small[pick][0] < 0x50 ? 1 : 2));
    }
    weir__amqp_put_close(w, mark, count % 4 == 0 ? WEIR__AMQP_MAP : WEIR__AMQP_LIST, count);
}

/* Items of one constructor: without bytes, of one, booleans, texts, lists, arrays, and described. */
static void put_array(struct weir__amqp_writer *w, uint64_t *seed)
{
    static const char *const bodies[] = {
        "e0 02 00 40",
        "e0 02 05 41",
        "e0 05 03 50 01 02 03",
        "e0 04 02 56 00 01",
        "e0 06 02 a1 01 'a' 00",
        "e0 06 02 c0 01 00 01 00",
        "e0 05 01 e0 02 00 40",
        "e0 06 02 00 53 07 50 01 02",
        "f0 00000006 00000001 70 00 00 00 01",
        "e0 01 00",
        "e0 02 ff 45",
        "e0 0a 02 00 c0 03 02 41 41 50 01 02",
        "e0 05 01 00 44 50 01",
        "e0 06 00 00 e0 01 00 40",
        "e0 07 01 00 00 44 44 50 01",
        "e0 05 02 e0 01 00 01 00",
        "e0 07 02 00 53 07 56 00 01",
        "e0 04 05 00 44 40",
        "e0 03 00 00 44",
        "e0 0c 0a 56 00 01 00 01 00 01 00 01 00 01",
        "f0 0000000e 00000009 56 01 00 01 00 01 00 01 00 01",
        "f0 00000008 00000001 c0 02 01 40",
        "f0 0000000b 00000001 b0 00000002 'ab'",
    };
    size_t pick = (size_t)random_below(seed, sizeof bodies / sizeof bodies[0]);
    struct weir__bytes b = sample_hex(bodies[pick]);

    weir__amqp_put_raw(w, b);
    sample_free(b);
}

static void put_any(struct weir__amqp_writer *w, uint64_t *seed, unsigned depth)
{
    uint64_t pick = random_below(seed, 10);

    if (!depth || pick < 2) {
        weir__amqp_put(w, random_simple(seed));
    } else if (pick < 4) {
        put_array(w, seed);
    } else if (pick < 6) {
        weir__amqp_put_descriptor(w, random_number(seed, 64));
        put_any(w, seed, depth - 1);
    } else {
        put_many(w, seed, depth - 1);
    }
}

static void both_checks_agree(void **state)
{
    uint8_t room[VALUE_BYTES_MAX];
    uint64_t seed = 20;
    unsigned done = 0;

    (void)state;
    for (unsigned run = 0; run < RUNS; run++) {
        struct weir__amqp_writer w;
        struct weir__bytes out;
        weir__amqp_writer_init(&w, room, sizeof room);
        put_any(&w, &seed, 3);
        if (weir__amqp_writer_finish(&w, &out, NULL) != 0) continue;
        compare_changed(room, out.len, &seed);
        done++;
    }
    assert_true(done > RUNS / 2);
}

/* Eight values of one byte at a time are passed over at once: each of the eight may be another. */
static void runs_of_small_values_are_read_to_the_byte(void **state)
{
    uint8_t bytes[3 + 40];

    (void)state;
    for (uint8_t count = 1; count <= 40; count++) {
        bytes[0] = 0xc0;
        bytes[1] = (uint8_t)(count + 1);
        bytes[2] = count;
        for (uint8_t i = 0; i < count; i++) bytes[3 + i] = (uint8_t)(0x40 + i % 6);
        for (size_t at = 3; at < 3u + count; at++) {
            uint8_t was = bytes[at];
            for (unsigned code = 0; code < 256; code++) {
                bytes[at] = (uint8_t)code;
                compare(bytes, 3u + count);
            }
            bytes[at] = was;
        }
    }
}

/* Lists within lists, arrays, and described values within each other, down to the last that may be. */
static void both_know_how_deep_is_too_deep(void **state)
{
    uint8_t bytes[4 * WEIR__AMQP_DEPTH_MAX];

    (void)state;
    for (size_t depth = WEIR__AMQP_DEPTH_MAX - 2; depth <= WEIR__AMQP_DEPTH_MAX + 2; depth++) {
        for (int kind = 0; kind < 4; kind++) { /* lists, values, descriptors, arrays */
            size_t len = 0;
            if (kind == 3) bytes[len++] = 0xe0;
            for (size_t i = 0; i < depth; i++) {
                size_t left = depth - i - 1;
                if (kind == 3) bytes[len++] = (uint8_t)(3 * left + 3);
                if (kind == 3) bytes[len++] = 1;
                bytes[len++] = kind == 0 ? 0xc0 : kind < 3 ? 0x00 : left ? 0xe0 : 0x50;
                if (kind == 0) bytes[len++] = (uint8_t)(3 * left + 2);
                if (kind == 0) bytes[len++] = 1;
                if (kind == 1) bytes[len++] = 0x44;
            }
            bytes[len++] = 0x40;
            if (kind == 2) memset(bytes + len, 0x40, depth), len += depth;
            compare(bytes, len);
            bytes[len - 1] = 0x41;
            compare(bytes, len);
        }
    }
}

#define LISTS_MAX (WEIR__AMQP_DEPTH_MAX + 2)

/* A value in so many lists; another follows it in the innermost, or nothing. Written from the end. */
static struct weir__bytes put_into_lists(uint8_t bytes[3 * LISTS_MAX + 5], const uint8_t *value,
                                         size_t len, unsigned lists, bool more)
{
    uint8_t *end = bytes + 3 * LISTS_MAX + 5, *at = end;

    if (more) *--at = 0x40;
    at -= len;
    memcpy(at, value, len);
    for (unsigned i = 0; i < lists; i++) {
        uint8_t size = (uint8_t)(end - at + 1), count = i || !more ? 1 : 2;
        at -= 3;
        memcpy(at, (uint8_t[]){0xc0, size, count}, 3);
    }
    return weir__bytes_of(at, (size_t)(end - at));
}

static void compare_small(const uint8_t small[4], size_t len)
{
    uint8_t space[3 * LISTS_MAX + 5];

    for (int more = 0; more < 2; more++) {
        struct weir__bytes b = put_into_lists(space, small, len, 1, more);
        compare(b.at, b.len);
    }
}

static void small_compounds_are_read_as_others(void **state)
{
    static const uint8_t codes[] = {0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1};
    static const uint8_t counts[] = {0, 1, 2, 255};

    (void)state;
    for (unsigned i = 0; i < sizeof codes * 5 * sizeof counts * 256; i++) {
        const uint8_t small[] = {codes[i % 7], (uint8_t)(i / 7 % 5), counts[i / 35 % 4],
                                 (uint8_t)(i / 140)};
        compare_small(small, 4);
        if (small[1] < 2) compare_small(small, 2u + small[1]);
    }
}

/* All of these lengths, with constructors that are described or look like it. */
static void small_arrays_are_read_as_others(void **state)
{
    static const uint8_t codes[] = {0x00, 0x40, 0x44, 0x50, 0x53, 0x56, 0xa0};
    static const uint8_t counts[] = {0, 1, 2};

    (void)state;
    for (unsigned i = 0; i < 3 * 3 * 7 * 7 * 7 * 7; i++) {
        const uint8_t small[] = {0xe0,
                                 (uint8_t)(3 + i % 3),
                                 counts[i / 3 % 3],
                                 codes[i / 9 % 7],
                                 codes[i / 63 % 7],
                                 codes[i / 441 % 7],
                                 codes[i / 3087]};
        compare(small, 2u + small[1]);
    }
}

static void small_compounds_can_be_too_deep(void **state)
{
    static const struct {
        uint8_t at[4], len, lists_max;
    } rows[] = {
        {{0xc0, 1, 0}, 3, WEIR__AMQP_DEPTH_MAX - 1},
        {{0xc1, 1, 0}, 3, WEIR__AMQP_DEPTH_MAX - 1},
        {{0xe0, 2, 9, 0x45}, 4, WEIR__AMQP_DEPTH_MAX - 1},
        {{0x45}, 1, WEIR__AMQP_DEPTH_MAX},
    };
    uint8_t space[3 * LISTS_MAX + 5];

    (void)state;
    for (unsigned i = 0; i < 2 * (LISTS_MAX + 1) * 4; i++) {
        unsigned row = i % 4, lists = i / 8;
        struct weir__bytes b =
            put_into_lists(space, rows[row].at, rows[row].len, lists, lists && i / 4 % 2);
        struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
        assert_int_equal(weir__amqp_check(&c), lists <= rows[row].lists_max);
    }
}

/* Where it stops, and why; the bytes behind the value are not looked at. */
static void a_list_says_what_is_wrong_with_it(void **state)
{
    static const struct {
        const char *hex, *why;
        size_t at;
    } rows[] = {
        {"c0 0a 08 40 40 40 40 40 40 40 40 40 40", "bytes after the last item", 11},
        {"c0 0a 09 52 05 40 40 40 40 40 40 40 40", "ends too early", 12},
        {"d0 00000006 00000003 40 40 40", "more items than bytes", 5},
        {"d0 00000006 00000002 40 40 40", NULL, 11},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__bytes b = sample_hex(rows[i].hex);
        struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
        assert_int_equal(weir__amqp_check(&c), !rows[i].why);
        if (rows[i].why) assert_string_equal(c.why, rows[i].why);
        assert_int_equal(weir__amqp_offset(&c), rows[i].at);
        sample_free(b);
    }
}

/* Described values in each other: as the value of the one around it, or as its descriptor. */
static size_t put_described(uint8_t *to, size_t depth, bool inside)
{
    size_t len = 0;

    for (size_t i = 0; i < depth; i++) {
        to[len++] = 0x00;
        if (!inside) to[len++] = 0x44;
    }
    for (size_t i = 0; i <= (inside ? depth : 0); i++) to[len++] = 0x44;
    return len;
}

/* All that steps over described values goes as deep, and says where it is too deep. */
static void stepping_over_has_a_depth(void **state)
{
    uint8_t bytes[4 * WEIR__AMQP_DEPTH_MAX] = {0};
    struct weir__amqp_value v;

    (void)state;
    v = weir__amqp_unsigned(WEIR__AMQP_UINT, 1);
    assert_false(weir__amqp_described(&v, &v, &v));
    for (size_t i = 0; i < 12; i++) {
        size_t depth = WEIR__AMQP_DEPTH_MAX + i % 2, way = i / 4;
        bool inside = i % 4 > 1, good = depth == WEIR__AMQP_DEPTH_MAX;
        size_t len = put_described(bytes, depth, inside);
        struct weir__bytes b = sample_copy(weir__bytes_of(bytes, len));
        struct weir__amqp_cursor c = weir__amqp_cursor_of(b);
        assert_int_equal(way == 0   ? weir__amqp_skip(&c)
                         : way == 1 ? weir__amqp_read(&c, &v)
                                    : weir__amqp_check(&c),
                         good);
        assert_int_equal(weir__amqp_offset(&c), good ? len : depth - 1 + (inside ? 0 : depth - 1));
        if (!good) assert_string_equal(c.why, "values are nested too deep");
        sample_free(b);
    }
}

/* The items of an array are a level of their own, and so is what describes them. */
static void what_describes_an_arrays_items_has_a_depth(void **state)
{
    (void)state;
    for (size_t depth = WEIR__AMQP_DEPTH_MAX - 1; depth <= WEIR__AMQP_DEPTH_MAX; depth++) {
        uint8_t bytes[4 * WEIR__AMQP_DEPTH_MAX] = {0x00};
        size_t len = 1 + put_described(bytes + 1, depth, false);
        struct weir__amqp_value v = weir__amqp_bytes(WEIR__AMQP_ARRAY, bytes, len + 2), item;
        struct weir__amqp_items items;
        bool good = depth < WEIR__AMQP_DEPTH_MAX;
        bytes[len] = 0x50;
        bytes[len + 1] = 7;
        v.count = 1;
        weir__amqp_items_init(&items, &v);
        assert_int_equal(items.descriptor.len, good ? len - 1 : 0);
        assert_int_equal(weir__amqp_items_next(&items, &item), good);
        if (good) assert_int_equal(item.u, 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_compounds_are_read_as_others),
        cmocka_unit_test(small_arrays_are_read_as_others),
        cmocka_unit_test(small_compounds_can_be_too_deep),
        cmocka_unit_test(both_checks_agree),
        cmocka_unit_test(runs_of_small_values_are_read_to_the_byte),
        cmocka_unit_test(both_know_how_deep_is_too_deep),
        cmocka_unit_test(a_list_says_what_is_wrong_with_it),
        cmocka_unit_test(stepping_over_has_a_depth),
        cmocka_unit_test(what_describes_an_arrays_items_has_a_depth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
