/* view.h - what the stores share: a view that grows, rows that are checked, arguments likewise. */
#ifndef WEIR_PROCESSOR_STORE_VIEW_H
#define WEIR_PROCESSOR_STORE_VIEW_H

#include "base/bytes.h"
#include "base/error.h"
#include "weir/store.h"

#define WEIR__STORE_CALL_MS 1000 /* what call_ms of 0 means: a third of the usual expiry */
#define WEIR__STORE_CALL_MAX_MS 3600000
#define WEIR__STORE_NAME_MAX 256        /* bytes of a namespace, hub or group */
#define WEIR__STORE_ROWS_MAX (1u << 20) /* members or records of one scope */
#define WEIR__STORE_EXPIRE_MAX_MS (INT64_C(1) << 40)
#define WEIR__STORE_TIME_MAX_MS (INT64_C(1) << 48) /* what a stored time can be: year 10889 */

/* A number of ours in the text of a statement. */
#define WEIR__STORE_SQL(number) WEIR__STORE_SQL_(number)
#define WEIR__STORE_SQL_(number) #number

/* A member that has been silent for so many times its expire_ms is forgotten. */
#define WEIR__STORE_FORGET 100

/* Makes room for one more behind `count` elements of `size` bytes each; *at may move. WEIR_ENOMEM,
 * or WEIR_ELIMIT at WEIR__STORE_ROWS_MAX. */
int weir__store_grow(void **at, size_t *cap, size_t count, size_t size, struct weir_error *);

/* A member that has left stays for a while with its expire_ms made negative, shown to nobody: a
 * beat that was given up and comes behind the leave would bring it back, and others would give
 * partitions to a copy that is gone. */

/* A new last element, copied; fails as weir__store_grow does. */
int weir__view_add_member(struct weir_view *, const struct weir_member *, struct weir_error *);
int weir__view_add_record(struct weir_view *, const struct weir_record *, struct weir_error *);

/* What was read into `fresh` becomes what `view` holds, its records only when `change` is another
 * one; the arrays change hands. So a read that fails half-way leaves the view as it was. */
void weir__view_take(struct weir_view *view, struct weir_view *fresh);

/* A row of a table as its database hands it over: integers signed, as databases have them, with the
 * bits of ours. */
struct weir__store_row {
    bool bad; /* a value was not of its column's type */
    int64_t partition, instance, epoch, acquired_ms, modified_ms, version, marked, sequence,
        rewinds, turn;
    struct weir__bytes owner, offset;
};

/* False: not even its partition can be told. What cannot be understood gets rc WEIR_ECORRUPT. */
bool weir__store_record(const struct weir__store_row *, struct weir_record *out);

/* False: it cannot be understood, and is left out: its next beat writes it again. */
bool weir__store_member(struct weir__bytes id, int64_t instance, int64_t weight, int64_t expire_ms,
                        int64_t beat_ms, struct weir_member *out);

/* A record's version as the number that SQL keeps: 0 for "", -1 for what is no version of ours. */
int64_t weir__store_version(const char *text);

/* WEIR_EINVAL for names that are missing or longer than the limits above. */
int weir__store_check_scope(const struct weir_scope *, struct weir_error *);
int weir__store_check_member(const struct weir_scope *, const struct weir_member *,
                             struct weir_error *);
int weir__store_check_owner(const struct weir_scope *, const char *owner, struct weir_error *);

/* WEIR_EEXIST, in the same words everywhere. */
int weir__store_fail_alive(struct weir_error *, const char *id, int64_t silent_ms,
                           int64_t expire_ms);

/* WEIR_EFENCED, likewise: this start of it has left. */
int weir__store_fail_left(struct weir_error *, const char *id);

/* WEIR_EFENCED, likewise: it was claimed by somebody else, or cannot be understood any more. */
int weir__store_fail_moved(struct weir_error *, uint32_t partition);

/* What call_ms comes to. WEIR_EINVAL: options of another age. */
int weir__store_options(const struct weir_store_options *, int64_t *call_ms, struct weir_error *);

#endif
