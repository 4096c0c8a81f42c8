/* adopt.c - files without a readable header: whose they are, from the batches in them.
 *
 * A batch says its log position, so with its place in the file it says where the file begins in the
 * log. Where that fits between two known segments, the file is the one between them. Since format
 * version 2 nobody but the hub can have written such a batch. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/recover.h"

/* ---- looking into a file ---- */

int weir__adopt_probe(struct weir__recovery *r, struct weir__found *f)
{
    struct weir__log *log = r->log;
    struct weir__file *file = NULL;
    int rc;

    if (f->probed) return 0;
    rc = weir__log_open_name(log->fs, log->dir, f->name, WEIR__FS_READ_ONLY, &file, r->err);
    if (rc == 0) rc = weir__lives_read(file, log->o.hub_id, log->control.secret, &f->lives, r->err);
    weir__file_close(file);
    f->probed = rc == 0;
    return rc;
}

/* ---- giving files to lost segments ---- */

/* Where the segment before a file ends, and where the one behind it begins; 0: not known. */
struct gap {
    uint64_t from, to;
    bool secret; /* what lies in it has the hub's secret */
};

static struct gap gap_between(const struct weir__segment *before,
                              const struct weir__segment *behind)
{
    struct gap g = {0};

    if (before && !before->lost) {
        g.from = before->h.base + before->h.capacity;
        g.secret = before->h.version > 1;
    }
    if (behind && !behind->lost) g.to = behind->h.base;
    return g;
}

static struct gap gap_at(const struct weir__log *log, size_t i)
{
    return gap_between(i ? log->segments[i - 1] : NULL,
                       i + 1 < log->segment_count ? log->segments[i + 1] : NULL);
}

/* Of a file, in whole blocks: only such a length says where the next segment begins. */
static uint64_t whole_bytes(const struct weir__found *f)
{
    return weir__round_down(f->bytes, WEIR__FS_BLOCK);
}

/* What a file is, where it begins or ends where a neighbour says. Without batches that have the secret it may be
 * any that it has been. */
static const struct weir__life *fitting(const struct weir__recovery *r, const struct weir__found *f,
                                        struct gap gap)
{
    const struct weir__life *newest = weir__lives_newest(&f->lives, r->log->control.secret);

    for (int i = 0; i < f->lives.count && (gap.from || gap.to); i++) {
        const struct weir__life *l = &f->lives.at[i];

        if (newest ? l != newest : gap.secret) continue;
        if (gap.from && gap.from != l->base) continue;
        if (gap.to && gap.to != l->base + whole_bytes(f)) continue;
        return l;
    }
    return NULL;
}

/* Of the segment that begins there. The control file knows it of the last one, whose file may have
 * been cut. */
static uint64_t capacity_at(const struct weir__log *log, const struct weir__found *f, uint64_t base)
{
    const struct weir__control_active *a = &log->control.active;

    if (a->base != base || a->capacity == 0 || a->capacity % WEIR__FS_BLOCK != 0)
        return whole_bytes(f);
    return a->capacity;
}

/* What stands for the header that is gone. The first batch begins at a block; when another one is
 * the first that is left, what lies before it counts as damage. */
static void adopt(struct weir__recovery *r, struct weir__segment *seg, struct weir__found *f,
                  const struct weir__life *l, uint64_t base, uint64_t data)
{
    struct weir__log *log = r->log;
    uint64_t secret = l ? l->secret : log->control.secret;
    uint32_t heads = weir__segment_heads_bytes(log->partitions);

    if (data > base + WEIR__FS_BLOCK) heads = (uint32_t)(data - base - WEIR__FS_BLOCK);
    seg->h = (struct weir__segment_header){
        .version = secret ? WEIR__SEGMENT_VERSION : 1,
        .partitions = log->partitions,
        .secret = secret,
        .number = seg->h.number,
        .base = base,
        .capacity = capacity_at(log, f, base),
        .time_ms = l ? l->first.time_ms : 0,
        .epoch = l ? l->first.epoch : 0,
        .heads_bytes = heads,
        .producers = WEIR__PRODUCERS_TURN_UNKNOWN,
    };
    seg->stamp = weir__batch_stamp(log->o.hub_id, secret);
    seg->data = base + weir__segment_front_bytes(heads);
    if (l && l->first.position % WEIR__FS_BLOCK == 0 && l->first.before.bytes == 0)
        seg->data = l->first.position;
    snprintf(seg->name, sizeof seg->name, "%s", f->name);
    seg->disk_bytes = f->used;
    seg->lost = false;
    seg->headless = true;
    f->taken = true;
}

int weir__adopt_is_active(struct weir__recovery *r, struct weir__found *f, bool *out)
{
    const struct weir__control *c = &r->log->control;
    const struct weir__life *newest;
    int rc;

    *out = false;
    if (f->readable || f->taken || c->active.capacity == 0 || f->name_number != c->active.name)
        return 0;
    rc = weir__adopt_probe(r, f);
    newest = weir__lives_newest(&f->lives, c->secret);
    *out = rc == 0 && (!newest || newest->base <= c->active.base);
    return rc;
}

/* The control file knows the segment that was being appended to. Of a file that has another length
 * by now, a batch must show that it is it. */
static int adopt_active(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    const struct weir__control_active *a = &log->control.active;
    struct weir__segment *seg = weir__log_active(log);

    for (size_t i = 0; seg->lost && a->capacity && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];
        const struct weir__life *l;
        bool fits;
        int rc = weir__adopt_is_active(r, f, &fits);

        if (rc != 0) return rc;
        if (!fits || a->data < a->base + 2 * WEIR__FS_BLOCK || a->data - a->base > a->capacity / 2)
            continue;
        l = weir__lives_of(&f->lives, a->base, log->control.secret);
        if (!l && f->bytes != a->capacity) continue;
        adopt(r, seg, f, l, a->base, a->data);
        seg->data = a->data;
    }
    return 0;
}

static int adopt_one(struct weir__recovery *r, size_t i, bool *out_done)
{
    struct gap gap = gap_at(r->log, i);

    *out_done = false;
    for (size_t k = 0; k < r->found_count && !*out_done; k++) {
        struct weir__found *f = &r->found[k];
        const struct weir__life *l;
        int rc;

        if (f->readable || f->taken) continue;
        rc = weir__adopt_probe(r, f);
        if (rc != 0) return rc;
        l = fitting(r, f, gap);
        if (!l) continue;
        adopt(r, r->log->segments[i], f, l, l->base, 0);
        *out_done = true;
    }
    return 0;
}

/* A file that was cut, or made longer, when none of the right length is left. No other has batches of that
 * secret and that place. */
static void adopt_by_beginning(struct weir__recovery *r, size_t i)
{
    struct weir__segment *seg = r->log->segments[i];
    uint64_t secret = r->log->control.secret;
    struct gap gap = gap_at(r->log, i);

    if (seg->h.number == 1) gap.from = WEIR__LOG_ORIGIN;
    for (size_t k = 0; seg->lost && k < r->found_count; k++) {
        struct weir__found *f = &r->found[k];
        const struct weir__life *l;

        if (f->readable || f->taken) continue;
        l = weir__lives_newest(&f->lives, secret);
        if (!l || l->base != gap.from || (gap.to && gap.to <= l->base)) continue;
        adopt(r, seg, f, l, l->base, 0);
        if (gap.to) seg->h.capacity = gap.to - l->base;
    }
}

/* A file in which no batch can be read, where there is just one that can be the one between two
 * neighbours: nothing can be served from it, but its name can be told. */
static void adopt_by_size(struct weir__recovery *r, size_t i)
{
    struct gap gap = gap_at(r->log, i);
    struct weir__found *only = NULL;

    if (!gap.from || !gap.to) return;
    for (size_t k = 0; k < r->found_count; k++) {
        struct weir__found *f = &r->found[k];

        if (f->readable || f->taken || f->lives.count > 0 || whole_bytes(f) != gap.to - gap.from)
            continue;
        if (only) return;
        only = f;
    }
    if (only) adopt(r, r->log->segments[i], only, NULL, gap.from, 0);
}

/* Each file that finds its place can give one to its neighbours. */
int weir__adopt(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    bool again = true, done;
    int rc = adopt_active(r);

    while (rc == 0 && again) {
        again = false;
        for (size_t i = 0; rc == 0 && i < log->segment_count; i++) {
            if (!log->segments[i]->lost) continue;
            rc = adopt_one(r, i, &done);
            again |= done;
        }
    }
    for (size_t i = 0; rc == 0 && i < log->segment_count; i++)
        if (log->segments[i]->lost) adopt_by_beginning(r, i);
    for (size_t i = 0; rc == 0 && i < log->segment_count; i++)
        if (log->segments[i]->lost) adopt_by_size(r, i);
    return rc;
}

/* ---- behind the last one, and before the first ---- */

static int push(struct weir__recovery *r, struct weir__found *f, const struct weir__life *l)
{
    uint64_t number = weir__log_active(r->log)->h.number + 1;
    int rc = weir__gather_push(r, number, f->readable ? f : NULL);

    if (rc == 0 && !f->readable) adopt(r, weir__log_active(r->log), f, l, l->base, 0);
    return rc;
}

/* The file that goes on where the last segment ends, and has batches. */
static int find_next(struct weir__recovery *r, struct weir__found **out,
                     const struct weir__life **out_life)
{
    const struct weir__segment *last = weir__log_active(r->log);

    for (size_t i = 0; !last->lost && !*out && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];
        int rc;

        if (f->taken || (f->readable && f->h.number != last->h.number + 1)) continue;
        rc = weir__adopt_probe(r, f);
        if (rc != 0) return rc;
        *out_life = fitting(r, f, gap_between(last, NULL));
        if (!*out_life || (f->readable && f->h.base != (*out_life)->base)) continue;
        *out = f;
    }
    return 0;
}

/* Where the last segment ends; of a lost one the control file may know it. */
static uint64_t end_of_row(const struct weir__log *log)
{
    const struct weir__control_active *a = &log->control.active;

    if (log->segments[log->segment_count - 1]->lost && a->capacity) return a->base + a->capacity;
    for (size_t i = log->segment_count; i-- > 0;) {
        const struct weir__segment *seg = log->segments[i];

        if (!seg->lost) return seg->h.base + seg->h.capacity;
    }
    return WEIR__LOG_ORIGIN;
}

/* The next of the files without a header, wherever it begins: what would lie in front of it is lost. */
static int find_later(struct weir__recovery *r, struct weir__found **out,
                      const struct weir__life **out_life)
{
    uint64_t end = end_of_row(r->log);

    for (size_t i = 0; i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];
        const struct weir__life *l;
        int rc;

        if (f->taken || f->readable) continue;
        rc = weir__adopt_probe(r, f);
        if (rc != 0) return rc;
        l = weir__lives_newest(&f->lives, r->log->control.secret);
        if (!l || l->base < end || (*out && (*out_life)->base <= l->base)) continue;
        *out = f;
        *out_life = l;
    }
    return 0;
}

static int find_beyond(struct weir__recovery *r, struct weir__found **out,
                       const struct weir__life **out_life)
{
    int rc;

    *out = NULL;
    rc = find_next(r, out, out_life);
    return rc != 0 || *out ? rc : find_later(r, out, out_life);
}

/* Without a control file nobody knows which segment is the oldest: one whose header is gone as well
 * is known by ending where the oldest that was found begins. */
static int find_before(struct weir__recovery *r, struct weir__found **out,
                       const struct weir__life **out_life)
{
    const struct weir__segment *first = r->log->segments[0];

    *out = NULL;
    for (size_t i = 0; r->no_control && !*out && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];
        int rc;

        if (f->taken || f->readable || first->h.number == 1) continue;
        rc = weir__adopt_probe(r, f);
        if (rc != 0) return rc;
        *out_life = fitting(r, f, gap_between(NULL, first));
        if (*out_life) *out = f;
    }
    return 0;
}

static int adopt_before(struct weir__recovery *r)
{
    struct weir__log *log = r->log;
    struct weir__found *f = NULL;
    const struct weir__life *l;
    int rc = find_before(r, &f, &l);

    while (rc == 0 && f) {
        struct weir__segment *seg;

        rc = push(r, f, l);
        if (rc != 0) break;
        seg = weir__log_active(log);
        memmove(log->segments + 1, log->segments,
                (log->segment_count - 1) * sizeof log->segments[0]);
        log->segments[0] = seg;
        seg->h.number = --log->control.first_segment;
        rc = find_before(r, &f, &l);
    }
    return rc;
}

/* A segment gets batches only once the control file names it, durably: one that has some and is not
 * named shows that the control file is older than it. */
int weir__adopt_beyond(struct weir__recovery *r)
{
    struct weir__found *f = NULL;
    const struct weir__life *l;
    int rc = find_beyond(r, &f, &l);

    while (rc == 0 && f) {
        const struct weir__segment *last = weir__log_active(r->log);

        if (!last->lost && l->base > last->h.base + last->h.capacity)
            rc = weir__gather_push(r, last->h.number + 1, NULL);
        if (rc == 0) rc = push(r, f, l);
        if (rc != 0) break;
        r->log->control.last_segment = weir__log_active(r->log)->h.number;
        if (!r->no_control && !r->unsure)
            weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                                "it is older than segment %" PRIu64, r->log->control.last_segment);
        r->unsure = true;
        rc = find_beyond(r, &f, &l);
    }
    return rc == 0 ? adopt_before(r) : rc; /* last: a file that was used again ends there, too */
}
