#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "amqp/codec.h"
#include "cli/when.h"

#define DOUBLE_BYTES 32

/* Length of the UTF-8 character at `at`, 0 when it is none. */
static size_t char_length(const char *at, size_t left)
{
    size_t longest = left < 4 ? left : 4;

    for (size_t len = 1; len <= longest; len++)
        if (weir__amqp_utf8(weir__bytes_of(at, len))) return len;
    return 0;
}

/* Quotes, backslashes and control characters must be escaped, nothing else may need it. */
static void put_escaped(FILE *to, unsigned char c)
{
    static const char letters[32] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};

    if (c >= 32)
        fprintf(to, "\\%c", c);
    else if (letters[c])
        fprintf(to, "\\%c", letters[c]);
    else
        fprintf(to, "\\u%04x", c);
}

static bool is_plain(unsigned char c)
{
    return c >= 32 && c < 128 && c != '"' && c != '\\';
}

void weir__json_text(FILE *to, struct weir_bytes text)
{
    size_t i = 0, len;

    putc('"', to);
    while (i < text.len) {
        size_t start = i;
        while (i < text.len && is_plain((unsigned char)text.at[i])) i++;
        if (i > start) fwrite(text.at + start, 1, i - start, to);
        if (i == text.len) break;
        len = char_length(text.at + i, text.len - i);
        if (len == 1)
            put_escaped(to, (unsigned char)text.at[i]);
        else if (len > 1)
            fwrite(text.at + i, 1, len, to);
        else
            fputs("\xef\xbf\xbd", to);
        i += len ? len : 1;
    }
    putc('"', to);
}

static void put_base64(FILE *to, struct weir_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)bytes.at;

    putc('"', to);
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        unsigned b = (unsigned)at[i] << 16;
        if (left > 1) b |= (unsigned)at[i + 1] << 8;
        if (left > 2) b |= at[i + 2];
        putc(digits[b >> 18], to);
        putc(digits[b >> 12 & 63], to);
        putc(left > 1 ? digits[b >> 6 & 63] : '=', to);
        putc(left > 2 ? digits[b & 63] : '=', to);
    }
    putc('"', to);
}

static void put_uuid(FILE *to, struct weir_bytes bytes)
{
    putc('"', to);
    for (size_t i = 0; i < bytes.len; i++)
        fprintf(to, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                (unsigned char)bytes.at[i]);
    putc('"', to);
}

static void put_time(FILE *to, int64_t time_ms)
{
    char text[WEIR__WHEN_BYTES];

    fprintf(to, "\"%s\"", weir__when_text(time_ms, text));
}

/* With a point, so that it is read back as what it is. JSON has no infinities. */
static void put_double(FILE *to, double real)
{
    char text[DOUBLE_BYTES];

    snprintf(text, sizeof text, isfinite(real) ? "%.17g" : "\"%f\"", real);
    fprintf(to, "%s%s", text, strpbrk(text, ".e\"") ? "" : ".0");
}

static void put_value(FILE *to, const struct weir_value *v)
{
    switch (v->type) {
    case WEIR_NULL: fputs("null", to); break;
    case WEIR_BOOL: fputs(v->boolean ? "true" : "false", to); break;
    case WEIR_INT: fprintf(to, "%" PRId64, v->integer); break;
    case WEIR_UINT: fprintf(to, "%" PRIu64, v->natural); break;
    case WEIR_DOUBLE: put_double(to, v->real); break;
    case WEIR_TIME: put_time(to, v->time_ms); break;
    case WEIR_TEXT: weir__json_text(to, v->bytes); break;
    case WEIR_UUID: put_uuid(to, v->bytes); break;
    case WEIR_BINARY:
    case WEIR_ENCODED: put_base64(to, v->bytes); break;
    }
}

/* ---- system properties: those that are there ---- */

struct members {
    FILE *to;
    const char *before; /* the next one: "" or "," */
};

static void put_member(struct members *m, const char *name, const struct weir_value *v)
{
    if (v->type == WEIR_NULL) return;
    fprintf(m->to, "%s\"%s\":", m->before, name);
    put_value(m->to, v);
    m->before = ",";
}

static void put_text_member(struct members *m, const char *name, struct weir_bytes text)
{
    struct weir_value v = {.type = text.at ? WEIR_TEXT : WEIR_NULL};

    v.bytes = text;
    put_member(m, name, &v);
}

static void put_time_member(struct members *m, const char *name, int64_t time_ms)
{
    struct weir_value v = {.type = time_ms != 0 ? WEIR_TIME : WEIR_NULL};

    v.time_ms = time_ms;
    put_member(m, name, &v);
}

static void put_system(FILE *to, const struct weir_system_properties *s)
{
    struct members m = {to, ""};
    struct weir_value user_id = {.type = s->user_id.at ? WEIR_BINARY : WEIR_NULL};
    struct weir_value sequence = {.type = s->has_group_sequence ? WEIR_UINT : WEIR_NULL};

    user_id.bytes = s->user_id;
    sequence.natural = s->group_sequence;
    fputs(",\"system_properties\":{", to);
    put_member(&m, "message_id", &s->message_id);
    put_member(&m, "correlation_id", &s->correlation_id);
    put_member(&m, "user_id", &user_id);
    put_text_member(&m, "to", s->to);
    put_text_member(&m, "subject", s->subject);
    put_text_member(&m, "reply_to", s->reply_to);
    put_text_member(&m, "content_type", s->content_type);
    put_text_member(&m, "content_encoding", s->content_encoding);
    put_time_member(&m, "absolute_expiry_time", s->absolute_expiry_time_ms);
    put_time_member(&m, "creation_time", s->creation_time_ms);
    put_text_member(&m, "group_id", s->group_id);
    put_member(&m, "group_sequence", &sequence);
    put_text_member(&m, "reply_to_group_id", s->reply_to_group_id);
    putc('}', to);
}

static void put_body(FILE *to, const struct weir_event *e)
{
    static const char *const kinds[] = {[WEIR_BODY_DATA] = NULL,
                                        [WEIR_BODY_VALUE] = "value",
                                        [WEIR_BODY_SEQUENCE] = "sequence",
                                        [WEIR_BODY_UNREADABLE] = "unreadable"};

    if (kinds[e->body_type]) fprintf(to, ",\"body_type\":\"%s\"", kinds[e->body_type]);
    if (e->body_type == WEIR_BODY_DATA &&
        weir__amqp_utf8(weir__bytes_of(e->body.at, e->body.len))) {
        fputs(",\"body\":", to);
        weir__json_text(to, e->body);
    } else {
        fputs(",\"body_base64\":", to);
        put_base64(to, e->body);
    }
}

void weir__json_event(FILE *to, const struct weir_event *e)
{
    fprintf(to, "{\"partition\":\"%" PRIu32 "\"", e->partition);
    weir__json_members(to, e);
    fputs("}\n", to);
}

void weir__json_members(FILE *to, const struct weir_event *e)
{
    char offset[WEIR_OFFSET_TEXT_BYTES];

    fprintf(to, ",\"sequence\":%" PRIu64 ",\"offset\":\"%s\"", e->sequence,
            weir_event_offset_text(e, offset));
    fputs(",\"enqueued_time\":", to);
    put_time(to, e->enqueued_time_ms);
    fputs(",\"key\":", to);
    if (e->partition_key.at)
        weir__json_text(to, e->partition_key);
    else
        fputs("null", to);
    put_body(to, e);
    fputs(",\"properties\":{", to);
    for (uint32_t i = 0; i < e->property_count; i++) {
        if (i > 0) putc(',', to);
        weir__json_text(to, e->properties[i].name);
        putc(':', to);
        put_value(to, &e->properties[i].value);
    }
    putc('}', to);
    if (e->system) put_system(to, e->system);
}
