/* jwk.h - one key of a JSON Web Key Set, as it is written, and what OpenSSL makes of it. */
#ifndef WEIR_HUB_JWK_H
#define WEIR_HUB_JWK_H

#include "base/error.h"
#include "hub/jws.h"

#define WEIR__JWK_KID_MAX 256u
#define WEIR__JWK_WORD_BYTES 16 /* of a type, curve, use or algorithm; a longer one is not ours */
#define WEIR__JWK_NUMBER_BYTES (WEIR__JWS_RSA_BITS_MAX / 8)
#define WEIR__JWK_RSA_BITS_MIN 2048

struct weir__jwk_number {
    uint8_t at[WEIR__JWK_NUMBER_BYTES]; /* the highest byte first */
    size_t len;                         /* 0: it was not there */
};

struct weir__jwk {
    char kty[WEIR__JWK_WORD_BYTES], crv[WEIR__JWK_WORD_BYTES]; /* "": not there */
    char use[WEIR__JWK_WORD_BYTES], alg[WEIR__JWK_WORD_BYTES];
    bool has_kid, is_private;
    char kid[WEIR__JWK_KID_MAX + 1];
    struct weir__jwk_number n, e, x, y;
};

/* Of n and e for RS256, of x and y for ES256. The caller frees it with EVP_PKEY_free. WEIR_EINVAL:
 * they are no public key, or a weak one. */
int weir__jwk_build(const struct weir__jwk *, enum weir__jws_algorithm, struct evp_pkey_st **out,
                    struct weir_error *);

#endif
