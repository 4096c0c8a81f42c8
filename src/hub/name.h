/* name.h - what hubs, consumer groups and access rules may be called.
 *
 * Azure's grammar without the slash: letters, digits, '.', '-' and '_', beginning and ending with a
 * letter or a digit. Names are kept as given and compared without regard to case. The group
 * `$Default` is the one name outside the grammar; every hub has it. */
#ifndef WEIR_HUB_NAME_H
#define WEIR_HUB_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define WEIR__HUB_NAME_MAX 256 /* bytes, without the NUL */
#define WEIR__GROUP_NAME_MAX 50
#define WEIR__RULE_NAME_MAX 256

#define WEIR__GROUP_DEFAULT "$Default"

enum weir__name_kind { WEIR__NAME_HUB, WEIR__NAME_GROUP, WEIR__NAME_RULE, WEIR__NAME_KINDS };

/* WEIR_EINVAL says which character is wrong, and where. A NULL name is wrong too. */
int weir__name_check(enum weir__name_kind, const char *name, struct weir_error *);

/* The same for bytes that nobody vouches for and that no NUL ends. */
int weir__name_check_bytes(enum weir__name_kind, const void *at, size_t len, struct weir_error *);

bool weir__name_equal(const char *a, const char *b);

#endif
