/* mixed_world.h - everything that exists in one run of mixed.h. */
#ifndef WEIR_SIM_MIXED_WORLD_H
#define WEIR_SIM_MIXED_WORLD_H

#include "processor/control.h"
#include "sim/chance.h"
#include "sim/mixed.h"
#include "sim/simstore.h"

#define MIXED_HOSTS_MAX 6 /* of each kind */
#define MIXED_BEAT_MS 1000
#define MIXED_EXPIRE_MS 3000
#define MIXED_FOREIGN_EXPIRE_MS 120000

enum mixed_fault {
    MIXED_COPY_JOIN,
    MIXED_COPY_RESTART,
    MIXED_COPY_LEAVE,
    MIXED_COPY_CRASH,
    MIXED_COPY_FREEZE,
    MIXED_LOST_REQUEST,
    MIXED_LOST_REPLY,
    MIXED_FOREIGN_JOIN,
    MIXED_FOREIGN_RESTART,
    MIXED_FOREIGN_LEAVE,
    MIXED_FOREIGN_CRASH,
    MIXED_FOREIGN_FREEZE,
    MIXED_FOREIGN_DIED, /* of a released record */
    MIXED_FAULTS
};

struct mixed_call {
    enum weir__control_do what;
    struct weir_member member;
    struct weir_record record;
    char owner[WEIR_OWNER_BYTES];
    uint64_t instance;
    struct weir_view *view;
    int rc;
    bool unheard; /* the answer is lost */
};

/* One copy of ours. Times are INT64_MAX when there is nothing to do. */
struct mixed_copy {
    bool up, leaving, running[WEIR__FOREIGN_PARTITIONS_MAX];
    char id[16];
    uint64_t instance;
    struct weir__control *control;
    struct mixed_call call;
    bool busy;
    int64_t effect_ms, answer_ms, wake_ms, drained_ms[WEIR__FOREIGN_PARTITIONS_MAX];
    int64_t frozen_until_ms, lossy_until_ms;

    /* The oracle's: the store as this copy read it last, and what it has taken since. */
    struct weir_record seen[WEIR__FOREIGN_PARTITIONS_MAX];
    struct weir_member seen_members[2 * MIXED_HOSTS_MAX];
    uint32_t seen_member_count;
    int64_t seen_ms;
    uint64_t beats, claims; /* calls of the store */
};

struct mixed_stranger {
    bool up;
    char id[16];
    const struct weir__foreign_dialect *dialect;
    int64_t skew_ms; /* of its clock */
    int64_t at_ms;   /* when it does the next thing */
    int64_t frozen_until_ms;
    bool claiming; /* the round's claims are under way: */
    uint32_t next;
    uint32_t repeats;
    struct weir__foreign_round round;
    struct weir_record records[WEIR__FOREIGN_PARTITIONS_MAX]; /* as it has listed them */
};

struct mixed {
    struct weir__mixed_options options;
    struct weir__mixed_result *result;
    uint64_t chance;
    int64_t now_ms;
    uint32_t partitions;
    struct weir__simstore *store;
    struct mixed_copy copies[MIXED_HOSTS_MAX];
    struct mixed_stranger strangers[MIXED_HOSTS_MAX];
    uint64_t instances;
    uint32_t names;
    int64_t moved_ms; /* when a record last changed its owner */
    int64_t gap_ms;   /* the longest that a foreign host was ever silent and came back */
    int64_t free_ms[WEIR__FOREIGN_PARTITIONS_MAX]; /* since when nobody has it; -1: somebody has */
};

/* ---- mixed.c ---- */

__attribute__((format(printf, 2, 3))) void weir__mixed_trace(struct mixed *, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void weir__mixed_violate(struct mixed *, const char *fmt,
                                                               ...);
int64_t weir__mixed_roll(struct mixed *, int64_t least, int64_t most);
void weir__mixed_hit(struct mixed *, enum mixed_fault);

/* A claim reaches the store; who: the copy, or NULL. */
int weir__mixed_claim(struct mixed *, struct mixed_copy *who, struct weir_record *expected,
                      const char *owner, uint64_t instance);

/* ---- mixed_copy.c ---- */

void weir__copy_start(struct mixed *, struct mixed_copy *, const char *id);
void weir__copy_crash(struct mixed *, struct mixed_copy *);
int64_t weir__copy_due(const struct mixed_copy *);
void weir__copy_step(struct mixed *, struct mixed_copy *);

/* ---- mixed_stranger.c ---- */

void weir__stranger_start(struct mixed *, struct mixed_stranger *, const char *id,
                          const struct weir__foreign_dialect *);
void weir__stranger_leave(struct mixed *, struct mixed_stranger *);
int64_t weir__stranger_due(const struct mixed_stranger *);
void weir__stranger_step(struct mixed *, struct mixed_stranger *);

/* ---- mixed_oracle.c ---- */

void weir__mixed_read(struct mixed *, struct mixed_copy *);
void weir__mixed_judge(struct mixed *, struct mixed_copy *, const struct weir_record *before,
                       const char *owner, uint64_t instance);

/* Whether everything is owned by hosts that live, in shares that differ by one at most. */
bool weir__mixed_balanced(struct mixed *, char *why, size_t size);
uint32_t weir__mixed_heads(const struct mixed *); /* at least 1 */
bool weir__mixed_alive(const struct mixed *);     /* anybody */

#endif
