/* jws.h - the two kinds of signatures that tokens may have (RFC 7518). */
#ifndef WEIR_HUB_JWS_H
#define WEIR_HUB_JWS_H

#include <stdbool.h>

#include "base/bytes.h"

struct evp_pkey_st;

enum weir__jws_algorithm {
    WEIR__JWS_RS256, /* RSASSA-PKCS1-v1_5 with SHA-256 */
    WEIR__JWS_ES256  /* ECDSA on P-256 with SHA-256: r and s, 32 bytes each */
};

#define WEIR__JWS_RSA_BITS_MAX 8192 /* more makes each check too dear */
#define WEIR__JWS_SIGNATURE_MAX (WEIR__JWS_RSA_BITS_MAX / 8)

/* Whether the text was signed with the private half of the key, which is one for the algorithm. */
bool weir__jws_verify(enum weir__jws_algorithm, struct evp_pkey_st *key, struct weir__bytes text,
                      struct weir__bytes signature);

#endif
