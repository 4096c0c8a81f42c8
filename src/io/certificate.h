/* certificate.h - P-256 keys and the two certificates of authority.h, made and checked. No files.
 */
#ifndef WEIR_IO_CERTIFICATE_H
#define WEIR_IO_CERTIFICATE_H

#include <openssl/x509.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "base/error.h"

/* Fails with what OpenSSL has to say, the first cause. */
int weir__ssl_fail(struct weir_error *, int code, const char *what);

int weir__key_make(EVP_PKEY **out, struct weir_error *);
int weir__key_parse(EVP_PKEY **out, struct weir__bytes pem, struct weir_error *);
int weir__certificate_parse(X509 **out, struct weir__bytes pem, struct weir_error *);

/* As PEM. Free with BIO_free. */
int weir__key_print(BIO **out, EVP_PKEY *, struct weir_error *);
int weir__certificate_print(BIO **out, X509 *, struct weir_error *);
struct weir__bytes weir__pem_bytes(BIO *);

/* Valid from a day before now_ms, since clocks differ, to until_ms. The authority's name comes from
 * its key; the server is localhost, 127.0.0.1 and ::1, and also, where they are not NULL, `address`,
 * which is another one of 127.0.0.0/8, and those that `before` names. */
int weir__certificate_make_authority(X509 **out, EVP_PKEY *, int64_t now_ms, int64_t until_ms,
                                     struct weir_error *);
int weir__certificate_make_server(X509 **out, EVP_PKEY *, X509 *ca, EVP_PKEY *ca_key,
                                  const char *address, X509 *before, int64_t now_ms,
                                  int64_t until_ms, struct weir_error *);
bool weir__certificate_has_address(X509 *, const char *address);

/* WEIR_ECORRUPT: it is no authority, or not one that is held to a few names. */
int weir__certificate_check_authority(X509 *, struct weir_error *);
/* WEIR_ECORRUPT: this authority does not vouch for it, or not for a server at localhost. Time is
 * not looked at. */
int weir__certificate_check_server(X509 *, X509 *ca, struct weir_error *);

/* 0: what stands there is not a time. */
int64_t weir__certificate_from_ms(const X509 *);
int64_t weir__certificate_until_ms(const X509 *);
/* The common name, in UTF-8. false: there is none, more than one, or one that is too long or has a
 * NUL inside. */
bool weir__certificate_name(const X509 *, char *to, size_t room);
void weir__certificate_fingerprint(const X509 *, char *to, size_t room); /* SHA-256, "AB:CD:..." */

#endif
