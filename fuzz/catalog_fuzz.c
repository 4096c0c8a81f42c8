/* catalog_fuzz.c - any bytes as a catalogue.
 *
 * Fed as they are, and with the checksums made right for each version, since otherwise nothing would
 * get past them. What decodes must encode and decode again to the same bytes. */
#include <stdlib.h>

#include "base/crc.h"
#include "fuzz.h"
#include "hub/catalog.h"

#define HEADER_BYTES 32

static const char magic[8] = {'w', 'e', 'i', 'r', ' ', 'c', 'a', 't'};

static void feed(const uint8_t *at, size_t len)
{
    struct weir__catalog first, second;
    struct weir__buf a, b;

    if (weir__catalog_decode(&first, weir__bytes_of(at, len), NULL) != 0) return;
    weir__buf_init(&a, HEADER_BYTES + WEIR__CATALOG_BYTES_MAX);
    weir__buf_init(&b, HEADER_BYTES + WEIR__CATALOG_BYTES_MAX);
    if (weir__catalog_encode(&first, &a, NULL) != 0) abort();
    if (weir__catalog_decode(&second, weir__buf_bytes(&a), NULL) != 0) abort();
    if (weir__catalog_encode(&second, &b, NULL) != 0) abort();
    if (a.len != b.len || memcmp(a.at, b.at, a.len) != 0) abort();
    weir__buf_fini(&a);
    weir__buf_fini(&b);
    weir__catalog_fini(&first);
    weir__catalog_fini(&second);
}

static void make_right(uint8_t *at, size_t len, uint32_t version)
{
    memcpy(at, magic, sizeof magic);
    weir__store32(at + 8, version);
    weir__store32(at + 12, (uint32_t)(len - HEADER_BYTES));
    weir__store32(at + 24, weir__crc32c(0, at + HEADER_BYTES, len - HEADER_BYTES));
    weir__store32(at + 28, weir__crc32c(0, at, 28));
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    uint8_t *copy;

    feed(at, len);
    if (len < HEADER_BYTES) return 0;
    copy = malloc(len);
    if (!copy) return 0;
    memcpy(copy, at, len);
    for (uint32_t version = 1; version <= WEIR__CATALOG_VERSION; version++) {
        make_right(copy, len, version);
        feed(copy, len);
    }
    free(copy);
    return 0;
}
