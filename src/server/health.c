/* health.c - HTTP connections: GET /health, as Microsoft's emulator answers it.
 *
 * 200 means that a send would succeed now: every hub is open and its log takes events. */
#include <stdlib.h>

#include "http/http.h"
#include "server/state.h"

#define HUBS_MAX 1024 /* that are asked */

#define HEALTHY "{\"status\":\"healthy\",\"message\":\"Service is healthy.\"}"
#define UNHEALTHY "{\"status\":\"unhealthy\",\"message\":\"Service is unhealthy.\"}"

struct visitor {
    struct weir__server *server;
    struct weir__tcp *tcp;
    struct weir__http *http;
    struct weir__timer timer;
    bool held;
};

/* ---- the question ---- */

struct hub_names {
    char (*at)[WEIR__HUB_NAME_MAX + 1];
    uint32_t count;
};

static int note_hub(const struct weir__catalog_hub *hub, void *user)
{
    struct hub_names *names = user;
    size_t len = strlen(hub->name);

    if (names->count == HUBS_MAX || len > WEIR__HUB_NAME_MAX) return 0;
    memcpy(names->at[names->count++], hub->name, len + 1);
    return 0;
}

static bool is_healthy(struct weir__server *s)
{
    struct hub_names names = {calloc(HUBS_MAX, sizeof *names.at), 0};
    bool healthy = names.at && !atomic_load(&s->stopping);

    if (healthy) weir__namespace_hub_each(s->ns, note_hub, &names);
    for (uint32_t i = 0; healthy && i < names.count; i++) {
        struct weir__hub *hub;
        int rc = weir__namespace_use(s->ns, names.at[i], &hub, NULL);
        if (rc == WEIR_ENOTFOUND) continue; /* deleted just now */
        healthy = rc == 0 && weir__hub_state(hub, NULL) == 0;
        if (rc == 0) weir__hub_release(hub);
    }
    free(names.at);
    return healthy;
}

static bool is_path(struct weir__bytes path, const char *text)
{
    return path.len == strlen(text) && memcmp(path.at, text, path.len) == 0;
}

static void reply(struct visitor *v, unsigned status, const char *body)
{
    weir__http_reply(v->http, status, "application/json", weir__bytes_of(body, strlen(body)), NULL);
}

static void answer(struct visitor *v, const struct weir__http_request *request)
{
    bool reads = request->method == WEIR__HTTP_GET || request->method == WEIR__HTTP_HEAD;

    if (!is_path(request->path, "/health"))
        reply(v, 404, "{\"message\":\"There is GET /health here, and nothing else.\"}");
    else if (!reads)
        reply(v, 405, "{\"message\":\"Only GET is answered.\"}");
    else if (is_healthy(v->server))
        reply(v, 200, HEALTHY);
    else
        reply(v, 503, UNHEALTHY);
}

/* ---- the connection ---- */

static void serve(struct visitor *v)
{
    struct weir__loop *loop = weir__tcp_loop(v->tcp);
    struct weir__http_event ev;

    while (weir__http_next(v->http, &ev))
        if (ev.type == WEIR__HTTP_EVENT_REQUEST) answer(v, ev.request);
    weir__loop_timer_start(loop, &v->timer, weir__http_tick(v->http, weir__loop_now_ms(loop)));
    weir__tcp_flush(v->tcp);
    if (weir__http_closed(v->http)) {
        weir__tcp_end(v->tcp);
    } else if (v->held) {
        v->held = false;
        weir__tcp_resume(v->tcp);
    }
}

static void do_timer(void *arg)
{
    serve(arg);
}

static uint8_t *give_room(void *owner, size_t *room)
{
    struct visitor *v = owner;
    uint8_t *to = weir__http_input(v->http, room);

    v->held = !to || *room == 0;
    return to;
}

static void received(void *owner, size_t bytes)
{
    struct visitor *v = owner;

    weir__http_received(v->http, bytes);
    serve(v);
}

static void ended(void *owner)
{
    struct visitor *v = owner;

    weir__http_ended(v->http);
    serve(v);
    weir__tcp_end(v->tcp);
}

static struct weir__bytes output(void *owner)
{
    struct visitor *v = owner;

    return weir__http_output(v->http);
}

static void sent(void *owner, size_t bytes)
{
    struct visitor *v = owner;

    weir__http_sent(v->http, bytes);
}

static void closed(void *owner, const struct weir_error *why)
{
    struct visitor *v = owner;

    (void)why;
    weir__loop_timer_stop(weir__tcp_loop(v->tcp), &v->timer);
    weir__http_free(v->http);
    free(v);
}

static const struct weir__tcp_calls calls = {
    .room = give_room,
    .received = received,
    .ended = ended,
    .output = output,
    .sent = sent,
    .closed = closed,
};

bool weir__health_accept(void *server, struct weir__tcp *tcp)
{
    struct visitor *v = calloc(1, sizeof *v);

    if (!v) return false;
    if (weir__http_new(&v->http, NULL, NULL) != 0) {
        free(v);
        return false;
    }
    v->server = server;
    v->tcp = tcp;
    weir__timer_init(&v->timer, do_timer, v);
    weir__tcp_adopt(tcp, &calls, v);
    serve(v);
    return true;
}
