/* golden_test.c - folders as earlier versions of the library wrote them are read as they were meant.
 *
 * tests/golden/N is a folder of format version N, made once by this program
 * (WEIR_GOLDEN_MAKE=tests/golden/N client_golden_test) and never again: a change that cannot read it
 * needs a new version and a new folder beside it. Each test works on a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/tempdir.h"
#include "weir/weir.h"

#define PARTITIONS 3u
#define BATCHES 120u /* per partition; enough for a second segment */
#define EVENTS 4u    /* per batch */
#define BODY_BYTES 1000u

static struct weir_error err;

#define assert_ok(call)                                                                            \
    do {                                                                                           \
        int rc_ = (call);                                                                          \
        if (rc_ != 0) fail_msg("%s: %s: %s", #call, weir_error_name(rc_), err.text);               \
    } while (0)

/* The body of an event, from its number; squeezed well by whoever stores the repository. */
static void fill_body(char body[BODY_BYTES], uint32_t partition, uint64_t sequence)
{
    memset(body, '.', BODY_BYTES);
    snprintf(body, BODY_BYTES, "event %llu of partition %u", (unsigned long long)sequence,
             partition);
}

static void send_batch(struct weir_producer *to, uint32_t partition, uint64_t first)
{
    char bodies[EVENTS][BODY_BYTES];
    struct weir_property property = {weir_text("number"), {WEIR_INT, {false}}};
    struct weir_property properties[EVENTS];
    struct weir_system_properties system = {.message_id = weir_value_text("golden"),
                                            .content_type = weir_text("text/plain")};
    struct weir_event events[EVENTS] = {0};

    for (uint32_t i = 0; i < EVENTS; i++) {
        fill_body(bodies[i], partition, first + i);
        properties[i] = property;
        properties[i].value.integer = (int64_t)(first + i);
        events[i] = (struct weir_event){.body = weir_bytes(bodies[i], BODY_BYTES),
                                        .property_count = 1,
                                        .properties = &properties[i],
                                        .system = &system,
                                        .partition_key = weir_text("key")};
    }
    assert_ok(weir_producer_send(to, events, EVENTS, -1, NULL, &err));
}

static void make_golden(const char *dir)
{
    const char *groups[] = {"readers"};
    struct weir_hub_options o = {.size = sizeof o,
                                 .partitions = PARTITIONS,
                                 .group_count = 1,
                                 .groups = groups,
                                 .retain_ms = -1};
    struct weir_rule rule = {.name = "sender", .rights = WEIR_SEND, .key = {"one", "two"}};
    struct weir *w;

    assert_ok(weir_open(&w, dir, NULL, &err));
    assert_ok(weir_hub_create(w, "Golden", &o, &err));
    assert_ok(weir_rule_create(w, "Golden", &rule, &err));
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        struct weir_producer_options po = {.size = sizeof po,
                                           .pinned = true,
                                           .partition = p,
                                           .idempotent = true};
        struct weir_producer *to;

        assert_ok(weir_producer_open(&to, w, "golden", &po, &err));
        for (uint64_t b = 0; b < BATCHES; b++) send_batch(to, p, b * EVENTS);
        assert_ok(weir_producer_close(to, -1, &err));
    }
    assert_ok(weir_close(w, &err));
}

static void check_event(const struct weir_event *e, uint32_t partition, uint64_t sequence)
{
    char body[BODY_BYTES];

    fill_body(body, partition, sequence);
    assert_int_equal(e->sequence, sequence);
    assert_int_equal(e->body.len, BODY_BYTES);
    assert_memory_equal(e->body.at, body, BODY_BYTES);
    assert_int_equal(e->property_count, 1);
    assert_int_equal(e->properties[0].value.integer, sequence);
    assert_int_equal(e->system->message_id.bytes.len, 6);
    assert_int_equal(e->partition_key.len, 3);
    assert_true(e->offset >= 1000000000000000u);
}

static void check_partition(struct weir *w, uint32_t partition)
{
    struct weir_receiver_options o = {.size = sizeof o, .group = "readers"};
    struct weir_receiver *from;
    struct weir_received got;
    uint64_t next = 0;
    int64_t time_ms = 0;

    assert_ok(weir_receiver_open(&from, w, "golden", partition, &o, &err));
    while (next < (uint64_t)BATCHES * EVENTS) {
        assert_ok(weir_receiver_receive(from, 64, 5000, &got, &err));
        for (size_t i = 0; i < got.count; i++) {
            check_event(&got.events[i], partition, next++);
            assert_true(got.events[i].enqueued_time_ms >= time_ms);
            time_ms = got.events[i].enqueued_time_ms;
        }
    }
    assert_int_equal(weir_receiver_receive(from, 1, 0, &got, &err), WEIR_ETIMEDOUT);
    weir_receiver_close(from);
}

static int one_rule(const struct weir_rule *rule, void *user)
{
    (*(int *)user)++;
    assert_string_equal(rule->name, "sender");
    assert_string_equal(rule->key[1], "two");
    return 0;
}

static void copy_folder(const char *from, const char *to)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        execlp("cp", "cp", "-R", from, to, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void format_1_is_read(void **state)
{
    char dir[TEMPDIR_BYTES];
    struct weir_options must = {.size = sizeof must, .must_exist = true};
    struct weir_hub_info info;
    struct weir_producer *to;
    struct weir *w;
    int rules = 0;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    copy_folder(WEIR_TESTS_DIR "/golden/1/.", dir);
    assert_ok(weir_open(&w, dir, &must, &err));
    assert_ok(weir_hub_info(w, "GOLDEN", &info, &err));
    assert_string_equal(info.name, "Golden");
    assert_int_equal(info.partitions, PARTITIONS);
    assert_ok(weir_rule_list(w, "golden", one_rule, &rules, &err));
    assert_int_equal(rules, 1);
    for (uint32_t p = 0; p < PARTITIONS; p++) check_partition(w, p);
    assert_ok(weir_producer_open(&to, w, "golden", NULL, &err)); /* and it goes on */
    send_batch(to, 0, 0);
    assert_ok(weir_producer_close(to, -1, &err));
    assert_ok(weir_close(w, &err));
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(format_1_is_read)};
    const char *make = getenv("WEIR_GOLDEN_MAKE");

    if (make) {
        make_golden(make);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
