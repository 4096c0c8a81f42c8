/* backend.h - what lies behind a struct weir: a folder, or a connection.
 *
 * The public calls check their arguments, encode and decode events, keep account of what is in
 * flight and run completions; a backend moves encoded batches. One file per backend, one
 * constructor each: folder.c, wire.c. All of them may be called from any thread, but a source by one at a
 * time. Every port below has its version first and no optional functions. */
#ifndef WEIR_CLIENT_BACKEND_H
#define WEIR_CLIENT_BACKEND_H

#include "hub/batch.h"
#include "weir/weir.h"

#define WEIR__BACKEND_VERSION 1

/* ---- where batches go ---- */

struct weir__sender;

struct weir__sender_ops {
    int version;

    /* Decides the partition, for publish and the receipt. */
    int (*route)(struct weir__sender *, const struct weir__batch *, uint32_t *out_partition,
                 struct weir_error *);

    /* As weir__hub_publish and weir__hub_publish_wait: mark may be NULL. */
    int (*publish)(struct weir__sender *, const struct weir__batch *, uint32_t partition,
                   const struct weir__log_producer *mark, int64_t deadline_ns,
                   weir__log_done_fn done, void *user, struct weir_error *);
    int (*publish_wait)(struct weir__sender *, const struct weir__batch *, uint32_t partition,
                        const struct weir__log_producer *mark, int64_t deadline_ns,
                        struct weir__log_receipt *out, struct weir_error *);

    /* Makes an idempotent producer's id when mark->id is 0, and says with which epoch and sequence
     * number it goes on. WEIR_EFENCED: the epoch that is wanted is too low. */
    int (*identify)(struct weir__sender *, struct weir__log_producer *mark, struct weir_error *);

    /* Batches may be on their way still: their completions come all the same. */
    void (*close)(struct weir__sender *);
};

struct weir__sender {
    const struct weir__sender_ops *ops;
    size_t batch_bytes_max;
};

/* ---- where events come from ---- */

struct weir__source;

struct weir__source_ops {
    int version;

    /* Waits for the first of up to max events; they live until the next call. *out_missed counts
     * events that expired in front of them. Errors are those of weir_receiver_receive. A source of
     * deliveries gives their messages only. */
    int (*next)(struct weir__source *, struct weir__event *out, uint32_t max, int64_t deadline_ns,
                uint32_t *out_count, uint64_t *out_missed, struct weir_error *);

    /* What was newest as of this event, of those that next gave last. Without an answer out stays as
     * it is. Only for a source that was opened with metrics. */
    void (*measure)(struct weir__source *, const struct weir__event *,
                    struct weir_receiver_metrics *out);

    void (*skip)(struct weir__source *, uint64_t *out_first, uint64_t *out_last);

    /* After WEIR_ETIMEDOUT: whether nothing is under way, either. The first call of it asks the other
     * side, which answers when it has sent all there is; from then on nothing more may come. */
    bool (*ended)(struct weir__source *);
    void (*cancel)(struct weir__source *); /* any thread */
    void (*close)(struct weir__source *);
};

struct weir__source {
    const struct weir__source_ops *ops;
    bool deliveries; /* where an event lies is among the annotations of its message */
};

/* ---- administration: the calls of hub.h, one for one ---- */

struct weir__backend;

struct weir__admin_ops {
    int version;
    int (*hub_create)(struct weir__backend *, const char *hub, const struct weir_hub_options *,
                      struct weir_error *);
    int (*hub_update)(struct weir__backend *, const char *hub, const struct weir_hub_changes *,
                      struct weir_error *);
    int (*hub_delete)(struct weir__backend *, const char *hub, struct weir_error *);
    int (*hub_adopt)(struct weir__backend *, uint64_t id, const char *hub, struct weir_error *);
    int (*orphan_list)(struct weir__backend *, int (*fn)(const struct weir_orphan *, void *),
                       void *user, struct weir_error *);
    int (*hub_list)(struct weir__backend *, int (*fn)(const struct weir_hub_info *, void *),
                    void *user, struct weir_error *);
    int (*group_create)(struct weir__backend *, const char *hub, const char *group,
                        struct weir_error *);
    int (*group_delete)(struct weir__backend *, const char *hub, const char *group,
                        struct weir_error *);
    int (*rule_create)(struct weir__backend *, const char *hub, struct weir_rule *,
                       struct weir_error *);
    int (*rule_delete)(struct weir__backend *, const char *hub, const char *rule,
                       struct weir_error *);
    int (*rule_rotate)(struct weir__backend *, const char *hub, const char *rule, enum weir_key,
                       const char *text, struct weir_error *);
    int (*rule_renew)(struct weir__backend *, const char *hub, const char *rule,
                      struct weir_rule *out, struct weir_error *);
    int (*rule_list)(struct weir__backend *, const char *hub,
                     int (*fn)(const struct weir_rule *, void *), void *user, struct weir_error *);
};

/* ---- the place itself ---- */

struct weir__backend_ops {
    int version;
    int (*open_sender)(struct weir__backend *, const char *hub,
                       const struct weir_producer_options *, struct weir__sender **out,
                       struct weir_error *);
    int (*open_source)(struct weir__backend *, const char *hub, uint32_t partition,
                       const struct weir_receiver_options *, struct weir__source **out,
                       struct weir_error *);
    int (*hub_info)(struct weir__backend *, const char *hub, struct weir_hub_info *out,
                    struct weir_error *);
    int (*hub_stats)(struct weir__backend *, const char *hub, struct weir_hub_stats *out,
                     struct weir_error *);
    int (*partition_info)(struct weir__backend *, const char *hub, uint32_t partition,
                          struct weir_partition_info *out, struct weir_error *);
    int (*group_list)(struct weir__backend *, const char *hub, int (*fn)(const char *group, void *),
                      void *user, struct weir_error *);
    int (*space)(struct weir__backend *, char out[WEIR_SPACE_BYTES], struct weir_error *);

    /* Runs the completions that are left. The first error is returned; closed it is anyway. */
    int (*close)(struct weir__backend *, struct weir_error *);
};

struct weir__backend {
    const struct weir__backend_ops *ops;
    const struct weir__admin_ops *admin;
};

/* The hubs of a folder. */
int weir__folder_open(struct weir__backend **out, const char *dir, const struct weir_options *,
                      struct weir_error *);

/* Those behind a connection string. */
int weir__wire_open(struct weir__backend **out, const char *where, const struct weir_options *,
                    struct weir_error *);

#endif
