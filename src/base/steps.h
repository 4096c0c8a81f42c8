/* steps.h - counts the work that a peer's bytes cause, for tests that bound it.
 *
 * Every loop whose count comes from a peer says WEIR__STEP() once a round. Builds with sanitizers and
 * fuzz builds count, each thread for itself; in all others there is nothing of it. */
#ifndef WEIR_BASE_STEPS_H
#define WEIR_BASE_STEPS_H

#include <stdint.h>

#ifdef WEIR_COUNT_STEPS
extern _Thread_local uint64_t weir__steps;
#define WEIR__STEP() ((void)weir__steps++)
#define WEIR__STEPS() weir__steps
#else
#define WEIR__STEP() ((void)0)
#define WEIR__STEPS() UINT64_C(0)
#endif

#endif
