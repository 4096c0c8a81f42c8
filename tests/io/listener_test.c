#define _GNU_SOURCE
#include "io/listener.h"

#include <stdio.h>
#include <sys/resource.h>

#include "echo.h"
#include "io/holder.h"

#define MANY 1000
#define STORM_THREADS 4
#define STORM_EACH 500

static void a_thousand_connections(void **state)
{
    struct echo e = {.room_max = 0};
    uint8_t message[16], back[16];
    int *fd = calloc(MANY, sizeof *fd);

    (void)state;
    assert_non_null(fd);
    echo_start(&e, (struct weir__listener_options){0});
    for (int i = 0; i < MANY; i++) fd[i] = echo_client(&e);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MANY; i++) {
            fill_pattern(message, sizeof message, (uint32_t)(i + round));
            client_send(fd[i], message, sizeof message);
        }
        for (int i = 0; i < MANY; i++) {
            fill_pattern(message, sizeof message, (uint32_t)(i + round));
            assert_int_equal(client_receive(fd[i], back, sizeof back), sizeof back);
            assert_memory_equal(message, back, sizeof back);
        }
    }
    assert_int_equal(weir__listener_counts(e.listener).open, MANY);
    assert_int_equal(e.on_loop[0], MANY / 2); /* one after the other */
    assert_int_equal(e.on_loop[1], MANY / 2);
    for (int i = 0; i < MANY; i++) close(fd[i]);
    echo_wait(&e, MANY, MANY);
    echo_stop(&e);
    free(fd);
}

static void *storm(void *arg)
{
    struct echo *e = arg;

    for (int i = 0; i < STORM_EACH; i++) {
        int fd = echo_client(e);
        if (i % 3 == 0) client_send(fd, "x", 1);
        if (i % 2 == 0)
            client_reset(fd);
        else
            close(fd);
    }
    return NULL;
}

/* Come and gone, some by a reset, some before they were accepted: none is left, and the next is
 * served. */
static void survives_an_accept_storm(void **state)
{
    struct weir__thread threads[STORM_THREADS] = {{0}};
    struct echo e = {.room_max = 0};
    char byte = 'y';
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    for (int i = 0; i < STORM_THREADS; i++)
        assert_int_equal(weir__thread_start(&threads[i], "storm", storm, &e, NULL), 0);
    for (int i = 0; i < STORM_THREADS; i++) weir__thread_join(&threads[i]);
    fd = echo_client(&e);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 1);
    close(fd);
    listener_wait(&e, 0, 0);
    assert_true(weir__listener_counts(e.listener).accepted >= STORM_THREADS * STORM_EACH / 2);
    echo_stop(&e);
}

static void has_a_maximum(void **state)
{
    struct echo e = {.room_max = 0};
    int fd[4];
    char byte = 'z';

    (void)state;
    echo_start(&e, (struct weir__listener_options){.connections_max = 2});
    for (int i = 0; i < 2; i++) fd[i] = echo_client(&e);
    echo_wait(&e, 2, 0);
    fd[2] = echo_client(&e);
    assert_true(client_receive(fd[2], &byte, 1) <= 0); /* at once */
    assert_int_equal(weir__listener_counts(e.listener).refused, 1);
    weir__mutex_lock(&e.lock);
    assert_int_equal(e.failed.code, WEIR_ELIMIT);
    assert_non_null(strstr(e.failed.text, "as many connections as may be (2 connections are open"));
    weir__mutex_unlock(&e.lock);
    close(fd[0]);
    listener_wait(&e, 1, 0);
    fd[3] = echo_client(&e);
    client_send(fd[3], &byte, 1);
    assert_int_equal(client_receive(fd[3], &byte, 1), 1);
    for (int i = 1; i < 4; i++) close(fd[i]);
    echo_wait(&e, 3, 3);
    echo_stop(&e);
}

static void refuses_whom_nobody_wants(void **state)
{
    struct echo e = {.refuse = true};
    char byte;
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    assert_int_equal(client_receive(fd, &byte, 1), 0);
    close(fd);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Out of descriptors: those who knock are sent away, the processor is not burned, and when there
 * are descriptors again, it goes on. */
static void survives_without_descriptors(void **state)
{
    struct rlimit old, tight;
    struct echo e = {.room_max = 0};
    int knock[3], fd, last;
    char byte = 'q';
    double before;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    for (int i = 0; i < 3; i++) {
        knock[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(knock[i] >= 0);
    }
    last = dup(knock[0]);
    close(last);
    getrlimit(RLIMIT_NOFILE, &old);
    tight = (struct rlimit){.rlim_cur = (rlim_t)last, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &tight), 0);
    before = cpu_seconds();
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in to = {.sin_family = AF_INET};
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        to.sin_port = htons((uint16_t)weir__listener_port(e.listener));
        assert_int_equal(connect(knock[i], (struct sockaddr *)&to, sizeof to), 0);
    }
    for (int i = 0; i < 3; i++) assert_true(client_receive(knock[i], &byte, 1) <= 0);
    assert_int_equal(weir__listener_counts(e.listener).refused, 3);
    assert_true(cpu_seconds() - before < 0.1); /* of three pauses, 0.2 s at least */
    weir__mutex_lock(&e.lock);
    assert_int_equal(e.failures, 1); /* not a line for each */
    assert_int_equal(e.failed.code, WEIR_ELIMIT);
    assert_non_null(strstr(e.failed.text, "no file descriptor is left: raise the limit"));
    weir__mutex_unlock(&e.lock);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (int i = 0; i < 3; i++) close(knock[i]);
    fd = echo_client(&e);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 1);
    close(fd);
    echo_wait(&e, 1, 1);
    echo_stop(&e);
}

/* The highest descriptors are never a connection's, whichever of the listeners it came by. */
static void leaves_descriptors_to_files(void **state)
{
    struct echo e[2] = {{.room_max = 0}, {.room_max = 0}};
    int fd[5], first;
    char byte = 'd';

    (void)state;
    for (int i = 0; i < 2; i++) echo_start(&e[i], (struct weir__listener_options){0});
    first = dup(0);
    close(first);
    for (int i = 0; i < 2; i++) weir__listener_keep(e[i].listener, (unsigned)first + 6);
    for (int i = 0; i < 3; i++) { /* the client's and the server's */
        fd[i] = echo_client(&e[i % 2]);
        echo_wait(&e[i % 2], (unsigned)i / 2 + 1, 0);
    }
    for (int i = 0; i < 2; i++) {
        fd[3] = echo_client(&e[i]);
        assert_true(client_receive(fd[3], &byte, 1) <= 0);
        close(fd[3]);
        assert_int_equal(weir__listener_counts(e[i].listener).refused, 1);
        weir__mutex_lock(&e[i].lock);
        assert_non_null(strstr(e[i].failed.text, "no file descriptor is left"));
        weir__mutex_unlock(&e[i].lock);
    }
    weir__listener_keep(e[1].listener, 0);
    fd[4] = echo_client(&e[1]);
    client_send(fd[4], &byte, 1);
    assert_int_equal(client_receive(fd[4], &byte, 1), 1);
    for (int i = 0; i < 3; i++) close(fd[i]);
    close(fd[4]);
    for (int i = 0; i < 2; i++) echo_wait(&e[i], 2, 2);
    for (int i = 0; i < 2; i++) echo_stop(&e[i]);
}

static void names_who_holds_the_port(void **state)
{
    struct echo e = {.room_max = 0};
    char address[64], expected[128], who[128];
    struct weir__listener_options o = {.address = address, .accepted = echo_accepted};
    struct weir__listener *second;
    struct weir_error err;
    unsigned port;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    port = weir__listener_port(e.listener);
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    assert_string_equal(address, weir__listener_address(e.listener));
    assert_int_equal(weir__listener_open(&second, e.loops, &o, &err), WEIR_EEXIST);
    assert_null(second);
    snprintf(expected, sizeof expected, "listening on 127.0.0.1:%u: %s (pid %d) holds port %u",
             port, "io_listener_tes", (int)getpid(), port);
    assert_string_equal(err.text, expected);
    echo_stop(&e);
    assert_false(weir__holder_of_port(port, who, sizeof who));
}

/* As soon as it is closed the port is free, also when connections from before are still there. */
static void a_port_can_be_used_again(void **state)
{
    struct echo e = {.room_max = 0}, again = {.room_max = 0};
    char address[64];
    char byte = 'a';
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    snprintf(address, sizeof address, "%s", weir__listener_address(e.listener));
    fd = echo_client(&e);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 1);
    echo_stop(&e);
    echo_start(&again, (struct weir__listener_options){.address = address});
    close(fd);
    fd = echo_client(&again);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 1);
    close(fd);
    echo_wait(&again, 1, 1);
    echo_stop(&again);
}

static void closed_it_keeps_its_connections(void **state)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct echo e = {.room_max = 0};
    char byte = 'b';
    int fd, late, errnum;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    fd = echo_client(&e);
    echo_wait(&e, 1, 0);
    weir__listener_close(e.listener);
    weir__listener_close(e.listener);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)weir__listener_port(e.listener));
    do { /* closing takes a turn of the loop, and resets those who come in it */
        late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        errnum = connect(late, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
        close(late);
    } while (errnum == 0 || errnum == ECONNRESET);
    assert_int_equal(errnum, ECONNREFUSED);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 1);
    close(fd);
    echo_wait(&e, 1, 1);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
}

static bool have_ipv6(void)
{
    struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool there = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0;

    if (fd >= 0) close(fd);
    return there;
}

static void check_ipv6(const char *address)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct echo e = {.room_max = 0};
    char byte = 'c';

    echo_start(&e, (struct weir__listener_options){.address = address});
    to.sin6_port = htons((uint16_t)weir__listener_port(e.listener));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    client_send(fd, &byte, 1);
    assert_int_equal(client_receive(fd, &byte, 1), 1);
    assert_non_null(strstr(e.peer, "[::1]:"));
    close(fd);
    echo_wait(&e, 1, 1);
    echo_stop(&e);
}

static void listens_on_ipv6(void **state)
{
    (void)state;
    if (!have_ipv6()) skip();
    check_ipv6("[::1]:0");
    check_ipv6("[::]:0");
}

static void addresses_are_checked(void **state)
{
    static const char *const bad[] = {"",           "5672",      "127.0.0.1",
                                      ":5672",      "[]:1",      "[::1:1",
                                      "::1:5672",   "a:b",       "a:65536",
                                      "a:-1",       "a:123456",  "a: 1",
                                      "a:5672junk", "[::1]5672", "no.such.host.invalid:1"};
    struct weir__listener_options o = {.accepted = echo_accepted};
    struct echo e = {.room_max = 0};
    struct weir__listener *l;
    struct weir_error err;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        o.address = bad[i];
        if (weir__listener_open(&l, e.loops, &o, &err) == 0) fail_msg("'%s' was taken", bad[i]);
        assert_null(l);
    }
    echo_stop(&e);
}

/* So that nobody comes in while the other ports of a server are being opened. */
static void nobody_comes_in_before_it_begins(void **state)
{
    struct echo e = {.room_max = 0};
    struct weir__listener_options o = {.address = "127.0.0.1:0",
                                       .accepted = echo_accepted,
                                       .user = &e};
    struct weir__listener *early, *never;
    char back[4] = "";
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    assert_int_equal(weir__listener_open(&early, e.loops, &o, NULL), 0);
    assert_int_equal(weir__listener_open(&never, e.loops, &o, NULL), 0);
    fd = client_connect(weir__listener_port(early));
    client_send(fd, "here", 4);
    assert_int_equal(weir__listener_counts(early).accepted, 0);
    assert_int_equal(weir__listener_begin(early, NULL), 0);
    assert_int_equal(client_receive(fd, back, 4), 4);
    assert_memory_equal(back, "here", 4);
    close(fd);
    weir__listener_close(early);
    weir__listener_close(never);
    echo_stop(&e);
    weir__listener_free(early);
    weir__listener_free(never);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_connections),
        cmocka_unit_test(survives_an_accept_storm),
        cmocka_unit_test(has_a_maximum),
        cmocka_unit_test(refuses_whom_nobody_wants),
        cmocka_unit_test(survives_without_descriptors),
        cmocka_unit_test(leaves_descriptors_to_files),
        cmocka_unit_test(names_who_holds_the_port),
        cmocka_unit_test(a_port_can_be_used_again),
        cmocka_unit_test(closed_it_keeps_its_connections),
        cmocka_unit_test(listens_on_ipv6),
        cmocka_unit_test(addresses_are_checked),
        cmocka_unit_test(nobody_comes_in_before_it_begins),
        cmocka_unit_test(no_descriptor_is_left),
    };

    note_descriptors();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
