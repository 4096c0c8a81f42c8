/* routes.c - which request goes to whom, and who may come in.
 *
 * A route without a right is for everybody: those tell how the server is, or ask later, as AMQP
 * does. All others need a token in the field Authorization: SharedAccessSignature, signed with a key
 * of a rule that has the right, or Manage; or Bearer and a token of the issuer (issuer.c), if there
 * is one, with such a role. A rule of the namespace and a role count everywhere, a rule of a hub for
 * what is the hub's own. */
#include <stdio.h>
#include <strings.h>

#include "http/target.h"
#include "server/web.h"

#define SEND WEIR__RIGHT_SEND
#define MANAGE WEIR__RIGHT_MANAGE
#define GET WEIR__HTTP_GET
#define PUT WEIR__HTTP_PUT
#define POST WEIR__HTTP_POST
#define DELETE WEIR__HTTP_DELETE
#define PATCH WEIR__HTTP_PATCH
#define OPEN WEIR__SCOPE_OPEN
#define LOCAL WEIR__SCOPE_LOCAL
#define NAMESPACE WEIR__SCOPE_NAMESPACE
#define HUB WEIR__SCOPE_HUB
#define LOOP WEIR__ON_LOOP
#define WORKER WEIR__ON_WORKER
#define EITHER WEIR__ON_EITHER

static const struct weir__route routes[] = {
    {GET, "health", OPEN, 0, WORKER, weir__health_answer},
    {GET, "readyz", OPEN, 0, WORKER, weir__health_answer},
    {GET, "livez", OPEN, 0, LOOP, weir__livez_answer},
    {GET, "metrics", LOCAL, MANAGE, WORKER, weir__metrics_answer},
    {GET, "$servicebus/websocket", OPEN, 0, LOOP, weir__upgrade_answer},
    {POST, "*/messages", HUB, SEND, EITHER, weir__rest_answer},
    {POST, "*/partitions/*/messages", HUB, SEND, EITHER, weir__rest_answer},
    {POST, "*/publishers/*/messages", HUB, SEND, EITHER, weir__rest_answer},
    {GET, "$weir/hubs", NAMESPACE, MANAGE, WORKER, weir__admin_list_hubs},
    {GET, "$weir/hubs/*", HUB, MANAGE, WORKER, weir__admin_show_hub},
    {PUT, "$weir/hubs/*", HUB, MANAGE, WORKER, weir__admin_put_hub},
    {PATCH, "$weir/hubs/*", HUB, MANAGE, WORKER, weir__admin_change_hub},
    {DELETE, "$weir/hubs/*", HUB, MANAGE, WORKER, weir__admin_delete_hub},
    {GET, "$weir/orphans", NAMESPACE, MANAGE, WORKER, weir__admin_list_orphans},
    {GET, "$weir/hubs/*/groups", HUB, MANAGE, WORKER, weir__admin_list_groups},
    {GET, "$weir/hubs/*/groups/*", HUB, MANAGE, WORKER, weir__admin_show_group},
    {PUT, "$weir/hubs/*/groups/*", HUB, MANAGE, WORKER, weir__admin_put_group},
    {DELETE, "$weir/hubs/*/groups/*", HUB, MANAGE, WORKER, weir__admin_delete_group},
    {GET, "$weir/keys", NAMESPACE, MANAGE, WORKER, weir__keys_list},
    {GET, "$weir/keys/*", NAMESPACE, MANAGE, WORKER, weir__keys_show},
    {PUT, "$weir/keys/*", NAMESPACE, MANAGE, WORKER, weir__keys_put},
    {POST, "$weir/keys/*", NAMESPACE, MANAGE, WORKER, weir__keys_rotate},
    {DELETE, "$weir/keys/*", NAMESPACE, MANAGE, WORKER, weir__keys_delete},
    {GET, "$weir/hubs/*/keys", HUB, MANAGE, WORKER, weir__keys_list},
    {GET, "$weir/hubs/*/keys/*", HUB, MANAGE, WORKER, weir__keys_show},
    {PUT, "$weir/hubs/*/keys/*", HUB, MANAGE, WORKER, weir__keys_put},
    {POST, "$weir/hubs/*/keys/*", HUB, MANAGE, WORKER, weir__keys_rotate},
    {DELETE, "$weir/hubs/*/keys/*", HUB, MANAGE, WORKER, weir__keys_delete},
};

#define ROUTES (sizeof routes / sizeof routes[0])

const char *weir__visit_hub(const struct weir__visit *v)
{
    return v->route->scope == HUB ? v->star[0] : NULL;
}

bool weir__visit_only_new(const struct weir__visit *v)
{
    struct weir__bytes match = weir__http_field(v->request, "if-none-match");

    return match.len == 1 && *match.at == '*';
}

/* ---- paths ---- */

/* The next segment of a pattern; 0: none. */
static size_t take_word(const char **pattern)
{
    size_t len = strcspn(*pattern, "/");

    *pattern += len + ((*pattern)[len] == '/');
    return len;
}

/* Names that could be taken for a path are no names. */
static bool take_star(char to[WEIR__WEB_NAME_MAX + 1], struct weir__bytes segment)
{
    return weir__http_unescape(segment, to, WEIR__WEB_NAME_MAX + 1) && *to && !strchr(to, '/');
}

static bool has_path(struct weir__visit *v, const char *pattern)
{
    struct weir__bytes rest = v->request->path, segment;
    char word[WEIR__WEB_NAME_MAX + 1];
    unsigned stars = 0;

    while (weir__http_take_segment(&rest, &segment)) {
        const char *wanted = pattern;
        size_t len = take_word(&pattern);
        if (len == 0) return false;
        if (*wanted == '*' && !take_star(v->star[stars++], segment)) return false;
        if (*wanted == '*') continue;
        if (!weir__http_unescape(segment, word, sizeof word) || strlen(word) != len ||
            strncasecmp(word, wanted, len) != 0)
            return false;
    }
    return *pattern == '\0';
}

/* ---- who may come in ---- */

static const char *name_of(unsigned right)
{
    return right == SEND ? "Send" : "Manage";
}

static bool deny(struct weir__visit *v, const char *why)
{
    weir__answer_error(v, 401, "%s '%s' claim(s) are required to perform this operation.", why,
                       name_of(v->route->right));
    weir__report_refused(v->server, "http", v->id, weir__tcp_peer(v->tcp), why);
    v->answer.challenge =
        v->server->issuer.policy ? "SharedAccessSignature, Bearer" : "SharedAccessSignature";
    return false;
}

/* Bearer's is one of an issuer. */
static int verify_token(struct weir__visit *v, struct weir__bytes token,
                        struct weir__access_grant *out, struct weir_error *err)
{
    const size_t bearer = sizeof "Bearer " - 1;
    const char *hub = weir__visit_hub(v);
    char resource[WEIR__WEB_NAME_MAX + 2];
    int64_t now_s = v->server->clock.wall_ms(v->server->clock.self) / 1000;

    if (token.len >= bearer && strncasecmp((const char *)token.at, "Bearer ", bearer) == 0)
        return weir__issuer_verify(v->server, weir__bytes_of(token.at + bearer, token.len - bearer),
                                   now_s, out, err);
    snprintf(resource, sizeof resource, "/%s", hub ? hub : "");
    return weir__namespace_verify(v->server->ns, token, weir__bytes_of(resource, strlen(resource)),
                                  now_s, out, err);
}

static bool is_allowed(struct weir__visit *v)
{
    struct weir__bytes token = weir__http_field(v->request, "authorization");
    struct weir__access_grant grant;
    struct weir_error err;

    v->rights_seen = atomic_load(&v->server->rights); /* before they are looked at */
    if (v->route->scope == OPEN || (v->route->scope == LOCAL && weir__visit_is_local(v)))
        return true;
    if (!token.at) return deny(v, "MissingToken: There is no Authorization.");
    if (verify_token(v, token, &grant, &err) != 0) return deny(v, err.text);
    weir__visit_trust(v);
    return grant.rights & (v->route->right | MANAGE) ? true : deny(v, "Unauthorized access.");
}

bool weir__route_allowed(struct weir__visit *v)
{
    return v->rights_seen == atomic_load(&v->server->rights) || is_allowed(v);
}

/* ---- the table ---- */

/* Which methods a path knows; the route of the request's own is kept. */
static unsigned find_methods(struct weir__visit *v)
{
    enum weir__http_method method = v->request->method;
    char star[WEIR__WEB_STARS_MAX][WEIR__WEB_NAME_MAX + 1];
    unsigned set = 0;

    if (method == WEIR__HTTP_HEAD) method = GET;
    for (size_t i = 0; i < ROUTES; i++) {
        if (!has_path(v, routes[i].path)) continue;
        set |= 1u << routes[i].method | 1u << WEIR__HTTP_OPTIONS;
        if (routes[i].method == GET) set |= 1u << WEIR__HTTP_HEAD;
        if (routes[i].method != method || v->route) continue;
        v->route = &routes[i];
        memcpy(star, v->star, sizeof star);
    }
    if (v->route) memcpy(v->star, star, sizeof star);
    return set;
}

bool weir__route_find(struct weir__visit *v)
{
    bool asks = v->request->method == WEIR__HTTP_OPTIONS;
    bool all = asks && v->request->path.at[0] == '*';
    unsigned methods = all ? (1u << WEIR__HTTP_METHODS) - 1 : find_methods(v);

    if (v->route) return weir__page_allowed(v) && is_allowed(v);
    if (methods && asks) {
        weir__answer_empty(v, 204);
        v->answer.allow = methods;
    } else if (methods) {
        weir__answer_error(v, 405, "The method %s is not known here.",
                           weir__http_method_name(v->request->method));
        v->answer.allow = methods;
    } else {
        weir__answer_error(v, 404, "There is nothing at this path.");
    }
    return false;
}
