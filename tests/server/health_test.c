/* health_test.c - what /health says of hubs that fail in one way or another. */
#include "server/question.h"
#include "support/allocs.h"

static void say_health(struct scene *s, unsigned status, const char *text)
{
    char wanted[256];

    snprintf(wanted, sizeof wanted, "{\"status\":\"%s\",\"message\":\"%s\"}",
             status == 200 ? "healthy" : "unhealthy", text);
    assert_int_equal(ask(s, &(struct question){.answer = weir__health_answer}), status);
    assert_string_equal(s->text, wanted);
}

/* A disk that does not keep what it was given stops a log for good. */
static void a_hub_that_has_stopped_is_down(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct scene *s = *state;
    struct weir__hub *hub;

    say_health(s, 200, "Service is healthy.");
    assert_int_equal(world_create(&s->world, "good", 1), 0);
    assert_int_equal(world_create(&s->world, "bad", 1), 0);
    say_health(s, 200, "Service is healthy.");
    assert_int_equal(weir__namespace_use(s->world.ns, "bad", &hub, NULL), 0);
    simfs_fail(s->world.disk, &fault);
    assert_int_not_equal(world_publish(&s->world, hub, 0, "event", 1, NULL), 0);
    weir__hub_release(hub);
    say_health(s, 503, "A hub has stopped; the log says why.");
    atomic_store(&s->server.stopping, true);
    say_health(s, 503, "The server is stopping.");
}

static void a_hub_that_cannot_be_opened_is_down(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_OPEN, .at = 1, .persistent = true, .rc = WEIR_EIO};
    struct scene *s = *state;

    assert_int_equal(world_create(&s->world, "bad", 1), 0);
    simfs_fail(s->world.disk, &fault);
    say_health(s, 503, "A hub cannot be opened; the log says why.");
}

static void a_full_disk_is_said(void **state)
{
    struct scene *s = *state;
    struct weir__hub *hub;
    int rc = 0;

    assert_int_equal(world_create(&s->world, "a", 1), 0);
    assert_int_equal(weir__namespace_use(s->world.ns, "a", &hub, NULL), 0);
    simfs_capacity(s->world.disk, simfs_used(s->world.disk));
    for (int i = 0; i < 10000 && rc == 0; i++)
        rc = world_publish(&s->world, hub, 0, "event", 100, NULL);
    assert_int_equal(rc, WEIR_ENOSPACE);
    weir__hub_release(hub);
    say_health(s, 503, "There is no space left: events are refused.");
}

/* Nothing is known of the hubs then, so nothing good is said of them. */
static void no_memory_for_a_look_at_the_hubs(void **state)
{
    struct scene *s = *state;

    say_health(s, 200, "Service is healthy.");
    allocs_fail(1);
    say_health(s, 503, "There is no memory left.");
    assert_true(allocs_failed());
    allocs_fail(0);
    say_health(s, 200, "Service is healthy.");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_hub_that_has_stopped_is_down),
        TEST(a_hub_that_cannot_be_opened_is_down),
        TEST(a_full_disk_is_said),
        TEST(no_memory_for_a_look_at_the_hubs),
    };

    return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
