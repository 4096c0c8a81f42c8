/* backup_hub.c - one hub of a backup: which segments are copied, reused and dropped.
 *
 * From the newest segment to the oldest, because the oldest expire first. A segment that the backup
 * has already, the same to its last bytes, is not copied. Afterwards the control file says which
 * of them were still kept: only those were surely not written to while they were copied.
 *
 * A backup is there for the day on which the folder is damaged. So a good copy of a segment is never
 * given up for a damaged one, nor because the folder has lost the file. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "hub/backup_manifest.h"
#include "hub/namespace.h"
#include "hub/state.h"

/* ---- one segment ---- */

static bool same_segment(const struct weir__manifest_segment *a,
                         const struct weir__manifest_segment *b)
{
    return a->number == b->number && a->base == b->base && a->previous_end == b->previous_end &&
           a->end == b->end && a->epoch == b->epoch && a->extent.bytes == b->extent.bytes &&
           a->extent.used == b->extent.used && a->extent.tail == b->extent.tail &&
           a->extent.mark == b->extent.mark;
}

static int size_of_copy(const struct weir__backup_job *job,
                        const struct weir__manifest_segment *seg, uint64_t *out,
                        struct weir_error *err)
{
    struct weir__fs *fs = job->options->fs;
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__file *f = NULL;
    int rc;

    weir__backup_segment_path(job->to, job->log.hub_id, seg->name, path);
    rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, err);
    if (rc == 0) rc = f->ops->size(f, out, err);
    weir__file_close(f);
    return rc;
}

static bool has_size(const struct weir__backup_job *job, const struct weir__manifest_segment *seg)
{
    uint64_t bytes;

    return size_of_copy(job, seg, &bytes, NULL) == 0 && bytes == seg->extent.bytes;
}

/* Takes over what the backup has of a segment; a file without a header is always copied. */
static bool reuse(const struct weir__backup_job *job, const struct weir__manifest_hub *from,
                  struct weir__manifest_segment *seg)
{
    for (uint32_t i = 0; from && seg->number != 0 && i < from->segment_count; i++) {
        const struct weir__manifest_segment *has = &from->segments[i];

        if (!same_segment(has, seg) || !has_size(job, has)) continue;
        *seg = *has;
        return true;
    }
    return false;
}

static void tell_damage(const struct weir__backup_job *job, const char *file, uint64_t at,
                        uint64_t len, const char *text)
{
    weir__log_line(&job->options->logger, WEIR__ERROR, "backup",
                   "damage hub=%s file=%s/%s byte=%" PRIu64 " bytes=%" PRIu64 ": %s", job->hub_name,
                   job->log.dir, file, at, len, text);
}

struct finding {
    const struct weir__backup_job *job;
    const char *file;
    uint64_t count;
    uint64_t whole; /* byte of the file in front of which nothing is lost */
};

static void see_finding(const struct weir__backup_finding *f, void *user)
{
    struct finding *to = user;

    to->count++;
    if (!f->spare && f->at < to->whole) to->whole = f->at;
    tell_damage(to->job, to->file, f->at, f->len, f->text);
}

static int verify(const struct weir__backup_job *job, const struct weir__segment *source,
                  struct weir__manifest_segment *seg, struct weir_error *err)
{
    struct finding finding = {job, source->name, 0, UINT64_MAX};
    char path[WEIR__BACKUP_PATH_BYTES];
    int rc;

    if (!seg->fresh || seg->number == 0) return 0;
    seg->whole =
        source->lost || (job->options->no_verify && seg->damaged > 0) ? seg->base : UINT64_MAX;
    if (job->options->no_verify) return 0;
    weir__backup_segment_path(job->to, job->log.hub_id, seg->name, path);
    rc = weir__backup_verify(job->options->fs, path, source, seg->end, see_finding, &finding, err);
    seg->damaged += finding.count;
    if (finding.whole < UINT64_MAX) seg->whole = seg->base + finding.whole;
    seg->fresh = rc != 0;
    return rc;
}

static int copy_segment(struct weir__backup_job *job, const struct weir__segment *source,
                        struct weir__manifest_segment *seg, uint64_t name, struct weir_error *err)
{
    char from[WEIR__BACKUP_PATH_BYTES], to[WEIR__BACKUP_PATH_BYTES];
    struct weir__digest digest = {0};
    struct weir__backup_sink sink = {weir__digest_add, &digest};
    struct weir__backup_copied copied = {0};
    int rc = weir__digest_begin(&digest, err);

    weir__backup_segment_path(job->to, job->log.hub_id, name, to);
    snprintf(from, sizeof from, "%s/%s", job->log.dir, source->name);
    if (rc == 0)
        rc = weir__backup_copy(job->options->fs, from, to, &seg->extent, &sink, &copied, err);
    weir__digest_end(&digest, seg->digest);
    job->at_source = copied.at_source;
    if (rc != 0) return rc;
    seg->name = name;
    seg->fresh = true;
    seg->damaged = (copied.unreadable > 0 ? 1u : 0u) + (seg->number == 0 ? 1u : 0u);
    if (seg->number != 0 && seg->extent.bytes < source->h.capacity && job->options->no_verify) {
        seg->damaged++;
        tell_damage(job, source->name, seg->extent.bytes, source->h.capacity - seg->extent.bytes,
                    "the file was cut");
    }
    if (copied.unreadable > 0)
        tell_damage(job, source->name, 0, copied.unreadable, "the disk cannot read all of it");
    if (seg->number == 0) tell_damage(job, source->name, 0, seg->extent.bytes, "no header");
    job->result->segments_copied++;
    job->result->bytes_copied += seg->extent.used + seg->extent.bytes - seg->extent.tail;
    return 0;
}

/* ---- the hub ---- */

static void describe(const struct weir__segment *source, struct weir__manifest_segment *out)
{
    *out = (struct weir__manifest_segment){.number = source->h.number,
                                           .base = source->h.base,
                                           .previous_end = source->h.previous_end,
                                           .end = source->end,
                                           .epoch = source->h.epoch};
}

/* One segment into the backup. *out_gone: its file went while we were at it. */
static int save_segment(struct weir__backup_job *job, struct weir__manifest_hub *hub,
                        const struct weir__segment *source, bool sealed,
                        struct weir__manifest_segment *seg, bool *out_gone, struct weir_error *err)
{
    int rc;

    describe(source, seg);
    *out_gone = false;
    rc = weir__backup_measure(&job->log, source, source->end, sealed, &seg->extent, err);
    job->at_source = rc != 0;
    if (rc == 0 && reuse(job, job->pool, seg)) return 0;
    if (rc == 0 && reuse(job, job->former, seg)) {
        job->result->segments_reused++;
        job->result->bytes_reused += seg->extent.used + seg->extent.bytes - seg->extent.tail;
        return 0;
    }
    if (rc == 0) rc = copy_segment(job, source, seg, hub->next_name++, err);
    *out_gone = rc == WEIR_ENOTFOUND;
    return *out_gone ? 0 : rc;
}

/* All segments of the row; those in front of one that is gone have expired too. */
static int save_row(struct weir__backup_job *job, const struct weir__backup_row *row,
                    struct weir__manifest_hub *hub, struct weir_error *err)
{
    bool gone = false;
    size_t i = row->count;
    int rc = 0;

    hub->segments = calloc(row->count, sizeof *hub->segments);
    if (!hub->segments) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    hub->segment_count = (uint32_t)row->count;
    while (rc == 0 && i > 0) {
        i--;
        rc = save_segment(job, hub, &row->at[i], i + 1 < row->count, &hub->segments[i], &gone, err);
        if (gone) i++;
        if (gone) break;
    }
    if (i > 0) memmove(hub->segments, hub->segments + i, (row->count - i) * sizeof *hub->segments);
    hub->segment_count -= (uint32_t)i;
    if (rc == 0 && hub->segment_count == 0)
        rc = weir__fail(err, WEIR_EBUSY, "segment %s is gone", row->at[row->count - 1].name);
    return rc;
}

/* Takes out what had expired by the time it was copied. */
static void drop_expired(struct weir__manifest_hub *hub, uint64_t first)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < hub->segment_count; i++) {
        const struct weir__manifest_segment *seg = &hub->segments[i];

        if (seg->number == 0 || seg->number >= first) hub->segments[kept++] = *seg;
    }
    hub->segment_count = kept;
}

static int verify_row(struct weir__backup_job *job, const struct weir__backup_row *row,
                      struct weir__manifest_hub *hub, struct weir_error *err)
{
    size_t at = row->count;
    int rc = 0;

    for (uint32_t i = hub->segment_count; rc == 0 && i > 0; i--) {
        struct weir__manifest_segment *seg = &hub->segments[i - 1];

        do at--;
        while (at > 0 && row->at[at].h.number != seg->number);
        rc = verify(job, &row->at[at], seg, err);
    }
    return rc;
}

/* ---- what the backup has and the folder has lost ---- */

int weir__backup_is_good(const struct weir__backup_job *job,
                         const struct weir__manifest_segment *has, bool *out,
                         struct weir_error *err)
{
    uint64_t bytes;
    int rc;

    *out = false;
    if (has->number == 0 || has->damaged != 0) return 0;
    rc = size_of_copy(job, has, &bytes, err);
    *out = rc == 0 && bytes == has->extent.bytes;
    return rc == WEIR_ENOTFOUND || rc == WEIR_EIO ? 0 : rc;
}

static bool same_place(const struct weir__manifest_segment *has,
                       const struct weir__manifest_segment *seg)
{
    return seg->base == has->base && seg->end == has->end && seg->epoch == has->epoch;
}

/* Whether the marks say that a copy is of this very segment, which is damaged: another one that went on
 * differently may have the same place and length. Damage may lie where one half of the mark is made; a half
 * of 0 could not be read. */
static bool marks_agree(const struct weir__manifest_segment *has,
                        const struct weir__manifest_segment *seg)
{
    uint64_t differs = has->extent.mark ^ seg->extent.mark;
    uint32_t high = (uint32_t)(seg->extent.mark >> 32), low = (uint32_t)seg->extent.mark;

    return high == 0 || low == 0 || differs >> 32 == 0 || (uint32_t)differs == 0;
}

static void take_over(const struct weir__backup_job *job, struct weir__manifest_segment *to,
                      const struct weir__manifest_segment *has)
{
    *to = *has;
    job->result->kept_good++;
    job->result->segments_reused++;
    job->result->bytes_reused += has->extent.used + has->extent.bytes - has->extent.tail;
    weir__log_line(&job->options->logger, WEIR__WARN, "backup",
                   "hub=%s: segment %" PRIu64 " stays as the backup has it, which is good",
                   job->hub_name, has->number);
}

/* Whether a copy is the segment in front of another one. */
static bool joins(const struct weir__manifest_segment *has,
                  const struct weir__manifest_segment *next)
{
    return has->number + 1 == next->number && has->base + has->extent.bytes == next->base &&
           has->end == next->previous_end;
}

static struct weir__backup_log backup_of(const struct weir__backup_job *job,
                                         char dir[WEIR__HUB_PATH_BYTES])
{
    weir__namespace_hub_dir(job->to, job->log.hub_id, dir);
    return (struct weir__backup_log){job->options->fs, dir, job->log.hub_id};
}

static void name_of(const struct weir__manifest_segment *seg, char out[WEIR__SEGMENT_NAME_BYTES])
{
    snprintf(out, WEIR__SEGMENT_NAME_BYTES, "%08" PRIu64 ".seg", seg->name);
}

/* No name is used twice: the former backup has this very file. */
static bool is_of_former(const struct weir__backup_job *job,
                         const struct weir__manifest_segment *seg)
{
    for (uint32_t i = 0; i < job->former->segment_count; i++)
        if (job->former->segments[i].name == seg->name) return true;
    return false;
}

static int look_for_newest(const struct weir__backup_job *job, struct weir__head *room,
                           uint32_t partitions, const struct weir__manifest_segment *has,
                           const struct weir__manifest_segment *next, bool *out_lacks,
                           struct weir_error *err)
{
    char dir[WEIR__HUB_PATH_BYTES], name[WEIR__SEGMENT_NAME_BYTES];
    struct weir__backup_log backup = backup_of(job, dir);
    int rc;

    name_of(next, name);
    rc = weir__backup_heads(&backup, name, partitions, room, err);
    name_of(has, name);
    return rc == 0 ? weir__backup_lacks(&backup, name, has->end, partitions, room, out_lacks, err)
                   : rc;
}

enum lines { UNPROVED, ONE_LINE, TWO_LINES };

/* Whether a copy of the former backup, which joins the next segment, is of one line with it: then it has
 * the newest events that the next one knows of. What cannot be read proves nothing. An event is known by
 * its place and time: under a clock that lies behind, events of two lines may have one time, and those at
 * equal places pass for the same. */
static int compare_lines(const struct weir__backup_job *job, uint32_t partitions,
                         const struct weir__manifest_segment *has,
                         const struct weir__manifest_segment *next, enum lines *out,
                         struct weir_error *err)
{
    struct weir__head *room;
    bool lacks = false;
    int rc;

    *out = is_of_former(job, next) ? ONE_LINE : UNPROVED;
    if (*out == ONE_LINE) return 0;
    room = calloc(partitions, sizeof *room);
    if (!room) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    rc = look_for_newest(job, room, partitions, has, next, &lacks, err);
    free(room);
    if (rc == 0) *out = lacks ? TWO_LINES : ONE_LINE;
    return rc == WEIR_ECORRUPT || rc == WEIR_EIO || rc == WEIR_ENOTFOUND ? 0 : rc;
}

/* A copy of a segment that the folder does not have, in front of its successor. */
static int insert(const struct weir__backup_job *job, struct weir__manifest_hub *hub,
                  uint32_t partitions, const struct weir__manifest_segment *has, bool *out_done,
                  struct weir_error *err)
{
    struct weir__manifest_segment *grown;
    enum lines lines = TWO_LINES;
    uint32_t at = 0;
    int rc = 0;

    while (at < hub->segment_count && !joins(has, &hub->segments[at])) at++;
    if (at < hub->segment_count)
        rc = compare_lines(job, partitions, has, &hub->segments[at], &lines, err);
    *out_done = rc == 0 && lines != TWO_LINES;
    if (!*out_done) return rc;
    grown = realloc(hub->segments, (hub->segment_count + 1) * sizeof *grown);
    if (!grown) return weir__fail(err, WEIR_ENOMEM, "out of memory");
    memmove(grown + at + 1, grown + at, (hub->segment_count++ - at) * sizeof *grown);
    hub->segments = grown;
    take_over(job, &grown[at], has);
    return 0;
}

static struct weir__manifest_segment *find_number(const struct weir__manifest_hub *hub,
                                                  uint64_t number)
{
    for (uint32_t i = 0; i < hub->segment_count; i++)
        if (hub->segments[i].number == number) return &hub->segments[i];
    return NULL;
}

/* Both halves of the mark differ when a segment was sealed after it was copied, and then damaged at its
 * end. Its successor tells which line it is of. */
static int successor_agrees(const struct weir__backup_job *job,
                            const struct weir__manifest_hub *hub, uint32_t partitions,
                            const struct weir__manifest_segment *has, bool *out,
                            struct weir_error *err)
{
    const struct weir__manifest_segment *next = find_number(hub, has->number + 1);
    enum lines lines = UNPROVED;
    int rc = 0;

    if (next && joins(has, next)) rc = compare_lines(job, partitions, has, next, &lines, err);
    *out = rc == 0 && lines == ONE_LINE;
    return rc;
}

/* A good copy in the place of a segment that is damaged. */
static int replace(const struct weir__backup_job *job, const struct weir__manifest_hub *hub,
                   uint32_t partitions, const struct weir__manifest_segment *has,
                   struct weir__manifest_segment *seg, struct weir_error *err)
{
    bool same = same_place(has, seg) && marks_agree(has, seg);
    int rc = 0;

    if (!same && same_place(has, seg)) rc = successor_agrees(job, hub, partitions, has, &same, err);
    /* Where the last file was cut, nobody knows how far it went. */
    if (rc == 0 && same && seg->extent.bytes < has->extent.bytes &&
        !find_number(hub, has->number + 1))
        job->result->damaged++;
    if (rc == 0 && same) take_over(job, seg, has);
    return rc;
}

/* From the newest to the oldest, so that each has its successor. *missing: segments that the folder
 * has lost; those that are found here are not missing any more. */
static int keep_good(const struct weir__backup_job *job, struct weir__manifest_hub *hub,
                     uint32_t partitions, uint64_t first, uint64_t *missing, struct weir_error *err)
{
    const struct weir__manifest_hub *former = job->former;
    int rc = 0;

    for (uint32_t i = former ? former->segment_count : 0; rc == 0 && i > 0; i--) {
        const struct weir__manifest_segment *has = &former->segments[i - 1];
        struct weir__manifest_segment *seg = find_number(hub, has->number);
        bool good, done = false;

        if (has->number < first || (seg && seg->damaged == 0) || (!seg && *missing == 0)) continue;
        rc = weir__backup_is_good(job, has, &good, err);
        if (rc != 0 || !good) continue;
        if (!seg)
            rc = insert(job, hub, partitions, has, &done, err);
        else
            rc = replace(job, hub, partitions, has, seg, err);
        if (done) --*missing;
    }
    return rc;
}

/* Puts segments of the former backup in front, as long as they join. */
static int keep_expired(const struct weir__backup_job *job, struct weir__manifest_hub *hub,
                        uint32_t partitions, uint64_t *first, struct weir_error *err)
{
    const struct weir__manifest_hub *former = job->former;
    struct weir__manifest_segment *grown;
    enum lines lines;
    int rc = 0;

    for (uint32_t i = former ? former->segment_count : 0; i > 0; i--) {
        const struct weir__manifest_segment *old = &former->segments[i - 1];
        const struct weir__manifest_segment *next = &hub->segments[0];

        if (old->number == 0 || next->number != *first || !joins(old, next)) continue;
        rc = compare_lines(job, partitions, old, next, &lines, err);
        if (rc != 0 || lines == TWO_LINES) return rc;
        grown = realloc(hub->segments, (hub->segment_count + 1) * sizeof *grown);
        if (!grown) return weir__fail(err, WEIR_ENOMEM, "out of memory");
        memmove(grown + 1, grown, hub->segment_count++ * sizeof *grown);
        grown[0] = *old;
        hub->segments = grown;
        *first = old->number;
        job->result->segments_reused++;
        job->result->bytes_reused += old->extent.used + old->extent.bytes - old->extent.tail;
    }
    return 0;
}

/* Events from where the oldest segment begins up to the moment; 0 when its header cannot be read. */
static int count_events(const struct weir__backup_job *job, const struct weir__backup_moment *m,
                        struct weir__manifest_hub *hub, struct weir_error *err)
{
    uint32_t partitions = m->control.partitions;
    struct weir__head *begin = calloc(partitions, sizeof *begin);
    struct weir__fs *fs = job->options->fs;
    struct weir__segment_header h;
    char path[WEIR__BACKUP_PATH_BYTES];
    struct weir__file *f = NULL;
    int bad, rc = begin ? 0 : WEIR_ENOMEM;
    uint32_t i = 0;

    while (i + 1 < hub->segment_count && hub->segments[i].number == 0) i++;
    weir__backup_segment_path(job->to, hub->id, hub->segments[i].name, path);
    if (rc == 0) rc = fs->ops->open(fs, path, WEIR__FS_READ_ONLY, &f, NULL);
    if (rc == 0) rc = weir__segment_read_header(f, hub->id, &h, &bad, NULL);
    if (rc == 0) rc = weir__segment_read_heads(f, &h, partitions, begin, NULL, NULL);
    weir__file_close(f);
    for (uint32_t p = 0; rc == 0 && p < partitions; p++)
        if (m->heads[p].next_sequence > begin[p].next_sequence)
            hub->events += m->heads[p].next_sequence - begin[p].next_sequence;
    free(begin);
    return rc == WEIR_ENOMEM ? weir__fail(err, rc, "out of memory") : 0;
}

int weir__backup_hub_begin(struct weir__backup_job *job, const struct weir__backup_moment *m,
                           struct weir__manifest_hub *hub, struct weir_error *err)
{
    char dir[WEIR__HUB_PATH_BYTES];
    struct weir__fs *fs = job->options->fs;
    int rc;

    weir__namespace_hub_dir(job->to, job->log.hub_id, dir);
    *hub = (struct weir__manifest_hub){.id = job->log.hub_id,
                                       .source_version = m->control.version,
                                       .end = m->end,
                                       .next_name = 1};
    if (job->former) hub->next_name = job->former->next_name;
    if (job->pool && job->pool->next_name > hub->next_name) hub->next_name = job->pool->next_name;
    rc = fs->ops->make_dir(fs, dir, err);
    if (rc == WEIR_EEXIST) rc = 0;
    return rc == 0 ? weir__backup_extras(&job->log, job->to, job->former, hub, err) : rc;
}

static void note_unread(const struct weir__backup_job *job, const struct weir__backup_moment *m,
                        struct weir__manifest_hub *hub)
{
    struct weir__manifest_segment *last = &hub->segments[hub->segment_count - 1];

    if (!m->unread) return;
    if (last->whole > m->end) last->whole = m->end;
    tell_damage(job, m->last.name, m->end - m->last.h.base, 0,
                "the disk cannot read what lies behind");
}

static int finish_hub(struct weir__backup_job *job, const struct weir__backup_moment *m,
                      struct weir__backup_row *row, struct weir__manifest_hub *hub,
                      struct weir_error *err)
{
    char dir[WEIR__HUB_PATH_BYTES];
    struct weir__fs *fs = job->options->fs;
    uint64_t first = 0;
    int rc = weir__backup_moment_still(&job->log, m, &first, err);

    job->at_source = rc != 0;
    if (rc != 0) return rc;
    if (first < m->control.first_segment) first = m->control.first_segment;
    drop_expired(hub, first);
    rc = verify_row(job, row, hub, err);
    if (rc == 0) rc = keep_good(job, hub, m->control.partitions, first, &row->missing, err);
    if (rc == 0) {
        note_unread(job, m, hub);
        rc = weir__backup_guard(job, hub, first, err);
        job->at_source = rc == WEIR_ECORRUPT;
    }
    if (rc == 0 && job->options->keep_expired)
        rc = keep_expired(job, hub, m->control.partitions, &first, err);
    if (rc == 0)
        rc = weir__backup_control(m, first, hub->segments[hub->segment_count - 1].name,
                                  &job->options->rand, &hub->control, err);
    weir__namespace_hub_dir(job->to, hub->id, dir);
    if (rc == 0 && (!job->former || hub->next_name != job->former->next_name))
        rc = fs->ops->sync_dir(fs, dir, err); /* there are new names in it */
    return rc == 0 ? count_events(job, m, hub, err) : rc;
}

int weir__backup_hub(struct weir__backup_job *job, const struct weir__backup_moment *m,
                     struct weir__manifest_hub *out, struct weir_error *err)
{
    struct weir__backup_row row = {0};
    int rc = weir__backup_row_read(&job->log, m, &row, err);

    job->at_source = rc != 0;
    if (rc == 0 && row.missing > 0)
        weir__log_line(&job->options->logger, WEIR__ERROR, "backup",
                       "damage hub=%s: %" PRIu64 " segments of %s have no readable file",
                       job->hub_name, row.missing, job->log.dir);
    if (rc == 0) rc = save_row(job, &row, out, err);
    if (rc == 0) rc = finish_hub(job, m, &row, out, err);
    for (uint32_t i = 0; rc == 0 && i < out->segment_count; i++)
        job->result->damaged += out->segments[i].damaged;
    job->result->damaged += rc == 0 ? row.missing + m->unread : 0;
    weir__backup_row_fini(&row);
    return rc;
}
