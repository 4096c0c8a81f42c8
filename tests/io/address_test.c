/* address_test.c - "host:port", as it is given and as it is shown; and whether both ends of a
 * connection are on one machine. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/state.h"

static void good_addresses(void **state)
{
    static const char *const rows[][3] = {
        {"a:0", "a", "0"},
        {"127.0.0.1:65535", "127.0.0.1", "65535"},
        {"[::1]:80", "::1", "80"},
        {"[a]:00080", "a", "00080"},
        {"localhost:5", "localhost", "5"},
    };
    char host[WEIR__HOST_MAX], port[WEIR__PORT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weir__address_split(rows[i][0], host, port, NULL), 0);
        assert_string_equal(host, rows[i][1]);
        assert_string_equal(port, rows[i][2]);
    }
}

static void bad_addresses(void **state)
{
    static const char *const rows[][2] = {
        {"", "'' is not HOST:PORT"},
        {"a", "'a' is not HOST:PORT"},
        {"a:", "'a:' is not HOST:PORT"},
        {"a:65536", "'a:65536' is not HOST:PORT"},
        {"a:000080", "'a:000080' is not HOST:PORT"},
        {"a:8x", "'a:8x' is not HOST:PORT"},
        {":80", "':80' has no host, or a long one"},
        {"::1:80", "'::1:80': write [HOST]:PORT for IPv6"},
        {"[]:80", "'[]:80' is not [HOST]:PORT"},
        {"[:80", "'[:80' is not [HOST]:PORT"},
        {"[::1:80", "'[::1:80' is not [HOST]:PORT"},
    };
    char host[WEIR__HOST_MAX], port[WEIR__PORT_MAX];
    struct weir_error err;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(weir__address_split(rows[i][0], host, port, &err), WEIR_EINVAL);
        assert_string_equal(err.text, rows[i][1]);
    }
}

static void a_host_has_a_length(void **state)
{
    char address[WEIR__HOST_MAX + 8], host[WEIR__HOST_MAX], port[WEIR__PORT_MAX];

    (void)state;
    memset(address, 'h', sizeof address);
    strcpy(address + WEIR__HOST_MAX - 1, ":1");
    assert_int_equal(weir__address_split(address, host, port, NULL), 0);
    assert_int_equal(strlen(host), WEIR__HOST_MAX - 1);
    memset(address, 'h', sizeof address);
    strcpy(address + WEIR__HOST_MAX, ":1");
    assert_int_equal(weir__address_split(address, host, port, NULL), WEIR_EINVAL);
}

static void addresses_are_shown(void **state)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(5672)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
    char text[WEIR__TCP_ADDRESS_MAX];

    (void)state;
    in.sin_addr.s_addr = htonl(0x7f000001);
    weir__address_format((const void *)&in, text);
    assert_string_equal(text, "127.0.0.1:5672");
    in6.sin6_addr = in6addr_loopback;
    weir__address_format((const void *)&in6, text);
    assert_string_equal(text, "[::1]:80");
}

/* A socket bound to one address of this machine and connected to another. UDP: nobody need listen. */
static bool is_shared(const char *ours, const char *theirs, bool connects)
{
    struct sockaddr_in from = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons(9)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool shared;

    assert_int_equal(inet_pton(AF_INET, ours, &from.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET, theirs, &to.sin_addr), 1);
    assert_int_equal(bind(fd, (const void *)&from, sizeof from), 0);
    if (connects) assert_int_equal(connect(fd, (const void *)&to, sizeof to), 0);
    shared = weir__address_shared(fd);
    close(fd);
    return shared;
}

/* The same in the other family, which some machines lack: its addresses can stand for these. */
static bool is_shared_6(const char *ours, const char *theirs)
{
    struct sockaddr_in6 from = {.sin6_family = AF_INET6},
                        to = {.sin6_family = AF_INET6, .sin6_port = htons(9)};
    int off = 0, fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool shared;

    if (fd < 0) return strcmp(ours, theirs) == 0;
    assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off), 0);
    assert_int_equal(inet_pton(AF_INET6, ours, &from.sin6_addr), 1);
    assert_int_equal(inet_pton(AF_INET6, theirs, &to.sin6_addr), 1);
    assert_int_equal(bind(fd, (const void *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (const void *)&to, sizeof to), 0);
    shared = weir__address_shared(fd);
    close(fd);
    return shared;
}

static void one_machine_has_both_ends(void **state)
{
    (void)state;
    assert_true(is_shared("127.0.0.1", "127.0.0.1", true));
    assert_false(is_shared("127.0.0.1", "127.0.0.2", true));
    assert_false(is_shared("127.0.0.1", "127.0.0.1", false));
    assert_true(is_shared_6("::ffff:127.0.0.1", "::ffff:127.0.0.1"));
    assert_false(is_shared_6("::ffff:127.0.0.1", "::ffff:127.0.0.2"));
    assert_false(weir__address_shared(-1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses),
        cmocka_unit_test(bad_addresses),
        cmocka_unit_test(a_host_has_a_length),
        cmocka_unit_test(addresses_are_shown),
        cmocka_unit_test(one_machine_has_both_ends),
    };

    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
