#include "io/descriptors.h"

#include <assert.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t weir__descriptors_raise(void)
{
    struct rlimit now, wanted;

    if (getrlimit(RLIMIT_NOFILE, &now) != 0) return 0;
    wanted = (struct rlimit){now.rlim_max, now.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? wanted.rlim_cur : now.rlim_cur;
}

bool weir__descriptors_left(unsigned count)
{
    int fds[WEIR__DESCRIPTORS_TRIED_MAX];
    unsigned got = 0;
    bool enough;

    assert(count <= WEIR__DESCRIPTORS_TRIED_MAX);
    while (got < count && (fds[got] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) got++;
    enough = got == count;
    while (got > 0) close(fds[--got]);
    return enough;
}
