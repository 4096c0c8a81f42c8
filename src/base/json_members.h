/* json_members.h - the members of one JSON object, one after the other, no name twice. */
#ifndef WEIR_BASE_JSON_MEMBERS_H
#define WEIR_BASE_JSON_MEMBERS_H

#include "base/json.h"

#define WEIR__JSON_MEMBERS_MAX 128u
#define WEIR__JSON_MEMBER_NAME_MAX 255u

struct weir__json_members {
    struct weir__json *json; /* borrowed */
    uint64_t seen[WEIR__JSON_MEMBERS_MAX];
    uint32_t count;
    char name[WEIR__JSON_MEMBER_NAME_MAX + 1]; /* of the last member */
};

/* The reader has just given WEIR__JSON_OBJECT. */
void weir__json_members_init(struct weir__json_members *, struct weir__json *);

/* The next member: its name, and the first token of its value, which the caller reads to its end or
 * passes over with weir__json_skip. WEIR__JSON_OBJECT_END: there are no more. WEIR_EINVAL with the
 * place: no JSON, a name that was there before, or more or longer names than can be. */
int weir__json_members_next(struct weir__json_members *, enum weir__json_token *value,
                            struct weir_error *);

#endif
