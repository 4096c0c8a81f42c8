#include "http/head.h"

#include <string.h>
#include <strings.h>

#define LENGTH_DIGITS_MAX 19 /* of Content-Length: cannot overflow */

/* Characters beside letters and digits, by where they may stand (RFC 9110, 5.6.2; RFC 3986). */
static const char in_token[] = "!#$%&'*+-.^_`|~";
static const char in_target[] = "-._~!$&'()*+,;=:@/?%[]";
static const char in_host[] = "-._~!$&'()*+,;=:%[]";

static bool is_alnum(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static bool is_hex(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
}

static bool is_made_of(struct weir__bytes b, const char *others)
{
    for (size_t i = 0; i < b.len; i++)
        if (!is_alnum(b.at[i]) && (!b.at[i] || !strchr(others, b.at[i]))) return false;
    return true;
}

static bool is_equal(struct weir__bytes b, const char *text)
{
    return b.len == strlen(text) && (b.len == 0 || memcmp(b.at, text, b.len) == 0);
}

/* text is in lower case. */
static bool is_alike(struct weir__bytes b, const char *text)
{
    return b.len == strlen(text) && strncasecmp((const char *)b.at, text, b.len) == 0;
}

static bool begins_with(struct weir__bytes b, const char *text)
{
    size_t len = strlen(text);

    return b.len >= len && memcmp(b.at, text, len) == 0;
}

static struct weir__bytes part(struct weir__bytes b, size_t first, size_t last)
{
    return weir__bytes_of(b.at + first, last - first);
}

static size_t find(struct weir__bytes b, char c)
{
    const uint8_t *at = b.len ? memchr(b.at, c, b.len) : NULL;

    return at ? (size_t)(at - b.at) : b.len;
}

static struct weir__bytes trim(struct weir__bytes b)
{
    while (b.len && (b.at[0] == ' ' || b.at[0] == '\t')) b = part(b, 1, b.len);
    while (b.len && (b.at[b.len - 1] == ' ' || b.at[b.len - 1] == '\t')) b.len--;
    return b;
}

bool weir__http_is_name(struct weir__bytes b)
{
    return b.len && is_made_of(b, in_token);
}

bool weir__http_is_value(struct weir__bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if ((b.at[i] < ' ' && b.at[i] != '\t') || b.at[i] == 0x7f) return false;
    return true;
}

static bool refuse(struct weir__http_refusal *r, unsigned status, const char *text)
{
    *r = (struct weir__http_refusal){status, text};
    return false;
}

bool weir__http_head_end(const uint8_t *at, size_t there, size_t *seen, size_t *len,
                         struct weir__http_refusal *r)
{
    *len = 0;
    for (size_t i = *seen; i < there; i++) {
        if (at[i] != '\n') continue;
        if (i == 0 || at[i - 1] != '\r') return refuse(r, 400, "a line ends without CR");
        if (i > 1 && at[i - 2] != '\n') continue;
        *len = i + 1;
        break;
    }
    *seen = there;
    return true;
}

/* The next line without its end; the head is known to consist of whole lines. */
static struct weir__bytes take_line(struct weir__bytes *rest)
{
    size_t end = find(*rest, '\n');
    struct weir__bytes line = part(*rest, 0, end - 1);

    *rest = part(*rest, end + 1, rest->len);
    return line;
}

/* The request line. */

static const struct {
    const char *name;
    enum weir__http_method method;
} methods[] = {
    {"GET", WEIR__HTTP_GET},         {"HEAD", WEIR__HTTP_HEAD},     {"POST", WEIR__HTTP_POST},
    {"PUT", WEIR__HTTP_PUT},         {"DELETE", WEIR__HTTP_DELETE}, {"PATCH", WEIR__HTTP_PATCH},
    {"OPTIONS", WEIR__HTTP_OPTIONS},
};

static bool read_method(struct weir__http_request *q, struct weir__bytes b,
                        struct weir__http_refusal *r)
{
    if (!weir__http_is_name(b)) return refuse(r, 400, "the method is not a word");
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (is_equal(b, methods[i].name)) {
            q->method = methods[i].method;
            return true;
        }
    return refuse(r, 501, "this method is not known here");
}

/* "HTTP/N.N" */
static bool is_version(struct weir__bytes b)
{
    return b.len == 8 && begins_with(b, "HTTP/") && b.at[6] == '.' && b.at[5] >= '0' &&
           b.at[5] <= '9' && b.at[7] >= '0' && b.at[7] <= '9';
}

static bool read_version(struct weir__http_request *q, struct weir__bytes b,
                         struct weir__http_refusal *r)
{
    if (!is_version(b)) return refuse(r, 400, "the request line does not end with a version");
    if (b.at[5] != '1' || b.at[7] > '1') return refuse(r, 505, "this is HTTP/1.1");
    q->minor = (unsigned)(b.at[7] - '0');
    return true;
}

static bool escapes_are_good(struct weir__bytes b)
{
    for (size_t i = 0; i < b.len; i++)
        if (b.at[i] == '%' && (b.len - i < 3 || !is_hex(b.at[i + 1]) || !is_hex(b.at[i + 2])))
            return false;
    return true;
}

/* "http://host/path?query": what remains is the path and the query. */
static bool take_authority(struct weir__http_request *q, struct weir__bytes *rest)
{
    static const char *const schemes[] = {"http://", "https://"};
    size_t end;

    for (size_t i = 0; i < 2; i++) {
        if (!begins_with(*rest, schemes[i])) continue;
        *rest = part(*rest, strlen(schemes[i]), rest->len);
        end = find(*rest, '/');
        if (find(*rest, '?') < end) end = find(*rest, '?');
        q->host = part(*rest, 0, end);
        *rest = part(*rest, end, rest->len);
        return q->host.len && is_made_of(q->host, in_host);
    }
    return false;
}

static bool read_target(struct weir__http_request *q, struct weir__bytes b,
                        struct weir__http_refusal *r)
{
    struct weir__bytes rest = b;
    size_t mark;

    q->target = b;
    if (!b.len || !is_made_of(b, in_target) || !escapes_are_good(b))
        return refuse(r, 400, "the target has characters that do not belong there");
    if (is_equal(b, "*") && q->method == WEIR__HTTP_OPTIONS) {
        q->path = b;
        return true;
    }
    if (b.at[0] != '/' && !take_authority(q, &rest))
        return refuse(r, 400, "the target is neither a path nor a URL");
    mark = find(rest, '?');
    q->path = mark ? part(rest, 0, mark) : weir__bytes_of("/", 1);
    if (mark < rest.len) q->query = part(rest, mark + 1, rest.len);
    return true;
}

static bool read_request_line(struct weir__http_request *q, struct weir__bytes line,
                              size_t target_max, struct weir__http_refusal *r)
{
    size_t first = find(line, ' '), last = line.len;

    while (last > first && line.at[last - 1] != ' ') last--;
    if (last <= first + 1) return refuse(r, 400, "a request line has three words");
    if (!read_method(q, part(line, 0, first), r)) return false;
    if (last - 1 - (first + 1) > target_max) return refuse(r, 414, "the target is too long");
    return read_version(q, part(line, last, line.len), r) &&
           read_target(q, part(line, first + 1, last - 1), r);
}

/* The fields that the codec itself understands. */

struct reading {
    struct weir__http_request *q;
    struct weir__http_refusal *r;
    struct weir__bytes host;
    bool has_host, has_length, close, keep;
};

static bool read_host(struct reading *h, struct weir__bytes value)
{
    if (h->has_host) return refuse(h->r, 400, "two Host fields");
    if (!is_made_of(value, in_host)) return refuse(h->r, 400, "Host is not a host");
    h->has_host = true;
    h->host = value;
    return true;
}

static bool read_length(struct reading *h, struct weir__bytes value)
{
    if (h->has_length) return refuse(h->r, 400, "two Content-Length fields");
    if (!value.len || value.len > LENGTH_DIGITS_MAX)
        return refuse(h->r, 400, "Content-Length is not a number");
    for (size_t i = 0; i < value.len; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return refuse(h->r, 400, "Content-Length is not a number");
        h->q->length = h->q->length * 10 + (uint64_t)(value.at[i] - '0');
    }
    h->has_length = true;
    return true;
}

static bool read_encoding(struct reading *h, struct weir__bytes value)
{
    if (h->q->chunked) return refuse(h->r, 400, "two Transfer-Encoding fields");
    if (!is_alike(value, "chunked")) return refuse(h->r, 400, "Transfer-Encoding is not chunked");
    h->q->chunked = true;
    return true;
}

static bool read_connection(struct reading *h, struct weir__bytes value)
{
    h->close |= weir__http_has_token(value, "close");
    h->keep |= weir__http_has_token(value, "keep-alive");
    return true;
}

static bool read_expect(struct reading *h, struct weir__bytes value)
{
    if (!is_alike(value, "100-continue")) return refuse(h->r, 417, "only 100-continue is known");
    h->q->expects_continue = true;
    return true;
}

static const struct {
    const char *name;
    bool (*read)(struct reading *, struct weir__bytes value);
} known[] = {
    {"host", read_host},
    {"content-length", read_length},
    {"transfer-encoding", read_encoding},
    {"connection", read_connection},
    {"expect", read_expect},
};

/* One line, any field. */
static bool split_field(struct weir__http_field *f, struct weir__bytes line,
                        struct weir__http_refusal *r)
{
    size_t colon = find(line, ':');

    if (line.at[0] == ' ' || line.at[0] == '\t') return refuse(r, 400, "a folded line");
    if (colon == line.len) return refuse(r, 400, "a field without a colon");
    f->name = part(line, 0, colon);
    f->value = trim(part(line, colon + 1, line.len));
    if (!weir__http_is_name(f->name))
        return refuse(r, 400, "the name of a field has characters that do not belong there");
    if (!weir__http_is_value(f->value))
        return refuse(r, 400, "the value of a field has characters that do not belong there");
    return true;
}

static bool read_field(struct reading *h, const struct weir__http_field *f)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (is_alike(f->name, known[i].name)) return known[i].read(h, f->value);
    return true;
}

/* What the fields say together. */
static bool judge(struct reading *h, const struct weir__http_head_limits *limits)
{
    struct weir__http_request *q = h->q;

    if (q->minor == 1 && !h->has_host) return refuse(h->r, 400, "no Host field");
    if (q->chunked && h->has_length)
        return refuse(h->r, 400, "Content-Length beside Transfer-Encoding");
    if (q->chunked && q->minor == 0) return refuse(h->r, 400, "Transfer-Encoding in HTTP/1.0");
    if (q->length > limits->body_bytes) return refuse(h->r, 413, "the body is too large");
    if (!q->host.at) q->host = h->host;
    if (q->minor == 0) q->expects_continue = false;
    q->keep_alive = !h->close && (q->minor == 1 || h->keep);
    return true;
}

bool weir__http_head_parse(struct weir__http_request *q, const uint8_t *head, size_t len,
                           const struct weir__http_head_limits *limits,
                           struct weir__http_refusal *r)
{
    struct weir__bytes rest = weir__bytes_of(head, len), line;
    struct reading h = {.q = q, .r = r};

    memset(q, 0, offsetof(struct weir__http_request, fields));
    if (!read_request_line(q, take_line(&rest), limits->target_bytes, r)) return false;
    while ((line = take_line(&rest)).len) {
        struct weir__http_field *f = &q->fields[q->field_count];
        if (q->field_count == WEIR__HTTP_FIELDS_MAX) return refuse(r, 431, "too many fields");
        if (!split_field(f, line, r) || !read_field(&h, f)) return false;
        q->field_count++;
    }
    return judge(&h, limits);
}

/* "HTTP/1.1 101 Switching Protocols"; the words may be missing, with their blank. */
static bool read_status_line(struct weir__http_answer *a, struct weir__bytes line)
{
    if (line.len < 12 || !is_version(part(line, 0, 8)) || line.at[5] != '1' || line.at[8] != ' ')
        return false;
    a->status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (line.at[i] < '0' || line.at[i] > '9') return false;
        a->status = a->status * 10 + (unsigned)(line.at[i] - '0');
    }
    return line.len == 12 || line.at[12] == ' ';
}

bool weir__http_answer_parse(struct weir__http_answer *a, const uint8_t *head, size_t len,
                             struct weir__http_refusal *r)
{
    struct weir__bytes rest = weir__bytes_of(head, len), line;

    a->field_count = 0;
    if (!read_status_line(a, take_line(&rest)))
        return refuse(r, 400, "the answer does not begin with HTTP/1.x and a status");
    while ((line = take_line(&rest)).len) {
        if (a->field_count == WEIR__HTTP_FIELDS_MAX) return refuse(r, 431, "too many fields");
        if (!split_field(&a->fields[a->field_count++], line, r)) return false;
    }
    return true;
}

bool weir__http_trailer_check(const uint8_t *at, size_t len, struct weir__http_refusal *r)
{
    struct weir__bytes rest = weir__bytes_of(at, len), line;
    struct weir__http_field f;

    while ((line = take_line(&rest)).len)
        if (!split_field(&f, line, r)) return false;
    return true;
}

static struct weir__bytes find_field(const struct weir__http_field *fields, size_t count,
                                     const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (is_alike(fields[i].name, name)) return fields[i].value;
    return weir__bytes_of(NULL, 0);
}

struct weir__bytes weir__http_field(const struct weir__http_request *q, const char *name)
{
    return find_field(q->fields, q->field_count, name);
}

struct weir__bytes weir__http_answer_field(const struct weir__http_answer *a, const char *name)
{
    return find_field(a->fields, a->field_count, name);
}

bool weir__http_has_token(struct weir__bytes value, const char *token)
{
    while (value.len) {
        size_t comma = find(value, ',');
        if (is_alike(trim(part(value, 0, comma)), token)) return true;
        value = part(value, comma < value.len ? comma + 1 : comma, value.len);
    }
    return false;
}

const char *weir__http_method_name(enum weir__http_method method)
{
    return methods[method].name;
}

const char *weir__http_status_text(unsigned status)
{
    static const struct {
        unsigned status;
        const char *text;
    } rows[] = {
        {100, "Continue"},
        {101, "Switching Protocols"},
        {200, "OK"},
        {201, "Created"},
        {202, "Accepted"},
        {204, "No Content"},
        {206, "Partial Content"},
        {301, "Moved Permanently"},
        {302, "Found"},
        {304, "Not Modified"},
        {307, "Temporary Redirect"},
        {308, "Permanent Redirect"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {410, "Gone"},
        {411, "Length Required"},
        {412, "Precondition Failed"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {416, "Range Not Satisfiable"},
        {417, "Expectation Failed"},
        {421, "Misdirected Request"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
        {507, "Insufficient Storage"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status) return rows[i].text;
    return "Unknown";
}
