/* hashset.h - how many different 64-bit hashes were there. Out of memory ends the test. */
#ifndef WEIR_SUPPORT_HASHSET_H
#define WEIR_SUPPORT_HASHSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hashset;

struct hashset *hashset_new(void);
void hashset_free(struct hashset *);
bool hashset_add(struct hashset *, uint64_t hash); /* true when it is new */
size_t hashset_count(const struct hashset *);

#endif
