/* peek.h - what a log's folder holds, without opening it: see peek.c. */
#ifndef WEIR_LOG_PEEK_H
#define WEIR_LOG_PEEK_H

#include <stdbool.h>

#include "log/fs.h"

struct weir__log_peek {
    uint64_t hub_id;     /* whose log it is; 0: that cannot be read */
    uint32_t partitions; /* 0 in that case */
    uint32_t version;    /* of its format; 0 in that case */
    bool used;           /* false: it is proven that no batch was ever appended */
};

/* Changes nothing. fs NULL: the machine's. WEIR_ENOTFOUND: there is no such folder. */
int weir__log_peek(struct weir__fs *, const char *dir, struct weir__log_peek *out,
                   struct weir_error *);

#endif
