/* gather.c - the files of a folder, and which of them are the log's row of segments.
 *
 * A file's header says which segment it is. Where two files claim one number, the one that a later
 * opening made is it. Files that contradict the row are left alone: they stay, and are told. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/recover.h"

#define SEGMENTS_MAX 1000000u
#define TEXT_BYTES 256

void weir__recovery_fini(struct weir__recovery *r)
{
    free(r->found);
    weir__gaps_fini(&r->gaps);
}

void weir__recovery_tell(struct weir__recovery *r, enum weir__log_finding_kind kind,
                         const char *file, const char *fmt, ...)
{
    char text[TEXT_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (r->tell) {
        r->tell(r->user, kind, file, text);
        return;
    }
    weir__log_line(&r->log->o.logger,
                   kind == WEIR__LOG_COPY || kind == WEIR__LOG_IGNORED ? WEIR__WARN : WEIR__ERROR,
                   "log", "damage file=%s/%s: %s", r->log->dir, file, text);
}

bool weir__recovery_control_is_old(struct weir__recovery *r, uint64_t later_at)
{
    if (later_at == 0) return false;
    weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                        "it is older than the batch at position %" PRIu64, later_at);
    return true;
}

/* ---- files ---- */

static struct weir__found *add_found(struct weir__recovery *r)
{
    if (r->found_count == r->found_cap) {
        size_t cap = r->found_cap ? r->found_cap * 2 : 16;
        struct weir__found *grown = realloc(r->found, cap * sizeof *grown);

        if (!grown) return NULL;
        r->found = grown;
        r->found_cap = cap;
    }
    r->found[r->found_count] = (struct weir__found){0};
    return &r->found[r->found_count++];
}

/* A file that cannot be opened at all is no damage: it may be another time. */
static int see_file(const char *name, void *user)
{
    struct weir__recovery *r = user;
    struct weir__log *log = r->log;
    struct weir__found *found;
    struct weir__file *f = NULL;
    uint64_t number;
    int bad = 0, rc;

    if (!weir__segment_named(name, &number)) return 0;
    if (number >= log->next_name) log->next_name = number + 1;
    found = add_found(r);
    if (!found) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    snprintf(found->name, sizeof found->name, "%s", name);
    found->name_number = number;
    rc = weir__log_open_name(log->fs, log->dir, name, WEIR__FS_READ_ONLY, &f, r->err);
    if (rc == 0) rc = f->ops->size(f, &found->bytes, r->err);
    if (rc == 0) rc = f->ops->used(f, &found->used, r->err);
    if (rc == 0) rc = weir__segment_read_header(f, log->o.hub_id, &found->h, &bad, r->err);
    weir__file_close(f);
    found->readable = rc == 0;
    found->one_copy = bad > 0;
    if (rc == WEIR_ECORRUPT) rc = 0;
    return rc == 0 ? 0 : weir__wrap(r->err, rc, "segment %s", name);
}

/* By number; of one number the right one first. Those without a header come last. */
static int by_number(const void *left, const void *right)
{
    const struct weir__found *a = left, *b = right;

    if (a->readable != b->readable) return a->readable ? -1 : 1;
    if (!a->readable) return strcmp(a->name, b->name);
    if (a->h.number != b->h.number) return a->h.number < b->h.number ? -1 : 1;
    if (a->preferred != b->preferred) return a->preferred ? -1 : 1;
    if (a->h.epoch != b->h.epoch) return a->h.epoch > b->h.epoch ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void sort_files(struct weir__recovery *r)
{
    const struct weir__control *c = &r->log->control;

    for (size_t i = 0; i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];

        f->preferred = c->active.capacity && f->readable && f->h.number == c->last_segment &&
                       f->name_number == c->active.name && f->h.base == c->active.base;
    }
    if (r->found_count) qsort(r->found, r->found_count, sizeof r->found[0], by_number);
}

/* ---- the row ---- */

/* Nobody's file. */
static void lose(struct weir__segment *seg, uint64_t number)
{
    seg->lost = true;
    seg->h = (struct weir__segment_header){.number = number,
                                           .version = WEIR__SEGMENT_VERSION,
                                           .producers = WEIR__PRODUCERS_TURN_UNKNOWN};
    snprintf(seg->name, sizeof seg->name, "(missing)");
}

int weir__gather_push(struct weir__recovery *r, uint64_t number, struct weir__found *f)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = calloc(1, sizeof *seg);
    int rc;

    if (!seg) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    lose(seg, number);
    if (f) {
        seg->lost = false;
        f->taken = true;
        snprintf(seg->name, sizeof seg->name, "%s", f->name);
        seg->h = f->h;
        seg->disk_bytes = f->used;
        seg->data = f->h.base + weir__segment_front_bytes(f->h.heads_bytes);
        seg->spoilt = f->bytes != f->h.capacity;
        if (f->one_copy && !r->tell) /* who inspects looks at the heads, too */
            weir__recovery_tell(r, WEIR__LOG_COPY, f->name,
                                "one copy of its header is bad, the other serves");
    }
    seg->stamp = weir__batch_stamp(log->o.hub_id, seg->h.secret);
    rc = weir__log_push_segment(log, seg, r->err);
    if (rc != 0) weir__segment_close(seg);
    return rc;
}

/* A control file that names more segments than there can be is wrong about the oldest. */
static void limit_row(struct weir__recovery *r)
{
    struct weir__control *c = &r->log->control;
    uint64_t first = c->last_segment;

    if (c->last_segment - c->first_segment < SEGMENTS_MAX) return;
    for (size_t i = 0; i < r->found_count && r->found[i].readable; i++)
        if (r->found[i].h.number < first && c->last_segment - r->found[i].h.number < SEGMENTS_MAX)
            first = r->found[i].h.number;
    weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                        "it names %" PRIu64 " segments; those from %" PRIu64 " on are believed",
                        c->last_segment - c->first_segment + 1, first);
    c->first_segment = first;
}

/* One segment for each number; lost where no file says to be it. */
static int make_row(struct weir__recovery *r)
{
    const struct weir__control *c = &r->log->control;
    size_t i = 0;
    int rc = 0;

    limit_row(r);
    for (uint64_t n = c->first_segment; rc == 0 && n <= c->last_segment; n++) {
        while (i < r->found_count && r->found[i].readable && r->found[i].h.number < n) i++;
        if (i < r->found_count && r->found[i].readable && r->found[i].h.number == n)
            rc = weir__gather_push(r, n, &r->found[i]);
        else
            rc = weir__gather_push(r, n, NULL);
    }
    return rc;
}

static struct weir__found *found_named(struct weir__recovery *r, const char *name)
{
    for (size_t i = 0; i < r->found_count; i++)
        if (strcmp(r->found[i].name, name) == 0) return &r->found[i];
    return NULL;
}

/* Segments that reach into a newer one are not what they say. */
static void drop_overlaps(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    uint64_t next_base = UINT64_MAX;

    for (size_t i = log->segment_count; i-- > 0;) {
        struct weir__segment *seg = log->segments[i];

        if (seg->lost) continue;
        if (seg->h.base > next_base || seg->h.capacity > next_base - seg->h.base) {
            weir__recovery_tell(r, WEIR__LOG_IGNORED, seg->name,
                                "it says to be segment %" PRIu64
                                ", but reaches into the one behind it",
                                seg->h.number);
            found_named(r, seg->name)->taken = false;
            lose(seg, seg->h.number);
            continue;
        }
        next_base = seg->h.base;
    }
}

/* Where a lost segment lay: what is free between its neighbours, of which `behind` is the next that
 * is not lost. The last one's file may have been of any size; no position in it may be given again. */
static void place_lost(struct weir__recovery *r, size_t i, size_t behind)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = log->segments[i];
    const struct weir__segment *before = i ? log->segments[i - 1] : NULL;
    const struct weir__control *c = &log->control;
    uint64_t end = before ? before->h.base + before->h.capacity : WEIR__LOG_ORIGIN;

    seg->h.base = end;
    if (behind < log->segment_count) seg->h.capacity = log->segments[behind]->h.base - end;
    if (i + 1 == log->segment_count) {
        uint64_t most = end + 8 * log->o.segment_bytes_max;

        if (c->active.capacity && c->active.base >= end) most = c->active.base + c->active.capacity;
        if (c->watermark > most && c->watermark - most < c->watermark / 2) most = c->watermark;
        seg->h.capacity = weir__round_up(most - end, WEIR__FS_BLOCK);
    }
    seg->h.partitions = log->partitions;
    seg->data = seg->end = seg->h.base;
}

/* Tells each segment where its batches end, which its successor knows. */
static void chain_segments(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    size_t behind = 0;

    for (size_t i = 0; i < log->segment_count; i++) {
        struct weir__segment *seg = log->segments[i];
        const struct weir__segment *next = i + 1 < log->segment_count ? log->segments[i + 1] : NULL;

        if (seg->lost) {
            if (behind < i) behind = i;
            while (behind < log->segment_count && log->segments[behind]->lost) behind++;
            place_lost(r, i, behind);
            continue;
        }
        seg->end = seg->h.base + seg->h.capacity;
        if (next && !next->lost && !next->headless && next->h.previous_end >= seg->data &&
            next->h.previous_end <= seg->end)
            seg->end = next->h.previous_end;
    }
}

/* A segment without a header gets the newest time it can have had before it: so nobody who looks
 * for a time passes over what lies before it. */
static void date_segments(struct weir__log *log)
{
    int64_t time_ms = 0;

    for (uint32_t i = 0; i < log->partitions; i++)
        if (log->control.heads[i].last_time_ms > time_ms)
            time_ms = log->control.heads[i].last_time_ms;
    for (size_t i = log->segment_count; i-- > 0;) {
        struct weir__segment *seg = log->segments[i];

        if (seg->lost || (seg->headless && (seg->h.time_ms == 0 || seg->h.time_ms > time_ms)))
            seg->h.time_ms = time_ms;
        time_ms = seg->h.time_ms;
    }
}

static void tell_lost(struct weir__recovery *r)
{
    struct weir__log *log = r->log;

    for (size_t i = 0; i < log->segment_count; i++) {
        struct weir__segment *seg = log->segments[i];

        if (!seg->lost && !seg->headless) continue;
        if (seg->lost) r->missing = true;
        log->stats.damaged_ranges += seg->lost;
        weir__recovery_tell(r, seg->lost ? WEIR__LOG_DAMAGE : WEIR__LOG_HEADER, seg->name,
                            seg->lost ? "segment %" PRIu64 " is lost: no file can be shown to be it"
                                      : "segment %" PRIu64 " has no readable header; its batches "
                                        "are found without",
                            seg->h.number);
    }
}

/* A watermark behind the last segment is not of it. (One before it is that of the roll.) */
static void doubt_watermark(struct weir__recovery *r)
{
    const struct weir__segment *seg = weir__log_active(r->log);
    uint64_t mark = r->log->control.watermark;

    if (r->unsure || seg->lost || mark <= weir__segment_limit(seg)) return;
    weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                        "its watermark %" PRIu64 " lies behind segment %s", mark, seg->name);
    r->unsure = true;
}

/* A segment that knows more partitions than the control file is newer than that. */
static int size_to_row(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    uint32_t partitions = log->partitions;

    for (size_t i = 0; i < log->segment_count; i++)
        if (!log->segments[i]->lost && log->segments[i]->h.partitions > partitions)
            partitions = log->segments[i]->h.partitions;
    return weir__log_size(log, partitions, r->err);
}

/* Whether a file is there for the last segment that the control file names. */
static int has_last(struct weir__recovery *r, bool *out)
{
    const struct weir__control *c = &r->log->control;
    int rc = 0;

    *out = false;
    for (size_t i = 0; rc == 0 && !*out && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];

        if (f->readable)
            *out = f->h.number == c->last_segment;
        else if (f->bytes == c->active.capacity)
            rc = weir__adopt_is_active(r, f, out);
    }
    return rc;
}

static bool has_batches(const struct weir__recovery *r, const struct weir__found *f)
{
    uint64_t secret = r->log->control.secret;

    return secret && weir__lives_of(&f->lives, f->h.base, secret);
}

/* Whether a file without a header is of a segment between the last one of the control file and another. */
static bool is_between(const struct weir__recovery *r, const struct weir__found *f, uint64_t to)
{
    const struct weir__control *c = &r->log->control;
    const struct weir__life *l = weir__lives_newest(&f->lives, c->secret);

    return l && l->base > c->active.base && l->base < to;
}

/* Whether there are fewer files with batches than numbers between the last segment of the control file and
 * this one, so that no row leads from the one to the other. */
static int lacks_between(struct weir__recovery *r, const struct weir__found *to, bool *out)
{
    uint64_t last = r->log->control.last_segment, missing = to->h.number - last - 1;
    int rc = 0;

    for (size_t i = 0; rc == 0 && missing > 0 && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];

        if (f->readable && (f->h.number <= last || f->h.number >= to->h.number)) continue;
        rc = weir__adopt_probe(r, f);
        missing -= f->readable ? has_batches(r, f) : is_between(r, f, to->h.base);
    }
    *out = missing > 0;
    return rc;
}

/* Whether the control file is an older copy that cannot be the beginning of what is there: there is a segment
 * that has a header only when the control file names the one before it, or batches, which it gets only once it
 * is named itself; and the last one that it names has expired, or one in between is lost. */
static int is_outdated(struct weir__recovery *r, bool *out)
{
    const struct weir__control *c = &r->log->control;
    bool with_last = false, lacks;
    int rc = 0;

    *out = false;
    if (r->no_control || c->secret == 0) return 0;
    rc = has_last(r, &with_last);
    for (size_t i = 0; rc == 0 && !*out && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];

        if (!f->readable || f->h.number <= c->last_segment || f->h.secret != c->secret) continue;
        if (f->h.number - c->last_segment >= SEGMENTS_MAX) continue; /* it is none of the row */
        rc = weir__adopt_probe(r, f);
        if (rc != 0 || (f->h.number == c->last_segment + 1 && !has_batches(r, f))) continue;
        rc = lacks_between(r, f, &lacks);
        *out = rc == 0 && (!with_last || lacks);
    }
    return rc;
}

int weir__gather(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    bool old = false;
    int rc = log->fs->ops->list(log->fs, log->dir, see_file, r, r->err);

    if (rc == 0) sort_files(r);
    /* A control file of version 1 may be an older copy: then a segment knows the secret. */
    for (size_t i = 0; i < r->found_count && log->control.secret == 0; i++)
        if (r->found[i].readable) log->control.secret = r->found[i].h.secret;
    if (rc == 0) rc = is_outdated(r, &old);
    log->found = weir__log_said_end(&log->control);
    if (old) log->control.active = (struct weir__control_active){0};
    if (rc == 0 && (r->no_control || old)) rc = weir__rebuild_control(r);
    if (rc == 0) rc = make_row(r);
    if (rc != 0) return rc;
    drop_overlaps(r);
    rc = weir__adopt(r);
    if (rc == 0) rc = weir__adopt_beyond(r);
    if (rc == 0 && r->no_control && log->segment_count == 1 && log->segments[0]->lost)
        rc = weir__rebuild_refuse(r);
    if (rc == 0) rc = size_to_row(r);
    if (rc != 0) return rc;
    chain_segments(r);
    date_segments(log);
    tell_lost(r);
    doubt_watermark(r);
    return 0;
}

/* ---- what is left over ---- */

/* Whether a file may go, and its space be used: it holds no batch that is still of the log, and
 * nobody misses one. The next number's header without a batch is a roll that was cut. */
static int may_go(struct weir__recovery *r, struct weir__found *f, bool *out)
{
    const struct weir__log *log = r->log;
    uint64_t kept = log->segments[0]->h.base;
    int rc = 0;

    *out = f->readable && f->h.number < log->control.first_segment;
    if (*out || (!f->readable && r->missing)) return 0;
    if (f->readable && f->h.number <= log->control.last_segment) return 0;
    rc = weir__adopt_probe(r, f);
    *out = rc == 0;
    for (int i = 0; i < f->lives.count; i++)
        if (f->lives.at[i].base >= kept) *out = false;
    return rc;
}

/* What goes is gone for good before another file can get the number that it may bear. */
int weir__gather_clear(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    bool removed = false, go;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < r->found_count; i++) {
        if (r->found[i].taken) continue;
        rc = may_go(r, &r->found[i], &go);
        if (rc == 0 && !go)
            weir__recovery_tell(r, WEIR__LOG_IGNORED, r->found[i].name,
                                "it is not of the log as it stands; it is kept");
        if (rc != 0 || !go || r->tell) continue; /* who only looks removes nothing */
        rc = weir__log_remove_name(log->fs, log->dir, r->found[i].name, r->err);
        removed |= rc == 0;
    }
    return rc == 0 && removed ? weir__log_sync_names(log, r->err) : rc;
}
