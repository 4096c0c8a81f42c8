/* pages.c - browsers on this machine, which run other people's pages.
 *
 * Such a page knows the well-known key as everybody does. Its requests are told apart by two fields
 * that it cannot choose:
 *
 *   Origin   where the page comes from
 *   Host     the name by which it found us. A name of its own that suddenly means 127.0.0.1 (DNS
 *            rebinding) makes the browser take us for the page's own server, and there is no Origin.
 *            With TLS the certificate has ruled that out.
 *
 * Ours are this machine's own names, and those that the server was told. */
#define _GNU_SOURCE /* gethostname */
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "server/web.h"

#define HOSTNAME_BYTES 256

bool weir__visit_is_local(const struct weir__visit *v)
{
    const char *peer = weir__tcp_peer(v->tcp);

    return strncmp(peer, "127.", 4) == 0 || strncmp(peer, "[::1]", 5) == 0 ||
           strncmp(peer, "[::ffff:127.", 12) == 0;
}

static bool is_same(struct weir__bytes a, struct weir__bytes b)
{
    return a.len == b.len && strncasecmp((const char *)a.at, (const char *)b.at, a.len) == 0;
}

static bool is_word(struct weir__bytes a, const char *word)
{
    return is_same(a, weir__bytes_of(word, strlen(word)));
}

/* "host", "host:80", "[::1]:80" without the port. With anything else behind the host it is no name of
 * anybody, and stays as it is. */
static struct weir__bytes without_port(struct weir__bytes host)
{
    bool bracketed = host.len && *host.at == '[';
    const uint8_t *end = host.len ? memchr(host.at, bracketed ? ']' : ':', host.len) : NULL;
    size_t len = end ? (size_t)(end - host.at) + bracketed : host.len;

    if (len < host.len && host.at[len] != ':') return host;
    for (size_t i = len + 1; i < host.len; i++)
        if (host.at[i] < '0' || host.at[i] > '9') return host;
    host.len = len;
    return host;
}

/* "127.0.0.1" and all that begin so: four numbers, not a name like 127.0.0.1.example.com. */
static bool is_loopback(struct weir__bytes name)
{
    unsigned number = 0, digits = 0, dots = 0;

    if (name.len < 4 || memcmp(name.at, "127.", 4) != 0) return false;
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] == '.' && digits) {
            number = digits = 0;
            dots++;
        } else if (name.at[i] >= '0' && name.at[i] <= '9' && ++digits <= 3) {
            number = 10 * number + (unsigned)(name.at[i] - '0');
        } else {
            return false;
        }
        if (number > 255) return false;
    }
    return dots == 3 && digits;
}

static bool is_hostname(struct weir__bytes name)
{
    char own[HOSTNAME_BYTES] = "";

    return gethostname(own, sizeof own - 1) == 0 && *own && is_word(name, own);
}

static bool is_ours(const struct weir__server *s, struct weir__bytes name)
{
    static const char below[] = ".localhost"; /* RFC 6761 */
    size_t len = sizeof below - 1;

    if (is_word(name, "localhost") || is_word(name, "[::1]") || is_loopback(name)) return true;
    if (name.len > len && is_word(weir__bytes_of(name.at + name.len - len, len), below))
        return true;
    for (uint32_t i = 0; i < s->http_name_count; i++)
        if (is_word(name, s->http_names[i])) return true;
    return is_hostname(name);
}

/* "https://localhost:3000": what is between. Of length 0: it is nothing like that. */
static struct weir__bytes host_of_origin(struct weir__bytes origin)
{
    const uint8_t *slash = memchr(origin.at, '/', origin.len);
    size_t left = slash ? origin.len - (size_t)(slash - origin.at) : 0;

    if (left < 2 || slash[1] != '/') return weir__bytes_of(NULL, 0);
    return without_port(weir__bytes_of(slash + 2, left - 2));
}

/* A page that came from us by a name of our certificate is no stranger either. */
static bool is_strange_origin(const struct weir__visit *v, struct weir__bytes name)
{
    struct weir__bytes origin = weir__http_field(v->request, "origin"), from;

    if (!origin.at) return false;
    from = host_of_origin(origin);
    if (from.len == 0) return true;
    return !is_ours(v->server, from) && !(weir__tcp_tls(v->tcp) && is_same(from, name));
}

static bool refuse(struct weir__visit *v, const char *field, struct weir__bytes value,
                   const char *text)
{
    char line[512];

    snprintf(line, sizeof line, "%s '%.*s': %s", field, (int)(value.len < 200 ? value.len : 200),
             value.len ? (const char *)value.at : "", text);
    weir__report_refused(v->server, "http", v->id, weir__tcp_peer(v->tcp), line);
    weir__answer_error(v, 403, "%s", line);
    return false;
}

bool weir__page_allowed(struct weir__visit *v)
{
    struct weir__bytes name = without_port(v->request->host);

    if (!weir__visit_is_local(v)) return true;
    if (is_strange_origin(v, name))
        return refuse(v, "Origin", weir__http_field(v->request, "origin"),
                      "Pages of other machines are not answered here.");
    if (name.len && !weir__tcp_tls(v->tcp) && !is_ours(v->server, name))
        return refuse(v, "Host", name,
                      "That is no name of this machine; weir serve --http-name NAME adds one.");
    return true;
}
