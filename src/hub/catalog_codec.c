/* catalog_codec.c - one copy of the catalogue as bytes. Integers are little-endian.
 *
 *   at  bytes
 *    0      8  magic "weir cat"
 *    8      4  version, 2
 *   12      4  body bytes
 *   16      8  generation
 *   24      4  CRC-32C of the body
 *   28      4  CRC-32C of the 28 bytes before; these 32 bytes are the same in every version
 *   32         body; what follows it in the file is left over and means nothing
 *
 *   body    next hub id (8) | removed (4) | id (8) | id (8) | ... | rules | hubs (4) | hub | hub | ...
 *   hub     id (8) | partitions (4) | created ms (8) | retain ms (8) | retain bytes (8) |
 *           producers (8) | name | groups (2) | name | name | ... | rules
 *   rules   count (2) | rights (1) name key key | ...
 *   name, key   length (2) | bytes
 *
 * Version 1 has no `removed`.
 *
 * A good checksum proves that we wrote it, not that we wrote it well: everything is checked again
 * when it is read, names and limits included. */
#include "base/crc.h"
#include "hub/catalog.h"
#include "log/log.h"

#define HEADER_BYTES WEIR__CATALOG_HEADER_BYTES
#define HEADER_CRC_AT 28

#define HUB_BYTES_MIN 50 /* of a hub with an empty name, no group and no rule */
#define RULE_BYTES_MIN 7
#define VERSION_FIRST 1
#define VERSION_REMOVED 2 /* the first that has them */

static const char magic[8] = {'w', 'e', 'i', 'r', ' ', 'c', 'a', 't'};

/* ---- writing: the first failure sticks ---- */

struct out {
    struct weir__buf *buf;
    int rc;
};

static void put_raw(struct out *o, const void *at, size_t len)
{
    if (o->rc == 0 && !weir__buf_add(o->buf, at, len))
        o->rc = len > o->buf->max - o->buf->len ? WEIR_ELIMIT : WEIR_ENOMEM;
}

/* The low `bytes` bytes of v; the host is little-endian (base/bytes.h). */
static void put_int(struct out *o, uint64_t v, size_t bytes)
{
    put_raw(o, &v, bytes);
}

static void put_text(struct out *o, const char *text)
{
    size_t len = strlen(text);

    put_int(o, len, 2);
    put_raw(o, text, len);
}

static void put_rules(struct out *o, const struct weir__rule *rules, uint32_t count)
{
    put_int(o, count, 2);
    for (uint32_t i = 0; i < count; i++) {
        put_int(o, rules[i].rights, 1);
        put_text(o, rules[i].name);
        for (int k = 0; k < WEIR__KEYS; k++) put_text(o, rules[i].key[k]);
    }
}

static void put_hub(struct out *o, const struct weir__catalog_hub *h)
{
    put_int(o, h->id, 8);
    put_int(o, h->partitions, 4);
    put_int(o, (uint64_t)h->created_ms, 8);
    put_int(o, (uint64_t)h->retain_ms, 8);
    put_int(o, h->retain_bytes, 8);
    put_int(o, h->producers, 8);
    put_text(o, h->name);
    put_int(o, h->group_count, 2);
    for (uint32_t i = 0; i < h->group_count; i++) put_text(o, h->groups[i].name);
    put_rules(o, h->rules, h->rule_count);
}

static void fill_header(uint8_t *header, uint64_t generation, const uint8_t *body, size_t len)
{
    memcpy(header, magic, sizeof magic);
    weir__store32(header + 8, WEIR__CATALOG_VERSION);
    weir__store32(header + 12, (uint32_t)len);
    weir__store64(header + 16, generation);
    weir__store32(header + 24, weir__crc32c(0, body, len));
    weir__store32(header + HEADER_CRC_AT, weir__crc32c(0, header, HEADER_CRC_AT));
}

int weir__catalog_encode(const struct weir__catalog *c, struct weir__buf *buf,
                         struct weir_error *err)
{
    struct out o = {.buf = buf};
    uint8_t header[HEADER_BYTES] = {0};

    weir__buf_clear(buf);
    put_raw(&o, header, sizeof header);
    put_int(&o, c->next_hub_id, 8);
    put_int(&o, c->removed_count, 4);
    for (uint32_t i = 0; i < c->removed_count; i++) put_int(&o, c->removed[i], 8);
    put_rules(&o, c->rules, c->rule_count);
    put_int(&o, c->hub_count, 4);
    for (uint32_t i = 0; i < c->hub_count; i++) put_hub(&o, &c->hubs[i]);
    if (o.rc == WEIR_ELIMIT)
        return weir__fail(err, o.rc, "the catalogue is larger than %zu bytes", buf->max);
    if (o.rc != 0) return weir__fail(err, o.rc, "out of memory for the catalogue");
    fill_header(buf->at, c->generation, buf->at + HEADER_BYTES, buf->len - HEADER_BYTES);
    return 0;
}

/* ---- reading: the first failure sticks and empties the cursor ---- */

struct in {
    const uint8_t *start, *at, *end;
    struct weir_error *err;
    int rc;
};

static void stop(struct in *in, const char *why)
{
    if (in->rc == 0)
        in->rc = weir__fail(in->err, WEIR_ECORRUPT, "%s at byte %zu of the catalogue's body", why,
                            (size_t)(in->at - in->start));
    in->end = in->at;
}

static const uint8_t *take(struct in *in, size_t len)
{
    const uint8_t *p = in->at;

    if (len > (size_t)(in->end - in->at)) {
        stop(in, "ends too early");
        return NULL;
    }
    in->at += len;
    return p;
}

/* 0 after a failure. */
static uint64_t get_int(struct in *in, size_t bytes)
{
    const uint8_t *p = take(in, bytes);
    uint64_t v = 0;

    if (p) memcpy(&v, p, bytes);
    return v;
}

/* A count of things that take at least `each` bytes, so that it cannot ask for more memory than
 * the file is worth. */
static uint32_t get_count(struct in *in, size_t bytes, uint32_t max, size_t each)
{
    uint64_t count = get_int(in, bytes);

    if (count > max || count > (size_t)(in->end - in->at) / each) {
        stop(in, "too many things");
        return 0;
    }
    return (uint32_t)count;
}

/* A text of at most max bytes into max + 1; a NUL in it is left to the checks that follow. */
static size_t get_text(struct in *in, char *out, size_t max)
{
    size_t len = get_int(in, 2);
    const uint8_t *p = len <= max ? take(in, len) : NULL;

    if (!p) {
        stop(in, "a text is too long");
        len = 0;
    }
    if (len) memcpy(out, p, len);
    out[len] = '\0';
    return len;
}

static void get_name(struct in *in, enum weir__name_kind kind, char *out, size_t max)
{
    size_t len = get_text(in, out, max);

    if (in->rc == 0 && weir__name_check_bytes(kind, out, len, NULL) != 0) stop(in, "a bad name");
}

static void get_rule(struct in *in, struct weir__rule *rule)
{
    rule->rights = (unsigned)get_int(in, 1);
    get_name(in, WEIR__NAME_RULE, rule->name, WEIR__RULE_NAME_MAX);
    for (int k = 0; k < WEIR__KEYS; k++) {
        size_t len = get_text(in, rule->key[k], WEIR__ACCESS_KEY_MAX);
        if (strlen(rule->key[k]) != len || weir__access_key_check(rule->key[k], NULL) != 0)
            stop(in, "a bad key");
    }
    if (rule->rights == 0 || rule->rights > WEIR__RIGHTS_ALL) stop(in, "bad rights");
}

static void get_rules(struct in *in, struct weir__rule **rules, uint32_t *rule_count)
{
    uint32_t count = get_count(in, 2, WEIR__ACCESS_RULES_MAX, RULE_BYTES_MIN);

    for (uint32_t i = 0; in->rc == 0 && i < count; i++) {
        struct weir__rule rule = {0};
        get_rule(in, &rule);
        if (weir__catalog_rule(*rules, *rule_count, rule.name)) stop(in, "a rule is there twice");
        if (in->rc == 0) in->rc = weir__catalog_add_rule(rules, rule_count, &rule, in->err);
    }
}

static void get_groups(struct in *in, struct weir__catalog_hub *h)
{
    uint32_t count = get_count(in, 2, WEIR__CATALOG_GROUPS_MAX, 2);

    for (uint32_t i = 0; in->rc == 0 && i < count; i++) {
        char name[WEIR__GROUP_NAME_MAX + 1];
        get_name(in, WEIR__NAME_GROUP, name, WEIR__GROUP_NAME_MAX);
        if (in->rc == 0 && weir__catalog_group(h, name)) stop(in, "a group is there twice");
        if (in->rc == 0) in->rc = weir__catalog_add_group(h, name, in->err);
    }
    if (in->rc == 0 && !weir__catalog_group(h, WEIR__GROUP_DEFAULT))
        stop(in, "a hub without " WEIR__GROUP_DEFAULT);
}

static void get_hub(struct in *in, struct weir__catalog *c)
{
    char name[WEIR__HUB_NAME_MAX + 1];
    struct weir__catalog_hub hub = {0}, *h;

    hub.id = get_int(in, 8);
    hub.partitions = (uint32_t)get_int(in, 4);
    hub.created_ms = (int64_t)get_int(in, 8);
    hub.retain_ms = (int64_t)get_int(in, 8);
    hub.retain_bytes = get_int(in, 8);
    hub.producers = get_int(in, 8);
    get_name(in, WEIR__NAME_HUB, name, WEIR__HUB_NAME_MAX);
    if (hub.partitions == 0 || hub.partitions > WEIR__LOG_PARTITIONS_MAX)
        stop(in, "a bad number of partitions");
    if (weir__catalog_is_removed(c, hub.id)) stop(in, "a hub that is deleted");
    if (hub.id <= (c->hub_count ? c->hubs[c->hub_count - 1].id : 0) || hub.id >= c->next_hub_id)
        stop(in, "a bad hub id");
    if (in->rc == 0 && weir__catalog_hub(c, name)) stop(in, "a hub is there twice");
    if (in->rc == 0) in->rc = weir__catalog_add_hub(c, &h, in->err);
    if (in->rc != 0) return;
    *h = hub;
    memcpy(h->name, name, sizeof name);
    get_groups(in, h);
    get_rules(in, &h->rules, &h->rule_count);
}

static void get_removed(struct in *in, struct weir__catalog *c)
{
    uint32_t count = get_count(in, 4, WEIR__CATALOG_REMOVED_MAX, 8);

    for (uint32_t i = 0; in->rc == 0 && i < count; i++) {
        uint64_t id = get_int(in, 8);
        if (id <= (i ? c->removed[i - 1] : 0) || id >= c->next_hub_id) stop(in, "a bad deleted id");
        if (in->rc == 0) in->rc = weir__catalog_add_removed(c, id, in->err);
    }
}

bool weir__catalog_generation(struct weir__bytes file, uint64_t *out)
{
    size_t zeros = 0;

    while (zeros < file.len && zeros < HEADER_BYTES && file.at[zeros] == 0) zeros++;
    *out = 0;
    if (zeros == file.len || zeros == HEADER_BYTES) return true;
    if (file.len < HEADER_BYTES || memcmp(file.at, magic, sizeof magic) != 0 ||
        weir__load32(file.at + HEADER_CRC_AT) != weir__crc32c(0, file.at, HEADER_CRC_AT))
        return false;
    *out = weir__load64(file.at + 16);
    return true;
}

static int check_header(struct weir__bytes file, struct weir__bytes *body, struct weir_error *err)
{
    uint32_t version;

    if (file.len < HEADER_BYTES || memcmp(file.at, magic, sizeof magic) != 0)
        return weir__fail(err, WEIR_ECORRUPT, "not a catalogue");
    if (weir__load32(file.at + HEADER_CRC_AT) != weir__crc32c(0, file.at, HEADER_CRC_AT))
        return weir__fail(err, WEIR_ECORRUPT, "the catalogue's header fails its checksum");
    version = weir__load32(file.at + 8);
    if (version < VERSION_FIRST || version > WEIR__CATALOG_VERSION)
        return weir__fail(err, WEIR_EVERSION, "catalogue version %u, this program knows %d to %d",
                          version, VERSION_FIRST, WEIR__CATALOG_VERSION);
    *body = weir__bytes_of(file.at + HEADER_BYTES, weir__load32(file.at + 12));
    if (body->len > file.len - HEADER_BYTES)
        return weir__fail(err, WEIR_ECORRUPT, "the catalogue is cut off");
    if (weir__load32(file.at + 24) != weir__crc32c(0, body->at, body->len))
        return weir__fail(err, WEIR_ECORRUPT, "the catalogue fails its checksum");
    return 0;
}

int weir__catalog_decode(struct weir__catalog *out, struct weir__bytes file, struct weir_error *err)
{
    struct weir__bytes body = {0};
    struct in in = {.err = err};
    uint32_t hubs;

    weir__catalog_init(out);
    in.rc = check_header(file, &body, err);
    if (in.rc != 0) return in.rc;
    in.start = in.at = body.at;
    in.end = body.at + body.len;
    out->version = weir__load32(file.at + 8);
    out->generation = weir__load64(file.at + 16);
    out->next_hub_id = get_int(&in, 8);
    if (out->version >= VERSION_REMOVED) get_removed(&in, out);
    get_rules(&in, &out->rules, &out->rule_count);
    hubs = get_count(&in, 4, WEIR__CATALOG_HUBS_MAX, HUB_BYTES_MIN);
    for (uint32_t i = 0; in.rc == 0 && i < hubs; i++) get_hub(&in, out);
    if (in.rc == 0 && in.at != in.end) stop(&in, "more than there should be");
    if (in.rc != 0) weir__catalog_fini(out);
    return in.rc;
}
