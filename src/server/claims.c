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

static struct weir__claim *find_place(struct weir__claims *c, const struct weir__claim *claim,
                                      int64_t now_s)
{
    struct weir__claim *expired = NULL;

    for (uint32_t i = 0; i < c->count; i++) {
        if (strcasecmp(c->at[i]->path.text, claim->path.text) == 0) return c->at[i];
        if (c->at[i]->expires_s <= now_s) expired = c->at[i];
    }
    return expired;
}

static bool grow(struct weir__claims *c)
{
    uint32_t cap = c->cap ? c->cap * 2 : 4;
    struct weir__claim **at;

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
    struct weir__claim *place = find_place(c, claim, now_s);

    if (!place && c->count == WEIR__SERVER_CLAIMS_MAX)
        return weir__fail(err, WEIR_ELIMIT, "A connection has tokens for at most %d audiences.",
                          WEIR__SERVER_CLAIMS_MAX);
    if (!place) {
        place = grow(c) ? malloc(sizeof *place) : NULL;
        if (!place) return weir__fail(err, WEIR_ENOMEM, "out of memory for a claim");
        c->at[c->count++] = place;
    }
    *place = *claim;
    return 0;
}

int64_t weir__claims_until(const struct weir__claims *c, const struct weir__access_path *path,
                           unsigned rights, int64_t now_s)
{
    int64_t until = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        const struct weir__claim *claim = c->at[i];
        if (claim->expires_s <= now_s || claim->expires_s <= until) continue;
        if ((claim->rights & rights) && weir__access_path_covers(&claim->path, path))
            until = claim->expires_s;
    }
    return until;
}

int weir__claims_denied(const char *what, struct weir_error *err)
{
    return weir__fail(err, WEIR_EDENIED,
                      "Unauthorized access. '%s' claim(s) are required to perform this operation.",
                      what);
}
