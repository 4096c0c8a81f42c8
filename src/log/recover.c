/* recover.c - from files to an open log.
 *
 * The control file says which segments are the log's. All but the last are known to be whole up to
 * the end that their successor's header names; only the last is walked. Whatever cannot be read
 * costs what was in it and nothing else, and nothing that may hold a batch is removed:
 *
 *   found                                          becomes
 *   file of a kept number, one good header copy    a segment (the other copy is reported)
 *   kept number without a good header              headless: its file is known by its batches, by its
 *                                                  neighbours, or by the control file
 *   kept number without a file                     a lost segment: its events answer as damaged
 *   no good control file                           made again from the segments' headers
 *   neither that nor any header                    the log does not open; nothing is touched
 *   file longer or shorter than its header says    that segment, never written to; what its file does
 *                                                  not have any more is damage
 *   file that contradicts the others               ignored, kept
 *   file of no kept number, without kept batches   removed
 *   bad batch below the watermark                  damage: not served, not overwritten
 *   bad batch above it                             torn: cut, saved in cut-POSITION-EPOCH.bin
 *   bytes that the disk does not give              bad bytes, block by block; blocks at or behind
 *                                                  the end are never written over */
#include "log/recover.h"

#include <inttypes.h>

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

/* Where each partition begins. One that ends before has lost what lay between. */
static int load_begin(struct weir__log *log, struct weir_error *err)
{
    int rc;

    weir__mutex_lock(&log->lock);
    rc = weir__log_heads_of(log, log->segments[0], log->begin_heads, err);
    weir__mutex_unlock(&log->lock);
    for (uint32_t i = 0; rc == 0 && i < log->partitions; i++)
        if (log->begin_heads[i].next_sequence > log->heads[i].next_sequence) {
            weir__log_line(&log->o.logger, WEIR__ERROR, "log",
                           "damage dir=%s: partition %u begins behind its end", log->dir, i);
            log->heads[i].next_sequence = log->begin_heads[i].next_sequence;
        }
    return rc;
}

int weir__log_recover(struct weir__log *log, bool no_control, struct weir_error *err)
{
    struct weir__recovery r = {.log = log, .err = err, .no_control = no_control};
    int rc = weir__gather(&r);

    if (rc == 0) rc = weir__gaps_init(&r.gaps, log->partitions, log->control.watermark, err);
    if (rc == 0) rc = weir__active_open(&r);
    if (rc == 0) rc = load_begin(log, err);
    if (rc == 0) rc = weir__gather_clear(&r);
    weir__recovery_fini(&r);
    if (rc != 0) return rc;
    weir__cut_expire(log, log->segments[0]->h.base);
    memcpy(log->durable_heads, log->heads, log->partitions * sizeof *log->heads);
    return 0;
}
