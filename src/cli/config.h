/* config.h - the Config.json of Microsoft's emulator: which hubs there shall be. */
#ifndef WEIR_CLI_CONFIG_H
#define WEIR_CLI_CONFIG_H

#include "cli/wanted.h"
#include "cli/warning.h"

#define WEIR__CONFIG_BYTES_MAX (1u << 20)

/* Adds the file's hubs. What the emulator's file has and we have no use for is passed over; what
 * nobody knows is passed over with a warning that names it. WEIR_EINVAL: "Config.json: line 7,
 * column 11: ...". */
int weir__config_read(const char *path, struct weir__wanted *, struct weir__warnings *,
                      struct weir_error *);

#endif
