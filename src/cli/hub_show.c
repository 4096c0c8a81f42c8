/* hub_show.c - weir hub show: everything that is known of one hub, as text or as JSON.
 *
 * A folder knows it all, and so does weir serve, which tells groups and sizes to keys that may
 * manage. What was not told, by Azure for instance, is left out. */
#include "cli/hub_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/amount.h"
#include "cli/commands.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/json.h"
#include "cli/when.h"

/* ---- gathering ---- */

struct view {
    struct weir_hub_info hub;
    bool kept; /* what is kept is known, and on how much disk */
    struct weir_hub_stats stats;
    char (*groups)[WEIR_NAME_BYTES];
    uint32_t group_count;
};

static int note_group(const char *group, void *user)
{
    struct view *v = user;
    void *groups = realloc(v->groups, (v->group_count + 1) * sizeof *v->groups);

    if (!groups) return WEIR_ENOMEM;
    v->groups = groups;
    snprintf(v->groups[v->group_count++], WEIR_NAME_BYTES, "%s", group);
    return 0;
}

/* Statistics and groups. A server tells them by HTTP, with a key that may manage; Azure does not
 * at all. What is not told for such a reason is left out; any other is said. */
static int look_closer(struct weir__home *home, const char *hub, struct view *v,
                       struct weir_error *err)
{
    int rc = weir_hub_stats(home->weir, hub, &v->stats, err);

    v->kept = rc == 0;
    if (rc == 0) rc = weir_group_list(home->weir, hub, note_group, v, err);
    if (rc == 0 || !home->wire) return rc;
    if (rc != WEIR_ENOTSUP && rc != WEIR_EDENIED)
        fprintf(stderr, "weir: hub show: groups and sizes are left out: %s\n", err->text);
    return 0;
}

static int look_at(struct weir__home *home, const char *hub, struct view *v, struct weir_error *err)
{
    int rc = weir_hub_info(home->weir, hub, &v->hub, err);

    if (rc == 0) rc = look_closer(home, hub, v, err);
    return rc;
}

/* ---- as text ---- */

void weir__hub_print_retention(const struct weir_hub_info *h)
{
    char age[WEIR__AMOUNT_BYTES], limit[WEIR__AMOUNT_BYTES];

    printf("%s", weir__amount_age(h->retain_ms, age));
    if (h->retain_bytes) printf(", %s", weir__amount_limit(h->retain_bytes, limit));
}

/* What goes next, when there is anything, and by which of the two limits. */
static void print_expiry(const struct weir_hub_stats *s, bool by_bytes)
{
    char size[WEIR__AMOUNT_BYTES], span[WEIR__AMOUNT_BYTES];

    if (s->next_expiry_bytes == 0) return;
    printf("next expiry %s", weir__amount_size(s->next_expiry_bytes, size));
    if (s->next_expiry_ms == 0) printf(" now");
    if (s->next_expiry_ms > 0) printf(" in %s", weir__amount_span(s->next_expiry_ms, span));
    if (by_bytes)
        printf("%s", s->next_expiry_ms >= 0 ? ", or when the limit in bytes is passed"
                                            : " when the limit in bytes is passed");
    putchar('\n');
}

static void print_kept(const struct weir_hub_stats *s, bool by_bytes)
{
    char when[WEIR__WHEN_BYTES], size[WEIR__AMOUNT_BYTES];

    printf("kept        ");
    if (s->stored_bytes == 0) printf("nothing");
    if (s->stored_bytes > 0) printf("%s of events", weir__amount_size(s->stored_bytes, size));
    if (s->begin_time_ms > 0) printf(" since %s", weir__when_text(s->begin_time_ms, when));
    printf("\non disk     %s", weir__amount_size(s->disk_bytes, size));
    if (s->segments) printf(" in %" PRIu64 " segment%s", s->segments, s->segments == 1 ? "" : "s");
    if (s->disk_bytes_max) printf(", at most %s", weir__amount_size(s->disk_bytes_max, size));
    putchar('\n');
    print_expiry(s, by_bytes);
}

static void print_head(const struct view *v)
{
    char when[WEIR__WHEN_BYTES];

    printf("hub         %s\ncreated     %s\n", v->hub.name,
           weir__when_text(v->hub.created_ms, when));
    if (v->group_count) {
        printf("groups     ");
        for (uint32_t i = 0; i < v->group_count; i++) printf(" %s", v->groups[i]);
        putchar('\n');
    }
    if (v->hub.retain_ms) {
        printf("retention   ");
        weir__hub_print_retention(&v->hub);
        putchar('\n');
    }
    if (v->kept) print_kept(&v->stats, v->hub.retain_bytes > 0);
    printf("\npartition      events   first sequence    next sequence       last offset  "
           "last enqueued\n");
}

static void print_partition(uint32_t number, const struct weir_partition_info *p)
{
    char when[WEIR__WHEN_BYTES];

    printf("%9" PRIu32 " %11" PRIu64 " %16" PRIu64 " %16" PRIu64, number,
           p->next_sequence - p->begin_sequence, p->begin_sequence, p->next_sequence);
    if (p->last_offset > 0)
        printf("  %16" PRIu64 "  %s\n", p->last_offset, weir__when_text(p->last_time_ms, when));
    else
        printf("  %16s  -\n", "-");
}

/* ---- as JSON ---- */

static void write_time(const char *name, int64_t ms)
{
    char when[WEIR__WHEN_BYTES];

    if (ms > 0)
        printf(",\"%s\":\"%s\"", name, weir__when_text(ms, when));
    else
        printf(",\"%s\":null", name);
}

static void write_kept(const struct weir_hub_stats *s)
{
    printf(",\"stored_bytes\":%" PRIu64 ",\"disk_bytes\":%" PRIu64 ",\"disk_bytes_max\":%" PRIu64,
           s->stored_bytes, s->disk_bytes, s->disk_bytes_max);
    write_time("oldest_enqueued", s->begin_time_ms);
    printf(",\"next_expiry_bytes\":%" PRIu64 ",\"next_expiry_ms\":%" PRId64, s->next_expiry_bytes,
           s->next_expiry_ms);
}

static void write_head(const struct view *v)
{
    printf("{\"name\":");
    weir__json_text(stdout, weir_text(v->hub.name));
    write_time("created", v->hub.created_ms);
    if (v->hub.retain_ms)
        printf(",\"retain_ms\":%" PRId64 ",\"retain_bytes\":%" PRIu64, v->hub.retain_ms,
               v->hub.retain_bytes);
    if (v->group_count) {
        printf(",\"groups\":[");
        for (uint32_t i = 0; i < v->group_count; i++) {
            if (i > 0) putchar(',');
            weir__json_text(stdout, weir_text(v->groups[i]));
        }
        putchar(']');
    }
    if (v->kept) write_kept(&v->stats);
    printf(",\"partitions\":[");
}

static void write_partition(uint32_t number, const struct weir_partition_info *p)
{
    printf("%s{\"id\":\"%" PRIu32 "\",\"begin_sequence\":%" PRIu64 ",\"next_sequence\":%" PRIu64,
           number ? "," : "", number, p->begin_sequence, p->next_sequence);
    if (p->last_offset > 0)
        printf(",\"last_offset\":\"%" PRIu64 "\"", p->last_offset);
    else
        printf(",\"last_offset\":null");
    write_time("last_enqueued", p->last_time_ms);
    putchar('}');
}

/* ---- the command ---- */

struct show_options {
    struct weir__common common;
    bool json;
};

static const struct weir__args_row show_rows[] = {
    WEIR__ARGS_CONNECT,
    WEIR__ARGS_ADMIN,
    {"json", WEIR__ARGS_FLAG, offsetof(struct show_options, json), NULL, "one line of JSON"},
    {0},
};

static int show(struct weir__home *home, const struct view *v, bool json, struct weir_error *err)
{
    struct weir_partition_info p;
    int rc = 0;

    (json ? write_head : print_head)(v);
    for (uint32_t i = 0; rc == 0 && i < v->hub.partitions; i++) {
        rc = weir_partition_info(home->weir, v->hub.name, i, &p, err);
        if (rc == 0) (json ? write_partition : print_partition)(i, &p);
    }
    if (json) printf("]}\n");
    return rc;
}

static int run_show(const struct weir__command *self, int argc, char **argv)
{
    struct show_options o = {0};
    struct weir__home home;
    struct weir_error err;
    struct view v = {0};
    int code, rc;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    code = weir__home_reach(&home, self, &o.common, WEIR__HOME_DETAILS);
    if (code != 0) return code;
    rc = look_at(&home, o.common.word[0], &v, &err);
    if (rc == 0) rc = show(&home, &v, o.json, &err);
    free(v.groups);
    code = rc == 0 ? WEIR__EXIT_OK : weir__exit_error(rc, &err, "hub show");
    return weir__exit_printed(weir__home_leave(&home, code));
}

const struct weir__command weir__command_hub_show = {
    .name = "hub show",
    .words = "HUB",
    .summary = "show a hub, what it keeps, its groups and its partitions",
    .more = "Over a connection the groups and the size on disk are told to keys that may manage.",
    .rows = show_rows,
    .words_min = 1,
    .words_max = 1,
    .run = run_show,
};
