/* commands.h - one per file; main.c has the table. */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

#include "cli/args.h"

extern const struct weir__command weir__command_hub_create; /* hub.c */
extern const struct weir__command weir__command_hub_list;
extern const struct weir__command weir__command_hub_show;
extern const struct weir__command weir__command_hub_update;
extern const struct weir__command weir__command_hub_adopt;
extern const struct weir__command weir__command_hub_delete;
extern const struct weir__command weir__command_key_add; /* key.c */
extern const struct weir__command weir__command_key_list;
extern const struct weir__command weir__command_key_rotate;
extern const struct weir__command weir__command_key_remove;
extern const struct weir__command weir__command_send;
extern const struct weir__command weir__command_serve;
extern const struct weir__command weir__command_trust;
extern const struct weir__command weir__command_tail;
extern const struct weir__command weir__command_process;
extern const struct weir__command weir__command_group_create; /* group_admin.c */
extern const struct weir__command weir__command_group_list;
extern const struct weir__command weir__command_group_delete;
extern const struct weir__command weir__command_group_describe;  /* group.c */
extern const struct weir__command weir__command_checkpoint_list; /* checkpoint.c */
extern const struct weir__command weir__command_checkpoint_set;
extern const struct weir__command weir__command_checkpoint_delete;
extern const struct weir__command weir__command_inspect;
extern const struct weir__command weir__command_backup; /* backup.c */
extern const struct weir__command weir__command_restore;
extern const struct weir__command weir__command_upgrade;
extern const struct weir__command weir__command_bench_log;
extern const struct weir__command weir__command_bench_wire;
extern const struct weir__command weir__command_bench_send; /* bench_trial.c */
extern const struct weir__command weir__command_bench_receive;
extern const struct weir__command weir__command_bench_e2e;
extern const struct weir__command weir__command_sim;
extern const struct weir__command weir__command_demo;

#endif
