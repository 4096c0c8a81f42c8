/* folder.h - whether a folder is one that hubs should be kept in. */
#ifndef WEIR_CLI_FOLDER_H
#define WEIR_CLI_FOLDER_H

#include "weir/error.h"

/* Before hubs are made in it. WEIR_EINVAL: it has no hubs and somebody else's files, like /etc, which
 * a slip of the keyboard must not fill with ours. A folder that is not there is fine. */
int weir__folder_check(const char *dir, struct weir_error *);

/* What is to be said of one that others may change, or NULL; in a buffer of the thread's. */
const char *weir__folder_doubt(const char *dir);

#endif
