/* admin_test.c - what is answered about hubs and their groups. http.sh tests who may ask. */
#include <arpa/inet.h>
#include <sched.h>
#include <unistd.h>

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
#define NO_MEMBER                                                                                  \
    "{\"code\":400,\"detail\":\"the body: there is no member 'partition'\",\"error\":"             \
    "\"WEIR_EINVAL\"}\n"
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
        {{.answer = PUT, "b", NULL, "{\"groups\":[\"y\"]}"},
         200,
         B_HEAD "\"retain_ms\":5000,\"retain_bytes\":70000" B_GROUPS},
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
        {{.answer = PATCH, "b", NULL, "{\"retain_bytes\":80000,\"partition\":4}"}, 400, NO_MEMBER},
        {{.answer = PUT, "c", NULL, "{\"partitions\":4,\"partition\":4}"}, 400, NO_MEMBER},
        {{.answer = PATCH, "b", NULL, "{}"},
         200,
         B_HEAD "\"retain_ms\":5000,\"retain_bytes\":70000" B_GROUPS},
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

static void wrong_orders_make_and_change_no_hub(void **state)
{
    static const char *const bodies[] = {
        "{\"partitions\":-1}",
        "{\"partitions\":0}",
        "{\"partitions\":4294967296}",
        "{\"partitions\":4294967297}",
        "{\"partitions\":-4294967295}",
        "{\"partitions\":2,\"name\":\"a\"}",
        "{\"partitions\":2",
        "{\"partitions\":2,\"retain_bytes\":-1}",
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
    struct simfs_fault fault = {.kinds = SIMFS_OPEN, .at = 1, .persistent = true, .rc = WEIR_EIO};
    struct weir__hub_stats stats;
    struct weir__hub *hub;
    char wanted[2048];

    assert_int_equal(world_create(&s->world, "b", 1), 0);
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
             (unsigned long long)stats.log.stored_bytes, (unsigned long long)stats.log.disk_bytes,
             (unsigned long long)stats.log.disk_bytes_max,
             (unsigned long long)stats.log.next_expiry_bytes, (long long)stats.log.next_expiry_ms,
             (unsigned long long)stats.log.segments, (unsigned long long)stats.log.bytes,
             (unsigned long long)stats.refused, (unsigned long long)stats.log.syncs);
    assert_int_equal(ask(s, &(struct question){.answer = weir__admin_show_hub, "a"}), 200);
    assert_string_equal(s->text, wanted);
    simfs_fail(s->world.disk, &fault);
    assert_int_equal(ask(s, &(struct question){.answer = weir__admin_show_hub, "b"}), 200);
    assert_string_equal(s->text, "{\"name\":\"b\",\"partitions\":1," MADE "," WEEK
                                 ",\"groups\":[\"$Default\"]}"); /* it cannot be opened */
    assert_true(stats.log.stored_bytes > 0 && stats.log.disk_bytes > stats.log.stored_bytes);
}

static void make_with_event(struct scene *s, const char *name, uint32_t partitions)
{
    struct weir__hub *hub;

    assert_int_equal(world_create(&s->world, name, partitions), 0);
    assert_int_equal(weir__namespace_use(s->world.ns, name, &hub, NULL), 0);
    assert_int_equal(world_publish(&s->world, hub, 0, "event", 1, NULL), 0);
    weir__hub_release(hub);
}

/* What the catalogue does not know is told, and becomes a hub again: as it is, by a name that is free. */
static void orphans_are_told_and_adopted(void **state)
{
#define PUT weir__admin_put_hub
#define ONE "{\"id\":\"1\",\"partitions\":1}"
#define TWO "{\"id\":\"2\",\"partitions\":3}"
    static const struct row rows[] = {
        {{.answer = weir__admin_list_orphans}, 200, "{\"orphans\":[" ONE "," TWO "]}"},
        {{.answer = PUT, "c", .body = "{\"adopt\":\"2\",\"retain_ms\":1}"},
         400,
         "{\"code\":400,\"detail\":\"the body: 'adopt' goes without other members\",\"error\":"
         "\"WEIR_EINVAL\"}\n"},
        {{.answer = PUT, "c", .body = "{\"adopt\":\"2\"}"},
         201,
         "{\"name\":\"c\",\"partitions\":3," MADE
         ",\"retain_ms\":-1,\"retain_bytes\":0,\"groups\":[\"$Default\"]}"},
        {{.answer = weir__admin_list_orphans}, 200, "{\"orphans\":[" ONE "]}"},
        {{.answer = PUT, "c", .body = "{\"adopt\":\"1\"}"},
         409,
         "{\"code\":409,\"detail\":\"adopting hub 'c': hub 'c' exists already\","
         "\"error\":\"WEIR_EEXIST\"}\n"},
    };
    static const char *const catalogs[] = {WORLD_DIR "/catalog.0", WORLD_DIR "/catalog.1"};
    struct scene *s = *state;
    uint8_t old[2][4096];
    long len[2];

    for (int i = 0; i < 2; i++)
        len[i] = simfs_peek(s->world.disk, catalogs[i], old[i], sizeof old[i], 0);
    make_with_event(s, "a", 1);
    make_with_event(s, "b", 3);
    assert_int_equal(world_close(&s->world), 0);
    for (int i = 0; i < 2; i++)
        if (len[i] > 0) simfs_put(s->world.disk, catalogs[i], old[i], (size_t)len[i]);
    assert_int_equal(world_open(&s->world), 0);
    s->server.ns = s->world.ns;
    EXPECT_ALL(s, rows);
#undef PUT
}

/* A hub that was made is there, also when there is nothing left to open its log with. */
static void a_hub_is_made_or_it_is_not(void **state)
{
    struct scene *s = *state;
    struct question put = {.answer = weir__admin_put_hub},
                    show = {.answer = weir__admin_show_group};
    unsigned unopened = 0;
    unsigned status;
    bool failed = true;
    char name[16];

    put.first = show.first = name;
    show.second = "$Default";
    for (uint64_t at = 1; failed; at++) {
        snprintf(name, sizeof name, "hub%u", (unsigned)at);
        simfs_fail(s->world.disk,
                   &(struct simfs_fault){.kinds = SIMFS_OPEN, .at = at, .rc = WEIR_ENOMEM});
        status = ask(s, &put);
        failed = simfs_failed(s->world.disk);
        simfs_fail(s->world.disk, NULL);
        assert_int_equal(status, ask(s, &show) == 200 ? 201 : 503);
        unopened += failed && status == 201;
    }
    assert_true(unopened > 0);
}

/* ---- descriptors ---- */

static bool send_away(void *user, struct weir__tcp *tcp)
{
    (void)user;
    (void)tcp;
    return false;
}

/* The second lowest number that is free: the first is for who connects, this one for who is met. */
static int second_free(void)
{
    int first = dup(0), second = dup(0);

    assert_true(first >= 0 && second >= 0);
    close(first);
    close(second);
    return second;
}

/* Whether a listener takes somebody in whose descriptor has this number. */
static bool takes(struct weir__listener *l, int number)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)weir__listener_port(l))};
    struct weir__listener_counts before = weir__listener_counts(l), now;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    do {
        sched_yield();
        now = weir__listener_counts(l);
    } while (now.accepted + now.refused == before.accepted + before.refused);
    close(fd);
    while (second_free() != number) sched_yield();
    return now.accepted > before.accepted;
}

static void open_ports(struct scene *s, struct weir__listener **ports[4])
{
    struct weir__listener_options o = {.address = "127.0.0.1:0", .accepted = send_away};

    assert_int_equal(weir__loops_start(&s->server.loops, &(struct weir__loops_options){.count = 1},
                                       NULL),
                     0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(weir__listener_open(ports[i], s->server.loops, &o, NULL), 0);
        assert_int_equal(weir__listener_begin(*ports[i], NULL), 0);
    }
}

/* Hubs up to this many need no more than is kept for them anyway. */
#define FEW (WEIR__SERVER_DESCRIPTORS_KEPT / WEIR__SERVER_DESCRIPTORS_HUB)
#define HELD (WEIR__SERVER_DESCRIPTORS_KEPT + 16)

/* One hub more, and connections may have fewer descriptors, at every port, from then on. */
static void a_hub_keeps_descriptors(void **state)
{
    struct scene *s = *state;
    struct weir__listener **ports[] = {&s->server.amqp, &s->server.amqps, &s->server.http,
                                       &s->server.https};
    int held[HELD], number;
    char name[16];

    open_ports(s, ports);
    for (int i = 0; i < HELD; i++) assert_true((held[i] = dup(0)) >= 0);
    number = second_free();
    s->server.descriptors = (uint64_t)number + 1 + WEIR__SERVER_DESCRIPTORS_KEPT;
    for (int i = 1; i < FEW; i++) {
        snprintf(name, sizeof name, "hub%d", i);
        assert_int_equal(world_create(&s->world, name, 1), 0);
    }
    assert_int_equal(ask(s, &(struct question){.answer = weir__admin_put_hub, "few"}), 201);
    for (int i = 0; i < 4; i++) assert_true(takes(*ports[i], number));
    assert_int_equal(ask(s, &(struct question){.answer = weir__admin_put_hub, "more"}), 201);
    for (int i = 0; i < 4; i++) assert_false(takes(*ports[i], number));
    for (int i = FEW; WEIR__SERVER_DESCRIPTORS_HUB * i < number; i++) {
        snprintf(name, sizeof name, "hub%d", i);
        assert_int_equal(world_create(&s->world, name, 1), 0);
    }
    for (int more = 0; more < 2; more++) { /* half of all are for connections, whatever comes */
        s->server.descriptors = 2 * (uint64_t)number - 1 + 2 * (uint64_t)more;
        weir__server_keep_descriptors(&s->server);
        assert_int_equal(takes(s->server.amqp, number), more);
    }
    for (int i = 0; i < 4; i++) weir__listener_close(*ports[i]);
    weir__loops_free(s->server.loops);
    for (int i = 0; i < 4; i++) weir__listener_free(*ports[i]);
    for (int i = 0; i < HELD; i++) close(held[i]);
}

static void groups_of_a_hub(void **state)
{
#define G "{\"name\":\"g\"}"
#define NO_HUB "{\"code\":404,\"detail\":\"there is no hub 'b'\",\"error\":\"WEIR_ENOTFOUND\"}\n"
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
        {{.answer = weir__admin_delete_group, "a", "g"},
         404,
         "{\"code\":404,\"detail\":\"hub 'a' has no consumer group 'g'\",\"error\":"
         "\"WEIR_ENOTFOUND\"}\n"},
        {{.answer = weir__admin_put_group, "b", "g"}, 404, NO_HUB},
        {{.answer = weir__admin_show_group, "b", "g"}, 404, NO_HUB},
        {{.answer = weir__admin_delete_hub, "b"},
         404,
         "{\"code\":404,\"detail\":\"deleting hub 'b': there is no hub 'b'\",\"error\":"
         "\"WEIR_ENOTFOUND\"}\n"},
        {{.answer = weir__admin_show_hub, "b"}, 404, NO_HUB},
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
        TEST(wrong_orders_make_and_change_no_hub),
        TEST(a_hub_shows_what_it_keeps),
        TEST(orphans_are_told_and_adopted),
        TEST(a_hub_is_made_or_it_is_not),
        TEST(a_hub_keeps_descriptors),
        TEST(groups_of_a_hub),
    };

    return cmocka_run_group_tests_name("admin", tests, NULL, NULL);
}
