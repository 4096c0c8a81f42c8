/* metrics_test.c - what /metrics says of a namespace and a server whose state is known. */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/question.h"
#include "support/allocs.h"

#define FLUSH "weir_hub_flush_seconds"
#define TURN "weir_loop_turn_seconds"

struct dirent *__real_readdir(DIR *dir);
struct dirent *__wrap_readdir(DIR *dir);

void __real_weir__hub_stats(struct weir__hub *hub, struct weir__hub_stats *out);
void __wrap_weir__hub_stats(struct weir__hub *hub, struct weir__hub_stats *out);

static char page[128 << 10];
static unsigned entries = UINT_MAX; /* that a folder has left to show */
static bool counts;                 /* a bucket of flushes has its place in the row */

void __wrap_weir__hub_stats(struct weir__hub *hub, struct weir__hub_stats *out)
{
    __real_weir__hub_stats(hub, out);
    for (unsigned i = 0; counts && i < WEIR__LOG_FLUSH_BUCKETS; i++)
        out->log.flush_buckets[i] = i + 1;
}

struct dirent *__wrap_readdir(DIR *dir)
{
    if (entries == 0) return NULL;
    if (entries != UINT_MAX) entries--;
    return __real_readdir(dir);
}

static int set_up_server(void **state)
{
    struct scene *s;
    int rc = set_up(state);

    s = *state;
    weir__mutex_init(&s->server.lock);
    weir__budget_init(&s->server.budget, &(struct weir__budget_limits){1 << 20, 1 << 16, 4});
    assert_int_equal(weir__loops_start(&s->server.loops, &(struct weir__loops_options){.count = 1},
                                       NULL),
                     0);
    return rc;
}

static int tear_down_server(void **state)
{
    struct scene *s = *state;

    weir__loops_free(s->server.loops);
    weir__budget_fini(&s->server.budget);
    weir__mutex_fini(&s->server.lock);
    return tear_down(state);
}

static void look(struct scene *s)
{
    const struct weir__answer *a = &s->visit.answer;

    assert_int_equal(ask(s, &(struct question){.answer = weir__metrics_answer}), 200);
    assert_string_equal(a->type, "text/plain; version=0.0.4; charset=utf-8");
    assert_true(a->body.len < sizeof page);
    snprintf(page, sizeof page, "\n%.*s", (int)a->body.len, (const char *)a->body.at);
}

/* What stands behind "name " on a line of its own. */
static const char *value_of(const char *name)
{
    static char value[64];
    char line[256];
    const char *at;

    snprintf(line, sizeof line, "\n%s ", name);
    at = strstr(page, line);
    if (!at) fail_msg("no %s in %s", name, page);
    at += strlen(line);
    snprintf(value, sizeof value, "%.*s", (int)strcspn(at, "\n"), at);
    return value;
}

static void expect_number(const char *name, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof text, "%" PRIu64, value);
    if (strcmp(value_of(name), text) != 0) fail_msg("%s is %s, not %s", name, value_of(name), text);
}

static void expect_of_hub(const char *name, const char *hub, uint64_t value)
{
    char text[128];

    snprintf(text, sizeof text, "%s{hub=\"%s\"}", name, hub);
    expect_number(text, value);
}

/* ---- hubs ---- */

static void publish(struct scene *s, const char *name, int batches)
{
    struct weir__hub *hub;

    assert_int_equal(weir__namespace_use(s->world.ns, name, &hub, NULL), 0);
    for (int i = 0; i < batches; i++)
        assert_int_equal(world_publish(&s->world, hub, 0, "event", 3, NULL), 0);
    weir__hub_release(hub);
}

/* The buckets of one hub, which count what is below them, too: the last is the count. */
static void expect_buckets(const char *hub, uint64_t count)
{
    static const char *const bounds[] = {
        "6.4e-05",  "0.000128", "0.000256", "0.000512", "0.001024", "0.002048",
        "0.004096", "0.008192", "0.016384", "0.032768", "0.065536", "0.131072",
        "0.262144", "0.524288", "1.048576", "2.097152", "+Inf",
    };
    uint64_t last = 0, here;
    char name[128];

    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        snprintf(name, sizeof name, FLUSH "_bucket{hub=\"%s\",le=\"%s\"}", hub, bounds[i]);
        here = strtoull(value_of(name), NULL, 10);
        assert_true(here >= last);
        last = here;
    }
    assert_int_equal(last, count);
    expect_of_hub(FLUSH "_count", hub, count);
}

static void expect_sum(const char *hub, uint64_t ns)
{
    char name[128], text[64];

    snprintf(name, sizeof name, FLUSH "_sum{hub=\"%s\"}", hub);
    snprintf(text, sizeof text, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
    assert_string_equal(value_of(name), text);
}

/* More than there was room for at first. */
static void each_hub_has_its_own_numbers(void **state)
{
    struct scene *s = *state;
    char name[16];

    for (int i = 0; i < 10; i++) {
        struct weir__hub_stats stats;
        struct weir__hub *hub;
        snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(world_create(&s->world, name, 1), 0);
        publish(s, name, i);
        assert_int_equal(weir__namespace_use(s->world.ns, name, &hub, NULL), 0);
        weir__hub_stats(hub, &stats);
        weir__hub_release(hub);
        look(s);
        expect_of_hub("weir_hub_events_in_total", name, 3u * (unsigned)i);
        expect_of_hub("weir_hub_batches_in_total", name, (unsigned)i);
        expect_of_hub("weir_hub_bytes_in_total", name, stats.log.bytes);
        expect_of_hub("weir_hub_log_bytes", name, stats.log.log_bytes);
        expect_of_hub("weir_hub_up", name, 1);
        expect_buckets(name, (unsigned)i);
        expect_sum(name, stats.log.flush_ns);
    }
}

/* However long it took, it is counted: once in each bucket above, and in the one without a bound. */
static void each_flush_is_counted(void **state)
{
    const unsigned last = WEIR__LOG_FLUSH_BUCKETS, all = last * (last + 1) / 2;
    struct scene *s = *state;
    unsigned lines = 0;

    assert_int_equal(world_create(&s->world, "h", 1), 0);
    counts = true;
    look(s);
    counts = false;
    expect_buckets("h", all);
    expect_number(FLUSH "_bucket{hub=\"h\",le=\"6.4e-05\"}", 1);
    expect_number(FLUSH "_bucket{hub=\"h\",le=\"0.000128\"}", 3);
    expect_number(FLUSH "_bucket{hub=\"h\",le=\"2.097152\"}", all - last);
    for (const char *at = page; (at = strstr(at, "\n" FLUSH "_bucket{")) != NULL; at++) lines++;
    assert_int_equal(lines, last);
}

/* A disk that does not keep what it was given stops a log for good. */
static void a_hub_that_has_stopped_is_down(void **state)
{
    struct simfs_fault fault = {.kinds = SIMFS_SYNC, .at = 1, .rc = WEIR_EIO};
    struct scene *s = *state;
    struct weir__hub *hub;

    assert_int_equal(world_create(&s->world, "good", 1), 0);
    assert_int_equal(world_create(&s->world, "bad", 1), 0);
    publish(s, "good", 1);
    assert_int_equal(weir__namespace_use(s->world.ns, "bad", &hub, NULL), 0);
    simfs_fail(s->world.disk, &fault);
    assert_int_not_equal(world_publish(&s->world, hub, 0, "event", 1, NULL), 0);
    weir__hub_release(hub);
    look(s);
    expect_of_hub("weir_hub_up", "good", 1);
    expect_of_hub("weir_hub_up", "bad", 0);
}

/* For their names, or for their numbers. */
static void without_memory_no_numbers_are_told(void **state)
{
    static const char text[] = "{\"code\":503,\"detail\":\"There is no memory for all hubs.\"}\n";
    struct scene *s = *state;
    const struct weir__answer *a = &s->visit.answer;

    assert_int_equal(world_create(&s->world, "h", 1), 0);
    for (uint64_t at = 1; at <= 2; at++) {
        look(s);
        allocs_fail(at);
        assert_true(weir__metrics_answer(&s->visit));
        assert_true(allocs_failed());
        allocs_fail(0);
        assert_int_equal(a->status, 503);
        assert_int_equal(a->body.len, strlen(text));
        assert_memory_equal(a->body.at, text, a->body.len);
    }
}

/* Every number of it is 0, whatever lay in the memory before. */
static void a_hub_that_cannot_be_opened_is_down(void **state)
{
    static const char label[] = "{hub=\"bad\"";
    struct simfs_fault fault = {.kinds = SIMFS_OPEN, .at = 1, .persistent = true, .rc = WEIR_EIO};
    struct scene *s = *state;
    unsigned count = 0;

    assert_int_equal(world_create(&s->world, "bad", 1), 0);
    simfs_fail(s->world.disk, &fault);
    mallopt(M_PERTURB, 0x55); /* no byte that is handed out is 0 by chance */
    look(s);
    mallopt(M_PERTURB, 0);
    expect_of_hub("weir_hub_up", "bad", 0);
    expect_of_hub("weir_hub_log_bytes", "bad", 0);
    for (const char *at = page; (at = strstr(at, label)) != NULL; count++) {
        at += strcspn(at, " ");
        if (strtod(at, NULL) != 0) fail_msg("%.*s", (int)strcspn(at, "\n"), at);
    }
    assert_true(count > WEIR__LOG_FLUSH_BUCKETS);
}

/* ---- the server and the process ---- */

static unsigned count_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(dir)) count++;
    closedir(dir);
    return count - 3; /* ".", ".." and this one */
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void the_server_says_its_numbers(void **state)
{
    struct scene *s = *state;
    struct weir__fs_space disk;

    s->server.connections = 3;
    s->server.visits = 5;
    atomic_store(&s->server.links, 7);
    atomic_store(&s->server.logins_refused, 9);
    atomic_store(&s->server.unflushed, 11);
    atomic_store(&s->server.budget.used, 13);
    atomic_store(&s->server.budget.strangers, 15);
    atomic_store(&s->server.budget.refused, 17);
    atomic_store(&s->server.budget.evicted, 19);
    assert_int_equal(weir__namespace_space(s->world.ns, &disk, NULL), 0);
    look(s);
    expect_number("weir_connections{protocol=\"amqp\"}", 3);
    expect_number("weir_connections{protocol=\"http\"}", 5);
    expect_number("weir_links", 7);
    expect_number("weir_logins_refused_total", 9);
    expect_number("weir_unflushed_bytes", 11);
    expect_number("weir_buffer_bytes", 13);
    expect_number("weir_buffer_limit_bytes", 1 << 20);
    expect_number("weir_stranger_buffer_bytes", 15);
    expect_number("weir_stranger_buffer_limit_bytes", 1 << 16);
    expect_number("weir_buffer_refused_total", 17);
    expect_number("weir_strangers_evicted_total", 19);
    expect_number("weir_strangers", 0);
    expect_number("weir_disk_free_bytes", disk.free_bytes);
    expect_number("weir_disk_size_bytes", disk.size_bytes);
    atomic_store(&s->server.budget.used, 0);
    atomic_store(&s->server.budget.strangers, 0);
}

/* The next line of the page; NULL: there is none. */
static const char *take_line(const char **rest)
{
    static char line[512];
    size_t len = strcspn(*rest, "\n");

    if (!**rest) return NULL;
    assert_true((*rest)[len] == '\n');
    snprintf(line, sizeof line, "%.*s", (int)len, *rest);
    *rest += len + 1;
    return line;
}

/* Whether a line is a number of this family; a histogram has three kinds of them. */
static bool is_of(const char *line, const char *family, bool histogram)
{
    static const char *const ends[] = {"_bucket{", "_sum", "_count", NULL};
    size_t len = strlen(family);

    if (strncmp(line, family, len) != 0) return false;
    if (!histogram) return line[len] == ' ' || line[len] == '{';
    for (const char *const *end = ends; *end; end++)
        if (strncmp(line + len, *end, strlen(*end)) == 0) return true;
    return false;
}

/* Prometheus wants what is of one name together, with its help and type in front, and once. */
static void each_number_is_explained(void **state)
{
    char family[128] = "", type[32] = "", head[256];
    unsigned families = 0;
    const char *rest, *line;

    assert_int_equal(world_create(&((struct scene *)*state)->world, "h", 1), 0);
    look(*state);
    for (rest = page + 1; (line = take_line(&rest));) {
        if (strncmp(line, "# HELP ", 7) != 0) {
            if (!is_of(line, family, strcmp(type, "histogram") == 0))
                fail_msg("'%s' in '%s'", line, family);
            continue;
        }
        assert_int_equal(sscanf(line, "# HELP %127s", family), 1);
        assert_true(strlen(line) > strlen("# HELP  ") + strlen(family));
        line = take_line(&rest);
        assert_non_null(line);
        snprintf(head, sizeof head, "# TYPE %s ", family);
        if (strncmp(line, head, strlen(head)) != 0) fail_msg("'%s' is not '%s...'", line, head);
        snprintf(type, sizeof type, "%s", line + strlen(head));
        assert_true(!strcmp(type, "histogram") || !strcmp(type, "gauge") ||
                    !strcmp(type, "counter"));
        assert_int_equal(strcmp(type, "counter") == 0, strstr(family, "_total") != NULL);
        assert_null(strstr(rest, head));
        families++;
    }
    assert_true(families > 30);
}

struct turn {
    struct weir__mutex lock;
    struct weir__cond changed;
    struct weir__post post;
    bool taken;
};

static void take_turn(void *arg)
{
    struct turn *t = arg;

    weir__mutex_lock(&t->lock);
    t->taken = true;
    weir__cond_signal(&t->changed);
    weir__mutex_unlock(&t->lock);
}

static uint64_t sum_of(struct weir__loops *loops, double *seconds)
{
    struct weir__loop_turns turns = {0};
    uint64_t sum = 0;

    weir__loops_turns(loops, &turns);
    for (unsigned b = 0; b < WEIR__LOOP_TURN_BUCKETS; b++) sum += turns.buckets[b];
    *seconds = (double)turns.ns / 1e9;
    return sum;
}

/* Wakes the loop until some of its turns are over; one may have taken several calls. */
static void have_turns(struct weir__loops *loops)
{
    static struct turn t;
    double seconds;

    weir__mutex_init(&t.lock);
    weir__cond_init(&t.changed);
    weir__post_init(&t.post, take_turn, &t);
    weir__mutex_lock(&t.lock);
    while (sum_of(loops, &seconds) < 3) {
        t.taken = false;
        assert_int_equal(weir__loop_post(weir__loops_at(loops, 0), &t.post), 0);
        while (!t.taken) weir__cond_wait(&t.changed, &t.lock, INT64_MAX);
    }
    weir__mutex_unlock(&t.lock);
}

static void turns_have_their_bounds(void **state)
{
    struct weir__loops *loops = ((struct scene *)*state)->server.loops;
    static const char *const bounds[] = {"5e-05",  "0.0001", "0.00025", "0.0005", "0.001",
                                         "0.0025", "0.005",  "0.01",    "0.025",  "0.05",
                                         "0.1",    "1",      "+Inf"};
    uint64_t last = 0, here = 0, before;
    double seconds, least, most = 0;
    char name[64];

    have_turns(loops);
    before = sum_of(loops, &least);
    assert_true(least > 0);
    look(*state);
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        snprintf(name, sizeof name, TURN "_bucket{le=\"%s\"}", bounds[i]);
        here = strtoull(value_of(name), NULL, 10);
        assert_true(here >= last);
        last = here;
    }
    expect_number(TURN "_count", last);
    assert_true(last >= before && last <= sum_of(loops, &most));
    seconds = strtod(value_of(TURN "_sum"), NULL);
    assert_true(seconds >= least - 1e-8 && seconds <= most + 1e-8);
    assert_true(strtoull(value_of("weir_loop_busy_turns_total"), NULL, 10) <= last);
}

static double resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long all, pages = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &all, &pages), 2);
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void the_process_is_this_one(void **state)
{
    const size_t much = (size_t)24 << 20;
    double before = cpu_seconds(), cpu, resident;
    unsigned descriptors = count_descriptors();
    struct rlimit files;
    char *memory = malloc(much);

    assert_non_null(memory);
    for (size_t i = 0; i < much; i += 1024) ((volatile char *)memory)[i] = 1;

    getrlimit(RLIMIT_NOFILE, &files);
    look(*state);
    assert_int_equal(count_descriptors(), descriptors);
    expect_number("process_open_fds", descriptors);
    expect_number("process_max_fds", files.rlim_cur);
    cpu = strtod(value_of("process_cpu_seconds_total"), NULL);
    assert_true(cpu >= before - 1e-6 && cpu <= cpu_seconds() + 1e-6);
    resident = strtod(value_of("process_resident_memory_bytes"), NULL) - resident_bytes();
    assert_true(resident > -8e6 && resident < 8e6);
    free(memory);
}

/* Itself, its parent and the one that reads it are in the folder of descriptors, or nothing is. */
static void descriptors_are_counted_from_one(void **state)
{
    static const unsigned rows[][2] = {{0, 0}, {3, 0}, {4, 1}, {5, 2}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        entries = rows[i][0];
        look(*state);
        entries = UINT_MAX;
        expect_number("process_open_fds", rows[i][1]);
    }
}

/* A process that may open nothing more has numbers all the same; what it cannot count is 0. */
static void without_descriptors_the_rest_is_told(void **state)
{
    struct rlimit files, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    look(*state);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    expect_number("process_open_fds", 0);
    expect_number("process_resident_memory_bytes", 0);
    expect_number("process_max_fds", 0);
    expect_number("weir_links", 0);
}

static int refuse_space(struct weir__fs *fs, const char *dir, struct weir__fs_space *out,
                        struct weir_error *err)
{
    (void)fs, (void)dir, (void)out;
    return weir__fail(err, WEIR_EIO, "the disk does not answer");
}

/* A number that nobody knows is left out. */
static void a_disk_that_does_not_say_its_space(void **state)
{
    struct scene *s = *state;
    struct weir__fs *fs = simfs_fs(s->world.disk);
    const struct weir__fs_ops *good = fs->ops;
    struct weir__fs_ops bad = *good;

    bad.space = refuse_space;
    fs->ops = &bad;
    look(s);
    fs->ops = good;
    assert_null(strstr(page, "weir_disk_"));
    expect_number("weir_links", 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up_server, tear_down_server)
    const struct CMUnitTest tests[] = {
        TEST(each_hub_has_its_own_numbers),
        TEST(each_flush_is_counted),
        TEST(each_number_is_explained),
        TEST(a_hub_that_has_stopped_is_down),
        TEST(a_hub_that_cannot_be_opened_is_down),
        TEST(without_memory_no_numbers_are_told),
        TEST(the_server_says_its_numbers),
        TEST(turns_have_their_bounds),
        TEST(the_process_is_this_one),
        TEST(without_descriptors_the_rest_is_told),
        TEST(descriptors_are_counted_from_one),
        TEST(a_disk_that_does_not_say_its_space),
    };

    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
