/* server.h - a namespace on the network: Azure Event Hubs' protocol on AMQP connections; sending,
 * administration, health, and AMQP inside WebSockets on those of HTTP: see web.h.
 *
 *   io/tcp -> amqp/engine -> connection.c -> cbs.c, management.c   tokens and questions
 *                                         -> sender.c              events in:  hub/ -> log/
 *                                         -> receiver.c            events out: log/ -> hub/
 *
 * A connection lives on one loop and everything here happens on that loop. Two things come from
 * other threads, completions of the log and news for receivers; both are put on a list of the
 * connection and one visit of its loop takes care of all of them.
 *
 * Limits, each with its answer:
 *
 *   WEIR__SERVER_UNFLUSHED_MAX      bytes of a connection that are not on disk: it is not read
 *   WEIR__SERVER_UNFLUSHED_ALL_MAX  of all: those with more than a fair share are not read
 *   WEIR__SERVER_BUSY_MS            a log that takes nothing in for so long: server-busy
 *   WEIR__SERVER_TOKEN_MS           a connection without a good token: closed
 *   WEIR__SERVER_IDLE_MS            announced; a client that is silent for twice as long: closed. So
 *                                   does Azure, and its clients are made for it
 *   WEIR__SERVER_DEAD_MS            silence after which TCP probes a peer
 *   WEIR__SERVER_STALL_MS           a peer that takes no output, or whose machine acknowledges
 *                                   nothing, which one without power does not: closed
 *   budget.h                        memory and places of all connections together
 *   WEIR__SERVER_CONNECTIONS_MAX    of one port: the oldest stranger goes, or else the next one is
 *                                   closed, and that is logged
 *   WEIR__SERVER_DESCRIPTORS_KEPT   not given to connections, or more with many hubs: the same. One
 *                                   budget for all ports: idle strangers cannot take from the logs
 *   WEIR__SERVER_CLAIMS_MAX         audiences of a connection: the token is refused
 *   WEIR__SERVER_REPLIES_MAX        answers that a client does not fetch: its request is refused
 *   WEIR__SERVER_REFUSALS_MAX       refused logins in a time: the others are counted, and that is
 *                                   logged at its end
 *   WEIR__SERVER_REPLY_BYTES_MAX    of these, in all: likewise; WEIR__SERVER_STRANGER_... before a
 *                                   good token */
#ifndef WEIR_SERVER_SERVER_H
#define WEIR_SERVER_SERVER_H

#include "base/logging.h"
#include "hub/jwt.h"
#include "hub/namespace.h"
#include "io/tls.h"

#define WEIR__SERVER_UNFLUSHED_MAX ((size_t)4 << 20)
#define WEIR__SERVER_UNFLUSHED_ALL_MAX ((size_t)32 << 20)
#define WEIR__SERVER_UNFLUSHED_FAIR ((size_t)256 << 10)
#define WEIR__SERVER_BUSY_MS 10000
#define WEIR__SERVER_RETRY_MS 20 /* between tries to give a busy log a batch, at the latest */
#define WEIR__SERVER_TOKEN_MS 20000
#define WEIR__SERVER_IDLE_MS 120000
#define WEIR__SERVER_DEAD_MS 20000
#define WEIR__SERVER_STALL_MS 50000
#define WEIR__SERVER_CONNECTIONS_MAX 16384
#define WEIR__SERVER_DESCRIPTORS_KEPT 64
#define WEIR__SERVER_DESCRIPTORS_HUB 4 /* for each hub */
#define WEIR__SERVER_CLAIMS_MAX 2048
#define WEIR__SERVER_REPLIES_MAX 32
#define WEIR__SERVER_REPLY_BYTES_MAX ((size_t)256 << 10)
#define WEIR__SERVER_STRANGER_REPLY_BYTES_MAX ((size_t)4 << 10)
#define WEIR__SERVER_CREDIT 8000 /* of a sender: as many batches can share a flush */
#define WEIR__SERVER_STOP_MS 5000
#define WEIR__SERVER_REFUSALS_MAX 10 /* refused logins that are logged in ... */
#define WEIR__SERVER_REFUSALS_MS 10000

struct weir__server;

/* The connection that a line of the log is about. */
struct weir__server_about {
    uint64_t connection; /* its number, from 1, in the order in which they came */
    const char *peer;    /* "127.0.0.1:49152" */
};

/* Zero means the default. Strings are borrowed for the call, ns, tls and issuer for the
 * server's life. */
struct weir__server_options {
    struct weir__namespace *ns;
    const char *amqp;  /* "127.0.0.1:5672"; port 0: a free one */
    const char *amqps; /* with TLS; NULL: none */
    const char *http;  /* NULL: none */
    const char *https; /* with TLS; NULL: none */
    /* Of amqps and https. With ask_certificate, a client may log in by SASL EXTERNAL: the common
     * name of its certificate is the name of a rule of the namespace, and it has that rule's
     * rights. */
    struct weir__tls_context *tls;
    /* The issuer whose tokens are accepted in addition to access rules, and the keys that they are
     * signed with: a reference of its own is taken. NULL: nobody's. */
    const struct weir__jwt_issuer *issuer;
    struct weir__jwks *issuer_keys;
    unsigned loops;           /* one for each core */
    uint32_t token_ms;        /* WEIR__SERVER_TOKEN_MS */
    uint32_t idle_ms;         /* WEIR__SERVER_IDLE_MS */
    uint32_t message_ms;      /* from the first frame of a message to its last: 60000 */
    unsigned connections_max; /* of each port: WEIR__SERVER_CONNECTIONS_MAX */
    size_t buffers;           /* bytes: WEIR__BUDGET_BYTES, as the next two in budget.h */
    size_t stranger_buffers;  /* bytes */
    unsigned strangers_per_address;
    /* Names in the field Host that are answered to programs of this machine, in addition to its own;
     * borrowed for the server's life. */
    const char *const *http_names;
    uint32_t http_name_count;
    bool events_only; /* stored batches are not delivered as such, whoever desires them */
    bool trace;       /* every frame is a line of the logger, at WEIR__DEBUG */
    struct weir__logger logger;
    /* Lines about one connection, with the logger's user. NULL: the logger gets them, and they begin
     * with the peer. */
    void (*about)(enum weir__level, const char *room, const struct weir__server_about *,
                  const char *line, void *user);
};

/* It serves when this returns 0. WEIR_EEXIST: a port is taken, and the text says by whom. */
int weir__server_start(struct weir__server **out, const struct weir__server_options *,
                       struct weir_error *);

/* Stops accepting, lets what was taken in become durable, tells every client
 * amqp:connection:forced, and waits for them up to WEIR__SERVER_STOP_MS. What HTTP still waits for
 * then is refused. Frees. NULL is fine. */
void weir__server_stop(struct weir__server *);

/* From any thread, on a server with an issuer: its tokens must be signed with these keys from here
 * on, and what rests on a key that is not among them ends soon. Takes a reference of its own. */
void weir__server_renew_issuer(struct weir__server *, struct weir__jwks *);

/* "127.0.0.1:5672"; NULL when there is none. */
const char *weir__server_amqp(const struct weir__server *);
const char *weir__server_amqps(const struct weir__server *);
const char *weir__server_http(const struct weir__server *);
const char *weir__server_https(const struct weir__server *);

#endif
