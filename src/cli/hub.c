/* hub.c - weir hub create, list, show, delete. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/when.h"

#define GROUPS_MAX 64u
#define GROUPS_BYTES_MAX 4096

/* ---- create ---- */

struct create_options {
    struct weir__common common;
    struct weir__args_number partitions, retain_age, retain_bytes;
    const char *groups;
};

static const struct weir__args_row create_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"partitions", WEIR__ARGS_NUMBER, offsetof(struct create_options, partitions), "N",
     "1 to 1024 (default 4); for good"},
    {"groups", WEIR__ARGS_TEXT, offsetof(struct create_options, groups), "A,B",
     "consumer groups besides $Default"},
    {"retention-age", WEIR__ARGS_DURATION, offsetof(struct create_options, retain_age), "AGE",
     "keep events so long at least, like 12h or 30d (default 7d)"},
    {"retention-bytes", WEIR__ARGS_BYTES, offsetof(struct create_options, retain_bytes), "SIZE",
     "drop the oldest when the hub is larger, like 10G (default: no limit)"},
    {0},
};

/* Splits "a,b" in place. false: too many. */
static bool split_groups(char *text, const char **out, uint32_t *out_count)
{
    char *rest = NULL;

    *out_count = 0;
    for (char *g = strtok_r(text, ",", &rest); g; g = strtok_r(NULL, ",", &rest)) {
        if (*out_count == GROUPS_MAX) return false;
        out[(*out_count)++] = g;
    }
    return true;
}

static int create_hub(struct weir__home *h, const char *name, const struct weir_hub_options *hub)
{
    struct weir_hub_info made;
    struct weir_error err;
    int rc;

    if (h->remote) {
        rc = weir__remote_hub_create(h->remote, name, hub, &made, &err);
    } else {
        rc = weir_hub_create(h->weir, name, hub, &err);
        if (rc == 0) rc = weir_hub_info(h->weir, name, &made, &err);
    }
    if (rc != 0) return weir__exit_error(rc, &err, "hub create");
    printf("created hub %s with %" PRIu32 " partition%s\n", made.name, made.partitions,
           made.partitions == 1 ? "" : "s");
    return weir__exit_printed(WEIR__EXIT_OK);
}

static int run_create(const struct weir__command *self, int argc, char **argv)
{
    struct create_options o = {0};
    struct weir_hub_options hub = {.size = sizeof hub};
    const char *groups[GROUPS_MAX];
    char text[GROUPS_BYTES_MAX] = "";
    struct weir__home home;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.partitions.given && (o.partitions.value < 1 || o.partitions.value > WEIR_PARTITIONS_MAX))
        return weir__exit_usage(self->name, "--partitions must be 1 to %d", WEIR_PARTITIONS_MAX);
    if (o.retain_age.given && o.retain_age.value == 0)
        return weir__exit_usage(self->name, "--retention-age must be more than nothing");
    if (o.groups && strlen(o.groups) < sizeof text) memcpy(text, o.groups, strlen(o.groups) + 1);
    if ((o.groups && !*text) || !split_groups(text, groups, &hub.group_count))
        return weir__exit_usage(self->name, "--groups must be up to %u names", GROUPS_MAX);
    hub.groups = groups;
    hub.partitions = (uint32_t)o.partitions.value;
    hub.retain_ms = (int64_t)o.retain_age.value;
    hub.retain_bytes = o.retain_bytes.value;
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_ADMIN | WEIR__HOME_MAKE);
    if (code != 0) return code;
    return weir__home_leave(&home, create_hub(&home, o.common.word[0], &hub));
}

const struct weir__command weir__command_hub_create = {
    .name = "hub create",
    .words = "HUB",
    .summary = "make a hub, and the data folder when it is not there",
    .rows = create_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_create,
};

/* ---- list ---- */

static const struct weir__args_row admin_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {0},
};

static void print_retention(const struct weir_hub_info *h)
{
    char age[32] = "for ever", size[40] = "";

    if (h->retain_ms >= 0 && h->retain_ms % 86400000 == 0)
        snprintf(age, sizeof age, "%" PRId64 "d", h->retain_ms / 86400000);
    else if (h->retain_ms >= 0 && h->retain_ms % 1000 == 0)
        snprintf(age, sizeof age, "%" PRId64 "s", h->retain_ms / 1000);
    else if (h->retain_ms >= 0)
        snprintf(age, sizeof age, "%" PRId64 "ms", h->retain_ms);
    if (h->retain_bytes) snprintf(size, sizeof size, ", %" PRIu64 " bytes", h->retain_bytes);
    printf("%s%s", age, size);
}

static int print_hub(const struct weir_hub_info *h, void *user)
{
    char when[WEIR__WHEN_BYTES];

    (void)user;
    printf("%-24s %4" PRIu32 " partitions  %" PRIu32 " groups  created %s  retention ", h->name,
           h->partitions, h->groups, weir__when_text(h->created_ms, when));
    print_retention(h);
    putchar('\n');
    return 0;
}

static int run_list(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    struct weir__home home;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    code = weir__home_reach(&home, self, &common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    rc = home.remote ? weir__remote_hub_list(home.remote, print_hub, NULL, &err)
                     : weir_hub_list(home.weir, print_hub, NULL, &err);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub list");
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_hub_list = {
    .name = "hub list",
    .words = "",
    .summary = "list the hubs of a folder, or of a server",
    .rows = admin_rows,
    .run = run_list,
};

/* ---- show ---- */

static int print_group(const char *group, void *user)
{
    (void)user;
    printf(" %s", group);
    return 0;
}

static int print_partitions(struct weir *w, const struct weir_hub_info *h, struct weir_error *err)
{
    struct weir_partition_info p;
    char when[WEIR__WHEN_BYTES];
    int rc = 0;

    printf("\npartition      events   first sequence    next sequence       last offset  "
           "last enqueued\n");
    for (uint32_t i = 0; rc == 0 && i < h->partitions; i++) {
        rc = weir_partition_info(w, h->name, i, &p, err);
        if (rc != 0) break;
        printf("%9" PRIu32 " %11" PRIu64 " %16" PRIu64 " %16" PRIu64, i,
               p.next_sequence - p.begin_sequence, p.begin_sequence, p.next_sequence);
        if (p.last_offset > 0)
            printf("  %16" PRIu64 "  %s\n", p.last_offset, weir__when_text(p.last_time_ms, when));
        else
            printf("  %16s  -\n", "-");
    }
    return rc;
}

static void print_head(const struct weir_hub_info *h)
{
    char when[WEIR__WHEN_BYTES];

    printf("hub         %s\ncreated     %s\n", h->name, weir__when_text(h->created_ms, when));
}

static int show_folder(struct weir *w, const char *hub, struct weir_hub_info *h,
                       struct weir_error *err)
{
    struct weir_hub_stats stats;
    int rc = weir_hub_info(w, hub, h, err);

    if (rc == 0) rc = weir_hub_stats(w, hub, &stats, err);
    if (rc != 0) return rc;
    print_head(h);
    printf("groups     ");
    rc = weir_group_list(w, hub, print_group, NULL, err);
    printf("\nretention   ");
    print_retention(h);
    printf("\non disk     %" PRIu64 " bytes in %" PRIu64 " segments\n", stats.disk_bytes,
           stats.segments);
    return rc;
}

/* What AMQP tells, and what HTTP has besides where it is known. */
static int show_server(struct weir__home *home, const char *hub, struct weir_hub_info *h,
                       struct weir_error *err)
{
    struct weir_hub_info more;
    int rc = weir_hub_info(home->weir, hub, h, err);

    if (rc != 0) return rc;
    print_head(h);
    if (!home->remote) return 0;
    printf("groups     ");
    rc = weir__remote_hub_show(home->remote, hub, &more, print_group, NULL, err);
    printf("\nretention   ");
    if (rc == 0) print_retention(&more);
    putchar('\n');
    return rc;
}

static int run_show(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    struct weir_hub_info hub;
    struct weir__home home;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    code = weir__home_reach(&home, self, &common, WEIR__HOME_DETAILS);
    if (code != 0) return code;
    rc = home.wire ? show_server(&home, common.word[0], &hub, &err)
                   : show_folder(home.weir, common.word[0], &hub, &err);
    if (rc == 0) rc = print_partitions(home.weir, &hub, &err);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub show");
    return weir__exit_printed(weir__home_leave(&home, code));
}

static const struct weir__args_row show_rows[] = {
    WEIR__ARGS_CONNECT,
    {0},
};

const struct weir__command weir__command_hub_show = {
    .name = "hub show",
    .words = "HUB",
    .summary = "show a hub, its groups and its partitions",
    .more = "Over a connection AMQP does not tell the groups, the retention and the size on disk.",
    .rows = show_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_show,
};

/* ---- delete ---- */

static int run_delete(const struct weir__command *self, int argc, char **argv)
{
    struct weir__common common = {0};
    struct weir__home home;
    struct weir_error err;
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &common, &code)) return code;
    code = weir__home_reach(&home, self, &common, WEIR__HOME_ADMIN);
    if (code != 0) return code;
    rc = home.remote ? weir__remote_hub_delete(home.remote, common.word[0], &err)
                     : weir_hub_delete(home.weir, common.word[0], &err);
    if (rc == 0) printf("deleted hub %s and its events\n", common.word[0]);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub delete");
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_hub_delete = {
    .name = "hub delete",
    .words = "HUB",
    .summary = "delete a hub and all of its events, without asking",
    .rows = admin_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_delete,
};
