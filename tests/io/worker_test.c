#include "io/worker.h"

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define POSTS 100

struct diary {
    struct weir__worker *worker;
    struct weir__post posts[POSTS];
    int order[POSTS];
    int count;
};

static struct diary diary;

/* Which post it is tells its place in the row. */
static void note(void *arg)
{
    struct weir__post *post = arg;

    diary.order[diary.count++] = (int)(post - diary.posts);
}

static void runs_all_in_order_before_it_stops(void **state)
{
    struct weir__post late;

    (void)state;
    for (int i = 0; i < POSTS; i++) weir__post_init(&diary.posts[i], note, &diary.posts[i]);
    weir__post_init(&late, note, &late);
    assert_int_equal(weir__worker_start(&diary.worker, "test", NULL), 0);
    for (int i = 0; i < POSTS; i++)
        assert_int_equal(weir__worker_post(diary.worker, &diary.posts[i]), 0);
    weir__worker_stop(diary.worker);
    assert_int_equal(diary.count, POSTS);
    for (int i = 0; i < POSTS; i++) assert_int_equal(diary.order[i], i);
    assert_int_equal(weir__worker_post(diary.worker, &late), WEIR_ECLOSED);
    weir__worker_stop(diary.worker);
    weir__worker_free(diary.worker);
}

static void say_done(void *done)
{
    sem_post(done);
}

/* Mostly it sleeps when the next one comes, and when it is freed. */
static void each_post_wakes_it(void **state)
{
    struct weir__worker *worker;
    struct weir__post post;
    sem_t done;

    (void)state;
    assert_int_equal(sem_init(&done, 0, 0), 0);
    weir__post_init(&post, say_done, &done);
    assert_int_equal(weir__worker_start(&worker, "test", NULL), 0);
    for (int i = 0; i < POSTS; i++) {
        assert_int_equal(weir__worker_post(worker, &post), 0);
        while (sem_wait(&done) != 0) continue;
    }
    weir__worker_free(worker);
    sem_destroy(&done);
}

static void nothing_is_stopped_too(void **state)
{
    (void)state;
    weir__worker_stop(NULL);
    weir__worker_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_all_in_order_before_it_stops),
        cmocka_unit_test(each_post_wakes_it),
        cmocka_unit_test(nothing_is_stopped_too),
    };

    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
