/* demo_publish.c - the homes of weir demo: a thread publishes for the homes of some partitions. */
#include "cli/demo.h"

#include <string.h>

#define BATCH_EVENTS 250u
#define BODY_BYTES 96
#define WINDOW 16u /* batches in flight: more would only wait longer */

struct publisher;

/* A batch in flight. */
struct slot {
    struct publisher *publisher;
    int64_t started_ns;
    uint32_t events, bytes;
    bool busy;
};

struct publisher {
    struct weir__demo *demo;
    struct weir__mutex lock; /* guards busy */
    struct weir__cond freed;
    struct slot slot[WINDOW];
    struct weir_event event[BATCH_EVENTS];
    char key[BATCH_EVENTS][WEIR__DEMO_KEY_BYTES];
    char body[BATCH_EVENTS][BODY_BYTES];
};

/* ---- what a home says ---- */

static char *put_text(char *to, const char *text)
{
    while (*text) *to++ = *text++;
    return to;
}

static char *put_number(char *to, uint32_t n)
{
    char digits[10];
    int count = 0;

    do digits[count++] = (char)('0' + n % 10);
    while ((n /= 10) > 0);
    while (count > 0) *to++ = digits[--count];
    return to;
}

struct weir_bytes weir__demo_key(uint32_t home, char out[WEIR__DEMO_KEY_BYTES])
{
    char *end = put_number(put_text(out, "home-"), home);

    return weir_bytes(out, (size_t)(end - out));
}

/* {"home":4711,"minute":3,"sensor":"temperature","value":21.4} */
static struct weir_bytes make_body(char *out, uint32_t home, uint32_t minute)
{
    uint32_t chance = (home * 2654435761u + minute * 40503u) >> 16;
    char *to = put_text(out, "{\"home\":");

    to = put_number(to, home);
    to = put_text(to, ",\"minute\":");
    to = put_number(to, minute);
    if (chance % 16 == 0) {
        to = put_text(to, ",\"sensor\":\"door\",\"value\":\"");
        to = put_text(to, chance % 32 ? "open\"}" : "closed\"}");
    } else if (chance % 16 == 1) {
        to = put_text(to, ",\"sensor\":\"motion\",\"value\":true}");
    } else {
        to = put_text(to, ",\"sensor\":\"temperature\",\"value\":");
        to = put_number(to, 17 + chance % 7);
        *to++ = '.';
        to = put_number(to, chance / 7 % 10);
        *to++ = '}';
    }
    return weir_bytes(out, (size_t)(to - out));
}

/* ---- sending ---- */

static uint32_t bucket_of(uint64_t us)
{
    uint32_t power;

    if (us < 8) return (uint32_t)us;
    power = 63 - (uint32_t)__builtin_clzll(us);
    return (power - 2) * 8 + (uint32_t)(us >> (power - 3) & 7);
}

static void on_stored(void *user, int rc, const struct weir_receipt *receipt,
                      const struct weir_error *err)
{
    struct slot *s = user;
    struct publisher *p = s->publisher;
    struct weir__demo *d = p->demo;
    int64_t now = weir__mono_ns();

    (void)receipt;
    if (rc == 0) {
        d->latency[bucket_of((uint64_t)(now - s->started_ns) / 1000) % WEIR__DEMO_BUCKETS]++;
        d->batches++;
        atomic_fetch_add(&d->published, s->events);
        atomic_fetch_add(&d->bytes, s->bytes);
        atomic_store(&d->published_ns, now);
    } else {
        weir__demo_fail(d, err);
    }
    weir__mutex_lock(&p->lock);
    s->busy = false;
    weir__cond_signal(&p->freed);
    weir__mutex_unlock(&p->lock);
}

static struct slot *take_slot(struct publisher *p)
{
    struct slot *s = NULL;

    weir__mutex_lock(&p->lock);
    while (!s) {
        for (uint32_t i = 0; i < WINDOW && !s; i++)
            if (!p->slot[i].busy) s = &p->slot[i];
        if (!s) weir__cond_wait(&p->freed, &p->lock, INT64_MAX);
    }
    s->busy = true;
    weir__mutex_unlock(&p->lock);
    return s;
}

static int send_readings(struct publisher *p, struct weir_producer *to, const uint32_t *home,
                         uint32_t count, uint32_t minute, struct weir_error *err)
{
    struct slot *s = take_slot(p);
    int rc;

    *s = (struct slot){.publisher = p, .events = count, .busy = true};
    for (uint32_t i = 0; i < count; i++) {
        p->event[i] = (struct weir_event){.body = make_body(p->body[i], home[i], minute),
                                          .partition_key = weir__demo_key(home[i], p->key[i])};
        s->bytes += (uint32_t)p->event[i].body.len;
    }
    s->started_ns = weir__mono_ns();
    rc = weir_producer_send_async(to, p->event, count, -1, on_stored, s, err);
    if (rc != 0) s->busy = false;
    return rc;
}

/* A minute of all homes of a partition. */
static int send_minute(struct publisher *p, struct weir_producer *to, uint32_t partition,
                       uint32_t minute, struct weir_error *err)
{
    struct weir__demo *d = p->demo;
    uint32_t end = d->first[partition + 1];
    int rc = 0;

    for (uint32_t at = d->first[partition]; rc == 0 && at < end && !atomic_load(&d->stop);) {
        uint32_t count = end - at < BATCH_EVENTS ? end - at : BATCH_EVENTS;
        rc = send_readings(p, to, d->home + at, count, minute, err);
        at += count;
    }
    return rc;
}

static int open_producers(struct weir__demo *d, uint32_t publisher, uint32_t publishers,
                          struct weir_producer **out, struct weir_error *err)
{
    int rc = 0;

    for (uint32_t i = publisher; rc == 0 && i < WEIR__DEMO_PARTITIONS; i += publishers) {
        struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = i};
        rc = weir_producer_open(&out[i], d->weir, WEIR__DEMO_HUB, &o, err);
    }
    return rc;
}

void weir__demo_publish(struct weir__demo *d, uint32_t publisher, uint32_t publishers)
{
    struct weir_producer *to[WEIR__DEMO_PARTITIONS] = {0};
    struct publisher p = {.demo = d};
    struct weir_error err;
    int rc;

    weir__mutex_init(&p.lock);
    weir__cond_init(&p.freed);
    rc = open_producers(d, publisher, publishers, to, &err);
    for (uint32_t m = 0; rc == 0 && m < d->minutes; m++)
        for (uint32_t i = publisher; rc == 0 && i < WEIR__DEMO_PARTITIONS; i += publishers)
            rc = send_minute(&p, to[i], i, m, &err);
    if (rc != 0) weir__demo_fail(d, &err);
    for (uint32_t i = 0; i < WEIR__DEMO_PARTITIONS; i++) weir_producer_close(to[i], -1, NULL);
    weir__cond_fini(&p.freed);
    weir__mutex_fini(&p.lock);
}
