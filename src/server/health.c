/* health.c - whether the server is alive, and whether it is ready.
 *
 *   /health, /readyz   200 means that a send would succeed now: every hub is open and its log takes
 *                      events. The body is that of Microsoft's emulator; when it
 *                      is not healthy, message says why
 *   /livez             200: the process answers; restarting it would help nobody */
#include "server/census.h"
#include "server/web.h"

#define HEALTHY "Service is healthy."

static bool takes_events(const char *name, struct weir__hub *hub, void *user)
{
    struct weir_error *why = user;

    (void)name;
    if (!hub)
        weir__fail(why, WEIR_EFAILED, "A hub cannot be opened; the log says why.");
    else if (weir__hub_state(hub, NULL) != 0)
        weir__fail(why, WEIR_EFAILED, "A hub has stopped; the log says why.");
    else if (weir__hub_ready(hub, why) != 0)
        weir__fail(why, why->code,
                   why->code == WEIR_ENOSPACE ? "There is no space left: events are refused."
                                              : "A hub takes no events now.");
    return why->code == 0;
}

bool weir__health_answer(struct weir__visit *v)
{
    struct weir__server *s = v->server;
    struct weir_error why = {0};

    if (atomic_load(&s->stopping))
        weir__fail(&why, WEIR_ECLOSED, "The server is stopping.");
    else if (!weir__census(s->ns, takes_events, &why) && why.code == 0)
        weir__fail(&why, WEIR_ENOMEM, "There is no memory left.");
    weir__answer_add(&v->answer, "{\"status\":\"%s\",\"message\":\"%s\"}",
                     why.code ? "unhealthy" : "healthy", why.code ? why.text : HEALTHY);
    weir__answer_json(v, why.code ? 503 : 200);
    return true;
}

bool weir__livez_answer(struct weir__visit *v)
{
    weir__answer_add(&v->answer, "{\"status\":\"alive\"}");
    weir__answer_json(v, 200);
    return true;
}
