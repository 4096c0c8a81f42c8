/* dump.c - frames as people read them, one line each.
 *
 * Names come from the table of performatives. Null fields are left out, text is escaped, what
 * may be a secret is not shown: of a payload and of a SASL response only the length. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "amqp/engine.h"
#include "amqp/frame.h"

#define TEXT_SHOWN 96 /* bytes of a string */
#define ITEMS_SHOWN 8 /* of a list, a map or an array */
#define DEPTH_SHOWN 4

struct line {
    char *to;
    size_t room, len;
};

__attribute__((format(printf, 2, 3))) static void print(struct line *l, const char *fmt, ...)
{
    size_t left = l->room - l->len;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(l->to + l->len, left, fmt, args);
    va_end(args);
    if (n > 0) l->len += (size_t)n < left ? (size_t)n : left - 1;
}

static void print_text(struct line *l, char quote, struct weir__bytes b)
{
    size_t shown = b.len < TEXT_SHOWN ? b.len : TEXT_SHOWN;

    if (quote) print(l, "%c", quote);
    for (size_t i = 0; i < shown; i++)
        if (b.at[i] >= 0x20 && b.at[i] < 0x7f && b.at[i] != '\\' && b.at[i] != (uint8_t)quote)
            print(l, "%c", b.at[i]);
        else
            print(l, "\\x%02x", b.at[i]);
    if (b.len > shown) print(l, "..+%zu", b.len - shown);
    if (quote) print(l, "%c", quote);
}

static void print_hex(struct line *l, struct weir__bytes b)
{
    size_t shown = b.len < TEXT_SHOWN / 2 ? b.len : TEXT_SHOWN / 2;

    print(l, "x");
    for (size_t i = 0; i < shown; i++) print(l, "%02x", b.at[i]);
    if (b.len > shown) print(l, "..+%zu", b.len - shown);
}

static void print_value(struct line *l, const struct weir__amqp_value *v, unsigned depth);

static void print_items(struct line *l, const struct weir__amqp_value *v, unsigned depth)
{
    bool map = v->type == WEIR__AMQP_MAP;
    struct weir__amqp_items items;
    struct weir__amqp_value item;
    uint32_t n = 0;

    print(l, map ? "{" : "[");
    weir__amqp_items_init(&items, v);
    for (; n < ITEMS_SHOWN * (map ? 2u : 1u) && weir__amqp_items_next(&items, &item); n++) {
        if (n) print(l, map && n % 2 ? "=" : ",");
        print_value(l, &item, depth + 1);
    }
    if (items.left) print(l, "..+%u", map ? items.left / 2 : items.left);
    print(l, map ? "}" : "]");
}

/* A composite shows its fields, anything else described its descriptor and value. */
static void print_described(struct line *l, const struct weir__amqp_value *v, unsigned depth)
{
    struct weir__amqp_value descriptor, inner;
    struct weir__amqp_composite c;

    if (weir__amqp_composite_of(v, UINT32_MAX, &c, NULL) == 0) {
        bool first = true;
        print(l, "%s(", weir__amqp_kind_name(c.kind));
        for (unsigned i = 0; i < weir__amqp_kind_fields(c.kind); i++) {
            if (c.field[i].type == WEIR__AMQP_NULL) continue;
            print(l, "%s%s=", first ? "" : " ", weir__amqp_field_name(c.kind, i));
            print_value(l, &c.field[i], depth + 1);
            first = false;
        }
        print(l, ")");
    } else if (weir__amqp_described(v, &descriptor, &inner)) {
        print(l, "@");
        print_value(l, &descriptor, depth + 1);
        print(l, ":");
        print_value(l, &inner, depth + 1);
    }
}

static void print_value(struct line *l, const struct weir__amqp_value *v, unsigned depth)
{
    if (depth > DEPTH_SHOWN) {
        print(l, "..");
        return;
    }
    switch (v->type) {
    case WEIR__AMQP_NULL: print(l, "null"); break;
    case WEIR__AMQP_BOOL: print(l, v->u ? "true" : "false"); break;
    case WEIR__AMQP_BYTE:
    case WEIR__AMQP_SHORT:
    case WEIR__AMQP_INT:
    case WEIR__AMQP_LONG:
    case WEIR__AMQP_TIMESTAMP: print(l, "%" PRId64, v->i); break;
    case WEIR__AMQP_FLOAT: print(l, "%g", (double)v->f); break;
    case WEIR__AMQP_DOUBLE: print(l, "%g", v->d); break;
    case WEIR__AMQP_STRING: print_text(l, '"', v->bytes); break;
    case WEIR__AMQP_SYMBOL: print_text(l, 0, v->bytes); break;
    case WEIR__AMQP_LIST:
    case WEIR__AMQP_MAP:
    case WEIR__AMQP_ARRAY: print_items(l, v, depth); break;
    case WEIR__AMQP_DESCRIBED: print_described(l, v, depth); break;
    case WEIR__AMQP_UUID:
    case WEIR__AMQP_BINARY:
    case WEIR__AMQP_DECIMAL32:
    case WEIR__AMQP_DECIMAL64:
    case WEIR__AMQP_DECIMAL128: print_hex(l, v->bytes); break;
    default: print(l, "%" PRIu64, v->u); break;
    }
}

/* SASL's responses are passwords, or as good as one. */
static bool is_secret(enum weir__amqp_kind kind, unsigned field)
{
    return (kind == WEIR__AMQP_SASL_INIT && field == 1) || kind == WEIR__AMQP_SASL_RESPONSE;
}

static void print_body(struct line *l, struct weir__bytes body)
{
    struct weir__amqp_cursor in = weir__amqp_cursor_of(body);
    struct weir__amqp_composite c;
    struct weir_error err;

    if (weir__amqp_composite_read(&in, WEIR__AMQP_PERFORMATIVES | WEIR__AMQP_SASL_FRAMES, &c,
                                  &err) != 0) {
        print(l, "broken (%s) ", err.text);
        print_hex(l, body);
        return;
    }
    print(l, "%s", weir__amqp_kind_name(c.kind));
    for (unsigned i = 0; i < weir__amqp_kind_fields(c.kind); i++) {
        if (c.field[i].type == WEIR__AMQP_NULL) continue;
        print(l, " %s=", weir__amqp_field_name(c.kind, i));
        if (is_secret(c.kind, i))
            print(l, "(%zu bytes)", c.field[i].bytes.len);
        else
            print_value(l, &c.field[i], 0);
    }
    if (c.kind == WEIR__AMQP_TRANSFER) print(l, " payload=%zu", weir__amqp_left(&in));
}

size_t weir__amqp_dump(struct weir__bytes frame, char *to, size_t room)
{
    struct line l = {to, room, 0};
    struct weir__amqp_frame f;
    const char *why = "part of a frame";

    to[0] = '\0';
    if (frame.len == 8 && !memcmp(frame.at, "AMQP", 4)) {
        print(&l, "header AMQP %u %u.%u.%u", frame.at[4], frame.at[5], frame.at[6], frame.at[7]);
    } else if (weir__amqp_frame_read(frame, UINT32_MAX, &f, &why) != WEIR__AMQP_FRAME_WHOLE) {
        print(&l, "broken (%s) ", why ? why : "part of a frame");
        print_hex(&l, frame);
    } else {
        if (f.type == WEIR__AMQP_FRAME_AMQP) print(&l, "ch=%u ", f.channel);
        if (f.body.len)
            print_body(&l, f.body);
        else
            print(&l, "empty");
    }
    return l.len;
}
