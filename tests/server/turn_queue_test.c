/* turn_queue_test.c - who may take a message in which turn of the loop, and who waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/state.h"

#define SMALL 100u
#define LARGE 16384u
#define PEERS 5
#define OVER WEIR__LOOP_TURN_NS
#define LATE (2 * WEIR__LOOP_TURN_NS)

/* The turn of the loop, how long it lasts, and what it was asked to do. */
static struct {
    uint64_t turn;
    int64_t ns;
    bool asked;
    char served[64]; /* the numbers of those that were */
    size_t bytes;    /* of the message that each of them has */
    int64_t each_ns;
} loop;

static struct weir__server_loop at;
static struct weir__server server;
static struct weir__connection peers[PEERS];

unsigned __wrap_weir__loop_index(const struct weir__loop *);
uint64_t __wrap_weir__loop_turn(const struct weir__loop *);
int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *);
void __wrap_weir__loop_defer(struct weir__loop *, struct weir__post *);
void __wrap_weir__connection_serve(struct weir__connection *);

unsigned __wrap_weir__loop_index(const struct weir__loop *l)
{
    (void)l;
    return 0;
}

uint64_t __wrap_weir__loop_turn(const struct weir__loop *l)
{
    (void)l;
    return loop.turn;
}

int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *l)
{
    (void)l;
    return loop.ns;
}

void __wrap_weir__loop_defer(struct weir__loop *l, struct weir__post *p)
{
    (void)l;
    assert_ptr_equal(p, &at.queue.serve);
    loop.asked = true;
}

/* It has one message, which takes its time. */
void __wrap_weir__connection_serve(struct weir__connection *c)
{
    size_t len = strlen(loop.served);

    if (weir__turn_queue_wait(c, loop.bytes)) return;
    loop.served[len] = (char)('0' + (c - peers));
    loop.ns += loop.each_ns;
}

static int set_up(void **state)
{
    (void)state;
    memset(&at, 0, sizeof at);
    memset(peers, 0, sizeof peers);
    memset(&loop, 0, sizeof loop);
    server.at = &at;
    for (int i = 0; i < PEERS; i++) peers[i].server = &server;
    weir__turn_queue_init(&at.queue);
    loop.turn = 7;
    return 0;
}

static bool waits(int peer, size_t bytes)
{
    return weir__turn_queue_wait(&peers[peer], bytes);
}

static void next_turn(int64_t ns)
{
    loop.turn++;
    loop.ns = ns;
}

static void nobody_waits_before_the_turn_is_over(void **state)
{
    (void)state;
    loop.ns = OVER - 1;
    for (int i = 0; i < PEERS; i++) assert_false(waits(i, i % 2 ? SMALL : LARGE));
    assert_null(at.queue.first);
    assert_false(loop.asked);
}

/* One large message may go when nobody had a late one in this turn; the others go one a turn, as they
 * came. */
static void a_turn_that_is_over_takes_one(void **state)
{
    (void)state;
    loop.ns = OVER;
    assert_false(waits(0, LARGE));
    for (int i = 1; i < PEERS; i++) assert_true(waits(i, LARGE));
    assert_true(loop.asked);
    for (int i = 1; i < PEERS; i++) {
        next_turn(OVER);
        for (int k = PEERS - 1; k > i; k--) assert_true(waits(k, LARGE));
        assert_false(waits(i, LARGE));
        assert_false(peers[i].in_queue);
        if (i + 1 < PEERS) assert_true(waits(i + 1, LARGE));
    }
    assert_null(at.queue.first);
    assert_null(at.queue.last);
}

/* A large message that was begun in time was this turn's late one, too. */
static void a_large_message_is_the_only_late_one(void **state)
{
    (void)state;
    assert_false(waits(0, LARGE));
    loop.ns = OVER;
    assert_true(waits(1, LARGE));
    next_turn(0);
    assert_false(waits(1, LARGE));
    next_turn(0);
    assert_false(waits(0, LARGE - 1)); /* that is small */
    loop.ns = OVER;
    assert_false(waits(1, LARGE));
    assert_true(waits(2, LARGE));
}

/* Small ones that wait have a time of their own. */
static void small_messages_have_longer(void **state)
{
    (void)state;
    loop.ns = OVER;
    for (int i = 0; i < 2; i++) assert_false(waits(i, SMALL));
    loop.ns = LATE - 1;
    assert_false(waits(2, SMALL));
    loop.ns = LATE;
    assert_true(waits(3, SMALL));
    assert_true(waits(4, SMALL));
    next_turn(LATE);
    assert_true(waits(4, SMALL));
    assert_false(waits(3, SMALL));
}

/* Also in a turn that has lasted for long before the first of them had its chance. */
static void other_work_takes_no_time_from_small_messages(void **state)
{
    (void)state;
    loop.ns = LATE;
    at.queue.taken = loop.turn;
    for (int i = 0; i < PEERS; i++) assert_true(waits(i, SMALL));
    next_turn(3 * LATE);
    assert_false(waits(0, SMALL));
    loop.ns += OVER / 2;
    assert_false(waits(1, SMALL)); /* and has the same time, not its own */
    loop.ns += OVER / 2 - 1;
    assert_false(waits(2, SMALL));
    loop.ns++;
    assert_true(waits(3, SMALL));
    next_turn(3 * LATE);
    assert_false(waits(3, LARGE)); /* that was this turn's */
    assert_true(waits(4, SMALL));
    next_turn(0);
    assert_false(waits(4, SMALL));
}

/* Large ones stand behind those that wait; small ones need not, as long as the turn is not over. */
static void large_messages_do_not_overtake(void **state)
{
    (void)state;
    loop.ns = LATE;
    assert_false(waits(0, LARGE));
    assert_true(waits(1, SMALL));
    next_turn(0);
    assert_true(waits(2, LARGE));
    assert_false(waits(3, LARGE - 1));
    assert_false(waits(1, SMALL));
    assert_false(waits(2, LARGE));
}

static void serve(size_t bytes, int64_t each_ns, const char *served, bool more)
{
    memset(loop.served, 0, sizeof loop.served);
    loop.bytes = bytes;
    loop.each_ns = each_ns;
    loop.asked = false;
    at.queue.serve.fn(at.queue.serve.arg);
    assert_string_equal(loop.served, served);
    assert_int_equal(loop.asked, more);
}

/* The loop serves from the front as many as may go, and comes again for the rest. */
static void all_that_may_go_are_served(void **state)
{
    (void)state;
    loop.ns = LATE;
    at.queue.taken = loop.turn;
    for (int i = 0; i < PEERS; i++) assert_true(waits(i, SMALL));
    serve(SMALL, 1, "", true);
    next_turn(LATE);
    serve(SMALL, OVER / 2, "01", true);
    next_turn(LATE);
    serve(SMALL, OVER, "2", true);
    next_turn(0);
    serve(LARGE, OVER, "3", true);
    next_turn(0);
    serve(LARGE, OVER, "4", false);
    serve(LARGE, OVER, "", false);
}

/* From the front, the middle and the end. */
static void who_leaves_is_not_waited_for(void **state)
{
    (void)state;
    loop.ns = LATE;
    at.queue.taken = loop.turn;
    for (int i = 0; i < PEERS; i++) assert_true(waits(i, LARGE));
    weir__turn_queue_leave(&peers[2]);
    weir__turn_queue_leave(&peers[2]);
    weir__turn_queue_leave(&peers[4]);
    weir__turn_queue_leave(&peers[0]);
    next_turn(0);
    assert_false(waits(1, LARGE));
    assert_false(waits(3, LARGE));
    assert_null(at.queue.first);
    assert_null(at.queue.last);
}

/* What came behind it the last time is not behind it now. */
static void who_comes_again_is_the_last(void **state)
{
    (void)state;
    loop.ns = LATE;
    at.queue.taken = loop.turn;
    for (int i = 0; i < 2; i++) assert_true(waits(i, LARGE));
    for (int i = 0; i < 2; i++) weir__turn_queue_leave(&peers[i]);
    for (int i = 1; i >= 0; i--) assert_true(waits(i, LARGE));
    assert_null(peers[0].queue_next);
    weir__turn_queue_leave(&peers[0]);
    assert_ptr_equal(at.queue.first, &peers[1]);
    assert_ptr_equal(at.queue.last, &peers[1]);
    weir__turn_queue_leave(&peers[1]);
    assert_null(at.queue.first);
    assert_null(at.queue.last);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_waits_before_the_turn_is_over),
        TEST(a_turn_that_is_over_takes_one),
        TEST(a_large_message_is_the_only_late_one),
        TEST(small_messages_have_longer),
        TEST(other_work_takes_no_time_from_small_messages),
        TEST(large_messages_do_not_overtake),
        TEST(all_that_may_go_are_served),
        TEST(who_leaves_is_not_waited_for),
        TEST(who_comes_again_is_the_last),
    };

    return cmocka_run_group_tests_name("turn_queue", tests, NULL, NULL);
}
