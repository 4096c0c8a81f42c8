/* processor.c - the public calls: options checked, copied, explained; the rest is handed on. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "weir/processor.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/rand.h"
#include "processor/state.h"

#define BATCH_MAX 1000
#define BATCH_MAX_MAX 4096 /* what one receive gives */
#define PREFETCH_BYTES ((size_t)64 << 20)
#define STREAM_BYTES_MIN ((size_t)16 << 10)
#define STREAM_BYTES_MAX ((size_t)4 << 20)
#define RECEIVE_MS 60000
#define BEAT_MS 1000
#define BEAT_MS_MIN 10
#define EXPIRE_BEATS 3
#define EXPIRE_BEATS_MIN 2
#define HANDOVER_MS 10000
#define ATTEMPTS 5

/* ---- words ---- */

const char *weir_close_reason_text(enum weir_close_reason reason)
{
    static const char *const texts[] = {
        [WEIR_CLOSED_SHUTDOWN] = "shutdown", [WEIR_CLOSED_LOST] = "lost",
        [WEIR_CLOSED_MOVED] = "moved",       [WEIR_CLOSED_ERROR] = "error",
        [WEIR_CLOSED_RELEASED] = "released",
    };
    size_t at = (size_t)reason;

    return at < sizeof texts / sizeof texts[0] && texts[at] ? texts[at] : "unknown";
}

const char *weir_action_text(enum weir_action action)
{
    static const char *const texts[] = {
        [WEIR_BEATING] = "beating",   [WEIR_READING_STORE] = "reading the store",
        [WEIR_CLAIMING] = "claiming", [WEIR_CHECKPOINTING] = "checkpointing",
        [WEIR_OPENING] = "opening",   [WEIR_RECEIVING] = "receiving",
        [WEIR_HANDLING] = "handling",
    };
    size_t at = (size_t)action;

    return at < sizeof texts / sizeof texts[0] && texts[at] ? texts[at] : "unknown";
}

void weir_source_close(struct weir_source *s)
{
    if (s) s->ops->close(s);
}

/* ---- options ---- */

/* Numbers: what 0 means, and between what they must lie. */
static const struct number {
    const char *name;
    size_t at;
    int64_t standard, min, max;
} numbers[] = {
#define NUMBER(name, standard, min, max)                                                           \
    {                                                                                              \
#name, offsetof(struct weir_processor_options, name), standard, min, max                   \
    }
    NUMBER(receive_ms, RECEIVE_MS, 1, INT64_MAX / 4),
    NUMBER(beat_ms, BEAT_MS, BEAT_MS_MIN, 3600000),
    NUMBER(expire_ms, 0, 0, 86400000),
    NUMBER(handover_ms, HANDOVER_MS, 1, 86400000),
    NUMBER(mark_ms, 0, 0, INT64_MAX / 4),
    NUMBER(handler_ms, 0, 0, INT64_MAX / 4),
#undef NUMBER
};

static int check_numbers(struct weir_processor_options *o, struct weir_error *err)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct number *n = &numbers[i];
        int64_t *value = (int64_t *)((char *)o + n->at);
        if (*value == 0) *value = n->standard;
        if (*value < n->min || *value > n->max)
            return weir__fail(err, WEIR_EINVAL, "%s is %" PRId64 ", not %" PRId64 " to %" PRId64,
                              n->name, *value, n->min, n->max);
    }
    if (o->expire_ms == 0) o->expire_ms = EXPIRE_BEATS * o->beat_ms;
    if (o->expire_ms < EXPIRE_BEATS_MIN * o->beat_ms)
        return weir__fail(err, WEIR_EINVAL, "expire_ms is less than %d times beat_ms",
                          EXPIRE_BEATS_MIN);
    return 0;
}

static int check_choices(const struct weir_processor_options *o, struct weir_error *err)
{
    if (!o->handler.events) return weir__fail(err, WEIR_EINVAL, "there is no handler for events");
    if ((unsigned)o->failure > WEIR_GIVE_UP)
        return weir__fail(err, WEIR_EINVAL, "failure is none of enum weir_failure");
    if (o->failure == WEIR_DEAD_LETTER && !o->dead_letter && !o->dead_letters)
        return weir__fail(err, WEIR_EINVAL,
                          "WEIR_DEAD_LETTER with neither dead_letter nor dead_letters");
    if ((unsigned)o->strategy > WEIR_GREEDY)
        return weir__fail(err, WEIR_EINVAL, "strategy is none of enum weir_strategy");
    if ((unsigned)o->overdue > WEIR_OVERDUE_ABORT)
        return weir__fail(err, WEIR_EINVAL, "overdue is none of enum weir_overdue");
    if (o->threads < -1 || o->threads > WEIR__THREADS_MAX)
        return weir__fail(err, WEIR_EINVAL, "threads is %d, not -1 to %d", o->threads,
                          WEIR__THREADS_MAX);
    if (o->batch_max > BATCH_MAX_MAX)
        return weir__fail(err, WEIR_EINVAL, "batch_max is %zu, the most is %d", o->batch_max,
                          BATCH_MAX_MAX);
    if (o->prefetch_events != 0 && o->prefetch_events < (o->batch_max ? o->batch_max : BATCH_MAX))
        return weir__fail(err, WEIR_EINVAL, "prefetch_events is %zu, less than batch_max",
                          o->prefetch_events);
    if (o->prefetch_bytes != 0 && o->prefetch_bytes < STREAM_BYTES_MIN)
        return weir__fail(err, WEIR_EINVAL, "prefetch_bytes is %zu, the least is %zu",
                          o->prefetch_bytes, STREAM_BYTES_MIN);
    return 0;
}

static int take_options(struct weir_processor *x, const struct weir_processor_options *options,
                        struct weir_error *err)
{
    struct weir_processor_options *o = &x->options;
    int rc = weir__options_copy(o, sizeof *o, options, err);

    if (rc == 0) rc = check_choices(o, err);
    if (rc == 0) rc = check_numbers(o, err);
    if (rc != 0) return rc;
    if (o->weight == 0) o->weight = 1;
    if (o->batch_max == 0) o->batch_max = BATCH_MAX;
    if (o->prefetch_bytes == 0) o->prefetch_bytes = PREFETCH_BYTES;
    if (o->attempts == 0) o->attempts = ATTEMPTS;
    return 0;
}

static uint32_t count_cores(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return (uint32_t)CPU_COUNT(&set);
}

static void choose_threads(struct weir_processor *x)
{
    uint32_t cores = count_cores();

    if (x->options.threads > 0) x->worker_count = (uint32_t)x->options.threads;
    if (x->options.threads == 0) x->worker_count = cores < 2 ? 2 : cores;
    if (x->worker_count > WEIR__THREADS_MAX) x->worker_count = WEIR__THREADS_MAX;
}

/* ---- names ---- */

static int take_name(struct weir_processor *x, uint64_t instance, struct weir_error *err)
{
    const char *name = x->options.name;

    if (!name) {
        snprintf(x->name, sizeof x->name, "copy-%016" PRIx64, instance);
        return 0;
    }
    if (!*name || strlen(name) >= sizeof x->name)
        return weir__fail(err, WEIR_EINVAL, "a copy's name has 1 to %zu bytes", sizeof x->name - 1);
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return weir__fail(err, WEIR_EINVAL, "a copy's name has no control characters");
    snprintf(x->name, sizeof x->name, "%s", name);
    return 0;
}

static void lower(char *to, size_t room, const char *from)
{
    snprintf(to, room, "%s", from);
    for (; *to; to++)
        if (*to >= 'A' && *to <= 'Z') *to = (char)(*to - 'A' + 'a');
}

static void take_scope(struct weir_processor *x, const struct weir_source *s)
{
    snprintf(x->hub, sizeof x->hub, "%s", s->hub);
    snprintf(x->group, sizeof x->group, "%s", s->group);
    lower(x->scope_hub, sizeof x->scope_hub, s->hub);
    lower(x->scope_group, sizeof x->scope_group, s->group);
    lower(x->scope_space, sizeof x->scope_space, s->space);
    x->scope = (struct weir_scope){x->scope_space, x->scope_hub, x->scope_group};
}

/* ---- start ---- */

/* Of so many for all partitions, for one; 0: no limit. */
static uint32_t divide_events(size_t events, uint32_t partitions)
{
    if (events == 0) return 0;
    events /= partitions;
    return events < 1 ? 1 : events < UINT32_MAX ? (uint32_t)events : UINT32_MAX;
}

static int make_control(struct weir_processor *x, uint64_t instance, uint32_t partitions,
                        struct weir_error *err)
{
    const struct weir_processor_options *o = &x->options;
    struct weir__control_options c = {
        .id = x->name,
        .instance = instance,
        .weight = o->weight,
        .partitions = partitions,
        .beat_ms = o->beat_ms,
        .expire_ms = o->expire_ms,
        .settle_ms = o->strategy == WEIR_GREEDY ? 0 : o->beat_ms * 3 / 10,
        .start_ms = o->beat_ms * 2,
        .take_gap_ms = o->strategy == WEIR_BALANCED ? o->beat_ms : 0,
        .handover_ms = o->handover_ms,
        .poll_ms = o->beat_ms < 20 ? 1 : o->beat_ms / 20,
    };

    x->slots = calloc(partitions, sizeof *x->slots);
    x->marks = calloc(WEIR__MARKS_MAX, sizeof *x->marks);
    if (!x->slots || !x->marks) return weir__fail(err, WEIR_ENOMEM, "no memory for a processor");
    x->slot_count = x->stats.partitions = partitions;
    x->count_due_ms = weir__now_ms() + WEIR__COUNT_BEATS * o->beat_ms;
    x->stream_bytes = o->prefetch_bytes / partitions;
    if (x->stream_bytes < STREAM_BYTES_MIN) x->stream_bytes = STREAM_BYTES_MIN;
    if (x->stream_bytes > STREAM_BYTES_MAX) x->stream_bytes = STREAM_BYTES_MAX;
    x->stream_events = divide_events(o->prefetch_events, partitions);
    return weir__control_new(&x->control, &c, err);
}

/* The first two words with the store are said here, so that what is wrong with it is told to who
 * starts, and nothing runs yet. */
static int greet_store(struct weir_processor *x, struct weir_error *err)
{
    struct weir__control_step s;
    int rc = 0;

    for (int i = 0; rc == 0 && i < 2; i++) {
        weir__control_next(x->control, weir__now_ms(), &s);
        x->stats.store_calls++;
        if (s.what == WEIR__CONTROL_BEAT) x->self = *s.member;
        if (s.what == WEIR__CONTROL_BEAT)
            rc = x->store->ops->beat(x->store, &x->scope, s.member, err);
        else if (s.what == WEIR__CONTROL_READ)
            rc = x->store->ops->read(x->store, &x->scope, s.view, err);
        else
            break;
        weir__control_answer(x->control, weir__now_ms(), rc, NULL);
    }
    return rc;
}

static struct weir_processor *new_processor(struct weir_source *source, struct weir_store *store)
{
    struct weir_processor *x = calloc(1, sizeof *x);

    if (!x) return NULL;
    x->source = source;
    x->store = store;
    x->next_due_ms = INT64_MAX;
    weir__mutex_init(&x->lock);
    weir__cond_init(&x->ready);
    weir__cond_init(&x->work);
    weir__cond_init(&x->stored);
    weir__cond_init(&x->ended);
    weir__cond_init(&x->telling);
    return x;
}

void weir__processor_free(struct weir_processor *x)
{
    if (!x) return;
    for (uint32_t i = 0; i < x->slot_count; i++) free(x->slots[i].live);
    weir__control_free(x->control);
    weir__cond_fini(&x->telling);
    weir__cond_fini(&x->ended);
    weir__cond_fini(&x->stored);
    weir__cond_fini(&x->work);
    weir__cond_fini(&x->ready);
    weir__mutex_fini(&x->lock);
    free(x->workers);
    free(x->marks);
    free(x->slots);
    free(x);
}

int weir_processor_start(struct weir_processor **out, struct weir_source *source,
                         struct weir_store *store, const struct weir_processor_options *options,
                         struct weir_error *err)
{
    struct weir__rand rand = weir__rand_system();
    struct weir_processor *x = new_processor(source, store);
    uint32_t partitions = 0;
    uint64_t instance = 0;
    int rc;

    *out = NULL;
    if (!x) return weir__fail(err, WEIR_ENOMEM, "no memory for a processor");
    rc = take_options(x, options, err);
    if (rc == 0) rc = rand.fill(rand.self, &instance, sizeof instance, err);
    instance = (instance >> 1) | 1; /* stores keep it as a positive number */
    if (rc == 0) rc = take_name(x, instance, err);
    if (rc == 0) rc = source->ops->count(source, &partitions, err);
    if (rc == 0 && partitions == 0) rc = weir__fail(err, WEIR_ENOTFOUND, "there are no partitions");
    if (rc == 0) {
        choose_threads(x);
        take_scope(x, source);
        rc = make_control(x, instance, partitions, err);
    }
    if (rc == 0) rc = greet_store(x, err);
    if (rc == 0) rc = weir__runner_start(x, err);
    if (rc != 0) {
        weir__processor_free(x);
        return weir__wrap(err, rc, "starting a processor");
    }
    *out = x;
    return 0;
}

int weir_processor_stop(struct weir_processor *x, int64_t timeout_ms, struct weir_error *err)
{
    return x ? weir__runner_stop(x, timeout_ms, err) : 0;
}

int weir_processor_step(struct weir_processor *x, int64_t wait_ms, struct weir_error *err)
{
    if (x->worker_count > 0)
        return weir__fail(err, WEIR_EINVAL, "the processor has threads of its own");
    return weir__runner_step(x, wait_ms);
}

const char *weir_processor_name(const struct weir_processor *x)
{
    return x->name;
}

void weir_processor_stats(struct weir_processor *x, struct weir_processor_stats *out)
{
    weir__mutex_lock(&x->lock);
    *out = x->stats;
    weir__mutex_unlock(&x->lock);
}

/* ---- partitions ---- */

uint32_t weir_partition_id(const struct weir_partition *p)
{
    return p->id;
}

void *weir_partition_state(const struct weir_partition *p)
{
    return p->state;
}

const char *weir_partition_hub(const struct weir_partition *p)
{
    return p->processor->hub;
}

const char *weir_partition_group(const struct weir_partition *p)
{
    return p->processor->group;
}

const char *weir_partition_owner(const struct weir_partition *p)
{
    return p->processor->name;
}

int64_t weir_partition_epoch(const struct weir_partition *p)
{
    return p->epoch;
}

bool weir_partition_revoked(const struct weir_partition *p)
{
    return atomic_load(&p->revoked);
}

void weir_partition_lag(const struct weir_partition *p, struct weir_partition_lag *out)
{
    struct weir_processor *x = p->processor;
    struct weir__place given;

    *out = (struct weir_partition_lag){0};
    if (p->stream) x->source->ops->tail(p->stream, &out->end);
    weir__mutex_lock(&x->lock);
    given = p->checkpoint.given;
    weir__mutex_unlock(&x->lock);
    if (!out->end.known) return;
    if (!given.known)
        out->events = out->end.last_sequence + 1;
    else if (out->end.last_sequence > given.sequence)
        out->events = out->end.last_sequence - given.sequence;
    if (p->last_time_ms > 0 && out->end.last_time_ms > p->last_time_ms)
        out->ms = out->end.last_time_ms - p->last_time_ms;
}

/* ---- checkpoints ---- */

/* The lock is held. */
static int mark(struct weir_partition *p, const struct weir_event *e, struct weir_error *err)
{
    struct weir_processor *x = p->processor;
    char offset[WEIR_OFFSET_TEXT_BYTES];
    uint64_t rate;
    int rc;

    if (e) snprintf(offset, sizeof offset, "%" PRIu64, e->offset);
    rc = e ? weir__checkpoint_mark(&p->checkpoint, e->partition, e->sequence, offset, err)
           : weir__checkpoint_mark_given(&p->checkpoint, err);
    if (rc != 0) return rc;
    if (weir__checkpoint_dirty(&p->checkpoint)) weir__runner_marks(x, false);
    if (!x->options.one_by_one && weir__checkpoint_chatty(&p->checkpoint, weir__now_ms(), &rate))
        p->chatty_rate = rate;
    return 0;
}

int weir_checkpoint(struct weir_partition *p, const struct weir_event *e)
{
    int rc;

    weir__mutex_lock(&p->processor->lock);
    rc = mark(p, e, NULL);
    weir__mutex_unlock(&p->processor->lock);
    return rc;
}

/* In a program's own loop nobody else writes it; the lock is let go meanwhile. */
static void write_here(struct weir_processor *x)
{
    weir__mutex_unlock(&x->lock);
    weir__driver_flush(x, weir__now_ms());
    weir__mutex_lock(&x->lock);
}

int weir_checkpoint_wait(struct weir_partition *p, const struct weir_event *e, int64_t timeout_ms,
                         struct weir_error *err)
{
    struct weir_processor *x = p->processor;
    int64_t deadline_ns = weir__deadline_ns(timeout_ms);
    struct weir__checkpoint *c = &p->checkpoint;
    bool in_time = true;
    uint64_t number;
    int rc;

    weir__mutex_lock(&x->lock);
    rc = mark(p, e, err);
    number = c->mark_number;
    if (rc == 0 && x->worker_count == 0) write_here(x);
    while (rc == 0 && c->stored_number < number && !c->fenced && in_time) {
        weir__runner_marks(x, true);
        in_time = x->worker_count > 0 && weir__cond_wait(&x->stored, &x->lock, deadline_ns);
    }
    if (rc == 0 && c->stored_number < number)
        rc = c->fenced ? weir__fail(err, WEIR_EFENCED, "the partition is not ours any more")
                       : weir__fail(err, WEIR_ETIMEDOUT, "the checkpoint is not stored yet");
    weir__mutex_unlock(&x->lock);
    return rc;
}

int weir_checkpoint_rewind(struct weir_partition *p, uint64_t sequence)
{
    struct weir_processor *x = p->processor;
    int rc;

    if (sequence > INT64_MAX) return WEIR_EINVAL;
    weir__mutex_lock(&x->lock);
    rc = weir__checkpoint_rewind(&p->checkpoint, sequence, NULL);
    p->rewound = rc == 0;
    weir__mutex_unlock(&x->lock);
    return rc;
}

void weir_partition_release(struct weir_partition *p)
{
    weir__mutex_lock(&p->processor->lock);
    p->released = true;
    weir__mutex_unlock(&p->processor->lock);
}

static int set_paused(struct weir_processor *x, uint32_t partition, bool paused)
{
    struct weir_partition *p = NULL;

    weir__mutex_lock(&x->lock);
    if (partition < x->slot_count) p = x->slots[partition].live;
    if (p) {
        p->paused = paused;
        atomic_store(&p->called, true);
        weir__runner_push(x, p);
    }
    weir__mutex_unlock(&x->lock);
    return p ? 0 : WEIR_ENOTFOUND;
}

int weir_processor_pause(struct weir_processor *x, uint32_t partition)
{
    return set_paused(x, partition, true);
}

int weir_processor_resume(struct weir_processor *x, uint32_t partition)
{
    return set_paused(x, partition, false);
}
