/* wire_admin_hub.c - requests about hubs, orphans and groups. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/wire_admin.h"

#define ORPHAN_ID_BYTES 17

static struct weir__wire *wire_of(struct weir__backend *b)
{
    return (struct weir__wire *)b;
}

static struct weir__admin_path hub_path(const char *hub)
{
    return (struct weir__admin_path){.hub = hub};
}

/* ---- making and changing ---- */

int weir__admin_hub_create(struct weir__backend *b, const char *hub,
                           const struct weir_hub_options *o, struct weir_error *err)
{
    struct weir__http_call call = {.method = "PUT", .only_new = true};
    struct weir__admin_path path = hub_path(hub);
    struct weir__admin_reply reply;
    struct weir__admin_body body;
    int rc;

    weir__admin_body_init(&body);
    weir__admin_put(&body, "{\"groups\":[");
    for (uint32_t i = 0; i < o->group_count; i++) {
        if (i > 0) weir__admin_put(&body, ",");
        weir__admin_quote(&body, o->groups[i]);
    }
    weir__admin_put(&body, "]");
    if (o->partitions) weir__admin_put(&body, ",\"partitions\":%" PRIu32, o->partitions);
    if (o->retain_ms) weir__admin_put(&body, ",\"retain_ms\":%" PRId64, o->retain_ms);
    if (o->retain_bytes) weir__admin_put(&body, ",\"retain_bytes\":%" PRIu64, o->retain_bytes);
    weir__admin_put(&body, "}");
    rc = weir__admin_send(wire_of(b), &call, &body, &path, &reply, err);
    weir__admin_reply_fini(&reply);
    return rc;
}

/* With what changes only. */
int weir__admin_hub_update(struct weir__backend *b, const char *hub,
                           const struct weir_hub_changes *c, struct weir_error *err)
{
    struct weir__http_call call = {.method = "PATCH"};
    struct weir__admin_path path = hub_path(hub);
    struct weir__admin_reply reply;
    struct weir__admin_body body;
    const char *comma = "";
    int rc;

    weir__admin_body_init(&body);
    weir__admin_put(&body, "{");
    if (c->partitions) {
        weir__admin_put(&body, "\"partitions\":%" PRIu32, c->partitions);
        comma = ",";
    }
    if (c->retain_ms) {
        weir__admin_put(&body, "%s\"retain_ms\":%" PRId64, comma, c->retain_ms);
        comma = ",";
    }
    if (c->retain_bytes)
        weir__admin_put(&body, "%s\"retain_bytes\":%" PRIu64, comma,
                        c->retain_bytes == WEIR_RETAIN_ALL ? 0 : c->retain_bytes);
    weir__admin_put(&body, "}");
    rc = weir__admin_send(wire_of(b), &call, &body, &path, &reply, err);
    weir__admin_reply_fini(&reply);
    return rc;
}

int weir__admin_hub_delete(struct weir__backend *b, const char *hub, struct weir_error *err)
{
    struct weir__http_call call = {.method = "DELETE"};
    struct weir__admin_path path = hub_path(hub);

    return weir__admin_order(wire_of(b), &call, &path, err);
}

int weir__admin_hub_adopt(struct weir__backend *b, uint64_t id, const char *hub,
                          struct weir_error *err)
{
    struct weir__http_call call = {.method = "PUT", .only_new = true};
    struct weir__admin_path path = hub_path(hub);
    struct weir__admin_reply reply;
    struct weir__admin_body body;
    int rc;

    weir__admin_body_init(&body);
    weir__admin_put(&body, "{\"adopt\":\"%" PRIx64 "\"}", id);
    rc = weir__admin_send(wire_of(b), &call, &body, &path, &reply, err);
    weir__admin_reply_fini(&reply);
    return rc;
}

/* ---- asking ---- */

struct hub {
    char name[WEIR_NAME_BYTES];
    int64_t partitions, created_ms, retain_ms, retain_bytes;
    uint32_t groups;
};

static int count_group(void *out, const char *text, struct weir_error *err)
{
    (void)text, (void)err;
    ((struct hub *)out)->groups++;
    return 0;
}

static const struct weir__json_field hub_fields[] = {
    {"name", WEIR__JSON_FIELD_TEXT, offsetof(struct hub, name), WEIR_NAME_BYTES, NULL},
    {"partitions", WEIR__JSON_FIELD_NUMBER, offsetof(struct hub, partitions), 0, NULL},
    {"created_ms", WEIR__JSON_FIELD_NUMBER, offsetof(struct hub, created_ms), 0, NULL},
    {"retain_ms", WEIR__JSON_FIELD_NUMBER, offsetof(struct hub, retain_ms), 0, NULL},
    {"retain_bytes", WEIR__JSON_FIELD_NUMBER, offsetof(struct hub, retain_bytes), 0, NULL},
    {"groups", WEIR__JSON_FIELD_TEXTS, 0, 0, count_group},
    {0},
};

struct hub_list {
    int (*fn)(const struct weir_hub_info *, void *);
    void *user;
};

static int check_hub(const void *out, struct weir_error *err)
{
    return weir__name_check(WEIR__NAME_HUB, ((const struct hub *)out)->name, err);
}

static int show_hub(const void *out, void *user)
{
    const struct hub_list *to = user;
    const struct hub *h = out;
    struct weir_hub_info info = {.partitions = (uint32_t)h->partitions,
                                 .groups = h->groups,
                                 .created_ms = h->created_ms,
                                 .retain_ms = h->retain_ms,
                                 .retain_bytes = (uint64_t)h->retain_bytes};

    memcpy(info.name, h->name, sizeof info.name);
    return to->fn(&info, to->user);
}

int weir__admin_hub_list(struct weir__backend *b, int (*fn)(const struct weir_hub_info *, void *),
                         void *user, struct weir_error *err)
{
    const struct weir__admin_path path = {0};
    struct hub_list to = {fn, user};
    struct hub hub;
    const struct weir__admin_list list = {.name = "hubs",
                                          .fields = hub_fields,
                                          .out = &hub,
                                          .size = sizeof hub,
                                          .check = check_hub,
                                          .show = show_hub,
                                          .user = &to};

    return weir__admin_list(wire_of(b), &path, &list, err);
}

#define STAT(name)                                                                                 \
    {                                                                                              \
#name, WEIR__JSON_FIELD_NUMBER, offsetof(struct weir_hub_stats, name), 0, NULL             \
    }

static const struct weir__json_field stats_fields[] = {
    STAT(batches_in),
    STAT(events_in),
    STAT(bytes_in),
    STAT(batches_refused),
    STAT(events_out),
    STAT(bytes_out),
    STAT(syncs),
    STAT(segments),
    STAT(disk_bytes),
    STAT(receivers),
    STAT(damaged_ranges),
    STAT(stored_bytes),
    STAT(disk_bytes_max),
    STAT(begin_time_ms),
    STAT(next_expiry_bytes),
    STAT(next_expiry_ms),
    STAT(producers),
    STAT(producers_forgotten),
    {0},
};

#define NOT_TOLD UINT64_MAX

int weir__admin_hub_stats(struct weir__backend *b, const char *hub, struct weir_hub_stats *out,
                          struct weir_error *err)
{
    struct weir__http_call call = {.method = "GET"};
    struct weir__admin_path path = hub_path(hub);
    struct weir_hub_stats stats = {.disk_bytes = NOT_TOLD};
    struct weir__admin_reply reply;
    int rc = weir__admin_ask(wire_of(b), &call, &path, &reply, err);

    if (rc == 0) rc = weir__admin_read(&reply, stats_fields, &stats, err);
    if (rc == 0 && stats.disk_bytes == NOT_TOLD)
        rc = weir__fail(err, WEIR_EFAILED,
                        "hub '%.64s' cannot be opened by its server, whose log says why", hub);
    weir__admin_reply_fini(&reply);
    if (rc == 0) *out = stats;
    return rc;
}

/* ---- orphans ---- */

struct orphan {
    char id[ORPHAN_ID_BYTES];
    int64_t partitions;
};

static const struct weir__json_field orphan_fields[] = {
    {"id", WEIR__JSON_FIELD_TEXT, offsetof(struct orphan, id), ORPHAN_ID_BYTES, NULL},
    {"partitions", WEIR__JSON_FIELD_NUMBER, offsetof(struct orphan, partitions), 0, NULL},
    {0},
};

struct orphan_list {
    int (*fn)(const struct weir_orphan *, void *);
    void *user;
};

static int show_orphan(const void *out, void *user)
{
    const struct orphan *o = out;
    const struct orphan_list *to = user;
    const struct weir_orphan orphan = {strtoull(o->id, NULL, 16), (uint32_t)o->partitions};

    return to->fn(&orphan, to->user);
}

int weir__admin_orphan_list(struct weir__backend *b, int (*fn)(const struct weir_orphan *, void *),
                            void *user, struct weir_error *err)
{
    const struct weir__admin_path path = {.what = "orphans"};
    struct orphan_list to = {fn, user};
    struct orphan orphan;
    const struct weir__admin_list list = {.name = "orphans",
                                          .fields = orphan_fields,
                                          .out = &orphan,
                                          .size = sizeof orphan,
                                          .show = show_orphan,
                                          .user = &to};

    return weir__admin_list(wire_of(b), &path, &list, err);
}

/* ---- groups ---- */

int weir__admin_group_create(struct weir__backend *b, const char *hub, const char *group,
                             struct weir_error *err)
{
    struct weir__http_call call = {.method = "PUT", .only_new = true};
    struct weir__admin_path path = {.hub = hub, .what = "groups", .name = group};

    return weir__admin_order(wire_of(b), &call, &path, err);
}

int weir__admin_group_delete(struct weir__backend *b, const char *hub, const char *group,
                             struct weir_error *err)
{
    struct weir__http_call call = {.method = "DELETE"};
    struct weir__admin_path path = {.hub = hub, .what = "groups", .name = group};

    return weir__admin_order(wire_of(b), &call, &path, err);
}

#define STOPPED 1 /* by fn, not by the reader */

struct group_list {
    int (*fn)(const char *group, void *);
    void *user;
    int rc;
};

static int show_group(void *out, const char *text, struct weir_error *err)
{
    struct group_list *l = out;

    (void)err;
    l->rc = l->fn(text, l->user);
    return l->rc == 0 ? 0 : STOPPED;
}

static const struct weir__json_field group_fields[] = {
    {"groups", WEIR__JSON_FIELD_TEXTS, 0, 0, show_group},
    {0},
};

int weir__admin_group_list(struct weir__backend *b, const char *hub,
                           int (*fn)(const char *group, void *), void *user, struct weir_error *err)
{
    struct weir__http_call call = {.method = "GET"};
    struct weir__admin_path path = {.hub = hub, .what = "groups"};
    struct group_list list = {fn, user, 0};
    struct weir__admin_reply reply;
    int rc = weir__admin_ask(wire_of(b), &call, &path, &reply, err);

    if (rc == 0) rc = weir__admin_read(&reply, group_fields, &list, err);
    weir__admin_reply_fini(&reply);
    return rc == STOPPED ? list.rc : rc;
}
