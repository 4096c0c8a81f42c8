/* stop_test.c - signals that ask a command to end: the first is noticed, the second ends it at once.
 * Each case is a process of its own, because signals are for all of one. */
#define _GNU_SOURCE /* posix_openpt */
#include "cli/stop.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/thread.h"

#define PATIENCE_MS 30000
#define SAME_MS 200 /* within these, two signals are one */

static struct weir__stop *stop;
static atomic_int calls;

#define CHECK(what)                                                                                \
    if (!(what)) {                                                                                 \
        fprintf(stderr, "%d: not %s\n", __LINE__, #what);                                          \
        _exit(1);                                                                                  \
    }

static void count_call(void *user)
{
    atomic_fetch_add((atomic_int *)user, 1);
}

static bool is_readable(int timeout_ms)
{
    struct pollfd fd = {.fd = weir__stop_fd(stop), .events = POLLIN};

    return poll(&fd, 1, timeout_ms) == 1;
}

/* How a child that runs fn ends, as waitpid tells. */
static int status_of(void (*fn)(void))
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGHUP, SIG_DFL); /* nohup, for one, leaves it ignored */
        fn();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- one signal ---- */

static void take_one(void)
{
    CHECK(weir__stop_start(&stop, count_call, &calls, NULL) == 0);
    CHECK(!weir__stop_asked(stop));
    CHECK(!is_readable(0));
    kill(getpid(), SIGTERM);
    CHECK(is_readable(PATIENCE_MS));
    CHECK(weir__stop_asked(stop));
    CHECK(!weir__stop_take_hup(stop));
    weir__stop_end(stop); /* behind the call, which is that thread's */
    CHECK(atomic_load(&calls) == 1);
}

static void none_comes(void)
{
    CHECK(weir__stop_start(&stop, count_call, &calls, NULL) == 0);
    weir__stop_end(stop);
    CHECK(atomic_load(&calls) == 0);
    weir__stop_end(NULL);
}

/* Without a server a hang-up is what it always is. */
static void hang_up(void)
{
    CHECK(weir__stop_start(&stop, count_call, &calls, NULL) == 0);
    kill(getpid(), SIGHUP);
    poll(NULL, 0, PATIENCE_MS);
}

static void take_hang_ups(void)
{
    CHECK(weir__stop_start_server(&stop, NULL) == 0);
    CHECK(!weir__stop_take_hup(stop));
    for (int i = 0; i < 2; i++) {
        kill(getpid(), SIGHUP);
        CHECK(is_readable(PATIENCE_MS));
        CHECK(weir__stop_take_hup(stop));
        CHECK(!weir__stop_take_hup(stop));
        CHECK(!is_readable(0));
        CHECK(!weir__stop_asked(stop));
    }
    kill(getpid(), SIGINT);
    CHECK(is_readable(PATIENCE_MS));
    CHECK(weir__stop_asked(stop));
    weir__stop_end(stop);
}

/* Of descriptors that a command would inherit. */
static unsigned count_open_to_others(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        count += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return count;
}

static void keep_descriptors(void)
{
    unsigned before = count_open_to_others();

    CHECK(weir__stop_start(&stop, NULL, NULL, NULL) == 0);
    CHECK(count_open_to_others() == before);
    weir__stop_end(stop);
}

/* It has one pipe, so two ends. */
static void do_without_descriptors(void)
{
    static const char text[] = "pipe: Too many open files";
    struct rlimit before, tight;
    struct weir_error err;
    int next = dup(0);

    CHECK(next > 0 && close(next) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    for (rlim_t left = 0; left < 2; left++) {
        tight = before;
        tight.rlim_cur = (rlim_t)next + left;
        CHECK(setrlimit(RLIMIT_NOFILE, &tight) == 0);
        stop = (struct weir__stop *)&stop;
        CHECK(weir__stop_start(&stop, NULL, NULL, &err) == WEIR_EBUSY);
        CHECK(!stop);
        CHECK(strncmp(err.text, text, sizeof text - 1) == 0);
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    take_one();
}

static void it_needs_descriptors(void **state)
{
    (void)state;
    assert_int_equal(status_of(do_without_descriptors), 0);
}

static void commands_do_not_inherit_it(void **state)
{
    (void)state;
    assert_int_equal(status_of(keep_descriptors), 0);
}

static void a_signal_is_noticed(void **state)
{
    (void)state;
    assert_int_equal(status_of(take_one), 0);
    assert_int_equal(status_of(none_comes), 0);
}

static void a_hang_up_is_for_servers(void **state)
{
    int status = status_of(hang_up);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGHUP);
    assert_int_equal(status_of(take_hang_ups), 0);
}

/* ---- a terminal ---- */

#define NO_TERMINALS 77

/* While it is there a hang-up was sent by somebody; when it is gone, that is the end. */
static void lose_the_terminal(void)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);

    if (master < 0 || grantpt(master) != 0 || unlockpt(master) != 0) _exit(NO_TERMINALS);
    CHECK(setsid() > 0);
    if (open(ptsname(master), O_RDWR) < 0 || open("/dev/tty", O_RDWR) < 0) _exit(NO_TERMINALS);
    CHECK(weir__stop_start_server(&stop, NULL) == 0);
    kill(getpid(), SIGHUP);
    CHECK(is_readable(PATIENCE_MS));
    CHECK(weir__stop_take_hup(stop));
    CHECK(!weir__stop_asked(stop));
    close(master);
    CHECK(is_readable(PATIENCE_MS));
    CHECK(!weir__stop_take_hup(stop));
    CHECK(weir__stop_asked(stop));
    weir__stop_end(stop);
}

static void a_server_ends_with_its_terminal(void **state)
{
    int status = status_of(lose_the_terminal);

    (void)state;
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_TERMINALS) skip();
    assert_int_equal(status, 0);
}

/* ---- two of them ---- */

static int second;

static void be_impatient(void)
{
    CHECK(weir__stop_start(&stop, NULL, NULL, NULL) == 0);
    kill(getpid(), SIGINT);
    CHECK(is_readable(PATIENCE_MS));
    for (int64_t end_ns = weir__deadline_ns(PATIENCE_MS); weir__mono_ns() < end_ns;) {
        kill(getpid(), second);
        poll(NULL, 0, 5);
    }
}

/* A shell and its like tell a process and its group, which is no second one. */
static void who_is_impatient_ends_it_at_once(void **state)
{
    static const int signals[] = {SIGINT, SIGTERM};

    (void)state;
    for (int i = 0; i < 2; i++) {
        int64_t began_ns = weir__mono_ns();
        int status;
        second = signals[i];
        status = status_of(be_impatient);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 128 + second);
        assert_true(weir__mono_ns() - began_ns >= SAME_MS * INT64_C(1000000));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_is_noticed),
        cmocka_unit_test(commands_do_not_inherit_it),
        cmocka_unit_test(it_needs_descriptors),
        cmocka_unit_test(a_hang_up_is_for_servers),
        cmocka_unit_test(a_server_ends_with_its_terminal),
        cmocka_unit_test(who_is_impatient_ends_it_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
