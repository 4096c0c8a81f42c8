/* adopt.c - files without a readable header: whose they are, from the batches in them.
 *
 * A batch says its log position, so with its place in the file it says where the file begins in the
 * log. Where that fits between two known segments, the file is the one between them. Since format
 * version 2 nobody but the hub can have written such a batch. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "log/recover.h"

#define WINDOW_BYTES (1u << 20)

/* ---- looking into a file ---- */

static struct weir__life *life_of(struct weir__found *f, uint64_t base, uint64_t secret)
{
    for (int i = 0; i < f->life_count; i++)
        if (f->lives[i].base == base && f->lives[i].secret == secret) return &f->lives[i];
    return NULL;
}

static void see_header(struct weir__recovery *r, struct weir__found *f, const uint8_t *at,
                       uint64_t offset)
{
    const uint64_t secrets[2] = {r->log->control.secret, 0};

    for (int i = secrets[0] == 0; i < 2; i++) {
        struct weir__batch_stamp stamp = weir__batch_stamp(r->log->o.hub_id, secrets[i]);
        struct weir__batch_header h;
        uint64_t base;

        if (weir__load32(at) != stamp.magic || !weir__batch_decode(at, &stamp, &h)) continue;
        base = h.position - offset;
        if (h.position < WEIR__LOG_ORIGIN + offset || base % WEIR__FS_BLOCK != 0) continue;
        if (life_of(f, base, secrets[i]) || f->life_count == WEIR__RECOVERY_LIVES_MAX) continue;
        f->lives[f->life_count++] = (struct weir__life){base, secrets[i], h};
    }
}

static void see_window(struct weir__recovery *r, struct weir__found *f, const uint8_t *window,
                       size_t len, uint64_t offset)
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        if (weir__load64(window + i) == 0) continue;
        if (i + WEIR__BATCH_HEADER_BYTES <= len) see_header(r, f, window + i, offset + i);
    }
}

static int see_all(struct weir__recovery *r, struct weir__found *f, struct weir__file *file,
                   uint8_t *window)
{
    struct weir__bad_blocks bad = {0};
    uint64_t at = 0;
    size_t got = 0;
    int rc = 0;

    while (rc == 0 && at < f->bytes) { /* windows overlap, so that none cuts a header in two */
        rc = weir__blocks_read(file, window, WINDOW_BYTES, at, &got, &bad, r->err);
        if (rc != 0 || got == 0) break;
        see_window(r, f, window, got, at);
        at += got > WEIR__FS_BLOCK ? got - WEIR__FS_BLOCK : got;
        if (got < WINDOW_BYTES) break;
    }
    return rc;
}

int weir__adopt_probe(struct weir__recovery *r, struct weir__found *f)
{
    struct weir__log *log = r->log;
    struct weir__file *file = NULL;
    uint8_t *window;
    int rc;

    if (f->probed) return 0;
    window = aligned_alloc(WEIR__FS_BLOCK, WINDOW_BYTES);
    if (!window) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    rc = weir__log_open_name(log->fs, log->dir, f->name, WEIR__FS_READ_ONLY, &file, r->err);
    if (rc == 0) rc = see_all(r, f, file, window);
    weir__file_close(file);
    free(window);
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

/* A life of the file that begins or ends where a neighbour says; those with a secret first. */
static const struct weir__life *fitting(const struct weir__found *f, struct gap gap)
{
    const struct weir__life *best = NULL;

    for (int i = 0; i < f->life_count && (gap.from || gap.to); i++) {
        const struct weir__life *l = &f->lives[i];

        if (gap.from && gap.from != l->base) continue;
        if (gap.to && gap.to != l->base + whole_bytes(f)) continue;
        if (gap.secret && l->secret == 0) continue;
        if (!best || l->secret != 0) best = l;
    }
    return best;
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
        int rc;

        if (f->readable || f->taken || f->name_number != a->name ||
            a->data < a->base + 2 * WEIR__FS_BLOCK || a->data - a->base > a->capacity / 2)
            continue;
        rc = weir__adopt_probe(r, f);
        if (rc != 0) return rc;
        l = life_of(f, a->base, log->control.secret);
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
        l = fitting(f, gap);
        if (!l) continue;
        adopt(r, r->log->segments[i], f, l, l->base, 0);
        *out_done = true;
    }
    return 0;
}

/* The life that begins where a segment does; no other has that secret and that place, so the file may
 * have had another length. */
static const struct weir__life *beginning(const struct weir__found *f, struct gap gap)
{
    for (int i = 0; i < f->life_count && gap.from; i++)
        if (f->lives[i].base == gap.from && f->lives[i].secret != 0) return &f->lives[i];
    return NULL;
}

/* A file that was cut, or made longer, when none of the right length is left. */
static void adopt_by_beginning(struct weir__recovery *r, size_t i)
{
    struct weir__segment *seg = r->log->segments[i];
    struct gap gap = gap_at(r->log, i);

    if (seg->h.number == 1) gap.from = WEIR__LOG_ORIGIN;
    for (size_t k = 0; seg->lost && k < r->found_count; k++) {
        struct weir__found *f = &r->found[k];
        const struct weir__life *l = f->readable || f->taken ? NULL : beginning(f, gap);

        if (!l || (gap.to && gap.to <= l->base)) continue;
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

        if (f->readable || f->taken || f->life_count > 0 || whole_bytes(f) != gap.to - gap.from)
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

static int push_headless(struct weir__recovery *r, struct weir__found *f,
                         const struct weir__life *l)
{
    struct weir__log *log = r->log;
    struct weir__segment *seg = calloc(1, sizeof *seg);
    int rc;

    if (!seg) return weir__fail(r->err, WEIR_ENOMEM, "out of memory");
    seg->h.number = weir__log_active(log)->h.number + 1;
    adopt(r, seg, f, l, l->base, 0);
    if (f->readable) {
        seg->h = f->h;
        seg->headless = false;
        seg->spoilt = f->bytes != f->h.capacity;
        seg->stamp = weir__batch_stamp(log->o.hub_id, seg->h.secret);
        seg->data = f->h.base + weir__segment_front_bytes(f->h.heads_bytes);
    }
    rc = weir__log_push_segment(log, seg, r->err);
    if (rc != 0) weir__segment_close(seg);
    return rc;
}

/* The file that goes on where the last segment ends, and has batches. */
static int find_beyond(struct weir__recovery *r, struct weir__found **out,
                       const struct weir__life **out_life)
{
    const struct weir__segment *last = weir__log_active(r->log);

    *out = NULL;
    for (size_t i = 0; !last->lost && !*out && i < r->found_count; i++) {
        struct weir__found *f = &r->found[i];
        int rc;

        if (f->taken || (f->readable && f->h.number != last->h.number + 1)) continue;
        rc = weir__adopt_probe(r, f);
        if (rc != 0) return rc;
        *out_life = fitting(f, gap_between(last, NULL));
        if (!*out_life || (f->readable && f->h.base != (*out_life)->base)) continue;
        *out = f;
    }
    return 0;
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
        *out_life = fitting(f, gap_between(NULL, first));
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

        rc = push_headless(r, f, l);
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
        rc = push_headless(r, f, l);
        if (rc != 0) break;
        r->log->control.last_segment++;
        if (!r->no_control && !r->unsure)
            weir__recovery_tell(r, WEIR__LOG_CONTROL, "control",
                                "it is older than segment %" PRIu64, r->log->control.last_segment);
        r->unsure = true;
        rc = find_beyond(r, &f, &l);
    }
    return rc == 0 ? adopt_before(r) : rc; /* last: a file that was used again ends there, too */
}
