/* jws.c - signatures are OpenSSL's work; those of ES256 are first brought into its form. */
#include "hub/jws.h"

#include <openssl/bn.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#define NUMBER_BYTES 32 /* of r and of s */
#define DER_BYTES_MAX 80

/* OpenSSL has r and s in DER; tokens have them side by side. 0: they are no signature. */
static size_t write_der(const uint8_t *raw, uint8_t out[DER_BYTES_MAX])
{
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, NUMBER_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(raw + NUMBER_BYTES, NUMBER_BYTES, NULL);
    int len = 0;

    if (signature && r && s && ECDSA_SIG_set0(signature, r, s)) {
        r = s = NULL; /* they are the signature's now */
        len = i2d_ECDSA_SIG(signature, NULL);
        if (len > 0 && len <= DER_BYTES_MAX) len = i2d_ECDSA_SIG(signature, &out);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(signature);
    return len > 0 && len <= DER_BYTES_MAX ? (size_t)len : 0;
}

static bool verify(EVP_PKEY *key, struct weir__bytes text, struct weir__bytes signature)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = context && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                EVP_DigestVerify(context, signature.at, signature.len, text.at, text.len) == 1;

    EVP_MD_CTX_free(context);
    ERR_clear_error(); /* of this thread, which may look there after TLS */
    return good;
}

bool weir__jws_verify(enum weir__jws_algorithm algorithm, EVP_PKEY *key, struct weir__bytes text,
                      struct weir__bytes signature)
{
    uint8_t der[DER_BYTES_MAX];
    size_t len;

    if (algorithm == WEIR__JWS_RS256)
        return signature.len == (size_t)EVP_PKEY_get_size(key) && verify(key, text, signature);
    if (signature.len != (size_t)2 * NUMBER_BYTES) return false;
    len = write_der(signature.at, der);
    return len > 0 && verify(key, text, weir__bytes_of(der, len));
}
