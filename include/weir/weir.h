/* weir.h - event hubs in a folder, or behind a connection.
 *
 * A hub is a durable log of events in 1 to 1,024 partitions. Producers publish to it, receivers
 * read its partitions in order, each from where it likes. This header opens the place where hubs
 * live; the others, which it includes, hold one noun each:
 *
 *     hub.h        making, listing and removing hubs, consumer groups and keys
 *     producer.h   publishing
 *     receiver.h   reading
 *     event.h      what is published and read
 *     error.h      the one way to fail
 *
 * These rules hold for every call:
 *
 *   Durable     0 from a publish means: on disk. A crash of the program or the machine at any later
 *               moment leaves the event where it is.
 *   Threads     A struct weir and its producers may be used by any number of threads at a time. A
 *               receiver is used by one thread at a time; weir_receiver_cancel may be called by
 *               any. Nothing may be used while or after it is closed. There is no global state.
 *   Completions of asynchronous publishes run on a thread of the hub they went to, one at a time,
 *               in the order of that hub's log, each exactly once, and before weir_producer_close
 *               returns. They may publish again asynchronously. They must not block: a call that
 *               would wait returns WEIR_EDEADLOCK inside a completion.
 *   Deadlines   Calls that wait for others take timeout_ms: 0 does not wait, negative waits for
 *               ever. Calls without it wait for the disk at most; over a connection, for the other
 *               side, up to patience_ms.
 *   Connections are made when first needed. When nobody is there then, or somebody who speaks
 *               something else, the call that needed it fails at once with WEIR_EUNREACHABLE and
 *               the reason; with the option `wait` it keeps trying for patience_ms. After the other
 *               side has answered once, a lost connection is made again, after pauses that grow
 *               from a twentieth of a second to five seconds, for as long as anything is open. All
 *               producers and receivers of a struct weir share one, and one thread. A receiver goes
 *               on behind the last event it was sent; what a lost connection means to a producer is
 *               in producer.h.
 *   Fork        After fork only the parent may use what it opened; the child may only exec or
 *               _exit. Files are opened close-on-exec.
 *   Process     No signal handler is installed, no signal is raised (SIGPIPE neither), every signal
 *               is blocked in the library's threads, and nothing is printed: see the log callback.
 *               Descriptors 0, 1 and 2 are the program's: no file or socket is kept under these
 *               numbers, also when they are closed.
 *   Options     Option structs begin with `size_t size`, which the caller sets to sizeof the
 *               struct, so that a program keeps working with a later library; 0 is WEIR_EINVAL.
 *               Every other member may be zero, which is its default. NULL is all defaults.
 *   Pointers    Everything passed in is borrowed for the call, and copied when needed longer.
 *   C++         A struct and the function that fills it may have one name, as stat has: write
 *               `struct weir_hub_info info;` there, too. */
#ifndef WEIR_H
#define WEIR_H

#include "weir/error.h"
#include "weir/event.h"
#include "weir/export.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION "0.1.0"

/* The version of the library that is running, which may be newer than WEIR_VERSION. */
WEIR_API const char *weir_version(void);

/* A place with hubs. */
struct weir;

enum weir_level { WEIR_DEBUG, WEIR_INFO, WEIR_WARN, WEIR_ERROR };

/* One line without a newline, which lives for the call. room is the part of the library that
 * speaks, "log" or "hub". Called from any thread, several at a time; must not call the library. */
typedef void (*weir_log_fn)(enum weir_level, const char *room, const char *line, void *user);

struct weir_options {
    size_t size;
    bool must_exist; /* a folder that is not there: WEIR_ENOTFOUND instead of making it */
    weir_log_fn log; /* NULL: silence */
    void *log_user;
    uint32_t batch_bytes_max; /* of an encoded batch; 0: 1 MiB, at most 19 MiB */

    /* Gives the promise above up for speed: publishes are acknowledged when they are written, and
     * on disk so much later. What was acknowledged since the last time is lost with the machine's
     * power, though not with the program. 0: acknowledged means on disk. */
    uint32_t sync_ms;

    /* For connections. */
    const char *ca_file;  /* whose certificates to trust, PEM; NULL: whom the system trusts */
    uint32_t patience_ms; /* how long calls without a time-out wait for the other side; 0: 15 s */
    uint32_t idle_ms;     /* silence of one and a half times this is the end of a connection, and
                             half of it is broken by a word; 0: 30 s */
    uint32_t token_s;     /* life of the tokens that are made with the key; 0: 1 hour */
    bool wait;            /* for a server that is not there yet; see Connections above */
    const char *space;    /* what weir_space tells instead of the host, so that records are shared
                             however the place is reached; NULL: the host */

    /* Where weir serve is administered, "http://HOST:PORT" or "https://HOST:PORT". NULL: at the
     * same host, and the server tells the port. */
    const char *admin;
};

/* Opens the folder `where`, making it when it is missing, and holds it alone until closed: for
 * another process the answer is WEIR_ELOCKED, with the holder's pid in the text. What an earlier
 * crash left unfinished is put in order first.
 *
 * `where` may be a connection string of Azure Event Hubs instead ("Endpoint=sb://HOST[:PORT]/;
 * SharedAccessKeyName=...;SharedAccessKey=..."), of Azure itself or of `weir serve`; all other calls
 * are the same. TLS is used, and the other side's certificate checked, unless the string says
 * UseDevelopmentEmulator=true; TransportType=AmqpWebSockets goes through a WebSocket, on port 443 (or
 * 5300 without TLS) when the string names none. A malformed one is WEIR_EINVAL, and the text says
 * which part; whether somebody is there shows with the first call that needs it: WEIR_EUNREACHABLE
 * when nobody answers, WEIR_EDENIED when the key or the certificate is not good. The text says why,
 * and when UseDevelopmentEmulator=true seems to be missing. */
WEIR_API int weir_open(struct weir **out, const char *where, const struct weir_options *,
                       struct weir_error *);

/* Commits, lets go of the folder and frees. WEIR_EBUSY while a producer or receiver is open and
 * WEIR_EDEADLOCK inside a completion: nothing is closed then. After any other error it is. NULL is
 * allowed. */
WEIR_API int weir_close(struct weir *, struct weir_error *);

#define WEIR_SPACE_BYTES 272 /* of a space's name, its NUL included */

/* What tells this place from others, for records about its hubs that are kept elsewhere, in lower
 * case: the host of the connection, with its port unless that is the usual one; a folder's own id,
 * which goes with the folder. The option of that name replaces it for a connection. */
WEIR_API int weir_space(struct weir *, char out[WEIR_SPACE_BYTES], struct weir_error *);

#ifdef __cplusplus
}
#endif

#include "weir/hub.h"
#include "weir/producer.h"
#include "weir/receiver.h"

#endif
