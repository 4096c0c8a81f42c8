/* jwk.c - the numbers of a public key become a key of OpenSSL, which checks that they are one. */
#include "hub/jwk.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#define COORDINATE_BYTES 32
#define EXPONENT_BYTES_MAX 8

/* NULL: the numbers are no key. */
static EVP_PKEY *make_key(const char *type, OSSL_PARAM *params)
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL), *check = NULL;
    EVP_PKEY *key = NULL;

    if (context && EVP_PKEY_fromdata_init(context) == 1)
        EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, params);
    EVP_PKEY_CTX_free(context);
    if (key) check = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
    if (!check || EVP_PKEY_public_check(check) != 1) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    EVP_PKEY_CTX_free(check);
    ERR_clear_error(); /* of this thread, which may look there after TLS */
    return key;
}

static EVP_PKEY *make_rsa(const BIGNUM *n, const BIGNUM *e)
{
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    OSSL_PARAM *params = NULL;
    EVP_PKEY *key = NULL;

    if (builder && OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n) &&
        OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e))
        params = OSSL_PARAM_BLD_to_param(builder);
    if (params) key = make_key("RSA", params);
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(builder);
    return key;
}

/* An exponent of 1 would make every text its own signature. */
static int build_rsa(const struct weir__jwk *jwk, EVP_PKEY **out, struct weir_error *err)
{
    BIGNUM *n = BN_bin2bn(jwk->n.at, (int)jwk->n.len, NULL);
    BIGNUM *e = BN_bin2bn(jwk->e.at, (int)jwk->e.len, NULL);
    int rc = 0;

    if (!n || !e)
        rc = weir__fail(err, WEIR_ENOMEM, "out of memory for a key");
    else if (jwk->n.len == 0 || jwk->e.len == 0)
        rc = weir__fail(err, WEIR_EINVAL, "an RSA key has n and e");
    else if (BN_num_bits(n) < WEIR__JWK_RSA_BITS_MIN)
        rc = weir__fail(err, WEIR_EINVAL, "n has %d bits, fewer than %d, which is not safe",
                        BN_num_bits(n), WEIR__JWK_RSA_BITS_MIN);
    else if (jwk->e.len > EXPONENT_BYTES_MAX || !BN_is_odd(e) || BN_is_one(e))
        rc = weir__fail(err, WEIR_EINVAL, "e is no exponent of an RSA key");
    else if (!(*out = make_rsa(n, e)))
        rc = weir__fail(err, WEIR_EINVAL, "n and e are no RSA key");
    BN_free(n);
    BN_free(e);
    return rc;
}

static int build_ec(const struct weir__jwk *jwk, EVP_PKEY **out, struct weir_error *err)
{
    uint8_t point[1 + 2 * COORDINATE_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    char group[] = SN_X9_62_prime256v1;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof point),
        OSSL_PARAM_construct_end(),
    };

    if (jwk->x.len != COORDINATE_BYTES || jwk->y.len != COORDINATE_BYTES)
        return weir__fail(err, WEIR_EINVAL, "x and y have %d bytes each on P-256",
                          COORDINATE_BYTES);
    memcpy(point + 1, jwk->x.at, COORDINATE_BYTES);
    memcpy(point + 1 + COORDINATE_BYTES, jwk->y.at, COORDINATE_BYTES);
    *out = make_key("EC", params);
    return *out ? 0 : weir__fail(err, WEIR_EINVAL, "x and y are no point of P-256");
}

int weir__jwk_build(const struct weir__jwk *jwk, enum weir__jws_algorithm algorithm, EVP_PKEY **out,
                    struct weir_error *err)
{
    if (jwk->is_private)
        return weir__fail(err, WEIR_EINVAL,
                          "d makes it a private key; write the public part only, and make a new "
                          "key where this one was seen");
    return algorithm == WEIR__JWS_RS256 ? build_rsa(jwk, out, err) : build_ec(jwk, out, err);
}
