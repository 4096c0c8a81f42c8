/* selector_fuzz.c - any text as a receiver's selector.
 *
 * What is understood can be written again in the plainest form and means the same; what is not is
 * told where. */
#include "fuzz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/selector.h"

static const char *const subjects[] = {
    [WEIR__FROM_EARLIEST] = "x-opt-offset",    [WEIR__FROM_LATEST] = "x-opt-offset",
    [WEIR__FROM_OFFSET] = "x-opt-offset",      [WEIR__FROM_SEQUENCE] = "x-opt-sequence-number",
    [WEIR__FROM_TIME] = "x-opt-enqueued-time",
};

static size_t write_again(const struct weir__position *p, char *to, size_t room)
{
    char value[32] = "@latest";

    if (p->kind != WEIR__FROM_LATEST) snprintf(value, sizeof value, "%" PRId64, p->value);
    return (size_t)snprintf(to, room, "amqp.annotation.%s %s '%s'", subjects[p->kind],
                            p->inclusive ? ">=" : ">", value);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__position first, second;
    struct weir_error err = {0};
    char text[128];

    if (weir__selector_parse(weir__bytes_of(at, len), &first, &err) != 0) {
        ORACLE(err.code == WEIR_EINVAL && err.text[0]);
        return 0;
    }
    len = write_again(&first, text, sizeof text);
    ORACLE(weir__selector_parse(weir__bytes_of(text, len), &second, &err) == 0);
    ORACLE(first.kind == second.kind && first.inclusive == second.inclusive);
    ORACLE(first.value == second.value);
    return 0;
}
