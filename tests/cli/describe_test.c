/* describe_test.c - weir group describe and weir checkpoint list on a folder whose store has members,
 * owners, marks and a record that cannot be understood. */
#include "cli/steps.h"

#include <inttypes.h>
#include <sqlite3.h>

#include "base/error.h"
#include "weir/store.h"
#include "weir/weir.h"

#define ANCIENT_MS 3600000
#define APART_MS 60

static struct weir *weir;
static struct weir_store *store;
static char space[WEIR_SPACE_BYTES], database[TEMPDIR_BYTES + 32];
static struct weir_scope scope = {space, "a", "$default"};
static struct weir_error err;

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != 0) fail_msg("%s: %s: %s", #call, weir_error_name(rc_), err.text);               \
    } while (0)

/* ---- what is in the store ---- */

static void open_all(void)
{
    char url[TEMPDIR_BYTES + 64];

    snprintf(database, sizeof database, "%s/processor.db", dir);
    snprintf(url, sizeof url, "sqlite:%s", database);
    assert_ok(weir_open(&weir, dir, NULL, &err));
    assert_ok(weir_space(weir, space, &err));
    assert_ok(weir_store_open(&store, url, NULL, &err));
}

static void close_all(void)
{
    weir_store_close(store);
    assert_ok(weir_close(weir, &err));
}

static void join(const char *id, uint32_t weight, int64_t expire_ms)
{
    struct weir_member m = {.instance = 7, .weight = weight, .expire_ms = expire_ms};

    snprintf(m.id, sizeof m.id, "%s", id);
    assert_ok(store->ops->beat(store, &scope, &m, &err));
}

static void claim(uint32_t partition, const char *owner)
{
    struct weir_record r = {.partition = partition};

    assert_ok(store->ops->claim(store, &scope, &r, owner, 7, &r, &err));
}

static void mark(uint32_t partition, const char *owner, uint64_t sequence, const char *offset)
{
    struct weir_mark m = {.partition = partition, .epoch = 1, .turn = 1, .sequence = sequence};

    snprintf(m.offset, sizeof m.offset, "%s", offset);
    assert_ok(store->ops->mark(store, &scope, owner, &m, 1, &err));
    assert_int_equal(m.rc, 0);
}

static void run_sql(const char *sql)
{
    sqlite3 *db;

    assert_int_equal(sqlite3_open(database, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static int64_t send_to(uint32_t partition)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .partition = partition};
    struct weir_event e = {.body = weir_text("x")};
    struct weir_partition_info info;
    struct weir_producer *producer;

    assert_ok(weir_producer_open(&producer, weir, "a", &o, &err));
    assert_ok(weir_producer_send(producer, &e, 1, -1, NULL, &err));
    assert_ok(weir_producer_close(producer, -1, &err));
    assert_ok(weir_partition_info(weir, "a", partition, &info, &err));
    return info.last_time_ms;
}

/* Events of a partition until they span some time. Returns how many, and between the second and the
 * last. */
static uint64_t send_apart(uint32_t partition, int64_t *out_ms)
{
    int64_t second_ms;
    uint64_t count = 2;

    send_to(partition);
    second_ms = send_to(partition);
    do {
        *out_ms = send_to(partition) - second_ms;
        count++;
    } while (*out_ms < APART_MS);
    return count;
}

/* ---- what is said about it ---- */

/* Whether text has the form: # is a number, with spaces before it. */
static bool is_like(const char *text, const char *form)
{
    for (; *form; form++) {
        if (*form != '#') {
            if (*text++ != *form) return false;
            continue;
        }
        text += strspn(text, " ");
        if (strspn(text, "0123456789") == 0) return false;
        text += strspn(text, "0123456789");
    }
    return *text == '\0';
}

static void expect_like(const struct weir__command *command, const char *line, const char *form)
{
    int code = run(command, line);

    if (code != 0 || *said_err || !is_like(said_out, form))
        fail_msg("%s %s: code %d\n%s%sinstead of\n%s", command->name, line, code, said_err,
                 said_out, form);
}

/* The number behind a text, of the line that has another. */
static int64_t number_behind(const char *line, const char *text)
{
    const char *at = strstr(said_out, line);

    assert_non_null(at);
    at = strstr(at, text);
    assert_non_null(at);
    return strtoll(at + strlen(text), NULL, 10);
}

#define HEAD                                                                                       \
    "\npartition  owner                         epoch  lease ms   checkpoint         last        " \
    "lag     lag s\n"

/* Partition 0 has an owner who lives, 1 one who is dead and has done nothing, 2 a record that is
 * rubbish, 3 an owner without a member; 4 was never owned. */
static uint64_t fill_store(int64_t *out_ms)
{
    uint64_t count;

    assert_int_equal(run(&weir__command_hub_create, "a --partitions 5"), 0);
    open_all();
    count = send_apart(0, out_ms);
    send_to(1);
    join("copy-a", 2, 600000);
    join("copy-b", 1, 600000);
    claim(0, "copy-a");
    claim(1, "copy-b");
    claim(2, "copy-b");
    claim(3, "gone");
    mark(0, "copy-a", 0, "1000000000000000");
    close_all();
    run_sql("UPDATE member SET beat_ms = beat_ms - 3600000 WHERE id = 'copy-b';"
            "UPDATE record SET epoch = 'rubbish' WHERE partition = 2");
    return count;
}

static void members_and_owners_are_shown(void **state)
{
    int64_t ms;
    uint64_t count = fill_store(&ms);
    char form[2048];

    (void)state;
    snprintf(form, sizeof form,
             "member copy-a                       weight 2, last beat # ms ago\n"
             "member copy-b                       weight 1, last beat # ms ago: dead\n" HEAD
             "        0  copy-a                            1#            0 %12" PRIu64 " %10" PRIu64
             " %9.1f\n"
             "        1  copy-b                            1#            -            0          1 "
             "      0.0\n"
             "        2  (record not understood)           -         -            -            -  "
             "        0       0.0\n"
             "        3  gone                              1         -            -            -  "
             "        0       0.0\n"
             "        4  -                                 -         -            -            -  "
             "        0       0.0  never owned\n",
             count - 1, count - 1, (double)ms / 1000);
    expect_like(&weir__command_group_describe, "a", form);
    assert_true(number_behind("copy-a", "last beat ") < ANCIENT_MS);
    assert_true(number_behind("copy-b", "last beat ") >= ANCIENT_MS);
}

static void members_and_owners_are_told_as_json(void **state)
{
    int64_t ms;
    uint64_t count = fill_store(&ms);
    char form[2048];

    (void)state;
    snprintf(
        form, sizeof form,
        "{\"type\":\"member\",\"member\":\"copy-a\",\"weight\":2,\"beat_age_ms\":#,\"alive\":true}"
        "\n"
        "{\"type\":\"member\",\"member\":\"copy-b\",\"weight\":1,\"beat_age_ms\":#,\"alive\":false}"
        "\n"
        "{\"type\":\"partition\",\"partition\":\"0\",\"owner\":\"copy-a\",\"epoch\":1,"
        "\"lease_age_ms\":#,\"checkpoint\":0,\"last_sequence\":%" PRIu64 ",\"lag\":%" PRIu64
        ",\"lag_ms\":%" PRId64 "}\n"
        "{\"type\":\"partition\",\"partition\":\"1\",\"owner\":\"copy-b\",\"epoch\":1,"
        "\"lease_age_ms\":#,\"checkpoint\":null,\"last_sequence\":0,\"lag\":1,\"lag_ms\":0}\n"
        "{\"type\":\"partition\",\"partition\":\"2\",\"owner\":null,\"epoch\":0,\"lease_age_ms\":"
        "null,\"checkpoint\":null,\"last_sequence\":null,\"lag\":0,\"lag_ms\":0,\"error\":\"the "
        "record cannot be understood\"}\n"
        "{\"type\":\"partition\",\"partition\":\"3\",\"owner\":\"gone\",\"epoch\":1,"
        "\"lease_age_ms\":null,\"checkpoint\":null,\"last_sequence\":null,\"lag\":0,\"lag_ms\":0}\n"
        "{\"type\":\"partition\",\"partition\":\"4\",\"owner\":null,\"epoch\":0,\"lease_age_ms\":"
        "null,\"checkpoint\":null,\"last_sequence\":null,\"lag\":0,\"lag_ms\":0}\n",
        count - 1, count - 1, ms);
    expect_like(&weir__command_group_describe, "a --json", form);
    assert_true(number_behind("\"partition\":\"0\"", "lease_age_ms\":") < ANCIENT_MS);
    assert_true(number_behind("\"partition\":\"1\"", "lease_age_ms\":") >= ANCIENT_MS);
}

/* What has no mark is left out; what cannot be understood is not. */
static void marks_are_listed_with_their_owners(void **state)
{
    int64_t ms;

    (void)state;
    fill_store(&ms);
    expect_like(&weir__command_checkpoint_list, "a",
                "partition     sequence               offset modified                 owner\n"
                "        0            0     OFFSET TIME copy-a\n"
                "        2 (the record cannot be understood)\n");
    expect_like(&weir__command_checkpoint_list, "a --json",
                "{\"partition\":\"0\",\"sequence\":0,\"offset\":\"OFFSET\",\"modified\":\"TIME\","
                "\"owner\":\"copy-a\"}\n"
                "{\"partition\":\"2\",\"error\":\"the record cannot be understood\"}\n");
}

/* A name as long as a hub's can be, and one more. */
static void names_have_a_limit(void **state)
{
    char name[WEIR_NAME_BYTES + 1], line[2 * WEIR_NAME_BYTES + 8], text[512];

    (void)state;
    assert_int_equal(run(&weir__command_hub_create, "a --partitions 1"), 0);
    memset(name, 'n', sizeof name);
    for (int more = 0; more < 2; more++) {
        int len = WEIR_NAME_BYTES - 1 + more;
        const char *why = "is not HUB or HUB/GROUP; try 'weir group describe --help'";
        snprintf(line, sizeof line, "%.*s", len, name);
        run(&weir__command_group_describe, line);
        assert_int_equal(strstr(said_err, why) != NULL, more);
        snprintf(line, sizeof line, "a/%.*s", len, name);
        run(&weir__command_group_describe, line);
        assert_int_equal(strstr(said_err, why) != NULL, more);
        snprintf(line, sizeof line, "%.*s/g", len, name);
        run(&weir__command_group_create, line);
        assert_int_equal(strstr(said_err, "is not HUB/GROUP") != NULL, more);
    }
    snprintf(text, sizeof text,
             "weir: group create: '%.64s' is not HUB/GROUP; try 'weir group "
             "create --help'\n",
             name);
    assert_string_equal(said_err, text);
}

static void a_processor_is_told_its_group_once(void **state)
{
    char line[4 * WEIR_NAME_BYTES], name[WEIR_NAME_BYTES];

    (void)state;
    assert_int_equal(run(&weir__command_hub_create, "a --partitions 1"), 0);
    assert_int_equal(run(&weir__command_process, "a/g --group h"), 2);
    assert_string_equal(said_err, "weir: process: the group is named twice; try 'weir process "
                                  "--help'\n");
    memset(name, 'n', sizeof name);
    snprintf(line, sizeof line, "%.*s --group %.*s", WEIR_NAME_BYTES - 1, name, WEIR_NAME_BYTES,
             name);
    assert_int_equal(run(&weir__command_process, line), 2);
    assert_string_equal(said_err,
                        "weir: process: the names are too long; try 'weir process --help'\n");
    line[strlen(line) - 1] = '\0';
    run(&weir__command_process, line);
    assert_null(strstr(said_err, "too long; try"));
    assert_int_equal(run(&weir__command_process, "a --group g"), 3);
    assert_string_equal(said_err,
                        "weir: process: consumer group 'g' of hub 'a': hub 'a' has no consumer "
                        "group 'g'; 'weir hub list' and 'weir hub show' show what is there\n");
    assert_int_equal(run(&weir__command_group_describe, "a/g"), 3);
    snprintf(line, sizeof line, "%s/processor.db", dir);
    assert_int_equal(access(line, F_OK), -1); /* nothing was made for it */
}

/* A store that cannot be opened is told of, and nothing is shown. */
static void a_store_that_cannot_be_opened(void **state)
{
    int64_t ms;

    (void)state;
    fill_store(&ms);
    run_sql("ALTER TABLE record RENAME COLUMN epoch TO era");
    assert_int_equal(run(&weir__command_group_describe, "a"), 1);
    assert_string_equal(said_out, "");
    assert_string_equal(said_err,
                        "weir: group describe: opening the store 'DIR/processor.db': no such "
                        "column: epoch; --store names another\n");
    assert_int_equal(run(&weir__command_checkpoint_list, "a --store sqlite:/nowhere/at/all.db"), 3);
    assert_string_equal(said_out, "");
    assert_string_equal(said_err,
                        "weir: checkpoint list: opening the store '/nowhere/at/all.db': making it: "
                        "No such file or directory; --store names another\n");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

/* ---- what cannot be read ---- */

int __real_weir_partition_info(struct weir *, const char *hub, uint32_t partition,
                               struct weir_partition_info *out, struct weir_error *);
int __wrap_weir_partition_info(struct weir *, const char *hub, uint32_t partition,
                               struct weir_partition_info *out, struct weir_error *);

static uint32_t broken = UINT32_MAX; /* the partition */

int __wrap_weir_partition_info(struct weir *w, const char *hub, uint32_t partition,
                               struct weir_partition_info *out, struct weir_error *e)
{
    if (partition != broken) return __real_weir_partition_info(w, hub, partition, out, e);
    return weir__fail(e, WEIR_EIO, "the disk does not answer");
}

/* What was shown before it stays shown, but it is not all. */
static void a_partition_that_cannot_be_read_is_told(void **state)
{
    static const struct step made[] = {
        {&weir__command_hub_create, "a --partitions 2", 0, "created hub a with 2 partitions\n"}};

    (void)state;
    TAKE(made);
    for (broken = 0; broken < 2; broken++) {
        assert_int_equal(run(&weir__command_group_describe, "a --json"), 1);
        assert_string_equal(said_err, "weir: group describe: the disk does not answer\n");
        assert_int_equal(strstr(said_out, "\"partition\":\"0\"") != NULL, broken == 1);
        assert_null(strstr(said_out, "\"partition\":\"1\""));
    }
    broken = UINT32_MAX;
}

int __real_weir_hub_info(struct weir *, const char *hub, struct weir_hub_info *out,
                         struct weir_error *);
int __wrap_weir_hub_info(struct weir *, const char *hub, struct weir_hub_info *out,
                         struct weir_error *);

static int looks; /* until one at the hub fails; 0: none will */

int __wrap_weir_hub_info(struct weir *w, const char *hub, struct weir_hub_info *out,
                         struct weir_error *e)
{
    if (looks == 0 || --looks > 0) return __real_weir_hub_info(w, hub, out, e);
    return weir__fail(e, WEIR_EIO, "the disk does not answer");
}

/* Nothing is shown of it, not even the heading. */
static void a_hub_that_cannot_be_read_is_told(void **state)
{
    (void)state;
    assert_int_equal(run(&weir__command_hub_create, "a --partitions 2"), 0);
    looks = 2;
    assert_int_equal(run(&weir__command_group_describe, "a"), 1);
    assert_int_equal(looks, 0);
    assert_string_equal(said_out, "");
    assert_string_equal(said_err, "weir: group describe: the disk does not answer\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(members_and_owners_are_shown),
        CASE(members_and_owners_are_told_as_json),
        CASE(marks_are_listed_with_their_owners),
        CASE(names_have_a_limit),
        CASE(a_processor_is_told_its_group_once),
        CASE(a_store_that_cannot_be_opened),
        CASE(a_partition_that_cannot_be_read_is_told),
        CASE(a_hub_that_cannot_be_read_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
