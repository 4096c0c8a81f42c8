/* machine_test.c - the machine's clocks, its chance, and descriptors that are not the standard
 * ones. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/rand.h"

/* A close that fails, though it closes. */
static bool closing_fails;

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
    int rc = __real_close(fd);

    if (!closing_fails) return rc;
    errno = EIO;
    return -1;
}

/* The number that the next file would get: where one was left open, it is another. */
static int next_free(void)
{
    int fd = open("/dev/null", O_RDONLY);

    close(fd);
    return fd;
}

static void clocks_go_on(void **state)
{
    struct weir__clock c = weir__clock_system();
    int64_t mono = c.mono_ms(c.self), wall = c.wall_ms(c.self), seconds = (int64_t)time(NULL);
    int next = next_free();

    (void)state;
    assert_in_range(wall, (seconds - 2) * 1000, (seconds + 2) * 1000);
    assert_true(c.mono_ms(c.self) >= mono);
    assert_true(c.up_ms(c.self) >= mono); /* which has no sleep in it */
    assert_int_equal(c.boot(c.self), c.boot(c.self));
    assert_true(access("/proc/sys/kernel/random/boot_id", R_OK) != 0 || c.boot(c.self) != 0);
    assert_int_equal(next_free(), next);
}

static int64_t wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Three times, because the machine may set its clock between two looks. */
static void the_wall_clock_has_milliseconds(void **state)
{
    struct weir__clock c = weir__clock_system();
    bool between = false;

    (void)state;
    for (int i = 0; i < 3 && !between; i++) {
        int64_t before = wall_ms(), ours = c.wall_ms(c.self);
        between = before <= ours && ours <= wall_ms();
    }
    assert_true(between);
}

/* Stored by one run of a server and compared by the next: FNV-1a of all of its bytes. */
static void a_run_of_the_machine_has_its_number(void **state)
{
    struct weir__clock c = weir__clock_system();
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY);
    unsigned char id[36];

    (void)state;
    if (fd < 0) skip();
    assert_int_equal(read(fd, id, sizeof id), sizeof id);
    close(fd);
    for (size_t i = 0; i < sizeof id; i++) hash = (hash ^ id[i]) * UINT64_C(0x100000001b3);
    assert_int_equal(c.boot(c.self), hash);
}

static void chance_fills_everything(void **state)
{
    struct weir__rand r = weir__rand_system();
    unsigned char bytes[1000] = {0}, zeros[32] = {0};

    (void)state;
    assert_int_equal(r.fill(r.self, bytes, sizeof bytes - 32, NULL), 0);
    assert_memory_equal(bytes + sizeof bytes - 32, zeros, 32);
    for (size_t at = 0; at + 64 <= sizeof bytes; at += 32)
        assert_int_not_equal(memcmp(bytes + at, zeros, 32), 0);
}

static uint64_t boot; /* the machine's */

/* In a process without standard descriptors: its exit code says which line is wrong. */
static int in_a_bare_process(int (*run)(void))
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        for (int fd = 0; fd < WEIR__DESCRIPTORS_STANDARD; fd++) close(fd);
        _exit(run());
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int move_one(void)
{
    int fd = open("/dev/null", O_RDONLY), moved;

    if (fd != 0) return 1;
    moved = weir__descriptor_move(fd);
    if (moved < WEIR__DESCRIPTORS_STANDARD) return 2;
    if (fcntl(fd, F_GETFD) != -1) return 3; /* the old one is closed */
    if (fcntl(moved, F_GETFD) != FD_CLOEXEC) return 4;
    if (weir__descriptor_move(moved) != moved || weir__descriptor_move(-1) != -1) return 5;
    return 0;
}

/* There is no number left: the file is closed, and errno is that of the move. */
static int move_in_vain(void)
{
    struct rlimit none = {WEIR__DESCRIPTORS_STANDARD, WEIR__DESCRIPTORS_STANDARD};
    int fd = open("/dev/null", O_RDONLY);

    if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 1;
    closing_fails = true;
    if (weir__descriptor_move(fd) != -1 || (errno != EMFILE && errno != EINVAL)) return 2;
    return fcntl(fd, F_GETFD) == -1 ? 0 : 3;
}

/* The file that is asked for it gets the number 0, which is one like others. */
static int read_boot(void)
{
    struct weir__clock c = weir__clock_system();

    if (c.boot(c.self) != boot) return 1;
    return next_free() == 0 ? 0 : 2;
}

static int hold_all(void)
{
    struct weir__descriptors_held held;
    int fd;

    weir__descriptors_hold(&held);
    if (held.count != WEIR__DESCRIPTORS_STANDARD) return 1;
    fd = open("/dev/null", O_RDONLY);
    if (fd < WEIR__DESCRIPTORS_STANDARD) return 2;
    close(fd);
    weir__descriptors_release(&held);
    return next_free() == 0 ? 0 : 3;
}

static void standard_numbers_are_left_alone(void **state)
{
    struct weir__descriptors_held held;
    struct weir__clock clock = weir__clock_system();
    int next = next_free();

    (void)state;
    boot = clock.boot(clock.self);
    assert_int_equal(in_a_bare_process(read_boot), 0);
    assert_int_equal(in_a_bare_process(move_one), 0);
    assert_int_equal(in_a_bare_process(move_in_vain), 0);
    assert_int_equal(in_a_bare_process(hold_all), 0);
    if (fcntl(0, F_GETFD) == -1 || fcntl(1, F_GETFD) == -1 || fcntl(2, F_GETFD) == -1) return;
    weir__descriptors_hold(&held); /* there is nothing to hold */
    assert_int_equal(held.count, 0);
    assert_int_equal(next_free(), next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_go_on),
        cmocka_unit_test(the_wall_clock_has_milliseconds),
        cmocka_unit_test(a_run_of_the_machine_has_its_number),
        cmocka_unit_test(chance_fills_everything),
        cmocka_unit_test(standard_numbers_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
