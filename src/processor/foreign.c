/* foreign.c - what a plan owes to foreign owners (weir/store.h): who have no member, hand nothing
 * over, take one partition in a round of 10 to 30 s or all at once, and steal from whoever has more
 * than the others.
 *
 * The balance counts them like everybody else. Of what it wants to move to them only this is done:
 *
 *   - What is free is left for them, and what we have too much is drained and given to nobody, for
 *     each foreign owner one partition at a time: the next when it has taken that one. Before its
 *     turn a partition stays where it is and is read, and may be stolen; nothing is ever written in
 *     a foreign owner's name. A copy that leaves gives everything up at once.
 *   - What it lets lie for half of foreign_expire_ms is taken up, by the copy with the fewest
 *     first, even beyond an equal share: unread is worse, and whoever is short of some can still
 *     steal them. The foreign owner is slow then: it is frozen, or takes one in a round and has got
 *     many, or none at all. It is offered nothing for foreign_expire_ms, twice as long each time it
 *     lets one lie again, until it has more than it had.
 *
 * What moves from them to us is taken at once (plan.c). It is never more than the balance needs: an
 * owner loses one only above its share, and that is below the larger of the two sizes of shares
 * only when somebody has less than the smaller. */
#include <stdlib.h>

#include "processor/balance.h"
#include "processor/control_state.h"

#define SLOW_MS_MAX ((int64_t)3600 * 1000)

static int reserve(struct weir__control *c)
{
    uint32_t *more;

    if (c->roster.count <= c->share_cap) return 0;
    more = realloc(c->shares, c->roster.count * sizeof *more);
    if (!more) return WEIR_ENOMEM;
    c->shares = more;
    c->share_cap = c->roster.count;
    return 0;
}

/* The living owner, or WEIR__NOBODY. */
static uint32_t owner_of(const struct weir__control *c, uint32_t p)
{
    const struct weir_record *r = weir__plan_record(c, p);

    return r && r->owner[0] ? weir__roster_owner(&c->roster, r) : WEIR__NOBODY;
}

/* Since when a partition lies there for its target: what was not seen without a break is not known,
 * and before it was last written it was not there to be taken. */
static int64_t lies_since(const struct weir__control *c, uint32_t p, int64_t now_ms)
{
    const struct weir_record *r = weir__plan_record(c, p);
    int64_t since = c->parts[p].left_ms, age;

    if (since < c->roster.series_ms) since = c->roster.series_ms;
    if (r && !__builtin_sub_overflow(c->view.now_ms, r->modified_ms, &age) && age >= 0 &&
        age < now_ms - since)
        since = now_ms - age;
    return since;
}

static bool has_lain(const struct weir__control *c, uint32_t p, int64_t now_ms)
{
    return c->parts[p].left_ms != 0 &&
           now_ms - lies_since(c, p, now_ms) >= c->options.foreign_expire_ms / 2;
}

/* Counts what each has, and sees what lies there for whom. */
static void count(struct weir__control *c, int64_t now_ms)
{
    for (uint32_t i = 0; i < c->roster.foreign_count; i++) {
        struct weir__foreign *f = &c->roster.foreigns[i];
        f->holds = f->lying = 0;
        f->lazy = false;
    }
    for (uint32_t p = 0; p < c->partitions; p++) {
        struct weir__part *part = &c->parts[p];
        struct weir__foreign *to = weir__roster_foreign(&c->roster, part->target);
        struct weir__foreign *has = weir__roster_foreign(&c->roster, owner_of(c, p));
        bool lies = to && weir__plan_free(c, weir__plan_record(c, p), now_ms);
        if (has) has->holds++;
        if (lies && part->left_ms == 0) part->left_ms = now_ms;
        if (!lies) part->left_ms = 0;
        if (!lies) continue;
        to->lying++;
        if (has_lain(c, p, now_ms)) to->lazy = true;
        weir__plan_look(c, lies_since(c, p, now_ms) + c->options.foreign_expire_ms / 2, now_ms);
    }
}

/* Who is slow, and for how long. */
static void judge(struct weir__control *c, struct weir__foreign *f, int64_t now_ms)
{
    if (f->holds > f->held) f->slow_ms = f->slow_until_ms = 0;
    f->held = f->holds;
    if (f->lazy && now_ms >= f->slow_until_ms) {
        f->slow_ms = f->slow_ms ? 2 * f->slow_ms : c->options.foreign_expire_ms;
        if (f->slow_ms > SLOW_MS_MAX) f->slow_ms = SLOW_MS_MAX;
        f->slow_until_ms = now_ms + f->slow_ms;
    }
    f->offered = f->lying > 0 || now_ms < f->slow_until_ms;
    weir__plan_look(c, f->slow_until_ms, now_ms);
}

/* The copy that is to have the fewest; WEIR__NOBODY: none takes any. */
static uint32_t find_least(const struct weir__control *c)
{
    const struct weir__roster *r = &c->roster;
    uint32_t least = WEIR__NOBODY;

    for (uint32_t i = 0; i < r->count - r->foreign_alive; i++)
        if (r->weights[i] > 0 && (least == WEIR__NOBODY || c->shares[i] < c->shares[least]))
            least = i;
    return least;
}

/* Leaves with its owner what is not offered yet. */
static void keep(struct weir__control *c, uint32_t p)
{
    struct weir__part *part = &c->parts[p];
    struct weir__foreign *to = weir__roster_foreign(&c->roster, part->target);
    uint32_t owner = owner_of(c, p);

    if (to && owner != WEIR__NOBODY && !weir__roster_foreign(&c->roster, owner) &&
        c->roster.weights[owner] > 0) {
        if (to->offered) part->target = owner;
        to->offered = true;
    }
    if (part->target != WEIR__NOBODY) c->shares[part->target]++;
}

int weir__plan_foreign(struct weir__control *c, int64_t now_ms)
{
    struct weir__roster *r = &c->roster;

    if (reserve(c) != 0) return WEIR_ENOMEM;
    for (uint32_t i = 0; i < r->count; i++) c->shares[i] = 0;
    count(c, now_ms);
    for (uint32_t i = 0; i < r->foreign_count; i++) judge(c, &r->foreigns[i], now_ms);
    for (uint32_t p = 0; p < c->partitions; p++) keep(c, p);
    for (uint32_t p = 0; p < c->partitions; p++) {
        struct weir__part *part = &c->parts[p];
        uint32_t least;
        if (!has_lain(c, p, now_ms)) continue;
        least = find_least(c);
        if (least == WEIR__NOBODY) continue;
        part->target = least;
        c->shares[least]++;
    }
    return 0;
}
