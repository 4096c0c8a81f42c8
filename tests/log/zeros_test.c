/* zeros_test.c - what the drawings of the files call zeros is zero on disk, whatever lay in the memory
 * that was written: no byte that is handed out is 0 by chance. */
#include "producers.h"

#include <malloc.h>
#include <stdlib.h>

#include "log/state.h"

#define PRODUCERS 100u /* a full block and another one */
#define CONTROL_COPY_AT (64u << 10)
#define CONTROL_FIXED 192u
#define HEADER_USED 112u
#define TRAILER_USED 48u
#define HEAD_USED 48u
#define RECORDS_AT 56u
#define RECORD_BYTES 48u

static void expect_zeros(struct bench *b, const char *path, uint64_t from, uint64_t to)
{
    uint8_t bytes[BLOCK];

    assert_in_range(to - from, 1, BLOCK);
    assert_int_equal(simfs_peek(b->w.disk, path, bytes, to - from, from), (long)(to - from));
    for (uint64_t i = 0; i < to - from; i++)
        if (bytes[i] != 0) fail_msg("%s: byte %llu", path, (unsigned long long)(from + i));
}

/* Many producers, and a segment behind the first. */
static void fill(struct bench *b)
{
    mallopt(M_PERTURB, 0x55);
    start(b);
    for (uint64_t id = 1; id <= PRODUCERS; id++) put(b, id, 0);
    roll(b);
    mallopt(M_PERTURB, 0);
}

static const char *path_of(struct bench *b, const char *name)
{
    const char *path;

    for (size_t i = 0; (path = simfs_path(b->w.disk, i)) != NULL; i++)
        if (strstr(path, name)) return path;
    fail_msg("no %s", name);
    return NULL;
}

static void control_file(void **state)
{
    struct bench *b = *state;
    const char *path = path_of(b, "/control");
    uint64_t end = CONTROL_FIXED + (uint64_t)b->w.log->partitions * WEIR__HEAD_BYTES;

    for (uint64_t at = 0; at <= CONTROL_COPY_AT; at += CONTROL_COPY_AT) {
        expect_zeros(b, path, at + 68, at + 72);
        expect_zeros(b, path, at + 160, at + CONTROL_FIXED);
        expect_zeros(b, path, at + end, at + BLOCK);
    }
}

static void headers_and_heads(void **state)
{
    struct bench *b = *state;
    uint64_t heads = weir__segment_heads_bytes(b->w.log->partitions);

    for (size_t i = 0; i < b->w.log->segment_count; i++) {
        const struct weir__segment *seg = b->w.log->segments[i];
        const char *path = path_of(b, seg->name);
        uint64_t copy = seg->h.capacity - 2 * BLOCK; /* heads come first in it */

        expect_zeros(b, path, 76, 80);
        expect_zeros(b, path, HEADER_USED, BLOCK);
        expect_zeros(b, path, BLOCK + heads, 2 * BLOCK);
        expect_zeros(b, path, copy + heads, copy + BLOCK);
        expect_zeros(b, path, copy + BLOCK + HEADER_USED, copy + 2 * BLOCK);
    }
}

static void index_of_a_segment(void **state)
{
    struct bench *b = *state;
    const struct weir__segment *seg = b->w.log->segments[0];
    uint64_t end = weir__segment_limit(seg) - seg->h.base;

    assert_null(seg->index); /* it is where it was stored, and nowhere else */
    expect_zeros(b, path_of(b, seg->name), end - BLOCK + 28, end - BLOCK + 32);
    expect_zeros(b, path_of(b, seg->name), end - BLOCK + TRAILER_USED, end);
}

static void producers(void **state)
{
    struct bench *b = *state;
    const char *path = file_of(b);
    uint64_t rest = PRODUCERS - PER_BLOCK;

    assert_int_equal(simfs_size(b->w.disk, path), 3 * BLOCK);
    expect_zeros(b, path, 12, 16);
    expect_zeros(b, path, HEAD_USED, BLOCK);
    expect_zeros(b, path, BLOCK + 50, BLOCK + 52);
    expect_zeros(b, path, BLOCK + RECORDS_AT + (uint64_t)PER_BLOCK * RECORD_BYTES, 2 * BLOCK);
    expect_zeros(b, path, 2 * BLOCK + RECORDS_AT + rest * RECORD_BYTES, 3 * BLOCK);
}

/* Nor can a byte of the head be another. */
static void head_of_producers(void **state)
{
    struct weir__producer_head head;
    struct bench *b = *state;
    uint8_t bytes[BLOCK];

    assert_int_equal(simfs_peek(b->w.disk, file_of(b), bytes, BLOCK, 0), BLOCK);
    assert_true(weir__producer_head_decode(b->w.log, bytes, &head));
    for (size_t i = 0; i < BLOCK; i++) {
        bytes[i] ^= 1;
        if (weir__producer_head_decode(b->w.log, bytes, &head)) fail_msg("byte %zu", i);
        bytes[i] ^= 1;
    }
}

static int set_up(void **state)
{
    setup(state);
    fill(*state);
    return 0;
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, teardown)
    const struct CMUnitTest tests[] = {
        CASE(control_file), CASE(headers_and_heads), CASE(index_of_a_segment),
        CASE(producers),    CASE(head_of_producers),
    };

    return cmocka_run_group_tests_name("zeros", tests, NULL, NULL);
}
