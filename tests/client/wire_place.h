/* wire_place.h - a server over a folder of its own and a client of it, for the tests of one
 * program. */
#ifndef WEIR_TESTS_CLIENT_WIRE_PLACE_H
#define WEIR_TESTS_CLIENT_WIRE_PLACE_H

#include "client/contract/place.h"
#include "support/serve.h"
#include "support/tempdir.h"

static struct {
    char dir[TEMPDIR_BYTES];
    char data[TEMPDIR_BYTES + 8];
    struct serve serve;
    bool tls, websocket;
    struct weir_options options;
} place;

static inline int place_start(void)
{
    if (tempdir_make(place.dir) != 0) return -1;
    snprintf(place.data, sizeof place.data, "%s/data", place.dir);
    return serve_start(&place.serve, place.data, place.tls);
}

static inline int place_stop(void)
{
    int rc = serve_stop(&place.serve);

    tempdir_remove(place.dir);
    return rc;
}

/* Where the server takes what this place speaks. */
static inline const char *place_address(void)
{
    if (place.websocket) return place.tls ? place.serve.https : place.serve.http;
    return place.tls ? place.serve.amqps : place.serve.amqp;
}

/* A connection string for the server, or for `address`, which is a road to it. */
static inline const char *place_string(const char *address)
{
    static char text[SERVE_CONNECTION_BYTES];

    serve_connection(text, address ? address : place_address(), place.tls);
    if (place.websocket)
        snprintf(text + strlen(text), sizeof text - strlen(text), ";TransportType=AmqpWebSockets");
    return text;
}

static inline void place_log(enum weir_level level, const char *room, const char *line, void *user)
{
    (void)level, (void)room, (void)user;
    fprintf(stderr, "%s\n", line);
}

static inline int place_open(struct weir **out, const char *address)
{
    place.options.size = sizeof place.options;
    if (!place.options.patience_ms) place.options.patience_ms = PATIENCE_MS;
    if (getenv("WEIR_VERBOSE")) place.options.log = place_log;
    if (place.tls) place.options.ca_file = place.serve.ca_file;
    return weir_open(out, place_string(address), &place.options, &err);
}

static inline void place_make_hub(const char *name, uint32_t partitions)
{
    struct weir_hub_options o = {.size = sizeof o, .partitions = partitions};
    struct weir *w;

    assert_ok(place_open(&w, NULL));
    assert_ok(weir_hub_create(w, name, &o, &err));
    assert_ok(weir_close(w, &err));
}

#endif
