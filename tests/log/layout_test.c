/* layout_test.c - the bytes on disk, one by one, as the drawings in the sources have them: what is written
 * today is read by every later weir. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/crc.h"
#include "log/state.h"
#include "support/simfs.h"

#define HUB UINT64_C(0x1112131415161718)
#define SECRET UINT64_C(0x2122232425262728)
#define BLOCK WEIR__FS_BLOCK
#define FILE_BYTES 65536u
#define COPY_AT 65536u /* of the control file's second copy */

struct field {
    size_t at, bytes;
    uint64_t value;
};

/* Little-endian, into zeros. */
static void lay(uint8_t *to, size_t len, const struct field *fields, size_t count)
{
    memset(to, 0, len);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < fields[i].bytes; k++)
            to[fields[i].at + k] = (uint8_t)(fields[i].value >> 8 * k);
}

#define LAY(to, len, fields) lay(to, len, fields, sizeof(fields) / sizeof(fields)[0])

/* The checksum of the hub's id, its secret, unless that is 0, and bytes 8 to len. */
static uint32_t stamped_crc(uint64_t secret, const uint8_t *at, size_t len)
{
    uint8_t all[16 + BLOCK];
    size_t used = secret ? 16 : 8;

    weir__store64(all, HUB);
    weir__store64(all + 8, secret);
    memcpy(all + used, at + 8, len - 8);
    return weir__crc32c(0, all, used + len - 8);
}

static void expect_bytes(const uint8_t *got, const uint8_t *want, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (got[i] != want[i]) fail_msg("byte %zu is %02x, not %02x", i, got[i], want[i]);
}

/* ---- batches ---- */

static const struct weir__batch_header batch = {
    .position = UINT64_C(0x0102030405060708),
    .watermark = UINT64_C(0x0102030405060707),
    .sequence = UINT64_C(0x0031323334353637),
    .time_ms = INT64_C(0x0041424344454647),
    .producer = {.id = UINT64_C(0x5152535455565758), .epoch = 0x6162, .sequence = 0x71727374},
    .epoch = 0x81828384,
    .body_bytes = 0x00010203,
    .body_crc = 0x91929394,
    .count = 0x00010102,
    .partition = 0x03a2,
    .attrs = 0xa1a3,
    .before = {.partition = 0x2b3, .bytes = 8 * 0x1b2b3, .count = 0xb1b2},
};

static void a_batch_is_as_drawn(void **state)
{
    static const uint64_t secrets[] = {SECRET, 0, 1};

    (void)state;
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        struct weir__batch_stamp stamp = weir__batch_stamp(HUB, secrets[i]);
        struct weir__batch_header read;
        uint8_t want[WEIR__BATCH_HEADER_BYTES], got[WEIR__BATCH_HEADER_BYTES] = {0};
        const struct field fields[] = {
            {0, 4, secrets[i] ? secrets[i] : 0x54414257}, /* "WBAT" */
            {8, 8, batch.position},
            {16, 8, batch.watermark},
            {24, 4, batch.epoch},
            {28, 4, batch.body_bytes},
            {32, 4, batch.body_crc},
            {36, 2, batch.partition},
            {38, 2, batch.attrs},
            {40, 4, batch.count},
            {44, 2, batch.producer.epoch},
            {46, 2, batch.before.count},
            {48, 8, batch.sequence},
            {56, 8, (uint64_t)batch.time_ms},
            {64, 8, batch.producer.id},
            {72, 4, batch.producer.sequence},
            {76, 4, 0x1b2b3 << 10 | 0x2b3},
        };

        LAY(want, sizeof want, fields);
        weir__store32(want + 4, stamped_crc(secrets[i], want, sizeof want));
        weir__batch_encode(&batch, &stamp, got);
        expect_bytes(got, want, sizeof want);
        assert_true(weir__batch_decode(want, &stamp, &read));
        assert_int_equal(read.position, batch.position);
        assert_int_equal(read.watermark, batch.watermark);
        assert_int_equal(read.sequence, batch.sequence);
        assert_int_equal(read.time_ms, batch.time_ms);
        assert_int_equal(read.producer.id, batch.producer.id);
        assert_int_equal(read.producer.epoch, batch.producer.epoch);
        assert_int_equal(read.producer.sequence, batch.producer.sequence);
        assert_int_equal(read.epoch, batch.epoch);
        assert_int_equal(read.body_bytes, batch.body_bytes);
        assert_int_equal(read.body_crc, batch.body_crc);
        assert_int_equal(read.count, batch.count);
        assert_int_equal(read.partition, batch.partition);
        assert_int_equal(read.attrs, batch.attrs);
        assert_int_equal(read.before.partition, batch.before.partition);
        assert_int_equal(read.before.bytes, batch.before.bytes);
        assert_int_equal(read.before.count, batch.before.count);
        assert_true(weir__batch_begins(want, &stamp, batch.position));
        assert_false(weir__batch_begins(want, &stamp, batch.position + 8));
        stamp.magic++;
        assert_false(weir__batch_begins(want, &stamp, batch.position));
    }
}

/* ---- segments ---- */

static struct weir__file *make(struct simfs *disk, const char *path, uint64_t bytes)
{
    struct weir__fs *fs = simfs_fs(disk);
    struct weir__file *f = NULL;

    assert_int_equal(fs->ops->open(fs, path, WEIR__FS_CREATE, &f, NULL), 0);
    assert_int_equal(f->ops->allocate(f, bytes, NULL), 0);
    return f;
}

static void expect_at(struct simfs *disk, const char *path, const uint8_t *want, size_t len,
                      uint64_t at)
{
    static uint8_t got[2 * COPY_AT];

    assert_in_range(len, 1, sizeof got);
    assert_int_equal(simfs_peek(disk, path, got, len, at), (long)len);
    expect_bytes(got, want, len);
}

#define SEGMENT_PARTITIONS 3u

static const struct weir__segment_header segment = {
    .version = 2,
    .partitions = SEGMENT_PARTITIONS,
    .secret = SECRET,
    .number = UINT64_C(0x0102030405060708),
    .base = UINT64_C(0x0031323334353000),
    .capacity = FILE_BYTES,
    .previous_end = UINT64_C(0x0031323334352fff),
    .time_ms = INT64_C(0x0001020304050607),
    .keep = {INT64_C(0x0001121314151617), INT64_C(0x0001222324252627)},
    .epoch = 0x61626364,
    .heads_bytes = SEGMENT_PARTITIONS * WEIR__HEAD_BYTES,
    .producers = UINT64_C(0x7172737475767778),
};

static void expect_segment(const struct weir__segment_header *h)
{
    assert_int_equal(h->version, segment.version);
    assert_int_equal(h->partitions, segment.partitions);
    assert_int_equal(h->secret, segment.secret);
    assert_int_equal(h->number, segment.number);
    assert_int_equal(h->base, segment.base);
    assert_int_equal(h->capacity, segment.capacity);
    assert_int_equal(h->previous_end, segment.previous_end);
    assert_int_equal(h->time_ms, segment.time_ms);
    assert_int_equal(h->keep.keep_ms, segment.keep.keep_ms);
    assert_int_equal(h->keep.off_ms, segment.keep.off_ms);
    assert_int_equal(h->epoch, segment.epoch);
    assert_int_equal(h->heads_bytes, segment.heads_bytes);
    assert_int_equal(h->producers, segment.producers);
}

/* Header and heads in front, heads and header behind. */
static void a_segment_is_as_drawn(void **state)
{
    const struct field fields[] = {
        {0, 4, 0x47455357}, /* "WSEG" */
        {8, 4, 2},
        {12, 4, segment.partitions},
        {16, 8, HUB},
        {24, 8, segment.number},
        {32, 8, segment.base},
        {40, 8, segment.capacity},
        {48, 8, segment.previous_end},
        {56, 8, (uint64_t)segment.time_ms},
        {64, 4, segment.epoch},
        {68, 4, segment.heads_bytes},
        {80, 8, segment.secret},
        {88, 8, (uint64_t)segment.keep.keep_ms},
        {96, 8, (uint64_t)segment.keep.off_ms},
        {104, 8, segment.producers},
    };
    static uint8_t want[2 * BLOCK];
    uint8_t heads[SEGMENT_PARTITIONS * WEIR__HEAD_BYTES];
    struct simfs *disk = simfs_new();
    struct weir__file *f = make(disk, "f", FILE_BYTES);
    struct weir__segment_header read;
    int bad;

    (void)state;
    for (size_t i = 0; i < sizeof heads; i++) heads[i] = (uint8_t)(i + 1);
    LAY(want, sizeof want, fields);
    memcpy(want + BLOCK, heads, sizeof heads);
    weir__store32(want + 72, weir__crc32c(0, heads, sizeof heads));
    weir__store32(want + 4, weir__crc32c(0, want + 8, BLOCK - 8));
    assert_int_equal(weir__segment_write_header(f, &segment, HUB, heads, NULL), 0);
    expect_at(disk, "f", want, sizeof want, 0);
    expect_at(disk, "f", want + BLOCK, BLOCK, FILE_BYTES - 2 * BLOCK);
    expect_at(disk, "f", want, BLOCK, FILE_BYTES - BLOCK);
    assert_int_equal(weir__segment_read_header(f, HUB, &read, &bad, NULL), 0);
    assert_int_equal(bad, 0);
    expect_segment(&read);
    simfs_flip(disk, "f", 8 * 100);
    assert_int_equal(weir__segment_read_header(f, HUB, &read, &bad, NULL), 0);
    assert_int_equal(bad, 1);
    expect_segment(&read);
    weir__file_close(f);
    simfs_free(disk);
}

/* ---- the control file ---- */

static size_t blocks_of(size_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

static void make_control(struct weir__control *c, uint32_t partitions)
{
    *c = (struct weir__control){
        .version = 2,
        .hub_id = HUB,
        .secret = SECRET,
        .generation = 0x3132,
        .first_segment = UINT64_C(0x0102030405060708),
        .last_segment = UINT64_C(0x0102030405060709),
        .watermark = UINT64_C(0x0021222324252627),
        .epoch_start = UINT64_C(0x0031323334353637),
        .epoch = 0x41424344,
        .keep = {INT64_C(0x0001121314151617), INT64_C(0x2122232425262728),
                 INT64_C(0x3132333435363738), UINT64_C(0x4142434445464748),
                 INT64_C(0x0001525354555657), INT64_C(0x0001626364656667)},
        .active = {UINT64_C(0x0071727374757677), UINT64_C(0x0081828384858687),
                   UINT64_C(0x0091929394959697), UINT64_C(0x00a1a2a3a4a5a6a7)},
    };
    assert_int_equal(weir__control_resize(c, partitions, NULL), 0);
    for (uint32_t i = 0; i < partitions; i++)
        c->heads[i] =
            (struct weir__head){i + UINT64_C(0x0001121314151617), i + UINT64_C(0xc1c2c3c4c5c6c7c8),
                                i + INT64_C(0x0001d2d3d4d5d6d7)};
}

/* One copy, and how long it is. */
static size_t lay_control(const struct weir__control *c, uint8_t *to)
{
    const struct field fields[] = {
        {0, 4, 0x4c544357}, /* "WCTL" */
        {8, 4, 2},
        {12, 4, c->partitions},
        {16, 8, c->hub_id},
        {24, 8, c->generation},
        {32, 8, c->first_segment},
        {40, 8, c->last_segment},
        {48, 8, c->watermark},
        {56, 8, c->epoch_start},
        {64, 4, c->epoch},
        {72, 8, (uint64_t)c->keep.keep_ms},
        {80, 8, c->secret},
        {88, 8, c->keep.boot},
        {96, 8, (uint64_t)c->keep.up_ms},
        {104, 8, (uint64_t)c->keep.wall_ms},
        {112, 8, c->active.base},
        {120, 8, c->active.capacity},
        {128, 8, c->active.data},
        {136, 8, c->active.name},
        {144, 8, (uint64_t)c->keep.off_ms},
        {152, 8, (uint64_t)c->keep.owed_ms},
    };
    size_t heads = c->partitions * (size_t)WEIR__HEAD_BYTES;
    size_t len = blocks_of(192 + heads), front = blocks_of(80 + heads);

    LAY(to, len, fields);
    for (uint32_t i = 0; i < c->partitions; i++) {
        weir__store64(to + 192 + (size_t)i * 24, c->heads[i].next_sequence);
        weir__store64(to + 200 + (size_t)i * 24, c->heads[i].last_offset);
        weir__store64(to + 208 + (size_t)i * 24, (uint64_t)c->heads[i].last_time_ms);
    }
    weir__store32(to + 160, weir__crc32c(0, to + front, len - front));
    weir__store32(to + 4, weir__crc32c(0, to + 8, front - 8));
    return len;
}

static void expect_control(const struct weir__control *c, const struct weir__control *want)
{
    assert_int_equal(c->version, 2);
    assert_int_equal(c->hub_id, HUB);
    assert_int_equal(c->secret, SECRET);
    assert_int_equal(c->generation, want->generation);
    assert_int_equal(c->first_segment, want->first_segment);
    assert_int_equal(c->last_segment, want->last_segment);
    assert_int_equal(c->watermark, want->watermark);
    assert_int_equal(c->epoch_start, want->epoch_start);
    assert_int_equal(c->epoch, want->epoch);
    assert_int_equal(c->partitions, want->partitions);
    assert_memory_equal(&c->keep, &want->keep, sizeof c->keep);
    assert_memory_equal(&c->active, &want->active, sizeof c->active);
    assert_memory_equal(c->heads, want->heads, want->partitions * sizeof *c->heads);
}

/* Also where it is longer than one of version 1 with as many partitions. */
static void a_control_file_is_as_drawn(void **state)
{
    static const uint32_t partitions[] = {1, 162, 163, 164, 166, 167, 168, 1024};
    static uint8_t want[COPY_AT];

    (void)state;
    for (size_t i = 0; i < sizeof partitions / sizeof partitions[0]; i++) {
        struct weir__control c, read = {.hub_id = HUB};
        struct simfs *disk = simfs_new();
        struct weir__file *f = make(disk, "control", 2 * COPY_AT);
        int bad;

        make_control(&c, partitions[i]);
        for (uint64_t copy = 1; copy <= 2; copy++) {
            assert_int_equal(weir__control_write(f, &c, true, NULL), 0);
            assert_int_equal(c.generation, 0x3132 + copy);
            expect_at(disk, "control", want, lay_control(&c, want), copy % 2 * COPY_AT);
        }
        assert_int_equal(weir__control_read(f, &read, &bad, NULL), 0);
        assert_int_equal(bad, 0);
        expect_control(&read, &c);
        weir__control_fini(&read);
        weir__control_fini(&c);
        weir__file_close(f);
        simfs_free(disk);
    }
}

/* ---- producers ---- */

static const struct weir__producer producer = {
    .id = UINT64_C(0x0102030405060708),
    .sequence = UINT64_C(0x1112131415161718),
    .offset = UINT64_C(0x2122232425262728),
    .time_ms = INT64_C(0x3132333435363738),
    .next = 0x41424344,
    .count = 0x51525354,
    .used = 100000,
    .partition = 0x6162,
    .epoch = 0x7172,
};

/* Its age goes with it, up to what two bytes can hold; nobody is of the future. */
static void a_producer_is_as_drawn(void **state)
{
    static const struct {
        uint32_t now, age;
    } ages[] = {{100000, 0},     {100001, 1},     {99999, 0},     {0, 0},
                {165534, 65534}, {165535, 65535}, {165536, 65535}};

    (void)state;
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++) {
        const struct field fields[] = {
            {0, 8, producer.id},         {8, 8, producer.sequence},
            {16, 8, producer.offset},    {24, 8, (uint64_t)producer.time_ms},
            {32, 4, producer.partition}, {36, 4, producer.next},
            {40, 4, producer.count},     {44, 2, producer.epoch},
            {46, 2, ages[i].age},
        };
        uint8_t want[WEIR__PRODUCER_BYTES], got[WEIR__PRODUCER_BYTES] = {0};
        struct weir__producer read;

        LAY(want, sizeof want, fields);
        weir__producer_encode(&producer, ages[i].now, got);
        expect_bytes(got, want, sizeof want);
        weir__producer_decode(want, 70000, &read);
        assert_int_equal(read.id, producer.id);
        assert_int_equal(read.sequence, producer.sequence);
        assert_int_equal(read.offset, producer.offset);
        assert_int_equal(read.time_ms, producer.time_ms);
        assert_int_equal(read.partition, producer.partition);
        assert_int_equal(read.next, producer.next);
        assert_int_equal(read.count, producer.count);
        assert_int_equal(read.epoch, producer.epoch);
        assert_int_equal(read.used, 70000 - ages[i].age);
        weir__producer_decode(want, ages[i].age / 2, &read);
        assert_int_equal(read.used, 0);
    }
}

static struct weir__log *log_of_hub(void)
{
    static struct weir__log log;

    log.o.hub_id = HUB;
    log.control.secret = SECRET;
    return &log;
}

static void the_head_of_producers_is_as_drawn(void **state)
{
    const struct weir__producer_head head = {.generation = UINT64_C(0x3132333435363738),
                                             .blocks = UINT64_C(0x4142434445464748),
                                             .turn = UINT64_C(0x5152535455565758)};
    const struct field fields[] = {
        {0, 4, 0x48525057}, /* "WPRH" */
        {8, 4, 1},          {16, 8, HUB}, {24, 8, head.generation}, {32, 8, head.blocks},
        {40, 8, head.turn},
    };
    struct weir__producer_head read;
    uint8_t want[BLOCK], got[BLOCK];

    (void)state;
    LAY(want, sizeof want, fields);
    weir__store32(want + 4, stamped_crc(SECRET, want, sizeof want));
    memset(got, 'x', sizeof got);
    weir__producer_head_encode(log_of_hub(), &head, got);
    expect_bytes(got, want, sizeof want);
    assert_true(weir__producer_head_decode(log_of_hub(), want, &read));
    assert_int_equal(read.version, 1);
    assert_int_equal(read.generation, head.generation);
    assert_int_equal(read.blocks, head.blocks);
    assert_int_equal(read.turn, head.turn);
    for (size_t i = 0; i < sizeof want; i++) {
        want[i] ^= 1;
        if (weir__producer_head_decode(log_of_hub(), want, &read)) fail_msg("byte %zu", i);
        want[i] ^= 1;
    }
}

/* Records that are there stay; what lies behind them becomes zeros. */
static void a_block_of_producers_is_as_drawn(void **state)
{
    static const struct {
        uint16_t records;
        bool good;
    } cases[] = {{0, false}, {1, true}, {2, true}, {84, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct weir__producer_block block = {.generation = UINT64_C(0x3132333435363738),
                                                   .number = UINT64_C(0x4142434445464748),
                                                   .turn = UINT64_C(0x5152535455565758),
                                                   .covered = UINT64_C(0x6162636465666768),
                                                   .keep_ms = INT64_C(0x7172737475767778),
                                                   .records = cases[i].records,
                                                   .follow = 0x81828384};
        const struct field fields[] = {
            {0, 4, 0x4f525057}, /* "WPRO" */
            {8, 8, block.generation},
            {16, 8, block.number},
            {24, 8, block.turn},
            {32, 8, block.covered},
            {40, 8, (uint64_t)block.keep_ms},
            {48, 2, block.records},
            {52, 4, block.follow},
        };
        struct weir__producer_block read;
        uint8_t want[BLOCK], got[BLOCK];

        LAY(want, sizeof want, fields);
        memset(want + 56, 'x', (size_t)cases[i].records * 48);
        weir__store32(want + 4, stamped_crc(SECRET, want, sizeof want));
        memset(got, 'x', sizeof got);
        weir__producer_block_encode(log_of_hub(), &block, got);
        expect_bytes(got, want, sizeof want);
        assert_ptr_equal(weir__producer_record(got, 2), got + 56 + 2 * 48);
        assert_int_equal(weir__producer_block_decode(log_of_hub(), want, block.generation,
                                                     block.number, &read),
                         cases[i].good);
        assert_int_equal(read.turn, block.turn);
        assert_int_equal(read.covered, block.covered);
        assert_int_equal(read.keep_ms, block.keep_ms);
        assert_int_equal(read.records, block.records);
        assert_int_equal(read.follow, block.follow);
        assert_false(weir__producer_block_decode(log_of_hub(), want, block.generation + 1,
                                                 block.number, &read));
        assert_false(weir__producer_block_decode(log_of_hub(), want, block.generation,
                                                 block.number + 1, &read));
    }
}

/* One record more than there is room for, though its checksum is good. */
static void too_many_records_are_not_believed(void **state)
{
    const struct field fields[] = {{0, 4, 0x4f525057}, {8, 8, 5}, {16, 8, 6}, {48, 2, 85}};
    struct weir__producer_block read;
    uint8_t block[BLOCK];

    (void)state;
    LAY(block, sizeof block, fields);
    weir__store32(block + 4, stamped_crc(SECRET, block, sizeof block));
    assert_false(weir__producer_block_decode(log_of_hub(), block, 5, 6, &read));
    block[48] = 84;
    weir__store32(block + 4, stamped_crc(SECRET, block, sizeof block));
    assert_true(weir__producer_block_decode(log_of_hub(), block, 5, 6, &read));
}

static void publish(struct weir__log *log, uint64_t id)
{
    struct weir__log_batch b = {.partition = 1,
                                .count = 1,
                                .producer = {.id = id},
                                .body = {weir__bytes_of("x", 1)}};

    assert_int_equal(weir__log_append_wait(log, &b, INT64_MAX, NULL, NULL), 0);
    weir__mutex_lock(&log->lock);
    log->keep.off_ms = 60000;
    log->want_roll = true;
    assert_int_equal(weir__log_lead(log, NULL), 0);
    weir__mutex_unlock(&log->lock);
}

/* Each roll appends a block, the first one makes the file; its name is durable before the next segment
 * counts on it. */
static void rolls_append_to_the_file_of_producers(void **state)
{
    struct simclock clock = {.wall_ms = INT64_C(1700000000000), .mono_ms = 1000};
    struct simfs *disk = simfs_new();
    struct weir__log_options o = {.fs = simfs_fs(disk),
                                  .clock = simclock(&clock),
                                  .dir = "log",
                                  .hub_id = HUB,
                                  .partitions = 2,
                                  .segment_bytes_max = FILE_BYTES,
                                  .retain_ms = -1,
                                  .no_threads = true};
    struct weir__producer_block block;
    struct weir__producer_head head;
    uint8_t bytes[BLOCK];
    struct weir__log *log;

    (void)state;
    assert_int_equal(weir__log_create(&o, NULL), 0);
    assert_int_equal(weir__log_open(&log, &o, NULL), 0);
    for (uint64_t i = 1; i <= 3; i++) {
        uint64_t names = simfs_calls(disk, SIMFS_SYNC_DIR), covered;

        publish(log, i);
        covered = log->segments[log->segment_count - 2]->end;
        assert_int_equal(simfs_calls(disk, SIMFS_SYNC_DIR) - names,
                         i == 1 ? 2 : 1); /* the segment, too */
        assert_int_equal(weir__log_active(log)->h.producers, i);
        assert_int_equal(log->producer_file.covered, covered);
        assert_int_equal(log->producer_file.blocks, i + 1);
        assert_int_equal(simfs_peek(disk, "log/producers-00000001.tab", bytes, BLOCK, i * BLOCK),
                         BLOCK);
        assert_true(weir__producer_block_decode(log, bytes, 1, i, &block));
        assert_int_equal(block.turn, i);
        assert_int_equal(block.covered, covered);
        assert_int_equal(block.keep_ms, log->keep.keep_ms + 60000);
        assert_int_equal(block.records, 1);
        assert_int_equal(block.follow, 0);
    }
    assert_int_equal(simfs_peek(disk, "log/producers-00000001.tab", bytes, BLOCK, 0), BLOCK);
    assert_true(weir__producer_head_decode(log, bytes, &head));
    assert_int_equal(head.generation, 1);
    assert_int_equal(head.blocks, 1);
    assert_int_equal(head.turn, 0);
    assert_int_equal(weir__log_close(log, NULL), 0);
    assert_int_equal(simfs_open_files(disk), 0);
    simfs_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_is_as_drawn),
        cmocka_unit_test(a_segment_is_as_drawn),
        cmocka_unit_test(a_control_file_is_as_drawn),
        cmocka_unit_test(a_producer_is_as_drawn),
        cmocka_unit_test(the_head_of_producers_is_as_drawn),
        cmocka_unit_test(a_block_of_producers_is_as_drawn),
        cmocka_unit_test(rolls_append_to_the_file_of_producers),
        cmocka_unit_test(too_many_records_are_not_believed),
    };

    return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
