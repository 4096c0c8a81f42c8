/* json_members.c - names are remembered by their digests: equal names have equal ones. Two other
 * names could share one by chance, and are then refused as if they were the same. */
#include "base/json_members.h"

void weir__json_members_init(struct weir__json_members *m, struct weir__json *json)
{
    m->json = json;
    m->count = 0;
    m->name[0] = '\0';
}

/* FNV-1a. */
static uint64_t digest_of(const char *text, size_t len)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < len; i++) h = (h ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    return h;
}

static int fail_name(const struct weir__json_members *m, const char *what, struct weir_error *err)
{
    unsigned line, column;

    weir__json_place(m->json, &line, &column);
    return weir__fail(err, WEIR_EINVAL, "line %u, column %u: %s", line, column, what);
}

static int note_name(struct weir__json_members *m, struct weir_error *err)
{
    const char *text = m->json->lent ? m->json->lent : m->json->text;
    size_t len = m->json->text_len;
    uint64_t digest = digest_of(text, len);

    if (len >= sizeof m->name) return fail_name(m, "a name is longer than can be", err);
    for (uint32_t i = 0; i < m->count; i++)
        if (m->seen[i] == digest) return fail_name(m, "a name is there twice", err);
    if (m->count == WEIR__JSON_MEMBERS_MAX)
        return fail_name(m, "an object has more members than can be", err);
    m->seen[m->count++] = digest;
    memcpy(m->name, text, len + 1);
    return 0;
}

int weir__json_members_next(struct weir__json_members *m, enum weir__json_token *value,
                            struct weir_error *err)
{
    int rc = weir__json_next(m->json, value, err);

    if (rc != 0 || *value == WEIR__JSON_OBJECT_END) return rc;
    rc = note_name(m, err);
    return rc == 0 ? weir__json_next(m->json, value, err) : rc;
}
