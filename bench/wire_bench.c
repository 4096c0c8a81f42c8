#include "bench/wire_bench.h"

#include <inttypes.h>
#include <string.h>

#define EVENTS_MAX ((uint64_t)1 << 40)
#define TIMES_MAX ((uint64_t)1 << 22) /* where each is timed */
#define FLUSHES_MAX 4096u
#define RATE_MAX 1000000u
#define TRANSFER_BYTES_MAX (1u << 20) /* of bodies; Event Hubs takes no more */

struct mode {
    const char *name;
    const char *system; /* of its rows */
    int (*run)(const struct weir__bench_wire_options *, const struct weir__bench_wire_target *,
               struct weir__bench_wire_row *, struct weir_error *);
    bool machine; /* no server is asked */
    bool single;  /* one event to a transfer, always */
    uint64_t events_max;
    struct weir__bench_wire_options defaults;
};

static const struct mode modes[] = {
    {"publish", "weir", weir__bench_wire_publish, .events_max = EVENTS_MAX,
     .defaults = {.size = 100, .batch = 100, .partitions = 1, .events = 1000000}},
    {"receive", "weir", weir__bench_wire_receive, .events_max = EVENTS_MAX,
     .defaults = {.size = 100, .batch = 1, .partitions = 1, .events = 1000000}},
    {"sync", "weir", weir__bench_wire_sync, .single = true, .events_max = TIMES_MAX,
     .defaults = {.size = 1024, .batch = 1, .partitions = 1, .events = 3000}},
    {"e2e", "weir", weir__bench_wire_e2e, .single = true, .events_max = TIMES_MAX,
     .defaults = {.size = 256, .batch = 1, .partitions = 1, .events = 50000, .rate = 10000}},
    {"loopback", "loopback", weir__bench_wire_loopback, .machine = true,
     .events_max = EVENTS_MAX >> 18,
     .defaults = {.size = 256 << 10, .batch = 1, .partitions = 1, .events = 16384}},
    {"trip", "loopback", weir__bench_wire_trip, .machine = true, .events_max = TIMES_MAX,
     .defaults = {.size = 64, .batch = 1, .partitions = 1, .events = 20000}},
    {"flush", "disk", weir__bench_wire_flush, .machine = true, .events_max = FLUSHES_MAX,
     .defaults = {.size = 4096, .batch = 1, .partitions = 1, .events = 2000}},
};

static const struct mode *find_mode(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (strcmp(modes[i].name, name) == 0) return &modes[i];
    return NULL;
}

static int check_range(const char *name, uint64_t value, uint64_t least, uint64_t most,
                       struct weir_error *err)
{
    if (value >= least && value <= most) return 0;
    return weir__fail(err, WEIR_EINVAL, "--%s must be %" PRIu64 " to %" PRIu64, name, least, most);
}

/* Puts defaults where nothing was said and checks what was. */
static int complete(const struct mode *m, struct weir__bench_wire_options *o,
                    struct weir_error *err)
{
    int rc;

    if (!o->size) o->size = m->defaults.size;
    if (!o->batch || m->single) o->batch = m->defaults.batch;
    if (!o->partitions) o->partitions = m->defaults.partitions;
    if (!o->events) o->events = m->defaults.events;
    if (!o->rate) o->rate = m->defaults.rate;
    rc = check_range("size", o->size, WEIR__BENCH_WIRE_SIZE_MIN, WEIR__BENCH_WIRE_SIZE_MAX, err);
    if (rc == 0) rc = check_range("batch", o->batch, 1, WEIR__BENCH_WIRE_BATCH_MAX, err);
    if (rc == 0)
        rc = check_range("partitions", o->partitions, 1, WEIR__BENCH_WIRE_PARTITIONS_MAX, err);
    if (rc == 0) rc = check_range("events", o->events, 1, m->events_max, err);
    if (rc == 0)
        rc = check_range("in-flight", o->in_flight, 0, WEIR__BENCH_WIRE_IN_FLIGHT_MAX, err);
    if (rc == 0) rc = check_range("rate", o->rate, 0, RATE_MAX, err);
    if (rc == 0 && (uint64_t)o->size * o->batch > TRANSFER_BYTES_MAX)
        rc = weir__fail(err, WEIR_EINVAL, "--size times --batch must be at most %u bytes",
                        TRANSFER_BYTES_MAX);
    if (rc == 0 && !m->machine && !o->connect)
        rc = weir__fail(err, WEIR_EINVAL, "--connect is needed: a connection string or HOST:PORT");
    return rc;
}

int weir__bench_wire(const char *mode, const struct weir__bench_wire_options *options, FILE *out,
                     struct weir_error *err)
{
    const struct mode *m = find_mode(mode);
    struct weir__bench_wire_options o = *options;
    struct weir__bench_wire_target target = {.address = ""};
    struct weir__bench_wire_row row;
    int rc;

    if (!m)
        return weir__fail(err, WEIR_EINVAL, "there is no mode '%s', only " WEIR__BENCH_WIRE_MODES,
                          mode);
    rc = complete(m, &o, err);
    if (rc == 0 && !m->machine) rc = weir__bench_wire_target_parse(&target, o.connect, o.hub, err);
    row = (struct weir__bench_wire_row){.system = m->system, .size = o.size};
    if (rc == 0) rc = m->run(&o, &target, &row, err);
    if (rc == 0) weir__bench_wire_row_print(&row, out, o.json);
    weir__bench_wire_row_fini(&row);
    return rc;
}
