/* feeding.h - events of one partition for a test that feeds them to a command. The processor runs in
 * the test's own thread. */
#ifndef WEIR_TESTS_CLI_FEEDING_H
#define WEIR_TESTS_CLI_FEEDING_H

#include "base/thread.h"
#include "cli/feeder.h"
#include "cli/said.h"
#include "support/tempdir.h"

#define PATIENCE_MS 30000 /* for what must happen */

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != 0) fail_msg("%s: %s: %s", #call, weir_error_name(rc_), err.text);               \
    } while (0)

static char folder[TEMPDIR_BYTES], file[TEMPDIR_BYTES + 8]; /* for what a command writes */
static struct weir_error err;
static bool over;

/* What a test does with the events that a partition is given. */
typedef void act_fn(struct weir_partition *, const struct weir_event *, size_t count);

static int on_events(struct weir_partition *p, const struct weir_event *e, size_t count, void *user)
{
    (*(act_fn **)user)(p, e, count);
    return 0;
}

static void publish(struct weir *w, uint32_t count)
{
    struct weir_event *events = calloc(count, sizeof *events);
    struct weir_producer *producer;
    char text[300];

    assert_non_null(events);
    memset(text, 'x', sizeof text); /* a thousand of these are more than some pipes hold */
    for (uint32_t i = 0; i < count; i++) events[i].body = weir_bytes(text, sizeof text);
    assert_ok(weir_producer_open(&producer, w, "h", NULL, &err));
    assert_ok(weir_producer_send(producer, events, count, PATIENCE_MS, NULL, &err));
    assert_ok(weir_producer_close(producer, PATIENCE_MS, &err));
    free(events);
}

static void process(struct weir *w, struct weir_store *store, act_fn *act)
{
    struct weir_processor_options o = {.size = sizeof o,
                                       .handler = {.events = on_events},
                                       .user = &act,
                                       .threads = -1,
                                       .beat_ms = 20,
                                       .expire_ms = PATIENCE_MS};
    int64_t deadline_ns = weir__deadline_ns(PATIENCE_MS);
    struct weir_processor *processor;
    struct weir_source *source;

    assert_ok(weir_source_hub(&source, w, "h", NULL, &err));
    assert_ok(weir_processor_start(&processor, source, store, &o, &err));
    for (over = false; !over; assert_true(weir__mono_ns() < deadline_ns))
        assert_ok(weir_processor_step(processor, 100, &err));
    assert_ok(weir_processor_stop(processor, PATIENCE_MS, &err));
    weir_source_close(source);
}

/* Gives so many events to act, until that says it is over. Returns what is stored then. */
static struct weir_record run_with(uint32_t events, act_fn *act)
{
    struct weir_hub_options hub = {.size = sizeof hub, .partitions = 1};
    struct weir_options options = {.size = sizeof options, .sync_ms = 1};
    struct weir_record record;
    struct weir_view view = {0};
    struct weir_store *store;
    char space[WEIR_SPACE_BYTES];
    struct weir *w;

    assert_int_equal(tempdir_make(folder), 0);
    snprintf(file, sizeof file, "%s/said", folder);
    assert_ok(weir_open(&w, folder, &options, &err));
    assert_ok(weir_hub_create(w, "h", &hub, &err));
    assert_ok(weir_store_memory(&store, folder, NULL, &err));
    assert_ok(weir_space(w, space, &err));
    publish(w, events);
    process(w, store, act);
    assert_ok(store->ops->read(store, &(struct weir_scope){space, "h", "$default"}, &view, &err));
    assert_int_equal(view.record_count, 1);
    record = view.records[0];
    weir_view_free(&view);
    weir_store_close(store);
    assert_ok(weir_close(w, &err));
    tempdir_remove(folder);
    return record;
}

#endif
