/* index_test.c - the stored index of a segment, byte by byte: what is written is what index.c
 * draws, and no bit of it can turn without being seen. */
#include "log/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/batch.h"

#define PARTITIONS 3u
#define END (2u * WEIR__FS_BLOCK) /* one block of chunks and folder, and the trailer */
#define HEADER 40u
#define FOLDER 16u

static const struct weir__index_stamp stamp = {7, 0x123456, 0}; /* the seed of version 1 */

struct scene {
    struct weir__fs *fs;
    struct weir__file *file;
    uint8_t bytes[END]; /* as they were stored */
    struct weir__index_chunk chunk;
};

/* Partition 0 has one batch, partition 1 none, partition 2 two. */
static struct weir__index *make_index(void)
{
    struct weir__index *x = weir__index_new(PARTITIONS);
    struct weir__index_entry e = {.position = 4096, .sequence = 5, .time_ms = 1000, .count = 3};
    uint32_t gap = 64;

    assert_non_null(x);
    e.body_bytes = 300;
    assert_true(weir__index_add(x, 0, &e));
    e = (struct weir__index_entry){8192, 9, 1001, 1, 10};
    assert_true(weir__index_add(x, 2, &e));
    e.position += weir__batch_bytes(e.body_bytes) + gap;
    e.sequence += e.count;
    e.time_ms += 200;
    e.count = 2;
    e.body_bytes = 20;
    assert_true(weir__index_add(x, 2, &e));
    return x;
}

static int set_up(void **state)
{
    struct weir__index *x = make_index();
    struct scene *s = calloc(1, sizeof *s);
    size_t got;

    assert_non_null(s);
    assert_int_equal(weir__fs_memory_new(&s->fs, 1 << 20, NULL), 0);
    assert_int_equal(s->fs->ops->make_dir(s->fs, "d", NULL), 0);
    assert_int_equal(s->fs->ops->open(s->fs, "d/f", WEIR__FS_CREATE, &s->file, NULL), 0);
    assert_int_equal(weir__index_stored_bytes(x), END);
    assert_int_equal(weir__index_store(x, s->file, &stamp, END, NULL), 0);
    assert_int_equal(s->file->ops->read(s->file, s->bytes, END, 0, &got, NULL), 0);
    assert_int_equal(got, END);
    weir__index_free(x);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__file_close(s->file);
    weir__fs_memory_free(s->fs);
    free(s);
    return 0;
}

/* ---- what is stored ---- */

static uint32_t stamped_crc(const void *at, size_t len)
{
    uint8_t both[16];

    weir__store64(both, stamp.segment_number);
    weir__store64(both + 8, stamp.behind);
    return weir__crc32c(weir__crc32c(0, both, sizeof both), at, len);
}

static uint8_t *put_header(uint8_t *to, uint64_t position, uint64_t sequence, uint64_t time_ms,
                           uint16_t count, const uint8_t *entries, uint16_t bytes)
{
    weir__store64(to, position);
    weir__store64(to + 8, sequence);
    weir__store64(to + 16, time_ms);
    weir__store32(to + 24, 0);
    weir__store16(to + 28, count);
    weir__store16(to + 30, bytes);
    weir__store32(to + 32, weir__crc32c(0, entries, bytes));
    weir__store32(to + 36, stamped_crc(to, 36));
    memcpy(to + HEADER, entries, bytes);
    return to + HEADER + bytes;
}

static uint8_t *put_folder(uint8_t *to, uint32_t partition, uint64_t at, uint32_t count)
{
    uint8_t with_number[16];

    weir__store64(to, at);
    weir__store32(to + 8, count);
    weir__store32(with_number, partition);
    memcpy(with_number + 4, to, 12);
    weir__store32(to + 12, stamped_crc(with_number, sizeof with_number));
    return to + FOLDER;
}

static void put_trailer(uint8_t *to, uint64_t folder)
{
    memcpy(to, "WIDX", 4);
    weir__store64(to + 8, stamp.segment_number);
    weir__store64(to + 16, folder);
    weir__store32(to + 24, PARTITIONS);
    weir__store64(to + 32, END);
    weir__store64(to + 40, stamp.behind);
    weir__store32(to + 4, weir__crc32c(0, to + 8, 40));
}

/* Written once more here, from the drawing alone. */
static void the_bytes_are_those_of_the_drawing(void **state)
{
    static const uint8_t one[] = {0, 0xac, 0x02, 3, 0};            /* 300 bytes, 3 events */
    static const uint8_t two[] = {0, 10, 1, 0, 8, 20, 2, 0xc8, 1}; /* and 200 ms later */
    const struct scene *s = *state;
    static uint8_t want[END];
    uint8_t *at, *second, *folder;

    second = put_header(want, 4096, 5, 1000, 1, one, sizeof one);
    folder = put_header(second, 8192, 9, 1001, 2, two, sizeof two);
    at = put_folder(folder, 0, 0, 1);
    at = put_folder(at, 1, (uint64_t)(second - want), 0);
    put_folder(at, 2, (uint64_t)(second - want), 1);
    put_trailer(want + END - WEIR__FS_BLOCK, (uint64_t)(folder - want));
    for (size_t i = 0; i < END; i++)
        if (s->bytes[i] != want[i])
            fail_msg("byte %zu is %02x, the drawing has %02x", i, s->bytes[i], want[i]);
}

/* The same bytes from one version to the next: who changes the format changes its number. */
static void the_bytes_are_those_of_yesterday(void **state)
{
    const struct scene *s = *state;

    assert_int_equal(weir__crc32c(0, s->bytes, END), 0xffe7a59e);
}

/* ---- what is read ---- */

static int look(struct scene *s, uint32_t partition, uint64_t sequence)
{
    struct weir__index_source from = {.file = s->file,
                                      .stamp = stamp,
                                      .end = END,
                                      .partitions = PARTITIONS};

    return weir__index_find(&from, partition, WEIR__LOG_BY_SEQUENCE, sequence, &s->chunk, NULL);
}

static void write_at(struct scene *s, size_t at, uint8_t byte)
{
    struct weir__bytes part = weir__bytes_of(&byte, 1);

    assert_int_equal(s->file->ops->write(s->file, &part, 1, at, NULL), 0);
}

/* The truth, or that the index is damaged. */
static bool reads_true(struct scene *s, uint32_t partition)
{
    static const uint32_t counts[PARTITIONS] = {1, 0, 2};
    const struct weir__index_entry *e = s->chunk.entries;

    if (look(s, partition, 9) != 0) return false;
    assert_int_equal(s->chunk.count, counts[partition]);
    if (partition == 0) {
        assert_int_equal(e[0].position, 4096);
        assert_int_equal(e[0].body_bytes, 300);
    } else if (partition == 2) {
        assert_int_equal(e[0].sequence, 9);
        assert_int_equal(e[1].sequence, 10);
        assert_int_equal(e[1].time_ms, 1201);
        assert_int_equal(e[1].position, 8192 + weir__batch_bytes(10) + 64);
    }
    return true;
}

/* Each byte that a partition's answer hangs on: when it is another, somebody notices. */
static void no_byte_can_turn_unseen(void **state)
{
    struct scene *s = *state;
    unsigned seen = 0;

    for (size_t i = 0; i < END; i++) {
        bool whole = true;
        write_at(s, i, s->bytes[i] ^ 0x10);
        for (uint32_t p = 0; p < PARTITIONS; p++) whole = reads_true(s, p) && whole;
        seen += !whole;
        write_at(s, i, s->bytes[i]);
    }
    /* Chunks, the folder and the used part of the trailer. */
    assert_int_equal(seen, 2 * HEADER + 5 + 9 + PARTITIONS * FOLDER + 48);
    for (uint32_t p = 0; p < PARTITIONS; p++) assert_true(reads_true(s, p));
}

/* A whole entry of another partition, or of an earlier sealing, is none of this one's. */
static void nothing_passes_for_another(void **state)
{
    struct scene *s = *state;
    struct weir__index_source from = {.file = s->file,
                                      .stamp = {stamp.segment_number, stamp.behind + 8, 0},
                                      .end = END,
                                      .partitions = PARTITIONS};
    size_t folder = 2 * HEADER + 5 + 9;

    assert_int_equal(weir__index_chunk(&from, 0, 0, &s->chunk, NULL), WEIR_ECORRUPT);
    from.stamp = (struct weir__index_stamp){stamp.segment_number + 1, stamp.behind, 0};
    assert_int_equal(weir__index_chunk(&from, 0, 0, &s->chunk, NULL), WEIR_ECORRUPT);
    from.stamp = (struct weir__index_stamp){stamp.segment_number, stamp.behind, 1};
    assert_int_equal(weir__index_chunk(&from, 0, 0, &s->chunk, NULL), WEIR_ECORRUPT);
    for (size_t i = 0; i < FOLDER; i++) write_at(s, folder + i, s->bytes[folder + 2 * FOLDER + i]);
    assert_int_equal(look(s, 0, 9), WEIR_ECORRUPT);
    assert_int_equal(look(s, 2, 9), 0);
}

/* ---- whole, with good checksums, and wrong ---- */

static void write_all(struct scene *s, const uint8_t *at, size_t len)
{
    struct weir__bytes part = weir__bytes_of(at, len);

    assert_int_equal(s->file->ops->write(s->file, &part, 1, 0, NULL), 0);
}

/* What is made of the only chunk of partition 0. */
static int read_forged(struct scene *s, uint16_t count, const uint8_t *entries, size_t len)
{
    static uint8_t all[END];
    struct weir_error err = {0};
    struct weir__index_source from = {.file = s->file,
                                      .stamp = stamp,
                                      .end = END,
                                      .partitions = PARTITIONS};
    uint8_t *folder;
    int rc;

    memset(all, 0, sizeof all);
    folder = put_header(all, 4096, 5, 1000, count, entries, (uint16_t)len);
    put_folder(folder, 0, 0, 1);
    put_trailer(all + END - WEIR__FS_BLOCK, (uint64_t)(folder - all));
    write_all(s, all, END);
    rc = weir__index_chunk(&from, 0, 0, &s->chunk, &err);
    assert_int_equal(s->chunk.count, rc == 0 ? count : 0);
    if (rc != 0) assert_string_equal(err.text, "index of segment 7 is damaged");
    return rc;
}

static void entries_that_cannot_be_are_refused(void **state)
{
    static const struct {
        uint8_t entries[16];
        size_t len;
        int rc;
    } cases[] = {
        {{0, 0xac, 2, 3, 0}, 5, 0},
        {{0, 0xac, 2, 3, 0}, 4, WEIR_ECORRUPT},
        {{0, 0xac, 2, 3, 0}, 3, WEIR_ECORRUPT},
        {{0, 0xac, 2, 3, 0}, 2, WEIR_ECORRUPT},
        {{0, 0xac, 2, 3, 0}, 1, WEIR_ECORRUPT},
        {{0}, 0, WEIR_ECORRUPT},
        {{0, 0xac, 2, 3, 0, 0}, 6, WEIR_ECORRUPT}, /* one byte too many */
        {{0, 3, 0, 0}, 4, WEIR_ECORRUPT},          /* no events */
        {{0, 3, 3, 0}, 4, 0},
        {{0, 3, 4, 0}, 4, WEIR_ECORRUPT},        /* more of them than bytes */
        {{0, 0x80, 0x80, 0x80, 10, 1, 0}, 7, 0}, /* 20 MiB, the most a batch has */
        {{0, 0x81, 0x80, 0x80, 10, 1, 0}, 7, WEIR_ECORRUPT},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 3, 1, 0}, 13, 0},
        {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 3, 1, 0},
         14,
         WEIR_ECORRUPT}, /* no number has eleven bytes */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (read_forged(*state, 1, cases[i].entries, cases[i].len) != cases[i].rc)
            fail_msg("case %zu", i);
}

/* As long as an entry can be: numbers of 10, 5, 5 and 10 bytes; or longer by `more`. */
static size_t put_long_entry(uint8_t *to, size_t more)
{
    const size_t lens[] = {10, 5 + more, 5, 10};
    size_t len = 0;

    for (int i = 0; i < 4; i++) {
        memset(to + len, 0x80, lens[i]);
        if (i == 1 || i == 2) to[len] = 0x81; /* one byte, one event */
        len += lens[i];
        to[len - 1] = 0;
    }
    return len;
}

static void chunks_are_of_their_size(void **state)
{
    static uint8_t entries[(WEIR__INDEX_CHUNK + 1) * 31];
    size_t len = 0;

    for (size_t i = 0; i <= WEIR__INDEX_CHUNK; i++) memcpy(entries + 4 * i, "\0\1\1\0", 4);
    assert_int_equal(read_forged(*state, 0, entries, 0), WEIR_ECORRUPT);
    assert_int_equal(read_forged(*state, WEIR__INDEX_CHUNK, entries, 4 * WEIR__INDEX_CHUNK), 0);
    assert_int_equal(read_forged(*state, WEIR__INDEX_CHUNK + 1, entries,
                                 4 * (WEIR__INDEX_CHUNK + 1)),
                     WEIR_ECORRUPT);
    for (size_t i = 1; i < WEIR__INDEX_CHUNK; i++) len += put_long_entry(entries + len, 0);
    put_long_entry(entries + len, 0);
    assert_int_equal(read_forged(*state, WEIR__INDEX_CHUNK, entries, len + 30), 0);
    put_long_entry(entries + len, 1);
    assert_int_equal(read_forged(*state, WEIR__INDEX_CHUNK, entries, len + 31), WEIR_ECORRUPT);
}

/* Nothing behind the end is of the index, and it is not longer than what is in front of that. */
static void an_index_lies_in_front_of_its_end(void **state)
{
    static uint8_t all[END];
    struct scene *s = *state;
    struct weir__index_source from = {.file = s->file, .stamp = stamp, .partitions = PARTITIONS};
    uint8_t *trailer = all + END - WEIR__FS_BLOCK;
    uint64_t bytes = 0;

    for (unsigned cut = 0; cut < 2;
         cut++) { /* its folder is in the trailer's block, or reaches out */
        from.end = END - cut;
        memset(all, 0, sizeof all);
        put_folder(all + END - FOLDER, 0, 0, 0);
        put_trailer(trailer - cut, END - FOLDER);
        write_all(s, all, END);
        assert_int_equal(weir__index_chunk(&from, 0, 0, &s->chunk, NULL), cut ? WEIR_ECORRUPT : 0);
        assert_int_equal(weir__index_bytes(&from, &bytes, NULL), cut ? WEIR_ECORRUPT : 0);
        assert_int_equal(bytes, END);
    }
    from.end = WEIR__FS_BLOCK - 1;
    assert_int_equal(weir__index_bytes(&from, &bytes, NULL), WEIR_ECORRUPT);
}

/* ---- a disk that refuses ---- */

struct refusing {
    struct weir__file base;
    struct weir__file *file;
    int left; /* reads that it grants */
    int rc;   /* of the next one; those behind it are granted */
};

static int refuse_read(struct weir__file *f, void *to, size_t len, uint64_t at, size_t *out_len,
                       struct weir_error *err)
{
    struct refusing *r = (void *)f;

    if (r->left-- == 0) return weir__fail(err, r->rc, "refused");
    return r->file->ops->read(r->file, to, len, at, out_len, err);
}

/* What the disk does not have is damage; whatever else it says is passed on, at each of the reads. */
static void a_refusal_is_not_damage(void **state)
{
    static const struct weir__file_ops ops = {.read = refuse_read};
    const struct {
        int rc, told;
    } cases[] = {{WEIR_EBUSY, WEIR_EBUSY}, {WEIR_EIO, WEIR_ECORRUPT}};
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct refusing r = {.base.ops = &ops, .file = s->file, .rc = cases[i].rc};
        struct weir__index_source from = {.file = &r.base,
                                          .stamp = stamp,
                                          .end = END,
                                          .partitions = PARTITIONS};
        uint64_t bytes;
        int granted = 0, rc;

        do {
            r.left = granted++;
            rc = weir__index_find(&from, 2, WEIR__LOG_BY_SEQUENCE, 9, &s->chunk, NULL);
            assert_int_equal(rc, r.left < 0 ? cases[i].told : 0);
        } while (rc != 0);
        assert_in_range(granted, 4, 10); /* trailer, folder, chunk header, entries */
        assert_int_equal(s->chunk.count, 2);
        r.left = 0;
        assert_int_equal(weir__index_bytes(&from, &bytes, NULL), cases[i].told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_bytes_are_those_of_the_drawing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_bytes_are_those_of_yesterday, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_byte_can_turn_unseen, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_passes_for_another, set_up, tear_down),
        cmocka_unit_test_setup_teardown(entries_that_cannot_be_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(chunks_are_of_their_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_index_lies_in_front_of_its_end, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_refusal_is_not_damage, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
