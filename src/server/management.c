/* management.c - READ: what a hub is, and how far a partition has come.
 *
 * The types of the values are part of the promise: Go, Java and C++ take nothing else. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "amqp/dialect.h"
#include "server/state.h"

/* 0001-01-01, which stands for "never". */
#define NEVER_MS INT64_C(-62135596800000)

#define ID_BYTES 8 /* of a partition's number as text */

static void put_name(struct weir__amqp_writer *w, const char *name)
{
    weir__amqp_put(w, weir__amqp_bytes(WEIR__AMQP_STRING, name, strlen(name)));
}

static void put_text(struct weir__amqp_writer *w, const char *name, const char *text)
{
    put_name(w, name);
    put_name(w, text);
}

static void put_number(struct weir__amqp_writer *w, const char *name, enum weir__amqp_type type,
                       int64_t value)
{
    put_name(w, name);
    weir__amqp_put(w, weir__amqp_signed(type, value));
}

static int put_ids(struct weir__amqp_writer *w, uint32_t count, struct weir_error *err)
{
    struct weir__bytes *ids = calloc(count, sizeof *ids + ID_BYTES);
    char *text;

    if (!ids) return weir__fail(err, WEIR_ENOMEM, "out of memory for a reply");
    text = (char *)(ids + count);
    for (uint32_t i = 0; i < count; i++, text += ID_BYTES)
        ids[i] = weir__bytes_of(text, (size_t)snprintf(text, ID_BYTES, "%" PRIu32, i % 1000000));
    put_name(w, "partition_ids");
    weir__amqp_put_array(w, WEIR__AMQP_STRING, ids, count);
    free(ids);
    return 0;
}

struct details {
    struct weir__amqp_writer *to;
    bool put;
};

static int put_details(const struct weir__catalog_hub *hub, void *user)
{
    struct details *d = user;
    int64_t retain_ms = weir__catalog_retain_ms(hub->retain_ms);

    put_number(d->to, "weir:group_count", WEIR__AMQP_INT, hub->group_count);
    put_number(d->to, "weir:retain_ms", WEIR__AMQP_LONG, retain_ms);
    put_number(d->to, "weir:retain_bytes", WEIR__AMQP_LONG, (int64_t)hub->retain_bytes);
    d->put = true;
    return 0;
}

static int put_hub(struct weir__amqp_writer *w, struct weir__hub *hub,
                   const struct weir__request *request, struct weir__refusal *r)
{
    bool wanted = weir__request_text(request, "weir:details").len > 0;
    struct details details = {.to = w};
    size_t mark = weir__amqp_put_open(w);
    int rc;

    put_text(w, "name", weir__hub_name(hub));
    put_text(w, "type", WEIR__EH_TYPE_HUB);
    put_number(w, "created_at", WEIR__AMQP_TIMESTAMP, weir__hub_created_ms(hub));
    put_number(w, "partition_count", WEIR__AMQP_INT, weir__hub_partitions(hub));
    rc = put_ids(w, weir__hub_partitions(hub), &r->why);
    put_number(w, "georeplication_factor", WEIR__AMQP_INT, 1);
    if (rc == 0 && wanted) /* our own client asks for more than Azure tells */
        rc = weir__namespace_hub_show(request->connection->server->ns, weir__hub_name(hub),
                                      put_details, &details, &r->why);
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, details.put ? 18 : 12);
    return rc;
}

static void put_properties(struct weir__amqp_writer *w, struct weir__hub *hub, const char *id,
                           const struct weir__partition_properties *p)
{
    size_t mark = weir__amqp_put_open(w);
    bool unused = p->last_sequence < 0; /* nothing was ever published there */
    char offset[24];

    snprintf(offset, sizeof offset, "%" PRId64, p->last_offset);
    put_text(w, "name", weir__hub_name(hub));
    put_text(w, "partition", id);
    put_text(w, "type", WEIR__EH_TYPE_PARTITION);
    put_number(w, WEIR__EH_BEGIN_SEQUENCE_EPOCH, WEIR__AMQP_INT, WEIR__EH_NO_EPOCH);
    put_number(w, WEIR__EH_BEGIN_SEQUENCE, WEIR__AMQP_LONG, unused ? -1 : p->begin_sequence);
    put_number(w, WEIR__EH_LAST_SEQUENCE_EPOCH, WEIR__AMQP_INT, WEIR__EH_NO_EPOCH);
    put_number(w, WEIR__EH_LAST_SEQUENCE, WEIR__AMQP_LONG, p->last_sequence);
    put_text(w, WEIR__EH_LAST_OFFSET, offset);
    put_number(w, WEIR__EH_LAST_TIME, WEIR__AMQP_TIMESTAMP, unused ? NEVER_MS : p->last_time_ms);
    put_name(w, WEIR__EH_EMPTY);
    weir__amqp_put(w, weir__amqp_unsigned(WEIR__AMQP_BOOL, p->empty));
    weir__amqp_put_close(w, mark, WEIR__AMQP_MAP, 20);
}

static int put_partition(struct weir__amqp_writer *w, struct weir__hub *hub,
                         const struct weir__request *request, struct weir__refusal *r)
{
    struct weir__bytes partition = weir__request_text(request, "partition");
    char id[WEIR__ADDRESS_PARTITION_MAX + 1] = "";
    struct weir__partition_properties p;
    int rc;

    if (partition.len < sizeof id && partition.len) memcpy(id, partition.at, partition.len);
    rc = weir__hub_partition_properties(hub, weir__address_partition(id), &p, &r->why);
    if (rc == WEIR_EINVAL) r->condition = WEIR__COND_RANGE;
    if (rc == 0) put_properties(w, hub, id, &p);
    return rc;
}

/* What can be read. */
static const struct {
    const char *type;
    int (*put)(struct weir__amqp_writer *, struct weir__hub *, const struct weir__request *,
               struct weir__refusal *);
} kinds[] = {
    {WEIR__EH_TYPE_HUB, put_hub},
    {WEIR__EH_TYPE_PARTITION, put_partition},
};

static bool is_text(struct weir__bytes b, const char *text)
{
    return b.len == strlen(text) && memcmp(b.at, text, b.len) == 0;
}

/* A token of the request's own counts, else what the connection has shown before. One for the hub's
 * $management is enough: Azure's old Event Processor Host has no other. */
static int check_access(const struct weir__request *request, const char *hub,
                        struct weir__refusal *r)
{
    struct weir__connection *c = request->connection;
    struct weir__bytes token = weir__request_text(request, "security_token");
    int64_t now_s = weir__connection_now_s(c);
    struct weir__access_grant grant;
    struct weir__access_path path;
    char resource[WEIR__HUB_NAME_MAX + sizeof "//$management"];
    int len = snprintf(resource, sizeof resource, "/%s/$management", hub), rc;
    struct weir__bytes wanted = weir__bytes_of(resource, (size_t)len);

    if (token.len) {
        rc = weir__issuer_verify_any(c->server, token, wanted, now_s, &grant, &r->why);
        if (rc == 0) weir__connection_trust(c);
        if (rc != WEIR_EDENIED) return rc;
        r->condition = WEIR__COND_AUTH_FAILED;
        weir__report_refused(c->server, "server", c->id, weir__connection_peer(c), r->why.text);
        return rc;
    }
    rc = weir__access_path_parse(&path, wanted, false, &r->why);
    if (rc != 0) return rc;
    if (weir__claims_until(&c->claims, &path, WEIR__RIGHTS_ALL, now_s)) return 0;
    return weir__claims_denied("Manage,Send,Listen", &r->why);
}

static int refuse_command(struct weir__bytes what, const char *word, struct weir__refusal *r)
{
    r->condition = WEIR__AMQP_COND_NOT_ALLOWED;
    return weir__fail(&r->why, WEIR_EINVAL, "Invalid %s '%.*s'.", word,
                      what.len < 64 ? (int)what.len : 64, what.at ? (const char *)what.at : "");
}

int weir__management_answer(const struct weir__request *request, struct weir__amqp_writer *body,
                            struct weir__refusal *r)
{
    struct weir__bytes name = weir__request_text(request, "name");
    struct weir__bytes type = weir__request_text(request, "type");
    struct weir__bytes operation = weir__request_text(request, WEIR__EH_OPERATION);
    char hub_name[WEIR__HUB_NAME_MAX + 1] = "";
    struct weir__hub *hub;
    size_t i = 0;
    int rc;

    while (i < sizeof kinds / sizeof kinds[0] && !is_text(type, kinds[i].type)) i++;
    if (!is_text(operation, WEIR__EH_READ)) return refuse_command(operation, "command", r);
    if (i == sizeof kinds / sizeof kinds[0]) return refuse_command(type, "type", r);
    if (name.len < sizeof hub_name && name.len) memcpy(hub_name, name.at, name.len);
    rc = check_access(request, hub_name, r);
    if (rc == 0) rc = weir__connection_use(request->connection, hub_name, &hub, &r->why);
    if (rc != 0) return rc;
    rc = kinds[i].put(body, hub, request, r);
    weir__hub_release(hub);
    return rc;
}
