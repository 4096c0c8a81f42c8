/* commands_test.c - weir hub and weir key on a folder, with all that they print. */
#include "cli/steps.h"

#include "base/error.h"
#include "weir/weir.h"

static void hubs_are_made_changed_and_deleted(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create,
         "a --partitions 2 --groups g,h --retention-age 95m --retention-bytes 10M", 0,
         "created hub a with 2 partitions\n"},
        {&weir__command_hub_create, "b --partitions 1", 0, "created hub b with 1 partition\n"},
        {&weir__command_hub_create, "c", 0, "created hub c with 4 partitions\n"},
        {&weir__command_hub_create, "c --partitions 1024", 1,
         "weir: hub create: creating hub 'c': hub 'c' exists already; choose another name or "
         "delete it first\n"},
        {&weir__command_hub_create, "d --partitions 1025", 2,
         "weir: hub create: --partitions must be 1 to 1024; try 'weir hub create --help'\n"},
        {&weir__command_hub_create, "d --partitions 0", 2,
         "weir: hub create: --partitions must be 1 to 1024; try 'weir hub create --help'\n"},
        {&weir__command_hub_create, "d --retention-age 0s", 2,
         "weir: hub create: --retention-age must be more than nothing; try 'weir hub create "
         "--help'\n"},
        {&weir__command_hub_create, "d --groups=", 2,
         "weir: hub create: --groups must be up to 64 names; try 'weir hub create --help'\n"},
        {&weir__command_hub_list, "", 0,
         "a                           2 partitions  3 groups  created TIME  retention 95m, 10M\n"
         "b                           1 partition   1 group   created TIME  retention 7d\n"
         "c                           4 partitions  1 group   created TIME  retention 7d\n"},
        {&weir__command_hub_list, "--json", 0,
         "{\"name\":\"a\",\"created\":\"TIME\",\"partition_count\":2,\"group_count\":3,\"retain_"
         "ms\":5700000,\"retain_bytes\":10485760}\n"
         "{\"name\":\"b\",\"created\":\"TIME\",\"partition_count\":1,\"group_count\":1,\"retain_"
         "ms\":604800000,\"retain_bytes\":0}\n"
         "{\"name\":\"c\",\"created\":\"TIME\",\"partition_count\":4,\"group_count\":1,\"retain_"
         "ms\":604800000,\"retain_bytes\":0}\n"},
        {&weir__command_hub_show, "a", 0,
         "hub         a\n"
         "created     TIME\n"
         "groups      $Default g h\n"
         "retention   95m, 10M\n"
         "kept        nothing\n"
         "on disk     64.0 KiB in 1 segment, at most 17.7 MiB\n"
         "\n"
         "partition      events   first sequence    next sequence       last offset  last "
         "enqueued\n"
         "        0           0                0                0                 -  -\n"
         "        1           0                0                0                 -  -\n"},
        {&weir__command_hub_show, "a --json", 0,
         "{\"name\":\"a\",\"created\":\"TIME\",\"retain_ms\":5700000,\"retain_bytes\":10485760,"
         "\"groups\":[\"$Default\",\"g\",\"h\"],\"stored_bytes\":0,\"disk_bytes\":65536,\"disk_"
         "bytes_max\":18582186,\"oldest_enqueued\":null,\"next_expiry_bytes\":0,\"next_expiry_ms\":"
         "-1,\"partitions\":[{\"id\":\"0\",\"begin_sequence\":0,\"next_sequence\":0,\"last_"
         "offset\":null,\"last_enqueued\":null},{\"id\":\"1\",\"begin_sequence\":0,\"next_"
         "sequence\":0,\"last_offset\":null,\"last_enqueued\":null}]}\n"},
        {&weir__command_hub_show, "z", 3,
         "weir: hub show: there is no hub 'z'; 'weir hub list' and 'weir hub show HUB' show what "
         "is there\n"},
        {&weir__command_hub_update, "b", 2,
         "weir: hub update: there is nothing to change; try 'weir hub update --help'\n"},
        {&weir__command_hub_update, "b --partitions 0", 2,
         "weir: hub update: --partitions must be 1 to 1024; try 'weir hub update --help'\n"},
        {&weir__command_hub_update, "b --partitions 1025", 2,
         "weir: hub update: --partitions must be 1 to 1024; try 'weir hub update --help'\n"},
        {&weir__command_hub_update, "b --retention-age 0s", 2,
         "weir: hub update: --retention-age must be more than nothing; try 'weir hub update "
         "--help'\n"},
        {&weir__command_hub_update, "b --partitions 1024 --retention-bytes 1G", 0,
         "changed hub b\n"},
        {&weir__command_hub_update, "b --retention-age 1d", 0, "changed hub b\n"},
        {&weir__command_hub_list, "", 0,
         "a                           2 partitions  3 groups  created TIME  retention 95m, 10M\n"
         "b                        1024 partitions  1 group   created TIME  retention 1d, 1G\n"
         "c                           4 partitions  1 group   created TIME  retention 7d\n"},
        {&weir__command_hub_update, "b --retention-bytes 0", 0, "changed hub b\n"},
        {&weir__command_hub_update, "b --partitions 1", 2,
         "weir: hub update: changing hub 'b': it has 1024 partitions, which cannot become 1: they "
         "can only become more\n"},
        {&weir__command_hub_list, "", 0,
         "a                           2 partitions  3 groups  created TIME  retention 95m, 10M\n"
         "b                        1024 partitions  1 group   created TIME  retention 1d\n"
         "c                           4 partitions  1 group   created TIME  retention 7d\n"},
        {&weir__command_hub_delete, "b", 0, "deleted hub b and its events\n"},
        {&weir__command_hub_delete, "b", 3,
         "weir: hub delete: deleting hub 'b': there is no hub 'b'; 'weir hub list' and 'weir hub "
         "show HUB' show what is there\n"},
        {&weir__command_hub_adopt, "x n", 2,
         "weir: hub adopt: 'x' is not the id of a folder; try 'weir hub adopt --help'\n"},
        {&weir__command_hub_adopt, "hub-000000000000000g n", 2,
         "weir: hub adopt: 'hub-000000000000000g' is not the id of a folder; try 'weir hub adopt "
         "--help'\n"},
        {&weir__command_hub_adopt, "abcdef0123456789f n", 2,
         "weir: hub adopt: 'abcdef0123456789f' is not the id of a folder; try 'weir hub adopt "
         "--help'\n"},
        {&weir__command_hub_adopt, "abcdef0123456789 n", 3,
         "weir: hub adopt: adopting hub 'n': there is no orphan hub-abcdef0123456789; 'weir hub "
         "list' and "
         "'weir hub show HUB' show what is there\n"},
        {&weir__command_hub_adopt, "hub-0000000000000077 n", 3,
         "weir: hub adopt: adopting hub 'n': there is no orphan hub-0000000000000077; 'weir hub "
         "list' and 'weir hub show HUB' show what is there\n"},
        {&weir__command_hub_list, "", 0,
         "a                           2 partitions  3 groups  created TIME  retention 95m, 10M\n"
         "c                           4 partitions  1 group   created TIME  retention 7d\n"},
    };

    (void)state;
    TAKE(steps);
}

static void what_a_hub_keeps_is_shown(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 2 --retention-age 95m --retention-bytes 10M", 0,
         "created hub a with 2 partitions\n"},
        {&weir__command_hub_create, "e --partitions 1 --retention-age 95m", 0,
         "created hub e with 1 partition\n"},
        {&weir__command_send, "a one --partition 1", 0, "acknowledged 1 event\n"},
        {&weir__command_send, "a two --partition 1", 0, "acknowledged 1 event\n"},
        {&weir__command_send, "e one", 0, "acknowledged 1 event\n"},
        {&weir__command_hub_show, "a", 0,
         "hub         a\n"
         "created     TIME\n"
         "groups      $Default\n"
         "retention   95m, 10M\n"
         "kept        192 bytes of events since TIME\n"
         "on disk     64.0 KiB in 1 segment, at most 17.7 MiB\n"
         "next expiry 192 bytes in 1h 46m, or when the limit in bytes is passed\n"
         "\n"
         "partition      events   first sequence    next sequence       last offset  last "
         "enqueued\n"
         "        0           0                0                0                 -  -\n"
         "        1           2                0                2  OFFSET  TIME\n"},
        {&weir__command_hub_show, "e", 0,
         "hub         e\n"
         "created     TIME\n"
         "groups      $Default\n"
         "retention   95m\n"
         "kept        96 bytes of events since TIME\n"
         "on disk     64.0 KiB in 1 segment\n"
         "next expiry 96 bytes in 1h 46m\n"
         "\n"
         "partition      events   first sequence    next sequence       last offset  last "
         "enqueued\n"
         "        0           1                0                1  OFFSET  TIME\n"},
    };

    (void)state;
    TAKE(steps);
}

static void keys_are_added_rotated_and_removed(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 1", 0, "created hub a with 1 partition\n"},
        {&weir__command_key_add, "--rights x", 2,
         "weir: key add: --rights must be of send, listen and manage, with commas between, not "
         "'x'; try 'weir key add --help'\n"},
        {&weir__command_key_add, "a --rights listen --name l", 0,
         "Endpoint=sb://"
         "localhost;SharedAccessKeyName=l;SharedAccessKey=KEY;UseDevelopmentEmulator=true;"
         "EntityPath=a;\n"},
        {&weir__command_key_add, "--rights manage", 0,
         "Endpoint=sb://"
         "localhost;SharedAccessKeyName=manage;SharedAccessKey=KEY;UseDevelopmentEmulator=true;\n"},
        {&weir__command_key_add, "", 0,
         "Endpoint=sb://"
         "localhost;SharedAccessKeyName=send-listen;SharedAccessKey=KEY;UseDevelopmentEmulator="
         "true;\n"},
        {&weir__command_key_add, "", 1,
         "weir: key add: access rule 'send-listen' exists already; choose another name or delete "
         "it first\n"},
        {&weir__command_key_add, "--name=a/b", 2,
         "weir: key add: access rule name: '/' at position 2 is not a letter, a digit, '.', '-' or "
         "'_'\n"},
        {&weir__command_key_list, "", 0,
         "(all)                    manage                           send,listen,manage\n"
         "(all)                    send-listen                      send,listen\n"
         "a                        l                                listen\n"},
        {&weir__command_key_list, "a", 0,
         "a                        l                                listen\n"},
        {&weir__command_key_list, "--json", 0,
         "{\"hub\":null,\"name\":\"manage\",\"rights\":[\"send\",\"listen\",\"manage\"]}\n"
         "{\"hub\":null,\"name\":\"send-listen\",\"rights\":[\"send\",\"listen\"]}\n"
         "{\"hub\":\"a\",\"name\":\"l\",\"rights\":[\"listen\"]}\n"},
        {&weir__command_key_list, "a --show-keys --json", 0,
         "{\"hub\":\"a\",\"name\":\"l\",\"rights\":[\"listen\"],\"primary_key\":\"KEY\","
         "\"secondary_key\":\"KEY\",\"connection_string\":\"Endpoint=sb://"
         "localhost;SharedAccessKeyName=l;SharedAccessKey=KEY;UseDevelopmentEmulator=true;"
         "EntityPath=a;\"}\n"},
        {&weir__command_key_list, "a --show-keys", 0,
         "a                        l                                listen\n"
         "  "
         "Endpoint=sb://"
         "localhost;SharedAccessKeyName=l;SharedAccessKey=KEY;UseDevelopmentEmulator=true;"
         "EntityPath=a;\n"
         "  second key KEY\n"},
        {&weir__command_key_list, "z", 3,
         "weir: key list: there is no hub 'z'; 'weir key list' shows the rules, 'weir hub list' "
         "the hubs\n"},
        {&weir__command_key_rotate, "a", 2,
         "weir: key rotate: --name is missing ('weir key list' shows them); try 'weir key rotate "
         "--help'\n"},
        {&weir__command_key_rotate, "a --name l", 0,
         "Endpoint=sb://"
         "localhost;SharedAccessKeyName=l;SharedAccessKey=KEY;UseDevelopmentEmulator=true;"
         "EntityPath=a;\n"},
        {&weir__command_key_rotate, "a --name m", 3,
         "weir: key rotate: there is no access rule 'm'; 'weir key list' shows the rules, 'weir "
         "hub list' the hubs\n"},
        {&weir__command_key_remove, "a", 2,
         "weir: key remove: --name is missing ('weir key list' shows them); try 'weir key remove "
         "--help'\n"},
        {&weir__command_key_remove, "a --name l", 0, "removed l and its keys\n"},
        {&weir__command_key_remove, "a --name l", 3,
         "weir: key remove: there is no access rule 'l'; 'weir key list' shows the rules, 'weir "
         "hub list' the hubs\n"},
        {&weir__command_key_list, "", 0,
         "(all)                    manage                           send,listen,manage\n"
         "(all)                    send-listen                      send,listen\n"},
    };

    (void)state;
    TAKE(steps);
}

int __real_weir_hub_stats(struct weir *, const char *hub, struct weir_hub_stats *out,
                          struct weir_error *);
int __wrap_weir_hub_stats(struct weir *, const char *hub, struct weir_hub_stats *out,
                          struct weir_error *);

static bool no_stats;

int __wrap_weir_hub_stats(struct weir *w, const char *hub, struct weir_hub_stats *out,
                          struct weir_error *err)
{
    if (!no_stats) return __real_weir_hub_stats(w, hub, out, err);
    return weir__fail(err, WEIR_EIO, "the disk does not answer");
}

int __real_weir_partition_info(struct weir *, const char *hub, uint32_t partition,
                               struct weir_partition_info *out, struct weir_error *);
int __wrap_weir_partition_info(struct weir *, const char *hub, uint32_t partition,
                               struct weir_partition_info *out, struct weir_error *);

static bool no_partition; /* behind the first */

int __wrap_weir_partition_info(struct weir *w, const char *hub, uint32_t partition,
                               struct weir_partition_info *out, struct weir_error *err)
{
    if (!no_partition || partition == 0)
        return __real_weir_partition_info(w, hub, partition, out, err);
    return weir__fail(err, WEIR_EIO, "the disk does not answer");
}

static void a_partition_that_cannot_be_read_is_not_shown(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 3", 0, "created hub a with 3 partitions\n"},
    };

    (void)state;
    TAKE(steps);
    no_partition = true;
    assert_int_equal(run(&weir__command_hub_show, "a --json"), 1);
    no_partition = false;
    assert_string_equal(said_err, "weir: hub show: the disk does not answer\n");
    assert_non_null(strstr(said_out, "{\"id\":\"0\""));
    assert_null(strstr(said_out, "{\"id\":\"1\""));
}

/* Of a folder nothing is left out. */
static void what_a_hub_keeps_cannot_be_told(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 1", 0, "created hub a with 1 partition\n"},
    };
    static const struct step bad[] = {
        {&weir__command_hub_show, "a", 1, "weir: hub show: the disk does not answer\n"},
        {&weir__command_hub_show, "a --json", 1, "weir: hub show: the disk does not answer\n"},
    };

    (void)state;
    TAKE(steps);
    no_stats = true;
    TAKE(bad);
    no_stats = false;
}

static void what_does_not_go_together_is_not_sent(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 1", 0, "created hub a with 1 partition\n"},
        {&weir__command_send, "a --key k --partition 0", 2,
         "weir: send: --key and --partition exclude each other; try 'weir send --help'\n"},
        {&weir__command_send, "a --key-separator s --key k", 2,
         "weir: send: --key-separator excludes --key and --partition; try 'weir send --help'\n"},
        {&weir__command_send, "a --key-separator s --partition 0", 2,
         "weir: send: --key-separator excludes --key and --partition; try 'weir send --help'\n"},
        {&weir__command_send, "a --key-separator=", 2,
         "weir: send: --key-separator is empty; try 'weir send --help'\n"},
        {&weir__command_send, "a --json --key k", 2,
         "weir: send: with --json each line has its own key and properties; try 'weir send "
         "--help'\n"},
        {&weir__command_send, "a --json --key-separator s", 2,
         "weir: send: with --json each line has its own key and properties; try 'weir send "
         "--help'\n"},
        {&weir__command_send, "a --json --property n=t", 2,
         "weir: send: with --json each line has its own key and properties; try 'weir send "
         "--help'\n"},
        {&weir__command_send, "a text --file f", 2,
         "weir: send: --file and a TEXT exclude each other; try 'weir send --help'\n"},
        {&weir__command_send, "a text --partition 4294967296", 2,
         "weir: send: --partition is too large; try 'weir send --help'\n"},
        {&weir__command_send, "a text --property =t", 2,
         "weir: send: --property must be NAME=TEXT; try 'weir send --help'\n"},
        {&weir__command_send, "a text --property n", 2,
         "weir: send: --property must be NAME=TEXT; try 'weir send --help'\n"},
        {&weir__command_send, "a --file DIR/none", 3,
         "weir: send: DIR/none: No such file or directory; check --file\n"},
        {&weir__command_send, "a text --property n=", 0, "acknowledged 1 event\n"},
    };

    (void)state;
    TAKE(steps);
}

/* A number of more than 32 bits is not taken for what its lower ones say. */
static void a_load_has_its_limits(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 1", 0, "created hub a with 1 partition\n"},
        {&weir__command_bench_send, "a --size 15", 2,
         "weir: bench send: --size must be 16 to 1048576; try 'weir bench send --help'\n"},
        {&weir__command_bench_send, "a --size 4294967312", 2,
         "weir: bench send: --size must be 16 to 1048576; try 'weir bench send --help'\n"},
        {&weir__command_bench_send, "a --batch 4294967297 --count 1", 2,
         "weir: bench send: --batch must be 1 to 4096; try 'weir bench send --help'\n"},
        {&weir__command_bench_send, "a --partitions 4294967297 --count 1", 2,
         "weir: bench send: --partitions 4294967295: the hub has 1; try 'weir bench send "
         "--help'\n"},
        {&weir__command_bench_wire, "publish --connect 127.0.0.1:1 --hub a --size 4294967396", 2,
         "weir: bench wire: --size must be 8 to 1048576; try 'weir bench wire --help'\n"},
        {&weir__command_bench_wire, "publish --connect 127.0.0.1:1 --hub a --batch 4294967297", 2,
         "weir: bench wire: --batch must be 1 to 1024; try 'weir bench wire --help'\n"},
    };

    (void)state;
    TAKE(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hubs_are_made_changed_and_deleted, begin, end),
        cmocka_unit_test_setup_teardown(what_a_hub_keeps_is_shown, begin, end),
        cmocka_unit_test_setup_teardown(a_partition_that_cannot_be_read_is_not_shown, begin, end),
        cmocka_unit_test_setup_teardown(what_a_hub_keeps_cannot_be_told, begin, end),
        cmocka_unit_test_setup_teardown(what_does_not_go_together_is_not_sent, begin, end),
        cmocka_unit_test_setup_teardown(a_load_has_its_limits, begin, end),
        cmocka_unit_test_setup_teardown(keys_are_added_rotated_and_removed, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
