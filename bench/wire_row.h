/* wire_row.h - what a run over the wire cost both sides, as one line of comma-separated values that
 * stands beside those of other systems:
 *
 *   ROW,system,mode,size,events,seconds,ev/s,MB/s,server-user-ns,server-sys-ns,client-user-ns,
 *       client-sys-ns,server-rss-KiB,other-cpu-%
 *
 * CPU is per event; other is what everybody else used of all cores. Runs that measure single
 * operations add a line of percentiles:
 *
 *   LAT system what n=... min=...us p50=...us p90=...us p99=...us p99.9=...us max=...us */
#ifndef WEIR_BENCH_WIRE_ROW_H
#define WEIR_BENCH_WIRE_ROW_H

#include <stdio.h>

#include "bench/measure.h"

#define WEIR__BENCH_WIRE_MODE_BYTES 48

/* CPU of a process so far and its memory now, zero when there is no such process. */
struct weir__bench_wire_process {
    double user_s, system_s;
    uint64_t rss_kib;
};

struct weir__bench_wire_row {
    const char *system;
    char mode[WEIR__BENCH_WIRE_MODE_BYTES];
    uint32_t size;
    struct weir__bench_run run;
    struct weir__bench_wire_process server; /* CPU of the run */
    double *us;                             /* single operations: owned by the row, NULL: none */
    size_t us_count;
};

struct weir__bench_wire_meter {
    struct weir__bench_mark mark;
    struct weir__bench_wire_process server;
    int server_pid; /* 0: nobody's */
};

void weir__bench_wire_meter_begin(struct weir__bench_wire_meter *, int server_pid);
/* Fills everything of the row but its names, sizes and events. */
void weir__bench_wire_meter_end(const struct weir__bench_wire_meter *,
                                struct weir__bench_wire_row *);

/* Prints the line or lines, or one JSON object on a line. Sorts us. */
void weir__bench_wire_row_print(struct weir__bench_wire_row *, FILE *, bool json);
void weir__bench_wire_row_fini(struct weir__bench_wire_row *);

#endif
