#include "base/rand.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

static int system_fill(void *self, void *out, size_t len, struct weir_error *err)
{
    uint8_t *at = out;

    (void)self;
    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return weir__fail_errno(err, errno, "getrandom");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

struct weir__rand weir__rand_system(void)
{
    return (struct weir__rand){system_fill, NULL};
}
