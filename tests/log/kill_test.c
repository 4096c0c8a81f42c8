/* kill_test.c - a writer on a real folder, killed with SIGKILL at a random moment, again and again.
 *
 * The writer appends without waiting, with the log's own threads, and tells every acknowledgement
 * through a pipe. What came through the pipe must be in the folder afterwards, byte for byte. This
 * proves nothing about loss of power, since the page cache outlives the writer; crash_test does.
 *
 *   log_kill_test         a few rounds
 *   log_kill_test ROUNDS  as many as that; prints counts */
#define _GNU_SOURCE
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"
#include "support/dice.h"
#include "support/history.h"
#include "support/tempdir.h"

#define PARTITIONS 8u
#define TEST_ROUNDS 8
#define ROUNDS_PER_FOLDER 8
#define ACKS_MAX 3000u
#define IN_FLIGHT_MAX 256u
#define WAIT weir__deadline_ns(30000)

/* What goes through the pipe; smaller than PIPE_BUF, so it arrives whole or not at all. */
struct ack {
    uint64_t index;
    struct weir__log_receipt receipt;
};

/* The batch of this number is the same in both processes. */
static struct history_order order_of(size_t index)
{
    uint64_t dice = index + 1;

    return (struct history_order){
        .partition = (uint32_t)dice_roll(&dice, PARTITIONS),
        .bytes = HISTORY_BODY_BYTES_MIN + (uint32_t)dice_roll(&dice, index % 16 ? 700 : 60000),
        .count = 1 + (uint32_t)dice_roll(&dice, 12),
        .wait_ms = 30000,
    };
}

static struct weir__log_options options_of(const char *dir)
{
    return (struct weir__log_options){
        .dir = dir,
        .hub_id = 99,
        .partitions = PARTITIONS,
        .batch_bytes_max = 64u << 10,
        .segment_bytes_max = 1u << 20,
        .retain_ms = -1,
    };
}

/* ---- the writer's process ---- */

struct writer {
    int pipe;
    uint64_t acked;
};

static void send_ack(void *user, size_t index, const struct weir__log_receipt *receipt)
{
    struct writer *w = user;
    struct ack a = {index, *receipt};

    if (write(w->pipe, &a, sizeof a) != (ssize_t)sizeof a) _exit(3);
    __atomic_add_fetch(&w->acked, 1, __ATOMIC_RELAXED);
}

__attribute__((noreturn)) static void run_writer(struct history *h, const char *dir, int pipe)
{
    struct weir__log_options o = options_of(dir);
    static struct writer w; /* the process has no other */
    struct weir__log *log = NULL;
    uint64_t sent = 0;

    w.pipe = pipe;
    h->on_ack = send_ack;
    h->on_ack_user = &w;
    if (weir__log_open(&log, &o, NULL) != 0) _exit(4);
    for (;; sent++) {
        struct history_order order = order_of(h->count);
        int rc = 0;

        if (sent - __atomic_load_n(&w.acked, __ATOMIC_RELAXED) >= IN_FLIGHT_MAX)
            rc = weir__log_flush(log, WAIT, NULL);
        if (rc == 0)
            rc = sent % 7 ? history_append(h, log, &order) : history_append_wait(h, log, &order);
        if (rc != 0) _exit(5);
    }
}

/* ---- the one who kills ---- */

static void take_acks(struct history *h, int pipe, uint64_t acks, pid_t pid, uint64_t *out_taken)
{
    struct ack a;
    bool killed = false;
    ssize_t n;

    *out_taken = 0;
    while ((n = read(pipe, &a, sizeof a)) == (ssize_t)sizeof a) {
        while (h->count <= a.index + IN_FLIGHT_MAX) {
            struct history_order o = order_of(h->count);

            history_note(h, &o);
        }
        history_settle(h, a.index, 0, &a.receipt);
        if (++*out_taken == acks && !killed) {
            kill(pid, SIGKILL);
            killed = true;
        }
    }
    assert_int_equal(n, 0);
    assert_true(killed);
}

static void check_folder(struct history *h, const char *dir)
{
    struct weir__log_options o = options_of(dir);
    struct weir__log *log = NULL;
    struct weir_error err = {0};

    if (weir__log_open(&log, &o, &err) != 0) fail_msg("%s", err.text);
    history_check(h, log, true);
    if (h->violations > 0) fail_msg("%s", h->first);
    assert_int_equal(weir__log_close(log, NULL), 0);
}

static void run_round(struct history *h, const char *dir, uint64_t acks, uint64_t *out_taken)
{
    int fds[2], status = 0;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        run_writer(h, dir, fds[1]);
    }
    close(fds[1]);
    take_acks(h, fds[0], acks, pid, out_taken);
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    check_folder(h, dir);
}

/* One folder, opened and killed so many times. Returns how many batches were acknowledged. */
static uint64_t run_folder(int rounds, uint64_t *dice)
{
    char root[TEMPDIR_BYTES], dir[TEMPDIR_BYTES + 8];
    struct history *h = history_new(PARTITIONS);
    struct weir__log_options o;
    uint64_t total = 0, taken = 0;

    assert_int_equal(tempdir_make(root), 0);
    snprintf(dir, sizeof dir, "%s/log", root);
    o = options_of(dir);
    assert_int_equal(weir__log_create(&o, NULL), 0);
    for (int i = 0; i < rounds; i++) {
        run_round(h, dir, 1 + dice_roll(dice, ACKS_MAX), &taken);
        total += taken;
    }
    assert_true(h->found >= total);
    history_free(h);
    tempdir_remove(root);
    return total;
}

/* A folder is read as a whole after each round, so there are several. */
static void run_rounds(int rounds, bool report)
{
    uint64_t dice = (uint64_t)getpid(), total = 0;

    for (int left = rounds; left > 0; left -= ROUNDS_PER_FOLDER)
        total += run_folder(left < ROUNDS_PER_FOLDER ? left : ROUNDS_PER_FOLDER, &dice);
    if (report)
        printf("%d writers killed: %" PRIu64 " batches acknowledged, 0 lost, 0 changed\n", rounds,
               total);
}

static void killed_writer_loses_nothing(void **state)
{
    (void)state;
    run_rounds(TEST_ROUNDS, false);
}

static int rounds_wanted;

static void killed_writers_at_length(void **state)
{
    (void)state;
    run_rounds(rounds_wanted, true);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_writer_loses_nothing)};
    const struct CMUnitTest longer[] = {cmocka_unit_test(killed_writers_at_length)};

    if (argc == 1) return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
    rounds_wanted = (int)strtol(argv[1], NULL, 10);
    return cmocka_run_group_tests_name("kill", longer, NULL, NULL);
}
