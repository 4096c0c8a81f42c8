/* threads_test.c - how many threads a copy has for its handlers: as many as it was told, or as there
 * are processors that it may use; and that the others sleep when there is nothing to do. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "processor/fleet.h"

#define FEWEST 2      /* so that one handler that takes its time does not stop all */
#define IDLE_CALLS 20 /* of the store, one or two per beat */

static bool is_worker(const char *task)
{
    char path[512], name[32] = "";
    FILE *f;

    snprintf(path, sizeof path, "/proc/self/task/%s/comm", task);
    f = fopen(path, "r");
    if (!f) return false; /* it has just ended */
    if (!fgets(name, sizeof name, f)) name[0] = '\0';
    fclose(f);
    return strcmp(name, "weir-worker\n") == 0;
}

static int count_workers(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *task;
    int count = 0;

    assert_non_null(tasks);
    while ((task = readdir(tasks))) count += is_worker(task->d_name);
    closedir(tasks);
    return count;
}

static int workers_of(struct fleet *f, int threads)
{
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);
    int count;

    o.threads = threads;
    copy_start_with(&a, f, &o);
    count = count_workers();
    copy_stop(&a);
    assert_int_equal(count_workers(), 0);
    return count;
}

static void there_are_as_many_as_it_was_told(void **state)
{
    struct fleet *f = fleet_new(1);

    (void)state;
    assert_int_equal(workers_of(f, 1), 1);
    assert_int_equal(workers_of(f, 3), 3);
    assert_int_equal(workers_of(f, -1), 0);
    fleet_free(f);
}

static void else_as_many_as_processors(void **state)
{
    struct fleet *f = fleet_new(1);
    cpu_set_t all, one;
    size_t first = 0;
    int cores;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    cores = CPU_COUNT(&all);
    assert_int_equal(workers_of(f, 0), cores > FEWEST ? cores : FEWEST);
    while (!CPU_ISSET(first, &all)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(workers_of(f, 0), FEWEST);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    fleet_free(f);
}

/* Nobody else would look after what it leaves. */
static void one_thread_does_everything(void **state)
{
    struct fleet *f = fleet_new(3);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);

    (void)state;
    o.threads = 1;
    publish_all(f, 10);
    copy_start_with(&a, f, &o);
    fleet_await(f, f->total == 30);
    publish_all(f, 10);
    fleet_await(f, f->total == 60);
    copy_stop(&a);
    for (uint32_t i = 0; i < 3; i++) assert_given(f, i, 0, 20, 1);
    assert_orderly(f);
    fleet_free(f);
}

static uint64_t calls_of(const struct copy *c)
{
    struct weir_processor_stats stats;

    weir_processor_stats(c->processor, &stats);
    return stats.store_calls;
}

static int64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* From one beat to the next, the driver included. */
static void an_idle_copy_sleeps(void **state)
{
    struct fleet *f = fleet_new(1);
    struct copy a = {0};
    struct weir_processor_options o = copy_options(&a);
    int64_t began_ns, used_ns;
    uint64_t calls;

    (void)state;
    o.threads = 1;
    copy_start_with(&a, f, &o);
    fleet_await(f, f->opens == 1);
    calls = calls_of(&a);
    began_ns = weir__mono_ns();
    used_ns = cpu_ns();
    fleet_await(f, calls_of(&a) >= calls + IDLE_CALLS);
    used_ns = cpu_ns() - used_ns;
    assert_true(used_ns * 5 < (weir__mono_ns() - began_ns) * 2); /* less than 40 % */
    copy_stop(&a);
    fleet_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_are_as_many_as_it_was_told),
        cmocka_unit_test(else_as_many_as_processors),
        cmocka_unit_test(one_thread_does_everything),
        cmocka_unit_test(an_idle_copy_sleeps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
