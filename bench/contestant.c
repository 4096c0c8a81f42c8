#include "bench/contestant.h"

#define MIB (1ull << 20)

/* Segments that are written over must have been filled before, so these logs keep little, but more
 * than a run writes: every byte of it then goes over bytes of an earlier run. */
#define SEGMENT_BYTES (64 * MIB)
#define RETAIN_BYTES (512 * MIB)
#define FILL_BYTES (1024 * MIB) /* until segments go round */

#define PLACE_BYTES (4096 * MIB) /* the most that lies on disk at a time, with a wide margin */
#define RAW_BYTES (256 * MIB)
#define RAW_WRITE_BYTES (1u << 20)
#define RAW_WRITES 256u
#define RAW_SYNC_BYTES 4096u
#define WAITS 300u
#define TAIL_TIMES 64u

int weir__arena_open(struct weir__arena *arena, const char *under, struct weir_error *err)
{
    struct weir__subject_options floor = {.partitions = 1};
    char path[WEIR__PLACE_PATH_BYTES];
    int rc = weir__place_open(&arena->place, under, PLACE_BYTES, err);

    if (rc == 0) rc = weir__place_path(&arena->place, "raw", path, err);
    if (rc == 0) rc = weir__raw_open(&arena->raw, path, RAW_BYTES, err);
    if (rc == 0) rc = weir__place_path(&arena->place, "floor", path, err);
    floor.dir = path;
    if (rc == 0) rc = weir__subject_floor.open(&arena->floor, &floor, err);
    if (rc != 0) weir__arena_close(arena);
    return rc;
}

void weir__arena_close(struct weir__arena *arena)
{
    (void)weir__subject_close(arena->hub, NULL);
    (void)weir__subject_close(arena->floor, NULL);
    weir__raw_close(arena->raw);
    weir__place_close(&arena->place);
    arena->hub = arena->floor = NULL;
    arena->raw = NULL;
}

int weir__trial_begin(struct weir__trial *t, const struct weir__contestant *who,
                      struct weir__arena *arena, const struct weir__task *task, const char *name,
                      struct weir_error *err)
{
    int rc;

    *t = (struct weir__trial){.arena = arena, .task = task, .partitions = task->partitions};
    rc = weir__place_path(&arena->place, name, t->dir, err);
    if (rc == 0 && task->load) rc = weir__load_new(&t->load, task->load, err);
    if (rc == 0 && who->begin) rc = who->begin(t, err);
    return rc;
}

void weir__trial_end(struct weir__trial *t)
{
    bool shared = t->subject && t->subject == t->arena->hub;

    weir__reading_close(t->reading);
    if (!shared) (void)weir__subject_close(t->subject, NULL);
    if (!shared && t->dir[0] != '\0') weir__place_remove(t->dir);
    weir__load_free(t->load);
    *t = (struct weir__trial){0};
}

/* ---- the disk ---- */

static int write_raw(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__arena *a = ((struct weir__trial *)self)->arena;

    return weir__raw_overwrite(a->raw, true, RAW_WRITE_BYTES, RAW_WRITES / a->haste, run, err);
}

static int write_buffered(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__arena *a = ((struct weir__trial *)self)->arena;

    return weir__raw_overwrite(a->raw, false, RAW_WRITE_BYTES, RAW_WRITES / a->haste, run, err);
}

static int write_unwritten(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__arena *a = ((struct weir__trial *)self)->arena;

    return weir__raw_write_fresh(a->raw, false, RAW_WRITE_BYTES, RAW_WRITES / a->haste, run, err);
}

static int write_new(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__arena *a = ((struct weir__trial *)self)->arena;

    return weir__raw_write_fresh(a->raw, true, RAW_WRITE_BYTES, RAW_WRITES / a->haste, run, err);
}

static int sync_raw(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__arena *a = ((struct weir__trial *)self)->arena;

    return weir__raw_overwrite(a->raw, true, RAW_SYNC_BYTES, WAITS / a->haste, run, err);
}

static int sync_buffered(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__arena *a = ((struct weir__trial *)self)->arena;

    return weir__raw_overwrite(a->raw, false, RAW_SYNC_BYTES, WAITS / a->haste, run, err);
}

static int read_raw(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    return weir__raw_read(((struct weir__trial *)self)->arena->raw, run, err);
}

/* ---- appending ---- */

static int flood(struct weir__trial *t, struct weir__subject *subject, uint64_t bytes,
                 struct weir__bench_run *run, struct weir_error *err)
{
    return weir__load_flood(t->load, subject, t->partitions, weir__load_batches(t->load, bytes),
                            run, err);
}

static int run_floor(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;

    return flood(t, t->arena->floor, t->task->bytes / t->arena->haste, run, err);
}

/* A subject that is made for one run. */
static int run_once(struct weir__trial *t, const struct weir__subject_ops *ops,
                    struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__subject_options options = {.dir = t->dir,
                                            .partitions = t->partitions,
                                            .unwritten = true};
    int rc = ops->open(&t->subject, &options, err), closed;

    if (rc != 0) return rc;
    rc = flood(t, t->subject, t->task->bytes / t->arena->haste, run, err);
    closed = weir__subject_close(t->subject, rc == 0 ? err : NULL);
    t->subject = NULL;
    weir__place_remove(t->dir);
    return rc == 0 ? closed : rc;
}

static int run_fresh(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;

    return run_once(t, t->task->subject, run, err);
}

static int run_floor_fresh(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    return run_once(self, &weir__subject_floor, run, err);
}

/* Opens the subject and fills it until its segments go round. */
static int fill_subject(struct weir__trial *t, struct weir_error *err)
{
    struct weir__subject_options options = {
        .dir = t->dir,
        .partitions = t->partitions,
        .segment_bytes = SEGMENT_BYTES,
        .retain_bytes = RETAIN_BYTES,
    };
    struct weir__bench_run run;
    int rc = t->task->subject->open(&t->subject, &options, err);

    return rc == 0 ? flood(t, t->subject, FILL_BYTES, &run, err) : rc;
}

/* Most trials want the same hub: it is filled once and kept. */
static int begin_recycled(struct weir__trial *t, struct weir_error *err)
{
    struct weir__arena *a = t->arena;
    int rc;

    if (t->task->subject != &weir__subject_hub || t->partitions != 1) return fill_subject(t, err);
    rc = weir__place_path(&a->place, "hub", t->dir, err);
    if (rc == 0 && !a->hub) {
        rc = fill_subject(t, err);
        a->hub = t->subject;
    }
    t->subject = a->hub;
    return rc;
}

static int begin_one_partition(struct weir__trial *t, struct weir_error *err)
{
    t->partitions = 1;
    return begin_recycled(t, err);
}

/* On segments that all should have been there before. */
static int flood_recycled(struct weir__trial *t, struct weir__bench_run *run,
                          struct weir_error *err)
{
    int64_t began_ns = weir__place_now();
    int rc = flood(t, t->subject, t->task->bytes / t->arena->haste, run, err);

    run->files_made = weir__place_files_since(t->dir, began_ns);
    return rc;
}

static int run_hot(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;
    int rc = weir__place_heat(t->dir, err);

    return rc == 0 ? flood_recycled(t, run, err) : rc;
}

static int run_cold(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;
    int rc = weir__place_cool(t->dir, err);

    return rc == 0 ? flood_recycled(t, run, err) : rc;
}

static int run_waiting(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;

    return weir__load_wait(t->load, t->subject, WAITS / t->arena->haste, run, err);
}

static int run_async(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;

    return weir__load_async(t->load, t->subject, WAITS / t->arena->haste, run, err);
}

/* ---- reading ---- */

static int begin_tail(struct weir__trial *t, struct weir_error *err)
{
    return weir__reading_open(&t->reading, t->dir, t->load, t->partitions, t->task->bytes, false,
                              err);
}

static int begin_cold(struct weir__trial *t, struct weir_error *err)
{
    return weir__reading_open(&t->reading, t->dir, t->load, t->partitions, t->task->bytes, true,
                              err);
}

static int read_tail(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    struct weir__trial *t = self;

    return weir__reading_tail(t->reading, TAIL_TIMES / t->arena->haste, run, err);
}

static int read_cold(void *self, struct weir__bench_run *run, struct weir_error *err)
{
    return weir__reading_cold(((struct weir__trial *)self)->reading, run, err);
}

const struct weir__contestant weir__contestant_raw_write = {"raw", NULL, write_raw};
const struct weir__contestant weir__contestant_raw_write_buffered = {"buffered", NULL,
                                                                     write_buffered};
const struct weir__contestant weir__contestant_raw_unwritten = {"raw", NULL, write_unwritten};
const struct weir__contestant weir__contestant_raw_new = {"raw", NULL, write_new};
const struct weir__contestant weir__contestant_raw_sync = {"raw", NULL, sync_raw};
const struct weir__contestant weir__contestant_raw_sync_buffered = {"buffered", NULL,
                                                                    sync_buffered};
const struct weir__contestant weir__contestant_raw_read = {"raw", NULL, read_raw};
const struct weir__contestant weir__contestant_floor = {"floor", NULL, run_floor};
const struct weir__contestant weir__contestant_floor_fresh = {"floor", NULL, run_floor_fresh};
const struct weir__contestant weir__contestant_fresh = {"fresh", NULL, run_fresh};
const struct weir__contestant weir__contestant_hot = {"hot", begin_recycled, run_hot};
const struct weir__contestant weir__contestant_cold = {"cold", begin_recycled, run_cold};
const struct weir__contestant weir__contestant_one_partition = {"one", begin_one_partition,
                                                                run_hot};
const struct weir__contestant weir__contestant_waiting = {"wait", begin_recycled, run_waiting};
const struct weir__contestant weir__contestant_async = {"async", begin_recycled, run_async};
const struct weir__contestant weir__contestant_tail_reader = {"tail", begin_tail, read_tail};
const struct weir__contestant weir__contestant_cold_reader = {"cold", begin_cold, read_cold};
