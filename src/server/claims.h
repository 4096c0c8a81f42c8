/* claims.h - what a connection has shown tokens for. They live on the connection and die with it.
 *
 * A claim says: for this path and everything below it, these rights, until then. */
#ifndef WEIR_SERVER_CLAIMS_H
#define WEIR_SERVER_CLAIMS_H

#include "hub/access.h"

struct weir__claim {
    struct weir__access_path path;
    unsigned rights;
    int64_t expires_s;
    struct weir__access_basis basis;
};

/* As it is kept: with no more room for its path than that needs. */
struct weir__claim_kept {
    int64_t expires_s;
    unsigned rights;
    struct weir__access_basis basis;
    char path[];
};

struct weir__claims {
    struct weir__claim_kept **at; /* sorted by path, without regard to case; no two are the same */
    uint32_t count, cap;
    uint32_t reviewed; /* so many of the first were, by a review that is under way */
};

void weir__claims_fini(struct weir__claims *);

/* Copied; takes the place of a claim for the same path. Those that have expired make room. WEIR_ELIMIT:
 * more than WEIR__SERVER_CLAIMS_MAX. */
int weir__claims_add(struct weir__claims *, const struct weir__claim *, int64_t now_s,
                     struct weir_error *);

/* Until when one of `rights` is there for a path: seconds since 1970, 0 when it is not.
 * WEIR_EDENIED is then what to say; what is the right's name for it. */
int64_t weir__claims_until(const struct weir__claims *, const struct weir__access_path *,
                           unsigned rights, int64_t now_s);

/* Asks of each claim what it is worth now; one that is worth nothing goes. A review begins from the first;
 * each next is one claim, and false when all were asked. Claims may be added between. */
typedef unsigned (*weir__claims_worth_fn)(const struct weir__claim *, void *user);
void weir__claims_review(struct weir__claims *);
bool weir__claims_review_next(struct weir__claims *, weir__claims_worth_fn, void *user);

int weir__claims_denied(const char *what, struct weir_error *);

#endif
