/* In children of their own, whose standard descriptors may be closed. */
#define _GNU_SOURCE
#include "base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static bool closes_on_exec(int fd)
{
    return fcntl(fd, F_GETFD) == FD_CLOEXEC;
}

/* What fn says in a child without standard input and output, and with nothing open above 2. */
static int say_in_child(int (*fn)(void))
{
    int status = 0;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        for (int fd = 3; fd < 256; fd++) close(fd);
        close(0);
        close(1);
        _exit(fn());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int move_low(void)
{
    int fd = open("/dev/null", O_RDONLY); /* 0, not closed on exec */

    if (fd != 0) return 1;
    if (weir__descriptor_move(fd) != 3) return 2;
    if (is_open(0) || !closes_on_exec(3)) return 3;
    fd = open("/dev/null", O_RDONLY);
    if (weir__descriptor_move(dup2(fd, 2)) != 4 || is_open(2)) return 4;
    return 0;
}

static int move_others(void)
{
    int fd = fcntl(2, F_DUPFD, 3);

    if (weir__descriptor_move(fd) != fd || !is_open(fd)) return 1;
    errno = EXDEV;
    if (weir__descriptor_move(-1) != -1 || errno != EXDEV) return 2;
    return 0;
}

static int move_without_room(void)
{
    struct rlimit few = {3, 3};
    int fd = open("/dev/null", O_RDONLY);

    if (setrlimit(RLIMIT_NOFILE, &few) != 0) return 1;
    errno = 0;
    if (weir__descriptor_move(fd) != -1) return 2;
    /* A number at or above the limit is invalid, one below it that is taken is one too many. */
    if (errno != EINVAL && errno != EMFILE) return 3;
    return is_open(fd) ? 4 : 0;
}

static int hold(void)
{
    struct weir__descriptors_held held;

    weir__descriptors_hold(&held);
    if (held.count != 2 || held.fd[0] != 0 || held.fd[1] != 1) return 1;
    if (!closes_on_exec(0) || !closes_on_exec(1) || is_open(3)) return 2;
    if (open("/dev/null", O_RDONLY) != 3) return 3;
    weir__descriptors_release(&held);
    if (is_open(0) || is_open(1) || !is_open(2) || held.count != 0) return 4;
    close(2);
    weir__descriptors_hold(&held);
    if (held.count != 3 || held.fd[2] != 2 || is_open(4)) return 5;
    weir__descriptors_release(&held);
    return is_open(2) ? 6 : 0;
}

static void standard_numbers_are_left_alone(void **state)
{
    (void)state;
    assert_int_equal(say_in_child(move_low), 0);
    assert_int_equal(say_in_child(move_others), 0);
    assert_int_equal(say_in_child(move_without_room), 0);
}

static void standard_numbers_can_be_held(void **state)
{
    (void)state;
    assert_int_equal(say_in_child(hold), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(standard_numbers_are_left_alone),
        cmocka_unit_test(standard_numbers_can_be_held),
    };

    return cmocka_run_group_tests_name("descriptor", tests, NULL, NULL);
}
