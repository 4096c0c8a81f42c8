/* roster.h - which members are alive, from one view after the other.
 *
 * A member that has beaten within its own expire_ms, by the store's clock, is alive: it takes part
 * in the balance. One that has not is silent: it is given nothing. Only when we have read the store
 * without a break for its expire_ms and a beat it is dead, and what it has may be taken. A break is
 * a call of ours that was not answered (the others' may not have been either), a pause of more than
 * half of our own expire_ms between two answers (we were frozen), or a clock of the store that did
 * not go as far as ours did meanwhile (it was set, or we were suspended). So behind a break nobody
 * is dead who has not had the time to be heard again.
 *
 * Foreign owners (weir/store.h) have no member, so one is made up for each: its weight is 1, its
 * last beat the newest time of its records, its expire_ms foreign_expire_ms, or three times as long
 * as it was seen to take from one renewal to the next if that is more. All that was said above
 * holds for it. It is there as long as a record names it: one that owns nothing cannot be known. A
 * record that its living owner has not renewed for so long is not its any more. Among the living
 * they come after the members, and while there are any, nobody has a weight above 1: they count
 * heads. */
#ifndef WEIR_PROCESSOR_ROSTER_H
#define WEIR_PROCESSOR_ROSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "weir/store.h"

/* A foreign owner, kept from view to view. */
struct weir__foreign {
    struct weir_member member; /* made up */
    uint32_t records;          /* that name it */
    int64_t period_ms;         /* from one renewal to the next: the longest, slowly forgotten */

    /* The plan's (foreign.c). */
    uint32_t holds, held; /* partitions now, and with the plan before */
    uint32_t lying;       /* that are left for it */
    bool lazy;            /* one of them for long */
    bool offered;         /* enough for now */
    int64_t slow_ms, slow_until_ms;
};

/* What a record said last. */
struct weir__renewal {
    uint64_t owner; /* hash */
    int64_t modified_ms;
};

struct weir__roster {
    /* given at birth */
    int64_t beat_ms, expire_ms, foreign_expire_ms;
    uint32_t partitions;
    bool local_clock, unseen; /* the sabotages of control.h */

    /* All members, and the living with their weights, by id; they point into the view. */
    const struct weir_member **members, **alive;
    uint32_t *ranks, *weights; /* of each member among the living, or WEIR__NOBODY */
    uint32_t member_count, count, cap;
    uint32_t *table; /* indexes of members by hash of the id, WEIR__NOBODY where there is none */
    uint32_t table_size;
    uint64_t print; /* the same as long as ids, instances and weights of the living are the same */

    /* The foreign among them: the last of the members, and of the living. */
    struct weir__foreign *foreigns; /* by id */
    uint32_t foreign_count, foreign_cap, foreign_alive;
    struct weir__renewal *renewals; /* by partition; NULL as long as there was no foreign one */
    uint32_t renewal_count;
    uint64_t looked_at; /* change of the view whose records were looked at; 0: none */

    /* Our own times. */
    bool seen;         /* there was a view */
    bool broken;       /* a call was not answered since */
    int64_t seen_ms;   /* when the last one came */
    int64_t seen_at;   /* what the store's clock said then */
    int64_t series_ms; /* since when they come without a break */
    int64_t due_ms;    /* when somebody will be silent who missed a beat; INT64_MAX: nobody did */
};

void weir__roster_free(struct weir__roster *); /* what it holds, not the struct */

/* A pause between two answers that is no break yet; a view older than this is not acted upon. */
int64_t weir__roster_patience(const struct weir__roster *);

/* From a view that came just now. WEIR_ENOMEM: nobody is alive then. */
int weir__roster_update(struct weir__roster *, const struct weir_view *, int64_t now_ms,
                        struct weir_error *);

/* The rank of a living member, or WEIR__NOBODY. */
uint32_t weir__roster_find(const struct weir__roster *, const char *id);

/* Likewise of the owner of a record; nobody has one that its foreign owner does not renew. */
uint32_t weir__roster_owner(const struct weir__roster *, const struct weir_record *);

/* The foreign owner of that rank among the living, or NULL. */
struct weir__foreign *weir__roster_foreign(const struct weir__roster *, uint32_t rank);

/* From when on one that is not alive counts as dead. A name that is not in the view has left, or
 * its entry was lost: who knows, so it is treated as silent. */
int64_t weir__roster_dead_ms(const struct weir__roster *, const char *id);

#endif
