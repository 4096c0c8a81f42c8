/* inspect.c - checking a log that nobody has open: every batch, every index, every header copy.
 * Reads only, and finds what an opening would find, in the same way. Knows what is missing by
 * counting: sequence numbers are dense, so a hole in them is damage, and whatever unreadable range
 * lies before the hole is its place. Where a partition begins cannot always be read: then it begins
 * with the first batch that is met. */
#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/recover.h"

#define TEXT_BYTES 256
#define UNKNOWN UINT64_MAX /* where a partition stands */

struct inspection {
    struct weir__log *log;
    struct weir__segment *segment;
    char path[WEIR__LOG_PATH_BYTES];
    struct weir__index *index;     /* as it should be */
    struct weir__head *expect;     /* next sequence of each partition */
    uint64_t range_from, range_to; /* the last unreadable range, log positions; 0: none */
    bool range_told;
    uint64_t batches, events, damaged;
    struct weir__recovery recovery;
    uint64_t later_at;       /* of a batch that is newer than the control file */
    struct weir__gaps *gaps; /* of the last segment; NULL before it */
    bool unsure;             /* the control file does not know the end */
    bool all_known;          /* where every partition stands */
    bool guessed;            /* the last segment is lost, and with it how much was in it */
    void (*fn)(const struct weir__log_finding *, void *user);
    void *user;
};

__attribute__((format(printf, 3, 4))) static void
tell(struct inspection *in, struct weir__log_finding *f, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    f->text = text;
    f->file = in->path;
    in->damaged += f->kind == WEIR__LOG_DAMAGE || f->kind == WEIR__LOG_COPY ||
                   f->kind == WEIR__LOG_PRODUCERS || f->kind == WEIR__LOG_HEADER ||
                   f->kind == WEIR__LOG_CONTROL;
    in->fn(f, in->user);
}

static void tell_hole(struct inspection *in, uint32_t partition, uint64_t first, uint64_t last)
{
    struct weir__log_finding f = {.kind = WEIR__LOG_DAMAGE,
                                  .partition = partition,
                                  .first_sequence = first,
                                  .last_sequence = last};
    uint64_t sure = in->log->control.heads[partition].next_sequence;
    char guess[WEIR__GUESS_BYTES] = "";

    if (in->range_to) {
        f.at = in->range_from - in->segment->h.base;
        f.len = in->range_to - in->range_from;
        in->range_told = true;
    }
    if (in->guessed) weir__guess_text(guess, first, sure, last);
    tell(in, &f, "%s%s",
         in->guessed ? "the segment is lost" : "batch header unreadable: events are missing",
         guess);
}

/* A range that no hole in the numbers explains. */
static void close_range(struct inspection *in)
{
    struct weir__log_finding f = {.kind = WEIR__LOG_DAMAGE, .partition = -1, .first_sequence = 1};

    if (in->range_to && !in->range_told) {
        f.at = in->range_from - in->segment->h.base;
        f.len = in->range_to - in->range_from;
        tell(in, &f, "bytes below the watermark are unreadable; whose they were is not known");
    }
    in->range_from = in->range_to = 0;
    in->range_told = false;
}

static int see_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    struct inspection *in = user;
    const struct weir__batch_header *h = &b->h;
    struct weir__head *expect = &in->expect[h->partition];
    struct weir__index_entry e = {h->position, h->sequence, h->time_ms, h->count, h->body_bytes};

    in->batches++;
    in->events += h->count;
    if (h->sequence > expect->next_sequence) /* no number is higher than UNKNOWN */
        tell_hole(in, h->partition, expect->next_sequence, h->sequence - 1);
    *expect = weir__batch_head(h);
    if (in->gaps) weir__gaps_batch(in->gaps, h);
    if (!b->body_good) {
        struct weir__log_finding f = {.kind = WEIR__LOG_DAMAGE,
                                      .at = h->position - in->segment->h.base,
                                      .len = weir__batch_bytes(h->body_bytes),
                                      .partition = h->partition,
                                      .first_sequence = h->sequence,
                                      .last_sequence = h->sequence + h->count - 1};

        tell(in, &f, "batch body fails its checksum");
    }
    if (weir__index_add(in->index, h->partition, &e)) return 0;
    return weir__fail(err, WEIR_ENOMEM, "out of memory");
}

static int see_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    struct inspection *in = user;

    (void)err;
    if (in->gaps) weir__gaps_damage(in->gaps, from, to);
    close_range(in);
    in->range_from = from;
    in->range_to = to;
    return 0;
}

static bool same_chunk(const struct weir__index_chunk *a, const struct weir__index_chunk *b)
{
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const struct weir__index_entry *x = &a->entries[i], *y = &b->entries[i];

        if (x->position != y->position || x->sequence != y->sequence || x->time_ms != y->time_ms ||
            x->count != y->count || x->body_bytes != y->body_bytes)
            return false;
    }
    return true;
}

static struct weir__index_source stored_index(const struct weir__segment *seg, struct weir__file *f)
{
    return (struct weir__index_source){.file = f,
                                       .stamp = weir__segment_stamp(seg),
                                       .end = weir__segment_limit(seg) - seg->h.base,
                                       .partitions = seg->h.partitions};
}

/* Whether the stored index of a partition says what the batches say. */
static bool index_agrees(struct inspection *in, struct weir__file *f, uint32_t partition)
{
    struct weir__index_source memory = {.memory = in->index,
                                        .partitions = in->segment->h.partitions};
    struct weir__index_source stored = stored_index(in->segment, f);
    struct weir__index_chunk a, b;

    for (uint32_t n = 0;; n++) {
        if (weir__index_chunk(&stored, partition, n, &b, NULL) != 0) return false;
        if (weir__index_chunk(&memory, partition, n, &a, NULL) != 0) return false;
        if (!same_chunk(&a, &b)) return false;
        if (a.count == 0) return true;
    }
}

static void check_index(struct inspection *in, struct weir__file *f)
{
    for (uint32_t i = 0; i < in->segment->h.partitions; i++) {
        struct weir__log_finding finding = {.kind = WEIR__LOG_INDEX,
                                            .partition = i,
                                            .at = in->segment->end - in->segment->h.base,
                                            .first_sequence = 1};

        if (index_agrees(in, f, i)) continue;
        tell(in, &finding, "stored index disagrees with the batches; it will be rebuilt");
        return;
    }
}

/* Sequence numbers that must have been given by the end of this segment. */
static void check_heads(struct inspection *in, const struct weir__head *at_end)
{
    for (uint32_t i = 0; i < in->log->partitions; i++) {
        uint64_t have = in->expect[i].next_sequence, due = at_end[i].next_sequence;

        if (due == UNKNOWN || (have != UNKNOWN && have >= due)) continue;
        if (have != UNKNOWN) tell_hole(in, i, have, due - 1);
        in->expect[i] = at_end[i];
    }
}

/* What gathering the files brought to light. */
static void see_note(void *user, enum weir__log_finding_kind kind, const char *file,
                     const char *text)
{
    struct inspection *in = user;
    struct weir__log_finding f = {.kind = kind, .partition = -1, .first_sequence = 1};

    if (weir__log_path(in->log->dir, file, in->path, NULL) != 0) return;
    tell(in, &f, "%s", text);
}

static int open_segment(struct inspection *in, struct weir__segment *seg, struct weir__file **out,
                        struct weir_error *err)
{
    struct weir__log *log = in->log;
    struct weir__log_finding f = {.kind = WEIR__LOG_HEADER, .partition = -1, .first_sequence = 1};
    int bad = 0, rc;

    *out = NULL;
    in->segment = seg;
    rc = weir__log_path(log->dir, seg->name, in->path, err);
    if (rc != 0 || seg->lost) return rc;
    rc = log->fs->ops->open(log->fs, in->path, WEIR__FS_READ_ONLY, out, err);
    if (rc == 0 && !seg->headless) rc = weir__segment_check_copies(*out, &seg->h, &bad, err);
    if (rc == 0 && bad == 2)
        tell(in, &f, "where the partitions began cannot be read in either copy");
    f.kind = WEIR__LOG_COPY;
    if (rc == 0 && bad == 1)
        tell(in, &f, "one of two header copies is unreadable; the other serves");
    return rc;
}

static void tell_segment(struct inspection *in, enum weir__scan_end how, uint64_t end)
{
    const struct weir__segment *seg = in->segment;
    struct weir__log_finding f = {.kind = WEIR__LOG_SEGMENT, .partition = -1, .first_sequence = 1};

    f.len = seg->h.capacity;
    tell(in, &f,
         "segment %" PRIu64 ": positions %" PRIu64 " to %" PRIu64 ", %" PRIu64 " batch%s, %" PRIu64
         " event%s",
         seg->h.number, seg->data, end, in->batches, in->batches == 1 ? "" : "es", in->events,
         in->events == 1 ? "" : "s");
    if (how != WEIR__SCAN_TORN) return;
    f.kind = WEIR__LOG_TORN;
    f.at = end - seg->h.base;
    f.len = 0;
    tell(in, &f, "an unfinished write; the next opening cuts it and saves it aside. It %s",
         in->unsure || in->later_at
             ? "may have been acknowledged, for no control file says where the end is"
             : "can have been acknowledged only if the disk lost a completed flush");
}

/* Every batch, then the index. last: the one that was being appended to. */
static int walk_segment(struct inspection *in, struct weir__scan *scan, bool last,
                        struct weir_error *err)
{
    struct weir__segment *seg = in->segment;
    struct weir__scan_calls calls = {see_batch, see_damage, in};
    enum weir__scan_end how = WEIR__SCAN_END;
    uint64_t end = seg->data;
    int rc;

    in->batches = in->events = 0;
    weir__index_free(in->index);
    in->index = weir__index_new(seg->h.partitions);
    if (!in->index) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    rc = weir__scan_init(scan, err);
    if (rc == 0) rc = weir__scan_run(scan, seg->data, &calls, &end, &how, err);
    in->later_at = scan->later_at;
    weir__scan_fini(scan);
    if (rc == 0 && !last && !seg->headless && !seg->spoilt) check_index(in, scan->file);
    if (rc == 0) tell_segment(in, how, end);
    return rc;
}

static int check_segment(struct inspection *in, struct weir__segment *seg,
                         const struct weir__segment *next, struct weir_error *err)
{
    bool last = !next;
    struct weir__scan scan =
        next ? weir__scan_sealed(seg, next->h.time_ms) : weir__scan_active(in->log, in->unsure);
    int rc = open_segment(in, seg, &scan.file, err);

    if (last && in->all_known) scan.start = in->expect;
    if (rc == 0 && !seg->lost) rc = walk_segment(in, &scan, last, err);
    if (rc == 0 && seg->lost && last && !in->unsure)
        in->guessed = weir__gaps_lose(in->gaps, &in->log->control, seg);
    weir__file_close(scan.file);
    return rc;
}

static int see_cut(const char *name, void *user)
{
    struct inspection *in = user;
    struct weir__log_finding f = {.kind = WEIR__LOG_CUT, .partition = -1, .first_sequence = 1};

    if (strncmp(name, "cut-", 4) != 0 || weir__log_path(in->log->dir, name, in->path, NULL) != 0)
        return 0;
    tell(in, &f, "an unfinished write that an earlier opening cut");
    return 0;
}

static void see_producers(void *user, const char *name, uint64_t at, uint64_t len)
{
    struct inspection *in = user;
    struct weir__log_finding f = {
        .kind = WEIR__LOG_PRODUCERS, .at = at, .len = len, .partition = -1, .first_sequence = 1};

    if (weir__log_path(in->log->dir, name, in->path, NULL) != 0) return;
    tell(in, &f,
         "producers are unreadable: a batch that one of them repeats could be stored twice");
}

static void forget_heads(struct weir__log *log, struct weir__head *out)
{
    for (uint32_t i = 0; i < log->partitions; i++)
        out[i] = (struct weir__head){.next_sequence = UNKNOWN};
}

/* Where the partitions begin by a segment's stored index, when its heads are gone. */
static void index_heads(struct inspection *in, const struct weir__segment *seg,
                        struct weir__file *f, struct weir__head *out)
{
    struct weir__index_source stored = stored_index(seg, f);
    struct weir__index_chunk chunk;

    forget_heads(in->log, out);
    if (seg == weir__log_active(in->log)) return; /* it has none yet */
    for (uint32_t i = 0; i < seg->h.partitions && i < in->log->partitions; i++)
        if (weir__index_find(&stored, i, WEIR__LOG_BY_SEQUENCE, 0, &chunk, NULL) == 0 &&
            chunk.count > 0)
            out[i].next_sequence = chunk.entries[0].sequence;
}

/* Where the partitions stand before a segment, as far as it says. */
static int start_heads(struct inspection *in, const struct weir__segment *seg,
                       struct weir__head *out, struct weir_error *err)
{
    struct weir__log *log = in->log;
    struct weir__file *f = NULL;
    int rc = 0;

    forget_heads(log, out);
    if (!seg->lost && !seg->headless) {
        rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &f, err);
        if (rc == 0) rc = weir__segment_read_heads(f, &seg->h, log->partitions, out, NULL, err);
        if (rc == WEIR_ECORRUPT) index_heads(in, seg, f, out);
        weir__file_close(f);
    }
    if (rc == WEIR_ECORRUPT) rc = 0;
    if (rc == 0 && seg->h.number == 1) memset(out, 0, log->partitions * sizeof *out);
    return rc;
}

static bool all_known(const struct inspection *in)
{
    for (uint32_t i = 0; i < in->log->partitions; i++)
        if (in->expect[i].next_sequence == UNKNOWN) return false;
    return true;
}

/* The numbers that the next opening passes over are damage, too. */
static void check_end(struct inspection *in, struct weir__gaps *gaps)
{
    struct weir__log *log = in->log;

    for (uint32_t i = 0; i < log->partitions; i++) {
        if (in->expect[i].next_sequence == UNKNOWN) in->expect[i] = log->control.heads[i];
        log->heads[i] = in->expect[i];
    }
    weir__gaps_pass(gaps, log->control.heads, log->heads);
    check_heads(in, log->heads);
    close_range(in);
}

static int check_all(struct inspection *in, struct weir__gaps *gaps, struct weir_error *err)
{
    struct weir__log *log = in->log;
    int rc = start_heads(in, log->segments[0], in->expect, err);

    for (size_t i = 0; rc == 0 && i < log->segment_count; i++) {
        struct weir__segment *seg = log->segments[i];
        struct weir__segment *next = i + 1 < log->segment_count ? log->segments[i + 1] : NULL;

        assert(seg);
        in->all_known = all_known(in);
        in->gaps = next ? NULL : gaps;
        rc = check_segment(in, seg, next, err);
        if (rc != 0 || !next) continue;
        rc = start_heads(in, next, log->heads, err);
        if (rc == 0) check_heads(in, log->heads);
        close_range(in);
    }
    if (rc == 0) check_end(in, gaps);
    if (rc == 0) weir__recovery_control_is_old(&in->recovery, in->later_at);
    if (rc == 0) rc = weir__producer_file_check(log, see_producers, in, err);
    if (rc == 0) rc = log->fs->ops->list(log->fs, log->dir, see_cut, in, err);
    return rc;
}

static int inspect_files(struct inspection *in, bool no_control, struct weir_error *err)
{
    struct weir__recovery *r = &in->recovery;
    int rc;

    *r = (struct weir__recovery){
        .log = in->log, .err = err, .no_control = no_control, .tell = see_note, .user = in};
    rc = weir__gather(r);
    in->unsure = r->unsure;
    if (rc == 0) in->expect = calloc(in->log->partitions, sizeof *in->expect);
    if (rc == 0 && !in->expect) rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    if (rc == 0)
        rc = weir__gaps_init(&r->gaps, in->log->partitions, in->log->control.watermark, err);
    if (rc == 0) rc = check_all(in, &r->gaps, err);
    if (rc == 0) rc = weir__gather_clear(r);
    weir__recovery_fini(r);
    return rc;
}

int weir__log_inspect(const struct weir__log_options *options,
                      void (*fn)(const struct weir__log_finding *, void *user), void *user,
                      uint64_t *out_damaged, struct weir_error *err)
{
    struct inspection in = {.fn = fn, .user = user};
    int bad_copies = 0, rc = weir__log_new(&in.log, options, err);
    bool gone = false;

    *out_damaged = 0;
    if (rc != 0) return rc;
    in.log->o.logger = (struct weir__logger){0};
    rc = weir__log_open_control(in.log, WEIR__FS_READ_ONLY, err);
    if (rc == WEIR_ENOTFOUND) rc = 0;
    if (rc == 0) rc = weir__log_load_control(in.log, &bad_copies, &gone, err);
    if (rc == 0 && bad_copies && !gone)
        see_note(&in, WEIR__LOG_COPY, "control",
                 "one of two copies is unreadable; the other serves");
    if (rc == 0) rc = inspect_files(&in, gone, err);
    *out_damaged = in.damaged;
    weir__index_free(in.index);
    free(in.expect);
    weir__log_free(in.log);
    return rc == 0 ? 0 : weir__wrap(err, rc, "inspecting log %s", options->dir);
}
