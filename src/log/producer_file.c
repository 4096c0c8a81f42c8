/* producer_file.c - producers-NNNNNNNN.tab, NNNNNNNN the generation: blocks of 4096 bytes,
 * little-endian. The first is the head:
 *
 *    0  u32  magic "WPRH"
 *    4  u32  checksum: CRC-32C of the hub's id, the hub's secret and bytes 8..4095
 *    8  u32  format version, 1
 *   12  u32  zero
 *   16  u64  hub id
 *   24  u64  generation
 *   32  u64  blocks of the file when it was complete, with this one
 *   40  u64  the last append whose records it had then
 *   48       zeros
 *
 * and every other one a frame of records:
 *
 *    0  u32  magic "WPRO"
 *    4  u32  checksum, as above
 *    8  u64  generation
 *   16  u64  number of this block in the file, from 1
 *   24  u64  number of the append it was written by
 *   32  u64  log position below which every batch has been told of, by this append or before
 *   40  i64  retention's clock
 *   48  u16  records, 1 to 84
 *   50  u16  zero
 *   52  u32  blocks of the same append that follow
 *   56       records (producer.c), then zeros
 *
 * A block is written once, so nothing that was synced shares a sector with a later write, and a
 * bad one costs its own records alone. A segment's header names the last append before it: that is
 * where the file ends, and what lies behind was not finished, or is of a roll that was not. What is
 * bad before the end is damage: these producers are forgotten, which is told.
 *
 * A new generation (producer_tidy.c) gets its head last of all: one without is no file yet, and
 * the next opening removes it. Of several with a head the highest counts that has the last append.
 * Should the head of the only one be bad, its blocks are read all the same. */
#include "log/producer_file.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/state.h"

#define HEAD_MAGIC 0x48525057u
#define BLOCK_MAGIC 0x4f525057u
#define BLOCK_BYTES WEIR__FS_BLOCK
#define RECORDS_AT 56u

static_assert(RECORDS_AT + WEIR__PRODUCER_RECORDS * WEIR__PRODUCER_BYTES <= BLOCK_BYTES, "fits");

void weir__producer_file_name(uint64_t generation, char out[WEIR__PRODUCER_FILE_NAME_BYTES])
{
    snprintf(out, WEIR__PRODUCER_FILE_NAME_BYTES, "producers-%08" PRIu64 ".tab", generation);
}

uint8_t *weir__producer_record(uint8_t *block, uint32_t number)
{
    return block + RECORDS_AT + (size_t)number * WEIR__PRODUCER_BYTES;
}

static uint32_t checksum(const struct weir__log *log, const uint8_t *at)
{
    struct weir__batch_stamp stamp = weir__batch_stamp(log->o.hub_id, log->control.secret);

    return weir__crc32c(stamp.seed, at + 8, BLOCK_BYTES - 8);
}

void weir__producer_head_encode(const struct weir__log *log, const struct weir__producer_head *h,
                                uint8_t *to)
{
    memset(to, 0, BLOCK_BYTES);
    weir__store32(to, HEAD_MAGIC);
    weir__store32(to + 8, WEIR__PRODUCER_FILE_VERSION);
    weir__store64(to + 16, log->o.hub_id);
    weir__store64(to + 24, h->generation);
    weir__store64(to + 32, h->blocks);
    weir__store64(to + 40, h->turn);
    weir__store32(to + 4, checksum(log, to));
}

bool weir__producer_head_decode(const struct weir__log *log, const uint8_t *at,
                                struct weir__producer_head *out)
{
    if (weir__load32(at) != HEAD_MAGIC || weir__load32(at + 4) != checksum(log, at)) return false;
    *out = (struct weir__producer_head){
        .version = weir__load32(at + 8),
        .generation = weir__load64(at + 24),
        .blocks = weir__load64(at + 32),
        .turn = weir__load64(at + 40),
    };
    return true;
}

void weir__producer_block_encode(const struct weir__log *log, const struct weir__producer_block *b,
                                 uint8_t *to)
{
    size_t end = RECORDS_AT + (size_t)b->records * WEIR__PRODUCER_BYTES;

    memset(to, 0, RECORDS_AT);
    memset(to + end, 0, BLOCK_BYTES - end);
    weir__store32(to, BLOCK_MAGIC);
    weir__store64(to + 8, b->generation);
    weir__store64(to + 16, b->number);
    weir__store64(to + 24, b->turn);
    weir__store64(to + 32, b->covered);
    weir__store64(to + 40, (uint64_t)b->keep_ms);
    weir__store16(to + 48, (uint16_t)b->records);
    weir__store32(to + 52, b->follow);
    weir__store32(to + 4, checksum(log, to));
}

bool weir__producer_block_decode(const struct weir__log *log, const uint8_t *at,
                                 uint64_t generation, uint64_t number,
                                 struct weir__producer_block *out)
{
    if (weir__load32(at) != BLOCK_MAGIC || weir__load32(at + 4) != checksum(log, at)) return false;
    *out = (struct weir__producer_block){
        .generation = weir__load64(at + 8),
        .number = weir__load64(at + 16),
        .turn = weir__load64(at + 24),
        .covered = weir__load64(at + 32),
        .keep_ms = (int64_t)weir__load64(at + 40),
        .records = weir__load16(at + 48),
        .follow = weir__load32(at + 52),
    };
    return out->generation == generation && out->number == number && out->records > 0 &&
           out->records <= WEIR__PRODUCER_RECORDS;
}

int weir__producer_file_make(struct weir__log *log, uint64_t *out_generation,
                             struct weir__file **out, struct weir_error *err)
{
    char name[WEIR__PRODUCER_FILE_NAME_BYTES];

    *out_generation = __atomic_add_fetch(&log->producer_file.next_generation, 1, __ATOMIC_RELAXED);
    weir__producer_file_name(*out_generation, name);
    return weir__log_open_name(log->fs, log->dir, name, WEIR__FS_CREATE | WEIR__FS_DIRECT, out,
                               err);
}

int weir__producer_file_remove(struct weir__log *log, uint64_t generation, struct weir_error *err)
{
    char name[WEIR__PRODUCER_FILE_NAME_BYTES];
    int rc;

    weir__producer_file_name(generation, name);
    rc = weir__log_remove_name(log->fs, log->dir, name, err);
    return rc == WEIR_ENOTFOUND ? 0 : rc;
}

void weir__producer_file_close(struct weir__producer_file *pf)
{
    weir__file_close(pf->file);
    weir__file_close(pf->next.file);
    free(pf->next.rows);
    *pf = (struct weir__producer_file){0};
}

/* ---- appending, at a roll ---- */

struct appending {
    struct weir__log *log;
    struct weir__file *file;
    uint8_t *rows;
    struct weir__producer_block block; /* as the next one will be */
    uint64_t end;                      /* blocks of the file */
};

/* Up to WEIR__PRODUCER_ROWS blocks, of the dirty ones from *at on. */
static int append_rows(struct appending *a, uint32_t *at, uint32_t *left, struct weir_error *err)
{
    const struct weir__producers *all = &a->log->producers;
    uint32_t minutes = weir__producer_minutes(a->block.keep_ms), rows = 0;
    struct weir__bytes part;
    int rc;

    for (; rows<WEIR__PRODUCER_ROWS && * left> 0; rows++) {
        uint8_t *to = a->rows + (size_t)rows * BLOCK_BYTES;
        uint32_t take = *left < WEIR__PRODUCER_RECORDS ? *left : WEIR__PRODUCER_RECORDS;

        for (uint32_t i = 0; i < take; i++) {
            const struct weir__producer_place *place = weir__producers_place(all, *at);

            weir__producer_encode(&place->p, minutes, weir__producer_record(to, i));
            *at = place->newer;
        }
        *left -= take;
        a->block.number = a->end + rows;
        a->block.records = take;
        a->block.follow = (*left + WEIR__PRODUCER_RECORDS - 1) / WEIR__PRODUCER_RECORDS;
        weir__producer_block_encode(a->log, &a->block, to);
    }
    part = weir__bytes_of(a->rows, (size_t)rows * BLOCK_BYTES);
    rc = a->file->ops->write(a->file, &part, 1, a->end * BLOCK_BYTES, err);
    a->end += rows;
    return rc;
}

/* A file of its own for the first ones, with its head. */
static int append_head(struct appending *a, struct weir_error *err)
{
    struct weir__producer_head head = {.generation = a->block.generation, .blocks = 1};
    struct weir__bytes part = weir__bytes_of(a->rows, BLOCK_BYTES);

    weir__producer_head_encode(a->log, &head, a->rows);
    a->end = 1;
    return a->file->ops->write(a->file, &part, 1, 0, err);
}

static int append_all(struct appending *a, bool fresh, struct weir_error *err)
{
    struct weir__log *log = a->log;
    uint32_t left, at = weir__producers_dirty(&log->producers, &left);
    int rc = fresh ? append_head(a, err) : 0;

    while (rc == 0 && left > 0) rc = append_rows(a, &at, &left, err);
    if (rc != 0) return rc;
    if (a->file->ops->sync(a->file, err) != 0)
        return weir__wrap(err, WEIR_EFAILED, "syncing the file of producers");
    if (fresh && !(log->o.sabotage & WEIR__LOG_SKIP_DIR_SYNC))
        rc = log->fs->ops->sync_dir(log->fs, log->dir, err);
    return rc;
}

static void appended(struct weir__log *log, const struct appending *a)
{
    struct weir__producer_file *pf = &log->producer_file;

    pf->file = a->file;
    pf->generation = a->block.generation;
    pf->turn = a->block.turn;
    __atomic_store_n(&pf->blocks, a->end, __ATOMIC_RELAXED);
    __atomic_store_n(&pf->covered, a->block.covered, __ATOMIC_RELAXED);
    weir__producers_clean(&log->producers);
}

int weir__producer_file_append(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_file *pf = &log->producer_file;
    struct appending a = {.log = log, .file = pf->file, .end = pf->blocks};
    struct weir__keep_stamp now;
    bool fresh = !pf->file;
    int rc = 0;

    if (!log->producers.newest ||
        !weir__producers_place(&log->producers, log->producers.newest)->dirty)
        return 0;
    now = weir__retention_stamp(log);
    a.block = (struct weir__producer_block){
        .generation = pf->generation,
        .turn = pf->turn + 1,
        .covered = log->visible,
        .keep_ms = now.keep_ms + now.off_ms,
    };
    a.rows = aligned_alloc(BLOCK_BYTES, (size_t)WEIR__PRODUCER_ROWS * BLOCK_BYTES);
    if (!a.rows) return weir__fail(err, WEIR_ENOMEM, "storing producers: out of memory");
    if (fresh) rc = weir__producer_file_make(log, &a.block.generation, &a.file, err);
    if (rc == 0) rc = append_all(&a, fresh, err);
    free(a.rows);
    if (rc == 0) {
        appended(log, &a);
    } else if (fresh) {
        weir__file_close(a.file);
        weir__producer_file_remove(log, a.block.generation, NULL);
    }
    return rc == 0 ? 0 : weir__wrap(err, rc, "storing producers");
}
