/* performative.c - the table of composites, and the loops over it. */
#include "amqp/performative.h"

#include <assert.h>

#define CODE_SMALL_ULONG 0x53

#define SET WEIR__AMQP_SET
#define BOOL SET(WEIR__AMQP_BOOL)
#define UBYTE SET(WEIR__AMQP_UBYTE)
#define USHORT SET(WEIR__AMQP_USHORT)
#define UINT SET(WEIR__AMQP_UINT)
#define ULONG SET(WEIR__AMQP_ULONG)
#define STRING SET(WEIR__AMQP_STRING)
#define SYMBOL SET(WEIR__AMQP_SYMBOL)
#define SYMBOLS (SYMBOL | SET(WEIR__AMQP_ARRAY)) /* one, or an array of them */
#define BINARY SET(WEIR__AMQP_BINARY)
#define MAP SET(WEIR__AMQP_MAP)
#define COMPOSITE SET(WEIR__AMQP_DESCRIBED)
#define ANY (SET(WEIR__AMQP_TYPES) - 1)

/* What a field is when nobody says: null, which stays null, or a number of its type. */
#define MANDATORY 1
#define DEFAULT(number) 2, (number)

struct field_row {
    const char *name;
    uint32_t types;
    uint8_t rule; /* 0, MANDATORY, or the first half of DEFAULT */
    uint32_t preset;
};

static const struct field_row open_rows[] = {
    {"container-id", STRING, MANDATORY, 0},
    {"hostname", STRING, 0, 0},
    {"max-frame-size", UINT, DEFAULT(UINT32_MAX)},
    {"channel-max", USHORT, DEFAULT(UINT16_MAX)},
    {"idle-time-out", UINT, DEFAULT(0)}, /* none */
    {"outgoing-locales", SYMBOLS, 0, 0},
    {"incoming-locales", SYMBOLS, 0, 0},
    {"offered-capabilities", SYMBOLS, 0, 0},
    {"desired-capabilities", SYMBOLS, 0, 0},
    {"properties", MAP, 0, 0},
};

static const struct field_row begin_rows[] = {
    {"remote-channel", USHORT, 0, 0},          {"next-outgoing-id", UINT, MANDATORY, 0},
    {"incoming-window", UINT, MANDATORY, 0},   {"outgoing-window", UINT, MANDATORY, 0},
    {"handle-max", UINT, DEFAULT(UINT32_MAX)}, {"offered-capabilities", SYMBOLS, 0, 0},
    {"desired-capabilities", SYMBOLS, 0, 0},   {"properties", MAP, 0, 0},
};

static const struct field_row attach_rows[] = {
    {"name", STRING, MANDATORY, 0},
    {"handle", UINT, MANDATORY, 0},
    {"role", BOOL, MANDATORY, 0},
    {"snd-settle-mode", UBYTE, DEFAULT(WEIR__AMQP_SEND_MIXED)},
    {"rcv-settle-mode", UBYTE, DEFAULT(WEIR__AMQP_RECEIVE_FIRST)},
    {"source", COMPOSITE, 0, 0},
    {"target", COMPOSITE, 0, 0},
    {"unsettled", MAP, 0, 0},
    {"incomplete-unsettled", BOOL, DEFAULT(0)},
    {"initial-delivery-count", UINT, 0, 0},
    {"max-message-size", ULONG, DEFAULT(0)}, /* none */
    {"offered-capabilities", SYMBOLS, 0, 0},
    {"desired-capabilities", SYMBOLS, 0, 0},
    {"properties", MAP, 0, 0},
};

static const struct field_row flow_rows[] = {
    {"next-incoming-id", UINT, 0, 0},
    {"incoming-window", UINT, MANDATORY, 0},
    {"next-outgoing-id", UINT, MANDATORY, 0},
    {"outgoing-window", UINT, MANDATORY, 0},
    {"handle", UINT, 0, 0},
    {"delivery-count", UINT, 0, 0},
    {"link-credit", UINT, 0, 0},
    {"available", UINT, 0, 0},
    {"drain", BOOL, DEFAULT(0)},
    {"echo", BOOL, DEFAULT(0)},
    {"properties", MAP, 0, 0},
};

static const struct field_row transfer_rows[] = {
    {"handle", UINT, MANDATORY, 0},   {"delivery-id", UINT, 0, 0},
    {"delivery-tag", BINARY, 0, 0},   {"message-format", UINT, 0, 0},
    {"settled", BOOL, 0, 0},          {"more", BOOL, DEFAULT(0)},
    {"rcv-settle-mode", UBYTE, 0, 0}, {"state", COMPOSITE, 0, 0},
    {"resume", BOOL, DEFAULT(0)},     {"aborted", BOOL, DEFAULT(0)},
    {"batchable", BOOL, DEFAULT(0)},
};

static const struct field_row disposition_rows[] = {
    {"role", BOOL, MANDATORY, 0},  {"first", UINT, MANDATORY, 0}, {"last", UINT, 0, 0},
    {"settled", BOOL, DEFAULT(0)}, {"state", COMPOSITE, 0, 0},    {"batchable", BOOL, DEFAULT(0)},
};

static const struct field_row detach_rows[] = {{"handle", UINT, MANDATORY, 0},
                                               {"closed", BOOL, DEFAULT(0)},
                                               {"error", COMPOSITE, 0, 0}};

/* end, close and rejected */
static const struct field_row reason_rows[] = {{"error", COMPOSITE, 0, 0}};

static const struct field_row sasl_mechanisms_rows[] = {
    {"sasl-server-mechanisms", SYMBOLS, MANDATORY, 0}};

static const struct field_row sasl_init_rows[] = {{"mechanism", SYMBOL, MANDATORY, 0},
                                                  {"initial-response", BINARY, 0, 0},
                                                  {"hostname", STRING, 0, 0}};

static const struct field_row sasl_challenge_rows[] = {{"challenge", BINARY, MANDATORY, 0}};

static const struct field_row sasl_response_rows[] = {{"response", BINARY, MANDATORY, 0}};

static const struct field_row sasl_outcome_rows[] = {{"code", UBYTE, MANDATORY, 0},
                                                     {"additional-data", BINARY, 0, 0}};

static const struct field_row error_rows[] = {{"condition", SYMBOL, MANDATORY, 0},
                                              {"description", STRING, 0, 0},
                                              {"info", MAP, 0, 0}};

static const struct field_row received_rows[] = {{"section-number", UINT, MANDATORY, 0},
                                                 {"section-offset", ULONG, MANDATORY, 0}};

static const struct field_row modified_rows[] = {{"delivery-failed", BOOL, 0, 0},
                                                 {"undeliverable-here", BOOL, 0, 0},
                                                 {"message-annotations", MAP, 0, 0}};

static const struct field_row source_rows[] = {
    {"address", ANY, 0, 0},
    {"durable", UINT, DEFAULT(0)},
    {"expiry-policy", SYMBOL, 0, 0},
    {"timeout", UINT, DEFAULT(0)},
    {"dynamic", BOOL, DEFAULT(0)},
    {"dynamic-node-properties", MAP, 0, 0},
    {"distribution-mode", SYMBOL, 0, 0},
    {"filter", MAP, 0, 0},
    {"default-outcome", COMPOSITE, 0, 0},
    {"outcomes", SYMBOLS, 0, 0},
    {"capabilities", SYMBOLS, 0, 0},
};

static const struct field_row target_rows[] = {
    {"address", ANY, 0, 0},          {"durable", UINT, DEFAULT(0)},
    {"expiry-policy", SYMBOL, 0, 0}, {"timeout", UINT, DEFAULT(0)},
    {"dynamic", BOOL, DEFAULT(0)},   {"dynamic-node-properties", MAP, 0, 0},
    {"capabilities", SYMBOLS, 0, 0},
};

static const struct field_row coordinator_rows[] = {{"capabilities", SYMBOLS, 0, 0}};

#define ROWS(table) (table), sizeof(table) / sizeof(table)[0]

/* Every descriptor is a small ulong, or this symbol. */
static const struct kind_row {
    const char *name;
    uint8_t code;
    const char *symbol;
    const struct field_row *fields;
    uint8_t count;
} kinds[WEIR__AMQP_KINDS] = {
    [WEIR__AMQP_OPEN] = {"open", 0x10, "amqp:open:list", ROWS(open_rows)},
    [WEIR__AMQP_BEGIN] = {"begin", 0x11, "amqp:begin:list", ROWS(begin_rows)},
    [WEIR__AMQP_ATTACH] = {"attach", 0x12, "amqp:attach:list", ROWS(attach_rows)},
    [WEIR__AMQP_FLOW] = {"flow", 0x13, "amqp:flow:list", ROWS(flow_rows)},
    [WEIR__AMQP_TRANSFER] = {"transfer", 0x14, "amqp:transfer:list", ROWS(transfer_rows)},
    [WEIR__AMQP_DISPOSITION] = {"disposition", 0x15, "amqp:disposition:list",
                                ROWS(disposition_rows)},
    [WEIR__AMQP_DETACH] = {"detach", 0x16, "amqp:detach:list", ROWS(detach_rows)},
    [WEIR__AMQP_END] = {"end", 0x17, "amqp:end:list", ROWS(reason_rows)},
    [WEIR__AMQP_CLOSE] = {"close", 0x18, "amqp:close:list", ROWS(reason_rows)},
    [WEIR__AMQP_SASL_MECHANISMS] = {"sasl-mechanisms", 0x40, "amqp:sasl-mechanisms:list",
                                    ROWS(sasl_mechanisms_rows)},
    [WEIR__AMQP_SASL_INIT] = {"sasl-init", 0x41, "amqp:sasl-init:list", ROWS(sasl_init_rows)},
    [WEIR__AMQP_SASL_CHALLENGE] = {"sasl-challenge", 0x42, "amqp:sasl-challenge:list",
                                   ROWS(sasl_challenge_rows)},
    [WEIR__AMQP_SASL_RESPONSE] = {"sasl-response", 0x43, "amqp:sasl-response:list",
                                  ROWS(sasl_response_rows)},
    [WEIR__AMQP_SASL_OUTCOME] = {"sasl-outcome", 0x44, "amqp:sasl-outcome:list",
                                 ROWS(sasl_outcome_rows)},
    [WEIR__AMQP_ERROR] = {"error", 0x1d, "amqp:error:list", ROWS(error_rows)},
    [WEIR__AMQP_RECEIVED] = {"received", 0x23, "amqp:received:list", ROWS(received_rows)},
    [WEIR__AMQP_ACCEPTED] = {"accepted", 0x24, "amqp:accepted:list", NULL, 0},
    [WEIR__AMQP_REJECTED] = {"rejected", 0x25, "amqp:rejected:list", ROWS(reason_rows)},
    [WEIR__AMQP_RELEASED] = {"released", 0x26, "amqp:released:list", NULL, 0},
    [WEIR__AMQP_MODIFIED] = {"modified", 0x27, "amqp:modified:list", ROWS(modified_rows)},
    [WEIR__AMQP_SOURCE] = {"source", 0x28, "amqp:source:list", ROWS(source_rows)},
    [WEIR__AMQP_TARGET] = {"target", 0x29, "amqp:target:list", ROWS(target_rows)},
    [WEIR__AMQP_COORDINATOR] = {"coordinator", 0x30, "amqp:coordinator:list",
                                ROWS(coordinator_rows)},
};

const char *weir__amqp_kind_name(enum weir__amqp_kind kind)
{
    return (unsigned)kind < WEIR__AMQP_KINDS ? kinds[kind].name : "?";
}

unsigned weir__amqp_kind_fields(enum weir__amqp_kind kind)
{
    return (unsigned)kind < WEIR__AMQP_KINDS ? kinds[kind].count : 0;
}

const char *weir__amqp_field_name(enum weir__amqp_kind kind, unsigned field)
{
    return field < weir__amqp_kind_fields(kind) ? kinds[kind].fields[field].name : "?";
}

void weir__amqp_composite_init(struct weir__amqp_composite *c, enum weir__amqp_kind kind)
{
    assert((unsigned)kind < WEIR__AMQP_KINDS);
    c->kind = kind;
    memset(c->field, 0, sizeof c->field[0] * kinds[kind].count);
}

static enum weir__amqp_kind kind_of(const struct weir__amqp_value *descriptor)
{
    unsigned i = 0;

    for (; i < WEIR__AMQP_KINDS; i++) {
        size_t len = strlen(kinds[i].symbol);
        if (descriptor->type == WEIR__AMQP_ULONG && descriptor->u == kinds[i].code) break;
        if (descriptor->type == WEIR__AMQP_SYMBOL && descriptor->bytes.len == len &&
            !memcmp(descriptor->bytes.at, kinds[i].symbol, len))
            break;
    }
    return (enum weir__amqp_kind)i;
}

/* An array that stands for many symbols has symbols in it. */
static bool is_of_type(const struct weir__amqp_value *v, uint32_t types)
{
    struct weir__amqp_items items;
    struct weir__amqp_value item;

    if (!(types & SET(v->type))) return false;
    if (types != SYMBOLS || v->type != WEIR__AMQP_ARRAY) return true;
    weir__amqp_items_init(&items, v);
    while (weir__amqp_items_next(&items, &item))
        if (item.type != WEIR__AMQP_SYMBOL) return false;
    return true;
}

/* Reads one field. What has items is examined to the bottom first. */
static int read_field(struct weir__amqp_cursor *c, const struct kind_row *kind,
                      const struct field_row *row, struct weir__amqp_value *out,
                      struct weir_error *err)
{
    struct weir__amqp_cursor inside = *c;

    if (!weir__amqp_read(c, out) || (out->type >= WEIR__AMQP_LIST && !weir__amqp_check(&inside))) {
        const struct weir__amqp_cursor *in = c->why ? c : &inside;
        return weir__fail(err, WEIR_ECORRUPT, "%s.%s, byte %zu: %s", kind->name, row->name,
                          weir__amqp_offset(in), in->why);
    }
    if (out->type == WEIR__AMQP_NULL || is_of_type(out, row->types)) return 0;
    return weir__fail(err, WEIR_EINVAL, "%s.%s may not be a %s", kind->name, row->name,
                      weir__amqp_type_name(out->type));
}

/* The defaults are of the only type that their field can have. */
static int fill_absent(const struct kind_row *kind, const struct field_row *row,
                       struct weir__amqp_value *out, struct weir_error *err)
{
    *out = (struct weir__amqp_value){0};
    if (row->rule == MANDATORY)
        return weir__fail(err, WEIR_EINVAL, "%s.%s is missing", kind->name, row->name);
    if (row->rule) {
        out->type = (enum weir__amqp_type)__builtin_ctz(row->types);
        out->u = row->preset;
    }
    return 0;
}

static int read_fields(const struct weir__amqp_value *list, struct weir__amqp_composite *out,
                       struct weir_error *err)
{
    const struct kind_row *kind = &kinds[out->kind];
    struct weir__amqp_cursor c = weir__amqp_cursor_of(list->bytes);
    int rc = 0;

    if (list->count > kind->count)
        return weir__fail(err, WEIR_ECORRUPT, "%s with %u fields", kind->name, list->count);
    for (unsigned i = 0; rc == 0 && i < kind->count; i++) {
        out->field[i].type = WEIR__AMQP_NULL;
        if (i < list->count) rc = read_field(&c, kind, &kind->fields[i], &out->field[i], err);
        if (rc == 0 && out->field[i].type == WEIR__AMQP_NULL)
            rc = fill_absent(kind, &kind->fields[i], &out->field[i], err);
    }
    if (rc == 0 && c.at != c.end)
        return weir__fail(err, WEIR_ECORRUPT, "%s with bytes after its fields", kind->name);
    return rc;
}

/* What follows the 00 that begins every described value. */
static int read_described(struct weir__amqp_cursor *c, uint32_t set,
                          struct weir__amqp_composite *out, struct weir_error *err)
{
    const uint32_t types = SET(WEIR__AMQP_ULONG) | SET(WEIR__AMQP_SYMBOL);
    struct weir__amqp_value descriptor, list;

    if (!weir__amqp_read_one(c, types, &descriptor) ||
        !weir__amqp_read_one(c, SET(WEIR__AMQP_LIST), &list))
        return weir__fail(err, WEIR_ECORRUPT, "byte %zu: %s", weir__amqp_offset(c), c->why);
    out->kind = kind_of(&descriptor);
    if (out->kind == WEIR__AMQP_KINDS || !(set & WEIR__AMQP_KIND_SET(out->kind)))
        return weir__fail(err, WEIR_EINVAL, "%s does not belong here",
                          out->kind == WEIR__AMQP_KINDS ? "an unknown descriptor"
                                                        : kinds[out->kind].name);
    return read_fields(&list, out, err);
}

int weir__amqp_composite_read(struct weir__amqp_cursor *c, uint32_t set,
                              struct weir__amqp_composite *out, struct weir_error *err)
{
    if (weir__amqp_load8(c) != 0 || c->why)
        return weir__fail(err, WEIR_ECORRUPT, "a composite must begin with 00");
    return read_described(c, set, out, err);
}

int weir__amqp_composite_of(const struct weir__amqp_value *v, uint32_t set,
                            struct weir__amqp_composite *out, struct weir_error *err)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(v->bytes);

    if (v->type != WEIR__AMQP_DESCRIBED)
        return weir__fail(err, WEIR_EINVAL, "a %s where a composite should be",
                          weir__amqp_type_name(v->type));
    return read_described(&c, set, out, err);
}

void weir__amqp_composite_write(struct weir__amqp_writer *w, const struct weir__amqp_composite *c)
{
    const struct kind_row *kind = &kinds[c->kind];
    size_t mark;

    weir__amqp_put_raw(w, weir__bytes_of((uint8_t[]){0, CODE_SMALL_ULONG, kind->code}, 3));
    mark = weir__amqp_put_open(w);
    for (unsigned i = 0; i < kind->count; i++) weir__amqp_put(w, c->field[i]);
    weir__amqp_put_close(w, mark, WEIR__AMQP_LIST, kind->count);
}

struct weir__amqp_value weir__amqp_composite_value(const struct weir__amqp_composite *c,
                                                   uint8_t *to, size_t room)
{
    struct weir__amqp_writer w;
    struct weir__bytes out;

    weir__amqp_writer_init(&w, to, room);
    weir__amqp_composite_write(&w, c);
    if (weir__amqp_writer_finish(&w, &out, NULL) != 0) return (struct weir__amqp_value){0};
    return weir__amqp_bytes(WEIR__AMQP_DESCRIBED, out.at + 1, out.len - 1);
}
