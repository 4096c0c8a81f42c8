#include "io/sniff.h"

#include <stdbool.h>

/* What the first bytes may be. '?' in a pattern is any byte. The first row that fits decides; one
 * that would fit with more bytes makes us wait. */
struct row {
    const char *bytes;
    size_t len;
    enum weir__sniff is;
};

#define ROW(text, is)                                                                              \
    {                                                                                              \
        text, sizeof text - 1, is                                                                  \
    }

static const struct row rows[] = {
    ROW("AMQP\0\1\0\0", WEIR__SNIFF_AMQP),
    ROW("AMQP\3\1\0\0", WEIR__SNIFF_AMQP_SASL),
    ROW("AMQP\2\1\0\0", WEIR__SNIFF_AMQP_TLS),
    ROW("AMQP\0\0\x9\1", WEIR__SNIFF_AMQP_091),
    ROW("AMQP\1\1\x9\1", WEIR__SNIFF_AMQP_091), /* 0-9 */
    ROW("AMQP\1\1\0\xa", WEIR__SNIFF_AMQP_091), /* 0-10 */
    ROW("AMQP\1\1\x8\0", WEIR__SNIFF_AMQP_091), /* 0-8 */
    ROW("AMQP????", WEIR__SNIFF_AMQP_ODD),
    ROW("\x16\3?", WEIR__SNIFF_TLS),
    ROW("GET ", WEIR__SNIFF_HTTP),
    ROW("HEAD ", WEIR__SNIFF_HTTP),
    ROW("POST ", WEIR__SNIFF_HTTP),
    ROW("PUT ", WEIR__SNIFF_HTTP),
    ROW("DELETE ", WEIR__SNIFF_HTTP),
    ROW("PATCH ", WEIR__SNIFF_HTTP),
    ROW("OPTIONS ", WEIR__SNIFF_HTTP),
    ROW("TRACE ", WEIR__SNIFF_HTTP),
    ROW("CONNECT ", WEIR__SNIFF_HTTP),
    ROW("PRI * HT", WEIR__SNIFF_HTTP),
    ROW("\0\0??\0\x12\0?", WEIR__SNIFF_KAFKA), /* ApiVersions */
    ROW("\0\0??\0\3\0?", WEIR__SNIFF_KAFKA),   /* Metadata */
};

static bool fits(const struct row *r, struct weir__bytes first)
{
    for (size_t i = 0; i < r->len && i < first.len; i++)
        if (r->bytes[i] != '?' && (uint8_t)r->bytes[i] != first.at[i]) return false;
    return true;
}

enum weir__sniff weir__sniff(struct weir__bytes first)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (fits(&rows[i], first)) return first.len < rows[i].len ? WEIR__SNIFF_MORE : rows[i].is;
    return WEIR__SNIFF_UNKNOWN;
}

const char *weir__sniff_name(enum weir__sniff s)
{
    static const char *const names[] = {
        [WEIR__SNIFF_MORE] = "a few bytes",
        [WEIR__SNIFF_AMQP] = "AMQP 1.0",
        [WEIR__SNIFF_AMQP_SASL] = "AMQP 1.0",
        [WEIR__SNIFF_AMQP_TLS] = "AMQP 1.0 with TLS inside",
        [WEIR__SNIFF_AMQP_091] = "AMQP 0-9-1",
        [WEIR__SNIFF_AMQP_ODD] = "an unknown AMQP",
        [WEIR__SNIFF_TLS] = "TLS",
        [WEIR__SNIFF_HTTP] = "HTTP",
        [WEIR__SNIFF_KAFKA] = "Kafka",
        [WEIR__SNIFF_UNKNOWN] = "something else",
    };

    return names[s];
}
