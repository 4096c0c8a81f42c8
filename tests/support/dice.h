/* dice.h - chance that is the same on every run: splitmix64 from a seed. */
#ifndef WEIR_SUPPORT_DICE_H
#define WEIR_SUPPORT_DICE_H

#include <stdint.h>

static inline uint64_t dice_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint64_t dice_next(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    return dice_mix(*state);
}

/* 0 .. sides - 1 */
static inline uint64_t dice_roll(uint64_t *state, uint64_t sides)
{
    return dice_next(state) % sides;
}

#endif
