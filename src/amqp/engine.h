/* engine.h - one AMQP 1.0 connection, with no I/O in it: bytes in, events out; commands in, bytes
 * out. The same engine is the server's side or the client's, by an option.
 *
 *     to = weir__amqp_input(e, &room);         where to read into; no room: do not read now
 *     weir__amqp_received(e, n);               n bytes landed there
 *     while (weir__amqp_next(e, &event)) ...   what they said; commands may be given here
 *     out = weir__amqp_output(e);              what to write
 *     weir__amqp_sent(e, n);                   n bytes of it were written
 *     at = weir__amqp_tick(e, now_ms);         time passes; come again at `at`
 *
 * One thread at a time. Take all events before asking for input again. Events may be waiting without
 * new input too: after a command that opens the way (weir__amqp_sasl_answer, weir__amqp_close,
 * weir__amqp_lost), after a tick, and after output was written when there was no room to read.
 *
 * What the engine does by itself: the protocol headers, open, the answers to begin, detach, end and
 * close, echoed flows, session windows, credit where it was told how much to keep, empty frames
 * when there is nothing else to say, and the end of peers that say nothing. What is left to the
 * owner: who may come in (SASL, attach), what is delivered, and how it is settled.
 *
 * Every peer's mistake has one answer. A broken frame or a broken limit of the connection closes
 * it, a wrong window, id or handle ends the session, too many transfers detach the link: each with
 * a condition and a sentence, and each told to the owner as the event that ends the thing.
 *
 * Lives. A link that was in an ATTACH event, or was made by weir__amqp_attach, ends in exactly one
 * DETACH event; a session, likewise, in one END after the DETACHs of its links; the connection in
 * one CLOSE after everything else. They are valid until the next weir__amqp_next after that event.
 * Deliveries that are unsettled when their link ends have no outcome; nothing more is told of them.
 * Whatever else an event points at is borrowed until the next weir__amqp_next; as long as an event is
 * not followed by one, weir__amqp_input has no room.
 *
 * Memory. Limits are given at birth: those before trust (see weir__amqp_trust) hold one connection
 * below 32 KiB. Buffers come when bytes do and go when nothing moved for WEIR__AMQP_REST_MS. */
#ifndef WEIR_AMQP_ENGINE_H
#define WEIR_AMQP_ENGINE_H

#include "amqp/message.h"
#include "amqp/performative.h"

struct weir__amqp;
struct weir__amqp_session;
struct weir__amqp_link;

/* Conditions that the engine itself gives, and those that owners share. */
#define WEIR__AMQP_COND_INTERNAL "amqp:internal-error"
#define WEIR__AMQP_COND_NOT_FOUND "amqp:not-found"
#define WEIR__AMQP_COND_UNAUTHORIZED "amqp:unauthorized-access"
#define WEIR__AMQP_COND_DECODE "amqp:decode-error"
#define WEIR__AMQP_COND_LIMIT "amqp:resource-limit-exceeded"
#define WEIR__AMQP_COND_NOT_ALLOWED "amqp:not-allowed"
#define WEIR__AMQP_COND_INVALID_FIELD "amqp:invalid-field"
#define WEIR__AMQP_COND_NOT_IMPLEMENTED "amqp:not-implemented"
#define WEIR__AMQP_COND_ILLEGAL_STATE "amqp:illegal-state"
#define WEIR__AMQP_COND_FORCED "amqp:connection:forced"
#define WEIR__AMQP_COND_FRAMING "amqp:connection:framing-error"
#define WEIR__AMQP_COND_WINDOW "amqp:session:window-violation"
#define WEIR__AMQP_COND_HANDLE_IN_USE "amqp:session:handle-in-use"
#define WEIR__AMQP_COND_UNATTACHED "amqp:session:unattached-handle"
#define WEIR__AMQP_COND_TRANSFER_LIMIT "amqp:link:transfer-limit-exceeded"
#define WEIR__AMQP_COND_MESSAGE_SIZE "amqp:link:message-size-exceeded"
#define WEIR__AMQP_COND_STOLEN "amqp:link:stolen"
#define WEIR__AMQP_COND_DETACH_FORCED "amqp:link:detach-forced"

/* A condition (a symbol) and a sentence; condition.at is NULL when there is no error. */
struct weir__amqp_error {
    struct weir__bytes condition, description;
};

static inline struct weir__amqp_error weir__amqp_error_of(const char *condition, const char *text)
{
    return (struct weir__amqp_error){weir__bytes_of(condition, strlen(condition)),
                                     weir__bytes_of(text, strlen(text))};
}

/* In the order in which they are offered. */
enum weir__amqp_mechanism {
    WEIR__AMQP_MSSBCBS, /* as ANONYMOUS; the token comes later, to $cbs */
    WEIR__AMQP_PLAIN,
    WEIR__AMQP_EXTERNAL, /* the certificate of the layer below; `bytes` may name whom it is for */
    WEIR__AMQP_ANONYMOUS,
    WEIR__AMQP_MECHANISMS,
    WEIR__AMQP_NO_SASL = WEIR__AMQP_MECHANISMS
};

/* A set of mechanisms. */
#define WEIR__AMQP_MECHANISM_SET(mechanism) (1u << (mechanism))

#define WEIR__AMQP_FRAME_LARGE                                                                     \
    (1u << 20) /* the largest that is sent, see weir__amqp_large_frames */

/* Zero means the default. */
struct weir__amqp_limits {
    uint32_t frame_bytes;   /* the largest frame taken: 65536; before trust 8192 */
    uint32_t input_bytes;   /* of frames in waiting: 262144; 8192. A larger frame has its room */
    uint32_t output_bytes;  /* deliveries wait above it, or above WEIR__AMQP_WAITING_BYTES: 1048576;
                               2048. Answers may go above it by WEIR__AMQP_ANSWER_BYTES, then the
                               engine stops taking input */
    uint32_t partial_bytes; /* of messages in several frames, in and out: 16777216; 4096 */
    uint32_t sessions;      /* 2048; 64, for clients that begin them all before their token */
    uint32_t links;         /* of all sessions: 4096; 8 */
    uint32_t unsettled;     /* deliveries of a session in each direction, and its window: a power of
                               two from 64 to 32768: 8192; 256. A session that began before
                               trust gets more with its next link */
};

#define WEIR__AMQP_ANSWER_BYTES 8192
#define WEIR__AMQP_WAITING_BYTES 262144 /* of deliveries: no more than a cache holds */
#define WEIR__AMQP_REST_MS 1000
#define WEIR__AMQP_NAME_MAX 512 /* bytes of a link's name */

/* Zero means the default. Everything is copied. */
struct weir__amqp_options {
    bool client;
    const char *container_id;           /* "weir" */
    const char *hostname;               /* client: of open and sasl-init */
    struct weir__amqp_value properties; /* of open: a map, or null */

    /* Server: the set that is offered, ANONYMOUS and MSSBCBS by default. Client: the one that is
     * used, WEIR__AMQP_MECHANISM_SET of it; 0: no SASL layer. PLAIN takes user and password,
     * ANONYMOUS sends user, when there is one, for the other side's log. */
    uint32_t mechanisms;
    const char *user, *password;
    bool sasl_required; /* server: refuse a connection that begins without SASL */

    uint32_t idle_ms;      /* announced: 30000 */
    uint32_t silence_ms;   /* of a peer, at which it is closed: one and a half of idle_ms */
    uint32_t handshake_ms; /* from the first tick to open: 10000 */
    uint32_t frame_ms;     /* from the first byte of a frame to its last: 30000 */
    uint32_t message_ms;   /* from the first frame of a message to its last: 60000 */
    uint32_t close_ms;     /* from our close to the peer's: 5000 */

    uint32_t channel_max; /* announced, up to 65534; as after.sessions */
    uint32_t handle_max;  /* announced, up to 65534; 255 */

    struct weir__amqp_limits before; /* until weir__amqp_trust */
    struct weir__amqp_limits after;

    /* Asked before the input, the output or a message in several frames takes so much more memory;
     * NULL: always true. false: the frame or the message is refused, deliveries wait. What is held
     * in the end weir__amqp_buffered tells. */
    bool (*reserve)(void *reserve_data, size_t more);
    void *reserve_data;

    /* Sees every frame, header and all, with the headers of the protocol; NULL: nobody. */
    void (*trace)(void *user_data, bool outgoing, struct weir__bytes frame);
    void *trace_data;
};

int weir__amqp_new(struct weir__amqp **out, const struct weir__amqp_options *, struct weir_error *);
void weir__amqp_free(struct weir__amqp *); /* without events; NULL is fine */

/* The owner knows who this is: from here the limits are those of `after`. */
void weir__amqp_trust(struct weir__amqp *);

uint8_t *weir__amqp_input(struct weir__amqp *, size_t *room);
void weir__amqp_received(struct weir__amqp *, size_t bytes);

/* The owner does not read at the moment, or reads again: what the peer does not say meanwhile is not
 * held against it. */
void weir__amqp_hold(struct weir__amqp *, bool held);

/* The peer's bytes have ended, or the road is lost. The events that remain follow. */
void weir__amqp_lost(struct weir__amqp *);

/* Valid until the next call. */
struct weir__bytes weir__amqp_output(struct weir__amqp *);
/* true: frames that had to wait for room in the output can be taken now, see weir__amqp_next. */
bool weir__amqp_sent(struct weir__amqp *, size_t bytes);
/* Whether bytes were received that cannot be taken before some of the output was sent. */
bool weir__amqp_choked(const struct weir__amqp *);

/* Milliseconds of a clock that never runs backwards. Returns when to come again, INT64_MAX: no
 * need. A late call is harmless but for the peer's patience. */
int64_t weir__amqp_tick(struct weir__amqp *, int64_t now_ms);

/* After CLOSE: write what is left of the output, then close the road. */
bool weir__amqp_closed(const struct weir__amqp *);

/* All memory that the connection holds now. */
size_t weir__amqp_memory(const struct weir__amqp *);

/* The part of it that grows by what the peer does. Quick. */
size_t weir__amqp_buffered(const struct weir__amqp *);

enum weir__amqp_event_type {
    /* Not AMQP 1.0: event.bytes are the first eight bytes, event.guess what they may be. The answer
     * is the owner's, but for other versions of AMQP, which were told ours. CLOSE follows. */
    WEIR__AMQP_EVENT_PROTOCOL,
    /* Server: somebody wants in. Answer with weir__amqp_sasl_answer, now or later. */
    WEIR__AMQP_EVENT_SASL,
    WEIR__AMQP_EVENT_OPEN,     /* fields.open is the peer's */
    WEIR__AMQP_EVENT_BEGIN,    /* a session is there, whoever began it */
    WEIR__AMQP_EVENT_ATTACH,   /* fields.attach; answer with _accept or _refuse when incoming */
    WEIR__AMQP_EVENT_FLOW,     /* fields.flow: more may be sent: on link, or, when that is NULL, on
                                  any link of session, because its window was shut */
    WEIR__AMQP_EVENT_TRANSFER, /* event.delivery: one whole message */
    WEIR__AMQP_EVENT_SETTLE,   /* event.settle: outcomes of deliveries first to last */
    WEIR__AMQP_EVENT_DETACH,   /* event.error, as for the next two */
    WEIR__AMQP_EVENT_PAUSE,    /* many frames had nothing to tell: here one may look at the clock */
    WEIR__AMQP_EVENT_END,
    WEIR__AMQP_EVENT_CLOSE
};

enum weir__amqp_guess {
    WEIR__AMQP_GUESS_OTHER,
    WEIR__AMQP_GUESS_TLS,
    WEIR__AMQP_GUESS_HTTP,
    WEIR__AMQP_GUESS_AMQP /* another version, or a layer that is not spoken here */
};

/* A message that came. Settle it with weir__amqp_settle unless it is settled. */
struct weir__amqp_delivery {
    uint32_t id;     /* of the session */
    uint32_t format; /* 0, WEIR__AMQP_FORMAT_BATCH */
    bool settled;
    bool too_large; /* larger than the link's max-message-size: no payload, size tells. When it is
                       not larger, there was no memory for it: see reserve */
    struct weir__bytes tag, payload; /* of a message in several frames a long tag is cut */
    uint64_t size;
};

/* What became of deliveries of one link. As sender: of ours, each of which is told once; role is
 * WEIR__AMQP_RECEIVER then. As receiver: the sender has settled theirs. */
struct weir__amqp_settlement {
    bool role;
    uint32_t first, last;
    bool settled;
    enum weir__amqp_kind outcome;  /* WEIR__AMQP_KINDS: none was given */
    struct weir__amqp_error error; /* of a rejection */
};

struct weir__amqp_event {
    enum weir__amqp_event_type type;
    struct weir__amqp_session *session; /* and link: whom it is about, or NULL */
    struct weir__amqp_link *link;
    const struct weir__amqp_composite *fields; /* OPEN to FLOW */
    union {
        struct weir__amqp_delivery delivery;
        struct weir__amqp_settlement settle;
        struct {
            struct weir__amqp_error error;
            bool local; /* the engine's or the owner's doing; else the peer's */
        };
        struct {
            struct weir__bytes bytes; /* SASL: the initial response, at NULL when absent */
            enum weir__amqp_guess guess;
            enum weir__amqp_mechanism mechanism; /* SASL, and OPEN: WEIR__AMQP_NO_SASL */
            struct weir__bytes user, password;   /* PLAIN */
        };
        bool incoming; /* ATTACH: the peer's wish; else the answer to ours */
    };
};

bool weir__amqp_next(struct weir__amqp *, struct weir__amqp_event *out);

/* Commands. WEIR_ECLOSED: the thing has ended, or is about to. WEIR_ELIMIT: a negotiated maximum.
 * WEIR_ETOOBIG: more than a frame of the peer's holds. A client may give them at once and need not
 * wait for the answers; before OPEN the peer's frames are taken to be the smallest, 512 bytes. */

/* Answers a SASL event: lets them in or not; not is followed by CLOSE. */
void weir__amqp_sasl_answer(struct weir__amqp *, bool welcome);

int weir__amqp_begin(struct weir__amqp *, struct weir__amqp_session **out, struct weir_error *);
void weir__amqp_end(struct weir__amqp_session *, const struct weir__amqp_error *);
void weir__amqp_close(struct weir__amqp *, const struct weir__amqp_error *);

/* What we say in an attach. Values are borrowed for the call; null ones are sent as null, but for
 * source and target: null there would mean refusal. */
struct weir__amqp_terms {
    struct weir__bytes name;        /* attach only */
    bool role;                      /* attach only: ours */
    struct weir__amqp_value source; /* null: accept repeats the peer's; else an empty one */
    struct weir__amqp_value target; /* likewise */
    uint8_t snd_settle_mode;        /* accept takes the peer's, unless `settled` */
    uint8_t rcv_settle_mode;        /* likewise */
    bool settled; /* accept only: what is sent comes settled, and what comes is settled at once,
                     whatever the peer asked for; the attach says so */
    uint64_t max_message_size; /* receiver: enforced; 0: none is announced, and
                                              partial_bytes is the bound */
    struct weir__amqp_value offered_capabilities, desired_capabilities, properties;
    uint32_t credit;  /* receiver: given at once and topped up when half is used; 0: by _flow */
    bool no_outcomes; /* sender: nobody waits for outcomes: unsettled deliveries are forgotten as
                         soon as they are sent, and do not count */
};

int weir__amqp_attach(struct weir__amqp_session *, const struct weir__amqp_terms *,
                      struct weir__amqp_link **out, struct weir_error *);

/* Answers an ATTACH event, which must be the current one. */
int weir__amqp_accept(struct weir__amqp_link *, const struct weir__amqp_terms *,
                      struct weir_error *);

/* Of source and target, what a refusal repeats of the peer's attach. */
enum weir__amqp_echo {
    WEIR__AMQP_ECHO_NONE,
    WEIR__AMQP_ECHO_THEIRS, /* the peer's own; ours, which is not there, is null */
    WEIR__AMQP_ECHO_BOTH
};

/* Answers with an attach and a detach with this error behind it. ATTACH must be the current event. When
 * the answer cannot be written the connection ends, for the peer would wait for it. */
int weir__amqp_refuse(struct weir__amqp_link *, const struct weir__amqp_error *,
                      enum weir__amqp_echo, struct weir_error *);

/* Sends a closing detach; the DETACH event follows when the peer has answered. For a link that was
 * not answered this is a refusal, at any time. */
void weir__amqp_detach(struct weir__amqp_link *, const struct weir__amqp_error *);

/* Receiver: lets the sender send `credit` messages from now on; with drain, asks it to use or drop
 * all of it at once. A FLOW event without credit left is its answer. WEIR_EINVAL: a sender, or a link
 * that was not answered. */
int weir__amqp_flow(struct weir__amqp_link *, uint32_t credit, bool drain);

/* Receiver: with the next flows, and until it is said otherwise, the sender begins no message when it
 * has sent this many bytes of payload since the attach. The two must have agreed on that, by a
 * capability. What is under way when the limit is lowered comes. */
void weir__amqp_limit(struct weir__amqp_link *, uint64_t bytes);

/* Sender: its frames may be as large as the peer takes, up to WEIR__AMQP_FRAME_LARGE. Those of other
 * links have 64 KiB at most, as Azure's have. */
void weir__amqp_large_frames(struct weir__amqp_link *);

/* Sender: there is nothing more to send for a FLOW that had drain. Takes the credit away and says
 * so; nothing when nobody asked. */
void weir__amqp_drained(struct weir__amqp_link *);

/* How many deliveries may be begun now: credit, 0 when the session or the output is full, or when
 * the receiver's limit is reached. */
uint32_t weir__amqp_sendable(const struct weir__amqp_link *);
/* Whether nothing can be delivered until the peer gives credit, opens its window, or raises its limit. */
bool weir__amqp_waits_for_peer(const struct weir__amqp_link *);

/* A message goes out in two steps. The first gives room for a payload of at most `bytes` in the
 * output itself, NULL when it may not be sent now; the second sends what was put there. Nothing
 * has happened before the second, and no other command may come between. Multiple frames are made
 * as needed; what the peer's window does not take yet is kept and follows by itself. */
uint8_t *weir__amqp_deliver(struct weir__amqp_link *, size_t bytes);
uint32_t weir__amqp_delivered(struct weir__amqp_link *, size_t bytes, uint32_t format,
                              bool settled); /* the delivery-id */

/* Both steps, with bytes that are elsewhere; outcomes that were given before go first. WEIR_EBUSY: not
 * now. */
int weir__amqp_send(struct weir__amqp_link *, struct weir__bytes payload, uint32_t format,
                    bool settled, uint32_t *id);

/* Receiver: the outcome of deliveries first to last, all of this link; settled unless the link
 * settles second. Equal outcomes of neighbours are gathered into one frame. error goes with
 * WEIR__AMQP_REJECTED, else it is NULL. */
void weir__amqp_settle(struct weir__amqp_link *, uint32_t first, uint32_t last,
                       enum weir__amqp_kind outcome, const struct weir__amqp_error *);

/* What a link or session is, and what hangs on it. */
struct weir__amqp_session *weir__amqp_link_session(const struct weir__amqp_link *);
struct weir__amqp_link *weir__amqp_session_links(const struct weir__amqp_session *); /* first */
struct weir__amqp_link *weir__amqp_link_next(const struct weir__amqp_link *); /* NULL: no more */
bool weir__amqp_link_role(const struct weir__amqp_link *);                    /* ours */
bool weir__amqp_link_settled(const struct weir__amqp_link *); /* sender: must send settled */
bool weir__amqp_link_drain(const struct weir__amqp_link *);
uint32_t weir__amqp_link_credit(const struct weir__amqp_link *);
uint64_t
weir__amqp_link_max(const struct weir__amqp_link *); /* max-message-size; UINT64_MAX: any */
struct weir__bytes weir__amqp_link_name(const struct weir__amqp_link *);
void *weir__amqp_link_user(const struct weir__amqp_link *);
void weir__amqp_link_set_user(struct weir__amqp_link *, void *);

/* One line for a frame or a protocol header, without a newline, cut where room ends (which is at
 * least 1): "ch=0 flow next-incoming-id=0 incoming-window=2048 ... ". Returns its length. */
size_t weir__amqp_dump(struct weir__bytes frame, char *to, size_t room);

#endif
