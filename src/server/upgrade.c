/* upgrade.c - AMQP inside a WebSocket: /$servicebus/websocket. */
#include "http/websocket.h"
#include "server/web.h"
#include "tunnel/tunnel.h"

bool weir__upgrade_open(struct weir__server *server, struct weir__tcp *tcp, struct weir__bytes head,
                        struct weir__bytes rest)
{
    struct weir__connection *inner = NULL;
    struct weir__tunnel *t;

    if (weir__tunnel_new(&t, NULL, head, rest, NULL) == 0)
        inner = weir__connection_enter(server, tcp);
    if (!inner) {
        weir__tunnel_free(t);
        return false;
    }
    weir__tunnel_start(t, tcp, &weir__connection_calls, inner);
    return true;
}

bool weir__upgrade_answer(struct weir__visit *v)
{
    static const char *const protocols[] = {"AMQPWSB10", "amqp", NULL};
    struct weir__http_refusal refusal;

    if (weir__websocket_welcome(v->request, protocols, &v->answer.welcome, &refusal))
        weir__answer_empty(v, 101);
    else
        weir__answer_error(v, refusal.status, "%s", refusal.text);
    return true;
}
