#include "io/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <time.h>

#include "echo.h"

#include "certificate.h"
#include "io/certificate.h"

#define MUCH (4 << 20)

static struct identity authority, server, client, stranger;
static struct weir__tls_context *context;

static struct weir__tls_options server_options(void)
{
    return (struct weir__tls_options){
        .certificate = pem_bytes(server.certificate_pem),
        .key = pem_bytes(server.key_pem),
        .authorities = pem_bytes(authority.certificate_pem),
        .ask_certificate = true,
    };
}

static int make_identities(void **state)
{
    struct weir__tls_options o;
    struct weir_error err = {0};

    (void)state;
    identity_make(&authority, "weir test authority", NULL, NULL, 1);
    identity_make(&server, "weir test server", "DNS:localhost,IP:127.0.0.1", &authority, 1);
    identity_make(&client, "weir test client", "DNS:client", &authority, 1);
    identity_make(&stranger, "a stranger", NULL, NULL, 1);
    o = server_options();
    if (weir__tls_context_new(&context, &o, &err) == 0) return 0;
    print_error("%s\n", err.text);
    return -1;
}

static int free_identities(void **state)
{
    (void)state;
    weir__tls_context_free(context);
    identity_free(&authority);
    identity_free(&server);
    identity_free(&client);
    identity_free(&stranger);
    return 0;
}

/* A client of OpenSSL's own, whose records go through memory, so that a test can cut them. */
struct peer {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
    int fd;
    size_t piece;       /* bytes sent at once, 0: all */
    size_t bytes_until; /* to be sent before the peer is gone, SIZE_MAX: never */
};

static void peer_open(struct peer *p, struct echo *e, int version, const struct identity *who)
{
    p->bytes_until = SIZE_MAX;
    p->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_min_proto_version(p->context, version);
    SSL_CTX_set_max_proto_version(p->context, version);
    SSL_CTX_set_security_level(p->context, 0);
    if (who) {
        SSL_CTX_use_certificate(p->context, who->certificate);
        SSL_CTX_use_PrivateKey(p->context, who->key);
    }
    p->ssl = SSL_new(p->context);
    p->in = BIO_new(BIO_s_mem());
    p->out = BIO_new(BIO_s_mem());
    SSL_set_bio(p->ssl, p->in, p->out);
    SSL_set_connect_state(p->ssl);
    p->fd = echo_client(e);
}

static void peer_close(struct peer *p)
{
    SSL_free(p->ssl);
    SSL_CTX_free(p->context);
    close(p->fd);
}

/* Sends what OpenSSL wrote, piece by piece; false when the last byte has been sent. */
static bool peer_flush(struct peer *p)
{
    uint8_t bytes[4096];
    int n;

    while ((n = BIO_read(p->out, bytes, p->piece ? (int)p->piece : (int)sizeof bytes)) > 0) {
        size_t len = (size_t)n < p->bytes_until ? (size_t)n : p->bytes_until;
        client_send(p->fd, bytes, len);
        if (p->bytes_until != SIZE_MAX) p->bytes_until -= len;
        if (p->bytes_until == 0) return false;
    }
    return true;
}

/* Reads from the socket what is there; false at its end. */
static bool peer_fill(struct peer *p)
{
    uint8_t bytes[4096];
    ssize_t n = client_read(p->fd, bytes, p->piece ? p->piece : sizeof bytes);

    return n > 0 && BIO_write(p->in, bytes, (int)n) == (int)n;
}

/* 1: agreed, 0: the peer's last byte is sent, -1: refused. */
static int peer_handshake(struct peer *p)
{
    for (;;) {
        int rc = SSL_do_handshake(p->ssl);
        int why = SSL_get_error(p->ssl, rc);
        if (!peer_flush(p)) return 0;
        if (rc == 1) return 1;
        ERR_clear_error();
        if (why != SSL_ERROR_WANT_READ || !peer_fill(p)) return -1;
    }
}

static bool peer_receive(struct peer *p, uint8_t *to, size_t len)
{
    while (len) {
        size_t got;
        if (SSL_read_ex(p->ssl, to, len, &got)) {
            to += got;
            len -= got;
        } else if (SSL_get_error(p->ssl, 0) != SSL_ERROR_WANT_READ || !peer_fill(p)) {
            ERR_clear_error();
            return false;
        }
    }
    return true;
}

static void start_tls(struct echo *e, struct weir__tcp_limits limits)
{
    echo_start(e, (struct weir__listener_options){.tls = context, .limits = limits});
}

static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

static void check_echo(struct peer *p, uint8_t *at, uint8_t *back, size_t len)
{
    size_t put;

    assert_true(SSL_write_ex(p->ssl, at, len, &put));
    assert_true(peer_flush(p));
    assert_true(peer_receive(p, back, len));
    assert_memory_equal(at, back, len);
}

/* Records that arrive in pieces of 1, 2, 3, ... bytes, rooms of any size. */
static void echoes_with_every_split(void **state)
{
    static uint8_t message[20000], back[20000];

    (void)state;
    fill_pattern(message, sizeof message, 11);
    for (size_t v = 0; v < 2; v++)
        for (size_t piece = 1; piece < 40; piece += piece < 8 ? 1 : 7) {
            struct echo e = {.room_max = piece % 5 * 100};
            struct peer p = {.piece = piece};
            start_tls(&e, (struct weir__tcp_limits){0});
            peer_open(&p, &e, versions[v], NULL);
            assert_int_equal(peer_handshake(&p), 1);
            for (size_t len = 1; len < 2000; len += 333) check_echo(&p, message, back, len);
            if (piece > 30) check_echo(&p, message, back, sizeof message);
            SSL_shutdown(p.ssl);
            assert_true(peer_flush(&p));
            assert_false(peer_receive(&p, back, 1)); /* its goodbye */
            assert_true(SSL_get_shutdown(p.ssl) & SSL_RECEIVED_SHUTDOWN);
            peer_close(&p);
            echo_wait(&e, 1, 1);
            assert_int_equal(e.why.code, 0);
            echo_stop(&e);
        }
}

/* More than the server may hold, with much of it on the way at any time. */
static void echoes_much(void **state)
{
    uint8_t *out = malloc(MUCH), *in = malloc(MUCH);
    struct echo e = {.room_max = 0};
    struct peer p = {.piece = 0};
    size_t sent = 0, got = 0, n;

    (void)state;
    assert_true(out && in);
    fill_pattern(out, MUCH, 12);
    start_tls(&e, (struct weir__tcp_limits){0});
    peer_open(&p, &e, TLS1_3_VERSION, NULL);
    assert_int_equal(peer_handshake(&p), 1);
    while (got < MUCH) {
        size_t len = MUCH - sent < 50000 ? MUCH - sent : 50000;
        if (len) assert_true(SSL_write_ex(p.ssl, out + sent, len, &n));
        if (len) sent += n;
        assert_true(peer_flush(&p));
        while (got < sent && sent - got > (sent < MUCH ? 200000 : 0)) {
            if (SSL_read_ex(p.ssl, in + got, MUCH - got, &n))
                got += n;
            else
                assert_true(peer_fill(&p));
        }
    }
    assert_memory_equal(out, in, MUCH);
    assert_true(e.held_max <= ECHO_BUFFER);
    peer_close(&p); /* no goodbye: the socket just ends */
    echo_wait(&e, 1, 1);
    echo_stop(&e);
    free(out);
    free(in);
}

ssize_t __real_recv(int, void *, size_t, int);
ssize_t __wrap_recv(int, void *, size_t, int);

/* Only what fails says why in errno; here the end leaves something there. */
ssize_t __wrap_recv(int fd, void *to, size_t room, int flags)
{
    ssize_t n = __real_recv(fd, to, room, flags);

    if (n == 0) errno = EAGAIN;
    return n;
}

/* Gone after every byte of the handshake, politely and not: nothing is left of them. */
static void survives_a_death_in_every_byte(void **state)
{
    struct echo e = {.room_max = 0};
    unsigned count = 0;

    (void)state;
    start_tls(&e, (struct weir__tcp_limits){0});
    for (size_t v = 0; v < 2; v++) {
        int rc = 0;
        for (size_t at = 1; rc == 0; at += at < 16 ? 1 : 23) {
            struct peer p = {.piece = 0};
            peer_open(&p, &e, versions[v], NULL);
            p.bytes_until = at;
            rc = peer_handshake(&p);
            if (at % 2) client_reset(dup(p.fd));
            peer_close(&p);
            count++;
        }
        assert_int_equal(rc, 1);
    }
    assert_true(count > 20);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
}

static void a_handshake_has_a_limit(void **state)
{
    struct echo e = {.room_max = 0};
    char byte = 22;
    int quiet, slow;

    (void)state;
    start_tls(&e, (struct weir__tcp_limits){.open_ms = 50});
    quiet = echo_client(&e);
    slow = echo_client(&e);
    client_send(slow, &byte, 1);
    assert_true(client_receive(quiet, &byte, 1) <= 0);
    assert_true(client_receive(slow, &byte, 1) <= 0);
    close(quiet);
    close(slow);
    listener_wait(&e, 0, 0);
    assert_int_equal(e.failures, 2);
    assert_string_equal(e.failed.text, "the TLS handshake took too long");
    echo_stop(&e);
}

/* A peer that leaves in the middle is reported; one that only tried whether the port is open is not. */
static void a_handshake_that_breaks_off_is_told(void **state)
{
    struct echo e = {.room_max = 0};
    int fd;

    (void)state;
    start_tls(&e, (struct weir__tcp_limits){0});
    for (unsigned i = 0; i < 2; i++) {
        fd = echo_client(&e);
        if (i) client_send(fd, "\x16", 1);
        listener_wait(&e, 1, 1);
        close(fd);
        listener_wait(&e, 0, 0);
        assert_int_equal(e.failures, i);
    }
    assert_int_equal(e.failed.code, WEIR_EUNREACHABLE);
    assert_string_equal(e.failed.text, "the peer left in the TLS handshake");
    echo_stop(&e);
}

/* A loop that waits here until it is let go. */
struct hold {
    struct weir__post post;
    atomic_bool held, let_go;
};

static void hold(void *arg)
{
    struct hold *h = arg;

    atomic_store(&h->held, true);
    while (!atomic_load(&h->let_go)) sched_yield();
}

static void begin_hold(struct hold *h, struct weir__loop *l)
{
    *h = (struct hold){.held = false};
    weir__post_init(&h->post, hold, h);
    assert_int_equal(weir__loop_post(l, &h->post), 0);
    while (!atomic_load(&h->held)) sched_yield();
}

/* Handshakes above the maximum wait for their turn, they are not lost. */
static void handshakes_have_a_maximum(void **state)
{
    struct echo e = {.room_max = 0};
    struct peer p = {.piece = 0};
    struct hold first, second;
    int quiet[2], late[3];

    (void)state;
    echo_start(&e, (struct weir__listener_options){.tls = context, .handshakes_max = 2});
    begin_hold(&first, weir__loops_at(e.loops, 0)); /* so that they come all at once */
    for (int i = 0; i < 2; i++) quiet[i] = echo_client(&e);
    peer_open(&p, &e, TLS1_3_VERSION, NULL);
    for (int i = 0; i < 3; i++) late[i] = echo_client(&e);
    atomic_store(&first.let_go, true);
    listener_wait(&e, 2, 2);
    begin_hold(&second, weir__loops_at(e.loops, 0)); /* it has finished with its turn */
    assert_int_equal(weir__listener_counts(e.listener).open, 2);
    atomic_store(&second.let_go, true);
    close(quiet[0]);
    assert_int_equal(peer_handshake(&p), 1);
    echo_wait(&e, 1, 0);
    assert_int_equal(weir__listener_counts(e.listener).refused, 0);
    peer_close(&p);
    close(quiet[1]);
    for (int i = 0; i < 3; i++) close(late[i]);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
}

/* A connection that has shaken hands leaves its place to the next one, and stays open. */
static void a_handshake_that_is_over_does_not_count(void **state)
{
    struct echo e = {.room_max = 0};
    struct peer peers[3] = {{.piece = 0}};

    (void)state;
    echo_start(&e, (struct weir__listener_options){.tls = context, .handshakes_max = 1});
    for (unsigned i = 0; i < 3; i++) {
        peer_open(&peers[i], &e, TLS1_3_VERSION, NULL);
        assert_int_equal(peer_handshake(&peers[i]), 1);
        echo_wait(&e, i + 1, 0);
        assert_int_equal(weir__listener_counts(e.listener).handshakes, 0);
    }
    for (unsigned i = 0; i < 3; i++) peer_close(&peers[i]);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
}

static struct weir__bytes explain(void *user, const char *peer, enum weir__sniff kind)
{
    const char *name = weir__sniff_name(kind);

    (void)user;
    assert_int_equal(strncmp(peer, "127.0.0.1:", 10), 0);
    return weir__bytes_of(name, strlen(name));
}

static void tells_who_is_mistaken(void **state)
{
    static const struct {
        const char *said, *answer;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", "HTTP"},
        {"AMQP\3\1", "a few bytes"},
        {"AMQPxxxxyyyy", "an unknown AMQP"},
        {"?", "something else"},
    };
    struct echo e = {.room_max = 0};
    char heard[64];

    (void)state;
    echo_start(&e, (struct weir__listener_options){.tls = context, .mistaken = explain});
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = echo_client(&e);
        ssize_t n;
        client_send(fd, rows[i].said, strlen(rows[i].said));
        n = client_receive(fd, heard, sizeof heard - 1);
        assert_int_equal(n, strlen(rows[i].answer));
        assert_memory_equal(heard, rows[i].answer, (size_t)n);
        close(fd);
    }
    listener_wait(&e, 0, 0);
    assert_int_equal(e.opened, 0);
    echo_stop(&e);
}

/* Without an explanation there is nothing to send. */
static void who_is_mistaken_need_not_be_told(void **state)
{
    struct echo e = {.room_max = 0};
    char byte;
    int fd;

    (void)state;
    echo_start(&e, (struct weir__listener_options){.tls = context});
    fd = echo_client(&e);
    client_send(fd, "GET / HTTP/1.1\r\n\r\n", 18);
    assert_int_equal(client_receive(fd, &byte, 1), 0);
    close(fd);
    assert_int_equal(weir__listener_mistaken(e.listener, "127.0.0.1:1", WEIR__SNIFF_HTTP).len, 0);
    listener_wait(&e, 0, 0);
    assert_int_equal(e.opened, 0);
    echo_stop(&e);
}

static void refuses_old_versions(void **state)
{
    struct echo e = {.room_max = 0};
    struct peer p = {.piece = 0};

    (void)state;
    start_tls(&e, (struct weir__tcp_limits){0});
    peer_open(&p, &e, TLS1_1_VERSION, NULL);
    assert_int_equal(peer_handshake(&p), -1);
    peer_close(&p);
    listener_wait(&e, 0, 0);
    assert_int_equal(e.opened, 0);
    echo_stop(&e);
}

static void does_not_renegotiate(void **state)
{
    static uint8_t message[100], back[100];
    struct echo e = {.room_max = 0};
    struct peer p = {.piece = 0};

    (void)state;
    start_tls(&e, (struct weir__tcp_limits){0});
    peer_open(&p, &e, TLS1_2_VERSION, NULL);
    assert_int_equal(peer_handshake(&p), 1);
    check_echo(&p, message, back, sizeof back);
    SSL_renegotiate(p.ssl);
    assert_int_equal(peer_handshake(&p), -1);
    peer_close(&p);
    listener_wait(&e, 0, 0);
    echo_stop(&e);
}

static void knows_a_client_by_its_certificate(void **state)
{
    static uint8_t message[10], back[10];
    struct echo e = {.room_max = 0};
    struct peer p = {.piece = 0}, q = {.piece = 0};

    (void)state;
    start_tls(&e, (struct weir__tcp_limits){0});
    peer_open(&p, &e, TLS1_3_VERSION, &client);
    assert_int_equal(peer_handshake(&p), 1);
    check_echo(&p, message, back, sizeof back);
    assert_string_equal(e.subject, "CN=weir test client");
    assert_string_equal(e.identity.name, "weir test client");
    assert_in_range(e.identity.until_s, time(NULL) + 80000, time(NULL) + 90000);
    peer_close(&p);
    /* In TLS 1.3 a client learns of its refusal when it reads. */
    peer_open(&q, &e, TLS1_3_VERSION, &stranger);
    assert_int_equal(peer_handshake(&q), 1);
    assert_false(peer_receive(&q, back, 1));
    peer_close(&q);
    listener_wait(&e, 0, 0);
    assert_int_equal(e.opened, 1);
    assert_int_equal(e.failures, 1);
    assert_int_equal(e.failed.code, WEIR_EDENIED);
    assert_non_null(strstr(e.failed.text, "the certificate is not good: "));
    echo_stop(&e);
}

static bool name_of(const char *first, int first_len, const char *second, char *to, size_t room)
{
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    bool found;

    if (first)
        X509_NAME_add_entry_by_NID(subject, NID_commonName, V_ASN1_UTF8STRING,
                                   (const uint8_t *)first, first_len, -1, 0);
    if (second)
        X509_NAME_add_entry_by_NID(subject, NID_commonName, V_ASN1_UTF8STRING,
                                   (const uint8_t *)second, -1, -1, 0);
    found = weir__certificate_name(cert, to, room);
    X509_free(cert);
    return found;
}

/* Names that two readers could read in two ways are not names. */
static void a_name_is_one_name(void **state)
{
    char name[16];

    (void)state;
    assert_true(name_of("alice", -1, NULL, name, sizeof name));
    assert_string_equal(name, "alice");
    assert_false(name_of(NULL, 0, NULL, name, sizeof name));
    assert_string_equal(name, "");
    assert_false(name_of("alice", -1, "bob", name, sizeof name));
    assert_false(name_of("alice\0.example", 14, NULL, name, sizeof name));
    assert_false(name_of("a name of 16 byt", -1, NULL, name, sizeof name));
    assert_true(name_of("a name of 15 by", -1, NULL, name, sizeof name));
}

static void says_what_is_wrong_with_files(void **state)
{
    struct weir__tls_options o = {.certificate_file = "/nowhere/cert.pem"};
    struct weir__tls_context *c;
    struct weir_error err;

    (void)state;
    assert_int_equal(weir__tls_context_new(&c, &o, &err), WEIR_ENOTFOUND);
    assert_non_null(strstr(err.text, "/nowhere/cert.pem: opening: No such file"));
    assert_null(c);
    o = server_options();
    o.key = pem_bytes(client.key_pem); /* of somebody else */
    assert_int_equal(weir__tls_context_new(&c, &o, &err), WEIR_EINVAL);
    assert_non_null(strstr(err.text, "key values mismatch"));
    o = server_options();
    o.certificate = weir__bytes_of("hello", 5);
    assert_int_equal(weir__tls_context_new(&c, &o, &err), WEIR_EINVAL);
    o = server_options();
    o.authorities = weir__bytes_of(NULL, 0);
    assert_int_equal(weir__tls_context_new(&c, &o, &err), WEIR_EINVAL);
    o = (struct weir__tls_options){.client = false}; /* a server without a certificate */
    assert_int_equal(weir__tls_context_new(&c, &o, &err), WEIR_EINVAL);
    weir__tls_context_free(NULL);
    weir__tls_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echoes_with_every_split),
        cmocka_unit_test(echoes_much),
        cmocka_unit_test(survives_a_death_in_every_byte),
        cmocka_unit_test(a_handshake_has_a_limit),
        cmocka_unit_test(a_handshake_that_breaks_off_is_told),
        cmocka_unit_test(handshakes_have_a_maximum),
        cmocka_unit_test(a_handshake_that_is_over_does_not_count),
        cmocka_unit_test(tells_who_is_mistaken),
        cmocka_unit_test(who_is_mistaken_need_not_be_told),
        cmocka_unit_test(refuses_old_versions),
        cmocka_unit_test(does_not_renegotiate),
        cmocka_unit_test(knows_a_client_by_its_certificate),
        cmocka_unit_test(a_name_is_one_name),
        cmocka_unit_test(says_what_is_wrong_with_files),
        cmocka_unit_test(no_descriptor_is_left),
    };

    note_descriptors();
    return cmocka_run_group_tests(tests, make_identities, free_identities);
}
