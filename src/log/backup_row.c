/* backup_row.c - which segments a moment has, read while some of them may expire.
 *
 * The folder is listed first and the control file asked afterwards: a number that is missing and
 * that the control file still keeps then is lost, and one that it does not keep has expired. */
#include <stdlib.h>

#include "log/backup.h"
#include "log/state.h"

#define ROW_MAX 1000000u

struct gathering {
    const struct weir__backup_log *log;
    const struct weir__backup_moment *moment;
    struct weir__backup_row *row;
    size_t cap;
    size_t strays; /* files without a readable header, with number 0 */
    struct weir_error *err;
};

static int add_to_row(struct gathering *g, const struct weir__segment *seg)
{
    struct weir__backup_row *row = g->row;

    if (row->count == ROW_MAX)
        return weir__fail(g->err, WEIR_ECORRUPT, "more than %u segments", ROW_MAX);
    if (row->count == g->cap) {
        size_t cap = g->cap ? g->cap * 2 : 16;
        struct weir__segment *at = realloc(row->at, cap * sizeof *at);

        if (!at) return weir__fail(g->err, WEIR_ENOMEM, "out of memory");
        row->at = at;
        g->cap = cap;
    }
    row->at[row->count++] = *seg;
    return 0;
}

static int gather_file(const char *name, void *user)
{
    struct gathering *g = user;
    const struct weir__control *c = &g->moment->control;
    struct weir__segment seg;
    int rc;

    if (!weir__backup_is_segment(name) || strcmp(name, g->moment->last.name) == 0) return 0;
    rc = weir__backup_segment_read(g->log, name, &seg, g->err);
    if (rc == WEIR_ENOTFOUND) return 0; /* removed since the folder was read */
    if (rc == WEIR_ECORRUPT && seg.h.capacity == 0) return 0; /* there is nothing in it */
    if (rc == WEIR_ECORRUPT) {
        seg.h.number = 0;
        seg.lost = true;
        g->strays++;
        rc = 0;
    } else if (rc == 0 && (seg.h.number < c->first_segment || seg.h.number >= c->last_segment)) {
        return 0;
    }
    return rc != 0 ? rc : add_to_row(g, &seg);
}

static int by_number(const void *a, const void *b)
{
    const struct weir__segment *x = a, *y = b;

    return x->h.number < y->h.number ? -1 : x->h.number > y->h.number;
}

/* Each segment ends where its successor says; a missing one leaves it open. */
static void set_ends(struct weir__backup_row *row, const struct weir__backup_moment *m)
{
    for (size_t i = 0; i + 1 < row->count; i++) {
        struct weir__segment *seg = &row->at[i];
        const struct weir__segment *next = &row->at[i + 1];
        uint64_t limit = weir__backup_limit(seg);

        seg->end = limit;
        if (seg->h.number == 0 || next->h.number != seg->h.number + 1 || next->lost) continue;
        if (next->h.previous_end >= seg->data && next->h.previous_end <= limit)
            seg->end = next->h.previous_end;
    }
    row->at[row->count - 1].end = m->end;
}

static void drop_front(struct weir__backup_row *row, size_t count)
{
    memmove(row->at, row->at + count, (row->count - count) * sizeof *row->at);
    row->count -= count;
}

/* Takes out what has expired; while nothing is missing, a file without a header is none of the
 * log's. */
static void sift(struct gathering *g, uint64_t first)
{
    struct weir__backup_row *row = g->row;
    uint64_t kept = g->moment->control.last_segment - first + 1;
    size_t expired = 0, there;

    while (row->at[g->strays + expired].h.number < first) expired++;
    there = row->count - g->strays - expired;
    row->missing = kept > there ? kept - there : 0;
    if (row->missing == 0) {
        drop_front(row, g->strays + expired);
        return;
    }
    memmove(row->at + g->strays, row->at + g->strays + expired, there * sizeof *row->at);
    row->count -= expired;
}

int weir__backup_row_read(const struct weir__backup_log *log, const struct weir__backup_moment *m,
                          struct weir__backup_row *out, struct weir_error *err)
{
    struct gathering g = {.log = log, .moment = m, .row = out, .err = err};
    uint64_t first = 0;
    int rc;

    *out = (struct weir__backup_row){0};
    rc = log->fs->ops->list(log->fs, log->dir, gather_file, &g, err);
    if (rc == 0) rc = add_to_row(&g, &m->last);
    if (rc == 0) rc = weir__backup_moment_still(log, m, &first, err);
    if (rc != 0) {
        weir__backup_row_fini(out);
        return weir__wrap(err, rc, "%s", log->dir);
    }
    qsort(out->at, out->count, sizeof *out->at, by_number);
    sift(&g, first);
    set_ends(out, m);
    return 0;
}

void weir__backup_row_fini(struct weir__backup_row *row)
{
    free(row->at);
    *row = (struct weir__backup_row){0};
}
