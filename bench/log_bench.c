#include "bench/log_bench.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases.h"
#include "bench/opening.h"

#define ROUNDS_DEFAULT 7u
#define ROUNDS_QUICK 3u
#define HASTE_QUICK 4u
#define OPEN_BYTES 10000000000ull
#define OPEN_BYTES_QUICK 1000000000ull
#define DIR_DEFAULT "/var/tmp" /* a disk nearly everywhere, where /tmp often is memory */

enum { EXIT_OK = 0, EXIT_BROKEN = 1, EXIT_USAGE = 2 };

struct options {
    const char *dir;
    const char *only; /* names with commas; NULL: all */
    uint32_t rounds;  /* 0: the default */
    bool open, quick, json, rows, strict, list, help;
};

static const char usage[] =
    "usage: weir bench log [options]\n"
    "\n"
    "Measures durable appending and reading beside what the disk can do (raw) and beside the\n"
    "least that could be done (floor), and says which goals are met. Takes a few minutes and up\n"
    "to 4 GB in a folder of its own, which is removed at the end.\n"
    "\n"
    "  --data DIR     make that folder in DIR, on the disk to be measured (" DIR_DEFAULT ")\n"
    "  --rounds N     pairs of runs for each case (7)\n"
    "  --only A,B     these cases; \"encoded\" means all that begin with \"encoded-\"\n"
    "  --list         only name the cases\n"
    "  --open         instead: fill a folder with 10 GB, kill the writer, and see how it opens\n"
    "  --quick        3 rounds of a quarter of the volume: a first impression\n"
    "  --json         one JSON object per line\n"
    "  --rows         also every single run, as comma-separated values\n"
    "  --strict       exit 1 when a goal is missed\n";

/* Sets what one argument says; false when it is not understood. *i moves past a value. */
static bool parse_option(struct options *o, int argc, char **argv, int *i)
{
    const struct {
        const char *name;
        bool *flag;
        const char **text;
    } table[] = {
        {"--data", NULL, &o->dir},  {"--only", NULL, &o->only}, {"--quick", &o->quick, NULL},
        {"--json", &o->json, NULL}, {"--rows", &o->rows, NULL}, {"--strict", &o->strict, NULL},
        {"--list", &o->list, NULL}, {"--help", &o->help, NULL}, {"--open", &o->open, NULL},
    };

    for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
        if (strcmp(argv[*i], table[k].name) != 0) continue;
        if (table[k].flag) return *table[k].flag = true;
        if (*i + 1 >= argc) return false;
        *table[k].text = argv[++*i];
        return true;
    }
    if (strcmp(argv[*i], "--rounds") == 0 && *i + 1 < argc) {
        char *end;
        unsigned long rounds = strtoul(argv[++*i], &end, 10);

        o->rounds = (uint32_t)rounds;
        return *end == '\0' && rounds > 0 && rounds <= WEIR__BENCH_ROUNDS_MAX;
    }
    return false;
}

/* Whether a list with commas has a name, or its beginning up to a hyphen. NULL has every name. */
static bool is_wanted(const char *only, const char *name)
{
    while (only && *only) {
        size_t len = strcspn(only, ",");
        bool begins = len > 0 && strncmp(only, name, len) == 0;

        if (begins && (name[len] == '\0' || name[len] == '-')) return true;
        only += len + (only[len] == ',');
    }
    return !only;
}

static int run_cases(const struct options *o, struct weir__report *report, struct weir_error *err)
{
    struct weir__arena arena = {.haste = o->quick ? HASTE_QUICK : 1};
    uint32_t rounds = o->rounds ? o->rounds : o->quick ? ROUNDS_QUICK : ROUNDS_DEFAULT;
    int rc = weir__arena_open(&arena, o->dir, err);
    char kind[32];

    if (rc != 0) return rc;
    weir__report_machine(report, weir__place_kind(&arena.place, kind, sizeof kind));
    weir__report_head(report, rounds);
    for (const struct weir__case *c = weir__cases; c->name && rc == 0; c++)
        if (is_wanted(o->only, c->name)) rc = weir__case_run(c, &arena, report, rounds, err);
    weir__arena_close(&arena);
    return rc;
}

static int list_cases(void)
{
    for (const struct weir__case *c = weir__cases; c->name; c++)
        printf("%-16s %s\n", c->name, c->text);
    return EXIT_OK;
}

static bool any_wanted(const char *only)
{
    for (const struct weir__case *c = weir__cases; c->name; c++)
        if (is_wanted(only, c->name)) return true;
    return false;
}

int weir__bench_log(int argc, char **argv)
{
    struct weir__report report = {.out = stdout};
    struct options o = {.dir = DIR_DEFAULT};
    struct weir_error err = {0};
    sigset_t ending, before;
    int rc;

    for (int i = 1; i < argc; i++) {
        if (parse_option(&o, argc, argv, &i)) continue;
        fprintf(stderr, "weir bench log: what is '%s'?\n%s", argv[i], usage);
        return EXIT_USAGE;
    }
    if (o.help) return fputs(usage, stdout) < 0 ? EXIT_BROKEN : EXIT_OK;
    if (o.list) return list_cases();
    if (!any_wanted(o.only)) {
        fprintf(stderr, "weir bench log: there is no case '%s'; see --list\n", o.only);
        return EXIT_USAGE;
    }
    report.json = o.json;
    report.rows = o.rows;

    /* Held back until the folder is removed; runs look whether one is waiting. */
    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    sigprocmask(SIG_BLOCK, &ending, &before);
    if (o.open)
        rc = weir__bench_opening(&report, o.dir, o.quick ? OPEN_BYTES_QUICK : OPEN_BYTES, &err);
    else
        rc = run_cases(&o, &report, &err);
    sigprocmask(SIG_SETMASK, &before, NULL);

    if (rc != 0) fprintf(stderr, "weir bench log: %s\n", err.text);
    if (rc == 0) weir__report_foot(&report);
    if (rc != 0 || (o.strict && report.missed > 0)) return EXIT_BROKEN;
    return EXIT_OK;
}
