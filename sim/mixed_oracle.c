/* mixed_oracle.c - what is wrong in a mixed group, see mixed.h.
 *
 * A copy is judged by what it could know: the store as it read it last, and what it has claimed
 * since. Who lived then is not always certain (a foreign owner that was silent for two minutes may
 * be given more time because it has been slow before), so there are two counts of heads, and only
 * what is wrong by both is a violation. */
#include <stdio.h>
#include <string.h>

#include "sim/mixed_world.h"

#define LAIN_MS (MIXED_FOREIGN_EXPIRE_MS / 2)
#define LAIN_SLACK_MS 1500 /* a copy sees a partition free at most a beat later than it is */

struct heads {
    uint32_t least, most; /* that live */
};

/* Why a host may have less than the smaller share, or more than the larger. */
struct excuse {
    bool less, more;
};

/* The store as the copy has it now. */
void weir__mixed_read(struct mixed *m, struct mixed_copy *c)
{
    memcpy(c->seen, m->store->records, m->partitions * sizeof *c->seen);
    c->seen_member_count = (uint32_t)m->store->member_count;
    if (c->seen_member_count > 2 * MIXED_HOSTS_MAX) c->seen_member_count = 2 * MIXED_HOSTS_MAX;
    memcpy(c->seen_members, m->store->members, c->seen_member_count * sizeof *c->seen_members);
    c->seen_ms = m->store->now_ms;
}

static int64_t newest_of(const struct mixed *m, const struct mixed_copy *c, const char *owner)
{
    int64_t newest = INT64_MIN;

    for (uint32_t p = 0; p < m->partitions; p++)
        if (strcmp(c->seen[p].owner, owner) == 0 && c->seen[p].modified_ms > newest)
            newest = c->seen[p].modified_ms;
    return newest;
}

/* The first record that names a foreign owner stands for it. */
static bool is_first(const struct mixed_copy *c, uint32_t p)
{
    if (c->seen[p].owner[0] == '\0' || c->seen[p].instance != 0) return false;
    for (uint32_t i = 0; i < p; i++)
        if (strcmp(c->seen[i].owner, c->seen[p].owner) == 0) return false;
    return true;
}

static struct heads count_heads(const struct mixed *m, const struct mixed_copy *c)
{
    struct heads h = {0, c->seen_member_count};

    for (uint32_t i = 0; i < c->seen_member_count; i++)
        h.least += c->seen_members[i].weight > 0 &&
                   c->seen_ms - c->seen_members[i].beat_ms <= c->seen_members[i].expire_ms;
    for (uint32_t p = 0; p < m->partitions; p++) {
        if (!is_first(c, p)) continue;
        h.most++;
        h.least += c->seen_ms - newest_of(m, c, c->seen[p].owner) < MIXED_FOREIGN_EXPIRE_MS;
    }
    if (h.least == 0) h.least = 1;
    return h;
}

static uint32_t count_seen(const struct mixed *m, const struct mixed_copy *c, const char *owner)
{
    uint32_t held = 0;

    for (uint32_t p = 0; p < m->partitions; p++) held += strcmp(c->seen[p].owner, owner) == 0;
    return held;
}

static uint32_t larger(uint32_t partitions, uint32_t heads)
{
    return (partitions + heads - 1) / heads;
}

static void judge_steal(struct mixed *m, const struct mixed_copy *c, struct heads h,
                        const struct weir_record *before)
{
    uint32_t theirs = count_seen(m, c, before->owner), ours = count_seen(m, c, c->id);

    m->result->stolen++;
    if (ours >= m->partitions / h.least && theirs <= larger(m->partitions, h.most))
        weir__mixed_violate(m, "%s, with %u, takes %u from %s, which lives and has %u", c->id, ours,
                            before->partition, before->owner, theirs);
    if (ours >= larger(m->partitions, h.least))
        weir__mixed_violate(m, "%s takes %u from %s, and has %u already", c->id, before->partition,
                            before->owner, ours);
}

/* A copy gave a partition to itself or to another. */
static void judge_gain(struct mixed *m, const struct mixed_copy *c, struct heads h,
                       const struct weir_record *before, const char *owner)
{
    int64_t lain_ms = before->owner[0] ? m->store->now_ms - before->modified_ms
                                       : m->now_ms - m->free_ms[before->partition];
    bool lain = lain_ms >= LAIN_MS - LAIN_SLACK_MS;

    if (count_seen(m, c, owner) >= larger(m->partitions, h.least) && !lain)
        weir__mixed_violate(m, "%s gives %u to %s, which has %u already", c->id, before->partition,
                            owner, count_seen(m, c, owner));
}

void weir__mixed_judge(struct mixed *m, struct mixed_copy *c, const struct weir_record *before,
                       const char *owner, uint64_t instance)
{
    uint32_t p = before->partition;
    struct heads h = count_heads(m, c);
    bool lives = before->owner[0] && before->instance == 0 &&
                 c->seen_ms - c->seen[p].modified_ms < MIXED_FOREIGN_EXPIRE_MS;

    if (instance == 0 && owner[0])
        weir__mixed_violate(m, "%s claims %u for %s, which is foreign", c->id, p, owner);
    if (before->instance == instance && strcmp(before->owner, owner) == 0) return;
    if (lives)
        judge_steal(m, c, h, before);
    else if (owner[0] && strcmp(before->owner, owner) != 0) /* else it was started again */
        judge_gain(m, c, h, before, owner);
    snprintf(c->seen[p].owner, sizeof c->seen[p].owner, "%s", owner);
    c->seen[p].instance = instance;
}

/* ---- when all is quiet ---- */

static uint32_t count_owned(const struct mixed *m, const char *id, uint64_t instance)
{
    uint32_t owned = 0;

    for (uint32_t p = 0; p < m->partitions; p++)
        owned += strcmp(m->store->records[p].owner, id) == 0 &&
                 m->store->records[p].instance == instance;
    return owned;
}

/* A timid one that has less than `min` may stay so by its own rules, and as long as it has nothing
 * nobody can know of it: it is left out. */
uint32_t weir__mixed_heads(const struct mixed *m)
{
    uint32_t heads = 0;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        const struct mixed_stranger *s = &m->strangers[i];
        heads += m->copies[i].up;
        heads += s->up && (!s->dialect->timid || count_owned(m, s->id, 0) > 0);
    }
    return heads > 0 ? heads : 1;
}

/* Whether one takes nothing from who has more than the larger share, though it has the smaller: by
 * its own rules the other may keep it. */
static bool is_lenient(const struct mixed *m, uint32_t min)
{
    bool lenient = false;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++) {
        const struct mixed_stranger *s = &m->strangers[i];
        lenient = lenient || (s->up && s->dialect->content && count_owned(m, s->id, 0) == min);
    }
    return lenient;
}

static bool check_share(const char *id, const char *kind, uint32_t owned, uint32_t min,
                        uint32_t max, struct excuse excuse, char *why, size_t size)
{
    if ((owned >= min || excuse.less) && (owned <= max || excuse.more)) return true;
    snprintf(why, size, "%s (%s) has %u, not %u to %u", id, kind, owned, min, max);
    return false;
}

bool weir__mixed_balanced(struct mixed *m, char *why, size_t size)
{
    uint32_t heads = weir__mixed_heads(m), owned = 0;
    uint32_t min = m->partitions / heads, max = larger(m->partitions, heads);
    bool lenient = is_lenient(m, min), ok = true;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX && ok; i++) {
        const struct mixed_copy *c = &m->copies[i];
        const struct mixed_stranger *s = &m->strangers[i];
        uint32_t ours = c->up ? count_owned(m, c->id, c->instance) : 0;
        uint32_t theirs = s->up ? count_owned(m, s->id, 0) : 0;
        owned += ours + theirs;
        if (c->up) ok = check_share(c->id, "ours", ours, min, max, (struct excuse){0}, why, size);
        if (!s->up || !ok) continue;
        ok = check_share(s->id, s->dialect->name, theirs, min, max,
                         (struct excuse){.less = s->dialect->timid, .more = lenient}, why, size);
        m->result->uneven += theirs < min || theirs > max;
    }
    if (ok && owned < m->partitions)
        snprintf(why, size, "%u of %u are owned", owned, m->partitions);
    return ok && owned == m->partitions;
}

bool weir__mixed_alive(const struct mixed *m)
{
    bool alive = false;

    for (uint32_t i = 0; i < MIXED_HOSTS_MAX; i++)
        alive = alive || m->copies[i].up || m->strangers[i].up;
    return alive;
}
