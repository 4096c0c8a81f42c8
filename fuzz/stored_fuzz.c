/* stored_fuzz.c - any bytes as a stored batch that came over a wire, down to the caller's events.
 *
 * As they are, and once more with the checksums, and then the lengths, put right, because hardly any
 * input would get past them. What passes the check has as many events as its head says, or fewer and
 * an error; they lie in the body, in order, and each can be decoded. */
#include "fuzz.h"

#include "base/crc.h"
#include "client/decode.h"
#include "hub/stored.h"

#define ARENA_BYTES ((size_t)64 << 20)
#define HEAD WEIR__STORED_HEAD_BYTES

static void decode(const struct weir__event *e)
{
    struct weir__arena arena;
    struct weir_event out;

    weir__arena_init(&arena, ARENA_BYTES);
    ORACLE(weir__decode_events(e, 1, 0, &arena, &out, NULL) == 1);
    ORACLE(out.sequence == e->sequence && out.offset == e->offset);
    weir__arena_fini(&arena);
}

/* The next event, or an error, is the same when some are taken at a time. */
struct by_some {
    struct weir__batch_walk walk;
    struct weir__event events[WEIR__BATCH_SOME];
    uint32_t at, count;
};

static void compare(struct by_some *s, const struct weir__event *e, int rc)
{
    if (s->at == s->count) {
        s->at = 0;
        s->count = weir__batch_walk_some(&s->walk, s->events, 3);
        if (s->count == 0) {
            ORACLE(weir__batch_walk_next(&s->walk, s->events, NULL) == rc);
            s->count = 1;
        }
    }
    if (rc == 1) ORACLE(memcmp(&s->events[s->at++], e, sizeof *e) == 0);
}

static void walk(const struct weir__log_view *view)
{
    struct by_some some = {.at = 0};
    const uint8_t *end = view->body.at + view->body.len, *last = view->body.at;
    uint64_t sequence = view->sequence + view->skip;
    struct weir__batch_walk w;
    struct weir__event e;
    struct weir_error err = {0};
    int rc = weir__batch_walk_start(&w, view, &err);

    some.walk = w;
    while (rc == 0) {
        rc = weir__batch_walk_next(&w, &e, &err);
        compare(&some, &e, rc);
        if (rc != 1) break;
        ORACLE(e.message.at >= last && e.message.len <= (size_t)(end - e.message.at));
        ORACLE(e.sequence == sequence++);
        last = e.message.at + e.message.len;
        decode(&e);
        rc = 0;
        if (w.left == 0) break;
    }
    ORACLE(sequence <= view->sequence + view->count);
    if (rc < 0) ORACLE(err.code == rc && err.text[0]);
}

static void feed(struct weir__bytes payload)
{
    struct weir_error err = {0};
    struct weir__log_view view;
    int rc = weir__stored_check(payload, &err);

    if (rc != 0) {
        ORACLE((rc == WEIR_ECORRUPT || rc == WEIR_EVERSION) && err.code == rc && err.text[0]);
        return;
    }
    weir__stored_view(payload, &view);
    ORACLE(view.count > 0 && view.skip < view.count && view.count <= view.body.len);
    ORACLE(view.body.at + view.body.len == payload.at + payload.len);
    weir__stored_facts(payload);
    walk(&view);
}

/* The checksums, for the head that it has. */
static void seal(uint8_t *at, size_t len)
{
    size_t head = weir__load16(at + 4);

    if (head < HEAD || head > len) return;
    weir__store32(at + 8, weir__crc32c(0, at + head, len - head));
    weir__store32(at, weir__crc32c(0, at + 4, head - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    uint8_t *copy;

    feed(weir__bytes_of(at, len));
    if (len < HEAD) return 0;
    copy = malloc(len);
    if (!copy) return 0;
    memcpy(copy, at, len);
    seal(copy, len);
    feed(weir__bytes_of(copy, len));
    weir__store16(copy + 4, HEAD);
    weir__store16(copy + 6, copy[6] & 1);
    weir__store32(copy + 12, (uint32_t)(len - HEAD));
    weir__store32(copy + 16, weir__load32(copy + 16) % (uint32_t)(len / 5 + 1));
    copy[31] = copy[39] = copy[47] = 0;
    seal(copy, len);
    feed(weir__bytes_of(copy, len));
    free(copy);
    return 0;
}
