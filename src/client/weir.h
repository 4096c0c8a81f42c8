/* weir.h - what the files of the client share: the handle, options, completions. */
#ifndef WEIR_CLIENT_WEIR_H
#define WEIR_CLIENT_WEIR_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/options.h"
#include "client/backend.h"

struct weir {
    struct weir__backend *backend;
    atomic_uint users; /* producers and receivers that are open */
};

/* Marks this thread as running a completion. */
void weir__completing_begin(void);
void weir__completing_end(void);

/* WEIR_EDEADLOCK inside a completion, else 0: the first line of every call that waits. */
int weir__completing_refuse(const char *call, struct weir_error *);

/* After WEIR_ETIMEDOUT, for who reads up to the end: whether all that is there was given, as
 * weir__source_ops.ended. A server that cannot tell, such as Azure, leaves it at false. */
bool weir__receiver_ended(struct weir_receiver *);

#endif
