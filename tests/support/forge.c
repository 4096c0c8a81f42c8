/* forge.c - see forge.h. */
#include "support/forge.h"

#include "base/crc.h"
#include "log/state.h"
#include "support/dice.h"

#define FIRST_AT 48u /* in the body: what tells batches apart stays */
#define EVERY 128u   /* bytes from one forged header to the next */
#define BODY_BYTES 16u
#define YEAR_2100_MS INT64_C(4102444800000)

struct forgery forge_plan(struct weir__log *log, uint32_t partition)
{
    struct forgery f;

    weir__mutex_lock(&log->lock);
    f = (struct forgery){.position = log->tail.end,
                         .hub_id = log->o.hub_id,
                         .sequence = log->heads[partition].next_sequence,
                         .epoch = log->epoch,
                         .partition = partition};
    weir__mutex_unlock(&log->lock);
    return f;
}

/* Modest claims are the dangerous ones; bold ones would do more harm. */
static void forge_header(const struct forgery *f, uint64_t position, uint64_t n, uint8_t *to)
{
    uint64_t dice = position, guess = n % 4 == 3 ? dice_next(&dice) | 1 : 0;
    struct weir__batch_stamp stamp = weir__batch_stamp(f->hub_id, guess);
    struct weir__batch_header h = {
        .position = position,
        .watermark = position,
        .sequence = n % 2 ? f->sequence : UINT64_C(1) << 40,
        .time_ms = YEAR_2100_MS,
        .epoch = f->epoch,
        .body_bytes = BODY_BYTES,
        .body_crc = weir__crc32c(0, to + WEIR__BATCH_HEADER_BYTES, BODY_BYTES),
        .count = 1,
        .partition = (uint16_t)f->partition,
    };

    weir__batch_encode(&h, &stamp, to);
}

void forge_body(const struct forgery *f, uint8_t *body, size_t len)
{
    uint64_t n = 0;

    for (size_t at = FIRST_AT; at + WEIR__BATCH_HEADER_BYTES + BODY_BYTES <= len; at += EVERY)
        forge_header(f, f->position + WEIR__BATCH_HEADER_BYTES + at, n++, body + at);
}
