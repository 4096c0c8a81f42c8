/* log_recover_fuzz.c - a log whose files were written over, opened.
 *
 * Checksums would stop nearly everything at the door, so the input is a row of edits to a good log
 * of two segments, each of which may put the checksums right afterwards:
 *
 *   u8   what: low two bits 0 control file, 1 sealed segment, 2 active segment, 3 a batch header
 *        with a good checksum in the active segment; bit 2: put the checksums of the file right
 *   u24  where, modulo the size of the file; for a batch header a multiple of 8
 *   u8   how many bytes follow, and those bytes
 *
 * Whatever the files hold, opening, reading, looking and appending do not crash or hang, sequence
 * numbers grow, and a log that opened and closed opens again. It does not open only for what the
 * files say: another version, another hub, nothing at all. */
#include <stdio.h>
#include <stdlib.h>

#include "base/crc.h"
#include "fuzz.h"
#include "log/batch.h"
#include "support/history.h"
#include "support/simfs.h"

#define PARTITIONS 3u
#define HUB_ID 42u
#define EDIT_HEAD 5u
#define DAY_MS INT64_C(86400000)
#define VIEWS_MAX 16u
#define TURNS_MAX 10000
#define HEADS_CRC_AT 72u
#define HEADS_BYTES_AT 68u

static const char *const files[] = {"log/control", "log/00000001.seg", "log/00000002.seg"};

/* The same secret every time, so that an input means the same every time. */
static int fill_same(void *self, void *out, size_t len, struct weir_error *err)
{
    (void)self, (void)err;
    memset(out, 0x5e, len);
    return 0;
}

static struct weir__log_options make_options(struct simfs *disk, struct simclock *clock)
{
    return (struct weir__log_options){
        .fs = simfs_fs(disk),
        .clock = simclock(clock),
        .dir = "log",
        .hub_id = HUB_ID,
        .partitions = PARTITIONS,
        .batch_bytes_max = 8192,
        .rand = {.fill = fill_same},
        .segment_bytes_min = 1u << 20,
        .segment_bytes_max = 1u << 20,
        .retain_ms = 8 * DAY_MS, /* an eighth of that is one segment's time */
        .no_threads = true,
    };
}

static void append_some(struct weir__log *log, int count)
{
    uint8_t body[700];

    for (int i = 0; i < count; i++) {
        struct weir__log_batch b = {.partition = (uint32_t)i % PARTITIONS,
                                    .count = 1 + (uint32_t)i % 5,
                                    .body = {weir__bytes_of(body, 40 + (size_t)(i * 67) % 600)}};

        memset(body, i, sizeof body);
        if (i % 4 == 0) b.producer = (struct weir__log_producer){7, 0, (uint32_t)i / 12 * b.count};
        weir__log_append_wait(log, &b, weir__deadline_ns(1000), NULL, NULL);
    }
}

/* Two segments; the power went while the second was written. Made once. */
static struct simfs *good_disk(void)
{
    static struct simfs *left;
    struct simclock clock = {.wall_ms = 1700000000000, .mono_ms = 1000};
    struct simfs *disk;
    struct weir__log_options o;
    struct weir__log *log = NULL;

    if (left) return left;
    disk = simfs_new();
    o = make_options(disk, &clock);
    ORACLE(weir__log_create(&o, NULL) == 0 && weir__log_open(&log, &o, NULL) == 0);
    append_some(log, 30);
    for (int i = 0; i < 3; i++) {
        simclock_pass(&clock, DAY_MS);
        ORACLE(weir__log_step(log, NULL) == 0);
    }
    append_some(log, 20);
    left = simfs_crash(disk, SIMFS_KEEP_ALL, 0);
    ORACLE(simfs_size(left, files[2]) > 0);
    weir__log_close(log, NULL);
    simfs_free(disk);
    return left;
}

/* ---- editing ---- */

/* The block at `at` of a file: its checksum at 4 is of everything behind it. */
static void fix_block(struct simfs *disk, const char *path, uint64_t at)
{
    uint8_t block[WEIR__FS_BLOCK] = {0};

    if (simfs_peek(disk, path, block, sizeof block, at) != (long)sizeof block) return;
    weir__store32(block + 4, weir__crc32c(0, block + 8, sizeof block - 8));
    simfs_poke(disk, path, block + 4, 4, at + 4);
}

/* The heads lie behind the first header and in front of the second. */
static void fix_segment(struct simfs *disk, const char *path)
{
    uint64_t size = simfs_size(disk, path), last = size - WEIR__FS_BLOCK;
    uint8_t header[WEIR__FS_BLOCK], heads[WEIR__FS_BLOCK], crc[4];
    uint32_t len;

    simfs_peek(disk, path, header, sizeof header, 0);
    len = weir__load32(header + HEADS_BYTES_AT);
    if (len > sizeof heads) len = sizeof heads;
    simfs_peek(disk, path, heads, sizeof heads, WEIR__FS_BLOCK);
    weir__store32(crc, weir__crc32c(0, heads, len));
    simfs_poke(disk, path, crc, sizeof crc, HEADS_CRC_AT);
    fix_block(disk, path, 0);
    fix_block(disk, path, last);
}

static void put_header(struct simfs *disk, uint64_t at, const uint8_t *from, size_t len)
{
    uint8_t bytes[WEIR__BATCH_HEADER_BYTES] = {0}, base[8] = {0}, secret[8] = {0};
    struct weir__batch_stamp stamp;
    struct weir__batch_header h;

    if (at + sizeof bytes > simfs_size(disk, files[2])) return;
    if (len > 0) memcpy(bytes, from, len < sizeof bytes ? len : sizeof bytes);
    simfs_peek(disk, files[2], base, sizeof base, 32); /* of its header: log position of byte 0 */
    h = (struct weir__batch_header){
        .position = weir__load64(base) + at,
        .watermark = weir__load64(base) + weir__load32(bytes),
        .sequence = weir__load16(bytes + 4),
        .time_ms = (int64_t)weir__load64(bytes + 8),
        .producer = {weir__load16(bytes + 16), bytes[18], weir__load32(bytes + 20)},
        .epoch = bytes[24],
        .body_bytes = weir__load32(bytes + 28),
        .body_crc = weir__load32(bytes + 32),
        .count = weir__load32(bytes + 36),
        .partition = bytes[40],
        .attrs = bytes[41],
    };
    simfs_peek(disk, files[2], secret, sizeof secret, 80);
    stamp = weir__batch_stamp(HUB_ID, weir__load64(secret));
    weir__batch_encode(&h, &stamp, bytes);
    simfs_poke(disk, files[2], bytes, sizeof bytes, at);
}

static void edit(struct simfs *disk, unsigned what, uint64_t where, const uint8_t *from, size_t len)
{
    const char *path = files[what % 4 == 3 ? 2 : what % 4];
    uint64_t size = simfs_size(disk, path);

    where %= size;
    if (what % 4 == 3) {
        put_header(disk, where & ~(uint64_t)7, from, len);
        return;
    }
    if (len > size - where) len = (size_t)(size - where);
    if (len > 0) simfs_poke(disk, path, from, len, where);
    if (!(what & 4)) return;
    if (what % 4 != 0)
        fix_segment(disk, path);
    else
        for (uint64_t at = 0; at < size; at += WEIR__FS_BLOCK) fix_block(disk, path, at);
}

static void edit_all(struct simfs *disk, const uint8_t *at, size_t len)
{
    while (len >= EDIT_HEAD) {
        uint64_t where = at[1] | (uint64_t)at[2] << 8 | (uint64_t)at[3] << 16;
        size_t n = at[4] < len - EDIT_HEAD ? at[4] : len - EDIT_HEAD;

        edit(disk, at[0], where, at + EDIT_HEAD, n);
        at += EDIT_HEAD + n;
        len -= EDIT_HEAD + n;
    }
}

/* ---- using ---- */

/* Reads to the end, passing over what is damaged; every turn gets further. */
static void read_partition(struct weir__log *log, uint32_t partition)
{
    struct weir__log_partition_info info;
    struct weir__log_reader *r = NULL;
    struct weir__log_view v[VIEWS_MAX];
    uint64_t missed, next, first, last;
    uint32_t count = 1;
    int turns = 0;

    if (weir__log_partition_info(log, partition, &info, NULL) != 0) return;
    ORACLE(info.begin_sequence <= info.next_sequence);
    next = info.begin_sequence;
    if (weir__log_reader_open(&r, log, partition, next, 0, NULL) != 0) return;
    while (count > 0 && turns++ < TURNS_MAX) {
        int rc = weir__log_reader_next(r, v, VIEWS_MAX, &count, &missed, NULL);

        if (rc != 0 && rc != WEIR_ECORRUPT) break;
        if (rc != 0) {
            weir__log_reader_damage(r, &first, &last);
            ORACLE(last >= weir__log_reader_sequence(r) && last < UINT64_MAX);
            weir__log_reader_seek(r, last + 1);
            next = last + 1;
            count = 1;
            continue;
        }
        for (uint32_t i = 0; i < count; i++) {
            ORACLE(v[i].sequence >= next && v[i].count > 0 && v[i].body.len >= v[i].count);
            next = v[i].sequence + v[i].count;
        }
    }
    ORACLE(turns < TURNS_MAX);
    weir__log_reader_close(r);
}

static void use(struct weir__log *log)
{
    uint64_t sequence;

    for (uint32_t p = 0; p < PARTITIONS; p++) {
        read_partition(log, p);
        weir__log_find(log, p, WEIR__LOG_BY_TIME, 1700000000500, true, &sequence, NULL);
        weir__log_find(log, p, WEIR__LOG_BY_OFFSET, INT64_C(1000000000001000), false, &sequence,
                       NULL);
    }
    append_some(log, 5);
    weir__log_step(log, NULL);
}

static void ignore(const struct weir__log_finding *f, void *user)
{
    (void)user;
    ORACLE(f->file && f->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct simfs *disk = simfs_clone(good_disk());
    struct simclock clock = {.wall_ms = 1700300000000, .mono_ms = 1000};
    struct weir__log_options o = make_options(disk, &clock);
    struct weir__log *log = NULL;
    uint64_t damaged;
    int rc;

    edit_all(disk, at, len);
    weir__log_inspect(&o, ignore, NULL, &damaged, NULL);
    rc = weir__log_open(&log, &o, NULL);
    ORACLE(rc == 0 || rc == WEIR_EVERSION || rc == WEIR_EINVAL || rc == WEIR_ECORRUPT);
    if (rc == 0) {
        use(log);
        if (weir__log_close(log, NULL) == 0) {
            ORACLE(weir__log_open(&log, &o, NULL) == 0);
            use(log);
            weir__log_close(log, NULL);
        }
    }
    ORACLE(simfs_open_files(disk) == 0);
    simfs_free(disk);
    return 0;
}
