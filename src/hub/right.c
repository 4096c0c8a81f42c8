#include "hub/right.h"

#include <stddef.h>

#include "hub/access.h"

const struct weir__right_name weir__right_names[] = {
    {"send", WEIR__RIGHT_SEND},
    {"listen", WEIR__RIGHT_LISTEN},
    {"manage", WEIR__RIGHT_MANAGE},
    {NULL, 0},
};
