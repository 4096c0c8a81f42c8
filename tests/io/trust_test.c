/* trust_test.c - files of certificates: how many they may have, what is damaged or does not belong
 * together, and whom an end trusts by them. */
#include "io/tls.h"

#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "certificate.h"

#define CHAIN_MAX 16
#define AUTHORITIES_MAX 1024

static struct identity root, leaf, other;
static struct weir_error err;

static int make_identities(void **state)
{
    (void)state;
    identity_make(&root, "a root", NULL, NULL, 1);
    identity_make(&leaf, "a leaf", "DNS:localhost", &root, 1);
    identity_make(&other, "another", "DNS:localhost", &root, 1);
    return 0;
}

static int free_identities(void **state)
{
    (void)state;
    identity_free(&root);
    identity_free(&leaf);
    identity_free(&other);
    return 0;
}

/* As far as a context of these can be made. */
static int try(const struct weir__tls_options *o)
{
    struct weir__tls_context *c;
    int rc = weir__tls_context_new(&c, o, &err);

    weir__tls_context_free(c);
    return rc;
}

/* So many certificates: one first, then others. */
static BIO *bundle(X509 *first, X509 *others, int count)
{
    BIO *pem = BIO_new(BIO_s_mem());

    for (int i = 0; i < count; i++) assert_true(PEM_write_bio_X509(pem, i ? others : first));
    return pem;
}

static void there_may_be_so_many(void **state)
{
    (void)state;
    for (int more = 0; more < 2; more++) {
        BIO *chain = bundle(leaf.certificate, root.certificate, CHAIN_MAX + more);
        BIO *many = bundle(root.certificate, root.certificate, AUTHORITIES_MAX + more);
        struct weir__tls_options shows = {.certificate = pem_bytes(chain),
                                          .key = pem_bytes(leaf.key_pem)};
        struct weir__tls_options trusts = {.client = true, .authorities = pem_bytes(many)};

        assert_int_equal(try(&shows), more ? WEIR_EINVAL : 0);
        if (more) assert_string_equal(err.text, "reading the certificate: more than 16 of them");
        assert_int_equal(try(&trusts), more ? WEIR_EINVAL : 0);
        if (more) assert_string_equal(err.text, "reading the authorities: more than 1024 of them");
        BIO_free(chain);
        BIO_free(many);
    }
}

/* Whoever leaves out what cannot be read shows or trusts less than was meant. */
static void damage_behind_a_good_one_is_told(void **state)
{
    static const char comment[] = "\nWhat follows is for the night shift.\n";

    (void)state;
    for (int damaged = 0; damaged < 2; damaged++) {
        BIO *pem = bundle(leaf.certificate, root.certificate, 1),
            *second = bundle(root.certificate, NULL, 1);
        struct weir__bytes b = pem_bytes(second);
        char *text = malloc(b.len);
        struct weir__tls_options o;

        memcpy(text, b.at, b.len);
        if (damaged) text[b.len / 2] = '!';
        assert_int_equal(BIO_write(pem, comment, sizeof comment - 1), sizeof comment - 1);
        assert_int_equal(BIO_write(pem, text, (int)b.len), b.len);
        assert_int_equal(BIO_write(pem, comment, sizeof comment - 1), sizeof comment - 1);
        o = (struct weir__tls_options){.certificate = pem_bytes(pem),
                                       .key = pem_bytes(leaf.key_pem)};
        assert_int_equal(try(&o), damaged ? WEIR_EINVAL : 0);
        if (damaged) assert_string_equal(err.text, "reading the certificate: bad base64 decode");
        o = (struct weir__tls_options){.client = true, .authorities = pem_bytes(pem)};
        assert_int_equal(try(&o), damaged ? WEIR_EINVAL : 0);
        if (damaged) assert_string_equal(err.text, "reading the authorities: bad base64 decode");
        free(text);
        BIO_free(pem);
        BIO_free(second);
    }
}

static void keys_belong_to_certificates(void **state)
{
    struct weir__tls_options o = {.certificate = pem_bytes(leaf.certificate_pem),
                                  .key = pem_bytes(other.key_pem)};

    (void)state;
    assert_int_equal(try(&o), WEIR_EINVAL);
    assert_string_equal(err.text, "reading the private key: key values mismatch");
    o = (struct weir__tls_options){.client = true, .key = pem_bytes(leaf.key_pem)};
    assert_int_equal(try(&o), WEIR_EINVAL); /* it could not be shown */
    assert_string_equal(err.text, "reading the private key: no certificate assigned");
    o = (struct weir__tls_options){.client = true, .trust_anyone = true};
    assert_int_equal(try(&o), 0);
}

/* A handshake with one of OpenSSL's own, so that we can look into it. */
static int meet(struct weir__tls *ours, SSL *theirs)
{
    int rc = 0;

    for (int i = 0; i < 10; i++) {
        rc = SSL_do_handshake(theirs);
        weir__tls_handshake(ours, NULL);
    }
    return rc;
}

/* A client with several certificates chooses by them. */
static void a_server_tells_whom_it_trusts(void **state)
{
    struct weir__tls_options o = {.certificate = pem_bytes(leaf.certificate_pem),
                                  .key = pem_bytes(leaf.key_pem),
                                  .authorities = pem_bytes(root.certificate_pem),
                                  .ask_certificate = true};
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *client = SSL_new(context);
    struct weir__tls_context *c;
    struct weir__tls *server;
    int fd[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(weir__tls_context_new(&c, &o, &err), 0);
    assert_int_equal(weir__tls_new(&server, c, fd[0], NULL, &err), 0);
    SSL_set_fd(client, fd[1]);
    SSL_set_connect_state(client);
    assert_int_equal(meet(server, client), 1);
    assert_int_equal(sk_X509_NAME_num(SSL_get0_peer_CA_list(client)), 1);
    assert_int_equal(X509_NAME_cmp(sk_X509_NAME_value(SSL_get0_peer_CA_list(client), 0),
                                   X509_get_subject_name(root.certificate)),
                     0);
    weir__tls_free(server);
    SSL_free(client);
    SSL_CTX_free(context);
    weir__tls_context_free(c);
    close(fd[0]);
    close(fd[1]);
}

/* How a handshake of our client ends. *known: it could tell who the server is. */
static enum weir__flow call(const struct identity *whom, const char *name,
                            const struct weir__tls_options *client, bool *known)
{
    struct weir__tls_options o[2] = {{.certificate = pem_bytes(whom->certificate_pem),
                                      .key = pem_bytes(whom->key_pem)},
                                     *client};
    struct weir__tls_identity who;
    char subject[WEIR__TLS_SUBJECT_MAX];
    enum weir__flow flow = WEIR__FLOW_WAIT;
    struct weir__tls_context *c[2];
    struct weir__tls *t[2];
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir__tls_context_new(&c[i], &o[i], &err), 0);
        assert_int_equal(weir__tls_new(&t[i], c[i], fd[i], i ? name : NULL, &err), 0);
    }
    for (int i = 0; i < 10 && flow == WEIR__FLOW_WAIT; i++) {
        flow = weir__tls_handshake(t[1], &err);
        weir__tls_handshake(t[0], NULL);
    }
    *known = weir__tls_identify(t[1], &who);
    assert_int_equal(weir__tls_subject(t[1], subject, sizeof subject), *known);
    for (int i = 0; i < 2; i++) {
        weir__tls_free(t[i]);
        weir__tls_context_free(c[i]);
        close(fd[i]);
    }
    return flow;
}

/* The server is OpenSSL's own. A server with several names chooses by what it is told; an address is
 * none. */
static void a_client_says_whom_it_calls(void **state)
{
    static const char *const rows[][2] = {{"localhost", "localhost"},
                                          {"127.0.0.1", NULL},
                                          {"::1", NULL},
                                          {"1.2.3.4.test", "1.2.3.4.test"}};
    struct weir__tls_options o = {.client = true, .trust_anyone = true};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        SSL_CTX *context = SSL_CTX_new(TLS_server_method());
        struct weir__tls_context *c;
        struct weir__tls *client;
        SSL *server;
        int fd[2];

        assert_true(SSL_CTX_use_certificate(context, leaf.certificate));
        assert_true(SSL_CTX_use_PrivateKey(context, leaf.key));
        server = SSL_new(context);
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
        assert_int_equal(weir__tls_context_new(&c, &o, &err), 0);
        assert_int_equal(weir__tls_new(&client, c, fd[1], rows[i][0], &err), 0);
        SSL_set_fd(server, fd[0]);
        SSL_set_accept_state(server);
        assert_int_equal(meet(client, server), 1);
        if (rows[i][1])
            assert_string_equal(SSL_get_servername(server, TLSEXT_NAMETYPE_host_name), rows[i][1]);
        else
            assert_null(SSL_get_servername(server, TLSEXT_NAMETYPE_host_name));
        weir__tls_free(client);
        SSL_free(server);
        SSL_CTX_free(context);
        weir__tls_context_free(c);
        close(fd[0]);
        close(fd[1]);
    }
}

static void a_client_trusts_whom_the_system_trusts(void **state)
{
    struct weir__bytes pem = pem_bytes(root.certificate_pem);
    const char *tmp = getenv("TMPDIR");
    struct weir__tls_options client = {.client = true};
    char path[256];
    bool known;
    int fd;

    (void)state;
    assert_int_equal(call(&leaf, "localhost", &client, &known), WEIR__FLOW_FAILED);
    assert_false(known);
    snprintf(path, sizeof path, "%s/weir-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    fd = mkstemp(path);
    assert_int_equal(write(fd, pem.at, pem.len), pem.len);
    close(fd);
    assert_int_equal(setenv("SSL_CERT_FILE", path, 1), 0);
    assert_int_equal(call(&leaf, "localhost", &client, &known), WEIR__FLOW_MOVED);
    assert_true(known);
    unsetenv("SSL_CERT_FILE");
    unlink(path);
    client.trust_anyone = true; /* and knows nobody */
    assert_int_equal(call(&leaf, "localhost", &client, &known), WEIR__FLOW_MOVED);
    assert_false(known);
}

/* A star stands for a whole word of a name. */
static void stars_in_names(void **state)
{
    struct weir__tls_options client = {.client = true,
                                       .authorities = pem_bytes(root.certificate_pem)};
    static const struct {
        const char *names, *called;
        bool good;
    } rows[] = {{"DNS:*.weir.test", "localhost.weir.test", true},
                {"DNS:local*.weir.test", "localhost.weir.test", false},
                {"DNS:*.weir.test", "a.localhost.weir.test", false}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct identity who;
        bool known;

        identity_make(&who, "stars", rows[i].names, &root, 1);
        assert_int_equal(call(&who, rows[i].called, &client, &known),
                         rows[i].good ? WEIR__FLOW_MOVED : WEIR__FLOW_FAILED);
        identity_free(&who);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_may_be_so_many),
        cmocka_unit_test(damage_behind_a_good_one_is_told),
        cmocka_unit_test(keys_belong_to_certificates),
        cmocka_unit_test(a_server_tells_whom_it_trusts),
        cmocka_unit_test(a_client_says_whom_it_calls),
        cmocka_unit_test(stars_in_names),
        cmocka_unit_test(a_client_trusts_whom_the_system_trusts),
    };

    return cmocka_run_group_tests_name("trust", tests, make_identities, free_identities);
}
