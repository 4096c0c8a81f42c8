#include "cli/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include <openssl/crypto.h>

#include "base/clock.h"
#include "cli/remote_state.h"
#include "client/token.h"

#define PORT_PLAIN "5300"
#define PORT_TLS "8443"
#define TOKEN_S 300
#define PATH_BYTES (WEIR__HUB_NAME_MAX + WEIR__RULE_NAME_MAX + 64)
#define DETAIL_BYTES 1100
#define STRANGER_BYTES 120 /* of what somebody else says */

/* ---- asking ---- */

/* Adds "/name". Names that may be have nothing in them that would have to be escaped. */
static int add_name(char *path, enum weir__name_kind kind, const char *name, struct weir_error *err)
{
    size_t len = strlen(path);
    int rc = weir__name_check(kind, name, err);

    if (rc == 0) snprintf(path + len, PATH_BYTES - len, "/%s", name);
    return rc;
}

static int make_path(char out[PATH_BYTES], const struct weir__remote_path *p,
                     struct weir_error *err)
{
    int rc = 0;

    snprintf(out, PATH_BYTES, "/$weir%s", p->hub || !p->what ? "/hubs" : "");
    if (p->hub) rc = add_name(out, WEIR__NAME_HUB, p->hub, err);
    if (rc == 0 && p->what) snprintf(out + strlen(out), PATH_BYTES - strlen(out), "/%s", p->what);
    if (rc == 0 && p->name) rc = add_name(out, WEIR__NAME_RULE, p->name, err);
    if (rc == 0 && p->query) snprintf(out + strlen(out), PATH_BYTES - strlen(out), "%s", p->query);
    return rc;
}

/* A string for one hub is for nothing else. */
static int check_scope(const struct weir__remote *r, const char *hub, struct weir_error *err)
{
    if (!*r->to.hub || (hub && strcasecmp(hub, r->to.hub) == 0)) return 0;
    if (hub)
        return weir__fail(err, WEIR_EINVAL,
                          "the connection string is for hub '%.64s' only, not '%.64s'", r->to.hub,
                          hub);
    return weir__fail(err, WEIR_EINVAL,
                      "the connection string is for hub '%.64s' only, and this is about all of "
                      "them",
                      r->to.hub);
}

/* Signed for the hub where there is one: its own rules are good for nothing else. */
static int make_token(const struct weir__remote *r, const char *hub,
                      char out[WEIR__ACCESS_TOKEN_MAX + 1], struct weir_error *err)
{
    struct weir__clock clock = weir__clock_system();
    char resource[WEIR__CONNSTR_HOST_MAX + WEIR__HUB_NAME_MAX + 16];

    if (*r->to.signature) {
        memcpy(out, r->to.signature, sizeof r->to.signature);
        return 0;
    }
    snprintf(resource, sizeof resource, "sb://%s/%s", r->to.host, hub ? hub : "");
    return weir__token_make(out, resource, r->to.key_name, r->to.key,
                            clock.wall_ms(clock.self) / 1000 + TOKEN_S, err);
}

/* ---- what is refused ---- */

static const struct refusal {
    unsigned status;
    int code;
} refusals[] = {
    {400, WEIR_EINVAL},    {401, WEIR_EDENIED}, {403, WEIR_EDENIED},
    {404, WEIR_ENOTFOUND}, {409, WEIR_EDENIED}, /* the last key that opens everything stays */
    {412, WEIR_EEXIST},    {413, WEIR_ETOOBIG}, {503, WEIR_EBUSY},
};

struct detail {
    int64_t code;
    char text[DETAIL_BYTES];
};

static const struct weir__fact detail_facts[] = {
    {"code", WEIR__FACT_NUMBER, offsetof(struct detail, code), 0, NULL},
    {"detail", WEIR__FACT_TEXT, offsetof(struct detail, text), DETAIL_BYTES, NULL},
    {0},
};

/* Somebody else's first line, as far as it can be shown. */
int weir__remote_strange(const struct weir__remote *r, const struct weir__reply *reply,
                         struct weir_error *err)
{
    char text[STRANGER_BYTES + 1];
    size_t len = 0;

    while (len < STRANGER_BYTES && len < reply->body.len && reply->body.at[len] >= ' ' &&
           reply->body.at[len] <= '~') {
        text[len] = (char)reply->body.at[len];
        len++;
    }
    text[len] = '\0';
    return weir__fail(err, WEIR_ENOTSUP,
                      "what answers at %s is not the administration of weir serve (HTTP %u%s%s)",
                      weir__ask_url(r->ask), reply->status, len ? ": " : "", text);
}

static int refuse(const struct weir__remote *r, const struct weir__reply *reply,
                  struct weir_error *err)
{
    struct detail d = {0};

    if (weir__facts_read(reply->body, detail_facts, &d, NULL) != 0 || d.code != reply->status ||
        !*d.text)
        return weir__remote_strange(r, reply, err);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].status == reply->status)
            return weir__fail(err, refusals[i].code, "%s", d.text);
    return weir__fail(err, WEIR_EFAILED, "HTTP %u: %s", reply->status, d.text);
}

/* One question about a path. 0: it was answered with success. */
int weir__remote_ask(struct weir__remote *r, const struct weir__question *q,
                     const struct weir__remote_path *p, struct weir__reply *reply,
                     struct weir_error *err)
{
    char path[PATH_BYTES], token[WEIR__ACCESS_TOKEN_MAX + 1];
    struct weir__question whole = *q;
    int rc = check_scope(r, p->hub, err);

    if (rc == 0) rc = make_path(path, p, err);
    if (rc == 0) rc = make_token(r, p->hub, token, err);
    if (rc != 0) return rc;
    whole.path = path;
    whole.token = token;
    rc = weir__ask(r->ask, &whole, reply, err);
    if (rc != 0 && r->guessed)
        return weir__wrap(err, rc,
                          "administration by HTTP, at its usual port (--admin names another)");
    if (rc != 0) return rc;
    return reply->status >= 200 && reply->status < 300 ? 0 : refuse(r, reply, err);
}

/* What came is of the right form, but not the right thing. */
static int wrap(const struct weir__remote *r, int rc, struct weir_error *err)
{
    if (rc != WEIR_EINVAL) return rc;
    weir__wrap(err, rc, "what %s says is not understood", weir__ask_url(r->ask));
    if (err) err->code = WEIR_ENOTSUP;
    return WEIR_ENOTSUP;
}

int weir__remote_read(const struct weir__remote *r, const struct weir__reply *reply,
                      const struct weir__fact *facts, void *out, struct weir_error *err)
{
    return wrap(r, weir__facts_read(reply->body, facts, out, err), err);
}

/* The answer is copied, because show may ask for more. */
int weir__remote_list(struct weir__remote *r, const struct weir__remote_path *p, const char *name,
                      const struct weir__fact *facts, void *out, size_t size,
                      int (*show)(void *out, void *user), void *user, struct weir_error *err)
{
    struct weir__question q = {.method = "GET"};
    struct weir__reply reply;
    int rc = weir__remote_ask(r, &q, p, &reply, err);
    uint8_t *copy = rc == 0 ? malloc(reply.body.len + 1) : NULL;

    if (rc == 0 && !copy) rc = weir__fail(err, WEIR_ENOMEM, "out of memory for a list");
    if (rc != 0) return rc;
    memcpy(copy, reply.body.at, reply.body.len);
    rc = weir__facts_list(weir__bytes_of(copy, reply.body.len), name, facts, out, size, show, user,
                          err);
    free(copy);
    return wrap(r, rc, err);
}

/* ---- lives ---- */

static void find_url(const struct weir__connstr *to, char *out, size_t room)
{
    bool six = strchr(to->host, ':') != NULL;

    if (to->websocket)
        snprintf(out, room, "%s://%s", to->plain ? "http" : "https", to->address);
    else
        snprintf(out, room, "%s://%s%s%s:%s", to->plain ? "http" : "https", six ? "[" : "",
                 to->host, six ? "]" : "", to->plain ? PORT_PLAIN : PORT_TLS);
}

int weir__remote_open(struct weir__remote **out, const char *connect, const char *admin,
                      struct weir_error *err)
{
    struct weir__remote *r = calloc(1, sizeof *r);
    char url[WEIR__CONNSTR_HOST_MAX + 32];
    int rc;

    *out = NULL;
    if (!r) return weir__fail(err, WEIR_ENOMEM, "out of memory for a connection");
    r->guessed = !admin;
    rc = weir__connstr_parse(&r->to, connect, err);
    if (rc == 0) {
        find_url(&r->to, url, sizeof url);
        rc = weir__ask_open(&r->ask, admin ? admin : url, err);
        if (rc == WEIR_EINVAL && admin) weir__wrap(err, rc, "--admin");
    }
    if (rc != 0) {
        weir__remote_close(r);
        return rc;
    }
    *out = r;
    return 0;
}

void weir__remote_close(struct weir__remote *r)
{
    if (!r) return;
    weir__ask_close(r->ask);
    OPENSSL_cleanse(&r->to, sizeof r->to); /* it has a key in it */
    free(r);
}
