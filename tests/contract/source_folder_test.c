/* The contract of sources on a hub in a folder, and that its space is the folder's own. */
#include "contract/source.h"

#include "support/tempdir.h"

static char dir[TEMPDIR_BYTES];

int contract_open(void **state)
{
    if (tempdir_make(dir) != 0) return -1;
    return weir_open((struct weir **)state, dir, NULL, &err);
}

int contract_close(void **state)
{
    int rc = weir_close(*state, &err);

    tempdir_remove(dir);
    return rc;
}

static void a_folder_keeps_its_space(void **state)
{
    char first[WEIR_SPACE_BYTES], again[WEIR_SPACE_BYTES], path[TEMPDIR_BYTES + 8];
    FILE *file;

    assert_ok(weir_space(*state, first, &err));
    assert_int_equal(strlen(first), 32);
    assert_ok(weir_close(*state, &err));
    assert_ok(weir_open((struct weir **)state, dir, NULL, &err));
    assert_ok(weir_space(*state, again, &err));
    assert_string_equal(first, again);
    snprintf(path, sizeof path, "%s/id", dir); /* as a crash may leave it */
    file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs("0123", file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_ok(weir_space(*state, again, &err));
    assert_int_equal(strlen(again), 32);
    assert_string_not_equal(first, again);
}

int main(void)
{
    const struct CMUnitTest own[] = {SOURCE_TEST(a_folder_keeps_its_space)};
    int failed = run_sources();

    return cmocka_run_group_tests(own, NULL, NULL) + failed;
}
