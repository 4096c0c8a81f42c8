/* receive.c - transfers that come.
 *
 * Nearly every transfer is one whole message in one frame, written in one of two usual ways, for a
 * link that has credit: take_usual reads it field by field and hands it out where it lies. Whatever
 * is not as usual goes through the table of performatives and the long way round. A message in
 * several frames is gathered in its link; one that grows too large is counted to its end and handed
 * out without its bytes, so that it can be rejected alone. */
#include "amqp/state.h"

struct transfer {
    uint32_t handle, id, format;
    bool has_id, settled, more, aborted;
    struct weir__bytes tag, payload;
};

/* The most that a frame's header and fields take in their usual forms, with a tag as long as it should
 * be. Where as many bytes have come they can be read without asking before each: what is read too
 * far is found out at the end. */
#define USUAL_BYTES (WEIR__AMQP_FRAME_HEAD + 12 + 3 * 5 + 2 + WEIR__AMQP_TAG_USUAL + 2 + 8)

#define TRANSFER_FIELDS 11

#define USUAL_DOFF_TYPE 0x0002u     /* 02 00, as a little-endian load gives it; likewise */
#define TRANSFER_LIST8 0xc0145300u  /* 00 53 14 c0 */
#define TRANSFER_LIST32 0xd0145300u /* 00 53 14 d0 */

/* Reads a field at p; NULL when it is written otherwise. */
static inline const uint8_t *read_uint(const uint8_t *p, uint32_t *out)
{
    switch (*p) {
    case 0x70: *out = weir__load_be32(p + 1); return p + 5;
    case 0x52: *out = p[1]; return p + 2;
    case 0x43: *out = 0; return p + 1;
    default: return NULL;
    }
}

static inline const uint8_t *read_tag(const uint8_t *p, struct weir__bytes *out)
{
    if (p[0] != 0xa0 || p[1] > WEIR__AMQP_TAG_USUAL) return NULL;
    *out = weir__bytes_of(p + 2, p[1]);
    return p + 2 + p[1];
}

/* The first of more, rcv-settle-mode, state, resume and aborted, of eight bytes that can be read: each
 * is null, or false where it is a boolean. */
static inline bool are_unset(const uint8_t *p, unsigned count)
{
    uint64_t mask = ((uint64_t)1 << 8 * count) - 1;

    return !(((weir__load64(p) & 0xfdfdfdfdfdfffffd) ^ 0x4040404040404040) & mask);
}

/* Null, true or false, as a byte. */
static inline bool is_flag(uint8_t code)
{
    return code - 0x40u <= 2;
}

/* The frame at f, of which USUAL_BYTES have come, when it is a whole message in the usual form. */
static inline bool read_usual(const uint8_t *f, size_t size, struct transfer *t)
{
    const uint8_t *p, *end;
    uint32_t head = weir__load32(f + 8), bytes, count;

    if (weir__load16(f + 4) != USUAL_DOFF_TYPE) return false;
    if (__builtin_expect(head == TRANSFER_LIST8, 1)) {
        bytes = f[12] - 1u;
        count = f[13];
        p = f + 14;
    } else if (head == TRANSFER_LIST32) {
        bytes = weir__load_be32(f + 12) - 4;
        count = weir__load_be32(f + 16);
        p = f + 20;
    } else {
        return false;
    }
    if (size < (size_t)(p - f) || bytes > size - (size_t)(p - f) || count - 6 > 5) return false;
    end = p + bytes;
    if (!(p = read_uint(p, &t->handle)) || !(p = read_uint(p, &t->id)) ||
        !(p = read_tag(p, &t->tag)) || !(p = read_uint(p, &t->format)))
        return false;
    if (!is_flag(p[0]) || p + count - 4 != end) return false;
    t->settled = p[0] == 0x41;
    if (__builtin_expect(count == TRANSFER_FIELDS, 1)) { /* the last is batchable */
        if (!is_flag(p[6]) || !are_unset(p + 1, 5)) return false;
    } else if (!are_unset(p + 1, count - 5)) {
        return false;
    }
    t->payload = weir__bytes_of(end, size - (size_t)(end - f));
    return true;
}

/* Whether there is nothing to do first, and the next thing may be a transfer. */
static inline bool is_calm(const struct weir__amqp *e)
{
    uintptr_t chores = (uintptr_t)e->dead_link | (uintptr_t)e->dead_session | (uintptr_t)e->sweep |
                       (uintptr_t)e->run_session;

    return !chores && e->stage == WEIR__AMQP_STAGE_LIVE && !e->o.trace &&
           weir__amqp_pending(e) <= weir__amqp_pending_max(e);
}

static inline void fill_event(struct weir__amqp_event *ev, struct weir__amqp_link *l)
{
    ev->type = WEIR__AMQP_EVENT_TRANSFER;
    ev->session = l->s;
    ev->link = l;
    ev->fields = NULL;
}

/* When half is used, a link that keeps credit gets it back. */
static void top_up(struct weir__amqp_link *l)
{
    if (!l->keep_credit || l->credit > l->keep_credit / 2) return;
    if (l->drain || l->sent_detach || l->s->sent_end) return;
    l->credit = l->keep_credit;
    weir__amqp_flow_write(l->s, l, false);
}

/* The ring has room: it never has less than the window. */
static inline void count_usual(struct weir__amqp_session *s, struct weir__amqp_link *l,
                               bool settled)
{
    s->in_known = true;
    s->next_incoming_id++;
    s->incoming_window--; /* before a flow is written, which sets it anew */
    weir__amqp_ring_add(&s->in, settled ? 0 : l->handle + 1);
    l->delivery_count++;
    if (__builtin_expect(--l->credit <= l->keep_credit / 2, 0)) top_up(l);
    if (__builtin_expect(s->incoming_window <= s->in.mask / 2, 0)) weir__amqp_window_refill(s);
}

/* A link has credit only while it is attached and its session lives. */
bool weir__amqp_take_usual(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    size_t left = e->in_tail - e->in_head, size;
    struct weir__amqp_session *s;
    struct weir__amqp_link *l;
    struct transfer t;
    const uint8_t *f;

    if (left < USUAL_BYTES || !is_calm(e)) return false;
    f = e->in + e->in_head;
    size = weir__load_be32(f);
    if (size > left || size > e->limits.frame_bytes || !read_usual(f, size, &t)) return false;
    s = weir__amqp_slot(&e->theirs, weir__load_be16(f + 6));
    if (!s || !s->incoming_window || t.id != s->in.next) return false;
    l = weir__amqp_slot(&s->theirs, t.handle);
    if (!l || l->role != WEIR__AMQP_RECEIVER || l->partial || !l->credit ||
        t.payload.len > l->max_message)
        return false;
    fill_event(ev, l);
    ev->delivery.id = t.id;
    ev->delivery.format = t.format;
    ev->delivery.settled = t.settled;
    ev->delivery.too_large = false;
    ev->delivery.tag = t.tag;
    ev->delivery.payload = t.payload;
    ev->delivery.size = t.payload.len;
    e->in_head += size;
    e->frames++;
    count_usual(s, l, t.settled);
    return true;
}

static bool read_any(struct weir__amqp *e, struct weir__bytes body, struct transfer *t)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(body);
    const struct weir__amqp_composite *f = &e->fields;
    struct weir_error err;
    int rc =
        weir__amqp_composite_read(&c, WEIR__AMQP_KIND_SET(WEIR__AMQP_TRANSFER), &e->fields, &err);

    if (rc != 0) {
        weir__amqp_fail(e,
                        rc == WEIR_EINVAL ? WEIR__AMQP_COND_INVALID_FIELD : WEIR__AMQP_COND_DECODE,
                        "%s", err.text);
        return false;
    }
    t->handle = (uint32_t)f->transfer.handle.u;
    t->has_id = f->transfer.delivery_id.type != WEIR__AMQP_NULL;
    t->id = (uint32_t)f->transfer.delivery_id.u;
    t->tag = f->transfer.delivery_tag.bytes;
    t->format = (uint32_t)f->transfer.message_format.u;
    t->settled = f->transfer.settled.u != 0;
    t->more = f->transfer.more.u != 0;
    t->aborted = f->transfer.aborted.u != 0;
    t->payload = weir__bytes_of(c.at, weir__amqp_left(&c));
    return true;
}

/* The first frame of a message: its id must be the next, and its session and link must have room.
 * A link that has no credit is detached, and has none from then on: what still comes for it is
 * counted and dropped. */
static bool begin_delivery(struct weir__amqp_link *l, const struct transfer *t,
                           struct weir__amqp_event *ev, bool *told)
{
    struct weir__amqp_session *s = l->s;

    if (!t->has_id)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "the first transfer of a delivery has no delivery-id");
    if (t->tag.len > WEIR__AMQP_TAG_MAX)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "a delivery-tag of %zu bytes, at most %d are taken",
                                       t->tag.len, WEIR__AMQP_TAG_MAX);
    if (!s->in_known) s->in.low = s->in.next = t->id;
    s->in_known = true;
    if (t->id != s->in.next)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "transfer.delivery-id %u, the next is %u", t->id,
                                       s->in.next);
    if (!weir__amqp_ring_room(&s->in))
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_WINDOW, "more than %u unsettled",
                                       s->in.mask + 1);
    if (__builtin_expect(!l->credit, 0)) {
        weir__amqp_ring_add(&s->in, 0);
        if (!l->sent_detach)
            *told = weir__amqp_link_fail(l, ev, WEIR__AMQP_COND_TRANSFER_LIMIT,
                                         "a message without credit");
        return true;
    }
    weir__amqp_ring_add(&s->in, !t->settled || t->more ? l->handle + 1 : 0);
    l->credit--;
    l->delivery_count++;
    return true;
}

static void begin_partial(struct weir__amqp_link *l, const struct transfer *t)
{
    struct weir__amqp *e = l->s->e;

    if (!e->partials++) e->messages_ms = e->read_ms + e->o.message_ms;
    l->partial = true;
    l->partial_ms = e->read_ms;
    l->partial_settled = l->partial_too_large = false;
    l->partial_id = t->id;
    l->partial_format = t->format;
    l->partial_size = 0;
    l->tag_len = (uint8_t)(t->tag.len < sizeof l->tag ? t->tag.len : sizeof l->tag);
    if (l->tag_len) memcpy(l->tag, t->tag.at, l->tag_len);
    weir__buf_clear(&l->buf);
}

static void drop_partial(struct weir__amqp_link *l)
{
    l->s->e->partial_bytes -= l->buf.cap;
    weir__buf_fini(&l->buf);
    l->partial_too_large = true;
}

/* Room for one more frame in the message, all of the connection's messages counted. Where only the
 * owner has none, the message is refused and the link stays. */
static bool partial_room(struct weir__amqp_link *l, size_t bytes)
{
    struct weir__amqp *e = l->s->e;
    size_t most = e->limits.partial_bytes, before, others;

    if (e->partial_bytes - l->buf.cap > most - l->buf.len ||
        bytes > most - l->buf.len - (e->partial_bytes - l->buf.cap))
        weir__amqp_rest_links(e); /* links keep what their last message needed */
    before = l->buf.cap;
    others = e->partial_bytes - before;
    if (others > most) return false;
    l->buf.max = most - others;
    if (!weir__amqp_reserve(e, weir__buf_growth(&l->buf, bytes))) {
        drop_partial(l);
        return true;
    }
    if (!weir__buf_room(&l->buf, bytes)) return false;
    e->partial_bytes += l->buf.cap - before;
    return true;
}

static bool gather(struct weir__amqp_link *l, const struct transfer *t)
{
    struct weir__amqp *e = l->s->e;

    l->partial_size += t->payload.len;
    l->partial_settled |= t->settled;
    if (l->partial_size > l->max_message && !l->partial_too_large) drop_partial(l);
    if (l->partial_too_large || l->sent_detach) return true;
    if (!partial_room(l, t->payload.len))
        return weir__amqp_fail(e, WEIR__AMQP_COND_LIMIT,
                               "more than %u bytes of messages in several frames",
                               e->limits.partial_bytes);
    return l->partial_too_large || weir__buf_add(&l->buf, t->payload.at, t->payload.len);
}

/* Whether a delivery is unsettled still: the sender may have settled it by a disposition before its
 * last frame. */
static bool is_owned(const struct weir__amqp_link *l, uint32_t id)
{
    const struct weir__amqp_ring *r = &l->s->in;

    return id - r->low < r->next - r->low && weir__amqp_ring_owner(r, id) == l->handle + 1;
}

/* One more frame of a message in several: true when it was the last and may be told. */
static bool on_part(struct weir__amqp_link *l, const struct transfer *t,
                    struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = l->s;
    struct weir__amqp *e = s->e;

    if (t->has_id && t->id != l->partial_id)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_INVALID_FIELD,
                                       "delivery %u within delivery %u", t->id, l->partial_id);
    if (!t->aborted && !gather(l, t)) return false;
    if (t->more && !t->aborted) return false;
    l->partial = false;
    e->partials--;
    e->rest_due = true;
    if (l->sent_detach) return false;
    if (!is_owned(l, l->partial_id))
        l->partial_settled = true;
    else if (l->partial_settled || t->aborted)
        weir__amqp_ring_clear(&s->in, l->partial_id, l->partial_id + 1);
    if (t->aborted) return false;
    fill_event(ev, l);
    ev->delivery = (struct weir__amqp_delivery){
        .id = l->partial_id,
        .format = l->partial_format,
        .settled = l->partial_settled,
        .too_large = l->partial_too_large,
        .tag = {l->tag, l->tag_len},
        .payload = weir__bytes_of(l->buf.at, l->partial_too_large ? 0 : l->buf.len),
        .size = l->partial_size};
    return true;
}

/* A message in one frame. */
static bool on_whole(struct weir__amqp_link *l, const struct transfer *t,
                     struct weir__amqp_event *ev)
{
    bool too_large = t->payload.len > l->max_message;

    if (l->sent_detach) return false;
    fill_event(ev, l);
    ev->delivery.id = t->id;
    ev->delivery.format = t->format;
    ev->delivery.settled = t->settled;
    ev->delivery.too_large = too_large;
    ev->delivery.tag = t->tag;
    ev->delivery.payload = too_large ? weir__bytes_of(NULL, 0) : t->payload;
    ev->delivery.size = t->payload.len;
    return true;
}

static bool on_link(struct weir__amqp_link *l, const struct transfer *t,
                    struct weir__amqp_event *ev)
{
    bool told = false;

    if (l->role != WEIR__AMQP_RECEIVER || !l->sent_attach)
        return weir__amqp_session_fail(l->s, WEIR__AMQP_COND_NOT_ALLOWED,
                                       "a transfer to handle %u, which does not receive",
                                       t->handle);
    if (!l->partial) {
        if (!begin_delivery(l, t, ev, &told)) return false;
        if (t->more || t->aborted) begin_partial(l, t);
    }
    if (l->partial ? on_part(l, t, ev) : on_whole(l, t, ev)) told = true;
    top_up(l);
    return told;
}

bool weir__amqp_on_transfer(struct weir__amqp *e, uint16_t channel, struct weir__bytes body,
                            struct weir__amqp_event *ev)
{
    struct weir__amqp_session *s = weir__amqp_slot(&e->theirs, channel);
    struct weir__amqp_link *l;
    struct transfer t;
    bool told;

    if (__builtin_expect(!s || s->sent_end, 0)) {
        weir__amqp_session_at(e, channel); /* which fails where it must */
        return false;
    }
    if (!read_any(e, body, &t)) return false;
    if (!s->incoming_window)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_WINDOW, "a transfer without a window");
    s->incoming_window--;
    s->next_incoming_id++;
    l = weir__amqp_slot(&s->theirs, t.handle);
    if (!l)
        return weir__amqp_session_fail(s, WEIR__AMQP_COND_UNATTACHED, "transfer to handle %u",
                                       t.handle);
    told = on_link(l, &t, ev);
    if (__builtin_expect(s->incoming_window <= s->in.mask / 2, 0)) weir__amqp_window_refill(s);
    return told && !e->fallen;
}
