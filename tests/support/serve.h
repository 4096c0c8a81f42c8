/* serve.h - a `weir serve` of a test's own: a process, on free ports, over a folder. It dies with the
 * test. The program is $WEIR, or else the one that was built beside the test. */
#ifndef WEIR_SUPPORT_SERVE_H
#define WEIR_SUPPORT_SERVE_H

#include <stdbool.h>
#include <sys/types.h>

#define SERVE_ADDRESS_BYTES 64
#define SERVE_PORTS 4

struct serve {
    pid_t pid; /* 0: it does not run */
    int out;
    bool tls;
    bool events_only;               /* batches are not delivered as they are stored */
    char amqp[SERVE_ADDRESS_BYTES]; /* "127.0.0.1:PORT"; kept over a stop, and taken again */
    char amqps[SERVE_ADDRESS_BYTES];
    char http[SERVE_ADDRESS_BYTES]; /* and where AMQP is inside WebSockets */
    char https[SERVE_ADDRESS_BYTES];
    int held[SERVE_PORTS]; /* a socket on each of its ports, so that nobody else is given one */
    char ca_file[512];     /* whom to trust, when tls */
};

/* Returns when it is ready: 0, or -1 and a line on stderr. Zeroes before the first start; its ports
 * are its own until the process ends. */
int serve_start(struct serve *, const char *dir, bool tls);
int serve_again(struct serve *, const char *dir); /* on the same ports, after one of these: */
int serve_stop(struct serve *);                   /* asks it to end; 0: it did, without complaint */
void serve_kill(struct serve *);

/* The development key's connection string for one of the addresses, or for another road there. */
#define SERVE_CONNECTION_BYTES 256
void serve_connection(char to[SERVE_CONNECTION_BYTES], const char *address, bool tls);

#endif
