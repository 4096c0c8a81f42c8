/* Peers that settle in any order, and leave old deliveries unsettled: each one is told once. */
#include "amqp/state.h"
#include "peer.h"

#define RING 1024
#define ROUNDS 2000

static struct peer p;
static bool open_ids[1 << 20]; /* sent, and not told of yet */

/* What was told since the last time: each id that is open in [first, last], once, and no other. */
static void check_told(uint32_t first, uint32_t last, uint32_t next)
{
    uint32_t at = first;

    for (; p.side.taken < p.side.count; p.side.taken++) {
        const struct told *told = &p.side.told[p.side.taken % PAIR_EVENTS_MAX];
        if (told->type != WEIR__AMQP_EVENT_SETTLE) continue;
        for (; at < told->settle.first; at++) assert_false(open_ids[at]);
        assert_true(told->settle.last <= last);
        for (; at <= told->settle.last; at++) {
            assert_true(open_ids[at]);
            open_ids[at] = false;
        }
    }
    for (; at <= last && at < next; at++) assert_false(open_ids[at]);
}

static void settle_range(uint32_t first, uint32_t last, uint32_t next)
{
    char said[64];

    snprintf(said, sizeof said, "15: 41 70 %08x 70 %08x 41 00 53 24 45", first, last);
    peer_say(&p, 0, said);
    check_told(first, last, next);
}

/* As many as the ring takes, some of them settled from the beginning. */
static uint32_t send_all(struct weir__amqp_link *l, uint32_t next, uint64_t *seed)
{
    while (weir__amqp_sendable(l)) {
        bool settled = random_below(seed, 8) == 0;
        assert_int_equal(weir__amqp_send(l, weir__bytes_of("m", 1), 0, settled, NULL), 0);
        open_ids[next++] = !settled;
        peer_listen(&p);
        p.heard_len = p.heard_at = 0;
    }
    return next;
}

static void each_delivery_is_told_once(void **state)
{
    struct weir__amqp_options o = {.after.unsettled = RING};
    struct manners manners = {.trusted = true};
    uint32_t low = 0, next = 0;
    uint64_t seed = 11;
    struct weir__amqp_link *l;

    (void)state;
    peer_open(&p, &o, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    l = p.side.told[p.side.count - 1].link;
    peer_say(&p, 0, "13: 43 70 7fffffff 43 43 52 01 43 70 7fffffff");
    for (int round = 0; round < ROUNDS; round++) {
        next = send_all(l, next, &seed);
        for (int i = 0; i < 6; i++) { /* ranges of any length, over what was settled before */
            uint32_t first = low + 1 + (uint32_t)random_below(&seed, RING);
            uint32_t last = first + (uint32_t)random_below(&seed, i % 2 ? RING : 40);
            settle_range(first, last, next);
        }
        if (random_below(&seed, 4) == 0) { /* all but the oldest, and again */
            settle_range(low + 1, low + RING, next);
            settle_range(low + 1, low + RING, next);
        }
        settle_range(low, low + (uint32_t)random_below(&seed, 2) * 200, next);
        while (low < next && !open_ids[low]) low++;
    }
    assert_true(next > RING * 10);
    peer_fini(&p);
}

/* A link that sends, to a peer that takes what there is. */
static struct weir__amqp_link *open_sender(void)
{
    struct weir__amqp_options o = {.after.unsettled = RING};
    struct manners manners = {.trusted = true};

    memset(open_ids, 0, sizeof open_ids);
    peer_open(&p, &o, &manners);
    peer_say(&p, 0, SAY_RECEIVER);
    peer_say(&p, 0, "13: 43 70 7fffffff 43 43 52 01 43 70 7fffffff");
    return p.side.told[2].link;
}

static void send_some(struct weir__amqp_link *l, uint32_t first, uint32_t count)
{
    for (uint32_t id = first; id < first + count; id++) {
        assert_int_equal(weir__amqp_send(l, weir__bytes_of("m", 1), 0, false, NULL), 0);
        open_ids[id] = true;
    }
    peer_listen(&p);
}

/* What is noted of blocks is counted as long as it is there. */
static void notes_are_counted(void **state)
{
    struct weir__amqp_link *l = open_sender();
    size_t before = p.side.e->thing_bytes;

    (void)state;
    send_some(l, 0, 200);
    settle_range(1, 199, 200);
    assert_int_equal(p.side.e->thing_bytes, before);
    settle_range(1, 199, 200); /* now they are found settled, one by one */
    assert_int_equal(p.side.e->thing_bytes, before + RING / 64 * sizeof(uint32_t));
    settle_range(1, 199, 200);
    assert_int_equal(p.side.e->thing_bytes, before + RING / 64 * sizeof(uint32_t));
    peer_say(&p, 0, "17:");
    assert_int_equal(p.side.e->thing_bytes, 256); /* which channels have ended */
    peer_fini(&p);
}

/* Ids come again after four thousand million, and a note of the first time is still there. */
static void an_old_note_is_not_believed(void **state)
{
    (void)state;
    for (uint32_t last = 0; last < 2; last++) { /* which of the block is left unsettled */
        struct weir__amqp_link *l = open_sender();
        struct weir__amqp_ring *ring = &l->s->out;
        send_some(l, 0, 200);
        settle_range(1, 199, 200);
        settle_range(1, 199, 200);
        settle_range(0, 0, 200);
        assert_int_equal(ring->settled[1], 64 | 1);
        assert_int_equal(ring->low, 200);
        ring->low = ring->next = 60;
        send_some(l, 60, 140);
        settle_range(63, 63, 200);
        settle_range(65 - last, 127 - last, 200);
        settle_range(128, 199, 200);
        settle_range(61, 199, 200);
        peer_fini(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_delivery_is_told_once),
        cmocka_unit_test(notes_are_counted),
        cmocka_unit_test(an_old_note_is_not_believed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
