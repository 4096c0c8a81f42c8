/* adopt_test.c - whose a file without a header is: by where its batches say that it lies, by its
 * neighbours in the row, by the control file; and that nothing else makes it a segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/recover.h"
#include "support/simfs.h"

#define BLOCK ((uint64_t)WEIR__FS_BLOCK)
#define BYTES UINT64_C(65536) /* of a segment, unless it says otherwise */
#define BASE(number) (WEIR__LOG_ORIGIN + (number)*BYTES) /* of segments from 0 */
#define LARGE ((uint64_t)4 << 20)                        /* bytes of a file */
#define SECRET 5u
#define FOUND_MAX 3

struct world {
    struct simfs *disk;
    struct weir__recovery r;
    struct weir__found found[FOUND_MAX];
    char said[256];
};

static void hear(void *user, enum weir__log_finding_kind kind, const char *file, const char *text)
{
    struct world *w = user;

    (void)kind;
    snprintf(w->said, sizeof w->said, "%s: %s", file, text);
}

static struct world *world_new(void)
{
    struct world *w = test_calloc(1, sizeof *w);
    struct weir__log_options o = {.dir = "log", .hub_id = 1, .partitions = 2, .no_threads = true};

    w->disk = simfs_new();
    o.fs = simfs_fs(w->disk);
    w->r = (struct weir__recovery){.found = w->found, .tell = hear, .user = w};
    assert_int_equal(weir__log_new(&w->r.log, &o, NULL), 0);
    assert_int_equal(weir__log_size(w->r.log, o.partitions, NULL), 0);
    w->r.log->control.secret = SECRET;
    return w;
}

static void world_free(struct world *w)
{
    weir__log_free(w->r.log);
    simfs_free(w->disk);
    test_free(w);
}

/* The next of the row, which begins with 1. */
static struct weir__segment *add_segment(struct world *w, uint32_t version, bool lost)
{
    struct weir__segment *seg = calloc(1, sizeof *seg);
    struct weir__log *log = w->r.log;
    uint64_t number = log->segment_count ? weir__log_active(log)->h.number + 1 : 1;

    assert_non_null(seg);
    seg->lost = lost;
    seg->h.number = number;
    if (!lost) {
        seg->h.version = version;
        seg->h.base = BASE(number);
        seg->h.capacity = BYTES;
    }
    log->control.last_segment = number;
    assert_int_equal(weir__log_push_segment(log, seg, NULL), 0);
    return seg;
}

/* A file whose header cannot be read, with nothing in it. */
static struct weir__found *add_file(struct world *w, uint64_t bytes)
{
    struct weir__found *f = &w->found[w->r.found_count++];

    f->name_number = w->r.found_count + 20;
    snprintf(f->name, sizeof f->name, "%08d.seg", (int)f->name_number);
    f->bytes = bytes;
    f->probed = true;
    return f;
}

static void add_life(struct weir__found *f, uint64_t base, uint64_t secret)
{
    f->lives.at[f->lives.count++] =
        (struct weir__life){base, secret, {.position = base + 3 * BLOCK + 8, .time_ms = 7}};
}

/* ---- what is in a file ---- */

/* A batch of the hub, which says that it lies so far behind the file's beginning. */
static void forge_batch(uint8_t *file, uint64_t at, uint64_t base)
{
    struct weir__batch_stamp stamp = weir__batch_stamp(1, SECRET);
    struct weir__batch_header h = {.position = base + at, .count = 1, .body_bytes = 8};

    weir__batch_encode(&h, &stamp, file + at);
}

/* One that has more than is read at once. */
static void all_of_a_large_file_is_looked_at(void **state)
{
    static const uint64_t places[] = {3 * BLOCK + 8, ((uint64_t)3 << 20) + 8,
                                      LARGE - WEIR__BATCH_HEADER_BYTES};
    struct world *w = world_new();
    struct weir__found *f = add_file(w, LARGE);
    uint8_t *bytes = calloc(1, LARGE);
    char path[40];

    (void)state;
    assert_non_null(bytes);
    for (uint64_t i = 0; i < 3; i++) forge_batch(bytes, places[i], BASE(i + 1));
    snprintf(path, sizeof path, "log/%s", f->name);
    simfs_put(w->disk, path, bytes, LARGE);
    f->probed = false;
    assert_int_equal(weir__adopt_probe(&w->r, f), 0);
    assert_true(f->probed);
    assert_int_equal(f->lives.count, 3);
    for (uint64_t i = 0; i < 3; i++) assert_int_equal(f->lives.at[i].base, BASE(i + 1));
    free(bytes);
    world_free(w);
}

/* ---- between two others ---- */

static void a_file_is_what_lies_between_its_neighbours(void **state)
{
    static const struct {
        uint32_t version; /* of the segment before */
        uint64_t bytes;
        struct {
            uint64_t base, secret;
        } lives[2];
        uint32_t becomes; /* a segment of which version; 0: none */
    } cases[] = {
        {2, BYTES, {{BASE(2), SECRET}}, 2},
        {2, BYTES - BLOCK, {{BASE(2) + BLOCK, SECRET}}, 0}, /* ends there, but does not begin */
        {2, BYTES + BLOCK, {{BASE(2), SECRET}}, 2}, /* begins there; somebody made it longer */
        {2, BYTES - 1, {{BASE(2), SECRET}}, 2},     /* or cut it */
        {1, BYTES + BLOCK, {{BASE(2), 0}}, 0},      /* anybody can have written that */
        {2, BYTES, {{BASE(2) - BLOCK, SECRET}, {BASE(2), SECRET}}, 2}, /* it was used twice */
        {2, BYTES, {{BASE(2), 0}}, 0}, /* anybody can have written that */
        {1, BYTES, {{BASE(2), 0}}, 1},
        {1, BYTES, {{BASE(2), SECRET}}, 2},
        {1, BYTES, {{BASE(2), 0}, {BASE(2), SECRET}}, 2},
        {1, BYTES, {{BASE(2), SECRET}, {BASE(2), 0}}, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        struct weir__found *f = add_file(w, cases[i].bytes);
        const struct weir__segment *seg;

        add_segment(w, cases[i].version, false);
        seg = add_segment(w, 2, true);
        add_segment(w, 2, false);
        for (int k = 0; k < 2 && cases[i].lives[k].base; k++)
            add_life(f, cases[i].lives[k].base, cases[i].lives[k].secret);
        assert_int_equal(weir__adopt(&w->r), 0);
        if (seg->lost != (cases[i].becomes == 0) || f->taken == seg->lost) fail_msg("case %zu", i);
        if (!seg->lost) {
            assert_true(seg->headless);
            assert_string_equal(seg->name, "00000021.seg");
            assert_int_equal(seg->h.number, 2);
            assert_int_equal(seg->h.base, BASE(2));
            assert_int_equal(seg->h.capacity, BYTES);
            assert_int_equal(seg->h.version, cases[i].becomes);
            assert_int_equal(seg->data, BASE(2) + 2 * BLOCK);
        }
        world_free(w);
    }
}

/* Neither a file that is a segment already, nor one whose neighbours nobody knows. */
static void other_files_are_left_alone(void **state)
{
    struct world *w = world_new();
    struct weir__found *f = add_file(w, BYTES);
    const struct weir__segment *seg = add_segment(w, 2, true);

    (void)state;
    add_life(f, BASE(1), SECRET);
    assert_int_equal(weir__adopt(&w->r), 0);
    assert_true(seg->lost);
    add_segment(w, 2, false);
    f->taken = true;
    assert_int_equal(weir__adopt(&w->r), 0);
    assert_true(seg->lost);
    f->taken = false;
    f->readable = true;
    assert_int_equal(weir__adopt(&w->r), 0);
    assert_true(seg->lost);
    f->readable = false;
    assert_int_equal(weir__adopt(&w->r), 0);
    assert_false(seg->lost);
    world_free(w);
}

/* Its batches begin behind its heads, which more partitions may have made longer. */
static void a_first_batch_at_a_block_is_the_first(void **state)
{
    static const struct {
        uint64_t position;
        uint32_t before;
        uint64_t data;
    } cases[] = {
        {BASE(2) + 4 * BLOCK, 0, BASE(2) + 4 * BLOCK},
        {BASE(2) + 4 * BLOCK, 88, BASE(2) + 2 * BLOCK}, /* there is one before it */
        {BASE(2) + 4 * BLOCK + 8, 0, BASE(2) + 2 * BLOCK},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        struct weir__found *f = add_file(w, BYTES);
        const struct weir__segment *seg;

        add_segment(w, 2, false);
        seg = add_segment(w, 2, true);
        add_life(f, BASE(2), SECRET);
        f->lives.at[0].first.position = cases[i].position;
        f->lives.at[0].first.before.bytes = cases[i].before;
        assert_int_equal(weir__adopt(&w->r), 0);
        assert_false(seg->lost);
        assert_int_equal(seg->data, cases[i].data);
        world_free(w);
    }
}

/* One in which no batch can be read is known by its size, when no other has it. */
static void an_empty_file_is_known_by_its_size(void **state)
{
    static const struct {
        uint64_t bytes[2];
        bool fits;
    } cases[] = {{{BYTES}, true},
                 {{BYTES - BLOCK}, false},
                 {{BYTES, BYTES}, false},
                 {{BYTES, 2 * BYTES}, true}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        const struct weir__segment *seg;

        for (int k = 0; k < 2 && cases[i].bytes[k]; k++) add_file(w, cases[i].bytes[k]);
        add_segment(w, 2, false);
        seg = add_segment(w, 2, true);
        assert_int_equal(weir__adopt(&w->r), 0);
        assert_true(seg->lost); /* nobody knows where it ends */
        add_segment(w, 2, false);
        assert_int_equal(weir__adopt(&w->r), 0);
        assert_int_equal(seg->lost, !cases[i].fits);
        assert_int_equal(w->found[0].taken, cases[i].fits);
        world_free(w);
    }
}

/* ---- the last one, which the control file knows ---- */

static void the_last_file_is_what_the_control_file_says(void **state)
{
    static const struct {
        struct weir__control_active active;
        bool fits;
    } cases[] = {
        {{.name = 21, .base = BASE(2), .capacity = BYTES, .data = BASE(2) + 2 * BLOCK}, true},
        {{.name = 21, .base = BASE(2), .capacity = BYTES, .data = BASE(2) + BYTES / 2}, true},
        {{.name = 20, .base = BASE(2), .capacity = BYTES, .data = BASE(2) + 2 * BLOCK}, false},
        {{.name = 21, .base = BASE(2), .capacity = BYTES + 1, .data = BASE(2) + 2 * BLOCK}, false},
        {{.name = 21, .base = BASE(2), .capacity = BYTES, .data = BASE(2) + 2 * BLOCK - 1}, false},
        {{.name = 21, .base = BASE(2), .capacity = BYTES, .data = BASE(2) + BYTES / 2 + 1}, false},
        {{.name = 21, .base = BASE(2), .data = BASE(2) + 2 * BLOCK}, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        const struct weir__segment *seg;

        add_file(w, BYTES);
        add_segment(w, 2, false);
        seg = add_segment(w, 2, true);
        w->r.log->control.active = cases[i].active;
        assert_int_equal(weir__adopt(&w->r), 0);
        if (seg->lost == cases[i].fits) fail_msg("case %zu", i);
        if (cases[i].fits) {
            assert_int_equal(seg->h.base, BASE(2));
            assert_int_equal(seg->data, cases[i].active.data);
            assert_int_equal(seg->h.version, WEIR__SEGMENT_VERSION);
        }
        world_free(w);
    }
}

/* ---- behind the last one ---- */

static void batches_behind_the_end_are_one_more_segment(void **state)
{
    static const struct {
        bool taken, readable;
        uint64_t number, base; /* of its header */
        uint64_t life;         /* 0: it has no batches */
        uint64_t last;         /* the segment that it becomes; 1: none */
    } cases[] = {
        {false, false, 0, 0, BASE(2), 2},      {true, false, 0, 0, BASE(2), 1},
        {false, false, 0, 0, BASE(3), 3},      {false, false, 0, 0, 0, 1},
        {true, false, 0, 0, BASE(3), 1},       {false, false, 0, 0, BASE(2) - BLOCK, 1},
        {false, true, 2, BASE(2), BASE(2), 2}, {false, true, 3, BASE(2), BASE(2), 1},
        {false, true, 2, BASE(3), BASE(2), 1}, /* its batches are not those of its header */
        {false, true, 2, BASE(2), 0, 1},       /* a roll that was cut */
        {true, true, 2, BASE(2), BASE(2), 1},  {false, true, 3, BASE(3), BASE(3), 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        struct weir__log *log = w->r.log;
        struct weir__found *f = add_file(w, BYTES);

        add_segment(w, 2, false);
        f->taken = cases[i].taken;
        f->readable = cases[i].readable;
        f->h = (struct weir__segment_header){.number = cases[i].number,
                                             .base = cases[i].base,
                                             .capacity = BYTES,
                                             .secret = SECRET,
                                             .heads_bytes = BLOCK + 1};
        if (cases[i].life) add_life(f, cases[i].life, SECRET);
        assert_int_equal(weir__adopt_beyond(&w->r), 0);
        if (log->segment_count != cases[i].last) fail_msg("case %zu", i);
        assert_int_equal(w->r.unsure, cases[i].last > 1);
        assert_int_equal(log->control.last_segment, cases[i].last);
        if (cases[i].last == 1) {
            assert_string_equal(w->said, "");
        } else {
            const struct weir__segment *seg = weir__log_active(log);
            char want[64];

            snprintf(want, sizeof want, "control: it is older than segment %d", (int)cases[i].last);
            assert_string_equal(w->said, want);
            assert_int_equal(seg->h.number, cases[i].last);
            assert_int_equal(seg->h.base, cases[i].life);
            assert_int_equal(log->segments[1]->lost, cases[i].last == 3);
            assert_int_equal(seg->headless, !cases[i].readable);
            assert_int_equal(seg->data, cases[i].life + (cases[i].readable ? 3 : 2) * BLOCK);
            assert_true(f->taken);
        }
        world_free(w);
    }
}

/* Each goes on where the one before it ends; that the control file is old is said once. */
static void more_than_one_can_lie_behind_the_end(void **state)
{
    struct world *w = world_new();
    struct weir__log *log = w->r.log;

    (void)state;
    add_segment(w, 2, false);
    add_life(add_file(w, BYTES), BASE(3), SECRET);
    add_life(add_file(w, BYTES), BASE(2), SECRET);
    assert_int_equal(weir__adopt_beyond(&w->r), 0);
    assert_int_equal(log->segment_count, 3);
    assert_string_equal(log->segments[1]->name, "00000022.seg");
    assert_string_equal(log->segments[2]->name, "00000021.seg");
    assert_int_equal(log->control.last_segment, 3);
    assert_string_equal(w->said, "control: it is older than segment 2");
    world_free(w);
}

/* The control file may know where a lost one ends; else anything behind the one before it is later. */
static void what_lies_behind_a_lost_one_shows_where_it_ends(void **state)
{
    static const struct {
        uint64_t capacity; /* of the lost segment, as the control file has it; 0: it has not */
        uint64_t life, secret;
        size_t segments;
    } cases[] = {
        {BYTES, BASE(3), SECRET, 3}, {BYTES, BASE(5), SECRET, 3},
        {BYTES, BASE(3), 0, 2},      {BYTES, BASE(3) - BLOCK, SECRET, 2},
        {0, BASE(3), SECRET, 3},     {0, BASE(2), SECRET, 3},
        {0, BASE(1), SECRET, 2},     {0, BASE(3), 0, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        struct weir__log *log = w->r.log;

        add_segment(w, 2, false);
        add_segment(w, 2, true);
        log->control.active =
            (struct weir__control_active){.base = BASE(2), .capacity = cases[i].capacity};
        add_life(add_file(w, BYTES), cases[i].life, cases[i].secret);
        assert_int_equal(weir__adopt_beyond(&w->r), 0);
        if (log->segment_count != cases[i].segments) fail_msg("case %zu", i);
        assert_int_equal(log->control.last_segment, cases[i].segments);
        assert_true(log->segments[1]->lost);
        world_free(w);
    }
}

/* The nearest first, whatever the order of the files. */
static void what_lies_later_is_put_in_order(void **state)
{
    static const struct {
        uint64_t lives[2];
    } cases[] = {{{BASE(5), BASE(4)}}, {{BASE(4), BASE(5)}}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct world *w = world_new();
        struct weir__log *log = w->r.log;

        add_segment(w, 2, false);
        for (int k = 0; k < 2; k++) add_life(add_file(w, BYTES), cases[i].lives[k], SECRET);
        assert_int_equal(weir__adopt_beyond(&w->r), 0);
        assert_int_equal(log->segment_count, 4);
        assert_true(log->segments[1]->lost);
        assert_int_equal(log->segments[2]->h.base, BASE(4));
        assert_int_equal(log->segments[3]->h.base, BASE(5));
        world_free(w);
    }
}

/* ---- before the first one ---- */

static void without_a_control_file_the_row_can_begin_earlier(void **state)
{
    static const struct {
        bool control, taken, readable;
        uint64_t number; /* of the oldest that was found */
        uint64_t life;
        bool fits;
    } cases[] = {
        {false, false, false, 4, BASE(3), true},  {true, false, false, 4, BASE(3), false},
        {false, true, false, 4, BASE(3), false},  {false, false, true, 4, BASE(3), false},
        {false, false, false, 4, BASE(2), false}, {false, false, false, 1, BASE(0), false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world *w = world_new();
        struct weir__log *log = w->r.log;
        struct weir__found *f = add_file(w, BYTES);
        struct weir__segment *first = add_segment(w, 2, false);

        first->h.number = log->control.first_segment = log->control.last_segment = cases[i].number;
        first->h.base = BASE(cases[i].number);
        w->r.no_control = !cases[i].control;
        f->taken = cases[i].taken;
        f->readable = cases[i].readable;
        f->h.number = 3;
        add_life(f, cases[i].life, SECRET);
        assert_int_equal(weir__adopt_beyond(&w->r), 0);
        if ((log->segment_count == 2) != cases[i].fits) fail_msg("case %zu", i);
        if (cases[i].fits) {
            assert_int_equal(log->segments[0]->h.number, 3);
            assert_int_equal(log->segments[0]->h.base, BASE(3));
            assert_ptr_equal(log->segments[1], first);
            assert_int_equal(log->control.first_segment, 3);
        }
        world_free(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_large_file_is_looked_at),
        cmocka_unit_test(a_file_is_what_lies_between_its_neighbours),
        cmocka_unit_test(other_files_are_left_alone),
        cmocka_unit_test(a_first_batch_at_a_block_is_the_first),
        cmocka_unit_test(an_empty_file_is_known_by_its_size),
        cmocka_unit_test(the_last_file_is_what_the_control_file_says),
        cmocka_unit_test(batches_behind_the_end_are_one_more_segment),
        cmocka_unit_test(more_than_one_can_lie_behind_the_end),
        cmocka_unit_test(what_lies_behind_a_lost_one_shows_where_it_ends),
        cmocka_unit_test(what_lies_later_is_put_in_order),
        cmocka_unit_test(without_a_control_file_the_row_can_begin_earlier),
    };

    return cmocka_run_group_tests_name("adopt", tests, NULL, NULL);
}
