#include "server/order.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"
#include "hub/right.h"

/* Takes one value: the number or text that was read, or each item of an array. */
typedef int (*take_fn)(struct weir__order *, const char *text, struct weir_error *);

static int take_number(const char *text, int64_t *out, struct weir_error *err)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0') return 0;
    return weir__fail(err, WEIR_EINVAL, "%.32s is no whole number, or too large", text);
}

static int take_partitions(struct weir__order *o, const char *text, struct weir_error *err)
{
    return take_number(text, &o->partitions, err);
}

static int take_retain_ms(struct weir__order *o, const char *text, struct weir_error *err)
{
    return take_number(text, &o->retain_ms, err);
}

static int take_retain_bytes(struct weir__order *o, const char *text, struct weir_error *err)
{
    int rc = take_number(text, &o->retain_bytes, err);

    if (rc == 0 && o->retain_bytes < 0)
        rc = weir__fail(err, WEIR_EINVAL, "%.32s bytes are too few", text);
    return rc;
}

static int take_group(struct weir__order *o, const char *text, struct weir_error *err)
{
    int rc = weir__name_check(WEIR__NAME_GROUP, text, err);

    if (rc != 0) return rc;
    if (o->group_count == WEIR__CATALOG_GROUPS_MAX)
        return weir__fail(err, WEIR_EINVAL, "there are more than %d", WEIR__CATALOG_GROUPS_MAX);
    if (!o->groups) o->groups = calloc(WEIR__CATALOG_GROUPS_MAX, sizeof *o->groups);
    if (!o->groups) return weir__fail(err, WEIR_ENOMEM, "out of memory for a request");
    memcpy(o->groups[o->group_count++].name, text, strlen(text) + 1);
    return 0;
}

/* Hexadecimal, as in the name of its folder; leading zeros may be left out. */
static int take_adopt(struct weir__order *o, const char *text, struct weir_error *err)
{
    size_t len = strlen(text);
    char *end;

    if (len == 0 || len > 16 || strspn(text, "0123456789abcdef") != len)
        return weir__fail(err, WEIR_EINVAL, "'%.32s' is not the id of a folder", text);
    o->adopt = strtoull(text, &end, 16);
    return 0;
}

static int take_right(struct weir__order *o, const char *text, struct weir_error *err)
{
    for (const struct weir__right_name *r = weir__right_names; r->name; r++) {
        if (strcmp(text, r->name) != 0) continue;
        o->rights |= r->right;
        return 0;
    }
    return weir__fail(err, WEIR_EINVAL, "'%.32s' is none of send, listen and manage", text);
}

static int take_key(struct weir__order *o, enum weir__access_which which, const char *text,
                    struct weir_error *err)
{
    int rc = weir__access_key_check(text, err);

    if (rc == 0) memcpy(o->key[which], text, strlen(text) + 1);
    return rc;
}

static int take_primary(struct weir__order *o, const char *text, struct weir_error *err)
{
    return take_key(o, WEIR__KEY_PRIMARY, text, err);
}

static int take_secondary(struct weir__order *o, const char *text, struct weir_error *err)
{
    return take_key(o, WEIR__KEY_SECONDARY, text, err);
}

static const struct row {
    const char *name;
    enum weir__order_member member;
    enum weir__json_token wanted; /* WEIR__JSON_ARRAY: of texts */
    take_fn take;
} rows[] = {
    {"partitions", WEIR__ORDER_PARTITIONS, WEIR__JSON_NUMBER, take_partitions},
    {"retain_ms", WEIR__ORDER_RETAIN_MS, WEIR__JSON_NUMBER, take_retain_ms},
    {"retain_bytes", WEIR__ORDER_RETAIN_BYTES, WEIR__JSON_NUMBER, take_retain_bytes},
    {"adopt", WEIR__ORDER_ADOPT, WEIR__JSON_TEXT, take_adopt},
    {"groups", WEIR__ORDER_GROUPS, WEIR__JSON_ARRAY, take_group},
    {"rights", WEIR__ORDER_RIGHTS, WEIR__JSON_ARRAY, take_right},
    {"primary_key", WEIR__ORDER_PRIMARY, WEIR__JSON_TEXT, take_primary},
    {"secondary_key", WEIR__ORDER_SECONDARY, WEIR__JSON_TEXT, take_secondary},
};

static const char *kind_of(enum weir__json_token wanted)
{
    return wanted == WEIR__JSON_NUMBER ? "a number"
           : wanted == WEIR__JSON_TEXT ? "a text"
                                       : "an array of texts";
}

static int read_array(struct weir__order *o, struct weir__json *j, const struct row *row,
                      struct weir_error *err)
{
    enum weir__json_token token;
    int rc = 0;

    while (rc == 0) {
        rc = weir__json_next(j, &token, err);
        if (rc != 0 || token == WEIR__JSON_ARRAY_END) return rc;
        if (token != WEIR__JSON_TEXT)
            return weir__fail(err, WEIR_EINVAL, "it must be %s", kind_of(row->wanted));
        rc = row->take(o, j->text, err);
    }
    return rc;
}

static int read_value(struct weir__order *o, struct weir__json *j, const struct row *row,
                      struct weir_error *err)
{
    enum weir__json_token token;
    int rc = weir__json_next(j, &token, err);

    if (rc != 0) return rc;
    if (o->given & row->member) return weir__fail(err, WEIR_EINVAL, "it is there twice");
    if (token != row->wanted)
        return weir__fail(err, WEIR_EINVAL, "it must be %s", kind_of(row->wanted));
    o->given |= row->member;
    return token == WEIR__JSON_ARRAY ? read_array(o, j, row, err) : row->take(o, j->text, err);
}

static int read_member(struct weir__order *o, struct weir__json *j, unsigned known,
                       struct weir_error *err)
{
    int rc;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(j->text, rows[i].name) != 0 || !(known & rows[i].member)) continue;
        rc = read_value(o, j, &rows[i], err);
        return rc == 0 ? 0 : weir__wrap(err, rc, "%s", rows[i].name);
    }
    return weir__fail(err, WEIR_EINVAL, "there is no member '%.64s'", j->text);
}

static int read_members(struct weir__order *o, struct weir__json *j, unsigned known,
                        struct weir_error *err)
{
    enum weir__json_token token;
    int rc = weir__json_next(j, &token, err);

    if (rc == 0 && token != WEIR__JSON_OBJECT)
        rc = weir__fail(err, WEIR_EINVAL, "it must be a JSON object");
    while (rc == 0) {
        rc = weir__json_next(j, &token, err);
        if (rc != 0 || token == WEIR__JSON_OBJECT_END) break;
        rc = read_member(o, j, known, err);
    }
    return rc == 0 ? weir__json_next(j, &token, err) : rc; /* the end, or an error */
}

int weir__order_read(struct weir__order *o, struct weir__bytes body, unsigned known,
                     struct weir_error *err)
{
    struct weir__json j;
    int rc;

    memset(o, 0, sizeof *o);
    if (body.len == 0) return 0;
    weir__json_init(&j, body);
    rc = read_members(o, &j, known, err);
    return rc == 0 ? 0 : weir__wrap(err, rc, "the body");
}

void weir__order_fini(struct weir__order *o)
{
    free(o->groups);
    o->groups = NULL;
    o->group_count = 0;
}
