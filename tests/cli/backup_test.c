/* backup_test.c - weir backup and weir restore, with all that they print. */
#include <glob.h>
#include <sys/stat.h>

#include "cli/steps.h"

static char root[TEMPDIR_BYTES], before[4096];

/* The folder is `d` in the present one, so that the others can be named without their path. */
static int begin_inside(void **state)
{
    if (!getcwd(before, sizeof before) || begin(state) != 0 || chdir(dir) != 0) return -1;
    memcpy(root, dir, sizeof root);
    memcpy(dir + strlen(dir), "/d", sizeof "/d");
    return 0;
}

static int end_inside(void **state)
{
    memcpy(dir, root, sizeof root);
    return chdir(before) == 0 ? end(state) : -1;
}

/* "took_ms":17 becomes "took_ms":N, unless it is more than a test takes. */
static void mask_number(char *text, const char *name)
{
    char *at = strstr(text, name);
    size_t digits;

    if (!at) return;
    at += strlen(name);
    digits = strspn(at, "0123456789");
    if (digits == 0 || digits > 6) return;
    *at = 'N';
    memmove(at + 1, at + digits, strlen(at + digits) + 1);
}

static void expect(const struct weir__command *command, const char *line, int code, const char *out,
                   const char *complaint)
{
    int is = run(command, line);

    mask_number(said_out, "\"took_ms\":");
    mask_number(said_out, "\"spread_ms\":");
    if (is != code || strcmp(said_out, out) != 0 || strcmp(said_err, complaint) != 0)
        fail_msg("%s %s: code %d\n%s%s", command->name, line, is, said_out, said_err);
}

#define MADE                                                                                       \
    {&weir__command_hub_create, "a --partitions 1", 0, "created hub a with 1 partition\n"},        \
    {                                                                                              \
        &weir__command_send, "a body-of-the-event", 0, "acknowledged 1 event\n"                    \
    }
#define ONE "1 hub with 1 event, as of TIME (newest event TIME)\n"

static void copies_are_made_checked_and_restored(void **state)
{
    static const struct step steps[] = {
        MADE,
        {&weir__command_backup, "d", 2,
         "weir: backup: two folders are needed: what to back up, and where to; try 'weir backup "
         "--help'\n"},
        {&weir__command_backup, "--check d e", 2,
         "weir: backup: --check takes one folder, the backup; try 'weir backup --help'\n"},
        {&weir__command_backup, "d d2", 0,
         "backed up " ONE "1 segment copied (16.1 KiB), 0 reused (0 bytes), 0 removed\n"},
        {&weir__command_backup, "d d2", 0,
         "backed up " ONE "0 segments copied (0 bytes), 1 reused (16.1 KiB), 0 removed\n"},
        {&weir__command_backup, "--check d2", 0, "good: " ONE},
        {&weir__command_restore, "d2 r", 0, "restored " ONE},
        {&weir__command_restore, "d2 s/", 0, "restored " ONE},
        {&weir__command_restore, "d2 r", 1,
         "weir: restore d2 to r: r is not empty; restore into a new folder; nothing was changed\n"},
        {&weir__command_hub_create, "b --partitions 1", 0, "created hub b with 1 partition\n"},
        {&weir__command_send, "a two", 0, "acknowledged 1 event\n"},
        {&weir__command_backup, "d d2", 0,
         "backed up 2 hubs with 2 events, as of TIME (newest event TIME)\n"
         "2 segments copied (32.2 KiB), 0 reused (0 bytes), 1 removed\n"},
        {&weir__command_hub_delete, "a", 0, "deleted hub a and its events\n"},
        {&weir__command_backup, "d empty", 0,
         "backed up 1 hub with 0 events, as of TIME\n"
         "1 segment copied (16.0 KiB), 0 reused (0 bytes), 0 removed\n"},
        {&weir__command_backup, "--check none", 3,
         "weir: backup --check none: none is not a backup; 'weir backup DIR TO' makes one\n"},
    };

    (void)state;
    TAKE(steps);
}

/* Also when they are not there yet, and however their names end. */
static void folders_do_not_lie_in_each_other(void **state)
{
    static const struct step made[] = {
        MADE,
        {&weir__command_backup, "d to", 0,
         "backed up " ONE "1 segment copied (16.1 KiB), 0 reused (0 bytes), 0 removed\n"},
    };
    static const char *const inside[] = {"",      "/",  "/in",    "/in/",
                                         "/in//", "/.", "/../to", "/../to/in"};
    char line[64], complaint[256], path[TEMPDIR_BYTES + 16];
    struct stat st;

    (void)state;
    TAKE(made);
    for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
        snprintf(line, sizeof line, "to to%s", inside[i]);
        snprintf(complaint, sizeof complaint,
                 "weir: backup: to%s lies in to, the folder to be backed up; try 'weir backup "
                 "--help'\n",
                 inside[i]);
        expect(&weir__command_backup, line, 2, "", complaint);
        snprintf(complaint, sizeof complaint,
                 "weir: restore: to%s lies in the backup; try 'weir restore --help'\n", inside[i]);
        expect(&weir__command_restore, line, 2, "", complaint);
    }
    expect(
        &weir__command_backup, "d d/none/in", 2, "",
        "weir: backup d to d/none/in: d/none/in cannot be made: the folder around it is missing\n");
    assert_int_equal(chdir("to"), 0);
    expect(&weir__command_backup, ". in", 2, "",
           "weir: backup: in lies in ., the folder to be backed up; try 'weir backup --help'\n");
    snprintf(path, sizeof path, "%s/to/in", root);
    assert_int_not_equal(stat(path, &st), 0);
}

#define FIGURES(copied, reused, damaged)                                                           \
    "{\"hubs\":1,\"events\":1,\"moment\":\"TIME\",\"spread_ms\":N,\"last_enqueued_time\":"         \
    "\"TIME\","                                                                                    \
    "\"segments_copied\":" copied ",\"segments_reused\":" reused ",\"damaged\":" damaged           \
    ",\"left_out\":0,\"kept_good\":0,\"took_ms\":N}\n"
#define COPIED_BYTES "0,\"segments_removed\":0,\"bytes_copied\":16496,\"bytes_reused\":0"
#define REUSED_BYTES "1,\"segments_removed\":0,\"bytes_copied\":0,\"bytes_reused\":16496"

static void scripts_read_figures(void **state)
{
    static const struct step made[] = {MADE};

    (void)state;
    TAKE(made);
    expect(&weir__command_backup, "d to --json", 0, FIGURES("1", COPIED_BYTES, "0"), "");
    expect(&weir__command_backup, "d to --json", 0, FIGURES("0", REUSED_BYTES, "0"), "");
    expect(&weir__command_backup, "--check to --json", 0, FIGURES("1", COPIED_BYTES, "0"), "");
    expect(&weir__command_restore, "to r --json", 0, FIGURES("1", COPIED_BYTES, "0"), "");
    expect(&weir__command_hub_delete, "a", 0, "deleted hub a and its events\n", "");
    expect(
        &weir__command_backup, "d none --json", 0,
        "{\"hubs\":0,\"events\":0,\"moment\":\"TIME\",\"spread_ms\":N,\"last_enqueued_time\":null,"
        "\"segments_copied\":0,\"segments_reused\":0,\"segments_removed\":0,\"bytes_copied\":0,"
        "\"bytes_reused\":0,\"damaged\":0,\"left_out\":0,\"kept_good\":0,\"took_ms\":N}\n",
        "");
}

/* Changes a byte of the event in the folder's only segment. */
static void spoil(void)
{
    char bytes[65536];
    glob_t found;
    size_t len, i = 0;
    FILE *f;

    assert_int_equal(glob("d/hub-*/*.seg", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    f = fopen(found.gl_pathv[0], "r+");
    assert_non_null(f);
    len = fread(bytes, 1, sizeof bytes, f);
    while (i + 17 <= len && memcmp(bytes + i, "body-of-the-event", 17) != 0) i++;
    assert_true(i + 17 <= len);
    assert_int_equal(fseek(f, (long)i, SEEK_SET), 0);
    assert_int_equal(fputc('X', f), 'X');
    assert_int_equal(fclose(f), 0);
    globfree(&found);
}

#define PLACE "1 damaged place in the backup"

static void damage_is_a_failure_each_time(void **state)
{
    static const struct step made[] = {MADE};

    (void)state;
    TAKE(made);
    spoil();
    expect(&weir__command_backup, "d blind --no-verify", 0,
           "backed up " ONE "1 segment copied (16.1 KiB), 0 reused (0 bytes), 0 removed\n", "");
    expect(&weir__command_backup, "d to", 1,
           "backed up " ONE "1 segment copied (16.1 KiB), 0 reused (0 bytes), 0 removed\n" PLACE
           "\n",
           "backup: damage hub=a file=d/hub-0000000000000001/00000001.seg byte=8192 bytes=112: a "
           "batch fails its checksum\n");
    expect(&weir__command_backup, "d to --json", 1, FIGURES("0", REUSED_BYTES, "1"), "");
    expect(&weir__command_backup, "--check to", 1, "as it was made: " ONE PLACE "\n", "");
    expect(&weir__command_backup, "--check to --json", 1, FIGURES("1", COPIED_BYTES, "1"), "");
    expect(&weir__command_restore, "to r", 1,
           "restored " ONE PLACE "; 'weir inspect r' shows what is lost\n", "");
    expect(&weir__command_restore, "to s --json", 1, FIGURES("1", COPIED_BYTES, "1"), "");
}

/* The folder is damaged, though nothing is missing in the backup. */
static void a_good_copy_does_not_hide_damage(void **state)
{
    static const struct step made[] = {MADE};

    (void)state;
    TAKE(made);
    expect(&weir__command_backup, "d to", 0,
           "backed up " ONE "1 segment copied (16.1 KiB), 0 reused (0 bytes), 0 removed\n", "");
    spoil();
    expect(&weir__command_backup, "d to", 1,
           "backed up " ONE "1 segment copied (16.1 KiB), 1 reused (16.1 KiB), 1 removed\n"
           "1 segment is damaged or lost in the folder, and whole in the backup\n",
           "backup: damage hub=a file=d/hub-0000000000000001/00000001.seg byte=8192 bytes=112: a "
           "batch fails its checksum\n"
           "backup: hub=a: segment 1 stays as the backup has it, which is good\n");
    expect(&weir__command_backup, "--check to", 0, "good: " ONE, "");
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin_inside, end_inside)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(copies_are_made_checked_and_restored),
        CASE(folders_do_not_lie_in_each_other),
        CASE(scripts_read_figures),
        CASE(damage_is_a_failure_each_time),
        CASE(a_good_copy_does_not_hide_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
