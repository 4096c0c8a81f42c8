/* proxy.h - a bad road between a client and a server: a TCP proxy on a thread of its own that passes
 * bytes on, and does to them what it is told. */
#ifndef WEIR_SUPPORT_PROXY_H
#define WEIR_SUPPORT_PROXY_H

#include <stdint.h>

enum proxy_fault {
    PROXY_PASS,       /* all is well */
    PROXY_DELAY,      /* every piece comes PROXY_DELAY_MS later, one after another */
    PROXY_TRICKLE,    /* a few bytes at a time */
    PROXY_CORRUPT,    /* now and then a byte is another, of what TLS has encrypted */
    PROXY_HALF_CLOSE, /* the server's direction ends, the other one goes on */
    PROXY_BLACK_HOLE, /* bytes are taken and go nowhere; nobody is told */
    PROXY_CUT         /* after some bytes, up to cut_bytes, both ends are reset, in mid-word */
};

#define PROXY_DELAY_MS 5
#define PROXY_ADDRESS_BYTES 32

struct proxy;

/* To a port of 127.0.0.1, "127.0.0.1:PORT"; it need not be listened on yet. NULL: it failed. */
struct proxy *proxy_start(const char *target, uint64_t seed);
void proxy_stop(struct proxy *);

const char *proxy_address(const struct proxy *);
void proxy_set(struct proxy *, enum proxy_fault, uint64_t cut_bytes);
void proxy_cut_now(struct proxy *);
unsigned proxy_cuts(struct proxy *); /* connections that were cut */
unsigned
proxy_found(struct proxy *); /* that carried a wrong byte, and that an end has closed then */

#endif
