/* folder.c - the hubs of a folder, in this process. */
#include "client/folder.h"

#include <stdlib.h>
#include <string.h>

static struct weir__namespace *namespace_of(struct weir__backend *b)
{
    return ((struct weir__folder *)b)->namespace;
}

void weir__folder_hub_info(const struct weir__catalog_hub *hub, struct weir_hub_info *out)
{
    *out = (struct weir_hub_info){
        .partitions = hub->partitions,
        .groups = hub->group_count,
        .created_ms = hub->created_ms,
        .retain_ms = weir__catalog_retain_ms(hub->retain_ms),
        .retain_bytes = hub->retain_bytes,
    };
    _Static_assert(sizeof out->name >= sizeof hub->name, "a hub's name fits");
    memcpy(out->name, hub->name, sizeof hub->name);
}

static int copy_info(const struct weir__catalog_hub *hub, void *user)
{
    weir__folder_hub_info(hub, user);
    return 0;
}

static int hub_info(struct weir__backend *b, const char *hub, struct weir_hub_info *out,
                    struct weir_error *err)
{
    return weir__namespace_hub_show(namespace_of(b), hub, copy_info, out, err);
}

static int hub_stats(struct weir__backend *b, const char *name, struct weir_hub_stats *out,
                     struct weir_error *err)
{
    struct weir__hub_stats s;
    struct weir__hub *hub;
    int rc = weir__namespace_use(namespace_of(b), name, &hub, err);

    if (rc != 0) return rc;
    weir__hub_stats(hub, &s);
    weir__hub_release(hub);
    *out = (struct weir_hub_stats){
        .batches_in = s.log.batches,
        .events_in = s.log.events,
        .bytes_in = s.log.bytes,
        .batches_refused = s.refused,
        .events_out = s.delivered_events,
        .bytes_out = s.delivered_bytes,
        .syncs = s.log.syncs,
        .segments = s.log.segments,
        .disk_bytes = s.log.disk_bytes,
        .receivers = s.receivers,
        .damaged_ranges = s.log.damaged_ranges,
        .stored_bytes = s.log.stored_bytes,
        .disk_bytes_max = s.log.disk_bytes_max,
        .begin_time_ms = s.log.begin_time_ms,
        .next_expiry_bytes = s.log.next_expiry_bytes,
        .next_expiry_ms = s.log.next_expiry_ms,
        .producers = s.log.producers,
        .producers_forgotten = s.log.producers_forgotten,
    };
    return 0;
}

static int partition_info(struct weir__backend *b, const char *name, uint32_t partition,
                          struct weir_partition_info *out, struct weir_error *err)
{
    struct weir__partition_properties p;
    struct weir__hub *hub;
    int rc = weir__namespace_use(namespace_of(b), name, &hub, err);

    if (rc != 0) return rc;
    rc = weir__folder_check_partition(hub, partition, err);
    if (rc == 0) rc = weir__hub_partition_properties(hub, partition, &p, err);
    weir__hub_release(hub);
    if (rc != 0) return rc;
    *out = (struct weir_partition_info){
        .begin_sequence = (uint64_t)p.begin_sequence,
        .next_sequence = (uint64_t)(p.last_sequence + 1),
        .last_offset = p.last_offset < 0 ? 0 : (uint64_t)p.last_offset,
        .last_time_ms = p.last_time_ms,
    };
    return 0;
}

/* The names are copied out under the namespace's lock and shown behind it. */
struct group_copy {
    struct weir__catalog_group *at;
    uint32_t count;
};

static int copy_groups(const struct weir__catalog_hub *hub, void *user)
{
    struct group_copy *copy = user;

    copy->at = calloc(hub->group_count, sizeof *copy->at);
    if (!copy->at) return WEIR_ENOMEM;
    memcpy(copy->at, hub->groups, hub->group_count * sizeof *copy->at);
    copy->count = hub->group_count;
    return 0;
}

static int group_list(struct weir__backend *b, const char *hub,
                      int (*fn)(const char *group, void *), void *user, struct weir_error *err)
{
    struct group_copy copy = {0};
    int rc = weir__namespace_hub_show(namespace_of(b), hub, copy_groups, &copy, err);

    if (rc == WEIR_ENOMEM) weir__fail(err, rc, "listing the groups of '%s': no memory", hub);
    for (uint32_t i = 0; rc == 0 && i < copy.count; i++) rc = fn(copy.at[i].name, user);
    free(copy.at);
    return rc;
}

static int space(struct weir__backend *b, char out[WEIR_SPACE_BYTES], struct weir_error *err)
{
    return weir__namespace_id(namespace_of(b), out, err);
}

static int folder_close(struct weir__backend *b, struct weir_error *err)
{
    int rc = weir__namespace_close(namespace_of(b), err);

    free(b);
    return rc;
}

static const struct weir__backend_ops folder_ops = {
    .version = WEIR__BACKEND_VERSION,
    .open_sender = weir__folder_open_sender,
    .open_source = weir__folder_open_source,
    .hub_info = hub_info,
    .hub_stats = hub_stats,
    .partition_info = partition_info,
    .group_list = group_list,
    .space = space,
    .close = folder_close,
};

static void pass_line(enum weir__level level, const char *room, const char *line, void *user)
{
    static const enum weir_level levels[] = {[WEIR__DEBUG] = WEIR_DEBUG,
                                             [WEIR__INFO] = WEIR_INFO,
                                             [WEIR__WARN] = WEIR_WARN,
                                             [WEIR__ERROR] = WEIR_ERROR};
    struct weir__folder *f = user;

    f->log(levels[level], room, line, f->log_user);
}

int weir__folder_open(struct weir__backend **out, const char *dir,
                      const struct weir_options *options, struct weir_error *err)
{
    struct weir__namespace_options o = {.must_exist = options->must_exist,
                                        .batch_bytes_max = options->batch_bytes_max,
                                        .sync_ms = options->sync_ms};
    struct weir__folder *f = calloc(1, sizeof *f);
    int rc;

    if (!f) return weir__fail(err, WEIR_ENOMEM, "no memory");
    f->base.ops = &folder_ops;
    f->base.admin = &weir__folder_admin;
    f->log = options->log;
    f->log_user = options->log_user;
    if (f->log) o.logger = (struct weir__logger){pass_line, f};
    rc = weir__namespace_open(&f->namespace, dir, &o, err);
    if (rc != 0) {
        free(f);
        return rc;
    }
    *out = &f->base;
    return 0;
}
