/* facts.h - JSON objects into structs, by table: members that a table knows go where it says, and
 * those that it does not know are passed over, so that a later release may have more of them. A text
 * that is known has no control characters: it may be printed. */
#ifndef WEIR_CLI_FACTS_H
#define WEIR_CLI_FACTS_H

#include "base/json.h"

#define WEIR__FACTS_TEXT_BYTES 2048 /* of a string, with its NUL */

enum weir__fact_kind {
    WEIR__FACT_NUMBER, /* int64_t; what is not whole or does not fit is WEIR_EINVAL */
    WEIR__FACT_TEXT,   /* char[room]; null leaves it as it is, a longer one is WEIR_EINVAL */
    WEIR__FACT_TEXTS   /* an array: take is called with each */
};

struct weir__fact {
    const char *name; /* NULL ends the table */
    enum weir__fact_kind kind;
    size_t at, room; /* offsetof in the struct */
    int (*take)(void *out, const char *text, struct weir_error *);
};

/* Every text is one object. WEIR_EINVAL says what is wrong with it, and where. */
int weir__facts_read(struct weir__bytes text, const struct weir__fact *, void *out,
                     struct weir_error *);

/* {"name":[OBJECT,...]}: each is read into out, which is zeroed before (size bytes), and then shown.
 * What show returns ends the list when it is not 0. */
int weir__facts_list(struct weir__bytes text, const char *name, const struct weir__fact *,
                     void *out, size_t size, int (*show)(void *out, void *user), void *user,
                     struct weir_error *);

#endif
