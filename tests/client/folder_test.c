/* The contract on a folder, and what only folders do. */
#include "client/contract/contract.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/allocs.h"
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

bool contract_knows_ends(void)
{
    return true;
}

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

/* A producer with an epoch that is over is told which one counts. */
static void the_epoch_that_counts_is_told(void **state)
{
    struct weir_producer_options o = {.size = sizeof o, .pinned = true, .idempotent = true};
    struct weir_producer_identity identity;
    struct weir_producer *p, *old;
    char text[WEIR_ERROR_TEXT_BYTES];

    make_hub(*state, 1);
    o.epoch = 3;
    assert_ok(weir_producer_open(&p, *state, "h", &o, &err));
    send_text(p, "third");
    weir_producer_identity(p, &identity);
    assert_int_equal(identity.epoch, 3);
    assert_int_equal(identity.next_sequence, 1);
    o.id = identity.id;
    o.epoch = 2;
    assert_int_equal(weir_producer_open(&old, *state, "h", &o, &err), WEIR_EFENCED);
    snprintf(text, sizeof text, "producer %llu has epoch 3 now, not 2",
             (unsigned long long)identity.id);
    assert_string_equal(err.text, text);
    assert_null(old);
    close_producer(p);
    for (o.epoch = 3; o.epoch < 5; o.epoch++) {
        assert_ok(weir_producer_open(&p, *state, "h", &o, &err));
        weir_producer_identity(p, &identity);
        assert_int_equal(identity.epoch, o.epoch);
        assert_int_equal(identity.next_sequence, o.epoch == 3 ? 1 : 0);
        close_producer(p);
    }
}

/* ---- lists ---- */

/* The next allocation fails in what follows, or none does; err is empty before it. */
static void begin_list(bool without_memory)
{
    err = (struct weir_error){0};
    allocs_fail(without_memory);
}

static void assert_listed(int rc, const char *text)
{
    allocs_fail(0);
    assert_int_equal(rc, *text ? WEIR_ENOMEM : 0);
    assert_int_equal(err.code, rc);
    assert_string_equal(err.text, text);
}

/* A list that there is no memory for says so, and one that was given says nothing. */
static void lists_need_memory(void **state)
{
    char names[NAMES_BYTES] = "";

    make_hub(*state, 1);
    begin_list(true);
    assert_listed(weir_hub_list(*state, join_hub_name, names, &err), "listing the hubs: no memory");
    begin_list(true);
    assert_listed(weir_group_list(*state, "h", join_name, names, &err),
                  "listing the groups of 'h': no memory");
    assert_string_equal(names, "");
    begin_list(false);
    assert_listed(weir_hub_list(*state, join_hub_name, names, &err), "");
    begin_list(false);
    assert_listed(weir_group_list(*state, "h", join_name, names, &err), "");
    assert_string_equal(names, "h $Default ");
    begin_list(false);
    assert_listed(weir_orphan_list(*state, count_orphan, &(int){0}, &err), "");
}

/* ---- orphans ---- */

/* Moves the folder of the only hub in `from` to `to`, where no hub has it. */
static void orphan_hub(const char *from, const char *to)
{
    char old[TEMPDIR_BYTES + 258], new[TEMPDIR_BYTES + 258];
    DIR *folder = opendir(from);
    struct dirent *entry;
    int moved = -1;

    assert_non_null(folder);
    while (moved != 0 && (entry = readdir(folder)) != NULL) {
        if (strncmp(entry->d_name, "hub-", 4) != 0) continue;
        snprintf(old, sizeof old, "%s/%s", from, entry->d_name);
        snprintf(new, sizeof new, "%s/%s", to, entry->d_name);
        moved = rename(old, new);
    }
    closedir(folder);
    assert_int_equal(moved, 0);
}

static void note_orphan(enum weir_level level, const char *room, const char *line, void *user)
{
    if (level == WEIR_WARN && strcmp(room, "hub") == 0 && strncmp(line, "orphan ", 7) == 0)
        ++*(unsigned *)user;
}

static int keep_orphan(const struct weir_orphan *o, void *user)
{
    *(struct weir_orphan *)user = *o;
    return 5;
}

/* A hub's folder that no hub has is told, listed, and made a hub of again. */
static void an_orphan_is_adopted(void **state)
{
    char second[TEMPDIR_BYTES];
    struct weir_orphan orphan = {0};
    struct weir_hub_info info;
    unsigned told = 0;
    struct weir_options o = {.size = sizeof o, .log = note_orphan, .log_user = &told};
    struct weir_producer *p;
    struct weir *other;

    make_hub(*state, 3);
    p = open_producer(*state);
    send_text(p, "kept");
    close_producer(p);
    assert_ok(weir_close(*state, &err));
    assert_int_equal(tempdir_make(second), 0);
    assert_ok(weir_open(&other, second, &o, &err));
    assert_ok(weir_close(other, &err));
    assert_int_equal(told, 0);
    orphan_hub(dir, second);
    assert_ok(weir_open(&other, second, &o, &err));
    assert_int_equal(told, 1);
    begin_list(true);
    assert_listed(weir_orphan_list(other, keep_orphan, &orphan, &err),
                  "listing orphans: no memory");
    assert_int_equal(weir_orphan_list(other, keep_orphan, &orphan, &err), 5);
    assert_int_equal(orphan.partitions, 3);
    assert_int_equal(weir_hub_adopt(other, orphan.id + 1, "again", &err), WEIR_ENOTFOUND);
    assert_ok(weir_hub_adopt(other, orphan.id, "again", &err));
    assert_ok(weir_hub_info(other, "again", &info, &err));
    assert_int_equal(info.partitions, 3);
    assert_ok(weir_orphan_list(other, keep_orphan, &orphan, &err));
    assert_ok(weir_close(other, &err));
    tempdir_remove(second);
    tempdir_remove(dir);
    assert_int_equal(tempdir_make(dir), 0); /* for the end of the test */
    assert_ok(weir_open((struct weir **)state, dir, NULL, &err));
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
        CONTRACT_TEST(the_epoch_that_counts_is_told),
        CONTRACT_TEST(lists_need_memory),
        CONTRACT_TEST(an_orphan_is_adopted),
        cmocka_unit_test(versions_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
