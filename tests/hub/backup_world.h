/* backup_world.h - a folder with two hubs on a simulated disk, a model of what was published into
 * it, and the comparison of a restored folder with the model. */
#ifndef WEIR_TESTS_HUB_BACKUP_WORLD_H
#define WEIR_TESTS_HUB_BACKUP_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hub/backup.h"
#include "hub/world.h"

#define HUBS 2
#define PARTITIONS 2
#define BATCHES_MAX 4096
#define TAKE_MAX 64
#define TO "backup"

static const char *const hub_names[HUBS] = {"a", "b"};

/* What was published into one partition. */
struct line {
    uint64_t first[BATCHES_MAX]; /* sequence number of each batch's first event */
    uint32_t count;
    uint64_t next;
};

struct model {
    struct world world;
    struct line lines[HUBS][PARTITIONS];
    uint64_t dice;
    uint64_t retain_bytes; /* of each hub */
    bool busy;             /* in the hook */
    uint64_t hooked;       /* calls at which something was published */
};

/* Where each partition stood. */
struct standing {
    uint64_t begin[HUBS][PARTITIONS], next[HUBS][PARTITIONS];
};

static inline void event_text(char out[240], int hub, int partition, uint64_t first)
{
    snprintf(out, 240, "%s %d %llu %0200d", hub_names[hub], partition, (unsigned long long)first,
             0);
}

static inline void model_publish(struct model *m, int hub, int partition, int count)
{
    struct line *line = &m->lines[hub][partition];
    struct weir__log_receipt receipt;
    struct weir__hub *h;
    char text[240];

    assert_true(line->count < BATCHES_MAX);
    event_text(text, hub, partition, line->next);
    assert_int_equal(weir__namespace_use(m->world.ns, hub_names[hub], &h, &m->world.err), 0);
    assert_int_equal(world_publish(&m->world, h, (uint32_t)partition, text, count, &receipt), 0);
    weir__hub_release(h);
    assert_int_equal(receipt.sequence, line->next);
    line->first[line->count++] = line->next;
    line->next += (uint64_t)count;
}

static inline void model_publish_some(struct model *m, int batches)
{
    for (int i = 0; i < batches; i++)
        model_publish(m, (int)dice_roll(&m->dice, HUBS), (int)dice_roll(&m->dice, PARTITIONS),
                      1 + (int)dice_roll(&m->dice, 150));
}

static inline void model_init(struct model *m, uint64_t seed, uint64_t retain_bytes)
{
    memset(m, 0, sizeof *m);
    m->dice = seed;
    m->retain_bytes = retain_bytes;
    world_init(&m->world, simfs_new());
    m->world.dice = seed;
    assert_int_equal(world_open(&m->world), 0);
    for (int i = 0; i < HUBS; i++) {
        struct weir__hub_config config = {.name = hub_names[i],
                                          .partitions = PARTITIONS,
                                          .retain_bytes = retain_bytes};

        assert_int_equal(weir__namespace_hub_create(m->world.ns, &config, &m->world.err), 0);
    }
}

static inline void model_stand(struct model *m, struct weir__namespace *ns, struct standing *out)
{
    for (int i = 0; i < HUBS; i++) {
        struct weir__hub *hub;

        assert_int_equal(weir__namespace_use(ns, hub_names[i], &hub, &m->world.err), 0);
        for (int p = 0; p < PARTITIONS; p++) {
            struct weir__partition_properties at;

            assert_int_equal(weir__hub_partition_properties(hub, (uint32_t)p, &at, &m->world.err),
                             0);
            out->begin[i][p] = (uint64_t)at.begin_sequence;
            out->next[i][p] = (uint64_t)(at.last_sequence + 1);
        }
        weir__hub_release(hub);
    }
}

static inline bool is_published(const struct model *m, int hub, int partition,
                                const struct weir__event *e)
{
    const struct line *line = &m->lines[hub][partition];
    uint32_t low = 0, high = line->count;
    char text[240];

    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;

        if (line->first[mid] <= e->sequence)
            low = mid;
        else
            high = mid;
    }
    if (line->count == 0 || e->sequence >= line->next) return false;
    event_text(text, hub, partition, line->first[low]);
    return world_is_event(e, text, (int)(e->sequence - line->first[low]));
}

/* Reads a partition from its begin to its end: dense, and each event as it was published. */
static inline void check_partition(const struct model *m, struct weir__namespace *ns, int hub,
                                   int partition, const struct standing *is)
{
    struct weir__receiver_options o = {.group = "$Default",
                                       .partition = (uint32_t)partition,
                                       .epoch = WEIR__EPOCH_NONE,
                                       .from = {.kind = WEIR__FROM_EARLIEST},
                                       .credit = WEIR__CREDIT_UNLIMITED};
    struct weir__event events[TAKE_MAX];
    struct weir__receiver_take take = {.events_max = TAKE_MAX, .events = events};
    uint64_t next = is->begin[hub][partition];
    struct weir__receiver *receiver;
    struct weir_error err = {0};
    struct weir__hub *h;

    assert_int_equal(weir__namespace_use(ns, hub_names[hub], &h, &err), 0);
    assert_int_equal(weir__receiver_attach(&receiver, h, &o, &err), 0);
    do {
        assert_int_equal(weir__receiver_next(receiver, &take, &err), 0);
        assert_int_equal(take.missed, 0);
        for (uint32_t i = 0; i < take.count; i++, next++) {
            assert_int_equal(events[i].sequence, next);
            assert_true(is_published(m, hub, partition, &events[i]));
        }
    } while (take.count > 0);
    assert_int_equal(next, is->next[hub][partition]);
    weir__receiver_close(receiver);
    weir__hub_release(h);
}

/* Opens a restored folder, compares every event with the model, and says where it stands. */
static inline void model_check_folder(struct model *m, struct simfs *disk, const char *dir,
                                      struct standing *out)
{
    struct weir__namespace_options o = m->world.options;
    struct weir__namespace *ns;
    struct weir_error err = {0};

    o.fs = simfs_fs(disk);
    o.must_exist = true;
    assert_int_equal(weir__namespace_open(&ns, dir, &o, &err), 0);
    model_stand(m, ns, out);
    for (int i = 0; i < HUBS; i++)
        for (int p = 0; p < PARTITIONS; p++) check_partition(m, ns, i, p, out);
    assert_int_equal(weir__namespace_close(ns, &err), 0);
}

static inline struct weir__backup_options model_options(struct model *m, struct simfs *disk)
{
    return (struct weir__backup_options){.fs = simfs_fs(disk),
                                         .clock = m->world.options.clock,
                                         .rand = m->world.options.rand,
                                         .logger = m->world.options.logger};
}

static inline int model_backup(struct model *m, struct simfs *disk, struct weir__backup_result *out)
{
    struct weir__backup_options o = model_options(m, disk);

    return weir__backup_run(WORLD_DIR, TO, &o, out, &m->world.err);
}

static inline int model_restore(struct model *m, struct simfs *disk, const char *dir,
                                struct weir__backup_result *out)
{
    struct weir__backup_options o = model_options(m, disk);

    return weir__backup_restore(TO, dir, &o, out, &m->world.err);
}

#endif
