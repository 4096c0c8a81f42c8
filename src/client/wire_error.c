/* wire_error.c - what the other side's conditions mean to a caller, and to whoever tries again.
 *
 * Some conditions leave open whether a batch was stored: a service that failed or ran out of time
 * in the middle of it. For a batch these are WEIR_EUNKNOWN, whatever else they are elsewhere. */
#define _GNU_SOURCE /* memmem */
#include <stdio.h>

#include "base/rand.h"
#include "client/wire.h"

static const struct meaning {
    const char *condition;
    int code;
    enum weir__wire_cure cure;
    bool open_end; /* a batch may have been stored */
} meanings[] = {
    {"amqp:internal-error", WEIR_EUNREACHABLE, WEIR__WIRE_AGAIN, true},
    {"com.microsoft:server-busy", WEIR_EBUSY, WEIR__WIRE_BUSY, false},
    {"com.microsoft:timeout", WEIR_ETIMEDOUT, WEIR__WIRE_AGAIN, true},
    {"com.microsoft:operation-cancelled", WEIR_EUNREACHABLE, WEIR__WIRE_AGAIN, true},
    {"com.microsoft:container-close", WEIR_EUNREACHABLE, WEIR__WIRE_BUSY, true},
    {"amqp:unauthorized-access", WEIR_EDENIED, WEIR__WIRE_CLAIM, false},
    {"com.microsoft:auth-failed", WEIR_EDENIED, WEIR__WIRE_CLAIM, false},
    {"amqp:link:detach-forced", WEIR_EUNREACHABLE, WEIR__WIRE_AGAIN, true},
    {"amqp:connection:forced", WEIR_EUNREACHABLE, WEIR__WIRE_AGAIN, true},
    {"amqp:link:transfer-limit-exceeded", WEIR_EBUSY, WEIR__WIRE_AGAIN, false},
    {"amqp:not-found", WEIR_ENOTFOUND, WEIR__WIRE_FATAL, false},
    {"amqp:link:stolen", WEIR_ESTOLEN, WEIR__WIRE_FATAL, false},
    {"amqp:resource-limit-exceeded", WEIR_ELIMIT, WEIR__WIRE_FATAL, false},
    {"amqp:link:message-size-exceeded", WEIR_ETOOBIG, WEIR__WIRE_FATAL, false},
    {"amqp:not-allowed", WEIR_EINVAL, WEIR__WIRE_FATAL, false},
    {"amqp:not-implemented", WEIR_ENOTSUP, WEIR__WIRE_FATAL, false},
    {"amqp:decode-error", WEIR_EINVAL, WEIR__WIRE_FATAL, false},
    {"amqp:invalid-field", WEIR_EINVAL, WEIR__WIRE_FATAL, false},
    {"com.microsoft:argument-error", WEIR_EINVAL, WEIR__WIRE_FATAL, false},
    {"com.microsoft:argument-out-of-range", WEIR_ENOTFOUND, WEIR__WIRE_FATAL, false},
    {"com.microsoft:entity-disabled", WEIR_EDENIED, WEIR__WIRE_FATAL, false},
    {"com.microsoft:publisher-revoked", WEIR_EDENIED, WEIR__WIRE_FATAL, false},
    {"com.microsoft:out-of-order-sequence", WEIR_ESEQUENCE, WEIR__WIRE_FATAL, false},
    {"com.microsoft:producer-epoch-stolen", WEIR_EFENCED, WEIR__WIRE_FATAL, false},
};

static const struct {
    int64_t status;
    const char *condition;
} statuses[] = {
    {400, "amqp:not-allowed"},         {401, "amqp:unauthorized-access"},
    {403, "amqp:unauthorized-access"}, {404, "amqp:not-found"},
    {408, "com.microsoft:timeout"},    {410, "amqp:link:stolen"},
    {501, "amqp:not-implemented"},     {503, "com.microsoft:server-busy"},
};

static const struct meaning *meaning_of(struct weir__bytes condition)
{
    static const struct meaning other = {"", WEIR_EUNREACHABLE, WEIR__WIRE_AGAIN, true};

    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strlen(meanings[i].condition) == condition.len &&
            memcmp(meanings[i].condition, condition.at, condition.len) == 0)
            return &meanings[i];
    return &other;
}

/* Without "To know more visit https://...", which is about the service's own site. */
static int length_of(struct weir__bytes text)
{
    static const char link[] = " To know more visit https://";
    size_t len = text.len < 400 ? text.len : 400;
    const uint8_t *at = len ? memmem(text.at, len, link, sizeof link - 1) : NULL;

    return (int)(at ? (size_t)(at - text.at) : len);
}

/* "text (condition)" */
static void say(struct weir_error *out, int code, const struct weir__amqp_error *e)
{
    int text = length_of(e->description);
    int condition = e->condition.len < 64 ? (int)e->condition.len : 64;

    if (condition == 0)
        weir__fail(out, code, "closed by the other side, which gave no reason");
    else if (text == 0)
        weir__fail(out, code, "%.*s", condition, (const char *)e->condition.at);
    else
        weir__fail(out, code, "%.*s (%.*s)", text, (const char *)e->description.at, condition,
                   (const char *)e->condition.at);
}

enum weir__wire_cure weir__wire_error(const struct weir__amqp_error *e, struct weir_error *out)
{
    const struct meaning *m = meaning_of(e->condition);

    say(out, m->code, e);
    return m->cure;
}

enum weir__wire_cure weir__wire_rejection(const struct weir__amqp_settlement *s,
                                          struct weir_error *out)
{
    const struct meaning *m = meaning_of(s->error.condition);

    if (s->outcome == WEIR__AMQP_REJECTED) {
        say(out, m->open_end ? WEIR_EUNKNOWN : m->code, &s->error);
        return m->cure;
    }
    if (s->outcome == WEIR__AMQP_RELEASED || s->outcome == WEIR__AMQP_MODIFIED)
        weir__fail(out, WEIR_EBUSY, "the batch was given back untouched");
    else
        weir__fail(out, WEIR_EUNKNOWN, "the batch was settled without an outcome");
    return WEIR__WIRE_AGAIN;
}

enum weir__wire_cure weir__wire_status(int64_t status, const struct weir__amqp_error *e,
                                       struct weir_error *out)
{
    struct weir__amqp_error full = *e;

    for (size_t i = 0; !full.condition.len && i < sizeof statuses / sizeof statuses[0]; i++)
        if (statuses[i].status == status)
            full.condition = weir__bytes_of(statuses[i].condition, strlen(statuses[i].condition));
    return weir__wire_error(&full, out);
}

int64_t weir__wire_delay_ms(unsigned attempts)
{
    struct weir__rand rand = weir__rand_system();
    int64_t most = WEIR__WIRE_RETRY_MS;
    uint32_t chance = 0;

    while (attempts-- > 1 && most < WEIR__WIRE_RETRY_MS_MAX) most *= 2;
    if (most > WEIR__WIRE_RETRY_MS_MAX) most = WEIR__WIRE_RETRY_MS_MAX;
    rand.fill(rand.self, &chance, sizeof chance, NULL);
    return most / 2 + chance % (most / 2 + 1);
}
