/* backup.c - the moment of a log, read while another process may append to it.
 *
 *   1  the control file names the last segment, a watermark in it and the epoch
 *   2  from the watermark on, whole batches of that epoch are walked: header and body good
 *   3  the control file again: when the segment has expired or the epoch changed, all over
 *
 * A batch is acknowledged after it was written and synced, and a segment is appended to after the
 * control file names it; so what was acknowledged before 1 lies in front of the end found in 2.
 *
 * The walk ends at the first place where no whole batch begins, which in a log in use is the end.
 * Behind damage it would end too early: settling looks at the rest of the segment for that. */
#include "log/backup.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/crc.h"
#include "log/state.h"

#define CONTROL_NAME "control"
#define CONTROL_TRIES 200 /* a writer can be at one copy while we read the other */
#define MOMENT_TRIES 50
#define WINDOW_BYTES (2u << 20)
#define WINDOW_FIRST_BYTES (64u << 10) /* most logs have little behind their watermark */
#define PIECE_BYTES (1u << 20)         /* a body is checked in pieces of at most this */

/* What the walk stops with. */
#define WALK_STOP 1

int weir__backup_control_read(const struct weir__backup_log *log, struct weir__control *out,
                              struct weir_error *err)
{
    struct weir__file *f = NULL;
    int bad, rc;

    *out = (struct weir__control){.hub_id = log->hub_id};
    rc = weir__log_open_name(log->fs, log->dir, CONTROL_NAME, WEIR__FS_READ_ONLY, &f, err);
    for (int i = 0; rc == 0 && i < CONTROL_TRIES; i++) {
        rc = weir__control_read(f, out, &bad, err);
        if (rc != WEIR_ECORRUPT || i + 1 == CONTROL_TRIES) break;
        rc = 0;
    }
    weir__file_close(f);
    if (rc != 0) weir__control_fini(out);
    return rc;
}

/* ---- the last segment ---- */

int weir__backup_segment_read(const struct weir__backup_log *log, const char *name,
                              struct weir__segment *out, struct weir_error *err)
{
    struct weir__file *f = NULL;
    int bad, rc;

    *out = (struct weir__segment){0};
    snprintf(out->name, sizeof out->name, "%s", name);
    rc = weir__log_open_name(log->fs, log->dir, name, WEIR__FS_READ_ONLY, &f, err);
    if (rc == 0) rc = f->ops->size(f, &out->h.capacity, err);
    if (rc == 0) rc = weir__segment_read_header(f, log->hub_id, &out->h, &bad, err);
    weir__file_close(f);
    out->stamp = weir__batch_stamp(log->hub_id, out->h.secret);
    out->data = out->h.base + weir__segment_front_bytes(out->h.heads_bytes);
    return rc;
}

struct looking {
    const struct weir__backup_log *log;
    uint64_t number;
    struct weir__segment *out;
    bool found;
};

bool weir__backup_is_segment(const char *name)
{
    uint64_t number;

    return weir__segment_named(name, &number);
}

static int look_at_name(const char *name, void *user)
{
    struct looking *l = user;

    if (l->found || !weir__backup_is_segment(name)) return 0;
    l->found =
        weir__backup_segment_read(l->log, name, l->out, NULL) == 0 && l->out->h.number == l->number;
    return 0;
}

/* From the control file, for a segment both of whose headers are bad. */
static void know_last(const struct weir__control *c, struct weir__segment *out)
{
    out->lost = true;
    out->h = (struct weir__segment_header){
        .version = WEIR__SEGMENT_VERSION,
        .partitions = c->partitions,
        .secret = c->secret,
        .number = c->last_segment,
        .base = c->active.base,
        .capacity = c->active.capacity,
        .previous_end = c->active.base,
        .heads_bytes = (uint32_t)(c->active.data - c->active.base - WEIR__FS_BLOCK),
    };
    out->data = c->active.data;
    out->stamp = weir__batch_stamp(c->hub_id, c->secret);
}

/* WEIR_EBUSY: it is not there, so it may just have been rolled away from and expired. */
static int find_last(const struct weir__backup_log *log, const struct weir__control *c,
                     struct weir__segment *out, struct weir_error *err)
{
    struct looking looking = {log, c->last_segment, out, false};
    char name[WEIR__SEGMENT_NAME_BYTES];
    int rc;

    snprintf(name, sizeof name, "%08" PRIu64 ".seg", c->active.name);
    if (c->active.name) {
        rc = weir__backup_segment_read(log, name, out, err);
        if (rc == 0 && out->h.number == c->last_segment) return 0;
    }
    rc = log->fs->ops->list(log->fs, log->dir, look_at_name, &looking, err);
    if (rc != 0 || looking.found) return rc;
    if (c->active.name && weir__backup_segment_read(log, name, out, NULL) == WEIR_ECORRUPT &&
        out->h.capacity == c->active.capacity) {
        know_last(c, out);
        return 0;
    }
    return weir__fail(err, WEIR_EBUSY, "segment %" PRIu64 ", the last one, is not there",
                      c->last_segment);
}

/* ---- the walk ---- */

struct walk {
    struct weir__file *file;
    const struct weir__control *control;
    const struct weir__segment *segment;
    uint64_t limit; /* log position that no batch may pass */
    uint8_t *window;
    size_t window_len;
    uint64_t window_at; /* file offset of window[0] */
    bool unread;        /* the disk did not give what was asked for last */
    uint64_t bad_until; /* a window that began before this file offset could not be read whole */
};

/* Fills the window from `begin` on. Where the disk cannot give all of it, no more than `need` bytes. */
static int fill_window(struct walk *w, uint64_t begin, size_t need, struct weir_error *err)
{
    size_t most = w->window_len == 0 ? WINDOW_FIRST_BYTES : WINDOW_BYTES;
    size_t want = begin < w->bad_until ? need : most;
    int rc = w->file->ops->read(w->file, w->window, want, begin, &w->window_len, err);

    if (rc == WEIR_EIO && need < want) {
        w->bad_until = begin + want;
        rc = w->file->ops->read(w->file, w->window, need, begin, &w->window_len, err);
    }
    w->window_at = begin;
    if (rc != 0) w->window_len = 0;
    return rc;
}

/* The len bytes at a log position in one piece, a header when there is no window yet; *out NULL when
 * the file ends before. */
static int look_at(struct walk *w, uint64_t position, size_t len, const uint8_t **out,
                   struct weir_error *err)
{
    uint64_t at = position - w->segment->h.base, begin = weir__round_down(at, WEIR__FS_BLOCK);
    size_t need = weir__round_up(at + len, WEIR__FS_BLOCK) - begin;
    int rc;

    *out = NULL;
    if (w->window_len == 0 || at < w->window_at || at + len > w->window_at + w->window_len) {
        rc = fill_window(w, begin, need, err);
        if (rc != 0) return rc;
        if (at + len > begin + w->window_len) return 0;
    }
    *out = w->window + (at - w->window_at);
    return 0;
}

static bool plausible(const struct walk *w, const struct weir__batch_header *h, uint64_t position)
{
    const struct weir__control *c = w->control;

    if (h->position != position || h->partition >= c->partitions || h->epoch > c->epoch)
        return false;
    if (position >= c->epoch_start && h->epoch != c->epoch) return false;
    return position + weir__batch_bytes(h->body_bytes) <= w->limit;
}

static int check_body(struct walk *w, const struct weir__batch_header *h, bool *out_good,
                      struct weir_error *err)
{
    uint64_t p = h->position + WEIR__BATCH_HEADER_BYTES;
    uint32_t crc = 0, left = h->body_bytes;

    *out_good = false;
    while (left > 0) {
        uint32_t n = left < PIECE_BYTES ? left : PIECE_BYTES;
        const uint8_t *at;
        int rc = look_at(w, p, n, &at, err);

        if (rc != 0 || !at) return rc;
        crc = weir__crc32c(crc, at, n);
        p += n;
        left -= n;
    }
    *out_good = crc == h->body_crc;
    return 0;
}

/* Whether a whole batch begins at the position. An unreadable place is none: settling sees it. */
static int batch_at(struct walk *w, uint64_t position, struct weir__batch_header *out,
                    bool *out_good, struct weir_error *err)
{
    const struct weir__batch_stamp *stamp = &w->segment->stamp;
    const uint8_t *at = NULL;
    int rc = 0;

    *out_good = false;
    if (position + WEIR__BATCH_HEADER_BYTES > w->limit) return 0;
    rc = look_at(w, position, WEIR__BATCH_HEADER_BYTES, &at, err);
    if (rc == 0 && at && weir__batch_begins(at, stamp, position) &&
        weir__batch_decode(at, stamp, out) && plausible(w, out, position))
        rc = check_body(w, out, out_good, err);
    if (rc != WEIR_EIO) return rc;
    w->unread = true;
    return 0;
}

/* Tells apart two batches of one position. */
static uint32_t trace(uint32_t crc, const struct weir__batch_header *h)
{
    const uint64_t said[] = {h->position, h->sequence,   h->partition, (uint64_t)h->time_ms,
                             h->epoch,    h->body_bytes, h->body_crc,  h->count};

    return weir__crc32c(crc, said, sizeof said);
}

static void pass_batch(struct weir__backup_moment *m, const struct weir__batch_header *h)
{
    struct weir__head *head = &m->heads[h->partition];

    if (h->sequence + h->count < head->next_sequence) return;
    *head = weir__batch_head(h);
}

static int open_last(const struct weir__backup_log *log, const struct weir__segment *seg,
                     struct weir__file **out, struct weir_error *err)
{
    *out = NULL;
    return weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, out, err);
}

/* Moves the end over whole batches, as far as they go, or over no more than `most` of them. */
static int walk_batches(const struct weir__backup_log *log, struct weir__backup_moment *m,
                        uint64_t most, uint64_t *out_passed, struct weir_error *err)
{
    struct walk w = {.control = &m->control,
                     .segment = &m->last,
                     .limit = weir__backup_limit(&m->last)};
    struct weir__batch_header h;
    bool good = true;
    int rc = open_last(log, &m->last, &w.file, err);

    *out_passed = 0;
    w.window = aligned_alloc(WEIR__FS_BLOCK, WINDOW_BYTES);
    if (rc == 0 && !w.window) rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    while (rc == 0 && *out_passed < most) {
        rc = batch_at(&w, m->end, &h, &good, err);
        if (rc != 0 || !good) break;
        pass_batch(m, &h);
        m->trace = trace(m->trace, &h);
        m->walked++;
        m->end += weir__batch_bytes(h.body_bytes);
        ++*out_passed;
    }
    m->unread = w.unread;
    free(w.window);
    weir__file_close(w.file);
    return rc;
}

/* ---- the moment ---- */

void weir__backup_moment_fini(struct weir__backup_moment *m)
{
    weir__control_fini(&m->control);
    free(m->heads);
    *m = (struct weir__backup_moment){0};
}

static uint64_t walk_start(const struct weir__backup_moment *m)
{
    return m->control.watermark > m->last.data ? m->control.watermark : m->last.data;
}

static int begin_moment(const struct weir__backup_log *log, struct weir__backup_moment *m,
                        struct weir_error *err)
{
    const struct weir__control *c = &m->control;
    int rc = weir__backup_control_read(log, &m->control, err);

    if (rc == 0) rc = find_last(log, c, &m->last, err);
    if (rc != 0) return rc;
    if (c->watermark > weir__backup_limit(&m->last))
        return weir__fail(err, WEIR_ECORRUPT, "the control file's watermark lies behind it");
    m->heads = calloc(c->partitions, sizeof *m->heads);
    if (!m->heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    memcpy(m->heads, c->heads, c->partitions * sizeof *m->heads);
    m->end = walk_start(m);
    return 0;
}

static int take_once(const struct weir__backup_log *log, struct weir__backup_moment *m,
                     struct weir_error *err)
{
    struct weir__control after;
    uint64_t passed;
    int rc = begin_moment(log, m, err);

    if (rc == 0) rc = walk_batches(log, m, UINT64_MAX, &passed, err);
    if (rc == WEIR_ENOTFOUND && m->heads) /* the control file is there, the segment was removed */
        rc = weir__fail(err, WEIR_EBUSY, "segment %s is gone", m->last.name);
    if (rc != 0) return rc;
    rc = weir__backup_control_read(log, &after, err);
    if (rc != 0) return rc;
    if (after.first_segment > m->control.last_segment || after.epoch != m->control.epoch)
        rc = weir__fail(err, WEIR_EBUSY, "the log went on while it was looked at");
    weir__control_fini(&after);
    return rc;
}

int weir__backup_moment_take(const struct weir__backup_log *log, struct weir__backup_moment *out,
                             struct weir_error *err)
{
    int rc = WEIR_EBUSY;

    *out = (struct weir__backup_moment){0};
    for (int i = 0; rc == WEIR_EBUSY && i < MOMENT_TRIES; i++) {
        weir__backup_moment_fini(out);
        rc = take_once(log, out, err);
    }
    if (rc == 0) return 0;
    weir__backup_moment_fini(out);
    return weir__wrap(err, rc, "%s", log->dir);
}

int weir__backup_header_at(const struct weir__backup_log *log, const struct weir__segment *seg,
                           uint64_t position, struct weir__batch_header *out, bool *out_unread,
                           struct weir_error *err)
{
    struct weir__control any = {.partitions = WEIR__LOG_PARTITIONS_MAX,
                                .epoch_start = UINT64_MAX,
                                .epoch = UINT32_MAX};
    struct walk w = {.control = &any, .segment = seg, .limit = weir__backup_limit(seg)};
    bool whole;
    int rc = open_last(log, seg, &w.file, err);

    *out = (struct weir__batch_header){0};
    w.window = aligned_alloc(WEIR__FS_BLOCK, WINDOW_BYTES);
    if (rc == 0 && !w.window) rc = weir__fail(err, WEIR_ENOMEM, "out of memory");
    if (rc == 0) rc = batch_at(&w, position, out, &whole, err);
    if (!plausible(&w, out, position)) out->epoch = 0;
    *out_unread = w.unread;
    free(w.window);
    weir__file_close(w.file);
    return rc;
}

/* What the rest of the segment has. */
struct settling {
    struct weir__backup_moment *moment;
    bool damage;  /* seen before any whole batch */
    bool collect; /* damage is certain: all of it belongs to the moment */
};

static int settle_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    struct settling *s = user;

    (void)err;
    if (s->collect) pass_batch(s->moment, &b->h);
    if (!b->body_good) s->damage = true;
    return s->collect ? 0 : WALK_STOP;
}

static int settle_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    struct settling *s = user;

    (void)from, (void)to, (void)err;
    s->damage = true;
    return s->collect ? 0 : WALK_STOP;
}

static int scan_rest(const struct weir__backup_log *log, struct settling *s, struct weir_error *err)
{
    struct weir__backup_moment *m = s->moment;
    struct weir__scan scan = {.segment = &m->last,
                              .limit = weir__backup_limit(&m->last),
                              .proof = m->control.watermark,
                              .epoch_start = m->control.epoch_start,
                              .epoch = m->control.epoch,
                              .partitions = m->control.partitions};
    struct weir__scan_calls calls = {settle_batch, settle_damage, s};
    enum weir__scan_end how;
    uint64_t end;
    int rc = open_last(log, &m->last, &scan.file, err);

    if (rc == 0) rc = weir__scan_init(&scan, err);
    if (rc == 0) rc = weir__scan_run(&scan, m->end, &calls, &end, &how, err);
    if (rc == 0 && s->collect) m->end = end;
    weir__scan_fini(&scan);
    weir__file_close(scan.file);
    return rc == WALK_STOP ? 0 : rc;
}

int weir__backup_moment_settle(const struct weir__backup_log *log, struct weir__backup_moment *m,
                               struct weir_error *err)
{
    struct settling s = {.moment = m};
    struct weir__backup_moment probe;
    uint64_t passed = 0;
    int rc = m->unread ? walk_batches(log, m, UINT64_MAX, &passed, err) : 0;

    if (rc == 0) rc = scan_rest(log, &s, err);
    if (rc == 0) rc = weir__backup_check_newer(log, m, err);
    if (rc == WEIR_ENOTFOUND) return 0; /* expired: weir__backup_moment_still will say so */
    if (rc != 0 || !s.damage) return rc == 0 ? 0 : weir__wrap(err, rc, "%s", log->dir);
    /* The log may have been written to between two reads of the scan: only what is still bad now,
     * with a proof behind it that is older than this look, is damage. */
    probe = *m;
    probe.heads = calloc(m->control.partitions, sizeof *probe.heads);
    if (!probe.heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    rc = walk_batches(log, &probe, 1, &passed, err);
    free(probe.heads);
    if (rc != 0 || passed > 0) return rc;
    m->damaged = s.collect = true;
    return scan_rest(log, &s, err);
}

/* Whether the batches that were walked are still there. Those that were taken back have another
 * one in their place, or lie behind the start of the present epoch. */
static int walk_again(const struct weir__backup_log *log, const struct weir__backup_moment *m,
                      bool *out_same, struct weir_error *err)
{
    struct weir__backup_moment again = *m;
    uint64_t passed = 0;
    int rc;

    again.heads = calloc(m->control.partitions, sizeof *again.heads);
    if (!again.heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    again.end = walk_start(m);
    again.trace = 0;
    rc = walk_batches(log, &again, m->walked, &passed, err);
    *out_same = rc == 0 && again.end == m->end && again.trace == m->trace;
    free(again.heads);
    return rc == WEIR_ENOTFOUND ? 0 : rc;
}

int weir__backup_moment_still(const struct weir__backup_log *log,
                              const struct weir__backup_moment *m, uint64_t *out_first,
                              struct weir_error *err)
{
    struct weir__control now;
    bool same = true;
    int rc = weir__backup_control_read(log, &now, err);

    if (rc != 0) return rc;
    *out_first = now.first_segment;
    if (now.first_segment > m->control.last_segment)
        rc = weir__fail(err, WEIR_EBUSY, "%s: its events expire faster than they can be copied",
                        log->dir);
    else if (now.epoch != m->control.epoch && (m->damaged || now.epoch_start < m->end))
        same = false;
    else if (now.epoch != m->control.epoch)
        rc = walk_again(log, m, &same, err);
    weir__control_fini(&now);
    if (rc == 0 && !same)
        rc = weir__fail(err, WEIR_EBUSY, "%s: it was opened again while it was copied", log->dir);
    return rc;
}

int weir__backup_control(const struct weir__backup_moment *m, uint64_t first, uint64_t name,
                         const struct weir__rand *rand, struct weir__control *out,
                         struct weir_error *err)
{
    const struct weir__control *c = &m->control;
    int rc = 0;

    *out = *c;
    out->stale_at = 0;
    out->copy = NULL;
    out->heads = calloc(c->partitions, sizeof *out->heads);
    if (!out->heads) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    memcpy(out->heads, m->damaged ? c->heads : m->heads, c->partitions * sizeof *out->heads);
    out->first_segment = first;
    out->active = (struct weir__control_active){.base = m->last.h.base,
                                                .capacity = m->last.h.capacity,
                                                .data = m->last.data,
                                                .name = name};
    if (!m->damaged) out->watermark = out->epoch_start = m->end;
    while (rc == 0 && out->secret == 0) /* of version 1, which had none */
        rc = rand->fill(rand->self, &out->secret, sizeof out->secret, err);
    return rc;
}
