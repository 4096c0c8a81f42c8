/* admin_test.c - what is answered about hubs and their groups. http.sh tests who may ask. */
#include "server/question.h"

#define MADE "\"created_ms\":1700000000000"
#define WEEK "\"retain_ms\":604800000,\"retain_bytes\":0"

static void hubs_are_made_agreed_with_and_changed(void **state)
{
#define PUT weir__admin_put_hub
#define PATCH weir__admin_change_hub
#define A "{\"name\":\"a\",\"partitions\":4," MADE "," WEEK ",\"groups\":[\"$Default\"]}"
#define B_HEAD "{\"name\":\"b\",\"partitions\":2," MADE ","
#define B_GROUPS ",\"groups\":[\"$Default\",\"x\",\"y\"]}"
#define DIFFERS(what)                                                                              \
    "{\"code\":409,\"detail\":\"hub 'b' has " what "; PATCH changes it\",\"error\":"               \
    "\"WEIR_EEXIST\"}\n"
    static const struct row rows[] = {
        {{.answer = weir__admin_list_hubs}, 200, "{\"hubs\":[]}"},
        {{.answer = PUT, "a"}, 201, A},
        {{.answer = PUT,
          "b",
          NULL,
          "{\"partitions\":2,\"retain_ms\":5000,\"retain_bytes\":70000,"
          "\"groups\":[\"x\"]}"},
         201,
         B_HEAD "\"retain_ms\":5000,\"retain_bytes\":70000,\"groups\":[\"$Default\",\"x\"]}"},
        {{.answer = PUT,
          "b",
          NULL,
          "{\"partitions\":2,\"retain_ms\":5000,\"retain_bytes\":70000,"
          "\"groups\":[\"x\",\"y\"]}"},
         200,
         B_HEAD "\"retain_ms\":5000,\"retain_bytes\":70000" B_GROUPS},
        {{.answer = PUT, "b", NULL, "{\"partitions\":3}"}, 409, DIFFERS("partitions 2, not 3")},
        {{.answer = PUT, "b", NULL, "{\"retain_ms\":0}"},
         409,
         DIFFERS("retain_ms 5000, not 604800000")},
        {{.answer = PUT, "b", NULL, "{\"retain_bytes\":1}"},
         409,
         DIFFERS("retain_bytes 70000, not 1")},
        {{.answer = PUT, "b", NULL, "{\"retain_bytes\":70001}"},
         409,
         DIFFERS("retain_bytes 70000, not 70001")},
        {{.answer = PUT, "a", NULL, "{\"retain_ms\":604800000}"}, 200, A},
        {{.answer = PUT, "b", NULL, "{\"groups\":[\"z\"]}", .only_new = true},
         412,
         "{\"code\":412,\"detail\":\"creating hub 'b': hub 'b' exists "
         "already\",\"error\":\"WEIR_EEXIST\"}\n"},
        {{.answer = PATCH, "b", NULL, "{\"partitions\":1}"},
         400,
         "{\"code\":400,\"detail\":\"changing hub 'b': it has 2 partitions, which cannot become 1: "
         "they can only become more\",\"error\":\"WEIR_EINVAL\"}\n"},
        {{.answer = PATCH, "b", NULL, "{\"retain_bytes\":90000}"},
         200,
         B_HEAD "\"retain_ms\":5000,\"retain_bytes\":90000" B_GROUPS},
        {{.answer = weir__admin_list_hubs},
         200,
         "{\"hubs\":[" A "," B_HEAD "\"retain_ms\":5000,\"retain_bytes\":90000" B_GROUPS "]}"},
        {{.answer = weir__admin_delete_hub, "a"}, 204, ""},
        {{.answer = weir__admin_list_groups, "a"},
         404,
         "{\"code\":404,\"detail\":\"there is no hub 'a'\",\"error\":\"WEIR_ENOTFOUND\"}\n"},
    };

    EXPECT_ALL(*state, rows);
#undef PUT
#undef PATCH
}

static void wrong_counts_of_partitions_make_no_hub(void **state)
{
    static const char *const bodies[] = {
        "{\"partitions\":-1}",          "{\"partitions\":0}",
        "{\"partitions\":4294967296}",  "{\"partitions\":4294967297}",
        "{\"partitions\":-4294967295}",
    };
    struct scene *s = *state;

    assert_int_equal(world_create(&s->world, "there", 1), 0);
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        struct question q = {.answer = weir__admin_put_hub, "a", .body = bodies[i]};
        assert_int_equal(ask(s, &q), 400);
        q.answer = weir__admin_change_hub;
        q.first = "there";
        assert_int_equal(ask(s, &q), 400);
    }
    assert_int_equal(ask(s, &(struct question){.answer = weir__admin_list_hubs}), 200);
    assert_string_equal(s->text, "{\"hubs\":[{\"name\":\"there\",\"partitions\":1," MADE "," WEEK
                                 ",\"groups\":[\"$Default\"]}]}");
}

static void a_hub_shows_what_it_keeps(void **state)
{
    struct scene *s = *state;
    struct weir__hub_stats stats;
    struct weir__hub *hub;
    char wanted[2048];

    assert_int_equal(world_create(&s->world, "a", 2), 0);
    assert_int_equal(weir__namespace_use(s->world.ns, "a", &hub, NULL), 0);
    assert_int_equal(world_publish(&s->world, hub, 1, "event", 3, NULL), 0);
    assert_int_equal(world_publish(&s->world, hub, 1, "event", 4, NULL), 0);
    assert_int_equal(world_publish(&s->world, hub, 2, "event", 4, NULL), WEIR_EINVAL);
    weir__hub_stats(hub, &stats);
    weir__hub_release(hub);
    snprintf(wanted, sizeof wanted,
             "{\"name\":\"a\",\"partitions\":2," MADE "," WEEK ",\"groups\":[\"$Default\"],"
             "\"stored_bytes\":%llu,\"disk_bytes\":%llu,\"disk_bytes_max\":%llu,"
             "\"begin_time_ms\":1700000000000,\"next_expiry_bytes\":%llu,\"next_expiry_ms\":%lld,"
             "\"segments\":%llu,\"batches_in\":2,\"events_in\":7,\"bytes_in\":%llu,"
             "\"batches_refused\":%llu,\"events_out\":0,\"bytes_out\":0,\"syncs\":%llu,"
             "\"receivers\":0,\"damaged_ranges\":0,\"producers\":0,\"producers_forgotten\":0}",
             (unsigned long long)stats.log.stored_bytes,
             (unsigned long long)(stats.log.disk_bytes ? stats.log.disk_bytes
                                                       : stats.log.log_bytes),
             (unsigned long long)stats.log.disk_bytes_max,
             (unsigned long long)stats.log.next_expiry_bytes, (long long)stats.log.next_expiry_ms,
             (unsigned long long)stats.log.segments, (unsigned long long)stats.log.bytes,
             (unsigned long long)stats.refused, (unsigned long long)stats.log.syncs);
    assert_int_equal(ask(s, &(struct question){.answer = weir__admin_show_hub, "a"}), 200);
    assert_string_equal(s->text, wanted);
    assert_true(stats.log.stored_bytes > 0 && stats.log.log_bytes > 0);
}

static void groups_of_a_hub(void **state)
{
#define G "{\"name\":\"g\"}"
    static const struct row rows[] = {
        {{.answer = weir__admin_put_group, "a", "g"}, 201, G},
        {{.answer = weir__admin_put_group, "a", "g"}, 200, G},
        {{.answer = weir__admin_put_group, "a", "g", .only_new = true},
         412,
         "{\"code\":412,\"detail\":\"consumer group 'g' exists "
         "already\",\"error\":\"WEIR_EEXIST\"}\n"},
        {{.answer = weir__admin_show_group, "a", "g"}, 200, G},
        {{.answer = weir__admin_show_group, "a", "h"},
         404,
         "{\"code\":404,\"detail\":\"The consumer group 'h' could not be found.\"}\n"},
        {{.answer = weir__admin_list_groups, "a"}, 200, "{\"groups\":[\"$Default\",\"g\"]}"},
        {{.answer = weir__admin_delete_group, "a", "g"}, 204, ""},
        {{.answer = weir__admin_list_groups, "a"}, 200, "{\"groups\":[\"$Default\"]}"},
    };
    struct scene *s = *state;

    assert_int_equal(world_create(&s->world, "a", 1), 0);
    EXPECT_ALL(s, rows);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(hubs_are_made_agreed_with_and_changed),
        TEST(wrong_counts_of_partitions_make_no_hub),
        TEST(a_hub_shows_what_it_keeps),
        TEST(groups_of_a_hub),
    };

    return cmocka_run_group_tests_name("admin", tests, NULL, NULL);
}
