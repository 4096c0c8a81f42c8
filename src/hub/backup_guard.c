/* backup_guard.c - that a backup does not give up what it alone has.
 *
 * A hub that ends in front of where the backup's does was restored from an older backup, or has lost its
 * end.
 *
 * A copy of a segment that was written to afterwards lacks what came later. When the folder's file is
 * damaged where that copy is whole, or is lost, neither of the two has everything, and the one cannot take
 * the place of the other. The hub then stays in the backup as it was there, and that is told. */
#include <inttypes.h>

#include "hub/backup_manifest.h"

static const struct weir__manifest_segment *find(const struct weir__manifest_hub *hub,
                                                 uint64_t number)
{
    for (uint32_t i = 0; i < hub->segment_count; i++)
        if (hub->segments[i].number == number) return &hub->segments[i];
    return NULL;
}

/* It is the copy, or it is known already that the copy does not serve, or the copy is of another line: it
 * lies elsewhere, or another opening began it. Without a header nobody knows the epoch. */
static bool is_decided(const struct weir__manifest_segment *has,
                       const struct weir__manifest_segment *seg)
{
    if (seg->name == has->name || seg->base != has->base) return true;
    return seg->epoch != 0 && (seg->epoch != has->epoch || seg->end == has->end);
}

/* A copy that has a successor in the former backup is of a sealed segment, which does not end elsewhere
 * later. Only when nothing else is known of its end can the two differ. */
static bool may_differ(const struct weir__backup_job *job, const struct weir__manifest_hub *hub,
                       const struct weir__manifest_segment *has)
{
    const struct weir__manifest_segment *after = find(job->former, has->number + 1);
    const struct weir__manifest_segment *next = find(hub, has->number + 1);

    return !after || !next || next->name == after->name;
}

/* A segment that is nowhere: its successor, if there is one, is joined by the copy, or lies elsewhere, when
 * that is of another line. */
static bool is_part_of_lost(const struct weir__manifest_segment *has,
                            const struct weir__manifest_segment *next)
{
    if (!next) return true;
    return next->base == has->base + has->extent.bytes && next->previous_end > has->end;
}

static int guard_copy(const struct weir__backup_job *job, const struct weir__manifest_hub *hub,
                      const struct weir__manifest_segment *has, struct weir_error *err)
{
    const struct weir__manifest_segment *seg = find(hub, has->number);
    bool lost = seg ? !is_decided(has, seg) && seg->whole < has->end
                    : is_part_of_lost(has, find(hub, has->number + 1));
    char path[WEIR__BACKUP_PATH_BYTES];
    int rc;

    lost = lost && may_differ(job, hub, has);
    rc = lost ? weir__backup_is_good(job, has, &lost, err) : 0;
    if (rc != 0 || !lost) return rc;
    weir__backup_segment_path(job->to, hub->id, has->name, path);
    return weir__fail(err, WEIR_ECORRUPT,
                      "segment %" PRIu64 " is %s, and %s has the good copy of what it was. "
                      "For what was added since, back up into a new folder, and keep both",
                      has->number, seg ? "damaged" : "lost", path);
}

int weir__backup_guard(const struct weir__backup_job *job, const struct weir__manifest_hub *hub,
                       uint64_t first, struct weir_error *err)
{
    uint64_t newest = hub->segments[hub->segment_count - 1].number;
    int rc = 0;

    for (uint32_t i = 0; job->former && rc == 0 && i < job->former->segment_count; i++) {
        const struct weir__manifest_segment *has = &job->former->segments[i];

        if (has->number >= first && has->number > 0 && has->number <= newest)
            rc = guard_copy(job, hub, has, err);
    }
    if (rc == 0 && job->former && job->former->end > hub->end)
        rc = weir__fail(err, WEIR_ECORRUPT,
                        "it ends at offset %" PRIu64 ", and the backup has it up to %" PRIu64
                        ": an older backup was restored, or its end is lost. "
                        "Back up into a new folder, and keep both",
                        hub->end, job->former->end);
    return rc;
}
