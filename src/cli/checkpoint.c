/* checkpoint.c - weir checkpoint list, set, delete: the marks of a group, by hand.
 *
 * On a group that is running the owner of the partition goes on from what was set, within a beat. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/group.h"
#include "cli/json.h"
#include "cli/when.h"

#define NOT_UNDERSTOOD "the record cannot be understood"

struct checkpoint_options {
    struct weir__common common;
    const char *store;
    struct weir__args_number partition, sequence;
    bool all, json;
};

#define STORE_ROW                                                                                  \
    {                                                                                              \
        "store", WEIR__ARGS_TEXT, offsetof(struct checkpoint_options, store), "URL",               \
            "where the copies keep their records (on a folder: sqlite:DIR/processor.db)"           \
    }
#define PARTITION_ROW                                                                              \
    {                                                                                              \
        "partition", WEIR__ARGS_NUMBER, offsetof(struct checkpoint_options, partition), "N",       \
            "this partition"                                                                       \
    }

static const struct weir__args_row list_rows[] = {
    WEIR__ARGS_CONNECT,
    STORE_ROW,
    {"json", WEIR__ARGS_FLAG, offsetof(struct checkpoint_options, json), NULL,
     "one line of JSON for each"},
    {0},
};

static const struct weir__args_row set_rows[] = {
    WEIR__ARGS_CONNECT,
    STORE_ROW,
    PARTITION_ROW,
    {"sequence", WEIR__ARGS_NUMBER, offsetof(struct checkpoint_options, sequence), "N",
     "done up to and with this event"},
    {0},
};

static const struct weir__args_row delete_rows[] = {
    WEIR__ARGS_CONNECT,
    STORE_ROW,
    PARTITION_ROW,
    {"all", WEIR__ARGS_FLAG, offsetof(struct checkpoint_options, all), NULL, "of all partitions"},
    {0},
};

static int end(int rc, const struct weir_error *err, const char *command)
{
    if (rc == 0) return WEIR__EXIT_OK;
    return weir__exit_advise(rc, err, weir__group_advice(rc), "%s", command);
}

/* ---- list ---- */

static void show(const struct weir_record *r, bool json)
{
    char when[WEIR__WHEN_BYTES];

    if (r->rc != 0) {
        if (json)
            printf("{\"partition\":\"%" PRIu32 "\",\"error\":\"" NOT_UNDERSTOOD "\"}\n",
                   r->partition);
        else
            printf("%9" PRIu32 " (" NOT_UNDERSTOOD ")\n", r->partition);
        return;
    }
    weir__when_text(r->modified_ms, when);
    if (!json) {
        printf("%9" PRIu32 " %12" PRIu64 " %20s %s %s\n", r->partition, r->sequence,
               r->offset[0] ? r->offset : "-", when, r->owner[0] ? r->owner : "-");
        return;
    }
    printf("{\"partition\":\"%" PRIu32 "\",\"sequence\":%" PRIu64 ",\"offset\":", r->partition,
           r->sequence);
    if (r->offset[0])
        weir__json_text(stdout, weir_text(r->offset));
    else
        printf("null");
    printf(",\"modified\":\"%s\",\"owner\":", when);
    if (r->owner[0])
        weir__json_text(stdout, weir_text(r->owner));
    else
        printf("null");
    printf("}\n");
}

static int list(struct weir__group_place *g, const struct checkpoint_options *o)
{
    struct weir_view view = {0};
    struct weir_error err;
    int rc = g->store->ops->read(g->store, &g->scope, &view, &err);

    if (rc == 0 && view.record_count == 0) rc = weir__group_check(g, &err);
    if (rc == 0 && !o->json)
        printf("%9s %12s %20s %-24s %s\n", "partition", "sequence", "offset", "modified", "owner");
    for (size_t i = 0; rc == 0 && i < view.record_count; i++)
        if (view.records[i].rc != 0 || view.records[i].marked) show(&view.records[i], o->json);
    weir_view_free(&view);
    return end(rc, &err, "checkpoint list");
}

/* ---- set and delete ---- */

static int partition_count(struct weir__group_place *g, uint32_t *out, struct weir_error *err)
{
    struct weir_hub_info info;
    int rc = weir_hub_info(g->home.weir, g->hub, &info, err);

    if (rc == 0) *out = info.partitions;
    return rc;
}

static int say_bad_partition(const char *command, const struct checkpoint_options *o,
                             uint32_t count)
{
    struct weir_error err = {.code = WEIR_ENOTFOUND};

    snprintf(err.text, sizeof err.text, "partition %" PRIu64 " is not one of 0 to %" PRIu32,
             o->partition.value, count - 1);
    return weir__exit_advise(err.code, &err, "'weir hub show' shows what is there", "%s", command);
}

static int set(struct weir__group_place *g, const struct checkpoint_options *o)
{
    struct weir_partition_info info;
    struct weir_mark mark = {.sequence = o->sequence.value};
    struct weir_error err;
    uint32_t count;
    int rc = partition_count(g, &count, &err);

    if (rc == 0 && o->partition.value >= count)
        return say_bad_partition("checkpoint set", o, count);
    mark.partition = (uint32_t)o->partition.value;
    if (rc == 0) rc = weir_partition_info(g->home.weir, g->hub, mark.partition, &info, &err);
    if (rc == 0 && mark.sequence >= info.next_sequence)
        return weir__exit_usage("checkpoint set",
                                "event %" PRIu64 " does not exist yet: the last one is %" PRId64,
                                mark.sequence, (int64_t)info.next_sequence - 1);
    if (rc == 0) rc = g->store->ops->set(g->store, &g->scope, mark.partition, &mark, &err);
    return end(rc, &err, "checkpoint set");
}

static int delete (struct weir__group_place *g, const struct checkpoint_options *o)
{
    struct weir_error err;
    uint32_t count;
    int rc = partition_count(g, &count, &err);

    if (rc == 0 && !o->all && o->partition.value >= count)
        return say_bad_partition("checkpoint delete", o, count);
    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (o->all || i == o->partition.value)
            rc = g->store->ops->set(g->store, &g->scope, i, NULL, &err);
    return end(rc, &err, "checkpoint delete");
}

/* ---- commands ---- */

static int run(const struct weir__command *self, int argc, char **argv)
{
    struct checkpoint_options o = {0};
    struct weir__group_place g;
    int (*act)(struct weir__group_place *, const struct checkpoint_options *) = list;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (self == &weir__command_checkpoint_set) {
        act = set;
        if (!o.partition.given || !o.sequence.given)
            return weir__exit_usage(self->name, "--partition and --sequence are needed");
    }
    if (self == &weir__command_checkpoint_delete) {
        act = delete;
        if (o.partition.given == o.all)
            return weir__exit_usage(self->name, "either --partition or --all is needed");
    }
    /* What is left of a group that was deleted can be seen and deleted. */
    code = weir__group_open(&g, self, &o.common, o.common.word[0], o.store, act == set);
    if (code != 0) return code;
    return weir__exit_printed(weir__group_close(&g, act(&g, &o)));
}

const struct weir__command weir__command_checkpoint_list = {
    .name = "checkpoint list",
    .words = "HUB/GROUP",
    .summary = "show how far a group has come",
    .rows = list_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};

const struct weir__command weir__command_checkpoint_set = {
    .name = "checkpoint set",
    .words = "HUB/GROUP",
    .summary = "make a group go on behind an event",
    .more = "A copy that reads the partition at the moment goes on from there, too.",
    .rows = set_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};

const struct weir__command weir__command_checkpoint_delete = {
    .name = "checkpoint delete",
    .words = "HUB/GROUP",
    .summary = "make a group begin anew",
    .more = "A copy that reads the partition at the moment begins anew, too.",
    .rows = delete_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run,
};
