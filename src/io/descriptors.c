#include "io/descriptors.h"

#include <sys/resource.h>

uint64_t weir__descriptors_raise(void)
{
    struct rlimit now, wanted;

    if (getrlimit(RLIMIT_NOFILE, &now) != 0) return 0;
    wanted = (struct rlimit){now.rlim_max, now.rlim_max};
    return setrlimit(RLIMIT_NOFILE, &wanted) == 0 ? wanted.rlim_cur : now.rlim_cur;
}
