/* authority.c - see authority.h. In the folder:
 *
 *     lock                     held while something is made
 *     ca.key      ca.pem       the authority
 *     server.key  server.pem   whom it vouches for
 *
 * A key is made before its certificate and never again, so whatever a crash leaves behind can be
 * gone on with: a key without a certificate gets one. */
#include "io/authority.h"

#include <arpa/inet.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "io/certificate.h"
#include "io/vault.h"

#define CA_KEY "ca.key"
#define CA_PEM "ca.pem"
#define SERVER_KEY "server.key"
#define SERVER_PEM "server.pem"
#define DAY_MS (24LL * 3600 * 1000)

struct parts {
    EVP_PKEY *ca_key, *server_key;
    X509 *ca, *server;
};

static void free_parts(struct parts *p)
{
    EVP_PKEY_free(p->ca_key);
    EVP_PKEY_free(p->server_key);
    X509_free(p->ca);
    X509_free(p->server);
}

/* Reading: WEIR_ENOTFOUND leaves NULL. */

static int wrap_path(struct weir_error *err, int rc, const struct weir__vault *v, const char *name)
{
    return weir__wrap(err, rc, "%s/%s", v->path, name);
}

static int load_key(const struct weir__vault *v, const char *name, EVP_PKEY **out,
                    struct weir_error *err)
{
    struct weir__vault_file f;
    int rc = weir__vault_read(v, name, true, &f, err);

    if (rc != 0) return rc;
    rc = weir__key_parse(out, weir__bytes_of(f.bytes, f.len), err);
    OPENSSL_cleanse(&f, sizeof f);
    return rc == 0 ? 0 : wrap_path(err, rc, v, name);
}

static int load_certificate(const struct weir__vault *v, const char *name, X509 **out,
                            struct weir_error *err)
{
    struct weir__vault_file f;
    int rc = weir__vault_read(v, name, false, &f, err);

    if (rc != 0) return rc;
    rc = weir__certificate_parse(out, weir__bytes_of(f.bytes, f.len), err);
    return rc == 0 ? 0 : wrap_path(err, rc, v, name);
}

static int load_parts(const struct weir__vault *v, struct parts *p, struct weir_error *err)
{
    struct weir_error why = {0};
    int rc = load_key(v, CA_KEY, &p->ca_key, &why);

    if (rc == 0 || rc == WEIR_ENOTFOUND) rc = load_certificate(v, CA_PEM, &p->ca, &why);
    if (rc == 0 || rc == WEIR_ENOTFOUND) rc = load_key(v, SERVER_KEY, &p->server_key, &why);
    if (rc == 0 || rc == WEIR_ENOTFOUND) rc = load_certificate(v, SERVER_PEM, &p->server, &why);
    if (rc == 0 || rc == WEIR_ENOTFOUND) return 0;
    return weir__fail(err, rc, "%s", why.text);
}

/* Checking: that what is there belongs together. */

static int check_pair(const struct weir__vault *v, X509 *cert, const char *cert_name, EVP_PKEY *key,
                      const char *key_name, struct weir_error *err)
{
    if (!cert || !key || X509_check_private_key(cert, key)) return 0;
    return weir__fail(err, WEIR_ECORRUPT, "%s: %s is not the key of %s: move both away", v->path,
                      key_name, cert_name);
}

static int check_authority(const struct weir__vault *v, const struct parts *p, int64_t now_ms,
                           struct weir_error *err)
{
    int rc;

    if (!p->ca) return 0;
    rc = weir__certificate_check_authority(p->ca, err);
    if (rc != 0) return wrap_path(err, rc, v, CA_PEM);
    if (weir__certificate_until_ms(p->ca) > now_ms)
        return check_pair(v, p->ca, CA_PEM, p->ca_key, CA_KEY, err);
    return weir__fail(err, WEIR_ECORRUPT,
                      "%s/%s: the authority has run out: remove the folder, a new one will be made "
                      "and has to be trusted",
                      v->path, CA_PEM);
}

static int check_server(const struct weir__vault *v, const struct parts *p, struct weir_error *err)
{
    int rc;

    if (!p->server) return 0;
    if (!p->server_key)
        return weir__fail(err, WEIR_ECORRUPT, "%s: %s is there but not %s: move it away", v->path,
                          SERVER_PEM, SERVER_KEY);
    rc = check_pair(v, p->server, SERVER_PEM, p->server_key, SERVER_KEY, err);
    if (rc != 0 || !p->ca) return rc;
    rc = weir__certificate_check_server(p->server, p->ca, err);
    return rc == 0 ? 0 : wrap_path(err, rc, v, SERVER_PEM);
}

/* Making. */

static int make_key(const struct weir__vault *v, const char *name, EVP_PKEY **key,
                    struct weir_error *err)
{
    BIO *pem = NULL;
    int rc;

    if (*key) return 0;
    rc = weir__key_make(key, err);
    if (rc == 0) rc = weir__key_print(&pem, *key, err);
    if (rc == 0) rc = weir__vault_write(v, name, true, weir__pem_bytes(pem), err);
    BIO_free(pem);
    return rc;
}

static int save_certificate(const struct weir__vault *v, const char *name, X509 *cert,
                            struct weir_error *err)
{
    BIO *pem = NULL;
    int rc = weir__certificate_print(&pem, cert, err);

    if (rc == 0) rc = weir__vault_write(v, name, false, weir__pem_bytes(pem), err);
    BIO_free(pem);
    return rc;
}

static int make_authority(const struct weir__vault *v, struct parts *p, int64_t now_ms,
                          struct weir_error *err)
{
    int rc;

    if (p->ca) return 0;
    rc = make_key(v, CA_KEY, &p->ca_key, err);
    if (rc == 0)
        rc = weir__certificate_make_authority(&p->ca, p->ca_key, now_ms,
                                              now_ms + WEIR__AUTHORITY_DAYS * DAY_MS, err);
    return rc == 0 ? save_certificate(v, CA_PEM, p->ca, err) : rc;
}

/* A certificate from the future is one whose maker's clock was wrong. */
static bool is_fresh(const X509 *cert, int64_t now_ms)
{
    return weir__certificate_from_ms(cert) <= now_ms &&
           weir__certificate_until_ms(cert) - now_ms > WEIR__AUTHORITY_RENEW_DAYS * DAY_MS;
}

/* Its days are counted from its beginning, a day ago; and it never outlives the authority. */
static int make_server(const struct weir__vault *v, struct parts *p, const char *address,
                       int64_t now_ms, struct weir_error *err)
{
    int64_t until_ms = now_ms + (WEIR__AUTHORITY_SERVER_DAYS - 1) * DAY_MS;
    X509 *before = p->server;
    int rc;

    if (before && is_fresh(before, now_ms) &&
        (!address || weir__certificate_has_address(before, address)))
        return 0;
    if (!p->ca_key)
        return weir__fail(err, WEIR_ECORRUPT, "%s: %s is missing, so %s cannot be made", v->path,
                          CA_KEY, SERVER_PEM);
    if (until_ms > weir__certificate_until_ms(p->ca)) until_ms = weir__certificate_until_ms(p->ca);
    p->server = NULL;
    rc = make_key(v, SERVER_KEY, &p->server_key, err);
    if (rc == 0)
        rc = weir__certificate_make_server(&p->server, p->server_key, p->ca, p->ca_key, address,
                                           before, now_ms, until_ms, err);
    X509_free(before);
    return rc == 0 ? save_certificate(v, SERVER_PEM, p->server, err) : rc;
}

/* Telling. */

static int tell(struct weir__authority *out, const char *dir, const struct parts *p,
                struct weir_error *err)
{
    size_t room = sizeof out->ca_file;

    if (strlen(dir) + sizeof "/" SERVER_KEY > room)
        return weir__fail(err, WEIR_ETOOBIG, "%.64s...: the path is too long", dir);
    snprintf(out->ca_file, room, "%s/%s", dir, CA_PEM);
    snprintf(out->certificate_file, room, "%s/%s", dir, SERVER_PEM);
    snprintf(out->key_file, room, "%s/%s", dir, SERVER_KEY);
    weir__certificate_name(p->ca, out->name, sizeof out->name);
    weir__certificate_fingerprint(p->ca, out->fingerprint, sizeof out->fingerprint);
    out->ca_until_ms = weir__certificate_until_ms(p->ca);
    out->certificate_until_ms = weir__certificate_until_ms(p->server);
    return 0;
}

/* Others the authority may not vouch for. */
static bool is_loopback(const char *address)
{
    struct in_addr in;

    return inet_pton(AF_INET, address, &in) == 1 && ntohl(in.s_addr) >> 24 == 127;
}

int weir__authority_ensure(struct weir__authority *out, const char *dir, int64_t now_ms,
                           struct weir_error *err)
{
    return weir__authority_ensure_for(out, dir, NULL, now_ms, err);
}

int weir__authority_ensure_for(struct weir__authority *out, const char *dir, const char *address,
                               int64_t now_ms, struct weir_error *err)
{
    struct weir__vault v;
    struct parts p = {0};
    int rc = weir__vault_make(&v, dir, WEIR__AUTHORITY_LOCK_MS, err);

    if (rc == 0) rc = load_parts(&v, &p, err);
    if (rc == 0) rc = check_authority(&v, &p, now_ms, err);
    if (rc == 0) rc = make_authority(&v, &p, now_ms, err);
    if (rc == 0) rc = check_server(&v, &p, err);
    if (address && !is_loopback(address)) address = NULL;
    if (rc == 0) rc = make_server(&v, &p, address, now_ms, err);
    if (rc == 0) rc = tell(out, dir, &p, err);
    free_parts(&p);
    weir__vault_close(&v);
    return rc == 0 ? 0 : weir__wrap(err, rc, "local authority");
}

int weir__authority_look(struct weir__authority *out, const char *dir, int64_t now_ms,
                         struct weir_error *err)
{
    struct weir__vault v;
    struct parts p = {0};
    int rc = weir__vault_open(&v, dir, err);

    if (rc == 0) rc = load_parts(&v, &p, err);
    if (rc == 0 && (!p.ca || !p.server))
        rc = weir__fail(err, WEIR_ENOTFOUND, "%s: nothing has been made here yet", dir);
    if (rc == 0) rc = check_authority(&v, &p, now_ms, err);
    if (rc == 0) rc = check_server(&v, &p, err);
    if (rc == 0) rc = tell(out, dir, &p, err);
    free_parts(&p);
    weir__vault_close(&v);
    return rc == 0 ? 0 : weir__wrap(err, rc, "local authority");
}
