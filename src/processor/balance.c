/* balance.c - shares, then who keeps what, then who gets the rest.
 *
 * A member's quota is partitions x weight / all weights. Everybody gets it rounded down; the few
 * that are left over go, one each, first to those who hold more than that already (so nothing moves
 * for the sake of a remainder), then by the larger remainder, then by index.
 *
 * A member keeps its lowest partitions up to its share. What nobody keeps is dealt in order of
 * partitions to the members in order of index. Both orders stay what they are while the moves are
 * under way, whichever is done first: taking a pair out of two rows leaves the other pairs as they
 * were. So copies that look at different moments agree. */
#include "processor/balance.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

struct share {
    uint64_t remainder; /* of its quota, in parts of all weights */
    uint32_t member;
    uint32_t holds; /* now */
    uint32_t size;
};

/* Who gets one of the partitions that rounding left over: the first in this order. */
static int compare_claims(const void *left, const void *right)
{
    const struct share *a = left, *b = right;
    bool a_over = a->remainder > 0 && a->holds > a->size;
    bool b_over = b->remainder > 0 && b->holds > b->size;

    if (a_over != b_over) return a_over ? -1 : 1;
    if (a->remainder != b->remainder) return a->remainder > b->remainder ? -1 : 1;
    return a->member < b->member ? -1 : 1;
}

/* Gives everybody its quota rounded down. Returns how many partitions are left over. */
static uint32_t round_down(struct share *shares, const uint32_t *weights, uint32_t members,
                           uint32_t partitions, uint64_t all)
{
    uint32_t left = partitions;

    for (uint32_t m = 0; m < members; m++) {
        uint64_t quota = (uint64_t)partitions * weights[m];
        shares[m].member = m;
        shares[m].size = (uint32_t)(quota / all);
        shares[m].remainder = quota % all;
        left -= shares[m].size;
    }
    return left;
}

/* sizes[m] becomes what m may have. */
static void divide(struct share *shares, uint32_t *sizes, const uint32_t *weights, uint32_t members,
                   uint32_t partitions, uint64_t all)
{
    uint32_t left = round_down(shares, weights, members, partitions, all);

    if (left > 0) qsort(shares, members, sizeof *shares, compare_claims);
    for (uint32_t i = 0; i < left; i++) {
        assert(i < members && shares[i].remainder > 0);
        shares[i].size++;
    }
    for (uint32_t i = 0; i < members; i++) sizes[shares[i].member] = shares[i].size;
}

/* Takes from sizes what is kept and dealt, until nothing is left of them. */
static void deal(uint32_t *sizes, uint32_t members, const uint32_t *owner, uint32_t partitions,
                 uint32_t *out)
{
    uint32_t next = 0;

    for (uint32_t p = 0; p < partitions; p++) {
        bool kept = owner[p] != WEIR__NOBODY && sizes[owner[p]] > 0;
        if (kept) sizes[owner[p]]--;
        out[p] = kept ? owner[p] : WEIR__NOBODY;
    }
    for (uint32_t p = 0; p < partitions; p++) {
        if (out[p] != WEIR__NOBODY) continue;
        while (sizes[next] == 0) next++;
        assert(next < members);
        sizes[next]--;
        out[p] = next;
    }
}

int weir__balance(const uint32_t *weights, uint32_t members, const uint32_t *owner,
                  uint32_t partitions, uint32_t *out, struct weir_error *err)
{
    struct share *shares;
    uint32_t *sizes;
    uint64_t all = 0;
    int rc = 0;

    for (uint32_t m = 0; m < members; m++) all += weights[m];
    if (all == 0) {
        for (uint32_t p = 0; p < partitions; p++) out[p] = WEIR__NOBODY;
        return 0;
    }
    shares = calloc(members, sizeof *shares);
    sizes = calloc(members, sizeof *sizes);
    if (!shares || !sizes) {
        rc = weir__fail(err, WEIR_ENOMEM, "balancing %u partitions", partitions);
        goto done;
    }
    for (uint32_t p = 0; p < partitions; p++) {
        assert(owner[p] == WEIR__NOBODY || owner[p] < members);
        if (owner[p] != WEIR__NOBODY) shares[owner[p]].holds++;
    }
    divide(shares, sizes, weights, members, partitions, all);
    deal(sizes, members, owner, partitions, out);
done:
    free(shares);
    free(sizes);
    return rc;
}
