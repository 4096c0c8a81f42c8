/* message.c - finding the sections of a message, and the events of a batch. */
#include "amqp/message.h"

#include <assert.h>

#define CODE_DESCRIBED 0x00
#define CODE_SMALL_ULONG 0x53
#define CODE_BINARY8 0xa0
#define CODE_LIST8 0xc0
#define CODE_MAP8 0xc1
#define CODE_LIST0 0x45
#define CODE_NULL 0x40
#define WIDE_BIT 0x10 /* makes the constructor with four bytes of size */
#define USUAL_DESCRIPTOR (CODE_SMALL_ULONG << 8 | CODE_DESCRIBED) /* as a little-endian load is */

#define USUAL_MAX 65536 /* bytes: what is longer and bad is not to be read twice */

#define SECTION_FIRST 0x70
#define SECTION_MESSAGE_ANNOTATIONS 0x72
#define SECTION_DATA 0x75
#define SECTION_VALUE 0x77
#define SECTION_FOOTER 0x78

#define DATA_HEAD_SMALL 5 /* 00 53 75 a0 LL */
#define DATA_SMALL_MAX 255

/* The head of a short data section without its length, as a little-endian load gives it. */
#define DATA_HEAD_WORD                                                                             \
    ((uint32_t)CODE_BINARY8 << 24 | SECTION_DATA << 16 | CODE_SMALL_ULONG << 8 | CODE_DESCRIBED)

#define LIST WEIR__AMQP_SET(WEIR__AMQP_LIST)
#define MAP WEIR__AMQP_SET(WEIR__AMQP_MAP)
#define DATA (WEIR__AMQP_SET(WEIR__AMQP_BINARY) | WEIR__AMQP_SET(WEIR__AMQP_NULL))
#define ANY (WEIR__AMQP_SET(WEIR__AMQP_TYPES) - 1)

/* In the order of their descriptors, from SECTION_FIRST. */
static const struct section_row {
    uint8_t section, body;
    uint8_t small; /* the constructor with one byte of size; 0: any value may stand here */
    uint32_t types;
    const char *name, *symbol;
} rows[] = {
    {WEIR__AMQP_HEADER, 0, CODE_LIST8, LIST, "header", "amqp:header:list"},
    {WEIR__AMQP_DELIVERY_ANNOTATIONS, 0, CODE_MAP8, MAP, "delivery-annotations",
     "amqp:delivery-annotations:map"},
    {WEIR__AMQP_MESSAGE_ANNOTATIONS, 0, CODE_MAP8, MAP, "message-annotations",
     "amqp:message-annotations:map"},
    {WEIR__AMQP_PROPERTIES, 0, CODE_LIST8, LIST, "properties", "amqp:properties:list"},
    {WEIR__AMQP_APPLICATION_PROPERTIES, 0, CODE_MAP8, MAP, "application-properties",
     "amqp:application-properties:map"},
    {WEIR__AMQP_BODY, WEIR__AMQP_BODY_DATA, CODE_BINARY8, DATA, "data", "amqp:data:binary"},
    {WEIR__AMQP_BODY, WEIR__AMQP_BODY_SEQUENCE, CODE_LIST8, LIST, "amqp-sequence",
     "amqp:amqp-sequence:list"},
    {WEIR__AMQP_BODY, WEIR__AMQP_BODY_VALUE, 0, ANY, "amqp-value", "amqp:amqp-value:*"},
    {WEIR__AMQP_FOOTER, 0, CODE_MAP8, MAP, "footer", "amqp:footer:map"},
};

#define ROWS (sizeof rows / sizeof rows[0])

static const char bare[] = "a section must begin with 00";

/* Copied, because compilers zero a struct of this size with an instruction that takes as long as
 * the rest of a scan. */
static const struct weir__amqp_message blank;

static const struct section_row *row_of_code(uint64_t code)
{
    return code >= SECTION_FIRST && code - SECTION_FIRST < ROWS ? &rows[code - SECTION_FIRST]
                                                                : NULL;
}

static const struct section_row *row_of_symbol(struct weir__bytes b)
{
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].symbol) == b.len && !memcmp(rows[i].symbol, b.at, b.len))
            return &rows[i];
    return NULL;
}

/* A descriptor in any form but the usual one. */
static const struct section_row *read_long_descriptor(struct weir__amqp_cursor *c)
{
    const uint32_t types = WEIR__AMQP_SET(WEIR__AMQP_ULONG) | WEIR__AMQP_SET(WEIR__AMQP_SYMBOL);
    const struct section_row *row;
    const uint8_t *start = c->at;
    struct weir__amqp_value v;

    if (weir__amqp_load8(c) != CODE_DESCRIBED) {
        c->at = start;
        weir__amqp_stop(c, bare);
        return NULL;
    }
    if (!weir__amqp_read_one(c, types, &v)) return NULL;
    row = v.type == WEIR__AMQP_ULONG ? row_of_code(v.u) : row_of_symbol(v.bytes);
    if (row) return row;
    c->at = start;
    weir__amqp_stop(c, "no section has this descriptor");
    return NULL;
}

static inline const struct section_row *read_descriptor(struct weir__amqp_cursor *c)
{
    const struct section_row *row;

    if (weir__amqp_left(c) < 3 || c->at[0] != CODE_DESCRIBED || c->at[1] != CODE_SMALL_ULONG)
        return read_long_descriptor(c);
    row = row_of_code(c->at[2]);
    if (row)
        c->at += 3;
    else
        weir__amqp_stop(c, "no section has this descriptor");
    return row;
}

/* Sections come once, at any place; only a body of data or of sequences may go on, as long as nothing
 * else came between. */
static bool may_come(const struct weir__amqp_message *m, const struct section_row *row)
{
    uint32_t body = 1u << WEIR__AMQP_BODY;

    if (!(m->there >> row->section & 1)) return true;
    return row->section == WEIR__AMQP_BODY && row->body == m->body &&
           row->body != WEIR__AMQP_BODY_VALUE && (m->there & ~body) == m->before_body;
}

static void note_section(struct weir__amqp_message *m, const struct section_row *row, size_t at,
                         size_t value, size_t end)
{
    struct weir__amqp_span *span = &m->section[row->section];

    if (!span->end) {
        span->at = (uint32_t)at;
        span->value = (uint32_t)value;
    }
    span->end = (uint32_t)end;
    if (row->section == WEIR__AMQP_BODY) {
        if (!m->body_count) m->before_body = m->there;
        m->body = row->body;
        m->body_count++;
    }
    m->there |= 1u << row->section;
}

/* Reads a section that begins at c->at, and gives its content when it is data. */
static bool read_section(struct weir__amqp_message *m, struct weir__amqp_cursor *c,
                         const struct section_row **row, struct weir__bytes *data)
{
    const uint8_t *at = c->at, *value;
    struct weir__amqp_value v;

    *row = read_descriptor(c);
    if (!*row) return false;
    if (!may_come(m, *row)) {
        c->at = at;
        return weir__amqp_stop(c, (*row)->section == WEIR__AMQP_BODY ? "a second body"
                                                                     : "it comes twice");
    }
    value = c->at;
    if (!weir__amqp_read_one(c, (*row)->types, &v)) return false;
    if ((*row)->body == WEIR__AMQP_BODY_DATA) {
        *data = v.type == WEIR__AMQP_NULL ? weir__bytes_of(c->at, 0) : v.bytes;
        if (!m->body_count) m->data = *data;
    }
    note_section(m, *row, (size_t)(at - c->start), (size_t)(value - c->start),
                 weir__amqp_offset(c));
    return true;
}

/* The length of the section at p when it is whole and in one of the forms that nearly all have: 00 53
 * 7x, then a size of one byte or of four, or the empty list. 0 for everything else, good or bad.
 * *row says what it is, *head how many bytes stand before its content. */
static inline size_t measure_usual(const uint8_t *p, size_t left, const struct section_row **row,
                                   size_t *head)
{
    const struct section_row *r;
    size_t size, count, width;

    if (left < 4 || weir__load16(p) != USUAL_DESCRIPTOR) return 0;
    *row = r = row_of_code(p[2]);
    if (!r || !r->small) return 0;
    if (p[3] == r->small && left > 4) {
        width = 1;
        size = p[4];
    } else if (p[3] == (r->small | WIDE_BIT) && left >= 8) {
        width = 4;
        size = weir__load_be32(p + 4);
    } else {
        *head = 4;
        return p[3] == CODE_LIST0 && r->types == LIST ? 4 : 0;
    }
    *head = 4 + width;
    if (size > left - *head) return 0;
    if (r->body == WEIR__AMQP_BODY_DATA) return *head + size;
    if (size < width) return 0;
    count = width == 1 ? p[5] : weir__load_be32(p + 8);
    return count > size - width || (r->types == MAP && count % 2) ? 0 : *head + size;
}

/* A footer may stand before the body; it is read with what else stands there. */
static inline bool is_beyond(const struct section_row *row, enum weir__amqp_section until)
{
    return row->section >= until && (row->section != WEIR__AMQP_FOOTER || until != WEIR__AMQP_BODY);
}

/* The same for the next section of a message, which is noted when it is in its place. */
static inline size_t read_usual(struct weir__amqp_message *m, const uint8_t *p, size_t left,
                                enum weir__amqp_section until)
{
    size_t at = (size_t)(p - m->raw.at), head, len;
    const struct section_row *row;

    len = measure_usual(p, left, &row, &head);
    if (!len || is_beyond(row, until) || m->there >> row->section) return 0;
    if (row->body == WEIR__AMQP_BODY_DATA) m->data = weir__bytes_of(p + head, len - head);
    note_section(m, row, at, at + 3, at + len);
    return len;
}

/* Names what stands where a section should begin: a client that forgot the descriptor learns it. */
static int fail_bare(struct weir_error *err, const struct weir__amqp_cursor *c)
{
    const char *name = weir__amqp_code_name(*c->at);

    if (!name) name = "byte of no meaning";
    return weir__fail(err, WEIR_EINVAL, "message section ?, byte %zu: found a %s, but %s",
                      weir__amqp_offset(c), name, c->why);
}

static int fail_at(struct weir_error *err, const struct weir__amqp_cursor *c,
                   const struct section_row *row)
{
    if (!row && c->why == bare) return fail_bare(err, c);
    return weir__fail(err, WEIR_EINVAL, "message section %s, byte %zu: %s", row ? row->name : "?",
                      weir__amqp_offset(c), c->why);
}

int weir__amqp_message_scan_until(struct weir__amqp_message *m, struct weir__bytes raw,
                                  enum weir__amqp_section until, struct weir__amqp_cursor *rest,
                                  struct weir_error *err)
{
    const struct section_row *row;
    struct weir__bytes data;
    size_t len;

    *m = blank;
    m->raw = raw;
    *rest = weir__amqp_cursor_of(raw);
    if (!raw.len) return weir__fail(err, WEIR_EINVAL, "a message without a section");
    if (raw.len > UINT32_MAX) return weir__fail(err, WEIR_EINVAL, "a message of 4 GiB or more");
    for (;;) {
        struct weir__amqp_cursor ahead = *rest;
        while ((len = read_usual(m, ahead.at, weir__amqp_left(&ahead), until)) != 0)
            ahead.at += len;
        rest->at = ahead.at;
        if (ahead.at == ahead.end) return 0;
        row = read_descriptor(&ahead);
        if (row && is_beyond(row, until)) return 0;
        if (!read_section(m, rest, &row, &data)) return fail_at(err, rest, row);
    }
}

/* Everything inside the sections that the shallow scan has found. What may stand in the
 * properties has nothing inside. */
static int check_inside(const struct weir__amqp_message *m, struct weir_error *err)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(m->raw);

    while (c.at < c.end) {
        const struct section_row *row = read_descriptor(&c);
        assert(row); /* the shallow scan read it */
        if (row->section == WEIR__AMQP_PROPERTIES)
            c.at = c.start + m->section[WEIR__AMQP_PROPERTIES].end;
        else if (!weir__amqp_check(&c))
            return fail_at(err, &c, row);
    }
    return weir__amqp_message_properties(m, NULL, err);
}

int weir__amqp_message_scan(struct weir__amqp_message *m, struct weir__bytes raw,
                            enum weir__amqp_depth depth, struct weir_error *err)
{
    struct weir__amqp_cursor rest;
    int rc = weir__amqp_message_scan_until(m, raw, WEIR__AMQP_SECTIONS, &rest, err);

    if (rc == 0 && depth == WEIR__AMQP_DEEP) rc = check_inside(m, err);
    return rc;
}

/* Everything inside a section at p that the shallow scan lets pass. */
static bool is_good_inside(const uint8_t *p, size_t len, const struct section_row *row)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(weir__bytes_of(p + 3, len - 3));
    struct weir__amqp_message m;

    if (row->section != WEIR__AMQP_PROPERTIES) return weir__amqp_check(&c);
    m.raw = weir__bytes_of(p, len);
    m.section[WEIR__AMQP_PROPERTIES] = (struct weir__amqp_span){0, 3, (uint32_t)len};
    return weir__amqp_message_properties(&m, NULL, NULL) == 0;
}

/* The length of a body at p that is any value, or data that is null; 0 when it is neither, or not
 * good to the bottom. */
static size_t measure_value(const uint8_t *p, size_t left, const struct section_row **row)
{
    struct weir__amqp_cursor c;

    if (left < 4 || weir__load16(p) != USUAL_DESCRIPTOR) return 0;
    *row = row_of_code(p[2]);
    if (p[2] == SECTION_DATA) return p[3] == CODE_NULL ? 4 : 0;
    if (p[2] != SECTION_VALUE) return 0;
    c = weir__amqp_cursor_of(weir__bytes_of(p + 3, left - 3));
    return weir__amqp_check(&c) ? 3 + weir__amqp_offset(&c) : 0;
}

/* Whether these bytes are a good message whose sections are all in the usual forms. annotations may
 * be NULL; they are as in weir__amqp_message_check. */
static inline bool is_usual(const uint8_t *p, size_t left, struct weir__bytes *annotations)
{
    const struct section_row *row;
    uint8_t least = SECTION_FIRST;
    size_t len, head;

    do {
        len = measure_usual(p, left, &row, &head);
        if (!len && !(head = len = measure_value(p, left, &row))) return false;
        if (p[2] < least) return false;
        if (row->body != WEIR__AMQP_BODY_DATA && len > head && len - head > head - 4 &&
            !is_good_inside(p, len, row))
            return false;
        if (annotations && p[2] == SECTION_MESSAGE_ANNOTATIONS)
            *annotations = weir__bytes_of(p + 3, len - 3);
        least = row->body ? SECTION_FOOTER : p[2] + 1;
        p += len;
        left -= len;
    } while (left);
    return true;
}

bool weir__amqp_message_is_late(struct weir__bytes raw)
{
    const struct section_row *row;
    const uint8_t *p = raw.at;
    size_t left = raw.len, len, head;

    for (; left; p += len, left -= len) {
        len = measure_usual(p, left, &row, &head);
        if (!len || row->section < WEIR__AMQP_PROPERTIES) return false;
    }
    return raw.len > 0;
}

static __attribute__((noinline)) int
check_slowly(struct weir__bytes raw, struct weir__bytes *annotations, struct weir_error *err)
{
    struct weir__amqp_message m;
    const struct weir__amqp_span *span = &m.section[WEIR__AMQP_MESSAGE_ANNOTATIONS];
    int rc = weir__amqp_message_scan(&m, raw, WEIR__AMQP_DEEP, err);

    *annotations = weir__bytes_of(NULL, 0);
    if (rc == 0 && span->end)
        *annotations = weir__bytes_of(raw.at + span->value, span->end - span->value);
    return rc;
}

int weir__amqp_message_check(struct weir__bytes raw, struct weir__bytes *annotations,
                             struct weir_error *err)
{
    *annotations = weir__bytes_of(NULL, 0);
    if (raw.len <= USUAL_MAX && is_usual(raw.at, raw.len, annotations)) return 0;
    return check_slowly(raw, annotations, err);
}

int weir__amqp_batch_start(struct weir__amqp_batch_walk *walk, struct weir__bytes raw,
                           struct weir_error *err)
{
    return weir__amqp_message_scan_until(&walk->envelope, raw, WEIR__AMQP_BODY, &walk->rest, err);
}

/* A section of the batch that is not a data section in its usual form. */
static int next_section(struct weir__amqp_batch_walk *walk, struct weir__bytes *out,
                        struct weir_error *err)
{
    struct weir__amqp_cursor *c = &walk->rest, ahead = *c;
    const struct section_row *row = read_descriptor(&ahead);

    if (row && row->section == WEIR__AMQP_BODY && row->body != WEIR__AMQP_BODY_DATA)
        weir__amqp_stop(c, "a batch consists of data sections");
    else if (read_section(&walk->envelope, c, &row, out))
        return 0;
    return fail_at(err, c, row);
}

/* The length of a data section at p in one of its usual forms, 0 for everything else; *head as
 * above. */
static inline size_t measure_data(const uint8_t *p, size_t left, size_t *head)
{
    size_t size;

    if (left < WEIR__AMQP_DATA_HEAD_MAX) return 0;
    if (weir__load32(p) == DATA_HEAD_WORD) {
        *head = DATA_HEAD_SMALL;
        size = p[4];
    } else {
        if (weir__load32(p) != (DATA_HEAD_WORD | (uint32_t)WIDE_BIT << 24)) return 0;
        *head = WEIR__AMQP_DATA_HEAD_MAX;
        size = weir__load_be32(p + 4);
    }
    return size <= left - *head ? *head + size : 0;
}

static inline void note_data(struct weir__amqp_message *m, uint32_t count)
{
    if (!m->body_count) m->before_body = m->there;
    m->there |= 1u << WEIR__AMQP_BODY;
    m->body = WEIR__AMQP_BODY_DATA;
    m->body_count += count;
}

static __attribute__((noinline)) int next_slowly(struct weir__amqp_batch_walk *walk,
                                                 struct weir__bytes *out, struct weir_error *err)
{
    struct weir__amqp_cursor *c = &walk->rest;
    int rc = 0;

    *out = weir__bytes_of(NULL, 0);
    if (c->why) return fail_at(err, c, NULL);
    while (rc == 0 && !out->at && c->at < c->end) rc = next_section(walk, out, err);
    return rc;
}

int weir__amqp_batch_next(struct weir__amqp_batch_walk *walk, struct weir__bytes *out,
                          struct weir_error *err)
{
    struct weir__amqp_cursor *c = &walk->rest;
    size_t head, len = measure_data(c->at, weir__amqp_left(c), &head);

    if (!len || walk->envelope.there >> WEIR__AMQP_FOOTER) return next_slowly(walk, out, err);
    *out = weir__bytes_of(c->at + head, len - head);
    c->at += len;
    note_data(&walk->envelope, 1);
    return 0;
}

uint32_t weir__amqp_batch_some(struct weir__amqp_batch_walk *walk, struct weir__bytes *out,
                               uint32_t max)
{
    const uint8_t *p = walk->rest.at, *end = walk->rest.end;
    uint32_t count = 0;
    size_t len, head;

    if (walk->envelope.there >> WEIR__AMQP_FOOTER) return 0;
    for (; count < max && (len = measure_data(p, (size_t)(end - p), &head)) != 0; p += len)
        out[count++] = weir__bytes_of(p + head, len - head);
    walk->rest.at = p;
    if (count) note_data(&walk->envelope, count);
    return count;
}

uint32_t weir__amqp_batch_pass(struct weir__amqp_batch_walk *walk)
{
    const uint8_t *p = walk->rest.at, *end = walk->rest.end;
    uint32_t count = 0;
    size_t len, head;

    if (walk->envelope.there >> WEIR__AMQP_FOOTER) return 0;
    for (; (len = measure_data(p, (size_t)(end - p), &head)) != 0; p += len, count++)
        if (!is_usual(p + head, len - head, NULL)) break;
    walk->rest.at = p;
    if (count) note_data(&walk->envelope, count);
    return count;
}

size_t weir__amqp_data_head(uint8_t to[WEIR__AMQP_DATA_HEAD_MAX], uint32_t content_bytes)
{
    bool small = content_bytes <= DATA_SMALL_MAX;

    to[0] = CODE_DESCRIBED;
    to[1] = CODE_SMALL_ULONG;
    to[2] = SECTION_DATA;
    to[3] = small ? CODE_BINARY8 : CODE_BINARY8 | WIDE_BIT;
    if (small)
        to[4] = (uint8_t)content_bytes;
    else
        weir__store_be32(to + 4, content_bytes);
    return small ? DATA_HEAD_SMALL : WEIR__AMQP_DATA_HEAD_MAX;
}
