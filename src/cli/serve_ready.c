#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/json.h"
#include "cli/serve.h"
#include "cli/serving.h"

/* ---- what is printed ---- */

/* A string of JSON, or null. */
static void print_address(const char *name, const char *address)
{
    printf("\"%s\":", name);
    if (address)
        weir__json_text(stdout, weir_text(address));
    else
        printf("null");
    putchar(',');
}

/* One line, for whoever started us; the form is a promise. */
static void print_json(const struct weir__serve *s, const char *string)
{
    printf("{\"ready\":true,");
    print_address("amqp", weir__server_amqp(s->server));
    print_address("amqps", weir__server_amqps(s->server));
    print_address("http", weir__server_http(s->server));
    if (weir__server_https(s->server)) print_address("https", weir__server_https(s->server));
    printf("\"connection_string\":");
    weir__json_text(stdout, weir_text(string));
    for (unsigned i = 0; i < s->warnings.count; i++) {
        printf("%s", i == 0 ? ",\"warnings\":[" : ",");
        weir__json_text(stdout, weir_text(s->warnings.text[i]));
    }
    printf("%s}\n", s->warnings.count ? "]" : "");
}

static int count_hub(const struct weir__catalog_hub *hub, void *user)
{
    (void)hub;
    ++*(unsigned *)user;
    return 0;
}

static void print_hubs(const struct weir__serve *s)
{
    unsigned count = 0;

    weir__namespace_hub_each(s->ns, count_hub, &count);
    if (count)
        printf("  hubs    %u\n", count);
    else
        printf("  hubs    none yet: --hub NAME:PARTITIONS makes one\n");
}

static void print_data(const struct weir__serve *s)
{
    if (s->o.in_memory)
        printf("  data    in memory, at most %" PRIu64 " MiB: nothing is kept\n",
               s->o.memory_max.value >> 20);
    else
        printf("  data    %s\n", s->o.common.data);
}

static void print_screen(const struct weir__serve *s, const char *string)
{
    const char *amqps = weir__server_amqps(s->server), *http = weir__server_http(s->server);
    const char *https = weir__server_https(s->server);
    int64_t ms = (weir__mono_ns() - s->began_ns) / 1000000;

    printf("weir is ready, after %" PRId64 " ms.\n\n", ms);
    printf("  amqp    %s\n", weir__server_amqp(s->server));
    printf("  amqps   %s\n", amqps ? amqps : "not served");
    printf("  health  %s%s%s\n", http ? "http://" : "not served", http ? http : "",
           http ? "/health" : "");
    if (https) printf("  https   %s\n", https);
    print_hubs(s);
    print_data(s);
    printf("\nconnection string for every Event Hubs client:\n\n  %s\n\n", string);
    if (http)
        printf("try:  curl http://%s/health\n", http);
    else
        printf("try:  weir serve --help\n");
    if (s->own_authority)
        printf("      weir trust%s%s    (what clients need for TLS)\n",
               s->o.authority ? " --authority " : "", s->o.authority ? s->o.authority : "");
    else
        printf("      weir key --help\n");
    printf("\nCtrl-C stops it.\n");
}

void weir__serve_print_ready(const struct weir__serve *s)
{
    char string[WEIR__CONNECTION_BYTES];

    weir__connection_string(string, weir__server_amqp(s->server),
                            s->rule_hub[0] ? s->rule_hub : NULL, s->rule.name,
                            s->rule.key[WEIR__KEY_PRIMARY]);
    if (s->o.json)
        print_json(s, string);
    else
        print_screen(s, string);
    fflush(stdout);
}

/* ---- the sign in the folder ---- */

static int put_up(const struct weir__serve *s, struct weir_error *err)
{
    const char *http = weir__server_http(s->server), *https = weir__server_https(s->server);
    char own[WEIR__CONNECTION_ADDRESS_BYTES];
    struct weir__serving sign = {.pid = (long)getpid()};
    struct weir__rule owner;
    int rc = weir__namespace_own(s->ns, &owner, err);

    if (rc == 0) rc = weir__namespace_id(s->ns, sign.space, err);
    if (rc != 0) return rc;
    weir__connection_own(own, weir__server_amqp(s->server));
    snprintf(sign.connect, sizeof sign.connect,
             "Endpoint=sb://%s;SharedAccessKeyName=%s;SharedAccessKey=%s;"
             "UseDevelopmentEmulator=true",
             own, owner.name, owner.key[WEIR__KEY_PRIMARY]);
    if (http || https) {
        weir__connection_own(own, http ? http : https);
        snprintf(sign.admin, sizeof sign.admin, "%s://%s", http ? "http" : "https", own);
    }
    return weir__serving_write(s->o.common.data, &sign, err);
}

void weir__serve_put_up_sign(struct weir__serve *s)
{
    bool warned = s->sign_missing;
    struct weir_error err;

    s->sign_missing = !s->o.in_memory && put_up(s, &err) != 0;
    if (s->sign_missing && !warned)
        weir__warn(&s->warnings,
                   "commands on the folder do not find this server yet, and need --connect: %s",
                   err.text);
}

void weir__serve_take_down_sign(const struct weir__serve *s)
{
    if (!s->o.in_memory) weir__serving_remove(s->o.common.data);
}
