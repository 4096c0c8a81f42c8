/* tail_test.c - weir tail on a folder: which events, in which order, and when it ends. */
#include "cli/steps.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/error.h"
#include "base/thread.h"
#include "cli/home.h"
#include "weir/weir.h"

#define FOUR                                                                                       \
    {&weir__command_hub_create, "a --partitions 3", 0, "created hub a with 3 partitions\n"},       \
        {&weir__command_send, "a one --partition 1", 0, "acknowledged 1 event\n"},                 \
        {&weir__command_send, "a two --partition 0", 0, "acknowledged 1 event\n"},                 \
        {&weir__command_send, "a three --partition 1", 0, "acknowledged 1 event\n"},               \
    {                                                                                              \
        &weir__command_send, "a four --partition 2", 0, "acknowledged 1 event\n"                   \
    }

static void partitions_are_merged_by_time(void **state)
{
    static const struct step steps[] = {
        FOUR,
        {&weir__command_tail, "a --until-end", 0, "one\ntwo\nthree\nfour\n"},
        {&weir__command_tail, "a --count 4", 0, "one\ntwo\nthree\nfour\n"},
        {&weir__command_tail, "a --count 3 --until-end", 0, "one\ntwo\nthree\n"},
        {&weir__command_tail, "a --count 1", 0, "one\n"},
        {&weir__command_tail, "a --count 0", 0, ""},
        {&weir__command_tail, "a --partition 1 --until-end", 0, "one\nthree\n"},
        {&weir__command_tail, "a --partition 0 --until-end --json", 0,
         "{\"partition\":\"0\",\"sequence\":0,\"offset\":\"OFFSET\",\"enqueued_time\":\"TIME\","
         "\"key\":null,\"body\":\"two\",\"properties\":{}}\n"},
    };

    (void)state;
    TAKE(steps);
}

static struct weir_partition_info look_at(uint32_t partition)
{
    struct weir_partition_info info;
    struct weir_error err;
    struct weir *w;

    assert_int_equal(weir_open(&w, dir, NULL, &err), 0);
    assert_int_equal(weir_partition_info(w, "a", partition, &info, &err), 0);
    assert_int_equal(weir_close(w, &err), 0);
    return info;
}

/* What comes from a place up to the end, of all partitions and of number 1. */
static void expect_from(const char *from, uint64_t value, const char *all, const char *one)
{
    const char *const said[] = {all, one};
    char line[128];

    for (int i = 0; i < 2; i++) {
        if (!said[i]) continue;
        snprintf(line, sizeof line, "a --until-end --from %s%" PRIu64 "%s", from, value,
                 i ? " --partition 1" : "");
        assert_int_equal(run(&weir__command_tail, line), 0);
        if (strcmp(said_out, said[i]) != 0) fail_msg("%s: %s", line, said_out);
    }
}

/* Where one partition has nothing more, the others go on. */
static void a_place_is_asked_of_each_partition(void **state)
{
    static const struct step steps[] = {FOUR};
    struct weir_partition_info info[3];

    (void)state;
    TAKE(steps);
    for (uint32_t i = 0; i < 3; i++) info[i] = look_at(i);
    expect_from("sequence:", 0, "one\ntwo\nthree\nfour\n", "one\nthree\n");
    expect_from("sequence:", 1, "three\n", "three\n");
    expect_from("sequence:", 2, "", "");
    expect_from("sequence:", 3, "", NULL);
    expect_from("offset:", info[0].last_offset, "two\nthree\nfour\n", "three\n");
    expect_from("offset:", info[0].last_offset + 1, "three\nfour\n", "three\n");
    expect_from("offset:", info[1].last_offset, "three\nfour\n", "three\n");
    expect_from("offset:", info[1].last_offset + 1, "four\n", NULL);
    expect_from("offset:", info[2].last_offset, "four\n", NULL);
    expect_from("offset:", info[2].last_offset + 1, "", NULL);
    expect_from("time:", 0, "one\ntwo\nthree\nfour\n", "one\nthree\n");
    expect_from("time:", (uint64_t)info[2].last_time_ms + 1, "", "");
    assert_int_equal(run(&weir__command_tail, "a --until-end --from latest"), 0);
    assert_string_equal(said_out, "");
}

#define LATE "weir: tail: the end was not reached in time; a longer --timeout may help\n"

static void it_ends_when_its_time_is_over(void **state)
{
    static const struct step steps[] = {
        FOUR,
        {&weir__command_hub_create, "b --partitions 1", 0, "created hub b with 1 partition\n"},
        {&weir__command_tail, "b --until-end", 0, ""},
        {&weir__command_tail, "b --until-end --timeout 0s", 0, ""},
        {&weir__command_hub_create, "c --partitions 2", 0, "created hub c with 2 partitions\n"},
        {&weir__command_send, "c one --partition 1", 0, "acknowledged 1 event\n"},
        {&weir__command_tail, "c --until-end --from sequence:5", 0, ""},
        {&weir__command_tail, "a --from latest --timeout 0s", 5, LATE},
        {&weir__command_tail, "b --timeout 0s", 5, LATE},
    };
    int64_t began_ns;

    (void)state;
    TAKE(steps);
    began_ns = weir__mono_ns();
    assert_int_equal(run(&weir__command_tail, "a --from latest --timeout 120ms"), 5);
    assert_true(weir__mono_ns() - began_ns >= INT64_C(120000000));
    began_ns = weir__mono_ns();
    assert_int_equal(run(&weir__command_tail, "a --timeout 30ms --json"), 5);
    assert_true(weir__mono_ns() - began_ns >= INT64_C(30000000));
    assert_non_null(strstr(said_out, "\"body\":\"four\""));
}

static void what_is_not_there_is_told(void **state)
{
    static const struct step steps[] = {
        FOUR,
        {&weir__command_tail, "a --from soon", 2,
         "weir: tail: --from 'soon' is not a position; try 'weir tail --help'\n"},
        {&weir__command_tail, "a --partition 4294967296", 2,
         "weir: tail: --partition is too large; try 'weir tail --help'\n"},
        {&weir__command_tail, "z --until-end", 3,
         "weir: tail: there is no hub 'z'; 'weir hub list' and 'weir hub show HUB' show what is "
         "there\n"},
        {&weir__command_tail, "a --group g --until-end", 3,
         "weir: tail: hub 'a' has no consumer group 'g'; 'weir hub list' and 'weir hub show HUB' "
         "show what is there\n"},
    };

    (void)state;
    TAKE(steps);
    assert_int_equal(run(&weir__command_tail, "a --partition 4294967295"), 3);
    assert_int_equal(run(&weir__command_tail, "a --partition 3"), 3);
    assert_int_equal(run(&weir__command_tail, "a --partition 2 --until-end"), 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* ---- a signal ---- */

int __real_weir_receiver_receive(struct weir_receiver *, size_t max, int64_t timeout_ms,
                                 struct weir_received *out, struct weir_error *err);
int __wrap_weir_receiver_receive(struct weir_receiver *, size_t max, int64_t timeout_ms,
                                 struct weir_received *out, struct weir_error *err);
void __real_weir_receiver_cancel(struct weir_receiver *);
void __wrap_weir_receiver_cancel(struct weir_receiver *);

static bool interrupts; /* the next wait for events, once */
static uint64_t missed; /* in front of the next events, once */
static uint64_t lost;   /* events at the beginning that never come, up to the end that is known */
static unsigned breaks; /* at this receive from now, and not after it; 0: never */
static int broken = WEIR_EIO;
static atomic_uint cancelled;

/* In their place comes one that was published since. */
static void pass_lost(struct weir_received *out)
{
    static struct weir_event newer;

    newer = out->events[out->count - 1];
    newer.sequence = lost;
    *out = (struct weir_received){.events = &newer, .count = 1, .missed = lost};
}

int __wrap_weir_receiver_receive(struct weir_receiver *r, size_t max, int64_t timeout_ms,
                                 struct weir_received *out, struct weir_error *err)
{
    if (interrupts && timeout_ms > 0) {
        interrupts = false;
        kill(getpid(), SIGINT);
    }
    if (breaks > 0 && --breaks == 0) return weir__fail(err, broken, "the disk does not answer");
    if (__real_weir_receiver_receive(r, max, timeout_ms, out, err) != 0) return err->code;
    if (missed > 0) out->missed = missed;
    missed = 0;
    if (lost > 0) pass_lost(out);
    return 0;
}

void __wrap_weir_receiver_cancel(struct weir_receiver *r)
{
    atomic_fetch_add(&cancelled, 1);
    __real_weir_receiver_cancel(r);
}

/* It ends the wait for the only stream at once; of several each is waited for a moment only. */
static void a_signal_ends_the_wait(void **state)
{
    static const struct {
        const char *line, *said;
        unsigned cancelled;
    } rows[] = {{"a", "one\ntwo\nthree\nfour\n", 0}, {"a --partition 1", "one\nthree\n", 1}};
    static const struct step steps[] = {FOUR};

    (void)state;
    TAKE(steps);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        atomic_store(&cancelled, 0);
        interrupts = true;
        assert_int_equal(run(&weir__command_tail, rows[i].line), 0);
        assert_string_equal(said_out, rows[i].said);
        assert_int_equal(atomic_load(&cancelled), rows[i].cancelled);
    }
}

/* ---- what cannot be read ---- */

/* It ends there: what came from other partitions by then is not printed as if it were all. */
static void a_failure_ends_it(void **state)
{
    static const struct {
        unsigned at;
        const char *line, *said;
    } rows[] = {
        {1, "a --timeout 20s", ""},
        {2, "a --timeout 20s", ""},
        {3, "a --until-end", ""},
        {4, "a --timeout 20s", "one\ntwo\n"}, /* the first that runs dry */
        {1, "a --partition 1 --timeout 20s", ""},
        {2, "a --partition 1 --timeout 20s", "one\nthree\n"},
    };
    static const struct step steps[] = {FOUR};

    (void)state;
    TAKE(steps);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        breaks = rows[i].at;
        assert_int_equal(run(&weir__command_tail, rows[i].line), 1);
        assert_string_equal(said_out, rows[i].said);
        assert_string_equal(said_err, "weir: tail: the disk does not answer\n");
        assert_int_equal(breaks, 0);
    }
}

int __wrap_weir_receiver_skip(struct weir_receiver *, uint64_t *first, uint64_t *last,
                              struct weir_error *err);

static int skipped; /* what comes of passing over damage */

int __wrap_weir_receiver_skip(struct weir_receiver *r, uint64_t *first, uint64_t *last,
                              struct weir_error *err)
{
    (void)r;
    *first = *last = 0;
    return skipped ? weir__fail(err, skipped, "the next segment cannot be opened") : 0;
}

#define DAMAGE                                                                                     \
    "weir: tail: partition 1: the disk does not answer; 'weir inspect' shows the extent; nothing " \
    "was deleted\n"

/* What is behind it is printed, unless that cannot be found. */
static void damage_is_passed_over(void **state)
{
    static const struct step steps[] = {FOUR};

    (void)state;
    TAKE(steps);
    broken = WEIR_ECORRUPT;
    for (int i = 0; i < 2; i++) {
        breaks = 1;
        skipped = i ? WEIR_EIO : 0;
        assert_int_equal(run(&weir__command_tail, "a --partition 1 --until-end"), 1);
        assert_string_equal(said_out, i ? "" : "one\nthree\n");
        assert_string_equal(said_err,
                            i ? DAMAGE "weir: tail: the next segment cannot be opened\n" : DAMAGE);
    }
    broken = WEIR_EIO;
}

/* ---- events that are gone ---- */

static void what_is_missing_is_told(void **state)
{
    static const struct step steps[] = {FOUR};

    (void)state;
    TAKE(steps);
    missed = 1;
    assert_int_equal(run(&weir__command_tail, "a --partition 1 --from sequence:1 --until-end"), 0);
    assert_string_equal(said_out, "three\n");
    assert_string_equal(said_err, "weir: tail: partition 1: events 0 to 0 are missing: they "
                                  "expired before they could be read\n");
    assert_int_equal(missed, 0);
}

int __real_weir__home_reach(struct weir__home *, const struct weir__command *,
                            const struct weir__common *, unsigned want);
int __wrap_weir__home_reach(struct weir__home *, const struct weir__command *,
                            const struct weir__common *, unsigned want);

/* A folder from which events are lost without a word is like a server. */
int __wrap_weir__home_reach(struct weir__home *h, const struct weir__command *self,
                            const struct weir__common *common, unsigned want)
{
    int code = __real_weir__home_reach(h, self, common, want);

    if (lost > 0) h->wire = true;
    return code;
}

/* Also where the next event tells the same. */
static void damage_in_front_of_the_end_is_told_once(void **state)
{
    static const struct step steps[] = {FOUR};

    (void)state;
    TAKE(steps);
    lost = 2;
    assert_int_equal(run(&weir__command_tail, "a --partition 1 --until-end"), 1);
    lost = 0;
    assert_string_equal(said_out, "");
    assert_string_equal(said_err, "weir: tail: partition 1: events 0 to 1 are missing: they are "
                                  "damaged; the server's log tells more\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(partitions_are_merged_by_time),
        CASE(a_place_is_asked_of_each_partition),
        CASE(it_ends_when_its_time_is_over),
        CASE(what_is_not_there_is_told),
        CASE(a_signal_ends_the_wait),
        CASE(what_is_missing_is_told),
        CASE(damage_in_front_of_the_end_is_told_once),
        CASE(a_failure_ends_it),
        CASE(damage_is_passed_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
