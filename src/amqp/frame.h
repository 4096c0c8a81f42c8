/* frame.h - the eight bytes before everything.
 *
 *   0  size     4  of the whole frame, big-endian
 *   4  doff     1  where the body begins, in words of four bytes; at least 2
 *   5  type     1  0 AMQP, 1 SASL
 *   6  channel  2  AMQP; SASL has no use for it
 *   8  extended header, ignored; then the body
 *
 * A frame of AMQP without a body says only that the peer is alive. */
#ifndef WEIR_AMQP_FRAME_H
#define WEIR_AMQP_FRAME_H

#include "amqp/cursor.h"

#define WEIR__AMQP_FRAME_HEAD 8
#define WEIR__AMQP_FRAME_DOFF 2

/* Every peer takes frames of this size, and may assume that of us. */
#define WEIR__AMQP_FRAME_MIN 512

enum weir__amqp_frame_type { WEIR__AMQP_FRAME_AMQP, WEIR__AMQP_FRAME_SASL };

struct weir__amqp_frame {
    uint32_t size;
    uint8_t type;
    uint16_t channel;
    struct weir__bytes body;
};

enum weir__amqp_framing {
    WEIR__AMQP_FRAME_PART, /* not all of it is there; size is set when that much is known */
    WEIR__AMQP_FRAME_WHOLE,
    WEIR__AMQP_FRAME_BROKEN
};

/* Looks for a frame at the beginning of b. Nothing is subtracted from a size before it was found
 * large enough. A frame is broken when its size is below 8 or above max, or its doff is below 2 or
 * beyond its end; *why then says which. */
static inline enum weir__amqp_framing weir__amqp_frame_read(struct weir__bytes b, uint32_t max,
                                                            struct weir__amqp_frame *out,
                                                            const char **why)
{
    size_t body_at;

    out->size = 0;
    if (b.len < 4) return WEIR__AMQP_FRAME_PART;
    out->size = weir__load_be32(b.at);
    *why = out->size < WEIR__AMQP_FRAME_HEAD ? "a frame smaller than its own header"
           : out->size > max                 ? "a frame larger than allowed"
                                             : NULL;
    if (*why) return WEIR__AMQP_FRAME_BROKEN;
    if (b.len < WEIR__AMQP_FRAME_HEAD) return WEIR__AMQP_FRAME_PART;
    body_at = (size_t)b.at[4] * 4;
    if (body_at < WEIR__AMQP_FRAME_HEAD || body_at > out->size) {
        *why = "a frame whose body begins outside of it";
        return WEIR__AMQP_FRAME_BROKEN;
    }
    if (b.len < out->size) return WEIR__AMQP_FRAME_PART;
    out->type = b.at[5];
    out->channel = weir__load_be16(b.at + 6);
    out->body = weir__bytes_of(b.at + body_at, out->size - body_at);
    return WEIR__AMQP_FRAME_WHOLE;
}

static inline void weir__amqp_frame_head(uint8_t to[WEIR__AMQP_FRAME_HEAD], uint32_t size,
                                         enum weir__amqp_frame_type type, uint16_t channel)
{
    weir__store_be32(to, size);
    to[4] = WEIR__AMQP_FRAME_DOFF;
    to[5] = (uint8_t)type;
    to[6] = (uint8_t)(channel >> 8);
    to[7] = (uint8_t)channel;
}

#endif
