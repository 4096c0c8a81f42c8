/* claims.c - claims, sorted by their paths: a link is allowed by the claim for its own path or for one
 * above it, so each of these few is looked up, however many claims there are. */
#include "server/claims.h"

#include <stdlib.h>
#include <strings.h>

#include "base/steps.h"
#include "server/server.h"

void weir__claims_fini(struct weir__claims *c)
{
    for (uint32_t i = 0; i < c->count; i++) free(c->at[i]);
    free(c->at);
    memset(c, 0, sizeof *c);
}

/* Compares the beginning of a path with the whole of another, without regard to case. */
static int compare(const char *path, size_t len, const char *other)
{
    int rc = strncasecmp(path, other, len);

    WEIR__STEP();
    return rc == 0 && other[len] ? -1 : rc;
}

/* Where the claim for a path is, or else belongs. The path is the first `len` characters. */
static uint32_t find_place(const struct weir__claims *c, const char *path, size_t len, bool *there)
{
    uint32_t low = 0, high = c->count;

    *there = false;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int rc = compare(path, len, c->at[middle]->path);
        *there = rc == 0;
        if (rc == 0) return middle;
        if (rc < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* A review that is under way stays before the claim that it would look at next. */
static void remove_at(struct weir__claims *c, uint32_t place)
{
    free(c->at[place]);
    c->count--;
    memmove(c->at + place, c->at + place + 1, (c->count - place) * sizeof *c->at);
    if (place < c->reviewed) c->reviewed--;
}

static void insert_at(struct weir__claims *c, uint32_t place, struct weir__claim_kept *kept)
{
    memmove(c->at + place + 1, c->at + place, (c->count - place) * sizeof *c->at);
    c->at[place] = kept;
    c->count++;
    if (place < c->reviewed) c->reviewed++;
}

/* Room for one more, if need be that of those that have expired. */
static int make_room(struct weir__claims *c, int64_t now_s, struct weir_error *err)
{
    uint32_t cap = c->cap ? c->cap * 2 : 4;
    struct weir__claim_kept **at;

    if (c->count < c->cap) return 0;
    for (uint32_t i = c->count; i-- > 0;)
        if (c->at[i]->expires_s <= now_s) remove_at(c, i);
    if (c->count < c->cap) return 0;
    if (c->count >= WEIR__SERVER_CLAIMS_MAX)
        return weir__fail(err, WEIR_ELIMIT, "A connection has tokens for at most %d audiences.",
                          WEIR__SERVER_CLAIMS_MAX);
    at = realloc(c->at, cap * sizeof *at);
    if (!at) return weir__fail(err, WEIR_ENOMEM, "out of memory for a claim");
    c->at = at;
    c->cap = cap;
    return 0;
}

/* One for a path that there is none for. */
static int add_path(struct weir__claims *c, const char *path, int64_t now_s,
                    struct weir__claim_kept **out, struct weir_error *err)
{
    size_t len = strlen(path);
    int rc = make_room(c, now_s, err);
    bool there;

    if (rc != 0) return rc;
    *out = malloc(sizeof **out + len + 1);
    if (!*out) return weir__fail(err, WEIR_ENOMEM, "out of memory for a claim");
    memcpy((*out)->path, path, len + 1);
    insert_at(c, find_place(c, path, len, &there), *out);
    return 0;
}

int weir__claims_add(struct weir__claims *c, const struct weir__claim *claim, int64_t now_s,
                     struct weir_error *err)
{
    const char *path = claim->path.text;
    struct weir__claim_kept *kept;
    bool there;
    uint32_t place = find_place(c, path, strlen(path), &there);
    int rc = 0;

    if (there)
        kept = c->at[place];
    else
        rc = add_path(c, path, now_s, &kept, err);
    if (rc != 0) return rc;
    kept->expires_s = claim->expires_s;
    kept->rights = claim->rights;
    kept->basis = claim->basis;
    return 0;
}

/* Every beginning of the path that ends with a segment is looked up, also the empty one. */
int64_t weir__claims_until(const struct weir__claims *c, const struct weir__access_path *path,
                           unsigned rights, int64_t now_s)
{
    size_t len = 0;
    int64_t until = 0;
    bool there;

    for (;;) {
        uint32_t place = find_place(c, path->text, len, &there);
        const struct weir__claim_kept *claim = there ? c->at[place] : NULL;
        if (claim && (claim->rights & rights) && claim->expires_s > now_s &&
            claim->expires_s > until)
            until = claim->expires_s;
        if (!path->text[len]) return until;
        len += 1 + strcspn(path->text + len + 1, "/");
    }
}

void weir__claims_review(struct weir__claims *c)
{
    c->reviewed = 0;
}

bool weir__claims_review_next(struct weir__claims *c, weir__claims_worth_fn worth, void *user)
{
    struct weir__claim_kept *kept;
    struct weir__claim claim;

    if (c->reviewed >= c->count) return false;
    WEIR__STEP();
    kept = c->at[c->reviewed++];
    memcpy(claim.path.text, kept->path, strlen(kept->path) + 1);
    claim.rights = kept->rights;
    claim.expires_s = kept->expires_s;
    claim.basis = kept->basis;
    kept->rights = worth(&claim, user);
    if (!kept->rights) remove_at(c, c->reviewed - 1);
    return true;
}

int weir__claims_denied(const char *what, struct weir_error *err)
{
    return weir__fail(err, WEIR_EDENIED,
                      "Unauthorized access. '%s' claim(s) are required to perform this operation.",
                      what);
}
