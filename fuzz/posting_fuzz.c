/* posting_fuzz.c - any bytes as the events of an HTTP request: a batch in JSON, or the properties
 * of one event.
 *
 * What is taken is a batch that can be read again, every event of it; what is not is told why. The
 * same bytes are tried as an order to the administration. */
#include "fuzz.h"

#include "server/order.h"
#include "server/posting.h"

static void check_batch(const struct weir__batch_writer *w)
{
    struct weir__log_view view = {0};
    struct weir__batch_walk walk;
    struct weir__amqp_message m;
    struct weir__event event;
    struct weir__batch batch;
    uint32_t count = 0;

    ORACLE(weir__batch_writer_batch(w, &batch, NULL) == 0);
    ORACLE(batch.parts == 1 && batch.count > 0 && batch.key.len <= WEIR__BATCH_KEY_MAX);
    view.attrs = batch.attrs;
    view.count = batch.count;
    view.body = batch.body[0];
    ORACLE(weir__batch_walk_start(&walk, &view, NULL) == 0);
    while (weir__batch_walk_next(&walk, &event, NULL) == 1) {
        ORACLE(weir__amqp_message_scan(&m, event.message, WEIR__AMQP_DEEP, NULL) == 0);
        ORACLE(m.body == WEIR__AMQP_BODY_DATA);
        count++;
    }
    ORACLE(count == batch.count);
}

static void post(const struct weir__http_field *fields, size_t count, struct weir__bytes body)
{
    static struct weir__http_request q;
    struct weir_error err = {0};
    struct weir__batch_writer w;
    int rc;

    q = (struct weir__http_request){.method = WEIR__HTTP_POST, .field_count = count};
    memcpy(q.fields, fields, count * sizeof *fields);
    weir__batch_writer_init(&w, 0);
    rc = weir__posting_read(&w, &q, body, &err);
    if (rc == 0)
        check_batch(&w);
    else
        ORACLE((rc == WEIR_EINVAL || rc == WEIR_ETOOBIG) && err.code == rc && err.text[0]);
    weir__batch_writer_fini(&w);
}

static struct weir__bytes text(const char *t)
{
    return weir__bytes_of(t, strlen(t));
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    struct weir__bytes all = weir__bytes_of(at, len);
    const struct weir__http_field batch = {text("content-type"),
                                           text("application/vnd.microsoft.servicebus.json")};
    const struct weir__http_field one[] = {{text("BrokerProperties"), all},
                                           {text("Custom"), all},
                                           {text("Content-Type"), all}};
    struct weir_error err = {0};
    struct weir__order order;

    post(&batch, 1, all);
    for (size_t i = 0; i < sizeof one / sizeof one[0]; i++) post(&one[i], 1, all);
    if (weir__order_read(&order, all, WEIR__ORDER_HUB | WEIR__ORDER_RULE, &err) != 0)
        ORACLE(err.code == WEIR_EINVAL && err.text[0]);
    weir__order_fini(&order);
    return 0;
}
