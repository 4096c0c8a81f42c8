/* wire.h - what the files of the wire backend share: hubs behind a connection string.
 *
 * One connection, on one loop of its own, carries every link of a struct weir:
 *
 *   wire.c            opening and closing
 *   wire_connection.c the socket and the engine: dialling, losing, dialling again
 *   wire_first.c      the first connection, before anybody has answered
 *   wire_claim.c      tokens: shown to $cbs, and again before they end
 *   wire_desk.c       $cbs and $management: requests and their replies
 *   wire_query.c      questions to $management, from callers' threads
 *   wire_link.c       a link's life: claim, attach, lost, attach again
 *   wire_sender.c     batches out: callers' threads
 *   wire_flight.c     batches out: the loop
 *   wire_stamp.c      what a batch is on the wire
 *   wire_source.c     events in: callers' threads
 *   wire_arrival.c    events in: the loop
 *   wire_row.c        what has come and was not read yet
 *   wire_position.c   from where
 *   wire_error.c      what the other side's conditions mean
 *   wire_admin*.c     hubs, groups and rules, by HTTP: wire_admin.h
 *
 * Callers' threads and the loop share links and queries only: each has a lock for the members that
 * say so, and a post by which a caller asks the loop to look at it. Everything else is the loop's.
 * Under a lock only a mailbox's is taken, and nobody is called back. */
#ifndef WEIR_CLIENT_WIRE_H
#define WEIR_CLIENT_WIRE_H

#include "amqp/engine.h"
#include "base/logging.h"
#include "base/thread.h"
#include "client/backend.h"
#include "client/connstr.h"
#include "client/http_client.h"
#include "client/wire_row.h"
#include "io/tcp.h"

#define WEIR__WIRE_AUDIENCE_BYTES 640 /* sb://HOST/HUB/ConsumerGroups/GROUP */
#define WEIR__WIRE_ADDRESS_BYTES 384  /* HUB/ConsumerGroups/GROUP/Partitions/N */

#define WEIR__WIRE_RETRY_MS 100 /* before the first try again; each next waits twice as long, */
#define WEIR__WIRE_RETRY_MS_MAX 5000 /* up to this, and between half and all of it by chance */
#define WEIR__WIRE_BUSY_MS 4000      /* after "server-busy", as the service asks */
#define WEIR__WIRE_LEAVE_MS 1000     /* for the other side's part of a goodbye */
#define WEIR__WIRE_PATIENCE_MS 15000 /* of calls without a time-out; option patience_ms */
#define WEIR__WIRE_SEND_MS 60000     /* a batch without an outcome is given up */
#define WEIR__WIRE_FLIGHT_BYTES ((size_t)4 << 20) /* a sender's batches on their way: WEIR_EBUSY */
#define WEIR__WIRE_TOKEN_S 3600
#define WEIR__WIRE_IDLE_MS 30000

struct weir__wire;
struct weir__wire_link;

/* ---- conditions ---- */

enum weir__wire_cure {
    WEIR__WIRE_FATAL, /* trying again gives the same answer */
    WEIR__WIRE_AGAIN, /* it may not, a little later */
    WEIR__WIRE_BUSY,  /* later */
    WEIR__WIRE_CLAIM  /* after showing a new token */
};

/* What an error of the other side means, as error and for what is tried next. No condition: the
 * thing was closed without a reason. */
enum weir__wire_cure weir__wire_error(const struct weir__amqp_error *, struct weir_error *out);
/* The same for a batch that was not accepted: what may have been stored is WEIR_EUNKNOWN. */
enum weir__wire_cure weir__wire_rejection(const struct weir__amqp_settlement *,
                                          struct weir_error *out);
/* For the reply of a desk: the condition, or else the status. */
enum weir__wire_cure weir__wire_status(int64_t status, const struct weir__amqp_error *,
                                       struct weir_error *out);

/* How long to wait before try number `attempts`, from 1. Any thread. */
int64_t weir__wire_delay_ms(unsigned attempts);

/* ---- ends of links in the engine ---- */

/* Hangs on an engine's link and hears its events; link is NULL before it is there and after its
 * DETACH. */
struct weir__wire_end {
    struct weir__amqp_link *link;
    void (*event)(struct weir__wire_end *, const struct weir__amqp_event *);
};

/* ---- desks ---- */

/* A question to a desk and its answer, embedded in what asks. On the loop. */
struct weir__wire_request {
    struct weir__wire_request *next;
    uint64_t id; /* 0: not sent */
    /* Puts the application properties, an even number, and returns it; then the value of the body,
     * for which put_body may be NULL. */
    uint32_t (*put_properties)(struct weir__wire_request *, struct weir__amqp_writer *);
    void (*put_body)(struct weir__wire_request *, struct weir__amqp_writer *);
    /* Once: body is null unless why->code is 0. WEIR_ECANCELED: the connection was lost. */
    void (*done)(struct weir__wire_request *, enum weir__wire_cure,
                 const struct weir__amqp_value *body, const struct weir_error *why);
};

struct weir__wire_desk {
    struct weir__wire *wire;
    const char *address;
    struct weir__wire_end request, reply;
    bool open[2]; /* both were answered */
    struct weir__wire_request *first;
};

int weir__wire_desk_open(struct weir__wire_desk *, struct weir__wire *, const char *address,
                         struct weir_error *);
bool weir__wire_desk_ready(const struct weir__wire_desk *);
void weir__wire_desk_ask(struct weir__wire_desk *, struct weir__wire_request *);
void weir__wire_desk_forget(struct weir__wire_desk *, struct weir__wire_request *);
void weir__wire_desk_lost(struct weir__wire_desk *); /* the connection is gone */

void weir__wire_put_text(struct weir__amqp_writer *, const char *name, const char *value);

/* ---- claims ---- */

enum weir__wire_claim_state {
    WEIR__WIRE_CLAIM_NONE,
    WEIR__WIRE_CLAIM_ASKED,
    WEIR__WIRE_CLAIM_GOOD
};

/* A token for an audience, shared by those who need it. */
struct weir__wire_claim {
    struct weir__wire *wire;
    struct weir__wire_claim *next;
    unsigned users;
    enum weir__wire_claim_state state; /* GOOD stays so while it is renewed */
    bool asking;                       /* a request is with the desk */
    unsigned attempts;
    int64_t expires_s;
    struct weir__wire_request request;
    struct weir__timer timer; /* to renew, or to try again */
    char audience[WEIR__WIRE_AUDIENCE_BYTES];
};

/* Finds or makes one; NULL: out of memory. */
struct weir__wire_claim *weir__wire_claim_use(struct weir__wire *, const char *audience);
void weir__wire_claim_release(struct weir__wire_claim *); /* NULL is fine */
/* Good now? If not it is asked for, and weir__wire_claims_changed follows. */
bool weir__wire_claim_ready(struct weir__wire_claim *);
void weir__wire_claim_doubt(struct weir__wire_claim *); /* the other side did not know it */
/* Our own token has ended before the other side looked at it: no wonder that it was refused. */
bool weir__wire_claim_late(const struct weir__wire_claim *);
void weir__wire_claims_lost(struct weir__wire *);
void weir__wire_claims_free(struct weir__wire *);
/* A token for a resource: what the connection string has, or a new one. */
int weir__wire_token(struct weir__wire *, const char *resource, int64_t *out_expires_s,
                     char out[WEIR__ACCESS_TOKEN_MAX + 1], struct weir_error *);

/* ---- links ---- */

enum weir__wire_link_state {
    WEIR__WIRE_LINK_IDLE,      /* not attached; it will be when somebody wants it */
    WEIR__WIRE_LINK_RESTING,   /* the same, but not before its timer */
    WEIR__WIRE_LINK_ATTACHING, /* our attach is on its way */
    WEIR__WIRE_LINK_OPEN,
    WEIR__WIRE_LINK_LEAVING /* our detach is on its way */
};

#define WEIR__WIRE_TERMS_BYTES 2048

/* What a sender and a source do differently, all on the loop. */
struct weir__wire_link_calls {
    bool sends;
    bool (*wanted)(struct weir__wire_link *);  /* should it be attached? */
    void (*visited)(struct weir__wire_link *); /* a caller asked for it; NULL: nothing to do */
    /* The terms of our attach, written into space where they need one. */
    void (*terms)(struct weir__wire_link *, struct weir__amqp_terms *,
                  uint8_t space[WEIR__WIRE_TERMS_BYTES]);
    /* The answer is good; fields live for the call. */
    void (*attached)(struct weir__wire_link *, const struct weir__amqp_composite *fields);
    void (*pump)(struct weir__wire_link *); /* open: move what can be moved */
    void (*transfer)(struct weir__wire_link *, const struct weir__amqp_delivery *);
    void (*settle)(struct weir__wire_link *, const struct weir__amqp_settlement *);
    void (*lost)(struct weir__wire_link *);  /* it was open */
    void (*woken)(struct weir__wire_link *); /* a deferred wake is due; NULL: nothing to do */
    void (*failed)(struct weir__wire_link *,
                   const struct weir_error *); /* and is not tried again */
    bool (*idle)(struct weir__wire_link *);    /* closing: nothing is left to be done for it */
    void (*free)(struct weir__wire_link *);
};

struct weir__wire_link {
    struct weir__wire_end end;
    const struct weir__wire_link_calls *calls;
    struct weir__wire *wire;
    struct weir__wire_link *next, *prev; /* among all of the wire's */
    bool listed;
    enum weir__wire_link_state state;
    bool fresh; /* attached in this round of events: a detach may be right behind it */
    bool ended; /* detached in this round: what is done about it follows, from the next three */
    bool was_open;
    enum weir__wire_cure cure;
    struct weir_error ended_why;
    int64_t again_ms; /* not 0: our detach is on its way, to attach again so much later */
    unsigned attempts;
    unsigned denied; /* since it was open: a new token may help once */
    struct weir__wire_claim *claim;
    struct weir__wire_session *session;
    struct weir__timer timer; /* resting, leaving */
    struct weir__post post;   /* a visit */
    struct weir__post wake;   /* of who waits for `changed`, deferred to the end of a turn */
    char address[WEIR__WIRE_ADDRESS_BYTES];
    char audience[WEIR__WIRE_AUDIENCE_BYTES];

    struct weir__mutex lock; /* for what follows, and what senders and sources say */
    struct weir__cond changed;
    bool opening; /* somebody waits for the first answer */
    bool opened;  /* the first answer was good, whatever came later */
    bool closing; /* nobody will ask for anything any more */
    bool waited;  /* somebody waits until it is gone, and frees it */
    bool gone;
    struct weir_error why; /* opening failed, or the link did: code is not 0 */
};

void weir__wire_link_init(struct weir__wire_link *, struct weir__wire *,
                          const struct weir__wire_link_calls *);
void weir__wire_link_fini(struct weir__wire_link *);
/* Callers' threads. Asks the loop to look at the link. */
void weir__wire_link_visit(struct weir__wire_link *);
/* Attaches it and waits for the answer. */
int weir__wire_link_open(struct weir__wire_link *, struct weir_error *);
/* The link belongs to the loop from here on. wait: until the other side knows. */
void weir__wire_link_close(struct weir__wire_link *, bool wait);

/* The loop. */
void weir__wire_link_advance(struct weir__wire_link *);
bool weir__wire_link_opening(struct weir__wire_link *); /* somebody waits for the first answer */
void weir__wire_link_round(struct weir__wire_link *);   /* of events, that is through */
void weir__wire_link_fail(struct weir__wire_link *, const struct weir_error *);
void weir__wire_link_again(struct weir__wire_link *, int64_t pause_ms); /* detach, attach again */
void weir__wire_link_end(struct weir__wire_link *, const struct weir_error *); /* it was open */
void weir__wire_link_drop(struct weir__wire_link *); /* for good: the wire is being closed */

/* ---- sessions, each for many links of one direction ---- */

struct weir__wire_session {
    struct weir__wire_session *next;
    struct weir__amqp_session *session;
    unsigned links;
    bool sends;
    bool answered; /* the other side has said how many it takes */
    bool full;     /* it takes no more than it has */
};

struct weir__wire_session *weir__wire_session_use(struct weir__wire *, bool sends,
                                                  struct weir_error *);
void weir__wire_session_release(struct weir__wire_session *); /* NULL is fine */

/* What the other side told of itself with the answer to our attach of $cbs: see wire_admin.h. */
struct weir__wire_told {
    bool ours; /* it is weir serve */
    uint16_t http, https;
};

/* ---- questions to $management ---- */

/* From a caller's thread to the loop and back. */
struct weir__wire_query {
    struct weir__wire *wire;
    struct weir__wire_query *next;
    struct weir__wire_request request;
    struct weir__wire_claim *claim;
    struct weir__post post;
    bool listed, asked;
    unsigned attempts;
    struct weir__timer timer;
    const char *type; /* NULL: only what the other side told when we came */
    char hub[WEIR__HUB_NAME_MAX + 1];
    char partition[16];                /* "" for a hub */
    struct weir_hub_info hub_info;     /* the answer */
    struct weir_partition_info p_info; /* or this one, */
    struct weir__wire_told told;       /* or this one */

    struct weir__mutex lock; /* for what follows */
    struct weir__cond changed;
    bool answered, abandoned;
    struct weir_error why;
};

int weir__wire_hub_info(struct weir__backend *, const char *hub, struct weir_hub_info *,
                        struct weir_error *);
int weir__wire_partition_info(struct weir__backend *, const char *hub, uint32_t partition,
                              struct weir_partition_info *, struct weir_error *);
/* The same facts of a partition, as they come with its events; without them out stays as it is. */
void weir__wire_measure(struct weir__bytes message, struct weir_receiver_metrics *out);
/* Connects when there is no connection. */
int weir__wire_ask_told(struct weir__wire *, struct weir__wire_told *, struct weir_error *);
void weir__wire_query_advance(struct weir__wire_query *);
void weir__wire_query_end(struct weir__wire_query *, const struct weir_error *);

/* ---- the wire ---- */

enum weir__wire_stage {
    WEIR__WIRE_DOWN,
    WEIR__WIRE_RESTING, /* until the retry timer */
    WEIR__WIRE_DIALING, /* to the peer's open and the answer of $cbs */
    WEIR__WIRE_READY,
    WEIR__WIRE_CLOSING /* by us, for good */
};

struct weir__wire {
    struct weir__backend base;
    struct weir__connstr to;
    struct weir__logger logger;
    weir_log_fn log;
    void *log_user;
    size_t batch_bytes_max;
    int64_t token_s;
    uint32_t idle_ms;
    int64_t patience_ms;
    bool wait; /* option of the same name */
    char space[WEIR_SPACE_BYTES];
    struct weir__tls_context *tls;
    struct weir__http_client http;      /* of administration; no url: the server tells it */
    struct weir__tls_context *http_tls; /* when that has TLS and AMQP has none */
    struct weir__loops *loops;
    struct weir__loop *loop;
    struct weir__post close_post;

    enum weir__wire_stage stage;
    struct weir__tcp *tcp;
    struct weir__amqp *engine;
    struct weir__timer tick, retry;
    unsigned attempts;
    struct weir_error trouble; /* why there is no connection */
    uint64_t numbers;          /* given to links and requests, so that none is used twice */
    bool met;                  /* somebody who speaks AMQP has answered there, once */
    bool useful;               /* this connection has carried something */
    bool fallen;               /* the engine has told its end: what follows is of no use */
    bool known;                /* why this connection ended: its last event tells nothing new */
    bool deaf;                 /* the other side reads no more: no batch is sent */
    bool starved;              /* a sender waits for room in the output */
    bool any_fresh;            /* a link is fresh or ended */
    struct weir__post work;
    char container[40];
    struct weir__wire_link *links;
    struct weir__wire_query *queries;
    struct weir__wire_claim *claims;
    struct weir__wire_session *sessions;
    struct weir__wire_desk cbs, management;
    struct weir__wire_told told; /* by this connection's other side */
    struct weir__wire_pool pool; /* of the rows of its sources */

    struct weir__mutex lock;
    struct weir__cond changed;
    bool closed;
};

/* Any thread. */
void weir__wire_log(struct weir__wire *, enum weir__level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The loop. */
void weir__wire_connect(struct weir__wire *);    /* unless it is there or on its way */
void weir__wire_write_soon(struct weir__wire *); /* there is something to write */
void weir__wire_advance_all(struct weir__wire *);
void weir__wire_break(struct weir__wire *, const char *why); /* this connection is of no use */
void weir__wire_do_close(void *arg);                         /* and its timers and posts: */
void weir__wire_do_retry(void *arg);
void weir__wire_do_tick(void *arg);
void weir__wire_do_work(void *arg);

/* How a connection came to its end. */
enum weir__wire_failure {
    WEIR__WIRE_BROKEN,   /* it was never there, or broke */
    WEIR__WIRE_NOT_AMQP, /* somebody is there and speaks something else, or hangs up */
    WEIR__WIRE_NOT_TLS,
    WEIR__WIRE_STRANGER /* whose certificate is not good */
};

/* Whether who waits for a first answer is told this now, instead of trying on. */
bool weir__wire_is_final(const struct weir__wire *, const struct weir_error *why);
/* Adds what may be wrong with the connection string, as long as nobody has answered. */
void weir__wire_explain(const struct weir__wire *, enum weir__wire_failure, struct weir_error *why);

/* Any thread: waited_ms were in vain; says why there is no connection. */
int weir__wire_late(struct weir__wire *, int64_t waited_ms, struct weir_error *);

/* A terminus with this address, written into space. */
struct weir__amqp_value weir__wire_terminus(enum weir__amqp_kind, const char *address,
                                            struct weir__amqp_value filter, uint8_t *space,
                                            size_t room);
/* The map or list that was written, as a value. */
struct weir__amqp_value weir__wire_written(struct weir__amqp_writer *);

/* ---- positions ---- */

#define WEIR__WIRE_SELECTOR_BYTES 96

void weir__wire_selector(const struct weir_position *, char out[WEIR__WIRE_SELECTOR_BYTES]);
/* The map of filters with that selector alone, written into space. */
struct weir__amqp_value weir__wire_filter(const char *selector, uint8_t *space, size_t room);
/* "From now on" must mean the same after a reconnect: it becomes a sequence number. */
int weir__wire_find_latest(struct weir__backend *, const char *hub, uint32_t partition,
                           struct weir_position *, struct weir_error *);

/* ---- stamp ---- */

/* The payload of a batch, for message format WEIR__AMQP_FORMAT_BATCH: its key in front of it and in
 * each event, and an idempotent producer's mark in each event. mark may be NULL. */
size_t weir__wire_stamp_bound(const struct weir__batch *, const struct weir__log_producer *mark);
int weir__wire_stamp(const struct weir__batch *, const struct weir__log_producer *mark, uint8_t *to,
                     size_t room, size_t *out_bytes, struct weir_error *);

int weir__wire_open_sender(struct weir__backend *, const char *hub,
                           const struct weir_producer_options *, struct weir__sender **out,
                           struct weir_error *);
int weir__wire_open_source(struct weir__backend *, const char *hub, uint32_t partition,
                           const struct weir_receiver_options *, struct weir__source **out,
                           struct weir_error *);

/* EntityPath binds a connection string to one hub. */
int weir__wire_check_hub(const struct weir__wire *, const char *hub, struct weir_error *);

#endif
