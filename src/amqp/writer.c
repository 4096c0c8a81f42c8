#include "amqp/writer.h"

#define SMALL_MAX 255u /* what one byte of size, count or number can say */

#define CODE_DESCRIBED 0x00
#define CODE_TRUE 0x41
#define CODE_FALSE 0x42

enum group {
    GROUP_UNSIGNED,
    GROUP_SIGNED,
    GROUP_FLOAT,
    GROUP_FIXED, /* opaque bytes of a fixed number */
    GROUP_VARIABLE,
    GROUP_COMPOUND,
    GROUP_BOOL,
    GROUP_NULL,
    GROUP_DESCRIBED
};

/* The constructors of a type: the general one, the one with a single byte of value or size, and
 * the one for zero or empty; 0 where there is none. width is that of the value of the general
 * form, or of its size. */
static const struct form {
    uint8_t group, width, code, small, zero;
} forms[WEIR__AMQP_TYPES] = {
    [WEIR__AMQP_NULL] = {GROUP_NULL, 0, 0x40, 0, 0},
    [WEIR__AMQP_BOOL] = {GROUP_BOOL, 0, 0, 0, 0},
    [WEIR__AMQP_UBYTE] = {GROUP_UNSIGNED, 1, 0x50, 0, 0},
    [WEIR__AMQP_USHORT] = {GROUP_UNSIGNED, 2, 0x60, 0, 0},
    [WEIR__AMQP_UINT] = {GROUP_UNSIGNED, 4, 0x70, 0x52, 0x43},
    [WEIR__AMQP_ULONG] = {GROUP_UNSIGNED, 8, 0x80, 0x53, 0x44},
    [WEIR__AMQP_CHAR] = {GROUP_UNSIGNED, 4, 0x73, 0, 0},
    [WEIR__AMQP_BYTE] = {GROUP_SIGNED, 1, 0x51, 0, 0},
    [WEIR__AMQP_SHORT] = {GROUP_SIGNED, 2, 0x61, 0, 0},
    [WEIR__AMQP_INT] = {GROUP_SIGNED, 4, 0x71, 0x54, 0},
    [WEIR__AMQP_LONG] = {GROUP_SIGNED, 8, 0x81, 0x55, 0},
    [WEIR__AMQP_TIMESTAMP] = {GROUP_SIGNED, 8, 0x83, 0, 0},
    [WEIR__AMQP_FLOAT] = {GROUP_FLOAT, 4, 0x72, 0, 0},
    [WEIR__AMQP_DOUBLE] = {GROUP_UNSIGNED, 8, 0x82, 0, 0}, /* its bits are in u */
    [WEIR__AMQP_DECIMAL32] = {GROUP_FIXED, 4, 0x74, 0, 0},
    [WEIR__AMQP_DECIMAL64] = {GROUP_FIXED, 8, 0x84, 0, 0},
    [WEIR__AMQP_DECIMAL128] = {GROUP_FIXED, 16, 0x94, 0, 0},
    [WEIR__AMQP_UUID] = {GROUP_FIXED, 16, 0x98, 0, 0},
    [WEIR__AMQP_BINARY] = {GROUP_VARIABLE, 4, 0xb0, 0xa0, 0},
    [WEIR__AMQP_STRING] = {GROUP_VARIABLE, 4, 0xb1, 0xa1, 0},
    [WEIR__AMQP_SYMBOL] = {GROUP_VARIABLE, 4, 0xb3, 0xa3, 0},
    [WEIR__AMQP_LIST] = {GROUP_COMPOUND, 4, 0xd0, 0xc0, 0x45},
    [WEIR__AMQP_MAP] = {GROUP_COMPOUND, 4, 0xd1, 0xc1, 0},
    [WEIR__AMQP_ARRAY] = {GROUP_COMPOUND, 4, 0xf0, 0xe0, 0},
    [WEIR__AMQP_DESCRIBED] = {GROUP_DESCRIBED, 0, 0, 0, 0},
};

void weir__amqp_writer_init(struct weir__amqp_writer *w, void *to, size_t room)
{
    uint8_t *at = to;

    *w = (struct weir__amqp_writer){.start = at, .at = at, .end = room ? at + room : at};
}

/* A buf may have more memory than it may use. */
static uint8_t *end_of(const struct weir__buf *buf)
{
    return buf->at ? buf->at + (buf->cap < buf->max ? buf->cap : buf->max) : NULL;
}

void weir__amqp_writer_append(struct weir__amqp_writer *w, struct weir__buf *buf)
{
    uint8_t *at = buf->at ? buf->at + buf->len : NULL;

    *w = (struct weir__amqp_writer){.start = buf->at, .at = at, .buf = buf, .first = buf->len};
    w->end = end_of(buf);
}

int weir__amqp_writer_finish(struct weir__amqp_writer *w, struct weir__bytes *out,
                             struct weir_error *err)
{
    size_t len = (size_t)(w->at - w->start);

    if (w->code) return weir__fail(err, w->code, "encoding: %s", w->why);
    if (w->buf) w->buf->len = len;
    if (out) *out = weir__bytes_of(len ? w->start + w->first : NULL, len - w->first);
    return 0;
}

static void stop(struct weir__amqp_writer *w, int code, const char *why)
{
    if (w->code) return;
    w->code = code;
    w->why = why;
}

/* The buf is told how far we are, so that what we wrote moves with it. */
static void grow(struct weir__amqp_writer *w, size_t len)
{
    size_t used = (size_t)(w->at - w->start), before;

    if (!w->buf || w->code) {
        stop(w, WEIR_ETOOBIG, "there is no room");
        return;
    }
    before = w->buf->len;
    w->buf->len = used;
    if (weir__buf_room(w->buf, len)) {
        w->start = w->buf->at;
        w->at = w->start + used;
        w->end = end_of(w->buf);
    } else {
        stop(w, WEIR_ETOOBIG, "the buffer is at its maximum or there is no memory");
    }
    w->buf->len = before;
}

/* Where the next len bytes go, which then count as written; NULL when they have no place. */
static uint8_t *take_room(struct weir__amqp_writer *w, size_t len)
{
    uint8_t *to;

    if (len > (size_t)(w->end - w->at)) grow(w, len);
    if (w->code) return NULL;
    to = w->at;
    w->at += len;
    return to;
}

static void store_number(uint8_t *to, uint64_t v, unsigned width)
{
    if (width == 8) {
        weir__store_be64(to, v);
    } else if (width == 4) {
        weir__store_be32(to, (uint32_t)v);
    } else {
        if (width == 2) *to++ = (uint8_t)(v >> 8);
        if (width) *to = (uint8_t)v;
    }
}

static void put_number(struct weir__amqp_writer *w, uint8_t code, uint64_t v, unsigned width)
{
    uint8_t *to = take_room(w, 1 + (size_t)width);

    if (!to) return;
    to[0] = code;
    store_number(to + 1, v, width);
}

/* Whether v survives being cut to a number of bytes. */
static bool fits_unsigned(uint64_t v, unsigned width)
{
    return width >= 8 || !(v >> 8 * width);
}

static bool fits_signed(int64_t v, unsigned width)
{
    int64_t bound = width >= 8 ? INT64_MAX : ((int64_t)1 << (8 * width - 1)) - 1;
    return v >= -bound - 1 && v <= bound;
}

static void put_unsigned(struct weir__amqp_writer *w, const struct form *form, uint64_t v)
{
    if (!fits_unsigned(v, form->width))
        stop(w, WEIR_EINVAL, "a number is too large for its type");
    else if (form->zero && !v)
        put_number(w, form->zero, 0, 0);
    else if (form->small && v <= SMALL_MAX)
        put_number(w, form->small, v, 1);
    else
        put_number(w, form->code, v, form->width);
}

static void put_signed(struct weir__amqp_writer *w, const struct form *form, int64_t v)
{
    if (!fits_signed(v, form->width))
        stop(w, WEIR_EINVAL, "a number is too large for its type");
    else if (form->small && fits_signed(v, 1))
        put_number(w, form->small, (uint64_t)v, 1);
    else
        put_number(w, form->code, (uint64_t)v, form->width);
}

static void put_float(struct weir__amqp_writer *w, const struct form *form, float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    put_number(w, form->code, bits, form->width);
}

static void put_fixed(struct weir__amqp_writer *w, const struct form *form, struct weir__bytes b)
{
    if (b.len != form->width) {
        stop(w, WEIR_EINVAL, "a uuid or decimal of the wrong length");
        return;
    }
    put_number(w, form->code, 0, 0);
    weir__amqp_put_raw(w, b);
}

static void put_variable(struct weir__amqp_writer *w, const struct form *form, struct weir__bytes b)
{
    if (b.len > UINT32_MAX)
        stop(w, WEIR_EINVAL, "a string that is longer than AMQP can say");
    else if (b.len <= SMALL_MAX)
        put_number(w, form->small, b.len, 1);
    else
        put_number(w, form->code, b.len, form->width);
    weir__amqp_put_raw(w, b);
}

/* A list, map or array whose items are len bytes; the items follow. The small form's size counts
 * the byte of its count, the general form's the four of its own. */
static size_t compound_head(uint8_t to[WEIR__AMQP_VALUE_HEAD_MAX], const struct form *form,
                            size_t len, uint32_t count)
{
    if (form->zero && !count && !len) {
        to[0] = form->zero;
        return 1;
    }
    if (len < SMALL_MAX && count <= SMALL_MAX) {
        to[0] = form->small;
        to[1] = (uint8_t)(len + 1);
        to[2] = (uint8_t)count;
        return 3;
    }
    to[0] = form->code;
    weir__store_be32(to + 1, (uint32_t)(len + 4));
    weir__store_be32(to + 5, count);
    return 9;
}

static void put_compound(struct weir__amqp_writer *w, const struct form *form,
                         struct weir__bytes items, uint32_t count)
{
    uint8_t head[WEIR__AMQP_VALUE_HEAD_MAX];

    if (items.len > UINT32_MAX - 4) {
        stop(w, WEIR_EINVAL, "a compound value that is longer than AMQP can say");
        return;
    }
    weir__amqp_put_raw(w, weir__bytes_of(head, compound_head(head, form, items.len, count)));
    weir__amqp_put_raw(w, items);
}

void weir__amqp_put(struct weir__amqp_writer *w, struct weir__amqp_value v)
{
    const struct form *form = &forms[v.type];

    switch ((enum group)form->group) {
    case GROUP_UNSIGNED: put_unsigned(w, form, v.u); break;
    case GROUP_SIGNED: put_signed(w, form, v.i); break;
    case GROUP_FLOAT: put_float(w, form, v.f); break;
    case GROUP_FIXED: put_fixed(w, form, v.bytes); break;
    case GROUP_VARIABLE: put_variable(w, form, v.bytes); break;
    case GROUP_COMPOUND: put_compound(w, form, v.bytes, v.count); break;
    case GROUP_BOOL: put_number(w, v.u ? CODE_TRUE : CODE_FALSE, 0, 0); break;
    case GROUP_NULL: put_number(w, form->code, 0, 0); break;
    case GROUP_DESCRIBED:
        put_number(w, CODE_DESCRIBED, 0, 0);
        weir__amqp_put_raw(w, v.bytes);
        break;
    }
}

void weir__amqp_put_raw(struct weir__amqp_writer *w, struct weir__bytes b)
{
    uint8_t *to = b.len ? take_room(w, b.len) : NULL;

    if (to) memcpy(to, b.at, b.len);
}

void weir__amqp_put_descriptor(struct weir__amqp_writer *w, uint64_t code)
{
    uint8_t *to = take_room(w, 1);

    if (to) *to = CODE_DESCRIBED;
    put_unsigned(w, &forms[WEIR__AMQP_ULONG], code);
}

/* Room for the small head is left; a larger head moves the items when it turns out to be needed. */
size_t weir__amqp_put_open(struct weir__amqp_writer *w)
{
    size_t mark = (size_t)(w->at - w->start);

    take_room(w, 3);
    return mark;
}

void weir__amqp_put_close(struct weir__amqp_writer *w, size_t mark, enum weir__amqp_type type,
                          uint32_t count)
{
    uint8_t head[WEIR__AMQP_VALUE_HEAD_MAX], *items;
    size_t len, head_len;

    if (w->code) return;
    len = (size_t)(w->at - w->start) - mark - 3;
    if (len > UINT32_MAX - 4) {
        stop(w, WEIR_EINVAL, "a compound value that is longer than AMQP can say");
        return;
    }
    head_len = compound_head(head, &forms[type], len, count);
    if (head_len > 3 && !take_room(w, head_len - 3)) return;
    items = w->start + mark + 3;
    if (head_len != 3) memmove(w->start + mark + head_len, items, len);
    memcpy(w->start + mark, head, head_len);
    w->at = w->start + mark + head_len + len;
}

/* The items share one constructor: the small one when every item can have it. */
void weir__amqp_put_array(struct weir__amqp_writer *w, enum weir__amqp_type type,
                          const struct weir__bytes *items, uint32_t count)
{
    const struct form *form = &forms[type];
    size_t mark = weir__amqp_put_open(w), longest = 0;
    unsigned width;

    if (form->group != GROUP_VARIABLE) stop(w, WEIR_EINVAL, "an array of this type is not written");
    for (uint32_t i = 0; i < count; i++)
        if (items[i].len > longest) longest = items[i].len;
    if (longest > UINT32_MAX) stop(w, WEIR_EINVAL, "a string that is longer than AMQP can say");
    width = longest <= SMALL_MAX ? 1 : form->width;
    put_number(w, width == 1 ? form->small : form->code, 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *to = take_room(w, width);
        if (to) store_number(to, items[i].len, width);
        weir__amqp_put_raw(w, items[i]);
    }
    weir__amqp_put_close(w, mark, WEIR__AMQP_ARRAY, count);
}
