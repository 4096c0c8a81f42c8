/* board.c - who owns what, how fast it goes and how far behind it is, from the outside: the table of
 * owners in the store, and the ends of the partitions at the hub. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "home.h"

#define OWNERS_MAX 16

struct group {
    struct weir_source *source;
    struct weir_view view;
    uint64_t done, lag; /* events checkpointed, and not yet */
};

struct board {
    struct weir *weir;
    struct weir_store *store;
    struct group groups[JOBS];
    uint64_t in, in_before, done_before[JOBS];
    double at, at_before;
    int lines;               /* drawn last time, on a terminal */
    const char *news_before; /* elsewhere the owners are listed once for each, */
    int quiet;               /* when they have had so many draws to settle */
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct board *board_open(const char *where, const char *dir)
{
    struct board *b = calloc(1, sizeof *b);
    struct weir_error err;
    char path[512];
    int rc;

    if (!b) return NULL;
    rc = weir_open(&b->weir, where, NULL, &err);
    snprintf(path, sizeof path, "%s/owners.db", dir);
    if (rc == 0) rc = weir_store_sqlite(&b->store, path, NULL, &err);
    for (int i = 0; rc == 0 && i < JOBS; i++)
        rc = weir_source_hub(&b->groups[i].source, b->weir, HUB, job_names[i], &err);
    if (rc == 0) return b;
    complain("the board", &err);
    board_close(b);
    return NULL;
}

void board_close(struct board *b)
{
    if (!b) return;
    for (int i = 0; i < JOBS; i++) {
        weir_view_free(&b->groups[i].view);
        weir_source_close(b->groups[i].source);
    }
    weir_store_close(b->store);
    weir_close(b->weir, NULL);
    free(b);
}

/* Marks do not count as changes of a view: forget it, to see them all. */
static int look_at_group(struct board *b, struct group *g, const uint64_t ends[PARTITIONS],
                         struct weir_error *err)
{
    struct weir_scope scope = {g->source->space, g->source->hub, g->source->group};
    uint64_t in = 0;
    int rc;

    g->view.change = 0;
    g->done = 0;
    rc = b->store->ops->read(b->store, &scope, &g->view, err);
    for (uint32_t p = 0; p < PARTITIONS; p++) in += ends[p];
    for (size_t i = 0; rc == 0 && i < g->view.record_count; i++)
        if (g->view.records[i].marked) g->done += g->view.records[i].sequence + 1;
    g->lag = in - g->done;
    return rc;
}

static int look(struct board *b, struct weir_error *err)
{
    uint64_t ends[PARTITIONS];
    int rc = 0;

    b->in_before = b->in;
    b->at_before = b->at;
    b->in = 0;
    for (uint32_t p = 0; rc == 0 && p < PARTITIONS; p++) {
        struct weir_partition_info info;

        rc = weir_partition_info(b->weir, HUB, p, &info, err);
        ends[p] = rc == 0 ? info.next_sequence : 0;
        b->in += ends[p];
    }
    for (int i = 0; rc == 0 && i < JOBS; i++) {
        b->done_before[i] = b->groups[i].done;
        rc = look_at_group(b, &b->groups[i], ends, err);
    }
    b->at = seconds();
    return rc;
}

/* "0 3 7": the partitions that one copy owns. */
static void list_owned(const struct group *g, const char *owner, char *out, size_t bytes)
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < g->view.record_count && len < bytes; i++)
        if (strcmp(g->view.records[i].owner, owner) == 0)
            len += (size_t)snprintf(out + len, bytes - len, " %u", g->view.records[i].partition);
}

static int draw_rates(const struct board *b)
{
    double passed = b->at_before > 0 ? b->at - b->at_before : 1;

    printf("  homes %8.0f events/s in", (double)(b->in - b->in_before) / passed);
    for (int i = 0; i < JOBS; i++)
        printf("   %s %8.0f/s, %" PRIu64 " behind", job_names[i],
               (double)(b->groups[i].done - b->done_before[i]) / passed, b->groups[i].lag);
    printf("\n");
    return 1;
}

static int draw_owners(const struct board *b)
{
    const struct weir_view *v = &b->groups[STORAGE].view;
    size_t m;

    for (m = 0; m < v->member_count && m < OWNERS_MAX; m++) {
        const char *id = v->members[m].id;
        char owned[JOBS][80];

        for (int i = 0; i < JOBS; i++) list_owned(&b->groups[i], id, owned[i], sizeof owned[i]);
        printf("    %-8s storage%-42s routing%s\n", id, owned[STORAGE], owned[ROUTING]);
    }
    return (int)m;
}

static void draw(struct board *b, const char *news)
{
    bool live = isatty(STDOUT_FILENO), fresh = news != b->news_before;

    if (live && b->lines > 0) printf("\033[%dA\033[J", b->lines);
    b->lines = 0;
    if (live || fresh) b->lines += printf("  %s\n", news) > 0;
    b->lines += draw_rates(b);
    if (live || !fresh) b->lines += live || b->quiet == 1 ? draw_owners(b) : 0;
    b->quiet = fresh ? 1 : b->quiet + 1;
    b->news_before = news;
    fflush(stdout);
}

uint64_t board_show(struct board *b, const char *news)
{
    struct weir_error err;
    uint64_t left = 0;

    if (look(b, &err) != 0) {
        complain("the board", &err);
        return UINT64_MAX;
    }
    draw(b, news);
    for (int i = 0; i < JOBS; i++) left += b->groups[i].lag;
    return left;
}
