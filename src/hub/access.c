/* access.c - keys, tokens and the resources they are for.
 *
 * A token is one line of form fields in any order:
 *
 *   SharedAccessSignature sr=<resource>&sig=<signature>&se=<unix seconds>&skn=<rule>
 *
 * sig is base64 of HMAC-SHA256, with the text of the rule's key as key, over sr as it stands in the
 * token, a newline, and se. Clients escape sr differently (upper or lower case hexadecimal digits),
 * so it is never unescaped and escaped again before it is verified. */
#include "hub/access.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <strings.h>
#include <time.h>

#define TOKEN_SCHEME "SharedAccessSignature "
#define SECRET_BYTES 32
#define EXPIRY_DIGITS_MAX 18
#define DATE_BYTES 32

/* Signed with when there is no rule of the name: the work is done, the answer is never used. */
static const char no_key[] = "no rule has this name, but it costs the same to say so";

unsigned weir__access_rights(unsigned rights)
{
    return rights & WEIR__RIGHT_MANAGE ? WEIR__RIGHTS_ALL : rights;
}

int weir__access_key_make(const struct weir__rand *rand, char out[WEIR__ACCESS_KEY_MAX + 1],
                          struct weir_error *err)
{
    uint8_t secret[SECRET_BYTES];
    int rc = rand->fill(rand->self, secret, sizeof secret, err);

    if (rc != 0) return weir__wrap(err, rc, "making a key");
    EVP_EncodeBlock((unsigned char *)out, secret, sizeof secret);
    OPENSSL_cleanse(secret, sizeof secret);
    return 0;
}

int weir__access_key_check(const char *key, struct weir_error *err)
{
    size_t len = strlen(key);

    if (len == 0 || len > WEIR__ACCESS_KEY_MAX)
        return weir__fail(err, WEIR_EINVAL, "a key has 1 to %d characters, not %zu",
                          WEIR__ACCESS_KEY_MAX, len);
    for (size_t i = 0; i < len; i++)
        if (key[i] <= ' ' || key[i] > '~')
            return weir__fail(err, WEIR_EINVAL, "character %zu of the key is not printable ASCII",
                              i + 1);
    return 0;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Undoes %XX, or copies as it is, into a NUL-terminated text. false: a broken escape, a NUL inside,
 * or more than room - 1 characters. A plus is a plus: it is a digit of base64. */
static bool decode(struct weir__bytes in, bool encoded, char *out, size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i < in.len; i++) {
        int c = in.at[i];
        if (encoded && c == '%') {
            if (in.len - i < 3) return false;
            int high = hex_digit(in.at[i + 1]), low = hex_digit(in.at[i + 2]);
            if (high < 0 || low < 0) return false;
            c = high * 16 + low;
            i += 2;
        }
        if (c == 0 || used + 1 >= room) return false;
        out[used++] = (char)c;
    }
    out[used] = '\0';
    return true;
}

static bool is_scheme_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
}

bool weir__access_has_scheme(struct weir__bytes resource)
{
    size_t len = 0;

    while (len < resource.len && is_scheme_letter(resource.at[len])) len++;
    return len && resource.len - len >= 3 && memcmp(resource.at + len, "://", 3) == 0;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t end_len = strlen(end);

    return len > end_len && strncasecmp(text + len - end_len, end, end_len) == 0;
}

/* Whether a text without scheme and slash can only be a host, as Go's client signs it: it has a port,
 * which no hub's name has, or is one of those that stand in everybody's connection strings. */
static bool is_host(const char *text)
{
    static const char *const clouds[] = {".servicebus.windows.net", ".servicebus.usgovcloudapi.net",
                                         ".servicebus.chinacloudapi.cn"};
    size_t len = strcspn(text, ":");

    if (text[len] == ':') return len > 0;
    if (strcasecmp(text, "localhost") == 0 || strcmp(text, "127.0.0.1") == 0) return true;
    for (size_t i = 0; i < sizeof clouds / sizeof clouds[0]; i++)
        if (ends_with(text, len, clouds[i])) return true;
    return false;
}

/* Where the path begins: behind scheme and authority. What has neither a scheme nor a slash, and is no
 * host for certain, is a path: taken for a host it would cover everything. */
static const char *skip_authority(const char *text)
{
    bool scheme = weir__access_has_scheme(weir__bytes_of(text, strlen(text)));

    if (scheme) text = strstr(text, "://") + 3;
    if (!scheme && !strchr(text, '/') && !is_host(text)) return text;
    return text + strcspn(text, "/");
}

int weir__access_path_parse(struct weir__access_path *path, struct weir__bytes resource,
                            bool encoded, struct weir_error *err)
{
    char text[sizeof path->text];
    size_t used = 0;

    if (!decode(resource, encoded, text, sizeof text))
        return weir__fail(err, WEIR_EINVAL, "the resource is too long or badly escaped");
    for (const char *at = skip_authority(text); *at;) {
        size_t len = strcspn(at, "/");
        if (len && used) path->text[used++] = '/';
        memcpy(path->text + used, at, len);
        used += len;
        at += len + strspn(at + len, "/");
    }
    path->text[used] = '\0';
    return 0;
}

static int fold(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

bool weir__access_path_covers(const struct weir__access_path *outer,
                              const struct weir__access_path *inner)
{
    const char *o = outer->text, *i = inner->text;

    if (!*o) return true;
    for (; *o; o++, i++)
        if (fold(*o) != fold(*i)) return false;
    return *i == '\0' || *i == '/';
}

void weir__access_path_hub(const struct weir__access_path *path, char out[WEIR__HUB_NAME_MAX + 1])
{
    size_t len = strcspn(path->text, "/");

    if (len > WEIR__HUB_NAME_MAX) len = 0;
    memcpy(out, path->text, len);
    out[len] = '\0';
}

enum field { FIELD_SR, FIELD_SIG, FIELD_SE, FIELD_SKN, FIELDS };

static const char *const field_names[FIELDS] = {"sr", "sig", "se", "skn"};

static int fail_token(const char *why, struct weir_error *err)
{
    return weir__fail(err, WEIR_EDENIED, "MalformedToken: %s", why);
}

/* Puts "name=value" into its field; names that are not ours are passed over. */
static bool take_field(struct weir__bytes text, struct weir__bytes fields[FIELDS])
{
    const uint8_t *equals = memchr(text.at, '=', text.len);
    size_t name_len = equals ? (size_t)(equals - text.at) : text.len;

    for (int i = 0; i < FIELDS; i++) {
        if (name_len != strlen(field_names[i]) || memcmp(text.at, field_names[i], name_len) != 0)
            continue;
        if (!equals || fields[i].at) return false;
        fields[i] = weir__bytes_of(equals + 1, text.len - name_len - 1);
    }
    return true;
}

static int split_fields(struct weir__bytes text, struct weir__bytes fields[FIELDS],
                        struct weir_error *err)
{
    const size_t scheme = sizeof TOKEN_SCHEME - 1;
    size_t at = scheme;

    if (text.len > WEIR__ACCESS_TOKEN_MAX) return fail_token("The token is too long.", err);
    if (text.len < scheme || memcmp(text.at, TOKEN_SCHEME, scheme) != 0)
        return fail_token("The token does not begin with 'SharedAccessSignature '.", err);
    while (at < text.len) {
        const uint8_t *end = memchr(text.at + at, '&', text.len - at);
        size_t len = end ? (size_t)(end - text.at) - at : text.len - at;
        if (!take_field(weir__bytes_of(text.at + at, len), fields))
            return fail_token("A field of the token is there twice or has no value.", err);
        at += len + 1;
    }
    for (int i = 0; i < FIELDS; i++)
        if (!fields[i].at) return fail_token("One of sr, sig, se and skn is missing.", err);
    return 0;
}

static bool parse_expiry(struct weir__bytes text, int64_t *out)
{
    *out = 0;
    if (text.len == 0 || text.len > EXPIRY_DIGITS_MAX) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return false;
        *out = *out * 10 + (text.at[i] - '0');
    }
    return true;
}

int weir__access_token_parse(struct weir__access_token *token, struct weir__bytes text,
                             struct weir_error *err)
{
    struct weir__bytes fields[FIELDS] = {{0}};
    int rc = split_fields(text, fields, err);

    if (rc != 0) return rc;
    token->resource = fields[FIELD_SR];
    token->expiry = fields[FIELD_SE];
    if (!parse_expiry(token->expiry, &token->expires_s))
        return fail_token("se is not a number of seconds.", err);
    if (!decode(fields[FIELD_SIG], true, token->signature, sizeof token->signature) ||
        strlen(token->signature) != WEIR__ACCESS_SIGNATURE_BYTES)
        return fail_token("sig is not a signature.", err);
    if (!decode(fields[FIELD_SKN], true, token->rule, sizeof token->rule))
        return fail_token("skn is not the name of a rule.", err);
    if (weir__access_path_parse(&token->path, token->resource, true, NULL) != 0)
        return fail_token("sr is not a resource.", err);
    return 0;
}

/* Signs "resource\nexpiry" and compares, in a time that does not depend on how alike they are. */
static bool signed_with(const struct weir__access_token *token, const char *key)
{
    uint8_t text[WEIR__ACCESS_TOKEN_MAX + 1];
    uint8_t mac[EVP_MAX_MD_SIZE];
    char signature[WEIR__ACCESS_SIGNATURE_BYTES + 1];
    size_t len = token->resource.len;
    unsigned mac_len = 0;

    assert(len + 1 + token->expiry.len <= sizeof text);
    memcpy(text, token->resource.at, len);
    text[len++] = '\n';
    memcpy(text + len, token->expiry.at, token->expiry.len);
    len += token->expiry.len;
    if (!HMAC(EVP_sha256(), key, (int)strlen(key), text, len, mac, &mac_len)) return false;
    EVP_EncodeBlock((unsigned char *)signature, mac, (int)mac_len);
    return CRYPTO_memcmp(signature, token->signature, WEIR__ACCESS_SIGNATURE_BYTES) == 0;
}

/* The rights that a row of rules gives to whoever signed the token: 0 when none of them did. *key
 * is then the one that did. */
static unsigned rights_from(const struct weir__access_token *token,
                            const struct weir__access_rules *row, const char **key)
{
    const struct weir__rule *rule = NULL;
    bool good = false;

    for (uint32_t i = 0; i < row->count; i++)
        if (weir__name_equal(row->rule[i].name, token->rule)) rule = &row->rule[i];
    for (int i = 0; i < WEIR__KEYS; i++) {
        if (!signed_with(token, rule ? rule->key[i] : no_key) || !rule) continue;
        good = true;
        *key = rule->key[i];
    }
    return rule && good ? weir__access_rights(rule->rights) : 0;
}

/* FNV-1a: it finds the rule among a few; the key's digest is what counts. */
static uint64_t digest_name(const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);

    for (; *name; name++) h = (h ^ (unsigned char)fold(*name)) * UINT64_C(0x100000001b3);
    return h;
}

static void digest_key(const char *key, uint8_t out[16])
{
    uint8_t whole[SHA256_DIGEST_LENGTH];

    SHA256((const unsigned char *)key, strlen(key), whole);
    memcpy(out, whole, 16);
}

struct weir__access_basis weir__access_basis_of(const char *rule, const char *key, bool of_hub)
{
    struct weir__access_basis b = {.ground = key ? WEIR__GROUND_KEY : WEIR__GROUND_RULE,
                                   .of_hub = of_hub,
                                   .rule = digest_name(rule)};

    if (key) digest_key(key, b.key);
    return b;
}

static bool rests_on(const struct weir__access_basis *b, const struct weir__rule *rule)
{
    uint8_t key[sizeof b->key];

    if (b->ground == WEIR__GROUND_ISSUER || digest_name(rule->name) != b->rule) return false;
    if (b->ground == WEIR__GROUND_RULE) return true;
    for (int i = 0; i < WEIR__KEYS; i++) {
        digest_key(rule->key[i], key);
        if (memcmp(key, b->key, sizeof key) == 0) return true;
    }
    return false;
}

unsigned weir__access_basis_rights(const struct weir__access_basis *b,
                                   const struct weir__access_rules *rows, uint32_t row_count)
{
    unsigned rights = 0;

    for (uint32_t r = 0; r < row_count; r++)
        for (uint32_t i = 0; i < rows[r].count; i++)
            if (rests_on(b, &rows[r].rule[i]))
                rights |= weir__access_rights(rows[r].rule[i].rights);
    return rights;
}

int64_t weir__access_cap(int64_t expires_s, int64_t now_s)
{
    return expires_s - now_s > WEIR__ACCESS_GRANT_MAX_S ? now_s + WEIR__ACCESS_GRANT_MAX_S
                                                        : expires_s;
}

int weir__access_expired(int64_t expires_s, struct weir_error *err)
{
    time_t at = (time_t)expires_s;
    char date[DATE_BYTES] = "";
    struct tm tm;

    if (gmtime_r(&at, &tm)) strftime(date, sizeof date, "%Y-%m-%d %H:%M:%SZ", &tm);
    return weir__fail(err, WEIR_EDENIED,
                      "ExpiredToken: The token is expired. Expiration time: '%s'", date);
}

int weir__access_token_check(const struct weir__access_token *token,
                             const struct weir__access_rules *rows, uint32_t row_count,
                             const struct weir__access_path *wanted, int64_t now_s,
                             struct weir__access_grant *out, struct weir_error *err)
{
    const char *key = NULL;
    unsigned rights = 0;

    for (uint32_t i = 0; i < row_count; i++) rights |= rights_from(token, &rows[i], &key);
    if (!rights)
        return weir__fail(err, WEIR_EDENIED,
                          "InvalidSignature: The token has an invalid signature.");
    if (now_s >= token->expires_s) return weir__access_expired(token->expires_s, err);
    if (!weir__access_path_covers(&token->path, wanted))
        return weir__fail(err, WEIR_EDENIED,
                          "InvalidAudience: The authorization header contains a token with a "
                          "wrong audience.");
    out->rights = rights;
    out->expires_s = weir__access_cap(token->expires_s, now_s);
    out->path = token->path;
    out->basis = weir__access_basis_of(token->rule, key, token->path.text[0] != '\0');
    return 0;
}
