#include "base/json.h"

#include <stdbool.h>

#define SURROGATE 0xd800u /* the first of those that only pairs of \u escapes may use */
#define SURROGATE_LOW 0xdc00u
#define SURROGATE_END 0xe000u

/* What may come next. */
enum expect {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END, /* behind '[' */
    EXPECT_NAME,         /* behind ',' in an object */
    EXPECT_NAME_OR_END,  /* behind '{' */
    EXPECT_MORE          /* behind a value: ',' or what closes; at the top, nothing */
};

void weir__json_init(struct weir__json *j, struct weir__bytes in)
{
    static const uint8_t mark[] = {0xef, 0xbb, 0xbf};

    if (in.len >= sizeof mark && memcmp(in.at, mark, sizeof mark) == 0)
        in = weir__bytes_of(in.at + sizeof mark, in.len - sizeof mark);
    j->in = in;
    j->at = j->began = 0;
    j->depth = 0;
    j->expect = EXPECT_VALUE;
    j->text[0] = '\0';
    j->text_len = 0;
    j->lent = NULL;
    j->takes_nul = j->is_line = false;
}

void weir__json_lend(struct weir__json *j, char *room, size_t size)
{
    j->lent = room;
    j->lent_max = size - 1;
}

void weir__json_place(const struct weir__json *j, unsigned *line, unsigned *column)
{
    *line = *column = 1;
    for (size_t i = 0; i < j->began; i++) {
        if (j->in.at[i] == '\n') {
            ++*line;
            *column = 1;
        } else if ((j->in.at[i] & 0xc0) != 0x80) {
            ++*column;
        }
    }
}

/* What is wrong at the cursor. */
static int fail_here(struct weir__json *j, const char *what, struct weir_error *err)
{
    const char *end = j->at == j->in.len ? ", but the text ends" : "";
    unsigned line, column;

    j->began = j->at;
    weir__json_place(j, &line, &column);
    if (j->is_line) return weir__fail(err, WEIR_EINVAL, "column %u: %s%s", column, what, end);
    return weir__fail(err, WEIR_EINVAL, "line %u, column %u: %s%s", line, column, what, end);
}

static int peek(const struct weir__json *j)
{
    return j->at < j->in.len ? j->in.at[j->at] : -1;
}

static void skip_space(struct weir__json *j)
{
    static const char space[] = {' ', '\t', '\r', '\n'};

    while (j->at < j->in.len && memchr(space, j->in.at[j->at], sizeof space)) j->at++;
}

/* ---- strings ---- */

static int add_byte(struct weir__json *j, unsigned c, struct weir_error *err)
{
    if (j->text_len == (j->lent ? j->lent_max : WEIR__JSON_TEXT_MAX))
        return fail_here(j, "a string or number is longer than can be", err);
    (j->lent ? j->lent : j->text)[j->text_len++] = (char)c;
    return 0;
}

static void end_text(struct weir__json *j)
{
    (j->lent ? j->lent : j->text)[j->text_len] = '\0';
}

static int add_code(struct weir__json *j, unsigned code, struct weir_error *err)
{
    static const unsigned first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    unsigned bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    int rc = add_byte(j, first[bytes] | code >> 6 * (bytes - 1), err);

    while (rc == 0 && --bytes > 0) rc = add_byte(j, 0x80 | (code >> 6 * (bytes - 1) & 0x3f), err);
    return rc;
}

/* Four hexadecimal digits. */
static int read_unit(struct weir__json *j, unsigned *out, struct weir_error *err)
{
    static const char digits[] = "0123456789abcdefABCDEF";

    *out = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        int c = peek(j);
        const char *digit = c > 0 ? strchr(digits, c) : NULL;
        unsigned value = digit ? (unsigned)(digit - digits) : 0;
        if (!digit) return fail_here(j, "\\u needs four hexadecimal digits", err);
        *out = *out << 4 | (value < 16 ? value : value - 6);
    }
    return 0;
}

/* Behind "\u". */
static int read_code(struct weir__json *j, struct weir_error *err)
{
    unsigned code, low;
    int rc = read_unit(j, &code, err);

    if (rc != 0) return rc;
    if (code == 0 && !j->takes_nul) return fail_here(j, "a NUL is not allowed in a string", err);
    if (code < SURROGATE || code >= SURROGATE_END) return add_code(j, code, err);
    if (code >= SURROGATE_LOW || j->in.len - j->at < 2 || memcmp(j->in.at + j->at, "\\u", 2) != 0)
        return fail_here(j, "half of a surrogate pair", err);
    j->at += 2;
    rc = read_unit(j, &low, err);
    if (rc != 0) return rc;
    if (low < SURROGATE_LOW || low >= SURROGATE_END)
        return fail_here(j, "half of a surrogate pair", err);
    code = 0x10000 + ((code - SURROGATE) << 10 | (low - SURROGATE_LOW));
    return add_code(j, code, err);
}

/* Behind the backslash. */
static int read_escape(struct weir__json *j, struct weir_error *err)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    int c = peek(j);
    const char *name = c > 0 ? strchr(names, c) : NULL;

    if (c == 'u') {
        j->at++;
        return read_code(j, err);
    }
    if (!name) return fail_here(j, "an unknown escape", err);
    j->at++;
    return add_byte(j, (unsigned char)bytes[name - names], err);
}

/* Length of the UTF-8 character there, 0 when it is none: too long a form, a surrogate, too large a
 * code. */
static size_t char_length(const uint8_t *at, size_t left)
{
    unsigned code = at[0];
    size_t len = code < 0x80 ? 1 : code < 0xc2 ? 0 : code < 0xe0 ? 2 : code < 0xf0 ? 3 : 4;

    if (len <= 1 || len > left || code > 0xf4) return len == 1 ? 1 : 0;
    code &= 0x7fu >> len;
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3fu);
    }
    if ((len == 3 && code < 0x800) || (len == 4 && (code < 0x10000 || code > 0x10ffff))) return 0;
    return code >= SURROGATE && code < SURROGATE_END ? 0 : len;
}

static int read_string(struct weir__json *j, struct weir_error *err)
{
    int rc = 0;

    j->text_len = 0;
    for (j->at++; rc == 0 && peek(j) != '"';) {
        size_t len;
        if (peek(j) < ' ') return fail_here(j, "a string ends with '\"' on the same line", err);
        len = char_length(j->in.at + j->at, j->in.len - j->at);
        if (len == 0) return fail_here(j, "bytes that are not UTF-8", err);
        if (peek(j) == '\\') {
            j->at++;
            rc = read_escape(j, err);
            continue;
        }
        while (rc == 0 && len-- > 0) rc = add_byte(j, j->in.at[j->at++], err);
    }
    if (rc != 0) return rc;
    j->at++;
    end_text(j);
    return 0;
}

/* ---- numbers and words ---- */

static bool take_digits(struct weir__json *j)
{
    size_t began = j->at;

    while (peek(j) >= '0' && peek(j) <= '9') j->at++;
    return j->at > began;
}

static int read_number(struct weir__json *j, struct weir_error *err)
{
    bool good;
    int rc = 0;

    if (peek(j) == '-') j->at++;
    if (peek(j) == '0') {
        j->at++;
        good = true;
    } else {
        good = take_digits(j);
    }
    if (good && peek(j) == '.') {
        j->at++;
        good = take_digits(j);
    }
    if (good && (peek(j) == 'e' || peek(j) == 'E')) {
        j->at++;
        if (peek(j) == '+' || peek(j) == '-') j->at++;
        good = take_digits(j);
    }
    if (!good) return fail_here(j, "a digit should be here", err);
    j->text_len = 0;
    for (size_t i = j->began; rc == 0 && i < j->at; i++) rc = add_byte(j, j->in.at[i], err);
    end_text(j);
    return rc;
}

static const struct word {
    const char *text;
    enum weir__json_token token;
} words[] = {
    {"true", WEIR__JSON_TRUE},
    {"false", WEIR__JSON_FALSE},
    {"null", WEIR__JSON_NULL},
};

static int read_word(struct weir__json *j, enum weir__json_token *out, struct weir_error *err)
{
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t len = strlen(words[i].text);
        if (j->in.len - j->at < len || memcmp(j->in.at + j->at, words[i].text, len) != 0) continue;
        j->at += len;
        *out = words[i].token;
        return 0;
    }
    return fail_here(j, "a value should be here", err);
}

/* ---- structure ---- */

static int open_nest(struct weir__json *j, char c, struct weir_error *err)
{
    if (j->depth == WEIR__JSON_DEPTH_MAX) return fail_here(j, "too many levels", err);
    j->open[j->depth++] = c;
    j->expect = c == '{' ? EXPECT_NAME_OR_END : EXPECT_VALUE_OR_END;
    j->at++;
    return 0;
}

static enum weir__json_token close_nest(struct weir__json *j)
{
    j->expect = EXPECT_MORE;
    j->at++;
    return j->open[--j->depth] == '{' ? WEIR__JSON_OBJECT_END : WEIR__JSON_ARRAY_END;
}

static int read_value(struct weir__json *j, enum weir__json_token *out, struct weir_error *err)
{
    int c = peek(j), rc;

    if (c == '{' || c == '[') {
        *out = c == '{' ? WEIR__JSON_OBJECT : WEIR__JSON_ARRAY;
        return open_nest(j, (char)c, err);
    }
    *out = c == '"' ? WEIR__JSON_TEXT : WEIR__JSON_NUMBER;
    if (c == '"')
        rc = read_string(j, err);
    else if (c == '-' || (c >= '0' && c <= '9'))
        rc = read_number(j, err);
    else
        rc = read_word(j, out, err);
    j->expect = EXPECT_MORE;
    return rc;
}

static int read_name(struct weir__json *j, struct weir_error *err)
{
    int rc;

    if (peek(j) != '"') return fail_here(j, "a name in quotes should be here", err);
    rc = read_string(j, err);
    if (rc != 0) return rc;
    skip_space(j);
    if (peek(j) != ':') return fail_here(j, "':' should be here", err);
    j->at++;
    j->expect = EXPECT_VALUE;
    return 0;
}

/* Behind a value: the end of the text, of what it stands in, or a comma. */
static int read_more(struct weir__json *j, bool *ended, enum weir__json_token *out,
                     struct weir_error *err)
{
    bool object = j->depth > 0 && j->open[j->depth - 1] == '{';
    int c = peek(j);

    *ended = c != ',' || j->depth == 0;
    if (j->depth == 0) {
        *out = WEIR__JSON_END;
        return c < 0 ? 0 : fail_here(j, "something follows the end", err);
    }
    if (c == (object ? '}' : ']')) {
        *out = close_nest(j);
        return 0;
    }
    if (c != ',')
        return fail_here(j, object ? "',' or '}' should be here" : "',' or ']' should be here",
                         err);
    j->at++;
    j->expect = object ? EXPECT_NAME : EXPECT_VALUE;
    skip_space(j);
    j->began = j->at;
    return 0;
}

int weir__json_next(struct weir__json *j, enum weir__json_token *out, struct weir_error *err)
{
    bool ended = false;
    int rc = 0;

    skip_space(j);
    j->began = j->at;
    if (j->expect == EXPECT_MORE) rc = read_more(j, &ended, out, err);
    if (rc != 0 || ended) return rc;
    if ((j->expect == EXPECT_NAME_OR_END && peek(j) == '}') ||
        (j->expect == EXPECT_VALUE_OR_END && peek(j) == ']')) {
        *out = close_nest(j);
        return 0;
    }
    if (j->expect == EXPECT_NAME || j->expect == EXPECT_NAME_OR_END) {
        *out = WEIR__JSON_NAME;
        return read_name(j, err);
    }
    return read_value(j, out, err);
}

int weir__json_skip(struct weir__json *j, enum weir__json_token token, struct weir_error *err)
{
    unsigned depth = j->depth;
    int rc = 0;

    if (token != WEIR__JSON_OBJECT && token != WEIR__JSON_ARRAY) return 0;
    while (rc == 0 && j->depth >= depth) rc = weir__json_next(j, &token, err);
    return rc;
}
