/* many_producers.c - measures a hub that remembers a million idempotent producers: memory and time
 * to open, and the rate of batches beside a hub that remembers none.
 *
 * Judged by the processor's time, which a busy machine does not change much.
 *
 *   many_producers FOLDER COUNT   prints its ROWs */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "log/log.h"

#define ROUNDS 15
#define BATCHES 500000u /* of a round */
#define LOUD 1000u      /* producers that publish in it */
#define ASKED 1000u     /* repeated after opening */
#define PARTITIONS 16u

static uint8_t body[100];

static void die(const char *what, const struct weir_error *err)
{
    fprintf(stderr, "%s: %s\n", what, err->text);
    exit(1);
}

static uint64_t resident_kib(void)
{
    uint64_t size = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (!f || fscanf(f, "%" SCNu64 " %" SCNu64, &size, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static struct weir__log *open_log(const char *dir, uint64_t hub_id, bool create)
{
    struct weir__log_options o = {.dir = dir, .hub_id = hub_id, .partitions = PARTITIONS};
    struct weir__log *log = NULL;
    struct weir_error err = {0};

    if (create && weir__log_create(&o, &err) != 0) die("creating", &err);
    if (weir__log_open(&log, &o, &err) != 0) die("opening", &err);
    return log;
}

static void check(void *user, int rc, const struct weir__log_receipt *receipt,
                  const struct weir_error *err)
{
    (void)user;
    (void)receipt;
    if (rc != 0) die("a batch", err);
}

static struct weir__log_batch batch_of(uint64_t id, uint32_t sequence)
{
    return (struct weir__log_batch){.partition = (uint32_t)(id % PARTITIONS),
                                    .count = 1,
                                    .producer = {id, 0, sequence},
                                    .body = {{body, sizeof body}}};
}

static void append(struct weir__log *log, uint64_t id, uint32_t sequence)
{
    struct weir__log_batch b = batch_of(id, sequence);
    struct weir_error err = {0};

    if (weir__log_append(log, &b, INT64_MAX, check, NULL, &err) != 0) die("appending", &err);
}

static void flush(struct weir__log *log)
{
    struct weir_error err = {0};

    if (weir__log_flush(log, INT64_MAX, &err) != 0) die("flushing", &err);
}

static double processor_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct rate {
    double wall, processor; /* batches per second of it, in the best round */
};

static void run_round(struct weir__log *log, uint32_t round, struct rate *best)
{
    double began = (double)weir__mono_ns() / 1e9, began_processor = processor_s();
    double wall, processor;

    for (uint32_t i = 0; i < BATCHES; i++)
        append(log, 1 + i % LOUD, round * (BATCHES / LOUD) + i / LOUD);
    flush(log);
    wall = BATCHES / ((double)weir__mono_ns() / 1e9 - began);
    processor = BATCHES / (processor_s() - began_processor);
    if (wall > best->wall) best->wall = wall;
    if (processor > best->processor) best->processor = processor;
}

/* How many of the quiet ones' batches, sent once more, are taken for what they are. */
static uint32_t repeat_some(struct weir__log *log, uint64_t count)
{
    uint32_t duplicates = 0;

    for (uint32_t i = 0; i < ASKED; i++) {
        uint64_t id = LOUD + 1 + i * (count - LOUD) / ASKED;
        struct weir__log_batch b = batch_of(id, 0);
        struct weir__log_receipt receipt = {0};
        struct weir_error err = {0};

        if (weir__log_append_wait(log, &b, INT64_MAX, &receipt, &err) != 0) die("repeating", &err);
        duplicates += receipt.duplicate;
    }
    return duplicates;
}

int main(int argc, char **argv)
{
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : 0, before, during, opened;
    char few_dir[4000], many_dir[4000];
    struct weir__log *few, *many;
    struct rate none = {0}, known = {0}, unused = {0};
    int64_t began, open_ns, open_few_ns;
    uint32_t duplicates;

    if (count <= LOUD) return 2;
    snprintf(few_dir, sizeof few_dir, "%s/few", argv[1]);
    snprintf(many_dir, sizeof many_dir, "%s/many", argv[1]);
    few = open_log(few_dir, 1, true);
    many = open_log(many_dir, 2, true);
    run_round(few, 0, &unused); /* both have their buffers now */
    run_round(many, 0, &unused);
    before = resident_kib();
    for (uint64_t id = LOUD + 1; id <= count; id++) append(many, id, 0);
    flush(many);
    during = resident_kib() - before;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        run_round(few, round, &none);
        run_round(many, round, &known);
    }
    weir__log_close(few, NULL);
    weir__log_close(many, NULL);
    began = weir__mono_ns();
    few = open_log(few_dir, 1, false);
    open_few_ns = weir__mono_ns() - began;
    weir__log_close(few, NULL);
    before = resident_kib();
    began = weir__mono_ns();
    many = open_log(many_dir, 2, false);
    open_ns = weir__mono_ns() - began;
    opened = resident_kib();
    duplicates = repeat_some(many, count);
    weir__log_close(many, NULL);
    printf("ROW producers known=%" PRIu64 " memory_mib=%.1f open_ms=%.0f open_none_ms=%.0f "
           "open_mib=%.1f repeated=%u duplicates=%u\n",
           count, (double)during / 1024, (double)open_ns / 1e6, (double)open_few_ns / 1e6,
           opened > before ? (double)(opened - before) / 1024 : 0, ASKED, duplicates);
    printf("ROW producers-rate known=%" PRIu64 " batches_s=%.0f none_batches_s=%.0f ratio=%.2f "
           "per_processor_s=%.0f none_per_processor_s=%.0f ratio=%.2f\n",
           count, known.wall, none.wall, known.wall / none.wall, known.processor, none.processor,
           known.processor / none.processor);
    return duplicates == ASKED && known.processor >= 0.9 * none.processor ? 0 : 1;
}
