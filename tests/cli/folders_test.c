/* folders_test.c - what is said of a folder as a whole: weir inspect, weir upgrade, folders of hubs
 * that the catalogue does not know, and where the local authority's folder is. */
#include "cli/steps.h"

#include <sys/stat.h>

#include "cli/trust.h"

static void expect(const struct weir__command *command, const char *line, int code, const char *out,
                   const char *complaint)
{
    int is = run(command, line);

    if (is != code || strcmp(said_out, out) != 0 || strcmp(said_err, complaint) != 0)
        fail_msg("%s %s: code %d\n%s%s", command->name, line, is, said_out, said_err);
}

/* ---- files ---- */

static const char *path_of(const char *name)
{
    static char path[TEMPDIR_BYTES + 64];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static struct {
    char bytes[65536];
    size_t len;
} kept[2];

static void keep_catalog(void)
{
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path_of(i ? "catalog.1" : "catalog.0"), "r");
        kept[i].len = 0;
        if (!f) continue;
        kept[i].len = fread(kept[i].bytes, 1, sizeof kept[i].bytes, f);
        fclose(f);
    }
}

/* As it was kept, or none at all where there was none. */
static void restore_catalog(void)
{
    for (int i = 0; i < 2; i++) {
        const char *path = path_of(i ? "catalog.1" : "catalog.0");
        FILE *f;
        unlink(path);
        if (kept[i].len == 0) continue;
        f = fopen(path, "w");
        assert_non_null(f);
        assert_int_equal(fwrite(kept[i].bytes, 1, kept[i].len, f), kept[i].len);
        assert_int_equal(fclose(f), 0);
    }
}

#define MADE                                                                                       \
    {&weir__command_hub_create, "a --partitions 1", 0, "created hub a with 1 partition\n"},        \
    {                                                                                              \
        &weir__command_send, "a one", 0, "acknowledged 1 event\n"                                  \
    }

/* ---- inspect and upgrade ---- */

#define SEGMENT "DIR/hub-0000000000000001/00000001.seg"
#define ORPHAN                                                                                     \
    "weir: hub: orphan DIR/hub-0000000000000002: no hub has this folder, and it may have events: " \
    "it is kept; 'weir hub adopt 2 NAME' makes a hub of it again, or remove it by hand\n"

static void a_good_folder_is_inspected(void **state)
{
    static const struct step made[] = {MADE};

    (void)state;
    TAKE(made);
    expect(&weir__command_inspect, "", 0,
           "hub a: 1 partition, 1 group, created TIME, in DIR/hub-0000000000000001\n"
           "  segment  " SEGMENT ": segment 1: positions OFFSET to OFFSET, 1 batch, 1 event\n"
           "1 hub, 1 segment: no damage\n",
           "");
    expect(&weir__command_inspect, "--json", 0,
           "{\"kind\":\"hub\",\"name\":\"a\",\"partition_count\":1,\"group_count\":1,\"created\":"
           "\"TIME\",\"folder\":\"DIR/hub-0000000000000001\"}\n"
           "{\"kind\":\"segment\",\"hub\":\"a\",\"file\":\"" SEGMENT "\",\"text\":\"segment 1: "
           "positions OFFSET to OFFSET, 1 batch, 1 event\"}\n"
           "{\"kind\":\"sum\",\"hubs\":1,\"segments\":1,\"damaged\":0,\"orphans\":0,\"torn\":0,"
           "\"unread\":0}\n",
           "");
}

static void a_path_has_a_limit(void **state)
{
    static const char text[] = ": the folder's path has 1025 bytes, the most is 1024\n";
    char line[1026];

    (void)state;
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    assert_int_equal(run(&weir__command_inspect, line), 1);
    assert_memory_equal(said_err, "weir: inspect xxx", 17);
    assert_true(strlen(said_err) > sizeof text);
    assert_string_equal(said_err + strlen(said_err) - (sizeof text - 1), text);
}

static void a_folder_without_a_catalogue_has_lost_it(void **state)
{
    static const struct step made[] = {MADE};

    (void)state;
    expect(&weir__command_inspect, "", 3, "",
           "weir: DIR: there are no hubs; 'weir hub create' makes the first, --data names another "
           "folder\n");
    expect(&weir__command_upgrade, "", 3, "",
           "weir: DIR: there are no hubs; 'weir hub create' makes the first, --data names another "
           "folder\n");
    TAKE(made);
    unlink(path_of("catalog.0"));
    unlink(path_of("catalog.1"));
    expect(&weir__command_inspect, "", 1, "",
           "weir: inspect DIR: no good catalogue: DIR/catalog.0: open: No such file or directory; "
           "DIR/catalog.1: open: No such file or directory; the events are in the folders hub-*, "
           "and nothing was deleted; a backup has a catalogue, see docs/operations.md\n");
}

/* One byte of a copy, which its checksum does not know. */
static void spoil_catalog(const char *name, long at)
{
    FILE *f = fopen(path_of(name), "r+");
    int c;

    assert_non_null(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    c = getc(f);
    assert_int_equal(fseek(f, at, SEEK_SET), 0);
    putc(c ^ 1, f);
    assert_int_equal(fclose(f), 0);
}

#define BAD_COPY "a copy of the catalogue is bad"
#define MAY_BE_OLDER                                                                               \
    BAD_COPY ", and the other, which is used, may be older: changes of hubs, groups and keys may " \
             "be missing; nothing is removed: DIR/catalog.1: not a catalogue"
#define INSPECTED                                                                                  \
    "hub a: 1 partition, 1 group, created TIME, in DIR/hub-0000000000000001\n"                     \
    "  segment  " SEGMENT ": segment 1: positions OFFSET to OFFSET, 1 batch, 1 event\n"

static void a_bad_copy_of_the_catalogue_is_told(void **state)
{
    static const struct step made[] = {MADE};

    (void)state;
    TAKE(made);
    spoil_catalog("catalog.1", 40);
    expect(&weir__command_inspect, "", 0,
           "warning: " BAD_COPY ", the other is used: DIR/catalog.1: the catalogue fails its "
           "checksum\n" INSPECTED "1 hub, 1 segment: no damage\n",
           "");
    spoil_catalog("catalog.1", 0);
    expect(&weir__command_inspect, "", 1,
           "DAMAGE: " MAY_BE_OLDER "\n" INSPECTED
           "1 hub, 1 segment: 1 damaged, see DAMAGE above; nothing was changed\n",
           "");
    assert_int_equal(run(&weir__command_inspect, "--json"), 1);
    assert_memory_equal(said_out, "{\"kind\":\"damage\",\"text\":\"" MAY_BE_OLDER "\"}\n{",
                        strlen("{\"kind\":\"damage\",\"text\":\"" MAY_BE_OLDER "\"}\n{"));
    assert_non_null(strstr(said_out, "{\"kind\":\"sum\",\"hubs\":1,\"segments\":1,\"damaged\":1,"
                                     "\"orphans\":0,\"torn\":0,\"unread\":0}\n"));
}

static void there_is_nothing_to_upgrade(void **state)
{
    static const struct step steps[] = {
        MADE,
        {&weir__command_upgrade, "", 0,
         "DIR: 1 hub of format version 2, which is the newest: nothing to do\n"},
        {&weir__command_hub_create, "b --partitions 1", 0, "created hub b with 1 partition\n"},
        {&weir__command_upgrade, "", 0,
         "DIR: 2 hubs of format version 2, which is the newest: nothing to do\n"},
    };

    (void)state;
    TAKE(steps);
}

/* ---- orphans ---- */

#define KEPT "kept        96 bytes of events since TIME\n"
#define ROWS                                                                                       \
    "\npartition      events   first sequence    next sequence       last offset  last enqueued\n" \
    "        0           1                0                1  OFFSET  TIME\n"                      \
    "        1           0                0                0                 -  -\n"               \
    "        2           0                0                0                 -  -\n"

static void a_hub_of_a_lost_catalogue_is_adopted(void **state)
{
    static const struct step made[] = {MADE};
    static const struct step more[] = {
        {&weir__command_hub_create, "b --partitions 3", 0, "created hub b with 3 partitions\n"},
        {&weir__command_send, "b two --partition 0", 0, "acknowledged 1 event\n"},
    };
    static const struct step adopted[] = {
        {&weir__command_tail, "b --until-end", 0, "two\n"},
        {&weir__command_hub_show, "b", 0,
         "hub         b\ncreated     TIME\ngroups      $Default\n"
         "retention   for ever\n" KEPT "on disk     64.0 KiB in 1 segment\n" ROWS},
        {&weir__command_hub_update, "b --retention-bytes 10M", 0, "changed hub b\n"},
        {&weir__command_hub_show, "b", 0,
         "hub         b\ncreated     TIME\ngroups      $Default\n"
         "retention   for ever, 10M\n" KEPT "on disk     64.0 KiB in 1 segment, at most 17.7 MiB\n"
         "next expiry 96 bytes when the limit in bytes is passed\n" ROWS},
        {&weir__command_hub_show, "b --json", 0,
         "{\"name\":\"b\",\"created\":\"TIME\",\"retain_ms\":-1,\"retain_bytes\":10485760,"
         "\"groups\":[\"$Default\"],\"stored_bytes\":96,\"disk_bytes\":65536,\"disk_bytes_max\":"
         "18582186,\"oldest_enqueued\":\"TIME\",\"next_expiry_bytes\":96,\"next_expiry_ms\":-1,"
         "\"partitions\":[{\"id\":\"0\",\"begin_sequence\":0,\"next_sequence\":1,\"last_offset\":"
         "\"OFFSET\",\"last_enqueued\":\"TIME\"},{\"id\":\"1\",\"begin_sequence\":0,\"next_"
         "sequence\":0,\"last_offset\":null,\"last_enqueued\":null},{\"id\":\"2\",\"begin_"
         "sequence\":0,\"next_sequence\":0,\"last_offset\":null,\"last_enqueued\":null}]}\n"},
        {&weir__command_hub_list, "", 0,
         "a                           1 partition   1 group   created TIME  retention 7d\n"
         "b                           3 partitions  1 group   created TIME  retention for ever, "
         "10M\n"},
    };

    (void)state;
    TAKE(made);
    keep_catalog();
    TAKE(more);
    restore_catalog();
    expect(&weir__command_hub_list, "", 0,
           "a                           1 partition   1 group   created TIME  retention 7d\n"
           "(orphan)                    3 partitions  without a hub: 'weir hub adopt 2 NAME' makes "
           "it one again\n",
           ORPHAN);
    expect(&weir__command_hub_list, "--json", 0,
           "{\"name\":\"a\",\"created\":\"TIME\",\"partition_count\":1,\"group_count\":1,"
           "\"retain_ms\":604800000,\"retain_bytes\":0}\n"
           "{\"orphan\":\"2\",\"partition_count\":3}\n",
           ORPHAN);
    expect(&weir__command_inspect, "", 0,
           "hub a: 1 partition, 1 group, created TIME, in DIR/hub-0000000000000001\n"
           "  segment  " SEGMENT ": segment 1: positions OFFSET to OFFSET, 1 batch, 1 event\n"
           "orphan hub-0000000000000002: no hub has this folder, and it may have events; 'weir hub "
           "adopt 2 NAME' makes\n  a hub of it again, or remove it by hand\n"
           "1 hub, 1 segment: no damage\n"
           "1 orphan: folders with events that the catalogue does not know\n",
           "");
    expect(&weir__command_hub_adopt, "2 b", 0, "adopted hub b; its events are kept for ever\n",
           ORPHAN);
    TAKE(adopted);
}

/* ---- groups of a new hub ---- */

static void a_new_hub_has_64_groups_at_most(void **state)
{
    char line[8192] = "a --partitions 1 --groups g0", name[8];

    (void)state;
    for (int i = 1; i < 64; i++) {
        snprintf(name, sizeof name, ",g%d", i);
        strcat(line, name);
    }
    expect(&weir__command_hub_create, line, 0, "created hub a with 1 partition\n", "");
    line[0] = 'b';
    strcat(line, ",g64");
    expect(&weir__command_hub_create, line, 2, "",
           "weir: hub create: --groups must be up to 64 names; try 'weir hub create --help'\n");
}

/* Commas beside each other are one. */
static void the_groups_of_a_new_hub_are_a_text(void **state)
{
    char line[8192] = "a --groups g";
    size_t len = strlen(line);

    (void)state;
    memset(line + len, ',', 4094);
    expect(&weir__command_hub_create, line, 0, "created hub a with 4 partitions\n", "");
    line[0] = 'b';
    line[len + 4094] = ',';
    expect(&weir__command_hub_create, line, 2, "",
           "weir: hub create: --groups must be up to 64 names; try 'weir hub create --help'\n");
}

/* ---- the local authority's folder ---- */

static void expect_authority(const char *given, const char *data, const char *home, int rc,
                             const char *text)
{
    char out[WEIR__AUTHORITY_PATH_MAX];
    struct weir_error err;
    int is;

    setenv("XDG_DATA_HOME", data ? data : "", 1);
    setenv("HOME", home ? home : "", 1);
    if (!data) unsetenv("XDG_DATA_HOME");
    if (!home) unsetenv("HOME");
    is = weir__trust_folder(given, out, &err);
    assert_int_equal(is, rc);
    assert_string_equal(rc == 0 ? out : err.text, text);
}

#define NO_HOME "there is no HOME for a local authority: --authority names a folder"
#define TOO_LONG "the path of the local authority is too long"

static void an_authority_lives_where_programs_keep_data(void **state)
{
    char home[4096], *before = strdup(getenv("HOME") ? getenv("HOME") : ""), most[4200];
    size_t behind = strlen("/weir/authority");

    (void)state;
    expect_authority("here", "/x", "/h", 0, "here");
    expect_authority(NULL, "/x", "/h", 0, "/x/weir/authority");
    expect_authority(NULL, "x", "/h", 0, "/h/.local/share/weir/authority");
    expect_authority(NULL, NULL, "/h", 0, "/h/.local/share/weir/authority");
    expect_authority(NULL, NULL, "h", WEIR_EINVAL, NO_HOME);
    expect_authority(NULL, NULL, NULL, WEIR_EINVAL, NO_HOME);
    memset(home, '/', sizeof home);
    home[WEIR__AUTHORITY_PATH_MAX - behind] = '\0';
    expect_authority(NULL, home, NULL, WEIR_ETOOBIG, TOO_LONG);
    home[WEIR__AUTHORITY_PATH_MAX - behind - 1] = '\0';
    snprintf(most, sizeof most, "%s/weir/authority", home);
    expect_authority(NULL, home, NULL, 0, most);
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", before, 1);
    free(before);
}

#define READERS                                                                                    \
    "It can vouch for localhost, 127.0.0.0/8 and ::1 only. Clients trust it by:\n\n"               \
    "  JavaScript (Node)           export NODE_EXTRA_CA_CERTS='DIR/ca/ca.pem'\n"                   \
    "  .NET, Go, Rust, C on Linux  export SSL_CERT_FILE='DIR/ca/ca.pem'   (instead of the "        \
    "system's list)\n"                                                                             \
    "  Python                      EventHubProducerClient(..., "                                   \
    "connection_verify='DIR/ca/ca.pem')\n"                                                         \
    "  Python, requests            export REQUESTS_CA_BUNDLE='DIR/ca/ca.pem'\n"                    \
    "  Java                        keytool -importcert -noprompt -alias weir -file "               \
    "'DIR/ca/ca.pem' -keystore weir.p12 -storepass changeit\n"                                     \
    "                              java -Djavax.net.ssl.trustStore=weir.p12 "                      \
    "-Djavax.net.ssl.trustStorePassword=changeit ...\n"                                            \
    "  everything, .NET too        weir trust --system   (as root; --remove undoes it)\n"

/* The certificate, until when it is good and its fingerprint, and what every client reads. */
static void an_authority_is_told_to_all(void **state)
{
    static char longer[WEIR__AUTHORITY_PATH_MAX + 1], whole[sizeof longer + 32];
    char line[512], name[128], until[16], print[128];
    const char *readers;

    (void)state;
    unsetenv("SUDO_USER");
    memset(longer, 'l', sizeof longer - 1);
    snprintf(whole, sizeof whole, "--authority %s", longer);
    assert_int_equal(run(&weir__command_trust, whole), 1);
    assert_string_equal(said_err, "weir: trust: " TOO_LONG "\n");
    assert_string_equal(said_out, "");
    snprintf(line, sizeof line, "--authority %s/ca", dir);
    assert_int_equal(run(&weir__command_trust, line), 0);
    assert_string_equal(said_err, "");
    readers = strstr(said_out, "It can vouch");
    assert_non_null(readers);
    assert_string_equal(readers, READERS);
    assert_int_equal(sscanf(said_out, "DIR/ca/ca.pem\n\n%127[^,], until %15[^\n]\nSHA-256 %127s",
                            name, until, print),
                     3);
    assert_int_equal(strlen(until), strlen("2026-01-31"));
    assert_true(has_form(until, "0000-00-00"));
    snprintf(line, sizeof line, "DIR/ca/ca.pem\n\n%s, until %s\nSHA-256 %s\n\n", name, until,
             print);
    assert_int_equal(readers - said_out, strlen(line));
    assert_memory_equal(said_out, line, strlen(line));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_good_folder_is_inspected),
        CASE(a_path_has_a_limit),
        CASE(a_folder_without_a_catalogue_has_lost_it),
        CASE(there_is_nothing_to_upgrade),
        CASE(a_bad_copy_of_the_catalogue_is_told),
        CASE(a_hub_of_a_lost_catalogue_is_adopted),
        CASE(a_new_hub_has_64_groups_at_most),
        CASE(the_groups_of_a_new_hub_are_a_text),
        CASE(an_authority_lives_where_programs_keep_data),
        CASE(an_authority_is_told_to_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
