/* turn_queue_test.c - who may take a message in which turn of the loop, and who waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/state.h"

#define SMALL 100u
#define LARGE 16384u
#define PEERS 5

/* The turn of the loop, whether it is over, and whom it was asked to visit last. */
static struct {
    uint64_t turn;
    bool over;
    const struct weir__connection *visited;
} loop;

unsigned __wrap_weir__loop_index(const struct weir__loop *);
uint64_t __wrap_weir__loop_turn(const struct weir__loop *);
bool __wrap_weir__loop_turn_over(const struct weir__loop *);
void __wrap_weir__connection_visit(struct weir__connection *);

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

bool __wrap_weir__loop_turn_over(const struct weir__loop *l)
{
    (void)l;
    return loop.over;
}

void __wrap_weir__connection_visit(struct weir__connection *c)
{
    loop.visited = c;
}

static struct weir__server_loop at;
static struct weir__server server;
static struct weir__connection peers[PEERS];

static int set_up(void **state)
{
    (void)state;
    memset(&at, 0, sizeof at);
    memset(peers, 0, sizeof peers);
    server.at = &at;
    for (int i = 0; i < PEERS; i++) peers[i].server = &server;
    loop.turn = 7;
    loop.over = false;
    loop.visited = NULL;
    return 0;
}

static bool waits(int peer, size_t bytes)
{
    return weir__turn_queue_wait(&peers[peer], bytes);
}

static void next_turn(void)
{
    loop.turn++;
    loop.over = false;
}

static void nobody_waits_before_the_turn_is_over(void **state)
{
    (void)state;
    for (int i = 0; i < PEERS; i++) assert_false(waits(i, i % 2 ? SMALL : LARGE));
    assert_null(at.queue.first);
    assert_null(loop.visited);
}

/* One may go when nobody had a late message in this turn; the others go one a turn, as they came. */
static void a_turn_that_is_over_takes_one(void **state)
{
    (void)state;
    loop.over = true;
    assert_false(waits(0, LARGE));
    for (int i = 1; i < PEERS; i++) assert_true(waits(i, LARGE));
    assert_ptr_equal(loop.visited, &peers[1]);
    for (int i = 1; i < PEERS; i++) {
        next_turn();
        loop.over = true;
        for (int k = PEERS - 1; k > i; k--) assert_true(waits(k, LARGE));
        assert_false(waits(i, LARGE));
        assert_false(peers[i].in_queue);
        if (i + 1 < PEERS) assert_ptr_equal(loop.visited, &peers[i + 1]);
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
    loop.over = true;
    assert_true(waits(1, SMALL));
    assert_true(waits(2, LARGE));
    next_turn();
    assert_false(waits(1, SMALL));
    assert_false(waits(2, LARGE));
    assert_null(at.queue.first);
    next_turn();
    assert_false(waits(0, LARGE - 1)); /* that is small */
    loop.over = true;
    assert_false(waits(1, LARGE));
    assert_true(waits(2, SMALL));
}

/* Large ones stand behind those that wait; small ones need not, as long as the turn is not over. */
static void large_messages_do_not_overtake(void **state)
{
    (void)state;
    loop.over = true;
    assert_false(waits(0, SMALL));
    assert_true(waits(1, SMALL));
    next_turn();
    assert_true(waits(2, LARGE));
    assert_false(waits(3, LARGE - 1));
    assert_false(waits(1, SMALL));
    assert_ptr_equal(loop.visited, &peers[2]);
    assert_false(waits(2, LARGE));
}

/* From the front, the middle and the end. */
static void who_leaves_is_not_waited_for(void **state)
{
    (void)state;
    loop.over = true;
    at.queue.taken = loop.turn;
    for (int i = 0; i < PEERS; i++) assert_true(waits(i, LARGE));
    weir__turn_queue_leave(&peers[2]);
    weir__turn_queue_leave(&peers[2]);
    weir__turn_queue_leave(&peers[4]);
    loop.visited = NULL;
    weir__turn_queue_leave(&peers[0]);
    assert_ptr_equal(loop.visited, &peers[1]);
    next_turn();
    assert_false(waits(1, LARGE));
    assert_false(waits(3, LARGE));
    assert_null(at.queue.first);
    assert_null(at.queue.last);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(nobody_waits_before_the_turn_is_over), TEST(a_turn_that_is_over_takes_one),
        TEST(a_large_message_is_the_only_late_one), TEST(large_messages_do_not_overtake),
        TEST(who_leaves_is_not_waited_for),
    };

    return cmocka_run_group_tests_name("turn_queue", tests, NULL, NULL);
}
