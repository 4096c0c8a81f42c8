#include "client/connstr.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define WHAT "connection string: "
#define PORT_DIGITS_MAX 5

struct text {
    const char *at;
    size_t len;
};

static struct text trim(const char *at, size_t len)
{
    while (len > 0 && isspace((unsigned char)*at)) at++, len--;
    while (len > 0 && isspace((unsigned char)at[len - 1])) len--;
    return (struct text){at, len};
}

static bool is_word(struct text t, const char *word)
{
    return t.len == strlen(word) && strncasecmp(t.at, word, t.len) == 0;
}

/* ---- values ---- */

static bool is_host(struct text t, bool bracketed)
{
    for (size_t i = 0; i < t.len; i++) {
        unsigned char c = (unsigned char)t.at[i];
        if (!isalnum(c) && !strchr(bracketed ? ":.%" : ".-_", c)) return false;
    }
    return t.len > 0 && t.len <= WEIR__CONNSTR_HOST_MAX;
}

/* 1 to 65535; 0: it is none. */
static unsigned read_port(struct text t)
{
    unsigned long port = 0;

    if (t.len == 0 || t.len > PORT_DIGITS_MAX) return 0;
    for (size_t i = 0; i < t.len; i++) {
        if (!isdigit((unsigned char)t.at[i])) return 0;
        port = port * 10 + (unsigned long)(t.at[i] - '0');
    }
    return port <= 65535 ? (unsigned)port : 0;
}

/* Takes the host off the front: up to a colon or a slash, or what brackets enclose. */
static struct text split_host(struct text *rest, bool *bracketed)
{
    struct text host = {rest->at, 0};
    size_t end = 0;

    *bracketed = rest->len > 0 && *rest->at == '[';
    if (*bracketed) {
        while (end < rest->len && rest->at[end] != ']') end++;
        host = (struct text){rest->at + 1, end < rest->len ? end - 1 : 0};
        if (end < rest->len) end++;
    } else {
        while (end < rest->len && !strchr(":/", rest->at[end])) end++;
        host.len = end;
    }
    rest->at += end;
    rest->len -= end;
    return host;
}

/* sb://HOST[:PORT][/] */
static bool take_endpoint(struct weir__connstr *c, struct text value)
{
    struct text rest, host, port = {NULL, 0};
    bool bracketed;

    if (value.len < 5 || strncasecmp(value.at, "sb://", 5) != 0) return false;
    rest = (struct text){value.at + 5, value.len - 5};
    host = split_host(&rest, &bracketed);
    if (rest.len > 0 && rest.at[rest.len - 1] == '/') rest.len--;
    if (!is_host(host, bracketed)) return false;
    if (rest.len > 0) {
        port = (struct text){rest.at + 1, rest.len - 1};
        if (*rest.at != ':' || read_port(port) == 0) return false;
    }
    memcpy(c->host, host.at, host.len);
    snprintf(c->address, sizeof c->address, bracketed ? "[%s]:%.*s" : "%s:%.*s", c->host,
             (int)port.len, port.at ? port.at : "");
    return true;
}

static bool take_emulator(struct weir__connstr *c, struct text value)
{
    c->plain = is_word(value, "true");
    return c->plain || is_word(value, "false");
}

/* The names are those of Azure's own clients for .NET, old and new. */
static bool take_transport(struct weir__connstr *c, struct text value)
{
    c->websocket = is_word(value, "AmqpWebSockets");
    return c->websocket || is_word(value, "Amqp") || is_word(value, "AmqpTcp");
}

static bool take_signature(struct weir__connstr *c, struct text value)
{
    if (value.len < 22 || strncmp(value.at, "SharedAccessSignature ", 22) != 0) return false;
    if (value.len > WEIR__ACCESS_TOKEN_MAX) return false;
    memcpy(c->signature, value.at, value.len);
    return true;
}

/* ---- parts ---- */

/* Either a place for the value, or a function that takes it. */
static const struct part {
    const char *name;
    const char *expected;
    bool (*take)(struct weir__connstr *, struct text);
    size_t at, max;
} parts[] = {
    {"Endpoint", "sb://HOST[:PORT]/", take_endpoint, 0, 0},
    {"SharedAccessKeyName", "the name of a rule, at most 256 bytes", NULL,
     offsetof(struct weir__connstr, key_name), WEIR__RULE_NAME_MAX},
    {"SharedAccessKey", "the key of that rule, at most 256 bytes", NULL,
     offsetof(struct weir__connstr, key), WEIR__CONNSTR_KEY_MAX},
    {"SharedAccessSignature", "'SharedAccessSignature sr=...', at most 4096 bytes", take_signature,
     0, 0},
    {"EntityPath", "the name of a hub, at most 256 bytes", NULL,
     offsetof(struct weir__connstr, hub), WEIR__HUB_NAME_MAX},
    {"UseDevelopmentEmulator", "true or false", take_emulator, 0, 0},
    {"TransportType", "Amqp, AmqpTcp or AmqpWebSockets", take_transport, 0, 0},
};

#define PARTS (sizeof parts / sizeof parts[0])

static bool take_value(struct weir__connstr *c, const struct part *p, struct text value)
{
    if (value.len == 0) return false;
    if (p->take) return p->take(c, value);
    if (value.len > p->max) return false;
    memcpy((char *)c + p->at, value.at, value.len);
    return true;
}

static int take_part(struct weir__connstr *c, struct text part, unsigned number, bool seen[PARTS],
                     struct weir_error *err)
{
    const char *equals = memchr(part.at, '=', part.len);
    struct text name, value;

    if (!equals)
        return weir__fail(err, WEIR_EINVAL, WHAT "part %u has no '=': expected NAME=VALUE", number);
    name = trim(part.at, (size_t)(equals - part.at));
    value = trim(equals + 1, (size_t)(part.at + part.len - equals - 1));
    for (size_t i = 0; i < PARTS; i++) {
        if (!is_word(name, parts[i].name)) continue;
        if (seen[i]) return weir__fail(err, WEIR_EINVAL, WHAT "%s is there twice", parts[i].name);
        seen[i] = true;
        if (take_value(c, &parts[i], value)) return 0;
        return weir__fail(err, WEIR_EINVAL, WHAT "%s is malformed: expected %s", parts[i].name,
                          parts[i].expected);
    }
    return 0;
}

/* What must be there, and with what. */
static int check(const struct weir__connstr *c, struct weir_error *err)
{
    if (!*c->host)
        return weir__fail(err, WEIR_EINVAL,
                          WHAT "there is no Endpoint: expected Endpoint=sb://HOST[:PORT]/");
    if (*c->signature && (*c->key || *c->key_name))
        return weir__fail(err, WEIR_EINVAL,
                          WHAT "SharedAccessSignature and SharedAccessKey or SharedAccessKeyName: "
                               "expected either a signature or a key with its name");
    if (*c->signature) return 0;
    if (!*c->key_name)
        return weir__fail(err, WEIR_EINVAL,
                          WHAT "there is no SharedAccessKeyName: expected it and SharedAccessKey, "
                               "or SharedAccessSignature");
    if (!*c->key)
        return weir__fail(err, WEIR_EINVAL,
                          WHAT "there is no SharedAccessKey: expected the key of "
                               "SharedAccessKeyName");
    return 0;
}

bool weir__connstr_is(const char *text)
{
    const char *at = text;

    if (strstr(text, "://")) return true;
    while (at) {
        struct text name;
        at += strspn(at, "; ");
        name = trim(at, strcspn(at, "=;"));
        if (at[strcspn(at, "=;")] == '=')
            for (size_t i = 0; i < PARTS; i++)
                if (is_word(name, parts[i].name)) return true;
        at = strchr(at, ';');
    }
    return false;
}

/* The emulator's HTTP port is weir serve's too. */
static const char *usual_port(const struct weir__connstr *c)
{
    if (c->websocket) return c->plain ? "5300" : "443";
    return c->plain ? "5672" : "5671";
}

int weir__connstr_parse(struct weir__connstr *c, const char *text, struct weir_error *err)
{
    bool seen[PARTS] = {false};
    size_t len;
    int rc;

    memset(c, 0, sizeof *c);
    if (strlen(text) > WEIR__CONNSTR_BYTES_MAX)
        return weir__fail(err, WEIR_EINVAL, WHAT "it has more than %d bytes",
                          WEIR__CONNSTR_BYTES_MAX);
    for (unsigned number = 1; *text; number++) {
        size_t end = strcspn(text, ";");
        struct text part = trim(text, end);
        rc = part.len ? take_part(c, part, number, seen, err) : 0;
        if (rc != 0) return rc;
        text += end + (text[end] == ';');
    }
    rc = check(c, err);
    if (rc != 0) return rc;
    len = strlen(c->address);
    if (c->address[len - 1] == ':')
        snprintf(c->address + len, sizeof c->address - len, "%s", usual_port(c));
    return 0;
}
