/* review_test.c - rights of many links and many connections end in slices: no walk lasts longer than its
 * turn, and none is lost when links or connections go away in the middle. */
#include "base/steps.h"
#include "server/links.h"

#define NOW_S INT64_C(1700000000) /* where the world's clock begins */
#define SECOND_MS INT64_C(1000)
#define LINKS 150u
#define SLICE 64u /* what a connection walks over, when the turn is over already */
#define PEERS 5u

/* A turn that is over, or that lasts as long as the reviews of connections take. */
static struct {
    bool over;
    int64_t ns, each_ns;
    struct weir__post *put_off;
    char reviewed[64]; /* the numbers of those that were */
} turn;

static struct weir__server_loop at;
static struct weir__connection peers[PEERS];

bool __wrap_weir__loop_turn_over(const struct weir__loop *);
int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *);
void __wrap_weir__loop_put_off(struct weir__loop *, struct weir__post *);
void __wrap_weir__connection_review(struct weir__connection *);

bool __wrap_weir__loop_turn_over(const struct weir__loop *l)
{
    (void)l;
    return turn.over;
}

int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *l)
{
    (void)l;
    return turn.ns;
}

void __wrap_weir__loop_put_off(struct weir__loop *l, struct weir__post *p)
{
    (void)l;
    turn.put_off = p;
}

void __wrap_weir__connection_review(struct weir__connection *c)
{
    size_t len = strlen(turn.reviewed);

    turn.reviewed[len] = (char)('0' + (c - peers));
    turn.ns += turn.each_ns;
    weir__rights_review(c);
}

/* ---- one connection ---- */

static void claim(struct scene *s, const char *path, int64_t seconds)
{
    struct weir__claim c = {.rights = WEIR__RIGHT_SEND,
                            .expires_s = NOW_S + seconds,
                            .basis = weir__access_basis_of("one", "k1", false)};

    snprintf(c.path.text, sizeof c.path.text, "%s", path);
    assert_int_equal(weir__claims_add(&s->c.claims, &c, NOW_S, NULL), 0);
}

static void add_rule(struct scene *s)
{
    struct weir__rule rule = {.name = "one", .rights = WEIR__RIGHT_SEND, .key = {"k1", "k2"}};

    assert_int_equal(weir__namespace_rule_add(s->world.ns, NULL, &rule, NULL), 0);
}

static void remove_rule(struct scene *s)
{
    assert_int_equal(weir__namespace_rule_remove(s->world.ns, NULL, "one", NULL), 0);
    atomic_fetch_add(&s->server.rights, 1);
    weir__rights_review(&s->c);
}

static void open_links(struct scene *s, struct weir__amqp_link *links[LINKS])
{
    char name[16];

    memset(&turn, 0, sizeof turn);
    for (unsigned i = 0; i < LINKS; i++) {
        snprintf(name, sizeof name, "%u", i);
        links[i] = attach(s, WEIR__AMQP_SENDER, name, "eh1/Partitions/0", NULL,
                          (struct weir__amqp_terms){0});
    }
    assert_int_equal(atomic_load(&s->server.links), LINKS);
}

static void pass_at(struct scene *s, int64_t ms)
{
    s->world.time.wall_ms = NOW_S * 1000 + ms;
    weir__rights_pass(&s->c);
}

static unsigned barred(const struct scene *s)
{
    unsigned count = 0;

    for (const struct weir__duty *d = s->c.duties; d; d = d->next) count += d->barred;
    return count;
}

static void links_end_a_slice_a_turn(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *links[LINKS];

    claim(s, "eh1", 10);
    open_links(s, links);
    turn.over = true;
    pass_at(s, 10 * SECOND_MS);
    assert_int_equal(barred(s), SLICE);
    assert_true(weir__rights_pending(&s->c));
    pass_at(s, 10 * SECOND_MS);
    assert_int_equal(barred(s), 2 * SLICE);
    pass_at(s, 10 * SECOND_MS);
    assert_int_equal(barred(s), LINKS);
    assert_false(weir__rights_pending(&s->c));
    assert_int_equal(s->c.expires_s, INT64_MAX);
    talk(s);
    assert_int_equal(s->detached, LINKS);
}

static void links_end_at_once_when_there_is_time(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *links[LINKS];

    claim(s, "eh1", 10);
    open_links(s, links);
    pass_at(s, 10 * SECOND_MS);
    assert_int_equal(barred(s), LINKS);
    assert_false(weir__rights_pending(&s->c));
    talk(s);
}

static bool has_duty(const struct scene *s, const struct weir__duty *wanted)
{
    const struct weir__duty *d = s->c.duties;

    while (d && d != wanted) d = d->next;
    return d != NULL;
}

/* Also the one whose turn is next; and one that comes meanwhile has its own time. */
static void links_go_and_come_in_the_middle(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *links[LINKS];

    claim(s, "eh1", 10);
    open_links(s, links);
    turn.over = true;
    pass_at(s, 10 * SECOND_MS);
    for (unsigned i = 1; i < LINKS; i += 2) weir__amqp_detach(links[i], NULL);
    talk(s);
    assert_true(has_duty(s, s->c.walk.next));
    assert_true(atomic_load(&s->server.links) < LINKS);
    claim(s, "eh1/Partitions/1", 20);
    attach(s, WEIR__AMQP_SENDER, "late", "eh1/Partitions/1", NULL, (struct weir__amqp_terms){0});
    assert_int_equal(s->c.expires_s, NOW_S + 20);
    while (weir__rights_pending(&s->c)) pass_at(s, 10 * SECOND_MS);
    talk(s);
    assert_int_equal(atomic_load(&s->server.links), 1);
    pass_at(s, 20 * SECOND_MS);
    talk(s);
    assert_int_equal(atomic_load(&s->server.links), 0);
}

/* The claims are asked first, and no link that rests on one ends by mistake. */
static void a_rule_goes_in_the_middle(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *links[LINKS];
    char path[32];

    add_rule(s);
    for (unsigned i = 0; i < SLICE; i++) {
        snprintf(path, sizeof path, "other%u", i);
        claim(s, path, 10);
    }
    claim(s, "eh1", 20);
    open_links(s, links);
    s->c.expires_s = NOW_S + 10; /* as if one had been renewed */
    turn.over = true;
    pass_at(s, 10 * SECOND_MS);
    assert_int_equal(s->c.walk.step, WEIR__WALK_LINKS);
    remove_rule(s);
    assert_true(weir__rights_pending(&s->c));
    for (int i = 0; weir__rights_pending(&s->c); i++) {
        assert_true(i < 8);
        pass_at(s, 10 * SECOND_MS);
        assert_true(s->c.claims.count == 0 || barred(s) == 0);
    }
    assert_int_equal(barred(s), LINKS);
    talk(s);
    assert_int_equal(s->detached, LINKS);
    assert_non_null(strstr(s->text, "was removed or changed"));
}

/* Where nothing has run out, nobody looks a claim up. */
static void what_has_not_run_out_is_not_asked(void **state)
{
    struct scene *s = *state;
    struct weir__amqp_link *links[LINKS];
    uint64_t before;

    claim(s, "eh1", 20);
    open_links(s, links);
    claim(s, "eh1/Partitions/1", 10);
    attach(s, WEIR__AMQP_SENDER, "one", "eh1/Partitions/1", NULL, (struct weir__amqp_terms){0});
    before = WEIR__STEPS();
    pass_at(s, 10 * SECOND_MS);
    assert_true(WEIR__STEPS() - before < LINKS + 20);
    assert_int_equal(barred(s), 0); /* eh1 covers it */
}

/* ---- all connections of a loop ---- */

static void link_peers(struct scene *s)
{
    memset(&turn, 0, sizeof turn);
    memset(&at, 0, sizeof at);
    memset(peers, 0, sizeof peers);
    at.server = &s->server;
    s->server.at = &at;
    for (unsigned i = 0; i < PEERS; i++) {
        peers[i].server = &s->server;
        if (i + 1 < PEERS) peers[i].next = &peers[i + 1];
    }
    at.connections = &peers[0];
    weir__rights_watch(&s->server);
    weir__namespace_watch_rules(s->world.ns, NULL, NULL);
}

/* The next turn runs what was put off. */
static void expect_slice(const char *reviewed, bool more)
{
    struct weir__post *p = turn.put_off;

    turn.put_off = NULL;
    turn.ns = 0;
    memset(turn.reviewed, 0, sizeof turn.reviewed);
    p->fn(p->arg);
    assert_string_equal(turn.reviewed, reviewed);
    assert_int_equal(turn.put_off != NULL, more);
}

static void connections_are_reviewed_in_slices(void **state)
{
    struct scene *s = *state;

    link_peers(s);
    atomic_fetch_add(&s->server.rights, 1);
    turn.put_off = &at.review;
    turn.each_ns = WEIR__LOOP_TURN_NS / 2;
    expect_slice("01", true);
    expect_slice("23", true);
    expect_slice("4", false);
    turn.put_off = &at.review;
    expect_slice("", false);
}

/* A change in the middle: those who were reviewed are reviewed again, behind the others. */
static void no_change_is_lost(void **state)
{
    struct scene *s = *state;

    link_peers(s);
    atomic_fetch_add(&s->server.rights, 1);
    turn.put_off = &at.review;
    turn.each_ns = WEIR__LOOP_TURN_NS / 2;
    expect_slice("01", true);
    atomic_fetch_add(&s->server.rights, 1);
    expect_slice("23", true);
    expect_slice("4", true);
    expect_slice("01", true);
    expect_slice("", false);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(links_end_a_slice_a_turn),
        TEST(links_end_at_once_when_there_is_time),
        TEST(links_go_and_come_in_the_middle),
        TEST(a_rule_goes_in_the_middle),
        TEST(what_has_not_run_out_is_not_asked),
        TEST(connections_are_reviewed_in_slices),
        TEST(no_change_is_lost),
    };

    return cmocka_run_group_tests_name("review", tests, NULL, NULL);
}
