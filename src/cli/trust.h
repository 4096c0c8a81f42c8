/* trust.h - where the local authority lives. */
#ifndef WEIR_CLI_TRUST_H
#define WEIR_CLI_TRUST_H

#include "io/authority.h"

/* The folder that was given, or the user's own, one for all data folders, so that it is trusted
 * once: $XDG_DATA_HOME/weir/authority, else ~/.local/share/weir/authority. WEIR_EINVAL: there is no
 * home. */
int weir__trust_folder(const char *given, char out[WEIR__AUTHORITY_PATH_MAX], struct weir_error *);

#endif
