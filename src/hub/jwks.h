/* jwks.h - the public keys of a token issuer, read from a JSON Web Key Set (RFC 7517):
 *
 *   {"keys": [{"kty": "RSA", "kid": "a", "n": "...", "e": "AQAB"},
 *             {"kty": "EC", "crv": "P-256", "kid": "b", "x": "...", "y": "..."}]}
 *
 * RSA keys are for RS256 and those on P-256 for ES256. Keys of other types, for other algorithms and
 * for encryption are passed over, as the RFC asks; at least one must remain. Members that are not
 * known are passed over. Refused are names that stand twice, two keys of one kid, private keys, RSA
 * keys of less than 2,048 bits, and numbers that are no key. */
#ifndef WEIR_HUB_JWKS_H
#define WEIR_HUB_JWKS_H

#include "hub/jwk.h"

#define WEIR__JWKS_BYTES_MAX ((size_t)256 << 10)
#define WEIR__JWKS_KEYS_MAX 64u /* that can be used */
#define WEIR__JWKS_DIGEST_BYTES 16

struct weir__jwks_key {
    enum weir__jws_algorithm algorithm;
    struct evp_pkey_st *public_key;
    uint8_t digest[WEIR__JWKS_DIGEST_BYTES]; /* of the key alone, without its kid */
    bool has_kid;
    char kid[WEIR__JWK_KID_MAX + 1];
};

struct weir__jwks;

/* The caller has the first reference. WEIR_EINVAL: "line 1, column 9: ..." */
int weir__jwks_parse(struct weir__jwks **out, struct weir__bytes text, struct weir_error *);

/* From any thread. The last release frees; NULL is fine there. */
struct weir__jwks *weir__jwks_retain(struct weir__jwks *);
void weir__jwks_release(struct weir__jwks *);

uint32_t weir__jwks_count(const struct weir__jwks *);

/* The key of this kid, if it is for this algorithm. kid NULL: the only key for it. NULL: there is no
 * such key; or several, which are not all tried, because strangers would choose how much work that
 * is. */
const struct weir__jwks_key *weir__jwks_find(const struct weir__jwks *, enum weir__jws_algorithm,
                                             const char *kid);

/* Whether a key of this digest is among them, whatever its kid. */
bool weir__jwks_has(const struct weir__jwks *, const uint8_t digest[WEIR__JWKS_DIGEST_BYTES]);

#endif
