#include "server/errors.h"

#define UNABLE "The service was unable to process the request; please retry the operation."
#define THROTTLED                                                                                  \
    "The request was terminated because the entity is being throttled. Error code : 50002. Sub "   \
    "error : 102. Please wait 4 seconds and try again."

/* text: said instead of ours. */
static const struct answer {
    int code;
    int status;
    const char *condition;
    const char *text;
} answers[] = {
    {WEIR_EINVAL, 400, WEIR__COND_ARGUMENT, NULL},
    {WEIR_EDENIED, 401, WEIR__AMQP_COND_UNAUTHORIZED, NULL},
    {WEIR_ENOTFOUND, 404, WEIR__AMQP_COND_NOT_FOUND, NULL},
    {WEIR_ESTOLEN, 410, WEIR__AMQP_COND_STOLEN, NULL},
    {WEIR_EEPOCH, 410, WEIR__AMQP_COND_STOLEN, NULL},
    {WEIR_ELIMIT, 403, WEIR__AMQP_COND_LIMIT, NULL},
    {WEIR_ETOOBIG, 400, WEIR__AMQP_COND_MESSAGE_SIZE, NULL},
    {WEIR_EBUSY, 503, WEIR__COND_SERVER_BUSY, THROTTLED},
    {WEIR_ENOMEM, 503, WEIR__COND_SERVER_BUSY, THROTTLED},
    {WEIR_ECLOSED, 503, WEIR__COND_SERVER_BUSY, NULL},
    {WEIR_ENOSPACE, 503, WEIR__COND_SERVER_BUSY, NULL},
    {WEIR_ETIMEDOUT, 408, WEIR__COND_TIMEOUT, NULL},
    {WEIR_ESEQUENCE, 400, WEIR__COND_OUT_OF_ORDER, NULL},
    {WEIR_EFENCED, 400, WEIR__COND_EPOCH_STOLEN, NULL},
};

static const struct answer *answer_of(int code)
{
    static const struct answer other = {0, 500, WEIR__AMQP_COND_INTERNAL, UNABLE};

    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
        if (answers[i].code == code) return &answers[i];
    return &other;
}

int weir__errors_status(int code)
{
    return answer_of(code)->status;
}

/* What a client sent may be quoted, cut anywhere; what is said must be UTF-8 nevertheless. */
static void cut_to_text(struct weir__bytes *b)
{
    while (!weir__amqp_utf8(*b)) b->len--;
}

struct weir__amqp_error weir__errors_say(const struct weir__refusal *r)
{
    const struct answer *a = answer_of(r->why.code);
    struct weir__amqp_error say = weir__amqp_error_of(r->condition ? r->condition : a->condition,
                                                      a->text ? a->text : r->why.text);

    cut_to_text(&say.description);
    return say;
}
