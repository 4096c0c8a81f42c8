/* chance.h - chance that is the same on every run: splitmix64 from a seed. */
#ifndef WEIR_SIM_CHANCE_H
#define WEIR_SIM_CHANCE_H

#include <stdbool.h>
#include <stdint.h>

static inline uint64_t weir__chance_next(uint64_t *chance)
{
    uint64_t z = *chance += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* least .. most, both included */
static inline int64_t weir__chance_between(uint64_t *chance, int64_t least, int64_t most)
{
    return least + (int64_t)(weir__chance_next(chance) % (uint64_t)(most - least + 1));
}

static inline bool weir__chance_one_in(uint64_t *chance, uint64_t sides)
{
    return weir__chance_next(chance) % sides == 0;
}

#endif
