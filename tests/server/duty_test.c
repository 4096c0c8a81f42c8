/* duty_test.c - the duties of a connection: which there are, and whose turn it is. They are those of
 * $management, whose turns are written down instead of used. */
#include <poll.h>

#include "server/links.h"

#define TURN_MAX 128 /* duties of a connection that have news, in one turn of the loop */
#define MANY (TURN_MAX + 2)
#define PATIENCE_MS 20000

static char turns[2 * MANY]; /* the first letters of their names */
static const struct weir__duty_calls *real;

static void note_turn(struct weir__duty *d)
{
    size_t len = strlen(turns);

    assert_true(len < sizeof turns - 1);
    turns[len] = (char)*weir__amqp_link_name(d->link).at;
    turns[len + 1] = '\0';
}

static void gone(struct weir__duty *d)
{
    real->gone(d);
}

static const struct weir__duty_calls noted = {.pump = note_turn, .gone = gone};

struct pair {
    struct weir__amqp_link *link; /* the client's */
    struct weir__duty *duty;
};

static struct pair open_one(struct scene *s, const char *name)
{
    struct pair p;

    p.link = attach(s, WEIR__AMQP_SENDER, name, "$management", NULL, (struct weir__amqp_terms){0});
    p.duty = s->c.duties;
    real = p.duty->calls;
    p.duty->calls = &noted;
    turns[0] = '\0';
    return p;
}

/* "a", "b" and so on. */
static void open_some(struct scene *s, struct pair *to, int count)
{
    for (int i = 0; i < count; i++) to[i] = open_one(s, (char[]){(char)('a' + i), 0});
}

static void expect_turns(const char *names)
{
    assert_string_equal(turns, names);
    turns[0] = '\0';
}

/* The newest first, and the same way back. */
static void expect_duties(struct scene *s, const char *names)
{
    const struct weir__duty *prev = NULL;
    char found[8] = "";
    size_t len = 0;

    for (const struct weir__duty *d = s->c.duties; d; prev = d, d = d->next) {
        assert_true(len < sizeof found - 1);
        assert_ptr_equal(d->prev, prev);
        found[len++] = (char)*weir__amqp_link_name(d->link).at;
    }
    assert_string_equal(found, names);
    assert_int_equal(atomic_load(&s->server.links), len);
}

static const char *const orders[] = {"abc", "acb", "bac", "bca", "cab", "cba"};

#define ORDERS (sizeof orders / sizeof orders[0])

/* The letters of `all` that are not among the first `count` of `gone`. */
static const char *without(const char *all, const char *gone_ones, size_t count)
{
    static char left[8];
    size_t len = 0;

    for (; *all; all++)
        if (!memchr(gone_ones, *all, count)) left[len++] = *all;
    left[len] = '\0';
    return left;
}

static void a_duty_may_go_from_anywhere(void **state)
{
    struct scene *s = *state;
    struct pair p[3];

    for (size_t i = 0; i < ORDERS; i++) {
        open_some(s, p, 3);
        expect_duties(s, "cba");
        for (size_t k = 0; k < 3; k++) {
            weir__amqp_detach(p[orders[i][k] - 'a'].link, NULL);
            talk(s);
            expect_duties(s, without("cba", orders[i], k + 1));
        }
    }
}

/* ---- those with news ---- */

static void who_has_news_has_one_turn(void **state)
{
    struct scene *s = *state;
    struct pair p[3];

    open_some(s, p, 3);
    for (int i = 0; i < 2; i++) {
        weir__duty_wake(p[1].duty);
        weir__duty_wake(p[0].duty);
        weir__duty_wake(p[1].duty);
        weir__duty_wake(p[2].duty);
        weir__duty_take_ready(&s->c);
        expect_turns("bac");
        weir__duty_take_ready(&s->c);
        expect_turns("");
    }
}

/* Any of them can be taken back: the others keep their order, and the next one is the last. */
static void news_may_be_taken_back(void **state)
{
    struct scene *s = *state;
    struct pair p[4];

    open_some(s, p, 4);
    for (size_t i = 0; i < ORDERS * 4; i++) {
        const char *order = orders[i / 4];
        for (int k = 0; k < 3; k++) weir__duty_wake(p[k].duty);
        for (size_t k = 0; k < i % 4; k++) weir__duty_unready(p[order[k] - 'a'].duty);
        if (i % 4) weir__duty_unready(p[order[0] - 'a'].duty); /* again, for nothing */
        weir__duty_wake(p[3].duty);
        weir__duty_take_ready(&s->c);
        expect_turns(without("abcd", order, i % 4));
    }
}

static void who_goes_with_news_has_no_turn(void **state)
{
    struct scene *s = *state;
    struct pair p[3];

    open_some(s, p, 3);
    for (int i = 0; i < 3; i++) weir__duty_wake(p[i].duty);
    p[1].duty->calls->gone(p[1].duty);
    weir__duty_take_ready(&s->c);
    expect_turns("ac");
    expect_duties(s, "ca");
}

static struct {
    struct scene *scene;
    atomic_uint done, visits;
} loop;

static void take_ready(void *arg)
{
    (void)arg;
    weir__duty_take_ready(&loop.scene->c);
    atomic_fetch_add(&loop.done, 1);
}

static void count_visit(void *arg)
{
    (void)arg;
    atomic_fetch_add(&loop.visits, 1);
}

static void take_ready_there(struct weir__post *post)
{
    unsigned before = atomic_load(&loop.done);

    assert_int_equal(weir__loop_post(loop.scene->c.loop, post), 0);
    for (int waited = 0; atomic_load(&loop.done) == before; waited++) {
        assert_true(waited < PATIENCE_MS);
        poll(NULL, 0, 1);
    }
}

/* The rest of many comes when the loop has looked after its other connections. */
static void many_with_news_take_two_turns(void **state)
{
    char name[8], many[MANY + 1] = "";
    struct weir__post post;
    struct weir__duty *d;

    loop.scene = *state;
    atomic_store(&loop.done, 0);
    atomic_store(&loop.visits, 0);
    weir__post_init(&post, take_ready, NULL);
    weir__post_init(&loop.scene->c.visit, count_visit, NULL);
    for (int i = 0; i < MANY; i++) {
        many[i] = (char)('a' + i % 26);
        snprintf(name, sizeof name, "%c%d", many[i], i);
        open_one(loop.scene, name);
    }
    for (d = loop.scene->c.duties; d->next; d = d->next) continue;
    for (; d; d = d->prev) weir__duty_wake(d); /* in the order in which they came */
    take_ready_there(&post);
    assert_int_equal(strlen(turns), TURN_MAX);
    take_ready_there(&post);
    expect_turns(many);
    weir__loops_stop(loop.scene->server.loops); /* which does what was left */
    assert_int_equal(atomic_load(&loop.visits), 1);
}

/* ---- all of them, or some ---- */

static void everybody_is_the_first_once(void **state)
{
    static const char *const rounds[] = {"cba", "bac", "acb", "cba"};
    struct scene *s = *state;
    struct pair p[3];

    weir__duty_pump_all(&s->c);
    expect_turns("");
    open_some(s, p, 3);
    for (int i = 0; i < 4; i++) {
        weir__duty_pump_all(&s->c);
        expect_turns(rounds[i]);
    }
}

static void who_has_no_link_or_no_turns_is_left_alone(void **state)
{
    static const struct weir__duty_calls idle = {.gone = gone};
    struct scene *s = *state;
    struct pair p = open_one(s, "a");
    struct weir__amqp_link *link = p.duty->link;

    p.duty->link = NULL;
    weir__duty_pump(p.duty);
    p.duty->link = link;
    expect_turns("");
    p.duty->calls = &idle;
    weir__duty_pump(p.duty);
    expect_turns("");
    p.duty->calls = &noted;
    weir__duty_pump(p.duty);
    expect_turns("a");
}

/* A flow is about one link, or about all of its session; a link without a duty has nothing to do. */
static void a_flow_is_for_its_own(void **state)
{
    struct scene *s = *state;
    struct pair a = open_one(s, "a"), b;
    struct weir__amqp_event ev = {.type = WEIR__AMQP_EVENT_FLOW};

    assert_int_equal(weir__amqp_begin(s->client, &s->session, NULL), 0);
    b = open_one(s, "b");
    ev.session = weir__amqp_link_session(b.duty->link);
    assert_true(weir__connection_on_event(&s->c, &ev));
    expect_turns("b");
    open_one(s, "b");
    assert_true(weir__connection_on_event(&s->c, &ev));
    expect_turns("bb");
    ev.link = b.duty->link;
    assert_true(weir__connection_on_event(&s->c, &ev));
    expect_turns("b");
    weir__amqp_link_set_user(b.duty->link, NULL);
    assert_true(weir__connection_on_event(&s->c, &ev));
    expect_turns("");
    ev.link = NULL;
    assert_true(weir__connection_on_event(&s->c, &ev));
    expect_turns("b"); /* the other one */
    weir__amqp_link_set_user(b.duty->link, b.duty);
    ev.session = weir__amqp_link_session(a.duty->link);
    assert_true(weir__connection_on_event(&s->c, &ev));
    expect_turns("a");
}

/* ---- what they ask for ---- */

static struct weir__amqp_value list_of(struct weir__amqp_value first,
                                       struct weir__amqp_value second, uint8_t space[128])
{
    struct weir__amqp_value out;
    struct weir__amqp_cursor at;
    struct weir__amqp_writer w;
    struct weir__bytes bytes;
    size_t mark;

    weir__amqp_writer_init(&w, space, 128);
    mark = weir__amqp_put_open(&w);
    weir__amqp_put(&w, first);
    weir__amqp_put(&w, second);
    weir__amqp_put_close(&w, mark, WEIR__AMQP_LIST, 2);
    assert_int_equal(weir__amqp_writer_finish(&w, &bytes, NULL), 0);
    at = weir__amqp_cursor_of(bytes);
    assert_true(weir__amqp_read(&at, &out));
    return out;
}

static void what_an_attach_desires(void **state)
{
    uint8_t space[5][128];
    const struct {
        struct weir__amqp_value desired;
        bool is_there;
    } rows[] = {
        {symbol("cap"), true},
        {symbol("ca"), false},
        {symbol("cap1"), false},
        {symbol("cab"), false},
        {text_of("cap"), false},
        {(struct weir__amqp_value){0}, false},
        {symbols("cap", "x", space[0]), true},
        {symbols("x", "cap", space[1]), true},
        {symbols("ca", "p", space[2]), false},
        {list_of(text_of("cap"), symbol("cap"), space[3]), true},
        {list_of(text_of("cap"), symbol("caps"), space[4]), false},
    };
    struct weir__amqp_composite attach_fields;
    const struct weir__amqp_event ev = {.fields = &attach_fields};

    (void)state;
    weir__amqp_composite_init(&attach_fields, WEIR__AMQP_ATTACH);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        attach_fields.attach.desired_capabilities = rows[i].desired;
        if (weir__duty_desires(&ev, "cap") != rows[i].is_there) fail_msg("row %zu", i);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_duty_may_go_from_anywhere),
        TEST(who_has_news_has_one_turn),
        TEST(news_may_be_taken_back),
        TEST(who_goes_with_news_has_no_turn),
        TEST(many_with_news_take_two_turns),
        TEST(everybody_is_the_first_once),
        TEST(who_has_no_link_or_no_turns_is_left_alone),
        TEST(a_flow_is_for_its_own),
        TEST(what_an_attach_desires),
    };

    return cmocka_run_group_tests_name("duty", tests, NULL, NULL);
}
