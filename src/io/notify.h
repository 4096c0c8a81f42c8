/* notify.h - tells the service manager how we are: one datagram, no libsystemd. */
#ifndef WEIR_IO_NOTIFY_H
#define WEIR_IO_NOTIFY_H

#include "base/error.h"

/* address is what $NOTIFY_SOCKET says: a path, or "@name" for one outside the file system; NULL or
 * "": nobody wants to know, and nothing is done. state is "READY=1", "STOPPING=1", or several lines
 * of the kind. Does not wait for whoever reads it. */
int weir__notify_send(const char *address, const char *state, struct weir_error *);

#endif
