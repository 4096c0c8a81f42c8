/* address_fuzz.c - any text as the address of a link.
 *
 * What is understood can be written again from its names and means the same, and what its path
 * covers is covered however it is written. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/address.h"

#define AGAIN_BYTES (WEIR__HUB_NAME_MAX + WEIR__GROUP_NAME_MAX + WEIR__ADDRESS_PARTITION_MAX + 64)

/* The shortest way to say it; a publisher's name is not kept and cannot be said again. */
static size_t write_again(const struct weir__address *a, char to[AGAIN_BYTES])
{
    bool manages = a->kind == WEIR__ADDRESS_MANAGEMENT;

    if (a->kind == WEIR__ADDRESS_CBS) return (size_t)snprintf(to, AGAIN_BYTES, "$cbs");
    if (a->kind == WEIR__ADDRESS_RECEIVE)
        return (size_t)snprintf(to, AGAIN_BYTES, "/%s/ConsumerGroups/%s/Partitions/%s", a->hub,
                                a->group, a->partition);
    return (size_t)snprintf(to, AGAIN_BYTES, "/%s%s%s%s", a->hub, manages ? "/$management" : "",
                            *a->partition ? "/Partitions/" : "", a->partition);
}

static void check_partition(const char *text)
{
    uint32_t n = weir__address_partition(text);
    char again[16];

    if (n == UINT32_MAX) return;
    snprintf(again, sizeof again, "%u", n);
    ORACLE(strcmp(text, again) == 0);
}

static void check_same(const struct weir__address *a, const struct weir__address *b)
{
    ORACLE(a->kind == b->kind);
    ORACLE(strcmp(a->hub, b->hub) == 0 && strcmp(a->group, b->group) == 0);
    ORACLE(strcmp(a->partition, b->partition) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__address first, second;
    struct weir__access_path hub;
    struct weir_error err = {0};
    char text[AGAIN_BYTES];

    if (weir__address_parse(&first, weir__bytes_of(at, len), &err) != 0) {
        ORACLE(err.code == WEIR_EINVAL && err.text[0]);
        return 0;
    }
    ORACLE(first.kind < WEIR__ADDRESS_KINDS);
    check_partition(first.partition);
    /* No hub is called $cbs, and none will be found; written again it would be another address. */
    if (first.kind == WEIR__ADDRESS_UNKNOWN || first.hub[0] == '$') return 0;
    len = write_again(&first, text);
    ORACLE(len < sizeof text);
    ORACLE(weir__address_parse(&second, weir__bytes_of(text, len), &err) == 0);
    check_same(&first, &second);
    weir__access_path_hub(&first.path, text);
    ORACLE(!*first.hub || strcmp(text, first.hub) == 0);
    snprintf(hub.text, sizeof hub.text, "%s", first.hub);
    ORACLE(weir__access_path_covers(&hub, &first.path));
    return 0;
}
