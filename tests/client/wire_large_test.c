/* wire_large_test.c - batches that are larger than what a server's output usually holds: a program put
 * them into the folder, a server delivers them, as batches and event by event. */
#include "client/contract/place.h"

#include <stdlib.h>

#include "client/wire_place.h"

#define EACH (900u << 10)

/* A last byte of its own tells one event from another. */
static void fill(char *body, uint32_t n)
{
    memset(body, 'a' + (int)(n % 26), EACH);
    body[EACH - 1] = (char)n;
}

static void publish(struct weir *w, uint32_t count, uint32_t *n)
{
    struct weir_producer *p = open_pinned(w, 0);
    struct weir_receipt receipt;
    struct weir_event events[20];

    for (uint32_t i = 0; i < count; i++) {
        char *body = malloc(EACH);
        assert_non_null(body);
        fill(body, (*n)++);
        events[i] = (struct weir_event){.body = {body, EACH}};
    }
    assert_ok(weir_producer_send(p, events, count, PATIENCE_MS, &receipt, &err));
    for (uint32_t i = 0; i < count; i++) free((void *)events[i].body.at);
    close_producer(p);
}

/* One of 2.7 MB, a small one, one of 17 MB. */
static uint32_t fill_folder(void)
{
    struct weir_options o = {.size = sizeof o, .batch_bytes_max = 19u << 20};
    struct weir_hub_options h = {.size = sizeof h, .partitions = 1};
    struct weir *w;
    uint32_t n = 0;

    assert_ok(weir_open(&w, place.data, &o, &err));
    assert_ok(weir_hub_create(w, "h", &h, &err));
    publish(w, 3, &n);
    publish(w, 1, &n);
    publish(w, 19, &n);
    assert_ok(weir_close(w, &err));
    return n;
}

static void large_batches_are_delivered(void **state)
{
    bool *events_only = *state;
    char *expected = malloc(EACH);
    struct weir_receiver *r;
    struct weir *w;
    uint32_t count;

    assert_non_null(expected);
    place.serve.events_only = *events_only;
    assert_int_equal(tempdir_make(place.dir), 0);
    snprintf(place.data, sizeof place.data, "%s/data", place.dir);
    count = fill_folder();
    assert_int_equal(serve_start(&place.serve, place.data, false), 0);
    assert_ok(place_open(&w, NULL));
    r = open_receiver(w, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct weir_bytes body = receive_one(r).body;
        fill(expected, i);
        assert_int_equal(body.len, EACH);
        assert_memory_equal(body.at, expected, EACH);
    }
    weir_receiver_close(r);
    assert_ok(weir_close(w, &err));
    assert_int_equal(place_stop(), 0);
    free(expected);
}

int main(void)
{
    static bool batches = false, events = true;
    const struct CMUnitTest tests[] = {
        {"as_batches", large_batches_are_delivered, NULL, NULL, &batches},
        {"event_by_event", large_batches_are_delivered, NULL, NULL, &events},
    };

    return cmocka_run_group_tests_name("wire_large", tests, NULL, NULL);
}
