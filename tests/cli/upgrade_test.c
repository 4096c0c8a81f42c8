/* upgrade_test.c - what weir upgrade says about what it did, word for word; the doing is the hub's. */
#include "cli/steps.h"

#include "base/error.h"
#include "hub/namespace.h"

int __wrap_weir__namespace_upgrade(struct weir__namespace *, struct weir__upgrade *out,
                                   struct weir_error *err);
int __real_weir__namespace_close(struct weir__namespace *, struct weir_error *err);
int __wrap_weir__namespace_close(struct weir__namespace *, struct weir_error *err);

struct row {
    struct weir__upgrade done;
    bool fails, closes_badly;
    int code;
    const char *out, *err;
};

static const struct row *now; /* NULL: before the upgrade */

int __wrap_weir__namespace_upgrade(struct weir__namespace *ns, struct weir__upgrade *out,
                                   struct weir_error *err)
{
    (void)ns;
    *out = now->done;
    return now->fails ? weir__fail(err, WEIR_EIO, "hub 'a' cannot be read") : 0;
}

int __wrap_weir__namespace_close(struct weir__namespace *ns, struct weir_error *err)
{
    int rc = __real_weir__namespace_close(ns, err);

    if (!now || !now->closes_badly) return rc;
    return weir__fail(err, WEIR_EFAILED, "the disk does not answer");
}

#define VERSION " upgraded to format version 2; older releases refuse "
#define FAILED "weir: upgrade: hub 'a' cannot be read\n"
#define UNCLOSED "weir: upgrade: the disk does not answer; check the disk, then start again\n"
#define NOTHING " of format version 2, which is the newest: nothing to do\n"

static const struct row rows[] = {
    {{.hubs = 3, .hubs_upgraded = 2}, false, false, 0, "DIR: 2 of 3 hubs" VERSION "them now\n", ""},
    {{.hubs = 1, .hubs_upgraded = 1}, false, false, 0, "DIR: 1 of 1 hub" VERSION "them now\n", ""},
    {{.hubs = 8, .catalog_upgraded = true},
     false,
     false,
     0,
     "DIR: the catalogue upgraded to format version 2; 8 hubs were already of it; older releases "
     "refuse the folder now\n",
     ""},
    {{.hubs = 2, .hubs_upgraded = 1, .hubs_failed = 1, .catalog_upgraded = true},
     true,
     false,
     1,
     "DIR: 1 of 2 hubs and the catalogue" VERSION "the folder now\n",
     FAILED},
    {{.hubs = 2, .hubs_failed = 1}, true, false, 1, "", FAILED},
    {{.hubs = 1}, false, false, 0, "DIR: 1 hub" NOTHING, ""},
    {{.hubs = 0}, false, false, 0, "DIR: 0 hubs" NOTHING, ""},
    {{.hubs = 1}, false, true, 1, "DIR: 1 hub" NOTHING, UNCLOSED},
    {{.hubs = 2, .hubs_failed = 1}, true, true, 1, "", FAILED},
};

static void what_was_upgraded_is_told(void **state)
{
    (void)state;
    assert_int_equal(run(&weir__command_hub_create, "a --partitions 1"), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code;
        now = &rows[i];
        code = run(&weir__command_upgrade, i % 2 ? dir : "");
        now = NULL;
        if (code != rows[i].code || strcmp(said_out, rows[i].out) != 0 ||
            strcmp(said_err, rows[i].err) != 0)
            fail_msg("row %zu: code %d\n%s%s", i, code, said_out, said_err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_upgraded_is_told, begin, end),
    };

    return cmocka_run_group_tests_name("upgrade", tests, NULL, NULL);
}
