/* inspect_test.c - findings as weir inspect prints them: as text and as JSON. */
#include "cli/inspect_print.h"
#include "cli/said.h"

static struct weir__inspection in;

/* What fn prints of it: as text, then as JSON. */
#define EXPECT(text, json_text, call)                                                              \
    do {                                                                                           \
        in.json = false;                                                                           \
        said_begin();                                                                              \
        call;                                                                                      \
        said_end();                                                                                \
        assert_string_equal(said_out, text);                                                       \
        in.json = true;                                                                            \
        said_begin();                                                                              \
        call;                                                                                      \
        said_end();                                                                                \
        assert_string_equal(said_out, json_text);                                                  \
    } while (0)

static void hubs_are_counted_in_words(void **state)
{
    struct weir__catalog_hub hub = {.name = "h\"", .partitions = 1, .group_count = 2};

    (void)state;
    in = (struct weir__inspection){0};
    EXPECT("hub h\": 1 partition, 2 groups, created 1970-01-01T00:00:00.000Z, in f\n",
           "{\"kind\":\"hub\",\"name\":\"h\\\"\",\"partition_count\":1,\"group_count\":2,"
           "\"created\":\"1970-01-01T00:00:00.000Z\",\"folder\":\"f\"}\n",
           weir__inspect_hub(&in, &hub, "f"));
    hub.partitions = 2;
    hub.group_count = 1;
    in.json = false;
    said_begin();
    weir__inspect_hub(&in, &hub, "f");
    said_end();
    assert_non_null(strstr(said_out, ": 2 partitions, 1 group, created"));
}

static void findings_say_where(void **state)
{
    struct weir__log_finding f = {.kind = WEIR__LOG_DAMAGE,
                                  .file = "x.seg",
                                  .at = 10,
                                  .len = 1,
                                  .partition = 0,
                                  .first_sequence = 7,
                                  .last_sequence = 7,
                                  .text = "bad"};

    (void)state;
    in = (struct weir__inspection){.hub = "h"};
    EXPECT("  DAMAGE   x.seg bytes 10+1 partition 0 sequence 7 to 7: bad\n",
           "{\"kind\":\"damage\",\"hub\":\"h\",\"file\":\"x.seg\",\"at\":10,\"bytes\":1,"
           "\"partition\":0,\"first_sequence\":7,\"last_sequence\":7,\"text\":\"bad\"}\n",
           weir__inspect_finding(&in, &f));
    f.len = 0;
    f.partition = -1;
    f.first_sequence = 8;
    f.kind = WEIR__LOG_TORN;
    EXPECT("  torn     x.seg: bad\n",
           "{\"kind\":\"torn\",\"hub\":\"h\",\"file\":\"x.seg\",\"text\":\"bad\"}\n",
           weir__inspect_finding(&in, &f));
    f.len = 9;
    f.partition = 3;
    f.first_sequence = 1;
    f.kind = WEIR__LOG_SEGMENT;
    EXPECT("  segment  x.seg: bad\n",
           "{\"kind\":\"segment\",\"hub\":\"h\",\"file\":\"x.seg\",\"text\":\"bad\"}\n",
           weir__inspect_finding(&in, &f));
}

static void every_kind_has_its_word(void **state)
{
    static const char *const words[] = {
        [WEIR__LOG_SEGMENT] = "  segment  ", [WEIR__LOG_DAMAGE] = "  DAMAGE   ",
        [WEIR__LOG_COPY] = "  DAMAGE   ",    [WEIR__LOG_TORN] = "  torn     ",
        [WEIR__LOG_INDEX] = "  index    ",   [WEIR__LOG_CUT] = "  cut      ",
        [WEIR__LOG_HEADER] = "  DAMAGE   ",  [WEIR__LOG_CONTROL] = "  DAMAGE   ",
        [WEIR__LOG_IGNORED] = "  ignored  ", [WEIR__LOG_PRODUCERS] = "  DAMAGE   ",
    };
    struct weir__log_finding f = {.file = "f", .partition = -1, .first_sequence = 1, .text = "t"};

    (void)state;
    in = (struct weir__inspection){0};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        f.kind = (enum weir__log_finding_kind)i;
        said_begin();
        weir__inspect_finding(&in, &f);
        said_end();
        assert_memory_equal(said_out, words[i], strlen(words[i]));
        assert_string_equal(said_out + strlen(words[i]), "f: t\n");
    }
}

static void what_cannot_be_read_is_told_apart(void **state)
{
    struct weir_error newer = {.code = WEIR_EVERSION, .text = "v"},
                      bad = {.code = WEIR_EIO, .text = "e"};

    (void)state;
    in = (struct weir__inspection){.hub = "h"};
    EXPECT("  VERSION  v\n", "{\"kind\":\"version\",\"hub\":\"h\",\"text\":\"v\"}\n",
           weir__inspect_unread(&in, true, &newer));
    EXPECT("  DAMAGE   e\n", "{\"kind\":\"damage\",\"hub\":\"h\",\"text\":\"e\"}\n",
           weir__inspect_unread(&in, true, &bad));
    EXPECT("  UNREAD   e\n", "{\"kind\":\"unread\",\"hub\":\"h\",\"text\":\"e\"}\n",
           weir__inspect_unread(&in, false, &bad));
    in.hub = NULL;
    EXPECT("DAMAGE: w\n", "{\"kind\":\"damage\",\"text\":\"w\"}\n",
           weir__inspect_warning(&in, true, "w"));
    EXPECT("warning: w\n", "{\"kind\":\"warning\",\"text\":\"w\"}\n",
           weir__inspect_warning(&in, false, "w"));
}

static void orphans_are_told_with_what_to_do(void **state)
{
    struct weir__orphan o = {.id = 0x2f, .partitions = 1};

    (void)state;
    in = (struct weir__inspection){0};
    EXPECT("orphan hub-000000000000002f: no hub has this folder, and it may have events; 'weir hub "
           "adopt 2f NAME' makes\n  a hub of it again, or remove it by hand\n",
           "{\"kind\":\"orphan\",\"id\":\"2f\",\"readable\":true}\n",
           weir__inspect_orphan(&in, &o));
    o.partitions = 0;
    EXPECT("orphan hub-000000000000002f: no hub has this folder, and it cannot be read; 'weir hub "
           "adopt 2f NAME' makes\n  a hub of it again, or remove it by hand\n",
           "{\"kind\":\"orphan\",\"id\":\"2f\",\"readable\":false}\n",
           weir__inspect_orphan(&in, &o));
}

static void the_sum_is_the_last(void **state)
{
    (void)state;
    in = (struct weir__inspection){.segments = 1};
    EXPECT("0 hubs, 1 segment: no damage\n",
           "{\"kind\":\"sum\",\"hubs\":0,\"segments\":1,\"damaged\":0,\"orphans\":0,\"torn\":0,"
           "\"unread\":0}\n",
           weir__inspect_result(&in, 0));
    in = (struct weir__inspection){.segments = 2, .damaged = 1, .orphans = 1, .torn = 1};
    EXPECT("1 hub, 2 segments: 1 damaged, see DAMAGE above; nothing was changed\n"
           "1 orphan: folders with events that the catalogue does not know\n"
           "an unfinished write is at the end: the next open cuts it\n",
           "{\"kind\":\"sum\",\"hubs\":1,\"segments\":2,\"damaged\":1,\"orphans\":1,\"torn\":1,"
           "\"unread\":0}\n",
           weir__inspect_result(&in, 1));
    in = (struct weir__inspection){.orphans = 2};
    EXPECT("2 hubs, 0 segments: no damage\n"
           "2 orphans: folders with events that the catalogue does not know\n",
           "{\"kind\":\"sum\",\"hubs\":2,\"segments\":0,\"damaged\":0,\"orphans\":2,\"torn\":0,"
           "\"unread\":0}\n",
           weir__inspect_result(&in, 2));
    in = (struct weir__inspection){.unread = 2};
    EXPECT("2 hubs, 0 segments: no damage in what could be read\n"
           "2 hubs could not be read, see UNREAD above: of them nothing is known\n",
           "{\"kind\":\"sum\",\"hubs\":2,\"segments\":0,\"damaged\":0,\"orphans\":0,\"torn\":0,"
           "\"unread\":2}\n",
           weir__inspect_result(&in, 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hubs_are_counted_in_words),
        cmocka_unit_test(findings_say_where),
        cmocka_unit_test(every_kind_has_its_word),
        cmocka_unit_test(what_cannot_be_read_is_told_apart),
        cmocka_unit_test(orphans_are_told_with_what_to_do),
        cmocka_unit_test(the_sum_is_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
