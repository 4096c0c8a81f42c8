/* late_test.c - many connections that have something to read at once, each of which takes its time: in no
 * turn of their loop are all of them read. */
#include "echo.h"

#define PEERS 12

static struct weir__tcp *tcps[PEERS];
static unsigned reads[PEERS];
static bool one_ends_all;
static struct {
    uint64_t turn;
    unsigned reads, most; /* in it, and in any */
} turn;

static struct weir__mutex lock; /* guards the next */
static unsigned accepted, received, closed;

static atomic_bool blocked, blocks;

static uint8_t *give_room(void *owner, size_t *room)
{
    static uint8_t bytes[PEERS];

    (void)owner;
    *room = sizeof bytes;
    return bytes;
}

static void on_received(void *owner, size_t bytes)
{
    struct weir__tcp **c = owner;
    int64_t until_ns = weir__mono_ns() + WEIR__LOOP_TURN_NS;

    reads[c - tcps]++;
    if (turn.turn != (*c)->loop->turn) turn.reads = 0;
    turn.turn = (*c)->loop->turn;
    if (++turn.reads > turn.most) turn.most = turn.reads;
    while (weir__mono_ns() < until_ns) continue;
    for (int i = 0; one_ends_all && i < PEERS; i++) weir__tcp_abort(tcps[i], NULL);
    weir__mutex_lock(&lock);
    received += (unsigned)bytes;
    weir__mutex_unlock(&lock);
}

static void on_ended(void *owner)
{
    weir__tcp_end(*(struct weir__tcp **)owner);
}

static struct weir__bytes give_output(void *owner)
{
    (void)owner;
    return weir__bytes_of(NULL, 0);
}

static void on_sent(void *owner, size_t bytes)
{
    (void)owner, (void)bytes;
}

static void on_closed(void *owner, const struct weir_error *why)
{
    (void)owner, (void)why;
    weir__mutex_lock(&lock);
    closed++;
    weir__mutex_unlock(&lock);
}

static const struct weir__tcp_calls calls = {echo_opened, give_room, on_received, on_ended,
                                             give_output, on_sent,   on_closed};

static bool accept_one(void *user, struct weir__tcp *tcp)
{
    (void)user;
    weir__mutex_lock(&lock);
    tcps[accepted] = tcp;
    weir__tcp_adopt(tcp, &calls, &tcps[accepted++]);
    weir__mutex_unlock(&lock);
    return true;
}

/* On the loop, so that all of it is there when it looks again. */
static void block(void *arg)
{
    (void)arg;
    atomic_store(&blocked, true);
    while (atomic_load(&blocks)) sched_yield();
}

static void wait_for(const unsigned *what, unsigned count)
{
    bool there = false;

    for (int i = 0; !there; i++) {
        assert_true(i < PATIENCE_MS);
        weir__mutex_lock(&lock);
        there = *what >= count;
        weir__mutex_unlock(&lock);
        if (!there) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

/* All of them send a byte at the same time; until there are so many of these. */
static void run(unsigned *which, unsigned count)
{
    struct weir__listener_options o = {.address = "127.0.0.1:0", .accepted = accept_one};
    struct weir__listener *listener;
    struct weir__loops *loops;
    struct weir__post post;
    int fds[PEERS];

    accepted = received = closed = 0;
    memset(reads, 0, sizeof reads);
    weir__mutex_init(&lock);
    assert_int_equal(weir__loops_start(&loops, &(struct weir__loops_options){.count = 1}, NULL), 0);
    assert_int_equal(weir__listener_open(&listener, loops, &o, NULL), 0);
    assert_int_equal(weir__listener_begin(listener, NULL), 0);
    for (int i = 0; i < PEERS; i++) fds[i] = client_connect(weir__listener_port(listener));
    wait_for(&accepted, PEERS);
    atomic_store(&blocked, false);
    atomic_store(&blocks, true);
    weir__post_init(&post, block, NULL);
    assert_int_equal(weir__loop_post(weir__loops_at(loops, 0), &post), 0);
    while (!atomic_load(&blocked)) sched_yield();
    memset(&turn, 0, sizeof turn);
    for (int i = 0; i < PEERS; i++) client_send(fds[i], "x", 1);
    atomic_store(&blocks, false);
    wait_for(which, count);
    for (int i = 0; i < PEERS; i++) close(fds[i]);
    weir__listener_close(listener);
    weir__loops_stop(loops);
    weir__listener_free(listener);
    weir__loops_free(loops);
    weir__mutex_fini(&lock);
}

/* One in time, and one that came late. */
static void a_turn_that_is_over_reads_one(void **state)
{
    (void)state;
    one_ends_all = false;
    run(&received, PEERS);
    for (int i = 0; i < PEERS; i++) assert_int_equal(reads[i], 1);
    assert_in_range(turn.most, 1, 2);
}

/* Whoever is gone before it was read is not read. */
static void who_waits_may_go(void **state)
{
    unsigned all = 0;

    (void)state;
    one_ends_all = true;
    run(&closed, PEERS);
    for (int i = 0; i < PEERS; i++) all += reads[i];
    assert_int_equal(all, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_that_is_over_reads_one),
        cmocka_unit_test(who_waits_may_go),
    };

    return cmocka_run_group_tests_name("late", tests, NULL, NULL);
}
