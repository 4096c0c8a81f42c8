/* refusal.c - see refusal.h. */
#include "support/refusal.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/pace.h"

#define BODY_BYTES 6000u
#define CAUSE "simulated fault" /* what simfs says */

/* What is done on the way must work. */
static void must(bool done)
{
    assert(done);
    (void)done;
}

static void see_line(enum weir__level level, const char *room, const char *line, void *user)
{
    struct refusal_stage *s = user;

    (void)level, (void)room;
    if (strstr(line, CAUSE)) s->told = true;
}

static void init_stage(struct refusal_stage *s, struct simfs *disk)
{
    *s = (struct refusal_stage){.disk = disk, .clock = {.wall_ms = 1700000000000, .mono_ms = 1000}};
    s->o = (struct weir__log_options){.fs = simfs_fs(disk),
                                      .clock = simclock(&s->clock),
                                      .logger = {see_line, s},
                                      .dir = REFUSAL_DIR,
                                      .hub_id = 5,
                                      .partitions = REFUSAL_PARTITIONS,
                                      .batch_bytes_max = 16384,
                                      .segment_bytes_min = REFUSAL_SEGMENT_BYTES,
                                      .segment_bytes_max = REFUSAL_SEGMENT_BYTES,
                                      .producers_tidy_blocks = 100,
                                      .retain_ms = -1,
                                      .no_threads = true};
    s->outside = (struct weir__backup_log){s->o.fs, REFUSAL_DIR, 5};
}

static void fini_stage(struct refusal_stage *s)
{
    weir__log_reader_close(s->reader);
    weir__log_close(s->log, NULL);
    weir__backup_moment_fini(&s->moment);
    must(simfs_open_files(s->disk) == 0);
    simfs_free(s->disk);
}

void refusal_open(struct refusal_stage *s)
{
    must(weir__log_open(&s->log, &s->o, NULL) == 0);
}

struct weir__log_batch refusal_batch(uint32_t number)
{
    static uint8_t body[BODY_BYTES];

    memset(body, 'x', sizeof body);
    return (struct weir__log_batch){.partition = number % REFUSAL_PARTITIONS,
                                    .count = 1,
                                    .producer = {.id = 1 + number},
                                    .body = {weir__bytes_of(body, BODY_BYTES)}};
}

void refusal_append(struct refusal_stage *s, uint32_t from, uint32_t count)
{
    struct weir__log_receipt receipt;

    for (uint32_t i = from; i < from + count; i++) {
        struct weir__log_batch b = refusal_batch(i);

        must(weir__log_append_wait(s->log, &b, REFUSAL_WAIT, &receipt, NULL) == 0);
    }
}

/* Indexes wait for a sync that nobody owes them: here they have had it. */
static struct simfs *settle_disk(struct simfs *disk)
{
    struct simfs *settled = simfs_crash(disk, SIMFS_KEEP_ALL, 0);

    simfs_free(disk);
    return settled;
}

struct simfs *refusal_empty(void)
{
    return simfs_new();
}

/* Some segments with producers, closed. */
struct simfs *refusal_filled(void)
{
    struct refusal_stage s;

    init_stage(&s, simfs_new());
    must(weir__log_create(&s.o, NULL) == 0);
    refusal_open(&s);
    refusal_append(&s, 0, 45);
    must(weir__log_close(s.log, NULL) == 0);
    return settle_disk(s.disk);
}

/* Its last write reached the disk in part. */
struct simfs *refusal_torn(void)
{
    struct simfs_fault fault = {
        .kinds = SIMFS_WRITE, .at = 1, .rc = WEIR_EIO, .short_write = true, .seed = 4};
    struct weir__log_batch b = refusal_batch(1000);
    struct weir__log_receipt receipt;
    struct refusal_stage s;

    init_stage(&s, refusal_filled());
    refusal_open(&s);
    simfs_fail(s.disk, &fault);
    must(weir__log_append_wait(s.log, &b, REFUSAL_WAIT, &receipt, NULL) == WEIR_EUNKNOWN);
    simfs_fail(s.disk, NULL);
    weir__log_close(s.log, NULL);
    return settle_disk(s.disk);
}

/* There are files that are none of the log's. */
struct simfs *refusal_mixed(void)
{
    static const uint8_t zeros[REFUSAL_SEGMENT_BYTES];
    struct simfs *disk = refusal_filled();

    simfs_put(disk, REFUSAL_DIR "/00000098.seg", zeros, sizeof zeros);
    simfs_put(disk, REFUSAL_DIR "/00000099.seg", zeros, sizeof zeros);
    return disk;
}

/* The control file is gone as well. */
struct simfs *refusal_lost(void)
{
    struct simfs *disk = refusal_mixed();
    struct weir__fs *fs = simfs_fs(disk);

    must(fs->ops->remove(fs, REFUSAL_DIR "/control", NULL) == 0);
    return settle_disk(disk);
}

/* One segment has lost both of its headers. */
struct simfs *refusal_headless(void)
{
    static const uint8_t zeros[WEIR__FS_BLOCK];
    struct simfs *disk = refusal_filled();

    simfs_poke(disk, REFUSAL_DIR "/00000003.seg", zeros, sizeof zeros, 0);
    simfs_poke(disk, REFUSAL_DIR "/00000003.seg", zeros, sizeof zeros,
               REFUSAL_SEGMENT_BYTES - sizeof zeros);
    return disk;
}

/* What is wrong with the answer; NULL: nothing. */
static const char *judge(const struct weir_error *err, bool struck, int rc)
{
    if (rc == 0 || (struck && strstr(err->text, CAUSE))) return NULL;
    return err->text;
}

/* False: there was no such call, or something is wrong. */
static bool do_once(const struct refusal_deed *d, struct simfs *disk, const struct simfs_fault *f,
                    unsigned *untold, char out_text[512])
{
    struct weir_error err = {0};
    struct refusal_stage s;
    uint64_t before, waiting;
    bool struck;
    int rc;

    init_stage(&s, simfs_clone(disk));
    if (d->begin) d->begin(&s);
    before = simfs_pending(s.disk);
    simfs_fail(s.disk, f);
    rc = d->run(&s, &err);
    struck = simfs_failed(s.disk);
    simfs_fail(s.disk, NULL);
    *untold += struck && rc == 0 && !s.told;
    waiting = simfs_pending(s.disk);
    waiting = waiting > before ? waiting - before : 0;
    if (judge(&err, struck, rc))
        snprintf(out_text, 512, "call %" PRIu64 " of kind %u: %.400s", f->at, f->kinds,
                 judge(&err, struck, rc));
    else if (!struck && waiting != d->waiting)
        snprintf(out_text, 512, "%" PRIu64 " things wait for a sync", waiting);
    fini_stage(&s);
    return struck && !out_text[0];
}

bool refusal_try(const struct refusal_deed *d, char out_text[512])
{
    struct simfs *disk = d->disk();
    unsigned untold = 0;
    bool any = false;

    out_text[0] = 0;
    for (unsigned kind = 1; kind <= SIMFS_RELEASE && !out_text[0]; kind *= 2) {
        struct simfs_fault fault = {.kinds = kind, .at = 1, .rc = WEIR_EDENIED};

        while (do_once(d, disk, &fault, &untold, out_text)) fault.at += PACE;
        any |= fault.at > 1;
    }
    if (!out_text[0] && !any) snprintf(out_text, 512, "it made no call");
    if (!out_text[0] && PACE == 1 && untold != d->untold) /* else not all were counted */
        snprintf(out_text, 512, "%u calls failed without a word", untold);
    simfs_free(disk);
    return !out_text[0];
}
