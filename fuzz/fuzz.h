/* fuzz.h - what every fuzz target defines: feed it any bytes, it must not crash. Returns 0. */
#ifndef WEIR_FUZZ_H
#define WEIR_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* What must hold whatever the bytes are. */
#define ORACLE(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) abort();                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len);

#endif
