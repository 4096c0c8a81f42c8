#include "server/selector.h"

#include <inttypes.h>

#define PREFIX "amqp.annotation."

struct reader {
    const char *start, *at, *end;
};

static const struct {
    const char *name;
    enum weir__position_kind kind;
} subjects[] = {
    {"x-opt-sequence-number", WEIR__FROM_SEQUENCE},
    {"x-opt-enqueued-time", WEIR__FROM_TIME},
    {"x-opt-offset", WEIR__FROM_OFFSET},
};

static int fail_at(const struct reader *r, const char *expected, struct weir_error *err)
{
    return weir__fail(err, WEIR_EINVAL,
                      "The filter '%.*s' is not understood: expected %s at character %zu.",
                      (int)(r->end - r->start > 200 ? 200 : r->end - r->start), r->start, expected,
                      (size_t)(r->at - r->start) + 1);
}

static void skip_spaces(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t')) r->at++;
}

static bool take_text(struct reader *r, const char *text)
{
    size_t len = strlen(text);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, text, len) != 0) return false;
    r->at += len;
    return true;
}

static bool take_subject(struct reader *r, enum weir__position_kind *out)
{
    if (!take_text(r, PREFIX)) return false;
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (!take_text(r, subjects[i].name)) continue;
        *out = subjects[i].kind;
        return true;
    }
    return false;
}

static bool take_number(struct reader *r, int64_t *out)
{
    bool negative = take_text(r, "-");
    const char *first = r->at;
    int64_t n = 0;

    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
        if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *r->at - '0', &n))
            return false;
    *out = negative ? -n : n;
    return r->at > first;
}

/* A number, or one of two words about offsets. An offset of no characters, which C++ resumes from
 * before it has seen an event, is before the first. */
static bool take_value(struct reader *r, bool quoted, struct weir__position *out)
{
    if (out->kind == WEIR__FROM_OFFSET && quoted && r->at < r->end && *r->at == '\'') {
        out->kind = WEIR__FROM_EARLIEST;
        return true;
    }
    if (out->kind == WEIR__FROM_OFFSET && take_text(r, "@latest")) {
        out->kind = WEIR__FROM_LATEST;
        return true;
    }
    if (!take_number(r, &out->value)) return false;
    if (out->kind != WEIR__FROM_TIME && out->value < 0) out->kind = WEIR__FROM_EARLIEST;
    return true;
}

int weir__selector_parse(struct weir__bytes text, struct weir__position *out,
                         struct weir_error *err)
{
    struct reader r = {(const char *)text.at, (const char *)text.at,
                       (const char *)text.at + text.len};
    bool quoted;

    memset(out, 0, sizeof *out);
    if (text.len > WEIR__SELECTOR_BYTES_MAX)
        return weir__fail(err, WEIR_EINVAL, "The filter has %zu bytes, at most %d are allowed.",
                          text.len, WEIR__SELECTOR_BYTES_MAX);
    skip_spaces(&r);
    if (!take_subject(&r, &out->kind))
        return fail_at(&r, PREFIX "x-opt-offset, -sequence-number or -enqueued-time", err);
    skip_spaces(&r);
    if (!take_text(&r, ">")) return fail_at(&r, "> or >=", err);
    out->inclusive = take_text(&r, "=");
    skip_spaces(&r);
    quoted = take_text(&r, "'");
    if (!take_value(&r, quoted, out)) return fail_at(&r, "a number", err);
    if (quoted && !take_text(&r, "'")) return fail_at(&r, "a closing quote", err);
    skip_spaces(&r);
    return r.at == r.end ? 0 : fail_at(&r, "the end", err);
}
