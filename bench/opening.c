#define _GNU_SOURCE
#include "bench/opening.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread.h"
#include "bench/load.h"
#include "bench/place.h"
#include "hub/namespace.h"

#define PARTITIONS 1024u
#define ROUNDS 6u
#define CHUNK_BYTES                                                                                \
    (64ull << 20)              /* what is acknowledged at a time: a quarter of a segment, so that
                                     the rounds find the last one differently full */
#define KILL_AFTER_NS 20000000 /* into the next chunk */
#define DISK_MARGIN_BYTES (2ull << 30) /* headers, the spare, the growing segment, the rounds */
#define EVENT_BYTES 100u
#define HUB "bench"

#define OPEN_S_MAX 1.0
#define MEMORY_MB_MAX 32.0
#define EMPTY_MB_MAX 16.0

/* What the processes tell each other; shared memory. */
struct board {
    atomic_uint_fast64_t bytes;  /* sent and acknowledged by the present writer */
    atomic_uint_fast64_t events; /* acknowledged by all */
    uint64_t found;              /* events in the opened hub */
    double open_s;
    double memory_mb, peak_mb;
    int rc;
    struct weir_error err;
};

/* ---- the writer, which ends by being killed ---- */

static int write_on(struct board *board, const char *dir, struct weir_error *err)
{
    struct weir__subject_options options = {.dir = dir,
                                            .existing = atomic_load(&board->events) > 0,
                                            .partitions = PARTITIONS};
    struct weir__load_options small = {.event_bytes = EVENT_BYTES,
                                       .batch_events = 100,
                                       .in_flight = 512};
    struct weir__subject *subject;
    struct weir__bench_run run;
    struct weir__load *load;
    int rc = weir__load_new(&load, &small, err);

    if (rc == 0) rc = weir__subject_hub.open(&subject, &options, err);
    while (rc == 0) {
        rc = weir__load_flood(load, subject, PARTITIONS, weir__load_batches(load, CHUNK_BYTES),
                              &run, err);
        if (rc != 0) break;
        atomic_fetch_add(&board->events, run.events);
        atomic_fetch_add(&board->bytes, run.bytes);
    }
    return rc;
}

/* ---- the opener ---- */

/* A line of /proc/self/status, in MB of 10^6 bytes; 0 where there is none. */
static double own_memory(const char *line)
{
    char text[128];
    double kib = 0;
    FILE *f = fopen("/proc/self/status", "r");

    while (f && fgets(text, sizeof text, f))
        if (strncmp(text, line, strlen(line)) == 0) kib = strtod(text + strlen(line), NULL);
    if (f) fclose(f);
    return kib * 1024 / 1e6;
}

static int count_events(struct weir__hub *hub, uint64_t *out, struct weir_error *err)
{
    int rc = 0;

    *out = 0;
    for (uint32_t i = 0; i < PARTITIONS && rc == 0; i++) {
        struct weir__partition_properties p;

        rc = weir__hub_partition_properties(hub, i, &p, err);
        if (rc == 0) *out += (uint64_t)(p.last_sequence + 1);
    }
    return rc;
}

static int open_once(struct board *board, const char *dir, struct weir_error *err)
{
    int64_t began_ns = weir__mono_ns();
    struct weir__namespace *space;
    struct weir__hub *hub;
    int rc = weir__namespace_open(&space, dir, NULL, err);

    if (rc == 0) rc = weir__namespace_use(space, HUB, &hub, err);
    if (rc != 0) return rc;
    board->open_s = (double)(weir__mono_ns() - began_ns) / 1e9;
    board->memory_mb = own_memory("VmRSS:");
    board->peak_mb = own_memory("VmHWM:");
    rc = count_events(hub, &board->found, err);
    weir__hub_release(hub);
    if (rc == 0) rc = weir__namespace_close(space, err);
    return rc;
}

/* ---- the one that watches ---- */

/* Runs fn in a process of its own, which ends with it, and with us. */
static pid_t start(int (*fn)(struct board *, const char *, struct weir_error *),
                   struct board *board, const char *dir)
{
    pid_t pid = fork();

    if (pid != 0) return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    board->rc = fn(board, dir, &board->err);
    _exit(0);
}

/* Lets a writer come so far and kills it in the middle of what it does next. */
static int write_and_kill(struct board *board, const char *dir, uint64_t bytes,
                          struct weir_error *err)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int64_t reached_ns = 0;
    int rc = 0;
    pid_t pid;

    atomic_store(&board->bytes, 0);
    board->rc = 0;
    pid = start(write_on, board, dir);
    if (pid < 0) return weir__fail_errno(err, errno, "fork");
    while (rc == 0 && (reached_ns == 0 || weir__mono_ns() < reached_ns + KILL_AFTER_NS)) {
        if (waitpid(pid, NULL, WNOHANG) == pid)
            return weir__fail(err, board->rc ? board->rc : WEIR_EIO, "the writer ended: %s",
                              board->err.text);
        if (reached_ns == 0 && atomic_load(&board->bytes) >= bytes) reached_ns = weir__mono_ns();
        if (weir__bench_interrupted()) rc = weir__fail(err, WEIR_ECANCELED, "interrupted");
        nanosleep(&nap, NULL);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return rc;
}

/* Everything the kernel keeps of any disk. Only root may; then it is these files' bytes only. */
static int drop_caches(const char *dir, bool *out_all, struct weir_error *err)
{
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

    sync();
    *out_all = fd >= 0 && write(fd, "3", 1) == 1;
    if (fd >= 0) close(fd);
    return *out_all ? 0 : weir__place_cool(dir, err);
}

static int open_in_child(struct board *board, const char *dir, struct weir_error *err)
{
    pid_t pid = start(open_once, board, dir);

    if (pid < 0) return weir__fail_errno(err, errno, "fork");
    waitpid(pid, NULL, 0);
    if (board->rc != 0) return weir__fail(err, board->rc, "opening: %s", board->err.text);
    if (board->found < atomic_load(&board->events))
        return weir__fail(err, WEIR_ECORRUPT,
                          "%" PRIu64 " events were acknowledged, %" PRIu64 " are there",
                          (uint64_t)atomic_load(&board->events), board->found);
    return 0;
}

static int measure_opening(struct weir__report *report, struct board *board, const char *dir,
                           uint64_t bytes, struct weir_error *err)
{
    double open_s = 0, memory_mb = 0, peak_mb = 0;
    char text[96];
    bool all = true;
    int rc = 0;

    for (uint32_t i = 0; i < ROUNDS && rc == 0; i++) {
        rc = write_and_kill(board, dir, i == 0 ? bytes : 1, err);
        if (rc == 0) rc = drop_caches(dir, &all, err);
        if (rc == 0) rc = open_in_child(board, dir, err);
        if (board->open_s > open_s) open_s = board->open_s;
        if (board->memory_mb > memory_mb) memory_mb = board->memory_mb;
        if (board->peak_mb > peak_mb) peak_mb = board->peak_mb;
    }
    if (rc != 0) return rc;
    snprintf(text, sizeof text, "%.1f GB, %u partitions, kill -9, %s; longest of %u",
             (double)board->found * EVENT_BYTES / 1e9, PARTITIONS,
             all ? "caches dropped" : "pages dropped", ROUNDS);
    weir__report_limit(report, "open", text, open_s, OPEN_S_MAX, "s");
    snprintf(text, sizeof text, "resident after that (%.0f MB at most meanwhile)", peak_mb);
    weir__report_limit(report, "open-memory", text, memory_mb, MEMORY_MB_MAX, "MB");
    return 0;
}

static int measure_empty(struct weir__report *report, const char *dir, struct weir_error *err)
{
    struct weir__subject_options options = {.dir = dir, .partitions = PARTITIONS};
    struct weir__subject *subject;
    int rc = weir__subject_hub.open(&subject, &options, err);

    if (rc != 0) return rc;
    weir__report_limit(report, "open-empty", "disk of an empty hub of 1,024 partitions",
                       (double)weir__place_disk_bytes(dir) / 1e6, EMPTY_MB_MAX, "MB");
    return weir__subject_close(subject, err);
}

int weir__bench_opening(struct weir__report *report, const char *under, uint64_t bytes,
                        struct weir_error *err)
{
    struct board *board =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    char dir[WEIR__PLACE_PATH_BYTES], kind[32];
    struct weir__place place;
    int rc;

    if (board == MAP_FAILED) return weir__fail_errno(err, errno, "mmap");
    rc = weir__place_open(&place, under, bytes + bytes / 4 + DISK_MARGIN_BYTES, err);
    if (rc == 0) weir__report_machine(report, weir__place_kind(&place, kind, sizeof kind));
    if (rc == 0) rc = weir__place_path(&place, "large", dir, err);
    if (rc == 0) rc = measure_opening(report, board, dir, bytes, err);
    if (rc == 0) rc = weir__place_path(&place, "empty", dir, err);
    if (rc == 0) rc = measure_empty(report, dir, err);
    weir__place_close(&place);
    munmap(board, sizeof *board);
    return rc;
}
