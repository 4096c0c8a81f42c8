/* state.h - what the files of this room share: a server, its connections, and what is done for the
 * links of a connection. */
#ifndef WEIR_SERVER_STATE_H
#define WEIR_SERVER_STATE_H

#include <stdatomic.h>

#include "amqp/engine.h"
#include "base/thread.h"
#include "io/listener.h"
#include "io/worker.h"
#include "server/address.h"
#include "server/budget.h"
#include "server/claims.h"
#include "server/errors.h"
#include "server/server.h"

struct weir__connection;
struct weir__duty;
struct weir__visit;

/* ---- report.c: what is logged of connections ---- */

/* What anybody can cause as fast as he likes: refused logins, and mistakes of strangers. The server's
 * lock guards it. */
struct weir__refusals {
    struct weir__server *server;
    enum weir__level level;
    const char *what;        /* "logins were refused" */
    int64_t began_ms;        /* of the time in which so many are logged */
    uint32_t said, silent;   /* in it */
    struct weir__post watch; /* on the first loop, */
    struct weir__timer end;  /* which tells how many were silent */
};

void weir__report_init(struct weir__server *);
void weir__report_fini(struct weir__server *); /* tells what was not told; after the loops */

/* Whether a line about a mistake is written: of strangers only the first few, then how many more. */
bool weir__report_allows(struct weir__server *, bool trusted);

/* A line about a connection. When the text begins with the peer, it does not say so twice. */
__attribute__((format(printf, 6, 7))) void weir__report(const struct weir__server *,
                                                        enum weir__level, const char *room,
                                                        uint64_t connection, const char *peer,
                                                        const char *fmt, ...);

/* "127.0.0.1:1234: Connection reset by peer" without its beginning, when that is the peer. */
const char *weir__report_skip(const char *text, const char *peer);

/* Somebody was not let in, or shown a token in vain: counted, and logged unless there are many. */
void weir__report_refused(struct weir__server *, const char *room, uint64_t connection,
                          const char *peer, const char *why);

/* ---- duties: what is done for one link ---- */

/* What may happen to a duty, on its loop. All but gone may be NULL. */
struct weir__duty_calls {
    /* A message came. false: not now; the connection stands still and comes with it again. */
    bool (*transfer)(struct weir__duty *, const struct weir__amqp_delivery *);
    /* There is credit, or room in the output, or news that were put into `ready`. */
    void (*pump)(struct weir__duty *);
    /* The link is about to be detached by us: lets go of what others may be waiting for. */
    void (*leave)(struct weir__duty *);
    /* The link has ended: frees the duty, now or when nothing refers to it any more. */
    void (*gone)(struct weir__duty *);
};

/* The head of every duty. */
struct weir__duty {
    const struct weir__duty_calls *calls;
    struct weir__connection *connection;
    struct weir__amqp_link *link;   /* NULL after its end */
    struct weir__access_path *path; /* NULL, like rights 0: nothing is needed. The owner frees it */
    unsigned rights;                /* one of which the link needs */
    int64_t expires_s;              /* of the claim that it rests on */
    struct weir__duty *next, *prev;
    struct weir__duty *ready_next, *ready_prev; /* guarded by the connection's lock, */
    bool is_ready;                              /* with this */
    bool barred; /* detached by us, for want of rights: nothing more is taken from the link */
};

/* Answers an attach with a duty for its link: weir__amqp_accept was called. Or says why not. */
typedef int (*weir__duty_open_fn)(struct weir__connection *, const struct weir__amqp_event *,
                                  const struct weir__address *, struct weir__refusal *);

int weir__serve_sender(struct weir__connection *, const struct weir__amqp_event *,
                       const struct weir__address *, struct weir__refusal *);
int weir__serve_receiver(struct weir__connection *, const struct weir__amqp_event *,
                         const struct weir__address *, struct weir__refusal *);
int weir__serve_desk(struct weir__connection *, const struct weir__amqp_event *,
                     const struct weir__address *, struct weir__refusal *);

/* Makes a duty the one of a link and puts it on the connection's list. */
void weir__duty_start(struct weir__duty *, struct weir__connection *, struct weir__amqp_link *,
                      const struct weir__duty_calls *);
/* Takes it off the list and the link; gone calls this first. */
void weir__duty_end(struct weir__duty *);

/* Whether the connection may do this on the path of an address: `right` or Manage. Fills rights,
 * path and expires_s of the duty. */
int weir__duty_allow(struct weir__duty *, struct weir__connection *, const struct weir__address *,
                     unsigned right, const char *name, struct weir__refusal *);

/* Whether an attach asks for a capability. */
bool weir__duty_desires(const struct weir__amqp_event *, const char *capability);

/* From any thread, also under locks of the hub: pump is called soon, on the loop; or not, when it
 * was taken back there. */
void weir__duty_wake(struct weir__duty *);
void weir__duty_unready(struct weir__duty *);

/* On the loop: one, all of a connection (each time beginning with another, so that nobody always
 * finds the output full), those of one session, and all that were woken. */
void weir__duty_pump(struct weir__duty *);
void weir__duty_await_room(struct weir__duty *); /* it has credit, and more to send than goes now */
void weir__duty_pump_all(struct weir__connection *);
void weir__duty_pump_session(const struct weir__amqp_session *);
void weir__duty_take_ready(struct weir__connection *);

/* ---- requests and replies ---- */

/* A message to $cbs or $management. Borrowed. */
struct weir__request {
    struct weir__connection *connection;
    struct weir__amqp_value properties; /* the application's: a map */
    struct weir__amqp_value body;       /* null when it is not a value */
};

/* The text under a name; empty when there is none. */
struct weir__bytes weir__request_text(const struct weir__request *, const char *name);

/* Answers one: writes the body of the reply, an AMQP value, or nothing. */
typedef int (*weir__request_fn)(const struct weir__request *, struct weir__amqp_writer *body,
                                struct weir__refusal *);

int weir__cbs_answer(const struct weir__request *, struct weir__amqp_writer *body,
                     struct weir__refusal *);
int weir__management_answer(const struct weir__request *, struct weir__amqp_writer *body,
                            struct weir__refusal *);

/* SASL PLAIN with the name of a rule of the namespace and its key. */
bool weir__cbs_login(struct weir__connection *, struct weir__bytes rule, struct weir__bytes key);
/* SASL EXTERNAL: the name in a client's certificate is the name of such a rule, whose rights it has
 * until the certificate runs out. `as` is whom the client says it is, empty: it does not.
 * WEIR_EDENIED. */
int weir__cbs_login_certified(struct weir__connection *, const struct weir__tls_identity *,
                              struct weir__bytes as, struct weir_error *);

/* ---- publishing ---- */

#define WEIR__PUBLISH_ITEMS_MAX 16384u /* batches of a sender with the log; a power of two */

/* The batches of one sender that are with the log, numbered in their order. */
struct weir__publish {
    struct weir__duty *duty; /* the sender's */
    struct weir__publish_item *items;
    uint32_t items_cap;
    uint64_t settled, put; /* those between are with the log */
    atomic_ullong counted; /* with which the log is done; see publish.c */

    /* Guarded by the connection's lock. */
    struct weir__publish *done_next; /* among those that the loop was told of */
    struct weir__publish_failure *failures, **failures_last;
    uint64_t lost_from; /* of these nobody knows what became; UINT64_MAX: none */
};

void weir__publish_init(struct weir__publish *, struct weir__duty *);
void weir__publish_fini(struct weir__publish *); /* when nothing is with the log */
/* The log is about to take a batch, which is deliveries first to last; take_back: it did not. false:
 * there are too many, or no memory for one more. */
bool weir__publish_put(struct weir__publish *, uint32_t first, uint32_t last, size_t bytes,
                       bool settled);
void weir__publish_take_back(struct weir__publish *);
/* The log's completion; the user is the sender's struct weir__publish. */
void weir__publish_done(void *publish, int rc, const struct weir__log_receipt *,
                        const struct weir_error *);
/* On the loop: settles what the log is done with. true: nothing is with it any more, and a reference
 * is to be let go of. */
bool weir__publish_take_done(struct weir__connection *);

/* sender.c: tells the client no, for deliveries first to last; and that the log is done with all
 * that a sender gave it, which may then free the sender. */
void weir__sender_reject(struct weir__amqp_link *, uint32_t first, uint32_t last,
                         const struct weir__refusal *);
void weir__sender_drained(struct weir__duty *);

/* ---- runs ---- */

#define WEIR__RUN_EVENTS_MAX 64u
#define WEIR__RUN_TURN_MAX 8u /* where the hub chooses the partition, for each run another */
#define WEIR__RUN_BYTES_MAX ((size_t)16 << 10)
#define WEIR__RUN_EVENT_MAX ((size_t)2 << 10) /* a larger one costs less when it is not copied */

/* Events that came one to a transfer, side by side on one link, and go to the log as one batch. A
 * connection has at most one run, and only while it takes what has come: whatever is not its next
 * event ends it. */
struct weir__run {
    struct weir__duty *sender; /* NULL: there is none, and the rest means nothing */
    struct weir__batch_writer events;
    uint32_t partition;
    uint32_t first, last; /* deliveries */
    bool settled;
};

/* Gives it to the log, or its sender the log's refusal. false: the log is busy, and it stays. */
bool weir__run_end(struct weir__connection *);
/* Forgets it: nobody waits for it any more. */
void weir__run_drop(struct weir__run *);

/* ---- rights ---- */

/* A walk over the claims of a connection and then its links, or over its links only. It may take several
 * turns. */
struct weir__rights_walk {
    enum { WEIR__WALK_NONE, WEIR__WALK_CLAIMS, WEIR__WALK_LINKS } step;
    struct weir__duty *next; /* whose turn it is in the second step */
    bool of_rules;           /* they have changed; else time has passed */
    bool asked;              /* another is to begin behind it: rules have changed, again */
};

/* Rules have changed: looks at all claims again, and detaches links that rest on nothing now. Soon: pass
 * does it. */
void weir__rights_review(struct weir__connection *);
/* Does that, and detaches links whose claim has run out and was not renewed, until the turn is over;
 * pending: it has to be called in a later one, too. */
void weir__rights_pass(struct weir__connection *);
bool weir__rights_pending(const struct weir__connection *);
/* A duty is about to leave its connection's list. */
void weir__rights_forget(struct weir__duty *);
/* From here on changes of the namespace's rules are heard; server.c ends that. */
void weir__rights_watch(struct weir__server *);
/* From any thread: every connection is reviewed soon, and HTTP asks again before it answers. */
void weir__rights_changed(void *server);

/* ---- tokens of an issuer ---- */

struct weir__issuer {
    const struct weir__jwt_issuer *policy; /* NULL: there is none */
    struct weir__mutex lock;               /* for the keys */
    struct weir__jwks *keys;
};

void weir__issuer_init(struct weir__issuer *, const struct weir__server_options *);
void weir__issuer_fini(struct weir__issuer *);

/* From any thread. WEIR_EDENIED, also when there is no issuer. */
int weir__issuer_verify(struct weir__server *, struct weir__bytes token, int64_t now_s,
                        struct weir__access_grant *out, struct weir_error *);
/* The same where nothing tells the type of a token: it may be signed with a key of a rule, too. */
int weir__issuer_verify_any(struct weir__server *, struct weir__bytes token,
                            struct weir__bytes resource, int64_t now_s,
                            struct weir__access_grant *out, struct weir_error *);
/* What a claim that rests on a key of the issuer is worth now: 0 when the key is gone. */
unsigned weir__issuer_rights(struct weir__server *, const struct weir__claim *);

/* ---- connections ---- */

#define WEIR__CONNECTION_HOST_MAX 256

struct weir__connection {
    struct weir__server *server;
    uint64_t id; /* for the log */
    struct weir__loop *loop;
    struct weir__tcp *tcp; /* NULL: it has ended */
    struct weir__amqp *engine;
    struct weir__timer timer;
    struct weir__post work;  /* of other threads: done and ready */
    struct weir__post visit; /* of its own loop */
    struct weir__post rest;  /* of its events, or of a look at its rights, in a later turn */
    struct weir__connection *next, *prev;             /* on its loop */
    struct weir__connection *queue_next, *queue_prev; /* in its loop's turn queue, */
    bool in_queue;                                    /* if it is there */
    char host[WEIR__CONNECTION_HOST_MAX];             /* of the peer's open: how it calls us */
    struct weir__claims claims;
    struct weir__rights_walk walk;
    struct weir__duty *duties;
    uint32_t turn;                 /* whose it is to be pumped first */
    struct weir__bytes last_words; /* sent behind the engine's output: for other protocols */
    bool on_last_words;            /* that is what is being written */
    int64_t began_ms;
    int64_t expires_s;                 /* when the first claim of a duty ends */
    struct weir__run run;              /* events that the log was not given yet */
    int64_t busy_ms;                   /* since when a busy log holds us up; 0: it does not */
    struct weir__amqp_event event;     /* the current one, */
    bool event_waits;                  /* which has to come again */
    const struct weir__hub *stuck_hub; /* whose log takes nothing, */
    int64_t stuck_ms;                  /* since when; compared only, and perhaps gone meanwhile */
    size_t unflushed;                  /* bytes with the log ... */
    size_t reported;                   /* ... as far as the server's sum has them */
    uint32_t batches;                  /* with the log */
    uint32_t expected;                 /* of them, as the loop was told */
    size_t reply_bytes;                /* of answers that wait for credit */
    size_t reader_bytes;               /* of events and batches that were read for receivers */
    struct weir__account account;      /* of what it holds in memory */
    struct weir__newcomer stranger;    /* until it is trusted */
    uint64_t rights_seen;              /* the server's rights, when a review was asked for */
    bool trusted;
    bool refused;     /* it has shown a token that was not valid */
    bool held;        /* room was asked for and refused */
    bool starved;     /* a duty has more to send than the output takes */
    bool cramped;     /* it might send, but there is no memory: nobody tells when there is some */
    bool crowded;     /* this turn was over before all events were taken */
    bool peer_ended;  /* its last byte came */
    bool stopping;    /* closed as soon as nothing is unflushed */
    bool closing;     /* we have said so */
    atomic_uint refs; /* the loop's, and one as long as batches are with the log */

    struct weir__mutex lock; /* for what follows */
    struct weir__publish *done, **done_last;
    struct weir__duty *ready, *ready_last;
};

/* The listener's accepted. */
bool weir__connection_accept(void *server, struct weir__tcp *);

/* The same in two steps, for who stands between a TCP connection and this one: makes it (NULL: there
 * is no memory), and what a TCP connection's owner does, with it as owner. */
struct weir__connection *weir__connection_enter(struct weir__server *, struct weir__tcp *);
extern const struct weir__tcp_calls weir__connection_calls;

/* Seconds since 1970 by the server's clock. */
int64_t weir__connection_now_s(const struct weir__connection *);

/* A hub by its name; what is missing is told as the service tells it. */
int weir__connection_use(struct weir__connection *, const char *hub, struct weir__hub **out,
                         struct weir_error *);
int weir__connection_not_found(const struct weir__connection *, const char *path,
                               struct weir_error *);

/* Address and port of the peer; "?" when the socket is gone. */
const char *weir__connection_peer(const struct weir__connection *);

/* Whether the peer has shown a good certificate, with TLS. */
bool weir__connection_certified(const struct weir__connection *, struct weir__tls_identity *);

/* The peer has shown who it is. */
void weir__connection_trust(struct weir__connection *);

/* On its loop: weir__rights_review, and what follows from it, as far as this turn has time. */
void weir__connection_review(struct weir__connection *);

/* On its loop: closes it when what it sent is on disk. */
void weir__connection_stop(struct weir__connection *);

/* events.c: one event. false: not now, because a log is busy; it has to come again. */
bool weir__connection_on_event(struct weir__connection *, const struct weir__amqp_event *);

/* Here: gives a reference back. */
void weir__connection_let_go(struct weir__connection *);

/* Looks after it at the end of this turn. */
void weir__connection_visit(struct weir__connection *);
void weir__connection_serve(struct weir__connection *); /* what a visit does, at once */

/* ---- the server ---- */

#define WEIR__SERVER_ANSWER_BYTES 512

/* ---- turn_queue.c: connections whose next message waits for a turn of their loop ---- */

struct weir__turn_queue {
    struct weir__connection *first, *last;
    uint64_t taken; /* the turn in which a large message, or one that had waited, was taken last, */
    int64_t until_ns;        /* and how long small ones may be taken in it */
    struct weir__post serve; /* of the loop: serves those that may go */
};

void weir__turn_queue_init(struct weir__turn_queue *);

/* Whether a message has to wait: the connection is in the queue then, and is served when it may go. */
bool weir__turn_queue_wait(struct weir__connection *, size_t message_bytes);
void weir__turn_queue_leave(struct weir__connection *); /* also when it is not in there */

struct weir__server_loop {
    struct weir__server *server;
    struct weir__connection *connections; /* touched by the loop only, as the next */
    struct weir__visit *visits;           /* connections of HTTP */
    struct weir__turn_queue queue;
    struct weir__post stop, last, sent; /* one after the other, when the server stops */
    struct weir__post review;
    struct weir__post review_more;        /* the rest of a review, in a later turn: */
    struct weir__connection *review_next; /* whose turn it is; NULL: none is under way */
    uint64_t review_rights;               /* the server's rights, when it began */
    bool stopping;
};

struct weir__server {
    struct weir__namespace *ns;
    struct weir__logger logger;
    void (*about)(enum weir__level, const char *room, const struct weir__server_about *,
                  const char *line, void *user);
    struct weir__clock clock;
    struct weir__loops *loops;
    struct weir__server_loop *at;                       /* one for each loop */
    struct weir__listener *amqp, *amqps, *http, *https; /* NULL: not served */
    struct weir__issuer issuer;
    struct weir__worker *worker; /* does for HTTP what may wait for the disk; */
    struct weir__worker *bodies; /* reads large bodies, for which nothing else is to wait */
    bool trace;
    bool events_only;
    const char *const *http_names;
    uint32_t http_name_count;
    uint32_t token_ms, idle_ms;
    uint64_t descriptors;                       /* that this process may have open */
    char to_browser[WEIR__SERVER_ANSWER_BYTES]; /* which came to the wrong port */
    char to_browser_tls[WEIR__SERVER_ANSWER_BYTES];
    atomic_size_t unflushed;
    struct weir__budget budget; /* of what all connections hold in memory */
    atomic_bool trim_asked;
    struct weir__post trim_soon, trim; /* on the first loop; for the worker */
    struct weir__timer trim_timer;
    uint32_t message_ms;
    unsigned connections_max;
    atomic_uint links;    /* that are attached */
    atomic_ullong rights; /* counts changes of rules */
    atomic_ullong met;    /* connections, ever */
    atomic_ullong logins_refused;

    atomic_bool stopping;
    atomic_bool sealed; /* the logs are given nothing more; see weir__server_publish */

    struct weir__mutex lock; /* for those below, and stop waits with it */
    struct weir__cond changed;
    uint32_t connections, visits;
    uint32_t loops_stopping, loops_sent;
    struct weir__refusals refusals, mishaps;
};

/* publish.c: weir__hub_publish, which nobody else here calls. The caller has counted the batch in
 * unflushed before. WEIR_ECLOSED: the server is sealed, and the log never hears of the batch. */
int weir__server_publish(struct weir__server *, struct weir__hub *, const struct weir__batch *,
                         uint32_t partition, const struct weir__log_producer *,
                         weir__log_done_fn done, void *user, struct weir_error *);

/* server.c: leaves descriptors to the logs of all hubs there are; when there are more of them. */
void weir__server_keep_descriptors(struct weir__server *);

/* trim.c: memory that was given back goes back to the system, too, a while after there was much of
 * it. Prepare comes when the loops and the worker are there. */
void weir__trim_prepare(struct weir__server *);
void weir__trim_ask(struct weir__server *); /* any thread: much may have been given back */

/* mistake.c: what is sent to somebody who speaks something else, and logged. prepare comes when
 * every port is known. */
void weir__mistakes_prepare(struct weir__server *);
struct weir__bytes weir__mistake_plain(struct weir__server *, const char *peer,
                                       struct weir__bytes first);
struct weir__bytes weir__mistake_tls(void *user, const char *peer, enum weir__sniff spoken);
void weir__mistake_failed(void *user, const char *peer, const struct weir_error *why);

#endif
