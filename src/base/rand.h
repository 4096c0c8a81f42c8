/* rand.h - chance as an argument, for identifiers and keys. */
#ifndef WEIR_BASE_RAND_H
#define WEIR_BASE_RAND_H

#include <stddef.h>

#include "base/error.h"

struct weir__rand {
    /* Fills out with len unpredictable bytes. */
    int (*fill)(void *self, void *out, size_t len, struct weir_error *);
    void *self;
};

/* The kernel's generator. */
struct weir__rand weir__rand_system(void);

#endif
