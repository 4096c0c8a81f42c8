/* notify_test.c - a service manager is a datagram socket; here are real ones. */
#define _GNU_SOURCE
#include "io/notify.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* The address as the kernel wants it, of a name as $NOTIFY_SOCKET has it. */
static int listen_at(const char *name)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name));
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    memcpy(a.sun_path, name, strlen(name));
    if (name[0] == '@') a.sun_path[0] = '\0';
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&a, len), 0);
    return fd;
}

static void expect_told(int fd, const char *state)
{
    char got[256] = "";

    assert_int_equal(recv(fd, got, sizeof got - 1, MSG_DONTWAIT), strlen(state));
    assert_string_equal(got, state);
}

static void a_path_is_told(void **state)
{
    char dir[] = "/tmp/weir-notify-XXXXXX", path[64];
    struct weir_error err = {0};
    int fd;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    fd = listen_at(path);
    assert_int_equal(weir__notify_send(path, "READY=1\nSTATUS=serving", &err), 0);
    assert_int_equal(weir__notify_send(path, "STOPPING=1", &err), 0);
    expect_told(fd, "READY=1\nSTATUS=serving");
    expect_told(fd, "STOPPING=1");
    close(fd);
    assert_int_not_equal(weir__notify_send(path, "READY=1", &err), 0); /* nobody is there */
    assert_non_null(strstr(err.text, "notifying the service manager: sendto"));
    unlink(path);
    assert_int_equal(weir__notify_send(path, "READY=1", &err), WEIR_ENOTFOUND);
    rmdir(dir);
}

/* Leaves bytes where the next call has its variables. */
static __attribute__((noinline)) void use_the_stack(void)
{
    volatile uint8_t used[8192];

    for (size_t i = 0; i < sizeof used; i++) used[i] = 'x';
}

/* Its NUL is the last byte of an address. */
static void the_longest_path_is_told(void **state)
{
    char dir[] = "/tmp/weir-notify-XXXXXX", path[sizeof((struct sockaddr_un *)NULL)->sun_path];
    struct weir_error err = {0};
    int fd, rc;

    (void)state;
    assert_non_null(mkdtemp(dir));
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    memcpy(path, dir, strlen(dir));
    path[strlen(dir)] = '/';
    fd = listen_at(path);
    use_the_stack();
    rc = weir__notify_send(path, "READY=1", &err);
    if (rc != 0) fail_msg("%s", err.text);
    expect_told(fd, "READY=1");
    close(fd);
    unlink(path);
    rmdir(dir);
}

static void a_name_outside_the_file_system_is_told(void **state)
{
    char name[64];
    int fd;

    (void)state;
    snprintf(name, sizeof name, "@weir/notify/%ld", (long)getpid());
    fd = listen_at(name);
    assert_int_equal(weir__notify_send(name, "READY=1", NULL), 0);
    expect_told(fd, "READY=1");
    close(fd);
}

static void who_does_not_listen_is_not_waited_for(void **state)
{
    struct weir_error err = {0};
    char name[64];
    int fd, rc;

    (void)state;
    snprintf(name, sizeof name, "@weir/deaf/%ld", (long)getpid());
    fd = listen_at(name);
    do {
        rc = weir__notify_send(name, "WATCHDOG=1", &err);
    } while (rc == 0);
    assert_non_null(strstr(err.text, "notifying the service manager: sendto"));
    expect_told(fd, "WATCHDOG=1");
    assert_int_equal(weir__notify_send(name, "WATCHDOG=1", &err), 0);
    close(fd);
}

static void nobody_to_tell_is_fine_and_nonsense_is_not(void **state)
{
    struct sockaddr_un any;
    struct weir_error err = {0};
    char longest[sizeof any.sun_path + 1] = "";

    (void)state;
    memset(longest, 'a', sizeof longest - 1);
    longest[0] = '/';
    assert_int_equal(weir__notify_send(NULL, "READY=1", NULL), 0);
    assert_int_equal(weir__notify_send("", "READY=1", NULL), 0);
    assert_int_equal(weir__notify_send("relative", "READY=1", &err), WEIR_EINVAL);
    assert_string_equal(err.text,
                        "notifying the service manager: 'relative' is not a path or @name");
    assert_int_equal(weir__notify_send("@", "READY=1", NULL), WEIR_EINVAL);
    assert_int_equal(weir__notify_send("/", "READY=1", NULL), WEIR_EINVAL);
    assert_int_not_equal(weir__notify_send("/a", "READY=1", NULL), WEIR_EINVAL);
    assert_int_equal(weir__notify_send(longest, "READY=1", NULL), WEIR_EINVAL);
    longest[sizeof longest - 2] = '\0'; /* as many as there is room for, with the NUL */
    assert_int_equal(weir__notify_send(longest, "READY=1", NULL), WEIR_ENOTFOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_told),
        cmocka_unit_test(the_longest_path_is_told),
        cmocka_unit_test(a_name_outside_the_file_system_is_told),
        cmocka_unit_test(who_does_not_listen_is_not_waited_for),
        cmocka_unit_test(nobody_to_tell_is_fine_and_nonsense_is_not),
    };

    return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
