/* jwt.h - tokens of an issuer: JSON Web Tokens (RFC 7519), signed as RFC 7515 has it.
 *
 *   base64url({"alg":"RS256","kid":"a"}) . base64url({"iss":...,"aud":...,"exp":...,"roles":[...]}) .
 *   base64url(signature of all before this last dot)
 *
 * Where Azure's clients have a TokenCredential they send such a token instead of one that they have
 * signed with a shared key. No I/O: the issuer's keys and the time are arguments.
 *
 * What is not exactly as it must be is refused: another algorithm than RS256 and ES256 (`none` and
 * those with a shared secret are others), one that is not the key's, members that stand twice, `crit`,
 * base64 with padding. Claims are looked at only when the signature is good. */
#ifndef WEIR_HUB_JWT_H
#define WEIR_HUB_JWT_H

#include "hub/access.h"
#include "hub/jwks.h"

#define WEIR__JWT_BYTES_MAX ((size_t)16 << 10) /* of a token */
#define WEIR__JWT_HEADER_MAX ((size_t)4 << 10) /* of its first part */
#define WEIR__JWT_LEEWAY_S 60 /* by which the issuer's clock may differ from ours */
#define WEIR__JWT_AUDIENCES_MAX 2
#define WEIR__JWT_ROLE_CLAIM "roles"

/* What a role of a token's bearer allows. */
struct weir__jwt_role {
    const char *name;
    unsigned rights; /* enum weir__right */
};

/* Whose tokens are believed, and what they allow: on the whole namespace. Borrowed. */
struct weir__jwt_issuer {
    const char *name; /* `iss`, to the letter */
    /* `aud`, or one of them, is one of these; NULL: not used. */
    const char *audience[WEIR__JWT_AUDIENCES_MAX];
    const char *role_claim; /* its value is a role, or an array of roles */
    const struct weir__jwt_role *roles;
    uint32_t role_count;
};

/* Azure's audience, without and with a slash, and its three roles for data. */
extern const char *const weir__jwt_audiences[WEIR__JWT_AUDIENCES_MAX];
extern const struct weir__jwt_role weir__jwt_roles[];
extern const uint32_t weir__jwt_role_count;

/* Checks form, signature, issuer, audience, times and roles, in this order. `exp` is required, `nbf`
 * is not; both with WEIR__JWT_LEEWAY_S. The grant is for everything, ends when the token would be
 * refused, and rests on the key that it is signed with (WEIR__GROUND_ISSUER). WEIR_EDENIED:
 * MalformedToken, InvalidSignature, InvalidIssuer, InvalidAudience, ExpiredToken, InvalidToken, and
 * "Unauthorized access." when it has no role that is known. */
int weir__jwt_check(const struct weir__jwt_issuer *, const struct weir__jwks *,
                    struct weir__bytes token, int64_t now_s, struct weir__access_grant *out,
                    struct weir_error *);

#endif
