#include <inttypes.h>
#include <stdio.h>

#include "base/thread.h"
#include "cli/connection.h"
#include "cli/json.h"
#include "cli/serve.h"

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
                            s->rule_hub[0] ? s->rule_hub : NULL, &s->rule);
    if (s->o.json)
        print_json(s, string);
    else
        print_screen(s, string);
    fflush(stdout);
}
