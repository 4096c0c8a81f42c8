/* codec.c - one table says what each constructor byte announces; everything else follows it.
 *
 * Levels are counted: a described value, a list, a map and an array go one level down, and
 * WEIR__AMQP_DEPTH_MAX ends it. Each byte is looked at once or twice, and what has no bytes is not
 * looked at, so the work is linear in the bytes that came; fuzz/work_fuzz.c counts the steps. */
#include "amqp/codec.h"

#include "base/steps.h"

enum shape {
    SHAPE_UNKNOWN,  /* no such constructor */
    SHAPE_FIXED,    /* width bytes */
    SHAPE_VARIABLE, /* a size of width bytes, then that many */
    SHAPE_COMPOUND, /* a size of width bytes, then that many: a count of width bytes and items */
    SHAPE_ARRAY     /* the same, with one constructor before all items */
};

struct code_row {
    uint8_t shape, width, type;
};

#define CODE_DESCRIBED 0x00
#define CODE_NULL 0x40
#define CODE_TRUE 0x41
#define CODE_SMALL_ULONG 0x53
#define CODE_LIST8 0xc0
#define CODE_MAP8 0xc1
#define CODE_ARRAY8 0xe0
#define CODE_BOOLEAN 0x56 /* with a byte that says which */
#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

static const struct code_row codes[256] = {
    [0x40] = {SHAPE_FIXED, 0, WEIR__AMQP_NULL},
    [0x41] = {SHAPE_FIXED, 0, WEIR__AMQP_BOOL},
    [0x42] = {SHAPE_FIXED, 0, WEIR__AMQP_BOOL},
    [0x43] = {SHAPE_FIXED, 0, WEIR__AMQP_UINT},
    [0x44] = {SHAPE_FIXED, 0, WEIR__AMQP_ULONG},
    [0x45] = {SHAPE_FIXED, 0, WEIR__AMQP_LIST},
    [0x50] = {SHAPE_FIXED, 1, WEIR__AMQP_UBYTE},
    [0x51] = {SHAPE_FIXED, 1, WEIR__AMQP_BYTE},
    [0x52] = {SHAPE_FIXED, 1, WEIR__AMQP_UINT},
    [0x53] = {SHAPE_FIXED, 1, WEIR__AMQP_ULONG},
    [0x54] = {SHAPE_FIXED, 1, WEIR__AMQP_INT},
    [0x55] = {SHAPE_FIXED, 1, WEIR__AMQP_LONG},
    [0x56] = {SHAPE_FIXED, 1, WEIR__AMQP_BOOL},
    [0x60] = {SHAPE_FIXED, 2, WEIR__AMQP_USHORT},
    [0x61] = {SHAPE_FIXED, 2, WEIR__AMQP_SHORT},
    [0x70] = {SHAPE_FIXED, 4, WEIR__AMQP_UINT},
    [0x71] = {SHAPE_FIXED, 4, WEIR__AMQP_INT},
    [0x72] = {SHAPE_FIXED, 4, WEIR__AMQP_FLOAT},
    [0x73] = {SHAPE_FIXED, 4, WEIR__AMQP_CHAR},
    [0x74] = {SHAPE_FIXED, 4, WEIR__AMQP_DECIMAL32},
    [0x80] = {SHAPE_FIXED, 8, WEIR__AMQP_ULONG},
    [0x81] = {SHAPE_FIXED, 8, WEIR__AMQP_LONG},
    [0x82] = {SHAPE_FIXED, 8, WEIR__AMQP_DOUBLE},
    [0x83] = {SHAPE_FIXED, 8, WEIR__AMQP_TIMESTAMP},
    [0x84] = {SHAPE_FIXED, 8, WEIR__AMQP_DECIMAL64},
    [0x94] = {SHAPE_FIXED, 16, WEIR__AMQP_DECIMAL128},
    [0x98] = {SHAPE_FIXED, 16, WEIR__AMQP_UUID},
    [0xa0] = {SHAPE_VARIABLE, 1, WEIR__AMQP_BINARY},
    [0xa1] = {SHAPE_VARIABLE, 1, WEIR__AMQP_STRING},
    [0xa3] = {SHAPE_VARIABLE, 1, WEIR__AMQP_SYMBOL},
    [0xb0] = {SHAPE_VARIABLE, 4, WEIR__AMQP_BINARY},
    [0xb1] = {SHAPE_VARIABLE, 4, WEIR__AMQP_STRING},
    [0xb3] = {SHAPE_VARIABLE, 4, WEIR__AMQP_SYMBOL},
    [0xc0] = {SHAPE_COMPOUND, 1, WEIR__AMQP_LIST},
    [0xc1] = {SHAPE_COMPOUND, 1, WEIR__AMQP_MAP},
    [0xd0] = {SHAPE_COMPOUND, 4, WEIR__AMQP_LIST},
    [0xd1] = {SHAPE_COMPOUND, 4, WEIR__AMQP_MAP},
    [0xe0] = {SHAPE_ARRAY, 1, WEIR__AMQP_ARRAY},
    [0xf0] = {SHAPE_ARRAY, 4, WEIR__AMQP_ARRAY},
};

static const char *const type_names[WEIR__AMQP_TYPES] = {
    "null",      "boolean",   "ubyte",      "ushort",         "uint",      "ulong",  "char",
    "byte",      "short",     "int",        "long",           "timestamp", "float",  "double",
    "decimal32", "decimal64", "decimal128", "uuid",           "binary",    "string", "symbol",
    "list",      "map",       "array",      "described value"};

const char *weir__amqp_code_name(uint8_t code)
{
    if (code == CODE_DESCRIBED) return type_names[WEIR__AMQP_DESCRIBED];
    return codes[code].shape == SHAPE_UNKNOWN ? NULL : type_names[codes[code].type];
}

const char *weir__amqp_type_name(enum weir__amqp_type type)
{
    return (unsigned)type < WEIR__AMQP_TYPES ? type_names[type] : "?";
}

static const char too_deep[] = "values are nested too deep";

static bool step_back(struct weir__amqp_cursor *c, size_t len, const char *why)
{
    c->at -= len;
    return weir__amqp_stop(c, why);
}

/* The failure of a cursor within c becomes the failure of c, at the same place. */
static bool stop_with(struct weir__amqp_cursor *c, const struct weir__amqp_cursor *in)
{
    c->at = in->at;
    return weir__amqp_stop(c, in->why);
}

static uint64_t load_unsigned(const uint8_t *p, unsigned width)
{
    switch (width) {
    case 0: return 0;
    case 1: return p[0];
    case 2: return weir__load_be16(p);
    case 4: return weir__load_be32(p);
    default: return weir__load_be64(p);
    }
}

static int64_t load_signed(const uint8_t *p, unsigned width)
{
    switch (width) {
    case 1: return (int8_t)p[0];
    case 2: return (int16_t)weir__load_be16(p);
    case 4: return (int32_t)weir__load_be32(p);
    default: return (int64_t)weir__load_be64(p);
    }
}

static bool read_bool(struct weir__amqp_cursor *c, uint8_t code, const uint8_t *p, unsigned width,
                      struct weir__amqp_value *out)
{
    out->u = width ? p[0] : code == CODE_TRUE;
    return out->u <= 1 || step_back(c, 1, "a boolean that is neither 0 nor 1");
}

static bool read_fixed(struct weir__amqp_cursor *c, uint8_t code, struct weir__amqp_value *out)
{
    unsigned width = codes[code].width;
    const uint8_t *p = weir__amqp_take(c, width);
    uint32_t bits;

    if (!p) return false;
    switch (out->type) {
    case WEIR__AMQP_BOOL: return read_bool(c, code, p, width, out);
    case WEIR__AMQP_BYTE:
    case WEIR__AMQP_SHORT:
    case WEIR__AMQP_INT:
    case WEIR__AMQP_LONG:
    case WEIR__AMQP_TIMESTAMP: out->i = load_signed(p, width); return true;
    case WEIR__AMQP_FLOAT:
        bits = weir__load_be32(p);
        memcpy(&out->f, &bits, sizeof out->f);
        return true;
    case WEIR__AMQP_UUID:
    case WEIR__AMQP_DECIMAL32:
    case WEIR__AMQP_DECIMAL64:
    case WEIR__AMQP_DECIMAL128:
    case WEIR__AMQP_LIST: out->bytes = weir__bytes_of(p, width); return true;
    default: /* the unsigned ones, and a double, whose bits are in u */
        out->u = load_unsigned(p, width);
        return true;
    }
}

static inline size_t load_size(struct weir__amqp_cursor *c, unsigned width)
{
    return width == 1 ? weir__amqp_load8(c) : weir__amqp_load32(c);
}

static bool read_variable(struct weir__amqp_cursor *c, unsigned width, struct weir__amqp_value *out)
{
    size_t len = load_size(c, width);
    const uint8_t *p = weir__amqp_take(c, len);

    if (!p) return false;
    out->bytes = weir__bytes_of(p, len);
    return !c->why;
}

/* A list or a map needs a byte for each item at least; the items of an array may need none. */
static bool read_compound(struct weir__amqp_cursor *c, unsigned width, struct weir__amqp_value *out)
{
    size_t size = load_size(c, width);

    if (c->why) return false;
    if (size < width) return step_back(c, width, "a size that is smaller than its count");
    if (size > weir__amqp_left(c)) return step_back(c, width, "a size that is beyond the end");
    out->count = (uint32_t)load_size(c, width);
    size -= width;
    if (out->type != WEIR__AMQP_ARRAY && out->count > size)
        return step_back(c, width, "more items than bytes");
    if (out->type == WEIR__AMQP_MAP && out->count % 2)
        return step_back(c, width, "a map with a key that has no value");
    out->bytes = weir__bytes_of(weir__amqp_take(c, size), size);
    return true;
}

/* What follows a constructor that is not 00. */
static bool read_body(struct weir__amqp_cursor *c, uint8_t code, struct weir__amqp_value *out)
{
    const struct code_row *row = &codes[code];

    *out = (struct weir__amqp_value){.type = row->type};
    switch ((enum shape)row->shape) {
    case SHAPE_FIXED: return read_fixed(c, code, out);
    case SHAPE_VARIABLE: return read_variable(c, row->width, out);
    case SHAPE_COMPOUND:
    case SHAPE_ARRAY: return read_compound(c, row->width, out);
    case SHAPE_UNKNOWN: break;
    }
    return step_back(c, 1, "an unknown constructor");
}

/* Steps over a value without entering it, but for described values: they have no size. */
static bool skip_value(struct weir__amqp_cursor *c, unsigned depth)
{
    struct weir__amqp_value v;
    uint8_t code = weir__amqp_load8(c);

    WEIR__STEP();
    if (c->why) return false;
    if (codes[code].shape == SHAPE_FIXED && codes[code].type != WEIR__AMQP_BOOL)
        return weir__amqp_take(c, codes[code].width) != NULL;
    if (code != CODE_DESCRIBED) return read_body(c, code, &v);
    if (depth == WEIR__AMQP_DEPTH_MAX) return step_back(c, 1, too_deep);
    if (!skip_value(c, depth + 1)) return false; /* the descriptor */
    return skip_value(c, depth + 1);
}

bool weir__amqp_skip(struct weir__amqp_cursor *c)
{
    return skip_value(c, 0);
}

bool weir__amqp_read(struct weir__amqp_cursor *c, struct weir__amqp_value *out)
{
    const uint8_t *start;
    uint8_t code = weir__amqp_load8(c);

    WEIR__STEP();
    if (c->why) return false;
    if (code == CODE_NULL) { /* most fields of most lists */
        *out = (struct weir__amqp_value){0};
        return true;
    }
    if (code != CODE_DESCRIBED) return read_body(c, code, out);
    start = c->at;
    if (!skip_value(c, 1)) return false;
    if (!skip_value(c, 1)) return false;
    *out = weir__amqp_bytes(WEIR__AMQP_DESCRIBED, start, (size_t)(c->at - start));
    return true;
}

bool weir__amqp_read_one(struct weir__amqp_cursor *c, uint32_t types, struct weir__amqp_value *out)
{
    const uint8_t *start = c->at;

    if (!weir__amqp_read(c, out)) return false;
    if (types & WEIR__AMQP_SET(out->type)) return true;
    return step_back(c, (size_t)(c->at - start), "a value of another type than belongs here");
}

/* Whether there can be so many items behind an array's constructor. */
static bool has_room(struct weir__amqp_cursor *c, uint8_t code, uint32_t count)
{
    const struct code_row *row = &codes[code];

    if (c->why) return false;
    if (row->shape == SHAPE_UNKNOWN) return step_back(c, 1, "an unknown constructor in an array");
    if (row->width == 0 && count > WEIR__AMQP_EMPTY_ITEMS_MAX)
        return step_back(c, 1, "too many items without bytes in an array");
    if ((uint64_t)count * row->width > weir__amqp_left(c))
        return step_back(c, 1, "an array with more items than bytes");
    return true;
}

/* The constructor of an array's items, and the descriptor when they are described. */
static bool read_constructor(struct weir__amqp_cursor *c, uint32_t count, uint8_t *code,
                             struct weir__bytes *descriptor)
{
    const uint8_t *start;

    *descriptor = weir__bytes_of(NULL, 0);
    *code = weir__amqp_load8(c);
    if (!c->why && *code == CODE_DESCRIBED) {
        start = c->at;
        if (!skip_value(c, 1)) return false;
        *descriptor = weir__bytes_of(start, (size_t)(c->at - start));
        *code = weir__amqp_load8(c);
    }
    return has_room(c, *code, count);
}

/* ---- checking ---- */

/* Constructors by how their values are checked. */
enum kind {
    KIND_OTHER,    /* rare or unknown: read_body knows */
    KIND_FIXED,    /* width bytes, whatever they are */
    KIND_BOOLEAN,  /* a byte that is 0 or 1 */
    KIND_SHORT,    /* a size of one byte, then that many */
    KIND_COMPOUND, /* a list or a map of less than 256 bytes */
    KIND_ARRAY,    /* an array of less than 256 bytes */
    KIND_LARGE,    /* a larger one of these */
    KIND_DESCRIBED
};

static const uint8_t kinds[256] = {
    [0x00] = KIND_DESCRIBED, [0x40] = KIND_FIXED,   [0x41] = KIND_FIXED, [0x42] = KIND_FIXED,
    [0x43] = KIND_FIXED,     [0x44] = KIND_FIXED,   [0x45] = KIND_FIXED, [0x50] = KIND_FIXED,
    [0x51] = KIND_FIXED,     [0x52] = KIND_FIXED,   [0x53] = KIND_FIXED, [0x54] = KIND_FIXED,
    [0x55] = KIND_FIXED,     [0x56] = KIND_BOOLEAN, [0x60] = KIND_FIXED, [0x61] = KIND_FIXED,
    [0x70] = KIND_FIXED,     [0x71] = KIND_FIXED,   [0x72] = KIND_FIXED, [0x73] = KIND_FIXED,
    [0x74] = KIND_FIXED,     [0x80] = KIND_FIXED,   [0x81] = KIND_FIXED, [0x82] = KIND_FIXED,
    [0x83] = KIND_FIXED,     [0x84] = KIND_FIXED,   [0x94] = KIND_FIXED, [0x98] = KIND_FIXED,
    [0xa0] = KIND_SHORT,     [0xa1] = KIND_SHORT,   [0xa3] = KIND_SHORT, [0xc0] = KIND_COMPOUND,
    [0xc1] = KIND_COMPOUND,  [0xd0] = KIND_LARGE,   [0xd1] = KIND_LARGE, [0xe0] = KIND_ARRAY,
    [0xf0] = KIND_LARGE,
};

/* A value into which the check has gone. */
struct level {
    const uint8_t *end; /* of its bytes */
    uint32_t left;      /* items that are still to come */
    uint8_t code;       /* of all items of an array; 0: each has its own */
    bool sized;         /* the items fill it; false: of a described value, which has no size */
};

static bool check_from(struct weir__amqp_cursor *c, unsigned depth);

static bool stop_at(struct weir__amqp_cursor *c, const uint8_t *at, const char *why)
{
    c->at = at;
    return weir__amqp_stop(c, why);
}

/* Whether the eight bytes at p are values of one byte, 40 to 45: no byte is less, and none more. */
static inline bool are_single(const uint8_t *p)
{
    uint64_t over = weir__load64(p) ^ EIGHT(CODE_NULL);

    return !((over | (over + EIGHT(0x7f - 5))) & EIGHT(0x80));
}

/* Passes over eight items at once while they are values of one byte, or an array's booleans: a message of
 * a megabyte may hold a million. */
static inline const uint8_t *pass_eights(const uint8_t *at, struct level *l)
{
    while (l->left >= 8 && l->end - at >= 8 &&
           (l->code ? !(weir__load64(at) & ~EIGHT(1)) : are_single(at))) {
        WEIR__STEP();
        at += 8;
        l->left -= 8;
    }
    return at;
}

/* An array's constructor, and its items when they can only be good. */
static bool enter_array(struct weir__amqp_cursor *in, struct level *l, unsigned depth)
{
    uint8_t code;

    if (!l->left && in->at == in->end) return true;
    code = weir__amqp_load8(in);
    if (!in->why && code == CODE_DESCRIBED) {
        if (!check_from(in, depth)) return false;
        code = weir__amqp_load8(in);
    }
    if (!has_room(in, code, l->left)) return false;
    l->code = code;
    if (kinds[code] != KIND_FIXED) return true;
    in->at += (size_t)l->left * codes[code].width;
    l->left = 0;
    return true;
}

/* Reads what stands before the items of a list, a map or an array. false: something is wrong with it,
 * which read_body says. */
static inline bool open_level(struct weir__amqp_cursor *in, const struct code_row *row,
                              struct level *l)
{
    const uint8_t *p = in->at;
    size_t left = weir__amqp_left(in), width = row->width, size;
    uint32_t count;

    if (left < 2 * width) return false;
    size = width == 1 ? p[0] : weir__load_be32(p);
    count = width == 1 ? p[1] : weir__load_be32(p + 4);
    if (size < width || size > left - width) return false;
    if (row->type != WEIR__AMQP_ARRAY && count > size - width) return false;
    if (row->type == WEIR__AMQP_MAP && count % 2) return false;
    *l = (struct level){.end = p + width + size, .left = count, .sized = true};
    in->at = p + 2 * width;
    in->end = l->end;
    return true;
}

/* Any value. When it has items *l becomes its level, and in stands before the first. */
static bool check_any(struct weir__amqp_cursor *in, uint8_t code, struct level *l, unsigned depth)
{
    struct weir__amqp_value v;

    if (kinds[code] < KIND_COMPOUND || !open_level(in, &codes[code], l))
        return read_body(in, code, &v);
    return codes[code].type != WEIR__AMQP_ARRAY || enter_array(in, l, depth);
}

/* Most values, quickly: these functions return where to go on, or NULL where check_any has to look. */
static inline const uint8_t *pass_simple(const uint8_t *at, uint8_t code, struct level *l)
{
    size_t left = (size_t)(l->end - at);

    switch (kinds[code]) {
    case KIND_FIXED:
        return codes[code].width <= left ? pass_eights(at + codes[code].width, l) : NULL;
    case KIND_BOOLEAN: return left && at[0] <= 1 ? pass_eights(at + 1, l) : NULL;
    case KIND_SHORT: return left && left > at[0] ? at + 1 + at[0] : NULL;
    default: return NULL;
    }
}

/* The constructor may be described, by a value with nothing inside. */
static inline const uint8_t *enter_short_array(const uint8_t *at, struct level *l)
{
    size_t last = at[0], count = at[1], constructor = 2, bytes; /* that the items have at least */
    uint8_t code;

    _Static_assert(UINT8_MAX <= WEIR__AMQP_EMPTY_ITEMS_MAX, "a short array cannot have too many");
    if (last == 1 && count == 0) {
        *l = (struct level){.end = at + 2, .sized = true};
        return at + 2;
    }
    if (last > 2 && at[2] == CODE_DESCRIBED && kinds[at[3]] == KIND_FIXED)
        constructor += 2 + codes[at[3]].width;
    if (constructor > last) return NULL;
    code = at[constructor];
    bytes = count * codes[code].width;
    if (kinds[code] == KIND_OTHER || kinds[code] == KIND_DESCRIBED || bytes > last - constructor)
        return NULL;
    *l = (struct level){.end = at + 1 + last, .left = at[1], .code = code, .sized = true};
    at += constructor + 1;
    if (kinds[code] != KIND_FIXED) return at;
    l->left = 0;
    return at + bytes;
}

static inline const uint8_t *enter(const uint8_t *at, uint8_t code, struct level *l)
{
    size_t left = (size_t)(l->end - at);

    if (code == CODE_DESCRIBED) {
        *l = (struct level){.end = l->end, .left = 2};
        return at;
    }
    if (kinds[code] == KIND_LARGE || left < 2 || at[0] >= left) return NULL;
    if (kinds[code] == KIND_ARRAY) return enter_short_array(at, l);
    if (at[1] >= at[0] || (code == CODE_MAP8 && at[1] % 2)) return NULL;
    *l = (struct level){.end = at + 1 + at[0], .left = at[1], .sized = true};
    return at + 2;
}

/* One value that is so deep inside others, and everything in it. The levels around the current one are
 * kept here and not in calls: a message of a megabyte may hold 300,000 lists. */
static bool check_from(struct weir__amqp_cursor *c, unsigned depth)
{
    struct level around[WEIR__AMQP_DEPTH_MAX], other, l = {.end = c->end, .left = 1};
    const uint8_t *at = c->at, *next;
    struct weir__amqp_cursor in;
    unsigned first = depth;
    uint8_t code;

    for (;;) {
        while (!l.left) {
            if (l.sized && at != l.end) return stop_at(c, at, "bytes after the last item");
            c->at = at;
            if (depth == first) return true;
            l = around[--depth];
        }
        WEIR__STEP();
        l.left--;
        if (!l.code && at == l.end) return stop_at(c, at, "ends too early");
        code = l.code ? l.code : *at++;
        if (kinds[code] < KIND_COMPOUND) {
            next = pass_simple(at, code, &l);
        } else {
            if (depth == WEIR__AMQP_DEPTH_MAX) return stop_at(c, at - 1, too_deep);
            around[depth++] = l;
            next = enter(at, code, &l);
        }
        if (!next) {
            in = (struct weir__amqp_cursor){c->start, at, l.end, NULL};
            other = l;
            if (!check_any(&in, code, &other, depth)) return stop_with(c, &in);
            l = other;
            next = in.at;
        }
        at = next;
    }
}

bool weir__amqp_check(struct weir__amqp_cursor *c)
{
    return check_from(c, 0);
}

void weir__amqp_items_init(struct weir__amqp_items *it, const struct weir__amqp_value *v)
{
    *it = (struct weir__amqp_items){.left = v->count};
    if (v->type != WEIR__AMQP_LIST && v->type != WEIR__AMQP_MAP && v->type != WEIR__AMQP_ARRAY) {
        it->left = 0;
        weir__amqp_stop(&it->in, "a value that has no items");
        return;
    }
    it->in = weir__amqp_cursor_of(v->bytes);
    if (v->type == WEIR__AMQP_ARRAY && v->bytes.len &&
        !read_constructor(&it->in, v->count, &it->code, &it->descriptor))
        it->left = 0;
    if (v->type == WEIR__AMQP_ARRAY && v->count && !v->bytes.len)
        weir__amqp_stop(&it->in, "an array without a constructor");
}

bool weir__amqp_items_next(struct weir__amqp_items *it, struct weir__amqp_value *out)
{
    bool good;

    WEIR__STEP();
    if (it->in.why) return false;
    if (!it->left)
        return it->in.at != it->in.end && weir__amqp_stop(&it->in, "bytes after the last item");
    good = it->code ? read_body(&it->in, it->code, out) : weir__amqp_read(&it->in, out);
    it->left = good ? it->left - 1 : 0;
    return good;
}

bool weir__amqp_items_pair(struct weir__amqp_items *it, struct weir__amqp_value *key,
                           struct weir__amqp_value *value)
{
    return weir__amqp_items_next(it, key) && weir__amqp_items_next(it, value);
}

bool weir__amqp_map_find(const struct weir__amqp_value *map, const char *name,
                         struct weir__amqp_value *out)
{
    struct weir__amqp_items it;
    struct weir__amqp_value key;
    size_t len = strlen(name);

    weir__amqp_items_init(&it, map);
    while (weir__amqp_items_pair(&it, &key, out))
        if ((key.type == WEIR__AMQP_SYMBOL || key.type == WEIR__AMQP_STRING) &&
            key.bytes.len == len && (!len || !memcmp(key.bytes.at, name, len)))
            return true;
    return false;
}

bool weir__amqp_described(const struct weir__amqp_value *v, struct weir__amqp_value *descriptor,
                          struct weir__amqp_value *out)
{
    struct weir__amqp_cursor in;

    if (v->type != WEIR__AMQP_DESCRIBED) return false;
    in = weir__amqp_cursor_of(v->bytes);
    return weir__amqp_read(&in, descriptor) && weir__amqp_read(&in, out);
}

/* The length of the UTF-8 sequence at p, 0 when it is none. */
static size_t utf8_sequence(const uint8_t *p, size_t left)
{
    uint8_t lead = p[0], low = 0x80, high = 0xbf;
    size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

    if (lead < 0x80) return 1;
    if (lead < 0xc2 || lead > 0xf4 || left < len) return 0;
    if (lead == 0xe0) low = 0xa0;  /* below: overlong */
    if (lead == 0xed) high = 0x9f; /* above: surrogates */
    if (lead == 0xf0) low = 0x90;  /* below: overlong */
    if (lead == 0xf4) high = 0x8f; /* above: past U+10FFFF */
    if (p[1] < low || p[1] > high) return 0;
    for (size_t i = 2; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    return len;
}

bool weir__amqp_utf8(struct weir__bytes b)
{
    size_t i = 0;

    while (i < b.len) {
        size_t len = utf8_sequence(b.at + i, b.len - i);
        if (!len) return false;
        i += len;
    }
    return true;
}
