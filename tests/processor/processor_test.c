/* processor_test.c - one copy of a program: what its handlers see, and what they can do. */
#define _GNU_SOURCE
#include "processor/fleet.h"

static void one_copy_reads_everything_in_order(void **state)
{
    struct fleet *f = fleet_new(4);
    struct copy a = {0};
    struct weir_processor_stats stats;

    (void)state;
    publish_all(f, 1000);
    copy_start(&a, f);
    fleet_await(f, f->total == 4000);
    publish_all(f, 500);
    fleet_await(f, f->total == 6000);
    fleet_await(f, (weir_processor_stats(a.processor, &stats), stats.events == 6000));
    assert_int_equal(stats.partitions, 4);
    assert_int_equal(stats.owned, 4);
    assert_int_equal(stats.members, 1);
    copy_stop(&a);
    for (uint32_t i = 0; i < 4; i++) assert_given(f, i, 0, 1500, 1);
    assert_int_equal(f->opens, 4);
    assert_int_equal(f->reasons[WEIR_CLOSED_SHUTDOWN], 4);
    assert_orderly(f);
    fleet_free(f);
}

/* The store in memory lives as long as a handle of it. */
static void the_next_start_goes_on_behind_the_mark(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {0}, b = {0};
    struct weir_store *keep;

    (void)state;
    assert_ok(weir_store_memory(&keep, f->name, NULL, &err));
    publish_all(f, 100);
    copy_start(&a, f);
    fleet_await(f, f->total == 200);
    copy_stop(&a);
    publish_all(f, 50);
    copy_start(&b, f);
    fleet_await(f, f->total == 300);
    copy_stop(&b);
    for (uint32_t i = 0; i < 2; i++) assert_given(f, i, 0, 150, 1);
    assert_orderly(f);
    weir_store_close(keep);
    fleet_free(f);
}

static int mark_the_tenth(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                          size_t n)
{
    (void)c;
    for (size_t i = 0; i < n; i++)
        if (e[i].sequence == 9) return weir_checkpoint(p, &e[i]);
    return 0;
}

static void what_was_not_marked_comes_again(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {.act = mark_the_tenth}, b = {0};
    struct weir_store *keep;

    (void)state;
    assert_ok(weir_store_memory(&keep, f->name, NULL, &err));
    publish(f, 0, 100);
    copy_start(&a, f);
    fleet_await(f, f->total == 100);
    copy_stop(&a);
    copy_start(&b, f);
    fleet_await(f, f->total == 190);
    copy_stop(&b);
    assert_given(f, 0, 0, 10, 1);
    assert_given(f, 0, 10, 100, 2);
    assert_orderly(f);
    weir_store_close(keep);
    fleet_free(f);
}

static int do_nothing(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                      size_t n)
{
    (void)c, (void)p, (void)e, (void)n;
    return 0;
}

static void a_policy_marks_by_itself(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {.act = do_nothing}, b = {0};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats = {0};
    struct weir_store *keep;

    (void)state;
    assert_ok(weir_store_memory(&keep, f->name, NULL, &err));
    publish(f, 0, 100);
    o.mark_ms = 20;
    copy_start_with(&a, f, &o);
    fleet_await(f, f->total == 100);
    for (int i = 0; stats.marks_stored == 0 && i < PATIENCE_MS; i++) {
        fleet_lock(f);
        weir__cond_wait(&f->changed, &f->lock, weir__deadline_ns(1));
        fleet_unlock(f);
        weir_processor_stats(a.processor, &stats);
    }
    assert_int_equal(stats.marks_stored, 1);
    copy_stop(&a);
    publish(f, 0, 1);
    copy_start(&b, f);
    fleet_await(f, f->total == 101);
    copy_stop(&b);
    assert_given(f, 0, 0, 101, 1);
    weir_store_close(keep);
    fleet_free(f);
}

/* ---- failing ---- */

struct failing {
    int left;         /* calls that fail */
    uint64_t poison;  /* or those with this event */
    int letters;      /* dead letters */
    int refusals;     /* of dead letters */
    uint64_t buried;  /* the last of them */
    uint32_t only_in; /* partition */
};

static int fail_some(struct copy *c, struct weir_partition *p, const struct weir_event *e, size_t n)
{
    struct failing *w = c->with;
    bool bad = false;

    if (weir_partition_id(p) != w->only_in) return weir_checkpoint(p, NULL);
    for (size_t i = 0; i < n; i++) {
        c->begun[w->only_in] = false; /* it comes again */
        bad = bad || e[i].sequence == w->poison;
    }
    if (w->left > 0 && w->left-- > 0) return -1;
    return bad ? WEIR_EIO : weir_checkpoint(p, NULL);
}

static void the_same_events_are_tried_again(void **state)
{
    struct fleet *f = fleet_new(2);
    struct failing with = {.left = 3, .poison = UINT64_MAX};
    struct copy a = {.act = fail_some, .with = &with};
    struct weir_processor_stats stats;

    (void)state;
    publish_all(f, 10);
    copy_start(&a, f);
    fleet_await(f, f->total == 50);
    fleet_await(f, (weir_processor_stats(a.processor, &stats), stats.events == 20));
    copy_stop(&a);
    assert_given(f, 0, 0, 10, 4);
    assert_given(f, 1, 0, 10, 1);
    assert_int_equal(stats.handler_failures, 3);
    assert_int_equal(f->errors[WEIR_HANDLING], 3);
    fleet_free(f);
}

static int return_number(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                         size_t n)
{
    (void)e, (void)n;
    c->begun[weir_partition_id(p)] = false;
    return *(int *)c->with;
}

/* What a handler returns is told as it is; only our own codes have a text. */
static void any_number_can_be_returned(void **state)
{
    static const struct {
        int rc;
        const char *says;
    } rows[] = {{3, " returned 3"}, {-7777, " returned -7777"}, {WEIR_EIO, ": "}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fleet *f = fleet_new(1);
        int rc = rows[i].rc;
        struct copy a = {.act = return_number, .with = &rc};

        publish_all(f, 1);
        copy_start(&a, f);
        fleet_await(f, f->errors[WEIR_HANDLING] > 0);
        copy_stop(&a);
        fleet_lock(f);
        assert_non_null(strstr(f->last_error, rows[i].says));
        assert_null(strstr(f->last_error, "unknown"));
        fleet_unlock(f);
        fleet_free(f);
    }
}

static void others_go_on_while_one_fails(void **state)
{
    struct fleet *f = fleet_new(2);
    struct failing with = {.poison = 5};
    struct copy a = {.act = fail_some, .with = &with};

    (void)state;
    publish_all(f, 10);
    copy_start(&a, f);
    fleet_await(f, f->times[0][5] >= 3);
    publish(f, 1, 100);
    fleet_await(f, f->next[1] == 110);
    copy_stop(&a);
    assert_int_equal(f->next[0], 10);
    fleet_free(f);
}

static int bury(struct weir_partition *p, const struct weir_event *e, const struct weir_error *why,
                void *user)
{
    struct copy *c = user;
    struct failing *w = c->with;

    (void)p;
    fleet_lock(c->fleet);
    if (w->refusals-- <= 0) {
        w->letters++;
        w->buried = e->sequence;
    }
    snprintf(c->fleet->last_error, sizeof c->fleet->last_error, "%s", why->text);
    fleet_unlock(c->fleet);
    return w->refusals >= 0 ? -1 : 0;
}

/* One event of a batch fails: it alone is taken out, and the others are handled. */
static void poison_goes_to_the_dead_letters(void **state)
{
    struct fleet *f = fleet_new(1);
    struct failing with = {.poison = 5, .refusals = 2};
    struct copy a = {.act = fail_some, .with = &with};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;

    (void)state;
    o.failure = WEIR_DEAD_LETTER;
    o.attempts = 2;
    o.dead_letter = bury;
    publish(f, 0, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->next[0] == 10 && with.letters == 1);
    publish(f, 0, 1);
    fleet_await(f, f->next[0] == 11);
    weir_processor_stats(a.processor, &stats);
    copy_stop(&a);
    assert_int_equal(with.buried, 5);
    assert_int_equal(stats.dead_letters, 1);
    assert_given(f, 0, 0, 5, 3); /* twice with the others, once alone */
    assert_given(f, 0, 5, 6, 3);
    assert_given(f, 0, 10, 11, 1);
    fleet_free(f);
}

/* The dead letter in hand has a property of this name; NULL: none. */
static const struct weir_value *find_property(const struct weir_event *e, const char *name)
{
    for (uint32_t i = 0; i < e->property_count; i++)
        if (e->properties[i].name.len == strlen(name) &&
            memcmp(e->properties[i].name.at, name, strlen(name)) == 0)
            return &e->properties[i].value;
    return NULL;
}

/* Or to a hub, where it says why it is there and whence. */
static void poison_is_sent_to_a_hub(void **state)
{
    struct fleet *f = fleet_new(1);
    struct failing with = {.poison = 5};
    struct copy a = {.act = fail_some, .with = &with};
    struct weir_processor_options o = copy_options(&a);
    struct weir_hub_options hub = {.size = sizeof hub, .partitions = 1};
    struct weir_receiver *letters;
    struct weir_received got;
    const struct weir_value *value;

    (void)state;
    assert_ok(weir_hub_create(f->weir, "letters", &hub, &err));
    assert_ok(weir_producer_open(&o.dead_letters, f->weir, "letters", NULL, &err));
    assert_ok(weir_receiver_open(&letters, f->weir, "letters", 0, NULL, &err));
    o.failure = WEIR_DEAD_LETTER;
    o.attempts = 2;
    publish(f, 0, 10);
    copy_start_with(&a, f, &o);
    assert_ok(weir_receiver_receive(letters, 10, PATIENCE_MS, &got, &err));
    assert_int_equal(got.count, 1);
    assert_memory_equal(got.events[0].body.at, "something happened", got.events[0].body.len);
    assert_non_null(value = find_property(&got.events[0], "weir-sequence"));
    assert_int_equal(value->integer, 5);
    assert_non_null(value = find_property(&got.events[0], "weir-partition"));
    assert_int_equal(value->integer, 0);
    assert_non_null(value = find_property(&got.events[0], "weir-hub"));
    assert_memory_equal(value->bytes.at, "h", value->bytes.len);
    assert_non_null(value = find_property(&got.events[0], "weir-error"));
    assert_non_null(memmem(value->bytes.at, value->bytes.len, "partition 0", 11));
    fleet_await(f, f->next[0] == 10);
    copy_stop(&a);
    weir_receiver_close(letters);
    assert_ok(weir_producer_close(o.dead_letters, PATIENCE_MS, &err));
    fleet_free(f);
}

static void poison_is_dropped_and_counted(void **state)
{
    struct fleet *f = fleet_new(1);
    struct failing with = {.poison = 5};
    struct copy a = {.act = fail_some, .with = &with};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;

    (void)state;
    o.failure = WEIR_DROP;
    o.attempts = 1;
    o.one_by_one = true;
    publish(f, 0, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->next[0] == 10);
    fleet_await(f, (weir_processor_stats(a.processor, &stats), stats.dropped == 1));
    copy_stop(&a);
    assert_given(f, 0, 0, 10, 1);
    fleet_free(f);
}

static void who_gives_up_closes_with_an_error(void **state)
{
    struct fleet *f = fleet_new(2);
    struct failing with = {.poison = 5};
    struct copy a = {.act = fail_some, .with = &with};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.failure = WEIR_GIVE_UP;
    o.attempts = 2;
    publish_all(f, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->reasons[WEIR_CLOSED_ERROR] == 1);
    assert_given(f, 0, 0, 10, 2);
    publish(f, 1, 5);
    fleet_await(f, f->next[1] == 15);
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

static int refuse_open(struct weir_partition *p, void **state, void *user)
{
    int rc = on_open(p, state, user);

    return weir_partition_id(p) == 0 ? -1 : rc;
}

static void an_open_that_fails_is_closed_again(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.handler.open = refuse_open;
    publish_all(f, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->reasons[WEIR_CLOSED_ERROR] >= 1 && f->next[1] == 10);
    copy_stop(&a);
    assert_int_equal(f->next[0], 0);
    assert_orderly(f);
    fleet_free(f);
}

/* ---- marks ---- */

struct marking {
    int codes[8];
    bool done;
};

static int mark_wrongly(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                        size_t n)
{
    struct marking *w = c->with;
    struct weir_event other = e[0];

    if (w->done || n < 5) return 0;
    other.partition = 7;
    w->codes[0] = weir_checkpoint(p, &other);
    other = e[n - 1];
    other.sequence += 1000;
    w->codes[1] = weir_checkpoint(p, &other);
    w->codes[2] = weir_checkpoint(p, &e[3]);
    w->codes[3] = weir_checkpoint(p, &e[1]);
    w->codes[4] = weir_checkpoint_wait(p, &e[4], PATIENCE_MS, &err);
    fleet_lock(c->fleet);
    w->done = true;
    fleet_unlock(c->fleet);
    return 0;
}

static void wrong_marks_are_refused(void **state)
{
    struct fleet *f = fleet_new(1);
    struct marking with = {0};
    struct copy a = {.act = mark_wrongly, .with = &with};
    struct weir_processor_stats stats;

    (void)state;
    publish(f, 0, 10);
    copy_start(&a, f);
    fleet_await(f, with.done);
    weir_processor_stats(a.processor, &stats);
    copy_stop(&a);
    assert_int_equal(with.codes[0], WEIR_EINVAL);
    assert_int_equal(with.codes[1], WEIR_EINVAL);
    assert_int_equal(with.codes[2], 0);
    assert_int_equal(with.codes[3], WEIR_EINVAL);
    assert_int_equal(with.codes[4], 0);
    assert_true(stats.marks_stored >= 1);
    fleet_free(f);
}

static int rewind_once(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                       size_t n)
{
    struct marking *w = c->with;

    if (!w->done && e[n - 1].sequence == 9) {
        w->done = true;
        c->begun[0] = false;
        return weir_checkpoint_rewind(p, 3);
    }
    return weir_checkpoint(p, NULL);
}

static void a_rewind_reads_again_at_once(void **state)
{
    struct fleet *f = fleet_new(1);
    struct marking with = {0};
    struct copy a = {.act = rewind_once, .with = &with};

    (void)state;
    publish(f, 0, 10);
    copy_start(&a, f);
    fleet_await(f, f->total == 16);
    copy_stop(&a);
    assert_given(f, 0, 0, 4, 1);
    assert_given(f, 0, 4, 10, 2);
    assert_orderly(f);
    fleet_free(f);
}

static int count_only(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                      size_t n)
{
    (void)e, (void)n;
    c->begun[weir_partition_id(p)] = false;
    return weir_checkpoint(p, NULL) == WEIR_EINVAL ? -1 : 0;
}

/* "weir checkpoint set" on a live group. */
static void a_mark_set_by_hand_moves_the_owner(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {.act = count_only};
    struct weir_mark mark = {.sequence = 1};
    struct weir_store *hand;
    struct weir_scope scope;

    (void)state;
    publish(f, 0, 10);
    copy_start(&a, f);
    fleet_await(f, f->total == 10);
    assert_ok(weir_store_memory(&hand, f->name, NULL, &err));
    scope = (struct weir_scope){a.source->space, "h", "$default"};
    assert_ok(hand->ops->set(hand, &scope, 0, &mark, &err));
    fleet_await(f, f->total == 18);
    assert_ok(hand->ops->set(hand, &scope, 0, NULL, &err));
    fleet_await(f, f->total == 28);
    copy_stop(&a);
    weir_store_close(hand);
    assert_given(f, 0, 0, 2, 2);
    assert_given(f, 0, 2, 10, 3);
    assert_int_equal(f->opens, 1);
    fleet_free(f);
}

static void a_mark_beyond_the_end_is_an_error_for_its_partition_only(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {.act = count_only}, b = {.act = count_only};
    struct weir_mark mark = {.sequence = 5000};
    struct weir_scope scope;

    (void)state;
    publish_all(f, 10);
    copy_open(&a, f);
    scope = (struct weir_scope){a.source->space, "h", "$default"};
    assert_ok(a.store->ops->set(a.store, &scope, 0, &mark, &err));
    copy_start(&b, f);
    fleet_await(f, f->next[1] == 10 && f->errors[WEIR_OPENING] > 0);
    fleet_lock(f);
    assert_int_equal(f->last_code, WEIR_EINVAL);
    assert_non_null(strstr(f->last_error, "weir checkpoint set"));
    fleet_unlock(f);
    mark.sequence = 7;
    assert_ok(a.store->ops->set(a.store, &scope, 0, &mark, &err));
    fleet_await(f, f->next[0] == 10);
    assert_given(f, 0, 0, 8, 0);
    copy_stop(&b);
    copy_close(&a);
    fleet_free(f);
}

/* ---- being told ---- */

static void paused_is_without_events(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {0};

    (void)state;
    publish_all(f, 10);
    copy_start(&a, f);
    fleet_await(f, f->total == 20);
    assert_int_equal(weir_processor_pause(a.processor, 7), WEIR_ENOTFOUND);
    assert_ok(weir_processor_pause(a.processor, 0));
    publish_all(f, 10);
    fleet_await(f, f->next[1] == 20);
    assert_int_equal(f->next[0], 10);
    assert_ok(weir_processor_resume(a.processor, 0));
    fleet_await(f, f->next[0] == 20);
    copy_stop(&a);
    fleet_free(f);
}

static int release_it(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                      size_t n)
{
    (void)c, (void)e, (void)n;
    if (weir_partition_id(p) == 0) weir_partition_release(p);
    return weir_checkpoint(p, NULL);
}

static void a_partition_can_be_given_away(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {.act = release_it};

    (void)state;
    publish_all(f, 10);
    copy_start(&a, f);
    fleet_await(f, f->reasons[WEIR_CLOSED_RELEASED] == 1);
    publish(f, 1, 10);
    fleet_await(f, f->next[1] == 20);
    copy_stop(&a);
    assert_orderly(f);
    fleet_free(f);
}

struct idling {
    int calls;
};

static int count_idle(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                      size_t n)
{
    (void)p, (void)e;
    fleet_lock(c->fleet);
    if (n == 0) ((struct idling *)c->with)->calls++;
    fleet_unlock(c->fleet);
    return 0;
}

static void the_idle_are_called(void **state)
{
    struct fleet *f = fleet_new(1);
    struct idling with = {0};
    struct copy a = {.act = count_idle, .with = &with};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.invoke_when_idle = true;
    o.receive_ms = 20;
    copy_start_with(&a, f, &o);
    fleet_await(f, with.calls == 3);
    copy_stop(&a);
    fleet_free(f);
}

static void from_the_end(uint32_t partition, struct weir_position *out, void *user)
{
    (void)user;
    if (partition == 0) *out = (struct weir_position){.from = WEIR_FROM_SEQUENCE, .value = 8};
}

static void the_program_says_where_to_begin(void **state)
{
    struct fleet *f = fleet_new(2);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.initial = from_the_end;
    publish_all(f, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->total == 12);
    copy_stop(&a);
    assert_given(f, 0, 0, 8, 0);
    assert_given(f, 0, 8, 10, 1);
    fleet_free(f);
}

static int look_at_lag(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                       size_t n)
{
    struct weir_partition_lag lag;
    struct marking *w = c->with;

    (void)n;
    weir_partition_lag(p, &lag);
    if (e->sequence == 0) {
        w->codes[0] = (int)lag.events;
        w->codes[1] = lag.end.known;
    }
    return 0;
}

static void lag_is_known_when_asked_for(void **state)
{
    struct fleet *f = fleet_new(1);
    struct marking with = {0};
    struct copy a = {.act = look_at_lag, .with = &with};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.metrics = true;
    o.batch_max = 4;
    publish(f, 0, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->total == 10);
    copy_stop(&a);
    assert_int_equal(with.codes[0], 6);
    assert_int_equal(with.codes[1], 1);
    fleet_free(f);
}

/* A source that says there are two partitions, and later all four. */
struct growing {
    struct weir_source base;
    struct weir_source_ops ops;
    struct weir_source *behind;
    atomic_uint count;
};

static int growing_count(struct weir_source *s, uint32_t *out, struct weir_error *why)
{
    (void)why;
    *out = atomic_load(&((struct growing *)s)->count);
    return 0;
}

static int growing_open(struct weir_source *s, uint32_t partition,
                        const struct weir_stream_options *o, struct weir_stream **out,
                        struct weir_error *why)
{
    struct weir_source *behind = ((struct growing *)s)->behind;

    return behind->ops->open(behind, partition, o, out, why);
}

static void growing_close(struct weir_source *s)
{
    weir_source_close(((struct growing *)s)->behind);
}

static void new_partitions_are_noticed(void **state)
{
    struct fleet *f = fleet_new(4);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);
    struct growing growing = {.count = 2};

    (void)state;
    publish_all(f, 10);
    copy_open(&a, f);
    growing.base = *a.source;
    growing.ops = *a.source->ops;
    growing.ops.count = growing_count;
    growing.ops.open = growing_open;
    growing.ops.close = growing_close;
    growing.base.ops = &growing.ops;
    growing.behind = a.source;
    a.source = &growing.base;
    assert_ok(weir_processor_start(&a.processor, a.source, a.store, &o, &err));
    fleet_await(f, f->total == 20);
    assert_int_equal(f->next[2] + f->next[3], 0);
    atomic_store(&growing.count, 4);
    fleet_await(f, f->total == 40);
    copy_stop(&a);
    for (uint32_t i = 0; i < 4; i++) assert_given(f, i, 0, 10, 1);
    assert_orderly(f);
    fleet_free(f);
}

/* ---- the program's own loop ---- */

static void a_program_can_step(void **state)
{
    struct fleet *f = fleet_new(4);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.threads = -1;
    publish_all(f, 100);
    copy_start_with(&a, f, &o);
    for (int i = 0; f->total < 400 && i < 10000; i++)
        assert_ok(weir_processor_step(a.processor, 10, &err));
    assert_int_equal(f->total, 400);
    copy_stop(&a);
    for (uint32_t i = 0; i < 4; i++) assert_given(f, i, 0, 100, 1);
    assert_orderly(f);
    fleet_free(f);
}

static int mark_and_wait(struct copy *c, struct weir_partition *p, const struct weir_event *e,
                         size_t n)
{
    (void)c, (void)e, (void)n;
    return weir_checkpoint_wait(p, NULL, PATIENCE_MS, NULL);
}

static void a_step_can_wait_for_its_mark(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {.act = mark_and_wait};
    struct weir_processor_options o = copy_options(&a);
    struct weir_processor_stats stats;

    (void)state;
    o.threads = -1;
    publish(f, 0, 100);
    copy_start_with(&a, f, &o);
    for (int i = 0; f->total < 100 && i < 10000; i++)
        assert_ok(weir_processor_step(a.processor, 10, &err));
    weir_processor_stats(a.processor, &stats);
    assert_int_equal(stats.marks_stored, 1);
    assert_int_equal(stats.handler_failures, 0);
    copy_stop(&a);
    fleet_free(f);
}

/* ---- options ---- */

static void bad_options_are_named(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {0};
    struct weir_processor_options good = copy_options(&a), o;
    struct weir_processor *p;

    (void)state;
    copy_open(&a, f);
#define REFUSED(member, value, word)                                                               \
    do {                                                                                           \
        o = good;                                                                                  \
        o.member = value;                                                                          \
        assert_int_equal(weir_processor_start(&p, a.source, a.store, &o, &err), WEIR_EINVAL);      \
        assert_null(p);                                                                            \
        assert_non_null(strstr(err.text, word));                                                   \
    } while (0)
    REFUSED(handler.events, NULL, "handler");
    REFUSED(beat_ms, -1, "beat_ms");
    REFUSED(expire_ms, 60, "expire_ms");
    REFUSED(threads, -2, "threads");
    REFUSED(batch_max, 100000, "batch_max");
    REFUSED(prefetch_bytes, 1, "prefetch_bytes");
    REFUSED(prefetch_events, 300, "prefetch_events"); /* batch_max is 1,000 */
    REFUSED(failure, (enum weir_failure)9, "failure");
    REFUSED(failure, WEIR_DEAD_LETTER, "dead_letter");
    REFUSED(strategy, (enum weir_strategy)9, "strategy");
    REFUSED(overdue, (enum weir_overdue)9, "overdue");
    REFUSED(name, "", "name");
    REFUSED(name, "a\nb", "control");
    REFUSED(handover_ms, -5, "handover_ms");
    REFUSED(size, 0, "size");
    copy_close(&a);
    assert_int_equal(weir_source_hub(&a.source, f->weir, "nope", NULL, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_source_hub(&a.source, f->weir, "h", "nope", &err), WEIR_ENOTFOUND);
    fleet_free(f);
}

static void a_name_is_taken_once(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {0}, b = {0};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.name = "left";
    copy_start_with(&a, f, &o);
    assert_string_equal(weir_processor_name(a.processor), "left");
    assert_int_equal(weir_processor_step(a.processor, 0, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "the processor has threads of its own");
    assert_int_equal(weir_processor_stop(NULL, 0, &err), 0);
    copy_open(&b, f);
    assert_int_equal(weir_processor_start(&b.processor, b.source, b.store, &o, &err), WEIR_EEXIST);
    copy_close(&b);
    copy_stop(&a);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_copy_reads_everything_in_order),
        cmocka_unit_test(the_next_start_goes_on_behind_the_mark),
        cmocka_unit_test(what_was_not_marked_comes_again),
        cmocka_unit_test(a_policy_marks_by_itself),
        cmocka_unit_test(the_same_events_are_tried_again),
        cmocka_unit_test(any_number_can_be_returned),
        cmocka_unit_test(others_go_on_while_one_fails),
        cmocka_unit_test(poison_goes_to_the_dead_letters),
        cmocka_unit_test(poison_is_sent_to_a_hub),
        cmocka_unit_test(poison_is_dropped_and_counted),
        cmocka_unit_test(who_gives_up_closes_with_an_error),
        cmocka_unit_test(an_open_that_fails_is_closed_again),
        cmocka_unit_test(wrong_marks_are_refused),
        cmocka_unit_test(a_rewind_reads_again_at_once),
        cmocka_unit_test(a_mark_set_by_hand_moves_the_owner),
        cmocka_unit_test(a_mark_beyond_the_end_is_an_error_for_its_partition_only),
        cmocka_unit_test(paused_is_without_events),
        cmocka_unit_test(a_partition_can_be_given_away),
        cmocka_unit_test(the_idle_are_called),
        cmocka_unit_test(the_program_says_where_to_begin),
        cmocka_unit_test(lag_is_known_when_asked_for),
        cmocka_unit_test(new_partitions_are_noticed),
        cmocka_unit_test(a_program_can_step),
        cmocka_unit_test(a_step_can_wait_for_its_mark),
        cmocka_unit_test(bad_options_are_named),
        cmocka_unit_test(a_name_is_taken_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
