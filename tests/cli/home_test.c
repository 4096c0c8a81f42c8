/* home_test.c - where a command works, by what it was told. Nobody is called here. */
#include "cli/home.h"

#include "base/error.h"
#include "cli/exit.h"
#include "cli/said.h"
#include "support/tempdir.h"

static const struct weir__command self = {.name = "x"};

/* Reaches a place and leaves it; what was said is in said_err. */
static int reach(const struct weir__common *c, unsigned want)
{
    struct weir__home home;
    int code;

    said_begin();
    code = weir__home_reach(&home, &self, c, want);
    if (code == 0) assert_true(home.wire == (home.connect != NULL) && !home.served);
    if (code == 0) code = weir__home_leave(&home, 0);
    said_end();
    return code;
}

static void expect(const struct weir__common *c, unsigned want, int code, const char *said)
{
    assert_int_equal(reach(c, want), code);
    assert_string_equal(said_err, said);
    assert_string_equal(said_out, "");
}

/* A command that asks nothing by HTTP does not look at where that is. */
static void the_administration_is_for_who_asks_it(void **state)
{
    static const unsigned none[] = {WEIR__HOME_EVENTS, WEIR__HOME_MAKE};
    static const unsigned some[] = {WEIR__HOME_ADMIN, WEIR__HOME_DETAILS,
                                    WEIR__HOME_ADMIN | WEIR__HOME_MAKE};
    struct weir__common c = {.data = "d", .connect = "127.0.0.1:1"};

    (void)state;
    setenv("WEIR_ADMIN", "nonsense", 1);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) expect(&c, none[i], 0, "");
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        assert_int_equal(reach(&c, some[i]), 2);
        assert_memory_equal(said_err, "weir: x: admin: ", 16);
    }
    c.admin = "http://127.0.0.1:1"; /* before what the environment says */
    expect(&c, WEIR__HOME_ADMIN, 0, "");
    c.admin = NULL;
    setenv("WEIR_ADMIN", "", 1); /* nothing */
    expect(&c, WEIR__HOME_ADMIN, 0, "");
    unsetenv("WEIR_ADMIN");
    expect(&c, WEIR__HOME_ADMIN, 0, "");
}

#define NO_PLACE " is no connection string, no HOST:PORT and no sb://HOST; try 'weir x --help'\n"

static void places_exclude_each_other(void **state)
{
    struct weir__common both = {.data = "d",
                                .data_given = true,
                                .data_named = true,
                                .connect = "127.0.0.1:1"},
                        admin = {.data = "d", .data_named = true, .admin = "http://127.0.0.1:1"},
                        bad = {.data = "d", .connect = "nonsense"};

    (void)state;
    expect(&both, 0, 2, "weir: x: --data and --connect exclude each other; try 'weir x --help'\n");
    expect(&admin, WEIR__HOME_ADMIN, 2,
           "weir: x: --admin goes with --connect; try 'weir x --help'\n");
    expect(&bad, 0, 2, "weir: x: --connect" NO_PLACE);
    setenv("WEIR_CONNECT", "nonsense", 1);
    expect(&admin, 0, 2, "weir: x: WEIR_CONNECT" NO_PLACE);
    setenv("WEIR_CONNECT", "127.0.0.1:1", 1);
    expect(&admin, WEIR__HOME_ADMIN, 0, "");
    unsetenv("WEIR_CONNECT");
}

/* One that was named, by --data before WEIR_CONNECT. */
static void a_folder_is_made_only_by_who_may(void **state)
{
    char dir[TEMPDIR_BYTES], folder[TEMPDIR_BYTES + 8], text[TEMPDIR_BYTES + 128];
    struct weir__common c = {.data = folder, .data_given = true, .data_named = true};

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    setenv("WEIR_CONNECT", "nonsense", 1);
    snprintf(folder, sizeof folder, "%s/none", dir);
    snprintf(text, sizeof text,
             "weir: %s: there are no hubs; 'weir hub create' makes the first, --data names another "
             "folder\n",
             folder);
    expect(&c, WEIR__HOME_EVENTS, 3, text);
    expect(&c, WEIR__HOME_ADMIN, 3, text);
    assert_int_not_equal(access(folder, F_OK), 0);
    expect(&c, WEIR__HOME_ADMIN | WEIR__HOME_MAKE, 0, "");
    expect(&c, WEIR__HOME_EVENTS, 0, "");
    unsetenv("WEIR_CONNECT");
    tempdir_remove(dir);
}

/* ---- somebody else ---- */

/* A process that holds the folder without serving it is not asked. The advice fits, however long the path. */
static void a_folder_that_is_held_is_told(void **state)
{
    char dir[TEMPDIR_BYTES], folder[512], advice[1024];
    struct weir__common c = {.data = folder, .data_given = true, .data_named = true};
    struct weir_error err;
    struct weir *holder;

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    for (int more = 0; more < 2; more++) {
        snprintf(folder, sizeof folder, "%s/%0*d", dir, 255 + more - (int)strlen(dir), 0);
        assert_int_equal(weir_open(&holder, folder, NULL, &err), 0);
        snprintf(
            advice, sizeof advice,
            "; if it is 'weir serve', it could not leave its address in the folder, as on a "
            "full disk: name it with --connect; if not, commands share a folder through its "
            "server: stop that process, run 'weir serve --data %.256s', and start both again\n",
            folder);
        assert_int_equal(reach(&c, WEIR__HOME_EVENTS), 4);
        assert_memory_equal(said_err, "weir: data folder: opening ", 27);
        assert_string_equal(said_err + strlen(said_err) - strlen(advice), advice);
        assert_int_equal(weir_close(holder, &err), 0);
    }
    tempdir_remove(dir);
}

/* ---- the end ---- */

int __real_weir_close(struct weir *, struct weir_error *err);
int __wrap_weir_close(struct weir *, struct weir_error *err);

static bool closes_badly;

int __wrap_weir_close(struct weir *w, struct weir_error *err)
{
    int rc = __real_weir_close(w, err);

    return closes_badly ? weir__fail(err, WEIR_EIO, "the disk does not answer") : rc;
}

/* What went wrong first is what the code tells. */
static void a_folder_that_cannot_be_closed_is_told(void **state)
{
    char dir[TEMPDIR_BYTES];
    int codes[2];

    (void)state;
    assert_int_equal(tempdir_make(dir), 0);
    for (int i = 0; i < 2; i++) {
        struct weir *w = NULL;
        said_begin();
        codes[i] = weir__home_open(&w, dir, false);
        closes_badly = true;
        if (codes[i] == 0)
            codes[i] = weir__home_close(w, i == 0 ? WEIR__EXIT_OK : WEIR__EXIT_USAGE);
        closes_badly = false;
        said_end();
        assert_string_equal(said_err, "weir: closing the data folder: the disk does not answer\n");
    }
    assert_int_equal(codes[0], WEIR__EXIT_FAILURE);
    assert_int_equal(codes[1], WEIR__EXIT_USAGE);
    tempdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_administration_is_for_who_asks_it),
        cmocka_unit_test(places_exclude_each_other),
        cmocka_unit_test(a_folder_is_made_only_by_who_may),
        cmocka_unit_test(a_folder_that_is_held_is_told),
        cmocka_unit_test(a_folder_that_cannot_be_closed_is_told),
    };

    unsetenv("WEIR_ADMIN");
    unsetenv("WEIR_CONNECT");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
