/* group.c - weir group describe: who reads what, and how far they are. */
#include "cli/group.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/json.h"
#include "cli/store.h"
#include "cli/when.h"

#define STORE_FILE "processor.db" /* in a folder, when no store was named */
#define LOOK_MS 2000              /* for the one event that tells how late a group is */

/* ---- the place ---- */

static void lower(char *to, const char *from)
{
    for (; *from; from++, to++) *to = (char)(*from >= 'A' && *from <= 'Z' ? *from + 32 : *from);
    *to = '\0';
}

static bool split_name(struct weir__group_place *g, const char *what)
{
    const char *slash = strchr(what, '/');
    size_t len = slash ? (size_t)(slash - what) : strlen(what);
    const char *group = slash ? slash + 1 : WEIR_DEFAULT_GROUP;

    if (len == 0 || len >= sizeof g->hub || !*group || strlen(group) >= sizeof g->group)
        return false;
    memcpy(g->hub, what, len);
    memcpy(g->group, group, strlen(group));
    lower(g->scope_hub, g->hub);
    lower(g->scope_group, g->group);
    g->scope = (struct weir_scope){g->space, g->scope_hub, g->scope_group};
    return true;
}

static int open_store(struct weir__group_place *g, const struct weir__command *self,
                      const struct weir__common *common, const char *url)
{
    char path[4096];
    struct weir_error err;
    int rc;

    if (!url && g->home.wire && !g->home.served)
        return weir__exit_usage(self->name, "--store is needed: over a connection there is no"
                                            " folder to keep one in");
    if (!url &&
        snprintf(path, sizeof path, "sqlite:%s/" STORE_FILE, common->data) >= (int)sizeof path)
        return weir__exit_usage(self->name, "the folder's path is too long");
    rc = weir__cli_store_open(&g->store, url ? url : path, &err);
    if (rc == WEIR_EINVAL) return weir__exit_usage(self->name, "--store: %s", err.text);
    if (rc == 0) return 0;
    return weir__exit_advise(rc, &err, "--store names another", "%s", self->name);
}

const char *weir__group_advice(int rc)
{
    switch (rc) {
    case WEIR_ENOTFOUND: return "'weir hub list' and 'weir hub show' show what is there";
    case WEIR_EDENIED: return "'weir key add --rights listen' makes a key that may";
    case WEIR_EEXIST: return "choose another --name";
    case WEIR_EUNREACHABLE:
    case WEIR_ETIMEDOUT: return "see that it runs and can be reached from here";
    default: return NULL;
    }
}

int weir__group_check(struct weir__group_place *g, struct weir_error *err)
{
    struct weir_source *source;
    int rc = weir_source_hub(&source, g->home.weir, g->hub, g->group, err);

    weir_source_close(source);
    return rc;
}

int weir__group_open(struct weir__group_place *g, const struct weir__command *self,
                     const struct weir__common *common, const char *what, const char *store_url,
                     bool must_be)
{
    struct weir_error err;
    int code, rc;

    *g = (struct weir__group_place){0};
    if (!split_name(g, what))
        return weir__exit_usage(self->name, "'%.64s' is not HUB or HUB/GROUP", what);
    code = weir__home_reach(&g->home, self, common, WEIR__HOME_EVENTS);
    if (code != 0) return code;
    rc = weir_space(g->home.weir, g->space, &err);
    if (rc == 0 && must_be) rc = weir__group_check(g, &err);
    if (rc != 0) code = weir__exit_advise(rc, &err, weir__group_advice(rc), "%s", self->name);
    if (code == 0) code = open_store(g, self, common, store_url);
    return code == 0 ? 0 : weir__group_close(g, code);
}

int weir__group_close(struct weir__group_place *g, int code)
{
    weir_store_close(g->store);
    return weir__home_leave(&g->home, code);
}

/* ---- describing ---- */

struct describe_options {
    struct weir__common common;
    const char *store;
    bool json;
};

static const struct weir__args_row describe_rows[] = {
    WEIR__ARGS_CONNECT,
    {"store", WEIR__ARGS_TEXT, offsetof(struct describe_options, store), "URL",
     "where the copies keep their records (on a folder: sqlite:DIR/" STORE_FILE ")"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct describe_options, json), NULL,
     "one line of JSON for each member and each partition"},
    {0},
};

/* One partition as it is shown; negative numbers are not known. */
struct row {
    uint32_t partition;
    const struct weir_record *record; /* NULL: there is none */
    int64_t lease_age_ms;             /* since its owner last beat */
    int64_t last;                     /* sequence number of its newest event */
    int64_t lag, lag_ms;
};

/* When the first event behind a checkpoint was taken in. A living owner's place cannot be shared, so
 * for a group that is read at the moment this is asked in the group that every hub has. */
static int64_t time_behind(struct weir__group_place *g, uint32_t partition, uint64_t sequence)
{
    const char *groups[] = {g->group, WEIR_DEFAULT_GROUP};
    struct weir_receiver_options o = {.size = sizeof o,
                                      .position = {.from = WEIR_FROM_SEQUENCE,
                                                   .value = (int64_t)sequence},
                                      .name = "weir group describe",
                                      .bytes_max = 1};
    struct weir_received got = {0};
    struct weir_receiver *r;
    int64_t time_ms = -1;

    for (int i = 0; i < 2 && time_ms < 0; i++) {
        o.group = groups[i];
        if (weir_receiver_open(&r, g->home.weir, g->hub, partition, &o, NULL) != 0) continue;
        if (weir_receiver_receive(r, 1, LOOK_MS, &got, NULL) == 0)
            time_ms = got.events[0].enqueued_time_ms;
        weir_receiver_close(r);
    }
    return time_ms;
}

static void measure_lag(struct weir__group_place *g, const struct weir_partition_info *info,
                        struct row *row)
{
    const struct weir_record *r = row->record;
    uint64_t done = r && r->marked ? r->sequence + 1 : info->begin_sequence;
    int64_t time_ms;

    if (done < info->begin_sequence) done = info->begin_sequence;
    row->last = (int64_t)info->next_sequence - 1;
    row->lag = info->next_sequence > done ? (int64_t)(info->next_sequence - done) : 0;
    if (row->lag == 0) return;
    time_ms = time_behind(g, row->partition, done);
    row->lag_ms = time_ms < 0 ? -1 : info->last_time_ms - time_ms;
}

static const struct weir_member *find_member(const struct weir_view *v, const char *id)
{
    for (size_t i = 0; i < v->member_count; i++)
        if (strcmp(v->members[i].id, id) == 0) return &v->members[i];
    return NULL;
}

static const struct weir_record *find_record(const struct weir_view *v, uint32_t partition)
{
    for (size_t i = 0; i < v->record_count; i++)
        if (v->records[i].partition == partition) return &v->records[i];
    return NULL;
}

static void show_number(int64_t value, const char *after)
{
    if (value < 0)
        printf("null%s", after);
    else
        printf("%" PRId64 "%s", value, after);
}

static void show_json(const struct row *row)
{
    const struct weir_record *r = row->record;
    bool owned = r && r->rc == 0 && r->owner[0];
    char when[WEIR__WHEN_BYTES];

    printf("{\"type\":\"partition\",\"partition\":\"%" PRIu32 "\",\"owner\":", row->partition);
    if (owned)
        weir__json_text(stdout, weir_text(r->owner));
    else
        printf("null");
    printf(",\"epoch\":%" PRId64 ",\"lease_age_ms\":", r ? r->epoch : 0);
    show_number(row->lease_age_ms, ",\"checkpoint\":");
    show_number(r && r->marked ? (int64_t)r->sequence : -1, ",\"last_sequence\":");
    show_number(row->last, ",\"lag\":");
    show_number(row->lag, ",\"lag_ms\":");
    show_number(row->lag_ms, "");
    if (!owned && r && r->rc == 0)
        printf(",\"unowned_since\":\"%s\"", weir__when_text(r->modified_ms, when));
    if (r && r->rc != 0) printf(",\"error\":\"the record cannot be understood\"");
    printf("}\n");
}

static void show_cell(int64_t value, int width)
{
    if (value < 0)
        printf(" %*s", width, "-");
    else
        printf(" %*" PRId64, width, value);
}

static void show_text(const struct row *row)
{
    const struct weir_record *r = row->record;
    bool owned = r && r->rc == 0 && r->owner[0];
    char when[WEIR__WHEN_BYTES];

    printf("%9" PRIu32 "  %-28s", row->partition,
           owned             ? r->owner
           : r && r->rc != 0 ? "(record not understood)"
                             : "-");
    show_cell(r && r->rc == 0 ? r->epoch : -1, 6);
    show_cell(row->lease_age_ms, 9);
    show_cell(r && r->rc == 0 && r->marked ? (int64_t)r->sequence : -1, 12);
    show_cell(row->last, 12);
    show_cell(row->lag, 10);
    if (row->lag_ms < 0)
        printf(" %9s", "-");
    else
        printf(" %9.1f", (double)row->lag_ms / 1000);
    if (!owned && r && r->rc == 0)
        printf("  unowned since %s", weir__when_text(r->modified_ms, when));
    if (!r) printf("  never owned");
    putchar('\n');
}

static void show_members(const struct weir_view *v, bool json)
{
    for (size_t i = 0; i < v->member_count; i++) {
        const struct weir_member *m = &v->members[i];
        int64_t age_ms = v->now_ms - m->beat_ms;
        bool alive = age_ms <= m->expire_ms;
        if (json) {
            printf("{\"type\":\"member\",\"member\":");
            weir__json_text(stdout, weir_text(m->id));
            printf(",\"weight\":%" PRIu32 ",\"beat_age_ms\":%" PRId64 ",\"alive\":%s}\n", m->weight,
                   age_ms, alive ? "true" : "false");
        } else {
            printf("member %-28s weight %" PRIu32 ", last beat %" PRId64 " ms ago%s\n", m->id,
                   m->weight, age_ms, alive ? "" : ": dead");
        }
    }
    if (!json && v->member_count == 0) printf("no members\n");
    if (!json)
        printf("\n%9s  %-28s %6s %9s %12s %12s %10s %9s\n", "partition", "owner", "epoch",
               "lease ms", "checkpoint", "last", "lag", "lag s");
}

static int describe(struct weir__group_place *g, const struct describe_options *o)
{
    struct weir_hub_info hub;
    struct weir_view view = {0};
    struct weir_error err;
    int rc = weir_hub_info(g->home.weir, g->hub, &hub, &err);

    assert(g->store);
    if (rc == 0) rc = g->store->ops->read(g->store, &g->scope, &view, &err);
    if (rc == 0) show_members(&view, o->json);
    for (uint32_t i = 0; rc == 0 && i < hub.partitions; i++) {
        struct row row = {.partition = i,
                          .record = find_record(&view, i),
                          .lease_age_ms = -1,
                          .lag = -1};
        const struct weir_member *owner = row.record ? find_member(&view, row.record->owner) : NULL;
        struct weir_partition_info info;
        rc = weir_partition_info(g->home.weir, g->hub, i, &info, &err);
        if (rc != 0) break;
        if (owner) row.lease_age_ms = view.now_ms - owner->beat_ms;
        measure_lag(g, &info, &row);
        (o->json ? show_json : show_text)(&row);
    }
    weir_view_free(&view);
    if (rc == 0) return WEIR__EXIT_OK;
    return weir__exit_advise(rc, &err, weir__group_advice(rc), "group describe");
}

static int run_describe(const struct weir__command *self, int argc, char **argv)
{
    struct describe_options o = {0};
    struct weir__group_place g;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    code = weir__group_open(&g, self, &o.common, o.common.word[0], o.store, true);
    if (code != 0) return code;
    return weir__exit_printed(weir__group_close(&g, describe(&g, &o)));
}

const struct weir__command weir__command_group_describe = {
    .name = "group describe",
    .words = "HUB/GROUP",
    .summary = "show who reads the partitions of a group, and how far behind they are",
    .more = "Shows the members, then for each partition its owner, how long ago that owner last\n"
            "beat, the checkpoint, the last sequence number, and the lag in events and seconds. A\n"
            "lag in seconds that shows '-' cannot be seen from outside while the group is read.",
    .rows = describe_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_describe,
};
