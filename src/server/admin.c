/* admin.c - hubs and their groups, made, shown and deleted by HTTP. On the worker: changes wait for
 * the disk, and are durable when they are answered.
 *
 *   GET             /$weir/hubs                   {"hubs":[HUB,...]}
 *   GET PUT DELETE  /$weir/hubs/NAME              HUB; GET has KEPT in it, too
 *   PATCH           /$weir/hubs/NAME              HUB
 *   GET             /$weir/orphans                {"orphans":[{"id":"2a","partitions":4},...]}
 *   GET             /$weir/hubs/NAME/groups       {"groups":["$Default",...]}
 *   GET PUT DELETE  /$weir/hubs/NAME/groups/G     {"name":"G"}
 *
 *   HUB = {"name":"homes","partitions":4,"created_ms":1700000000000,"retain_ms":604800000,
 *          "retain_bytes":0,"groups":["$Default"]}
 *   KEPT = "stored_bytes":0,"disk_bytes":0,...      all of struct weir_hub_stats
 *
 * retain_ms is negative for ever, retain_bytes 0 for no limit. PUT makes what is not there (201)
 * and agrees with what is the same (200; groups are added); what is given and differs is 409. With
 * "If-None-Match: *" it only makes: 412 when it is there. With "adopt" it makes a hub of an orphan.
 * PATCH changes partitions, retain_ms and retain_bytes, those that are given. */
#include <inttypes.h>
#include <stdlib.h>

#include "server/order.h"
#include "server/web.h"

#define PARTITIONS_DEFAULT 4

/* ---- looking ---- */

static void write_groups(struct weir__answer *a, const struct weir__catalog_hub *hub)
{
    weir__answer_add(a, "\"groups\":[");
    for (uint32_t i = 0; i < hub->group_count; i++) {
        weir__answer_add(a, "%s", i ? "," : "");
        weir__answer_quote(a, hub->groups[i].name);
    }
    weir__answer_add(a, "]");
}

/* Without its closing brace. */
static int begin_hub(const struct weir__catalog_hub *hub, void *user)
{
    struct weir__answer *a = user;

    if (a->body.len && a->body.at[a->body.len - 1] == '}') weir__answer_add(a, ",");
    weir__answer_add(a, "{\"name\":");
    weir__answer_quote(a, hub->name);
    weir__answer_add(a,
                     ",\"partitions\":%" PRIu32 ",\"created_ms\":%" PRId64 ",\"retain_ms\":%" PRId64
                     ",\"retain_bytes\":%" PRIu64 ",",
                     hub->partitions, hub->created_ms, weir__catalog_retain_ms(hub->retain_ms),
                     hub->retain_bytes);
    write_groups(a, hub);
    return 0;
}

static int write_hub(const struct weir__catalog_hub *hub, void *user)
{
    begin_hub(hub, user);
    weir__answer_add(user, "}");
    return 0;
}

static int write_group_list(const struct weir__catalog_hub *hub, void *user)
{
    struct weir__answer *a = user;

    weir__answer_add(a, "{");
    write_groups(a, hub);
    weir__answer_add(a, "}");
    return 0;
}

/* Answers with what a function writes of the hub that the path names. */
static bool show(struct weir__visit *v, unsigned status, weir__namespace_hub_fn write)
{
    struct weir_error err;
    int rc = weir__namespace_hub_show(v->server->ns, v->star[0], write, &v->answer, &err);

    weir__answer_json(v, status);
    if (rc != 0) weir__answer_failure(v, &err);
    return true;
}

static bool fail(struct weir__visit *v, const struct weir_error *err)
{
    weir__answer_failure(v, err);
    return true;
}

bool weir__admin_list_hubs(struct weir__visit *v)
{
    weir__answer_add(&v->answer, "{\"hubs\":[");
    weir__namespace_hub_each(v->server->ns, write_hub, &v->answer);
    weir__answer_add(&v->answer, "]}");
    weir__answer_json(v, 200);
    return true;
}

static void write_counters(struct weir__answer *a, const struct weir__hub_stats *s)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"segments", s->log.segments},     {"batches_in", s->log.batches},
        {"events_in", s->log.events},      {"bytes_in", s->log.bytes},
        {"batches_refused", s->refused},   {"events_out", s->delivered_events},
        {"bytes_out", s->delivered_bytes}, {"syncs", s->log.syncs},
        {"receivers", s->receivers},       {"damaged_ranges", s->log.damaged_ranges},
        {"producers", s->log.producers},   {"producers_forgotten", s->log.producers_forgotten},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        weir__answer_add(a, ",\"%s\":%" PRIu64, rows[i].name, rows[i].value);
}

/* What a hub keeps; nothing of one that cannot be opened. */
static void write_kept(struct weir__answer *a, struct weir__namespace *ns, const char *name)
{
    struct weir__hub_stats s;
    struct weir__hub *hub;

    if (weir__namespace_use(ns, name, &hub, NULL) != 0) return;
    weir__hub_stats(hub, &s);
    weir__hub_release(hub);
    weir__answer_add(a,
                     ",\"stored_bytes\":%" PRIu64 ",\"disk_bytes\":%" PRIu64
                     ",\"disk_bytes_max\":%" PRIu64 ",\"begin_time_ms\":%" PRId64
                     ",\"next_expiry_bytes\":%" PRIu64 ",\"next_expiry_ms\":%" PRId64,
                     s.log.stored_bytes, s.log.disk_bytes, s.log.disk_bytes_max,
                     s.log.begin_time_ms, s.log.next_expiry_bytes, s.log.next_expiry_ms);
    write_counters(a, &s);
}

bool weir__admin_show_hub(struct weir__visit *v)
{
    struct weir__namespace *ns = v->server->ns;
    struct weir_error err;

    if (weir__namespace_hub_show(ns, v->star[0], begin_hub, &v->answer, &err) != 0)
        return fail(v, &err);
    write_kept(&v->answer, ns, v->star[0]);
    weir__answer_add(&v->answer, "}");
    weir__answer_json(v, 200);
    return true;
}

static int write_orphan(const struct weir__orphan *o, void *user)
{
    struct weir__answer *a = user;

    if (a->body.len && a->body.at[a->body.len - 1] == '}') weir__answer_add(a, ",");
    weir__answer_add(a, "{\"id\":\"%" PRIx64 "\",\"partitions\":%" PRIu32 "}", o->id,
                     o->partitions);
    return 0;
}

bool weir__admin_list_orphans(struct weir__visit *v)
{
    weir__answer_add(&v->answer, "{\"orphans\":[");
    weir__namespace_orphan_each(v->server->ns, write_orphan, &v->answer);
    weir__answer_add(&v->answer, "]}");
    weir__answer_json(v, 200);
    return true;
}

bool weir__admin_list_groups(struct weir__visit *v)
{
    return show(v, 200, write_group_list);
}

/* ---- making ---- */

struct agreement {
    const char *name;
    const struct weir__order *order;
    struct weir_error *err;
};

static int differ(const struct agreement *a, const char *what, int64_t there, int64_t wanted)
{
    return weir__fail(a->err, WEIR_EEXIST,
                      "hub '%s' has %s %" PRId64 ", not %" PRId64 "; PATCH changes it", a->name,
                      what, there, wanted);
}

/* What is given must be what is there. */
static int agree(const struct weir__catalog_hub *hub, void *user)
{
    const struct agreement *a = user;
    const struct weir__order *o = a->order;

    if (o->given & WEIR__ORDER_PARTITIONS && o->partitions != hub->partitions)
        return differ(a, "partitions", hub->partitions, o->partitions);
    if (o->given & WEIR__ORDER_RETAIN_MS &&
        weir__catalog_retain_ms(o->retain_ms) != weir__catalog_retain_ms(hub->retain_ms))
        return differ(a, "retain_ms", weir__catalog_retain_ms(hub->retain_ms),
                      weir__catalog_retain_ms(o->retain_ms));
    if (o->given & WEIR__ORDER_RETAIN_BYTES && (uint64_t)o->retain_bytes != hub->retain_bytes)
        return differ(a, "retain_bytes", (int64_t)hub->retain_bytes, o->retain_bytes);
    return 0;
}

static int agree_hub(struct weir__namespace *ns, const char *name, const struct weir__order *o,
                     struct weir_error *err)
{
    struct agreement a = {name, o, err};
    int rc = weir__namespace_hub_show(ns, name, agree, &a, err);

    for (uint32_t i = 0; rc == 0 && i < o->group_count; i++) {
        rc = weir__namespace_group_add(ns, name, o->groups[i].name, err);
        if (rc == WEIR_EEXIST) rc = 0;
    }
    return rc;
}

/* Opens the log of a hub that was made just now, so that the first client does not have to wait for
 * that on a loop. When threads, memory or descriptors have run out the hub is there all the same, and
 * the first client opens it. */
static int open_made(struct weir__namespace *ns, const char *name, struct weir_error *err)
{
    struct weir__hub *hub;
    int rc = weir__namespace_use(ns, name, &hub, err);

    if (rc == 0) weir__hub_release(hub);
    return weir_error_class(rc) == WEIR_CLASS_RETRY ? 0 : rc;
}

static int create_hub(struct weir__namespace *ns, const char *name, const struct weir__order *o,
                      struct weir_error *err)
{
    const char **groups = calloc(o->group_count + 1, sizeof *groups);
    struct weir__hub_config config = {
        .name = name,
        .partitions = PARTITIONS_DEFAULT,
        .retain_ms = o->retain_ms,
        .retain_bytes = (uint64_t)o->retain_bytes,
        .groups = groups,
        .group_count = o->group_count,
    };
    int rc;

    if (!groups) return weir__fail(err, WEIR_ENOMEM, "out of memory for a request");
    if (o->given & WEIR__ORDER_PARTITIONS) /* none are wrong, and so is what does not fit */
        config.partitions =
            o->partitions < 0 || o->partitions > UINT32_MAX ? 0 : (uint32_t)o->partitions;
    for (uint32_t i = 0; i < o->group_count; i++) groups[i] = o->groups[i].name;
    rc = weir__namespace_hub_create(ns, &config, err);
    free(groups);
    return rc == 0 ? open_made(ns, name, err) : rc;
}

/* "adopt" goes alone. */
static int make_hub(struct weir__namespace *ns, const char *name, const struct weir__order *o,
                    struct weir_error *err)
{
    if (!(o->given & WEIR__ORDER_ADOPT)) return create_hub(ns, name, o, err);
    if (o->given != WEIR__ORDER_ADOPT)
        return weir__fail(err, WEIR_EINVAL, "the body: 'adopt' goes without other members");
    return weir__namespace_adopt(ns, o->adopt, name, err);
}

bool weir__admin_put_hub(struct weir__visit *v)
{
    struct weir__namespace *ns = v->server->ns;
    struct weir__order order;
    struct weir_error err;
    unsigned status = 201;
    int rc = weir__order_read(&order, weir__buf_bytes(&v->body), WEIR__ORDER_HUB, &err);

    if (rc == 0) rc = make_hub(ns, v->star[0], &order, &err);
    if (rc == 0) weir__server_keep_descriptors(v->server);
    if (rc == WEIR_EEXIST && !weir__visit_only_new(v) && !(order.given & WEIR__ORDER_ADOPT)) {
        status = 200;
        rc = agree_hub(ns, v->star[0], &order, &err);
    }
    weir__order_fini(&order);
    return rc == 0 ? show(v, status, write_hub) : fail(v, &err);
}

_Static_assert((int)WEIR__ORDER_PARTITIONS == WEIR__HUB_PARTITIONS &&
                   (int)WEIR__ORDER_RETAIN_MS == WEIR__HUB_RETAIN_MS &&
                   (int)WEIR__ORDER_RETAIN_BYTES == WEIR__HUB_RETAIN_BYTES,
               "members that can be changed are the same bits in both");

bool weir__admin_change_hub(struct weir__visit *v)
{
    struct weir__order o;
    struct weir_error err;
    int rc = weir__order_read(&o, weir__buf_bytes(&v->body), WEIR__ORDER_CHANGES, &err);
    struct weir__hub_changes changes = {
        .given = o.given,
        .partitions = o.partitions < 0 || o.partitions > UINT32_MAX ? 0 : (uint32_t)o.partitions,
        .retain_ms = o.retain_ms,
        .retain_bytes = (uint64_t)o.retain_bytes,
    };

    if (rc == 0) rc = weir__namespace_hub_update(v->server->ns, v->star[0], &changes, &err);
    weir__order_fini(&o);
    return rc == 0 ? show(v, 200, write_hub) : fail(v, &err);
}

bool weir__admin_delete_hub(struct weir__visit *v)
{
    struct weir_error err;

    if (weir__namespace_hub_delete(v->server->ns, v->star[0], &err) != 0) return fail(v, &err);
    weir__answer_empty(v, 204);
    return true;
}

/* ---- groups ---- */

static bool answer_group(struct weir__visit *v, unsigned status)
{
    weir__answer_add(&v->answer, "{\"name\":");
    weir__answer_quote(&v->answer, v->star[1]);
    weir__answer_add(&v->answer, "}");
    weir__answer_json(v, status);
    return true;
}

#define NO_GROUP 1

static int find_group(const struct weir__catalog_hub *hub, void *user)
{
    const struct weir__visit *v = user;

    return weir__catalog_group(hub, v->star[1]) ? 0 : NO_GROUP;
}

bool weir__admin_show_group(struct weir__visit *v)
{
    struct weir_error err;
    int rc = weir__namespace_hub_show(v->server->ns, v->star[0], find_group, v, &err);

    if (rc == 0) return answer_group(v, 200);
    if (rc != NO_GROUP) return fail(v, &err);
    weir__answer_error(v, 404, "The consumer group '%s' could not be found.", v->star[1]);
    return true;
}

bool weir__admin_put_group(struct weir__visit *v)
{
    struct weir_error err;
    int rc = weir__namespace_group_add(v->server->ns, v->star[0], v->star[1], &err);

    if (rc == WEIR_EEXIST && !weir__visit_only_new(v)) return answer_group(v, 200);
    return rc == 0 ? answer_group(v, 201) : fail(v, &err);
}

bool weir__admin_delete_group(struct weir__visit *v)
{
    struct weir_error err;

    if (weir__namespace_group_remove(v->server->ns, v->star[0], v->star[1], &err) != 0)
        return fail(v, &err);
    weir__answer_empty(v, 204);
    return true;
}
