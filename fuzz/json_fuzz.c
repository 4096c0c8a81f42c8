/* json_fuzz.c - any bytes as JSON.
 *
 * Beyond not crashing: what was read, written down again, reads the same; strings are UTF-8 without
 * a NUL; a refusal names a place inside the text. */
#include "fuzz.h"

#include <stdio.h>

#include "amqp/codec.h"
#include "base/buf.h"
#include "base/json.h"

#define INPUT_MAX ((size_t)64 << 10)
#define OUTPUT_MAX (7 * INPUT_MAX) /* \u00XX for a byte is the worst, with room for commas */

static void put(struct weir__buf *out, const char *text)
{
    ORACLE(weir__buf_add(out, text, strlen(text)));
}

static void put_string(struct weir__buf *out, const struct weir__json *j)
{
    char escape[8];

    ORACLE(strlen(j->text) == j->text_len);
    ORACLE(weir__amqp_utf8(weir__bytes_of(j->text, j->text_len)));
    put(out, "\"");
    for (const char *c = j->text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '"' || *c == '\\')
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*c);
        else
            snprintf(escape, sizeof escape, "%c", *c);
        put(out, escape);
    }
    put(out, "\"");
}

static void put_token(struct weir__buf *out, const struct weir__json *j,
                      enum weir__json_token token)
{
    static const char *const fixed[] = {
        [WEIR__JSON_OBJECT] = "{",    [WEIR__JSON_OBJECT_END] = "}", [WEIR__JSON_ARRAY] = "[",
        [WEIR__JSON_ARRAY_END] = "]", [WEIR__JSON_TRUE] = "true",    [WEIR__JSON_FALSE] = "false",
        [WEIR__JSON_NULL] = "null"};
    bool closes = token == WEIR__JSON_OBJECT_END || token == WEIR__JSON_ARRAY_END;

    if (!closes && out->len && !strchr("{[:", out->at[out->len - 1])) put(out, ",");
    if (token == WEIR__JSON_NAME || token == WEIR__JSON_TEXT)
        put_string(out, j);
    else
        put(out, token == WEIR__JSON_NUMBER ? j->text : fixed[token]);
    if (token == WEIR__JSON_NAME) put(out, ":");
}

/* Writes down what it reads; false when it is refused. */
static bool read_all(struct weir__bytes in, struct weir__buf *out)
{
    struct weir_error err = {0};
    enum weir__json_token token;
    struct weir__json j;
    unsigned line, column;

    for (weir__json_init(&j, in);;) {
        if (weir__json_next(&j, &token, &err) != 0) break;
        ORACLE(j.at <= j.in.len && j.depth <= WEIR__JSON_DEPTH_MAX);
        if (token == WEIR__JSON_END) return true;
        put_token(out, &j, token);
    }
    /* NOLINTNEXTLINE(cert-err34-c): our own text */
    ORACLE(sscanf(err.text, "line %u, column %u: ", &line, &column) == 2);
    ORACLE(line >= 1 && line <= in.len + 1 && column >= 1 && column <= in.len + 1);
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__buf first, second;

    if (len > INPUT_MAX) return 0;
    weir__buf_init(&first, OUTPUT_MAX);
    weir__buf_init(&second, OUTPUT_MAX);
    if (read_all(weir__bytes_of(at, len), &first)) {
        ORACLE(read_all(weir__buf_bytes(&first), &second));
        ORACLE(first.len == second.len && memcmp(first.at, second.at, first.len) == 0);
    }
    weir__buf_fini(&first);
    weir__buf_fini(&second);
    return 0;
}
