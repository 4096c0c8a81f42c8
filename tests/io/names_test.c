/* names_test.c - host names that have several addresses: which of them are called, and which are
 * listened on. The names are the test's own; their addresses are real. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>

#include "caller.h"

#define NAME "several.test"
#define ADDRESSES_MAX 6
#define NOBODYS "192.0.2.1"       /* no machine has it: listening there fails */
#define OTHER "127.0.0.5"         /* where no other test listens */
#define NOWHERE "255.255.255.255" /* connecting there fails at once, and sends nothing */
#define REFUSING "127.0.0.2"      /* nobody listens there, and the kernel says so */

static const char *addresses[ADDRESSES_MAX + 1]; /* of the name; NULL is behind the last */

/* What is closed twice could be somebody else's by then. */
static atomic_uint closed_in_vain;

int __real_close(int fd);
int __wrap_close(int fd);

int __wrap_close(int fd)
{
    int rc = __real_close(fd);

    if (rc != 0) closed_in_vain++;
    return rc;
}

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out);
int __real_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb cb,
                          const char *host, const char *port, const struct addrinfo *hints);
int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb cb,
                          const char *host, const char *port, const struct addrinfo *hints);

/* The addresses of the name, one behind the other. */
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    if (strcmp(host, NAME) != 0) return __real_getaddrinfo(host, port, hints, out);
    for (int i = 0; addresses[i]; out = &(*out)->ai_next, i++)
        if (__real_getaddrinfo(addresses[i], port, hints, out) != 0) abort();
    return 0;
}

static uv_getaddrinfo_cb when_resolved;
static char wanted_port[WEIR__PORT_MAX];
static struct caller *aborts; /* as soon as the first connection is on its way */
static bool keeps_waiting;    /* nobody answers what the addresses are */
static bool refuses;          /* nobody is even asked */
static uv_getaddrinfo_t *waiting;

static void on_resolved(uv_getaddrinfo_t *req, int status, struct addrinfo *list)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};

    uv_freeaddrinfo(list);
    if (status != 0 || __wrap_getaddrinfo(NAME, wanted_port, &hints, &list) != 0) abort();
    when_resolved(req, status, list);
    if (aborts) weir__tcp_abort(aborts->tcp, "changed my mind");
}

int __wrap_uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *req, uv_getaddrinfo_cb cb,
                          const char *host, const char *port, const struct addrinfo *hints)
{
    if (strcmp(host, NAME) != 0) return __real_uv_getaddrinfo(loop, req, cb, host, port, hints);
    if (refuses) return UV_ENOMEM;
    when_resolved = cb;
    waiting = req;
    if (keeps_waiting) return 0;
    snprintf(wanted_port, sizeof wanted_port, "%s", port);
    return __real_uv_getaddrinfo(loop, req, on_resolved, "127.0.0.1", port, hints);
}

static void has_addresses(const char *const list[], int count)
{
    for (int i = 0; i <= count; i++) addresses[i] = i < count ? list[i] : NULL;
}

/* ---- calling ---- */

static void the_next_address_is_called(void **state)
{
    static const char *const lists[][4] = {{"127.0.0.1", NOWHERE},
                                           {REFUSING, "127.0.0.1"},
                                           {NOWHERE, "127.0.0.1"},
                                           {REFUSING, NOWHERE, REFUSING, "127.0.0.1"}};

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct echo e = {.room_max = 0};
        struct caller c = {.rc = 0};
        char address[64];
        echo_start(&e, (struct weir__listener_options){0});
        address_of(&e, address, sizeof address, NAME);
        has_addresses(lists[i], i == 3 ? 4 : 2);
        c.loops = e.loops;
        c.options.address = address;
        call(&c);
        hang_up(&c);
        if (c.why.code != 0) fail_msg("list %zu: %s", i, c.why.text);
        assert_memory_equal(c.in, c.out, MESSAGE);
        echo_wait(&e, 1, 1);
        echo_stop(&e);
    }
}

/* When none is left, the last one's reason is told. */
static void the_last_reason_is_told(void **state)
{
    static const struct {
        const char *list[2], *why;
    } rows[] = {{{NOWHERE, REFUSING}, "Connection refused"},
                {{REFUSING, NOWHERE}, "Network is unreachable"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct echo e = {.room_max = 0};
        struct caller c = {.rc = 0};
        char address[64], want[128];
        echo_start(&e, (struct weir__listener_options){0});
        address_of(&e, address, sizeof address, NAME);
        snprintf(want, sizeof want, "connecting to %s: %s", address, rows[i].why);
        has_addresses(rows[i].list, 2);
        c.options.address = address;
        expect_failure(&c, &e, WEIR_EUNREACHABLE, want);
        assert_string_equal(c.why.text, want);
        echo_stop(&e);
    }
}

/* Nor is it waited for ever; an answer that comes after that is nobody's any more. */
static void a_name_that_is_not_answered(void **state)
{
    struct echo e = {.room_max = 0};
    struct caller c = {.options.limits = {.open_ms = 50}};
    char address[64];

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    address_of(&e, address, sizeof address, NAME);
    keeps_waiting = true;
    c.options.address = address;
    expect_failure(&c, &e, WEIR_ETIMEDOUT, "connecting took too long");
    assert_string_equal(c.why.text, "connecting took too long");
    echo_stop(&e);
    when_resolved(waiting, UV_ECANCELED, NULL);
    keeps_waiting = false;
}

static void a_name_that_cannot_be_asked_for(void **state)
{
    struct echo e = {.room_max = 0};
    struct caller c = {.options.address = NAME ":1", .tcp = (struct weir__tcp *)state};

    echo_start(&e, (struct weir__listener_options){0});
    refuses = true;
    expect_failure(&c, &e, WEIR_EIO, "resolving " NAME ": not enough memory");
    refuses = false;
    assert_string_equal(c.why.text, "resolving " NAME ": not enough memory");
    assert_null(c.tcp);
    echo_stop(&e);
}

/* Nobody calls on behalf of a connection that is gone; what it had open is closed. */
static void called_off_on_the_way(void **state)
{
    static const char *const lists[][2] = {{"127.0.0.1", REFUSING}, {REFUSING, "127.0.0.1"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct echo e = {.room_max = 0};
        struct caller c = {.rc = 0};
        char address[64];
        echo_start(&e, (struct weir__listener_options){0});
        address_of(&e, address, sizeof address, NAME);
        has_addresses(lists[i], 2);
        aborts = &c;
        c.options.address = address;
        expect_failure(&c, &e, WEIR_ECANCELED, "changed my mind");
        aborts = NULL;
        echo_stop(&e);
    }
}

/* ---- listening ---- */

static int bind_name(const char *const list[], int count, unsigned port, struct weir__bound *b,
                     struct weir_error *err)
{
    char address[64];

    has_addresses(list, count);
    snprintf(address, sizeof address, NAME ":%u", port);
    return weir__bind(address, 8, b, err);
}

static void leave(struct weir__bound *b)
{
    while (b->count) close(b->fd[--b->count]);
}

static int connects_to(const char *host, unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), rc;

    assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
    rc = connect(fd, (struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
    close(fd);
    return rc;
}

static void all_addresses_have_one_port(void **state)
{
    static const char *const list[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4",
                                       "127.0.0.5"};
    struct weir__bound b;
    struct weir_error err = {0};
    char want[64];

    (void)state;
    assert_int_equal(bind_name(list, 5, 0, &b, &err), 0);
    assert_int_equal(b.count, WEIR__LISTENER_SOCKETS_MAX);
    snprintf(want, sizeof want, "127.0.0.1:%u", b.port);
    assert_string_equal(b.address, want);
    assert_true(fcntl(b.fd[0], F_GETFL) & O_NONBLOCK);
    assert_int_equal(fcntl(b.fd[0], F_GETFD), FD_CLOEXEC);
    for (int i = 0; i < 5; i++)
        assert_int_equal(connects_to(list[i], b.port),
                         i < WEIR__LISTENER_SOCKETS_MAX ? 0 : ECONNREFUSED);
    leave(&b);
}

/* IPv4 comes first, whatever the order; an address of IPv6 that is not there does not matter. */
static void both_families_are_listened_on(void **state)
{
    static const char *const list[] = {"::1", "127.0.0.1"};
    struct weir__bound b;
    struct weir_error err = {0};
    char want[64];

    (void)state;
    assert_int_equal(bind_name(list, 2, 0, &b, &err), 0);
    snprintf(want, sizeof want, "127.0.0.1:%u", b.port);
    assert_string_equal(b.address, want);
    assert_int_equal(connects_to("127.0.0.1", b.port), 0);
    leave(&b);
}

static void an_address_of_others_does_not_matter(void **state)
{
    static const char *const lists[][2] = {{NOBODYS, "127.0.0.1"}, {"127.0.0.1", NOBODYS}};
    struct weir__bound b;
    struct weir_error err = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bind_name(lists[i], 2, 0, &b, &err), 0);
        assert_int_equal(b.count, 1);
        assert_int_equal(connects_to("127.0.0.1", b.port), 0);
        leave(&b);
    }
    assert_int_equal(bind_name(lists[0], 1, 5671, &b, &err), WEIR_EIO); /* there is no other */
    assert_string_equal(err.text, "listening on " NOBODYS ":5671: bind: Cannot assign requested "
                                  "address");
    assert_int_equal(b.count, 0);
}

/* Which link an address of IPv6 is of is part of it, to its last byte. */
static void a_link_that_is_not_there_is_told(void **state)
{
    struct weir__bound b;
    struct weir_error err = {0};

    (void)state;
    if (weir__bind("[::1]:0", 8, &b, &err) != 0) skip();
    leave(&b);
    assert_int_not_equal(weir__bind("[fe80::1%16777217]:5671", 8, &b, &err), 0);
    assert_string_equal(err.text, "listening on [fe80::1]:5671: bind: No such device");
    assert_int_equal(b.count, 0);
}

/* Somebody may have the port at one of them: then it is not listened on at any. */
static void all_or_none(void **state)
{
    static const char *const list[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4"};
    struct weir__bound held, b;
    struct weir_error err = {0};
    char want[128];

    (void)state;
    assert_int_equal(weir__bind("127.0.0.3:0", 8, &held, &err), 0);
    assert_int_equal(bind_name(list, 3, held.port, &b, &err), WEIR_EEXIST);
    assert_int_equal(b.count, 0);
    snprintf(want, sizeof want, "listening on 127.0.0.3:%u: io_names_test (pid %d) holds port %u",
             held.port, (int)getpid(), held.port);
    assert_string_equal(err.text, want);
    assert_int_equal(connects_to("127.0.0.2", held.port), ECONNREFUSED);
    assert_int_equal(connects_to("127.0.0.4", held.port), ECONNREFUSED);
    leave(&held);
}

static void the_other_family_alone_and_held(void **state)
{
    static const char *const lists[][2] = {{NOBODYS, "::1"}, {OTHER, "::1"}};
    struct weir__bound held, b;
    struct weir_error err = {0};
    char want[64];

    (void)state;
    if (weir__bind("[::1]:0", 8, &held, &err) != 0) skip();
    assert_int_equal(bind_name(lists[0], 2, 0, &b, &err), 0);
    snprintf(want, sizeof want, "[::1]:%u", b.port);
    assert_string_equal(b.address, want);
    leave(&b);
    assert_int_equal(bind_name(lists[1], 2, held.port, &b, &err), WEIR_EEXIST);
    assert_int_equal(connects_to(OTHER, held.port), ECONNREFUSED);
    leave(&held);
}

static void an_unknown_name_is_told(void **state)
{
    struct weir__bound b;
    struct weir_error err = {0};

    (void)state;
    assert_int_equal(weir__bind("no.such.host.invalid:1", 8, &b, &err), WEIR_ENOTFOUND);
    assert_memory_equal(err.text, "host 'no.such.host.invalid': ", 29);
    b.count = 1;
    assert_int_equal(weir__bind("nonsense", 8, &b, &err), WEIR_EINVAL);
    assert_string_equal(err.text, "'nonsense' is not HOST:PORT");
    assert_int_equal(b.count, 0);
}

static void nothing_was_closed_twice(void **state)
{
    (void)state;
    assert_int_equal(closed_in_vain, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_address_is_called),
        cmocka_unit_test(the_last_reason_is_told),
        cmocka_unit_test(a_name_that_is_not_answered),
        cmocka_unit_test(a_name_that_cannot_be_asked_for),
        cmocka_unit_test(called_off_on_the_way),
        cmocka_unit_test(all_addresses_have_one_port),
        cmocka_unit_test(both_families_are_listened_on),
        cmocka_unit_test(an_address_of_others_does_not_matter),
        cmocka_unit_test(a_link_that_is_not_there_is_told),
        cmocka_unit_test(all_or_none),
        cmocka_unit_test(the_other_family_alone_and_held),
        cmocka_unit_test(an_unknown_name_is_told),
        cmocka_unit_test(no_descriptor_is_left),
        cmocka_unit_test(nothing_was_closed_twice),
    };

    note_descriptors();
    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
