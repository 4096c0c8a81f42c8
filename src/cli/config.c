/* config.c - the tables below are the file's form:
 *
 *   {"UserConfig": {
 *      "NamespaceConfig": [{"Type": "EventHub", "Name": "emulatorNs1", "Entities": [
 *         {"Name": "eh1", "PartitionCount": 2, "ConsumerGroups": [{"Name": "cg1"}]}]}],
 *      "LoggingConfig": {"Type": "File"}}}
 *
 * Names are matched without regard to case and numbers may be strings, as the emulator has it. Of
 * namespaces there is one. */
#include "cli/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/file_text.h"

struct config {
    const char *path;
    struct weir__json json;
    enum weir__json_token token; /* the last */
    struct weir__wanted *wanted;
    struct weir__wanted_hub *hub; /* that is being read */
    struct weir__warnings *warnings;
    unsigned namespaces;
};

/* A member of an object. read finds the value's first token in c->token. */
struct field {
    const char *name;
    int (*read)(struct config *, struct weir_error *);
    bool required;
};

static int next(struct config *c, struct weir_error *err)
{
    return weir__json_next(&c->json, &c->token, err);
}

static int skip(struct config *c, struct weir_error *err)
{
    return weir__json_skip(&c->json, c->token, err);
}

/* Puts the place of the last token before the text. */
static int place(struct config *c, int rc, struct weir_error *err)
{
    unsigned line, column;

    weir__json_place(&c->json, &line, &column);
    return weir__wrap(err, rc, "line %u, column %u", line, column);
}

static int expect(struct config *c, enum weir__json_token token, const char *what,
                  struct weir_error *err)
{
    if (c->token == token) return 0;
    return place(c, weir__fail(err, WEIR_EINVAL, "%s should be here", what), err);
}

static const struct field *find_field(const struct field *fields, const char *name)
{
    while (fields->name && strcasecmp(fields->name, name) != 0) fields++;
    return fields;
}

/* The value behind a name; *seen has a bit for each field that was there. */
static int read_member(struct config *c, const struct field *fields, unsigned *seen,
                       struct weir_error *err)
{
    const struct field *f = find_field(fields, c->json.text);
    unsigned bit = 1u << (f - fields), line, column;
    int rc;

    weir__json_place(&c->json, &line, &column);
    if (!f->name)
        weir__warn(c->warnings, "%s:%u:%u: '%.64s' is not known and is passed over", c->path, line,
                   column, c->json.text);
    else if (*seen & bit)
        return place(c, weir__fail(err, WEIR_EINVAL, "'%s' stands here twice", f->name), err);
    *seen |= bit;
    rc = next(c, err);
    if (rc == 0) rc = f->read ? f->read(c, err) : skip(c, err);
    return rc;
}

static int read_object(struct config *c, const struct field *fields, struct weir_error *err)
{
    struct weir__json at = c->json; /* for its place */
    unsigned seen = 0;
    int rc = expect(c, WEIR__JSON_OBJECT, "an object, {...},", err);

    while (rc == 0) {
        rc = next(c, err);
        if (rc != 0 || c->token == WEIR__JSON_OBJECT_END) break;
        rc = read_member(c, fields, &seen, err);
    }
    for (unsigned i = 0; rc == 0 && fields[i].name; i++) {
        if (!fields[i].required || seen & 1u << i) continue;
        c->json = at;
        rc = place(c, weir__fail(err, WEIR_EINVAL, "'%s' is missing", fields[i].name), err);
    }
    return rc;
}

static int read_array(struct config *c, int (*item)(struct config *, struct weir_error *),
                      struct weir_error *err)
{
    int rc;

    if (c->token == WEIR__JSON_NULL) return 0;
    rc = expect(c, WEIR__JSON_ARRAY, "an array, [...],", err);
    while (rc == 0) {
        rc = next(c, err);
        if (rc != 0 || c->token == WEIR__JSON_ARRAY_END) break;
        rc = item(c, err);
    }
    return rc;
}

/* ---- from the inside out ---- */

static int read_group_name(struct config *c, struct weir_error *err)
{
    int rc = expect(c, WEIR__JSON_TEXT, "the name of a consumer group", err);

    if (rc != 0) return rc;
    rc = weir__wanted_add_group(c->hub, c->json.text, err);
    return rc == 0 ? 0 : place(c, rc, err);
}

static const struct field group_fields[] = {{"Name", read_group_name, true}, {0}};

static int read_group(struct config *c, struct weir_error *err)
{
    return read_object(c, group_fields, err);
}

static int read_groups(struct config *c, struct weir_error *err)
{
    return read_array(c, read_group, err);
}

static int read_hub_name(struct config *c, struct weir_error *err)
{
    int rc = expect(c, WEIR__JSON_TEXT, "the name of a hub", err);

    if (rc != 0) return rc;
    rc = weir__wanted_set_name(c->hub, c->json.text, err);
    return rc == 0 ? 0 : place(c, rc, err);
}

static int read_partitions(struct config *c, struct weir_error *err)
{
    int rc = c->token == WEIR__JSON_TEXT ? 0 : expect(c, WEIR__JSON_NUMBER, "a number", err);

    if (rc != 0) return rc;
    rc = weir__wanted_set_partitions(c->hub, c->json.text, err);
    return rc == 0 ? 0 : place(c, rc, err);
}

static const struct field hub_fields[] = {{"Name", read_hub_name, true},
                                          {"PartitionCount", read_partitions, true},
                                          {"ConsumerGroups", read_groups, false},
                                          {0}};

static int read_hub(struct config *c, struct weir_error *err)
{
    char from[WEIR__WANTED_FROM_BYTES];
    unsigned line, column;
    int rc;

    weir__json_place(&c->json, &line, &column);
    snprintf(from, sizeof from, "%.120s:%u:%u", c->path, line, column);
    rc = weir__wanted_add(c->wanted, from, &c->hub, err);
    return rc == 0 ? read_object(c, hub_fields, err) : place(c, rc, err);
}

static int read_hubs(struct config *c, struct weir_error *err)
{
    return read_array(c, read_hub, err);
}

static int read_type(struct config *c, struct weir_error *err)
{
    int rc = expect(c, WEIR__JSON_TEXT, "\"EventHub\"", err);

    if (rc != 0 || strcasecmp(c->json.text, "EventHub") == 0) return rc;
    return place(c,
                 weir__fail(err, WEIR_EINVAL,
                            "a namespace of type '%.32s': only EventHub is served", c->json.text),
                 err);
}

static const struct field namespace_fields[] = {{"Type", read_type, false},
                                                {"Name", NULL, false},
                                                {"Entities", read_hubs, true},
                                                {0}};

static int read_namespace(struct config *c, struct weir_error *err)
{
    if (c->namespaces++ > 0)
        return place(c, weir__fail(err, WEIR_EINVAL, "a second namespace: there is only one"), err);
    return read_object(c, namespace_fields, err);
}

static int read_namespaces(struct config *c, struct weir_error *err)
{
    return read_array(c, read_namespace, err);
}

static const struct field user_fields[] = {{"NamespaceConfig", read_namespaces, true},
                                           {"LoggingConfig", NULL, false},
                                           {0}};

static int read_user(struct config *c, struct weir_error *err)
{
    return read_object(c, user_fields, err);
}

static const struct field top_fields[] = {{"UserConfig", read_user, true},
                                          {"$schema", NULL, false},
                                          {0}};

/* ---- the file ---- */

int weir__config_read(const char *path, struct weir__wanted *wanted,
                      struct weir__warnings *warnings, struct weir_error *err)
{
    struct config c = {.path = path, .wanted = wanted, .warnings = warnings};
    struct weir__buf buf;
    int rc;

    rc = weir__file_text(path, WEIR__CONFIG_BYTES_MAX, &buf, err);
    if (rc == 0) {
        weir__json_init(&c.json, weir__buf_bytes(&buf));
        rc = next(&c, err);
    }
    if (rc == 0) rc = read_object(&c, top_fields, err);
    if (rc == 0) rc = next(&c, err); /* which says so when there is more */
    weir__buf_fini(&buf);
    return rc == 0 ? 0 : weir__wrap(err, rc, "%.256s", path);
}
