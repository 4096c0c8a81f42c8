/* key.c - weir key add, list, rotate, remove: who may come in, and with which key.
 *
 * Keys belong to rules. A rule has a name, rights, and two keys that both work, so that one can be
 * changed while clients still use the other. It belongs to one hub, or to the whole folder. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/connection.h"
#include "cli/exit.h"
#include "cli/home.h"
#include "cli/json.h"
#include "cli/rights.h"
#include "hub/name.h"
#include "hub/right.h"

#define RIGHTS_TEXT_BYTES 32

struct key_options {
    struct weir__common common;
    const char *name, *rights;
    bool show_keys, json;
};

static const char *format_rights(unsigned given, char between, char out[RIGHTS_TEXT_BYTES])
{
    size_t len = 0;

    out[0] = '\0';
    for (const struct weir__right_name *r = weir__right_names; r->name; r++) {
        if (!(given & r->right)) continue;
        if (len) out[len++] = between;
        len += (size_t)snprintf(out + len, RIGHTS_TEXT_BYTES - len, "%s", r->name);
    }
    return out;
}

/* ---- the place ---- */

/* Works in the place that was found. */
typedef int (*key_fn)(struct weir__home *, struct key_options *, struct weir_error *);

static int fail(const struct weir__command *self, int rc, const struct weir_error *err)
{
    if (rc != WEIR_ENOTFOUND) return weir__exit_error(rc, err, "%s", self->name);
    fprintf(stderr, "weir: %s: %s; 'weir key list' shows the rules, 'weir hub list' the hubs\n",
            self->name, err->text);
    return WEIR__EXIT_NOT_FOUND;
}

static int run_in_place(const struct weir__command *self, struct key_options *o, key_fn fn,
                        unsigned want)
{
    struct weir__home home;
    struct weir_error err;
    int rc, code = weir__home_reach(&home, self, &o->common, WEIR__HOME_ADMIN | want);

    if (code != 0) return code;
    rc = fn(&home, o, &err);
    if (rc != 0) code = fail(self, rc, &err);
    return weir__exit_printed(weir__home_leave(&home, code));
}

/* The hub that the rule is of; NULL: the folder's. */
static const char *hub_of(const struct key_options *o)
{
    return o->common.words > 0 ? o->common.word[0] : NULL;
}

/* The string by which a client comes in with a key: of this server, or of one that will serve the
 * folder. */
static int make_string(const struct weir__home *h, const char *hub, const struct weir_rule *rule,
                       char out[WEIR__CONNECTION_BYTES], struct weir_error *err)
{
    const char *key = rule->key[WEIR_PRIMARY_KEY];

    if (!h->connect) {
        weir__connection_string(out, WEIR__CONNECTION_ADDRESS, hub, rule->name, key);
        return 0;
    }
    if (weir__connection_like(out, h->connect, hub, rule->name, key)) return 0;
    return weir__fail(err, WEIR_ETOOBIG, "the connection string is too long");
}

/* The one line of standard output, for scripts. */
static int print_string(const struct weir__home *h, const char *hub, const struct weir_rule *rule,
                        struct weir_error *err)
{
    char text[WEIR__CONNECTION_BYTES];
    int rc = make_string(h, hub, rule, text, err);

    if (rc == 0) printf("%s\n", text);
    return rc;
}

/* ---- add ---- */

static const struct weir__args_row add_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"rights", WEIR__ARGS_TEXT, offsetof(struct key_options, rights), "A,B",
     "send, listen, manage (which is all); default send,listen"},
    {"name", WEIR__ARGS_TEXT, offsetof(struct key_options, name), "NAME",
     "of the rule; default: its rights, like send-listen"},
    {0},
};

static int add_key(struct weir__home *h, struct key_options *o, struct weir_error *err)
{
    struct weir_rule rule = {.rights = WEIR_SEND | WEIR_LISTEN};
    char text[RIGHTS_TEXT_BYTES];
    const char *name = o->name;
    int rc;

    if (o->rights) weir__rights_parse(o->rights, &rule.rights);
    if (!name) name = rule.rights & WEIR_MANAGE ? "manage" : format_rights(rule.rights, '-', text);
    rc = weir__name_check(WEIR__NAME_RULE, name, err);
    if (rc != 0) return rc;
    memcpy(rule.name, name, strlen(name) + 1);
    rc = weir_rule_create(h->weir, hub_of(o), &rule, err);
    return rc == 0 ? print_string(h, hub_of(o), &rule, err) : rc;
}

static int run_add(const struct weir__command *self, int argc, char **argv)
{
    struct key_options o = {0};
    unsigned given;
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    if (o.rights && !weir__rights_parse(o.rights, &given))
        return weir__exit_usage(self->name,
                                "--rights must be of send, listen and manage, with "
                                "commas between, not '%s'",
                                o.rights);
    return run_in_place(self, &o, add_key, hub_of(&o) ? 0 : WEIR__HOME_MAKE);
}

const struct weir__command weir__command_key_add = {
    .name = "key add",
    .words = "[HUB]",
    .summary = "make a key for a hub, or for all, and print its connection string",
    .more = "The string is for the server that was named. In a folder it is for a server on this\n"
            "machine, on the usual port; for others put their host in place of localhost.",
    .rows = add_rows,
    .words_max = 1,
    .run = run_add,
};

/* ---- list ---- */

static const struct weir__args_row list_rows[] = {
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
    {"show-keys", WEIR__ARGS_FLAG, offsetof(struct key_options, show_keys), NULL,
     "print the connection strings too, and the second keys; of a folder only"},
    {"json", WEIR__ARGS_FLAG, offsetof(struct key_options, json), NULL,
     "one line of JSON for each rule"},
    {0},
};

/* A list of rules, of one hub or of one after the other. */
struct listing {
    struct weir__home *home;
    const struct key_options *options;
    const char *hub; /* whose rules come now; NULL: the folder's */
    struct weir_error *err;
};

static int print_rule(const struct weir_rule *rule, void *user)
{
    char text[WEIR__CONNECTION_BYTES], given[RIGHTS_TEXT_BYTES];
    const struct listing *l = user;
    int rc;

    printf("%-24s %-32s %s\n", l->hub ? l->hub : "(all)", rule->name,
           format_rights(rule->rights, ',', given));
    if (!l->options->show_keys) return 0;
    rc = make_string(l->home, l->hub, rule, text, l->err);
    if (rc == 0) printf("  %s\n  second key %s\n", text, rule->key[WEIR_SECONDARY_KEY]);
    return rc;
}

static void write_text(const char *name, const char *text)
{
    printf(",\"%s\":", name);
    weir__json_text(stdout, weir_text(text));
}

static void write_rights(unsigned given)
{
    const char *comma = "";

    printf(",\"rights\":[");
    for (const struct weir__right_name *r = weir__right_names; r->name; r++) {
        if (!(given & r->right)) continue;
        printf("%s\"%s\"", comma, r->name);
        comma = ",";
    }
    putchar(']');
}

static int write_rule(const struct weir_rule *rule, void *user)
{
    char text[WEIR__CONNECTION_BYTES];
    const struct listing *l = user;
    int rc = l->options->show_keys ? make_string(l->home, l->hub, rule, text, l->err) : 0;

    if (rc != 0) return rc;
    printf("{\"hub\":");
    if (l->hub)
        weir__json_text(stdout, weir_text(l->hub));
    else
        printf("null");
    write_text("name", rule->name);
    write_rights(rule->rights);
    if (l->options->show_keys) {
        write_text("primary_key", rule->key[WEIR_PRIMARY_KEY]);
        write_text("secondary_key", rule->key[WEIR_SECONDARY_KEY]);
        write_text("connection_string", text);
    }
    printf("}\n");
    return 0;
}

static int list_rules(struct listing *l, const char *hub)
{
    l->hub = hub;
    return weir_rule_list(l->home->weir, hub, l->options->json ? write_rule : print_rule, l,
                          l->err);
}

static int list_hub(const struct weir_hub_info *hub, void *user)
{
    return list_rules(user, hub->name);
}

static int list_keys(struct weir__home *h, struct key_options *o, struct weir_error *err)
{
    struct listing l = {.home = h, .options = o, .err = err};
    int rc;

    if (h->wire && o->show_keys)
        return weir__fail(err, WEIR_ENOTSUP,
                          "a server shows a key once, when it is made: --show-keys is for a folder "
                          "that is not served");
    rc = list_rules(&l, hub_of(o));
    return rc != 0 || hub_of(o) ? rc : weir_hub_list(h->weir, list_hub, &l, err);
}

static int run_list(const struct weir__command *self, int argc, char **argv)
{
    struct key_options o = {0};
    int code;

    if (!weir__args_parse(self, argc, argv, &o.common, &code)) return code;
    return run_in_place(self, &o, list_keys, 0);
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
    WEIR__ARGS_CONNECT_SERVE,
    WEIR__ARGS_ADMIN,
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
    return run_in_place(self, &o, fn, 0);
}

static int rotate_key(struct weir__home *h, struct key_options *o, struct weir_error *err)
{
    struct weir_rule rule;
    int rc = weir_rule_renew(h->weir, hub_of(o), o->name, &rule, err);

    return rc == 0 ? print_string(h, hub_of(o), &rule, err) : rc;
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

static int remove_key(struct weir__home *h, struct key_options *o, struct weir_error *err)
{
    int rc = weir_rule_delete(h->weir, hub_of(o), o->name, err);

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
    .more = "A folder without any rule gets a first one from the next 'weir serve'; a running one\n"
            "keeps its last rule with manage.",
    .rows = name_rows,
    .words_max = 1,
    .run = run_remove,
};
