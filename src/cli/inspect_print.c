#include "cli/inspect_print.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/json.h"
#include "cli/when.h"

static const char *const labels[] = {
    [WEIR__LOG_SEGMENT] = "segment", [WEIR__LOG_DAMAGE] = "DAMAGE",
    [WEIR__LOG_COPY] = "DAMAGE",     [WEIR__LOG_TORN] = "torn",
    [WEIR__LOG_INDEX] = "index",     [WEIR__LOG_CUT] = "cut",
    [WEIR__LOG_HEADER] = "DAMAGE",   [WEIR__LOG_CONTROL] = "DAMAGE",
    [WEIR__LOG_IGNORED] = "ignored", [WEIR__LOG_PRODUCERS] = "DAMAGE",
};

#define UNREAD_LABEL "UNREAD"   /* for a reason that is not the folder's */
#define VERSION_LABEL "VERSION" /* made by another weir: nothing is wrong with it */

/* ---- members of JSON ---- */

/* {"kind":"damage","hub":"homes" */
static void begin(const struct weir__inspection *in, const char *label)
{
    printf("{\"kind\":\"");
    for (; *label; label++) putchar(tolower((unsigned char)*label));
    putchar('"');
    if (!in->hub) return;
    printf(",\"hub\":");
    weir__json_text(stdout, weir_text(in->hub));
}

static void put_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    weir__json_text(stdout, weir_text(text));
}

static void put_line(const struct weir__inspection *in, const char *label, const char *text)
{
    begin(in, label);
    put_text("text", text);
    printf("}\n");
}

/* ---- hubs ---- */

void weir__inspect_hub(const struct weir__inspection *in, const struct weir__catalog_hub *hub,
                       const char *folder)
{
    char when[WEIR__WHEN_BYTES];

    weir__when_text(hub->created_ms, when);
    if (!in->json) {
        printf("hub %s: %" PRIu32 " partition%s, %" PRIu32 " group%s, created %s, in %s\n",
               hub->name, hub->partitions, hub->partitions == 1 ? "" : "s", hub->group_count,
               hub->group_count == 1 ? "" : "s", when, folder);
        return;
    }
    printf("{\"kind\":\"hub\"");
    put_text("name", hub->name);
    printf(",\"partition_count\":%" PRIu32 ",\"group_count\":%" PRIu32, hub->partitions,
           hub->group_count);
    put_text("created", when);
    put_text("folder", folder);
    printf("}\n");
}

/* ---- findings ---- */

static void print_finding(const struct weir__log_finding *f)
{
    printf("  %-8s %s", labels[f->kind], f->file);
    if (f->kind != WEIR__LOG_SEGMENT && f->len > 0)
        printf(" bytes %" PRIu64 "+%" PRIu64, f->at, f->len);
    if (f->kind != WEIR__LOG_SEGMENT && f->partition >= 0)
        printf(" partition %" PRId64, f->partition);
    if (f->kind != WEIR__LOG_SEGMENT && f->first_sequence <= f->last_sequence)
        printf(" sequence %" PRIu64 " to %" PRIu64, f->first_sequence, f->last_sequence);
    printf(": %s\n", f->text);
}

void weir__inspect_finding(const struct weir__inspection *in, const struct weir__log_finding *f)
{
    bool segment = f->kind == WEIR__LOG_SEGMENT;

    if (!in->json) {
        print_finding(f);
        return;
    }
    begin(in, labels[f->kind]);
    put_text("file", f->file);
    if (!segment && f->len > 0) printf(",\"at\":%" PRIu64 ",\"bytes\":%" PRIu64, f->at, f->len);
    if (!segment && f->partition >= 0) printf(",\"partition\":%" PRId64, f->partition);
    if (!segment && f->first_sequence <= f->last_sequence)
        printf(",\"first_sequence\":%" PRIu64 ",\"last_sequence\":%" PRIu64, f->first_sequence,
               f->last_sequence);
    put_text("text", f->text);
    printf("}\n");
}

void weir__inspect_unread(const struct weir__inspection *in, bool damage,
                          const struct weir_error *err)
{
    const char *label = damage ? labels[WEIR__LOG_DAMAGE] : UNREAD_LABEL;

    if (err->code == WEIR_EVERSION) label = VERSION_LABEL;
    if (in->json)
        put_line(in, label, err->text);
    else
        printf("  %-8s %s\n", label, err->text);
}

void weir__inspect_warning(const struct weir__inspection *in, bool damage, const char *line)
{
    const char *label = damage ? labels[WEIR__LOG_DAMAGE] : "warning";

    if (in->json)
        put_line(in, label, line);
    else
        printf("%s: %s\n", label, line);
}

/* ---- orphans and the sum ---- */

void weir__inspect_orphan(const struct weir__inspection *in, const struct weir__orphan *o)
{
    if (in->json)
        printf("{\"kind\":\"orphan\",\"id\":\"%" PRIx64 "\",\"readable\":%s}\n", o->id,
               o->partitions ? "true" : "false");
    else
        printf("orphan hub-%016" PRIx64 ": no hub has this folder, and it %s; 'weir hub "
               "adopt %" PRIx64 " NAME' makes\n  a hub of it again, or remove it by hand\n",
               o->id, o->partitions ? "may have events" : "cannot be read", o->id);
}

static void print_result(const struct weir__inspection *in, uint32_t hubs)
{
    printf("%" PRIu32 " hub%s, %" PRIu64 " segment%s: ", hubs, hubs == 1 ? "" : "s", in->segments,
           in->segments == 1 ? "" : "s");
    if (in->damaged > 0)
        printf("%" PRIu64 " damaged, see DAMAGE above; nothing was changed\n", in->damaged);
    else
        printf("no damage%s\n", in->unread > 0 ? " in what could be read" : "");
    if (in->unread > 0)
        printf("%" PRIu64 " hub%s could not be read, see UNREAD above: of %s nothing is known\n",
               in->unread, in->unread == 1 ? "" : "s", in->unread == 1 ? "it" : "them");
    if (in->orphans > 0)
        printf("%" PRIu64 " orphan%s: folders with events that the catalogue does not know\n",
               in->orphans, in->orphans == 1 ? "" : "s");
    if (in->torn > 0) printf("an unfinished write is at the end: the next open cuts it\n");
}

void weir__inspect_result(const struct weir__inspection *in, uint32_t hubs)
{
    if (!in->json) {
        print_result(in, hubs);
        return;
    }
    printf("{\"kind\":\"sum\",\"hubs\":%" PRIu32 ",\"segments\":%" PRIu64 ",\"damaged\":%" PRIu64
           ",\"orphans\":%" PRIu64 ",\"torn\":%" PRIu64 ",\"unread\":%" PRIu64 "}\n",
           hubs, in->segments, in->damaged, in->orphans, in->torn, in->unread);
}
