/* admin.h - hubs, groups, rules, numbers, options. */
#ifndef WEIR_TESTS_CONTRACT_ADMIN_H
#define WEIR_TESTS_CONTRACT_ADMIN_H

#include "place.h"

#define NAMES_BYTES 256

/* Puts a name and a blank behind what is there. */
static int join_name(const char *name, void *user)
{
    size_t len = strlen(user);

    snprintf((char *)user + len, NAMES_BYTES - len, "%s ", name);
    return 0;
}

static int join_hub_name(const struct weir_hub_info *h, void *user)
{
    return join_name(h->name, user);
}

static void hubs_come_and_go(void **state)
{
    struct weir *w = *state;
    struct weir_hub_options o = {.size = sizeof o, .partitions = 1024, .retain_ms = 3600000};
    struct weir_hub_info info;
    char names[NAMES_BYTES] = "";

    assert_ok(weir_hub_create(w, "First", NULL, &err));
    assert_ok(weir_hub_create(w, "second", &o, &err));
    assert_int_equal(weir_hub_create(w, "FIRST", NULL, &err), WEIR_EEXIST);
    assert_int_equal(weir_hub_create(w, "a/b", NULL, &err), WEIR_EINVAL);
    assert_int_equal(weir_hub_create(w, NULL, NULL, &err), WEIR_EINVAL);
    o.partitions = 1025;
    assert_int_equal(weir_hub_create(w, "third", &o, &err), WEIR_EINVAL);
    assert_ok(weir_hub_list(w, join_hub_name, names, &err));
    assert_string_equal(names, "First second ");
    assert_ok(weir_hub_info(w, "SECOND", &info, &err));
    assert_string_equal(info.name, "second");
    assert_int_equal(info.partitions, 1024);
    assert_int_equal(info.retain_ms, 3600000);
    assert_int_equal(info.groups, 1);
    assert_ok(weir_hub_info(w, "first", &info, &err));
    assert_int_equal(info.partitions, 4);
    assert_int_equal(info.retain_ms, 7 * 86400000);
    assert_ok(weir_hub_delete(w, "first", &err));
    assert_int_equal(weir_hub_delete(w, "first", &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_hub_info(w, "first", &info, &err), WEIR_ENOTFOUND);
}

static void groups_come_and_go(void **state)
{
    static const char *const first[] = {"alarm", "archive"};
    struct weir *w = *state;
    struct weir_hub_options o = {.size = sizeof o, .groups = first, .group_count = 2};
    char names[NAMES_BYTES] = "";

    assert_ok(weir_hub_create(w, "h", &o, &err));
    assert_ok(weir_group_create(w, "h", "late", &err));
    assert_int_equal(weir_group_create(w, "h", "LATE", &err), WEIR_EEXIST);
    assert_int_equal(weir_group_delete(w, "h", WEIR_DEFAULT_GROUP, &err), WEIR_EDENIED);
    assert_ok(weir_group_delete(w, "h", "alarm", &err));
    assert_int_equal(weir_group_delete(w, "h", "alarm", &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_group_create(w, "h", "a/b", &err), WEIR_EINVAL);
    assert_int_equal(weir_group_create(w, "h", NULL, &err), WEIR_EINVAL);
    assert_int_equal(weir_group_create(w, "nope", "g", &err), WEIR_ENOTFOUND);
    assert_ok(weir_group_list(w, "h", join_name, names, &err));
    assert_string_equal(names, "$Default archive late ");
    assert_int_equal(weir_group_list(w, "nope", join_name, names, &err), WEIR_ENOTFOUND);
}

static void hubs_are_changed(void **state)
{
    struct weir *w = *state;
    struct weir_hub_changes c = {.size = sizeof c, .partitions = 3, .retain_bytes = 1 << 30};
    struct weir_producer_options last = {.size = sizeof last, .pinned = true, .partition = 2};
    struct weir_hub_info info;
    struct weir_producer *p;

    make_hub(w, 2);
    assert_int_equal(weir_producer_open(&p, w, "h", &last, &err), WEIR_ENOTFOUND);
    assert_ok(weir_hub_update(w, "H", &c, &err));
    assert_ok(weir_hub_info(w, "h", &info, &err));
    assert_int_equal(info.partitions, 3);
    assert_int_equal(info.retain_bytes, 1 << 30);
    assert_int_equal(info.retain_ms, 7 * 86400000);
    p = open_pinned(w, 2);
    send_text(p, "into the new one");
    close_producer(p);
    c = (struct weir_hub_changes){.size = sizeof c,
                                  .retain_ms = -1,
                                  .retain_bytes = WEIR_RETAIN_ALL};
    assert_ok(weir_hub_update(w, "h", &c, &err));
    assert_ok(weir_hub_info(w, "h", &info, &err));
    assert_int_equal(info.partitions, 3);
    assert_int_equal(info.retain_bytes, 0);
    assert_true(info.retain_ms < 0);
    c = (struct weir_hub_changes){.size = sizeof c, .partitions = 2};
    assert_int_equal(weir_hub_update(w, "h", &c, &err), WEIR_EINVAL);
    c.partitions = 4;
    assert_int_equal(weir_hub_update(w, "nope", &c, &err), WEIR_ENOTFOUND);
}

static int stop_list(const struct weir_hub_info *h, void *user)
{
    *(int *)user += 1;
    return h->partitions == 7 ? WEIR_EINVAL : 0; /* a code that means something else inside */
}

/* What fn returns is what the call returns, and it may call the library. */
static void a_list_ends_when_its_reader_says(void **state)
{
    struct weir *w = *state;
    struct weir_hub_options o = {.size = sizeof o, .partitions = 7};
    int seen = 0;

    assert_ok(weir_hub_create(w, "a", NULL, &err));
    assert_ok(weir_hub_create(w, "b", &o, &err));
    assert_ok(weir_hub_create(w, "c", NULL, &err));
    assert_int_equal(weir_hub_list(w, stop_list, &seen, &err), WEIR_EINVAL);
    assert_int_equal(seen, 2);
}

/* Stops at "b". */
static int stop_names(const char *name, void *user)
{
    *(int *)user += 1;
    return strcmp(name, "b") == 0 ? WEIR_EINVAL : 0;
}

static int stop_rules(const struct weir_rule *r, void *user)
{
    return stop_names(r->name, user);
}

/* The same of groups and rules. */
static void lists_within_a_hub_end_so_too(void **state)
{
    static const char *const names[] = {"a", "b", "c"};
    struct weir *w = *state;
    struct weir_hub_options o = {.size = sizeof o, .groups = names, .group_count = 3};
    int groups = 0, rules = 0;

    assert_ok(weir_hub_create(w, "h", &o, &err));
    for (int i = 0; i < 3; i++) {
        struct weir_rule rule = {.rights = WEIR_SEND};
        snprintf(rule.name, sizeof rule.name, "%s", names[i]);
        assert_ok(weir_rule_create(w, "h", &rule, &err));
    }
    assert_int_equal(weir_group_list(w, "h", stop_names, &groups, &err), WEIR_EINVAL);
    assert_int_equal(groups, 3); /* with the default group */
    assert_int_equal(weir_rule_list(w, "h", stop_rules, &rules, &err), WEIR_EINVAL);
    assert_int_equal(rules, 2);
}

static int count_orphan(const struct weir_orphan *o, void *user)
{
    (void)o;
    *(int *)user += 1;
    return 0;
}

static void there_are_no_orphans(void **state)
{
    struct weir *w = *state;
    int count = 0;

    assert_ok(weir_orphan_list(w, count_orphan, &count, &err));
    assert_int_equal(count, 0);
    assert_int_equal(weir_hub_adopt(w, 42, "h", &err), WEIR_ENOTFOUND);
}

static int keep_rule(const struct weir_rule *r, void *user)
{
    *(struct weir_rule *)user = *r;
    return 0;
}

static int keep_hub(const struct weir_hub_info *h, void *user)
{
    *(struct weir_hub_info *)user = *h;
    return 0;
}

/* Names as long as can be, of a hub, a group and a rule: all that can be done with short ones can be
 * done with them. One byte more is refused. */
static void the_longest_names_do(void **state)
{
    struct weir *w = *state;
    char hub[WEIR_NAME_BYTES + 1] = "", group[52] = "", names[NAMES_BYTES] = "";
    struct weir_producer_options po = {.size = sizeof po, .pinned = true, .partition = 0};
    struct weir_receiver_options ro = {.size = sizeof ro, .group = group};
    struct weir_rule rule = {.rights = WEIR_SEND}, got = {.name = ""};
    struct weir_hub_info info = {.name = ""};
    struct weir_producer *p;
    struct weir_receiver *r;

    memset(hub, 'h', WEIR_NAME_BYTES);
    memset(group, 'g', 51);
    memset(rule.name, 'r', WEIR_NAME_BYTES - 1);
    assert_int_equal(weir_hub_create(w, hub, NULL, &err), WEIR_EINVAL);
    hub[WEIR_NAME_BYTES - 1] = '\0';
    assert_ok(weir_hub_create(w, hub, NULL, &err));
    assert_int_equal(weir_group_create(w, hub, group, &err), WEIR_EINVAL);
    group[50] = '\0';
    assert_ok(weir_group_create(w, hub, group, &err));
    assert_ok(weir_rule_create(w, hub, &rule, &err));
    assert_ok(weir_hub_info(w, hub, &info, &err));
    assert_string_equal(info.name, hub);
    memset(&info, 0xee, sizeof info);
    assert_ok(weir_hub_list(w, keep_hub, &info, &err));
    assert_string_equal(info.name, hub);
    assert_ok(weir_rule_list(w, hub, keep_rule, &got, &err));
    assert_string_equal(got.name, rule.name);
    assert_ok(weir_group_list(w, hub, join_name, names, &err));
    assert_memory_equal(names + strlen("$Default "), group, 50);

    assert_ok(weir_producer_open(&p, w, hub, &po, &err));
    send_text(p, "to a long name");
    assert_ok(weir_receiver_open(&r, w, hub, 0, &ro, &err));
    assert_next(r, "to a long name");
    weir_receiver_close(r);
    close_producer(p);
    assert_ok(weir_rule_delete(w, hub, rule.name, &err));
    assert_ok(weir_group_delete(w, hub, group, &err));
    assert_ok(weir_hub_delete(w, hub, &err));
}

static void rules_have_two_keys(void **state)
{
    struct weir *w = *state;
    struct weir_rule rule = {.name = "door", .rights = WEIR_SEND}, got = {.name = ""}, after;

    make_hub(w, 1);
    assert_ok(weir_rule_create(w, "h", &rule, &err));
    assert_int_equal(strlen(rule.key[WEIR_PRIMARY_KEY]), 44);
    assert_string_not_equal(rule.key[WEIR_PRIMARY_KEY], rule.key[WEIR_SECONDARY_KEY]);
    assert_int_equal(weir_rule_create(w, "h", &rule, &err), WEIR_EEXIST);
    assert_ok(weir_rule_list(w, "h", keep_rule, &got, &err));
    assert_string_equal(got.name, "door");
    assert_int_equal(got.rights, WEIR_SEND);
    assert_string_equal(got.key[0], contract_lists_keys ? rule.key[0] : "");
    assert_string_equal(got.key[1], contract_lists_keys ? rule.key[1] : "");
    assert_ok(weir_rule_rotate(w, "h", "door", WEIR_PRIMARY_KEY, "chosen-\"\\", &err));
    assert_ok(weir_rule_renew(w, "h", "DOOR", &after, &err));
    assert_string_equal(after.name, "door");
    assert_int_equal(after.rights, WEIR_SEND);
    assert_string_equal(after.key[WEIR_SECONDARY_KEY], "chosen-\"\\");
    assert_int_equal(strlen(after.key[WEIR_PRIMARY_KEY]), 44);
    assert_string_not_equal(after.key[WEIR_PRIMARY_KEY], rule.key[WEIR_PRIMARY_KEY]);
    assert_ok(weir_rule_rotate(w, "h", "door", WEIR_SECONDARY_KEY, NULL, &err));
    assert_int_equal(weir_rule_renew(w, "h", "window", &after, &err), WEIR_ENOTFOUND);
    assert_string_equal(after.name, "door"); /* as it was */
    assert_int_equal(weir_rule_rotate(w, "h", "door", WEIR_PRIMARY_KEY, "a b", &err), WEIR_EINVAL);
    assert_ok(weir_rule_delete(w, "h", "door", &err));
    assert_int_equal(weir_rule_delete(w, "h", "door", &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_rule_delete(w, "h", NULL, &err), WEIR_EINVAL);
}

static void rules_have_a_limit(void **state)
{
    struct weir *w = *state;
    struct weir_rule rule = {.rights = WEIR_LISTEN, .key = {"one", "two"}};

    make_hub(w, 1);
    for (int i = 0; i < 12; i++) {
        snprintf(rule.name, sizeof rule.name, "r%d", i);
        assert_ok(weir_rule_create(w, "h", &rule, &err));
        assert_string_equal(rule.key[WEIR_PRIMARY_KEY], "one");
    }
    snprintf(rule.name, sizeof rule.name, "one-more");
    assert_int_equal(weir_rule_create(w, "h", &rule, &err), WEIR_ELIMIT);
    assert_int_equal(weir_rule_renew(w, "h", "one-more", &rule, &err), WEIR_ENOTFOUND);
}

static void options_of_any_age_are_understood(void **state)
{
    struct weir *w = *state;
    struct {
        struct weir_hub_options o;
        char later[16];
    } future = {.o = {.size = sizeof future, .partitions = 2}};
    struct weir_hub_options o = {.partitions = 2};
    struct weir_hub_info info;

    assert_int_equal(weir_hub_create(w, "h", &o, &err), WEIR_EINVAL); /* size is not set */
    o.size = offsetof(struct weir_hub_options, retain_ms);            /* an older caller */
    o.retain_ms = 1;
    assert_ok(weir_hub_create(w, "older", &o, &err));
    assert_ok(weir_hub_info(w, "older", &info, &err));
    assert_int_equal(info.partitions, 2);
    assert_int_equal(info.retain_ms, 7 * 86400000);
    assert_ok(weir_hub_create(w, "later", &future.o, &err)); /* asks for nothing new */
    future.later[3] = 1;
    assert_int_equal(weir_hub_create(w, "h", &future.o, &err), WEIR_EINVAL);
}

static void numbers_tell_what_happened(void **state)
{
    struct weir *w = *state;
    struct weir_partition_info info;
    struct weir_hub_stats stats;
    struct weir_producer *p;
    struct weir_receiver *r;
    struct weir_receipt at;

    make_hub(w, 1);
    assert_ok(weir_partition_info(w, "h", 0, &info, &err));
    assert_int_equal(info.begin_sequence, 0);
    assert_int_equal(info.next_sequence, 0);
    assert_int_equal(info.last_offset, 0);
    p = open_producer(w);
    send_text(p, "a");
    at = send_text(p, "b");
    r = open_receiver(w, 0);
    assert_next(r, "a");
    assert_ok(weir_partition_info(w, "h", 0, &info, &err));
    assert_int_equal(info.next_sequence, 2);
    if (at.placed) assert_int_equal(info.last_offset, at.offset);
    if (at.placed) assert_int_equal(info.last_time_ms, at.enqueued_time_ms);
    assert_ok(weir_hub_stats(w, "h", &stats, &err));
    assert_int_equal(stats.events_in, 2);
    assert_in_range(stats.events_out, 1, 2); /* a connection reads ahead */
    assert_int_equal(stats.receivers, 1);
    assert_int_equal(stats.damaged_ranges, 0);
    assert_int_equal(weir_receiver_skip(r, NULL, NULL, &err), WEIR_EINVAL);
    weir_receiver_close(r);
    close_producer(p);
}

static void a_deleted_hub_says_so(void **state)
{
    struct weir *w = *state;
    struct weir_event e = {.body = weir_text("x")};
    struct weir_received got;
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(w, 1);
    p = open_producer(w);
    r = open_receiver(w, 0);
    assert_ok(weir_hub_delete(w, "h", &err));
    assert_int_equal(weir_receiver_receive(r, 1, PATIENCE_MS, &got, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir_producer_send(p, &e, 1, PATIENCE_MS, NULL, &err), WEIR_ENOTFOUND);
    make_hub(w, 2); /* the name is free at once */
    weir_receiver_close(r);
    close_producer(p);
}

static void a_place_in_use_is_not_closed(void **state)
{
    struct weir *w = *state;
    struct weir_producer *p;

    make_hub(w, 1);
    p = open_producer(w);
    assert_int_equal(weir_close(w, &err), WEIR_EBUSY);
    send_text(p, "still open");
    close_producer(p);
    assert_ok(weir_close(NULL, &err));
    assert_ok(weir_producer_close(NULL, 0, &err));
    weir_receiver_close(NULL);
}

#endif
