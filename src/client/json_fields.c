#include "client/json_fields.h"

#include <errno.h>
#include <stdlib.h>

struct reader {
    struct weir__json json;
    char text[WEIR__JSON_FIELDS_TEXT_BYTES]; /* of the last token */
};

static void begin(struct reader *r, struct weir__bytes text)
{
    weir__json_init(&r->json, text);
    weir__json_lend(&r->json, r->text, sizeof r->text);
}

static int fail(struct reader *r, const char *what, struct weir_error *err)
{
    unsigned line, column;

    weir__json_place(&r->json, &line, &column);
    return weir__fail(err, WEIR_EINVAL, "line %u, column %u: %s", line, column, what);
}

static int expect(struct reader *r, enum weir__json_token wanted, const char *what,
                  struct weir_error *err)
{
    enum weir__json_token token;
    int rc = weir__json_next(&r->json, &token, err);

    return rc == 0 && token != wanted ? fail(r, what, err) : rc;
}

/* ---- values ---- */

static int check_text(struct reader *r, struct weir_error *err)
{
    for (const char *c = r->text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            return fail(r, "there are control characters in it", err);
    return 0;
}

static int take_number(struct reader *r, const struct weir__json_field *field, void *out,
                       struct weir_error *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(r->text, &end, 10);
    if (errno != 0 || *end) return fail(r, "a whole number is expected", err);
    *(int64_t *)(void *)((char *)out + field->at) = value;
    return 0;
}

static int take_text(struct reader *r, const struct weir__json_field *field, void *out,
                     struct weir_error *err)
{
    if (r->json.text_len >= field->room) return fail(r, "the text is too long", err);
    memcpy((char *)out + field->at, r->text, r->json.text_len + 1);
    return check_text(r, err);
}

static int take_texts(struct reader *r, const struct weir__json_field *field, void *out,
                      struct weir_error *err)
{
    enum weir__json_token token;
    int rc = weir__json_next(&r->json, &token, err);

    while (rc == 0 && token == WEIR__JSON_TEXT) {
        rc = check_text(r, err);
        if (rc == 0) rc = field->take(out, r->text, err);
        if (rc == 0) rc = weir__json_next(&r->json, &token, err);
    }
    return rc == 0 && token != WEIR__JSON_ARRAY_END ? fail(r, "strings are expected", err) : rc;
}

static const struct kind {
    enum weir__json_token token;
    const char *what;
    int (*take)(struct reader *, const struct weir__json_field *, void *, struct weir_error *);
} kinds[] = {
    [WEIR__JSON_FIELD_NUMBER] = {WEIR__JSON_NUMBER, "a number is expected", take_number},
    [WEIR__JSON_FIELD_TEXT] = {WEIR__JSON_TEXT, "a string is expected", take_text},
    [WEIR__JSON_FIELD_TEXTS] = {WEIR__JSON_ARRAY, "an array is expected", take_texts},
};

/* ---- objects ---- */

static const struct weir__json_field *find_field(const struct weir__json_field *fields,
                                                 const char *name)
{
    while (fields->name && strcmp(fields->name, name) != 0) fields++;
    return fields->name ? fields : NULL;
}

/* The reader's text is the member's name, and then its value. */
static int read_member(struct reader *r, const struct weir__json_field *fields, void *out,
                       struct weir_error *err)
{
    const struct weir__json_field *field = find_field(fields, r->text);
    enum weir__json_token token;
    int rc = weir__json_next(&r->json, &token, err);

    if (rc != 0) return rc;
    if (!field || token == WEIR__JSON_NULL) return weir__json_skip(&r->json, token, err);
    if (token != kinds[field->kind].token) return fail(r, kinds[field->kind].what, err);
    return kinds[field->kind].take(r, field, out, err);
}

/* Behind its brace. */
static int read_members(struct reader *r, const struct weir__json_field *fields, void *out,
                        struct weir_error *err)
{
    enum weir__json_token token;
    int rc = weir__json_next(&r->json, &token, err);

    while (rc == 0 && token == WEIR__JSON_NAME) {
        rc = read_member(r, fields, out, err);
        if (rc == 0) rc = weir__json_next(&r->json, &token, err);
    }
    return rc;
}

int weir__json_fields_read(struct weir__bytes text, const struct weir__json_field *fields,
                           void *out, struct weir_error *err)
{
    struct reader r;
    int rc;

    begin(&r, text);
    rc = expect(&r, WEIR__JSON_OBJECT, "an object is expected", err);
    if (rc == 0) rc = read_members(&r, fields, out, err);
    return rc == 0 ? expect(&r, WEIR__JSON_END, "something follows", err) : rc;
}

int weir__json_fields_list(struct weir__bytes text, const char *name,
                           const struct weir__json_field *fields, void *out, size_t size,
                           int (*show)(void *out, void *user), void *user, struct weir_error *err)
{
    enum weir__json_token token = WEIR__JSON_END;
    struct reader r;
    int rc;

    begin(&r, text);
    rc = expect(&r, WEIR__JSON_OBJECT, "an object is expected", err);
    if (rc == 0) rc = expect(&r, WEIR__JSON_NAME, "a member is expected", err);
    if (rc == 0 && strcmp(r.text, name) != 0) rc = fail(&r, "it is another member", err);
    if (rc == 0) rc = expect(&r, WEIR__JSON_ARRAY, "an array is expected", err);
    if (rc == 0) rc = weir__json_next(&r.json, &token, err);
    while (rc == 0 && token == WEIR__JSON_OBJECT) {
        memset(out, 0, size);
        rc = read_members(&r, fields, out, err);
        if (rc == 0) rc = show(out, user);
        if (rc == 0) rc = weir__json_next(&r.json, &token, err);
    }
    return rc == 0 && token != WEIR__JSON_ARRAY_END ? fail(&r, "an object is expected", err) : rc;
}
