/* descriptors_test.c - which descriptors connections may have, and which are left to the logs. */
#include <fcntl.h>

#include "server/visitor.h"

#define FILLED 300 /* descriptors that are taken before anybody comes */
#define HUBS 20

static int filler[FILLED];

/* The number that the next connection has on the server's side: the client's own comes first. */
static unsigned next_descriptor(void)
{
    int mine = open("/dev/null", O_RDONLY | O_CLOEXEC), theirs = dup(mine);

    assert_int_equal(theirs, mine + 1);
    close(theirs);
    close(mine);
    return (unsigned)theirs;
}

/* Whether somebody gets in when this process may have so many. */
static bool is_let_in(struct scene *s, uint64_t descriptors)
{
    static const char request[] = "GET /livez" HOST "Connection: close\r\n\r\n";
    char heard[13] = "";

    s->server->descriptors = descriptors;
    weir__server_keep_descriptors(s->server);
    dial(s);
    send(s->fd, request, sizeof request - 1, MSG_NOSIGNAL); /* to who may have hung up already */
    patience_recv_all(s->fd, heard, sizeof heard - 1);
    close(s->fd);
    s->fd = -1;
    expect_visits(s, 0);
    return strcmp(heard, "HTTP/1.1 200") == 0;
}

static int set_up_filled(void **state)
{
    int rc = set_up(state);
    struct scene *s = *state;

    say(s, "GET /livez" HOST "\r\n");
    assert_string_equal(hear(s, false), ALIVE);
    close(s->fd);
    s->fd = -1;
    expect_nothing_left(s);
    for (int i = 0; i < FILLED; i++) {
        filler[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        assert_true(filler[i] >= 0);
    }
    return rc;
}

static int tear_down_filled(void **state)
{
    for (int i = 0; i < FILLED; i++) close(filler[i]);
    return tear_down(state);
}

static void some_are_left_to_the_logs(void **state)
{
    const unsigned next = next_descriptor();
    struct scene *s = *state;

    assert_false(is_let_in(s, next + WEIR__SERVER_DESCRIPTORS_KEPT));
    assert_true(is_let_in(s, next + WEIR__SERVER_DESCRIPTORS_KEPT + 1));
    assert_true(is_let_in(s, 0)); /* as many as it likes */
    assert_true(is_let_in(s, UINT64_MAX));
}

static void many_hubs_have_more(void **state)
{
    struct scene *s = *state;
    unsigned next;
    char name[16];

    for (int i = 1; i < HUBS; i++) { /* there is one */
        snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(weir__namespace_hub_create(s->ns,
                                                    &(struct weir__hub_config){.name = name,
                                                                               .partitions = 1},
                                                    NULL),
                         0);
    }
    next = next_descriptor();
    assert_false(is_let_in(s, next + HUBS * WEIR__SERVER_DESCRIPTORS_HUB));
    assert_true(is_let_in(s, next + HUBS * WEIR__SERVER_DESCRIPTORS_HUB + 1));
}

/* However few there are. */
static void half_of_them_are_for_connections(void **state)
{
    struct scene *s = *state;
    unsigned next;

    for (int i = 0; i < FILLED; i++) close(filler[i]);
    next = next_descriptor();
    assert_true(next < WEIR__SERVER_DESCRIPTORS_KEPT);
    assert_false(is_let_in(s, 2 * next));
    assert_true(is_let_in(s, 2 * next + 1));
    for (int i = 0; i < FILLED; i++) filler[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_filled, tear_down_filled)
    const struct CMUnitTest tests[] = {
        TEST(some_are_left_to_the_logs),
        TEST(many_hubs_have_more),
        TEST(half_of_them_are_for_connections),
    };

    return cmocka_run_group_tests_name("descriptors", tests, NULL, NULL);
}
