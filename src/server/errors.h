/* errors.h - our errors in the words of the service, which clients act upon. */
#ifndef WEIR_SERVER_ERRORS_H
#define WEIR_SERVER_ERRORS_H

#include "amqp/engine.h"

#define WEIR__COND_ARGUMENT "com.microsoft:argument-error"
#define WEIR__COND_RANGE "com.microsoft:argument-out-of-range"
#define WEIR__COND_AUTH_FAILED "com.microsoft:auth-failed"
#define WEIR__COND_SERVER_BUSY "com.microsoft:server-busy"
#define WEIR__COND_TIMEOUT "com.microsoft:timeout"
#define WEIR__COND_OUT_OF_ORDER "com.microsoft:out-of-order-sequence"
#define WEIR__COND_EPOCH_STOLEN "com.microsoft:producer-epoch-stolen"

/* Why something is refused. condition NULL: as the code says. */
struct weir__refusal {
    struct weir_error why;
    const char *condition;
};

/* What to tell a client: borrowed from the refusal. Failures of our own are told without their
 * details, which are for the log. */
struct weir__amqp_error weir__errors_say(const struct weir__refusal *);

/* The status of a reply that goes with a code: 400, 401, 404, ... */
int weir__errors_status(int code);

#endif
