/* backup_newer.c - whether the control file of a moment is as new as what lies in the folder.
 *
 * A segment gets batches, and an opening writes any, only after the control file says so. So a batch of a
 * segment or of an opening that it does not name shows that an older copy was put in its place, and that
 * the moment is not the newest. The header of a batch is proof enough: its body may be damaged. */
#include <inttypes.h>
#include <string.h>

#include "log/backup.h"
#include "log/lives.h"
#include "log/state.h"

#define FOUND 1 /* what a scan stops with */

static int stop_at_batch(void *user, const struct weir__scan_batch *b, struct weir_error *err)
{
    bool *any = user;

    (void)b, (void)err;
    *any = true;
    return FOUND;
}

static int pass_damage(void *user, uint64_t from, uint64_t to, struct weir_error *err)
{
    (void)user, (void)from, (void)to, (void)err;
    return 0;
}

/* Whether there is a batch anywhere in a segment; *out_unread: places that the disk did not give. */
static int has_batch(const struct weir__backup_log *log, const struct weir__segment *seg,
                     bool *out_any, bool *out_unread, struct weir_error *err)
{
    struct weir__scan scan = {.segment = seg,
                              .limit = weir__backup_limit(seg),
                              .proof = weir__backup_limit(seg),
                              .epoch_start = UINT64_MAX,
                              .epoch = UINT32_MAX,
                              .partitions = WEIR__LOG_PARTITIONS_MAX};
    struct weir__scan_calls calls = {stop_at_batch, pass_damage, out_any};
    enum weir__scan_end how;
    uint64_t end;
    int rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &scan.file, err);

    if (rc == 0) rc = weir__scan_init(&scan, err);
    if (rc == 0) rc = weir__scan_run(&scan, seg->data, &calls, &end, &how, err);
    *out_unread = scan.bad.count > 0;
    weir__scan_fini(&scan);
    weir__file_close(scan.file);
    return rc == FOUND ? 0 : rc;
}

/* What is newer than the control file of a moment. */
struct newer {
    const struct weir__backup_log *log;
    const struct weir__backup_moment *moment;
    uint64_t segment; /* with batches in it */
    uint32_t epoch;
    struct weir_error *err;
};

/* As if a file without a header went on behind the last segment. */
static void suppose_next(const struct weir__backup_moment *m, const struct weir__backup_log *log,
                         struct weir__segment *seg)
{
    seg->h.number = m->control.last_segment + 1;
    seg->h.base = m->last.h.base + m->last.h.capacity;
    seg->h.heads_bytes = weir__segment_heads_bytes(m->control.partitions);
    seg->data = seg->h.base + weir__segment_front_bytes(seg->h.heads_bytes);
    seg->stamp = weir__batch_stamp(log->hub_id, m->control.secret);
}

/* A spare has no batch of a segment behind the last one. */
static int see_headless(struct newer *n, struct weir__segment *seg, bool *out_any, bool *out_unread)
{
    const struct weir__backup_log *log = n->log;
    uint64_t secret = n->moment->control.secret;
    const struct weir__life *newest;
    struct weir__batch_header first;
    struct weir__lives lives;
    struct weir__file *f = NULL;
    int rc = weir__log_open_name(log->fs, log->dir, seg->name, WEIR__FS_READ_ONLY, &f, n->err);

    if (rc == 0) rc = weir__lives_read(f, log->hub_id, secret, &lives, n->err);
    weir__file_close(f);
    if (rc != 0) return rc;
    suppose_next(n->moment, log, seg);
    newest = weir__lives_newest(&lives, secret);
    rc = weir__backup_header_at(log, seg, seg->data, &first, out_unread, n->err);
    *out_any = (newest && newest->base >= seg->h.base) || first.epoch > 0;
    return rc;
}

static int see_newer(const char *name, void *user)
{
    struct newer *n = user;
    const struct weir__segment *last = &n->moment->last;
    struct weir__segment seg;
    bool any = false, unread = false;
    int rc;

    if (!weir__backup_is_segment(name) || strcmp(name, last->name) == 0) return 0;
    rc = weir__backup_segment_read(n->log, name, &seg, n->err);
    if (rc == WEIR_ECORRUPT) {
        rc = see_headless(n, &seg, &any, &unread);
    } else if (rc == 0) {
        if (seg.h.number <= n->segment || seg.h.base < last->h.base + last->h.capacity) return 0;
        rc = has_batch(n->log, &seg, &any, &unread, n->err);
    }
    if (rc == WEIR_ENOTFOUND) return 0;
    if (rc == 0 && !any && seg.h.number > 0)
        seg.h.number--; /* it is named when the next has a header */
    if (seg.h.number > n->segment) n->segment = seg.h.number;
    if (rc == 0 && !any && unread)
        rc = weir__fail(n->err, WEIR_EIO, "segment %s, which may be newer than the control file",
                        name);
    return rc;
}

static int see_newer_epoch(struct newer *n)
{
    const struct weir__backup_moment *m = n->moment;
    struct weir__batch_header h;
    bool unread;
    int rc = weir__backup_header_at(n->log, &m->last, m->end, &h, &unread, n->err);

    if (rc == 0 && h.epoch > n->epoch) n->epoch = h.epoch;
    return rc == WEIR_ENOTFOUND ? 0 : rc;
}

int weir__backup_check_newer(const struct weir__backup_log *log,
                             const struct weir__backup_moment *m, struct weir_error *err)
{
    struct newer n = {log, m, m->control.last_segment, m->control.epoch, err};
    struct weir__control now;
    int rc = see_newer_epoch(&n);

    if (rc == 0) rc = log->fs->ops->list(log->fs, log->dir, see_newer, &n, err);
    if (rc != 0 || (n.segment == m->control.last_segment && n.epoch == m->control.epoch)) return rc;
    rc = weir__backup_control_read(log, &now, err);
    if (rc != 0) return rc;
    if (now.last_segment < n.segment)
        rc = weir__fail(err, WEIR_ECORRUPT, "its control file is older than segment %" PRIu64,
                        n.segment);
    else if (now.epoch < n.epoch)
        rc = weir__fail(err, WEIR_ECORRUPT, "its control file is older than batches of segment %s",
                        m->last.name);
    weir__control_fini(&now);
    return rc;
}
