/* access.h - shared-access rules and the tokens that are signed with their keys.
 *
 * A rule has a name, rights and two keys, so that one can be changed while the other still works.
 * It belongs to the namespace or to one hub. Who knows a key signs a token that says: for this
 * resource, until this second, by this rule. Nothing here keeps anything: rules are stored in the
 * catalogue and tokens are checked against the rules that are handed in. */
#ifndef WEIR_HUB_ACCESS_H
#define WEIR_HUB_ACCESS_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/rand.h"
#include "hub/name.h"

enum weir__right {
    WEIR__RIGHT_SEND = 1,
    WEIR__RIGHT_LISTEN = 2,
    WEIR__RIGHT_MANAGE = 4 /* implies the other two */
};

#define WEIR__RIGHTS_ALL 7u

#define WEIR__ACCESS_KEY_MAX 64   /* bytes of a key; ours are 44 */
#define WEIR__ACCESS_RULES_MAX 12 /* per namespace and per hub */
#define WEIR__ACCESS_TOKEN_MAX 4096
#define WEIR__ACCESS_PATH_MAX 1024      /* of a decoded resource */
#define WEIR__ACCESS_SIGNATURE_BYTES 44 /* base64 of HMAC-SHA256 */

/* A grant ends after so long, whatever its token says: who still has the key shows another one. */
#define WEIR__ACCESS_GRANT_MAX_S ((int64_t)30 * 24 * 3600)

enum weir__access_which { WEIR__KEY_PRIMARY, WEIR__KEY_SECONDARY, WEIR__KEYS };

struct weir__rule {
    char name[WEIR__RULE_NAME_MAX + 1];
    unsigned rights; /* enum weir__right, with what Manage implies */
    char key[WEIR__KEYS][WEIR__ACCESS_KEY_MAX + 1];
};

/* Rights with what they imply. */
unsigned weir__access_rights(unsigned rights);

/* Base64 of 32 random bytes: 44 characters and a NUL. */
int weir__access_key_make(const struct weir__rand *, char out[WEIR__ACCESS_KEY_MAX + 1],
                          struct weir_error *);

/* 1 to 64 printable ASCII characters without a space. */
int weir__access_key_check(const char *key, struct weir_error *);

/* The path of a resource: scheme and authority gone, decoded exactly once where it was encoded,
 * segments compared one by one without regard to case. "sb://host/eh1/Partitions/0", "host/eh1"
 * and "/eh1" all have the first segment eh1; so has "eh1". "localhost", "127.0.0.1", names below
 * servicebus.windows.net and its sister clouds, and everything with a port are hosts without a path. */
struct weir__access_path {
    char text[WEIR__ACCESS_PATH_MAX + 1]; /* single slashes between segments, none at the ends */
};

/* WEIR_EINVAL: too long, a broken escape, or a NUL. `encoded` tells whether escapes are undone. */
int weir__access_path_parse(struct weir__access_path *, struct weir__bytes resource, bool encoded,
                            struct weir_error *);

/* Whether a resource begins with a scheme: "sb://". */
bool weir__access_has_scheme(struct weir__bytes resource);

/* Whether inner is outer or below it. The empty path, a namespace's own, covers everything. */
bool weir__access_path_covers(const struct weir__access_path *outer,
                              const struct weir__access_path *inner);

/* The first segment, the hub's name: copied, empty when there is none or it is too long. */
void weir__access_path_hub(const struct weir__access_path *, char out[WEIR__HUB_NAME_MAX + 1]);

/* A token, taken apart; nothing in it is believed yet. */
struct weir__access_token {
    struct weir__bytes resource; /* sr as it stands in the token: this is what was signed */
    struct weir__bytes expiry;   /* se likewise */
    int64_t expires_s;
    char signature[WEIR__ACCESS_SIGNATURE_BYTES + 1]; /* base64 */
    char rule[WEIR__RULE_NAME_MAX + 1];
    struct weir__access_path path;
};

/* WEIR_EDENIED "MalformedToken: ..." */
int weir__access_token_parse(struct weir__access_token *, struct weir__bytes text,
                             struct weir_error *);

/* Rules to try, one row of them. */
struct weir__access_rules {
    const struct weir__rule *rule;
    uint32_t count;
};

/* What rights rest on, so that they can be looked at again when rules have changed: a rule and one
 * of its keys, by digests; the rule alone, when a certificate stands for the key; or a key of a token
 * issuer, which is no rule's: see jwt.h. */
enum weir__access_ground { WEIR__GROUND_KEY, WEIR__GROUND_RULE, WEIR__GROUND_ISSUER };

struct weir__access_basis {
    enum weir__access_ground ground;
    bool of_hub;     /* rules of the hub count, too: its token named one */
    uint64_t rule;   /* of the rule's name, whose case does not count */
    uint8_t key[16]; /* zeros: of no key */
};

/* key NULL: WEIR__GROUND_RULE. */
struct weir__access_basis weir__access_basis_of(const char *rule, const char *key, bool of_hub);

/* What it is worth by these rules: 0 when its rule is gone or has other keys, or when it rests on
 * none. */
unsigned weir__access_basis_rights(const struct weir__access_basis *,
                                   const struct weir__access_rules *rows, uint32_t row_count);

/* What a good token allows. */
struct weir__access_grant {
    unsigned rights;
    int64_t expires_s;
    struct weir__access_path path; /* and everything below it */
    struct weir__access_basis basis;
};

/* The end of a grant that is made now and would last until expires_s. */
int64_t weir__access_cap(int64_t expires_s, int64_t now_s);

/* WEIR_EDENIED "ExpiredToken: ..." with the date. */
int weir__access_expired(int64_t expires_s, struct weir_error *);

/* Checks signature, expiry and that the token covers `wanted`, in this order, against the rules of
 * the namespace and of the hub that the token names. An unknown rule costs the same work as a
 * wrong key and gets the same answer. WEIR_EDENIED: InvalidSignature, ExpiredToken,
 * InvalidAudience; the texts are the service's. */
int weir__access_token_check(const struct weir__access_token *,
                             const struct weir__access_rules *rows, uint32_t row_count,
                             const struct weir__access_path *wanted, int64_t now_s,
                             struct weir__access_grant *out, struct weir_error *);

#endif
