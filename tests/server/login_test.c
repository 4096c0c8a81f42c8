/* A server on free ports, and those who come to it: with certificates, with too much time, with
 * other protocols. What they send is written out byte by byte. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "io/certificate.h"
#include "server/server.h"
#include "server/state.h"
#include "support/patience.h"
#include "support/tempdir.h"

#define PATIENCE_S 20
#define TOKEN_MS 2000 /* long enough for a handshake on a busy machine */
#define LOG_BYTES 8192

#define SASL "AMQP\3\1\0\0"
#define AMQP "AMQP\0\1\0\0"
#define EXTERNAL                                                                                   \
    "\0\0\0\x18\2\1\0\0\0\x53\x41\xc0\x0b\1\xa3\x08"                                               \
    "EXTERNAL"
#define ANONYMOUS                                                                                  \
    "\0\0\0\x19\2\1\0\0\0\x53\x41\xc0\x0c\1\xa3\x09"                                               \
    "ANONYMOUS"
#define OPEN "\0\0\0\x12\2\0\0\0\0\x53\x10\xc0\5\1\xa1\2me"
#define OPEN_IMPATIENT /* who wants to hear something in 500 ms */                                 \
    "\0\0\0\x1a\2\0\0\0\0\x53\x10\xc0\x0d\5\xa1\2me\x40\x40\x40\x70\0\0\1\xf4"
#define BEAT_MS 200 /* so it hears something after so long */
#define EMPTY "\0\0\0\x08\2\0\0\0"

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

struct scene {
    char dir[TEMPDIR_BYTES];
    struct weir__namespace *ns;
    struct weir__tls_context *tls;
    struct weir__server *server;
    struct identity authority, host, alice, nobody;
    struct weir__mutex lock; /* for the log */
    char log[LOG_BYTES];
};

/* One end of a connection to the server; with TLS when ssl is there. */
struct peer {
    int fd;
    SSL_CTX *context;
    SSL *ssl;
};

/* ---- the scene ---- */

static void keep_line(enum weir__level level, const char *room, const char *line, void *user)
{
    struct scene *s = user;
    size_t len;

    (void)level;
    (void)room;
    weir__mutex_lock(&s->lock);
    len = strlen(s->log);
    snprintf(s->log + len, sizeof s->log - len, "%s\n", line);
    weir__mutex_unlock(&s->lock);
}

/* issuer NULL: itself, an authority. */
static void make_identity(struct identity *i, const char *name, const struct identity *issuer)
{
    X509_NAME *subject;
    X509_EXTENSION *x;

    assert_int_equal(weir__key_make(&i->key, NULL), 0);
    i->certificate = X509_new();
    X509_set_version(i->certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(i->certificate), issuer ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(i->certificate), -3600);
    X509_gmtime_adj(X509_getm_notAfter(i->certificate), 3600);
    X509_set_pubkey(i->certificate, i->key);
    subject = X509_get_subject_name(i->certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)name, -1, -1, 0);
    X509_set_issuer_name(i->certificate,
                         issuer ? X509_get_subject_name(issuer->certificate) : subject);
    x = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints,
                            issuer ? "CA:FALSE" : "critical,CA:TRUE");
    X509_add_ext(i->certificate, x, -1);
    X509_EXTENSION_free(x);
    assert_true(X509_sign(i->certificate, issuer ? issuer->key : i->key, EVP_sha256()));
}

static void free_identity(struct identity *i)
{
    X509_free(i->certificate);
    EVP_PKEY_free(i->key);
}

static void make_context(struct scene *s)
{
    struct weir__tls_options o = {.ask_certificate = true};
    BIO *key = NULL, *certificate = NULL, *authority = NULL;

    assert_int_equal(weir__key_print(&key, s->host.key, NULL), 0);
    assert_int_equal(weir__certificate_print(&certificate, s->host.certificate, NULL), 0);
    assert_int_equal(weir__certificate_print(&authority, s->authority.certificate, NULL), 0);
    o.key = weir__pem_bytes(key);
    o.certificate = weir__pem_bytes(certificate);
    o.authorities = weir__pem_bytes(authority);
    assert_int_equal(weir__tls_context_new(&s->tls, &o, NULL), 0);
    BIO_free(key);
    BIO_free(certificate);
    BIO_free(authority);
}

static void start_server(struct scene *s, uint32_t token_ms)
{
    struct weir__server_options o = {.ns = s->ns,
                                     .amqp = "127.0.0.1:0",
                                     .amqps = "127.0.0.1:0",
                                     .http = "127.0.0.1:0",
                                     .tls = s->tls,
                                     .loops = 1,
                                     .token_ms = token_ms,
                                     .logger = {.fn = keep_line, .user = s}};

    assert_int_equal(weir__server_start(&s->server, &o, NULL), 0);
}

static int set_up(void **state)
{
    struct scene *s = calloc(1, sizeof *s);
    struct weir__rule rule = {.name = "alice", .rights = WEIR__RIGHT_SEND};
    struct weir__hub_config hub = {.name = "eh1", .partitions = 1};

    assert_int_equal(tempdir_make(s->dir), 0);
    weir__mutex_init(&s->lock);
    assert_int_equal(weir__namespace_open(&s->ns, s->dir, NULL, NULL), 0);
    assert_int_equal(weir__namespace_rule_add(s->ns, NULL, &rule, NULL), 0);
    assert_int_equal(weir__namespace_hub_create(s->ns, &hub, NULL), 0);
    make_identity(&s->authority, "an authority", NULL);
    make_identity(&s->host, "localhost", &s->authority);
    make_identity(&s->alice, "alice", &s->authority);
    make_identity(&s->nobody, "nobody", &s->authority);
    make_context(s);
    start_server(s, TOKEN_MS);
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *s = *state;

    weir__server_stop(s->server);
    weir__tls_context_free(s->tls);
    weir__namespace_close(s->ns, NULL);
    free_identity(&s->authority);
    free_identity(&s->host);
    free_identity(&s->alice);
    free_identity(&s->nobody);
    weir__mutex_fini(&s->lock);
    tempdir_remove(s->dir);
    free(s);
    return 0;
}

static bool logged(struct scene *s, const char *text)
{
    bool found;

    weir__mutex_lock(&s->lock);
    found = strstr(s->log, text) != NULL;
    weir__mutex_unlock(&s->lock);
    return found;
}

/* ---- a peer ---- */

static struct peer dial(const char *address)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    struct peer p = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)strtoul(strrchr(address, ':') + 1, NULL, 10));
    setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(connect(p.fd, (struct sockaddr *)&to, sizeof to), 0);
    return p;
}

/* As in patience.h. */
static bool was_interrupted(const struct peer *p, int rc)
{
    return SSL_get_error(p->ssl, rc) == SSL_ERROR_WANT_READ && errno == EINTR;
}

static struct peer dial_tls(struct scene *s, const struct identity *who)
{
    struct peer p = dial(weir__server_amqps(s->server));
    int rc;

    p.context = SSL_CTX_new(TLS_client_method());
    if (who) {
        SSL_CTX_use_certificate(p.context, who->certificate);
        SSL_CTX_use_PrivateKey(p.context, who->key);
    }
    p.ssl = SSL_new(p.context);
    SSL_set_fd(p.ssl, p.fd);
    do {
        rc = SSL_connect(p.ssl);
    } while (rc != 1 && was_interrupted(&p, rc));
    assert_int_equal(rc, 1);
    return p;
}

static void hang_up(struct peer *p)
{
    SSL_free(p->ssl);
    SSL_CTX_free(p->context);
    close(p->fd);
}

#define SAY(p, text) say(p, text, sizeof text - 1)

static void say(struct peer *p, const void *at, size_t len)
{
    ssize_t n = p->ssl ? SSL_write(p->ssl, at, (int)len) : send(p->fd, at, len, MSG_NOSIGNAL);

    assert_int_equal(n, len);
}

/* Up to `len` bytes, fewer at the end. */
static size_t hear(struct peer *p, void *to, size_t len)
{
    size_t got = 0;

    if (!p->ssl) return patience_recv_all(p->fd, to, len);
    while (got < len) {
        int n = SSL_read(p->ssl, (char *)to + got, (int)(len - got));
        if (n > 0)
            got += (size_t)n;
        else if (!was_interrupted(p, n))
            break;
    }
    return got;
}

/* A frame: its bytes behind the head; 0 at the end. */
static size_t hear_frame(struct peer *p, uint8_t *to, size_t room)
{
    uint8_t head[8];
    size_t len;

    if (hear(p, head, sizeof head) < sizeof head) return 0;
    len = (size_t)head[2] << 8 | head[3];
    assert_in_range(len, 8, room);
    return hear(p, to, len - 8);
}

static bool has(const uint8_t *at, size_t len, const char *text)
{
    return memmem(at, len, text, strlen(text)) != NULL;
}

/* Whether EXTERNAL is among the mechanisms that are offered. */
static bool is_offered_external(struct peer *p)
{
    uint8_t bytes[512] = {0};
    size_t len;

    SAY(p, SASL);
    assert_int_equal(hear(p, bytes, 8), 8);
    assert_memory_equal(bytes, SASL, 8);
    len = hear_frame(p, bytes, sizeof bytes);
    assert_true(has(bytes, len, "MSSBCBS"));
    return has(bytes, len, "EXTERNAL");
}

/* The code of the outcome. */
static int hear_outcome(struct peer *p)
{
    uint8_t bytes[64] = {0};
    size_t len = hear_frame(p, bytes, sizeof bytes);

    assert_in_range(len, 8, 20);
    assert_int_equal(bytes[2], 0x44);
    assert_int_equal(bytes[6], 0x50); /* an ubyte */
    return bytes[7];
}

/* ---- certificates ---- */

static void external_is_offered_to_those_with_a_certificate(void **state)
{
    struct scene *s = *state;
    struct peer p = dial(weir__server_amqp(s->server));

    assert_false(is_offered_external(&p));
    hang_up(&p);
    p = dial_tls(s, NULL);
    assert_false(is_offered_external(&p));
    hang_up(&p);
    p = dial_tls(s, &s->nobody);
    assert_true(is_offered_external(&p));
    hang_up(&p);
}

/* Who does not have one, and says EXTERNAL all the same, is not let in. */
static void external_needs_a_certificate(void **state)
{
    struct scene *s = *state;
    struct peer p = dial(weir__server_amqp(s->server));

    is_offered_external(&p);
    SAY(&p, EXTERNAL);
    assert_int_equal(hear_outcome(&p), 1);
    hang_up(&p);
}

/* A frame of AMQP with a list of up to 255 bytes. */
static void say_frame(struct peer *p, uint8_t code, uint8_t fields, const void *list, size_t len)
{
    uint8_t frame[300] = {0, 0, 0, (uint8_t)(14 + len), 2, 0, 0, 0, 0, 0x53, code, 0xc0};

    frame[12] = (uint8_t)(len + 1);
    frame[13] = fields;
    memcpy(frame + 14, list, len);
    say(p, frame, 14 + len);
}

#define SAY_FRAME(p, code, fields, list) say_frame(p, code, fields, list, sizeof list - 1)
#define BEGIN "\x40\x43\x52\x64\x52\x64"
#define CBS "\xc0\x07\1\xa1\4$cbs"

/* Comes in with these, as far as the server's open. */
static void come_in_as(struct peer *p, const char *init, size_t len, const char *open,
                       size_t open_len)
{
    uint8_t bytes[1024] = {0};

    is_offered_external(p);
    say(p, init, len);
    assert_int_equal(hear_outcome(p), 0);
    SAY(p, AMQP);
    say(p, open, open_len);
    assert_int_equal(hear(p, bytes, 8), 8);
    assert_memory_equal(bytes, AMQP, 8);
    assert_true(hear_frame(p, bytes, sizeof bytes) > 2);
    assert_int_equal(bytes[2], 0x10);
}

static void come_in(struct peer *p, const char *init, size_t len)
{
    come_in_as(p, init, len, OPEN, sizeof OPEN - 1);
}

/* What becomes of the next frames: the code of the first that is none of attach, begin and flow,
 * or 0x13 when there is credit. */
static uint8_t hear_verdict(struct peer *p, uint8_t *to, size_t room, size_t *len)
{
    do {
        *len = hear_frame(p, to, room);
        assert_true(*len > 2);
    } while (to[2] == 0x11 || to[2] == 0x12);
    return to[2];
}

static void a_certificate_has_the_rights_of_its_rule(void **state)
{
    struct scene *s = *state;
    struct peer p = dial_tls(s, &s->alice);
    uint8_t bytes[1024] = {0};
    size_t len;

    come_in(&p, EXTERNAL, sizeof EXTERNAL - 1);
    assert_true(logged(s, ": logged in, with TLS\n"));
    SAY_FRAME(&p, 0x11, 4, BEGIN);
    SAY_FRAME(&p, 0x12, 7, "\xa1\1s\x43\x42\x40\x40\0\x53\x28\x45\0\x53\x29\xc0\6\1\xa1\3eh1");
    assert_int_equal(hear_verdict(&p, bytes, sizeof bytes, &len), 0x13); /* credit */
    SAY_FRAME(&p, 0x12, 7,
              "\xa1\1r\x52\1\x41\x40\x40\0\x53\x28\xc0\x2b\1\xa1\x28"
              "eh1/ConsumerGroups/$Default/Partitions/0\0\x53\x29\x45");
    assert_int_equal(hear_verdict(&p, bytes, sizeof bytes, &len), 0x16); /* detach */
    assert_true(has(bytes, len, "amqp:unauthorized-access"));
    assert_true(has(bytes, len, "'Listen' claim(s) are required"));
    hang_up(&p);
}

static void a_certificate_without_a_rule_is_refused(void **state)
{
    struct scene *s = *state;
    struct peer p = dial_tls(s, &s->nobody);

    assert_true(is_offered_external(&p));
    SAY(&p, EXTERNAL);
    assert_int_equal(hear_outcome(&p), 1);
    assert_true(logged(s, "the certificate is of 'nobody', and there is no access rule of this "
                          "name"));
    hang_up(&p);
}

static void nobody_is_somebody_else(void **state)
{
    static const char as_alice[] = "\0\0\0\x1f\2\1\0\0\0\x53\x41\xc0\x12\2\xa3\x08"
                                   "EXTERNAL\xa0\5alice";
    struct scene *s = *state;
    struct peer p = dial_tls(s, &s->nobody);

    assert_true(is_offered_external(&p));
    SAY(&p, as_alice);
    assert_int_equal(hear_outcome(&p), 1);
    assert_true(logged(s, "the certificate is of 'nobody', not of 'alice'"));
    hang_up(&p);
    p = dial_tls(s, &s->alice); /* who may say so */
    come_in(&p, as_alice, sizeof as_alice - 1);
    hang_up(&p);
}

static void a_certificate_of_somebody_else_ends_it(void **state)
{
    struct scene *s = *state;
    struct identity stranger;
    struct peer p;
    char byte;

    make_identity(&stranger, "alice", NULL);
    p = dial_tls(s, &stranger); /* in TLS 1.3 a client learns of it when it reads */
    assert_int_equal(hear(&p, &byte, 1), 0);
    hang_up(&p);
    free_identity(&stranger);
    weir__server_stop(s->server);
    s->server = NULL;
    weir__server_stop(s->server); /* the line may come behind what the client hears */
    s->server = NULL;
    assert_true(logged(s, "TLS handshake: the certificate is not good"));
}

/* ---- rules that go ---- */

#define ATTACH_SENDER "\xa1\1s\x43\x42\x40\x40\0\x53\x28\x45\0\x53\x29\xc0\6\1\xa1\3eh1"

/* With a link that may send. Then the rule goes: the link is told so, and the next is refused. */
static void end_with_the_rule(struct scene *s, struct peer *p)
{
    uint8_t bytes[1024] = {0};
    size_t len;

    SAY_FRAME(p, 0x11, 4, BEGIN);
    SAY_FRAME(p, 0x12, 7, ATTACH_SENDER);
    assert_int_equal(hear_verdict(p, bytes, sizeof bytes, &len), 0x13); /* credit */
    assert_int_equal(weir__namespace_rule_remove(s->ns, NULL, "alice", NULL), 0);
    assert_int_equal(hear_verdict(p, bytes, sizeof bytes, &len), 0x16); /* detach */
    assert_true(has(bytes, len, "amqp:unauthorized-access"));
    SAY_FRAME(p, 0x16, 2, "\x43\x41");
    SAY_FRAME(p, 0x12, 7, ATTACH_SENDER);
    assert_int_equal(hear_verdict(p, bytes, sizeof bytes, &len), 0x16);
    assert_true(has(bytes, len, "'Send' claim(s) are required"));
}

static void a_certificate_ends_with_its_rule(void **state)
{
    struct scene *s = *state;
    struct peer p = dial_tls(s, &s->alice);

    come_in(&p, EXTERNAL, sizeof EXTERNAL - 1);
    end_with_the_rule(s, &p);
    hang_up(&p);
}

static void a_key_ends_with_its_rule(void **state)
{
    struct scene *s = *state;
    struct peer p = dial(weir__server_amqp(s->server));
    struct weir__rule rule;
    uint32_t count;
    char init[128] = "\0\0\0\x4a\2\1\0\0\0\x53\x41\xc0\x3d\2\xa3\5PLAIN\xa0\x33";

    assert_int_equal(weir__namespace_rules(s->ns, NULL, &rule, 1, &count, NULL), 0);
    assert_int_equal(strlen(rule.key[0]), 44);
    memcpy(init + 24, "alice", 5); /* behind a NUL */
    memcpy(init + 30, rule.key[0], 44);
    come_in(&p, init, 74);
    assert_true(logged(s, ": logged in\n"));
    end_with_the_rule(s, &p);
    hang_up(&p);
}

/* ---- time ---- */

static int64_t since_ms(int64_t began_ns)
{
    return (weir__mono_ns() - began_ns) / 1000000;
}

/* Nothing, and one byte after the other: closed, whatever comes. */
static void who_takes_his_time_is_closed(void **state)
{
    struct scene *s = *state;
    struct peer quiet = dial(weir__server_amqp(s->server));
    struct peer slow = dial(weir__server_amqp(s->server));
    const struct timespec step = {.tv_nsec = TOKEN_MS / 6 * 1000000L};
    int64_t began = weir__mono_ns();
    uint8_t byte;
    int sent = 0;

    while (sent < 8 && send(slow.fd, &SASL[sent], 1, MSG_NOSIGNAL) == 1 &&
           recv(slow.fd, &byte, 1, MSG_DONTWAIT) != 0 && ++sent)
        nanosleep(&step, NULL);
    assert_in_range(sent, 1, 7);
    assert_int_equal(hear(&quiet, &byte, 1), 0);
    assert_in_range(since_ms(began), TOKEN_MS - 20, 5000);
    hang_up(&quiet);
    hang_up(&slow);
}

/* Comes in as anybody may, keeps the connection alive, and never shows a token. */
static void who_shows_no_token_is_closed(void **state)
{
    struct scene *s = *state;
    struct peer p = dial(weir__server_amqp(s->server));
    const struct timespec step = {.tv_nsec = 50000000};
    int64_t began = weir__mono_ns();
    uint8_t bytes[1024] = {0};
    size_t len;

    come_in(&p, ANONYMOUS, sizeof ANONYMOUS - 1);
    while (recv(p.fd, bytes, 1, MSG_DONTWAIT | MSG_PEEK) < 0) {
        SAY(&p, EMPTY);
        nanosleep(&step, NULL);
    }
    assert_in_range(since_ms(began), TOKEN_MS - 20, 5000);
    len = hear_frame(&p, bytes, sizeof bytes);
    assert_int_equal(bytes[2], 0x18); /* close */
    assert_true(has(bytes, len, "amqp:unauthorized-access"));
    assert_true(has(bytes, len, "No token was presented within 2 seconds."));
    hang_up(&p);
}

/* A request to $cbs with a token that is none. */
#define WRONG_TOKEN                                                                                \
    "\0\0\0\x79\2\0\0\0\0\x53\x14\xc0\x09\5\x43\x52\0\xa0\1t\x43\x41\0\x53\x73\xc0\4\1\xa1\1i"     \
    "\0\x53\x74\xc1\x4f\6\xa1\x09operation\xa1\x09put-token"                                       \
    "\xa1\4type\xa1\x1fservicebus.windows.net:"                                                    \
    "sastoken\xa1\4name\xa1\x09localhost\0\x53\x77\xa1\1x"

/* Its token was refused, which it was told: it may come again, and with this condition clients do. */
static void whose_token_was_refused_may_come_again(void **state)
{
    struct scene *s = *state;
    struct peer p = dial(weir__server_amqp(s->server));
    uint8_t bytes[1024] = {0};
    size_t len;

    come_in(&p, ANONYMOUS, sizeof ANONYMOUS - 1);
    SAY_FRAME(&p, 0x11, 4, BEGIN);
    SAY_FRAME(&p, 0x12, 10, "\xa1\1s\x43\x42\x40\x40\0\x53\x28\x45\0\x53\x29" CBS "\x40\x40\x43");
    SAY_FRAME(&p, 0x12, 7, "\xa1\1r\x52\1\x41\x40\x40\0\x53\x28" CBS "\0\x53\x29\x45");
    SAY(&p, WRONG_TOKEN);
    do {
        len = hear_frame(&p, bytes, sizeof bytes);
        assert_true(len > 2);
    } while (bytes[2] != 0x18); /* close */
    assert_true(has(bytes, len, "amqp:connection:forced"));
    assert_true(has(bytes, len, "No valid token was presented within 2 seconds."));
    hang_up(&p);
}

static long switches(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
}

/* Who was closed for it, and neither answers nor goes, takes no time from the others on its loop: they
 * hear from us when they should, and the loop rests in between. */
static void who_shows_no_token_holds_nobody_up(void **state)
{
    struct scene *s = *state;
    struct peer idler, other = dial_tls(s, &s->alice);
    uint8_t bytes[1024] = {0};
    long before;

    come_in_as(&other, EXTERNAL, sizeof EXTERNAL - 1, OPEN_IMPATIENT, sizeof OPEN_IMPATIENT - 1);
    idler = dial(weir__server_amqp(s->server));
    come_in(&idler, ANONYMOUS, sizeof ANONYMOUS - 1);
    assert_true(hear_frame(&idler, bytes, sizeof bytes) > 2);
    assert_int_equal(bytes[2], 0x18); /* close */
    before = switches();
    for (int i = 0; i < TOKEN_MS / BEAT_MS + 8; i++) { /* those of the time before lie there */
        assert_int_equal(hear(&other, bytes, sizeof EMPTY - 1), sizeof EMPTY - 1);
        assert_memory_equal(bytes, EMPTY, sizeof EMPTY - 1);
    }
    assert_in_range(switches() - before, 1, 100);
    hang_up(&idler);
    hang_up(&other);
}

static void who_has_shown_it_stays(void **state)
{
    struct scene *s = *state;
    struct peer p = dial_tls(s, &s->alice);
    struct timeval patience = {.tv_sec = 2 * TOKEN_MS / 1000};
    char byte;

    come_in(&p, EXTERNAL, sizeof EXTERNAL - 1);
    setsockopt(p.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(patience_recv(p.fd, &byte, 1), -1); /* it would be 0, or an alert */
    hang_up(&p);
}

/* ---- other protocols ---- */

struct mistake {
    bool tls;
    const char *said;
    size_t len;
    const char *answer;
    size_t answer_len;
    const char *line;
};

#define MISTAKE(tls, said, answer, line)                                                           \
    {                                                                                              \
        tls, said, sizeof said - 1, answer, sizeof answer - 1, line                                \
    }

static const struct mistake mistakes[] = {
    MISTAKE(false, "\x16\3\1\2\0\1\0\1\xfc\3\3", "\x15\3\1\0\2\2\x28", "speaks TLS, and this"),
    MISTAKE(false, "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", "speaks HTTP, and"),
    MISTAKE(false, "AMQP\0\0\x9\1", AMQP, "speaks AMQP 0-9-1, and this port AMQP 1.0"),
    MISTAKE(false, "AMQP\0\2\0\0", AMQP, "speaks an unknown AMQP"),
    MISTAKE(false, "\0\0\0\x23\0\x12\0\3\0\0\0\1", AMQP, "speaks Kafka"),
    MISTAKE(false, "hello, is anybody here?", AMQP, "speaks something else"),
    MISTAKE(true, "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n", "wants TLS: HTTP is"),
    MISTAKE(true, SASL, "AMQP\2\1\0\0", "speaks AMQP 1.0 without TLS"),
    MISTAKE(true, "AMQP\0\0\x9\1", "AMQP\2\1\0\0", "speaks AMQP 0-9-1 without TLS"),
    MISTAKE(true, "\0\0\0\x23\0\x12\0\3\0\0\0\1", "AMQP\2\1\0\0", "speaks Kafka without TLS"),
};

static void who_is_mistaken_is_told(void **state)
{
    struct scene *s = *state;

    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const struct mistake *m = &mistakes[i];
        struct peer p = dial(m->tls ? weir__server_amqps(s->server) : weir__server_amqp(s->server));
        char heard[1024] = "";
        size_t len;

        say(&p, m->said, m->len);
        len = hear(&p, heard, sizeof heard - 1); /* and then the end */
        if (m->answer[0] != 'H') assert_int_equal(len, m->answer_len);
        assert_true(len >= m->answer_len);
        assert_memory_equal(heard, m->answer, m->answer_len);
        if (m->answer[0] == 'H') assert_non_null(strstr(heard, weir__server_http(s->server)));
        if (!logged(s, m->line)) fail_msg("%zu: no line '%s' in %s", i, m->line, s->log);
        hang_up(&p);
    }
}

/* A client that does not know our authority. */
static void who_does_not_trust_us_is_told_how(void **state)
{
    struct scene *s = *state;
    struct peer p = dial(weir__server_amqps(s->server));

    p.context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_verify(p.context, SSL_VERIFY_PEER, NULL);
    p.ssl = SSL_new(p.context);
    SSL_set_fd(p.ssl, p.fd);
    assert_int_not_equal(SSL_connect(p.ssl), 1);
    weir__server_stop(s->server); /* it hears what was said before */
    s->server = NULL;
    assert_true(logged(s, "unknown ca: the client does not trust the certificate"));
    assert_true(logged(s, "weir trust says how it can"));
    hang_up(&p);
}

/* ---- memory ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ALLOCATOR_COUNTS 0
#elif defined(__has_feature)
#define ALLOCATOR_COUNTS (!__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer))
#else
#define ALLOCATOR_COUNTS 1
#endif

#define STRANGERS 50
#define REQUESTS 32
#define ID_BYTES 1500

/* A request to $cbs with a long name of its own, which the reply has to repeat. */
static void say_request(struct peer *p, uint8_t number)
{
    uint8_t frame[64 + ID_BYTES] = {0,    0,    0, 0,    2,    0, 0,    0, 0,   0x53, 0x14,
                                    0xc0, 0x09, 5, 0x43, 0x52, 0, 0xa0, 1, 't', 0x43, 0x41};
    const uint8_t head[] = {0,
                            0x53,
                            0x73,
                            0xd0,
                            0,
                            0,
                            (4 + 5 + ID_BYTES) >> 8,
                            (4 + 5 + ID_BYTES) & 0xff,
                            0,
                            0,
                            0,
                            1,
                            0xb0,
                            0,
                            0,
                            ID_BYTES >> 8,
                            ID_BYTES & 0xff};
    size_t len = 22 + sizeof head + ID_BYTES;

    frame[2] = (uint8_t)(len >> 8);
    frame[3] = (uint8_t)len;
    frame[16] = number;
    memcpy(frame + 22, head, sizeof head);
    say(p, frame, len);
}

/* Much of what a stranger may have: answers that it does not fetch, and half a frame behind them. */
static void say_much(struct peer *p)
{
    static const uint8_t half[8000] = {0, 0, 0x20, 0, 2, 0, 0, 0};

    come_in(p, ANONYMOUS, sizeof ANONYMOUS - 1);
    SAY_FRAME(p, 0x11, 4, BEGIN);
    SAY_FRAME(p, 0x12, 10, "\xa1\1s\x43\x42\x40\x40\0\x53\x28\x45\0\x53\x29" CBS "\x40\x40\x43");
    SAY_FRAME(p, 0x12, 7, "\xa1\1r\x52\1\x41\x40\x40\0\x53\x28" CBS "\0\x53\x29\x45");
    for (uint8_t i = 0; i < REQUESTS; i++) say_request(p, i);
    say(p, half, sizeof half);
}

/* What is allocated when nothing moves any more. */
static size_t allocated(void)
{
    const struct timespec step = {.tv_nsec = 20000000};
    size_t last, now = mallinfo2().uordblks;

    do {
        last = now;
        nanosleep(&step, NULL);
        now = mallinfo2().uordblks;
    } while (now != last);
    return now;
}

static void a_stranger_costs_little(void **state)
{
    struct scene *s = *state;
    struct peer p[STRANGERS];
    size_t before, each;
    char byte;

    weir__server_stop(s->server);
    start_server(s, 0);
    before = allocated();
    for (int i = 0; i < STRANGERS; i++) {
        p[i] = dial(weir__server_amqp(s->server));
        say_much(&p[i]);
    }
    each = (allocated() - before) / STRANGERS;
    /* One request with a long token, and what the engine needs beside it. */
    if (ALLOCATOR_COUNTS) assert_in_range(each, 8192, 65536 + 32768);
    for (int i = 0; i < STRANGERS; i++) {
        while (recv(p[i].fd, &byte, 1, MSG_DONTWAIT) == 1) continue;
        assert_int_equal(errno, EAGAIN); /* nobody was closed */
        hang_up(&p[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(external_is_offered_to_those_with_a_certificate),
        TEST(external_needs_a_certificate),
        TEST(a_certificate_has_the_rights_of_its_rule),
        TEST(a_certificate_without_a_rule_is_refused),
        TEST(nobody_is_somebody_else),
        TEST(a_certificate_of_somebody_else_ends_it),
        TEST(a_certificate_ends_with_its_rule),
        TEST(a_key_ends_with_its_rule),
        TEST(who_takes_his_time_is_closed),
        TEST(who_shows_no_token_is_closed),
        TEST(whose_token_was_refused_may_come_again),
        TEST(who_shows_no_token_holds_nobody_up),
        TEST(who_has_shown_it_stays),
        TEST(who_is_mistaken_is_told),
        TEST(who_does_not_trust_us_is_told_how),
        TEST(a_stranger_costs_little),
    };

    mallopt(M_ARENA_MAX, 1); /* mallinfo2 counts one */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
