/* The manifest of a backup: what is written is read again, and whatever else stands there is refused
 * by name. The offsets are those at the head of backup_manifest.c. */
#include "manifest_sample.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

#include "support/allocs.h"

/* Where the hub begins: behind the header and the catalogue. */
static size_t hub_at(void)
{
    return 128 + (size_t)weir__round_up(weir__load64(bytes.at + 72), 8);
}

/* The fields of a hub, its heads, its segments. */
static size_t segment_at(void)
{
    return hub_at() + 24 * 8 + PARTITIONS * 24;
}

static size_t extra_at(void)
{
    return segment_at() + SEGMENTS * 144;
}

/* Writes a checksum that is right. */
static void seal(void)
{
    SHA256(bytes.at + 48, bytes.len - 48, bytes.at + 16);
}

static int decode(struct weir__manifest *out)
{
    return weir__manifest_decode(out, weir__buf_bytes(&bytes), &err);
}

static void what_is_written_is_read(void **state)
{
    struct weir__manifest got;
    struct weir__manifest_hub *a = made.hubs, *b;

    (void)state;
    assert_int_equal(bytes.len, extra_at() + EXTRAS * 88);
    assert_int_equal(decode(&got), 0);
    assert_int_equal(got.generation, 5);
    assert_int_equal(got.began_ms, 1);
    assert_int_equal(got.moment_ms, 2);
    assert_string_equal(got.id, made.id);
    assert_int_equal(got.hub_count, 1);
    b = got.hubs;
    assert_memory_equal(b->control.heads, a->control.heads, PARTITIONS * sizeof *a->control.heads);
    assert_memory_equal(b->extras, a->extras, EXTRAS * sizeof *a->extras);
    for (uint32_t i = 0; i < SEGMENTS; i++) {
        struct weir__manifest_segment x = b->segments[i], y = segment_from(i ? 60 : 40);
        assert_memory_equal(&x, &y, offsetof(struct weir__manifest_segment, fresh));
    }
    assert_int_equal(b->id, a->id);
    assert_int_equal(b->source_version, a->source_version);
    assert_int_equal(b->end, a->end);
    assert_int_equal(b->events, a->events);
    assert_int_equal(b->next_name, a->next_name);
    assert_int_equal(b->control.hub_id, HUB_ID);
    assert_int_equal(b->control.partitions, PARTITIONS);
    assert_int_equal(b->control.secret, 15);
    assert_int_equal(b->control.first_segment, 16);
    assert_int_equal(b->control.last_segment, 17);
    assert_int_equal(b->control.watermark, 18);
    assert_int_equal(b->control.epoch_start, 19);
    assert_int_equal(b->control.epoch, 20);
    assert_memory_equal(&b->control.keep, &a->control.keep, sizeof a->control.keep);
    assert_memory_equal(&b->control.active, &a->control.active, sizeof a->control.active);
    assert_ptr_equal(weir__manifest_hub(&got, HUB_ID), b);
    assert_null(weir__manifest_hub(&got, HUB_ID + 1));
    weir__manifest_fini(&got);
}

static void a_hub_is_copied_whole(void **state)
{
    struct weir__manifest_hub copy;
    struct weir__manifest two = {.hub_count = 1, .hubs = &copy, .generation = 5};
    struct weir__backup_result sum = {.last_time_ms = 3};
    struct weir__buf again;

    (void)state;
    memset(&made.hubs->control.heads[PARTITIONS - 1], 0x7c, sizeof made.hubs->control.heads[0]);
    made.hubs->extras[0].digest[WEIR__DIGEST_BYTES - 1] = 0x7d;
    made.hubs->segments[SEGMENTS - 1].whole = UINT64_MAX; /* which is not encoded */
    assert_int_equal(weir__manifest_encode(&made, &bytes, &err), 0);
    assert_int_equal(weir__manifest_hub_copy(&copy, made.hubs, &err), 0);
    assert_true(copy.segments[SEGMENTS - 1].whole == UINT64_MAX);
    weir__manifest_sum(&made, &sum);
    assert_int_equal(sum.hubs, 1);
    assert_int_equal(sum.events, 13);
    assert_int_equal(sum.moment_ms, 2);
    assert_int_equal(sum.last_time_ms, 0x7c7c7c7c7c7c7c7c);
    weir__buf_init(&again, WEIR__MANIFEST_BYTES_MAX);
    weir__catalog_init(&two.catalog);
    assert_int_equal(weir__manifest_encode(&two, &again, &err), 0);
    assert_int_equal(again.len, bytes.len);
    assert_memory_equal(again.at + hub_at(), bytes.at + hub_at(), bytes.len - hub_at());
    weir__buf_fini(&again);
    weir__manifest_hub_fini(&copy);
}

static bool no_digest;

EVP_MD_CTX *__real_EVP_MD_CTX_new(void);
EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void);

EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void)
{
    return no_digest ? NULL : __real_EVP_MD_CTX_new();
}

/* No memory is no damage. */
static void without_memory_it_is_not_called_bad(void **state)
{
    struct weir__manifest got;
    uint64_t at = 0;
    int rc;

    (void)state;
    do {
        allocs_fail(++at);
        rc = decode(&got);
        allocs_fail(0);
        assert_true(rc == 0 || rc == WEIR_ENOMEM);
        weir__manifest_fini(&got);
    } while (rc != 0);
    assert_true(at > 4);
    no_digest = true;
    assert_int_equal(decode(&got), WEIR_ENOMEM);
    assert_int_equal(weir__manifest_encode(&made, &bytes, &err), WEIR_ENOMEM);
    no_digest = false;
}

static void without_memory_there_is_no_copy(void **state)
{
    struct weir__manifest_hub copy;
    uint64_t at = 0;
    int rc;

    (void)state;
    do {
        allocs_fail(++at);
        rc = weir__manifest_hub_copy(&copy, made.hubs, &err);
        allocs_fail(0);
        if (rc == 0) continue;
        assert_int_equal(rc, WEIR_ENOMEM);
        assert_string_equal(err.text, "out of memory for a manifest");
        assert_true(!copy.control.heads && !copy.segments && !copy.extras);
        assert_int_equal(copy.segment_count + copy.extra_count, 0);
    } while (rc != 0);
    assert_int_equal(at, 4);
    weir__manifest_hub_fini(&copy);
}

/* One that was never begun. */
static void no_checksum_is_zeros(void **state)
{
    static const uint8_t zeros[WEIR__DIGEST_BYTES];
    struct weir__digest none = {0};
    uint8_t got[WEIR__DIGEST_BYTES];

    (void)state;
    memset(got, 0xff, sizeof got);
    weir__digest_end(&none, got);
    assert_memory_equal(got, zeros, sizeof zeros);
}

static void assert_refused(int rc, const char *text)
{
    struct weir__manifest got;

    assert_int_equal(decode(&got), rc);
    assert_string_equal(err.text, text);
    assert_int_equal(got.hub_count, 0);
}

/* Whatever the bytes behind the header say, the sum is wrong; before it, something else is. */
static void every_flipped_byte_is_found(void **state)
{
    struct weir__manifest got;

    (void)state;
    for (size_t i = 0; i < bytes.len; i++) {
        bytes.at[i] ^= 1;
        assert_int_equal(decode(&got), i >= 4 && i < 8 ? WEIR_EVERSION : WEIR_ECORRUPT);
        bytes.at[i] ^= 1;
    }
    bytes.at[0] ^= 1;
    assert_refused(WEIR_ECORRUPT, "not a manifest");
    bytes.at[0] ^= 1;
    bytes.at[4] = 2;
    assert_refused(WEIR_EVERSION, "backup format version 2 is not known here (this weir writes 1)");
    bytes.at[4] = 1;
    bytes.at[bytes.len - 1] ^= 1;
    assert_refused(WEIR_ECORRUPT, "its checksum is wrong");
    bytes.at[bytes.len - 1] ^= 1;
    bytes.len--;
    assert_refused(WEIR_ECORRUPT, "cut short");
    bytes.len = 127;
    assert_refused(WEIR_ECORRUPT, "not a manifest");
}

static void set(size_t at, uint64_t v, const char *text)
{
    uint64_t before = weir__load64(bytes.at + at);
    struct weir__manifest got;

    weir__store64(bytes.at + at, v);
    seal();
    if (text)
        assert_refused(WEIR_ECORRUPT, text);
    else
        assert_int_equal(decode(&got), 0);
    if (!text) weir__manifest_fini(&got);
    weir__store64(bytes.at + at, before);
}

/* With a checksum that is right. */
static void what_cannot_be_is_refused(void **state)
{
    static const char hub[] = "hub 1 cannot be read";

    (void)state;
    set(72, bytes.len, "cut short"); /* the catalogue's bytes */
    set(72, UINT64_MAX, "cut short");
    set(80, 2, "hub 2 cannot be read"); /* hubs */
    set(80, (bytes.len - hub_at()) / (24 * 8) + 1, "too many hubs");
    set(80, UINT64_MAX, "too many hubs");
    set(hub_at() + 5 * 8, 0, hub); /* partitions */
    set(hub_at() + 5 * 8, PARTITIONS + ((uint64_t)1 << 32), hub);
    set(hub_at() + 5 * 8, WEIR__LOG_PARTITIONS_MAX + 1, hub);
    set(hub_at() + 6 * 8, 0, hub); /* secret */
    set(hub_at() + 6 * 8, 1, NULL);
    set(hub_at() + 11 * 8, UINT32_MAX, NULL); /* epoch */
    set(hub_at() + 11 * 8, (uint64_t)UINT32_MAX + 1, hub);
    set(hub_at() + 22 * 8, 0, hub); /* segments */
    set(hub_at() + 22 * 8, SEGMENTS + 1, hub);
    set(hub_at() + 23 * 8, EXTRAS + 1, hub); /* other files */
    set(segment_at() + 6 * 8, 0, hub);       /* bytes of a segment's file */
    set(segment_at() + 6 * 8, 46, hub);      /* which end before the tail */
    set(segment_at() + 6 * 8, 47, NULL);
    set(segment_at() + 6 * 8, INT64_MAX, NULL);
    set(segment_at() + 6 * 8, (uint64_t)INT64_MAX + 1, hub);
    set(segment_at() + 144 + 7 * 8, 68, hub); /* the second's used, beyond its tail */
    set(segment_at() + 144 + 7 * 8, 67, NULL);
    set(extra_at(), UINT64_C(0x2f6e6e6e6e6e6e6e), hub);      /* a slash in a name */
    set(extra_at() + 32, UINT64_C(0x6e6e6e6e6e6e6e6e), hub); /* no end of it */
}

/* Nor are hubs that have too little or too much of something, though all of it is there. */
static void counts_have_their_limits(void **state)
{
    static const struct {
        uint32_t partitions, extras;
        bool good;
    } rows[] = {{0, 0, false},
                {1, 0, true},
                {WEIR__LOG_PARTITIONS_MAX, 0, true},
                {WEIR__LOG_PARTITIONS_MAX + 1, 0, false},
                {1, 1000, true},
                {1, 1001, false}};
    struct weir__manifest_hub *h = made.hubs;
    struct weir__manifest got;

    (void)state;
    free(h->extras);
    h->extras = calloc(1001, sizeof *h->extras);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weir__control_resize(&h->control, WEIR__LOG_PARTITIONS_MAX + 1, &err), 0);
        h->control.partitions = rows[i].partitions;
        h->extra_count = rows[i].extras;
        assert_int_equal(weir__manifest_encode(&made, &bytes, &err), 0);
        assert_int_equal(decode(&got), rows[i].good ? 0 : WEIR_ECORRUPT);
        assert_int_equal(got.hub_count, rows[i].good);
        weir__manifest_fini(&got);
    }
}

/* One byte less than its counts need; and a segment without a byte. */
static void a_hub_is_all_there(void **state)
{
    (void)state;
    weir__store64(bytes.at + segment_at() + 7 * 8, 0);
    weir__store64(bytes.at + segment_at() + 8 * 8, 0);
    set(segment_at() + 6 * 8, 1, NULL);
    set(segment_at() + 6 * 8, 0, "hub 1 cannot be read");
    bytes.len--;
    weir__store64(bytes.at + 8, bytes.len);
    seal();
    assert_refused(WEIR_ECORRUPT, "hub 1 cannot be read");
}

/* Wherever it would end: nothing but the limit is the reason. */
static void a_manifest_has_a_limit(void **state)
{
    struct weir__buf small;
    char want[100];

    (void)state;
    for (size_t max = 0; max <= bytes.len; max++) {
        bool fits = max == bytes.len;

        weir__buf_init(&small, max);
        assert_int_equal(weir__manifest_encode(&made, &small, &err), fits ? 0 : WEIR_ELIMIT);
        snprintf(want, sizeof want, "the manifest would have more than %zu bytes", max);
        if (!fits) assert_string_equal(err.text, want);
        weir__buf_fini(&small);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read),     TEST(without_memory_it_is_not_called_bad),
        TEST(no_checksum_is_zeros),        TEST(a_hub_is_copied_whole),
        TEST(every_flipped_byte_is_found), TEST(what_cannot_be_is_refused),
        TEST(counts_have_their_limits),    TEST(a_hub_is_all_there),
        TEST(a_manifest_has_a_limit),      TEST(without_memory_there_is_no_copy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
