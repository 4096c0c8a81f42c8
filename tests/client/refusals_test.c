/* Calls that cannot be right are refused before anything is asked, with a text that names the call;
 * and so is whatever may wait, inside a completion. */
#include "client/contract/place.h"

#include "support/allocs.h"
#include "support/tempdir.h"

static char dir[TEMPDIR_BYTES];
static struct weir *w;
static struct weir_producer *producer;
static struct weir_receiver *receiver;

static int start(void **state)
{
    (void)state;
    if (tempdir_make(dir) != 0) return -1;
    return weir_open(&w, dir, NULL, &err);
}

static int stop(void **state)
{
    int rc = weir_close(w, &err);

    (void)state;
    tempdir_remove(dir);
    return rc;
}

static void assert_says(int rc, int code, const char *text)
{
    assert_int_equal(rc, code);
    assert_int_equal(err.code, code);
    assert_string_equal(err.text, text);
}

#define NO_HUB ": no hub was named"
#define NONE ": none was named"

static void a_hub_is_named(void **state)
{
    struct weir_partition_info part;
    struct weir_hub_stats stats;
    struct weir_hub_info info;

    (void)state;
    assert_says(weir_hub_create(w, NULL, NULL, &err), WEIR_EINVAL, "creating a hub" NO_HUB);
    assert_says(weir_hub_update(w, NULL, NULL, &err), WEIR_EINVAL, "changing a hub" NO_HUB);
    assert_says(weir_hub_adopt(w, 1, NULL, &err), WEIR_EINVAL, "adopting a hub" NO_HUB);
    assert_says(weir_hub_delete(w, NULL, &err), WEIR_EINVAL, "deleting a hub" NO_HUB);
    assert_says(weir_hub_info(w, NULL, &info, &err), WEIR_EINVAL, "asking about a hub" NO_HUB);
    assert_says(weir_hub_stats(w, NULL, &stats, &err), WEIR_EINVAL, "asking about a hub" NO_HUB);
    assert_says(weir_partition_info(w, NULL, 0, &part, &err), WEIR_EINVAL,
                "asking about a partition" NO_HUB);
    assert_says(weir_group_create(w, NULL, "g", &err), WEIR_EINVAL, "creating a group" NO_HUB);
    assert_says(weir_group_create(w, "h", NULL, &err), WEIR_EINVAL, "creating a group" NONE);
    assert_says(weir_group_delete(w, NULL, "g", &err), WEIR_EINVAL, "deleting a group" NO_HUB);
    assert_says(weir_group_delete(w, "h", NULL, &err), WEIR_EINVAL, "deleting a group" NONE);
    assert_says(weir_group_list(w, NULL, NULL, NULL, &err), WEIR_EINVAL, "listing groups" NO_HUB);
}

static void a_rule_is_named(void **state)
{
    struct weir_rule rule = {.rights = WEIR_SEND};

    (void)state;
    assert_says(weir_rule_create(w, NULL, NULL, &err), WEIR_EINVAL, "creating a rule" NONE);
    assert_says(weir_rule_delete(w, NULL, NULL, &err), WEIR_EINVAL, "deleting a rule" NONE);
    assert_says(weir_rule_rotate(w, NULL, NULL, WEIR_PRIMARY_KEY, NULL, &err), WEIR_EINVAL,
                "changing a key" NONE);
    assert_says(weir_rule_renew(w, NULL, NULL, &rule, &err), WEIR_EINVAL, "renewing a key" NONE);
    memset(rule.name, 'n', sizeof rule.name);
    assert_says(weir_rule_create(w, NULL, &rule, &err), WEIR_EINVAL,
                "a rule's name or key has no end");
    for (int which = 0; which < 2; which++) {
        rule = (struct weir_rule){.name = "n", .rights = WEIR_SEND};
        memset(rule.key[which], 'k', sizeof rule.key[which]);
        assert_says(weir_rule_create(w, NULL, &rule, &err), WEIR_EINVAL,
                    "a rule's name or key has no end");
    }
}

static void whoever_opens_says_what(void **state)
{
    struct weir_receiver_options ro = {.size = sizeof ro};
    struct weir_producer_options po = {.size = sizeof po, .idempotent = true};
    struct weir *none = w;

    (void)state;
    assert_says(weir_open(&none, NULL, NULL, &err), WEIR_EINVAL, "opening: no folder was named");
    assert_null(none);
    assert_says(weir_producer_open(&producer, w, NULL, NULL, &err), WEIR_EINVAL,
                "opening a producer: no hub was named");
    assert_says(weir_producer_open(&producer, w, "h", &po, &err), WEIR_EINVAL,
                "an idempotent producer needs a partition");
    assert_null(producer);
    assert_says(weir_receiver_open(&receiver, w, NULL, 0, NULL, &err), WEIR_EINVAL,
                "opening a receiver: no hub was named");
    ro.position.from = (enum weir_from)(WEIR_FROM_TIME + 1);
    assert_says(weir_receiver_open(&receiver, w, "h", 0, &ro, &err), WEIR_EINVAL,
                "opening a receiver: unknown kind of position");
    ro = (struct weir_receiver_options){.size = sizeof ro, .exclusive = true, .epoch = -1};
    assert_says(weir_receiver_open(&receiver, w, "h", 0, &ro, &err), WEIR_EINVAL,
                "opening a receiver: a negative epoch");
    assert_null(receiver);
    assert_ok(weir_close(NULL, &err));
    assert_ok(weir_producer_close(NULL, 0, &err));
    weir_receiver_close(NULL);
}

#define STRANGER "Endpoint=sb://stranger;SharedAccessKeyName=n;SharedAccessKey=k"

static void what_cannot_be_opened_is_not(void **state)
{
    struct weir_options o = {.patience_ms = 1};
    struct weir *none = w;

    (void)state;
    assert_says(weir_open(&none, dir, &o, &err), WEIR_EINVAL,
                "options: size is not set to sizeof the struct");
    assert_null(none);
    none = w;
    assert_int_equal(weir_open(&none, "Endpoint=nowhere", NULL, &err), WEIR_EINVAL);
    assert_null(none);
    none = w;
    o.size = sizeof o;
    o.admin = "nowhere";
    assert_int_equal(weir_open(&none, STRANGER, &o, &err), WEIR_EINVAL);
    assert_memory_equal(err.text, "admin: ", 7);
    assert_null(none);
}

static void what_is_not_there_cannot_be_asked_about(void **state)
{
    struct weir_partition_info part;
    struct weir_hub_stats stats;

    (void)state;
    assert_int_equal(weir_hub_stats(w, "none", &stats, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_partition_info(w, "none", 0, &part, &err), WEIR_ENOTFOUND);
}

static int keep_rule(const struct weir_rule *r, void *user)
{
    if (strcmp(r->name, "mine") == 0) *(struct weir_rule *)user = *r;
    return 0;
}

/* A key that there is no memory to renew is as it was. */
static void without_memory_no_key_is_renewed(void **state)
{
    struct weir_rule mine = {.name = "mine", .rights = WEIR_SEND}, got, now;
    unsigned failures = 0;
    bool failed = true;

    (void)state;
    assert_ok(weir_rule_create(w, NULL, &mine, &err));
    for (uint64_t at = 1; failed; at++) {
        int rc;
        allocs_fail(at);
        rc = weir_rule_renew(w, NULL, "mine", &got, &err);
        failed = allocs_failed();
        allocs_fail(0);
        failures += rc != 0;
        assert_ok(weir_rule_list(w, NULL, keep_rule, &now, &err));
        if (rc != 0) {
            assert_string_equal(now.key[WEIR_PRIMARY_KEY], mine.key[WEIR_PRIMARY_KEY]);
            continue;
        }
        assert_string_not_equal(now.key[WEIR_PRIMARY_KEY], mine.key[WEIR_PRIMARY_KEY]);
        assert_string_equal(now.key[WEIR_SECONDARY_KEY], mine.key[WEIR_PRIMARY_KEY]);
        assert_string_equal(got.key[WEIR_PRIMARY_KEY], now.key[WEIR_PRIMARY_KEY]);
        assert_string_equal(got.key[WEIR_SECONDARY_KEY], now.key[WEIR_SECONDARY_KEY]);
        mine = now;
    }
    assert_true(failures > 1);
}

/* ---- inside a completion ---- */

struct inside {
    const char *call;
    int rc;
    struct weir_error err;
};

#define CALLS 24

static struct inside calls[CALLS];
static unsigned called;
static int at_once; /* a receive that does not wait */

static struct weir_error *call(const char *name)
{
    calls[called].call = name;
    return &calls[called].err;
}

static void came(int rc)
{
    calls[called++].rc = rc;
}

static void call_about_hubs(void)
{
    struct weir_partition_info part;
    struct weir_hub_stats stats;
    struct weir_hub_info info;

    came(weir_hub_create(w, "more", NULL, call("creating a hub")));
    came(weir_hub_update(w, "h", NULL, call("changing a hub")));
    came(weir_hub_adopt(w, 1, "more", call("adopting a hub")));
    came(weir_orphan_list(w, NULL, NULL, call("listing orphans")));
    came(weir_hub_delete(w, "h", call("deleting a hub")));
    came(weir_hub_info(w, "h", &info, call("asking about a hub")));
    came(weir_hub_list(w, NULL, NULL, call("listing hubs")));
    came(weir_hub_stats(w, "h", &stats, call("asking about a hub")));
    came(weir_partition_info(w, "h", 0, &part, call("asking about a partition")));
    came(weir_group_create(w, "h", "g", call("creating a group")));
    came(weir_group_delete(w, "h", "g", call("deleting a group")));
    came(weir_group_list(w, "h", NULL, NULL, call("listing groups")));
}

static void call_about_the_rest(void)
{
    struct weir_rule rule = {.name = "r", .rights = WEIR_SEND};
    char space[WEIR_SPACE_BYTES];
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_received got;

    came(weir_rule_create(w, NULL, &rule, call("creating a rule")));
    came(weir_rule_delete(w, NULL, "r", call("deleting a rule")));
    came(weir_rule_rotate(w, NULL, "r", WEIR_PRIMARY_KEY, NULL, call("changing a key")));
    came(weir_rule_renew(w, NULL, "r", &rule, call("renewing a key")));
    came(weir_rule_list(w, NULL, NULL, NULL, call("listing rules")));
    came(weir_space(w, space, call("weir_space")));
    came(weir_producer_open(&p, w, "h", NULL, call("weir_producer_open")));
    came(weir_receiver_open(&r, w, "h", 0, NULL, call("weir_receiver_open")));
    came(weir_receiver_receive(receiver, 1, 10, &got, call("weir_receiver_receive")));
    came(weir_close(w, call("weir_close")));
    at_once = weir_receiver_receive(receiver, 1, 0, &got, NULL);
}

static void call_all(void *user, int rc, const struct weir_receipt *at,
                     const struct weir_error *why)
{
    (void)user, (void)rc, (void)at, (void)why;
    call_about_hubs();
    call_about_the_rest();
}

static void nothing_waits_in_a_completion(void **state)
{
    struct weir_event e = {.body = weir_text("x")};
    char text[WEIR_ERROR_TEXT_BYTES];
    struct weir_hub_info info;

    (void)state;
    make_hub(w, 1);
    receiver = open_receiver(w, 0);
    producer = open_producer(w);
    assert_ok(weir_producer_send_async(producer, &e, 1, PATIENCE_MS, call_all, NULL, &err));
    close_producer(producer);
    weir_receiver_close(receiver);
    assert_int_equal(called, 22);
    for (unsigned i = 0; i < called; i++) {
        snprintf(text, sizeof text, "%s inside a completion would wait for itself", calls[i].call);
        assert_int_equal(calls[i].rc, WEIR_EDEADLOCK);
        assert_string_equal(calls[i].err.text, text);
    }
    assert_true(at_once == 0 || at_once == WEIR_ETIMEDOUT);
    assert_int_equal(weir_hub_info(w, "more", &info, &err), WEIR_ENOTFOUND);
    assert_ok(weir_hub_info(w, "h", &info, &err)); /* and outside it goes on */
    assert_int_equal(info.groups, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hub_is_named),
        cmocka_unit_test(a_rule_is_named),
        cmocka_unit_test(whoever_opens_says_what),
        cmocka_unit_test(what_cannot_be_opened_is_not),
        cmocka_unit_test(what_is_not_there_cannot_be_asked_about),
        cmocka_unit_test(without_memory_no_key_is_renewed),
        cmocka_unit_test(nothing_waits_in_a_completion),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
