/* wire_admin.c - a request to the administration of weir serve: where it goes, the token that it
 * carries, and what a refusal means. */
#include "client/wire_admin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/clock.h"
#include "client/token.h"

#define TOKEN_S 300 /* tokens over HTTP are short-lived: each is used once */
#define PATH_BYTES (WEIR__HUB_NAME_MAX + WEIR__RULE_NAME_MAX + 64)
#define URL_BYTES (WEIR__CONNSTR_HOST_MAX + 32)
#define DETAIL_BYTES 1100
#define ERROR_NAME_BYTES 32
#define STRANGER_BYTES 120 /* of an answer that is not ours */

/* ---- where ---- */

int weir__wire_admin_open(struct weir__wire *w, const struct weir_options *o,
                          struct weir_error *err)
{
    struct weir__tls_options tls = {.client = true, .authorities_file = o->ca_file};
    char url[URL_BYTES];
    int rc;

    w->http.timeout_ms = w->patience_ms;
    if (!o->admin && !w->to.websocket) return 0; /* the server tells */
    snprintf(url, sizeof url, "%s://%s", w->to.plain ? "http" : "https", w->to.address);
    rc = weir__http_client_set_url(&w->http, o->admin ? o->admin : url, err);
    if (rc != 0) return weir__wrap(err, rc, "admin");
    if (!w->http.secure) return 0;
    if (!w->tls) rc = weir__tls_context_new(&w->http_tls, &tls, err);
    w->http.tls = w->tls ? w->tls : w->http_tls;
    return rc;
}

static int refuse_stranger(const struct weir__wire *w, struct weir_error *err)
{
    return weir__fail(err, WEIR_ENOTSUP,
                      "%s does not tell where it is administered, as weir serve does; hubs, groups "
                      "and keys of Azure are made in its portal or with 'az eventhubs'",
                      w->to.address);
}

/* Asks the server, unless it is known from the beginning. */
static int find_http(struct weir__wire *w, struct weir__http_client *out, struct weir_error *err)
{
    bool six = strchr(w->to.host, ':') != NULL;
    struct weir__wire_told told;
    char url[URL_BYTES];
    unsigned port;
    int rc;

    *out = w->http;
    out->loop = w->loop;
    if (*out->url) return 0;
    rc = weir__wire_ask_told(w, &told, err);
    if (rc != 0) return rc;
    if (!told.ours) return refuse_stranger(w, err);
    port = w->to.plain ? told.http : told.https;
    if (port == 0)
        return weir__fail(err, WEIR_ENOTSUP,
                          "weir serve at %s has no HTTP%s: start it with --http%s", w->to.address,
                          w->to.plain ? "" : " with TLS", w->to.plain ? "" : "s");
    snprintf(url, sizeof url, "%s://%s%s%s:%u", w->to.plain ? "http" : "https", six ? "[" : "",
             w->to.host, six ? "]" : "", port);
    out->tls = w->tls;
    return weir__http_client_set_url(out, url, err);
}

/* Adds "/name". Good names have nothing in them that would have to be escaped. */
static int add_name(char *path, enum weir__name_kind kind, const char *name, struct weir_error *err)
{
    size_t len = strlen(path);
    bool fixed = kind == WEIR__NAME_GROUP && name && weir__name_equal(name, WEIR__GROUP_DEFAULT);
    int rc = fixed ? 0 : weir__name_check(kind, name, err);

    if (rc == 0) snprintf(path + len, PATH_BYTES - len, "/%s", name);
    return rc;
}

static int make_path(char out[PATH_BYTES], const struct weir__admin_path *p, struct weir_error *err)
{
    bool group = p->what && strcmp(p->what, "groups") == 0;
    int rc = 0;

    snprintf(out, PATH_BYTES, "/$weir%s", p->hub || !p->what ? "/hubs" : "");
    if (p->hub) rc = add_name(out, WEIR__NAME_HUB, p->hub, err);
    if (rc == 0 && p->what) snprintf(out + strlen(out), PATH_BYTES - strlen(out), "/%s", p->what);
    if (rc == 0 && p->name)
        rc = add_name(out, group ? WEIR__NAME_GROUP : WEIR__NAME_RULE, p->name, err);
    if (rc == 0 && p->query) snprintf(out + strlen(out), PATH_BYTES - strlen(out), "%s", p->query);
    return rc;
}

/* A string for one hub is for nothing else. */
static int check_scope(const struct weir__wire *w, const char *hub, struct weir_error *err)
{
    if (!*w->to.hub || (hub && strcasecmp(hub, w->to.hub) == 0)) return 0;
    if (hub)
        return weir__fail(err, WEIR_EINVAL,
                          "the connection string is for hub '%.64s' only, not '%.64s'", w->to.hub,
                          hub);
    return weir__fail(err, WEIR_EINVAL,
                      "the connection string is for hub '%.64s' only, and this is about all of "
                      "them",
                      w->to.hub);
}

/* Signed for the hub where there is one: its own rules are good for nothing else. */
static int make_token(const struct weir__wire *w, const char *hub,
                      char out[WEIR__ACCESS_TOKEN_MAX + 1], struct weir_error *err)
{
    struct weir__clock clock = weir__clock_system();
    char resource[WEIR__CONNSTR_HOST_MAX + WEIR__HUB_NAME_MAX + 16];

    if (*w->to.signature) {
        memcpy(out, w->to.signature, sizeof w->to.signature);
        return 0;
    }
    snprintf(resource, sizeof resource, "sb://%s/%s", w->to.host, hub ? hub : "");
    return weir__token_make(out, resource, w->to.key_name, w->to.key,
                            clock.wall_ms(clock.self) / 1000 + TOKEN_S, err);
}

/* ---- refusals ---- */

static const struct refusal {
    unsigned status;
    int code;
} refusals[] = {
    {400, WEIR_EINVAL},    {401, WEIR_EDENIED}, {403, WEIR_EDENIED},
    {404, WEIR_ENOTFOUND}, {409, WEIR_EDENIED}, /* the last key that opens everything stays */
    {412, WEIR_EEXIST},    {413, WEIR_ETOOBIG}, {503, WEIR_EBUSY},
};

struct detail {
    int64_t status;
    char error[ERROR_NAME_BYTES]; /* WEIR_EEXIST; "": the status says it */
    char text[DETAIL_BYTES];
};

static const struct weir__json_field detail_fields[] = {
    {"code", WEIR__JSON_FIELD_NUMBER, offsetof(struct detail, status), 0, NULL},
    {"error", WEIR__JSON_FIELD_TEXT, offsetof(struct detail, error), ERROR_NAME_BYTES, NULL},
    {"detail", WEIR__JSON_FIELD_TEXT, offsetof(struct detail, text), DETAIL_BYTES, NULL},
    {0},
};

/* Shows the first line, as far as it can be printed. */
int weir__admin_strange(const struct weir__admin_reply *reply, struct weir_error *err)
{
    struct weir__bytes body = reply->http.body;
    char text[STRANGER_BYTES + 1];
    size_t len = 0;

    while (len < STRANGER_BYTES && len < body.len && body.at[len] >= ' ' && body.at[len] <= '~') {
        text[len] = (char)body.at[len];
        len++;
    }
    text[len] = '\0';
    return weir__fail(err, WEIR_ENOTSUP,
                      "what answers at %s is not the administration of weir serve (HTTP %u%s%s)",
                      reply->url, reply->http.status, len ? ": " : "", text);
}

static int code_of(const struct detail *d)
{
    static const int codes[] = {
#define WEIR_X(name, value, class, text) name,
        WEIR_ERRORS(WEIR_X)
#undef WEIR_X
    };

    for (size_t i = 0; *d->error && i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i] != 0 && strcmp(weir_error_name(codes[i]), d->error) == 0) return codes[i];
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        if (refusals[i].status == d->status) return refusals[i].code;
    return 0;
}

static int refuse(const struct weir__admin_reply *reply, struct weir_error *err)
{
    struct detail d = {0};
    int code;

    if (weir__json_fields_read(reply->http.body, detail_fields, &d, NULL) != 0 ||
        d.status != reply->http.status || !*d.text)
        return weir__admin_strange(reply, err);
    code = code_of(&d);
    if (code != 0) return weir__fail(err, code, "%s", d.text);
    return weir__fail(err, WEIR_EFAILED, "HTTP %u: %s", reply->http.status, d.text);
}

/* ---- asking ---- */

static int exchange(struct weir__wire *w, const struct weir__http_call *call,
                    struct weir__admin_reply *reply, struct weir_error *err)
{
    struct weir__http_client http;
    int rc = find_http(w, &http, err);

    if (rc != 0) return rc;
    snprintf(reply->url, sizeof reply->url, "%s", http.url);
    rc = weir__http_client_ask(&http, call, &reply->http, err);
    if (rc != 0 && !*w->http.url)
        return weir__wrap(err, rc,
                          "administration by HTTP, at the port that the server told (the option "
                          "admin names another)");
    return rc;
}

int weir__admin_ask(struct weir__wire *w, const struct weir__http_call *call,
                    const struct weir__admin_path *p, struct weir__admin_reply *reply,
                    struct weir_error *err)
{
    char path[PATH_BYTES], token[WEIR__ACCESS_TOKEN_MAX + 1];
    struct weir__http_call whole = *call;
    int rc = check_scope(w, p->hub, err);

    memset(reply, 0, sizeof *reply);
    if (rc == 0) rc = make_path(path, p, err);
    if (rc == 0) rc = make_token(w, p->hub, token, err);
    if (rc != 0) return rc;
    whole.path = path;
    whole.token = token;
    rc = exchange(w, &whole, reply, err);
    if (rc != 0) return rc;
    return reply->http.status >= 200 && reply->http.status < 300 ? 0 : refuse(reply, err);
}

void weir__admin_reply_fini(struct weir__admin_reply *reply)
{
    weir__http_reply_fini(&reply->http);
}

int weir__admin_order(struct weir__wire *w, const struct weir__http_call *call,
                      const struct weir__admin_path *p, struct weir_error *err)
{
    struct weir__admin_reply reply;
    int rc = weir__admin_ask(w, call, p, &reply, err);

    weir__admin_reply_fini(&reply);
    return rc;
}

/* ---- answers ---- */

/* What came is JSON, or not even that, but not what was asked for. */
static int puzzle(const struct weir__admin_reply *reply, int rc, struct weir_error *err)
{
    if (rc != WEIR_EINVAL) return rc;
    weir__wrap(err, rc, "what %s says is not understood", reply->url);
    if (err) err->code = WEIR_ENOTSUP;
    return WEIR_ENOTSUP;
}

int weir__admin_read(const struct weir__admin_reply *reply, const struct weir__json_field *fields,
                     void *out, struct weir_error *err)
{
    return puzzle(reply, weir__json_fields_read(reply->http.body, fields, out, err), err);
}

#define STOPPED 1 /* by show, not by the reader */

struct listing {
    const struct weir__admin_list *list;
    struct weir_error *err;
    int rc;
};

static int show(void *out, void *user)
{
    struct listing *l = user;
    int rc = l->list->check ? l->list->check(out, l->err) : 0;

    if (rc != 0) return rc;
    l->rc = l->list->show(out, l->list->user);
    return l->rc == 0 ? 0 : STOPPED;
}

int weir__admin_list(struct weir__wire *w, const struct weir__admin_path *p,
                     const struct weir__admin_list *list, struct weir_error *err)
{
    struct weir__http_call call = {.method = "GET"};
    struct listing l = {list, err, 0};
    struct weir__admin_reply reply;
    int rc = weir__admin_ask(w, &call, p, &reply, err);

    if (rc == 0) {
        rc = weir__json_fields_list(reply.http.body, list->name, list->fields, list->out,
                                    list->size, show, &l, err);
        rc = rc == STOPPED ? l.rc : puzzle(&reply, rc, err);
    }
    weir__admin_reply_fini(&reply);
    return rc;
}

/* ---- bodies ---- */

void weir__admin_body_init(struct weir__admin_body *b)
{
    b->cut = false;
    weir__buf_init(&b->bytes, WEIR__ADMIN_BODY_MAX);
}

void weir__admin_put(struct weir__admin_body *b, const char *fmt, ...)
{
    va_list args;
    uint8_t *to;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    to = len < 0 ? NULL : weir__buf_room(&b->bytes, (size_t)len + 1);
    b->cut |= !to;
    if (!to) return;
    va_start(args, fmt);
    vsnprintf((char *)to, (size_t)len + 1, fmt, args);
    va_end(args);
    b->bytes.len += (size_t)len;
}

void weir__admin_quote(struct weir__admin_body *b, const char *text)
{
    weir__admin_put(b, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < ' ')
            weir__admin_put(b, "\\u%04x", c);
        else
            weir__admin_put(b, c == '"' || c == '\\' ? "\\%c" : "%c", c);
    }
    weir__admin_put(b, "\"");
}

int weir__admin_send(struct weir__wire *w, struct weir__http_call *call, struct weir__admin_body *b,
                     const struct weir__admin_path *p, struct weir__admin_reply *reply,
                     struct weir_error *err)
{
    int rc;

    memset(reply, 0, sizeof *reply);
    call->body = weir__buf_bytes(&b->bytes);
    if (b->cut)
        rc = weir__fail(err, WEIR_ETOOBIG, "there is too much in one request");
    else
        rc = weir__admin_ask(w, call, p, reply, err);
    weir__buf_fini(&b->bytes);
    return rc;
}

const struct weir__admin_ops weir__wire_admin = {
    .version = WEIR__BACKEND_VERSION,
    .hub_create = weir__admin_hub_create,
    .hub_update = weir__admin_hub_update,
    .hub_delete = weir__admin_hub_delete,
    .hub_adopt = weir__admin_hub_adopt,
    .orphan_list = weir__admin_orphan_list,
    .hub_list = weir__admin_hub_list,
    .group_create = weir__admin_group_create,
    .group_delete = weir__admin_group_delete,
    .rule_create = weir__admin_rule_create,
    .rule_delete = weir__admin_rule_delete,
    .rule_rotate = weir__admin_rule_rotate,
    .rule_renew = weir__admin_rule_renew,
    .rule_list = weir__admin_rule_list,
};
