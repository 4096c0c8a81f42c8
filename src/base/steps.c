#include "base/steps.h"

#ifdef WEIR_COUNT_STEPS
_Thread_local uint64_t weir__steps;
#else
_Static_assert(1, "nothing is counted in this build");
#endif
