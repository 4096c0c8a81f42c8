/* issuer_world.h - an issuer of tokens with real keys: a key set of its public halves, and tokens
 * that it signs. */
#ifndef WEIR_TESTS_HUB_ISSUER_WORLD_H
#define WEIR_TESTS_HUB_ISSUER_WORLD_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/jwt.h"

#define TEXT_BYTES 32768

/* Without padding; returns its length. */
static inline size_t put_base64url(char *to, const void *at, size_t len)
{
    size_t used = (size_t)EVP_EncodeBlock((unsigned char *)to, at, (int)len);

    while (used > 0 && to[used - 1] == '=') used--;
    to[used] = '\0';
    for (size_t i = 0; i < used; i++) to[i] = to[i] == '+' ? '-' : to[i] == '/' ? '_' : to[i];
    return used;
}

/* A number of a key, as the member `name` of a JWK. */
static inline size_t put_number(char *to, EVP_PKEY *key, const char *param, const char *name,
                                int bytes)
{
    uint8_t raw[WEIR__JWK_NUMBER_BYTES];
    char text[2 * WEIR__JWK_NUMBER_BYTES];
    BIGNUM *number = NULL;

    assert_int_equal(EVP_PKEY_get_bn_param(key, param, &number), 1);
    if (bytes == 0) bytes = BN_num_bytes(number);
    assert_int_equal(BN_bn2binpad(number, raw, bytes), bytes);
    BN_free(number);
    put_base64url(text, raw, (size_t)bytes);
    return (size_t)sprintf(to, ",\"%s\":\"%s\"", name, text);
}

/* The public half as a JWK; more is put behind its members. kid NULL: none. */
static inline void put_jwk(char *to, EVP_PKEY *key, const char *kid, const char *more)
{
    bool rsa = EVP_PKEY_is_a(key, "RSA");

    to += sprintf(to, rsa ? "{\"kty\":\"RSA\"" : "{\"kty\":\"EC\",\"crv\":\"P-256\"");
    if (kid) to += sprintf(to, ",\"kid\":\"%s\"", kid);
    to += rsa ? put_number(to, key, OSSL_PKEY_PARAM_RSA_N, "n", 0)
              : put_number(to, key, OSSL_PKEY_PARAM_EC_PUB_X, "x", 32);
    to += rsa ? put_number(to, key, OSSL_PKEY_PARAM_RSA_E, "e", 0)
              : put_number(to, key, OSSL_PKEY_PARAM_EC_PUB_Y, "y", 32);
    sprintf(to, "%s}", more);
}

static inline struct weir__bytes bytes_of(const char *text)
{
    return weir__bytes_of(text, strlen(text));
}

/* A signature in the form that tokens have. */
static inline size_t put_signature(uint8_t raw[WEIR__JWS_SIGNATURE_MAX], EVP_PKEY *key,
                                   const char *text)
{
    uint8_t der[WEIR__JWS_SIGNATURE_MAX];
    const uint8_t *at = der;
    size_t len = sizeof der;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    ECDSA_SIG *pair;

    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(EVP_DigestSign(context, der, &len, (const uint8_t *)text, strlen(text)), 1);
    EVP_MD_CTX_free(context);
    memcpy(raw, der, len);
    if (EVP_PKEY_is_a(key, "RSA")) return len;
    pair = d2i_ECDSA_SIG(NULL, &at, (long)len);
    assert_non_null(pair);
    BN_bn2binpad(ECDSA_SIG_get0_r(pair), raw, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(pair), raw + 32, 32);
    ECDSA_SIG_free(pair);
    return 64;
}

/* header.payload.signature */
static inline void put_token(char *to, EVP_PKEY *key, const char *header, const char *payload)
{
    uint8_t raw[WEIR__JWS_SIGNATURE_MAX];
    size_t used = put_base64url(to, header, strlen(header)), len;

    to[used++] = '.';
    used += put_base64url(to + used, payload, strlen(payload));
    len = put_signature(raw, key, to);
    to[used++] = '.';
    put_base64url(to + used, raw, len);
}

#endif
