/* recover.c - from files to an open log.
 *
 * The control file says which segments are the log's. All but the last are known to be whole up to
 * the end that their successor's header names; only the last is walked. What is found there was
 * perhaps never flushed, so it is flushed before anybody sees it. An unfinished write at the end is
 * copied aside and reported, then written over.
 *
 *   found                                            becomes
 *   file of a kept number, one good header copy      a segment (the other copy is reported)
 *   kept number without a good header, not the last  a lost segment: its events answer as damaged
 *   the last one's header bad, or both controls      the log does not open; nothing is touched
 *   file of no kept number, nothing missing          the spare, or removed
 *   bad batch below the watermark                    damage: not served, not overwritten
 *   bad batch above it                               torn: cut, saved in cut-POSITION.bin */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/state.h"

#define SEGMENTS_MAX 1000000u
#define STRAYS_MAX 64

/* A segment file that is none of the log's, or whose header cannot be read. */
struct stray {
    char name[WEIR__SEGMENT_NAME_BYTES];
    uint64_t bytes;
    bool readable; /* its header is good: of a number that is not kept */
};

struct recovery {
    struct weir__log *log;
    struct stray strays[STRAYS_MAX];
    int stray_count;
    int rc;
    struct weir_error *err;
    uint64_t gap_from, gap_to;      /* damage in front of what is visited next */
    uint64_t *lost;                 /* per partition: events gone behind its last good batch */
    uint64_t lost_from, lost_bytes; /* acknowledged bytes of which nobody knows whose they were */
};

void weir__log_note_damage(struct weir__log *log, const struct weir__segment *seg, uint64_t from,
                           uint64_t to)
{
    log->stats.damaged_ranges++;
    weir__log_line(&log->o.logger, WEIR__ERROR, "log",
                   "damage file=%s/%s byte=%" PRIu64 " bytes=%" PRIu64 " position=%" PRIu64,
                   log->dir, seg->name, from - seg->h.base, to - from, from);
    if (log->damage_count == WEIR__LOG_DAMAGES_MAX) return;
    log->damages[log->damage_count] =
        (struct weir__log_damage){.from = from, .to = to, .at = from - seg->h.base};
    memcpy(log->damages[log->damage_count++].name, seg->name, sizeof seg->name);
}

/* NNNNNNNN.seg */
static bool segment_name(const char *name, uint64_t *out_number)
{
    uint64_t n = 0;
    int i = 0;

    for (; i < 8 && name[i] >= '0' && name[i] <= '9'; i++) n = n * 10 + (uint64_t)(name[i] - '0');
    *out_number = n;
    return i == 8 && strcmp(name + i, ".seg") == 0;
}

static int add_segment(struct weir__log *log, const struct weir__segment_header *h,
                       const char *name, struct weir_error *err)
{
    struct weir__segment *seg = calloc(1, sizeof *seg);
    int rc;

    if (!seg) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    seg->h = *h;
    seg->stamp = weir__batch_stamp(log->o.hub_id, h->secret);
    snprintf(seg->name, sizeof seg->name, "%s", name);
    seg->data = h->base + weir__segment_front_bytes(h->heads_bytes);
    rc = weir__log_push_segment(log, seg, err);
    if (rc != 0) weir__segment_close(seg);
    return rc;
}

static void add_stray(struct recovery *r, const char *name, uint64_t bytes, bool readable)
{
    struct stray *s;

    if (r->stray_count == STRAYS_MAX) return;
    s = &r->strays[r->stray_count++];
    snprintf(s->name, sizeof s->name, "%s", name);
    s->bytes = bytes;
    s->readable = readable;
}

/* Sorts one file: a segment of the log, or a stray. */
static int sort_file(const char *name, void *user)
{
    struct recovery *r = user;
    struct weir__log *log = r->log;
    struct weir__segment_header h;
    struct weir__file *f = NULL;
    char path[WEIR__LOG_PATH_BYTES];
    uint64_t number, bytes = 0, used = 0;
    int bad = 0, rc;

    if (!segment_name(name, &number)) return 0;
    if (number >= log->next_name) log->next_name = number + 1;
    rc = weir__log_path(log->dir, name, path, r->err);
    if (rc == 0) rc = log->fs->ops->open(log->fs, path, WEIR__FS_READ_ONLY, &f, r->err);
    if (rc == 0) rc = f->ops->size(f, &bytes, r->err);
    if (rc == 0) rc = f->ops->used(f, &used, r->err);
    if (rc == 0) rc = weir__segment_read_header(f, log->o.hub_id, &h, &bad, r->err);
    weir__file_close(f);
    if (rc == WEIR_ECORRUPT) {
        add_stray(r, name, bytes, false);
        return 0;
    }
    if (rc == 0 &&
        (h.number < log->control.first_segment || h.number > log->control.last_segment)) {
        add_stray(r, name, bytes, true);
        return 0;
    }
    if (rc == 0 && bad)
        weir__log_line(&log->o.logger, WEIR__WARN, "log",
                       "damage file=%s/%s: one copy of its header is bad, the other serves",
                       log->dir, name);
    if (rc == 0) rc = add_segment(log, &h, name, r->err);
    if (rc == 0) log->segments[log->segment_count - 1]->disk_bytes = used;
    return r->rc = rc == 0 ? 0 : weir__wrap(r->err, rc, "segment %s", name);
}

static int by_number(const void *a, const void *b)
{
    const struct weir__segment *x = *(struct weir__segment *const *)a;
    const struct weir__segment *y = *(struct weir__segment *const *)b;

    return x->h.number < y->h.number ? -1 : x->h.number > y->h.number;
}

/* Puts a lost segment where a number is missing. Its name is known when only one file can be it. */
static int fill_holes(struct recovery *r)
{
    struct weir__log *log = r->log;
    uint64_t first = log->control.first_segment, last = log->control.last_segment;
    size_t known = log->segment_count;
    const char *name = "(missing)";

    for (int i = 0; i < r->stray_count; i++)
        if (!r->strays[i].readable) name = r->strays[i].name;
    if (known == 0 || log->segments[known - 1]->h.number != last)
        return weir__fail(r->err, WEIR_ECORRUPT,
                          "the segment being written, number %" PRIu64 ", has no readable header "
                          "(file %s)",
                          last, name);
    if (last - first >= SEGMENTS_MAX)
        return weir__fail(r->err, WEIR_ECORRUPT, "control file names %" PRIu64 " segments",
                          last - first + 1);
    for (uint64_t n = first, i = 0; n < last; n++) {
        struct weir__segment_header h = {.number = n};
        int rc;

        if (i < known && log->segments[i]->h.number == n) {
            i++;
            continue;
        }
        rc = add_segment(log, &h, name, r->err);
        if (rc != 0) return rc;
        log->segments[log->segment_count - 1]->lost = true;
        weir__log_line(&log->o.logger, WEIR__ERROR, "log",
                       "damage file=%s/%s: segment %" PRIu64 " has no readable header", log->dir,
                       name, n);
        log->stats.damaged_ranges++;
    }
    if (log->segment_count > known)
        qsort(log->segments, log->segment_count, sizeof log->segments[0], by_number);
    return 0;
}

/* A lost segment gets the newest time it can have had before it: so nobody who looks for a time
 * passes over what lies before it, and that does not expire early. */
static void date_lost(struct weir__log *log)
{
    for (size_t i = log->segment_count - 1; i-- > 0;)
        if (log->segments[i]->lost) log->segments[i]->h.time_ms = log->segments[i + 1]->h.time_ms;
}

/* Checks that the row is one, and gives each segment the end its successor knows. */
static int chain_segments(struct recovery *r)
{
    struct weir__log *log = r->log;

    for (size_t i = 0; i + 1 < log->segment_count; i++) {
        struct weir__segment *seg = log->segments[i], *next = log->segments[i + 1];

        if (seg->h.number == next->h.number)
            return weir__fail(r->err, WEIR_ECORRUPT, "%s and %s are both segment %" PRIu64,
                              seg->name, next->name, seg->h.number);
        if (seg->lost) {
            uint64_t end = i ? log->segments[i - 1]->h.base + log->segments[i - 1]->h.capacity
                             : WEIR__LOG_ORIGIN;

            seg->h.base = seg->data = seg->end = end;
            if (!next->lost) seg->h.capacity = next->h.base - end;
            continue;
        }
        seg->end = next->lost ? seg->h.base + seg->h.capacity : next->h.previous_end;
        if (!next->lost && (next->h.base != seg->h.base + seg->h.capacity || seg->end < seg->data ||
                            seg->end > next->h.base))
            return weir__fail(r->err, WEIR_ECORRUPT, "segments %s and %s do not join", seg->name,
                              next->name);
    }
    return 0;
}

/* Keeps one stray as the spare when it has the right size; the rest goes, for good before another
 * file can get the number that one of them may bear. One without a header stays while a segment is
 * missing: it might be that one. */
static int clear_strays(struct recovery *r)
{
    struct weir__log *log = r->log;
    bool missing = false, removed = false;
    int rc;

    for (size_t i = 0; i < log->segment_count; i++) missing |= log->segments[i]->lost;
    for (int i = 0; i < r->stray_count; i++) {
        struct stray *s = &r->strays[i];
        char path[WEIR__LOG_PATH_BYTES];

        if (missing && !s->readable) continue;
        if (!log->spare && s->bytes == log->o.segment_bytes_max) {
            log->spare = calloc(1, sizeof *log->spare);
            if (!log->spare) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
            log->spare->h.capacity = s->bytes;
            memcpy(log->spare->name, s->name, sizeof s->name);
            continue;
        }
        rc = weir__log_path(log->dir, s->name, path, r->err);
        if (rc == 0) rc = log->fs->ops->remove(log->fs, path, r->err);
        if (rc != 0) return rc;
        removed = true;
    }
    return removed ? log->fs->ops->sync_dir(log->fs, log->dir, r->err) : 0;
}

/* ---- the last segment ---- */

/* Books the damage that was met last: to the partition that the batch behind it names, when that
 * explains all of it, else to nobody. The control file remembers what lies below its watermark. */
static void lose_gap(struct recovery *r, const struct weir__batch_before *before)
{
    uint64_t known = r->log->control.watermark, bytes = r->gap_to - r->gap_from;

    if (r->gap_to > known && before && before->bytes == bytes &&
        before->partition < r->log->partitions) {
        r->lost[before->partition] += before->count;
    } else if (r->gap_to > known) {
        r->lost_from = r->gap_from;
        r->lost_bytes += r->gap_to - (r->gap_from > known ? r->gap_from : known);
    }
    r->gap_from = r->gap_to = 0;
}

static int take_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    struct recovery *r = user;
    struct weir__log *log = r->log;
    struct weir__head *head = &log->heads[b->h.partition];
    const struct weir__batch_header *h = &b->h;
    struct weir__index_entry e = {h->position, h->sequence, h->time_ms, h->count, h->body_bytes};

    lose_gap(r, h->position == r->gap_to ? &h->before : NULL);
    r->lost[h->partition] = 0; /* its own number says how many are missing */
    if (h->sequence < head->next_sequence)
        return weir__fail(err, WEIR_ECORRUPT,
                          "batch at position %" PRIu64 " repeats sequence %" PRIu64
                          " of partition %u",
                          h->position, h->sequence, h->partition);
    if (!b->body_good)
        weir__log_note_damage(log, weir__log_active(log), h->position,
                              h->position + weir__batch_bytes(h->body_bytes));
    if (!weir__index_add(weir__log_active(log)->index, h->partition, &e))
        return weir__fail(err, WEIR_ENOMEM, "out of memory");
    *head = (struct weir__head){h->sequence + h->count, h->position + h->count - 1, h->time_ms};
    if (h->time_ms > log->last_time_ms) log->last_time_ms = h->time_ms;
    if (log->active_since_ms == 0) log->active_since_ms = h->time_ms;
    if (!weir__producers_learn_batch(&log->producers, h, weir__control_keep_ms(&log->control)))
        return weir__fail(err, WEIR_ENOMEM, "out of memory");
    return 0;
}

static int take_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    struct recovery *r = user;

    (void)err;
    weir__log_note_damage(r->log, weir__log_active(r->log), from, to);
    if (r->gap_to != from) {
        lose_gap(r, NULL);
        r->gap_from = from;
    }
    r->gap_to = to;
    return 0;
}

/* No sequence number may be given twice, also when the batch that used it is unreadable. */
static void pass_lost_sequences(struct recovery *r)
{
    struct weir__log *log = r->log;

    lose_gap(r, NULL);
    for (uint32_t i = 0; i < log->partitions; i++) {
        struct weir__head *head = &log->heads[i];
        const struct weir__head *known = &log->control.heads[i];

        if (head->next_sequence < known->next_sequence) *head = *known;
        if (r->lost_bytes && head->last_offset < r->lost_from)
            head->next_sequence += r->lost_bytes; /* no batch holds more events than bytes */
        head->next_sequence += r->lost[i];
        if (head->last_time_ms > log->last_time_ms) log->last_time_ms = head->last_time_ms;
    }
}

/* Bytes of the active segment from file offset `at` on, into f. */
static int copy_out(struct recovery *r, const struct weir__scan *s, uint64_t at, uint64_t len,
                    struct weir__file *f)
{
    uint64_t done = 0;

    while (done < len) {
        uint64_t begin = weir__round_down(at + done, WEIR__FS_BLOCK);
        size_t got = 0, skip = at + done - begin;
        struct weir__bytes part;
        int rc = s->file->ops->read(s->file, s->window, s->window_cap, begin, &got, r->err);

        if (rc != 0 || got <= skip) return rc;
        if (got - skip > len - done) got = skip + (len - done);
        part = weir__bytes_of(s->window + skip, got - skip);
        rc = f->ops->write(f, &part, 1, done, r->err);
        if (rc != 0) return rc;
        done += part.len;
    }
    return 0;
}

/* Copies what lies behind the end aside: all that one group can have written. */
static int save_cut(struct recovery *r, const struct weir__scan *s, uint64_t end)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    uint64_t len =
        s->torn_bytes > WEIR__LOG_GROUP_BYTES_MAX ? s->torn_bytes : WEIR__LOG_GROUP_BYTES_MAX;
    char name[64], path[WEIR__LOG_PATH_BYTES];
    struct weir__file *f = NULL;
    int rc;

    if (len > s->limit - end) len = s->limit - end;
    snprintf(name, sizeof name, "cut-%" PRIu64 "-%u.bin", end, log->control.epoch);
    rc = weir__log_path(log->dir, name, path, r->err);
    if (rc == 0) rc = log->fs->ops->open(log->fs, path, WEIR__FS_CREATE, &f, r->err);
    if (rc == WEIR_EEXIST) /* an opening that did not get to its end began it */
        rc = log->fs->ops->open(log->fs, path, 0, &f, r->err);
    if (rc == 0) rc = copy_out(r, s, end - seg->h.base, len, f);
    if (rc == 0) rc = f->ops->sync(f, r->err);
    weir__file_close(f);
    if (rc == 0) rc = log->fs->ops->sync_dir(log->fs, log->dir, r->err);
    if (rc != 0) return weir__wrap(r->err, rc, "saving an unfinished write aside as %s", name);
    weir__log_line(&log->o.logger, WEIR__WARN, "log",
                   "cut file=%s/%s byte=%" PRIu64 ": an unfinished write, saved as %s; it can have "
                   "been acknowledged only if the disk lost a completed flush",
                   log->dir, seg->name, end - seg->h.base, name);
    return 0;
}

/* Reads the 4 KiB around the end, which the next group will write again. */
static int load_partial(struct weir__log *log, uint64_t end, struct weir_error *err)
{
    struct weir__segment *seg = weir__log_active(log);
    uint64_t at = weir__round_down(end - seg->h.base, WEIR__FS_BLOCK);
    size_t got = 0, keep = end - seg->h.base - at;
    int rc = seg->file->ops->read(seg->file, log->tail.partial, WEIR__FS_BLOCK, at, &got, err);

    if (rc != 0) return rc;
    memset(log->tail.partial + keep, 0, WEIR__FS_BLOCK - keep);
    weir__tail_jump(&log->tail, end);
    return 0;
}

static int walk_active(struct recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    struct weir__scan scan = {
        .file = seg->file,
        .segment = seg,
        .limit = seg->h.base + seg->h.capacity - weir__segment_front_bytes(seg->h.heads_bytes),
        .proof = log->control.watermark,
        .epoch_start = log->control.epoch_start,
        .epoch = log->control.epoch,
        .partitions = seg->h.partitions,
    };
    struct weir__scan_calls calls = {take_batch, take_damage, r};
    enum weir__scan_end how;
    uint64_t end = seg->data;
    int rc;

    if (scan.proof > scan.limit)
        return weir__fail(r->err, WEIR_ECORRUPT, "the control file's watermark lies behind it");
    rc = weir__scan_init(&scan, r->err);
    if (rc == 0) rc = weir__scan_run(&scan, seg->data, &calls, &end, &how, r->err);
    if (rc == 0 && end < log->control.watermark) end = log->control.watermark;
    if (rc == 0 && how == WEIR__SCAN_TORN) rc = save_cut(r, &scan, end);
    weir__scan_fini(&scan);
    if (rc != 0) return rc;
    pass_lost_sequences(r);
    seg->end = end;
    log->visible = log->synced = end;
    weir__producers_cut(&log->producers, end);
    return load_partial(log, end, r->err);
}

static int open_active(struct recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = weir__log_active(log);
    char path[WEIR__LOG_PATH_BYTES];
    int rc = weir__log_path(log->dir, seg->name, path, r->err);

    if (rc == 0) rc = log->fs->ops->open(log->fs, path, WEIR__FS_DIRECT, &seg->file, r->err);
    if (rc == 0) rc = weir__producer_file_load(log, r->err);
    if (rc == 0)
        rc = weir__segment_read_heads(seg->file, &seg->h, log->partitions, log->heads,
                                      &log->producers, r->err);
    if (rc != 0) return weir__wrap(r->err, rc, "segment %s", seg->name);
    seg->index = weir__index_new(seg->h.partitions);
    if (!seg->index) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    memcpy(log->start_heads, log->heads, log->partitions * sizeof *log->heads);
    log->last_time_ms = seg->h.time_ms;
    rc = walk_active(r);
    if (rc == 0) rc = seg->file->ops->sync(seg->file, r->err);
    return rc == 0 ? 0 : weir__wrap(r->err, rc, "segment %s", seg->name);
}

/* Where each partition begins: what the oldest readable segment's header says. */
static int load_begin(struct weir__log *log, struct weir_error *err)
{
    struct weir__segment *seg = log->segments[0];
    struct weir__file *f = NULL;
    char path[WEIR__LOG_PATH_BYTES];
    int rc;

    for (size_t i = 1; seg->lost; i++) seg = log->segments[i];
    if (seg == weir__log_active(log)) {
        memcpy(log->begin_heads, log->start_heads, log->partitions * sizeof *log->heads);
        return 0;
    }
    rc = weir__log_path(log->dir, seg->name, path, err);
    if (rc == 0) rc = log->fs->ops->open(log->fs, path, WEIR__FS_READ_ONLY, &f, err);
    if (rc == 0)
        rc = weir__segment_read_heads(f, &seg->h, log->partitions, log->begin_heads, NULL, err);
    weir__file_close(f);
    for (uint32_t i = 0; rc == 0 && i < log->partitions; i++)
        if (log->begin_heads[i].next_sequence > log->heads[i].next_sequence)
            rc = weir__fail(err, WEIR_ECORRUPT, "segment %s: partition %u begins behind its end",
                            seg->name, i);
    return rc;
}

/* Finds the log's segments and puts them in order. Changes nothing on disk. */
static int gather(struct recovery *r)
{
    struct weir__log *log = r->log;
    int rc = log->fs->ops->list(log->fs, log->dir, sort_file, r, r->err);

    if (rc == 0) rc = r->rc;
    if (rc != 0) return rc;
    if (log->segment_count)
        qsort(log->segments, log->segment_count, sizeof log->segments[0], by_number);
    rc = fill_holes(r);
    if (rc != 0) return rc;
    date_lost(log);
    return chain_segments(r);
}

int weir__log_gather(struct weir__log *log, struct weir_error *err)
{
    struct recovery r = {.log = log, .err = err};

    return gather(&r);
}

int weir__log_recover(struct weir__log *log, struct weir_error *err)
{
    struct recovery r = {.log = log, .err = err};
    int rc = 0;

    r.lost = calloc(log->partitions, sizeof *r.lost);
    if (!r.lost) rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    if (rc == 0) rc = gather(&r);
    if (rc == 0) rc = open_active(&r);
    if (rc == 0) rc = clear_strays(&r);
    free(r.lost);
    if (rc != 0) return rc;
    memcpy(log->durable_heads, log->heads, log->partitions * sizeof *log->heads);
    return load_begin(log, err);
}
