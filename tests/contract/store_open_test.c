/* store_open_test.c - stores by their URL. */
#define _GNU_SOURCE
#include "weir/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct weir_error err;

static void a_url_opens_its_store(void **state)
{
    char url[512], *path = url + strlen("sqlite:");
    const char *tmp = getenv("TMPDIR");
    struct weir_store *s, *again;

    (void)state;
    snprintf(url, sizeof url, "sqlite:%s/weir-store-open-%d.db", tmp ? tmp : "/tmp", (int)getpid());
    assert_int_equal(weir_store_open(&s, url, NULL, &err), 0);
    assert_int_equal(access(path, F_OK), 0);
    weir_store_close(s);
    unlink(path);
    assert_int_equal(weir_store_open(&s, "memory:one", NULL, &err), 0);
    assert_int_equal(weir_store_memory(&again, "one", NULL, &err), 0);
    assert_ptr_equal(s->ops, again->ops);
    weir_store_close(again);
    weir_store_close(s);
}

static void what_is_none_is_told_without_its_password(void **state)
{
    static const char *const none[] = {"", "x", "mysql://me:secret@host/db", "/tmp/secret.db",
                                       "me:secret@host"};
    struct weir_store *s;

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(weir_store_open(&s, none[i], NULL, &err), WEIR_EINVAL);
        assert_null(s);
        assert_non_null(strstr(err.text, "sqlite:PATH"));
        assert_null(strstr(err.text, "secret"));
    }
    assert_int_equal(weir_store_open(&s, "postgres://me:secret@host/db", NULL, &err), WEIR_ENOTSUP);
    assert_non_null(strstr(err.text, "weir_store_postgres"));
    assert_null(strstr(err.text, "secret"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_opens_its_store),
        cmocka_unit_test(what_is_none_is_told_without_its_password),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
