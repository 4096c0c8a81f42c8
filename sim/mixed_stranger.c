/* mixed_stranger.c - a host of another library: lists the records, claims one after the other under
 * the versions it saw, waits for its next round. */
#include <stdio.h>
#include <string.h>

#include "sim/mixed_world.h"

#define REPEATS_MAX 100 /* rounds that a greedy one adds to one */
#define NEVER INT64_MAX

void weir__stranger_start(struct mixed *m, struct mixed_stranger *s, const char *id,
                          const struct weir__foreign_dialect *dialect)
{
    memset(s, 0, sizeof *s);
    snprintf(s->id, sizeof s->id, "%s", id);
    s->up = true;
    s->dialect = dialect;
    s->skew_ms = weir__mixed_roll(m, -1000, 1000);
    s->at_ms = m->now_ms + weir__mixed_roll(m, 0, dialect->first_ms);
    m->result->dialects[dialect - weir__foreign_dialects]++;
    weir__mixed_trace(m, "%s (%s) starts", id, dialect->name);
}

void weir__stranger_leave(struct mixed *m, struct mixed_stranger *s)
{
    for (uint32_t p = 0; p < m->partitions && s->dialect->releases; p++) {
        struct weir_record expected = m->store->records[p];
        if (strcmp(expected.owner, s->id) == 0) weir__mixed_claim(m, NULL, &expected, "", 0);
    }
    s->up = false;
}

int64_t weir__stranger_due(const struct mixed_stranger *s)
{
    if (!s->up) return NEVER;
    return s->at_ms > s->frozen_until_ms ? s->at_ms : s->frozen_until_ms;
}

static void list(struct mixed *m, struct mixed_stranger *s)
{
    struct weir__foreign_round *r = &s->round;

    memcpy(s->records, m->store->records, m->partitions * sizeof *s->records);
    *r = (struct weir__foreign_round){.records = s->records,
                                      .partitions = m->partitions,
                                      .now_ms = m->store->now_ms + s->skew_ms,
                                      .self = s->id,
                                      .chance = &m->chance};
    weir__foreign_plan(s->dialect, r);
    s->claiming = true;
    s->next = 0;
    if (!r->died) return;
    weir__mixed_trace(m, "%s dies of a released record", s->id);
    weir__mixed_hit(m, MIXED_FOREIGN_DIED);
    s->up = false;
}

static void claim(struct mixed *m, struct mixed_stranger *s, uint32_t p)
{
    struct weir_record expected = s->records[p];

    if (s->dialect->blind && expected.version[0] == '\0') expected = m->store->records[p];
    if (s->next < s->round.renewals) {
        int64_t gap = m->store->now_ms - m->store->records[p].modified_ms;
        if (strcmp(m->store->records[p].owner, s->id) == 0 && gap > m->gap_ms) m->gap_ms = gap;
    }
    weir__mixed_claim(m, NULL, &expected, s->id, 0);
}

void weir__stranger_step(struct mixed *m, struct mixed_stranger *s)
{
    bool more;

    if (!s->claiming) list(m, s);
    if (!s->up) return;
    if (s->next < s->round.claim_count) {
        claim(m, s, s->round.claims[s->next]);
        s->next++;
        s->at_ms = m->now_ms + weir__mixed_roll(m, 2, 8);
        return;
    }
    s->claiming = false;
    more = s->dialect->repeat_ms > 0 && s->round.claim_count > s->round.renewals &&
           ++s->repeats < REPEATS_MAX;
    if (!more) s->repeats = 0;
    s->at_ms =
        m->now_ms + (more ? s->dialect->repeat_ms : weir__foreign_pause(s->dialect, &m->chance));
}
