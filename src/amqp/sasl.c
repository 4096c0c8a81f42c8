/* sasl.c - the headers of the protocol, and the SASL layer.
 *
 * A header is "AMQP", the layer (0 AMQP, 2 TLS, 3 SASL) and the version 1 0 0. The server waits for
 * the client's: there are clients that take a server that speaks first for broken. What is not a
 * header is reported with a guess, because people do point browsers and TLS at this port. */
#define _GNU_SOURCE /* explicit_bzero */
#include "amqp/state.h"

#define LAYER_AMQP 0
#define LAYER_SASL 3
#define HEADER_BYTES 8

#define OUTCOME_OK 0
#define OUTCOME_AUTH 1

static const char *const mechanism_names[WEIR__AMQP_MECHANISMS] = {
    [WEIR__AMQP_MSSBCBS] = "MSSBCBS",
    [WEIR__AMQP_PLAIN] = "PLAIN",
    [WEIR__AMQP_EXTERNAL] = "EXTERNAL",
    [WEIR__AMQP_ANONYMOUS] = "ANONYMOUS",
};

bool weir__amqp_header_put(struct weir__amqp *e, uint8_t layer)
{
    const uint8_t header[HEADER_BYTES] = {'A', 'M', 'Q', 'P', layer, 1, 0, 0};

    if (!weir__buf_add(&e->out, header, sizeof header)) return false;
    weir__amqp_trace(e, true, header, sizeof header);
    return true;
}

static void put_header(struct weir__amqp *e, uint8_t layer)
{
    if (!weir__amqp_header_put(e, layer)) weir__amqp_fall(e);
}

/* What waited for the AMQP layer follows its header. */
void weir__amqp_early_flush(struct weir__amqp *e)
{
    if (e->early_done) return;
    e->early_done = true;
    if (!weir__buf_add(&e->out, e->early.at, e->early.len)) weir__amqp_fall(e);
    weir__buf_fini(&e->early);
}

static void write_sasl(struct weir__amqp *e, const struct weir__amqp_composite *c)
{
    struct weir__amqp_writer w;
    size_t at = e->out.len;

    weir__amqp_writer_append(&w, &e->out);
    weir__amqp_put_raw(&w, weir__bytes_of((uint8_t[WEIR__AMQP_FRAME_HEAD]){0}, 8));
    weir__amqp_composite_write(&w, c);
    if (weir__amqp_writer_finish(&w, NULL, NULL) != 0) {
        weir__amqp_fall(e);
        return;
    }
    weir__amqp_frame_head(e->out.at + at, (uint32_t)(e->out.len - at), WEIR__AMQP_FRAME_SASL, 0);
    weir__amqp_trace(e, true, e->out.at + at, e->out.len - at);
}

static void offer_mechanisms(struct weir__amqp *e)
{
    struct weir__bytes names[WEIR__AMQP_MECHANISMS], out;
    struct weir__amqp_cursor in;
    struct weir__amqp_composite c;
    struct weir__amqp_writer w;
    uint8_t scratch[64];
    uint32_t count = 0;

    for (unsigned i = 0; i < WEIR__AMQP_MECHANISMS; i++)
        if (e->o.mechanisms & WEIR__AMQP_MECHANISM_SET(i))
            names[count++] = weir__bytes_of(mechanism_names[i], strlen(mechanism_names[i]));
    weir__amqp_composite_init(&c, WEIR__AMQP_SASL_MECHANISMS);
    weir__amqp_writer_init(&w, scratch, sizeof scratch);
    weir__amqp_put_array(&w, WEIR__AMQP_SYMBOL, names, count);
    if (weir__amqp_writer_finish(&w, &out, NULL) == 0) {
        in = weir__amqp_cursor_of(out);
        weir__amqp_read(&in, &c.sasl_mechanisms.mechanisms);
    }
    write_sasl(e, &c);
}

static enum weir__amqp_guess guess(const uint8_t *at)
{
    static const char *const verbs[] = {"GET ", "POST", "PUT ", "HEAD", "OPTI",
                                        "DELE", "PATC", "CONN", "TRAC", "PRI "};

    if (at[0] == 0x16 && at[1] == 0x03) return WEIR__AMQP_GUESS_TLS;
    if (!memcmp(at, "AMQP", 4)) return WEIR__AMQP_GUESS_AMQP;
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
        if (!memcmp(at, verbs[i], 4)) return WEIR__AMQP_GUESS_HTTP;
    return WEIR__AMQP_GUESS_OTHER;
}

static bool wrong_protocol(struct weir__amqp *e, struct weir__amqp_event *ev, const uint8_t *at)
{
    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_PROTOCOL};
    ev->bytes = weir__bytes_of(at, HEADER_BYTES);
    ev->guess = guess(at);
    if (ev->guess == WEIR__AMQP_GUESS_AMQP && !e->o.client)
        weir__amqp_header_put(e, e->o.sasl_required ? LAYER_SASL : LAYER_AMQP);
    weir__amqp_problem(e, WEIR__AMQP_COND_FRAMING, "not the header of AMQP 1.0");
    weir__amqp_fall(e);
    return true;
}

static bool is_welcome(const struct weir__amqp *e, uint8_t layer)
{
    if (e->stage == WEIR__AMQP_STAGE_HEADER_2) return layer == LAYER_AMQP;
    if (e->o.client) return layer == (e->o.mechanisms ? LAYER_SASL : LAYER_AMQP);
    return layer == LAYER_SASL || (layer == LAYER_AMQP && !e->o.sasl_required);
}

bool weir__amqp_on_header(struct weir__amqp *e, struct weir__amqp_event *ev, bool *more)
{
    const uint8_t *at = e->in + e->in_head;
    uint8_t layer;

    if (e->in_tail - e->in_head < HEADER_BYTES) {
        *more = true;
        return false;
    }
    weir__amqp_trace(e, false, at, HEADER_BYTES);
    e->in_head += HEADER_BYTES;
    layer = at[4];
    if (memcmp(at, "AMQP", 4) != 0 || memcmp(at + 5, "\x01\x00\x00", 3) != 0 ||
        !is_welcome(e, layer))
        return wrong_protocol(e, ev, at);
    e->stage = layer == LAYER_SASL ? WEIR__AMQP_STAGE_SASL : WEIR__AMQP_STAGE_OPENING;
    if (e->o.client) return false;
    put_header(e, layer);
    if (layer == LAYER_SASL) offer_mechanisms(e);
    return false;
}

static enum weir__amqp_mechanism mechanism_of(struct weir__bytes name)
{
    unsigned i = 0;

    while (i < WEIR__AMQP_MECHANISMS && (strlen(mechanism_names[i]) != name.len ||
                                         memcmp(mechanism_names[i], name.at, name.len) != 0))
        i++;
    return (enum weir__amqp_mechanism)i;
}

/* PLAIN: whom to act as, 0, the user, 0, the password. */
static bool split_plain(struct weir__bytes b, struct weir__bytes *user,
                        struct weir__bytes *password)
{
    const uint8_t *one = b.len ? memchr(b.at, 0, b.len) : NULL;
    const uint8_t *two = one ? memchr(one + 1, 0, (size_t)(b.at + b.len - one - 1)) : NULL;

    if (!two) return false;
    *user = weir__bytes_of(one + 1, (size_t)(two - one - 1));
    *password = weir__bytes_of(two + 1, (size_t)(b.at + b.len - two - 1));
    return true;
}

static bool on_init(struct weir__amqp *e, struct weir__amqp_event *ev)
{
    const struct weir__amqp_value *response = &e->fields.sasl_init.initial_response;
    enum weir__amqp_mechanism m = mechanism_of(e->fields.sasl_init.mechanism.bytes);

    *ev = (struct weir__amqp_event){.type = WEIR__AMQP_EVENT_SASL, .fields = &e->fields};
    ev->mechanism = m;
    ev->bytes = response->bytes;
    e->mechanism = m;
    e->stage = WEIR__AMQP_STAGE_JUDGED;
    if (m != WEIR__AMQP_MECHANISMS && e->o.mechanisms & WEIR__AMQP_MECHANISM_SET(m) &&
        (m != WEIR__AMQP_PLAIN || split_plain(response->bytes, &ev->user, &ev->password)))
        return true;
    weir__amqp_sasl_answer(e, false);
    return false;
}

void weir__amqp_sasl_answer(struct weir__amqp *e, bool welcome)
{
    struct weir__amqp_composite c;

    if (e->stage != WEIR__AMQP_STAGE_JUDGED) return;
    weir__amqp_composite_init(&c, WEIR__AMQP_SASL_OUTCOME);
    c.sasl_outcome.code =
        weir__amqp_unsigned(WEIR__AMQP_UBYTE, welcome ? OUTCOME_OK : OUTCOME_AUTH);
    write_sasl(e, &c);
    if (e->stage == WEIR__AMQP_STAGE_CLOSED) return;
    e->stage = WEIR__AMQP_STAGE_HEADER_2;
    if (welcome) return;
    weir__amqp_problem(e, WEIR__AMQP_COND_UNAUTHORIZED, "not let in by SASL");
    weir__amqp_fall(e);
}

static bool is_offered(const struct weir__amqp_value *offered, const char *name)
{
    struct weir__bytes b = offered->bytes;
    struct weir__amqp_items items;
    struct weir__amqp_value v;

    if (offered->type == WEIR__AMQP_SYMBOL)
        return b.len == strlen(name) && !memcmp(b.at, name, b.len);
    weir__amqp_items_init(&items, offered);
    while (weir__amqp_items_next(&items, &v))
        if (v.bytes.len == strlen(name) && !memcmp(v.bytes.at, name, v.bytes.len)) return true;
    return false;
}

/* The initial response: what PLAIN is made of, or the user's name alone. */
static struct weir__amqp_value response_of(const struct weir__amqp *e, uint8_t *to, size_t room)
{
    size_t user = e->user ? strlen(e->user) : 0;
    size_t password = e->password ? strlen(e->password) : 0;

    if (e->mechanism == WEIR__AMQP_PLAIN && user + password + 2 <= room) {
        to[0] = to[1 + user] = 0;
        if (user) memcpy(to + 1, e->user, user);
        if (password) memcpy(to + 2 + user, e->password, password);
        return weir__amqp_bytes(WEIR__AMQP_BINARY, to, user + password + 2);
    }
    return weir__amqp_bytes(WEIR__AMQP_BINARY, e->user ? e->user : "", user);
}

static bool on_mechanisms(struct weir__amqp *e)
{
    struct weir__amqp_composite c;
    const char *host = e->hostname, *name;
    uint8_t scratch[1024];

    e->mechanism = (enum weir__amqp_mechanism)__builtin_ctz(e->o.mechanisms);
    name = mechanism_names[e->mechanism];
    if (!is_offered(&e->fields.sasl_mechanisms.mechanisms, name)) {
        weir__amqp_problem(e, WEIR__AMQP_COND_UNAUTHORIZED, "the server does not offer %s", name);
        return weir__amqp_fall(e);
    }
    weir__amqp_composite_init(&c, WEIR__AMQP_SASL_INIT);
    c.sasl_init.mechanism = weir__amqp_bytes(WEIR__AMQP_SYMBOL, name, strlen(name));
    c.sasl_init.initial_response = response_of(e, scratch, sizeof scratch);
    if (host) c.sasl_init.hostname = weir__amqp_bytes(WEIR__AMQP_STRING, host, strlen(host));
    write_sasl(e, &c);
    explicit_bzero(scratch, sizeof scratch);
    return false;
}

static bool on_outcome(struct weir__amqp *e)
{
    uint64_t code = e->fields.sasl_outcome.code.u;

    if (code != OUTCOME_OK) {
        weir__amqp_problem(e, WEIR__AMQP_COND_UNAUTHORIZED, "not let in by SASL (code %u)",
                           (unsigned)code);
        return weir__amqp_fall(e);
    }
    e->stage = WEIR__AMQP_STAGE_HEADER_2;
    put_header(e, LAYER_AMQP);
    weir__amqp_early_flush(e);
    return false;
}

/* Of SASL's five frames each side takes what the other may send; nobody here challenges. */
bool weir__amqp_on_sasl(struct weir__amqp *e, struct weir__bytes body, struct weir__amqp_event *ev)
{
    struct weir__amqp_cursor c = weir__amqp_cursor_of(body);
    struct weir_error err;
    bool asked = e->mechanism != WEIR__AMQP_NO_SASL;
    enum weir__amqp_kind want = !e->o.client ? WEIR__AMQP_SASL_INIT
                                : asked      ? WEIR__AMQP_SASL_OUTCOME
                                             : WEIR__AMQP_SASL_MECHANISMS;
    int rc = weir__amqp_composite_read(&c, WEIR__AMQP_KIND_SET(want), &e->fields, &err);

    if (rc != 0)
        return weir__amqp_fail(e,
                               rc == WEIR_EINVAL ? WEIR__AMQP_COND_INVALID_FIELD
                                                 : WEIR__AMQP_COND_DECODE,
                               "%s", err.text);
    if (want == WEIR__AMQP_SASL_INIT) return on_init(e, ev);
    return want == WEIR__AMQP_SASL_OUTCOME ? on_outcome(e) : on_mechanisms(e);
}
