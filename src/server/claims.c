#include "server/claims.h"

#include <stdlib.h>
#include <strings.h>

#include "server/server.h"

void weir__claims_fini(struct weir__claims *c)
{
    for (uint32_t i = 0; i < c->count; i++) free(c->at[i]);
    free(c->at);
    memset(c, 0, sizeof *c);
}

/* Where a claim belongs: the place of one for the same path, of one that has expired, or the end. */
static uint32_t find_place(const struct weir__claims *c, const char *path, int64_t now_s)
{
    uint32_t place = c->count;

    for (uint32_t i = 0; i < c->count; i++) {
        if (strcasecmp(c->at[i]->path, path) == 0) return i;
        if (c->at[i]->expires_s <= now_s) place = i;
    }
    return place;
}

static bool grow(struct weir__claims *c)
{
    uint32_t cap = c->cap ? c->cap * 2 : 4;
    struct weir__claim_kept **at;

    if (c->count < c->cap) return true;
    at = realloc(c->at, cap * sizeof *at);
    if (!at) return false;
    c->at = at;
    c->cap = cap;
    return true;
}

int weir__claims_add(struct weir__claims *c, const struct weir__claim *claim, int64_t now_s,
                     struct weir_error *err)
{
    uint32_t place = find_place(c, claim->path.text, now_s);
    size_t len = strlen(claim->path.text);
    struct weir__claim_kept *kept;

    if (place == WEIR__SERVER_CLAIMS_MAX)
        return weir__fail(err, WEIR_ELIMIT, "A connection has tokens for at most %d audiences.",
                          WEIR__SERVER_CLAIMS_MAX);
    kept = place < c->count || grow(c) ? malloc(sizeof *kept + len + 1) : NULL;
    if (!kept) return weir__fail(err, WEIR_ENOMEM, "out of memory for a claim");
    kept->expires_s = claim->expires_s;
    kept->rights = claim->rights;
    kept->basis = claim->basis;
    memcpy(kept->path, claim->path.text, len + 1);
    if (place < c->count)
        free(c->at[place]);
    else
        c->count++;
    c->at[place] = kept;
    return 0;
}

int64_t weir__claims_until(const struct weir__claims *c, const struct weir__access_path *path,
                           unsigned rights, int64_t now_s)
{
    struct weir__access_path own;
    int64_t until = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        const struct weir__claim_kept *claim = c->at[i];
        if (claim->expires_s <= now_s || claim->expires_s <= until) continue;
        memcpy(own.text, claim->path, strlen(claim->path) + 1);
        if ((claim->rights & rights) && weir__access_path_covers(&own, path))
            until = claim->expires_s;
    }
    return until;
}

void weir__claims_review(struct weir__claims *c, weir__claims_worth_fn worth, void *user)
{
    struct weir__claim claim;

    for (uint32_t i = 0; i < c->count;) {
        struct weir__claim_kept *kept = c->at[i];
        memcpy(claim.path.text, kept->path, strlen(kept->path) + 1);
        claim.rights = kept->rights;
        claim.expires_s = kept->expires_s;
        claim.basis = kept->basis;
        kept->rights = worth(&claim, user);
        if (kept->rights) {
            i++;
            continue;
        }
        free(kept);
        c->at[i] = c->at[--c->count];
    }
}

int weir__claims_denied(const char *what, struct weir_error *err)
{
    return weir__fail(err, WEIR_EDENIED,
                      "Unauthorized access. '%s' claim(s) are required to perform this operation.",
                      what);
}
