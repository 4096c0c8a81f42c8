/* marks_test.c - weir group and weir checkpoint on a folder, with all that they print. */
#include "cli/steps.h"

static void groups_are_made_and_deleted(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 2 --groups g,h", 0,
         "created hub a with 2 partitions\n"},
        {&weir__command_group_list, "a", 0,
         "$Default\n"
         "g\n"
         "h\n"},
        {&weir__command_group_list, "a --json", 0,
         "{\"hub\":\"a\",\"name\":\"$Default\"}\n"
         "{\"hub\":\"a\",\"name\":\"g\"}\n"
         "{\"hub\":\"a\",\"name\":\"h\"}\n"},
        {&weir__command_group_list, "z", 3,
         "weir: group list: there is no hub 'z'; 'weir hub list' and 'weir group list HUB' show "
         "what is there\n"},
        {&weir__command_group_create, "a/x", 0, "created group x of hub a\n"},
        {&weir__command_group_create, "a y", 0, "created group y of hub a\n"},
        {&weir__command_group_create, "a y", 1,
         "weir: group create: consumer group 'y' exists already; choose another name\n"},
        {&weir__command_group_create, "a/y z", 2,
         "weir: group create: 'a/y' is not HUB/GROUP; try 'weir group create --help'\n"},
        {&weir__command_group_create, "a", 2,
         "weir: group create: 'a' is not HUB/GROUP; try 'weir group create --help'\n"},
        {&weir__command_group_create, "/y", 2,
         "weir: group create: '/y' is not HUB/GROUP; try 'weir group create --help'\n"},
        {&weir__command_group_create, "a/", 2,
         "weir: group create: 'a/' is not HUB/GROUP; try 'weir group create --help'\n"},
        {&weir__command_group_delete, "a/x", 0, "deleted group x of hub a\n"},
        {&weir__command_group_delete, "a/x", 3,
         "weir: group delete: hub 'a' has no consumer group 'x'; 'weir hub list' and 'weir group "
         "list HUB' show what is there\n"},
        {&weir__command_group_delete, "a/$Default", 1,
         "weir: group delete: $Default is always there\n"},
        {&weir__command_group_list, "a", 0,
         "$Default\n"
         "g\n"
         "h\n"
         "y\n"},
    };

    (void)state;
    TAKE(steps);
}

static void marks_are_set_and_deleted_by_hand(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "A --partitions 2 --groups g", 0,
         "created hub A with 2 partitions\n"},
        {&weir__command_send, "a one --partition 1", 0, "acknowledged 1 event\n"},
        {&weir__command_send, "a two --partition 1", 0, "acknowledged 1 event\n"},
        {&weir__command_group_describe, "a/", 2,
         "weir: group describe: 'a/' is not HUB or HUB/GROUP; try 'weir group describe --help'\n"},
        {&weir__command_group_describe, "/a", 2,
         "weir: group describe: '/a' is not HUB or HUB/GROUP; try 'weir group describe --help'\n"},
        {&weir__command_checkpoint_set, "a --partition 1", 2,
         "weir: checkpoint set: --partition and --sequence are needed; try 'weir checkpoint set "
         "--help'\n"},
        {&weir__command_checkpoint_set, "a --sequence 1", 2,
         "weir: checkpoint set: --partition and --sequence are needed; try 'weir checkpoint set "
         "--help'\n"},
        {&weir__command_checkpoint_set, "a --partition 1 --sequence 0", 0, ""},
        {&weir__command_checkpoint_set, "a --partition 1 --sequence 2", 2,
         "weir: checkpoint set: event 2 does not exist yet: the last one is 1; try 'weir "
         "checkpoint set --help'\n"},
        {&weir__command_checkpoint_set, "a --partition 2 --sequence 0", 3,
         "weir: checkpoint set: partition 2 is not one of 0 to 1; 'weir hub show' shows what is "
         "there\n"},
        {&weir__command_checkpoint_set, "a --partition 0 --sequence 0", 2,
         "weir: checkpoint set: event 0 does not exist yet: the last one is -1; try 'weir "
         "checkpoint set --help'\n"},
        {&weir__command_checkpoint_set, "a/none --partition 1 --sequence 0", 3,
         "weir: checkpoint set: consumer group 'none' of hub 'a': hub 'A' has no consumer group "
         "'none'; 'weir hub list' and 'weir hub show' show what is there\n"},
        {&weir__command_checkpoint_list, "a", 0,
         "partition     sequence               offset modified                 owner\n"
         "        1            0                    - TIME -\n"},
        {&weir__command_checkpoint_list, "a/$DEFAULT --json", 0,
         "{\"partition\":\"1\",\"sequence\":0,\"offset\":null,\"modified\":\"TIME\",\"owner\":null}"
         "\n"},
        {&weir__command_checkpoint_list, "a/G", 0,
         "partition     sequence               offset modified                 owner\n"},
        {&weir__command_checkpoint_list, "a/none", 3,
         "weir: checkpoint list: consumer group 'none' of hub 'a': hub 'A' has no consumer group "
         "'none'; 'weir hub list' and 'weir hub show' show what is there\n"},
        {&weir__command_checkpoint_list, "a --store nonsense:x", 2,
         "weir: checkpoint list: --store: the store 'nonsense:x' is of no kind that is known: "
         "there are memory:, sqlite:PATH and postgres://USER@HOST/DATABASE; try 'weir checkpoint "
         "list --help'\n"},
        {&weir__command_group_describe, "a", 0,
         "no members\n"
         "\n"
         "partition  owner                         epoch  lease ms   checkpoint         last       "
         " lag     lag s\n"
         "        0  -                                 -         -            -            -       "
         "   0       0.0  never owned\n"
         "        1  -                                 0         -            0            1       "
         "   1       0.0  unowned since TIME\n"},
        {&weir__command_group_describe, "a --json", 0,
         "{\"type\":\"partition\",\"partition\":\"0\",\"owner\":null,\"epoch\":0,\"lease_age_ms\":"
         "null,\"checkpoint\":null,\"last_sequence\":null,\"lag\":0,\"lag_ms\":0}\n"
         "{\"type\":\"partition\",\"partition\":\"1\",\"owner\":null,\"epoch\":0,\"lease_age_ms\":"
         "null,\"checkpoint\":0,\"last_sequence\":1,\"lag\":1,\"lag_ms\":0,\"unowned_since\":"
         "\"TIME\"}\n"},
        {&weir__command_checkpoint_set, "a --partition 1 --sequence 1", 0, ""},
        {&weir__command_group_describe, "a", 0,
         "no members\n"
         "\n"
         "partition  owner                         epoch  lease ms   checkpoint         last       "
         " lag     lag s\n"
         "        0  -                                 -         -            -            -       "
         "   0       0.0  never owned\n"
         "        1  -                                 0         -            1            1       "
         "   0       0.0  unowned since TIME\n"},
        {&weir__command_checkpoint_delete, "a", 2,
         "weir: checkpoint delete: either --partition or --all is needed; try 'weir checkpoint "
         "delete --help'\n"},
        {&weir__command_checkpoint_delete, "a --all --partition 1", 2,
         "weir: checkpoint delete: either --partition or --all is needed; try 'weir checkpoint "
         "delete --help'\n"},
        {&weir__command_checkpoint_delete, "a --partition 2", 3,
         "weir: checkpoint delete: partition 2 is not one of 0 to 1; 'weir hub show' shows what is "
         "there\n"},
        {&weir__command_checkpoint_delete, "a --partition 0", 0, ""},
        {&weir__command_checkpoint_list, "a --json", 0,
         "{\"partition\":\"1\",\"sequence\":1,\"offset\":null,\"modified\":\"TIME\",\"owner\":null}"
         "\n"},
        {&weir__command_checkpoint_delete, "a --partition 1", 0, ""},
        {&weir__command_checkpoint_list, "a --json", 0, ""},
        {&weir__command_checkpoint_set, "a --partition 1 --sequence 0", 0, ""},
        {&weir__command_checkpoint_delete, "a --all", 0, ""},
        {&weir__command_checkpoint_list, "a --json", 0, ""},
    };

    (void)state;
    TAKE(steps);
}

/* Its marks stay, until they are deleted; another group of that name would go on from there. */
static void a_deleted_group_leaves_its_marks(void **state)
{
    static const struct step steps[] = {
        {&weir__command_hub_create, "a --partitions 1 --groups g", 0,
         "created hub a with 1 partition\n"},
        {&weir__command_send, "a one", 0, "acknowledged 1 event\n"},
        {&weir__command_checkpoint_set, "a/g --partition 0 --sequence 0", 0, ""},
        {&weir__command_group_delete, "a/g", 0, "deleted group g of hub a\n"},
        {&weir__command_checkpoint_list, "a/g --json", 0,
         "{\"partition\":\"0\",\"sequence\":0,\"offset\":null,\"modified\":\"TIME\",\"owner\":null}"
         "\n"},
        {&weir__command_checkpoint_delete, "a/g --all", 0, ""},
        {&weir__command_checkpoint_list, "a/g --json", 0, ""},
    };

    (void)state;
    TAKE(steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(groups_are_made_and_deleted, begin, end),
        cmocka_unit_test_setup_teardown(marks_are_set_and_deleted_by_hand, begin, end),
        cmocka_unit_test_setup_teardown(a_deleted_group_leaves_its_marks, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
