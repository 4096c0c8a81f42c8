#include "server/posting.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>

#include "base/json.h"
#include "base/steps.h"

#define BATCH_TYPE "application/vnd.microsoft.servicebus.json"

/* One event as it is being read. */
struct event {
    struct weir__amqp_properties properties;
    struct weir__amqp_pair pairs[WEIR__POSTING_PROPERTIES_MAX];
    uint16_t sorted[WEIR__POSTING_PROPERTIES_MAX]; /* the pairs in the order of their names */
    uint32_t pair_count;
    struct weir__bytes key; /* at is NULL: none */
    struct weir__bytes data;
    bool has_data;
    struct weir__buf texts; /* what the above borrows: grown once, so that it does not move */
};

static void clear_event(struct event *e)
{
    memset(&e->properties, 0, sizeof e->properties);
    e->pair_count = 0;
    e->key = e->data = weir__bytes_of(NULL, 0);
    e->has_data = false;
    weir__buf_clear(&e->texts);
}

/* bytes: as many texts as will be kept. */
static struct event *new_event(size_t bytes)
{
    struct event *e = calloc(1, sizeof *e);

    if (!e) return NULL;
    weir__buf_init(&e->texts, bytes + 1);
    if (weir__buf_room(&e->texts, bytes + 1)) return e;
    free(e);
    return NULL;
}

static void free_event(struct event *e)
{
    if (!e) return;
    weir__buf_fini(&e->texts);
    free(e);
}

/* Texts are never longer than what they were read from, so there is room. */
static struct weir__bytes keep(struct event *e, const void *at, size_t len)
{
    const uint8_t *to = e->texts.at + e->texts.len;

    weir__buf_add(&e->texts, at, len);
    return weir__bytes_of(to, len);
}

/* Any order will do. */
static int compare(struct weir__bytes a, struct weir__bytes b)
{
    if (a.len != b.len) return a.len < b.len ? -1 : 1;
    return memcmp(a.at, b.at, a.len);
}

/* The place of a name among the sorted ones, where it is or belongs. */
static uint32_t find_place(const struct event *e, struct weir__bytes name)
{
    uint32_t place = 0, end = e->pair_count;

    while (place < end) {
        uint32_t middle = (place + end) / 2;
        WEIR__STEP();
        if (compare(name, e->pairs[e->sorted[middle]].name) > 0)
            place = middle + 1;
        else
            end = middle;
    }
    return place;
}

/* What comes twice is there once, as it was said last: a map of AMQP has no two equal names. A body
 * may say the same names again and again, so that finding one must not take long. */
static int add_pair(struct event *e, struct weir__bytes name, struct weir__amqp_value value,
                    struct weir_error *err)
{
    uint32_t place = find_place(e, name);
    struct weir__amqp_pair *p = place < e->pair_count ? &e->pairs[e->sorted[place]] : NULL;

    if (p && compare(p->name, name) == 0) {
        p->value = value;
        return 0;
    }
    if (e->pair_count == WEIR__POSTING_PROPERTIES_MAX)
        return weir__fail(err, WEIR_EINVAL, "an event has at most %d properties",
                          WEIR__POSTING_PROPERTIES_MAX);
    memmove(e->sorted + place + 1, e->sorted + place,
            (e->pair_count - place) * sizeof e->sorted[0]);
    e->sorted[place] = (uint16_t)e->pair_count;
    e->pairs[e->pair_count++] = (struct weir__amqp_pair){name, value};
    return 0;
}

static int set_key(struct event *e, struct weir__bytes key, struct weir_error *err)
{
    if (key.len > WEIR__BATCH_KEY_MAX)
        return weir__fail(err, WEIR_EINVAL, "PartitionKey has %zu bytes, at most %d are allowed",
                          key.len, WEIR__BATCH_KEY_MAX);
    e->key = key;
    return 0;
}

static int set_content_type(struct event *e, struct weir__bytes type, struct weir_error *err)
{
    for (size_t i = 0; i < type.len; i++)
        if (type.at[i] > 0x7e)
            return weir__fail(err, WEIR_EINVAL, "a content type is ASCII, byte %zu is not", i + 1);
    e->properties.content_type = weir__amqp_bytes(WEIR__AMQP_SYMBOL, type.at, type.len);
    return 0;
}

/* ---- JSON ---- */

struct reading {
    struct weir__json json;
    struct event *event;
    char *text; /* of the last name or string */
};

static int start_reading(struct reading *r, struct event *e, struct weir__bytes in,
                         struct weir_error *err)
{
    weir__json_init(&r->json, in);
    r->event = e;
    r->text = malloc(in.len + 1);
    if (!r->text) return weir__fail(err, WEIR_ENOMEM, "out of memory for a request");
    weir__json_lend(&r->json, r->text, in.len + 1);
    return 0;
}

static int next(struct reading *r, enum weir__json_token *out, struct weir_error *err)
{
    return weir__json_next(&r->json, out, err);
}

static struct weir__bytes keep_text(struct reading *r)
{
    return keep(r->event, r->text, r->json.text_len);
}

static struct weir__amqp_value number_of(const char *text)
{
    char *end;
    long long i;

    errno = 0;
    i = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0') return weir__amqp_signed(WEIR__AMQP_LONG, i);
    return (struct weir__amqp_value){.type = WEIR__AMQP_DOUBLE, .d = strtod(text, NULL)};
}

static int read_user_property(struct reading *r, struct weir_error *err)
{
    struct weir__bytes name = keep_text(r), text;
    struct weir__amqp_value value = {0};
    enum weir__json_token token;
    int rc = next(r, &token, err);

    if (rc != 0) return rc;
    switch (token) {
    case WEIR__JSON_NULL: break;
    case WEIR__JSON_TRUE:
    case WEIR__JSON_FALSE:
        value = weir__amqp_unsigned(WEIR__AMQP_BOOL, token == WEIR__JSON_TRUE);
        break;
    case WEIR__JSON_NUMBER: value = number_of(r->text); break;
    case WEIR__JSON_TEXT:
        text = keep_text(r);
        value = weir__amqp_bytes(WEIR__AMQP_STRING, text.at, text.len);
        break;
    default:
        return weir__fail(err, WEIR_EINVAL,
                          "property '%.*s' must be a text, a number, true, false or null",
                          name.len < 64 ? (int)name.len : 64, (const char *)name.at);
    }
    return add_pair(r->event, name, value, err);
}

#define AT(member) offsetof(struct weir__amqp_properties, member)

/* Names are Azure's, those behind them AMQP's. */
static const struct broker_row {
    const char *name;
    size_t offset; /* of a string in struct weir__amqp_properties, unless what follows is there */
    int (*set)(struct event *, struct weir__bytes, struct weir_error *);
} broker_rows[] = {
    {"PartitionKey", 0, set_key},
    {"ContentType", 0, set_content_type},
    {"MessageId", AT(message_id), NULL},
    {"CorrelationId", AT(correlation_id), NULL},
    {"Label", AT(subject), NULL},
    {"To", AT(to), NULL},
    {"ReplyTo", AT(reply_to), NULL},
    {"SessionId", AT(group_id), NULL},
    {"ReplyToSessionId", AT(reply_to_group_id), NULL},
};

static int read_broker_property(struct reading *r, struct weir_error *err)
{
    const struct broker_row *row = NULL;
    enum weir__json_token token;
    struct weir__bytes text;
    int rc;

    for (size_t i = 0; i < sizeof broker_rows / sizeof broker_rows[0]; i++)
        if (strcasecmp(r->text, broker_rows[i].name) == 0) row = &broker_rows[i];
    rc = next(r, &token, err);
    if (rc == 0 && !row) return weir__json_skip(&r->json, token, err);
    if (rc != 0 || token == WEIR__JSON_NULL) return rc;
    if (token != WEIR__JSON_TEXT)
        return weir__fail(err, WEIR_EINVAL, "%s must be a string", row->name);
    text = keep_text(r);
    if (row->set) return row->set(r->event, text, err);
    *(struct weir__amqp_value *)(void *)((char *)&r->event->properties + row->offset) =
        weir__amqp_bytes(WEIR__AMQP_STRING, text.at, text.len);
    return 0;
}

/* The members of an object that is about to begin, or null. */
static int read_object(struct reading *r, const char *what,
                       int (*read_member)(struct reading *, struct weir_error *),
                       struct weir_error *err)
{
    enum weir__json_token token;
    int rc = next(r, &token, err);

    if (rc != 0 || token == WEIR__JSON_NULL) return rc;
    if (token != WEIR__JSON_OBJECT)
        return weir__fail(err, WEIR_EINVAL, "%s must be an object", what);
    while (rc == 0) {
        rc = next(r, &token, err);
        if (rc != 0 || token == WEIR__JSON_OBJECT_END) return rc;
        rc = read_member(r, err);
    }
    return rc;
}

static int read_end(struct reading *r, struct weir_error *err)
{
    enum weir__json_token token;

    return next(r, &token, err); /* anything but the end is an error by itself */
}

/* ---- one event ---- */

/* Names that HTTP, proxies and Azure use; a star stands for any end. */
static const char *const known_fields[] = {
    "accept*",
    "access-control-*",
    "age",
    "alt-used",
    "authorization",
    "baggage",
    "brokerproperties",
    "cache-control",
    "connection",
    "content-*",
    "cookie",
    "date",
    "dnt",
    "expect",
    "forwarded",
    "from",
    "host",
    "if-*",
    "keep-alive",
    "max-forwards",
    "origin",
    "pragma",
    "priority",
    "proxy-*",
    "range",
    "referer",
    "sec-*",
    "servicebusauthorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "warning",
    "x-forwarded-*",
    "x-ms-*",
    "x-real-ip",
};

static bool is_known(struct weir__bytes name)
{
    for (size_t i = 0; i < sizeof known_fields / sizeof known_fields[0]; i++) {
        const char *known = known_fields[i];
        size_t len = strcspn(known, "*");
        if (name.len < len || (known[len] != '*' && name.len != len)) continue;
        if (strncasecmp((const char *)name.at, known, len) == 0) return true;
    }
    return false;
}

static int take_fields(struct event *e, const struct weir__http_request *q, struct weir_error *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < q->field_count; i++) {
        const struct weir__http_field *f = &q->fields[i];
        if (is_known(f->name)) continue;
        if (!weir__amqp_utf8(f->value))
            return weir__fail(err, WEIR_EINVAL, "property '%.*s' is not UTF-8",
                              f->name.len < 64 ? (int)f->name.len : 64, (const char *)f->name.at);
        rc = add_pair(e, f->name, weir__amqp_bytes(WEIR__AMQP_STRING, f->value.at, f->value.len),
                      err);
    }
    return rc;
}

static int take_broker_field(struct event *e, struct weir__bytes value, struct weir_error *err)
{
    struct reading r;
    int rc = start_reading(&r, e, value, err);

    if (rc == 0) rc = read_object(&r, "it", read_broker_property, err);
    if (rc == 0) rc = read_end(&r, err);
    free(r.text);
    return rc == 0 ? 0 : weir__wrap(err, rc, "BrokerProperties");
}

static int add_event(struct weir__batch_writer *w, const struct event *e, struct weir_error *err)
{
    struct weir__amqp_content content = {.properties = &e->properties,
                                         .application_properties = e->pairs,
                                         .application_property_count = e->pair_count,
                                         .data = e->data};

    return weir__batch_writer_add(w, &content, err);
}

static int read_one(struct weir__batch_writer *w, const struct weir__http_request *q,
                    struct weir__bytes body, struct weir_error *err)
{
    struct weir__bytes broker = weir__http_field(q, "brokerproperties");
    struct weir__bytes type = weir__http_field(q, "content-type");
    struct event *e = new_event(broker.len);
    int rc = 0;

    if (!e) return weir__fail(err, WEIR_ENOMEM, "out of memory for an event");
    e->data = body.len ? body : weir__bytes_of("", 0);
    if (type.at) rc = set_content_type(e, type, err);
    if (rc == 0 && broker.at) rc = take_broker_field(e, broker, err);
    if (rc == 0) rc = take_fields(e, q, err);
    if (rc == 0) rc = weir__batch_writer_start(w, e->key, err);
    if (rc == 0) rc = add_event(w, e, err);
    free_event(e);
    return rc;
}

/* ---- several ---- */

static int read_member(struct reading *r, struct weir_error *err)
{
    struct event *e = r->event;
    enum weir__json_token token;
    int rc;

    if (strcasecmp(r->text, "UserProperties") == 0)
        return read_object(r, "UserProperties", read_user_property, err);
    if (strcasecmp(r->text, "BrokerProperties") == 0)
        return read_object(r, "BrokerProperties", read_broker_property, err);
    if (strcasecmp(r->text, "Body") != 0)
        return weir__fail(err, WEIR_EINVAL,
                          "'%.64s' is none of Body, UserProperties and BrokerProperties", r->text);
    rc = next(r, &token, err);
    if (rc != 0) return rc;
    if (token != WEIR__JSON_TEXT || e->has_data)
        return weir__fail(err, WEIR_EINVAL, "Body must be there once, and be a string");
    e->has_data = true;
    e->data = keep_text(r);
    return 0;
}

/* An event of which '{' was read. */
static int read_event(struct reading *r, struct weir_error *err)
{
    enum weir__json_token token;
    int rc = 0;

    clear_event(r->event);
    while (rc == 0) {
        rc = next(r, &token, err);
        if (rc == 0 && token == WEIR__JSON_OBJECT_END) break;
        if (rc == 0) rc = read_member(r, err);
    }
    if (rc == 0 && !r->event->has_data) rc = weir__fail(err, WEIR_EINVAL, "Body is missing");
    return rc;
}

/* The first one gives the batch its key. */
static int take_event(struct weir__batch_writer *w, const struct event *e, struct weir_error *err)
{
    int rc = w->count ? 0 : weir__batch_writer_start(w, e->key, err);

    if (rc == 0 && !weir__batch_writer_has_key(w, e->key))
        rc = weir__fail(err, WEIR_EINVAL,
                        "its PartitionKey is not that of the first event, and a batch goes to one "
                        "partition");
    return rc == 0 ? add_event(w, e, err) : rc;
}

static int read_events(struct weir__batch_writer *w, struct reading *r, struct weir_error *err)
{
    enum weir__json_token token;
    int rc = next(r, &token, err);

    if (rc != 0) return rc;
    if (token != WEIR__JSON_ARRAY)
        return weir__fail(err, WEIR_EINVAL, "the body must be an array of events");
    for (uint32_t i = 0;; i++) {
        rc = next(r, &token, err);
        if (rc != 0 || token == WEIR__JSON_ARRAY_END) break;
        if (token != WEIR__JSON_OBJECT)
            rc = weir__fail(err, WEIR_EINVAL, "it must be an object");
        else
            rc = read_event(r, err);
        if (rc == 0) rc = take_event(w, r->event, err);
        if (rc != 0) return weir__wrap(err, rc, "event %u of the batch", i);
    }
    if (rc == 0) rc = read_end(r, err);
    if (rc == 0 && w->count == 0)
        rc = weir__fail(err, WEIR_EINVAL, "there is no event in the batch");
    return rc;
}

static int read_many(struct weir__batch_writer *w, struct weir__bytes body, struct weir_error *err)
{
    struct event *e = new_event(body.len);
    struct reading r = {.text = NULL};
    int rc = e ? start_reading(&r, e, body, err)
               : weir__fail(err, WEIR_ENOMEM, "out of memory for a batch");

    if (rc == 0) rc = read_events(w, &r, err);
    free(r.text);
    free_event(e);
    return rc;
}

static bool is_batch(const struct weir__http_request *q)
{
    struct weir__bytes type = weir__http_field(q, "content-type");
    size_t len = strlen(BATCH_TYPE);

    return type.len >= len && strncasecmp((const char *)type.at, BATCH_TYPE, len) == 0 &&
           (type.len == len || type.at[len] == ';' || type.at[len] == ' ');
}

int weir__posting_read(struct weir__batch_writer *w, const struct weir__http_request *q,
                       struct weir__bytes body, struct weir_error *err)
{
    return is_batch(q) ? read_many(w, body, err) : read_one(w, q, body, err);
}
