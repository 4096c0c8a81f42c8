/* fill.c - fills hubs of a folder with what the command line cannot make: events of all sizes and with
 * properties of all types, idempotent producers, days that pass, segments that are used again. It is
 * compiled against the tree before.
 *
 *   fill DIR events HUB            sizes and properties
 *   fill DIR producers HUB         idempotent producers; prints a line for each: see repeat.c
 *   fill DIR days HUB              three days: rolls and expiry by age, a producer long silent (printed)
 *   fill DIR recycle HUB           ten times what the hub keeps, in segments of the least size */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hub/namespace.h"
#include "weir/weir.h"

#define HOUR_MS INT64_C(3600000)
#define HOURS 72
#define EVENT_BYTES_MAX ((1u << 20) - 4096u)
#define WAIT_MS 60000
#define SMALL_SEGMENT (1u << 20)
#define RECYCLE_BATCHES 3000u
#define RECYCLE_BYTES 10000u
#define SILENT_ID 77u

static struct weir_error err;
static char bytes[EVENT_BYTES_MAX];

static void must(int rc, const char *what)
{
    if (rc == 0) return;
    fprintf(stderr, "fill: %s: %s\n", what, err.text);
    exit(1);
}

/* ---- through the library ---- */

static struct weir *open_folder(const char *dir)
{
    struct weir *w;

    must(weir_open(&w, dir, NULL, &err), "open");
    return w;
}

static void send_sizes(struct weir_producer *p)
{
    static const size_t sizes[] = {0,     1,     2,     3,      7,       8,
                                   255,   256,   4000,  4015,   4016,    4017,
                                   4095,  4096,  4097,  8191,   8192,    65535,
                                   65536, 65537, 99999, 262144, 1000000, EVENT_BYTES_MAX};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir_event e = {.body = weir_bytes(bytes, sizes[i])};

        if (i % 3 == 0) e.partition_key = weir_text(i % 2 ? "door" : "window");
        must(weir_producer_send(p, &e, 1, WAIT_MS, NULL, &err), "send");
    }
}

static void send_properties(struct weir_producer *p)
{
    struct weir_property props[] = {
        {weir_text("text"), weir_value_text("gr\xc3\xbc\xc3\x9f \"quoted\"\n")},
        {weir_text("int"), weir_value_int(INT64_MIN)},
        {weir_text("double"), weir_value_double(-0.1)},
        {weir_text("bool"), weir_value_bool(true)},
        {weir_text("binary"), {WEIR_BINARY, {.bytes = {bytes, 300}}}},
        {weir_text("time"), {WEIR_TIME, {.time_ms = 1700000000123}}},
        {weir_text("none"), {WEIR_NULL, {false}}},
    };
    struct weir_system_properties system = {.message_id = weir_value_text("m-1"),
                                            .subject = weir_text("doors"),
                                            .content_type = weir_text("application/json"),
                                            .creation_time_ms = 1700000000456};
    struct weir_event e[50];

    for (size_t i = 0; i < 50; i++)
        e[i] = (struct weir_event){.body = weir_bytes(bytes + i, i * 37),
                                   .property_count = (uint32_t)(i % 8),
                                   .properties = props,
                                   .system = i % 2 ? &system : NULL,
                                   .partition_key = weir_text("home-7")};
    must(weir_producer_send(p, e, 50, WAIT_MS, NULL, &err), "send");
}

static void fill_events(const char *dir, const char *hub)
{
    struct weir *w = open_folder(dir);
    struct weir_producer *p;

    must(weir_producer_open(&p, w, hub, NULL, &err), "producer");
    send_sizes(p);
    send_properties(p);
    must(weir_producer_close(p, WAIT_MS, &err), "close");
    must(weir_close(w, &err), "close");
}

static void print_batch(uint32_t partition, uint64_t id, unsigned epoch, uint32_t sequence,
                        uint32_t count, uint64_t offset)
{
    printf("%" PRIu32 " %" PRIu64 " %u %" PRIu32 " %" PRIu32 " %" PRIu64 "\n", partition, id, epoch,
           sequence, count, offset);
}

/* One that goes on in later batches of different sizes, of which the last is printed. */
static void run_producer(struct weir *w, const char *hub, uint32_t partition, uint16_t epoch)
{
    struct weir_producer_options o = {.size = sizeof o,
                                      .pinned = true,
                                      .partition = partition,
                                      .idempotent = true,
                                      .epoch = epoch};
    struct weir_event e[9];
    struct weir_producer *p;
    struct weir_producer_identity who = {0};
    struct weir_receipt at = {0};
    uint32_t count = 0, before = 0;

    for (size_t i = 0; i < 9; i++) e[i] = (struct weir_event){.body = weir_bytes(bytes, 100 * i)};
    must(weir_producer_open(&p, w, hub, &o, &err), "producer");
    for (uint32_t i = 0; i < 5 + partition; i++) {
        weir_producer_identity(p, &who);
        before = who.next_sequence;
        count = 1 + i % 9;
        must(weir_producer_send(p, e, count, WAIT_MS, &at, &err), "send");
    }
    print_batch(partition, who.id, who.epoch, before, count, at.offset);
    must(weir_producer_close(p, WAIT_MS, &err), "close");
}

static void fill_producers(const char *dir, const char *hub)
{
    struct weir *w = open_folder(dir);
    struct weir_hub_info info;

    must(weir_hub_info(w, hub, &info, &err), "info");
    for (uint32_t i = 0; i < 12; i++) run_producer(w, hub, i % info.partitions, (uint16_t)(i / 5));
    must(weir_close(w, &err), "close");
}

/* ---- with a clock and segments of our own ---- */

struct hands {
    int64_t wall_ms, mono_ms;
};

static int64_t wall_of(void *self)
{
    return ((struct hands *)self)->wall_ms;
}

static int64_t mono_of(void *self)
{
    return ((struct hands *)self)->mono_ms;
}

static struct weir__namespace *open_namespace(const char *dir, struct hands *h, const char *name,
                                              struct weir__hub **hub)
{
    struct weir__namespace_options o = {.clock = {.wall_ms = wall_of,
                                                  .mono_ms = mono_of,
                                                  .self = h},
                                        .must_exist = true,
                                        .segment_bytes_max = SMALL_SEGMENT,
                                        .no_threads = true};
    struct weir__namespace *ns;

    must(weir__namespace_open(&ns, dir, &o, &err), "open");
    must(weir__namespace_use(ns, name, hub, &err), "use");
    return ns;
}

/* A batch of one event: an AMQP message that has a data section. */
static uint64_t publish(struct weir__hub *hub, uint32_t partition, uint32_t len,
                        const struct weir__log_producer *who)
{
    static uint8_t message[RECYCLE_BYTES + 8];
    struct weir__log_receipt at;
    struct weir__batch b;

    message[1] = 0x53, message[2] = 0x75, message[3] = 0xb0;
    for (int i = 0; i < 4; i++) message[4 + i] = (uint8_t)(len >> (24 - 8 * i));
    memcpy(message + 8, bytes, len);
    must(weir__batch_of_payload(&b, 0, weir__bytes_of(message, len + 8), 0, &err), "batch");
    must(weir__hub_publish_wait(hub, &b, partition, who, INT64_MAX, &at, &err), "publish");
    return at.offset;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * INT64_C(1000) + t.tv_nsec / 1000000;
}

static void fill_days(const char *dir, const char *name)
{
    struct weir__log_producer who = {SILENT_ID, 3, 0};
    struct hands h = {now_ms() - HOURS * HOUR_MS, 1000};
    struct weir__hub *hub;
    struct weir__namespace *ns = open_namespace(dir, &h, name, &hub);

    print_batch(1, who.id, who.epoch, 0, 1, publish(hub, 1, 500, &who));
    for (int hour = 0; hour < HOURS; hour++) {
        for (uint32_t i = 0; i < 5; i++) publish(hub, i % 4, 100 + (uint32_t)hour, NULL);
        h.wall_ms += HOUR_MS;
        h.mono_ms += HOUR_MS;
        must(weir__namespace_step(ns, &err), "step");
    }
    weir__hub_release(hub);
    must(weir__namespace_close(ns, &err), "close");
}

static void fill_recycled(const char *dir, const char *name)
{
    struct hands h = {now_ms() - 10000, 1000};
    struct weir__hub *hub;
    struct weir__namespace *ns = open_namespace(dir, &h, name, &hub);

    for (uint32_t i = 0; i < RECYCLE_BATCHES; i++) {
        publish(hub, i % 4, RECYCLE_BYTES - i % 97, NULL);
        h.mono_ms += 3;
        h.wall_ms += 3;
        if (i % 10 == 0) must(weir__namespace_step(ns, &err), "step");
    }
    weir__hub_release(hub);
    must(weir__namespace_close(ns, &err), "close");
}

int main(int argc, char **argv)
{
    if (argc != 4) return 2;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 2654435761u >> 13);
    if (strcmp(argv[2], "events") == 0)
        fill_events(argv[1], argv[3]);
    else if (strcmp(argv[2], "producers") == 0)
        fill_producers(argv[1], argv[3]);
    else if (strcmp(argv[2], "days") == 0)
        fill_days(argv[1], argv[3]);
    else
        fill_recycled(argv[1], argv[3]);
    return 0;
}
