/* place.h - the folder that a bench works in: made by it, filled by nobody else, gone at the end.
 *
 * Also what a bench does to the page cache: hot files lie in it, cold ones do not. */
#ifndef WEIR_BENCH_PLACE_H
#define WEIR_BENCH_PLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define WEIR__PLACE_PATH_BYTES 1024

struct weir__place {
    char path[WEIR__PLACE_PATH_BYTES]; /* empty: not open */
};

/* Makes a new folder inside `under`. WEIR_ENOSPACE when that disk has less than bytes_needed. */
int weir__place_open(struct weir__place *, const char *under, uint64_t bytes_needed,
                     struct weir_error *);

/* Removes the folder with everything in it. */
void weir__place_close(struct weir__place *);

/* The path of `name` in the folder. */
int weir__place_path(const struct weir__place *, const char *name, char out[WEIR__PLACE_PATH_BYTES],
                     struct weir_error *);

/* Removes a folder of the place with everything in it; nothing when it is not there. */
void weir__place_remove(const char *path);

/* Takes all files below path out of the page cache, or reads them into it. Only what is on disk can
 * be dropped, so cool syncs first. Bytes that somebody has mapped stay. */
int weir__place_cool(const char *path, struct weir_error *);
int weir__place_heat(const char *path, struct weir_error *);

/* Bytes that the files below path occupy. */
uint64_t weir__place_disk_bytes(const char *path);

/* How many files below path were made at or after a time of weir__place_now; 0 where the file
 * system does not tell. */
int64_t weir__place_now(void);
uint32_t weir__place_files_since(const char *path, int64_t time_ns);

/* What kind of file system it is: "ext4", or a number where the name is not known. */
const char *weir__place_kind(const struct weir__place *, char *out, size_t len);

#endif
