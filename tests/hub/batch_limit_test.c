/* How much a batch and its key may have, to the byte, and what is said about more. */
#include "hub/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/payload.h"

#define MESSAGE "\x00\x53\x77\x40" /* of null */

static struct payload payload;
static struct weir_error err;

static void assert_fails(int rc, int want, const char *text)
{
    assert_int_equal(rc, want);
    assert_string_equal(err.text, text);
}

/* NULL: none. */
static struct weir__bytes text(const char *s)
{
    return weir__bytes_of(s, s ? strlen(s) : 0);
}

static void a_writer_knows_its_key(void **state)
{
    static const char *const keys[] = {NULL, "", "a", "b", "ab", "abc"};
    struct weir__batch_writer w;
    struct weir__batch b;

    (void)state;
    weir__batch_writer_init(&w, 0);
    for (size_t i = 0; i < 7; i++) { /* and none behind one */
        struct weir__bytes key = text(keys[i % 6]);
        assert_int_equal(weir__batch_writer_start(&w, key, &err), 0);
        for (size_t k = 0; k < 6; k++) {
            struct weir__bytes other = text(keys[k]);
            assert_int_equal(weir__batch_writer_has_key(&w, other), i % 6 == k);
        }
        assert_int_equal(weir__batch_writer_add_message(&w, weir__bytes_of(MESSAGE, 4), &err), 0);
        assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
        assert_int_equal(b.key.at != NULL, key.at != NULL);
        assert_int_equal(b.key.len, key.len);
        if (key.len) assert_memory_equal(b.key.at, key.at, key.len);
    }
    weir__batch_writer_fini(&w);
}

/* A section's head takes five bytes, a key forty-two and its own; the limit is what all of it takes. */
static void a_writer_takes_what_its_limit_says(void **state)
{
    struct weir__batch_writer w;
    struct weir__batch b;

    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        size_t wire = 5 + 4 + (keyed ? 42 + 3 : 0);
        for (int less = 0; less < 2; less++) {
            weir__batch_writer_init(&w, wire - (size_t)less);
            assert_int_equal(weir__batch_writer_start(&w, text(keyed ? "key" : NULL), &err), 0);
            assert_fails(weir__batch_writer_batch(&w, &b, &err), WEIR_EINVAL,
                         "the batch has no events");
            if (!less) {
                assert_int_equal(weir__batch_writer_add_message(&w, weir__bytes_of(MESSAGE, 4),
                                                                &err),
                                 0);
                assert_int_equal(weir__batch_writer_batch(&w, &b, &err), 0);
                assert_int_equal(b.count, 1);
                assert_int_equal(b.attrs, keyed);
                assert_int_equal(b.key.len, keyed ? 3 : 0);
            } else {
                assert_fails(weir__batch_writer_add_message(&w, weir__bytes_of(MESSAGE, 4), &err),
                             WEIR_ETOOBIG,
                             keyed ? "the message has 54 bytes, at most 53 are allowed"
                                   : "the message has 9 bytes, at most 8 are allowed");
            }
            weir__batch_writer_fini(&w);
        }
    }
}

/* What is far too long is not even copied. */
static void far_too_long_is_said_at_once(void **state)
{
    uint8_t *large = calloc(1, 40000);
    struct weir__batch_writer w;

    (void)state;
    weir__batch_writer_init(&w, 100);
    assert_int_equal(weir__batch_writer_start(&w, (struct weir__bytes){0}, &err), 0);
    assert_fails(weir__batch_writer_add_message(&w, weir__bytes_of(large, 32868), &err),
                 WEIR_ETOOBIG, "the message has 32876 bytes, at most 100 are allowed");
    assert_true(w.body.cap >= 32868);
    weir__batch_writer_fini(&w);
    weir__batch_writer_init(&w, 100);
    assert_int_equal(weir__batch_writer_start(&w, (struct weir__bytes){0}, &err), 0);
    assert_fails(weir__batch_writer_add_message(&w, weir__bytes_of(large, 32869), &err),
                 WEIR_ETOOBIG, "the message has 32869 bytes, at most 100 are allowed");
    assert_int_equal(w.body.cap, 0);
    weir__batch_writer_fini(&w);
    free(large);
}

/* Also behind a batch that is full, what is too long is too long, and not too much for the machine. */
static void a_full_writer_says_so(void **state)
{
    uint8_t *large = calloc(1, 100000);
    struct weir__batch_writer w;

    (void)state;
    weir__batch_writer_init(&w, 50000);
    assert_int_equal(weir__batch_writer_start(&w, (struct weir__bytes){0}, &err), 0);
    assert_int_equal(weir__batch_writer_add_message(&w, weir__bytes_of(large, 50000 - 8), &err), 0);
    assert_fails(weir__batch_writer_add_message(&w, weir__bytes_of(large, 50000 + 32768), &err),
                 WEIR_ETOOBIG, "the message has 132776 bytes, at most 50000 are allowed");
    assert_int_equal(w.count, 1);
    weir__batch_writer_fini(&w);
    free(large);
}

/* A message whose annotation x-opt-partition-key is this value. */
static int take_key(struct weir__batch *b, const void *value, size_t len)
{
    static const char name[] = "\xa3\x13x-opt-partition-key";
    uint8_t head[12] = {0x00, 0x53, 0x72, 0xd1};

    payload.len = 0;
    weir__store_be32(head + 4, (uint32_t)(4 + sizeof name - 1 + len));
    weir__store_be32(head + 8, 2);
    payload_raw(&payload, head, sizeof head);
    payload_raw(&payload, name, sizeof name - 1);
    payload_raw(&payload, value, len);
    payload_data(&payload, "x", 1);
    return weir__batch_of_payload(b, 0, payload_bytes(&payload), 0, &err);
}

static void keys_are_strings_of_512_bytes_at_most(void **state)
{
    uint8_t key[5 + 513] = {0xb1};
    struct weir__batch b;

    (void)state;
    memset(key + 5, 'k', 513);
    weir__store_be32(key + 1, 512);
    assert_int_equal(take_key(&b, key, 5 + 512), 0);
    assert_int_equal(b.key.len, 512);
    assert_int_equal(b.attrs, 1);
    weir__store_be32(key + 1, 513);
    assert_fails(take_key(&b, key, 5 + 513), WEIR_ETOOBIG,
                 "the partition key has 513 bytes, at most 512 are allowed");
    assert_int_equal(take_key(&b, "\xa3\x01k", 3), 0); /* a symbol */
    assert_int_equal(b.key.len, 1);
    assert_int_equal(take_key(&b, "\xa1\x00", 2), 0);
    assert_true(b.key.at && b.key.len == 0);
    assert_int_equal(take_key(&b, "\x40", 1), 0); /* null is none */
    assert_true(!b.key.at && b.attrs == 0);
    assert_fails(take_key(&b, "\x52\x07", 2), WEIR_EINVAL,
                 "x-opt-partition-key is a uint, not a string");
}

/* A stored body of one event behind a key of this length, of which so many bytes are there. */
static int start_walk(uint16_t key_len, size_t key_bytes, uint16_t attrs)
{
    static uint8_t body[600];
    struct weir__log_view view = {.sequence = 7, .count = 1, .attrs = attrs};
    struct weir__batch_walk walk;

    memset(body, 'k', sizeof body);
    weir__store16(body, key_len);
    memcpy(body + 2 + key_bytes, "\x00\x53\x75\xa0\x04" MESSAGE, 9);
    view.body = weir__bytes_of(body, 2 + key_bytes + 9);
    return weir__batch_walk_start(&walk, &view, &err);
}

static void stored_keys_are_bounded(void **state)
{
    static const uint8_t one;
    struct weir__log_view view = {.sequence = 7, .count = 1, .attrs = 1};
    struct weir__batch_walk walk;

    (void)state;
    assert_int_equal(start_walk(0, 0, 1), 0);
    assert_int_equal(start_walk(512, 512, 1), 0);
    assert_fails(start_walk(513, 513, 1), WEIR_ECORRUPT,
                 "the batch at sequence 7 ends inside its key");
    assert_fails(start_walk(20, 10, 1), WEIR_ECORRUPT,
                 "the batch at sequence 7 ends inside its key");
    assert_fails(start_walk(0, 0, 3), WEIR_EVERSION,
                 "the batch at sequence 7 has unknown flags 0x3");
    view.body = weir__bytes_of("\2\0kk", 4); /* and nothing behind the key */
    assert_fails(weir__batch_walk_start(&walk, &view, &err), WEIR_ECORRUPT,
                 "a stored batch: a message without a section");
    view.body = weir__bytes_of("\0\0", 2);
    assert_fails(weir__batch_walk_start(&walk, &view, &err), WEIR_ECORRUPT,
                 "a stored batch: a message without a section");
    view.body = weir__bytes_of(&one, 1);
    assert_fails(weir__batch_walk_start(&walk, &view, &err), WEIR_ECORRUPT,
                 "the batch at sequence 7 ends inside its key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_writer_knows_its_key),
        cmocka_unit_test(a_writer_takes_what_its_limit_says),
        cmocka_unit_test(far_too_long_is_said_at_once),
        cmocka_unit_test(a_full_writer_says_so),
        cmocka_unit_test(keys_are_strings_of_512_bytes_at_most),
        cmocka_unit_test(stored_keys_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
