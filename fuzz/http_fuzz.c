/* http_fuzz.c - any bytes as requests.
 *
 * Beyond not crashing: what is read does not depend on how the bytes were cut, memory stays within
 * the limits, nothing follows a refusal, and a request that was accepted is framed in one way only,
 * as a slow reader written here sees it. */
#include "fuzz.h"

#include <stdlib.h>
#include <strings.h>

#include "base/buf.h"
#include "http/http.h"

#define TALE_BYTES_MAX (4 << 20)

static const struct weir__http_limits limits = {
    .head_bytes = 512,
    .target_bytes = 128,
    .window_bytes = 256,
    .output_bytes = 4096,
    .skip_bytes = 64,
    .body_bytes = 1 << 16,
};

static void tell(struct weir__buf *tale, const void *at, size_t len)
{
    ORACLE(weir__buf_add(tale, at, len));
}

static bool is_name(const struct weir__http_field *f, const char *name)
{
    return f->name.len == strlen(name) &&
           strncasecmp((const char *)f->name.at, name, f->name.len) == 0;
}

/* Whoever looks for a length finds at most one, and never beside an encoding. */
static void check_request(const struct weir__http_request *q)
{
    unsigned lengths = 0, encodings = 0, hosts = 0;

    for (size_t i = 0; i < q->field_count; i++) {
        const struct weir__http_field *f = &q->fields[i];
        for (size_t k = 0; k < f->name.len; k++)
            ORACLE(f->name.at[k] > ' ' && f->name.at[k] < 0x7f && f->name.at[k] != ':');
        for (size_t k = 0; k < f->value.len; k++)
            ORACLE(f->value.at[k] != '\r' && f->value.at[k] != '\n' && f->value.at[k]);
        lengths += is_name(f, "content-length");
        encodings += is_name(f, "transfer-encoding");
        hosts += is_name(f, "host");
    }
    ORACLE(lengths + encodings <= 1 && q->chunked == (encodings == 1));
    ORACLE(hosts <= 1 && (hosts == 1 || q->minor == 0));
    ORACLE(q->length == 0 || lengths == 1);
    ORACLE(q->path.len && (q->path.at[0] == '/' || q->path.at[0] == '*'));
    ORACLE(q->length <= limits.body_bytes);
}

/* Every third request is answered before its body, by what its path is. */
static void serve(struct weir__http *h, struct weir__buf *tale)
{
    struct weir__bytes ok = weir__bytes_of("ok", 2), out;
    struct weir__http_event ev;
    bool early;

    while (weir__http_next(h, &ev)) {
        uint8_t type = (uint8_t)ev.type;
        switch (ev.type) {
        case WEIR__HTTP_EVENT_REQUEST:
            check_request(ev.request);
            tell(tale, &type, 1);
            tell(tale, ev.request->target.at, ev.request->target.len);
            early = ev.request->path.len % 3 == 2;
            if (early) ORACLE(weir__http_reply(h, 403, NULL, ok, NULL) == 0);
            break;
        case WEIR__HTTP_EVENT_BODY:
            ORACLE(ev.bytes.len > 0);
            tell(tale, ev.bytes.at, ev.bytes.len);
            break;
        case WEIR__HTTP_EVENT_END:
            tell(tale, &type, 1);
            ORACLE(weir__http_reply(h, 200, "a/b", ok, NULL) == 0);
            break;
        case WEIR__HTTP_EVENT_REFUSED:
            ORACLE(ev.refusal.status >= 400 && ev.refusal.status < 600);
            tell(tale, &type, 1);
            tell(tale, &ev.refusal.status, sizeof ev.refusal.status);
            ORACLE(weir__http_closed(h) && !weir__http_next(h, &ev));
            break;
        }
        out = weir__http_output(h);
        ORACLE(out.len <= limits.output_bytes + 1024);
        weir__http_sent(h, out.len);
    }
    ORACLE(weir__http_memory(h) < 16384);
}

/* piece 0: as much as there is room for. */
static void read_in_pieces(const uint8_t *at, size_t len, size_t piece, struct weir__buf *tale)
{
    struct weir__http *h;
    uint8_t closed;

    ORACLE(weir__http_new(&h, &limits, NULL) == 0);
    while (len) {
        size_t room, n;
        uint8_t *to = weir__http_input(h, &room);
        if (!room) break;
        n = piece && piece < room ? piece : room;
        if (n > len) n = len;
        memcpy(to, at, n);
        weir__http_received(h, n);
        at += n;
        len -= n;
        serve(h, tale);
    }
    ORACLE(!len || weir__http_closed(h));
    weir__http_ended(h);
    serve(h, tale);
    closed = weir__http_closed(h);
    ORACLE(closed);
    weir__http_free(h);
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    static const size_t pieces[] = {1, 2, 7, 61};
    struct weir__buf whole, cut;

    weir__buf_init(&whole, TALE_BYTES_MAX);
    read_in_pieces(at, len, 0, &whole);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        weir__buf_init(&cut, TALE_BYTES_MAX);
        read_in_pieces(at, len, pieces[i], &cut);
        ORACLE(cut.len == whole.len && (!cut.len || !memcmp(cut.at, whole.at, cut.len)));
        weir__buf_fini(&cut);
    }
    weir__buf_fini(&whole);
    return 0;
}
