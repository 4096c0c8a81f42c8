/* history.c - see history.h. */
#include "support/history.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/allocs.h"
#include "support/dice.h"

#define VIEWS_MAX 16
#define WAIT_MS 20000

static void *need(void *p)
{
    if (p) return p;
    fprintf(stderr, "history: out of memory\n");
    abort();
}

struct history *history_new(uint32_t partitions)
{
    struct history *h = need(calloc(1, sizeof *h));

    weir__mutex_init(&h->lock);
    h->partitions = partitions;
    return h;
}

struct history *history_copy(const struct history *from)
{
    struct history *h = need(malloc(sizeof *h));

    *h = *from;
    weir__mutex_init(&h->lock);
    h->cap = from->count + 16;
    h->batches = need(malloc(h->cap * sizeof h->batches[0]));
    if (h->count > 0) memcpy(h->batches, from->batches, h->count * sizeof h->batches[0]);
    return h;
}

void history_free(struct history *h)
{
    if (!h) return;
    weir__mutex_fini(&h->lock);
    free(h->batches);
    free(h);
}

void history_violation(struct history *h, const char *fmt, ...)
{
    va_list args;

    if (h->violations++ > 0) return;
    va_start(args, fmt);
    vsnprintf(h->first, sizeof h->first, fmt, args);
    va_end(args);
}

void history_body(uint64_t number, uint32_t partition, uint8_t *to, size_t len)
{
    uint64_t dice = number * 1000003u + partition, word = 0;

    weir__store64(to, number);
    for (size_t i = 8; i < len; i++) {
        if (i % 8 == 0) word = dice_next(&dice);
        to[i] = (uint8_t)(word >> (8 * (i % 8)));
    }
}

/* ---- appending ---- */

/* Where a completion finds its batch: the array may have moved by then. */
struct ticket {
    struct history *h;
    size_t index;
};

static size_t add_batch(struct history *h, const struct history_order *o)
{
    size_t index;

    if (h->count == h->cap) {
        h->cap = h->cap > 0 ? h->cap * 2 : 64;
        h->batches = need(realloc(h->batches, h->cap * sizeof h->batches[0]));
    }
    index = h->count++;
    h->batches[index] = (struct history_batch){
        .partition = o->partition,
        .count = o->count,
        .bytes = o->bytes,
        .attrs = (uint16_t)(index * 7),
        .producer = {.id = o->producer_id},
    };
    return index;
}

size_t history_note(struct history *h, const struct history_order *o)
{
    size_t index;

    weir__mutex_lock(&h->lock);
    index = add_batch(h, o);
    weir__mutex_unlock(&h->lock);
    return index;
}

/* The body in one to four parts, as it may come from a caller. */
static void cut_body(const uint8_t *at, uint32_t len, uint64_t number, struct weir__bytes parts[])
{
    uint64_t dice = number;
    uint32_t done = 0;

    for (int i = 0; i < WEIR__LOG_BODY_PARTS_MAX; i++) {
        uint32_t n = (uint32_t)dice_roll(&dice, len - done + 1);

        if (i == WEIR__LOG_BODY_PARTS_MAX - 1) n = len - done;
        parts[i] = weir__bytes_of(at + done, n);
        done += n;
    }
}

static uint8_t *make_batch(const struct history_batch *b, size_t index, struct weir__log_batch *out)
{
    uint8_t *body = need(malloc(b->bytes));

    history_body(index + 1, b->partition, body, b->bytes);
    if (b->forgery.position) forge_body(&b->forgery, body, b->bytes);
    *out = (struct weir__log_batch){
        .partition = b->partition,
        .count = b->count,
        .attrs = b->attrs,
        .producer = b->producer,
    };
    cut_body(body, b->bytes, index + 1, out->body);
    return body;
}

void history_settle(struct history *h, size_t index, int rc,
                    const struct weir__log_receipt *receipt)
{
    struct history_batch *b;

    weir__mutex_lock(&h->lock);
    b = &h->batches[index];
    if (b->fate != HISTORY_PENDING) history_violation(h, "batch %zu completed twice", index + 1);
    b->fate = rc == 0 ? HISTORY_ACKED : rc == WEIR_EUNKNOWN ? HISTORY_UNKNOWN : HISTORY_REFUSED;
    h->completed++;
    if (rc == 0) {
        h->acked++;
        b->receipt = *receipt;
        if (receipt->duplicate) history_violation(h, "batch %zu taken for a duplicate", index + 1);
    }
    weir__mutex_unlock(&h->lock);
    if (rc == 0 && h->on_ack) h->on_ack(h->on_ack_user, index, receipt);
}

static void complete(void *user, int rc, const struct weir__log_receipt *receipt,
                     const struct weir_error *err)
{
    struct ticket *t = user;

    (void)err;
    allocs_pause();
    history_settle(t->h, t->index, rc, receipt);
    free(t);
    allocs_resume();
}

/* Adds a batch and makes what is sent of it. A producer goes on where the log says it stands; one
 * that nobody knows begins at 0. */
static uint8_t *prepare(struct history *h, struct weir__log *log, const struct history_order *o,
                        size_t *out_index, struct weir__log_batch *out)
{
    struct weir__log_producer next = {0};
    struct history_batch b;

    if (o->producer_id != 0)
        weir__log_producer_state(log, o->partition, o->producer_id, &next, NULL);
    weir__mutex_lock(&h->lock);
    *out_index = add_batch(h, o);
    if (h->forging) h->batches[*out_index].forgery = forge_plan(log, o->partition);
    h->batches[*out_index].producer.epoch = next.epoch;
    h->batches[*out_index].producer.sequence = next.sequence;
    b = h->batches[*out_index];
    weir__mutex_unlock(&h->lock);
    return make_batch(&b, *out_index, out);
}

int history_append(struct history *h, struct weir__log *log, const struct history_order *o)
{
    struct weir__log_batch batch;
    struct ticket *t;
    uint8_t *body;
    int rc;

    allocs_pause();
    t = need(malloc(sizeof *t));
    t->h = h;
    body = prepare(h, log, o, &t->index, &batch);
    allocs_resume();
    rc = weir__log_append(log, &batch, o->wait_ms > 0 ? weir__deadline_ns(o->wait_ms) : 0, complete,
                          t, NULL);
    allocs_pause();
    if (rc != 0) {
        history_settle(h, t->index, rc, NULL);
        free(t);
    }
    free(body);
    allocs_resume();
    return rc;
}

int history_append_wait(struct history *h, struct weir__log *log, const struct history_order *o)
{
    struct weir__log_receipt receipt = {0};
    struct weir__log_batch batch;
    uint8_t *body;
    size_t index;
    int rc;

    allocs_pause();
    body = prepare(h, log, o, &index, &batch);
    allocs_resume();
    rc = weir__log_append_wait(log, &batch, weir__deadline_ns(WAIT_MS), &receipt, NULL);
    allocs_pause();
    history_settle(h, index, rc, &receipt);
    free(body);
    allocs_resume();
    return rc;
}

int history_repeat(struct history *h, struct weir__log *log, uint32_t partition,
                   uint64_t producer_id)
{
    struct weir__log_receipt receipt = {0};
    const struct history_batch *b;
    struct weir__log_batch batch;
    size_t i = h->count;
    uint8_t *body;
    int rc;

    while (i > 0 && (h->batches[i - 1].partition != partition ||
                     h->batches[i - 1].producer.id != producer_id ||
                     h->batches[i - 1].fate == HISTORY_REFUSED ||
                     (h->batches[i - 1].fate == HISTORY_GONE && !h->may_expire)))
        i--;
    if (i == 0 || h->batches[i - 1].fate != HISTORY_ACKED) return 0;
    b = &h->batches[i - 1];
    if (b->receipt.time_ms < h->repeat_from_ms) return 0;
    allocs_pause();
    body = make_batch(b, i - 1, &batch);
    allocs_resume();
    rc = weir__log_append_wait(log, &batch, weir__deadline_ns(WAIT_MS), &receipt, NULL);
    free(body);
    b = &h->batches[i - 1]; /* completions that ran meanwhile may have moved it */
    if (rc != 0) return rc;
    if (!receipt.duplicate) history_violation(h, "batch %zu stored twice", i);
    if (receipt.sequence != b->receipt.sequence || receipt.offset != b->receipt.offset)
        history_violation(h, "the receipt of batch %zu changed when it was repeated", i);
    return 0;
}

/* ---- checking ---- */

/* A batch that was read, for the look at the whole hub's order. */
struct place {
    uint64_t offset;
    int64_t time_ms;
    uint32_t count;
};

struct reading {
    struct history *h;
    struct weir__log *log;
    bool *seen; /* per batch */
    struct place *places;
    size_t places_count, places_cap;
    uint32_t partition;
    uint64_t begin; /* oldest sequence of the partition */
    uint64_t next;  /* sequence that must come now */
    uint64_t last_number;
    uint8_t *scratch;
    size_t scratch_cap;
    bool failed; /* not everything could be read */
};

static void check_receipt(struct reading *r, const struct weir__log_view *v, uint64_t number)
{
    const struct history_batch *b = &r->h->batches[number - 1];

    if (b->fate == HISTORY_REFUSED)
        history_violation(r->h, "batch %" PRIu64 " was refused and is there", number);
    if (b->fate == HISTORY_GONE)
        history_violation(r->h, "batch %" PRIu64 " was gone and is back", number);
    if (b->fate != HISTORY_ACKED) return;
    if (v->sequence != b->receipt.sequence || v->offset != b->receipt.offset ||
        v->time_ms != b->receipt.time_ms)
        history_violation(r->h,
                          "batch %" PRIu64 " acked as sequence %" PRIu64 " offset %" PRIu64
                          " is at sequence %" PRIu64 " offset %" PRIu64,
                          number, b->receipt.sequence, b->receipt.offset, v->sequence, v->offset);
}

static void check_body(struct reading *r, const struct weir__log_view *v, uint64_t number)
{
    const struct history_batch *b = &r->h->batches[number - 1];

    if (b->partition != r->partition || b->bytes != v->body.len || b->count != v->count ||
        b->attrs != v->attrs || b->producer.id != v->producer.id ||
        (b->producer.id != 0 && b->producer.sequence != v->producer.sequence)) {
        history_violation(r->h, "batch %" PRIu64 " came back with another header", number);
        return;
    }
    if (r->scratch_cap < b->bytes) {
        free(r->scratch);
        r->scratch_cap = b->bytes;
        r->scratch = need(malloc(b->bytes));
    }
    history_body(number, b->partition, r->scratch, b->bytes);
    if (b->forgery.position) forge_body(&b->forgery, r->scratch, b->bytes);
    if (memcmp(r->scratch, v->body.at, b->bytes) != 0)
        history_violation(r->h, "batch %" PRIu64 " came back with other bytes", number);
}

static void note_place(struct reading *r, const struct weir__log_view *v)
{
    if (r->places_count == r->places_cap) {
        r->places_cap = r->places_cap > 0 ? r->places_cap * 2 : 64;
        r->places = need(realloc(r->places, r->places_cap * sizeof r->places[0]));
    }
    r->places[r->places_count++] = (struct place){v->offset, v->time_ms, v->count};
}

static void check_view(struct reading *r, const struct weir__log_view *v, bool settle)
{
    struct history *h = r->h;
    uint64_t number = v->body.len >= HISTORY_BODY_BYTES_MIN ? weir__load64(v->body.at) : 0;

    h->found++;
    if (v->sequence != r->next)
        history_violation(h, "partition %u: sequence %" PRIu64 " where %" PRIu64 " was due",
                          r->partition, v->sequence, r->next);
    r->next = v->sequence + v->count;
    note_place(r, v);
    if (number == 0 || number > h->count) {
        history_violation(h, "partition %u: a batch that nobody sent", r->partition);
        return;
    }
    if (number <= r->last_number)
        history_violation(h, "partition %u: batch %" PRIu64 " came behind batch %" PRIu64,
                          r->partition, number, r->last_number);
    r->last_number = number;
    check_body(r, v, number);
    check_receipt(r, v, number);
    r->seen[number - 1] = true;
    if (!settle) return;
    h->batches[number - 1].fate = HISTORY_ACKED;
    h->batches[number - 1].receipt = (struct weir__log_receipt){.offset = v->offset,
                                                                .sequence = v->sequence,
                                                                .time_ms = v->time_ms};
}

/* What cannot be served is passed over, when the test allows for damage. */
static bool pass_damage(struct reading *r, struct weir__log_reader *reader, int rc,
                        const struct weir_error *err)
{
    uint64_t first = 1, last = 0;
    bool damage = rc == WEIR_ECORRUPT || rc == WEIR_EIO;

    if (r->h->may_fail && rc != WEIR_ECORRUPT) {
        r->failed = true;
        return false;
    }
    if (!damage || !r->h->may_damage) {
        history_violation(r->h, "reading partition %u at %" PRIu64 ": %s", r->partition, r->next,
                          err->text);
        return false;
    }
    weir__log_reader_damage(reader, &first, &last);
    if (first > last || first > r->next || last < r->next) {
        history_violation(r->h, "damage %" PRIu64 "..%" PRIu64 " told at sequence %" PRIu64, first,
                          last, r->next);
        return false;
    }
    r->h->damaged += last - r->next + 1;
    memcpy(r->h->damage, err->text, sizeof r->h->damage);
    for (size_t i = 0; i < r->h->count; i++) {
        const struct history_batch *b = &r->h->batches[i];

        if (b->partition == r->partition && b->fate == HISTORY_ACKED &&
            b->receipt.sequence >= first && b->receipt.sequence <= last)
            r->seen[i] = true;
    }
    r->next = last + 1;
    weir__log_reader_seek(reader, r->next);
    return true;
}

static void read_partition(struct reading *r, bool settle)
{
    struct weir__log_view views[VIEWS_MAX];
    struct weir__log_partition_info info = {0};
    struct weir__log_reader *reader = NULL;
    struct weir_error err = {0};
    uint32_t count = 1;
    uint64_t missed = 0;
    int rc;

    r->last_number = 0;
    rc = weir__log_partition_info(r->log, r->partition, &info, &err);
    r->begin = r->next = info.begin_sequence;
    if (rc == 0) rc = weir__log_reader_open(&reader, r->log, r->partition, r->next, 0, &err);
    if (rc != 0 && r->h->may_fail)
        r->failed = true;
    else if (rc != 0)
        history_violation(r->h, "opening partition %u: %s", r->partition, err.text);
    while (rc == 0 && count > 0) {
        rc = weir__log_reader_next(reader, views, VIEWS_MAX, &count, &missed, &err);
        if (rc == 0 && missed > 0)
            history_violation(r->h, "partition %u: %" PRIu64 " missed", r->partition, missed);
        allocs_pause();
        for (uint32_t i = 0; rc == 0 && i < count; i++) check_view(r, &views[i], settle);
        allocs_resume();
        if (rc != 0 && pass_damage(r, reader, rc, &err)) rc = 0, count = 1;
    }
    if (rc == 0 && r->next != info.next_sequence)
        history_violation(r->h, "partition %u ends at %" PRIu64 ", not at %" PRIu64, r->partition,
                          r->next, info.next_sequence);
    weir__log_reader_close(reader);
}

/* Every batch that had to be there, and what is to be made of those that had not. */
static void check_missing(struct reading *r, const uint64_t *begins, bool settle)
{
    struct history *h = r->h;
    uint64_t spared = h->may_lose;

    for (size_t i = h->count; i-- > 0;) {
        struct history_batch *b = &h->batches[i];
        bool expired = h->may_expire && b->receipt.time_ms < h->keep_from_ms &&
                       b->receipt.sequence + b->count <= begins[b->partition];

        if (b->fate == HISTORY_ACKED && !r->seen[i] && !expired) {
            if (spared == 0)
                history_violation(h, "batch %zu (partition %u, sequence %" PRIu64 ") is lost",
                                  i + 1, b->partition, b->receipt.sequence);
            else if (settle)
                b->fate = HISTORY_GONE;
        }
        if (b->fate == HISTORY_ACKED && spared > 0) spared--;
        if (settle && !r->seen[i] && b->fate != HISTORY_ACKED && b->fate != HISTORY_REFUSED)
            b->fate = HISTORY_GONE;
    }
}

static int by_offset(const void *left, const void *right)
{
    const struct place *a = left, *b = right;

    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void check_order(struct reading *r)
{
    if (r->places_count > 1) qsort(r->places, r->places_count, sizeof r->places[0], by_offset);
    for (size_t i = 1; i < r->places_count; i++) {
        const struct place *a = &r->places[i - 1], *b = &r->places[i];

        if (b->offset < a->offset + a->count)
            history_violation(r->h, "offset %" PRIu64 " is used twice", b->offset);
        if (b->time_ms < a->time_ms)
            history_violation(r->h, "time runs backwards at offset %" PRIu64, b->offset);
    }
    if (r->places_count > 0 && r->places[0].offset < WEIR__LOG_ORIGIN)
        history_violation(r->h, "offset %" PRIu64 " below the origin", r->places[0].offset);
}

void history_check(struct history *h, struct weir__log *log, bool settle)
{
    struct reading r = {.h = h, .log = log};
    uint64_t *begins;

    allocs_pause();
    begins = need(calloc(h->partitions, sizeof *begins));
    r.seen = need(calloc(h->count + 1, sizeof *r.seen));
    allocs_resume();
    h->found = h->damaged = 0;
    for (r.partition = 0; r.partition < h->partitions && !r.failed; r.partition++) {
        read_partition(&r, settle);
        begins[r.partition] = r.begin;
    }
    if (!r.failed) check_missing(&r, begins, settle);
    check_order(&r);
    free(begins);
    free(r.seen);
    free(r.places);
    free(r.scratch);
}
