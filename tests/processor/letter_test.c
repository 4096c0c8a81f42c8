/* letter_test.c - a dead letter is the event as it was, and says why it is there and whence; one that
 * cannot be sent is told. */
#define _GNU_SOURCE
#include "processor/fleet.h"

#include <string.h>

#include "processor/state.h"
#include "support/allocs.h"

/* A partition 3 of a hub "orders" whose dead letters go to the hub "letters". */
struct post {
    struct fleet *fleet;
    struct weir_processor processor;
    struct weir_partition partition;
};

static void post_open(struct post *post)
{
    struct weir_hub_options hub = {.size = sizeof hub, .partitions = 1};

    memset(post, 0, sizeof *post);
    post->fleet = fleet_new(1);
    assert_ok(weir_hub_create(post->fleet->weir, "letters", &hub, &err));
    assert_ok(weir_producer_open(&post->processor.options.dead_letters, post->fleet->weir,
                                 "letters", NULL, &err));
    snprintf(post->processor.hub, sizeof post->processor.hub, "orders");
    post->partition.processor = &post->processor;
    post->partition.id = 3;
}

static void post_close(struct post *post)
{
    assert_ok(weir_producer_close(post->processor.options.dead_letters, PATIENCE_MS, &err));
    fleet_free(post->fleet);
}

static void assert_text(struct weir_bytes is, const char *want)
{
    assert_int_equal(is.len, strlen(want));
    assert_memory_equal(is.at, want, is.len);
}

static void assert_property(const struct weir_property *p, const char *name, const char *text)
{
    assert_text(p->name, name);
    assert_text(p->value.bytes, text);
}

static void assert_number(const struct weir_property *p, const char *name, int64_t number)
{
    assert_text(p->name, name);
    assert_int_equal(p->value.integer, number);
}

static const struct weir_error why = {.code = -1, .text = "no such order"};

static void a_letter_is_the_event_and_more(void **state)
{
    struct weir_property own[] = {{weir_text("colour"), weir_value_text("red")},
                                  {weir_text("pieces"), weir_value_int(12)}};
    struct weir_event e = {.body = weir_text("two orders"),
                           .body_type = WEIR_BODY_VALUE,
                           .partition_key = weir_text("customer 7"),
                           .sequence = UINT64_C(1) << 40};
    struct weir_receiver *letters;
    struct weir_received got;
    struct post post;

    (void)state;
    post_open(&post);
    assert_ok(weir_receiver_open(&letters, post.fleet->weir, "letters", 0, NULL, &err));
    for (uint32_t count = 0; count <= 2; count++) {
        const struct weir_property *p;

        e.properties = own;
        e.property_count = count;
        assert_ok(weir__letter_send(&post.partition, &e, &why, &err));
        assert_ok(weir_receiver_receive(letters, 10, PATIENCE_MS, &got, &err));
        assert_int_equal(got.count, 1);
        assert_text(got.events[0].body, "two orders");
        assert_int_equal(got.events[0].body_type, WEIR_BODY_DATA);
        assert_text(got.events[0].partition_key, "customer 7");
        assert_int_equal(got.events[0].property_count, count + 4);
        p = got.events[0].properties;
        if (count > 0) assert_property(p++, "colour", "red");
        if (count > 1) assert_number(p++, "pieces", 12);
        assert_property(&p[0], "weir-error", "no such order");
        assert_property(&p[1], "weir-hub", "orders");
        assert_number(&p[2], "weir-partition", 3);
        assert_number(&p[3], "weir-sequence", INT64_C(1) << 40);
    }
    weir_receiver_close(letters);
    post_close(&post);
}

static void a_letter_that_is_not_sent_is_told(void **state)
{
    struct weir_event e = {.body = weir_text("order"), .sequence = 9};
    char start[] = "event 9 of partition 3 to the dead letters: ";
    struct post post;

    (void)state;
    post_open(&post);
    allocs_fail(1);
    assert_int_equal(weir__letter_send(&post.partition, &e, &why, &err), WEIR_ENOMEM);
    allocs_fail(0);
    assert_string_equal(err.text, "no memory for a dead letter");
    assert_ok(weir_hub_delete(post.fleet->weir, "letters", &err));
    assert_int_equal(weir__letter_send(&post.partition, &e, &why, &err), WEIR_ENOTFOUND);
    assert_memory_equal(err.text, start, strlen(start));
    (void)weir_producer_close(post.processor.options.dead_letters, PATIENCE_MS, NULL);
    fleet_free(post.fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_letter_is_the_event_and_more),
        cmocka_unit_test(a_letter_that_is_not_sent_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
