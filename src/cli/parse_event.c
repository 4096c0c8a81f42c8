/* parse_event.c - one pass over the line; what the event points to is kept in the buffer of its text. */
#include "cli/parse_event.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/when.h"

struct reading {
    struct weir__parsed_event *to;
    struct weir__json json;
    size_t used; /* of to->text */
    struct weir_error *err;
};

static int wrong(struct reading *r, const char *what)
{
    unsigned line, column;

    weir__json_place(&r->json, &line, &column);
    return weir__fail(r->err, WEIR_EINVAL, "column %u: %s", column, what);
}

/* The next token, with its text at the end of what is used; keep makes it stay. */
static int next(struct reading *r, enum weir__json_token *token)
{
    weir__json_lend(&r->json, r->to->text + r->used, r->to->text_max - r->used);
    return weir__json_next(&r->json, token, r->err);
}

static struct weir_bytes keep(struct reading *r)
{
    struct weir_bytes text = weir_bytes(r->to->text + r->used, r->json.text_len);

    r->used += r->json.text_len + 1;
    return text;
}

/* ---- values ---- */

static int digit_of(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

/* In place. */
static bool decode_base64(struct weir_bytes *b)
{
    char *out = (char *)(uintptr_t)b->at;
    size_t len = b->len, made = 0;
    unsigned bits = 0, value = 0;

    if (len % 4) return false;
    for (int padding = 0; padding < 2 && len && b->at[len - 1] == '='; padding++) len--;
    for (size_t i = 0; i < len; i++) {
        int digit = digit_of(b->at[i]);
        if (digit < 0) return false;
        value = value << 6 | (unsigned)digit;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out[made++] = (char)(value >> bits & 255);
    }
    b->len = made;
    return true;
}

static int take_number(struct reading *r, struct weir_value *out)
{
    const char *text = r->to->text + r->used;
    char *end;

    errno = 0;
    *out = weir_value_int(strtoll(text, &end, 10));
    if (*end == '\0' && errno == 0) return 0;
    if (strpbrk(text, ".eE")) {
        *out = weir_value_double(strtod(text, NULL));
        return isfinite(out->real) ? 0 : wrong(r, "the number is too large");
    }
    errno = 0;
    out->type = WEIR_UINT;
    out->natural = strtoull(text, NULL, 10); /* which would take a minus, too */
    return errno == 0 && *text != '-' ? 0 : wrong(r, "the number is too large");
}

static int take_value(struct reading *r, struct weir_value *out)
{
    enum weir__json_token token;
    int rc = next(r, &token);

    *out = (struct weir_value){.type = WEIR_NULL};
    if (rc != 0) return rc;
    switch (token) {
    case WEIR__JSON_TEXT:
        out->type = WEIR_TEXT;
        out->bytes = keep(r);
        return 0;
    case WEIR__JSON_NUMBER: return take_number(r, out);
    case WEIR__JSON_TRUE:
    case WEIR__JSON_FALSE: *out = weir_value_bool(token == WEIR__JSON_TRUE); return 0;
    case WEIR__JSON_NULL: return 0;
    default: return wrong(r, "text, a number, true, false or null must stand here");
    }
}

/* Text, or null, which is none. */
static int take_text(struct reading *r, struct weir_bytes *out)
{
    struct weir_value v;
    int rc = take_value(r, &v);

    if (rc == 0 && v.type != WEIR_TEXT && v.type != WEIR_NULL) return wrong(r, "it must be text");
    *out = v.type == WEIR_TEXT ? v.bytes : weir_bytes(NULL, 0);
    return rc;
}

static int take_base64(struct reading *r, struct weir_bytes *out)
{
    int rc = take_text(r, out);

    if (rc == 0 && out->at && !decode_base64(out)) return wrong(r, "it is not base64");
    return rc;
}

static int take_time(struct reading *r, int64_t *out)
{
    struct weir_bytes text;
    int rc = take_text(r, &text); /* which a NUL follows */

    if (rc == 0 && (!text.at || strlen(text.at) != text.len || !weir__when_parse(text.at, out)))
        return wrong(r, "it must be a time like 2026-01-31T08:30:00Z");
    return rc;
}

/* ---- members ---- */

typedef int take_fn(struct reading *, struct weir_bytes name);

static bool is_same(struct weir_bytes a, struct weir_bytes b)
{
    return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

/* Names may have NULs in them, as all text may. */
static bool is_named(struct weir_bytes name, const char *text)
{
    return is_same(name, weir_text(text));
}

/* Every member of an object, which comes next; no name twice. */
static int take_members(struct reading *r, take_fn *take)
{
    struct weir_bytes seen[WEIR__PARSE_PROPERTIES_MAX];
    enum weir__json_token token;
    size_t count = 0;
    int rc = next(r, &token);

    if (rc == 0 && token != WEIR__JSON_OBJECT) return wrong(r, "an object must stand here");
    while (rc == 0 && (rc = next(r, &token)) == 0 && token == WEIR__JSON_NAME) {
        struct weir_bytes name = keep(r);
        for (size_t i = 0; i < count; i++)
            if (is_same(seen[i], name)) return wrong(r, "this name is there twice");
        if (count < WEIR__PARSE_PROPERTIES_MAX) seen[count++] = name; /* more are refused anyway */
        rc = take(r, name);
    }
    return rc;
}

static int take_property(struct reading *r, struct weir_bytes name)
{
    struct weir_event *e = &r->to->event;
    struct weir_property *p = &r->to->properties[e->property_count];

    if (e->property_count == WEIR__PARSE_PROPERTIES_MAX) return wrong(r, "more than 64 properties");
    e->property_count++;
    p->name = name;
    return take_value(r, &p->value);
}

static int take_group_sequence(struct reading *r)
{
    struct weir_value v;
    int rc = take_value(r, &v);

    if (rc == 0 && (v.type != WEIR_INT || v.integer < 0 || v.integer > UINT32_MAX))
        return wrong(r, "it must be a number of 32 bits");
    r->to->system.group_sequence = (uint32_t)v.integer;
    r->to->system.has_group_sequence = true;
    return rc;
}

static int take_system(struct reading *r, struct weir_bytes name)
{
    struct weir_system_properties *s = &r->to->system;
    const struct {
        const char *name;
        struct weir_bytes *to;
    } texts[] = {{"to", &s->to},
                 {"subject", &s->subject},
                 {"reply_to", &s->reply_to},
                 {"content_type", &s->content_type},
                 {"content_encoding", &s->content_encoding},
                 {"group_id", &s->group_id},
                 {"reply_to_group_id", &s->reply_to_group_id}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is_named(name, texts[i].name)) return take_text(r, texts[i].to);
    if (is_named(name, "message_id")) return take_value(r, &s->message_id);
    if (is_named(name, "correlation_id")) return take_value(r, &s->correlation_id);
    if (is_named(name, "user_id")) return take_base64(r, &s->user_id);
    if (is_named(name, "creation_time")) return take_time(r, &s->creation_time_ms);
    if (is_named(name, "absolute_expiry_time")) return take_time(r, &s->absolute_expiry_time_ms);
    if (is_named(name, "group_sequence")) return take_group_sequence(r);
    return wrong(r, "there is no such system property");
}

static int pass_over(struct reading *r)
{
    enum weir__json_token token;
    int rc = next(r, &token);

    return rc == 0 ? weir__json_skip(&r->json, token, r->err) : rc;
}

static int take_member(struct reading *r, struct weir_bytes name)
{
    static const char *const given[] = {"partition", "sequence", "offset", "enqueued_time"};
    struct weir_event *e = &r->to->event;

    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
        if (is_named(name, given[i])) return pass_over(r);
    if (e->body.at && (is_named(name, "body") || is_named(name, "body_base64")))
        return wrong(r, "there are two bodies");
    if (is_named(name, "key")) return take_text(r, &e->partition_key);
    if (is_named(name, "body")) return take_text(r, &e->body);
    if (is_named(name, "body_base64")) return take_base64(r, &e->body);
    if (is_named(name, "properties")) return take_members(r, take_property);
    if (is_named(name, "body_type"))
        return wrong(r, "a body of another type than data cannot be published");
    if (!is_named(name, "system_properties")) return wrong(r, "there is no such member");
    e->system = &r->to->system;
    return take_members(r, take_system);
}

static bool make_room(struct weir__parsed_event *p, size_t bytes)
{
    char *text;

    if (bytes <= p->text_max) return true;
    text = realloc(p->text, bytes);
    if (!text) return false;
    p->text = text;
    p->text_max = bytes;
    return true;
}

/* No string is longer than it stands in the line, its NUL in place of a quote. */
int weir__parse_event(struct weir__parsed_event *p, struct weir__bytes line, struct weir_error *err)
{
    struct reading r = {.to = p, .err = err};
    enum weir__json_token token;
    int rc;

    if (!make_room(p, line.len + 64)) return weir__fail(err, WEIR_ENOMEM, "a line of JSON");
    p->event = (struct weir_event){.properties = p->properties};
    p->system = (struct weir_system_properties){0};
    weir__json_init(&r.json, line);
    r.json.takes_nul = r.json.is_line = true;
    rc = take_members(&r, take_member);
    if (rc == 0) rc = next(&r, &token); /* the end */
    if (rc == 0 && !p->event.body.at) rc = weir__fail(err, WEIR_EINVAL, "it has no body");
    return rc;
}

void weir__parse_event_fini(struct weir__parsed_event *p)
{
    free(p->text);
}
