/* foreign.c - the six balancers, see foreign.h.
 *
 * What they share: who owns what by the records that are not too old, with itself among the owners;
 * `min` partitions for each, and one more for `extra` of them. Records in the own name count
 * whatever their age: a host renews what it holds, and none of the descriptions says that it looks
 * first. */
#include "sim/foreign.h"

#include <string.h>

#include "sim/chance.h"

#define NOBODY UINT32_MAX

struct weir__foreign_heads {
    uint32_t owners[WEIR__FOREIGN_PARTITIONS_MAX]; /* of each partition */
    const char *ids[WEIR__FOREIGN_PARTITIONS_MAX + 1];
    uint32_t holds[WEIR__FOREIGN_PARTITIONS_MAX + 1];
    uint32_t count; /* of owners; the first is the host itself */
    uint32_t min, extra;
};

typedef bool filter(const struct weir__foreign_heads *, uint32_t owner, uint32_t limit);

struct list {
    uint32_t at[WEIR__FOREIGN_PARTITIONS_MAX];
    uint32_t count;
};

static uint32_t find_owner(struct weir__foreign_heads *h, const char *id)
{
    uint32_t i = 0;

    while (i < h->count && strcmp(h->ids[i], id) != 0) i++;
    if (i == h->count) h->ids[h->count++] = id;
    return i;
}

static void count_heads(const struct weir__foreign_dialect *d, const struct weir__foreign_round *r,
                        struct weir__foreign_heads *h)
{
    memset(h, 0, sizeof *h);
    h->ids[h->count++] = r->self;
    for (uint32_t p = 0; p < r->partitions; p++) {
        const struct weir_record *record = &r->records[p];
        bool mine = strcmp(record->owner, r->self) == 0;
        bool fresh = r->now_ms - record->modified_ms <= d->expire_ms;
        h->owners[p] = NOBODY;
        if (record->owner[0] == '\0' || !(fresh || mine)) continue;
        h->owners[p] = find_owner(h, record->owner);
        h->holds[h->owners[p]]++;
    }
    h->min = r->partitions / h->count;
    h->extra = r->partitions % h->count;
}

/* ---- which partitions ---- */

static bool is_nobody(const struct weir__foreign_heads *h, uint32_t owner, uint32_t limit)
{
    (void)h, (void)limit;
    return owner == NOBODY;
}

static bool is_above(const struct weir__foreign_heads *h, uint32_t owner, uint32_t limit)
{
    return owner != NOBODY && owner != 0 && h->holds[owner] > limit;
}

static bool is_owner(const struct weir__foreign_heads *h, uint32_t owner, uint32_t limit)
{
    (void)h;
    return owner == limit;
}

static struct list list_of(const struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                           filter *is_in, uint32_t limit)
{
    struct list l = {.count = 0};

    for (uint32_t p = 0; p < r->partitions; p++)
        if (is_in(h, h->owners[p], limit)) l.at[l.count++] = p;
    return l;
}

/* Claims some of a list by chance. Returns how many. */
static uint32_t claim_any(struct weir__foreign_round *r, struct list *l, uint32_t most)
{
    uint32_t claimed = 0;

    while (claimed < most && l->count > 0) {
        uint32_t i = (uint32_t)weir__chance_between(r->chance, 0, l->count - 1);
        r->claims[r->claim_count++] = l->at[i];
        l->at[i] = l->at[--l->count];
        claimed++;
    }
    return claimed;
}

static bool is_balanced(const struct weir__foreign_heads *h)
{
    uint32_t more = 0;

    for (uint32_t i = 0; i < h->count; i++) {
        if (h->holds[i] < h->min || h->holds[i] > h->min + 1) return false;
        more += h->holds[i] == h->min + 1;
    }
    return more == h->extra;
}

static uint32_t find_least(const struct weir__foreign_heads *h)
{
    uint32_t least = h->holds[0];

    for (uint32_t i = 1; i < h->count; i++)
        if (h->holds[i] < least) least = h->holds[i];
    return least;
}

/* Of the others; NOBODY: there is none. */
static uint32_t find_biggest(const struct weir__foreign_heads *h)
{
    uint32_t biggest = h->count > 1 ? 1 : NOBODY;

    for (uint32_t i = 2; i < h->count; i++)
        if (h->holds[i] > h->holds[biggest]) biggest = i;
    return biggest;
}

/* ---- the dialects ---- */

/* One in a round; greedy ones come again after 15 ms. */
static void choose_dotnet(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                          bool greedy)
{
    uint32_t mine = h->holds[0];
    struct list l;

    (void)greedy;
    if (mine > h->min || (mine == h->min && find_least(h) < h->min)) return;
    l = list_of(r, h, is_nobody, 0);
    if (l.count == 0) l = list_of(r, h, is_above, h->min + 1);
    if (l.count == 0 && mine < h->min) l = list_of(r, h, is_above, h->min);
    claim_any(r, &l, 1);
}

/* From the biggest downwards. Who keeps one more than `min` is not said: assumed are the `extra`
 * biggest of the others. */
static void steal_js(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                     uint32_t wanted)
{
    struct weir__foreign_heads rest = *h;

    for (uint32_t i = 1; i < h->count && wanted > 0; i++) {
        uint32_t biggest = find_biggest(&rest), keep = h->min + (i <= h->extra);
        struct list l = list_of(r, h, is_owner, biggest);
        uint32_t most = h->holds[biggest] > keep ? h->holds[biggest] - keep : 0;
        wanted -= claim_any(r, &l, most < wanted ? most : wanted);
        rest.holds[biggest] = 0;
    }
}

/* When nobody has anything, all is wanted. Who is not greedy takes one of what it wants. */
static void choose_js(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                      bool greedy)
{
    struct list all = list_of(r, h, is_nobody, 0);
    uint32_t first = r->claim_count, more = 0, wanted;

    if (is_balanced(h)) return;
    for (uint32_t i = 0; i < h->count; i++) more += h->holds[i] > h->min;
    wanted = h->min + (more < h->extra);
    wanted = wanted > h->holds[0] ? wanted - h->holds[0] : 0;
    if (all.count == r->partitions) wanted = r->partitions;
    if (wanted == 0) return;
    wanted -= claim_any(r, &all, wanted);
    steal_js(r, h, wanted);
    if (greedy || r->claim_count == first) return;
    r->claims[first] =
        r->claims[weir__chance_between(r->chance, first, (int64_t)r->claim_count - 1)];
    r->claim_count = first + 1;
}

static void choose_python(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                          bool greedy)
{
    uint32_t mine = h->holds[0], max = h->min + (h->extra > 0), biggest = find_biggest(h);
    struct list l = list_of(r, h, is_nobody, 0);

    if (mine >= max) return;
    if (l.count > 0) {
        claim_any(r, &l, greedy ? max - mine : 1);
    } else if (mine < h->min && biggest != NOBODY) {
        l = list_of(r, h, is_owner, biggest);
        claim_any(r, &l, 1);
    }
}

/* That it stops when all is in balance is not said, but without it the smallest would steal for
 * ever. What "any" of the free ones is, is left to chance. */
static void choose_java(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                        bool greedy)
{
    uint32_t mine = h->holds[0];
    struct list l;

    (void)greedy;
    if (is_balanced(h) || (mine >= h->min && mine != find_least(h))) return;
    l = list_of(r, h, is_nobody, 0);
    if (l.count == 0 && h->count > 1) l = list_of(r, h, is_owner, find_biggest(h));
    claim_any(r, &l, 1);
}

/* Greedy ones mix only as many as they want: they all go for the first. */
static uint32_t claim_first(struct weir__foreign_round *r, const struct list *l, uint32_t most)
{
    uint32_t claimed = l->count < most ? l->count : most;

    for (uint32_t i = 0; i < claimed; i++) r->claims[r->claim_count++] = l->at[i];
    return claimed;
}

static void choose_go(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                      bool greedy)
{
    uint32_t mine = h->holds[0], max = h->min + (mine >= h->min && h->extra > 0);
    struct list unowned = list_of(r, h, is_nobody, 0), above = list_of(r, h, is_above, max);

    if (mine >= max) return;
    if (greedy)
        claim_first(r, &above, max - mine - claim_first(r, &unowned, max - mine));
    else
        claim_any(r, unowned.count > 0 ? &unowned : &above, 1);
}

/* As Go once was: who has less than `min` steals only above the larger share. */
static void choose_cpp(struct weir__foreign_round *r, const struct weir__foreign_heads *h,
                       bool greedy)
{
    uint32_t mine = h->holds[0], max = h->min + (h->extra > 0);
    struct list unowned = list_of(r, h, is_nobody, 0), above = list_of(r, h, is_above, max);

    (void)greedy;
    if (mine >= max) return;
    claim_any(r, &unowned, 1);
    claim_any(r, &above, 1);
}

/* C++ compares whole minutes, so that 60 s are nearly 120. How long Java waits before it looks
 * again is not said: it does not wait at all, but a round takes some time. */
const struct weir__foreign_dialect weir__foreign_dialects[WEIR__FOREIGN_DIALECTS] = {
    {.name = "dotnet",
     .choose = choose_dotnet,
     .interval_ms = 30000,
     .expire_ms = 120000,
     .greedy = true,
     .repeat_ms = 15,
     .releases = true,
     .least_percent = 100,
     .most_percent = 100},
    {.name = "dotnet-balanced",
     .choose = choose_dotnet,
     .interval_ms = 30000,
     .expire_ms = 120000,
     .releases = true,
     .least_percent = 100,
     .most_percent = 100},
    {.name = "js",
     .choose = choose_js,
     .interval_ms = 10000,
     .expire_ms = 60000,
     .blind = true,
     .releases = true,
     .least_percent = 100,
     .most_percent = 100},
    {.name = "js-greedy",
     .choose = choose_js,
     .interval_ms = 10000,
     .expire_ms = 60000,
     .greedy = true,
     .blind = true,
     .releases = true,
     .least_percent = 100,
     .most_percent = 100},
    {.name = "python",
     .choose = choose_python,
     .interval_ms = 30000,
     .expire_ms = 180000,
     .greedy = true,
     .releases = true,
     .content = true,
     .least_percent = 100,
     .most_percent = 120},
    {.name = "python-balanced",
     .choose = choose_python,
     .interval_ms = 30000,
     .expire_ms = 180000,
     .releases = true,
     .content = true,
     .least_percent = 100,
     .most_percent = 120},
    {.name = "java",
     .choose = choose_java,
     .interval_ms = 30000,
     .expire_ms = 120000,
     .greedy = true,
     .repeat_ms = 10,
     .first_ms = 2000,
     .releases = true,
     .least_percent = 100,
     .most_percent = 100},
    {.name = "java-balanced",
     .choose = choose_java,
     .interval_ms = 30000,
     .expire_ms = 120000,
     .first_ms = 2000,
     .releases = true,
     .least_percent = 100,
     .most_percent = 100},
    {.name = "go",
     .choose = choose_go,
     .interval_ms = 10000,
     .expire_ms = 60000,
     .releases = true,
     .least_percent = 80,
     .most_percent = 130},
    {.name = "go-greedy",
     .choose = choose_go,
     .interval_ms = 10000,
     .expire_ms = 60000,
     .greedy = true,
     .releases = true,
     .least_percent = 80,
     .most_percent = 130},
    {.name = "cpp",
     .choose = choose_cpp,
     .interval_ms = 10000,
     .expire_ms = 119999,
     .blind = true,
     .fragile = true,
     .timid = true,
     .least_percent = 100,
     .most_percent = 100},
};

void weir__foreign_plan(const struct weir__foreign_dialect *d, struct weir__foreign_round *r)
{
    struct weir__foreign_heads heads;

    r->claim_count = r->renewals = 0;
    r->died = false;
    for (uint32_t p = 0; p < r->partitions; p++) {
        const struct weir_record *record = &r->records[p];
        if (d->fragile && record->version[0] && record->owner[0] == '\0') r->died = true;
    }
    if (r->died) return;
    for (uint32_t p = 0; p < r->partitions; p++)
        if (strcmp(r->records[p].owner, r->self) == 0) r->claims[r->claim_count++] = p;
    r->renewals = r->claim_count;
    count_heads(d, r, &heads);
    d->choose(r, &heads, d->greedy);
}

int64_t weir__foreign_pause(const struct weir__foreign_dialect *d, uint64_t *chance)
{
    return d->interval_ms * weir__chance_between(chance, d->least_percent, d->most_percent) / 100;
}
