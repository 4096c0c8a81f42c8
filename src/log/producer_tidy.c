/* producer_tidy.c - a new generation of the file of producers, when most of the old one is of no
 * use any more.
 *
 * The keeper writes it, a piece per look, while batches come and segments roll. The file must tell
 * of every batch below a position: where the active segment begins, or what the last append
 * covered when that is more. One pass goes through the producers in the order of their last use
 * and takes those whose last batch lies below it. When a roll has moved the position meanwhile,
 * another pass takes what lies between. Somebody whose newest batch is not durable yet may have to
 * be known by the one before: the queue has that, and the end of the work, done with the lead and
 * so without a roll or a commit, takes it from there. When batches were taken back in between, what
 * was read of the table no longer holds, and it all begins again.
 *
 *   1  blocks, and a head of zeros; synced
 *   2  with the lead: what is left, synced; then the head, synced; then the name
 *   3  the old file goes
 *
 * Up to 2 a crash leaves the old one in force, from then on the new one. Should 2 fail and the file
 * not go away either, it is outlived: an opening takes the one that has the last append. */
#include <stdlib.h>

#include "log/state.h"

#define BLOCK_BYTES WEIR__FS_BLOCK
#define USELESS_TIMES 2u         /* so many times what is needed is too much */
#define PLACES_AT_ONCE 256u      /* looked at under the lock */
#define BLOCKS_PER_LOOK 4096u    /* written in one look, 16 MiB */
#define PLACES_PER_LOOK 2000000u /* looked at in one look */
#define FORGET_PER_LOOK 1024u    /* of the too old */
#define AGAIN_MS INT64_C(60000)  /* after a failure */

enum progress { TIDY_ON, TIDY_DONE };

static bool due(const struct weir__log *log, int64_t mono_ms)
{
    const struct weir__producer_file *pf = &log->producer_file;
    uint64_t blocks = __atomic_load_n(&pf->blocks, __ATOMIC_RELAXED);
    uint64_t needed = 1 + log->producers.count / WEIR__PRODUCER_RECORDS;

    if (blocks == 0 || mono_ms < pf->next.not_before) return false;
    return pf->damaged ||
           (blocks > log->o.producers_tidy_blocks && blocks > USELESS_TIMES * needed);
}

/* Every batch below it must be in the file. */
static uint64_t must_cover(struct weir__log *log)
{
    uint64_t covered = __atomic_load_n(&log->producer_file.covered, __ATOMIC_RELAXED);
    uint64_t data = weir__log_active(log)->data;

    return covered > data ? covered : data;
}

static void abandon(struct weir__log *log)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    int64_t not_before = t->not_before;

    if (t->file) {
        weir__mutex_unlock(&log->lock);
        weir__file_close(t->file);
        weir__producer_file_remove(log, t->generation, NULL);
        weir__mutex_lock(&log->lock);
    }
    free(t->rows);
    *t = (struct weir__producer_tidy){.not_before = not_before};
    log->producers.cursor = 0;
}

static int begin(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    struct weir__bytes part;
    int rc;

    t->rows = aligned_alloc(BLOCK_BYTES, (size_t)WEIR__PRODUCER_ROWS * BLOCK_BYTES);
    if (!t->rows) return weir__fail(err, WEIR_ENOMEM, "tidying producers: out of memory");
    memset(t->rows, 0, BLOCK_BYTES);
    part = weir__bytes_of(t->rows, BLOCK_BYTES);
    t->to = must_cover(log);
    t->undone = log->producers.undone;
    t->blocks = 1;
    log->producers.cursor = log->producers.oldest;
    weir__mutex_unlock(&log->lock);
    rc = weir__producer_file_make(log, &t->generation, &t->file, err);
    if (rc == 0) rc = t->file->ops->write(t->file, &part, 1, 0, err);
    weir__mutex_lock(&log->lock);
    return rc;
}

/* Completes the block that is being filled. */
static void close_block(struct weir__log *log)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    struct weir__producer_block b = {
        .generation = t->generation,
        .number = t->blocks + t->row_blocks,
        .covered = t->to,
        .keep_ms = weir__log_keep_ms(log),
        .records = t->records,
    };

    if (t->records == 0) return;
    weir__producer_block_encode(log, &b, t->rows + (size_t)t->row_blocks * BLOCK_BYTES);
    t->row_blocks++;
    t->records = 0;
}

static void add_record(struct weir__log *log, const struct weir__producer *p)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    uint8_t *block = t->rows + (size_t)t->row_blocks * BLOCK_BYTES;

    weir__producer_encode(p, weir__producer_minutes(weir__log_keep_ms(log)),
                          weir__producer_record(block, t->records));
    if (++t->records == WEIR__PRODUCER_RECORDS) close_block(log);
}

/* The full blocks go to the file. Without the lock. */
static int write_rows(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    struct weir__bytes part = weir__bytes_of(t->rows, (size_t)t->row_blocks * BLOCK_BYTES);
    int rc = 0;

    if (t->row_blocks) rc = t->file->ops->write(t->file, &part, 1, t->blocks * BLOCK_BYTES, err);
    t->blocks += t->row_blocks;
    t->row_blocks = 0;
    return rc;
}

/* Takes records until the rows are full, the pass has ended, or enough were looked at. */
static uint32_t fill_rows(struct weir__log *log)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    struct weir__producers *all = &log->producers;
    uint32_t seen = 0;

    while (all->cursor && seen < PLACES_AT_ONCE && t->row_blocks < WEIR__PRODUCER_ROWS) {
        const struct weir__producer_place *at = weir__producers_place(all, all->cursor);

        if (at->p.offset >= t->from && at->p.offset < t->to) add_record(log, &at->p);
        all->cursor = at->newer;
        seen++;
    }
    return seen;
}

/* One pass, or as much of it as one look may take. */
static int walk(struct weir__log *log, uint32_t *places_left, enum progress *out,
                struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    uint64_t end = t->blocks + BLOCKS_PER_LOOK;
    int rc = 0;

    *out = TIDY_ON;
    while (rc == 0 && t->blocks < end) {
        uint32_t seen = fill_rows(log);

        if (log->producers.cursor == 0) {
            *out = TIDY_DONE;
            return 0;
        }
        *places_left = seen < *places_left ? *places_left - seen : 0;
        if (*places_left == 0) return 0;
        weir__mutex_unlock(&log->lock); /* also for those who wait for it */
        if (t->row_blocks == WEIR__PRODUCER_ROWS) rc = write_rows(log, err);
        weir__mutex_lock(&log->lock);
        if (log->closing || t->undone != log->producers.undone) return rc;
    }
    return rc;
}

/* What the queue knows of producers whose newest batch is not durable. With the lead and the lock;
 * lets go of that when there is something to write. */
static int take_before(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    uint64_t end = log->queue_tail;
    int rc = 0;

    for (uint64_t i = log->queue_commit; rc == 0 && i < end; i++) {
        const struct weir__log_pending *p = &log->queue[i & (log->queue_cap - 1)];

        if (p->body_bytes == 0 || p->producer_id == 0) continue;
        if (p->before.id == 0 || p->before.offset >= t->to) continue;
        add_record(log, &p->before);
        if (t->row_blocks < WEIR__PRODUCER_ROWS) continue;
        weir__mutex_unlock(&log->lock);
        rc = write_rows(log, err);
        weir__mutex_lock(&log->lock);
    }
    close_block(log);
    return rc;
}

/* The rest, and then the head. Without the lock, with the lead. */
static int complete(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    struct weir__producer_head head = {.generation = t->generation,
                                       .turn = log->producer_file.turn};
    struct weir__bytes part = weir__bytes_of(t->rows, BLOCK_BYTES);
    int rc = write_rows(log, err);

    if (rc == 0) rc = t->file->ops->sync(t->file, err);
    if (rc != 0) return rc;
    head.blocks = t->blocks;
    weir__producer_head_encode(log, &head, t->rows);
    rc = t->file->ops->write(t->file, &part, 1, 0, err);
    if (rc == 0) rc = t->file->ops->sync(t->file, err);
    if (rc == 0) rc = log->fs->ops->sync_dir(log->fs, log->dir, err);
    return rc;
}

/* The new one takes the place of the old one, which is returned. */
static struct weir__file *replace(struct weir__log *log)
{
    struct weir__producer_file *pf = &log->producer_file;
    struct weir__file *old = pf->file;

    pf->file = pf->next.file;
    pf->generation = pf->next.generation;
    __atomic_store_n(&pf->blocks, pf->next.blocks, __ATOMIC_RELAXED);
    pf->damaged = false;
    free(pf->next.rows);
    pf->next = (struct weir__producer_tidy){0};
    return old;
}

/* The last pass has ended. False in *out_done: a roll was faster, and there must be another. */
static int finish(struct weir__log *log, bool *out_done, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    uint64_t old = log->producer_file.generation;
    struct weir__file *gone = NULL;
    int rc = 0;

    weir__log_take_lead(log);
    *out_done = !log->failed && t->undone == log->producers.undone && t->to == must_cover(log);
    if (*out_done) {
        rc = take_before(log, err);
        weir__mutex_unlock(&log->lock);
        if (rc == 0) rc = complete(log, err);
        weir__mutex_lock(&log->lock);
        if (rc == 0) gone = replace(log);
    }
    weir__log_give_lead(log);
    if (!gone) return rc;
    weir__mutex_unlock(&log->lock);
    weir__file_close(gone);
    weir__producer_file_remove(log, old, NULL);
    weir__mutex_lock(&log->lock);
    return 0;
}

/* The bulk on disk before anybody has to wait for the rest. */
static int sync_bulk(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    int rc;

    weir__mutex_unlock(&log->lock);
    rc = write_rows(log, err);
    if (rc == 0) rc = t->file->ops->sync(t->file, err);
    weir__mutex_lock(&log->lock);
    return rc;
}

/* Goes on until it is done, or for as long as one look may take. */
static int go_on(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    uint32_t places_left = PLACES_PER_LOOK;
    enum progress progress = TIDY_ON;
    bool done = false;
    int rc = 0;

    while (rc == 0 && !done && !log->closing && !log->failed) {
        rc = walk(log, &places_left, &progress, err);
        if (rc != 0 || progress == TIDY_ON || log->closing) return rc;
        close_block(log);
        rc = sync_bulk(log, err);
        if (rc == 0 && t->to == must_cover(log)) rc = finish(log, &done, err);
        if (rc != 0 || done || t->undone != log->producers.undone) return rc;
        t->from = t->to;
        t->to = must_cover(log);
        log->producers.cursor = log->producers.oldest;
    }
    return rc;
}

static void forget_old(struct weir__log *log)
{
    uint32_t now = weir__producer_minutes(weir__log_keep_ms(log));

    weir__producers_forget(&log->producers, now, FORGET_PER_LOOK);
    weir__producers_forget(&log->begun, now, FORGET_PER_LOOK);
}

int weir__producer_file_tidy(struct weir__log *log, struct weir_error *err)
{
    struct weir__producer_tidy *t = &log->producer_file.next;
    int64_t mono_ms = log->o.clock.mono_ms(log->o.clock.self);
    int rc = 0;

    if (log->failed) return 0;
    if (!log->leading) forget_old(log); /* a roll reads the table without the lock */
    if (!t->file && !due(log, mono_ms)) return 0;
    if (!t->file) rc = begin(log, err);
    if (rc == 0) rc = go_on(log, err);
    if (rc != 0) t->not_before = mono_ms + AGAIN_MS;
    if (rc != 0 || (t->file && t->undone != log->producers.undone)) abandon(log);
    return rc == 0 ? 0 : weir__wrap(err, rc, "tidying producers");
}
