/* serving_test.c - the sign of a server in its folder. */
#include "cli/serving.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cli/said.h"
#include "support/tempdir.h"

#define SIGN_BYTES_MAX 4095

static char dir[TEMPDIR_BYTES];
static struct weir__serving sign;
static struct weir_error err;

ssize_t __real_read(int fd, void *to, size_t room);
ssize_t __wrap_read(int fd, void *to, size_t room);

static size_t read_max; /* bytes at once */

ssize_t __wrap_read(int fd, void *to, size_t room)
{
    return __real_read(fd, to, room < read_max ? room : read_max);
}

static int begin(void **state)
{
    (void)state;
    read_max = SIZE_MAX;
    return tempdir_make(dir);
}

static int end(void **state)
{
    (void)state;
    tempdir_remove(dir);
    return 0;
}

static void put(const char *name, const char *text)
{
    char path[TEMPDIR_BYTES + 16];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void what_is_written_is_read(void **state)
{
    struct weir__serving s = {.pid = 4711,
                              .connect = "c;\"x\"",
                              .admin = "http://a",
                              .space = "id"};
    char path[TEMPDIR_BYTES + 16];
    struct stat st;

    (void)state;
    put("lock", "4711\n");
    put("serving.new", "left over");
    assert_int_equal(weir__serving_write(dir, &s, &err), 0);
    assert_int_equal(weir__serving_read(dir, &sign, &err), 0);
    assert_int_equal(sign.pid, 4711);
    assert_string_equal(sign.connect, "c;\"x\"");
    assert_string_equal(sign.admin, "http://a");
    assert_string_equal(sign.space, "id");
    snprintf(path, sizeof path, "%s/serving", dir);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    s.admin[0] = '\0';
    assert_int_equal(weir__serving_write(dir, &s, &err), 0);
    assert_int_equal(weir__serving_read(dir, &sign, &err), 0);
    assert_string_equal(sign.admin, "");
    weir__serving_remove(dir);
    assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ENOTFOUND);
    assert_int_not_equal(stat(path, &st), 0);
}

static void a_sign_of_another_process_is_none(void **state)
{
    static const char *const locks[] = {"7\n", "", "0\n", "-4711\n"};
    struct weir__serving s = {.pid = 4711, .connect = "c"};

    (void)state;
    assert_int_equal(weir__serving_write(dir, &s, &err), 0);
    assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ENOTFOUND); /* nobody's lock */
    for (size_t i = 0; i < sizeof locks / sizeof locks[0]; i++) {
        put("lock", locks[i]);
        assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ENOTFOUND);
    }
    put("lock", "7\n");
    assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ENOTFOUND);
    assert_string_equal(err.text, "the sign of process 4711, and 7 has the folder");
    s.pid = 0;
    assert_int_equal(weir__serving_write(dir, &s, &err), 0);
    put("lock", "0\n");
    assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ENOTFOUND);
}

static void a_spoilt_sign_is_told(void **state)
{
    static const struct {
        const char *text;
        int rc;
        const char *why;
    } bad[] = {
        {"", WEIR_ECORRUPT, "/serving: "},
        {"nonsense", WEIR_ECORRUPT, "/serving: "},
        {"{\"version\":2,\"pid\":7,\"connection_string\":\"c\"}", WEIR_EVERSION,
         "/serving: version 2, and 1 is known here"},
        {"{\"version\":0,\"pid\":7,\"connection_string\":\"c\"}", WEIR_EVERSION,
         "/serving: version 0, and 1 is known here"},
        {"{\"version\":1,\"pid\":7}", WEIR_ECORRUPT, "/serving: no connection_string"},
    };

    (void)state;
    put("lock", "7\n");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put("serving", bad[i].text);
        assert_int_equal(weir__serving_read(dir, &sign, &err), bad[i].rc);
        assert_memory_equal(err.text, dir, strlen(dir));
        if (!strstr(err.text, bad[i].why)) fail_msg("%s", err.text);
    }
    put("serving", "{\"version\":1,\"pid\":7,\"connection_string\":\"c\"}");
    assert_int_equal(weir__serving_read(dir, &sign, &err), 0);
    assert_string_equal(sign.space, "");
}

static void a_sign_may_come_in_pieces(void **state)
{
    struct weir__serving s = {.pid = 4711, .connect = "connection", .space = "id"};

    (void)state;
    put("lock", "4711\n");
    assert_int_equal(weir__serving_write(dir, &s, &err), 0);
    for (read_max = 1; read_max < 4; read_max++) {
        assert_int_equal(weir__serving_read(dir, &sign, &err), 0);
        assert_int_equal(sign.pid, 4711);
        assert_string_equal(sign.connect, "connection");
        assert_string_equal(sign.space, "id");
    }
}

/* With a member that is passed over, so that it is as long as it may be. */
static void a_sign_has_so_many_bytes(void **state)
{
    static const char form[] = "{\"version\":1,\"pid\":7,\"connection_string\":\"c\",\"x\":%*d}";
    char text[SIGN_BYTES_MAX + 2];
    int filled = snprintf(NULL, 0, form, 0, 0) - 1;

    (void)state;
    put("lock", "7\n");
    for (int more = 0; more < 2; more++) {
        snprintf(text, sizeof text, form, SIGN_BYTES_MAX - filled + more, 0);
        assert_int_equal(strlen(text), SIGN_BYTES_MAX + more);
        put("serving", text);
        assert_int_equal(weir__serving_read(dir, &sign, &err), more ? WEIR_ECORRUPT : 0);
    }
    assert_non_null(strstr(err.text, "/serving: "));
}

/* Also where the lock should be. A pipe that nobody writes to is not waited for. */
static void what_is_no_file_is_no_sign(void **state)
{
    static const char *const names[] = {"lock", "serving"};
    char path[TEMPDIR_BYTES + 16], text[TEMPDIR_BYTES + 64];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        put("lock", "7\n");
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_EIO);
        snprintf(text, sizeof text, "%s: Is a directory", path);
        assert_string_equal(err.text, text);
        assert_int_equal(rmdir(path), 0);
        assert_int_equal(symlink("/dev/null", path), 0);
        assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_EIO);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(weir__serving_read(dir, &sign, &err), WEIR_ECORRUPT);
}

/* A folder in its place stays, and nothing else is left there. */
static void a_sign_that_cannot_be_written_is_told(void **state)
{
    struct weir__serving s = {.pid = 1, .connect = "c"};
    char path[TEMPDIR_BYTES + 16], fresh[TEMPDIR_BYTES + 16], text[TEMPDIR_BYTES + 64];

    (void)state;
    snprintf(path, sizeof path, "%s/serving", dir);
    snprintf(fresh, sizeof fresh, "%s/serving.new", dir);
    snprintf(text, sizeof text, "%s: Is a directory", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(weir__serving_write(dir, &s, &err), WEIR_EIO);
    assert_string_equal(err.text, text);
    assert_int_not_equal(access(fresh, F_OK), 0);
    weir__serving_remove(dir);
    assert_int_equal(access(path, F_OK), 0);
}

static void a_folder_that_is_not_there_has_no_sign(void **state)
{
    struct weir__serving s = {.pid = 1, .connect = "c"};

    (void)state;
    assert_int_equal(weir__serving_write("/nowhere/at/all", &s, &err), WEIR_ENOTFOUND);
    assert_string_equal(err.text, "/nowhere/at/all/serving: No such file or directory");
    assert_int_equal(weir__serving_read("/nowhere/at/all", &sign, &err), WEIR_ENOTFOUND);
}

static void a_path_has_a_limit(void **state)
{
    static const char text[] = "the folder's path is too long";
    struct weir__serving s = {.pid = 1, .connect = "c"};
    static char path[WEIR__CATALOG_DIR_MAX + 32];

    (void)state;
    memset(path, '/', sizeof path - 1);
    err.text[0] = '\0';
    assert_int_equal(weir__serving_write(path, &s, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, text);
    err.text[0] = '\0';
    assert_int_equal(weir__serving_read(path, &sign, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, text);
    weir__serving_remove(path);
    err.text[0] = '\0';
    path[WEIR__CATALOG_DIR_MAX + 7] = '\0'; /* the sign itself would fit */
    assert_int_equal(weir__serving_write(path, &s, &err), WEIR_ETOOBIG);
    assert_string_equal(err.text, text);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_written_is_read),
        CASE(a_sign_of_another_process_is_none),
        CASE(a_spoilt_sign_is_told),
        CASE(a_sign_may_come_in_pieces),
        CASE(a_sign_has_so_many_bytes),
        CASE(what_is_no_file_is_no_sign),
        CASE(a_sign_that_cannot_be_written_is_told),
        CASE(a_folder_that_is_not_there_has_no_sign),
        CASE(a_path_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
