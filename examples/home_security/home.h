/* home.h - the documents' scenario in one small program, on public headers only.
 *
 * A home-security company: 100,000 homes, each with sensors that report once a minute, to a hub of
 * 16 partitions, keyed by home. Five copies of one program read it for two jobs, which are two
 * consumer groups and do not delay each other:
 *
 *     storage   counts what was reported, by sensor
 *     routing   looks for alarms
 *
 * Each job keeps one aggregate for each partition, a JSON file that says which event it contains
 * last. An event that comes again is behind that and counts nothing, so the totals stay exact
 * whatever happens to the copies:
 *
 *     sensors.c     the homes
 *     aggregate.c   one partition's file
 *     copy.c        one copy: two processors, one for each job
 *     board.c       the table on the terminal
 *     run.c         the whole evening: server, homes, copies, accidents, and the sums at the end */
#ifndef HOME_H
#define HOME_H

#include <weir/weir.h>

#include <weir/processor.h>

#define HUB "homes"
#define PARTITIONS 16u
#define MINUTE_MS 60000

enum sensor { MOTION, OPENING, GLASS, MONOXIDE, SENSORS };
extern const char *const sensor_names[SENSORS];

enum job { STORAGE, ROUTING, JOBS };
extern const char *const job_names[JOBS]; /* their consumer groups, too */

/* What happened, summed up. */
struct tally {
    uint64_t events[SENSORS];
    uint64_t alarms;
};

void tally_add(struct tally *, enum sensor, bool alarm);
uint64_t tally_events(const struct tally *);

/* ---- one event's body: {"home":7,"sensor":"glass","alarm":true} ---- */

#define REPORT_BYTES 96
size_t report_write(char out[REPORT_BYTES], uint32_t home, enum sensor, bool alarm);
bool report_read(struct weir_bytes body, enum sensor *out_sensor, bool *out_alarm);

/* ---- one partition's file, "DIR/storage-3.json" ---- */

struct aggregate {
    char path[512];
    int64_t epoch; /* of the owner that writes it */
    int64_t last;  /* sequence number of the last event in it; -1: none */
    struct tally tally;
};

/* Reads it, and writes it again with our epoch: from then on an owner before us, who may not know
 * yet that he was one, cannot write it. epoch -1 only reads. 0 or -1 with errno. */
int aggregate_open(struct aggregate *, const char *dir, enum job, uint32_t partition,
                   int64_t epoch);

int aggregate_read(const char *path, struct aggregate *);

/* ESTALE: a later owner has written it. */
int aggregate_save(const struct aggregate *);

/* ---- the programs; each returns an exit code ---- */

int sensors_run(const char *where, const char *dir, uint32_t homes, double speed);
int copy_run(const char *where, const char *dir, const char *name);
int evening_run(const char *weir, const char *dir, uint32_t homes, double speed, int seconds);

/* Sums of what the sensors sent, which they write when they end, beside what both jobs counted.
 * 0 when they agree. */
int check_totals(const char *dir);

/* ---- the table ---- */

struct board;

struct board *board_open(const char *where, const char *dir);
/* Draws, over the last one when on a terminal, with a line of news, a literal; how many events of both groups
 * are not checkpointed yet: UINT64_MAX when that cannot be told. */
uint64_t board_show(struct board *, const char *news);
void board_close(struct board *);

/* Says what failed, on stderr; returns 1. */
int complain(const char *what, const struct weir_error *);

#endif
