/* sasl_fuzz.c - an engine, in either role, and a stream of any bytes from the first header on.
 *
 * The first byte says who the engine is: bit 0 client, the next three the mechanism it uses or the
 * set it offers, bit 4 whether SASL must be. The rest is what the peer says. However the stream is
 * cut, the same happens and the same is answered; and nobody who is not known costs much memory. */
#include "fuzz.h"

#include <stdlib.h>

#include "amqp/engine.h"
#include "base/buf.h"

#define TALE_BYTES_MAX (1 << 20)
#define MEMORY_MAX 32768

static void tell(struct weir__buf *tale, const void *at, size_t len)
{
    ORACLE(weir__buf_add(tale, at, len));
}

/* PLAIN is let in by a password of an even length, all else always. */
static void judge(struct weir__amqp *e, struct weir__buf *tale, const struct weir__amqp_event *ev)
{
    bool plain = ev->mechanism == WEIR__AMQP_PLAIN;

    ORACLE(ev->mechanism < WEIR__AMQP_MECHANISMS);
    if (plain) tell(tale, ev->user.at, ev->user.len);
    if (plain) tell(tale, ev->password.at, ev->password.len);
    weir__amqp_sasl_answer(e, !plain || ev->password.len % 2 == 0);
}

static void take_events(struct weir__amqp *e, struct weir__buf *tale)
{
    struct weir__amqp_event ev;

    while (weir__amqp_next(e, &ev)) {
        uint8_t type = (uint8_t)ev.type;
        tell(tale, &type, 1);
        if (ev.type == WEIR__AMQP_EVENT_SASL) judge(e, tale, &ev);
        if (ev.type == WEIR__AMQP_EVENT_ATTACH && ev.incoming)
            weir__amqp_accept(ev.link, &(struct weir__amqp_terms){.credit = 5}, NULL);
        if (ev.type == WEIR__AMQP_EVENT_TRANSFER)
            tell(tale, ev.delivery.payload.at, ev.delivery.payload.len);
    }
    ORACLE(weir__amqp_memory(e) <= MEMORY_MAX);
}

static struct weir__amqp *make_engine(uint8_t mode)
{
    struct weir__amqp_options o = {.client = mode & 1,
                                   .sasl_required = mode & 16,
                                   .user = "user",
                                   .password = "password"};
    struct weir__amqp *e;
    unsigned choice = mode >> 1 & 7;

    if (!o.client) o.mechanisms = choice;
    if (o.client && choice < WEIR__AMQP_MECHANISMS) o.mechanisms = WEIR__AMQP_MECHANISM_SET(choice);
    ORACLE(weir__amqp_new(&e, &o, NULL) == 0);
    return e;
}

/* piece 0: as much as there is room for. All that is answered is read at once. */
static void hear(uint8_t mode, struct weir__bytes b, size_t piece, struct weir__buf *tale,
                 struct weir__buf *answer)
{
    struct weir__amqp *e = make_engine(mode);
    struct weir__bytes out;

    for (;;) {
        size_t room, n;
        uint8_t *to;
        take_events(e, tale);
        out = weir__amqp_output(e);
        tell(answer, out.at, out.len);
        weir__amqp_sent(e, out.len);
        to = weir__amqp_input(e, &room);
        n = b.len < room ? b.len : room;
        if (piece && n > piece) n = piece;
        if (!n) break;
        memcpy(to, b.at, n);
        weir__amqp_received(e, n);
        b = weir__bytes_of(b.at + n, b.len - n);
    }
    ORACLE(!b.len || weir__amqp_closed(e));
    weir__amqp_lost(e);
    take_events(e, tale);
    ORACLE(weir__amqp_closed(e));
    weir__amqp_free(e);
}

static bool is_same(const struct weir__buf *a, const struct weir__buf *b)
{
    return a->len == b->len && (!a->len || memcmp(a->at, b->at, a->len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    static const size_t pieces[] = {0, 1, 7, 100};
    struct weir__buf tale[2], answer[2];

    if (!len) return 0;
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        size_t k = i > 0;
        weir__buf_init(&tale[k], TALE_BYTES_MAX);
        weir__buf_init(&answer[k], TALE_BYTES_MAX);
        hear(at[0], weir__bytes_of(at + 1, len - 1), pieces[i], &tale[k], &answer[k]);
        if (!k) continue;
        ORACLE(is_same(&tale[0], &tale[1]) && is_same(&answer[0], &answer[1]));
        weir__buf_fini(&tale[1]);
        weir__buf_fini(&answer[1]);
    }
    weir__buf_fini(&tale[0]);
    weir__buf_fini(&answer[0]);
    return 0;
}
