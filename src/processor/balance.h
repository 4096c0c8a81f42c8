/* balance.h - who should own which partition. Pure: the same answer on every copy.
 *
 * From the members (sorted by id), their weights and who owns what now: each member's share is its
 * weight's part of the partitions, rounded down or up; shares are filled with what their members own
 * already, so that no more partitions move than must. Nothing is random and no order of arrival
 * matters. */
#ifndef WEIR_PROCESSOR_BALANCE_H
#define WEIR_PROCESSOR_BALANCE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WEIR__NOBODY UINT32_MAX

/* owner[p] is the index of the member that owns p now, or WEIR__NOBODY; out[p] the index of the one
 * that should, WEIR__NOBODY only when no member has a weight. out may be owner itself. Takes
 * O(partitions + members log members). WEIR_ENOMEM. */
int weir__balance(const uint32_t *weights, uint32_t members, const uint32_t *owner,
                  uint32_t partitions, uint32_t *out, struct weir_error *);

#endif
