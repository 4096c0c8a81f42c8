/* deliver.c - transfers that go.
 *
 * Every frame of every message begins with the same 42 bytes, so that they can be copied and
 * filled in without a look at the fields; all fields are written, in forms of fixed width:
 *
 *    0  size 4, 02 00, channel 2                         the frame's header
 *    8  00 53 14  c0 1d 0b                               transfer, a list of eleven
 *   14  70 handle 4                                      as the link has it
 *   19  70 delivery-id 4
 *   24  a0 04 delivery-tag 4                             the delivery-id once more
 *   30  70 message-format 4
 *   35  settled, more                                    41 or 42
 *   37  40 40 40 40                                      these are not said
 *   41  batchable                                        as settled, which is when it is true
 *
 * A payload that needs several frames is put down in one piece and moved apart. */
#include <assert.h>

#include "amqp/state.h"
#include "base/steps.h"

#define HEAD WEIR__AMQP_TRANSFER_HEAD
#define AT_HANDLE 15
#define AT_ID 20
#define AT_TAG 26
#define AT_FORMAT 31
#define AT_SETTLED 35
#define AT_MORE 36
#define AT_BATCHABLE 41
#define WAITING_PART                                                                               \
    4 /* of the output that may wait before more is put there: it stays in the cache */
#define CODE_FALSE 0x42 /* true is one less */

static const uint8_t template[HEAD] = {
    0,    0, 0,    0, 2, 0,    0, 0,    0x00, 0x53, 0x14, 0xc0, 0x1d, 0x0b,
    0x70, 0, 0,    0, 0, 0x70, 0, 0,    0,    0,    0xa0, 0x04, 0,    0,
    0,    0, 0x70, 0, 0, 0,    0, 0x42, 0x42, 0x40, 0x40, 0x40, 0x40, 0x42,
};

/* What all frames of one message share. */
struct outgoing {
    uint32_t id, format;
    bool settled;
};

static inline __attribute__((always_inline)) void put_head(const struct weir__amqp_link *l,
                                                           uint8_t *to, size_t payload,
                                                           const struct outgoing *o, bool more)
{
    memcpy(to, template, 32); /* two pieces that overlap, because 42 bytes would be a call */
    memcpy(to + HEAD - 16, template + HEAD - 16, 16);
    weir__store_be32(to, (uint32_t)(HEAD + payload));
    weir__store16(to + 6, __builtin_bswap16(l->s->channel));
    weir__store_be32(to + AT_HANDLE, l->handle);
    weir__store_be32(to + AT_ID, o->id);
    weir__store_be32(to + AT_TAG, o->id);
    weir__store_be32(to + AT_FORMAT, o->format);
    to[AT_SETTLED] = to[AT_BATCHABLE] = (uint8_t)(CODE_FALSE - o->settled);
    to[AT_MORE] = (uint8_t)(CODE_FALSE - more);
}

static inline size_t frame_payload(const struct weir__amqp_link *l)
{
    return *l->frame_max - HEAD;
}

void weir__amqp_large_frames(struct weir__amqp_link *l)
{
    l->frame_max = &l->s->e->peer_large_frame;
}

/* Of more bytes than one frame takes. */
static inline size_t frames_for(size_t bytes, size_t each)
{
    return (bytes + each - 1) / each;
}

static inline bool waits(const struct weir__amqp_link *l)
{
    const struct weir__amqp_session *s = l->s;

    return !l->credit || l->partial || !s->remote_window || !weir__amqp_ring_room(&s->out) ||
           l->carried >= l->limit;
}

static inline uint32_t sendable(const struct weir__amqp_link *l)
{
    const struct weir__amqp *e = l->s->e;

    if (l->role != WEIR__AMQP_SENDER || !l->sent_attach || e->stage != WEIR__AMQP_STAGE_LIVE ||
        waits(l))
        return 0;
    return weir__amqp_pending(e) < e->waiting_max ? l->credit : 0;
}

bool weir__amqp_waits_for_peer(const struct weir__amqp_link *l)
{
    return waits(l);
}

uint32_t weir__amqp_sendable(const struct weir__amqp_link *l)
{
    return sendable(l);
}

/* How much may be kept of a message that the window does not take at once. The first of a connection
 * has its place, however large it is. */
static size_t rest_room(const struct weir__amqp *e)
{
    if (!e->rests) return SIZE_MAX;
    return e->partial_bytes < e->limits.partial_bytes ? e->limits.partial_bytes - e->partial_bytes
                                                      : 0;
}

/* A message that the window cannot take at once must have a place to wait in. */
static bool fits_partly(const struct weir__amqp_link *l, size_t bytes, size_t frames)
{
    struct weir__amqp *e = l->s->e;

    if (frames <= l->s->remote_window) return true;
    if (bytes > rest_room(e)) return false;
    return !e->rests || weir__amqp_reserve(e, bytes);
}

/* What bytes of payload take with all their heads; 0 when they cannot be sent now. */
static size_t room_for_many(const struct weir__amqp_link *l, size_t bytes)
{
    size_t frames = frames_for(bytes, frame_payload(l)), room;

    if (__builtin_mul_overflow(frames, (size_t)HEAD, &room) ||
        __builtin_add_overflow(room, bytes, &room) || !fits_partly(l, bytes, frames))
        return 0;
    return room;
}

uint8_t *weir__amqp_deliver(struct weir__amqp_link *l, size_t bytes)
{
    struct weir__amqp *e = l->s->e;
    size_t room = HEAD + bytes;
    uint8_t *to;

    if (!sendable(l)) return NULL;
    if (__builtin_expect(bytes > frame_payload(l), 0) && !(room = room_for_many(l, bytes)))
        return NULL;
    to = room <= e->out.cap - e->out.len ? e->out.at + e->out.len : weir__amqp_room(e, room);
    e->delivering = e->out.len;
    return to ? to + HEAD : NULL;
}

/* The payload lies behind the first head; the last piece is moved first. */
static void move_apart(struct weir__amqp_link *l, uint8_t *base, size_t bytes, size_t frames,
                       const struct outgoing *o, bool more)
{
    struct weir__amqp *e = l->s->e;
    size_t each = frame_payload(l), total = frames * each < bytes ? frames * each : bytes;

    for (size_t i = frames; i-- > 0;) {
        uint8_t *to = base + i * (HEAD + each);
        size_t len = i == frames - 1 ? total - i * each : each;
        memmove(to + HEAD, base + HEAD + i * each, len);
        put_head(l, to, len, o, more || i < frames - 1);
    }
    for (size_t i = 0; i < frames; i++)
        weir__amqp_trace(e, true, base + i * (HEAD + each),
                         weir__load_be32(base + i * (HEAD + each)));
    e->out.len += frames * HEAD + total;
}

/* What the window does not take waits in the link. fits_partly has seen that it can; if there is
 * no memory after all, half a message cannot be taken back. */
static void keep_rest(struct weir__amqp_link *l, const uint8_t *at, size_t bytes,
                      const struct outgoing *o)
{
    struct weir__amqp *e = l->s->e;

    assert(!l->buf.at); /* a rest goes with its last frame */
    l->buf.max = bytes;
    l->partial = true;
    l->partial_id = o->id;
    l->partial_format = o->format;
    l->partial_settled = o->settled;
    l->partial_size = 0;
    l->s->rests++;
    e->rests++;
    if (!weir__buf_add(&l->buf, at, bytes))
        weir__amqp_fail(e, WEIR__AMQP_COND_INTERNAL, "no memory for the rest of a message");
    e->partial_bytes += l->buf.cap;
}

/* Returns its delivery-id. */
static __attribute__((noinline)) uint32_t send_many(struct weir__amqp_link *l, size_t bytes,
                                                    struct outgoing o)
{
    uint8_t *base = l->s->e->out.at + l->s->e->delivering;
    struct weir__amqp_session *s = l->s;
    size_t each = frame_payload(l), frames = frames_for(bytes, each), now = frames;

    if (now > s->remote_window) {
        now = s->remote_window;
        keep_rest(l, base + HEAD + now * each, bytes - now * each, &o);
        if (s->e->fallen) return o.id;
    }
    move_apart(l, base, bytes, now, &o, now < frames);
    s->remote_window -= (uint32_t)now;
    s->next_outgoing_id += (uint32_t)now;
    return o.id;
}

uint32_t weir__amqp_delivered(struct weir__amqp_link *l, size_t bytes, uint32_t format,
                              bool settled)
{
    struct weir__amqp_session *s = l->s;
    struct weir__amqp *e = s->e;
    struct outgoing o = {s->out.next, format, settled};
    uint8_t *to = e->out.at + e->out.len;
    size_t size = HEAD + bytes;

    assert(e->delivering == e->out.len); /* weir__amqp_deliver has seen that it can be sent */
    weir__amqp_ring_add(&s->out, settled || l->no_outcomes ? 0 : l->handle + 1);
    l->credit--;
    l->delivery_count++;
    l->carried += bytes;
    if (__builtin_expect(size > *l->frame_max, 0))
        return send_many(l, bytes, (struct outgoing){o.id, format, settled});
    put_head(l, to, bytes, &o, false);
    e->out.len += size;
    s->remote_window--;
    s->next_outgoing_id++;
    weir__amqp_trace(e, true, to, size);
    return o.id;
}

int weir__amqp_send(struct weir__amqp_link *l, struct weir__bytes payload, uint32_t format,
                    bool settled, uint32_t *id)
{
    uint32_t given;
    uint8_t *to;

    if (l->s->e->gathered_session) weir__amqp_gathered_flush(l->s->e);
    to = weir__amqp_deliver(l, payload.len);
    if (!to) return WEIR_EBUSY;
    if (payload.len) memcpy(to, payload.at, payload.len);
    given = weir__amqp_delivered(l, payload.len, format, settled);
    if (id) *id = given;
    return 0;
}

/* Sends frames of a message that was begun; true when there is nothing left of it. */
static bool send_rest(struct weir__amqp_link *l)
{
    struct weir__amqp_session *s = l->s;
    struct outgoing o = {l->partial_id, l->partial_format, l->partial_settled};
    size_t each = frame_payload(l), left = l->buf.len - (size_t)l->partial_size;

    while (left && s->remote_window) {
        size_t len = left < each ? left : each;
        uint8_t *to = weir__amqp_room(s->e, HEAD + len);
        if (!to) return false;
        memcpy(to + HEAD, l->buf.at + l->partial_size, len);
        put_head(l, to, len, &o, len < left);
        weir__amqp_trace(s->e, true, to, HEAD + len);
        s->e->out.len += HEAD + len;
        s->remote_window--;
        s->next_outgoing_id++;
        l->partial_size += len;
        left -= len;
    }
    return left == 0;
}

void weir__amqp_pump(struct weir__amqp_session *s)
{
    for (struct weir__amqp_link *l = s->links; l && s->rests && !s->sent_end; l = l->next) {
        WEIR__STEP();
        if (!l->partial || l->role != WEIR__AMQP_SENDER || l->sent_detach || !send_rest(l))
            continue;
        l->partial = false;
        s->e->partial_bytes -= l->buf.cap; /* others may wait for the place */
        weir__buf_fini(&l->buf);
        s->rests--;
        s->e->rests--;
        if (!l->credit)
            weir__amqp_drained(l); /* it was the last, and the owner may not look again */
    }
}
