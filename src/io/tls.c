#include "io/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/thread.h"
#include "io/certificate.h"

#define CHAIN_MAX 16 /* certificates in a chain */
#define CIPHERS "DEFAULT:!SHA1:!kRSA:!PSK:!SRP"
#define AUTHORITIES_MAX 1024

struct weir__tls_context {
    struct weir__mutex lock; /* for ssl: sessions keep the one that they began with */
    SSL_CTX *ssl;
    BIO_METHOD *road; /* how records reach the socket */
    bool client;
};

struct weir__tls {
    SSL *ssl;
    int fd;
    int errnum; /* of the last call on the socket that failed */
    bool wants_write;
};

/* The road: a BIO that is the socket, without signals. */

static int road_create(BIO *b)
{
    BIO_set_init(b, 1);
    return 1;
}

static int road_read(BIO *b, char *to, int room)
{
    struct weir__tls *t = BIO_get_data(b);
    ssize_t n;

    BIO_clear_retry_flags(b);
    do {
        n = recv(t->fd, to, (size_t)room, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_read(b);
    else if (n < 0)
        t->errnum = errno;
    return (int)n;
}

static int road_write(BIO *b, const char *at, int len)
{
    struct weir__tls *t = BIO_get_data(b);
    ssize_t n;

    BIO_clear_retry_flags(b);
    do {
        n = send(t->fd, at, (size_t)len, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(b);
    else if (n < 0)
        t->errnum = errno;
    return (int)n;
}

static long road_control(BIO *b, int command, long number, void *at)
{
    (void)b;
    (void)number;
    (void)at;
    return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *make_road(void)
{
    BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "weir socket");

    if (m && BIO_meth_set_create(m, road_create) && BIO_meth_set_read(m, road_read) &&
        BIO_meth_set_write(m, road_write) && BIO_meth_set_ctrl(m, road_control))
        return m;
    BIO_meth_free(m);
    return NULL;
}

/* The context: PEM from files or memory, by one road. */

static int no_password(char *to, int room, int writing, void *user)
{
    (void)to;
    (void)room;
    (void)writing;
    (void)user;
    return 0; /* never ask on a terminal */
}

static BIO *open_pem(const char *file, struct weir__bytes memory)
{
    if (file) return BIO_new_file(file, "re");
    return memory.len <= INT_MAX ? BIO_new_mem_buf(memory.at, (int)memory.len) : NULL;
}

/* Takes each certificate to where it belongs; one that cannot be read is not the end of them. */
static int use_certificates(SSL_CTX *ssl, BIO *pem, int most, int (*add)(SSL_CTX *, X509 *, int),
                            const char *what, struct weir_error *err)
{
    X509 *cert;
    int n = 0, ok = 1;

    while (ok && (cert = PEM_read_bio_X509(pem, NULL, no_password, NULL))) {
        ok = n < most && add(ssl, cert, n);
        X509_free(cert);
        n++;
    }
    if (n > most) return weir__fail(err, WEIR_EINVAL, "%s: more than %d of them", what, most);
    if (!ok || n == 0 || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return weir__ssl_fail(err, WEIR_EINVAL, what);
    ERR_clear_error(); /* the end of the file */
    return 0;
}

static int add_to_chain(SSL_CTX *ssl, X509 *cert, int n)
{
    return n == 0 ? SSL_CTX_use_certificate(ssl, cert) : (int)SSL_CTX_add1_chain_cert(ssl, cert);
}

static int use_chain(SSL_CTX *ssl, BIO *pem, struct weir_error *err)
{
    return use_certificates(ssl, pem, CHAIN_MAX, add_to_chain, "reading the certificate", err);
}

static int use_key(SSL_CTX *ssl, BIO *pem, struct weir_error *err)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(pem, NULL, no_password, NULL);
    int ok = key && SSL_CTX_use_PrivateKey(ssl, key) && SSL_CTX_check_private_key(ssl);

    EVP_PKEY_free(key);
    return ok ? 0 : weir__ssl_fail(err, WEIR_EINVAL, "reading the private key");
}

static int add_authority(SSL_CTX *ssl, X509 *cert, int n)
{
    (void)n;
    return X509_STORE_add_cert(SSL_CTX_get_cert_store(ssl), cert) &&
           SSL_CTX_add_client_CA(ssl, cert);
}

static int use_authorities(SSL_CTX *ssl, BIO *pem, struct weir_error *err)
{
    return use_certificates(ssl, pem, AUTHORITIES_MAX, add_authority, "reading the authorities",
                            err);
}

static int use_pem(SSL_CTX *ssl, const char *file, struct weir__bytes memory,
                   int (*use)(SSL_CTX *, BIO *, struct weir_error *), struct weir_error *err)
{
    BIO *pem;
    int rc;

    if (!file && !memory.at) return 0;
    pem = open_pem(file, memory);
    rc = pem ? use(ssl, pem, err) : weir__ssl_fail(err, WEIR_ENOTFOUND, "opening");
    BIO_free(pem);
    return rc == 0 || !file ? rc : weir__wrap(err, rc, "%s", file);
}

static int set_trust(struct weir__tls_context *c, const struct weir__tls_options *o,
                     struct weir_error *err)
{
    bool known = o->authorities_file || o->authorities.at;
    int rc = use_pem(c->ssl, o->authorities_file, o->authorities, use_authorities, err);

    if (rc != 0) return rc;
    if (o->ask_certificate && !o->client && !known)
        return weir__fail(err, WEIR_EINVAL, "asking clients for certificates needs authorities");
    if (o->client && !known && !o->trust_anyone && !SSL_CTX_set_default_verify_paths(c->ssl))
        return weir__ssl_fail(err, WEIR_EIO, "finding what the system trusts");
    if (o->client ? !o->trust_anyone : o->ask_certificate)
        SSL_CTX_set_verify(c->ssl, SSL_VERIFY_PEER, NULL);
    return 0;
}

static int set_rules(SSL_CTX *ssl, struct weir_error *err)
{
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_read_ahead(ssl, 1);
    if (!SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) ||
        !SSL_CTX_set_cipher_list(ssl, CIPHERS) || /* of TLS 1.2; those of 1.3 are good */
        !SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"weir", 4))
        return weir__ssl_fail(err, WEIR_EIO, "setting up TLS");
    return 0;
}

int weir__tls_context_new(struct weir__tls_context **out, const struct weir__tls_options *o,
                          struct weir_error *err)
{
    struct weir__tls_context *c = calloc(1, sizeof *c);
    int rc = WEIR_ENOMEM;

    *out = NULL;
    if (!c) return weir__fail(err, rc, "TLS: out of memory");
    weir__mutex_init(&c->lock);
    c->client = o->client;
    c->road = make_road();
    c->ssl = SSL_CTX_new(o->client ? TLS_client_method() : TLS_server_method());
    if (!c->ssl || !c->road) {
        weir__ssl_fail(err, rc, "setting up TLS");
        goto fail;
    }
    if ((rc = set_rules(c->ssl, err)) != 0 || (rc = set_trust(c, o, err)) != 0) goto fail;
    rc = use_pem(c->ssl, o->certificate_file, o->certificate, use_chain, err);
    if (rc == 0) rc = use_pem(c->ssl, o->key_file, o->key, use_key, err);
    if (rc != 0) goto fail;
    if (!o->client && !SSL_CTX_check_private_key(c->ssl)) {
        rc = weir__ssl_fail(err, WEIR_EINVAL, "a server's certificate and key");
        goto fail;
    }
    *out = c;
    return 0;
fail:
    weir__tls_context_free(c);
    return rc;
}

void weir__tls_context_free(struct weir__tls_context *c)
{
    if (!c) return;
    SSL_CTX_free(c->ssl);
    BIO_meth_free(c->road);
    weir__mutex_fini(&c->lock);
    free(c);
}

int weir__tls_context_renew(struct weir__tls_context *c, const struct weir__tls_options *o,
                            struct weir_error *err)
{
    struct weir__tls_context *fresh;
    int rc = weir__tls_context_new(&fresh, o, err);
    SSL_CTX *old;

    if (rc != 0) return rc;
    assert(fresh->client == c->client);
    weir__mutex_lock(&c->lock);
    old = c->ssl;
    c->ssl = fresh->ssl;
    weir__mutex_unlock(&c->lock);
    fresh->ssl = old;
    weir__tls_context_free(fresh);
    return 0;
}

static SSL *begin_session(struct weir__tls_context *c)
{
    SSL *ssl;

    weir__mutex_lock(&c->lock);
    ssl = SSL_new(c->ssl);
    weir__mutex_unlock(&c->lock);
    return ssl;
}

/* A session. */

static bool set_name(SSL *ssl, const char *name)
{
    struct in6_addr any;

    if (inet_pton(AF_INET, name, &any) == 1 || inet_pton(AF_INET6, name, &any) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set_tlsext_host_name(ssl, name) && SSL_set1_host(ssl, name);
}

int weir__tls_new(struct weir__tls **out, struct weir__tls_context *c, int fd, const char *name,
                  struct weir_error *err)
{
    struct weir__tls *t = calloc(1, sizeof *t);
    BIO *road = BIO_new(c->road);

    *out = NULL;
    assert(!c->client || name);
    if (t) t->ssl = begin_session(c);
    if (!t || !t->ssl || !road || (c->client && !set_name(t->ssl, name))) {
        weir__tls_free(t);
        BIO_free(road);
        return weir__ssl_fail(err, WEIR_ENOMEM, "setting up TLS");
    }
    t->fd = fd;
    BIO_set_data(road, t);
    SSL_set_bio(t->ssl, road, road);
    if (c->client)
        SSL_set_connect_state(t->ssl);
    else
        SSL_set_accept_state(t->ssl);
    *out = t;
    return 0;
}

void weir__tls_free(struct weir__tls *t)
{
    if (!t) return;
    SSL_free(t->ssl);
    free(t);
}

static void begin_call(struct weir__tls *t)
{
    ERR_clear_error();
    t->wants_write = false;
    t->errnum = 0;
}

/* What a call that did not move anything means. */
static enum weir__flow judge(struct weir__tls *t, int rc, const char *what, struct weir_error *err)
{
    long verdict = SSL_get_verify_result(t->ssl);

    switch (SSL_get_error(t->ssl, rc)) {
    case SSL_ERROR_WANT_READ: return WEIR__FLOW_WAIT;
    case SSL_ERROR_WANT_WRITE: t->wants_write = true; return WEIR__FLOW_WAIT;
    case SSL_ERROR_ZERO_RETURN: return WEIR__FLOW_ENDED;
    case SSL_ERROR_SYSCALL:
        if (t->errnum == 0) return WEIR__FLOW_ENDED; /* it has no goodbye, and needs none */
        weir__fail_errno(err, t->errnum, what);
        if (err) err->code = WEIR_EUNREACHABLE;
        return WEIR__FLOW_FAILED;
    default:
        weir__ssl_fail(err, WEIR_EDENIED, what);
        if (verdict != X509_V_OK)
            weir__fail(err, WEIR_EDENIED, "%s: the certificate is not good: %s", what,
                       X509_verify_cert_error_string(verdict));
        return WEIR__FLOW_FAILED;
    }
}

enum weir__flow weir__tls_handshake(struct weir__tls *t, struct weir_error *err)
{
    int rc;

    begin_call(t);
    rc = SSL_do_handshake(t->ssl);
    return rc == 1 ? WEIR__FLOW_MOVED : judge(t, rc, "TLS handshake", err);
}

enum weir__flow weir__tls_read(struct weir__tls *t, uint8_t *to, size_t room, size_t *got,
                               struct weir_error *err)
{
    begin_call(t);
    *got = 0;
    if (SSL_read_ex(t->ssl, to, room, got)) return WEIR__FLOW_MOVED;
    return judge(t, 0, "TLS", err);
}

enum weir__flow weir__tls_write(struct weir__tls *t, struct weir__bytes b, size_t *put,
                                struct weir_error *err)
{
    begin_call(t);
    *put = 0;
    if (SSL_write_ex(t->ssl, b.at, b.len, put)) return WEIR__FLOW_MOVED;
    return judge(t, 0, "TLS", err);
}

enum weir__flow weir__tls_end(struct weir__tls *t, struct weir_error *err)
{
    int rc;

    begin_call(t);
    rc = SSL_shutdown(t->ssl);
    return rc >= 0 ? WEIR__FLOW_MOVED : judge(t, rc, "TLS", err);
}

bool weir__tls_wants_write(const struct weir__tls *t)
{
    return t->wants_write;
}

bool weir__tls_pending(const struct weir__tls *t)
{
    return SSL_has_pending(t->ssl);
}

bool weir__tls_subject(const struct weir__tls *t, char *to, size_t room)
{
    X509 *cert = SSL_get1_peer_certificate(t->ssl);
    BIO *text = BIO_new(BIO_s_mem());
    bool there = false;
    int n;

    if (cert && text && SSL_get_verify_result(t->ssl) == X509_V_OK &&
        X509_NAME_print_ex(text, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253) >= 0) {
        n = BIO_read(text, to, room > INT_MAX ? INT_MAX : (int)room - 1);
        to[n > 0 ? n : 0] = '\0';
        there = true;
    }
    BIO_free(text);
    X509_free(cert);
    return there;
}

bool weir__tls_identify(const struct weir__tls *t, struct weir__tls_identity *out)
{
    X509 *cert = SSL_get1_peer_certificate(t->ssl);
    bool known = cert && SSL_get_verify_result(t->ssl) == X509_V_OK &&
                 weir__certificate_name(cert, out->name, sizeof out->name);

    if (known) out->until_s = weir__certificate_until_ms(cert) / 1000;
    X509_free(cert);
    return known;
}
