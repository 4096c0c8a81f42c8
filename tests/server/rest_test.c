/* rest_test.c - events by HTTP: where they go, what is answered when the log is done with them, and when it
 * is not. */
#include "server/question.h"

#define EVENTS "*/messages"
#define PARTITION "*/partitions/*/messages"

static struct weir__loops *loops;
static atomic_int returned; /* times that somebody gave a visit back */

static void count_return(void *arg)
{
    (void)arg;
    atomic_fetch_add(&returned, 1);
}

static int set_up_log(void **state)
{
    struct scene *s;

    assert_int_equal(set_up(state), 0);
    s = *state;
    assert_int_equal(world_create(&s->world, "a", 2), 0);
    assert_int_equal(weir__loops_start(&loops, &(struct weir__loops_options){.count = 1}, NULL), 0);
    weir__mutex_init(&s->server.lock);
    weir__cond_init(&s->server.changed);
    s->visit.loop = weir__loops_at(loops, 0);
    weir__post_init(&s->visit.back, count_return, NULL);
    atomic_store(&returned, 0);
    return 0;
}

static int tear_down_log(void **state)
{
    struct scene *s = *state;

    weir__loops_free(loops);
    assert_int_equal(atomic_load(&s->server.unflushed), 0);
    weir__cond_fini(&s->server.changed);
    weir__mutex_fini(&s->server.lock);
    return tear_down(state); /* where every hub must have been let go of */
}

/* Whether there is an answer at once. */
static bool post(struct scene *s, const char *path, const char *hub, const char *second)
{
    struct weir__visit *v = &s->visit;

    s->request = (struct weir__http_request){.method = WEIR__HTTP_POST, .path = bytes("/a")};
    s->route = (struct weir__route){.path = path};
    snprintf(v->star[0], sizeof v->star[0], "%s", hub);
    snprintf(v->star[1], sizeof v->star[1], "%s", second);
    weir__buf_clear(&v->body);
    weir__buf_clear(&v->answer.body);
    assert_true(weir__buf_add(&v->body, "event", 5));
    v->answer.status = 0;
    return weir__rest_answer(v);
}

static void expect_answer(struct scene *s, unsigned status, const char *text)
{
    const struct weir__buf *body = &s->visit.answer.body;

    snprintf(s->text, sizeof s->text, "%.*s", (int)body->len,
             body->len ? (const char *)body->at : "");
    assert_int_equal(s->visit.answer.status, status);
    if (!strstr(s->text, text)) fail_msg("%s", s->text);
    assert_null(s->visit.hub);
}

static int flush(struct scene *s)
{
    struct weir__hub *hub;
    int rc;

    assert_int_equal(weir__namespace_use(s->world.ns, "a", &hub, NULL), 0);
    rc = weir__hub_flush(hub, INT64_MAX, NULL);
    weir__hub_release(hub);
    return rc;
}

static int64_t events_in(struct scene *s, uint32_t partition)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, "a", &hub, NULL), 0);
    assert_int_equal(weir__hub_partition_properties(hub, partition, &p, NULL), 0);
    weir__hub_release(hub);
    return p.last_sequence + 1;
}

static void an_event_is_answered_when_it_is_durable(void **state)
{
    static const char *const partitions[] = {"0", "1", "1"};
    struct scene *s = *state;

    for (int i = 0; i < 3; i++) {
        assert_false(post(s, PARTITION, "a", partitions[i]));
        assert_int_equal(atomic_load(&returned), i);
        assert_true(atomic_load(&s->server.unflushed) > 5);
        assert_int_equal(s->visit.answer.status, 0);
        assert_int_equal(flush(s), 0);
        while (atomic_load(&returned) == i) sched_yield();
        s->visit.returned(&s->visit);
        expect_answer(s, 201, "");
        assert_int_equal(s->visit.answer.body.len, 0);
        assert_int_equal(atomic_load(&s->server.unflushed), 0);
    }
    assert_int_equal(events_in(s, 0), 1);
    assert_int_equal(events_in(s, 1), 2);
}

static void what_could_not_be_stored_is_said(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct scene *s = *state;

    assert_int_equal(flush(s), 0);
    simfs_fail(s->world.disk, &fault);
    assert_false(post(s, EVENTS, "a", ""));
    assert_int_not_equal(flush(s), 0);
    while (!atomic_load(&returned)) sched_yield();
    assert_int_not_equal(s->visit.rc, 0);
    assert_int_equal(s->visit.why.code, s->visit.rc);
    s->visit.returned(&s->visit);
    expect_answer(s, 500, "The service was unable to process the request");
}

static void what_is_wrong_is_said_at_once(void **state)
{
    static const char between[] =
        "The specified partition is invalid for an EventHub partition sender "
        "or receiver. It should be between 0 and 1.";
    static const struct {
        const char *path, *hub, *second;
        unsigned status;
        const char *text;
    } rows[] = {
        {PARTITION, "a", "2", 400, between},
        {PARTITION, "a", "01", 400, between},
        {PARTITION, "a", "x", 400, between},
        {PARTITION, "b", "0", 404, "The messaging entity 'b' could not be found."},
        {EVENTS, "b", "", 404, "The messaging entity 'b' could not be found."},
    };
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_true(post(s, rows[i].path, rows[i].hub, rows[i].second));
        expect_answer(s, rows[i].status, rows[i].text);
        assert_null(s->visit.returned);
    }
    assert_int_equal(events_in(s, 0) + events_in(s, 1), 0);
}

/* Asked again as long as there is somebody to answer. */
static void a_busy_server_is_asked_again(void **state)
{
    struct scene *s = *state;

    atomic_store(&s->server.unflushed, WEIR__SERVER_UNFLUSHED_ALL_MAX);
    assert_false(post(s, EVENTS, "a", ""));
    assert_int_equal(flush(s), 0);
    while (!atomic_load(&returned)) sched_yield();
    s->visit.returned(&s->visit);
    expect_answer(s, 201, "");
    atomic_store(&s->server.unflushed, WEIR__SERVER_UNFLUSHED_ALL_MAX + 1);
    assert_true(post(s, EVENTS, "a", ""));
    assert_int_equal(s->visit.answer.status, 0);
    assert_int_equal(s->visit.why.code, WEIR_EBUSY);
    s->visit.returned(&s->visit); /* and the client has gone */
    assert_null(s->visit.returned);
    expect_answer(s, 0, "");
    atomic_store(&s->server.unflushed, 0);
}

static void a_sealed_server_takes_nothing(void **state)
{
    struct scene *s = *state;

    atomic_store(&s->server.sealed, true);
    assert_true(post(s, EVENTS, "a", ""));
    expect_answer(s, 503, "The server is stopping.");
    assert_null(s->visit.returned);
    assert_int_equal(events_in(s, 0) + events_in(s, 1), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_log, tear_down_log)
    const struct CMUnitTest tests[] = {
        TEST(an_event_is_answered_when_it_is_durable), TEST(what_could_not_be_stored_is_said),
        TEST(what_is_wrong_is_said_at_once),           TEST(a_busy_server_is_asked_again),
        TEST(a_sealed_server_takes_nothing),
    };

    return cmocka_run_group_tests_name("rest", tests, NULL, NULL);
}
