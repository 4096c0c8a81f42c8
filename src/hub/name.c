#include "hub/name.h"

#include <stdint.h>
#include <string.h>

static const struct name_rule {
    const char *what;
    size_t max;
    const char *other; /* the one name that is allowed besides the grammar */
} rules[WEIR__NAME_KINDS] = {
    [WEIR__NAME_HUB] = {"hub", WEIR__HUB_NAME_MAX, NULL},
    [WEIR__NAME_GROUP] = {"consumer group", WEIR__GROUP_NAME_MAX, WEIR__GROUP_DEFAULT},
    [WEIR__NAME_RULE] = {"access rule", WEIR__RULE_NAME_MAX, NULL},
};

/* ASCII only, whatever the locale says. */
static bool is_alnum(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static uint8_t fold(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? (uint8_t)(c - 'A' + 'a') : c;
}

static bool equal(const void *a, const void *b, size_t len)
{
    const uint8_t *x = a, *y = b;

    for (size_t i = 0; i < len; i++)
        if (fold(x[i]) != fold(y[i])) return false;
    return true;
}

static int fail_at(const struct name_rule *rule, const uint8_t *name, size_t at, const char *why,
                   struct weir_error *err)
{
    uint8_t c = name[at];

    if (c > ' ' && c < 0x7f)
        return weir__fail(err, WEIR_EINVAL, "%s name: '%c' at position %zu %s", rule->what, c,
                          at + 1, why);
    return weir__fail(err, WEIR_EINVAL, "%s name: byte 0x%02x at position %zu %s", rule->what, c,
                      at + 1, why);
}

int weir__name_check_bytes(enum weir__name_kind kind, const void *at, size_t len,
                           struct weir_error *err)
{
    const struct name_rule *rule = &rules[kind];
    const uint8_t *name = at;

    if (len == 0) return weir__fail(err, WEIR_EINVAL, "%s name: empty", rule->what);
    if (len > rule->max)
        return weir__fail(err, WEIR_EINVAL, "%s name: %zu bytes, at most %zu are allowed",
                          rule->what, len, rule->max);
    if (rule->other && len == strlen(rule->other) && equal(name, rule->other, len)) return 0;
    for (size_t i = 0; i < len; i++)
        if (!is_alnum(name[i]) && (name[i] == 0 || !strchr(".-_", name[i])))
            return fail_at(rule, name, i, "is not a letter, a digit, '.', '-' or '_'", err);
    if (!is_alnum(name[0])) return fail_at(rule, name, 0, "cannot begin it", err);
    if (!is_alnum(name[len - 1])) return fail_at(rule, name, len - 1, "cannot end it", err);
    return 0;
}

int weir__name_check(enum weir__name_kind kind, const char *name, struct weir_error *err)
{
    return weir__name_check_bytes(kind, name, name ? strlen(name) : 0, err);
}

bool weir__name_equal(const char *a, const char *b)
{
    size_t len = strlen(a);

    return len == strlen(b) && equal(a, b, len);
}
