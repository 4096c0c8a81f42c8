/* hub_show.h - how the commands about hubs print what hubs have in common. */
#ifndef WEIR_CLI_HUB_SHOW_H
#define WEIR_CLI_HUB_SHOW_H

#include "weir/weir.h"

/* "7d, 1048576 bytes", without a newline. */
void weir__hub_print_retention(const struct weir_hub_info *);

#endif
