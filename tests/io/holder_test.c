/* holder_test.c - who listens on a port: the name and the number of a process, as the system tells them. */
#define _GNU_SOURCE
#include "io/holder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static unsigned port_of(int fd)
{
    struct sockaddr_in6 own;
    socklen_t len = sizeof own;

    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &len), 0);
    return ntohs(own.sin6_port); /* which is at the same place in both families */
}

/* A socket with a port of this machine; -1: there is no such family. */
static int bind_to(int family)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr_in four = {.sin_family = AF_INET};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    if (fd < 0) return -1;
    four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    rc = family == AF_INET ? bind(fd, (struct sockaddr *)&four, sizeof four)
                           : bind(fd, (struct sockaddr *)&six, sizeof six);
    if (rc == 0) return fd;
    close(fd);
    return -1;
}

static void expect_holder(unsigned port, const char *name, pid_t pid)
{
    char who[128] = "", want[128];

    assert_true(weir__holder_of_port(port, who, sizeof who));
    snprintf(want, sizeof want, "%s (pid %d)", name, (int)pid);
    assert_string_equal(who, want);
}

static void expect_nobody(unsigned port)
{
    char who[8] = "as is";

    assert_false(weir__holder_of_port(port, who, sizeof who));
    assert_string_equal(who, "as is");
}

/* A socket that has a port holds it when it listens, and not before. */
static void who_listens_is_named(void **state)
{
    static const int families[] = {AF_INET, AF_INET6};

    (void)state;
    prctl(PR_SET_NAME, "the holder");
    for (int i = 0; i < 2; i++) {
        int fd = bind_to(families[i]);
        unsigned port;
        if (fd < 0) continue;
        port = port_of(fd);
        expect_nobody(port);
        assert_int_equal(listen(fd, 1), 0);
        expect_holder(port, "the holder", getpid());
        close(fd);
    }
}

/* Neither end of a connection is. */
static void who_is_connected_does_not_listen(void **state)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int listens = bind_to(AF_INET), calls = bind_to(AF_INET), called;

    (void)state;
    assert_int_equal(listen(listens, 1), 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)port_of(listens));
    assert_int_equal(connect(calls, (struct sockaddr *)&at, sizeof at), 0);
    called = accept(listens, NULL, NULL);
    assert_true(called >= 0);
    expect_nobody(port_of(calls));
    expect_holder(port_of(called), "the holder", getpid());
    close(listens);
    expect_nobody(port_of(called));
    close(calls);
    close(called);
}

/* It ends with its pipe, and so with the test, however that ends. */
static pid_t start_child(const int ends[2])
{
    pid_t child = fork();
    char byte;

    assert_true(child >= 0);
    if (child > 0) return child;
    close(ends[1]);
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
}

static void the_process_is_the_one_that_has_it(void **state)
{
    int fd = bind_to(AF_INET), ends[2], status;
    unsigned port = port_of(fd);
    pid_t child;

    (void)state;
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(pipe(ends), 0);
    child = start_child(ends);
    close(ends[0]);
    close(fd);
    expect_holder(port, "the holder", child);
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* What a process calls itself reaches a terminal as text, and fits. */
static void a_name_is_only_text(void **state)
{
    int fd = bind_to(AF_INET);
    unsigned port = port_of(fd);
    char who[5] = "????";

    (void)state;
    assert_int_equal(listen(fd, 1), 0);
    prctl(PR_SET_NAME, "we\033ir \x7f~");
    expect_holder(port, "we?ir ?~", getpid());
    prctl(PR_SET_NAME, "fifteen letters");
    expect_holder(port, "fifteen letters", getpid());
    assert_true(weir__holder_of_port(port, who, sizeof who));
    assert_string_equal(who, "fift");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_is_named),
        cmocka_unit_test(who_is_connected_does_not_listen),
        cmocka_unit_test(the_process_is_the_one_that_has_it),
        cmocka_unit_test(a_name_is_only_text),
    };

    return cmocka_run_group_tests_name("holder", tests, NULL, NULL);
}
