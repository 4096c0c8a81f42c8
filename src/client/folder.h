/* folder.h - what the files of the folder backend share. */
#ifndef WEIR_CLIENT_FOLDER_H
#define WEIR_CLIENT_FOLDER_H

#include "client/backend.h"
#include "hub/namespace.h"

struct weir__folder {
    struct weir__backend base;
    struct weir__namespace *namespace;
    weir_log_fn log;
    void *log_user;
};

extern const struct weir__admin_ops weir__folder_admin;

int weir__folder_open_sender(struct weir__backend *, const char *hub,
                             const struct weir_producer_options *, struct weir__sender **out,
                             struct weir_error *);
int weir__folder_open_source(struct weir__backend *, const char *hub, uint32_t partition,
                             const struct weir_receiver_options *, struct weir__source **out,
                             struct weir_error *);

/* WEIR_ENOTFOUND says which there are. */
int weir__folder_check_partition(struct weir__hub *, uint32_t partition, struct weir_error *);

/* What the catalogue says of a hub. */
void weir__folder_hub_info(const struct weir__catalog_hub *, struct weir_hub_info *out);

#endif
