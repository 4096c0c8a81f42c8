/* Producers and receivers over a road that cuts, stalls and lies, to a server that is killed; and
 * the same on a straight road, and on a folder.
 *
 * Three producers write numbers, each to a partition of its own, while three receivers read them:
 *
 *   once        each number is sent once, many at a time: acknowledged ones are there, once, in
 *               order; refused ones are not; of the unknown ones either, and perhaps late
 *   again       one at a time, and again until it is acknowledged: there, in order, at most as often as
 *               it was sent, of which the repeats may be late
 *   idempotent  many at a time, sent again by the library: there, once, in order
 *
 * A batch is late when its connection was lost, and the server read it from there after it had read what
 * was sent later from the next connection.
 *
 * A receiver sees every sequence number once and in order, whatever happened on its road. */
#include "client/contract/place.h"

#include "client/wire_place.h"
#include "support/pace.h"
#include "support/proxy.h"

#define CUTS_DEFAULT (40 / PACE + 10)
#define CUT_BYTES 60000
#define LIES 10
#define NUMBERS_MAX 4000000
#define BATCH 5u
#define IN_FLIGHT_MAX (8 * BATCH) /* less than a road carries before it is cut */

enum role { ONCE, AGAIN, IDEMPOTENT, ROLES };
enum outcome { UNSENT, ON_ITS_WAY, STORED, UNKNOWN, REFUSED };

static const char *const role_names[] = {"once", "again", "idempotent"};

struct writer {
    enum role role;
    struct weir_producer *producer;
    pthread_t thread;
    atomic_bool *stop;
    uint32_t sent; /* numbers 0 to sent - 1 */
    atomic_uchar *outcome;
    atomic_uint finished, unknown;
    uint8_t *times;        /* that it was sent */
    struct weir_error why; /* of the first that was not stored */
};

struct reader {
    struct weir_receiver *receiver;
    pthread_t thread;
    atomic_bool *stop;
    atomic_uint_fast64_t next;
    int rc;
    uint64_t wrong; /* sequence numbers that were not the next */
    struct weir_error why;
};

struct world {
    struct weir *weir;
    bool folder;         /* no server */
    struct proxy *proxy; /* NULL: straight */
    struct writer writers[ROLES];
    struct reader readers[ROLES];
    atomic_bool stop_writing, stop_reading;
};

/* ---- writers ---- */

struct ticket {
    struct writer *writer;
    uint32_t number;
};

static void landed(void *user, int rc, const struct weir_receipt *at, const struct weir_error *why)
{
    struct ticket *t = user;
    enum outcome outcome = rc == 0 ? STORED : rc == WEIR_EUNKNOWN ? UNKNOWN : REFUSED;

    (void)at;
    if (rc != 0 && t->writer->why.code == 0) t->writer->why = *why;
    if (outcome == UNKNOWN) atomic_fetch_add(&t->writer->unknown, 1);
    for (uint32_t i = 0; i < BATCH; i++) {
        /* exactly once */
        if (atomic_load(&t->writer->outcome[t->number + i]) != ON_ITS_WAY) abort();
        atomic_store(&t->writer->outcome[t->number + i], (unsigned char)outcome);
    }
    atomic_fetch_add(&t->writer->finished, BATCH);
    free(t);
}

static void fill(struct weir_event events[BATCH], char text[BATCH][16], uint32_t number)
{
    for (uint32_t i = 0; i < BATCH; i++) {
        snprintf(text[i], sizeof text[i], "%u", number + i);
        events[i] = (struct weir_event){.body = weir_text(text[i])};
    }
}

static int send_async(struct writer *w, const struct weir_event *events)
{
    struct ticket *t = malloc(sizeof *t);
    int rc;

    if (!t) return WEIR_ENOMEM;
    *t = (struct ticket){w, w->sent};
    for (uint32_t i = 0; i < BATCH; i++) atomic_store(&w->outcome[w->sent + i], ON_ITS_WAY);
    rc = weir_producer_send_async(w->producer, events, BATCH, 100, landed, t, NULL);
    if (rc != 0) free(t);
    return rc;
}

/* 0 in any case: what was not stored after so many tries is found out in the end. */
static int send_until_stored(struct writer *w, const struct weir_event *events)
{
    int rc;

    do {
        w->times[w->sent / BATCH]++;
        rc = weir_producer_send(w->producer, events, BATCH, PATIENCE_MS, NULL, &w->why);
        if (rc == WEIR_EUNKNOWN) atomic_fetch_add(&w->unknown, 1);
        if (rc != 0 && rc != WEIR_EUNKNOWN) w->times[w->sent / BATCH]--;
    } while (rc != 0 && w->times[w->sent / BATCH] < 200);
    for (uint32_t i = 0; i < BATCH; i++)
        atomic_store(&w->outcome[w->sent + i], rc == 0 ? STORED : REFUSED);
    atomic_fetch_add(&w->finished, BATCH);
    return 0;
}

static void *write_numbers(void *arg)
{
    struct writer *w = arg;
    struct timespec breath = {.tv_nsec = 1000000};
    struct weir_event events[BATCH];
    char text[BATCH][16];

    while (!atomic_load(w->stop) && w->sent + BATCH <= NUMBERS_MAX) {
        if (w->sent - atomic_load(&w->finished) >= IN_FLIGHT_MAX) {
            nanosleep(&breath, NULL);
            continue;
        }
        fill(events, text, w->sent);
        if ((w->role == AGAIN ? send_until_stored(w, events) : send_async(w, events)) == 0)
            w->sent += BATCH;
        nanosleep(&breath, NULL); /* so that there are more cuts than bytes */
    }
    return NULL;
}

static void start_writer(struct world *world, enum role role)
{
    struct weir_producer_options o = {.size = sizeof o,
                                      .pinned = true,
                                      .partition = (uint32_t)role,
                                      .idempotent = role == IDEMPOTENT};
    struct writer *w = &world->writers[role];

    w->role = role;
    w->stop = &world->stop_writing;
    w->outcome = calloc(NUMBERS_MAX, sizeof *w->outcome);
    w->times = calloc(NUMBERS_MAX / BATCH, 1);
    assert_non_null(w->outcome);
    assert_non_null(w->times);
    assert_ok(weir_producer_open(&w->producer, world->weir, "h", &o, &err));
    assert_int_equal(pthread_create(&w->thread, NULL, write_numbers, w), 0);
}

/* ---- readers ---- */

static void *read_numbers(void *arg)
{
    struct reader *r = arg;
    struct weir_received got;

    while (!atomic_load(r->stop) && (r->rc == 0 || r->rc == WEIR_ETIMEDOUT)) {
        r->rc = weir_receiver_receive(r->receiver, 100, 50, &got, &r->why);
        for (size_t i = 0; i < got.count; i++)
            r->wrong += got.events[i].sequence != atomic_fetch_add(&r->next, 1);
    }
    return NULL;
}

static void start_reader(struct world *world, enum role role)
{
    struct reader *r = &world->readers[role];

    r->stop = &world->stop_reading;
    assert_ok(weir_receiver_open(&r->receiver, world->weir, "h", (uint32_t)role, NULL, &err));
    assert_int_equal(pthread_create(&r->thread, NULL, read_numbers, r), 0);
}

/* ---- the world ---- */

static void sleep_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

static void make_world(struct world *world, bool tls)
{
    memset(world, 0, sizeof *world);
    place.tls = tls;
    place.options.idle_ms = 1000;
    assert_int_equal(place_start(), 0);
    place_make_hub("h", ROLES);
}

static void start_all(struct world *world)
{
    for (int i = 0; i < ROLES; i++) start_writer(world, (enum role)i);
    for (int i = 0; i < ROLES; i++) start_reader(world, (enum role)i);
}

static void begin(struct world *world, bool tls, uint64_t seed)
{
    make_world(world, tls);
    world->proxy = proxy_start(place_address(), seed);
    assert_non_null(world->proxy);
    assert_int_equal(place_open(&world->weir, proxy_address(world->proxy)), 0);
    start_all(world);
}

/* The same without a proxy, and without a server, too. */
static void begin_straight(struct world *world, bool folder)
{
    make_world(world, false);
    world->folder = folder;
    if (folder) {
        assert_int_equal(serve_stop(&place.serve), 0);
        assert_ok(weir_open(&world->weir, place.data, NULL, &err));
    } else {
        assert_int_equal(place_open(&world->weir, NULL), 0);
    }
    start_all(world);
}

static bool is_unknown(const struct writer *w, long number)
{
    return atomic_load(&w->outcome[number]) == UNKNOWN;
}

/* Whether this number may lie behind `previous`, when `last` is the highest before it that was not late. */
static bool in_order(const struct writer *w, long number, long previous, long last)
{
    bool begins = number % BATCH == 0;

    if (!begins) return number == previous + 1;
    if (w->role == ONCE && is_unknown(w, number)) return true;
    if (w->role == AGAIN)
        return number == last + 1 || (number < last && w->times[number / BATCH] > 1);
    return number > last;
}

/* What lies in the partition, read on a good road, against what was told about it. */
static void check(struct weir *direct, struct writer *w)
{
    uint64_t count = events_in(direct, (uint32_t)w->role);
    struct weir_receiver *r = NULL;
    struct weir_received got;
    uint8_t *seen = calloc(NUMBERS_MAX, 1);
    long last = -1, previous = -1;
    uint64_t read = 0;

    assert_non_null(seen);
    assert_ok(weir_receiver_open(&r, direct, "h", (uint32_t)w->role, NULL, &err));
    while (read < count) {
        assert_ok(weir_receiver_receive(r, 1000, PATIENCE_MS, &got, &err));
        for (size_t i = 0; i < got.count; i++, read++) {
            char text[16] = "";
            long number;
            memcpy(text, got.events[i].body.at, got.events[i].body.len);
            number = strtol(text, NULL, 10);
            assert_in_range(number, 0, NUMBERS_MAX - 1);
            if (!in_order(w, number, previous, last))
                fail_msg("%s: %ld, outcome %d, behind %ld, the highest %ld", role_names[w->role],
                         number, atomic_load(&w->outcome[number]), previous, last);
            previous = number;
            if (number > last && !is_unknown(w, number)) last = number;
            seen[number]++;
        }
    }
    for (uint32_t n = 0; n < w->sent; n++) {
        enum outcome outcome = (enum outcome)atomic_load(&w->outcome[n]);
        if (outcome != STORED && w->role != ONCE)
            fail_msg("%s: %u of %u: %s: %s", role_names[w->role], n, w->sent,
                     outcome == UNKNOWN ? "unknown" : "refused", w->why.text);
        if (outcome == STORED) assert_true(seen[n] >= 1);
        if (outcome == REFUSED) assert_int_equal(seen[n], 0);
        assert_true(seen[n] <= (w->role == AGAIN ? w->times[n / BATCH] : 1));
    }
    weir_receiver_close(r);
    free(seen);
}

static void wait_for_readers(struct world *world, struct weir *direct)
{
    for (int i = 0; i < ROLES; i++) {
        uint64_t count = events_in(direct, (uint32_t)i);
        for (int64_t waited = 0; atomic_load(&world->readers[i].next) < count; waited += 5) {
            sleep_ms(5);
            if (waited > PATIENCE_MS) fail_msg("%s is not read to its end", role_names[i]);
        }
    }
}

static void end(struct world *world)
{
    struct weir *direct = world->weir; /* a folder is opened once */

    if (world->proxy) proxy_set(world->proxy, PROXY_PASS, 0);
    atomic_store(&world->stop_writing, true);
    for (int i = 0; i < ROLES; i++) {
        struct writer *w = &world->writers[i];
        pthread_join(w->thread, NULL);
        close_producer(w->producer);
        assert_int_equal(atomic_load(&w->finished), w->sent);
    }
    if (!world->folder) assert_int_equal(place_open(&direct, NULL), 0);
    wait_for_readers(world, direct);
    atomic_store(&world->stop_reading, true);
    for (int i = 0; i < ROLES; i++) {
        struct reader *r = &world->readers[i];
        pthread_join(r->thread, NULL);
        assert_int_equal(r->wrong, 0);
        assert_int_equal(atomic_load(&r->next), events_in(direct, (uint32_t)i));
        weir_receiver_close(r->receiver);
        check(direct, &world->writers[i]);
        print_message("%-10s %u sent, %u batches unknown, %llu read\n", role_names[i],
                      world->writers[i].sent, atomic_load(&world->writers[i].unknown),
                      (unsigned long long)atomic_load(&r->next));
        free(world->writers[i].outcome);
        free(world->writers[i].times);
    }
    if (!world->folder) assert_ok(weir_close(direct, &err));
    assert_ok(weir_close(world->weir, &err));
    if (world->folder) assert_int_equal(serve_again(&place.serve, place.data), 0);
    proxy_stop(world->proxy);
    assert_int_equal(place_stop(), 0);
}

/* Until every writer has had so many more outcomes. */
static void wait_for_progress(struct world *world, unsigned more)
{
    unsigned from[ROLES];

    for (int i = 0; i < ROLES; i++) from[i] = atomic_load(&world->writers[i].finished);
    for (int i = 0; i < ROLES; i++) {
        int64_t waited = 0;
        while (atomic_load(&world->writers[i].finished) - from[i] < more) {
            sleep_ms(5);
            waited += 5;
            if (waited > PATIENCE_MS) fail_msg("%s is stuck", role_names[i]);
        }
    }
}

/* ---- tests ---- */

static void cuts(bool tls)
{
    const char *text = getenv("WEIR_CUTS"), *seed = getenv("WEIR_SEED");
    unsigned wanted = text ? (unsigned)atoi(text) : CUTS_DEFAULT, had = 0;
    struct world world;
    int idle = 0;

    begin(&world, tls, seed ? strtoull(seed, NULL, 10) : 42);
    proxy_set(world.proxy, PROXY_CUT, CUT_BYTES);
    while (had < wanted) {
        unsigned now = proxy_cuts(world.proxy);
        idle = now == had ? idle + 1 : 0;
        if (idle > PATIENCE_MS / 5) fail_msg("stuck after %u cuts", had);
        had = now;
        sleep_ms(5);
    }
    print_message("%u cuts\n", had);
    proxy_set(world.proxy, PROXY_PASS, 0);
    wait_for_progress(&world, BATCH);
    end(&world);
}

/* What the roads that follow are compared with. */
static void cutless_roads_lose_nothing(void **state)
{
    static const char *const names[] = {"on a server", "on a folder"};
    struct world world;

    (void)state;
    for (int folder = 0; folder < 2; folder++) {
        print_message("%s\n", names[folder]);
        begin_straight(&world, folder);
        wait_for_progress(&world, 200 / PACE * BATCH);
        for (int i = 0; i < ROLES; i++) assert_int_equal(atomic_load(&world.writers[i].unknown), 0);
        end(&world);
    }
}

static void cuts_lose_nothing(void **state)
{
    (void)state;
    cuts(false);
}

static void cuts_lose_nothing_with_tls(void **state)
{
    (void)state;
    cuts(true);
}

static void websockets_lose_nothing_either(void **state)
{
    (void)state;
    place.websocket = true;
    cuts(true);
    place.websocket = false;
}

static void slow_roads_are_only_slow(void **state)
{
    struct world world;

    (void)state;
    begin(&world, false, 1);
    proxy_set(world.proxy, PROXY_DELAY, 0);
    wait_for_progress(&world, 10 * BATCH);
    proxy_set(world.proxy, PROXY_TRICKLE, 0);
    wait_for_progress(&world, 2 * BATCH);
    end(&world);
}

static void half_a_road_is_none(void **state)
{
    struct world world;

    (void)state;
    begin(&world, false, 2);
    for (int i = 0; i < 5; i++) {
        wait_for_progress(&world, BATCH);
        proxy_set(world.proxy, PROXY_HALF_CLOSE, 0);
        wait_for_progress(&world, BATCH);
        proxy_set(world.proxy, PROXY_PASS, 0);
    }
    end(&world);
}

/* Until somebody has noticed one more. */
static void wait_for_found(struct world *world, unsigned had)
{
    for (int64_t waited = 0; proxy_found(world->proxy) <= had; waited += 5) {
        sleep_ms(5);
        if (waited > PATIENCE_MS) fail_msg("nobody notices");
    }
}

/* TLS finds what was changed on the way; without it nobody could. */
static void lies_are_found_out(void **state)
{
    struct world world;

    (void)state;
    begin(&world, true, 3);
    for (int i = 0; i < LIES; i++) {
        unsigned had = proxy_found(world.proxy);

        wait_for_progress(&world, BATCH);
        proxy_set(world.proxy, PROXY_CORRUPT, 0);
        wait_for_found(&world, had);
        proxy_set(world.proxy, PROXY_PASS, 0);
    }
    wait_for_progress(&world, BATCH);
    end(&world);
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* The idle time-out is one second here; twice as long is promised, and a busy machine is given a
 * second more. */
static void silence_is_noticed(void **state)
{
    struct world world;
    int64_t since;

    (void)state;
    begin(&world, false, 4);
    wait_for_progress(&world, BATCH);
    proxy_set(world.proxy, PROXY_BLACK_HOLE, 0);
    since = now_ms();
    while (atomic_load(&world.writers[ONCE].unknown) == 0) {
        assert_in_range(now_ms() - since, 0, 20000);
        sleep_ms(5);
    }
    print_message("noticed after %lld ms\n", (long long)(now_ms() - since));
    proxy_set(world.proxy, PROXY_PASS, 0);
    wait_for_progress(&world, BATCH);
    end(&world);
}

static void a_killed_server_comes_back(void **state)
{
    struct world world;

    (void)state;
    begin(&world, false, 5);
    for (int i = 0; i < 6; i++) {
        wait_for_progress(&world, BATCH);
        serve_kill(&place.serve);
        assert_int_equal(serve_again(&place.serve, place.data), 0);
    }
    wait_for_progress(&world, BATCH);
    end(&world);
}

/* Tokens of two seconds, of which nobody notices anything, and of one, which may end too soon on a
 * busy machine: then the link is attached again. */
static void tokens_are_renewed(void **state)
{
    struct world world;

    (void)state;
    for (uint32_t seconds = 2; seconds >= 1; seconds--) {
        place.options.token_s = seconds;
        begin(&world, false, 6);
        for (int i = 0; i < 5; i++) {
            sleep_ms(1000);
            wait_for_progress(&world, BATCH);
        }
        for (int i = 0; seconds == 2 && i < ROLES; i++)
            assert_int_equal(atomic_load(&world.writers[i].unknown), 0);
        end(&world);
    }
    place.options.token_s = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cutless_roads_lose_nothing),
        cmocka_unit_test(cuts_lose_nothing),
        cmocka_unit_test(cuts_lose_nothing_with_tls),
        cmocka_unit_test(websockets_lose_nothing_either),
        cmocka_unit_test(slow_roads_are_only_slow),
        cmocka_unit_test(half_a_road_is_none),
        cmocka_unit_test(lies_are_found_out),
        cmocka_unit_test(silence_is_noticed),
        cmocka_unit_test(a_killed_server_comes_back),
        cmocka_unit_test(tokens_are_renewed),
    };

    if (getenv("WEIR_CUTS")) cmocka_set_test_filter("cut*");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
