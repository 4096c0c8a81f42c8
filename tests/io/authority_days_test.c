/* authority_days_test.c - when the local authority renews what it has, to the millisecond; whom
 * it vouches for; and what of its folder it refuses. */
#include "io/authority.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/certificate.h"
#include "io/vault.h"

#define DAY_MS (24LL * 3600 * 1000)
#define NOW_MS 1700000000000

static const char *const names[] = {"lock", "ca.key", "ca.pem", "server.key", "server.pem"};
static char dir[256];
static struct weir__authority a;
static struct weir_error err;

static int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    snprintf(dir, sizeof dir, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? weir__authority_ensure(&a, dir, NOW_MS, &err) : -1;
}

static int remove_folder(void **state)
{
    char path[512];

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    return rmdir(dir);
}

/* Of the server's certificate; another each time that one is made. */
static void fingerprint(char out[96])
{
    struct weir__vault_file f;
    struct weir__vault v;
    X509 *cert;

    assert_int_equal(weir__vault_open(&v, dir, &err), 0);
    assert_int_equal(weir__vault_read(&v, "server.pem", false, &f, &err), 0);
    assert_int_equal(weir__certificate_parse(&cert, weir__bytes_of(f.bytes, f.len), &err), 0);
    weir__certificate_fingerprint(cert, out, 96);
    X509_free(cert);
    weir__vault_close(&v);
}

static bool is_renewed(const char *address, int64_t now_ms)
{
    char before[96], after[96];

    fingerprint(before);
    if (weir__authority_ensure_for(&a, dir, address, now_ms, &err) != 0) fail_msg("%s", err.text);
    fingerprint(after);
    return strcmp(before, after) != 0;
}

static void days_are_counted_to_the_millisecond(void **state)
{
    const int64_t until_ms = NOW_MS + 396 * DAY_MS;

    (void)state;
    assert_int_equal(a.ca_until_ms, NOW_MS + 3650 * DAY_MS);
    assert_int_equal(a.certificate_until_ms, until_ms);
    assert_false(is_renewed(NULL, until_ms - 30 * DAY_MS - 1));
    assert_true(is_renewed(NULL, until_ms - 30 * DAY_MS));
    assert_int_equal(a.certificate_until_ms, until_ms + 366 * DAY_MS);
}

/* It is good from the day before it was made. */
static void a_clock_may_be_a_day_behind(void **state)
{
    (void)state;
    assert_false(is_renewed(NULL, NOW_MS - DAY_MS));
    assert_true(is_renewed(NULL, NOW_MS - DAY_MS - 1));
}

static void an_authority_runs_out(void **state)
{
    char want[512];

    (void)state;
    assert_int_equal(weir__authority_look(&a, dir, NOW_MS + 3650 * DAY_MS - 1, &err), 0);
    assert_int_equal(weir__authority_look(&a, dir, NOW_MS + 3650 * DAY_MS, &err), WEIR_ECORRUPT);
    snprintf(want, sizeof want,
             "local authority: %s/ca.pem: the authority has run out: remove the folder, a new one "
             "will be made and has to be trusted",
             dir);
    assert_string_equal(err.text, want);
    assert_int_equal(weir__authority_ensure(&a, dir, NOW_MS + 3650 * DAY_MS, &err), WEIR_ECORRUPT);
    assert_string_equal(err.text, want);
}

/* Addresses of other machines are not for it to vouch for, and do not trouble it. */
static void it_vouches_for_this_machine(void **state)
{
    static const char *const others[] = {"126.255.255.255", "128.0.0.1", "10.0.0.127", "::1",
                                         "localhost",       "127.0.0.1"};

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_false(is_renewed(others[i], NOW_MS));
    assert_true(is_renewed("127.0.0.9", NOW_MS));
    assert_false(is_renewed("127.0.0.9", NOW_MS));
    assert_false(is_renewed(NULL, NOW_MS));
    assert_true(is_renewed("127.255.255.255", NOW_MS));
    assert_false(is_renewed("127.0.0.9", NOW_MS));
}

static void remove_one(const char *name)
{
    char path[512];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_int_equal(unlink(path), 0);
}

static void a_certificate_without_its_key(void **state)
{
    char want[512];

    (void)state;
    remove_one("server.key");
    snprintf(want, sizeof want,
             "local authority: %s: server.pem is there but not server.key: move it away", dir);
    assert_int_equal(weir__authority_look(&a, dir, NOW_MS, &err), WEIR_ECORRUPT);
    assert_string_equal(err.text, want);
    assert_int_equal(weir__authority_ensure(&a, dir, NOW_MS, &err), WEIR_ECORRUPT);
    assert_string_equal(err.text, want);
    remove_one("server.pem");
    remove_one("ca.key"); /* without which no other can be signed */
    snprintf(want, sizeof want,
             "local authority: %s: ca.key is missing, so server.pem cannot be made", dir);
    assert_int_equal(weir__authority_ensure(&a, dir, NOW_MS, &err), WEIR_ECORRUPT);
    assert_string_equal(err.text, want);
    snprintf(want, sizeof want, "local authority: %s: nothing has been made here yet", dir);
    assert_int_equal(weir__authority_look(&a, dir, NOW_MS, &err), WEIR_ENOTFOUND);
    assert_string_equal(err.text, want);
}

/* Slashes behind a path make it longer, and no other one. */
static void paths_have_a_length(void **state)
{
    char path[WEIR__AUTHORITY_PATH_MAX + 1], want[128];
    size_t longest = WEIR__AUTHORITY_PATH_MAX - sizeof "/server.key";

    (void)state;
    memset(path, '/', sizeof path);
    memcpy(path, dir, strlen(dir));
    path[longest] = '\0';
    assert_int_equal(weir__authority_look(&a, path, NOW_MS, &err), 0);
    assert_int_equal(strlen(a.key_file), WEIR__AUTHORITY_PATH_MAX - 1);
    assert_int_equal(access(a.key_file, R_OK), 0);
    assert_int_equal(access(a.certificate_file, R_OK), 0);
    assert_int_equal(access(a.ca_file, R_OK), 0);
    path[longest] = '/';
    path[longest + 1] = '\0';
    assert_int_equal(weir__authority_look(&a, path, NOW_MS, &err), WEIR_ETOOBIG);
    snprintf(want, sizeof want, "local authority: %.64s...: the path is too long", path);
    assert_string_equal(err.text, want);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(days_are_counted_to_the_millisecond),
        TEST(a_clock_may_be_a_day_behind),
        TEST(an_authority_runs_out),
        TEST(it_vouches_for_this_machine),
        TEST(a_certificate_without_its_key),
        TEST(paths_have_a_length),
    };

    return cmocka_run_group_tests_name("authority_days", tests, NULL, NULL);
}
