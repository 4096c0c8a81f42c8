/* memory.c - a store in this process alone, for tests, and for programs of one copy.
 *
 * Nothing is stored, so nothing is drawn. A shelf is what one scope holds: its members as the view
 * that read gives out, its records each with the turn that nobody is shown. A record's version is a
 * counter in decimal, as in the SQL stores. The clock starts at this machine's time and then runs
 * evenly, so a clock that is set moves nothing, and no beat lies in the future.
 *
 * Handles of one name share a store, so the stores of a process hang on a list that outlives every
 * handle: the one variable here that is not const. Its lock comes first, a store's own second. */
#include "processor/store/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

#define SHELVES_MAX 4096

struct cell {
    struct weir_record record;
    uint64_t turn; /* of the last mark of its present owner and epoch; 0: there was none */
};

struct shelf {
    struct shelf *next;
    char space[WEIR__STORE_NAME_MAX + 1];
    char hub[WEIR__STORE_NAME_MAX + 1];
    char group[WEIR__STORE_NAME_MAX + 1];
    struct weir_view held; /* members and change; the rest of it is not used */
    struct cell *cells;    /* by partition */
    size_t cell_count, cell_cap;
};

struct memory {
    struct memory *next;
    size_t handles;          /* guarded by memories_lock */
    struct weir__mutex lock; /* guards the shelves and what they hold */
    struct shelf *shelves;
    size_t shelf_count;
    int64_t base_ms; /* the store's time when the monotonic clock was 0 */
    char name[];
};

struct handle {
    struct weir_store store;
    struct memory *memory;
};

static struct weir__mutex memories_lock = {PTHREAD_MUTEX_INITIALIZER};
static struct memory *memories;

static int64_t now_ms(const struct memory *m)
{
    struct weir__clock clock = weir__clock_system();

    return m->base_ms + clock.mono_ms(clock.self);
}

/* ---- shelves ---- */

static struct shelf *find_shelf(struct memory *m, const struct weir_scope *scope)
{
    for (struct shelf *s = m->shelves; s; s = s->next)
        if (strcmp(s->space, scope->space) == 0 && strcmp(s->hub, scope->hub) == 0 &&
            strcmp(s->group, scope->group) == 0)
            return s;
    return NULL;
}

/* Finds it or makes it. */
static int take_shelf(struct memory *m, const struct weir_scope *scope, struct shelf **out,
                      struct weir_error *err)
{
    struct shelf *s = *out = find_shelf(m, scope);

    if (s) return 0;
    if (m->shelf_count >= SHELVES_MAX)
        return weir__fail(err, WEIR_ELIMIT, "more than %d groups in one store", SHELVES_MAX);
    s = *out = calloc(1, sizeof *s);
    if (!s) return weir__fail(err, WEIR_ENOMEM, "no memory for a group");
    snprintf(s->space, sizeof s->space, "%s", scope->space);
    snprintf(s->hub, sizeof s->hub, "%s", scope->hub);
    snprintf(s->group, sizeof s->group, "%s", scope->group);
    s->held.change = 1;
    s->next = m->shelves;
    m->shelves = s;
    m->shelf_count++;
    return 0;
}

/* Where the member of that id is, or would be. */
static size_t member_place(const struct shelf *s, const char *id)
{
    size_t at = 0;

    while (at < s->held.member_count && strcmp(s->held.members[at].id, id) < 0) at++;
    return at;
}

static struct weir_member *find_member(struct shelf *s, const char *id)
{
    size_t at = member_place(s, id);

    if (at == s->held.member_count || strcmp(s->held.members[at].id, id) != 0) return NULL;
    return &s->held.members[at];
}

static int put_member(struct shelf *s, const struct weir_member *member, struct weir_error *err)
{
    struct weir_member *old = find_member(s, member->id);
    size_t at = member_place(s, member->id), behind = s->held.member_count - at;
    int rc = old ? 0 : weir__view_add_member(&s->held, member, err);

    if (rc != 0) return rc;
    if (!old) memmove(&s->held.members[at + 1], &s->held.members[at], behind * sizeof *member);
    s->held.members[at] = *member;
    return 0;
}

static void drop_member(struct shelf *s, size_t at)
{
    memmove(&s->held.members[at], &s->held.members[at + 1],
            (--s->held.member_count - at) * sizeof *s->held.members);
}

/* Where the cell of a partition is, or would be. */
static size_t cell_place(const struct shelf *s, uint32_t partition)
{
    size_t low = 0, high = s->cell_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (s->cells[middle].record.partition < partition)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct cell *find_cell(struct shelf *s, uint32_t partition)
{
    size_t at = cell_place(s, partition);

    if (at == s->cell_count || s->cells[at].record.partition != partition) return NULL;
    return &s->cells[at];
}

/* Finds it or makes it. */
static int take_cell(struct shelf *s, uint32_t partition, struct cell **out, struct weir_error *err)
{
    size_t at = cell_place(s, partition), behind = s->cell_count - at;
    void *cells = s->cells;
    int rc;

    *out = find_cell(s, partition);
    if (*out) return 0;
    rc = weir__store_grow(&cells, &s->cell_cap, s->cell_count, sizeof **out, err);
    s->cells = cells;
    if (rc != 0) return rc;
    s->cell_count++;
    *out = &s->cells[at];
    memmove(*out + 1, *out, behind * sizeof **out);
    **out = (struct cell){.record.partition = partition};
    return 0;
}

static void next_version(struct weir_record *r)
{
    snprintf(r->version, sizeof r->version, "%" PRId64, weir__store_version(r->version) + 1);
}

/* ---- the port ---- */

/* Every call holds the store's lock from enter to leave, so each is one moment. */
static struct memory *enter(struct weir_store *store)
{
    struct memory *m = ((struct handle *)store)->memory;

    weir__mutex_lock(&m->lock);
    return m;
}

static int leave(struct memory *m, int rc)
{
    weir__mutex_unlock(&m->lock);
    return rc;
}

/* Who has been silent for so long that nobody waits for it any more. */
static void forget_dead(struct shelf *s, int64_t now)
{
    for (size_t i = s->held.member_count; i-- > 0;) {
        struct weir_member *m = &s->held.members[i];

        if (now - m->beat_ms >= WEIR__STORE_FORGET * llabs(m->expire_ms)) drop_member(s, i);
    }
}

static int beat(struct memory *m, struct shelf *s, const struct weir_member *member,
                struct weir_error *err)
{
    int64_t now = now_ms(m);
    struct weir_member fresh = *member;
    const struct weir_member *old;

    forget_dead(s, now);
    old = find_member(s, member->id);
    if (old && old->instance == member->instance && old->expire_ms < 0)
        return weir__store_fail_left(err, old->id);
    if (old && old->instance != member->instance && now - old->beat_ms < old->expire_ms)
        return weir__store_fail_alive(err, old->id, now - old->beat_ms, old->expire_ms);
    fresh.beat_ms = now;
    return put_member(s, &fresh, err);
}

static int memory_beat(struct weir_store *store, const struct weir_scope *scope,
                       const struct weir_member *member, struct weir_error *err)
{
    int rc = weir__store_check_member(scope, member, err);
    struct memory *m;
    struct shelf *s;

    if (rc != 0) return rc;
    m = enter(store);
    rc = take_shelf(m, scope, &s, err);
    if (rc == 0) rc = beat(m, s, member, err);
    return leave(m, rc);
}

static int memory_leave(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_member *member, struct weir_error *err)
{
    int rc = weir__store_check_owner(scope, member->id, err);
    struct weir_member *old;
    struct memory *m;
    struct shelf *s;

    if (rc != 0) return rc;
    m = enter(store);
    s = find_shelf(m, scope);
    old = s ? find_member(s, member->id) : NULL;
    if (old && old->instance == member->instance) old->expire_ms = -llabs(old->expire_ms);
    return leave(m, 0);
}

/* What a view gets that knows the records up to a change. */
static int copy_shelf(const struct shelf *from, uint64_t known, struct weir_view *to,
                      struct weir_error *err)
{
    int rc = 0;

    to->change = from->held.change;
    for (size_t i = 0; rc == 0 && i < from->held.member_count; i++)
        if (from->held.members[i].expire_ms > 0)
            rc = weir__view_add_member(to, &from->held.members[i], err);
    for (size_t i = 0; rc == 0 && known != to->change && i < from->cell_count; i++)
        rc = weir__view_add_record(to, &from->cells[i].record, err);
    return rc;
}

static int memory_read(struct weir_store *store, const struct weir_scope *scope,
                       struct weir_view *view, struct weir_error *err)
{
    struct weir_view fresh = {0};
    int rc = weir__store_check_scope(scope, err);
    struct memory *m;
    struct shelf *s;

    if (rc != 0) return rc;
    m = enter(store);
    s = find_shelf(m, scope);
    fresh.now_ms = now_ms(m);
    if (s) rc = copy_shelf(s, view->change, &fresh, err);
    leave(m, 0);
    if (rc == 0) weir__view_take(view, &fresh);
    weir_view_free(&fresh);
    return rc;
}

/* Whether it is theirs already, so that a claim only renews it. */
static bool has_it(const struct weir_record *r, const char *owner, uint64_t instance)
{
    return r->version[0] && strcmp(r->owner, owner) == 0 && r->instance == instance;
}

static int claim(struct memory *m, struct shelf *s, const struct weir_record *expected,
                 const char *owner, uint64_t instance, struct weir_record *out,
                 struct weir_error *err)
{
    struct cell *cell = find_cell(s, expected->partition);
    struct weir_record *r;
    int64_t now = now_ms(m);
    int rc;

    if (strcmp(cell ? cell->record.version : "", expected->version) != 0)
        return weir__store_fail_moved(err, expected->partition);
    rc = take_cell(s, expected->partition, &cell, err);
    if (rc != 0) return rc;
    r = &cell->record;
    if (!has_it(r, owner, instance)) {
        snprintf(r->owner, sizeof r->owner, "%s", owner);
        r->instance = instance;
        if (owner[0]) r->epoch++;
        r->acquired_ms = now;
        cell->turn = 0;
    }
    r->modified_ms = now;
    next_version(r);
    s->held.change++;
    *out = *r;
    return 0;
}

static int memory_claim(struct weir_store *store, const struct weir_scope *scope,
                        const struct weir_record *expected, const char *owner, uint64_t instance,
                        struct weir_record *out, struct weir_error *err)
{
    int rc = weir__store_check_owner(scope, owner, err);
    struct memory *m;
    struct shelf *s;

    if (rc != 0) return rc;
    m = enter(store);
    rc = take_shelf(m, scope, &s, err);
    if (rc == 0) rc = claim(m, s, expected, owner, instance, out, err);
    return leave(m, rc);
}

/* The checkpoint alone: what it says of owners stays, and so does its version. */
static void write_mark(struct weir_record *r, const struct weir_mark *mark, int64_t now)
{
    r->marked = mark != NULL;
    r->sequence = mark ? mark->sequence : 0;
    snprintf(r->offset, sizeof r->offset, "%s", mark ? mark->offset : "");
    r->modified_ms = now;
}

/* 0, or WEIR_EFENCED: it is not its owner's any more, or a later one of the same came before it. */
static int take_mark(struct memory *m, struct cell *cell, const char *owner,
                     const struct weir_mark *mark)
{
    struct weir_record *r = cell ? &cell->record : NULL;

    if (!r || !owner[0] || strcmp(r->owner, owner) != 0 || r->epoch != mark->epoch ||
        r->rewinds != mark->rewinds || mark->turn <= cell->turn)
        return WEIR_EFENCED;
    cell->turn = mark->turn;
    write_mark(r, mark, now_ms(m));
    return 0;
}

static int memory_mark(struct weir_store *store, const struct weir_scope *scope, const char *owner,
                       struct weir_mark *marks, size_t count, struct weir_error *err)
{
    int rc = weir__store_check_owner(scope, owner, err);
    struct memory *m;
    struct shelf *s;

    if (rc != 0) return rc;
    m = enter(store);
    s = find_shelf(m, scope);
    for (size_t i = 0; i < count; i++)
        marks[i].rc = take_mark(m, s ? find_cell(s, marks[i].partition) : NULL, owner, &marks[i]);
    return leave(m, 0);
}

static int set(struct memory *m, struct shelf *s, uint32_t partition, const struct weir_mark *mark,
               struct weir_error *err)
{
    struct cell *cell;
    struct weir_record *r;
    int rc = take_cell(s, partition, &cell, err);

    if (rc != 0) return rc;
    r = &cell->record;
    if (!r->version[0]) {
        next_version(r);
        r->acquired_ms = now_ms(m);
    }
    write_mark(r, mark, now_ms(m));
    r->rewinds++;
    s->held.change++;
    return 0;
}

static int memory_set(struct weir_store *store, const struct weir_scope *scope, uint32_t partition,
                      const struct weir_mark *mark, struct weir_error *err)
{
    int rc = weir__store_check_scope(scope, err);
    struct memory *m;
    struct shelf *s;

    if (rc != 0) return rc;
    m = enter(store);
    rc = take_shelf(m, scope, &s, err);
    if (rc == 0) rc = set(m, s, partition, mark, err);
    return leave(m, rc);
}

/* ---- handles ---- */

static void free_memory(struct memory *m)
{
    while (m->shelves) {
        struct shelf *s = m->shelves;

        m->shelves = s->next;
        weir_view_free(&s->held);
        free(s->cells);
        free(s);
    }
    weir__mutex_fini(&m->lock);
    free(m);
}

static void memory_close(struct weir_store *store)
{
    struct memory *m = ((struct handle *)store)->memory, **at;

    weir__mutex_lock(&memories_lock);
    if (--m->handles == 0) {
        for (at = &memories; *at != m; at = &(*at)->next) continue;
        *at = m->next;
    } else {
        m = NULL;
    }
    weir__mutex_unlock(&memories_lock);
    if (m) free_memory(m);
    free(store);
}

static const struct weir_store_ops memory_ops = {
    .version = WEIR_STORE_VERSION,
    .beat = memory_beat,
    .leave = memory_leave,
    .read = memory_read,
    .claim = memory_claim,
    .mark = memory_mark,
    .set = memory_set,
    .close = memory_close,
};

/* With memories_lock held. */
static struct memory *take_memory(const char *name)
{
    struct weir__clock clock = weir__clock_system();
    struct memory *m = memories;
    size_t len = strlen(name);

    while (m && strcmp(m->name, name) != 0) m = m->next;
    if (!m) {
        m = calloc(1, sizeof *m + len + 1);
        if (!m) return NULL;
        memcpy(m->name, name, len);
        weir__mutex_init(&m->lock);
        m->base_ms = clock.wall_ms(clock.self) - clock.mono_ms(clock.self);
        m->next = memories;
        memories = m;
    }
    m->handles++;
    return m;
}

int weir_store_memory(struct weir_store **out, const char *name,
                      const struct weir_store_options *options, struct weir_error *err)
{
    int64_t unused; /* no call waits for anything */
    int rc = weir__store_options(options, &unused, err);
    struct handle *h;

    *out = NULL;
    if (rc != 0) return rc;
    h = calloc(1, sizeof *h);
    if (h) {
        h->store.ops = &memory_ops;
        weir__mutex_lock(&memories_lock);
        h->memory = take_memory(name ? name : "");
        weir__mutex_unlock(&memories_lock);
    }
    if (!h || !h->memory) {
        free(h);
        return weir__fail(err, WEIR_ENOMEM, "no memory for a store in memory");
    }
    *out = &h->store;
    return 0;
}
