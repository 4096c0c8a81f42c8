/* state.h - what the engine is made of; for the files of the engine only.
 *
 *   engine.c      birth, bytes in and out, the loop over frames
 *   sasl.c        protocol headers and SASL
 *   connection.c  open and close, failures, the order in which things end
 *   clock.c       what time does: silence, slowness, rest
 *   session.c     begin, end, flow, windows
 *   link.c        attach, detach
 *   credit.c      flows of links
 *   receive.c     transfers that come
 *   deliver.c     transfers that go
 *   settle.c      dispositions, both ways
 *
 * A handler is given a frame that was read into e->fields and returns whether it filled in an
 * event. After a failure it returns false, and the sweep (connection.c) tells the owner. */
#ifndef WEIR_AMQP_STATE_H
#define WEIR_AMQP_STATE_H

#include "amqp/engine.h"
#include "amqp/frame.h"
#include "amqp/slots.h"

/* Every frame of an outgoing message begins with these bytes; drawn in deliver.c. */
#define WEIR__AMQP_TRANSFER_HEAD 42

#define WEIR__AMQP_TAG_USUAL 32 /* bytes of a delivery-tag, by the specification; */
#define WEIR__AMQP_TAG_MAX 255  /* but Azure's old JavaScript client makes it of a message-id */
#define WEIR__AMQP_PROBLEM_MAX 256
#define WEIR__AMQP_NOT_YET INT64_MIN /* of a time */

enum weir__amqp_stage {
    WEIR__AMQP_STAGE_HEADER,   /* the first header of the protocol */
    WEIR__AMQP_STAGE_SASL,     /* server: sasl-init; client: mechanisms, then the outcome */
    WEIR__AMQP_STAGE_JUDGED,   /* server: the owner thinks about it */
    WEIR__AMQP_STAGE_HEADER_2, /* the header after SASL */
    WEIR__AMQP_STAGE_OPENING,  /* the peer's open */
    WEIR__AMQP_STAGE_LIVE,
    WEIR__AMQP_STAGE_CLOSING, /* ours was sent, the peer's close is awaited */
    WEIR__AMQP_STAGE_CLOSED
};

/* Deliveries of one direction by their ids, which count up and wrap: those in [low, next) may be
 * unsettled. Each has an owner: our handle of its link and one, or 0 when it is settled. */
struct weir__amqp_ring {
    uint32_t low, next;
    uint32_t mask;     /* size - 1 */
    uint16_t *owner;   /* NULL: nothing was unsettled yet */
    uint32_t *settled; /* blocks of ids of which nothing is unsettled; settle.c. NULL: none known */
};

#define WEIR__AMQP_RING_BLOCK 64u /* ids; no ring is smaller */

struct weir__amqp_session {
    struct weir__amqp *e;
    struct weir__amqp_session *next, **back; /* among the sessions of e */
    struct weir__amqp_link *links;
    uint16_t channel, remote_channel;
    bool got_begin, sent_end, got_end, told; /* told: the owner has had its END */
    bool in_known;                           /* in.next is known, from the first delivery */
    uint32_t next_incoming_id, incoming_window;
    uint32_t next_outgoing_id, remote_window;
    uint32_t peer_handle_max;
    uint32_t rests;                       /* links with a message that is only partly sent */
    struct weir__amqp_slots ours, theirs; /* links by handle */
    struct weir__amqp_ring in, out;
};

struct weir__amqp_link {
    struct weir__amqp_session *s;
    struct weir__amqp_link *next, **back;
    void *user;
    uint32_t handle, remote_handle;
    bool role; /* ours */
    bool sent_attach, got_attach, sent_detach, got_detach, told;
    bool drain, no_outcomes;
    uint8_t snd_mode, rcv_mode;
    uint32_t credit, delivery_count;
    uint32_t keep_credit;      /* topped up to this many; 0: by the owner */
    uint64_t max_message;      /* UINT64_MAX: any */
    uint64_t limit;            /* bytes of payload that the receiver lets come; UINT64_MAX: any */
    uint64_t carried;          /* sender: bytes of payload so far */
    const uint32_t *frame_max; /* sender: one of the peer's limits, e->peer_... */

    /* Receiver: the message of which some frames came. Sender: of which some frames went. */
    bool partial, partial_settled, partial_too_large;
    uint8_t tag_len; /* of a longer tag the first bytes are kept */
    uint8_t tag[WEIR__AMQP_TAG_USUAL];
    uint32_t partial_id, partial_format;
    uint64_t partial_size; /* receiver: so far; sender: sent of buf */
    int64_t partial_ms;    /* receiver: when it began, by e->read_ms */
    struct weir__buf buf;

    size_t name_len;
    char name[];
};

struct weir__amqp {
    struct weir__amqp_options o; /* its texts and values are not valid after birth */
    char *user, *password, *hostname, *container;
    struct weir__amqp_limits limits;
    enum weir__amqp_stage stage;
    enum weir__amqp_mechanism mechanism;

    uint8_t *in; /* head <= tail <= in_cap: what is between was received and not yet looked at */
    size_t in_head, in_tail, in_cap;
    bool in_full; /* the last read filled all there was: more room would have been used */
    struct weir__buf out;
    size_t out_head, waiting_max;
    struct weir__buf early; /* frames that must wait for the layer below, open first */
    bool early_done;
    size_t delivering; /* where in out the room of weir__amqp_deliver begins */

    uint32_t peer_frame, peer_large_frame; /* the largest for it; see weir__amqp_large_frames */
    uint32_t peer_channel_max, peer_idle_ms;
    struct weir__amqp_slots ours, theirs; /* sessions by channel */
    uint8_t *ended; /* the peer's channels whose session it has ended; see session.c */
    struct weir__amqp_session *sessions;
    uint32_t session_count, link_count, rests;
    size_t partial_bytes, thing_bytes; /* of messages; of sessions and links */
    bool rest_due;                     /* a link may keep room for a message that is over */

    struct weir__amqp_composite fields;
    bool held;                         /* the owner does not read */
    bool lent;                         /* an event was given, and what it points at is in use */
    struct weir__amqp_link *attaching; /* whose attach is in fields */
    struct weir__amqp_link *dead_link; /* freed by the next weir__amqp_next */
    struct weir__amqp_session *dead_session;
    struct weir__amqp_session *sweep; /* its links and then itself are being told of their end */
    bool fallen, told;                /* everything is; the owner has had its CLOSE */
    bool local;                       /* by our doing */
    struct weir__amqp_error problem;
    char problem_text[WEIR__AMQP_PROBLEM_MAX];

    /* A disposition that is being told, run by run; and one of ours that may yet grow. */
    struct weir__amqp_session *run_session;
    struct weir__amqp_settlement run;
    struct weir__amqp_session *gathered_session;
    struct weir__amqp_settlement gathered;

    bool ticked, heard;
    int64_t now_ms, born_ms, heard_ms, spoke_ms, frame_since_ms;
    int64_t closing_ms;           /* when our close was seen first; WEIR__AMQP_NOT_YET */
    int64_t read_ms;              /* a clock that stands still while the owner does not read */
    int64_t messages_ms;          /* by it: when to look for a message that takes too long */
    uint32_t partials;            /* links with a message of which some frames came */
    uint64_t frames, frame_since; /* frames so far; when the unfinished one was first seen */
};

/* engine.c */
void weir__amqp_compact(struct weir__amqp *);
uint8_t *weir__amqp_room(struct weir__amqp *, size_t bytes); /* behind the output; NULL: none */

/* connection.c */
int weir__amqp_write(struct weir__amqp *, uint16_t channel, const struct weir__amqp_composite *,
                     struct weir_error *);
void weir__amqp_answer(struct weir__amqp *, uint16_t channel, const struct weir__amqp_composite *);
struct weir__amqp_value weir__amqp_error_value(const struct weir__amqp *,
                                               const struct weir__amqp_error *, uint8_t *scratch,
                                               size_t room);
struct weir__amqp_error weir__amqp_error_read(const struct weir__amqp_value *);
__attribute__((format(printf, 3, 4))) bool
weir__amqp_fail(struct weir__amqp *, const char *condition, const char *fmt, ...);
__attribute__((format(printf, 3, 4))) void
weir__amqp_problem(struct weir__amqp *, const char *condition, const char *fmt, ...);
/* The same, with a detach for every link and an end for every session before the close: clients that
 * look at links only learn of it. */
__attribute__((format(printf, 3, 4))) bool
weir__amqp_fail_all(struct weir__amqp *, const char *condition, const char *fmt, ...);
bool weir__amqp_fall(struct weir__amqp *); /* everything ends, nothing more is said */
bool weir__amqp_sweep(struct weir__amqp *, struct weir__amqp_event *);
int weir__amqp_open_write(struct weir__amqp *, struct weir_error *);
bool weir__amqp_on_open(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);
bool weir__amqp_on_close(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);

/* sasl.c */
bool weir__amqp_header_put(struct weir__amqp *, uint8_t layer);
bool weir__amqp_on_header(struct weir__amqp *, struct weir__amqp_event *, bool *more);
bool weir__amqp_on_sasl(struct weir__amqp *, struct weir__bytes body, struct weir__amqp_event *);
void weir__amqp_early_flush(struct weir__amqp *);

/* session.c */
struct weir__amqp_session *weir__amqp_session_at(struct weir__amqp *, uint16_t channel);
bool weir__amqp_ring_make(struct weir__amqp_session *, struct weir__amqp_ring *);
void weir__amqp_session_drop(struct weir__amqp_session *);
void weir__amqp_session_free(struct weir__amqp_session *);
__attribute__((format(printf, 3, 4))) bool
weir__amqp_session_fail(struct weir__amqp_session *, const char *condition, const char *fmt, ...);
void weir__amqp_session_leave(struct weir__amqp_session *, const struct weir__amqp_error *);
void weir__amqp_flow_write(struct weir__amqp_session *, struct weir__amqp_link *, bool drain);
void weir__amqp_window_refill(struct weir__amqp_session *);
bool weir__amqp_on_begin(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);
bool weir__amqp_on_flow(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);
bool weir__amqp_on_end(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);

/* link.c */
void weir__amqp_link_leave(struct weir__amqp_link *, const struct weir__amqp_error *);
void weir__amqp_link_drop(struct weir__amqp_link *);
void weir__amqp_link_free(struct weir__amqp_link *);
__attribute__((format(printf, 4, 5))) bool weir__amqp_link_fail(struct weir__amqp_link *,
                                                                struct weir__amqp_event *,
                                                                const char *condition,
                                                                const char *fmt, ...);
bool weir__amqp_on_attach(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);
bool weir__amqp_on_detach(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);

/* credit.c */
#define WEIR__AMQP_LIMIT_BYTES 40 /* of a flow's properties */
struct weir__amqp_value weir__amqp_limit_value(const struct weir__amqp_link *,
                                               uint8_t space[WEIR__AMQP_LIMIT_BYTES]);
bool weir__amqp_link_on_flow(struct weir__amqp_link *, struct weir__amqp_event *);

/* receive.c */

/* Takes the frame at the head of the input when it is a transfer like nearly all others. false: it
 * is not, or something has to be done first; nothing has happened then. */
bool weir__amqp_take_usual(struct weir__amqp *, struct weir__amqp_event *);
bool weir__amqp_on_transfer(struct weir__amqp *, uint16_t channel, struct weir__bytes body,
                            struct weir__amqp_event *);

/* deliver.c */
void weir__amqp_pump(struct weir__amqp_session *);

/* settle.c */
void weir__amqp_gathered_flush(struct weir__amqp *);
void weir__amqp_disown(struct weir__amqp_link *);
bool weir__amqp_run_next(struct weir__amqp *, struct weir__amqp_event *);
bool weir__amqp_on_disposition(struct weir__amqp *, uint16_t channel, struct weir__amqp_event *);

void weir__amqp_rest_links(struct weir__amqp *);

/* Whether the owner lets so much more memory be taken. */
static inline bool weir__amqp_reserve(struct weir__amqp *e, size_t more)
{
    return more == 0 || !e->o.reserve || e->o.reserve(e->o.reserve_data, more);
}

/* Output that was not written yet. */
static inline size_t weir__amqp_pending(const struct weir__amqp *e)
{
    return e->out.len - e->out_head;
}

/* Above it no frame is taken: its answer must have a place. */
static inline size_t weir__amqp_pending_max(const struct weir__amqp *e)
{
    return (size_t)e->limits.output_bytes + WEIR__AMQP_ANSWER_BYTES / 2;
}

static inline uint32_t weir__amqp_ring_room(const struct weir__amqp_ring *r)
{
    return r->mask + 1 - (r->next - r->low);
}

static inline uint32_t weir__amqp_ring_owner(const struct weir__amqp_ring *r, uint32_t id)
{
    return r->owner[id & r->mask];
}

/* Takes next for an owner, or for 0: settled. There must be room. */
static inline void weir__amqp_ring_add(struct weir__amqp_ring *r, uint32_t owner)
{
    uint32_t id = r->next++;

    if (!owner && r->low == id)
        r->low++;
    else
        r->owner[id & r->mask] = (uint16_t)owner;
}

/* Settles ids from first to before end, which lie in [low, next]. */
static inline void weir__amqp_ring_clear(struct weir__amqp_ring *r, uint32_t first, uint32_t end)
{
    for (uint32_t id = first; id != end; id++) r->owner[id & r->mask] = 0;
    if (r->low == first) r->low = end;
    while (r->low != r->next && !weir__amqp_ring_owner(r, r->low)) r->low++;
}

/* Whether commands for this link make sense still. */
static inline bool weir__amqp_link_usable(const struct weir__amqp_link *l)
{
    return !l->sent_detach && !l->s->sent_end && l->s->e->stage <= WEIR__AMQP_STAGE_LIVE;
}

static inline void weir__amqp_trace(struct weir__amqp *e, bool outgoing, const uint8_t *at,
                                    size_t len)
{
    if (__builtin_expect(e->o.trace != NULL, 0))
        e->o.trace(e->o.trace_data, outgoing, weir__bytes_of(at, len));
}

#endif
