/* catalog_bytes_test.c - a catalogue whose checksums are good and whose bytes are not: what is said
 * of it, and where. */
#include "hub/catalog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "support/allocs.h"

#define HEADER_BYTES WEIR__CATALOG_HEADER_BYTES

static struct weir_error err;
static struct weir__buf buf;

/* ---- a sample ---- */

static void add_rule(struct weir__rule **rules, uint32_t *count, const char *name)
{
    struct weir__rule rule = {.rights = WEIR__RIGHT_SEND, .key = {"first", "second"}};

    snprintf(rule.name, sizeof rule.name, "%s", name);
    assert_int_equal(weir__catalog_add_rule(rules, count, &rule, &err), 0);
}

static struct weir__catalog_hub *add_hub(struct weir__catalog *c, const char *name)
{
    struct weir__catalog_hub *hub;

    assert_int_equal(weir__catalog_add_hub(c, &hub, &err), 0);
    snprintf(hub->name, sizeof hub->name, "%s", name);
    hub->id = c->next_hub_id++;
    hub->partitions = 4;
    assert_int_equal(weir__catalog_add_group(hub, WEIR__GROUP_DEFAULT, &err), 0);
    return hub;
}

/* Where the parts of the body lie:
 *
 *     0  next hub id, 9      8  removed, 3 ids: 3, 5, 8
 *    36  rules, 1           38  rights    39  "Root"     45  "first"    52  "second"
 *    60  hubs, 2            64  id, 1     72  partitions           108  "Homes"
 *   115  groups, 2         117  "$Default"              127  "billing"
 *   136  rules, 1          138  rights   139  "sender"  147  "first"   154  "second"
 *   162  id, 2             170  partitions              206  "meters"
 *   214  groups, 1         216  "$Default"
 *   226  rules, 0          228  the end */
static void fill(struct weir__catalog *c)
{
    struct weir__catalog_hub *hub;

    weir__catalog_init(c);
    c->generation = UINT64_C(0x0102030405060708);
    add_rule(&c->rules, &c->rule_count, "Root");
    hub = add_hub(c, "Homes");
    assert_int_equal(weir__catalog_add_group(hub, "billing", &err), 0);
    add_rule(&hub->rules, &hub->rule_count, "sender");
    add_hub(c, "meters");
    c->next_hub_id = 9;
    for (uint64_t id = 3; id < 9; id += id == 3 ? 2 : 3)
        assert_int_equal(weir__catalog_add_removed(c, id, &err), 0);
}

static void encode(const struct weir__catalog *c)
{
    assert_int_equal(weir__catalog_encode(c, &buf, &err), 0);
}

static int make_sample(void **state)
{
    struct weir__catalog c;

    (void)state;
    weir__buf_init(&buf, 4096);
    fill(&c);
    encode(&c);
    weir__catalog_fini(&c);
    assert_int_equal(buf.len, HEADER_BYTES + 228);
    return 0;
}

static int free_sample(void **state)
{
    (void)state;
    weir__buf_fini(&buf);
    return 0;
}

/* ---- reading ---- */

/* Reads a body of so many bytes, after its checksums are made good. */
static int decode(size_t body)
{
    uint8_t *exact = malloc(HEADER_BYTES + body); /* so that reading one byte too many is seen */
    struct weir__catalog c;
    int rc;

    memcpy(exact, buf.at, HEADER_BYTES + body);
    weir__store32(exact + 12, (uint32_t)body);
    weir__store32(exact + 24, weir__crc32c(0, exact + HEADER_BYTES, body));
    weir__store32(exact + 28, weir__crc32c(0, exact, 28));
    err.text[0] = '\0';
    rc = weir__catalog_decode(&c, weir__bytes_of(exact, HEADER_BYTES + body), &err);
    if (rc == 0) assert_true(c.generation == UINT64_C(0x0102030405060708));
    if (rc != 0) assert_true(c.hub_count == 0 && c.rule_count == 0 && c.removed_count == 0);
    weir__catalog_fini(&c);
    free(exact);
    return rc;
}

static void said(int rc, const char *words, unsigned at)
{
    char want[128];

    snprintf(want, sizeof want, "%s at byte %u of the catalogue's body", words, at);
    assert_int_equal(rc, WEIR_ECORRUPT);
    assert_string_equal(err.text, want);
}

/* One number is another. Without words it can be. */
static void numbers(void **state)
{
    static const struct {
        unsigned at, bytes;
        uint64_t value;
        const char *words;
        unsigned found_at;
    } rows[] = {
        {8, 4, 28, "too many things", 12},
        {8, 4, 27, "a bad deleted id", 44},
        {12, 8, 0, "a bad deleted id", 20},
        {12, 8, 4, NULL, 0},
        {20, 8, 3, "a bad deleted id", 28},
        {28, 8, 9, "a bad deleted id", 36},
        {36, 2, 13, "too many things", 38},
        {38, 1, 0, "bad rights", 60},
        {38, 1, WEIR__RIGHTS_ALL, NULL, 0},
        {38, 1, WEIR__RIGHTS_ALL + 1, "bad rights", 60},
        {39, 2, 0, "a bad name", 41},
        {39, 2, 257, "a text is too long", 41},
        {39, 2, 256, "ends too early", 41},
        {41, 1, 0, "a bad name", 45},
        {45, 2, 0, "a bad key", 47},
        {45, 2, 65, "a text is too long", 47},
        {47, 1, ' ', "a bad key", 52},
        {49, 1, 0, "a bad key", 52},
        {54, 1, 0x7f, "a bad key", 60},
        {60, 4, 4, "too many things", 64},
        {60, 4, 3, "ends too early", 228},
        {60, 4, 1, "more than there should be", 162},
        {64, 8, 0, "a bad hub id", 115},
        {64, 8, 3, "a hub that is deleted", 115},
        {64, 8, 9, "a bad hub id", 115},
        {72, 4, 0, "a bad number of partitions", 115},
        {72, 4, 1, NULL, 0},
        {72, 4, 1024, NULL, 0},
        {72, 4, 1025, "a bad number of partitions", 115},
        {108, 2, 0, "a bad name", 110},
        {108, 2, 257, "a text is too long", 110},
        {115, 2, 0, "a hub without $Default", 117},
        {115, 2, 1001, "too many things", 117},
        {117, 2, 0, "a bad name", 119},
        {117, 2, 51, "a text is too long", 119},
        {119, 1, '!', "a bad name", 127},
        {119, 1, 'x', "a hub without $Default", 136},
        {136, 2, 13, "too many things", 138},
        {138, 1, 0, "bad rights", 162},
        {162, 8, 1, "a bad hub id", 214},
        {162, 8, 7, NULL, 0},
        {162, 8, 9, "a bad hub id", 214},
        {214, 2, 7, "too many things", 216},
        {214, 2, 6, "a bad name", 228},
        {226, 2, 1, "too many things", 228},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t *at = buf.at + HEADER_BYTES + rows[i].at, before[8];
        int rc;

        memcpy(before, at, sizeof before);
        memcpy(at, &rows[i].value, rows[i].bytes);
        rc = decode(228);
        memcpy(at, before, sizeof before);
        if (rows[i].words)
            said(rc, rows[i].words, rows[i].found_at);
        else
            assert_int_equal(rc, 0);
    }
    assert_int_equal(decode(228), 0);
}

/* Wherever the body ends too early, and one byte behind its end. */
static void other_lengths(void **state)
{
    (void)state;
    for (size_t body = 0; body < 228; body++) {
        assert_int_equal(decode(body), WEIR_ECORRUPT);
        assert_non_null(strstr(err.text, " of the catalogue's body"));
    }
    said(decode(7), "ends too early", 0);
    said(decode(59), "ends too early", 54);
    said(decode(227), "ends too early", 226);
    assert_true(weir__buf_add(&buf, "", 1));
    said(decode(229), "more than there should be", 228);
    buf.len--;
}

static void things_that_are_there_twice(void **state)
{
    static const struct {
        const char *words;
        unsigned at;
    } rows[] = {{"a hub is there twice", 213},
                {"a group is there twice", 145},
                {"a rule is there twice", 186},
                {"a rule is there twice", 82}};

    (void)state;
    for (int i = 0; i < 4; i++) {
        struct weir__catalog c;

        fill(&c);
        if (i == 0) memcpy(c.hubs[1].name, "hOMES", 6);
        if (i == 1) assert_int_equal(weir__catalog_add_group(&c.hubs[0], "BILLING", &err), 0);
        if (i == 2) add_rule(&c.hubs[0].rules, &c.hubs[0].rule_count, "SENDER");
        if (i == 3) add_rule(&c.rules, &c.rule_count, "ROOT");
        encode(&c);
        weir__catalog_fini(&c);
        said(decode(buf.len - HEADER_BYTES), rows[i].words, rows[i].at);
    }
}

/* Counts are checked against what is left; nothing but ids is the tightest. */
static void nothing_but_deleted_ids(void **state)
{
    struct weir__catalog c, back;

    (void)state;
    weir__catalog_init(&c);
    c.next_hub_id = 101;
    for (uint64_t id = 1; id <= 100; id++)
        assert_int_equal(weir__catalog_add_removed(&c, id, &err), 0);
    encode(&c);
    assert_int_equal(weir__catalog_decode(&back, weir__buf_bytes(&buf), &err), 0);
    assert_int_equal(back.removed_count, 100);
    assert_int_equal(back.version, WEIR__CATALOG_VERSION);
    weir__catalog_fini(&c);
    weir__catalog_fini(&back);
}

/* ---- the header ---- */

static void damage_is_named(void **state)
{
    struct weir__catalog c;

    (void)state;
    for (size_t len = 0; len < buf.len; len++) {
        assert_int_equal(weir__catalog_decode(&c, weir__bytes_of(buf.at, len), &err),
                         WEIR_ECORRUPT);
        assert_string_equal(err.text,
                            len < HEADER_BYTES ? "not a catalogue" : "the catalogue is cut off");
    }
    for (size_t at = 0; at < buf.len; at++) {
        buf.at[at] ^= 1;
        assert_int_equal(weir__catalog_decode(&c, weir__buf_bytes(&buf), &err), WEIR_ECORRUPT);
        assert_string_equal(err.text, at < 8 ? "not a catalogue"
                                      : at < HEADER_BYTES
                                          ? "the catalogue's header fails its checksum"
                                          : "the catalogue fails its checksum");
        buf.at[at] ^= 1;
    }
}

/* A file that was never written has generation 0; of a damaged header none is known. */
static void generations(void **state)
{
    uint8_t file[HEADER_BYTES + 1] = {0};
    uint64_t generation = 1;

    (void)state;
    for (size_t len = 0; len <= sizeof file; len++, generation = 1) {
        assert_true(weir__catalog_generation(weir__bytes_of(file, len), &generation));
        assert_int_equal(generation, 0);
    }
    file[HEADER_BYTES] = 1; /* behind the header, where nothing is looked at */
    assert_true(weir__catalog_generation(weir__bytes_of(file, sizeof file), &generation));
    file[HEADER_BYTES - 1] = 1;
    assert_false(weir__catalog_generation(weir__bytes_of(file, sizeof file), &generation));
    memcpy(file, buf.at, sizeof file);
    assert_true(weir__catalog_generation(weir__bytes_of(file, HEADER_BYTES), &generation));
    assert_true(generation == UINT64_C(0x0102030405060708));
    assert_false(weir__catalog_generation(weir__bytes_of(file, HEADER_BYTES - 1), &generation));
    assert_int_equal(generation, 0);
    file[7] = 'x';
    weir__store32(file + 28, weir__crc32c(0, file, 28));
    assert_false(weir__catalog_generation(weir__bytes_of(file, sizeof file), &generation));
}

/* ---- memory ---- */

static void memory_runs_out(void **state)
{
    struct weir__buf small;
    struct weir__catalog c;
    uint64_t at = 0;
    int rc;

    (void)state;
    fill(&c);
    weir__buf_init(&small, buf.len - 1);
    assert_int_equal(weir__catalog_encode(&c, &small, &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "the catalogue is larger than 259 bytes");
    weir__buf_fini(&small);
    allocs_fail(1);
    rc = weir__catalog_encode(&c, &small, &err);
    allocs_fail(0);
    assert_int_equal(rc, WEIR_ENOMEM);
    assert_string_equal(err.text, "out of memory for the catalogue");
    weir__buf_fini(&small);
    weir__catalog_fini(&c);
    do {
        allocs_fail(++at);
        rc = weir__catalog_decode(&c, weir__buf_bytes(&buf), &err);
        allocs_fail(0);
        assert_true(rc == 0 || rc == WEIR_ENOMEM);
        weir__catalog_fini(&c);
    } while (rc != 0);
    assert_true(at > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers, make_sample, free_sample),
        cmocka_unit_test_setup_teardown(other_lengths, make_sample, free_sample),
        cmocka_unit_test_setup_teardown(things_that_are_there_twice, make_sample, free_sample),
        cmocka_unit_test_setup_teardown(nothing_but_deleted_ids, make_sample, free_sample),
        cmocka_unit_test_setup_teardown(damage_is_named, make_sample, free_sample),
        cmocka_unit_test_setup_teardown(generations, make_sample, free_sample),
        cmocka_unit_test_setup_teardown(memory_runs_out, make_sample, free_sample),
    };

    return cmocka_run_group_tests_name("catalog_bytes", tests, NULL, NULL);
}
