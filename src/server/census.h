/* census.h - every hub in turn. */
#ifndef WEIR_SERVER_CENSUS_H
#define WEIR_SERVER_CENSUS_H

#include "hub/namespace.h"

/* hub is NULL when it cannot be opened, else it lives for the call. false stops. */
typedef bool (*weir__census_fn)(const char *name, struct weir__hub *hub, void *user);

/* Hubs that are there when it begins, and still when their turn comes. false: fn stopped it, or
 * there was no memory. May wait for the disk. */
bool weir__census(struct weir__namespace *, weir__census_fn, void *user);

#endif
