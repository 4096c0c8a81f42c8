/* contexts_test.c - TLS between two ends in one thread: whose certificates are shown and trusted,
 * and what each end is told. */
#include "io/tls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "certificate.h"

static struct identity root, between, leaf, other;
static struct weir_error err;

static int make_identities(void **state)
{
    (void)state;
    identity_make(&root, "a root", NULL, NULL, 1);
    identity_make(&between, "between them", NULL, &root, 1);
    identity_make(&leaf, "a leaf", "DNS:localhost", &between, 1);
    identity_make(&other, "another", "DNS:localhost", &root, 1);
    return 0;
}

static int free_identities(void **state)
{
    (void)state;
    identity_free(&root);
    identity_free(&between);
    identity_free(&leaf);
    identity_free(&other);
    return 0;
}

struct pair {
    struct weir__tls_context *contexts[2];
    struct weir__tls *server, *client;
    int fd[2];
};

static struct weir__tls_options shows(const struct identity *who)
{
    return (struct weir__tls_options){.certificate = pem_bytes(who->certificate_pem),
                                      .key = pem_bytes(who->key_pem)};
}

static struct weir__tls_options trusts(const struct identity *whom)
{
    return (struct weir__tls_options){.client = true,
                                      .authorities = pem_bytes(whom->certificate_pem)};
}

static void open_contexts(struct pair *p, const struct weir__tls_options *server,
                          const struct weir__tls_options *client)
{
    assert_int_equal(weir__tls_context_new(&p->contexts[0], server, &err), 0);
    assert_int_equal(weir__tls_context_new(&p->contexts[1], client, &err), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p->fd), 0);
}

static void begin(struct pair *p)
{
    assert_int_equal(weir__tls_new(&p->server, p->contexts[0], p->fd[0], NULL, &err), 0);
    assert_int_equal(weir__tls_new(&p->client, p->contexts[1], p->fd[1], "localhost", &err), 0);
}

/* How the client's handshake went. */
static enum weir__flow meet(struct pair *p)
{
    enum weir__flow server = WEIR__FLOW_WAIT, client = WEIR__FLOW_WAIT;

    for (int i = 0; i < 10; i++) {
        if (client == WEIR__FLOW_WAIT) client = weir__tls_handshake(p->client, &err);
        if (server == WEIR__FLOW_WAIT) server = weir__tls_handshake(p->server, NULL);
    }
    return client;
}

static void part(struct pair *p)
{
    weir__tls_free(p->server);
    weir__tls_free(p->client);
    for (int i = 0; i < 2; i++) {
        weir__tls_context_free(p->contexts[i]);
        close(p->fd[i]);
    }
}

/* The certificates between a server's and the one that is trusted are shown with it. */
static void a_chain_is_shown_whole(void **state)
{
    struct weir__tls_options server = shows(&leaf), client = trusts(&root);
    BIO *chain = BIO_new(BIO_s_mem());

    (void)state;
    PEM_write_bio_X509(chain, leaf.certificate);
    PEM_write_bio_X509(chain, between.certificate);
    for (int whole = 0; whole < 2; whole++) {
        struct pair p;
        if (whole) server.certificate = pem_bytes(chain);
        open_contexts(&p, &server, &client);
        begin(&p);
        assert_int_equal(meet(&p), whole ? WEIR__FLOW_MOVED : WEIR__FLOW_FAILED);
        part(&p);
    }
    assert_int_equal(err.code, WEIR_EDENIED);
    assert_string_equal(err.text, "TLS handshake: the certificate is not good: unable to get local "
                                  "issuer certificate");
    BIO_free(chain);
}

/* Those who come later see the new certificate; a bad one changes nothing. */
static void a_certificate_is_changed_on_the_way(void **state)
{
    struct weir__tls_options server = shows(&leaf), client = trusts(&root), good = shows(&other);
    struct weir__tls_options bad = {.certificate = weir__bytes_of("hello", 5)};
    struct pair p;

    (void)state;
    open_contexts(&p, &server, &client);
    assert_int_equal(weir__tls_context_renew(p.contexts[0], &good, &err), 0);
    assert_int_equal(weir__tls_context_renew(p.contexts[0], &bad, &err), WEIR_EINVAL);
    begin(&p);
    assert_int_equal(meet(&p), WEIR__FLOW_MOVED);
    part(&p);
}

/* A client without one is let in and has no name; a name that is too long is cut. */
static void a_client_has_the_name_that_it_shows(void **state)
{
    struct weir__tls_options server = shows(&other), named = shows(&other), client = trusts(&root);
    struct weir__tls_identity identity;
    char subject[64];

    (void)state;
    server.authorities = pem_bytes(root.certificate_pem);
    server.ask_certificate = true;
    named.client = true;
    named.authorities = client.authorities;
    for (int shown = 0; shown < 2; shown++) {
        struct pair p;
        open_contexts(&p, &server, shown ? &named : &client);
        begin(&p);
        assert_int_equal(meet(&p), WEIR__FLOW_MOVED);
        assert_int_equal(weir__tls_subject(p.server, subject, sizeof subject), shown);
        assert_int_equal(weir__tls_identify(p.server, &identity), shown);
        if (shown) {
            assert_string_equal(subject, "CN=another");
            assert_string_equal(identity.name, "another");
            memset(subject, '?', sizeof subject);
            assert_true(weir__tls_subject(p.server, subject, 5));
            assert_string_equal(subject, "CN=a");
        }
        part(&p);
    }
}

static void each_end_is_told_what_it_can_do(void **state)
{
    struct weir__tls_options server = shows(&other), client = trusts(&root);
    static uint8_t bytes[16384];
    enum weir__flow flow;
    struct pair p;
    size_t n;

    (void)state;
    open_contexts(&p, &server, &client);
    begin(&p);
    assert_int_equal(meet(&p), WEIR__FLOW_MOVED);
    assert_int_equal(weir__tls_write(p.server, weir__bytes_of("0123456789", 10), &n, &err),
                     WEIR__FLOW_MOVED);
    assert_int_equal(n, 10);
    assert_int_equal(weir__tls_read(p.client, bytes, 4, &n, &err), WEIR__FLOW_MOVED);
    assert_true(n == 4 && weir__tls_pending(p.client));
    assert_int_equal(weir__tls_read(p.client, bytes, 20, &n, &err), WEIR__FLOW_MOVED);
    assert_true(n == 6 && !weir__tls_pending(p.client));
    assert_int_equal(weir__tls_read(p.client, bytes, 20, &n, &err), WEIR__FLOW_WAIT);
    assert_true(n == 0 && !weir__tls_wants_write(p.client));
    do { /* until the socket takes no more */
        flow = weir__tls_write(p.server, weir__bytes_of(bytes, sizeof bytes), &n, &err);
    } while (flow == WEIR__FLOW_MOVED);
    assert_int_equal(flow, WEIR__FLOW_WAIT);
    assert_int_equal(n, 0);
    assert_true(weir__tls_wants_write(p.server));
    assert_int_equal(weir__tls_read(p.server, bytes, 1, &n, &err), WEIR__FLOW_WAIT);
    assert_false(weir__tls_wants_write(p.server));
    assert_int_equal(weir__tls_end(p.client, &err), WEIR__FLOW_MOVED);
    assert_int_equal(weir__tls_read(p.server, bytes, 1, &n, &err), WEIR__FLOW_ENDED);
    part(&p);
}

/* An end without a goodbye is an end; a road that is broken is not, and it is said how. */
static void the_end_of_the_road_is_told(void **state)
{
    static const struct {
        bool unread; /* a socket that is closed before it was read to its end is reset */
        enum { GREETS, READS, WRITES } server;
        enum weir__flow flow;
        const char *text;
    } rows[] = {
        {false, GREETS, WEIR__FLOW_ENDED, ""},
        {true, GREETS, WEIR__FLOW_FAILED, "TLS handshake: Connection reset by peer"},
        {false, READS, WEIR__FLOW_ENDED, ""},
        {true, READS, WEIR__FLOW_FAILED, "TLS: Connection reset by peer"},
        {false, WRITES, WEIR__FLOW_FAILED, "TLS: Broken pipe"},
    };
    struct weir__tls_options server = shows(&other), client = trusts(&root);
    enum weir__flow flow;
    struct pair p;
    uint8_t byte;
    size_t n;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        open_contexts(&p, &server, &client);
        begin(&p);
        if (rows[i].server != GREETS) {
            assert_int_equal(meet(&p), WEIR__FLOW_MOVED);
            assert_int_equal(weir__tls_read(p.client, &byte, 1, &n, &err), WEIR__FLOW_WAIT);
        }
        if (rows[i].unread) assert_int_equal(write(p.fd[0], "x", 1), 1);
        close(p.fd[1]);
        p.fd[1] = -1;
        err = (struct weir_error){0};
        flow = rows[i].server == GREETS ? weir__tls_handshake(p.server, &err)
               : rows[i].server == READS
                   ? weir__tls_read(p.server, &byte, 1, &n, &err)
                   : weir__tls_write(p.server, weir__bytes_of("x", 1), &n, &err);
        assert_int_equal(flow, rows[i].flow);
        assert_string_equal(err.text, rows[i].text);
        assert_int_equal(err.code, flow == WEIR__FLOW_FAILED ? WEIR_EUNREACHABLE : 0);
        if (rows[i].server == WRITES) /* the other direction has an end of its own */
            assert_int_equal(weir__tls_read(p.server, &byte, 1, &n, &err), WEIR__FLOW_ENDED);
        part(&p);
    }
}

static void what_is_wrong_is_told(void **state)
{
    struct weir__bytes junk = weir__bytes_of("hello", 5);
    struct weir__tls_options rows[6];
    static const struct {
        int code;
        const char *text; /* its beginning */
    } expected[6] = {
        {WEIR_ENOTFOUND, "/nowhere/ca.pem: opening: No such file or directory"},
        {WEIR_EINVAL, "reading the authorities: "},
        {WEIR_EINVAL, "asking clients for certificates needs authorities"},
        {WEIR_EINVAL, "reading the certificate: "},
        {WEIR_EINVAL, "reading the private key: "},
        {WEIR_EINVAL, "a server's certificate and key: "},
    };
    struct weir__tls_context *c;

    (void)state;
    for (int i = 0; i < 6; i++) rows[i] = shows(&other);
    rows[0].authorities_file = "/nowhere/ca.pem";
    rows[1].authorities = junk;
    rows[2].ask_certificate = true;
    rows[3].certificate = junk;
    rows[4].key = junk;
    rows[5].key = weir__bytes_of(NULL, 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(weir__tls_context_new(&c, &rows[i], &err), expected[i].code);
        assert_null(c);
        if (strncmp(err.text, expected[i].text, strlen(expected[i].text)) != 0)
            fail_msg("row %d: %s", i, err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_shown_whole),
        cmocka_unit_test(a_certificate_is_changed_on_the_way),
        cmocka_unit_test(a_client_has_the_name_that_it_shows),
        cmocka_unit_test(each_end_is_told_what_it_can_do),
        cmocka_unit_test(the_end_of_the_road_is_told),
        cmocka_unit_test(what_is_wrong_is_told),
    };

    return cmocka_run_group_tests_name("contexts", tests, make_identities, free_identities);
}
