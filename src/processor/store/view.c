/* view.c - see view.h; and weir_view_free and weir_store_close of weir/store.h. */
#include "processor/store/view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/options.h"

#define FIRST_CAP 16u

int weir__store_grow(void **at, size_t *cap, size_t count, size_t size, struct weir_error *err)
{
    size_t wanted = *cap ? *cap * 2 : FIRST_CAP;
    void *more;

    if (count < *cap) return 0;
    if (count >= WEIR__STORE_ROWS_MAX)
        return weir__fail(err, WEIR_ELIMIT, "more than %u members or records in one group",
                          WEIR__STORE_ROWS_MAX);
    more = realloc(*at, wanted * size);
    if (!more) return weir__fail(err, WEIR_ENOMEM, "no memory for %zu members or records", wanted);
    *at = more;
    *cap = wanted;
    return 0;
}

int weir__view_add_member(struct weir_view *v, const struct weir_member *m, struct weir_error *err)
{
    void *at = v->members;
    int rc = weir__store_grow(&at, &v->member_cap, v->member_count, sizeof *m, err);

    v->members = at;
    if (rc == 0) v->members[v->member_count++] = *m;
    return rc;
}

int weir__view_add_record(struct weir_view *v, const struct weir_record *r, struct weir_error *err)
{
    void *at = v->records;
    int rc = weir__store_grow(&at, &v->record_cap, v->record_count, sizeof *r, err);

    v->records = at;
    if (rc == 0) v->records[v->record_count++] = *r;
    return rc;
}

void weir__view_take(struct weir_view *view, struct weir_view *fresh)
{
    struct weir_view old = *view;
    bool same = fresh->change != 0 && fresh->change == view->change;

    *view = *fresh;
    *fresh = old;
    if (!same) return;
    fresh->records = view->records;
    fresh->record_count = view->record_count;
    fresh->record_cap = view->record_cap;
    view->records = old.records;
    view->record_count = old.record_count;
    view->record_cap = old.record_cap;
}

void weir_view_free(struct weir_view *v)
{
    if (!v) return;
    free(v->members);
    free(v->records);
    *v = (struct weir_view){0};
}

void weir_store_close(struct weir_store *s)
{
    if (s) s->ops->close(s);
}

/* ---- rows ---- */

static bool copy_text(char *to, size_t cap, struct weir__bytes from)
{
    if (from.len >= cap || (from.len && memchr(from.at, '\0', from.len))) return false;
    if (from.len) memcpy(to, from.at, from.len);
    to[from.len] = '\0';
    return true;
}

static bool is_time(int64_t ms)
{
    return ms >= 0 && ms <= WEIR__STORE_TIME_MAX_MS;
}

bool weir__store_record(const struct weir__store_row *row, struct weir_record *out)
{
    if (row->partition < 0 || row->partition > UINT32_MAX) return false;
    *out = (struct weir_record){.partition = (uint32_t)row->partition,
                                .instance = (uint64_t)row->instance,
                                .epoch = row->epoch,
                                .acquired_ms = row->acquired_ms,
                                .modified_ms = row->modified_ms,
                                .marked = row->marked == 1,
                                .sequence = (uint64_t)row->sequence,
                                .rewinds = (uint64_t)row->rewinds};
    if (row->bad || row->epoch < 0 || row->version < 1 || row->marked < 0 || row->marked > 1 ||
        row->rewinds < 0 || row->turn < 0 || !is_time(row->acquired_ms) ||
        !is_time(row->modified_ms) || !copy_text(out->owner, sizeof out->owner, row->owner) ||
        !copy_text(out->offset, sizeof out->offset, row->offset))
        *out = (struct weir_record){.partition = out->partition, .rc = WEIR_ECORRUPT};
    else
        snprintf(out->version, sizeof out->version, "%" PRId64, row->version);
    return true;
}

bool weir__store_member(struct weir__bytes id, int64_t instance, int64_t weight, int64_t expire_ms,
                        int64_t beat_ms, struct weir_member *out)
{
    *out = (struct weir_member){.instance = (uint64_t)instance,
                                .weight = (uint32_t)weight,
                                .expire_ms = expire_ms,
                                .beat_ms = beat_ms};
    return id.len > 0 && copy_text(out->id, sizeof out->id, id) && weight >= 0 &&
           weight <= UINT32_MAX && is_time(beat_ms) && expire_ms > 0 &&
           expire_ms <= WEIR__STORE_EXPIRE_MAX_MS;
}

int64_t weir__store_version(const char *text)
{
    int64_t v = 0;

    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || v > (INT64_MAX - 9) / 10) return -1;
        v = v * 10 + (*c - '0');
    }
    return v == 0 && *text ? -1 : v;
}

/* ---- arguments ---- */

static int check_name(const char *what, const char *name, size_t max, struct weir_error *err)
{
    size_t len = name ? strnlen(name, max + 1) : 0;

    if (len == 0) return weir__fail(err, WEIR_EINVAL, "the %s has no name", what);
    if (len > max)
        return weir__fail(err, WEIR_EINVAL, "the %s's name is longer than %zu bytes", what, max);
    return 0;
}

int weir__store_check_scope(const struct weir_scope *s, struct weir_error *err)
{
    int rc = check_name("namespace", s->space, WEIR__STORE_NAME_MAX, err);

    if (rc == 0) rc = check_name("hub", s->hub, WEIR__STORE_NAME_MAX, err);
    if (rc == 0) rc = check_name("consumer group", s->group, WEIR__STORE_NAME_MAX, err);
    return rc;
}

int weir__store_check_member(const struct weir_scope *s, const struct weir_member *m,
                             struct weir_error *err)
{
    int rc = weir__store_check_scope(s, err);

    if (rc == 0) rc = check_name("copy", m->id, WEIR_OWNER_BYTES - 1, err);
    if (rc == 0 && (m->expire_ms <= 0 || m->expire_ms > WEIR__STORE_EXPIRE_MAX_MS))
        rc = weir__fail(err, WEIR_EINVAL, "an expiry of %" PRId64 " ms", m->expire_ms);
    return rc;
}

int weir__store_check_owner(const struct weir_scope *s, const char *owner, struct weir_error *err)
{
    int rc = weir__store_check_scope(s, err);

    if (rc == 0 && owner[0]) rc = check_name("owner", owner, WEIR_OWNER_BYTES - 1, err);
    return rc;
}

int weir__store_fail_alive(struct weir_error *err, const char *id, int64_t silent_ms,
                           int64_t expire_ms)
{
    return weir__fail(err, WEIR_EEXIST,
                      "a copy named '%s' is in the group already, last heard of %" PRId64
                      " ms ago; it counts as dead after %" PRId64 " ms of silence",
                      id, silent_ms > 0 ? silent_ms : 0, expire_ms);
}

int weir__store_fail_left(struct weir_error *err, const char *id)
{
    return weir__fail(err, WEIR_EFENCED, "this start of '%s' has left the group", id);
}

int weir__store_fail_moved(struct weir_error *err, uint32_t partition)
{
    return weir__fail(err, WEIR_EFENCED,
                      "the record of partition %" PRIu32 " is not the one that was read any more",
                      partition);
}

int weir__store_options(const struct weir_store_options *options, int64_t *call_ms,
                        struct weir_error *err)
{
    struct weir_store_options o;
    int rc = weir__options_copy(&o, sizeof o, options, err);

    *call_ms = o.call_ms > 0 ? o.call_ms : WEIR__STORE_CALL_MS;
    if (*call_ms > WEIR__STORE_CALL_MAX_MS) *call_ms = WEIR__STORE_CALL_MAX_MS;
    return rc;
}
