#include "io/tcp.h"

#include <openssl/ssl.h>
#include <stdio.h>

#include "caller.h"
#include "certificate.h"

static void calls_and_is_answered(void **state)
{
    static const char *const hosts[] = {"127.0.0.1", "localhost"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct echo e = {.room_max = 0};
        struct caller c = {.rc = 0};
        char address[64];
        echo_start(&e, (struct weir__listener_options){0});
        address_of(&e, address, sizeof address, hosts[i]);
        c.loops = e.loops;
        c.options.address = address;
        call(&c);
        hang_up(&c);
        assert_true(c.opened);
        assert_false(c.waits);
        if (i == 0) assert_string_equal(c.peer, address);
        assert_int_equal(c.why.code, 0);
        assert_memory_equal(c.in, c.out, MESSAGE);
        echo_wait(&e, 1, 1);
        assert_int_equal(e.why.code, 0);
        echo_stop(&e);
    }
}

static void says_why_it_could_not(void **state)
{
    struct echo e = {.room_max = 0}, gone = {.room_max = 0};
    struct caller refused = {.rc = 0}, lost = {.rc = 0}, senseless = {.rc = 0};
    char address[64];

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    echo_start(&gone, (struct weir__listener_options){0});
    address_of(&gone, address, sizeof address, "127.0.0.1");
    echo_stop(&gone);
    refused.options.address = address;
    expect_failure(&refused, &e, WEIR_EUNREACHABLE, "Connection refused");
    assert_non_null(strstr(refused.why.text, address));
    lost.options.address = "no.such.host.invalid:5671";
    expect_failure(&lost, &e, WEIR_EUNREACHABLE, "resolving no.such.host.invalid: ");
    senseless.options.address = "nonsense";
    expect_failure(&senseless, &e, WEIR_EINVAL, "'nonsense' is not HOST:PORT");
    echo_stop(&e);
}

static void can_be_called_off(void **state)
{
    struct echo e = {.room_max = 0};
    struct caller c = {.abort_at_once = true, .options.address = "localhost:9"};
    struct caller d = {.options.address = "localhost:9"};
    struct caller ended = {.end_at_once = true, .options.address = "localhost:9"};

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    expect_failure(&c, &e, WEIR_ECANCELED, "changed my mind");
    expect_failure(&ended, &e, WEIR_ECANCELED, "ended before it was open");
    d.loops = e.loops;
    call(&d); /* and the loops stop in the middle of it */
    echo_stop(&e);
    hang_up(&d);
    assert_false(d.opened);
}

static struct identity authority, server, stranger;

static int make_identities(void **state)
{
    (void)state;
    identity_make(&authority, "weir test authority", NULL, NULL, 1);
    identity_make(&server, "weir test server", "DNS:localhost,IP:127.0.0.1", &authority, 1);
    identity_make(&stranger, "another authority", NULL, NULL, 1);
    return 0;
}

static int free_identities(void **state)
{
    (void)state;
    identity_free(&authority);
    identity_free(&server);
    identity_free(&stranger);
    return 0;
}

static struct weir__tls_context *trusting(const struct identity *whom, bool anyone)
{
    struct weir__tls_options o = {.client = true, .trust_anyone = anyone};
    struct weir__tls_context *c;

    if (whom) o.authorities = pem_bytes(whom->certificate_pem);
    assert_int_equal(weir__tls_context_new(&c, &o, NULL), 0);
    return c;
}

/* The name and the authority are looked at, unless one asks not to. */
static void verifies_whom_it_calls(void **state)
{
    static const struct {
        const struct identity *trusts;
        const char *host, *name, *refusal;
        bool anyone;
    } rows[] = {
        {&authority, "localhost", NULL, NULL, false},
        {&authority, "127.0.0.1", NULL, NULL, false},
        {&authority, "127.0.0.1", "localhost", NULL, false},
        {&authority, "127.0.0.1", "example.com", "hostname mismatch", false},
        {&authority, "127.0.0.1", "10.0.0.1", "IP address mismatch", false},
        {&stranger, "localhost", NULL, "unable to get local issuer", false},
        {NULL, "localhost", NULL, "unable to get local issuer", false}, /* the system's */
        {NULL, "localhost", "example.com", NULL, true},
    };
    struct weir__tls_options so = {.certificate = pem_bytes(server.certificate_pem),
                                   .key = pem_bytes(server.key_pem)};
    struct weir__tls_context *serving;

    (void)state;
    assert_int_equal(weir__tls_context_new(&serving, &so, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir__tls_context *calling = trusting(rows[i].trusts, rows[i].anyone);
        struct caller c = {.options = {.tls = calling, .tls_name = rows[i].name}};
        struct echo e = {.room_max = 0};
        char address[64];
        echo_start(&e, (struct weir__listener_options){.tls = serving});
        address_of(&e, address, sizeof address, rows[i].host);
        c.options.address = address;
        if (rows[i].refusal) {
            expect_failure(&c, &e, WEIR_EDENIED, rows[i].refusal);
        } else {
            c.loops = e.loops;
            call(&c);
            hang_up(&c);
            if (c.why.code != 0) fail_msg("row %zu: %s", i, c.why.text);
            assert_memory_equal(c.in, c.out, MESSAGE);
            echo_wait(&e, 1, 1);
        }
        listener_wait(&e, 0, 0);
        echo_stop(&e);
        weir__tls_context_free(calling);
    }
    weir__tls_context_free(serving);
}

/* A loop that is kept from looking, as by a busy machine. */
struct hold {
    struct weir__post post;
    struct caller *caller;
    bool writes; /* the caller has something to say just then */
    struct weir__mutex lock;
    struct weir__cond changed;
    bool held, released;
};

static void hold_loop(void *arg)
{
    struct hold *h = arg;

    weir__mutex_lock(&h->lock);
    h->held = true;
    weir__cond_broadcast(&h->changed);
    while (!h->released) weir__cond_wait(&h->changed, &h->lock, INT64_MAX);
    weir__mutex_unlock(&h->lock);
    if (!h->writes) return;
    h->caller->sent = 0;
    weir__tcp_flush(h->caller->tcp);
}

static void hold(struct hold *h, struct caller *c)
{
    h->caller = c;
    weir__mutex_init(&h->lock);
    weir__cond_init(&h->changed);
    weir__post_init(&h->post, hold_loop, h);
    assert_int_equal(weir__loop_post(weir__loops_at(c->loops, 0), &h->post), 0);
    weir__mutex_lock(&h->lock);
    while (!h->held) weir__cond_wait(&h->changed, &h->lock, INT64_MAX);
    weir__mutex_unlock(&h->lock);
}

static void release(struct hold *h)
{
    weir__mutex_lock(&h->lock);
    h->released = true;
    weir__cond_broadcast(&h->changed);
    weir__mutex_unlock(&h->lock);
}

static int listen_at(char *address, size_t room)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof own;

    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(listen(fd, 1), 0);
    getsockname(fd, (struct sockaddr *)&own, &len);
    snprintf(address, room, "127.0.0.1:%u", ntohs(own.sin_port));
    return fd;
}

/* An answer and the reset behind it are seen at once: the answer counts. */
static void hears_what_was_said_before_a_reset(void **state)
{
    enum { ANSWER = MESSAGE - 1 };
    struct linger hard = {.l_onoff = 1};
    uint8_t question[MESSAGE];
    char address[64];

    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        struct hold h = {.writes = writes};
        struct caller c = {.options.address = address};
        struct echo e = {.room_max = 0};
        int listening = listen_at(address, sizeof address), fd;
        echo_start(&e, (struct weir__listener_options){0});
        c.loops = e.loops;
        call(&c);
        fd = accept(listening, NULL, NULL);
        assert_int_equal(recv(fd, question, MESSAGE, MSG_WAITALL), MESSAGE);
        hold(&h, &c);
        assert_int_equal(send(fd, question, ANSWER, 0), ANSWER);
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(fd);
        release(&h);
        hang_up(&c);
        assert_int_equal(c.got, ANSWER);
        assert_memory_equal(c.in, c.out, ANSWER);
        assert_int_equal(c.why.code, WEIR_EUNREACHABLE);
        echo_stop(&e);
        close(listening);
    }
}

/* TLS with a server that only listens and never answers. */
static void does_not_wait_for_ever(void **state)
{
    struct weir__tls_context *calling = trusting(&authority, false);
    struct caller c = {.options = {.tls = calling, .limits = {.open_ms = 50}}};
    struct echo e = {.room_max = 0};
    char address[64];
    int fd = listen_at(address, sizeof address);

    (void)state;
    echo_start(&e, (struct weir__listener_options){0});
    c.options.address = address;
    expect_failure(&c, &e, WEIR_ETIMEDOUT, "the TLS handshake took too long");
    echo_stop(&e);
    close(fd);
    weir__tls_context_free(calling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_and_is_answered),
        cmocka_unit_test(says_why_it_could_not),
        cmocka_unit_test(can_be_called_off),
        cmocka_unit_test(verifies_whom_it_calls),
        cmocka_unit_test(does_not_wait_for_ever),
        cmocka_unit_test(hears_what_was_said_before_a_reset),
        cmocka_unit_test(no_descriptor_is_left),
    };

    note_descriptors();
    return cmocka_run_group_tests(tests, make_identities, free_identities);
}
