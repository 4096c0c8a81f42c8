/* demo_test.c - weir demo: what it publishes and prints, and that its readers see what is wrong. */
#include "cli/demo.h"

#include <limits.h>
#include <poll.h>
#include <regex.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/error.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/steps.h"
#include "support/allocs.h"

#define HOMES 1000
#define MINUTES 3
#define EVENTS "3,000"
#define PATIENCE_MS 60000

/* ---- the whole ---- */

/* The number that "1,234,567" is; it has a comma wherever one belongs. */
static uint64_t plain(const char *text)
{
    size_t len = strspn(text, "0123456789,");
    uint64_t n = 0;

    assert_true(len > 0 && *text != ',');
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(text[i] == ',', (len - i) % 4 == 0);
        if (text[i] != ',') n = n * 10 + (uint64_t)(text[i] - '0');
    }
    return n;
}

/* What stands behind a text that was printed. */
static const char *behind(const char *text)
{
    const char *at = strstr(said_out, text);

    if (!at) fail_msg("no '%s' in\n%s", text, said_out);
    return at + strlen(text);
}

/* "3,000 events in 0.1 s, 45,678 events/s": as fast as that, within the time that all took. */
static void expect_rate(const char *name, double took_s)
{
    const char *at = behind(name);
    char *end;

    assert_memory_equal(at, EVENTS " events in ", strlen(EVENTS " events in "));
    assert_true(strtod(at + strlen(EVENTS " events in "), &end) <= took_s + 0.05);
    assert_memory_equal(end, " s, ", 4);
    assert_true((double)plain(end + 4) >= HOMES * MINUTES / took_s - 1);
    assert_non_null(strstr(end, " events/s, "));
}

static void expect_latency(double took_s)
{
    double half, most;

    assert_int_equal(sscanf(behind("  acknowledged  p50 "), "%lf ms, p99 %lf ms after", &half,
                            &most),
                     2);
    assert_true(half <= most);
    assert_true(most <= took_s * 1000 * 1.13 + 0.05); /* a bucket is an eighth wide */
}

static void expect_spread(void)
{
    unsigned homes[WEIR__DEMO_PARTITIONS] = {0}, low = UINT_MAX, high = 0;
    char line[128], key[32];

    for (int i = 0; i < HOMES; i++) {
        snprintf(key, sizeof key, "home-%d", i);
        homes[weir_partition_of_key(weir_text(key), WEIR__DEMO_PARTITIONS)]++;
    }
    for (unsigned i = 0; i < WEIR__DEMO_PARTITIONS; i++) {
        if (homes[i] < low) low = homes[i];
        if (homes[i] > high) high = homes[i];
    }
    snprintf(line, sizeof line, "\n  partitions    16, with %u to %u homes each\n", low, high);
    behind(line);
}

static void it_tells_what_it_did(void **state)
{
    int64_t began_ns = weir__mono_ns();
    double took_s;

    (void)state;
    assert_int_equal(run(&weir__command_demo, "--homes 1000 --minutes 3"), 0);
    took_s = (double)(weir__mono_ns() - began_ns) / 1e9;
    assert_string_equal(said_err, "");
    assert_ptr_equal(behind("weir demo: 1,000 homes report their sensors for 3 minutes\n"),
                     said_out + strlen("weir demo: 1,000 homes report their sensors for 3 "
                                       "minutes\n"));
    expect_rate("\n  published     ", took_s);
    behind("\n  durable       yes: each was on disk before it was counted\n");
    expect_latency(took_s);
    expect_rate("\n  read back     ", took_s);
    expect_spread();
    assert_string_equal(behind("\n  verified      "),
                        "every home's 3 events seen exactly once, in order, in the partition of "
                        "its key\n");
    assert_int_equal(run(&weir__command_demo, "--homes 1 --minutes 1"), 1);
    assert_string_equal(said_err,
                        "weir: demo: creating hub 'homes': hub 'homes' exists already; choose "
                        "another name or delete it first\n");
}

/* ---- no memory ---- */

int __real_weir__home_open(struct weir **out, const char *data, bool must_exist);
int __wrap_weir__home_open(struct weir **out, const char *data, bool must_exist);

static uint64_t none_at; /* of the allocations behind the opening; 0: there is memory */

int __wrap_weir__home_open(struct weir **out, const char *data, bool must_exist)
{
    int code = __real_weir__home_open(out, data, must_exist);

    if (none_at) allocs_fail(none_at);
    return code;
}

/* It begins with places for the homes; without them there is no hub. */
static void it_needs_memory_for_its_homes(void **state)
{
    (void)state;
    for (none_at = 1; none_at <= 2; none_at++) {
        int code = run(&weir__command_demo, "--homes 1 --minutes 1");
        bool failed = allocs_failed();
        allocs_fail(0);
        assert_true(failed);
        assert_int_equal(code, WEIR__EXIT_FAILURE);
        assert_non_null(strstr(said_err, "memory"));
    }
    none_at = 0;
    assert_int_equal(run(&weir__command_demo, "--homes 1 --minutes 1"), 0);
}

/* ---- while it runs ---- */

int __wrap_isatty(int fd);
bool __real_weir__cond_wait(struct weir__cond *, struct weir__mutex *, int64_t deadline_ns);
bool __wrap_weir__cond_wait(struct weir__cond *, struct weir__mutex *, int64_t deadline_ns);

static bool live;                      /* on a terminal */
static _Thread_local int waits = -1;   /* for a line, of the thread that watches; -1: another */
static int64_t deadline[2];            /* of the first two */
static uint64_t bytes, batches, timed; /* that were published by then */

/* What is said to have been: so many batches took so long. */
static struct {
    uint32_t bucket[2];
    uint64_t batches[2];
} times;

static atomic_bool watched = true; /* the first line is waited for */
int __real_weir_receiver_receive(struct weir_receiver *, size_t, int64_t, struct weir_received *,
                                 struct weir_error *);
int __wrap_weir_receiver_receive(struct weir_receiver *, size_t, int64_t, struct weir_received *,
                                 struct weir_error *);

/* Nobody reads, so nobody ends, before that. */
int __wrap_weir_receiver_receive(struct weir_receiver *r, size_t max, int64_t timeout_ms,
                                 struct weir_received *out, struct weir_error *err)
{
    int64_t end_ns = weir__deadline_ns(PATIENCE_MS);

    while (!atomic_load(&watched) && weir__mono_ns() < end_ns) poll(NULL, 0, 1);
    return __real_weir_receiver_receive(r, max, timeout_ms, out, err);
}

static void run_watched(void)
{
    atomic_store(&watched, false);
    assert_int_equal(run(&weir__command_demo, "--homes 1000 --minutes 3"), 0);
    assert_true(atomic_load(&watched));
}

/* It asks this when it begins to watch. */
int __wrap_isatty(int fd)
{
    (void)fd;
    if (!atomic_load(&watched)) waits = 0;
    return live;
}

/* Two seconds of publishing 500 MB. */
static void pretend(struct weir__demo *d, int64_t start_ns)
{
    atomic_store(&d->published_ns, start_ns + INT64_C(2000000000));
    atomic_store(&d->bytes, 500000000);
    memset(d->latency, 0, sizeof d->latency);
    for (int i = 0; i < 2; i++) d->latency[times.bucket[i]] += times.batches[i];
    d->batches = times.batches[0] + times.batches[1];
}

static bool has_all(const struct weir__demo *d)
{
    uint64_t all = (uint64_t)d->homes * d->minutes;

    return atomic_load(&d->published) == all && atomic_load(&d->read) == all;
}

/* The time for the first line comes when everything has been read. Nobody can end before, without the
 * lock, so that it waits for a second. */
bool __wrap_weir__cond_wait(struct weir__cond *cond, struct weir__mutex *lock, int64_t deadline_ns)
{
    struct weir__demo *d = (void *)((char *)cond - offsetof(struct weir__demo, changed));
    int64_t end_ns = weir__deadline_ns(PATIENCE_MS);

    if (waits < 0 || waits > 1) return __real_weir__cond_wait(cond, lock, deadline_ns);
    deadline[waits++] = deadline_ns;
    atomic_store(&watched, true);
    if (waits == 2) return __real_weir__cond_wait(cond, lock, deadline_ns);
    while (!has_all(d) && weir__mono_ns() < end_ns) poll(NULL, 0, 1);
    bytes = atomic_load(&d->bytes);
    batches = d->batches;
    timed = 0;
    for (int i = 0; i < WEIR__DEMO_BUCKETS; i++) timed += d->latency[i];
    if (times.batches[0] > 0) pretend(d, deadline_ns - INT64_C(1000000000));
    return false;
}

/* "    0.1 s  [########################] 100 %   in      45,678/s   out      45,678/s" */
static void expect_pace(const char *line, const char *end)
{
    char in[32], out[32];
    double s;
    int len = 0;

    assert_int_equal(sscanf(line,
                            "%lf s  [########################] 100 %%   in %31[0-9,]/s   out "
                            "%31[0-9,]/s%n",
                            &s, in, out, &len),
                     3);
    assert_int_equal(len, 82);
    assert_memory_equal(line + len, end, strlen(end));
    assert_string_equal(in, out);
    assert_true(HOMES * MINUTES / ((double)plain(in) + 1) <= s + 0.06);
    assert_true(HOMES * MINUTES / (double)plain(in) >= s - 0.06);
}

static void it_tells_how_it_gets_on(void **state)
{
    const char *heading = "for 3 minutes\n";

    (void)state;
    run_watched();
    expect_pace(behind(heading), "\n");
    assert_int_equal(deadline[1] - deadline[0], 1000000000);
    assert_null(strchr(said_out, '\r'));
    assert_int_equal(batches, WEIR__DEMO_PARTITIONS * MINUTES);
    assert_int_equal(timed, batches);
    assert_int_equal(run(&weir__command_tail, "homes --until-end"), 0);
    assert_int_equal(bytes, strlen(said_out) - (size_t)HOMES * MINUTES); /* without newlines */
    assert_int_equal(run(&weir__command_hub_delete, "homes"), 0);
    live = true;
    run_watched();
    live = false;
    assert_int_equal(*behind(heading), '\r');
    expect_pace(behind(heading) + 1, "  ");
    assert_int_equal(deadline[1] - deadline[0], 100000000);
    behind("\r\033[K  published     ");
}

/* The upper end of an eighth of a power of two, in microseconds, of the batch in the middle and of the
 * one behind 99 of 100. */
static void the_times_of_batches_are_told(void **state)
{
    static const struct {
        uint32_t bucket[2];
        uint64_t batches[2];
        const char *said;
    } rows[] = {
        {{64, 100}, {99, 1}, "p50 1.2 ms, p99 26.6 ms"}, /* 1152 and 26624 */
        {{64, 100}, {100, 1}, "p50 1.2 ms, p99 1.2 ms"},
        {{64, 100}, {101, 0}, "p50 1.2 ms, p99 1.2 ms"},
        {{63, 100}, {50, 50}, "p50 26.6 ms, p99 26.6 ms"}, /* 50 of 100 are not the half */
        {{63, 100}, {51, 49}, "p50 1.0 ms, p99 26.6 ms"},  /* 1024 */
        {{0, 7}, {1, 0}, "p50 0.0 ms, p99 0.0 ms"},
        {{8, 255}, {1, 1}, "p50 17179869.2 ms, p99 17179869.2 ms"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        memcpy(times.bucket, rows[i].bucket, sizeof times.bucket);
        memcpy(times.batches, rows[i].batches, sizeof times.batches);
        run_watched();
        times.batches[0] = 0;
        behind("\n  published     3,000 events in 2.0 s, 1,500 events/s, 250 MB/s of bodies\n");
        if (strncmp(behind("\n  acknowledged  "), rows[i].said, strlen(rows[i].said)) != 0)
            fail_msg("%zu: %s", i, said_out);
        behind(" ms after sending, in batches of up to 250\n");
        assert_int_equal(run(&weir__command_hub_delete, "homes"), 0);
    }
}

/* ---- what homes say ---- */

static unsigned count_like(const char *pattern)
{
    unsigned count = 0;
    regex_t form;

    assert_int_equal(regcomp(&form, pattern, REG_EXTENDED | REG_NOSUB), 0);
    for (char *at = said_out, *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        count += regexec(&form, at, 0, NULL, 0) == 0;
        *end = '\n';
    }
    regfree(&form);
    return count;
}

#define SAYS "^\\{\"home\":[0-9]+,\"minute\":[012],\"sensor\":"

static void homes_have_three_sensors(void **state)
{
    char pattern[128];
    unsigned doors, motions;

    (void)state;
    assert_int_equal(run(&weir__command_demo, "--homes 1000 --minutes 3"), 0);
    assert_int_equal(run(&weir__command_tail, "homes --until-end"), 0);
    doors = count_like(SAYS "\"door\",\"value\":\"(open|closed)\"\\}$");
    motions = count_like(SAYS "\"motion\",\"value\":true\\}$");
    assert_int_equal(doors + motions +
                         count_like(SAYS "\"temperature\",\"value\":(1[789]|2[0123])\\.[0-9]\\}$"),
                     HOMES * MINUTES);
    assert_in_range(doors, HOMES * MINUTES / 32, HOMES * MINUTES / 8);
    assert_in_range(motions, HOMES * MINUTES / 32, HOMES * MINUTES / 8);
    assert_in_range(count_like("\"closed\"\\}$"), doors / 4, doors * 3 / 4);
    for (int i = 17; i <= 23; i++) {
        snprintf(pattern, sizeof pattern, "\"value\":%d\\.", i);
        assert_true(count_like(pattern) > 0);
    }
    for (int i = 0; i < 10; i++) {
        snprintf(pattern, sizeof pattern, "\\.%d\\}$", i);
        assert_true(count_like(pattern) > 0);
    }
}

/* ---- what it refuses ---- */

static void it_has_limits(void **state)
{
    static const struct step steps[] = {
        {&weir__command_demo, "--homes 0", 2,
         "weir: demo: --homes must be 1 to 10000000; try 'weir demo --help'\n"},
        {&weir__command_demo, "--homes 10000001", 2,
         "weir: demo: --homes must be 1 to 10000000; try 'weir demo --help'\n"},
        {&weir__command_demo, "--minutes 0", 2,
         "weir: demo: --minutes must be 1 to 1440; try 'weir demo --help'\n"},
        {&weir__command_demo, "--minutes 1441", 2,
         "weir: demo: --minutes must be 1 to 1440; try 'weir demo --help'\n"},
    };

    (void)state;
    TAKE(steps);
    assert_int_equal(run(&weir__command_demo, "--homes 1 --minutes 1440"), 0);
}

#define NO_FOLDER "weir: demo: cannot make a folder like /nowhere/weir-demo-"

/* In a folder of its own, which is gone behind it; or nowhere. */
static void it_cleans_up_behind_itself(void **state)
{
    char *argv[] = {(char[]){"--homes"}, (char[]){"1"}, (char[]){"--minutes"}, (char[]){"1"}};
    char before[4096], text[512], complaint[128] = "";
    const char *tmp = getenv("TMPDIR");
    int codes[2];

    (void)state;
    snprintf(before, sizeof before, "%s", tmp ? tmp : "/tmp");
    for (int i = 0; i < 2; i++) {
        setenv("TMPDIR", i == 0 ? "/nowhere" : dir, 1);
        said_begin();
        codes[i] = weir__command_demo.run(&weir__command_demo, 4, argv);
        said_end();
        if (i == 0) memcpy(complaint, said_err, sizeof complaint - 1);
    }
    setenv("TMPDIR", before, 1);
    assert_int_equal(codes[0], 1);
    assert_memory_equal(complaint, NO_FOLDER, strlen(NO_FOLDER));
    assert_string_equal(complaint + strlen(NO_FOLDER "XXXXXX"), "; set TMPDIR or use --data\n");
    assert_int_equal(codes[1], 0);
    snprintf(text, sizeof text, "\n  folder        %s/weir-demo-", dir);
    assert_non_null(strstr(behind(text), ", removed at the end (--data DIR keeps it)\n"));
    assert_int_equal(rmdir(dir), 0); /* it is empty */
    assert_int_equal(mkdir(dir, 0700), 0);
}

/* ---- threads ---- */

int __real_weir__thread_start(struct weir__thread *, const char *name, void *(*fn)(void *),
                              void *arg, struct weir_error *);
int __wrap_weir__thread_start(struct weir__thread *, const char *name, void *(*fn)(void *),
                              void *arg, struct weir_error *);

static unsigned denied; /* this one of the demo's own; 0: none */

int __wrap_weir__thread_start(struct weir__thread *t, const char *name, void *(*fn)(void *),
                              void *arg, struct weir_error *e)
{
    if (strcmp(name, "weir-demo") == 0 && denied > 0 && --denied == 0)
        return weir__fail(e, WEIR_EBUSY, "no more threads");
    return __real_weir__thread_start(t, name, fn, arg, e);
}

/* Those that had begun end, and it says why. */
static void it_needs_its_threads(void **state)
{
    static const unsigned which[] = {1, 2, 3, 2 + WEIR__DEMO_PARTITIONS};

    (void)state;
    for (size_t i = 0; i < sizeof which / sizeof which[0]; i++) {
        denied = which[i];
        assert_int_equal(run(&weir__command_demo, "--homes 20 --minutes 1"), 1);
        assert_string_equal(said_err, "weir: demo: no more threads\n");
        assert_null(strstr(said_out, "verified"));
        assert_int_equal(denied, 0);
        run(&weir__command_hub_delete, "homes");
    }
}

/* ---- readers ---- */

#define HOME 5 /* and its neighbour in the same test */

struct said_event {
    const char *key, *body;
};

struct wrong {
    const char *why; /* NULL: all is well */
    struct said_event events[3];
    int elsewhere; /* in the next partition instead of the key's */
};

static const struct wrong wrongs[] = {
    {NULL, {{"home-5", "{\"home\":5,\"minute\":0}"}, {"home-5", "{\"home\":5,\"minute\":1 x}"}}, 0},
    {"seen twice",
     {{"home-5", "{\"home\":5,\"minute\":0}"}, {"home-5", "{\"home\":5,\"minute\":0}"}},
     0},
    {"out of order", {{"home-5", "{\"home\":5,\"minute\":1}"}}, 0},
    {"in the wrong partition", {{"home-5", "{\"home\":5,\"minute\":0}"}}, 1},
    {"not what was published", {{"home-5", "{\"hone\":5,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":"}}, 0},
    {"not what was published", {{"home-5", "{\"hom"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":/5,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":5:,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":0000000005,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":5,\"minute\":}"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":5,\"minute\":0"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":5,\"minute\":0]"}}, 0},
    {"not what was published", {{"home-5", "{\"home\":4,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-5x", "{\"home\":5,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-", "{\"home\":5,\"minute\":0}"}}, 0},
    {"not what was published", {{"house-5", "{\"home\":5,\"minute\":0}"}}, 0},
    {"not what was published", {{"home-6", "{\"home\":6,\"minute\":0}"}}, 0},
    {"not what was published",
     {{"home-5",
       "1234567890123456789012345678901234567890123456789012345678901234567890123456789012"
       "345678901234567890123456789"}},
     0},
};

static struct weir *weir;
static struct weir_error err;

static void publish(const struct wrong *w, uint32_t partition)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = partition};
    struct weir_producer *producer;

    assert_int_equal(weir_producer_open(&producer, weir, "h", &o, &err), 0);
    for (const struct said_event *e = w->events; e < w->events + 3 && e->key; e++) {
        struct weir_event event = {.body = weir_text(e->body), .partition_key = weir_text(e->key)};
        if (weir_producer_send(producer, &event, 1, -1, NULL, &err) != 0) fail_msg("%s", err.text);
    }
    assert_int_equal(weir_producer_close(producer, -1, &err), 0);
}

/* A demo of six homes, of which one is the partition's, for two minutes. */
static void read_wrong(const struct wrong *w)
{
    struct weir__demo d = {.weir = weir, .homes = HOME + 1, .minutes = 2};
    uint32_t p = (weir_partition_of_key(weir_text(w->events[0].key), WEIR__DEMO_PARTITIONS) +
                  (uint32_t)w->elsewhere) %
                 WEIR__DEMO_PARTITIONS;
    struct weir_receiver_options from = {.size = sizeof from,
                                         .position = {.from = WEIR_FROM_LATEST}};
    uint16_t seen[HOME + 1] = {0};
    char text[512], place[64];
    size_t len = strlen(w->events[0].body);

    d.seen = seen;
    for (uint32_t i = p + 1; i <= WEIR__DEMO_PARTITIONS; i++) d.first[i] = 1;
    weir__mutex_init(&d.lock);
    assert_int_equal(weir_receiver_open(&d.receiver[p], weir, "h", p, &from, &err), 0);
    publish(w, p);
    weir__demo_read(&d, p);
    weir_receiver_close(d.receiver[p]);
    weir__mutex_fini(&d.lock);
    assert_int_equal(d.failed, w->why != NULL);
    assert_int_equal(atomic_load(&d.stop), w->why != NULL);
    if (!w->why) {
        assert_int_equal(atomic_load(&d.read), 2);
        return;
    }
    snprintf(place, sizeof place, "partition %u, sequence ", p);
    snprintf(text, sizeof text, ": %s: %.*s", w->why, (int)(len < 100 ? len : 100),
             w->events[0].body);
    if (strncmp(d.error.text, place, strlen(place)) != 0 || !strstr(d.error.text, text) ||
        strcmp(strstr(d.error.text, text), text) != 0)
        fail_msg("%s instead of %s%s", d.error.text, place, text);
    assert_int_equal(d.error.code, WEIR_ECORRUPT);
}

static void readers_believe_nothing(void **state)
{
    struct weir_hub_options hub = {.size = sizeof hub, .partitions = WEIR__DEMO_PARTITIONS};

    (void)state;
    assert_int_equal(weir_open(&weir, dir, NULL, &err), 0);
    assert_int_equal(weir_hub_create(weir, "h", &hub, &err), 0);
    for (size_t i = 0; i < sizeof wrongs / sizeof wrongs[0]; i++) read_wrong(&wrongs[i]);
    assert_int_equal(weir_close(weir, &err), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(it_tells_what_it_did),       CASE(it_needs_memory_for_its_homes),
        CASE(it_tells_how_it_gets_on),    CASE(the_times_of_batches_are_told),
        CASE(homes_have_three_sensors),   CASE(it_has_limits),
        CASE(it_cleans_up_behind_itself), CASE(readers_believe_nothing),
        CASE(it_needs_its_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
