/* wire_bench.h - `weir bench wire MODE`: load for a running `weir serve`, over AMQP as Azure's
 * clients speak it, and what the machine itself allows, to stand beside it.
 *
 *   publish    events in batches (or one to a transfer), many under way, until all are accepted
 *   receive    the events of a hub from its beginning, one to a transfer
 *   sync       one event at a time, each when the one before is accepted: the time that takes
 *   e2e        events at a steady rate, from the intended time of sending to their arrival
 *
 *   loopback   one TCP stream through the loopback device
 *   trip       a few bytes there and back again
 *   flush      a block written and synced, over and over */
#ifndef WEIR_BENCH_WIRE_BENCH_H
#define WEIR_BENCH_WIRE_BENCH_H

#include "bench/wire_row.h"
#include "bench/wire_target.h"

#define WEIR__BENCH_WIRE_PARTITIONS_MAX 256u /* links of one session */
#define WEIR__BENCH_WIRE_BATCH_MAX 1024u
#define WEIR__BENCH_WIRE_SIZE_MIN 8u /* an event carries the time of its sending */
#define WEIR__BENCH_WIRE_SIZE_MAX (1u << 20)
#define WEIR__BENCH_WIRE_IN_FLIGHT_MAX 32768u

/* Zero means the mode's default. */
struct weir__bench_wire_options {
    const char *connect, *hub; /* see wire_target.h; none for the last three */
    uint32_t size;             /* bytes of an event's body, of a write */
    uint32_t batch;            /* events to a transfer */
    uint32_t partitions;       /* the first so many of the hub, in turn */
    uint32_t in_flight;        /* transfers that are not accepted yet; receive: credit */
    uint32_t rate;             /* e2e: events per second */
    uint64_t events;
    int server_pid;   /* whose CPU and memory are told */
    const char *data; /* flush: the folder to write in */
    bool json;
};

/* "publish, receive, ..." for who asks for a mode that is not there. */
#define WEIR__BENCH_WIRE_MODES "publish, receive, sync, e2e, loopback, trip or flush"

/* Runs one mode and prints its rows. WEIR_EINVAL: an option is out of range, or there is no such
 * mode. */
int weir__bench_wire(const char *mode, const struct weir__bench_wire_options *, FILE *out,
                     struct weir_error *);

/* The modes. Each fills a row, but for what is known before; the options are complete. */
int weir__bench_wire_publish(const struct weir__bench_wire_options *,
                             const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                             struct weir_error *);
int weir__bench_wire_receive(const struct weir__bench_wire_options *,
                             const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                             struct weir_error *);
int weir__bench_wire_sync(const struct weir__bench_wire_options *,
                          const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                          struct weir_error *);
int weir__bench_wire_e2e(const struct weir__bench_wire_options *,
                         const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                         struct weir_error *);
int weir__bench_wire_loopback(const struct weir__bench_wire_options *,
                              const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                              struct weir_error *);
int weir__bench_wire_trip(const struct weir__bench_wire_options *,
                          const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                          struct weir_error *);
int weir__bench_wire_flush(const struct weir__bench_wire_options *,
                           const struct weir__bench_wire_target *, struct weir__bench_wire_row *,
                           struct weir_error *);

#endif
