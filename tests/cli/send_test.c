/* send_test.c - weir send from a file: how lines are put together, how long they may be, and what is
 * said of those that cannot be sent. */
#include "cli/steps.h"

#include "base/error.h"
#include "weir/weir.h"

#define BATCH_MAX_BYTES 524288
#define EXTRA 64          /* that is added to each line */
#define READ_BYTES 262144 /* at once: a line that ends there is looked at all the same */
#define LINE_MAX_BYTES 1048576
#define JSON_MAX_BYTES 8388608

static char path[TEMPDIR_BYTES + 8];
static FILE *file;

static void open_file(void)
{
    snprintf(path, sizeof path, "%s/lines", dir);
    file = fopen(path, "w");
    assert_non_null(file);
}

static void put_line(char c, size_t len)
{
    for (size_t i = 0; i < len; i++) putc(c, file);
    putc('\n', file);
}

static void expect_send(const char *options, int code, const char *out, const char *complaint)
{
    char line[TEMPDIR_BYTES + 128];
    int is;

    assert_int_equal(fclose(file), 0);
    snprintf(line, sizeof line, "a --file %s %s", path, options);
    is = run(&weir__command_send, line);
    if (is != code || strcmp(said_out, out) != 0 || strcmp(said_err, complaint) != 0)
        fail_msg("%s: code %d\n%s%s", options, is, said_out, said_err);
}

static void make_hub(uint32_t partitions)
{
    char line[64];

    run(&weir__command_hub_delete, "a"); /* there may be none */
    snprintf(line, sizeof line, "a --partitions %u", partitions);
    assert_int_equal(run(&weir__command_hub_create, line), 0);
}

/* ---- batches ---- */

static int compare(const void *a, const void *b)
{
    return *(const int *)b - *(const int *)a;
}

/* The numbers of events in four partitions, the most first. */
static void expect_counts(int a, int b, int c, int d)
{
    const int want[] = {a, b, c, d};
    int counts[4] = {0}, at = 0;

    assert_int_equal(run(&weir__command_hub_show, "a --json"), 0);
    for (const char *p = said_out; at < 4 && (p = strstr(p, "\"next_sequence\":")); at++)
        counts[at] = atoi(p += strlen("\"next_sequence\":"));
    assert_int_equal(at, 4);
    qsort(counts, 4, sizeof counts[0], compare);
    for (at = 0; at < 4; at++) assert_int_equal(counts[at], want[at]);
}

static void a_batch_has_a_hundred_lines(void **state)
{
    (void)state;
    make_hub(4);
    open_file();
    for (int i = 0; i < 250; i++) put_line('x', 1);
    expect_send("", 0, "acknowledged 250 events\n", "");
    expect_counts(100, 100, 50, 0);
}

/* Two lines that fill it exactly go together, to one partition, and the next two to another. */
static void a_batch_has_so_many_bytes(void **state)
{
    static const struct {
        const char *options;
        size_t extra;
    } rows[] = {{"", EXTRA}, {"--property n=1234", EXTRA + 6 + 8}};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        for (size_t more = 0; more < 2; more++) {
            make_hub(4);
            open_file();
            put_line('x', BATCH_MAX_BYTES - 2 * rows[i].extra - 1 + more);
            for (int lines = 0; lines < 3; lines++) put_line('y', 1);
            expect_send(rows[i].options, 0, "acknowledged 4 events\n", "");
            if (more)
                expect_counts(3, 1, 0, 0);
            else
                expect_counts(2, 2, 0, 0);
        }
}

/* Lines of one key go together as long as no other comes between; all arrive in order, with theirs. */
static void a_batch_has_one_key(void **state)
{
    (void)state;
    make_hub(1);
    open_file();
    fputs("a|1\na|2\nb||3\naa|4\na|\n", file);
    expect_send("--key-separator |", 0, "acknowledged 5 events\n", "");
    assert_int_equal(run(&weir__command_tail, "a --until-end --json"), 0);
#define EVENT(n, key, body)                                                                        \
    "{\"partition\":\"0\",\"sequence\":" #n ",\"offset\":\"OFFSET\",\"enqueued_time\":\"TIME\","   \
    "\"key\":" key ",\"body\":\"" body "\",\"properties\":{}}\n"
    assert_string_equal(said_out,
                        EVENT(0, "\"a\"", "1") EVENT(1, "\"a\"", "2") EVENT(2, "\"b\"", "|3")
                            EVENT(3, "\"aa\"", "4") EVENT(4, "\"a\"", ""));
}

static void no_key_is_not_an_empty_one(void **state)
{
    (void)state;
    make_hub(1);
    open_file();
    fputs("{\"body\":\"0\"}\n{\"body\":\"1\",\"key\":\"k\"}\n{\"body\":\"2\",\"key\":\"l\"}\n"
          "{\"body\":\"3\"}\n{\"body\":\"4\"}\n",
          file);
    expect_send("--json", 0, "acknowledged 5 events\n", "");
    assert_int_equal(run(&weir__command_tail, "a --until-end --json"), 0);
    assert_string_equal(said_out,
                        EVENT(0, "null", "0") EVENT(1, "\"k\"", "1") EVENT(2, "\"l\"", "2")
                            EVENT(3, "null", "3") EVENT(4, "null", "4"));
}

static void lines_of_json_keep_what_they_say(void **state)
{
    static char expected[16384];
    size_t len = 0;

    (void)state;
    make_hub(1);
    open_file();
    for (int i = 0; i < 350; i++) {
        fprintf(file, "{\"body\":\"number %d\"}\n", i);
        len += (size_t)snprintf(expected + len, sizeof expected - len, "number %d\n", i);
    }
    expect_send("--json", 0, "acknowledged 350 events\n", "");
    assert_int_equal(run(&weir__command_tail, "a --until-end"), 0);
    assert_string_equal(said_out, expected);
}

/* ---- lines that are too long, or wrong ---- */

static void lines_have_a_limit(void **state)
{
    (void)state;
    make_hub(1);
    open_file();
    put_line('x', 1);
    put_line('x', LINE_MAX_BYTES + READ_BYTES + 1);
    expect_send("", 1, "acknowledged 1 event\n",
                "weir: send: line 2 is longer than 1048576 bytes\n");
    open_file();
    fputs("{\"body\":\"", file);
    for (int i = 0; i < 200000; i++) fputs("\\u0001", file);
    fputs("\"}\n", file);
    put_line(' ', JSON_MAX_BYTES + READ_BYTES + 1);
    expect_send("--json", 1, "acknowledged 1 event\n",
                "weir: send: line 2 is longer than 8388608 bytes\n");
}

static void lines_before_a_bad_one_are_sent(void **state)
{
    (void)state;
    make_hub(1);
    open_file();
    fputs("a|1\na|2\n|3\na|4\n", file);
    expect_send("--key-separator |", 2, "acknowledged 2 events\n",
                "weir: send: line 3: there is no key before '|'\n");
    assert_int_equal(run(&weir__command_tail, "a --until-end"), 0);
    assert_string_equal(said_out, "1\n2\n");
}

/* ---- batches that are not stored ---- */

int __real_weir_producer_send_async(struct weir_producer *, const struct weir_event *, size_t count,
                                    int64_t timeout_ms, weir_done_fn, void *user,
                                    struct weir_error *);
int __wrap_weir_producer_send_async(struct weir_producer *, const struct weir_event *, size_t count,
                                    int64_t timeout_ms, weir_done_fn, void *user,
                                    struct weir_error *);

static int sent;             /* batches, since the test began */
static int fails_from, late; /* the first that is not stored, 0: none; and told with the next one */
static bool at_once;         /* it is not even taken */
static void *late_user;

int __wrap_weir_producer_send_async(struct weir_producer *p, const struct weir_event *e,
                                    size_t count, int64_t timeout_ms, weir_done_fn done, void *user,
                                    struct weir_error *err)
{
    struct weir_error full = {WEIR_ENOSPACE, "the disk is full"}, other = {WEIR_EIO, "gone"};

    sent++;
    if (fails_from == 0 || sent < fails_from)
        return __real_weir_producer_send_async(p, e, count, timeout_ms, done, user, err);
    if (at_once) return weir__fail(err, full.code, "%s", full.text);
    if (late == sent) {
        late_user = user;
        return 0;
    }
    done(late_user ? late_user : user, full.code, NULL, &full);
    if (late_user) done(user, other.code, NULL, &other);
    late_user = NULL;
    return 0;
}

#define FULL "the disk is full; make room on the disk and try again\n"

static void expect_failure(int lines, int from, bool with_next, const char *out,
                           const char *complaint)
{
    make_hub(1);
    sent = 0;
    fails_from = from;
    late = with_next ? from : 0;
    open_file();
    for (int i = 0; i < lines; i++) put_line('x', 1);
    expect_send("", 1, out, complaint);
    fails_from = 0;
}

/* The first error is told, and up to where lines were sent. */
static void what_was_not_stored_is_told(void **state)
{
    (void)state;
    expect_failure(350, 2, false, "acknowledged 100 events\n",
                   "weir: send: 100 events were not acknowledged: " FULL
                   "weir: send: nothing behind line 200 was sent\n");
    expect_failure(350, 2, true, "acknowledged 100 events\n",
                   "weir: send: 200 events were not acknowledged: " FULL
                   "weir: send: nothing behind line 300 was sent\n");
    expect_failure(1, 1, false, "acknowledged 0 events\n",
                   "weir: send: 1 event was not acknowledged: " FULL
                   "weir: send: nothing behind line 1 was sent\n");
}

/* Nothing that comes behind it is tried. */
static void what_is_refused_at_once_is_told(void **state)
{
    (void)state;
    at_once = true;
    expect_failure(350, 2, false, "acknowledged 100 events\n",
                   "weir: send: " FULL "weir: send: nothing behind line 100 was sent\n");
    assert_int_equal(sent, 2);
    expect_failure(350, 1, false, "acknowledged 0 events\n",
                   "weir: send: " FULL "weir: send: no line was sent\n");
    assert_int_equal(sent, 1);
    expect_failure(1, 1, false, "acknowledged 0 events\n",
                   "weir: send: " FULL "weir: send: no line was sent\n");
    at_once = false;
}

static void a_text_that_was_not_stored_has_no_line(void **state)
{
    (void)state;
    make_hub(1);
    sent = 0;
    fails_from = 1;
    late = 0;
    assert_int_equal(run(&weir__command_send, "a text"), 1);
    fails_from = 0;
    assert_string_equal(said_out, "acknowledged 0 events\n");
    assert_string_equal(said_err, "weir: send: 1 event was not acknowledged: " FULL);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_batch_has_a_hundred_lines),
        CASE(a_batch_has_so_many_bytes),
        CASE(a_batch_has_one_key),
        CASE(no_key_is_not_an_empty_one),
        CASE(lines_of_json_keep_what_they_say),
        CASE(lines_have_a_limit),
        CASE(lines_before_a_bad_one_are_sent),
        CASE(what_was_not_stored_is_told),
        CASE(what_is_refused_at_once_is_told),
        CASE(a_text_that_was_not_stored_has_no_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
