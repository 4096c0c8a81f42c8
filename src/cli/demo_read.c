/* demo_read.c - the other end of weir demo: reads a partition and believes nothing. */
#include "cli/demo.h"

#include <inttypes.h>

#define RECEIVE_EVENTS 1000u

/* Reads `text` and then a number; false when something else is there. */
static bool take_number(struct weir_bytes *from, const char *text, uint32_t *out)
{
    size_t len = strlen(text), digits = 0;

    if (from->len < len || memcmp(from->at, text, len) != 0) return false;
    *out = 0;
    for (from->at += len, from->len -= len; from->len > 0; from->at++, from->len--, digits++) {
        if (*from->at < '0' || *from->at > '9') break;
        *out = *out * 10 + (uint32_t)(*from->at - '0');
    }
    return digits > 0 && digits < 10;
}

/* Home and minute of an event, from its body; its key must say the same. */
static bool read_event(const struct weir_event *e, uint32_t *out_home, uint32_t *out_minute)
{
    struct weir_bytes body = e->body, key = e->partition_key;
    uint32_t home_of_key;

    return take_number(&body, "{\"home\":", out_home) &&
           take_number(&body, ",\"minute\":", out_minute) && body.len > 0 &&
           body.at[body.len - 1] == '}' && take_number(&key, "home-", &home_of_key) &&
           key.len == 0 && home_of_key == *out_home;
}

static int wrong(struct weir_error *err, const struct weir_event *e, const char *why)
{
    return weir__fail(err, WEIR_ECORRUPT, "partition %" PRIu32 ", sequence %" PRIu64 ": %s: %.*s",
                      e->partition, e->sequence, why, (int)(e->body.len < 100 ? e->body.len : 100),
                      e->body.at);
}

/* The partition is that of the home's key, so a home belongs to one reader. */
static int check_event(struct weir__demo *d, const struct weir_event *e, struct weir_error *err)
{
    uint32_t home, minute;

    if (!read_event(e, &home, &minute) || home >= d->homes)
        return wrong(err, e, "not what was published");
    if (weir_partition_of_key(e->partition_key, WEIR__DEMO_PARTITIONS) != e->partition)
        return wrong(err, e, "in the wrong partition");
    if (minute < d->seen[home]) return wrong(err, e, "seen twice");
    if (minute > d->seen[home]) return wrong(err, e, "out of order");
    d->seen[home]++;
    return 0;
}

void weir__demo_read(struct weir__demo *d, uint32_t partition)
{
    uint64_t left = (uint64_t)(d->first[partition + 1] - d->first[partition]) * d->minutes;
    struct weir_received got;
    struct weir_error err;
    int rc = 0;

    while (rc == 0 && left > 0 && !atomic_load(&d->stop)) {
        rc = weir_receiver_receive(d->receiver[partition], RECEIVE_EVENTS, -1, &got, &err);
        for (size_t i = 0; rc == 0 && i < got.count; i++) rc = check_event(d, &got.events[i], &err);
        if (rc != 0) break;
        left -= got.count;
        atomic_fetch_add(&d->read, got.count);
    }
    if (rc != 0 && rc != WEIR_ECANCELED) weir__demo_fail(d, &err);
}
