#define _GNU_SOURCE
#include "base/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 36 /* a UUID as text */

static int64_t read_ms(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t system_wall_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_REALTIME);
}

static int64_t system_mono_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_MONOTONIC);
}

#ifdef CLOCK_BOOTTIME
static int64_t system_up_ms(void *self)
{
    (void)self;
    return read_ms(CLOCK_BOOTTIME);
}

/* The kernel's name for this run of the machine, as a number (FNV-1a); 0 when it tells none. */
static uint64_t system_boot(void *self)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    char text[BOOT_ID_BYTES];
    int fd = open(BOOT_ID_FILE, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text);

    (void)self;
    if (fd >= 0) close(fd);
    if (len != BOOT_ID_BYTES) return 0;
    for (int i = 0; i < BOOT_ID_BYTES; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}
#endif

struct weir__clock weir__clock_system(void)
{
    struct weir__clock clock = {.wall_ms = system_wall_ms, .mono_ms = system_mono_ms};

#ifdef CLOCK_BOOTTIME
    clock.up_ms = system_up_ms;
    clock.boot = system_boot;
#endif
    return clock;
}
