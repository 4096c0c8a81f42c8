/* certificate.c - see certificate.h. The extensions are tables, in OpenSSL's own words. */
#define _GNU_SOURCE
#include "io/certificate.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <time.h>

#define SERIAL_BYTES 16
#define BEFORE_MS (24LL * 3600 * 1000)
#define VERSION_3 2
#define NAMES_BYTES 512  /* of a server: then no more are added */
#define ADDRESS_BYTES 24 /* ",IP:127.255.255.255" */

struct extension {
    int nid;
    const char *value;
};

/* The key identifiers come last: they need what stands before them. */
static const struct extension authority_extensions[] = {
    {NID_basic_constraints, "critical,CA:TRUE,pathlen:0"},
    {NID_key_usage, "critical,keyCertSign"},
    {NID_name_constraints, "critical,permitted;DNS:localhost,permitted;IP:127.0.0.0/255.0.0.0,"
                           "permitted;IP:::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    {NID_subject_key_identifier, "hash"},
    {0},
};

static const struct extension server_extensions[] = {
    {NID_basic_constraints, "critical,CA:FALSE"},
    {NID_key_usage, "critical,digitalSignature"},
    {NID_ext_key_usage, "serverAuth"},
    {NID_subject_key_identifier, "hash"},
    {NID_authority_key_identifier, "keyid:always"},
    {0},
};

int weir__ssl_fail(struct weir_error *err, int code, const char *what)
{
    unsigned long e = ERR_get_error();
    const char *reason = e ? ERR_reason_error_string(e) : NULL;

    ERR_clear_error();
    if (e && ERR_SYSTEM_ERROR(e)) return weir__fail_errno(err, ERR_GET_REASON(e), what);
    return weir__fail(err, code, "%s: %s", what, reason ? reason : "no reason given");
}

/* PEM. */

static int no_password(char *to, int room, int writing, void *user)
{
    (void)to;
    (void)room;
    (void)writing;
    (void)user;
    return 0; /* never ask on a terminal */
}

static BIO *open_pem(struct weir__bytes pem)
{
    return pem.len <= INT_MAX ? BIO_new_mem_buf(pem.at, (int)pem.len) : NULL;
}

int weir__key_make(EVP_PKEY **out, struct weir_error *err)
{
    *out = EVP_EC_gen("P-256");
    return *out ? 0 : weir__ssl_fail(err, WEIR_EIO, "making a key");
}

int weir__key_parse(EVP_PKEY **out, struct weir__bytes pem, struct weir_error *err)
{
    BIO *in = open_pem(pem);

    *out = in ? PEM_read_bio_PrivateKey(in, NULL, no_password, NULL) : NULL;
    BIO_free(in);
    return *out ? 0 : weir__ssl_fail(err, WEIR_ECORRUPT, "not a private key");
}

int weir__certificate_parse(X509 **out, struct weir__bytes pem, struct weir_error *err)
{
    BIO *in = open_pem(pem);

    *out = in ? PEM_read_bio_X509(in, NULL, no_password, NULL) : NULL;
    BIO_free(in);
    return *out ? 0 : weir__ssl_fail(err, WEIR_ECORRUPT, "not a certificate");
}

int weir__key_print(BIO **out, EVP_PKEY *key, struct weir_error *err)
{
    *out = BIO_new(BIO_s_secmem());
    if (*out && PEM_write_bio_PKCS8PrivateKey(*out, key, NULL, NULL, 0, NULL, NULL)) return 0;
    return weir__ssl_fail(err, WEIR_ENOMEM, "writing a key");
}

int weir__certificate_print(BIO **out, X509 *cert, struct weir_error *err)
{
    *out = BIO_new(BIO_s_mem());
    if (*out && PEM_write_bio_X509(*out, cert)) return 0;
    return weir__ssl_fail(err, WEIR_ENOMEM, "writing a certificate");
}

struct weir__bytes weir__pem_bytes(BIO *pem)
{
    char *at;
    long len = BIO_get_mem_data(pem, &at);

    return weir__bytes_of(at, (size_t)len);
}

/* Making. */

static bool set_serial(X509 *cert)
{
    uint8_t bytes[SERIAL_BYTES];
    BIGNUM *number = NULL;
    bool ok = RAND_bytes(bytes, sizeof bytes) == 1;

    bytes[0] = (uint8_t)((bytes[0] & 0x7f) | 0x40); /* positive, and never shorter */
    if (ok) number = BN_bin2bn(bytes, sizeof bytes, NULL);
    ok = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return ok;
}

static bool set_subject(X509 *cert, const char *name)
{
    return X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                                      (const uint8_t *)name, -1, -1, 0);
}

/* Two authorities with one name and two keys confuse those who trust both, so the key is in it. */
static bool name_authority(X509 *cert)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len;
    char name[64];

    if (!X509_pubkey_digest(cert, EVP_sha256(), digest, &len)) return false;
    snprintf(name, sizeof name, "Weir local authority %02X%02X%02X%02X", digest[0], digest[1],
             digest[2], digest[3]);
    return set_subject(cert, name);
}

static bool extend(X509 *cert, X509 *issuer, const struct extension *list)
{
    X509V3_CTX context;
    bool ok = true;

    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    for (; ok && list->nid; list++) {
        X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &context, list->nid, list->value);
        ok = x && X509_add_ext(cert, x, -1);
        X509_EXTENSION_free(x);
    }
    return ok;
}

static X509 *begin(EVP_PKEY *key, int64_t now_ms, int64_t until_ms)
{
    X509 *cert = X509_new();

    if (cert && X509_set_version(cert, VERSION_3) && set_serial(cert) &&
        ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)((now_ms - BEFORE_MS) / 1000)) &&
        ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(until_ms / 1000)) &&
        X509_set_pubkey(cert, key))
        return cert;
    X509_free(cert);
    return NULL;
}

static bool finish(X509 *cert, X509 *issuer, EVP_PKEY *issuer_key, const struct extension *list)
{
    return X509_set_issuer_name(cert, X509_get_subject_name(issuer)) &&
           extend(cert, issuer, list) && X509_sign(cert, issuer_key, EVP_sha256());
}

int weir__certificate_make_authority(X509 **out, EVP_PKEY *key, int64_t now_ms, int64_t until_ms,
                                     struct weir_error *err)
{
    X509 *cert = begin(key, now_ms, until_ms);
    bool ok = cert && name_authority(cert) && finish(cert, cert, key, authority_extensions);

    if (!ok) X509_free(cert);
    *out = ok ? cert : NULL;
    return ok ? 0 : weir__ssl_fail(err, WEIR_EIO, "making an authority");
}

bool weir__certificate_has_address(X509 *cert, const char *address)
{
    return X509_check_ip_asc(cert, address, 0) == 1;
}

/* Adds those of 127.0.0.0/8 that a certificate names, except 127.0.0.1, up to NAMES_BYTES in all. */
static void add_addresses(char names[NAMES_BYTES], X509 *from)
{
    GENERAL_NAMES *all = from ? X509_get_ext_d2i(from, NID_subject_alt_name, NULL, NULL) : NULL;

    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        const GENERAL_NAME *one = sk_GENERAL_NAME_value(all, i);
        const uint8_t *ip = one->type == GEN_IPADD ? ASN1_STRING_get0_data(one->d.ip) : NULL;
        size_t len = strlen(names);
        if (!ip || ASN1_STRING_length(one->d.ip) != 4 || NAMES_BYTES - len < ADDRESS_BYTES)
            continue;
        if (ip[1] || ip[2] || ip[3] != 1)
            snprintf(names + len, NAMES_BYTES - len, ",IP:%u.%u.%u.%u", ip[0], ip[1], ip[2], ip[3]);
    }
    GENERAL_NAMES_free(all);
}

static bool name_server(X509 *cert, X509 *ca, const char *address, X509 *before)
{
    char names[NAMES_BYTES] = "DNS:localhost,IP:127.0.0.1,IP:::1";
    const struct extension alternatives[] = {{NID_subject_alt_name, names}, {0}};

    if (address && !(before && weir__certificate_has_address(before, address)))
        snprintf(names + strlen(names), sizeof names - strlen(names), ",IP:%.15s", address);
    add_addresses(names, before);
    return set_subject(cert, "localhost") && extend(cert, ca, alternatives);
}

int weir__certificate_make_server(X509 **out, EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key,
                                  const char *address, X509 *before, int64_t now_ms,
                                  int64_t until_ms, struct weir_error *err)
{
    X509 *cert = begin(key, now_ms, until_ms);
    bool ok = cert && name_server(cert, ca, address, before) &&
              finish(cert, ca, ca_key, server_extensions);

    if (!ok) X509_free(cert);
    *out = ok ? cert : NULL;
    return ok ? 0 : weir__ssl_fail(err, WEIR_EIO, "making a server's certificate");
}

/* Checking. */

int weir__certificate_check_authority(X509 *cert, struct weir_error *err)
{
    if (X509_check_ca(cert) != 1)
        return weir__fail(err, WEIR_ECORRUPT, "it is not an authority's certificate");
    if (X509_get_ext_by_NID(cert, NID_name_constraints, -1) < 0)
        return weir__fail(err, WEIR_ECORRUPT,
                          "this authority is not held to localhost, so it is "
                          "not one of ours");
    return 0;
}

static bool ask_for_server(X509_STORE_CTX *ctx)
{
    X509_VERIFY_PARAM *p = X509_STORE_CTX_get0_param(ctx);

    X509_VERIFY_PARAM_set_flags(p, X509_V_FLAG_NO_CHECK_TIME | X509_V_FLAG_X509_STRICT);
    return X509_VERIFY_PARAM_set_purpose(p, X509_PURPOSE_SSL_SERVER) &&
           X509_VERIFY_PARAM_set1_host(p, "localhost", 0);
}

int weir__certificate_check_server(X509 *cert, X509 *ca, struct weir_error *err)
{
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    int rc = 0;

    if (!store || !ctx || !X509_STORE_add_cert(store, ca) ||
        !X509_STORE_CTX_init(ctx, store, cert, NULL) || !ask_for_server(ctx))
        rc = weir__ssl_fail(err, WEIR_ENOMEM, "checking a certificate");
    else if (X509_verify_cert(ctx) != 1)
        rc = weir__fail(err, WEIR_ECORRUPT, "the authority does not vouch for it: %s",
                        X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    ERR_clear_error();
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    return rc;
}

/* Looking. */

static int64_t time_ms(const ASN1_TIME *t)
{
    struct tm tm;

    return ASN1_TIME_to_tm(t, &tm) ? (int64_t)timegm(&tm) * 1000 : 0;
}

int64_t weir__certificate_from_ms(const X509 *cert)
{
    return time_ms(X509_get0_notBefore(cert));
}

int64_t weir__certificate_until_ms(const X509 *cert)
{
    return time_ms(X509_get0_notAfter(cert));
}

bool weir__certificate_name(const X509 *cert, char *to, size_t room)
{
    const X509_NAME *subject = X509_get_subject_name(cert);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1), len;
    uint8_t *text = NULL;
    bool good;

    to[0] = '\0';
    if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return false;
    len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    good = len > 0 && (size_t)len < room && !memchr(text, 0, (size_t)len);
    if (good) snprintf(to, room, "%.*s", len, (const char *)text);
    OPENSSL_free(text);
    return good;
}

void weir__certificate_fingerprint(const X509 *cert, char *to, size_t room)
{
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;

    to[0] = '\0';
    if (!X509_digest(cert, EVP_sha256(), digest, &len)) return;
    for (size_t i = 0; i < len && i * 3 + 3 <= room; i++)
        snprintf(to + i * 3, room - i * 3, "%02X%s", digest[i], i + 1 < len ? ":" : "");
}
