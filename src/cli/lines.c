#include "cli/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)256 << 10)

void weir__lines_init(struct weir__lines *l, int fd, int stop_fd, size_t line_max)
{
    *l = (struct weir__lines){.fd = fd, .stop_fd = stop_fd, .line_max = line_max};
    weir__buf_init(&l->buf, line_max + 1 + READ_BYTES);
}

void weir__lines_fini(struct weir__lines *l)
{
    weir__buf_fini(&l->buf);
}

/* true: read now. false: stop. */
static bool wait_for_input(const struct weir__lines *l)
{
    struct pollfd on[2] = {{.fd = l->fd, .events = POLLIN}, {.fd = l->stop_fd, .events = POLLIN}};

    while (poll(on, 2, -1) < 0 && errno == EINTR) continue; /* read says what else is wrong */
    return !(on[1].revents & POLLIN);
}

static void drop_given(struct weir__lines *l)
{
    memmove(l->buf.at, l->buf.at + l->given, l->buf.len - l->given);
    l->buf.len -= l->given;
    l->looked -= l->given;
    l->given = 0;
}

int weir__lines_fill(struct weir__lines *l, struct weir_error *err)
{
    uint8_t *room;
    ssize_t n;

    if (l->given > 0) drop_given(l);
    if (l->buf.len > l->line_max)
        return weir__fail(err, WEIR_ETOOBIG, "line %llu is longer than %zu bytes",
                          (unsigned long long)l->count + 1, l->line_max);
    room = weir__buf_room(&l->buf, READ_BYTES);
    if (!room) return weir__fail(err, WEIR_ENOMEM, "no memory for a line");
    if (!wait_for_input(l)) {
        l->ended = true;
        return 0;
    }
    do n = read(l->fd, room, READ_BYTES);
    while (n < 0 && errno == EINTR);
    if (n < 0) return weir__fail_errno(err, errno, "reading the input");
    l->buf.len += (size_t)n;
    l->ended = n == 0;
    return 0;
}

bool weir__lines_next(struct weir__lines *l, struct weir__bytes *out)
{
    uint8_t *start = l->buf.at + l->given, *end = NULL;

    if (l->looked < l->buf.len) end = memchr(l->buf.at + l->looked, '\n', l->buf.len - l->looked);
    if (!end) {
        l->looked = l->buf.len;
        if (!l->ended || l->given == l->buf.len) return false;
        end = l->buf.at + l->buf.len;
    }
    *out = weir__bytes_of(start, (size_t)(end - start));
    l->given += out->len + 1;
    if (l->given > l->buf.len) l->given = l->buf.len;
    l->looked = l->given;
    l->count++;
    return true;
}
