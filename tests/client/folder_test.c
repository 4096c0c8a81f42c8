/* The contract on a folder, and what only folders do. */
#include "client/contract/contract.h"

#include <sys/wait.h>
#include <unistd.h>

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

const bool contract_lists_keys = true;

static void what_was_acknowledged_is_there_after_a_reopen(void **state)
{
    struct weir_producer *p;
    struct weir_receiver *r;

    make_hub(*state, 1);
    p = open_producer(*state);
    send_text(p, "kept");
    close_producer(p);
    assert_ok(weir_close(*state, &err));
    assert_ok(weir_open((struct weir **)state, dir, NULL, &err));
    r = open_receiver(*state, 0);
    assert_next(r, "kept");
    weir_receiver_close(r);
}

static void the_second_to_open_learns_who_was_first(void **state)
{
    struct weir *second;
    char pid[32];
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0) { /* a new process of its own, as far as the folder is concerned */
        struct weir_error why;
        int rc = weir_open(&second, dir, NULL, &why);
        snprintf(pid, sizeof pid, "%d", (int)getppid());
        _exit(rc == WEIR_ELOCKED && !second && strstr(why.text, pid) ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_folder_can_be_required_to_exist(void **state)
{
    struct weir_options o = {.size = sizeof o, .must_exist = true};
    struct weir *w;
    char path[TEMPDIR_BYTES + 8];

    (void)state;
    snprintf(path, sizeof path, "%s/none", dir);
    assert_int_equal(weir_open(&w, path, &o, &err), WEIR_ENOTFOUND);
    assert_null(w);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_ok(weir_open(&w, path, NULL, &err));
    assert_ok(weir_close(w, &err));
    assert_ok(weir_open(&w, path, &o, &err));
    assert_ok(weir_close(w, &err));
}

static void two_folders_are_two_worlds(void **state)
{
    struct weir *other;
    struct weir_hub_info info;
    char second[TEMPDIR_BYTES];

    make_hub(*state, 1);
    assert_int_equal(tempdir_make(second), 0);
    assert_ok(weir_open(&other, second, NULL, &err));
    assert_int_equal(weir_hub_info(other, "h", &info, &err), WEIR_ENOTFOUND);
    make_hub(other, 2);
    assert_ok(weir_hub_info(*state, "h", &info, &err));
    assert_int_equal(info.partitions, 1);
    assert_ok(weir_close(other, &err));
    tempdir_remove(second);
}

static void a_batch_is_as_large_as_was_asked_for(void **state)
{
    struct weir_options o = {.size = sizeof o, .batch_bytes_max = 4096};
    struct weir_producer *p;

    make_hub(*state, 1);
    p = open_producer(*state);
    assert_batch_edge(p, 1 << 20); /* unless somebody asks */
    close_producer(p);
    assert_ok(weir_close(*state, &err));
    assert_ok(weir_open((struct weir **)state, dir, &o, &err));
    p = open_producer(*state);
    assert_batch_edge(p, o.batch_bytes_max);
    close_producer(p);
}

static void versions_agree(void **state)
{
    (void)state;
    assert_string_equal(weir_version(), WEIR_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_EVENT_TESTS,
        CONTRACT_PRODUCER_TESTS,
        CONTRACT_RECEIVER_TESTS,
        CONTRACT_ADMIN_TESTS,
        CONTRACT_TEST(what_was_acknowledged_is_there_after_a_reopen),
        CONTRACT_TEST(the_second_to_open_learns_who_was_first),
        CONTRACT_TEST(a_folder_can_be_required_to_exist),
        CONTRACT_TEST(two_folders_are_two_worlds),
        CONTRACT_TEST(a_batch_is_as_large_as_was_asked_for),
        cmocka_unit_test(versions_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
