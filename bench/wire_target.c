#include "bench/wire_target.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PORT_PLAIN ":5672"
#define EMULATOR_RULE "RootManageSharedAccessKey"
#define EMULATOR_KEY "SAS_KEY_VALUE"
#define SIGNATURE_BYTES 32 /* of HMAC-SHA256 */
#define PART_BYTES 512     /* of a connection string */

/* ---- connection strings ---- */

static bool copy_text(char *to, size_t room, const char *from, size_t len)
{
    if (len == 0 || len >= room) return false;
    memcpy(to, from, len);
    to[len] = '\0';
    return true;
}

/* sb://host[:port][/] */
static bool take_endpoint(struct weir__bench_wire_target *t, const char *value)
{
    size_t len;
    bool has_port;

    if (strncmp(value, "sb://", 5) != 0) return false;
    value += 5;
    len = strcspn(value, "/");
    has_port = memchr(value, ':', len) != NULL;
    if (len > WEIR__BENCH_WIRE_HOST_MAX || !copy_text(t->address, sizeof t->address, value, len))
        return false;
    if (!has_port) memcpy(t->address + len, PORT_PLAIN, sizeof PORT_PLAIN);
    return true;
}

/* One "Key=Value"; keys that are not known are for somebody else. */
static bool take_part(struct weir__bench_wire_target *t, const char *part, bool *plain)
{
    const struct {
        const char *name;
        char *to;
        size_t room;
    } texts[] = {
        {"SharedAccessKeyName", t->rule, sizeof t->rule},
        {"SharedAccessKey", t->key, sizeof t->key},
        {"EntityPath", t->hub, sizeof t->hub},
    };
    size_t len = strcspn(part, "=");
    const char *value = part + len + 1;

    if (part[len] != '=') return false;
    if (len == 8 && strncasecmp(part, "Endpoint", len) == 0) return take_endpoint(t, value);
    if (len == 22 && strncasecmp(part, "UseDevelopmentEmulator", len) == 0)
        *plain = strcasecmp(value, "true") == 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strlen(texts[i].name) == len && strncasecmp(part, texts[i].name, len) == 0)
            return copy_text(texts[i].to, texts[i].room, value, strlen(value));
    return true;
}

static int parse_string(struct weir__bench_wire_target *t, const char *text, struct weir_error *err)
{
    char part[PART_BYTES];
    bool plain = false;

    while (*text) {
        size_t len = strcspn(text, ";");
        if (len && (!copy_text(part, sizeof part, text, len) || !take_part(t, part, &plain)))
            return weir__fail(err, WEIR_EINVAL, "the connection string is broken at '%.40s'", text);
        text += len + (text[len] == ';');
    }
    if (!*t->address || !*t->rule || !*t->key)
        return weir__fail(err, WEIR_EINVAL,
                          "the connection string needs Endpoint, SharedAccessKeyName and "
                          "SharedAccessKey");
    if (!plain)
        return weir__fail(err, WEIR_EINVAL,
                          "only plain AMQP is spoken here: the connection string must have "
                          "UseDevelopmentEmulator=true");
    return 0;
}

int weir__bench_wire_target_parse(struct weir__bench_wire_target *t, const char *connect,
                                  const char *hub, struct weir_error *err)
{
    int rc = 0;

    memset(t, 0, sizeof *t);
    if (strchr(connect, '=')) {
        rc = parse_string(t, connect, err);
    } else {
        memcpy(t->rule, EMULATOR_RULE, sizeof EMULATOR_RULE);
        memcpy(t->key, EMULATOR_KEY, sizeof EMULATOR_KEY);
        if (!copy_text(t->address, WEIR__BENCH_WIRE_HOST_MAX, connect, strlen(connect)))
            rc = weir__fail(err, WEIR_EINVAL, "'%.40s' is no HOST:PORT", connect);
    }
    if (rc == 0 && hub && !copy_text(t->hub, sizeof t->hub, hub, strlen(hub)))
        rc = weir__fail(err, WEIR_EINVAL, "the hub's name is empty or too long");
    if (rc == 0 && !*t->hub) rc = weir__fail(err, WEIR_EINVAL, "no hub is named");
    return rc;
}

/* ---- tokens ---- */

void weir__bench_wire_target_audience(const struct weir__bench_wire_target *t,
                                      char out[WEIR__BENCH_WIRE_AUDIENCE_BYTES])
{
    snprintf(out, WEIR__BENCH_WIRE_AUDIENCE_BYTES, "sb://%s/%s", t->address, t->hub);
}

/* As encodeURIComponent does it. `to` has room for three times the text. */
static void encode_uri(char *to, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";

    for (; *text; text++) {
        if (strchr(plain, *text))
            *to++ = *text;
        else
            to += sprintf(to, "%%%02X", (unsigned char)*text);
    }
    *to = '\0';
}

int weir__bench_wire_target_token(const struct weir__bench_wire_target *t, int64_t expires_s,
                                  char out[WEIR__ACCESS_TOKEN_MAX], struct weir_error *err)
{
    char audience[WEIR__BENCH_WIRE_AUDIENCE_BYTES], resource[3 * WEIR__BENCH_WIRE_AUDIENCE_BYTES];
    char signed_text[sizeof resource + 24], base64[WEIR__ACCESS_SIGNATURE_BYTES + 1];
    char signature[3 * sizeof base64], rule[3 * sizeof t->rule];
    unsigned char mac[SIGNATURE_BYTES];
    unsigned mac_bytes = sizeof mac;
    int len;

    weir__bench_wire_target_audience(t, audience);
    encode_uri(resource, audience);
    len = snprintf(signed_text, sizeof signed_text, "%s\n%" PRId64, resource, expires_s);
    if (!HMAC(EVP_sha256(), t->key, (int)strlen(t->key), (const unsigned char *)signed_text,
              (size_t)len, mac, &mac_bytes))
        return weir__fail(err, WEIR_EIO, "signing a token: OpenSSL cannot");
    EVP_EncodeBlock((unsigned char *)base64, mac, SIGNATURE_BYTES);
    encode_uri(signature, base64);
    encode_uri(rule, t->rule);
    snprintf(out, WEIR__ACCESS_TOKEN_MAX,
             "SharedAccessSignature sr=%s&sig=%s&se=%" PRId64 "&skn=%s", resource, signature,
             expires_s, rule);
    return 0;
}
