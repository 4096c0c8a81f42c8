/* share_test.c - how much of each kind of work a loop does in one turn, and who must be gone before
 * it stops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "io/state.h"

#define PATIENCE_MS 20000
#define TIMERS_PER_TURN 1024
#define MOST                                                                                       \
    (TIMERS_PER_TURN > WEIR__LOOP_POSTS_PER_TURN ? TIMERS_PER_TURN : WEIR__LOOP_POSTS_PER_TURN)

struct work {
    struct weir__loop *loop;
    struct weir__post plan, posts[MOST + 1];
    struct weir__timer timers[MOST + 1];
    unsigned ran, wanted;
    unsigned seen[8], turns; /* what had run at the ends of turns, where it changed */

    struct weir__mutex lock; /* guards the rest */
    struct weir__cond changed;
    bool done;
};

/* Time is the test's: each thing that runs takes so long, and a turn begins with nothing. */
static int64_t lasts_ns, turn_ns;

int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *);

int64_t __wrap_weir__loop_turn_ns(const struct weir__loop *l)
{
    (void)l;
    return turn_ns;
}

static void count(void *arg)
{
    ((struct work *)arg)->ran++;
    turn_ns += lasts_ns;
}

static void on_turn(void *user, struct weir__loop *l)
{
    struct work *w = user;
    unsigned last = w->turns ? w->seen[w->turns - 1] : 0;

    (void)l;
    turn_ns = 0; /* no more is to come in this turn, but for what was deferred */
    if (w->ran == last || w->turns == 8) return;
    w->seen[w->turns++] = w->ran;
    if (w->ran < w->wanted) return;
    weir__mutex_lock(&w->lock);
    w->done = true;
    weir__cond_signal(&w->changed);
    weir__mutex_unlock(&w->lock);
}

/* Until as much has run as the plan wants. */
static void carry_out(struct work *w, void (*plan)(void *))
{
    struct weir__loops_options o = {.count = 1, .turn = on_turn, .user = w};
    struct weir__loops *all;

    weir__mutex_init(&w->lock);
    weir__cond_init(&w->changed);
    assert_int_equal(weir__loops_start(&all, &o, NULL), 0);
    weir__post_init(&w->plan, plan, w);
    w->loop = weir__loops_at(all, 0);
    assert_int_equal(weir__loop_post(w->loop, &w->plan), 0);
    weir__mutex_lock(&w->lock);
    while (!w->done)
        assert_true(weir__cond_wait(&w->changed, &w->lock, weir__deadline_ns(PATIENCE_MS)));
    weir__mutex_unlock(&w->lock);
    weir__loops_free(all);
    weir__cond_fini(&w->changed);
    weir__mutex_fini(&w->lock);
}

static void post_many(void *arg)
{
    struct work *w = arg;

    w->wanted = WEIR__LOOP_POSTS_PER_TURN;
    for (unsigned i = 0; i < w->wanted; i++) {
        weir__post_init(&w->posts[i], count, w);
        weir__loop_post(w->loop, &w->posts[i]);
    }
}

static void start_many(void *arg)
{
    struct work *w = arg;

    w->wanted = TIMERS_PER_TURN + 1;
    for (unsigned i = 0; i < w->wanted; i++) {
        weir__timer_init(&w->timers[i], count, w);
        weir__loop_timer_start(w->loop, &w->timers[i], weir__loop_now_ms(w->loop));
    }
}

static void again(void *arg)
{
    struct work *w = arg;

    if (++w->ran == w->wanted) weir__loop_post(w->loop, &w->plan); /* for one more turn */
    if (w->ran > w->wanted - 2) return;
    for (unsigned i = 0; i < 2; i++) weir__loop_defer(w->loop, &w->posts[i]);
}

static void defer_two(void *arg)
{
    struct work *w = arg;

    w->wanted = 2 * WEIR__LOOP_FLUSHES_PER_TURN + 2;
    if (w->ran) return;
    for (unsigned i = 0; i < 2; i++) {
        weir__post_init(&w->posts[i], again, w);
        weir__loop_defer(w->loop, &w->posts[i]);
    }
}

/* The plan itself is a post, too. */
static void a_turn_does_its_share_and_the_next_the_rest(void **state)
{
    static const struct {
        void (*plan)(void *);
        unsigned first, second;
    } rows[] = {
        {post_many, WEIR__LOOP_POSTS_PER_TURN - 1, WEIR__LOOP_POSTS_PER_TURN},
        {start_many, TIMERS_PER_TURN, TIMERS_PER_TURN + 1},
        {defer_two, 2 * WEIR__LOOP_FLUSHES_PER_TURN, 2 * WEIR__LOOP_FLUSHES_PER_TURN + 2},
    };
    static struct work w;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        w = (struct work){.ran = 0};
        carry_out(&w, rows[i].plan);
        assert_int_equal(w.seen[0], rows[i].first);
        assert_int_equal(w.seen[1], rows[i].second);
    }
}

#define FEW 8

static void post_few(void *arg)
{
    struct work *w = arg;

    w->wanted = FEW;
    for (unsigned i = 0; i < FEW; i++) {
        weir__post_init(&w->posts[i], count, w);
        weir__loop_post(w->loop, &w->posts[i]);
    }
}

static void start_few(void *arg)
{
    struct work *w = arg;

    w->wanted = FEW;
    for (unsigned i = 0; i < FEW; i++) {
        weir__timer_init(&w->timers[i], count, w);
        weir__loop_timer_start(w->loop, &w->timers[i], weir__loop_now_ms(w->loop));
    }
}

static void put_off_few(void *arg)
{
    struct work *w = arg;

    w->wanted = FEW;
    for (unsigned i = 0; i < FEW; i++) {
        weir__post_init(&w->posts[i], count, w);
        weir__loop_put_off(w->loop, &w->posts[i]);
    }
}

static void keep_awake(void *arg)
{
    struct work *w = arg;

    if (w->ran < w->wanted) weir__loop_post(w->loop, &w->plan); /* or no turn would see it */
}

static void defer_few(void *arg)
{
    struct work *w = arg;

    w->wanted = FEW;
    for (unsigned i = 0; i < FEW; i++) {
        weir__post_init(&w->posts[i], count, w);
        weir__loop_defer(w->loop, &w->posts[i]);
    }
    weir__post_init(&w->plan, keep_awake, w);
    weir__loop_post(w->loop, &w->plan);
}

/* What takes long has a part of each turn, and the rest waits for the next; one thing is always done. */
static void each_part_of_a_turn_has_its_time(void **state)
{
    static void (*const plans[])(void *) = {post_few, start_few, put_off_few, defer_few};
    static const struct {
        int64_t ns;
        unsigned each;
    } rows[] = {
        {WEIR__LOOP_TURN_NS, 1},
        {WEIR__LOOP_TURN_NS - 1, 2},
        {WEIR__LOOP_TURN_NS / 3, 4},
        {WEIR__LOOP_TURN_NS / FEW, FEW},
    };
    static struct work w;

    (void)state;
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++)
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            w = (struct work){.ran = 0};
            lasts_ns = rows[k].ns;
            turn_ns = 0;
            carry_out(&w, plans[i]);
            lasts_ns = turn_ns = 0;
            for (unsigned t = 0; t < FEW / rows[k].each; t++)
                assert_int_equal(w.seen[t], (t + 1) * rows[k].each);
        }
}

static void set_for_never(void *arg)
{
    struct work *w = arg;

    weir__timer_init(&w->timers[0], count, w);
    weir__loop_timer_start(w->loop, &w->timers[0], weir__loop_now_ms(w->loop) + 1000000);
    weir__loop_timer_start(w->loop, &w->timers[0], INT64_MAX);
    w->wanted = w->ran = w->timers[0].running ? 2 : 1;
}

static void a_timer_for_never_does_not_run(void **state)
{
    static struct work w;

    (void)state;
    carry_out(&w, set_for_never);
    assert_int_equal(w.ran, 1);
}

static void check_residents(const struct weir__loop *l, struct weir__resident *const *list)
{
    struct weir__resident *prev = NULL, *r = l->residents;

    for (; *list; prev = r, r = r->next, list++) {
        assert_ptr_equal(r, *list);
        assert_ptr_equal(r->prev, prev);
    }
    assert_null(r);
}

#define CHECK(...) check_residents(&l, (struct weir__resident *const[]){__VA_ARGS__ NULL})

static void residents_leave_from_any_place(void **state)
{
    struct weir__resident a = {0}, b = {0}, c = {0};
    struct weir__loop l = {.residents = NULL};

    (void)state;
    weir__loop_leave(&l, &a);
    weir__loop_enter(&l, &a);
    weir__loop_enter(&l, &b);
    weir__loop_enter(&l, &c);
    CHECK(&c, &b, &a, );
    weir__loop_leave(&l, &b);
    weir__loop_leave(&l, &b);
    CHECK(&c, &a, );
    weir__loop_leave(&l, &c);
    weir__loop_enter(&l, &b);
    weir__loop_leave(&l, &c); /* has left already */
    CHECK(&b, &a, );
    weir__loop_leave(&l, &a);
    CHECK(&b, );
    weir__loop_leave(&l, &b);
    assert_null(l.residents);
}

/* One that goes when it is asked for the third time, and may post until then. */
struct guest {
    struct weir__post arrive, word;
    unsigned words;
    struct weir__loop *loop;
    struct weir__resident resident;
    unsigned asked;
};

static void hear(void *arg)
{
    ((struct guest *)arg)->words++;
}

static void ask(void *arg)
{
    struct guest *g = arg;

    if (++g->asked == 3)
        weir__loop_leave(g->loop, &g->resident);
    else
        weir__loop_post(g->loop, &g->word);
}

static void arrive(void *arg)
{
    struct guest *g = arg;

    weir__loop_enter(g->loop, &g->resident);
}

static void a_loop_stops_when_the_last_has_left(void **state)
{
    struct weir__loops_options one = {.count = 1};
    struct guest guests[2] = {{.asked = 0}};
    struct weir__loops *all;

    (void)state;
    assert_int_equal(weir__loops_start(&all, &one, NULL), 0);
    for (int i = 0; i < 2; i++) {
        guests[i].loop = weir__loops_at(all, 0);
        guests[i].resident = (struct weir__resident){.evict = ask, .arg = &guests[i]};
        guests[i].asked = (unsigned)i; /* it goes earlier */
        weir__post_init(&guests[i].word, hear, &guests[i]);
        weir__post_init(&guests[i].arrive, arrive, &guests[i]);
        assert_int_equal(weir__loop_post(guests[i].loop, &guests[i].arrive), 0);
    }
    weir__loops_stop(all);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(guests[i].asked, 3);
        assert_int_equal(guests[i].words, 2 - i);
    }
    assert_null(weir__loops_at(all, 0)->residents);
    weir__loops_free(all);
}

static void too_many_loops_are_refused(void **state)
{
    struct weir__loops_options o = {.count = WEIR__LOOPS_MAX + 1};
    struct weir__loops *all;
    struct weir_error err;

    (void)state;
    assert_int_equal(weir__loops_start(&all, &o, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "257 loops, at most 256");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_does_its_share_and_the_next_the_rest),
        cmocka_unit_test(each_part_of_a_turn_has_its_time),
        cmocka_unit_test(a_timer_for_never_does_not_run),
        cmocka_unit_test(residents_leave_from_any_place),
        cmocka_unit_test(a_loop_stops_when_the_last_has_left),
        cmocka_unit_test(too_many_loops_are_refused),
    };

    return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
