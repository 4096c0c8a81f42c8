#include "base/crc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LONGEST 4400 /* one group of the longest lanes and a rest that uses the shorter ones */
#define ALIGNMENTS 16

static void fill_bytes(uint8_t *to, size_t len)
{
    uint32_t x = 0x9e3779b9;

    for (size_t i = 0; i < len; i++) {
        x = x * 1664525 + 1013904223;
        to[i] = (uint8_t)(x >> 24);
    }
}

static void published_vectors(void **state)
{
    uint8_t zero[32] = {0}, ones[32], up[32], down[32];
    /* An iSCSI SCSI Read (10) command PDU. */
    static const uint8_t read10[48] = {0x01, 0xc0, 0, 0,    0,    0, 0, 0,    0,    0, 0,    0,
                                       0,    0,    0, 0,    0x14, 0, 0, 0,    0,    0, 0x04, 0,
                                       0,    0,    0, 0x14, 0,    0, 0, 0x18, 0x28, 0, 0,    0,
                                       0,    0,    0, 0,    0x02, 0, 0, 0,    0,    0, 0,    0};

    (void)state;
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++) {
        up[i] = i;
        down[i] = (uint8_t)(31 - i);
    }
    assert_int_equal(weir__crc32c(0, zero, sizeof zero), 0x8a9136aa);
    assert_int_equal(weir__crc32c(0, ones, sizeof ones), 0x62a8ab43);
    assert_int_equal(weir__crc32c(0, up, sizeof up), 0x46dd794e);
    assert_int_equal(weir__crc32c(0, down, sizeof down), 0x113fdb5c);
    assert_int_equal(weir__crc32c(0, read10, sizeof read10), 0xd9963a56);
    assert_int_equal(weir__crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(weir__crc32c_table(0, "123456789", 9), 0xe3069283);
    assert_int_equal(weir__crc32c(0, "", 0), 0);
}

/* For every length and alignment. The bytes end where the allocation ends, so that reading one too
 * many is seen. */
static void both_paths_agree(void **state)
{
    uint8_t *block = malloc(LONGEST + ALIGNMENTS);

    (void)state;
    assert_non_null(block);
    fill_bytes(block, LONGEST + ALIGNMENTS);
    for (size_t len = 0; len <= LONGEST; len++) {
        for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
            const uint8_t *at = block + LONGEST + ALIGNMENTS - len - shift;
            uint32_t seed = (uint32_t)(len * 2654435761u);
            assert_int_equal(weir__crc32c(seed, at, len), weir__crc32c_table(seed, at, len));
        }
    }
    free(block);
}

static void running_value_splits_anywhere(void **state)
{
    uint8_t block[LONGEST];
    uint32_t whole;

    (void)state;
    fill_bytes(block, sizeof block);
    whole = weir__crc32c(0, block, sizeof block);
    for (size_t cut = 0; cut <= sizeof block; cut++) {
        uint32_t crc = weir__crc32c(0, block, cut);
        assert_int_equal(weir__crc32c(crc, block + cut, sizeof block - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(both_paths_agree),
        cmocka_unit_test(running_value_splits_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
