#include "server/address.h"

#include <stdio.h>
#include <strings.h>

#define SEGMENTS_MAX 8
#define PARTITION_DIGITS_MAX 9

struct segments {
    const char *at[SEGMENTS_MAX];
    size_t len[SEGMENTS_MAX];
    unsigned count;
};

/* A shape from the right: each word must be there, "*" takes any segment. */
struct shape {
    enum weir__address_kind kind;
    unsigned count;
    const char *word[5];
};

static const struct shape shapes[] = {
    {WEIR__ADDRESS_CBS, 1, {"$cbs"}},
    {WEIR__ADDRESS_MANAGEMENT, 1, {"$management"}},
    {WEIR__ADDRESS_MANAGEMENT, 2, {"*", "$management"}},
    {WEIR__ADDRESS_RECEIVE, 5, {"*", "ConsumerGroups", "*", "Partitions", "*"}},
    {WEIR__ADDRESS_PUBLISH, 3, {"*", "Partitions", "*"}},
    {WEIR__ADDRESS_PUBLISH, 3, {"*", "Publishers", "*"}},
    {WEIR__ADDRESS_PUBLISH, 1, {"*"}},
};

static bool is_word(const char *word, const char *at, size_t len)
{
    return strlen(word) == len && strncasecmp(word, at, len) == 0;
}

static void split(const char *text, struct segments *out)
{
    out->count = 0;
    while (*text && out->count < SEGMENTS_MAX) {
        size_t len = strcspn(text, "/");
        out->at[out->count] = text;
        out->len[out->count++] = len;
        text += len + (text[len] == '/');
    }
    if (*text) out->count = SEGMENTS_MAX + 1; /* more than any shape has */
}

static bool has_shape(const struct segments *s, const struct shape *shape)
{
    if (s->count != shape->count) return false;
    for (unsigned i = 0; i < s->count; i++)
        if (shape->word[i][0] != '*' && !is_word(shape->word[i], s->at[i], s->len[i])) return false;
    return true;
}

static bool copy(char *to, size_t max, const struct segments *s, unsigned i)
{
    if (s->len[i] > max) return false;
    memcpy(to, s->at[i], s->len[i]);
    to[s->len[i]] = 0;
    return true;
}

/* The segment behind a word, when the shape has that word. */
static bool copy_behind(char *to, size_t max, const struct segments *s, const char *word)
{
    for (unsigned i = 1; i + 1 < s->count; i++)
        if (is_word(word, s->at[i], s->len[i])) return copy(to, max, s, i + 1);
    return true;
}

static bool take_names(struct weir__address *a, const struct segments *s, const struct shape *shape)
{
    if (shape->word[0][0] == '*' && !copy(a->hub, WEIR__HUB_NAME_MAX, s, 0)) return false;
    if (a->kind == WEIR__ADDRESS_RECEIVE && !copy(a->group, WEIR__GROUP_NAME_MAX, s, 2))
        return false;
    if (a->kind == WEIR__ADDRESS_RECEIVE)
        return copy(a->partition, WEIR__ADDRESS_PARTITION_MAX, s, 4);
    return copy_behind(a->partition, WEIR__ADDRESS_PARTITION_MAX, s, "Partitions");
}

/* What has no scheme is all path, whether or not a slash says so. */
static int parse_path(struct weir__access_path *out, struct weir__bytes text,
                      struct weir_error *err)
{
    uint8_t path[WEIR__ACCESS_PATH_MAX + 1] = "/";

    if (weir__access_has_scheme(text)) return weir__access_path_parse(out, text, false, err);
    if (text.len >= sizeof path) return weir__fail(err, WEIR_EINVAL, "too long");
    if (text.len) memcpy(path + 1, text.at, text.len);
    return weir__access_path_parse(out, weir__bytes_of(path, text.len + 1), false, err);
}

int weir__address_parse(struct weir__address *a, struct weir__bytes text, struct weir_error *err)
{
    struct segments s = {0};
    int rc;

    memset(a, 0, sizeof *a);
    rc = parse_path(&a->path, text, err);
    if (rc != 0) return weir__wrap(err, rc, "the link's address");
    split(a->path.text, &s);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        if (!has_shape(&s, &shapes[i])) continue;
        a->kind = shapes[i].kind;
        if (take_names(a, &s, &shapes[i])) return 0;
        return weir__fail(err, WEIR_EINVAL, "a name in the link's address '%.200s' is too long",
                          a->path.text);
    }
    return 0;
}

uint32_t weir__address_partition(const char *text)
{
    size_t len = strlen(text), digits = strspn(text, "0123456789");
    uint32_t n = 0;

    if (len == 0 || len != digits || len > PARTITION_DIGITS_MAX || (text[0] == '0' && len > 1))
        return UINT32_MAX;
    for (; *text; text++) n = n * 10 + (uint32_t)(*text - '0');
    return n;
}
