/* producer_test.c - the table of producers against a plain model, and its bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "log/producer.h"
#include "support/dice.h"
#include "support/pace.h"

#define MODEL_MAX 64
#define DEEP_MAX 40 /* uses that are taken back at once */
#define MINUTE_MS INT64_C(60000)
#define AGE_MS (INT64_C(7) * 24 * 3600 * 1000)

/* The same in an array, the oldest first. */
struct model {
    struct weir__producer at[MODEL_MAX];
    bool dirty[MODEL_MAX];
    uint32_t count, max;
    uint64_t forgotten;
};

struct pair {
    struct weir__producers all;
    struct model model;
    uint64_t dice, offset;
    int64_t keep_ms;
    bool ages;
};

static int model_find(const struct model *m, uint32_t partition, uint64_t id)
{
    for (uint32_t i = 0; i < m->count; i++)
        if (m->at[i].id == id && m->at[i].partition == partition) return (int)i;
    return -1;
}

static void model_remove(struct model *m, int i)
{
    m->count--;
    memmove(m->at + i, m->at + i + 1, (m->count - (uint32_t)i) * sizeof m->at[0]);
    memmove(m->dirty + i, m->dirty + i + 1, (m->count - (uint32_t)i) * sizeof m->dirty[0]);
}

/* uses: it publishes; otherwise it is learned. */
static void model_use(struct model *m, const struct weir__producer *p, bool uses)
{
    int i = model_find(m, p->partition, p->id);

    if (i >= 0 && uses && m->dirty[i] && m->at[i].used == p->used) { /* stays where it is */
        m->at[i] = *p;
        return;
    }
    if (i >= 0) {
        model_remove(m, i);
    } else {
        for (int k = 0; uses && k < 2 && m->count && p->used - m->at[0].used > 7 * 24 * 60; k++) {
            model_remove(m, 0);
            m->forgotten++;
        }
        if (m->count == m->max) {
            model_remove(m, 0);
            m->forgotten++;
        }
    }
    m->dirty[m->count] = uses;
    m->at[m->count++] = *p;
}

/* Everything the model knows, in its order, is what the table knows. */
static void check_same(const struct pair *t)
{
    uint32_t n = t->all.oldest, newest = 0;

    assert_int_equal(t->all.count, t->model.count);
    assert_int_equal(t->all.forgotten, t->model.forgotten);
    for (uint32_t i = 0; i < t->model.count; i++) {
        const struct weir__producer *want = &t->model.at[i];
        const struct weir__producer *found =
            weir__producers_find(&t->all, want->partition, want->id);

        assert_non_null(found);
        assert_memory_equal(found, want, sizeof *want);
        assert_ptr_equal(&weir__producers_place(&t->all, n)->p, found);
        newest = n;
        n = weir__producers_place(&t->all, n)->newer;
    }
    assert_int_equal(n, 0);
    assert_int_equal(t->all.newest, newest);
}

static struct weir__producer someone(struct pair *t)
{
    return (struct weir__producer){.id = 1 + dice_roll(&t->dice, 90),
                                   .partition = (uint16_t)dice_roll(&t->dice, 3),
                                   .count = 1 + (uint32_t)dice_roll(&t->dice, 9),
                                   .next = (uint32_t)dice_next(&t->dice),
                                   .offset = t->offset++,
                                   .used = weir__producer_minutes(t->keep_ms)};
}

static void use(struct pair *t, const struct weir__producer *p, struct weir__producer *before)
{
    struct weir__producer *known = weir__producers_find(&t->all, p->partition, p->id);

    known = weir__producers_use(&t->all, known, p->partition, p->id, t->keep_ms, before);
    assert_non_null(known);
    assert_int_equal(known->used, p->used);
    *known = *p;
    model_use(&t->model, p, true);
}

/* Uses a few, then takes them all back: everybody is known as before, whoever was forgotten for
 * them included. The order may differ where somebody was known already. */
static void use_and_undo(struct pair *t)
{
    struct weir__producer used[DEEP_MAX], before[DEEP_MAX];
    uint32_t deep = 1 + (uint32_t)dice_roll(&t->dice, DEEP_MAX);
    struct model was = t->model;

    for (uint32_t i = 0; i < deep; i++) {
        used[i] = someone(t);
        use(t, &used[i], &before[i]);
    }
    for (uint32_t i = deep; i-- > 0;)
        weir__producers_undo(&t->all, used[i].partition, used[i].id, &before[i]);
    assert_int_equal(t->all.count, was.count);
    assert_int_equal(t->all.forgotten, was.forgotten);
    t->model = was;
    t->model.count = 0;
    for (uint32_t n = t->all.oldest; n; n = weir__producers_place(&t->all, n)->newer) {
        const struct weir__producer *p = &weir__producers_place(&t->all, n)->p;
        int i = model_find(&was, p->partition, p->id);

        if (i < 0) {
            fail_msg("somebody is known who was not");
            return;
        }
        assert_memory_equal(p, &was.at[i], sizeof *p);
        t->model.dirty[t->model.count] = weir__producers_place(&t->all, n)->dirty;
        t->model.at[t->model.count++] = *p;
    }
}

static void learn(struct pair *t)
{
    struct weir__producer p = someone(t);
    int known = model_find(&t->model, p.partition, p.id);

    if (dice_roll(&t->dice, 2)) p.offset = dice_roll(&t->dice, t->offset);
    if (known < 0 || t->model.at[known].offset <= p.offset) model_use(&t->model, &p, false);
    assert_true(weir__producers_learn(&t->all, &p, false));
}

static void one_thing(struct pair *t)
{
    struct weir__producer p, before;
    uint64_t roll = dice_roll(&t->dice, 100);

    if (roll < 70) {
        p = someone(t);
        use(t, &p, &before);
    } else if (roll < 80 && !t->ages) { /* whoever is too old would not come back */
        use_and_undo(t);
    } else if (roll < 90) {
        learn(t);
    } else if (t->ages) {
        t->keep_ms += (int64_t)dice_roll(&t->dice, roll == 99 ? 3 * AGE_MS : AGE_MS / 10);
    }
}

static void table_is_as_the_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60 / PACE + 1; seed++) {
        struct pair t = {.dice = seed,
                         .keep_ms = INT64_C(1700000000000),
                         .offset = 1000,
                         .ages = seed % 2};

        t.model.max = 1 + (uint32_t)dice_roll(&t.dice, MODEL_MAX);
        weir__producers_init(&t.all, t.model.max, dice_next(&t.dice));
        for (int i = 0; i < 600; i++) {
            one_thing(&t);
            check_same(&t);
        }
        weir__producers_fini(&t.all);
    }
}

static void put(struct weir__producers *all, uint64_t id, int64_t keep_ms)
{
    struct weir__producer before, *p = weir__producers_find(all, 0, id);

    p = weir__producers_use(all, p, 0, id, keep_ms, &before);
    assert_non_null(p);
    p->count = 1;
    p->offset = id;
}

/* Buckets come one by one: at every count each one is still found. */
static void every_count_finds_each(void **state)
{
    struct weir__producers all;

    (void)state;
    weir__producers_init(&all, WEIR__PRODUCERS_MAX, 42);
    for (uint64_t id = 1; id <= 3000; id++) {
        put(&all, id, 0);
        if (id % 37 != 0 && (id & (id - 1)) != 0) continue;
        for (uint64_t k = 1; k <= id; k++) {
            const struct weir__producer *p = weir__producers_find(&all, 0, k);

            assert_non_null(p);
            assert_int_equal(p->offset, k);
        }
        assert_null(weir__producers_find(&all, 0, id + 1));
        assert_null(weir__producers_find(&all, 1, id));
    }
    weir__producers_fini(&all);
}

/* At the documented bound the one that was silent longest goes, and nobody else. */
static void a_million_and_one(void **state)
{
    struct weir__producers all;

    (void)state;
    if (PACE > 1) skip();
    weir__producers_init(&all, WEIR__PRODUCERS_MAX, 42);
    for (uint64_t id = 1; id <= WEIR__PRODUCERS_MAX; id++) put(&all, id, 0);
    put(&all, 1, MINUTE_MS); /* no longer the one that was silent longest */
    assert_int_equal(all.forgotten, 0);
    put(&all, WEIR__PRODUCERS_MAX + 1, MINUTE_MS);
    assert_int_equal(all.count, 1000000);
    assert_int_equal(all.forgotten, 1);
    assert_null(weir__producers_find(&all, 0, 2));
    for (uint64_t id = 3; id <= WEIR__PRODUCERS_MAX + 1; id++)
        assert_non_null(weir__producers_find(&all, 0, id));
    assert_non_null(weir__producers_find(&all, 0, 1));
    weir__producers_fini(&all);
}

static void silent_for_seven_days(void **state)
{
    struct weir__producers all;

    (void)state;
    weir__producers_init(&all, WEIR__PRODUCERS_MAX, 42);
    put(&all, 1, 0);
    put(&all, 2, MINUTE_MS);
    put(&all, 3, AGE_MS); /* 7 days later: both are known */
    weir__producers_forget(&all, weir__producer_minutes(AGE_MS + MINUTE_MS - 1), 100);
    assert_int_equal(all.count, 3);
    weir__producers_forget(&all, weir__producer_minutes(AGE_MS + MINUTE_MS), 100);
    assert_null(weir__producers_find(&all, 0, 1));
    assert_non_null(weir__producers_find(&all, 0, 2));
    put(&all, 4, AGE_MS + 2 * MINUTE_MS); /* who comes makes the old go, too */
    assert_null(weir__producers_find(&all, 0, 2));
    assert_int_equal(all.forgotten, 2);
    put(&all, 3, 0); /* a clock that went back forgets nobody */
    assert_int_equal(all.count, 2);
    weir__producers_fini(&all);
}

static void the_dirty_are_the_newest(void **state)
{
    struct weir__producers all;
    uint32_t count, first;

    (void)state;
    weir__producers_init(&all, WEIR__PRODUCERS_MAX, 42);
    assert_int_equal(weir__producers_dirty(&all, &count), 0);
    for (uint64_t id = 1; id <= 9; id++) put(&all, id, 0);
    weir__producers_clean(&all);
    assert_int_equal(weir__producers_dirty(&all, &count), 0);
    put(&all, 4, 0);
    put(&all, 10, 0);
    put(&all, 2, 0);
    put(&all, 4, 0); /* in the same minute: stays */
    first = weir__producers_dirty(&all, &count);
    assert_int_equal(count, 3);
    assert_int_equal(weir__producers_place(&all, first)->p.id, 4);
    weir__producers_fini(&all);
}

/* Ids that differ in their upper bits alone, as somebody might choose them. */
static void chosen_ids_do_not_meet(void **state)
{
    struct weir__producers all;
    uint32_t longest = 0;

    (void)state;
    weir__producers_init(&all, WEIR__PRODUCERS_MAX, 42);
    for (uint64_t i = 1; i < 4096; i++) put(&all, i << 52, 0);
    for (uint64_t i = 1; i < 4096; i++) put(&all, i << 32, 0);
    for (uint32_t b = 0; b < all.places; b++) {
        uint32_t n = all.pages[b / WEIR__PRODUCERS_PAGE]->bucket[b % WEIR__PRODUCERS_PAGE], len = 0;

        for (; n; n = weir__producers_place(&all, n)->chain) len++;
        if (len > longest) longest = len;
    }
    assert_in_range(longest, 1, 16);
    weir__producers_fini(&all);
}

/* What was last published decides; the answers as they are told. */
static void marks_are_judged(void **state)
{
    const struct weir__producer known = {.id = 7, .epoch = 3, .next = 10, .count = 4};
    const struct weir__producer wraps = {.id = 7, .epoch = 3, .next = 2, .count = 4};
    const struct weir__producer begun = {.id = 7, .epoch = 3, .next = 10};
    static const char newer[] = "producer 7: a newer epoch took over. Received:2 Current:3";
    const struct {
        const struct weir__producer *known;
        uint16_t epoch;
        uint32_t sequence, count;
        int rc;
        bool duplicate;
        const char *text;
    } cases[] = {
        {NULL, 0, 99, 1, 0, false, NULL},
        {&begun, 2, 99, 1, 0, false, NULL},
        {&known, 2, 10, 1, WEIR_EFENCED, false, newer},
        {&known, 4, 99, 1, 0, false, NULL},
        {&known, 3, 10, 4, 0, false, NULL},
        {&known, 3, 6, 4, 0, true, NULL},
        {&known, 3, 6, 3, WEIR_ESEQUENCE, false,
         "producer 7: old sequence: sequence number 6, expected 10"},
        {&known, 3, 9, 4, WEIR_ESEQUENCE, false,
         "producer 7: old sequence: sequence number 9, expected 10"},
        {&known, 3, 11, 4, WEIR_ESEQUENCE, false,
         "producer 7: gap before sequence number 11, expected 10"},
        {&wraps, 3, UINT32_MAX - 1, 4, 0, true, NULL},
        {&wraps, 3, UINT32_MAX, 4, WEIR_ESEQUENCE, false,
         "producer 7: old sequence: sequence number 4294967295, expected 2"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weir__log_producer mark = {7, cases[i].epoch, cases[i].sequence};
        bool duplicate = !cases[i].duplicate;
        struct weir_error err = {0};

        assert_int_equal(weir__producer_check(cases[i].known, &mark, cases[i].count, &duplicate,
                                              &err),
                         cases[i].rc);
        assert_int_equal(duplicate, cases[i].duplicate);
        if (cases[i].text) assert_string_equal(err.text, cases[i].text);
    }
}

/* As drawn in producer.c; how long ago is kept up to a limit, and never before the beginning. */
static void stored_form_is_the_drawing(void **state)
{
    const struct weir__producer p = {.id = 0x0807060504030201,
                                     .sequence = 0x100f0e0d0c0b0a09,
                                     .offset = 0x1817161514131211,
                                     .time_ms = 0x201f1e1d1c1b1a19,
                                     .partition = 0x2221,
                                     .next = 0x28272625,
                                     .count = 0x2c2b2a29,
                                     .epoch = 0x2e2d,
                                     .used = 70000};
    static const uint32_t ages[][3] = {/* minutes, what is stored, what is read at minute 100 */
                                       {69999, 0, 100},
                                       {70000, 0, 100},
                                       {70001, 1, 99},
                                       {70099, 99, 1},
                                       {70100, 100, 0},
                                       {70101, 101, 0},
                                       {70000 + 65534, 65534, 0},
                                       {70000 + 65535, 65535, 0},
                                       {70000 + 65536, 65535, 0}};
    struct weir__producer back;
    uint8_t bytes[48];

    (void)state;
    for (size_t i = 0; i < sizeof ages / sizeof ages[0]; i++) {
        weir__producer_encode(&p, ages[i][0], bytes);
        for (uint8_t k = 0; k < 46; k++) assert_int_equal(bytes[k], k == 34 || k == 35 ? 0 : k + 1);
        assert_int_equal(weir__load16(bytes + 46), ages[i][1]);
        weir__producer_decode(bytes, 100, &back);
        assert_int_equal(back.used, ages[i][2]);
        back.used = p.used;
        assert_memory_equal(&back, &p, sizeof p);
    }
}

static struct weir__producer *known_of(struct weir__producers *all, uint64_t id)
{
    return weir__producers_find(all, 2, id);
}

/* From batches, as an opening meets them; and what a cut takes away goes. */
static void batches_are_learned_and_cut(void **state)
{
    struct weir__batch_header h = {.position = 500,
                                   .sequence = 40,
                                   .time_ms = 5 * MINUTE_MS,
                                   .count = 3,
                                   .partition = 2,
                                   .producer = {1, 6, 70}};
    struct weir__producers all;
    const struct weir__producer *p;

    (void)state;
    weir__producers_init(&all, WEIR__PRODUCERS_MAX, 42);
    assert_true(weir__producers_learn_batch(&all, &h, 0));
    p = known_of(&all, 1);
    assert_non_null(p);
    assert_int_equal(p->epoch, 6);
    assert_int_equal(p->next, 73);
    assert_int_equal(p->count, 3);
    assert_int_equal(p->sequence, 40);
    assert_int_equal(p->offset, 500);
    assert_int_equal(p->time_ms, 5 * MINUTE_MS);
    assert_int_equal(p->used, weir__producer_minutes(5 * MINUTE_MS));
    h.position = 600;
    h.producer.id = 2;
    assert_true(weir__producers_learn_batch(&all, &h, 9 * MINUTE_MS));
    assert_int_equal(known_of(&all, 2)->used, weir__producer_minutes(9 * MINUTE_MS));
    h.producer.id = 0;
    assert_true(weir__producers_learn_batch(&all, &h, 0));
    assert_int_equal(all.count, 2);
    weir__producers_cut(&all, 601); /* nothing lies there */
    assert_int_equal(all.count, 2);
    weir__producers_cut(&all, 600);
    assert_null(known_of(&all, 2));
    weir__producers_cut(&all, 501);
    assert_non_null(known_of(&all, 1));
    h.position = 550;
    h.producer.id = 3;
    assert_true(weir__producers_learn_batch(&all, &h, 0)); /* below where the last cut was */
    weir__producers_cut(&all, 500);
    assert_int_equal(all.count, 0);
    weir__producers_fini(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_as_the_model),
        cmocka_unit_test(every_count_finds_each),
        cmocka_unit_test(a_million_and_one),
        cmocka_unit_test(silent_for_seven_days),
        cmocka_unit_test(the_dirty_are_the_newest),
        cmocka_unit_test(chosen_ids_do_not_meet),
        cmocka_unit_test(marks_are_judged),
        cmocka_unit_test(stored_form_is_the_drawing),
        cmocka_unit_test(batches_are_learned_and_cut),
    };

    return cmocka_run_group_tests_name("producer", tests, NULL, NULL);
}
