/* moments.c - publishers and receivers of a server that runs out of something for a moment.
 *
 *     moments CONNECTION HUB...
 *
 * Every hub has two lanes: an idempotent publisher to partition 0 and a plain one to partition 1, each
 * with a receiver that reads from the beginning. Batches are numbered, so the receiver knows what is
 * missing, twice, in part or out of order. The publishers of a hub wait when more than AHEAD_MAX of its
 * batches lie behind one that was not received, so retention removes nothing unread. Lines on standard
 * input:
 *
 *     mark NAME      prints and clears what was counted since the last one
 *     first HUB...   a new client publishes to each, at the first try and within FIRST_MS
 *     resume         waits until every lane has published and received something new
 *     end            stops the publishers, reads to the end and says whether all is there */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "weir/weir.h"

#define LANES_MAX 32
#define BATCHES_MAX (1u << 18)
#define EVENTS 8 /* per batch */
#define EVENT_BYTES 2048
#define AHEAD_MAX 64
#define SEND_MS 2000
#define FIRST_MS 1000
#define RESUME_MS 20000
#define PROBE_PARTITION 2

enum fate { UNSENT, REFUSED, UNKNOWN, ACKED };

struct lane {
    struct weir *weir;
    const char *hub;
    uint32_t partition;
    struct lane *other;          /* of the same hub */
    _Atomic uint32_t *stored;    /* batches of the hub */
    uint32_t stamp[BATCHES_MAX]; /* what that was when one was acknowledged */
    pthread_t publisher, receiver;
    uint8_t fate[BATCHES_MAX], got[BATCHES_MAX];
    _Atomic uint32_t next;                   /* batch to send */
    _Atomic uint32_t acked, received;        /* the last one, and one more */
    uint64_t sequence;                       /* the next that the receiver expects */
    uint32_t part;                           /* of the batch that is being received */
    char wrong[WEIR_ERROR_TEXT_BYTES + 128]; /* the first thing that must not be */
};

static struct lane *lanes[LANES_MAX];
static _Atomic uint32_t stored[LANES_MAX]; /* by the hub's first lane */
static unsigned lane_count;
static const char *connection;
static atomic_bool publishing = true, receiving = true;
static atomic_uint good, refused, unknown, reopened;
static pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;
static char sample[WEIR_ERROR_TEXT_BYTES];

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void rest_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void keep_sample(const struct weir_error *err)
{
    pthread_mutex_lock(&told);
    snprintf(sample, sizeof sample, "%s", err->text);
    pthread_mutex_unlock(&told);
}

static void note_wrong(struct lane *l, const char *what, uint64_t at)
{
    if (!l->wrong[0])
        snprintf(l->wrong, sizeof l->wrong, "%s/%u: %s %" PRIu64, l->hub, l->partition, what, at);
}

/* ---- publishing ---- */

static void fill_batch(uint32_t batch, uint8_t bytes[EVENTS][EVENT_BYTES],
                       struct weir_event events[EVENTS])
{
    memset(events, 0, EVENTS * sizeof *events);
    for (uint32_t i = 0; i < EVENTS; i++) {
        uint64_t number = (uint64_t)batch * EVENTS + i;

        memset(bytes[i], (int)('a' + number % 26), EVENT_BYTES);
        memcpy(bytes[i], &number, sizeof number);
        events[i].body = weir_bytes(bytes[i], EVENT_BYTES);
    }
}

static enum fate fate_of(int rc)
{
    if (rc == 0) return ACKED;
    return weir_error_class(rc) == WEIR_CLASS_UNKNOWN ? UNKNOWN : REFUSED;
}

static void count_fate(enum fate fate, const struct weir_error *err)
{
    good += fate == ACKED;
    refused += fate == REFUSED;
    unknown += fate == UNKNOWN;
    if (fate != ACKED) keep_sample(err);
}

static struct weir_producer *open_producer(struct lane *l, uint64_t id)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true};
    struct weir_producer *p = NULL;
    struct weir_error err;

    o.partition = l->partition;
    o.idempotent = l->partition == 0;
    o.id = id;
    while (publishing && weir_producer_open(&p, l->weir, l->hub, &o, &err) != 0) {
        count_fate(REFUSED, &err);
        rest_ms(20);
    }
    return p;
}

/* An idempotent producer that was refused is opened again as the same; its hub knows how far it has
 * come. NULL: the publishers stop. */
static struct weir_producer *open_again(struct lane *l, struct weir_producer *p, uint32_t batch)
{
    struct weir_producer_identity who;

    weir_producer_identity(p, &who);
    weir_producer_close(p, 0, NULL);
    reopened++;
    p = open_producer(l, who.id);
    if (!p) return NULL;
    weir_producer_identity(p, &who);
    if (who.next_sequence == (batch + 1) * EVENTS)
        l->fate[batch] = ACKED;
    else if (who.next_sequence != batch * EVENTS)
        note_wrong(l, "the hub's count of an idempotent producer is", who.next_sequence);
    return p;
}

/* The outcome of one batch. An idempotent one is repeated until it is stored. */
static struct weir_producer *publish(struct lane *l, struct weir_producer *p, uint32_t batch)
{
    uint8_t bytes[EVENTS][EVENT_BYTES];
    struct weir_event events[EVENTS];
    struct weir_error err;

    fill_batch(batch, bytes, events);
    do {
        int rc = weir_producer_send(p, events, EVENTS, SEND_MS, NULL, &err);

        l->fate[batch] = fate_of(rc);
        count_fate(l->fate[batch], &err);
        if (rc != 0) rest_ms(5);
        if (l->partition != 0 || rc == 0) break;
        if (rc != WEIR_EBUSY && l->fate[batch] != UNKNOWN) p = open_again(l, p, batch);
    } while (p && publishing && l->fate[batch] != ACKED);
    return p;
}

static bool is_behind(const struct lane *l)
{
    uint32_t received = l->received;

    return l->acked > received && *l->stored - (received ? l->stamp[received - 1] : 0) > AHEAD_MAX;
}

static void *run_publisher(void *arg)
{
    struct lane *l = arg;
    struct weir_producer *p = open_producer(l, 0);

    while (p && publishing && l->next < BATCHES_MAX) {
        if (is_behind(l) || is_behind(l->other)) {
            rest_ms(1);
            continue;
        }
        p = publish(l, p, l->next);
        if (l->fate[l->next] == ACKED) {
            l->stamp[l->next] = ++*l->stored;
            l->acked = l->next + 1;
        }
        l->next++;
    }
    weir_producer_close(p, SEND_MS, NULL);
    return NULL;
}

/* ---- receiving ---- */

static void take_event(struct lane *l, const struct weir_event *e)
{
    uint64_t number;
    uint32_t batch;

    memcpy(&number, e->body.at, sizeof number);
    batch = (uint32_t)(number / EVENTS);
    if (e->body.len != EVENT_BYTES || batch >= BATCHES_MAX || number % EVENTS != l->part)
        note_wrong(l, "a batch is there in part; event", number);
    else if (l->part == 0 && batch < l->received)
        note_wrong(l, "twice or out of order: event", number);
    else if (e->sequence != l->sequence)
        note_wrong(l, "a gap in front of sequence number", e->sequence);
    l->sequence = e->sequence + 1;
    l->part = (l->part + 1) % EVENTS;
    if (l->part != 0 || l->wrong[0]) return;
    l->got[batch] = 1;
    l->received = batch + 1;
}

static struct weir_receiver *open_receiver(struct lane *l)
{
    struct weir_receiver_options o = {.size = sizeof o, .exclusive = true};
    struct weir_receiver *r = NULL;
    struct weir_error err;

    if (l->sequence > 0)
        o.position = (struct weir_position){WEIR_FROM_SEQUENCE, true, (int64_t)l->sequence - 1};
    while (receiving && weir_receiver_open(&r, l->weir, l->hub, l->partition, &o, &err) != 0) {
        keep_sample(&err);
        rest_ms(20);
    }
    return r;
}

static void *run_receiver(void *arg)
{
    struct lane *l = arg;
    struct weir_receiver *r = open_receiver(l);

    while (r && receiving) {
        struct weir_received now;
        struct weir_error err;
        int rc = weir_receiver_receive(r, 256, 100, &now, &err);

        if (rc == 0 && now.missed) note_wrong(l, "events expired unread:", now.missed);
        for (size_t i = 0; rc == 0 && i < now.count; i++) take_event(l, &now.events[i]);
        if (rc == 0 || rc == WEIR_ETIMEDOUT) continue;
        keep_sample(&err);
        if (rc == WEIR_ECORRUPT) note_wrong(l, err.text, 0);
        weir_receiver_close(r);
        r = open_receiver(l);
        reopened++;
    }
    weir_receiver_close(r);
    return NULL;
}

/* ---- what is asked ---- */

static void print_mark(const char *name)
{
    pthread_mutex_lock(&told);
    printf("ROW moments during=%s acknowledged=%u refused=%u unknown=%u reopened=%u%s%s\n", name,
           atomic_exchange(&good, 0), atomic_exchange(&refused, 0), atomic_exchange(&unknown, 0),
           atomic_exchange(&reopened, 0), sample[0] ? " such as: " : "", sample);
    sample[0] = '\0';
    pthread_mutex_unlock(&told);
}

static int publish_once(const char *hub, struct weir_error *err)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true};
    struct weir_event e = {.body = weir_text("first")};
    struct weir_producer *p = NULL;
    struct weir *weir;
    int rc;

    o.partition = PROBE_PARTITION;
    rc = weir_open(&weir, connection, NULL, err);
    if (rc == 0) rc = weir_producer_open(&p, weir, hub, &o, err);
    if (rc == 0) rc = weir_producer_send(p, &e, 1, FIRST_MS, NULL, err);
    weir_producer_close(p, 0, NULL);
    weir_close(weir, NULL);
    return rc;
}

static void try_first(char *hubs)
{
    int64_t longest_ms = 0;
    unsigned count = 0, failed = 0;

    for (char *hub = strtok(hubs, " "); hub; hub = strtok(NULL, " "), count++) {
        int64_t began_ms = now_ms(), took_ms;
        struct weir_error err = {0};
        int rc = publish_once(hub, &err);

        took_ms = now_ms() - began_ms;
        if (took_ms > longest_ms) longest_ms = took_ms;
        failed += rc != 0;
        if (rc != 0) printf("first publish to %s: %s\n", hub, err.text);
    }
    printf("ROW moments first_publishes=%u failed=%u longest_ms=%" PRId64 " goal=%d %s\n", count,
           failed, longest_ms, FIRST_MS, failed || longest_ms > FIRST_MS ? "MISSED" : "ok");
}

static void wait_resumed(void)
{
    int64_t began_ms = now_ms();
    uint32_t from[LANES_MAX] = {0};
    unsigned left = lane_count;

    for (unsigned i = 0; i < lane_count; i++) from[i] = lanes[i]->next;
    while (left > 0 && now_ms() - began_ms < RESUME_MS) {
        left = 0;
        rest_ms(5);
        for (unsigned i = 0; i < lane_count; i++)
            left += lanes[i]->acked <= from[i] || lanes[i]->received <= from[i];
    }
    for (unsigned i = 0; left > 0 && i < lane_count; i++)
        if (lanes[i]->acked <= from[i] || lanes[i]->received <= from[i])
            printf("%s/%u stands at %u, acknowledged %u, received %u\n", lanes[i]->hub,
                   lanes[i]->partition, lanes[i]->next, lanes[i]->acked, lanes[i]->received);
    printf("ROW moments lanes=%u standing=%u resumed_ms=%" PRId64 " goal=%d %s\n", lane_count, left,
           now_ms() - began_ms, RESUME_MS, left ? "MISSED" : "ok");
}

static bool all_received(void)
{
    for (unsigned i = 0; i < lane_count; i++)
        if (lanes[i]->received < lanes[i]->acked) return false;
    return true;
}

static unsigned check_lane(struct lane *l)
{
    for (uint32_t i = 0; i < l->next; i++) {
        if (l->fate[i] == ACKED && !l->got[i]) note_wrong(l, "acknowledged and lost: batch", i);
        if (l->fate[i] == REFUSED && l->got[i]) note_wrong(l, "refused and stored: batch", i);
    }
    if (l->wrong[0]) printf("%s\n", l->wrong);
    return l->wrong[0] != '\0';
}

static int end(void)
{
    int64_t began_ms = now_ms();
    unsigned batches = 0, wrong = 0;

    publishing = false;
    for (unsigned i = 0; i < lane_count; i++) pthread_join(lanes[i]->publisher, NULL);
    while (!all_received() && now_ms() - began_ms < RESUME_MS) rest_ms(10);
    rest_ms(200); /* whatever comes behind the last one must not */
    receiving = false;
    for (unsigned i = 0; i < lane_count; i++) {
        pthread_join(lanes[i]->receiver, NULL);
        wrong += check_lane(lanes[i]);
        batches += lanes[i]->next;
    }
    printf("ROW moments batches=%u lanes_wrong=%u goal=0 %s\n", batches, wrong,
           wrong ? "MISSED" : "ok");
    return wrong ? 1 : 0;
}

static struct lane *new_lane(struct weir *weir, const char *hub, uint32_t partition)
{
    struct lane *l = calloc(1, sizeof *l);

    if (!l || lane_count == LANES_MAX) exit(1);
    l->weir = weir;
    l->hub = hub;
    l->partition = partition;
    l->stored = &stored[lane_count - partition];
    lanes[lane_count] = l;
    return lanes[lane_count++];
}

static void start_lane(struct lane *l, struct lane *other)
{
    l->other = other;
    if (pthread_create(&l->publisher, NULL, run_publisher, l) != 0) exit(1);
    if (pthread_create(&l->receiver, NULL, run_receiver, l) != 0) exit(1);
}

/* Over a connection of its own. */
static void start_hub(const char *hub)
{
    struct lane *idempotent, *plain;
    struct weir *weir;

    if (weir_open(&weir, connection, NULL, NULL) != 0) exit(1);
    idempotent = new_lane(weir, hub, 0);
    plain = new_lane(weir, hub, 1);
    start_lane(idempotent, plain);
    start_lane(plain, idempotent);
}

int main(int argc, char **argv)
{
    char line[4096];

    if (argc < 3) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    connection = argv[1];
    for (int i = 2; i < argc; i++) start_hub(argv[i]);
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "mark ", 5) == 0) print_mark(line + 5);
        if (strncmp(line, "first ", 6) == 0) try_first(line + 6);
        if (strcmp(line, "resume") == 0) wait_resumed();
        if (strcmp(line, "end") == 0) return end();
    }
    return 1;
}
