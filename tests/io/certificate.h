/* certificate.h - keys and certificates for a test, made on the spot: an authority, and whom it
 * vouches for. */
#ifndef WEIR_TESTS_IO_CERTIFICATE_H
#define WEIR_TESTS_IO_CERTIFICATE_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/bytes.h"

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
    BIO *key_pem, *certificate_pem;
};

static inline struct weir__bytes pem_bytes(BIO *pem)
{
    char *at;
    long len = BIO_get_mem_data(pem, &at);

    return weir__bytes_of(at, (size_t)len);
}

static inline void add_extension(X509 *to, int nid, const char *value)
{
    X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    assert_non_null(x);
    assert_true(X509_add_ext(to, x, -1));
    X509_EXTENSION_free(x);
}

/* names is a subjectAltName; NULL: an authority. issuer NULL: itself. */
static inline void identity_make(struct identity *i, const char *common_name, const char *names,
                                 const struct identity *issuer, long days)
{
    X509_NAME *subject;

    i->key = EVP_EC_gen("P-256");
    i->certificate = X509_new();
    X509_set_version(i->certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(i->certificate), issuer ? 2 : 1);
    X509_gmtime_adj(X509_getm_notBefore(i->certificate), -86400L * 30);
    X509_gmtime_adj(X509_getm_notAfter(i->certificate), 86400L * days);
    X509_set_pubkey(i->certificate, i->key);
    subject = X509_get_subject_name(i->certificate);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const uint8_t *)common_name, -1, -1,
                               0);
    X509_set_issuer_name(i->certificate,
                         issuer ? X509_get_subject_name(issuer->certificate) : subject);
    add_extension(i->certificate, NID_basic_constraints, names ? "CA:FALSE" : "critical,CA:TRUE");
    if (names) add_extension(i->certificate, NID_subject_alt_name, names);
    assert_true(X509_sign(i->certificate, issuer ? issuer->key : i->key, EVP_sha256()));
    i->key_pem = BIO_new(BIO_s_mem());
    i->certificate_pem = BIO_new(BIO_s_mem());
    assert_true(PEM_write_bio_PrivateKey(i->key_pem, i->key, NULL, NULL, 0, NULL, NULL));
    assert_true(PEM_write_bio_X509(i->certificate_pem, i->certificate));
}

static inline void identity_free(struct identity *i)
{
    BIO_free(i->key_pem);
    BIO_free(i->certificate_pem);
    X509_free(i->certificate);
    EVP_PKEY_free(i->key);
}

#endif
