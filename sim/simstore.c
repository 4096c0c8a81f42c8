/* simstore.c - see simstore.h; the rules are those of weir/store.h. */
#include "sim/simstore.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FORGET 100 /* a member that was silent for so many times its expire_ms is removed */

static struct weir__simstore *simstore_of(struct weir_store *s)
{
    return (struct weir__simstore *)s;
}

static int64_t silence_of(const struct weir__simstore *s, const struct weir_member *m)
{
    return s->now_ms - m->beat_ms;
}

static struct weir_member *find_member(const struct weir__simstore *s, const char *id)
{
    for (size_t i = 0; i < s->member_count; i++)
        if (strcmp(s->members[i].id, id) == 0) return &s->members[i];
    return NULL;
}

/* Those that were silent for long, and those whose beat lies in the future: the clock was set back,
 * and they would seem to be alive until it has caught up. */
static void forget_members(struct weir__simstore *s)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->member_count; i++) {
        int64_t silent = silence_of(s, &s->members[i]), expire = s->members[i].expire_ms;
        if (silent <= FORGET * expire && silent >= -expire) s->members[kept++] = s->members[i];
    }
    s->member_count = kept;
}

static bool has_left(const struct weir__simstore *s, uint64_t instance)
{
    for (size_t i = 0; i < s->left_count && i < WEIR__SIMSTORE_LEFT; i++)
        if (s->left[i] == instance) return true;
    return false;
}

static int beat(struct weir_store *store, const struct weir_scope *scope,
                const struct weir_member *m, struct weir_error *err)
{
    struct weir__simstore *s = simstore_of(store);
    struct weir_member *there;

    (void)scope;
    forget_members(s);
    there = find_member(s, m->id);
    if (has_left(s, m->instance)) return weir__fail(err, WEIR_EFENCED, "'%s' has left", m->id);
    if (there && there->instance != m->instance && silence_of(s, there) <= there->expire_ms)
        return weir__fail(err, WEIR_EEXIST, "'%s' is alive", m->id);
    if (!there) {
        if (s->member_count == s->member_cap) {
            s->member_cap = s->member_cap ? s->member_cap * 2 : 16;
            s->members = realloc(s->members, s->member_cap * sizeof *s->members);
            assert(s->members);
        }
        there = &s->members[s->member_count++];
    }
    *there = *m;
    there->beat_ms = s->now_ms;
    return 0;
}

static int leave(struct weir_store *store, const struct weir_scope *scope,
                 const struct weir_member *m, struct weir_error *err)
{
    struct weir__simstore *s = simstore_of(store);
    struct weir_member *there = find_member(s, m->id);

    (void)scope, (void)err;
    if (there && there->instance == m->instance) {
        s->left[s->left_count++ % WEIR__SIMSTORE_LEFT] = m->instance;
        *there = s->members[--s->member_count];
    }
    return 0;
}

static bool is_present(const struct weir_record *r)
{
    return r->version[0] != '\0' || r->marked || r->rewinds > 0 || r->rc != 0;
}

static int read_view(struct weir_store *store, const struct weir_scope *scope, struct weir_view *v,
                     struct weir_error *err)
{
    struct weir__simstore *s = simstore_of(store);

    (void)scope, (void)err;
    if (v->member_cap < s->member_count) {
        v->member_cap = s->member_cap;
        v->members = realloc(v->members, v->member_cap * sizeof *v->members);
        assert(v->members);
    }
    if (s->member_count > 0) memcpy(v->members, s->members, s->member_count * sizeof *v->members);
    v->member_count = s->member_count;
    v->now_ms = s->now_ms;
    if (v->change == s->change) return 0;
    v->change = s->change;
    if (v->record_cap < s->partitions) {
        v->record_cap = s->partitions;
        v->records = realloc(v->records, v->record_cap * sizeof *v->records);
        assert(v->records);
    }
    v->record_count = 0;
    for (uint32_t p = 0; p < s->partitions; p++) {
        struct weir_record *r = &s->records[p];
        struct weir_record unreadable = {.partition = p, .rc = r->rc};
        if (is_present(r)) v->records[v->record_count++] = r->rc == 0 ? *r : unreadable;
    }
    return 0;
}

static int claim(struct weir_store *store, const struct weir_scope *scope,
                 const struct weir_record *expected, const char *owner, uint64_t instance,
                 struct weir_record *out, struct weir_error *err)
{
    struct weir__simstore *s = simstore_of(store);
    struct weir_record *r = &s->records[expected->partition];
    bool renewal;

    (void)scope;
    if (r->rc != 0 || strcmp(r->version, expected->version) != 0)
        return weir__fail(err, WEIR_EFENCED, "partition %" PRIu32 " was changed", r->partition);
    renewal = owner[0] && r->instance == instance && strcmp(r->owner, owner) == 0;
    s->change++;
    if (!renewal) r->acquired_ms = s->now_ms;
    if (!renewal && owner[0]) r->epoch++;
    snprintf(r->owner, sizeof r->owner, "%s", owner);
    r->instance = instance;
    r->modified_ms = s->now_ms;
    snprintf(r->version, sizeof r->version, "%" PRIu64, s->change);
    *out = *r;
    return 0;
}

/* Whether a mark is its owner's, and not behind one that this owner has sent later. */
static bool holds(const struct weir__simstore *s, const char *owner, const struct weir_mark *m)
{
    const struct weir_record *r = &s->records[m->partition];
    const struct weir__simstore_turn *last = &s->turns[m->partition];
    bool late = m->turn <= (last->epoch == m->epoch ? last->turn : 0);

    return r->rc == 0 && owner[0] && strcmp(r->owner, owner) == 0 && r->epoch == m->epoch &&
           r->rewinds == m->rewinds && (!late || s->turns_off);
}

static int mark(struct weir_store *store, const struct weir_scope *scope, const char *owner,
                struct weir_mark *marks, size_t count, struct weir_error *err)
{
    struct weir__simstore *s = simstore_of(store);

    (void)scope, (void)err;
    for (size_t i = 0; i < count; i++) {
        struct weir_mark *m = &marks[i];
        struct weir_record *r = &s->records[m->partition];
        m->rc = holds(s, owner, m) || s->fence_off ? 0 : WEIR_EFENCED;
        if (m->rc != 0) continue;
        s->turns[m->partition] = (struct weir__simstore_turn){m->epoch, m->turn};
        r->marked = true;
        r->sequence = m->sequence;
        memcpy(r->offset, m->offset, sizeof r->offset);
        r->modified_ms = s->now_ms;
    }
    return 0;
}

static int set(struct weir_store *store, const struct weir_scope *scope, uint32_t partition,
               const struct weir_mark *m, struct weir_error *err)
{
    struct weir__simstore *s = simstore_of(store);
    struct weir_record *r = &s->records[partition];

    (void)scope, (void)err;
    s->change++;
    r->marked = m != NULL;
    r->sequence = m ? m->sequence : 0;
    r->offset[0] = '\0';
    if (m) memcpy(r->offset, m->offset, sizeof r->offset);
    r->rewinds++;
    r->modified_ms = s->now_ms;
    return 0;
}

static void close_store(struct weir_store *store)
{
    struct weir__simstore *s = simstore_of(store);

    free(s->members);
    free(s->records);
    free(s->turns);
    free(s);
}

static const struct weir_store_ops ops = {.version = WEIR_STORE_VERSION,
                                          .beat = beat,
                                          .leave = leave,
                                          .read = read_view,
                                          .claim = claim,
                                          .mark = mark,
                                          .set = set,
                                          .close = close_store};

struct weir__simstore *weir__simstore_new(uint32_t partitions)
{
    struct weir__simstore *s = calloc(1, sizeof *s);

    assert(s);
    s->base.ops = &ops;
    s->change = 1;
    s->partitions = partitions;
    s->records = calloc(partitions, sizeof *s->records);
    s->turns = calloc(partitions, sizeof *s->turns);
    assert(s->records && s->turns);
    for (uint32_t p = 0; p < partitions; p++) s->records[p].partition = p;
    return s;
}

void weir__simstore_corrupt(struct weir__simstore *s, uint32_t partition, bool corrupt)
{
    s->records[partition].rc = corrupt ? WEIR_ECORRUPT : 0;
    s->change++;
}
