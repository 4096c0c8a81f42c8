/* manifest_sample.h - a manifest with a number of its own in every field, and its bytes. */
#ifndef WEIR_TESTS_HUB_MANIFEST_SAMPLE_H
#define WEIR_TESTS_HUB_MANIFEST_SAMPLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/backup_manifest.h"

#define HUB_ID 7u
#define PARTITIONS 2u
#define SEGMENTS 3u
#define EXTRAS 1u

static struct weir__manifest made;
static struct weir__buf bytes;
static struct weir_error err;

static inline struct weir__manifest_segment segment_from(uint64_t n)
{
    struct weir__manifest_segment s = {
        .number = n,
        .base = n + 1,
        .previous_end = n + 2,
        .end = n + 3,
        .epoch = n + 4,
        .name = n + 5,
        .extent = {.used = n + 6, .tail = n + 7, .bytes = n + 8, .mark = n + 9},
        .damaged = n + 10};

    memset(s.digest, (int)n, sizeof s.digest);
    return s;
}

static inline void fill_hub(struct weir__manifest_hub *h)
{
    *h = (struct weir__manifest_hub){.id = HUB_ID,
                                     .source_version = 11,
                                     .end = 12,
                                     .events = 13,
                                     .next_name = 14,
                                     .segment_count = SEGMENTS,
                                     .extra_count = EXTRAS};
    assert_int_equal(weir__control_resize(&h->control, PARTITIONS, &err), 0);
    h->control.hub_id = HUB_ID;
    h->control.secret = 15;
    h->control.first_segment = 16;
    h->control.last_segment = 17;
    h->control.watermark = 18;
    h->control.epoch_start = 19;
    h->control.epoch = 20;
    h->control.keep = (struct weir__keep_time){-21, -22, -23, 24, -25, -26};
    h->control.active =
        (struct weir__control_active){.base = 27, .capacity = 28, .data = 29, .name = 30};
    for (uint32_t i = 0; i < PARTITIONS; i++)
        h->control.heads[i] = (struct weir__head){31 + i, 33 + i, 35 + i};
    h->segments = calloc(SEGMENTS, sizeof *h->segments);
    h->extras = calloc(EXTRAS, sizeof *h->extras);
    h->segments[0] = segment_from(40);
    h->segments[1] = segment_from(60);
    h->segments[2] = segment_from(60);
    h->extras[0] = (struct weir__manifest_extra){.aux = 80, .bytes = 81};
    memset(h->extras[0].name, 'n', WEIR__MANIFEST_NAME_BYTES - 1);
    memset(h->extras[0].digest, 82, sizeof h->extras[0].digest);
}

static inline int set_up(void **state)
{
    (void)state;
    weir__manifest_init(&made);
    made.generation = 5;
    made.began_ms = 1;
    made.moment_ms = 2;
    memcpy(made.id, "0123456789abcdef0123456789abcdef", 32);
    made.hubs = calloc(1, sizeof *made.hubs);
    made.hub_count = 1;
    fill_hub(made.hubs);
    weir__buf_init(&bytes, WEIR__MANIFEST_BYTES_MAX);
    return weir__manifest_encode(&made, &bytes, &err);
}

static inline int tear_down(void **state)
{
    (void)state;
    weir__manifest_fini(&made);
    weir__buf_fini(&bytes);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
