/* process_test.c - weir process on a folder: all that it prints, as text and as JSON, when it prints the
 * events itself and when a command is fed them. It is told to stop when the test has seen enough. */
#include "cli/steps.h"

#include <signal.h>

#include "base/error.h"
#include "cli/feeder.h"
#include "weir/processor.h"

/* ---- when it is told to stop ---- */

static enum moment {
    AT_CHECKPOINT, /* that was taken */
    AT_FEED,
    AT_MARK, /* that a command has said */
    AT_CLOSE,
} awaited;
static bool stopped;    /* once: the second signal would be the end */
static int opens_badly; /* how often a command cannot be started, still */

static void come_to(enum moment moment)
{
    if (moment != awaited || stopped) return;
    stopped = true;
    kill(getpid(), SIGTERM);
}

int __real_weir_checkpoint(struct weir_partition *, const struct weir_event *);
int __wrap_weir_checkpoint(struct weir_partition *, const struct weir_event *);
int __real_weir__feeder_open(struct weir__feeder **, const char *, struct weir_partition *,
                             struct weir_error *);
int __wrap_weir__feeder_open(struct weir__feeder **, const char *, struct weir_partition *,
                             struct weir_error *);
int __real_weir__feeder_feed(struct weir__feeder *, struct weir_partition *,
                             const struct weir_event *, size_t count, uint64_t *out_marked);
int __wrap_weir__feeder_feed(struct weir__feeder *, struct weir_partition *,
                             const struct weir_event *, size_t count, uint64_t *out_marked);
int __real_weir__feeder_close(struct weir__feeder *, struct weir_partition *, uint64_t *);
int __wrap_weir__feeder_close(struct weir__feeder *, struct weir_partition *, uint64_t *);

int __wrap_weir_checkpoint(struct weir_partition *p, const struct weir_event *e)
{
    int rc = __real_weir_checkpoint(p, e);

    come_to(AT_CHECKPOINT);
    return rc;
}

int __wrap_weir__feeder_open(struct weir__feeder **out, const char *command,
                             struct weir_partition *p, struct weir_error *err)
{
    if (opens_badly == 0) return __real_weir__feeder_open(out, command, p, err);
    opens_badly--;
    return weir__fail(err, WEIR_EIO, "no more processes");
}

int __wrap_weir__feeder_feed(struct weir__feeder *f, struct weir_partition *p,
                             const struct weir_event *e, size_t count, uint64_t *out_marked)
{
    int rc = __real_weir__feeder_feed(f, p, e, count, out_marked);

    if (count > 0) come_to(AT_FEED);
    if (rc > 0) come_to(AT_MARK);
    return rc;
}

int __wrap_weir__feeder_close(struct weir__feeder *f, struct weir_partition *p,
                              uint64_t *out_marked)
{
    come_to(AT_CLOSE);
    return __real_weir__feeder_close(f, p, out_marked);
}

/* ---- what it prints ---- */

#define HEAD(type)                                                                                 \
    "{\"type\":\"" type "\",\"time\":\"TIME\",\"partition\":\"0\",\"owner\":\"me\",\"epoch\":1"
#define OPEN HEAD("open") "}\n"
#define CLOSE(reason) HEAD("close") ",\"reason\":\"" reason "\"}\n"
#define CHECKPOINT HEAD("checkpoint") ",\"sequence\":1}\n"
#define ERROR(code, reason)                                                                        \
    HEAD("error") ",\"action\":\"handling\",\"code\":\"" code "\",\"reason\":\"" reason "\"}\n"
#define EVENT(number, body)                                                                        \
    HEAD("event")                                                                                  \
    ",\"sequence\":" number ",\"offset\":\"OFFSET\",\"enqueued_time\":\"TIME\",\"key\":null,"      \
    "\"body\":\"" body "\",\"properties\":{}}\n"
#define EVENTS EVENT("0", "one") EVENT("1", "two")
#define OPENED "weir: partition 0 opened, epoch 1\n"
#define CLOSED(reason) "weir: partition 0 closed: " reason "\n"
#define NO_OPEN "weir: process: partition 0: no more processes\n"
#define HANDLING(why) "weir: handling: the command of partition 0 " why "\n"

struct row {
    enum moment until;
    const char *command; /* NULL: events are printed */
    const char *out, *err;
    int opens_badly;
    bool json;
};

static const struct row rows[] = {
    {AT_CHECKPOINT, NULL, "one\ntwo\n", OPENED CLOSED("shutdown"), 0, false},
    {AT_CHECKPOINT, NULL, OPEN EVENTS CHECKPOINT CLOSE("shutdown"), "", 0, true},
    /* What it says at its end is marked, too. */
    {AT_FEED, "cat >/dev/null; echo 1", OPEN EVENTS CHECKPOINT CLOSE("shutdown"), "", 0, true},
    {AT_FEED, "cat >/dev/null; echo 1", "", OPENED CLOSED("shutdown"), 0, false},
    {AT_FEED, "cat >/dev/null", OPEN EVENTS CLOSE("shutdown"), "", 0, true},
    {AT_MARK, "read a; read b; echo 1; cat >/dev/null", OPEN EVENTS CHECKPOINT CLOSE("shutdown"),
     "", 0, true},
    /* One that fails. */
    {AT_CLOSE, "read a; exit 3", "", OPENED HANDLING("ended with exit code 3") CLOSED("error"), 0,
     false},
    {AT_CLOSE, "read a; kill -9 $$",
     OPEN EVENTS ERROR("WEIR_EFAILED", "the command of partition 0 was killed by signal 9")
         CLOSE("error"),
     "", 0, true},
    {AT_CLOSE, "cat", "",
     NO_OPEN OPENED "weir: handling: the handler's open returned -2\n" CLOSED("error"), 1, false},
    {AT_CLOSE, "cat", OPEN ERROR("WEIR_EIO", "the handler's open returned -2") CLOSE("error"),
     NO_OPEN, 1, true},
};

static void expect_row(const struct row *r, size_t number)
{
    char name[] = "--name=me", json[] = "--json", data[] = "--data", hub[] = "a", exec[] = "--exec";
    char store[64], command[128], *argv[16] = {data, dir, hub, name, store};
    int argc = 5, code;

    snprintf(store, sizeof store, "--store=memory:%zu", number);
    snprintf(command, sizeof command, "%s", r->command ? r->command : "");
    if (r->json) argv[argc++] = json;
    if (r->command) argv[argc++] = exec, argv[argc++] = command;
    awaited = r->until;
    stopped = false;
    opens_badly = r->opens_badly;
    said_begin();
    code = weir__command_process.run(&weir__command_process, argc, argv);
    said_end();
    mask(said_out);
    mask(said_err);
    if (code != 0 || strcmp(said_out, r->out) != 0 || strcmp(said_err, r->err) != 0)
        fail_msg("row %zu: code %d\n%s%s", number, code, said_out, said_err);
}

/* Two events as one batch, which is given as a whole. */
static void fill_hub(void)
{
    char path[TEMPDIR_BYTES + 8], line[TEMPDIR_BYTES + 32];
    FILE *f;

    snprintf(path, sizeof path, "%s/.lines", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("one\ntwo\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(run(&weir__command_hub_create, "a --partitions 1"), 0);
    snprintf(line, sizeof line, "a --file %s", path);
    assert_int_equal(run(&weir__command_send, line), 0);
    assert_string_equal(said_out, "acknowledged 2 events\n");
}

static void everything_that_happens_is_told(void **state)
{
    (void)state;
    fill_hub();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) expect_row(&rows[i], i);
}

/* ---- when it cannot begin ---- */

int __real_weir_processor_start(struct weir_processor **, struct weir_source *, struct weir_store *,
                                const struct weir_processor_options *, struct weir_error *);
int __wrap_weir_processor_start(struct weir_processor **, struct weir_source *, struct weir_store *,
                                const struct weir_processor_options *, struct weir_error *);

static bool starts_badly;

int __wrap_weir_processor_start(struct weir_processor **out, struct weir_source *source,
                                struct weir_store *store, const struct weir_processor_options *o,
                                struct weir_error *err)
{
    if (!starts_badly) return __real_weir_processor_start(out, source, store, o, err);
    return weir__fail(err, WEIR_EEXIST, "there is another of that name");
}

static void one_that_cannot_begin_says_why(void **state)
{
    (void)state;
    fill_hub();
    starts_badly = true;
    assert_int_equal(run(&weir__command_process, "a --name=me --store=memory:x"), 1);
    starts_badly = false;
    assert_string_equal(said_err,
                        "weir: process: there is another of that name; choose another --name\n");
    assert_string_equal(said_out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(everything_that_happens_is_told, begin, end),
        cmocka_unit_test_setup_teardown(one_that_cannot_begin_says_why, begin, end),
    };

    return cmocka_run_group_tests_name("process", tests, NULL, NULL);
}
