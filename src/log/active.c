/* active.c - walking the segment that was being appended to.
 *
 * Only it can have bytes that nobody knows of yet. What is found was perhaps never flushed, so it
 * is flushed before anybody sees it. An unfinished write at the end is copied aside and reported,
 * then written over, unless the segment has to be left: because its header is gone, because it is of
 * an older format, because some of it cannot be read, which must not be written over, or because its
 * file is not as long as it was. */
#include <inttypes.h>
#include <stdlib.h>

#include "log/recover.h"

static int take_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    struct weir__recovery *r = user;
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    const struct weir__batch_header *h = &b->h;
    struct weir__index_entry e = {h->position, h->sequence, h->time_ms, h->count, h->body_bytes};

    weir__gaps_batch(&r->gaps, h);
    if (!b->body_good)
        weir__log_note_damage(log, seg, h->position,
                              h->position + weir__batch_bytes(h->body_bytes));
    if (!weir__index_add(seg->index, h->partition, &e))
        return weir__fail(err, WEIR_ENOMEM, "out of memory");
    log->heads[h->partition] = weir__batch_head(h);
    if (h->time_ms > log->last_time_ms) log->last_time_ms = h->time_ms;
    if (log->active_since_ms == 0) log->active_since_ms = h->time_ms;
    if (weir__producers_learn_batch(&log->producers, h, weir__control_keep_ms(&log->control)))
        return 0;
    return weir__fail(err, WEIR_ENOMEM, "out of memory");
}

static int take_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    struct weir__recovery *r = user;

    (void)err;
    weir__log_note_damage(r->log, weir__log_active(r->log), from, to);
    weir__gaps_damage(&r->gaps, from, to);
    return 0;
}

static void pass_lost_sequences(struct weir__recovery *r)
{
    struct weir__log *log = r->log;

    weir__gaps_pass(&r->gaps, log->control.heads, log->heads);
    for (uint32_t i = 0; i < log->partitions; i++)
        if (log->heads[i].last_time_ms > log->last_time_ms)
            log->last_time_ms = log->heads[i].last_time_ms;
}

/* Reads the 4 KiB around the end, which the next group will write again. */
static int load_partial(struct weir__recovery *r, uint64_t end, struct weir_error *err)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    uint64_t at = weir__round_down(end - seg->h.base, WEIR__FS_BLOCK);
    size_t got = 0;
    struct weir__bad_blocks bad = {0};
    int rc = 0;

    if (seg->file)
        rc = weir__blocks_read(seg->file, log->tail.partial, WEIR__FS_BLOCK, at, &got, &bad, err);
    if (rc != 0) return rc;
    if (bad.count) seg->spoilt = true;
    weir__tail_jump(&log->tail, end);
    return 0;
}

/* More openings than the control file knows of have gone by, perhaps some that left no batch. Their
 * unfinished writes must not pass for those of this one. */
static void settle_epoch(struct weir__recovery *r, const struct weir__scan *scan)
{
    struct weir__control *c = &r->log->control;
    bool old = weir__recovery_control_is_old(r, scan->later_at);

    if (!old && !r->unsure) return;
    r->end_unknown = true;
    if (scan->found_epoch > c->epoch) c->epoch = scan->found_epoch;
    c->epoch += WEIR__CONTROL_EPOCH_STEP;
}

/* Nothing is written over what may have been acknowledged: a batch with a bad body, or some whose headers are
 * gone. */
static int protect_rest(const struct weir__recovery *r, struct weir__scan *scan, uint64_t end,
                        bool torn)
{
    struct weir__segment *seg = weir__log_active(r->log);
    bool blank = true;
    int rc = 0;

    if (!r->end_unknown) return 0;
    rc = weir__scan_blank(scan, end, &blank, r->err);
    if (torn || !blank) seg->spoilt = true;
    if (!torn && !blank)
        weir__log_line(&r->log->o.logger, WEIR__WARN, "log",
                       "kept file=%s/%s byte=%" PRIu64 ": no control file says whether batches "
                       "follow; appending goes on in a new segment",
                       r->log->dir, seg->name, end - seg->h.base);
    return rc;
}

static int walk(struct weir__recovery *r, bool start_known)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    struct weir__batch_stamp open = weir__batch_stamp(log->o.hub_id, 0);
    struct weir__scan_calls calls = {take_batch, take_damage, r};
    struct weir__scan scan = weir__scan_active(log, r->unsure);
    enum weir__scan_end how = WEIR__SCAN_END;
    uint64_t end = seg->data;
    int rc;

    scan.file = seg->file;
    scan.start = start_known ? log->heads : NULL;
    rc = weir__scan_init(&scan, r->err);
    if (log->o.sabotage & WEIR__LOG_TRUST_FOUND) scan.trusted = &open;
    if (rc == 0) rc = weir__scan_run(&scan, seg->data, &calls, &end, &how, r->err);
    if (rc == 0) settle_epoch(r, &scan);
    if (rc == 0 && !r->unsure && end < log->control.watermark) end = log->control.watermark;
    if (end < seg->data) end = seg->data;
    if (rc == 0) rc = protect_rest(r, &scan, end, how == WEIR__SCAN_TORN);
    if (rc == 0 && how == WEIR__SCAN_TORN)
        rc = weir__cut_save(log, &scan, end, r->end_unknown, r->err);
    seg->spoilt |=
        scan.bad.count && scan.bad.last >= weir__round_down(end - seg->h.base, WEIR__FS_BLOCK);
    weir__scan_fini(&scan);
    seg->end = end;
    return rc;
}

/* ---- where the partitions begin, when the segment's own heads are gone ---- */

static int last_entry(struct weir__log *log, struct weir__segment *seg, uint32_t partition,
                      struct weir__head *out, struct weir_error *err)
{
    struct weir__index_chunk chunk;
    int rc =
        weir__log_index_find(log, seg, partition, WEIR__LOG_BY_SEQUENCE, UINT64_MAX, &chunk, err);

    if (rc != 0 || chunk.count == 0) return rc;
    *out = (struct weir__head){chunk.entries[chunk.count - 1].sequence +
                                   chunk.entries[chunk.count - 1].count,
                               chunk.entries[chunk.count - 1].position +
                                   chunk.entries[chunk.count - 1].count - 1,
                               chunk.entries[chunk.count - 1].time_ms};
    return 0;
}

/* The ends of the partitions that are not known yet, by one segment's batches and stored heads.
 * *out_all: now they are all known. */
static int ends_in(struct weir__recovery *r, struct weir__segment *seg, bool *known, bool *out_all)
{
    struct weir__log *log = r->log;
    struct weir__head *stored = calloc(log->partitions, sizeof *stored);
    int rc = stored ? 0 : weir__fail(r->err, WEIR_ENOMEM, "out of memory");

    for (uint32_t i = 0; rc == 0 && i < log->partitions; i++) {
        if (known[i]) continue;
        rc = last_entry(log, seg, i, &log->heads[i], r->err);
        known[i] = log->heads[i].next_sequence > 0;
    }
    if (rc == 0) rc = weir__log_stored_heads(log, seg, stored, r->err);
    *out_all = rc == 0;
    for (uint32_t i = 0; rc == 0 && i < log->partitions; i++)
        if (!known[i]) log->heads[i] = stored[i];
    free(stored);
    return rc == WEIR_ECORRUPT ? 0 : rc;
}

/* What was in the lost segments from the i-th on, nobody knows. */
static void lose_between(struct weir__recovery *r, size_t i)
{
    const struct weir__log *log = r->log;

    for (; i + 1 < log->segment_count; i++) {
        const struct weir__segment *seg = log->segments[i];

        if (seg->lost) weir__gaps_damage(&r->gaps, seg->h.base, seg->h.base + seg->h.capacity);
    }
}

/* The heads at the end of the segments before. The control file has them, but when that is gone. */
static int heads_before(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    size_t i = log->segment_count - 1;
    bool *known, all = false;
    int rc = 0;

    if (!r->unsure) return 0;
    known = calloc(log->partitions, sizeof *known);
    if (!known) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    weir__mutex_lock(&log->lock);
    while (rc == 0 && !all && i-- > 0)
        if (!log->segments[i]->lost) rc = ends_in(r, log->segments[i], known, &all);
    weir__mutex_unlock(&log->lock);
    free(known);
    if (rc == 0) lose_between(r, all ? i : 0);
    return rc;
}

/* After the walk: each partition begins with its first batch here, or has none. In front of the first
 * segment of all there was nothing. Of a lost one nobody knows where it began: what it can have had
 * behind the control file's heads is told as lost. */
static int settle_start(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    struct weir__index_source s = {.memory = seg->index, .partitions = seg->h.partitions};
    struct weir__index_chunk chunk;
    int rc = 0;

    if (seg->h.number == 1) {
        memset(log->start_heads, 0, log->partitions * sizeof *log->start_heads);
        return 0;
    }
    for (uint32_t i = 0; rc == 0 && i < log->partitions; i++) {
        log->start_heads[i] = seg->lost && !r->unsure ? log->control.heads[i] : log->heads[i];
        if (i >= seg->h.partitions) continue;
        rc = weir__index_find(&s, i, WEIR__LOG_BY_SEQUENCE, 0, &chunk, r->err);
        if (rc == 0 && chunk.count)
            log->start_heads[i] = (struct weir__head){.next_sequence = chunk.entries[0].sequence};
    }
    return rc;
}

/* Only words depend on it: without memory there are fewer. */
static void keep_sure(struct weir__log *log)
{
    size_t bytes = log->partitions * sizeof *log->sure_heads;

    log->sure_heads = malloc(bytes);
    if (!log->sure_heads) return;
    memcpy(log->sure_heads, log->control.heads, bytes);
    log->sure_count = log->partitions;
    log->sure_segment = weir__log_active(log)->h.number;
}

/* Without a file nobody knows what was written behind the watermark. */
static void lose_all(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);

    if (r->unsure || log->control.watermark >= seg->h.base + seg->h.capacity) return;
    if (weir__gaps_lose(&r->gaps, &log->control, seg)) keep_sure(log);
    seg->end = log->control.watermark > seg->data ? log->control.watermark : seg->data;
}

static int open_file(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);

    return weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_DIRECT, &seg->file, r->err);
}

/* The heads before the first batch; *out_known false when they had to be guessed at. */
static int load_heads(struct weir__recovery *r, bool *out_known)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    int rc = WEIR_ECORRUPT;

    if (!seg->headless && !seg->lost)
        rc = weir__segment_read_heads(seg->file, &seg->h, log->partitions, log->heads,
                                      &log->producers, r->err);
    *out_known = rc == 0;
    if (rc != WEIR_ECORRUPT) return rc;
    if (!seg->headless && !seg->lost)
        weir__recovery_tell(r, WEIR__LOG_HEADER, seg->name,
                            "where the partitions began cannot be read in either copy");
    memset(log->heads, 0, log->partitions * sizeof *log->heads);
    return heads_before(r);
}

static int walk_file(struct weir__recovery *r, bool start_known)
{
    struct weir__segment *seg = weir__log_active(r->log);
    int rc = walk(r, start_known);

    if (rc == 0) rc = seg->file->ops->sync(seg->file, r->err);
    return rc;
}

int weir__active_open(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    bool known = true;
    int rc = seg->lost ? 0 : open_file(r);

    seg->index = weir__index_new(seg->h.partitions);
    if (rc == 0 && !seg->index) rc = weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    if (rc == 0) rc = weir__producer_file_load(log, r->err);
    if (rc == 0) rc = load_heads(r, &known);
    if (rc != 0) return weir__wrap(r->err, rc, "segment %s", seg->name);
    memcpy(log->start_heads, log->heads, log->partitions * sizeof *log->heads);
    log->last_time_ms = seg->h.time_ms;
    if (seg->lost)
        lose_all(r);
    else
        rc = walk_file(r, known);
    if (rc == 0) pass_lost_sequences(r);
    if (rc == 0 && !known) rc = settle_start(r);
    log->visible = log->synced = seg->end;
    weir__producers_cut(&log->producers, seg->end);
    if (rc == 0) rc = load_partial(r, seg->end, r->err);
    log->roll_first = r->end_unknown && seg->spoilt;
    log->must_roll = seg->lost || seg->headless || seg->spoilt || seg->h.version < 2;
    return rc == 0 ? 0 : weir__wrap(r->err, rc, "segment %s", seg->name);
}
