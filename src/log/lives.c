/* lives.c - see lives.h. */
#include "log/lives.h"

#include <stdlib.h>

#include "log/blocks.h"
#include "log/state.h"

#define WINDOW_BYTES (1u << 20)

struct look {
    uint64_t hub_id;
    uint64_t secrets[2];
    struct weir__lives *out;
};

/* Whether nothing is lost by forgetting a for b: what can be made up is worth least, then what is oldest. */
static bool is_worth_less(const struct weir__life *a, const struct weir__life *b)
{
    if ((a->secret == 0) != (b->secret == 0)) return a->secret == 0;
    return a->base < b->base;
}

static void add(struct weir__lives *lives, const struct weir__life *life)
{
    struct weir__life *least = &lives->at[0];

    if (weir__lives_of(lives, life->base, life->secret)) return;
    if (lives->count < WEIR__LIVES_MAX) {
        lives->at[lives->count++] = *life;
        return;
    }
    for (int i = 1; i < lives->count; i++)
        if (is_worth_less(&lives->at[i], least)) least = &lives->at[i];
    if (is_worth_less(least, life)) *least = *life;
}

static void see_header(const struct look *l, const uint8_t *at, uint64_t offset)
{
    for (int i = l->secrets[0] == 0; i < 2; i++) {
        struct weir__batch_stamp stamp = weir__batch_stamp(l->hub_id, l->secrets[i]);
        struct weir__batch_header h;
        uint64_t base;

        if (weir__load32(at) != stamp.magic || !weir__batch_decode(at, &stamp, &h)) continue;
        base = h.position - offset;
        if (h.position < WEIR__LOG_ORIGIN + offset || base % WEIR__FS_BLOCK != 0) continue;
        add(l->out, &(struct weir__life){base, l->secrets[i], h});
    }
}

static void see_window(const struct look *l, const uint8_t *window, size_t len, uint64_t offset)
{
    for (size_t i = 0; i + 8 <= len; i += 8) {
        if (weir__load64(window + i) == 0) continue;
        if (i + WEIR__BATCH_HEADER_BYTES <= len) see_header(l, window + i, offset + i);
    }
}

int weir__lives_read(struct weir__file *f, uint64_t hub_id, uint64_t secret,
                     struct weir__lives *out, struct weir_error *err)
{
    struct look l = {hub_id, {secret, 0}, out};
    uint8_t *window = aligned_alloc(WEIR__FS_BLOCK, WINDOW_BYTES);
    struct weir__bad_blocks bad = {0};
    uint64_t bytes = 0;
    size_t got = WINDOW_BYTES;
    int rc = window ? f->ops->size(f, &bytes, err) : weir__fail(err, WEIR_ENOMEM, "out of memory");

    *out = (struct weir__lives){0};
    /* Windows overlap, so that none cuts a header in two. */
    for (uint64_t at = 0; rc == 0 && at < bytes && got == WINDOW_BYTES;
         at += WINDOW_BYTES - WEIR__FS_BLOCK) {
        rc = weir__blocks_read(f, window, WINDOW_BYTES, at, &got, &bad, err);
        if (rc == 0) see_window(&l, window, got, at);
    }
    free(window);
    return rc;
}

const struct weir__life *weir__lives_of(const struct weir__lives *lives, uint64_t base,
                                        uint64_t secret)
{
    for (int i = 0; i < lives->count; i++)
        if (lives->at[i].base == base && lives->at[i].secret == secret) return &lives->at[i];
    return NULL;
}

const struct weir__life *weir__lives_newest(const struct weir__lives *lives, uint64_t secret)
{
    const struct weir__life *newest = NULL;

    for (int i = 0; secret && i < lives->count; i++) {
        const struct weir__life *l = &lives->at[i];

        if (l->secret == secret && (!newest || l->base > newest->base)) newest = l;
    }
    return newest;
}
