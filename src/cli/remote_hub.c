#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/json.h"
#include "cli/remote_state.h"

#define CHANGES_BYTES 160
#define ORPHAN_ID_BYTES 17

/* ---- what is told ---- */

struct hub {
    char name[WEIR_NAME_BYTES];
    int64_t partitions, created_ms, retain_ms, retain_bytes;
    int64_t stored_bytes, disk_bytes, disk_bytes_max, begin_time_ms, expiry_bytes, expiry_ms;
    uint32_t groups;
    int (*group_fn)(const char *, void *); /* NULL: nobody */
    void *user;
};

static int take_group(void *out, const char *text, struct weir_error *err)
{
    struct hub *h = out;

    (void)err;
    h->groups++;
    return h->group_fn ? h->group_fn(text, h->user) : 0;
}

static const struct weir__fact hub_facts[] = {
    {"name", WEIR__FACT_TEXT, offsetof(struct hub, name), WEIR_NAME_BYTES, NULL},
    {"partitions", WEIR__FACT_NUMBER, offsetof(struct hub, partitions), 0, NULL},
    {"created_ms", WEIR__FACT_NUMBER, offsetof(struct hub, created_ms), 0, NULL},
    {"retain_ms", WEIR__FACT_NUMBER, offsetof(struct hub, retain_ms), 0, NULL},
    {"retain_bytes", WEIR__FACT_NUMBER, offsetof(struct hub, retain_bytes), 0, NULL},
    {"groups", WEIR__FACT_TEXTS, 0, 0, take_group},
    {"stored_bytes", WEIR__FACT_NUMBER, offsetof(struct hub, stored_bytes), 0, NULL},
    {"disk_bytes", WEIR__FACT_NUMBER, offsetof(struct hub, disk_bytes), 0, NULL},
    {"disk_bytes_max", WEIR__FACT_NUMBER, offsetof(struct hub, disk_bytes_max), 0, NULL},
    {"begin_time_ms", WEIR__FACT_NUMBER, offsetof(struct hub, begin_time_ms), 0, NULL},
    {"next_expiry_bytes", WEIR__FACT_NUMBER, offsetof(struct hub, expiry_bytes), 0, NULL},
    {"next_expiry_ms", WEIR__FACT_NUMBER, offsetof(struct hub, expiry_ms), 0, NULL},
    {0},
};

static struct weir_hub_info info_of(const struct hub *h)
{
    struct weir_hub_info info = {.partitions = (uint32_t)h->partitions,
                                 .groups = h->groups,
                                 .created_ms = h->created_ms,
                                 .retain_ms = h->retain_ms,
                                 .retain_bytes = (uint64_t)h->retain_bytes};

    memcpy(info.name, h->name, sizeof info.name);
    return info;
}

struct hubs {
    int (*fn)(const struct weir_hub_info *, void *);
    void *user;
    struct weir_error *err;
};

static int show_hub(void *out, void *user)
{
    const struct weir_hub_info info = info_of(out);
    const struct hubs *to = user;
    int rc = weir__name_check(WEIR__NAME_HUB, info.name, to->err);

    return rc != 0 ? rc : to->fn(&info, to->user);
}

int weir__remote_hub_list(struct weir__remote *r, int (*fn)(const struct weir_hub_info *, void *),
                          void *user, struct weir_error *err)
{
    struct hubs to = {fn, user, err};
    struct hub hub;

    return weir__remote_list(r, &(struct weir__remote_path){0}, "hubs", hub_facts, &hub, sizeof hub,
                             show_hub, &to, err);
}

static struct weir_hub_stats kept_of(const struct hub *h)
{
    return (struct weir_hub_stats){.stored_bytes = (uint64_t)h->stored_bytes,
                                   .disk_bytes = (uint64_t)h->disk_bytes,
                                   .disk_bytes_max = (uint64_t)h->disk_bytes_max,
                                   .begin_time_ms = h->begin_time_ms,
                                   .next_expiry_bytes = (uint64_t)h->expiry_bytes,
                                   .next_expiry_ms = h->expiry_ms};
}

int weir__remote_hub_show(struct weir__remote *r, const char *hub, struct weir_hub_info *out,
                          struct weir_hub_stats *stats, bool *out_kept,
                          int (*group_fn)(const char *, void *), void *user, struct weir_error *err)
{
    struct weir__question q = {.method = "GET"};
    struct hub h = {.group_fn = group_fn, .user = user, .disk_bytes = -1};
    struct weir__reply reply;
    int rc = weir__remote_ask(r, &q, &(struct weir__remote_path){.hub = hub}, &reply, err);

    if (rc == 0) rc = weir__remote_read(r, &reply, hub_facts, &h, err);
    *out = info_of(&h);
    *stats = kept_of(&h);
    *out_kept = h.disk_bytes >= 0;
    return rc;
}

/* {"partitions":4,...}, with what was said only. */
static void print_order(FILE *to, const struct weir_hub_options *o)
{
    fputs("{\"groups\":[", to);
    for (uint32_t i = 0; i < o->group_count; i++) {
        if (i > 0) putc(',', to);
        weir__json_text(to, weir_text(o->groups[i]));
    }
    putc(']', to);
    if (o->partitions) fprintf(to, ",\"partitions\":%" PRIu32, o->partitions);
    if (o->retain_ms) fprintf(to, ",\"retain_ms\":%" PRId64, o->retain_ms);
    if (o->retain_bytes) fprintf(to, ",\"retain_bytes\":%" PRIu64, o->retain_bytes);
    putc('}', to);
}

int weir__remote_hub_create(struct weir__remote *r, const char *hub,
                            const struct weir_hub_options *o, struct weir_hub_info *out,
                            struct weir_error *err)
{
    struct weir__question q = {.method = "PUT", .only_new = true};
    struct weir__reply reply;
    struct hub h = {0};
    char *body = NULL;
    size_t len;
    FILE *to = open_memstream(&body, &len);
    int rc = 0;

    if (to) print_order(to, o);
    if (!to || fclose(to) != 0) rc = weir__fail(err, WEIR_ENOMEM, "out of memory for a hub");
    q.body = body;
    if (rc == 0) rc = weir__remote_ask(r, &q, &(struct weir__remote_path){.hub = hub}, &reply, err);
    if (rc == 0) rc = weir__remote_read(r, &reply, hub_facts, &h, err);
    free(body);
    *out = info_of(&h);
    return rc;
}

/* {"partitions":8,...}, with what changes only. */
static void print_changes(char *out, size_t room, const struct weir_hub_changes *c)
{
    const char *comma = "";
    int n = snprintf(out, room, "{");

    if (c->partitions) {
        n += snprintf(out + n, room - (size_t)n, "\"partitions\":%" PRIu32, c->partitions);
        comma = ",";
    }
    if (c->retain_ms) {
        n += snprintf(out + n, room - (size_t)n, "%s\"retain_ms\":%" PRId64, comma, c->retain_ms);
        comma = ",";
    }
    if (c->retain_bytes)
        n += snprintf(out + n, room - (size_t)n, "%s\"retain_bytes\":%" PRIu64, comma,
                      c->retain_bytes == WEIR_RETAIN_ALL ? 0 : c->retain_bytes);
    snprintf(out + n, room - (size_t)n, "}");
}

int weir__remote_hub_update(struct weir__remote *r, const char *hub,
                            const struct weir_hub_changes *changes, struct weir_error *err)
{
    char body[CHANGES_BYTES];
    struct weir__question q = {.method = "PATCH", .body = body};
    struct weir__reply reply;

    print_changes(body, sizeof body, changes);
    return weir__remote_ask(r, &q, &(struct weir__remote_path){.hub = hub}, &reply, err);
}

/* ---- orphans ---- */

int weir__remote_hub_adopt(struct weir__remote *r, uint64_t id, const char *hub,
                           struct weir_error *err)
{
    char body[CHANGES_BYTES];
    struct weir__question q = {.method = "PUT", .only_new = true, .body = body};
    struct weir__reply reply;

    snprintf(body, sizeof body, "{\"adopt\":\"%" PRIx64 "\"}", id);
    return weir__remote_ask(r, &q, &(struct weir__remote_path){.hub = hub}, &reply, err);
}

struct orphan {
    char id[ORPHAN_ID_BYTES];
    int64_t partitions;
};

static const struct weir__fact orphan_facts[] = {
    {"id", WEIR__FACT_TEXT, offsetof(struct orphan, id), ORPHAN_ID_BYTES, NULL},
    {"partitions", WEIR__FACT_NUMBER, offsetof(struct orphan, partitions), 0, NULL},
    {0},
};

struct orphans {
    int (*fn)(const struct weir_orphan *, void *);
    void *user;
};

static int show_orphan(void *out, void *user)
{
    const struct orphan *o = out;
    const struct orphans *to = user;
    const struct weir_orphan orphan = {strtoull(o->id, NULL, 16), (uint32_t)o->partitions};

    return to->fn(&orphan, to->user);
}

int weir__remote_orphan_list(struct weir__remote *r, int (*fn)(const struct weir_orphan *, void *),
                             void *user, struct weir_error *err)
{
    struct orphans to = {fn, user};
    struct orphan orphan;

    return weir__remote_list(r, &(struct weir__remote_path){.what = "orphans"}, "orphans",
                             orphan_facts, &orphan, sizeof orphan, show_orphan, &to, err);
}

/* ---- the end ---- */

int weir__remote_hub_delete(struct weir__remote *r, const char *hub, struct weir_error *err)
{
    struct weir__question q = {.method = "DELETE"};
    struct weir__reply reply;

    return weir__remote_ask(r, &q, &(struct weir__remote_path){.hub = hub}, &reply, err);
}
