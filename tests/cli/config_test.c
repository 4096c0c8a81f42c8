/* config_test.c - the hubs that a server is asked to have: read from --hub and from Config.json,
 * then made. */
#include "cli/config.h"
#include "cli/said.h"
#include "hub/namespace.h"
#include "support/descriptors.h"
#include "support/tempdir.h"

static char dir[TEMPDIR_BYTES], path[TEMPDIR_BYTES + 16];
static struct weir__wanted wanted;
static struct weir__warnings warnings;
static struct weir_error err;

static unsigned open_before;

static int begin(void **state)
{
    (void)state;
    open_before = descriptors_count();
    wanted = (struct weir__wanted){0};
    warnings = (struct weir__warnings){0};
    return tempdir_make(dir);
}

static int end(void **state)
{
    (void)state;
    weir__wanted_fini(&wanted);
    tempdir_remove(dir);
    return descriptors_count() == open_before ? 0 : -1;
}

/* ---- --hub ---- */

static void a_hub_has_a_name_a_number_and_groups(void **state)
{
    (void)state;
    assert_int_equal(weir__wanted_parse(&wanted, "orders:4", &err), 0);
    assert_int_equal(weir__wanted_parse(&wanted, "h:1024:a,b,A,$default,,c", &err), 0);
    assert_int_equal(wanted.count, 2);
    assert_string_equal(wanted.hubs[0].name, "orders");
    assert_string_equal(wanted.hubs[0].from, "--hub orders:4");
    assert_int_equal(wanted.hubs[0].partitions, 4);
    assert_int_equal(wanted.hubs[0].group_count, 0);
    assert_int_equal(wanted.hubs[1].partitions, 1024);
    assert_int_equal(wanted.hubs[1].group_count, 3);
    assert_string_equal(wanted.hubs[1].groups[0].name, "a");
    assert_string_equal(wanted.hubs[1].groups[1].name, "b");
    assert_string_equal(wanted.hubs[1].groups[2].name, "c");
}

static void what_is_no_hub_is_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "--hub must be NAME:PARTITIONS[:GROUP,...], not ''"},
        {"h", "--hub must be NAME:PARTITIONS[:GROUP,...], not 'h'"},
        {"h:", "--hub h:: a hub has 1 to 1024 partitions, not ''"},
        {"h:0", "--hub h:0: a hub has 1 to 1024 partitions, not '0'"},
        {"h:1025", "--hub h:1025: a hub has 1 to 1024 partitions, not '1025'"},
        {"h:x:g", "--hub h:x:g: a hub has 1 to 1024 partitions, not 'x'"},
    };
    static char longest[4097];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(weir__wanted_parse(&wanted, bad[i].text, &err), WEIR_EINVAL);
        assert_string_equal(err.text, bad[i].why);
    }
    assert_int_equal(weir__wanted_parse(&wanted, ":1", &err), WEIR_EINVAL);
    assert_int_equal(weir__wanted_parse(&wanted, "h:1:-", &err), WEIR_EINVAL);
    memset(longest, ',', sizeof longest - 1);
    memcpy(longest, "h:1:g", 5);
    assert_int_equal(weir__wanted_parse(&wanted, longest, &err), WEIR_EINVAL);
    longest[4095] = '\0';
    assert_int_equal(weir__wanted_parse(&wanted, longest, &err), 0);
    memset(longest, 'h', 4000); /* far longer than a name */
    memcpy(longest + 4000, ":1", 3);
    assert_int_equal(weir__wanted_parse(&wanted, longest, &err), WEIR_EINVAL);
    memcpy(longest, "h:1:", 4);
    assert_int_equal(weir__wanted_parse(&wanted, longest, &err), WEIR_EINVAL);
}

static void there_is_a_limit_of_groups(void **state)
{
    struct weir__wanted_hub *hub;
    char name[16];

    (void)state;
    assert_int_equal(weir__wanted_add(&wanted, "here", &hub, &err), 0);
    for (int i = 0; i < WEIR__CATALOG_GROUPS_MAX; i++) {
        snprintf(name, sizeof name, "g%d", i);
        assert_int_equal(weir__wanted_add_group(hub, name, &err), 0);
    }
    assert_int_equal(weir__wanted_add_group(hub, "G0", &err), 0);
    assert_int_equal(hub->group_count, WEIR__CATALOG_GROUPS_MAX);
    assert_int_equal(weir__wanted_add_group(hub, "one-more", &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "more than 1000 consumer groups");
}

static void there_is_a_limit_of_hubs(void **state)
{
    (void)state;
    for (int i = 0; i < WEIR__CATALOG_HUBS_MAX; i++)
        assert_int_equal(weir__wanted_parse(&wanted, "h:1", &err), 0);
    assert_int_equal(weir__wanted_parse(&wanted, "h:1", &err), WEIR_ELIMIT);
    assert_string_equal(err.text, "--hub h:1: more than 1024 hubs");
    assert_int_equal(wanted.count, WEIR__CATALOG_HUBS_MAX);
}

/* ---- making them ---- */

static struct weir__namespace *open_namespace(void)
{
    struct weir__namespace *ns;

    assert_int_equal(weir__namespace_open(&ns, dir, NULL, &err), 0);
    return ns;
}

static int note(const struct weir__catalog_hub *hub, void *user)
{
    char *to = user;

    sprintf(to, "%s %u", hub->name, hub->partitions);
    for (uint32_t i = 0; i < hub->group_count; i++)
        sprintf(to + strlen(to), " %s", hub->groups[i].name);
    return 0;
}

static void expect_hub(struct weir__namespace *ns, const char *name, const char *is)
{
    char told[256] = "";

    assert_int_equal(weir__namespace_hub_show(ns, name, note, told, &err), 0);
    assert_string_equal(told, is);
}

static void ask(const char *text)
{
    assert_int_equal(weir__wanted_parse(&wanted, text, &err), 0);
}

static void what_is_missing_is_made(void **state)
{
    struct weir__namespace *ns = open_namespace();

    (void)state;
    ask("a:2:g");
    ask("b:3");
    assert_int_equal(weir__wanted_make(&wanted, ns, &err), 0);
    expect_hub(ns, "a", "a 2 $Default g");
    expect_hub(ns, "b", "b 3 $Default");
    weir__wanted_fini(&wanted);
    ask("A:1:x,G,y"); /* less partitions than it has got are not asked for */
    ask("c:1");
    assert_int_equal(weir__wanted_make(&wanted, ns, &err), 0);
    expect_hub(ns, "a", "a 2 $Default g x y");
    expect_hub(ns, "c", "c 1 $Default");
    assert_int_equal(weir__namespace_close(ns, &err), 0);
}

static void nothing_is_made_when_one_hub_is_too_small(void **state)
{
    struct weir__namespace *ns = open_namespace();

    (void)state;
    ask("a:1");
    assert_int_equal(weir__wanted_make(&wanted, ns, &err), 0);
    weir__wanted_fini(&wanted);
    ask("new:1");
    ask("a:2:g");
    assert_int_equal(weir__wanted_make(&wanted, ns, &err), WEIR_EINVAL);
    assert_string_equal(err.text,
                        "--hub a:2:g: hub 'a' has 1 partition, and 2 are asked for; 'weir "
                        "hub update' can give it more");
    expect_hub(ns, "a", "a 1 $Default");
    assert_int_equal(weir__namespace_hub_show(ns, "new", note, NULL, &err), WEIR_ENOTFOUND);
    assert_int_equal(weir__namespace_close(ns, &err), 0);
}

/* ---- Config.json ---- */

static int read_config(const char *text, size_t len)
{
    FILE *f;
    int rc;

    snprintf(path, sizeof path, "%s/Config.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, len, f), len);
    fclose(f);
    said_begin();
    rc = weir__config_read(path, &wanted, &warnings, &err);
    said_end();
    return rc;
}

static int read_text(const char *text)
{
    return read_config(text, strlen(text));
}

static void the_emulators_file_is_read(void **state)
{
    char whole[512];

    (void)state;
    assert_int_equal(read_text(
                         "{\"$schema\":1,\"userconfig\":{\"LoggingConfig\":{\"Type\":[]},\n"
                         "\"NamespaceConfig\":[{\"TYPE\":\"eventhub\",\"Name\":7,\"Entities\":"
                         "[{\"Name\":\"a\",\"PartitionCount\":2,\"ConsumerGroups\":null},\n"
                         " {\"Colour\":{\"x\":1},\"PartitionCount\":\"3\",\"Name\":\"b\","
                         "\"ConsumerGroups\":[{\"name\":\"g\"},{\"Name\":\"h\"}]}]}]}}\n"),
                     0);
    assert_int_equal(wanted.count, 2);
    assert_string_equal(wanted.hubs[0].name, "a");
    assert_int_equal(wanted.hubs[0].partitions, 2);
    assert_int_equal(wanted.hubs[0].group_count, 0);
    assert_string_equal(wanted.hubs[1].name, "b");
    assert_int_equal(wanted.hubs[1].partitions, 3);
    assert_int_equal(wanted.hubs[1].group_count, 2);
    assert_string_equal(wanted.hubs[1].groups[1].name, "h");
    snprintf(whole, sizeof whole, "%s:3:2", path);
    assert_string_equal(wanted.hubs[1].from, whole);
    snprintf(whole, sizeof whole, "weir: serve: %s:3:3: 'Colour' is not known and is passed over\n",
             path);
    assert_string_equal(said_err, whole);
    assert_int_equal(warnings.count, 1);
    assert_non_null(strstr(warnings.text[0], ":3:3: 'Colour' is not known"));
}

static void a_place_is_told_with_what_is_wrong(void **state)
{
#define HUBS(text) "{\"UserConfig\":{\"NamespaceConfig\":[{\"Entities\":" text "}]}}"
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "line 1, column 1: a value should be here, but the text ends"},
        {"{\"UserConfig\":", "line 1, column 15: a value should be here, but the text ends"},
        {"{}", "line 1, column 1: 'UserConfig' is missing"},
        {"{\"UserConfig\":[]}", "line 1, column 15: an object, {...}, should be here"},
        {"{\"UserConfig\":{}}", "line 1, column 15: 'NamespaceConfig' is missing"},
        {"{\"UserConfig\":{\"NamespaceConfig\":{}}}",
         "line 1, column 34: an array, [...], should be here"},
        {"{\"UserConfig\":{\"NamespaceConfig\":[{}]}}", "line 1, column 35: 'Entities' is missing"},
        {"{\"UserConfig\":{\"NamespaceConfig\":[{\"Type\":1}]}}",
         "line 1, column 43: \"EventHub\" should be here"},
        {"{\"UserConfig\":{\"NamespaceConfig\":[{\"Entities\":[]},{}]}}",
         "line 1, column 51: a second namespace: there is only one"},
        {"{\"UserConfig\":{\"NamespaceConfig\":[]},\"UserConfig\":{}}",
         "line 1, column 38: 'UserConfig' stands here twice"},
        {HUBS("[{\"Name\":1}]"), "line 1, column 56: the name of a hub should be here"},
        {HUBS("[{\"PartitionCount\":true}]"), "line 1, column 66: a number should be here"},
        {HUBS("[{\"PartitionCount\":1}]"), "line 1, column 48: 'Name' is missing"},
        {HUBS("[{\"ConsumerGroups\":[{}]}]"), "line 1, column 67: 'Name' is missing"},
        {HUBS("[{\"ConsumerGroups\":[{\"Name\":1}]}]"),
         "line 1, column 75: the name of a consumer group should be here"},
        {HUBS("[{\"Name\":\"a\"}]"), "line 1, column 48: 'PartitionCount' is missing"},
        {HUBS("[{\"Name\":\"a/b\"}]"), "line 1, column 56: hub name: '/' at position 2 is not a "
                                       "letter, a digit, '.', '-' or '_'"},
        {HUBS("[{\"PartitionCount\":0}]"),
         "line 1, column 66: a hub has 1 to 1024 partitions, not '0'"},
        {HUBS("[{\"ConsumerGroups\":[{\"Name\":\"-\"}]}]"),
         "line 1, column 75: consumer group name: "},
        {HUBS("[{\"x\":[1}]"), "line 1, column 55: ',' or ']' should be here"},
        {HUBS("{}"), "line 1, column 47: an array, [...], should be here"},
        {"{\"UserConfig\":{\"NamespaceConfig\":[{\"Type\":\"EventHubs\"}]}}",
         "line 1, column 43: a namespace of type 'EventHubs': only EventHub is served"},
        {HUBS("[]") " x", "line 1, column 54: something follows the end"},
    };
    char whole[512];

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (read_text(bad[i].text) != WEIR_EINVAL) fail_msg("taken: %s", bad[i].text);
        snprintf(whole, sizeof whole, "%s: %s", path, bad[i].why);
        if (strncmp(err.text, whole, strlen(whole)) != 0)
            fail_msg("%s: %s instead of %s", bad[i].text, err.text, whole);
    }
}

/* Names that are not known are none that could stand twice. */
static void what_is_not_known_is_passed_over_each_time(void **state)
{
    (void)state;
    assert_int_equal(read_text(HUBS("null,\"x\":1,\"x\":[{\"Name\":2}]")), 0);
    assert_int_equal(wanted.count, 0);
    assert_int_equal(warnings.count, 2);
}

static void a_file_may_be_so_large_and_no_larger(void **state)
{
    static const char text[] = "{\"UserConfig\":{\"NamespaceConfig\":[]}}";
    char *large = malloc(WEIR__CONFIG_BYTES_MAX + 1);

    (void)state;
    assert_non_null(large);
    memset(large, ' ', WEIR__CONFIG_BYTES_MAX + 1);
    memcpy(large, text, sizeof text - 1);
    assert_int_equal(read_config(large, WEIR__CONFIG_BYTES_MAX), 0);
    assert_int_equal(read_config(large, WEIR__CONFIG_BYTES_MAX + 1), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "Config.json: it is longer than 1048576 bytes"));
    free(large);
    assert_int_equal(weir__config_read("/nowhere/at/all", &wanted, &warnings, &err),
                     WEIR_ENOTFOUND);
    assert_string_equal(err.text, "/nowhere/at/all: No such file or directory");
    assert_int_equal(weir__config_read(dir, &wanted, &warnings, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.text, ": it cannot be read: Is a directory"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_hub_has_a_name_a_number_and_groups),
        CASE(what_is_no_hub_is_refused),
        CASE(there_is_a_limit_of_groups),
        CASE(there_is_a_limit_of_hubs),
        CASE(what_is_missing_is_made),
        CASE(nothing_is_made_when_one_hub_is_too_small),
        CASE(the_emulators_file_is_read),
        CASE(a_place_is_told_with_what_is_wrong),
        CASE(what_is_not_known_is_passed_over_each_time),
        CASE(a_file_may_be_so_large_and_no_larger),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
