/* roster.c - see roster.h. */
#include "processor/roster.h"

#include <stdlib.h>
#include <string.h>

#include "processor/balance.h"

#define TABLE_SIZE_MIN 16
#define EXPIRE_MS_MAX ((int64_t)24 * 3600 * 1000) /* what a record may ask for */

void weir__roster_free(struct weir__roster *r)
{
    free(r->members);
    free(r->alive);
    free(r->ranks);
    free(r->weights);
    free(r->table);
    r->members = r->alive = NULL;
    r->ranks = r->weights = r->table = NULL;
    r->member_count = r->count = r->cap = r->table_size = 0;
}

int64_t weir__roster_patience(const struct weir__roster *r)
{
    return r->expire_ms / 2;
}

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
    return hash ^ (hash >> 29);
}

static uint64_t hash_id(const char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *id; id++) hash = (hash ^ (uint8_t)*id) * 0x100000001b3u;
    return mix(hash, 0);
}

static int reserve(struct weir__roster *r, size_t members, struct weir_error *err)
{
    uint32_t cap = TABLE_SIZE_MIN;

    while (cap < members) cap *= 2;
    if (cap <= r->cap) return 0;
    weir__roster_free(r);
    r->members = calloc(cap, sizeof(const struct weir_member *));
    r->alive = calloc(cap, sizeof(const struct weir_member *));
    r->ranks = calloc(cap, sizeof *r->ranks);
    r->weights = calloc(cap, sizeof *r->weights);
    r->table = calloc((size_t)cap * 2, sizeof *r->table);
    if (!r->members || !r->alive || !r->ranks || !r->weights || !r->table) {
        weir__roster_free(r);
        return weir__fail(err, WEIR_ENOMEM, "a list of %zu members", members);
    }
    r->cap = cap;
    r->table_size = cap * 2;
    return 0;
}

/* Sees whether the views still come without a break. */
static void follow_series(struct weir__roster *r, int64_t store_ms, int64_t now_ms)
{
    int64_t passed = now_ms - r->seen_ms, drift = store_ms - r->seen_at - passed;
    int64_t patience = weir__roster_patience(r);

    if (!r->seen || r->broken || passed > patience || drift > patience || drift < -patience)
        r->series_ms = now_ms;
    r->seen = true;
    r->broken = false;
    r->seen_ms = now_ms;
    r->seen_at = store_ms;
}

static int64_t expire_of(const struct weir_member *m)
{
    if (m->expire_ms < 0) return 0;
    return m->expire_ms < EXPIRE_MS_MAX ? m->expire_ms : EXPIRE_MS_MAX;
}

/* A beat in the future is as far from now as one in the past: the store's clock was set back. */
static bool is_alive(struct weir__roster *r, const struct weir_member *m, int64_t store_ms,
                     int64_t now_ms)
{
    int64_t clock = r->local_clock ? now_ms : store_ms, silent;

    if (__builtin_sub_overflow(clock, m->beat_ms, &silent) || silent == INT64_MIN) return false;
    if (silent < 0) silent = -silent;
    if (silent > expire_of(m)) return false;
    if (silent > r->beat_ms + r->beat_ms / 2 && now_ms + expire_of(m) - silent < r->due_ms)
        r->due_ms = now_ms + expire_of(m) - silent + 1;
    return true;
}

static int compare_ids(const void *left, const void *right)
{
    const struct weir_member *const *a = left, *const *b = right;

    return strcmp((*a)->id, (*b)->id);
}

/* All members by id; most stores give them in this order. */
static void list_members(struct weir__roster *r, const struct weir_view *view)
{
    bool sorted = true;

    for (size_t i = 0; i < view->member_count; i++) {
        r->members[r->member_count++] = &view->members[i];
        sorted = sorted && (i == 0 || strcmp(view->members[i - 1].id, view->members[i].id) < 0);
    }
    if (!sorted)
        qsort(r->members, r->member_count, sizeof(const struct weir_member *), compare_ids);
}

static void rank(struct weir__roster *r, uint32_t i, uint64_t hash)
{
    const struct weir_member *m = r->members[i];

    r->ranks[i] = r->count;
    r->alive[r->count] = m;
    r->weights[r->count++] = m->weight;
    r->print = mix(mix(mix(r->print, hash), m->instance), m->weight);
}

int weir__roster_update(struct weir__roster *r, const struct weir_view *view, int64_t now_ms,
                        struct weir_error *err)
{
    int rc;

    r->member_count = r->count = 0;
    r->print = 0;
    r->due_ms = INT64_MAX;
    follow_series(r, view->now_ms, now_ms);
    rc = reserve(r, view->member_count, err);
    if (rc != 0) return rc;
    list_members(r, view);
    memset(r->table, 0xff, r->table_size * sizeof *r->table);
    for (uint32_t i = 0; i < r->member_count; i++) {
        uint64_t hash = hash_id(r->members[i]->id);
        uint32_t at = (uint32_t)hash & (r->table_size - 1);
        while (r->table[at] != WEIR__NOBODY) at = (at + 1) & (r->table_size - 1);
        r->table[at] = i;
        r->ranks[i] = WEIR__NOBODY;
        if (is_alive(r, r->members[i], view->now_ms, now_ms)) rank(r, i, hash);
    }
    return 0;
}

static uint32_t find_member(const struct weir__roster *r, const char *id)
{
    uint32_t at;

    if (r->member_count == 0) return WEIR__NOBODY;
    at = (uint32_t)hash_id(id) & (r->table_size - 1);
    while (r->table[at] != WEIR__NOBODY && strcmp(r->members[r->table[at]]->id, id) != 0)
        at = (at + 1) & (r->table_size - 1);
    return r->table[at];
}

uint32_t weir__roster_find(const struct weir__roster *r, const char *id)
{
    uint32_t i = find_member(r, id);

    return i == WEIR__NOBODY ? WEIR__NOBODY : r->ranks[i];
}

int64_t weir__roster_dead_ms(const struct weir__roster *r, const char *id)
{
    uint32_t i = find_member(r, id);
    int64_t expire = i == WEIR__NOBODY ? r->expire_ms : expire_of(r->members[i]);

    return r->unseen ? INT64_MIN : r->series_ms + expire + r->beat_ms;
}
