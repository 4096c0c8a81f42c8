/* json_fields.h - JSON objects into structs, by table: members that a table knows go where it says,
 * and those that it does not know are passed over, so that a later release may have more of them. A
 * text that is known has no control characters: it may be printed. */
#ifndef WEIR_CLIENT_JSON_FIELDS_H
#define WEIR_CLIENT_JSON_FIELDS_H

#include "base/json.h"

#define WEIR__JSON_FIELDS_TEXT_BYTES 2048 /* of a string, with its NUL */

enum weir__json_field_kind {
    WEIR__JSON_FIELD_NUMBER, /* int64_t; what is not whole or does not fit is WEIR_EINVAL */
    WEIR__JSON_FIELD_TEXT,   /* char[room]; null leaves it as it is, a longer one is WEIR_EINVAL */
    WEIR__JSON_FIELD_TEXTS   /* an array: take is called with each */
};

struct weir__json_field {
    const char *name; /* NULL ends the table */
    enum weir__json_field_kind kind;
    size_t at, room; /* offsetof in the struct */
    int (*take)(void *out, const char *text, struct weir_error *);
};

/* Every text is one object. WEIR_EINVAL says what is wrong with it, and where. */
int weir__json_fields_read(struct weir__bytes text, const struct weir__json_field *, void *out,
                           struct weir_error *);

/* {"name":[OBJECT,...]}: each is read into out, which is zeroed before (size bytes), and then shown.
 * What show returns ends the list when it is not 0. */
int weir__json_fields_list(struct weir__bytes text, const char *name,
                           const struct weir__json_field *, void *out, size_t size,
                           int (*show)(void *out, void *user), void *user, struct weir_error *);

#endif
