/* key.c - weir key add, list, rotate, remove: who may come in, and with which key.
 *
 * Keys belong to rules. A rule has a name, rights, and two keys that both work, so that one can be
 * changed while clients still use the other. It belongs to one hub, or to the whole folder. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/warning.h"
#include "hub/namespace.h"

#define RIGHTS_TEXT_BYTES 32

struct key_options {
    struct weir__common common;
    const char *name, *rights;
    bool show_keys;
};

static const struct right {
    const char *name;
    unsigned right;
} rights[] = {
    {"send", WEIR__RIGHT_SEND},
    {"listen", WEIR__RIGHT_LISTEN},
    {"manage", WEIR__RIGHT_MANAGE},
};

#define RIGHTS (sizeof rights / sizeof rights[0])

/* "send,listen"; false: something else. */
static bool parse_rights(const char *text, unsigned *out)
{
    *out = 0;
    for (;;) {
        size_t len = strcspn(text, ","), i = 0;
        while (i < RIGHTS &&
               (strlen(rights[i].name) != len || memcmp(rights[i].name, text, len) != 0))
            i++;
        if (i == RIGHTS) return false;
        *out |= rights[i].right;
        if (!text[len]) return true;
        text += len + 1;
    }
}

static const char *format_rights(unsigned given, char between, char out[RIGHTS_TEXT_BYTES])
{
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < RIGHTS; i++) {
        if (!(given & rights[i].right)) continue;
        if (len) out[len++] = between;
        len += (size_t)snprintf(out + len, RIGHTS_TEXT_BYTES - len, "%s", rights[i].name);
    }
    return out;
}

/* ---- the folder ---- */

static void print_line(enum weir__level level, const char *room, const char *line, void *user)
{
    (void)user;
    if (level >= WEIR__WARN) weir__print_line(room, line);
}

/* Works on the folder of the options. */
typedef int (*key_fn)(struct weir__namespace *, struct key_options *, struct weir_error *);

static int fail(const struct weir__command *self, int rc, const struct weir_error *err)
{
    if (rc != WEIR_ENOTFOUND) return weir__exit_error(rc, err, "%s", self->name);
    fprintf(stderr, "weir: %s: %s; 'weir key list' shows the rules, 'weir hub list' the hubs\n",
            self->name, err->text);
    return WEIR__EXIT_NOT_FOUND;
}

static int with_folder(const struct weir__command *self, struct key_options *o, key_fn fn,
                       bool must_exist)
{
    struct weir__namespace_options options = {.logger = {print_line, NULL},
                                              .must_exist = must_exist};
    struct weir__namespace *ns;
    struct weir_error err;
    int code = WEIR__EXIT_OK, rc = weir__namespace_open(&ns, o->common.data, &options, &err);

    if (rc == WEIR_ENOTFOUND) return weir__home_missing(o->common.data);
    if (rc != 0) return weir__exit_error(rc, &err, "data folder");
    rc = fn(ns, o, &err);
    if (rc != 0) code = fail(self, rc, &err);
    rc = weir__namespace_close(ns, &err);
    if (rc != 0) code = weir__exit_error(rc, &err, "closing the data folder");
    return weir__exit_printed(code);
}

/* The hub that the rule is of; NULL: the folder's. */
static const char *hub_of(struct key_options *o)
{
    return o->common.words > 0 ? o->common.word[0] : NULL;
}

/* The one line of standard output, for scripts. */
static int print_string(struct weir__namespace *ns, const char *hub, const char *name,
                        struct weir_error *err)
{
    struct weir__rule found[WEIR__ACCESS_RULES_MAX];
    char text[WEIR__CONNECTION_BYTES];
    uint32_t count;
    int rc = weir__namespace_rules(ns, hub, found, WEIR__ACCESS_RULES_MAX, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count; i++) {
        if (!weir__name_equal(found[i].name, name)) continue;
        weir__connection_string(text, WEIR__CONNECTION_ADDRESS, hub, &found[i]);
        printf("%s\n", text);
    }
    return rc;
}

/* ---- add ---- */

static const struct weir__args_row add_rows[] = {
    {"rights", WEIR__ARGS_TEXT, offsetof(struct key_options, rights), "A,B",
     "send, listen, manage (which is all); default send,listen"},
    {"name", WEIR__ARGS_TEXT, offsetof(struct key_options, name), "NAME",
     "of the rule; default: its rights, like send-listen"},
    {0},
};

static int add_key(struct weir__namespace *ns, struct key_options *o, struct weir_error *err)
{
    struct weir__rule rule = {.rights = WEIR__RIGHT_SEND | WEIR__RIGHT_LISTEN};
    char text[RIGHTS_TEXT_BYTES];
    const char *name = o->name;
    int rc;

    if (o->rights) parse_rights(o->rights, &rule.rights);
    if (!name)
        name = rule.rights & WEIR__RIGHT_MANAGE ? "manage" : format_rights(rule.rights, '-', text);
    rc = weir__name_check(WEIR__NAME_RULE, name, err);
    if (rc != 0) return rc;
    memcpy(rule.name, name, strlen(name) + 1);
    rc = weir__namespace_rule_add(ns, hub_of(o), &rule, err);
    return rc == 0 ? print_string(ns, hub_of(o), name, err) : rc;
}

static int run_add(const struct weir__command *self, int argc, char **argv)
{
    struct key_options o = {0};
    unsigned given;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.rights && !parse_rights(o.rights, &given))
        return weir__exit_usage(self->name,
                                "--rights must be of send, listen and manage, with "
                                "commas between, not '%s'",
                                o.rights);
    return with_folder(self, &o, add_key, hub_of(&o) != NULL);
}

const struct weir__command weir__command_key_add = {
    .name = "key add",
    .words = "[HUB]",
    .summary = "make a key for a hub, or for all, and print its connection string",
    .more = "The string is for a server on this machine, on the usual port; for others put their\n"
            "host in place of localhost.",
    .rows = add_rows,
    .words_max = 1,
    .run = run_add,
};

/* ---- list ---- */

static const struct weir__args_row list_rows[] = {
    {"show-keys", WEIR__ARGS_FLAG, offsetof(struct key_options, show_keys), NULL,
     "print the connection strings too, and the second keys"},
    {0},
};

static void print_rules(const struct weir__rule *found, uint32_t count, const char *hub,
                        struct key_options *o)
{
    char text[WEIR__CONNECTION_BYTES], given[RIGHTS_TEXT_BYTES];

    for (uint32_t i = 0; i < count; i++) {
        printf("%-24s %-32s %s\n", hub ? hub : "(all)", found[i].name,
               format_rights(found[i].rights, ',', given));
        if (!o->show_keys) continue;
        weir__connection_string(text, WEIR__CONNECTION_ADDRESS, hub, &found[i]);
        printf("  %s\n  second key %s\n", text, found[i].key[WEIR__KEY_SECONDARY]);
    }
}

static int print_hub(const struct weir__catalog_hub *hub, void *user)
{
    print_rules(hub->rules, hub->rule_count, hub->name, user);
    return 0;
}

static int list_keys(struct weir__namespace *ns, struct key_options *o, struct weir_error *err)
{
    struct weir__rule found[WEIR__ACCESS_RULES_MAX];
    uint32_t count;
    int rc;

    if (hub_of(o)) return weir__namespace_hub_show(ns, hub_of(o), print_hub, o, err);
    rc = weir__namespace_rules(ns, NULL, found, WEIR__ACCESS_RULES_MAX, &count, err);
    if (rc != 0) return rc;
    print_rules(found, count, NULL, o);
    return weir__namespace_hub_each(ns, print_hub, o);
}

static int run_list(const struct weir__command *self, int argc, char **argv)
{
    struct key_options o = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    return with_folder(self, &o, list_keys, true);
}

const struct weir__command weir__command_key_list = {
    .name = "key list",
    .words = "[HUB]",
    .summary = "list the rules: hub, name, rights",
    .rows = list_rows,
    .words_max = 1,
    .run = run_list,
};

/* ---- rotate and remove ---- */

static const struct weir__args_row name_rows[] = {
    {"name", WEIR__ARGS_TEXT, offsetof(struct key_options, name), "NAME", "of the rule"},
    {0},
};

static int run_on_rule(const struct weir__command *self, int argc, char **argv, key_fn fn)
{
    struct key_options o = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (!o.name)
        return weir__exit_usage(self->name, "--name is missing ('weir key list' shows them)");
    return with_folder(self, &o, fn, true);
}

/* The first key becomes the second, so whoever uses it goes on; the old second key is over. A crash
 * in between leaves the first key twice, which locks nobody out who was in. */
static int rotate_key(struct weir__namespace *ns, struct key_options *o, struct weir_error *err)
{
    struct weir__rule found[WEIR__ACCESS_RULES_MAX];
    const char *hub = hub_of(o), *first = NULL;
    uint32_t count;
    int rc = weir__namespace_rules(ns, hub, found, WEIR__ACCESS_RULES_MAX, &count, err);

    for (uint32_t i = 0; rc == 0 && i < count; i++)
        if (weir__name_equal(found[i].name, o->name)) first = found[i].key[WEIR__KEY_PRIMARY];
    if (rc == 0)
        rc = weir__namespace_rule_rotate(ns, hub, o->name, WEIR__KEY_SECONDARY, first, err);
    if (rc == 0) rc = weir__namespace_rule_rotate(ns, hub, o->name, WEIR__KEY_PRIMARY, NULL, err);
    return rc == 0 ? print_string(ns, hub, o->name, err) : rc;
}

static int run_rotate(const struct weir__command *self, int argc, char **argv)
{
    return run_on_rule(self, argc, argv, rotate_key);
}

const struct weir__command weir__command_key_rotate = {
    .name = "key rotate",
    .words = "[HUB]",
    .summary = "give a rule a new key; the one before still works until the next time",
    .more =
        "Prints the new connection string. Rotate once, give it to the clients, and rotate again\n"
        "to shut out whoever still has the old one.",
    .rows = name_rows,
    .words_max = 1,
    .run = run_rotate,
};

static int remove_key(struct weir__namespace *ns, struct key_options *o, struct weir_error *err)
{
    int rc = weir__namespace_rule_remove(ns, hub_of(o), o->name, err);

    if (rc == 0) printf("removed %s and its keys\n", o->name);
    return rc;
}

static int run_remove(const struct weir__command *self, int argc, char **argv)
{
    return run_on_rule(self, argc, argv, remove_key);
}

const struct weir__command weir__command_key_remove = {
    .name = "key remove",
    .words = "[HUB]",
    .summary = "remove a rule and its keys",
    .more = "A folder without any rule gets a first one from the next 'weir serve'.",
    .rows = name_rows,
    .words_max = 1,
    .run = run_remove,
};
