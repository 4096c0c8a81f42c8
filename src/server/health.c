/* health.c - whether the server is alive, and whether it is ready.
 *
 *   /health, /readyz   200 means that a send would succeed now: every hub is open and its log takes
 *                      events. The body is that of Microsoft's emulator
 *   /livez             200: the process answers; restarting it would help nobody */
#include "server/census.h"
#include "server/web.h"

#define HEALTHY "{\"status\":\"healthy\",\"message\":\"Service is healthy.\"}"
#define UNHEALTHY "{\"status\":\"unhealthy\",\"message\":\"Service is unhealthy.\"}"

static bool takes_events(const char *name, struct weir__hub *hub, void *user)
{
    (void)name;
    (void)user;
    return hub && weir__hub_state(hub, NULL) == 0;
}

bool weir__health_answer(struct weir__visit *v)
{
    struct weir__server *s = v->server;
    bool healthy = atomic_load(&s->ready) && !atomic_load(&s->stopping) &&
                   weir__census(s->ns, takes_events, NULL);

    weir__answer_add(&v->answer, "%s", healthy ? HEALTHY : UNHEALTHY);
    weir__answer_json(v, healthy ? 200 : 503);
    return true;
}

bool weir__livez_answer(struct weir__visit *v)
{
    weir__answer_add(&v->answer, "{\"status\":\"alive\"}");
    weir__answer_json(v, 200);
    return true;
}
