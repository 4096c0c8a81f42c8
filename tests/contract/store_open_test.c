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

#define SHOWN_MAX 128

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
    static const char *const none[] = {"",
                                       "x",
                                       "mysql://me:secret@host/db",
                                       "mysql://host/db?user=me&password=secret",
                                       "host=h password=secret",
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

/* A path without sqlite: is the usual slip. */
static void what_is_none_is_shown_as_it_was_typed(void **state)
{
    static const struct {
        const char *url, *shown;
    } none[] = {
        {"", "the store '' is"},
        {"/tmp/mine.db", "the store '/tmp/mine.db' is"},
        {"my sql:lite.db", "the store 'my sql:lite.db' is"},
        {"mysql://me:secret@host/db", "the store 'mysql...' is"},
        {"me@host", "the store '...' is"},
    };
    char path[SHOWN_MAX + 2];
    struct weir_store *s;

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(weir_store_open(&s, none[i].url, NULL, &err), WEIR_EINVAL);
        assert_memory_equal(err.text, none[i].shown, strlen(none[i].shown));
    }
    memset(path, 'p', sizeof path);
    for (size_t len = SHOWN_MAX; len <= SHOWN_MAX + 1; len++) {
        char text[512];
        path[len] = '\0';
        snprintf(text, sizeof text,
                 "the store '%.*s%s' is of no kind that is known: there are memory:, sqlite:PATH"
                 " and postgres://USER@HOST/DATABASE",
                 SHOWN_MAX, path, len > SHOWN_MAX ? "..." : "");
        assert_int_equal(weir_store_open(&s, path, NULL, &err), WEIR_EINVAL);
        assert_string_equal(err.text, text);
        path[len] = 'p';
    }
}

static void urls_of_servers_are_looked_at(void **state)
{
    static const char *const good[] = {"postgres://h/d", "postgresql://u:p%40@h:1/d",
                                       "postgres://a:1,b:23/d", "postgres:///d?host=/tmp"};
    static const char *const bad[] = {NULL,
                                      "",
                                      "postgres:/h",
                                      "postgresql:h",
                                      "postgres://h:1x/d",
                                      "postgres://a@b@c/d",
                                      "postgres://h/d@e"};
    struct weir_store *s;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(weir_store_postgres(&s, good[i], NULL, &err), 0);
        weir_store_close(s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(weir_store_postgres(&s, bad[i], NULL, &err), WEIR_EINVAL);
        assert_null(s);
        assert_string_equal(err.text, "the store's URL should look like"
                                      " postgres://USER:PASSWORD@HOST:PORT/DATABASE, with %40, %2F"
                                      " and %3A for @, / and : in a password");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_opens_its_store),
        cmocka_unit_test(what_is_none_is_told_without_its_password),
        cmocka_unit_test(what_is_none_is_shown_as_it_was_typed),
        cmocka_unit_test(urls_of_servers_are_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
