/* mistake.c - those who speak something else than the port does. They are told so in what they
 * speak, as far as that can be done, and a line of the log says what to do about it.
 *
 *   TLS, where there is none   an alert, so that the client does not wait
 *   HTTP                       400, with a text that names the port to go to
 *   another AMQP, or garbage   the header of the AMQP that is spoken here, as its standard demands
 *                              (part 2, 2.2): 0 is AMQP itself, 2 means that TLS comes first */
#include <stdio.h>

#include "server/state.h"

#define BODY_BYTES 256

/* What each of them should do. */
static const char *const advice[] = {
    [WEIR__SNIFF_AMQP_091] = "RabbitMQ's clients do not work here: use one for AMQP 1.0",
    [WEIR__SNIFF_HTTP] = "HTTP is spoken on another port, see what weir said when it began",
    [WEIR__SNIFF_KAFKA] = "Kafka's clients do not work here: use one for Event Hubs",
    [WEIR__SNIFF_UNKNOWN] = "use a client for AMQP 1.0 or Event Hubs",
};

static const uint8_t alert[] = {0x15, 3, 1, 0, 2, 2, 40}; /* fatal: handshake_failure */
static const char header_amqp[] = "AMQP\x00\x01\x00";     /* with the NUL */
static const char header_tls[] = "AMQP\x02\x01\x00";

static void write_answer(char to[WEIR__SERVER_ANSWER_BYTES], const char *speaks, const char *http)
{
    char body[BODY_BYTES];

    if (http)
        snprintf(body, sizeof body,
                 "This port speaks %s. HTTP is spoken at %.64s: try http://%.64s/health\n", speaks,
                 http, http);
    else
        snprintf(body, sizeof body, "This port speaks %s, and this server has none for HTTP.\n",
                 speaks);
    snprintf(to, WEIR__SERVER_ANSWER_BYTES,
             "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
}

void weir__mistakes_prepare(struct weir__server *s)
{
    write_answer(s->to_browser, "AMQP 1.0", weir__server_http(s));
    write_answer(s->to_browser_tls, "AMQP 1.0 inside TLS", weir__server_http(s));
}

static const char *advice_of(enum weir__sniff spoken)
{
    const char *text = spoken < sizeof advice / sizeof advice[0] ? advice[spoken] : NULL;

    return text ? text : advice[WEIR__SNIFF_UNKNOWN];
}

/* Its own line: the commonest of them, an Azure client that was not told to leave TLS away. */
static void log_tls(const struct weir__server *s, const char *peer)
{
    const char *amqps = weir__server_amqps(s);

    weir__log_line(&s->logger, WEIR__WARN, "server",
                   "%s speaks TLS, and this port has none: put UseDevelopmentEmulator=true into "
                   "its connection string, or %s%s",
                   peer, amqps ? "send it to the port with TLS, " : "start weir with --amqps",
                   amqps ? amqps : "");
}

struct weir__bytes weir__mistake_plain(struct weir__server *s, const char *peer,
                                       struct weir__bytes first)
{
    enum weir__sniff spoken = weir__sniff(first);

    if (spoken == WEIR__SNIFF_TLS) {
        log_tls(s, peer);
        return weir__bytes_of(alert, sizeof alert);
    }
    weir__log_line(&s->logger, WEIR__WARN, "server", "%s speaks %s, and this port AMQP 1.0: %s",
                   peer, weir__sniff_name(spoken), advice_of(spoken));
    if (spoken == WEIR__SNIFF_HTTP) return weir__bytes_of(s->to_browser, strlen(s->to_browser));
    if (spoken == WEIR__SNIFF_KAFKA || spoken == WEIR__SNIFF_UNKNOWN)
        return weir__bytes_of(header_amqp, sizeof header_amqp);
    return (struct weir__bytes){0}; /* the engine has sent it to those who know AMQP */
}

struct weir__bytes weir__mistake_tls(void *user, const char *peer, enum weir__sniff spoken)
{
    struct weir__server *s = user;
    bool amqp = spoken == WEIR__SNIFF_AMQP || spoken == WEIR__SNIFF_AMQP_SASL;

    weir__log_line(&s->logger, WEIR__WARN, "server",
                   "%s speaks %s without TLS, and this port wants TLS: %s", peer,
                   weir__sniff_name(spoken),
                   amqp ? "send it to the port without, or take UseDevelopmentEmulator=true out of "
                          "its connection string"
                        : advice_of(spoken));
    if (spoken == WEIR__SNIFF_HTTP)
        return weir__bytes_of(s->to_browser_tls, strlen(s->to_browser_tls));
    return weir__bytes_of(header_tls, sizeof header_tls);
}

/* Clients say in these words that they do not know who signed the certificate. */
static bool is_distrust(const char *text)
{
    return strstr(text, "unknown ca") || strstr(text, "certificate unknown") ||
           strstr(text, "bad certificate");
}

void weir__mistake_failed(void *user, const char *peer, const struct weir_error *why)
{
    struct weir__server *s = user;
    const char *guess = "";

    if (is_distrust(why->text))
        guess = ": the client does not trust the certificate of this server; weir trust says how "
                "it can";
    else if (why->code == WEIR_EUNREACHABLE) /* its last word may be lost with the connection */
        guess = ": perhaps it does not trust the certificate of this server; weir trust says how "
                "it can";
    if (strncmp(why->text, peer, strlen(peer)) == 0) peer = NULL; /* the road says so itself */
    weir__log_line(&s->logger, WEIR__WARN, "server", "%s%s%s%s", peer ? peer : "", peer ? ": " : "",
                   why->text, guess);
}
