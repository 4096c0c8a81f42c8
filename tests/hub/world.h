/* world.h - a namespace on a simulated disk, with a clock and chance that repeat, and no threads. */
#ifndef WEIR_TESTS_HUB_WORLD_H
#define WEIR_TESTS_HUB_WORLD_H

#include "hub/namespace.h"
#include "hub/payload.h"
#include "hub/receiver.h"
#include "support/dice.h"
#include "support/simfs.h"

#define WORLD_DIR "data"

struct world {
    struct simfs *disk;
    struct simclock time;
    uint64_t dice;
    int warnings, errors;
    struct weir__namespace_options options;
    struct weir__namespace *ns;
    struct weir_error err;
};

static inline void world_listen(enum weir__level level, const char *room, const char *line,
                                void *user)
{
    struct world *w = user;

    (void)room;
    (void)line;
    if (level == WEIR__WARN) w->warnings++;
    if (level == WEIR__ERROR) w->errors++;
}

static inline int world_chance(void *self, void *out, size_t len, struct weir_error *err)
{
    (void)err;
    for (size_t i = 0; i < len; i++) ((uint8_t *)out)[i] = (uint8_t)dice_next(self);
    return 0;
}

/* Takes the disk. */
static inline void world_init(struct world *w, struct simfs *disk)
{
    memset(w, 0, sizeof *w);
    w->disk = disk;
    w->time = (struct simclock){1700000000000, 1000, 0};
    w->options = (struct weir__namespace_options){
        .fs = simfs_fs(disk),
        .clock = simclock(&w->time),
        .rand = {world_chance, &w->dice},
        .logger = {world_listen, w},
        .no_threads = true,
        .segment_bytes_max = 1 << 20,
        .batch_bytes_max = 64 << 10,
    };
}

static inline int world_open(struct world *w)
{
    return weir__namespace_open(&w->ns, WORLD_DIR, &w->options, &w->err);
}

static inline int world_close(struct world *w)
{
    int rc = weir__namespace_close(w->ns, &w->err);

    w->ns = NULL;
    return rc;
}

static inline void world_fini(struct world *w)
{
    weir__namespace_close(w->ns, NULL);
    simfs_free(w->disk);
}

static inline int world_create(struct world *w, const char *name, uint32_t partitions)
{
    struct weir__hub_config config = {.name = name, .partitions = partitions};

    return weir__namespace_hub_create(w->ns, &config, &w->err);
}

/* Publishes a batch of events "<text> 0", "<text> 1", ... and waits for it. */
static inline int world_publish(struct world *w, struct weir__hub *hub, uint32_t partition,
                                const char *text, int count, struct weir__log_receipt *receipt)
{
    static struct payload payload;
    struct weir__log_receipt ignored;
    struct weir__batch batch;
    int rc;

    payload_batch(&payload, NULL, text, count);
    rc = weir__batch_of_payload(&batch, WEIR__AMQP_FORMAT_BATCH, payload_bytes(&payload), 0,
                                &w->err);
    if (rc != 0) return rc;
    return weir__hub_publish_wait(hub, &batch, partition, NULL, INT64_MAX,
                                  receipt ? receipt : &ignored, &w->err);
}

/* Whether a stored event is the one that world_publish made. */
static inline bool world_is_event(const struct weir__event *e, const char *text, int n)
{
    struct payload expected = {.len = 0};

    payload_event(&expected, text, n);
    return e->message.len == expected.len && !memcmp(e->message.at, expected.at, expected.len);
}

#endif
