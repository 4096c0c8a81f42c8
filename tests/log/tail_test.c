/* tail_test.c - the newest bytes of a log in memory: against a plain copy of all bytes, and at its
 * limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "log/tail.h"
#include "support/allocs.h"
#include "support/dice.h"

#define BLOCK ((uint64_t)WEIR__FS_BLOCK)
#define MIB ((uint64_t)WEIR__TAIL_BLOCK_BYTES)
#define TAIL_BYTES (4 * (size_t)MIB)
#define ALL_BYTES (32 * (size_t)MIB)
#define BEGIN (5 * (uint64_t)BLOCK + 104)
#define BATCHES_MAX 4000
#define ROUNDS 3000

static void start(struct weir__tail *t, size_t bytes_max, uint64_t at)
{
    assert_int_equal(weir__tail_init(t, bytes_max, NULL), 0);
    weir__tail_jump(t, at);
}

/* A batch that nobody looks into. */
static enum weir__tail_room add(struct weir__tail *t, size_t len, uint64_t durable)
{
    enum weir__tail_room room = weir__tail_room(t, len, durable);

    if (room == WEIR__TAIL_READY) weir__tail_advance(t, len);
    return room;
}

/* ---- a plain copy ---- */

struct model {
    struct weir__tail tail;
    uint8_t *all; /* every byte, by its position */
    uint64_t begins[BATCHES_MAX];
    int batches;
    uint64_t durable;
    uint64_t dice;
};

static void model_init(struct model *m)
{
    *m = (struct model){.durable = BEGIN, .dice = 17};
    m->all = calloc(1, ALL_BYTES);
    assert_non_null(m->all);
    start(&m->tail, TAIL_BYTES, BEGIN);
    for (uint64_t i = BEGIN - BEGIN % BLOCK; i < BEGIN; i++)
        m->tail.partial[i % BLOCK] = m->all[i] = (uint8_t)dice_next(&m->dice);
}

static void model_fini(struct model *m)
{
    weir__tail_fini(&m->tail);
    free(m->all);
}

/* What would be written from here to the end is what was added, whole blocks of it, and zeros. */
static void check_parts(struct model *m, uint64_t from)
{
    struct weir__bytes parts[WEIR__FS_PARTS_MAX];
    uint64_t end = m->tail.end, at = from - from % BLOCK;
    int count = weir__tail_parts(&m->tail, from, end, parts);

    assert_in_range(count, 1, WEIR__FS_PARTS_MAX);
    for (int i = 0; i < count; i++) {
        size_t known = parts[i].len;

        assert_int_equal(parts[i].len % BLOCK, 0);
        assert_int_equal((uintptr_t)parts[i].at % BLOCK, 0);
        if (known > end - at) known = end - at;
        assert_memory_equal(parts[i].at, m->all + at, known);
        for (size_t k = known; k < parts[i].len; k++) assert_int_equal(parts[i].at[k], 0);
        at += parts[i].len;
    }
    assert_int_equal(at, end - end % BLOCK + BLOCK);
}

/* All that is not durable is here, and what is here is right. */
static void check_held(struct model *m)
{
    for (int i = 0; i < m->batches; i++) {
        uint64_t begin = m->begins[i], end = i + 1 < m->batches ? m->begins[i + 1] : m->tail.end;
        struct weir__tail_block *b = weir__tail_hold(&m->tail, begin);

        if (begin >= m->durable) assert_non_null(b);
        if (!b) continue;
        assert_true(begin >= b->start && end <= b->end);
        assert_memory_equal(b->at + (begin - b->base), m->all + begin, end - begin);
        weir__tail_release(&m->tail, b);
        assert_int_equal(b->holds, 1);
    }
    assert_null(weir__tail_hold(&m->tail, m->tail.end));
}

static size_t some_length(struct model *m)
{
    uint64_t to_block = BLOCK - m->tail.end % BLOCK;

    switch (dice_roll(&m->dice, 40)) {
    case 0: return MIB + 8 * dice_roll(&m->dice, 2000);
    case 1:
    case 2:
    case 3: return 300000;
    case 4:
    case 5: return to_block + BLOCK * dice_roll(&m->dice, 3);
    default: return 8 + 8 * dice_roll(&m->dice, 1000);
    }
}

static void add_batch(struct model *m)
{
    size_t len = some_length(m);

    if (weir__tail_room(&m->tail, len, m->durable) != WEIR__TAIL_READY) {
        check_parts(m, m->durable);
        m->durable = m->tail.end;
        assert_int_equal(weir__tail_room(&m->tail, len, m->durable), WEIR__TAIL_READY);
    }
    assert_true(m->tail.end + len < ALL_BYTES && m->batches < BATCHES_MAX);
    for (size_t i = 0; i < len; i++)
        m->all[m->tail.end + i] = (uint8_t)((size_t)m->batches + i / 8);
    memcpy(weir__tail_at(&m->tail), m->all + m->tail.end, len);
    m->begins[m->batches++] = m->tail.end;
    weir__tail_advance(&m->tail, len);
}

/* Some of the batches that are not durable are taken back, or all of them. */
static void take_back(struct model *m)
{
    bool all = dice_roll(&m->dice, 2);

    while (m->batches && m->begins[m->batches - 1] >= m->durable && (all || dice_roll(&m->dice, 4)))
        weir__tail_cut(&m->tail, m->begins[--m->batches]);
}

static void check_bytes(const struct weir__tail *t)
{
    size_t bytes = 0;

    for (int i = 0; i < t->count; i++) bytes += t->blocks[i]->cap;
    assert_int_equal(t->bytes, bytes);
    assert_true(bytes <= t->bytes_max);
}

static void it_is_as_a_plain_copy(void **state)
{
    struct model m;

    (void)state;
    model_init(&m);
    for (int round = 0; round < ROUNDS && m.tail.end < ALL_BYTES - 2 * MIB; round++) {
        add_batch(&m);
        check_bytes(&m.tail);
        switch (dice_roll(&m.dice, 12)) {
        case 0: take_back(&m); break;
        case 1:
            if (m.tail.end > m.durable) check_parts(&m, m.durable);
            m.durable = m.tail.end;
            break;
        case 2: weir__tail_trim(&m.tail, m.durable); break;
        case 3:
            m.durable = m.tail.end;
            weir__tail_trim(&m.tail, m.durable);
            assert_int_equal(m.tail.count, 0);
            break;
        default: break;
        }
        if (round % 50 == 0) check_held(&m);
    }
    model_fini(&m);
}

/* ---- limits ---- */

/* A batch that just fits into a block shares it; one byte more begins another. */
static void a_block_is_filled(void **state)
{
    struct weir__tail t;

    (void)state;
    start(&t, 8 * (size_t)MIB, BLOCK + 8);
    assert_int_equal(add(&t, 100, 0), WEIR__TAIL_READY);
    assert_int_equal(add(&t, MIB - 108, 0), WEIR__TAIL_READY);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.blocks[0]->base, BLOCK);
    assert_int_equal(add(&t, MIB - 7, 0), WEIR__TAIL_READY);
    assert_int_equal(t.count, 2);
    assert_int_equal(add(&t, 8, 0), WEIR__TAIL_READY);
    assert_int_equal(t.count, 3);
    assert_int_equal(t.blocks[2]->base, BLOCK + 2 * MIB - BLOCK);
    assert_int_equal(add(&t, MIB, 0), WEIR__TAIL_READY); /* with what is in front of it, more */
    assert_int_equal(t.count, 4);
    assert_int_equal(t.blocks[3]->cap, MIB + BLOCK);
    weir__tail_fini(&t);
}

/* Only what is durable makes room, no more of it than is needed, and its memory is used again. */
static void what_is_durable_makes_room(void **state)
{
    struct weir__tail t;
    uint8_t *first;

    (void)state;
    start(&t, 3 * (size_t)MIB, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(add(&t, MIB, 0), WEIR__TAIL_READY);
    assert_int_equal(add(&t, MIB, MIB - 1), WEIR__TAIL_FULL);
    assert_int_equal(t.count, 3);
    first = t.blocks[0]->at;
    assert_int_equal(add(&t, MIB, 3 * (uint64_t)MIB), WEIR__TAIL_READY);
    assert_int_equal(t.count, 3);
    assert_int_equal(t.blocks[0]->start, MIB);
    assert_ptr_equal(t.blocks[2]->at, first);
    assert_null(t.idle);
    assert_int_equal(add(&t, 2 * (size_t)MIB, 2 * (uint64_t)MIB), WEIR__TAIL_FULL);
    assert_int_equal(t.count, 2); /* one was not enough */
    weir__tail_fini(&t);
}

/* One batch is taken in whatever its size. */
static void a_large_batch_goes_alone(void **state)
{
    struct weir__tail t;

    (void)state;
    start(&t, MIB, 0);
    assert_int_equal(add(&t, 3 * (size_t)MIB, 0), WEIR__TAIL_READY);
    assert_int_equal(add(&t, 8, 0), WEIR__TAIL_FULL);
    assert_int_equal(add(&t, 8, t.end), WEIR__TAIL_READY);
    assert_int_equal(t.count, 1);
    assert_int_equal(t.bytes, MIB);
    assert_null(t.idle); /* only blocks of the usual size are kept */
    weir__tail_fini(&t);
}

static void there_are_so_many_blocks(void **state)
{
    struct weir__tail t;

    (void)state;
    start(&t, 1024 * (size_t)MIB, 0);
    for (int i = 0; i < WEIR__TAIL_BLOCKS_MAX; i++)
        assert_int_equal(add(&t, MIB, 0), WEIR__TAIL_READY);
    assert_int_equal(add(&t, MIB, MIB - 1), WEIR__TAIL_FULL);
    assert_int_equal(t.count, WEIR__TAIL_BLOCKS_MAX);
    assert_int_equal(add(&t, MIB, 4 * (uint64_t)MIB), WEIR__TAIL_READY);
    assert_int_equal(t.count, WEIR__TAIL_BLOCKS_MAX);
    assert_int_equal(t.blocks[0]->start, MIB);
    weir__tail_fini(&t);
}

/* A reader's block stays his until he lets go. */
static void what_is_held_outlives_its_place(void **state)
{
    struct weir__tail t;
    struct weir__tail_block *held;

    (void)state;
    start(&t, 3 * (size_t)MIB, 0);
    for (int i = 0; i < 3; i++) assert_int_equal(add(&t, MIB, 0), WEIR__TAIL_READY);
    memset(t.blocks[1]->at, 'x', MIB);
    held = weir__tail_hold(&t, MIB);
    assert_non_null(held);
    weir__tail_trim(&t, 2 * (uint64_t)MIB);
    assert_int_equal(t.count, 2);
    assert_int_equal(t.bytes, 2 * MIB);
    assert_ptr_equal(t.blocks[0], held);
    assert_int_equal(add(&t, 2 * (size_t)MIB, 3 * (uint64_t)MIB), WEIR__TAIL_READY);
    assert_null(weir__tail_hold(&t, MIB));
    assert_int_equal(held->at[MIB - 1], 'x');
    weir__tail_release(&t, held);
    weir__tail_fini(&t);
}

/* What nobody has filled in is zero, and not what was in the memory before: it goes to the disk. */
static void what_is_not_known_is_zero(void **state)
{
    static const uint8_t zeros[BLOCK];
    struct weir__bytes parts[WEIR__FS_PARTS_MAX];
    struct weir__tail t;

    (void)state;
    start(&t, MIB, BEGIN);
    assert_int_equal(add(&t, 8, 0), WEIR__TAIL_READY);
    assert_int_equal(weir__tail_parts(&t, BEGIN, BEGIN + 8, parts), 1);
    assert_memory_equal(parts[0].at, zeros, BEGIN % BLOCK);
    weir__tail_fini(&t);
}

static void without_memory_it_says_so(void **state)
{
    struct weir_error err = {0};
    struct weir__tail t;

    (void)state;
    for (uint64_t at = 1; at <= 2; at++) {
        allocs_fail(at);
        assert_int_equal(weir__tail_init(&t, MIB, &err), WEIR_ENOMEM);
        allocs_fail(0);
        assert_string_equal(err.text, "making the log's tail: out of memory");
    }
    start(&t, MIB, 0);
    for (uint64_t at = 1; at <= 2; at++) {
        allocs_fail(at);
        assert_int_equal(add(&t, 8, 0), WEIR__TAIL_NOMEM);
        allocs_fail(0);
        assert_int_equal(t.count, 0);
        assert_int_equal(t.bytes, 0);
    }
    assert_int_equal(add(&t, 8, 0), WEIR__TAIL_READY);
    weir__tail_fini(&t);
}

/* Of one that holds nothing any more only the end moves. */
static void nothing_is_cut_of_an_empty_tail(void **state)
{
    struct weir__tail t;

    (void)state;
    start(&t, TAIL_BYTES, BEGIN);
    assert_int_equal(add(&t, 1000, BEGIN), WEIR__TAIL_READY);
    weir__tail_trim(&t, t.end);
    assert_int_equal(t.count, 0);
    weir__tail_cut(&t, BEGIN + 8);
    assert_int_equal(t.end, BEGIN + 8);
    assert_int_equal(t.bytes, 0);
    assert_null(weir__tail_hold(&t, BEGIN));
    weir__tail_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_cut_of_an_empty_tail),
        cmocka_unit_test(it_is_as_a_plain_copy),
        cmocka_unit_test(a_block_is_filled),
        cmocka_unit_test(what_is_durable_makes_room),
        cmocka_unit_test(a_large_batch_goes_alone),
        cmocka_unit_test(there_are_so_many_blocks),
        cmocka_unit_test(what_is_held_outlives_its_place),
        cmocka_unit_test(what_is_not_known_is_zero),
        cmocka_unit_test(without_memory_it_says_so),
    };

    return cmocka_run_group_tests_name("tail", tests, NULL, NULL);
}
