/* look.c - finding things: partitions, segments, index entries. Shared by readers and by
 * weir__log_find. Segments are named by number across disk operations, because the row may lose its
 * oldest ones meanwhile; one that is pinned stays whole. */
#include <inttypes.h>
#include <stdlib.h>

#include "log/state.h"

static int check_partition(const struct weir__log *log, uint32_t partition, struct weir_error *err)
{
    uint32_t partitions = weir__log_partitions(log);

    if (partition < partitions) return 0;
    return weir__fail(err, WEIR_EINVAL, "partition %u of %u", partition, partitions);
}

int weir__log_partition_info(struct weir__log *log, uint32_t partition,
                             struct weir__log_partition_info *out, struct weir_error *err)
{
    int rc = check_partition(log, partition, err);

    if (rc != 0) return rc;
    weir__mutex_lock(&log->lock);
    *out = (struct weir__log_partition_info){
        .begin_sequence = log->begin_heads[partition].next_sequence,
        .next_sequence = log->durable_heads[partition].next_sequence,
        .last_offset = log->durable_heads[partition].last_offset,
        .last_time_ms = log->durable_heads[partition].last_time_ms,
    };
    weir__mutex_unlock(&log->lock);
    return 0;
}

void weir__log_stats(struct weir__log *log, struct weir__log_stats *out)
{
    weir__mutex_lock(&log->lock);
    *out = log->stats;
    out->unflushed_bytes = log->tail.end - log->visible;
    out->segments = log->segment_count;
    out->log_bytes = log->spare ? log->spare->h.capacity : 0;
    for (size_t i = 0; i < log->segment_count; i++) out->log_bytes += log->segments[i]->h.capacity;
    out->last_time_ms = log->last_time_ms;
    weir__retention_stats(log, out);
    out->producers = log->producers.count;
    out->producers_forgotten = log->producers.forgotten;
    weir__mutex_unlock(&log->lock);
}

int weir__log_state(struct weir__log *log, struct weir_error *err)
{
    int rc;

    weir__mutex_lock(&log->lock);
    rc = weir__log_state_locked(log, err);
    weir__mutex_unlock(&log->lock);
    return rc;
}

static int ready_locked(const struct weir__log *log, uint64_t free_bytes, struct weir_error *err)
{
    const struct weir__segment *active = log->segments[log->segment_count - 1];

    if (weir__roll_waits(log))
        return weir__fail(err, log->roll_rc, "no new segment: %s", weir_error_text(log->roll_rc));
    if (active->hole_len > 0 && !log->spare && free_bytes < weir__capacity_least(log, 0))
        return weir__fail(err, WEIR_ENOSPACE, "no new segment: %s", weir_error_text(WEIR_ENOSPACE));
    return 0;
}

int weir__log_ready(struct weir__log *log, struct weir_error *err)
{
    struct weir__fs_space disk;
    int rc;

    if (log->fs->ops->space(log->fs, log->dir, &disk, NULL) != 0) disk.free_bytes = UINT64_MAX;
    weir__mutex_lock(&log->lock);
    rc = weir__log_state_locked(log, err);
    if (rc == 0) rc = ready_locked(log, disk.free_bytes, err);
    weir__mutex_unlock(&log->lock);
    return rc;
}

/* ---- segments ---- */

void weir__log_pin(struct weir__segment *seg)
{
    seg->pins++;
}

void weir__log_unpin(struct weir__log *log, struct weir__segment *seg)
{
    if (--seg->pins > 0) return;
    if (seg->removed) {
        weir__segment_close(seg);
    } else if (seg->read && log->read_files > WEIR__LOG_READ_FILES_MAX) {
        weir__file_close(seg->read);
        seg->read = NULL;
        log->read_files--;
    }
}

/* Somebody else removed it. Its events are damaged from now on. */
static void lose_file(struct weir__log *log, struct weir__segment *seg)
{
    if (seg->lost) return;
    seg->lost = true;
    log->stats.damaged_ranges++;
    weir__log_line(&log->o.logger, WEIR__ERROR, "log", "damage file=%s/%s: it is gone", log->dir,
                   seg->name);
}

int weir__log_open_read(struct weir__log *log, struct weir__segment *seg, struct weir_error *err)
{
    struct weir__file *f = NULL;
    int rc;

    if (seg->read) return 0;
    if (seg->removed || seg->lost)
        return weir__fail(err, WEIR_ENOTFOUND, "segment %s is gone", seg->name);
    weir__mutex_unlock(&log->lock);
    rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &f, err);
    weir__mutex_lock(&log->lock);
    if (rc == WEIR_ENOTFOUND && !seg->removed && !seg->file) lose_file(log, seg);
    if (rc != 0) return rc;
    if (seg->read) { /* somebody was faster */
        weir__file_close(f);
        return 0;
    }
    seg->read = f;
    if (!seg->removed) log->read_files++;
    return 0;
}

struct weir__segment *weir__log_segment_numbered(struct weir__log *log, uint64_t number)
{
    uint64_t first = log->segments[0]->h.number;

    if (number < first || number - first >= log->segment_count) return NULL;
    return log->segments[number - first];
}

/* The number of partitions is an argument from here on: it can grow while the lock is let go of,
 * and `out` cannot. */
static int stored_heads(struct weir__log *log, struct weir__segment *seg, uint32_t partitions,
                        struct weir__head *out, struct weir_error *err)
{
    int rc;

    if (seg->lost || seg->headless)
        return weir__fail(err, WEIR_ECORRUPT, "segment %s has no header", seg->name);
    weir__log_pin(seg);
    rc = weir__log_open_read(log, seg, err);
    if (rc == 0) {
        weir__mutex_unlock(&log->lock);
        rc = weir__segment_read_heads(seg->read, &seg->h, partitions, out, NULL, err);
        weir__mutex_lock(&log->lock);
    }
    weir__log_unpin(log, seg);
    return rc;
}

int weir__log_stored_heads(struct weir__log *log, struct weir__segment *seg, struct weir__head *out,
                           struct weir_error *err)
{
    return stored_heads(log, seg, log->partitions, out, err);
}

/* A partition begins with its first batch here; out is as the segment behind has it. */
static int first_entries(struct weir__log *log, struct weir__segment *seg, uint32_t partitions,
                         struct weir__head *out, struct weir_error *err)
{
    struct weir__index_chunk chunk;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < partitions; i++) {
        rc = weir__log_index_find(log, seg, i, WEIR__LOG_BY_SEQUENCE, 0, &chunk, err);
        if (rc == 0 && chunk.count && chunk.entries[0].sequence < out[i].next_sequence)
            out[i] = (struct weir__head){.next_sequence = chunk.entries[0].sequence};
    }
    return rc;
}

/* Kept with the segment: it costs a walk through it, or through several. */
static void keep_start(struct weir__segment *seg, const struct weir__head *heads, uint32_t count)
{
    struct weir__head *kept = calloc(count, sizeof *kept);

    if (!kept) return;
    memcpy(kept, heads, count * sizeof *kept);
    free(seg->start);
    seg->start = kept;
    seg->start_count = count;
}

/* WEIR_ECORRUPT: they have to be worked out. */
static int known_heads(struct weir__log *log, struct weir__segment *seg, uint32_t partitions,
                       struct weir__head *out, struct weir_error *err)
{
    uint32_t known = seg->start_count < partitions ? seg->start_count : partitions;

    if (seg == weir__log_active(log)) {
        memcpy(out, log->start_heads, partitions * sizeof *out);
        return 0;
    }
    memset(out, 0, partitions * sizeof *out);
    if (seg->h.number == 1) return 0; /* before it there was nothing */
    if (seg->start) {
        memcpy(out, seg->start, known * sizeof *out);
        return 0;
    }
    return stored_heads(log, seg, partitions, out, err);
}

static int heads_in(struct weir__log *log, uint64_t number, uint32_t partitions, bool work_out,
                    struct weir__head *out, struct weir_error *err)
{
    struct weir__segment *seg = weir__log_segment_numbered(log, number);
    int rc;

    if (!seg) return weir__fail(err, WEIR_ENOTFOUND, "segment %" PRIu64 " is gone", number);
    weir__log_pin(seg);
    if (!work_out)
        rc = known_heads(log, seg, partitions, out, err);
    else
        rc = first_entries(log, seg, partitions, out, err);
    if (rc == 0 && work_out && !seg->lost) keep_start(seg, out, partitions);
    weir__log_unpin(log, seg);
    return rc;
}

/* From the nearest segment behind whose heads are known, back to this one. There can be very many
 * between them, when their files are gone. */
static int heads_of(struct weir__log *log, struct weir__segment *seg, uint32_t partitions,
                    struct weir__head *out, struct weir_error *err)
{
    uint64_t first = seg->h.number, number = first;
    int rc = known_heads(log, seg, partitions, out, err);

    while (rc == WEIR_ECORRUPT) rc = heads_in(log, ++number, partitions, false, out, err);
    while (rc == 0 && number-- > first) rc = heads_in(log, number, partitions, true, out, err);
    return rc;
}

int weir__log_heads_of(struct weir__log *log, struct weir__segment *seg, struct weir__head *out,
                       struct weir_error *err)
{
    return heads_of(log, seg, log->partitions, out, err);
}

int weir__log_start_sequence(struct weir__log *log, struct weir__segment *seg, uint32_t partition,
                             uint64_t *out, struct weir_error *err)
{
    struct weir__head *heads;
    int rc;

    if (seg == weir__log_active(log)) {
        *out = log->start_heads[partition].next_sequence;
        return 0;
    }
    if (seg == log->segments[0]) {
        *out = log->begin_heads[partition].next_sequence;
        return 0;
    }
    heads = calloc(log->partitions, sizeof *heads);
    if (!heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    weir__log_pin(seg);
    rc = weir__log_heads_of(log, seg, heads, err);
    weir__log_unpin(log, seg);
    *out = heads[partition].next_sequence;
    free(heads);
    return rc;
}

int weir__log_segment_of(struct weir__log *log, uint32_t partition, uint64_t sequence,
                         uint64_t *out_number, struct weir_error *err)
{
    uint64_t low = log->segments[0]->h.number, high = weir__log_active(log)->h.number;

    if (sequence >= log->start_heads[partition].next_sequence) low = high;
    while (low < high) { /* the answer lies in [low, high) or is low */
        uint64_t mid = low + (high - low + 1) / 2, start;
        struct weir__segment *seg = weir__log_segment_numbered(log, mid);
        int rc;

        if (!seg) {
            low = mid; /* expired while we looked */
            continue;
        }
        rc = weir__log_start_sequence(log, seg, partition, &start, err);
        if (rc == WEIR_ENOTFOUND && !weir__log_segment_numbered(log, mid)) continue;
        if (rc != 0) return rc;
        if (start <= sequence)
            low = mid;
        else
            high = mid - 1;
    }
    *out_number = low;
    return 0;
}

/* ---- index entries ---- */

/* An index being made again from its batches, and the unreadable ranges met on the way. */
struct rebuilding {
    struct weir__index *index;
    int64_t latest_ms; /* the segment behind began then; 0: not known */
    struct range {
        uint64_t from, to;
    } lost[WEIR__LOG_DAMAGES_MAX];
    int lost_count;
};

static int keep_entry(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    struct rebuilding *r = user;
    struct weir__index_entry e = {b->h.position, b->h.sequence, b->h.time_ms, b->h.count,
                                  b->h.body_bytes};

    if (weir__index_add(r->index, b->h.partition, &e)) return 0;
    return weir__fail(err, WEIR_ENOMEM, "rebuilding an index: out of memory");
}

static int keep_range(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    struct rebuilding *r = user;

    (void)err;
    if (r->lost_count < WEIR__LOG_DAMAGES_MAX) r->lost[r->lost_count++] = (struct range){from, to};
    return 0;
}

static int walk_segment(struct weir__segment *seg, struct rebuilding *r, struct weir_error *err)
{
    struct weir__scan scan = weir__scan_sealed(seg, r->latest_ms);
    struct weir__scan_calls calls = {keep_entry, keep_range, r};
    enum weir__scan_end how;
    uint64_t end;
    int rc;

    scan.file = seg->read;
    rc = weir__scan_init(&scan, err);
    if (rc == 0) rc = weir__scan_run(&scan, seg->data, &calls, &end, &how, err);
    weir__scan_fini(&scan);
    if (rc == 0 && scan.bad.count && scan.bad.read == 0)
        rc = weir__fail(err, WEIR_EIO, "nothing of segment %s can be read", seg->name);
    return rc;
}

/* Reads every batch of a sealed segment. Without the lock; the segment is pinned. WEIR_EIO: nothing
 * at all could be read, which may pass. */
static int rebuild_index(struct weir__log *log, struct weir__segment *seg, struct rebuilding *r,
                         struct weir_error *err)
{
    int rc;

    r->index = weir__index_new(seg->h.partitions);
    if (!r->index) return weir__fail(err, WEIR_ENOMEM, "rebuilding an index: out of memory");
    weir__log_line(&log->o.logger, WEIR__WARN, "log", "rebuilding the index of segment %s/%s",
                   log->dir, seg->name);
    rc = walk_segment(seg, r, err);
    if (rc == 0) return 0;
    weir__index_free(r->index);
    r->index = NULL;
    return rc;
}

/* Lock held: the first who rebuilt it gives it to the segment. */
static void adopt_index(struct weir__log *log, struct weir__segment *seg, struct rebuilding *r)
{
    if (seg->index) {
        weir__index_free(r->index);
        return;
    }
    seg->index = r->index;
    for (int i = 0; i < r->lost_count; i++)
        weir__log_note_damage(log, seg, r->lost[i].from, r->lost[i].to);
}

struct question {
    uint32_t partition;
    bool by_number;
    uint32_t number;
    enum weir__log_by by;
    uint64_t value;
};

static int ask(const struct weir__index_source *s, const struct question *q,
               struct weir__index_chunk *out, struct weir_error *err)
{
    if (q->by_number) return weir__index_chunk(s, q->partition, q->number, out, err);
    return weir__index_find(s, q->partition, q->by, q->value, out, err);
}

static int look_up(struct weir__log *log, struct weir__segment *seg, const struct question *q,
                   struct weir__index_chunk *out, struct weir_error *err)
{
    struct weir__index_source s = {.memory = seg->index,
                                   .stamp = weir__segment_stamp(seg),
                                   .end = weir__segment_limit(seg) - seg->h.base,
                                   .partitions = seg->h.partitions};
    const struct weir__segment *behind = weir__log_segment_numbered(log, seg->h.number + 1);
    struct rebuilding again = {.latest_ms = behind ? behind->h.time_ms : 0};
    int rc;

    out->count = 0;
    if (seg->lost || q->partition >= seg->h.partitions) return 0;
    if (s.memory) return ask(&s, q, out, err);
    rc = weir__log_open_read(log, seg, err);
    if (rc != 0) return rc;
    s.file = seg->read;
    weir__mutex_unlock(&log->lock);
    rc = seg->headless ? WEIR_ECORRUPT : ask(&s, q, out, err);
    if (rc == WEIR_ECORRUPT) rc = rebuild_index(log, seg, &again, err);
    weir__mutex_lock(&log->lock);
    if (rc != 0 || !again.index) return rc;
    adopt_index(log, seg, &again);
    s.memory = seg->index;
    return ask(&s, q, out, err);
}

int weir__log_index_find(struct weir__log *log, struct weir__segment *seg, uint32_t partition,
                         enum weir__log_by by, uint64_t value, struct weir__index_chunk *out,
                         struct weir_error *err)
{
    struct question q = {.partition = partition, .by = by, .value = value};

    return look_up(log, seg, &q, out, err);
}

int weir__log_index_chunk(struct weir__log *log, struct weir__segment *seg, uint32_t partition,
                          uint32_t number, struct weir__index_chunk *out, struct weir_error *err)
{
    struct question q = {.partition = partition, .by_number = true, .number = number};

    return look_up(log, seg, &q, out, err);
}

/* ---- positions ---- */

/* The last segment that begins at or before value. */
static struct weir__segment *segment_before(struct weir__log *log, enum weir__log_by by,
                                            uint64_t value)
{
    size_t low = 0, high = log->segment_count;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct weir__segment *seg = log->segments[mid];
        uint64_t key = by == WEIR__LOG_BY_OFFSET ? seg->h.base : (uint64_t)seg->h.time_ms;

        if (key <= value)
            low = mid + 1;
        else
            high = mid;
    }
    return log->segments[low ? low - 1 : 0];
}

/* The first sequence number behind `value`, which is an offset or a time. */
static int find_behind(struct weir__log *log, uint32_t partition, enum weir__log_by by,
                       uint64_t value, uint64_t *out, struct weir_error *err)
{
    struct weir__segment *seg = segment_before(log, by, value);
    struct weir__index_chunk chunk;
    bool found = false;
    int rc;

    weir__log_pin(seg);
    rc = weir__log_index_find(log, seg, partition, by, value, &chunk, err);
    for (uint32_t i = 0; rc == 0 && i < chunk.count; i++) {
        const struct weir__index_entry *e = &chunk.entries[i];
        uint64_t key = by == WEIR__LOG_BY_OFFSET ? e->position : (uint64_t)e->time_ms;

        if (key > value) break;
        found = true;
        *out = e->sequence + e->count;
        if (by == WEIR__LOG_BY_OFFSET && value - e->position < e->count)
            *out = e->sequence + (value - e->position) + 1;
    }
    if (rc == 0 && !found) rc = weir__log_start_sequence(log, seg, partition, out, err);
    weir__log_unpin(log, seg);
    return rc;
}

int weir__log_find(struct weir__log *log, uint32_t partition, enum weir__log_by by, int64_t value,
                   bool inclusive, uint64_t *out_sequence, struct weir_error *err)
{
    uint64_t begin, next, found;
    int rc = check_partition(log, partition, err);

    if (rc != 0) return rc;
    weir__mutex_lock(&log->lock);
    if (value < 0 || (inclusive && value == 0)) {
        found = 0;
    } else if (by == WEIR__LOG_BY_SEQUENCE) {
        found = inclusive ? (uint64_t)value : (uint64_t)value + 1;
    } else { /* at value is behind the one before */
        found = 0;
        rc = find_behind(log, partition, by, (uint64_t)value - inclusive, &found, err);
        if (rc == WEIR_ENOTFOUND) rc = 0; /* it expired while we looked: the oldest will do */
    }
    begin = log->begin_heads[partition].next_sequence;
    next = log->durable_heads[partition].next_sequence;
    weir__mutex_unlock(&log->lock);
    *out_sequence = found < begin ? begin : found > next ? next : found;
    return rc;
}
