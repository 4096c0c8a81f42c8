/* roster.c - see roster.h. */
#include "processor/roster.h"

#include <stdlib.h>
#include <string.h>

#include "processor/balance.h"

#define TABLE_SIZE_MIN 16
#define EXPIRE_MS_MAX ((int64_t)24 * 3600 * 1000) /* what a record may ask for */

/* What is made anew from each view. */
static void free_lists(struct weir__roster *r)
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

void weir__roster_free(struct weir__roster *r)
{
    free_lists(r);
    free(r->foreigns);
    free(r->renewals);
    r->foreigns = NULL;
    r->renewals = NULL;
    r->foreign_count = r->foreign_cap = r->foreign_alive = r->renewal_count = 0;
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
    free_lists(r);
    r->members = calloc(cap, sizeof(const struct weir_member *));
    r->alive = calloc(cap, sizeof(const struct weir_member *));
    r->ranks = calloc(cap, sizeof *r->ranks);
    r->weights = calloc(cap, sizeof *r->weights);
    r->table = calloc((size_t)cap * 2, sizeof *r->table);
    if (!r->members || !r->alive || !r->ranks || !r->weights || !r->table) {
        free_lists(r);
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

/* ---- members ---- */

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

static uint32_t find_member(const struct weir__roster *r, const char *id)
{
    uint32_t at;

    if (r->member_count == 0) return WEIR__NOBODY;
    at = (uint32_t)hash_id(id) & (r->table_size - 1);
    while (r->table[at] != WEIR__NOBODY && strcmp(r->members[r->table[at]]->id, id) != 0)
        at = (at + 1) & (r->table_size - 1);
    return r->table[at];
}

static void index_member(struct weir__roster *r, uint32_t i)
{
    uint32_t at = (uint32_t)hash_id(r->members[i]->id) & (r->table_size - 1);

    while (r->table[at] != WEIR__NOBODY) at = (at + 1) & (r->table_size - 1);
    r->table[at] = i;
}

/* ---- foreign owners ---- */

static bool names_foreign(const struct weir_record *record)
{
    return record->instance == 0 && record->owner[0] != '\0' && record->rc == 0;
}

/* Makes room for all that the records may name. */
static int reserve_foreigns(struct weir__roster *r, uint32_t named, struct weir_error *err)
{
    uint32_t cap = r->foreign_count + named;

    if (named == 0) return 0;
    if (cap > r->foreign_cap) {
        struct weir__foreign *more = realloc(r->foreigns, cap * sizeof *more);
        if (!more) return weir__fail(err, WEIR_ENOMEM, "a list of %u foreign owners", cap);
        r->foreigns = more;
        r->foreign_cap = cap;
    }
    if (r->renewal_count < r->partitions) {
        struct weir__renewal *more = realloc(r->renewals, r->partitions * sizeof *more);
        if (!more) return weir__fail(err, WEIR_ENOMEM, "the renewals of %u partitions", cap);
        memset(more + r->renewal_count, 0, (r->partitions - r->renewal_count) * sizeof *more);
        r->renewals = more;
        r->renewal_count = r->partitions;
    }
    return 0;
}

/* Puts it behind the members; one whose name has become a member's is not foreign any more. */
static void list_foreign(struct weir__roster *r, struct weir__foreign *f)
{
    if (find_member(r, f->member.id) != WEIR__NOBODY) return;
    r->members[r->member_count] = &f->member;
    index_member(r, r->member_count++);
}

/* The made up member is its first. */
static struct weir__foreign *foreign_of(const struct weir__roster *r, const struct weir_member *m)
{
    return &r->foreigns[(const struct weir__foreign *)m - r->foreigns];
}

/* The one that a record names; a new one if it is not known. NULL: it is a member's name. */
static struct weir__foreign *name_foreign(struct weir__roster *r, const char *id, size_t members)
{
    uint32_t i = find_member(r, id);
    struct weir__foreign *f;

    if (i != WEIR__NOBODY) return i < members ? NULL : foreign_of(r, r->members[i]);
    f = &r->foreigns[r->foreign_count++];
    *f = (struct weir__foreign){.member = {.weight = 1, .beat_ms = INT64_MIN}};
    memcpy(f->member.id, id, strlen(id) + 1);
    list_foreign(r, f);
    return f;
}

/* Learns how often it renews. What was missed behind a break, or a clock that was set, is no pause
 * of its: it would be longer than we have looked on. */
static void follow_renewal(struct weir__roster *r, struct weir__foreign *f,
                           const struct weir_record *record, int64_t now_ms)
{
    uint64_t owner = hash_id(record->owner);
    struct weir__renewal *last;
    int64_t gap;

    f->records++;
    if (record->modified_ms > f->member.beat_ms) f->member.beat_ms = record->modified_ms;
    if (record->partition >= r->renewal_count) return;
    last = &r->renewals[record->partition];
    if (last->owner == owner &&
        !__builtin_sub_overflow(record->modified_ms, last->modified_ms, &gap) && gap > 0 &&
        gap <= now_ms - r->series_ms)
        f->period_ms = gap > f->period_ms ? gap : f->period_ms - (f->period_ms - gap) / 4;
    *last = (struct weir__renewal){owner, record->modified_ms};
}

static int compare_foreigns(const void *left, const void *right)
{
    const struct weir__foreign *a = left, *b = right;

    return strcmp(a->member.id, b->member.id);
}

/* Forgets those that no record names any more, and puts the others in order. */
static void sort_foreigns(struct weir__roster *r)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->foreign_count; i++) {
        struct weir__foreign *f = &r->foreigns[i];
        int64_t expire = 3 * (f->period_ms < EXPIRE_MS_MAX ? f->period_ms : EXPIRE_MS_MAX);
        f->member.expire_ms = expire > r->foreign_expire_ms ? expire : r->foreign_expire_ms;
        if (f->records > 0) r->foreigns[kept++] = *f;
    }
    r->foreign_count = kept;
    if (kept > 1) qsort(r->foreigns, kept, sizeof *r->foreigns, compare_foreigns);
}

static void index_members(struct weir__roster *r, uint32_t members)
{
    memset(r->table, 0xff, r->table_size * sizeof *r->table);
    r->member_count = members;
    for (uint32_t i = 0; i < members; i++) index_member(r, i);
    for (uint32_t i = 0; i < r->foreign_count; i++) list_foreign(r, &r->foreigns[i]);
}

static void look_at_records(struct weir__roster *r, const struct weir_view *view, int64_t now_ms)
{
    for (uint32_t i = 0; i < r->foreign_count; i++) {
        r->foreigns[i].records = 0;
        r->foreigns[i].member.beat_ms = INT64_MIN;
    }
    for (size_t i = 0; i < view->record_count; i++) {
        const struct weir_record *record = &view->records[i];
        struct weir__foreign *f = NULL;
        if (names_foreign(record)) f = name_foreign(r, record->owner, view->member_count);
        if (f)
            follow_renewal(r, f, record, now_ms);
        else if (record->partition < r->renewal_count) /* when it comes back it is no renewal */
            r->renewals[record->partition].owner = 0;
    }
    sort_foreigns(r);
}

/* ---- the whole ---- */

static void rank(struct weir__roster *r, uint32_t i)
{
    const struct weir_member *m = r->members[i];

    r->ranks[i] = r->count;
    r->alive[r->count] = m;
    r->weights[r->count++] = m->weight;
    r->print = mix(mix(mix(r->print, hash_id(m->id)), m->instance), m->weight);
}

static void rank_living(struct weir__roster *r, const struct weir_view *view, int64_t now_ms)
{
    uint32_t members = (uint32_t)view->member_count, own = 0;

    for (uint32_t i = 0; i < r->member_count; i++) {
        r->ranks[i] = WEIR__NOBODY;
        if (is_alive(r, r->members[i], view->now_ms, now_ms)) rank(r, i);
        if (i < members) own = r->count;
    }
    r->foreign_alive = r->count - own;
    for (uint32_t i = 0; i < own && r->foreign_alive > 0; i++)
        if (r->weights[i] > 1) r->weights[i] = 1;
}

int weir__roster_update(struct weir__roster *r, const struct weir_view *view, int64_t now_ms,
                        struct weir_error *err)
{
    bool news = view->change == 0 || view->change != r->looked_at;
    uint32_t named = 0;
    int rc;

    r->member_count = r->count = r->foreign_alive = 0;
    r->print = 0;
    r->due_ms = INT64_MAX;
    follow_series(r, view->now_ms, now_ms);
    for (size_t i = 0; news && i < view->record_count; i++)
        named += names_foreign(&view->records[i]);
    rc = reserve_foreigns(r, named, err);
    if (rc == 0) rc = reserve(r, view->member_count + r->foreign_count + named, err);
    if (rc != 0) return rc;
    list_members(r, view);
    index_members(r, r->member_count);
    if (news && (named > 0 || r->foreign_count > 0)) {
        look_at_records(r, view, now_ms);
        index_members(r, (uint32_t)view->member_count);
    }
    r->looked_at = view->change;
    rank_living(r, view, now_ms);
    return 0;
}

uint32_t weir__roster_find(const struct weir__roster *r, const char *id)
{
    uint32_t i = find_member(r, id);

    return i == WEIR__NOBODY ? WEIR__NOBODY : r->ranks[i];
}

uint32_t weir__roster_owner(const struct weir__roster *r, const struct weir_record *record)
{
    uint32_t rank = weir__roster_find(r, record->owner);
    int64_t age;

    if (!weir__roster_foreign(r, rank)) return rank;
    if (__builtin_sub_overflow(r->seen_at, record->modified_ms, &age)) return WEIR__NOBODY;
    return age <= expire_of(r->alive[rank]) ? rank : WEIR__NOBODY;
}

struct weir__foreign *weir__roster_foreign(const struct weir__roster *r, uint32_t rank)
{
    if (rank >= r->count || rank < r->count - r->foreign_alive) return NULL;
    return foreign_of(r, r->alive[rank]);
}

int64_t weir__roster_dead_ms(const struct weir__roster *r, const char *id)
{
    uint32_t i = find_member(r, id);
    int64_t expire = i == WEIR__NOBODY ? r->expire_ms : expire_of(r->members[i]);

    return r->unseen ? INT64_MIN : r->series_ms + expire + r->beat_ms;
}
