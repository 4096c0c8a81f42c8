/* sniff.h - what somebody speaks, from the first bytes that they sent. Pure. */
#ifndef WEIR_IO_SNIFF_H
#define WEIR_IO_SNIFF_H

#include "base/bytes.h"

#define WEIR__SNIFF_BYTES 8 /* with so many the answer is never WEIR__SNIFF_MORE */

enum weir__sniff {
    WEIR__SNIFF_MORE,      /* cannot tell yet */
    WEIR__SNIFF_AMQP,      /* "AMQP" 0 1 0 0: AMQP 1.0 itself */
    WEIR__SNIFF_AMQP_SASL, /* "AMQP" 3 1 0 0 */
    WEIR__SNIFF_AMQP_TLS,  /* "AMQP" 2 1 0 0: TLS negotiated inside AMQP */
    WEIR__SNIFF_AMQP_091,  /* "AMQP" 0 0 9 1 and its older brothers: RabbitMQ clients */
    WEIR__SNIFF_AMQP_ODD,  /* "AMQP" and something else */
    WEIR__SNIFF_TLS,       /* the record of a ClientHello */
    WEIR__SNIFF_HTTP,      /* a method of HTTP/1, or the preface of HTTP/2 */
    WEIR__SNIFF_KAFKA,     /* a length, then the request that its clients begin with */
    WEIR__SNIFF_UNKNOWN
};

enum weir__sniff weir__sniff(struct weir__bytes first);

/* For people: "AMQP 1.0", "AMQP 0-9-1", "TLS", "HTTP", "something else" and so on. */
const char *weir__sniff_name(enum weir__sniff);

#endif
