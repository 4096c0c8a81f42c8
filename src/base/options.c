#include "base/options.h"

#include <string.h>

int weir__options_copy(void *to, size_t ours, const void *from, struct weir_error *err)
{
    const unsigned char *bytes = from;
    size_t size = ours;

    memset(to, 0, ours);
    if (!from) return 0;
    memcpy(&size, from, sizeof size);
    if (size < sizeof size)
        return weir__fail(err, WEIR_EINVAL, "options: size is not set to sizeof the struct");
    for (size_t i = ours; i < size; i++)
        if (bytes[i]) return weir__fail(err, WEIR_EINVAL, "options: of a later release");
    memcpy(to, from, size < ours ? size : ours);
    return 0;
}
