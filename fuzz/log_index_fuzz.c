/* log_index_fuzz.c - any bytes as the stored index of a segment.
 *
 * Fed twice: as they are, and with magic and checksums made right from the trailer inwards, since
 * otherwise nothing would get past them. Looking things up gives chunks of a sane size, or an
 * error. */
#include <stdlib.h>

#include "base/crc.h"
#include "fuzz.h"
#include "log/index.h"
#include "support/simfs.h"

#define PARTITIONS 3u
#define SEGMENT 7u
#define BEHIND 1000000000100000u
#define PATH "segment"
#define MAGIC 0x58444957u
#define TRAILER_USED 48u
#define FOLDER_ENTRY UINT64_C(16)
#define CHUNK_HEADER UINT64_C(40)
#define CHUNKS_MAX 4096u

/* The file: the input from its beginning on, then its last bytes once more as the trailer. */
static uint8_t *make_file(const uint8_t *at, size_t len, size_t *out_size)
{
    size_t used = len < TRAILER_USED ? len : TRAILER_USED;
    uint8_t *file;

    *out_size = (size_t)weir__round_up(len, WEIR__FS_BLOCK) + WEIR__FS_BLOCK;
    file = calloc(1, *out_size);
    ORACLE(file);
    if (len > 0) memcpy(file, at, len);
    if (used > 0) memcpy(file + *out_size - WEIR__FS_BLOCK, at + len - used, used);
    return file;
}

static uint32_t crc_stamped(const void *at, size_t len, const void *more, size_t more_len)
{
    uint8_t stamp[16];
    uint32_t crc;

    weir__store64(stamp, SEGMENT);
    weir__store64(stamp + 8, BEHIND);
    crc = weir__crc32c(0, stamp, sizeof stamp);
    crc = weir__crc32c(crc, at, len);
    return weir__crc32c(crc, more, more_len);
}

static void fix_chunk(uint8_t *file, size_t size, uint64_t headers, uint32_t count, uint32_t i)
{
    uint8_t *h = file + headers + i * CHUNK_HEADER;
    uint64_t entries = headers + count * CHUNK_HEADER + weir__load32(h + 24);
    uint16_t bytes = weir__load16(h + 30);

    if (entries + bytes <= size) weir__store32(h + 32, weir__crc32c(0, file + entries, bytes));
    weir__store32(h + 36, crc_stamped(h, 36, NULL, 0));
}

static void fix_file(uint8_t *file, size_t size)
{
    uint8_t *trailer = file + size - WEIR__FS_BLOCK;
    uint64_t folder = weir__load64(trailer + 16) % size;

    weir__store32(trailer, MAGIC);
    weir__store64(trailer + 8, SEGMENT);
    weir__store64(trailer + 16, folder);
    weir__store32(trailer + 24, PARTITIONS);
    weir__store64(trailer + 40, BEHIND);
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        uint8_t *e = file + folder + p * FOLDER_ENTRY;
        uint64_t headers;
        uint32_t count;

        if (folder + (p + 1) * FOLDER_ENTRY > size) break;
        weir__store64(e, weir__load64(e) % size);
        weir__store32(e + 8, weir__load32(e + 8) % CHUNKS_MAX);
        headers = weir__load64(e);
        count = weir__load32(e + 8);
        weir__store32(e + 12, crc_stamped(&p, sizeof p, e, 12));
        for (uint32_t i = 0; i < count && headers + (i + 1) * CHUNK_HEADER <= size; i++)
            fix_chunk(file, size, headers, count, i);
    }
    weir__store32(trailer + 4, weir__crc32c(0, trailer + 8, TRAILER_USED - 8));
}

static void look(const struct weir__index_source *s, uint32_t partition)
{
    static const enum weir__log_by by[] = {WEIR__LOG_BY_OFFSET, WEIR__LOG_BY_SEQUENCE,
                                           WEIR__LOG_BY_TIME};
    static const uint64_t values[] = {0, 1, 1000, 1000000000005000u, INT64_MAX};
    struct weir__index_chunk chunk, found;

    for (uint32_t n = 0; n < CHUNKS_MAX; n++) {
        if (weir__index_chunk(s, partition, n, &chunk, NULL) != 0 || chunk.count == 0) break;
        ORACLE(chunk.count <= WEIR__INDEX_CHUNK && chunk.number == n);
    }
    for (size_t i = 0; i < sizeof by / sizeof by[0]; i++)
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
            if (weir__index_find(s, partition, by[i], values[k], &found, NULL) == 0)
                ORACLE(found.count <= WEIR__INDEX_CHUNK);
}

static void feed(const uint8_t *bytes, size_t size)
{
    struct simfs *disk = simfs_new();
    struct weir__fs *fs = simfs_fs(disk);
    struct weir__index_source s = {.stamp = {SEGMENT, BEHIND, 0}, .partitions = PARTITIONS};

    simfs_put(disk, PATH, bytes, size);
    ORACLE(fs->ops->open(fs, PATH, WEIR__FS_READ_ONLY, &s.file, NULL) == 0);
    s.end = size;
    for (uint32_t p = 0; p < PARTITIONS; p++) look(&s, p);
    weir__file_close(s.file);
    simfs_free(disk);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    size_t size;
    uint8_t *file = make_file(at, len, &size);

    feed(file, size);
    fix_file(file, size);
    feed(file, size);
    free(file);
    return 0;
}
