#include "server/budget.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES 64

/* An address with strangers. */
struct weir__origin {
    struct weir__origin *next;
    char name[NAME_BYTES];
    unsigned count;
    struct weir__newcomer *oldest, *youngest;
};

static size_t bytes_or(size_t given, size_t otherwise)
{
    return given ? given : otherwise;
}

/* Those with a token have the most of a small budget, too. */
static size_t share_of(size_t bytes)
{
    return bytes / 4 < WEIR__BUDGET_STRANGER_BYTES ? bytes / 4 : WEIR__BUDGET_STRANGER_BYTES;
}

void weir__budget_init(struct weir__budget *b, const struct weir__budget_limits *l)
{
    memset(b, 0, sizeof *b);
    b->limits.bytes = bytes_or(l->bytes, WEIR__BUDGET_BYTES);
    b->limits.stranger_bytes = bytes_or(l->stranger_bytes, share_of(b->limits.bytes));
    b->limits.per_address = l->per_address ? l->per_address : WEIR__BUDGET_PER_ADDRESS;
    weir__mutex_init(&b->lock);
}

void weir__budget_fini(struct weir__budget *b)
{
    assert(!b->oldest);
    weir__mutex_fini(&b->lock);
}

/* ---- addresses ---- */

/* "127.0.0.1:49152" or "[::1]:49152" without brackets and port. A machine has all addresses of a /64 of
 * IPv6, so only that part counts, in a form of our own: the same address is written in several. */
static void name_origin(const char *peer, char name[NAME_BYTES])
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};     /* an address of IPv4 */
    const char *at = peer + (*peer == '['), *end = strpbrk(at, "]%"); /* a zone may follow */
    uint8_t ip[16];
    size_t len;

    if (!end) end = strrchr(at, ':');
    len = end ? (size_t)(end - at) : strlen(at);
    if (len >= NAME_BYTES) len = NAME_BYTES - 1;
    memcpy(name, at, len);
    name[len] = '\0';
    if (inet_pton(AF_INET6, name, ip) != 1) return;
    if (memcmp(ip, mapped, sizeof mapped) == 0)
        inet_ntop(AF_INET, ip + sizeof mapped, name, NAME_BYTES);
    else
        snprintf(name, NAME_BYTES, "%02x%02x:%02x%02x:%02x%02x:%02x%02x/64", ip[0], ip[1], ip[2],
                 ip[3], ip[4], ip[5], ip[6], ip[7]);
}

static struct weir__origin **head_of(struct weir__budget *b, const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
    return &b->origins[hash % WEIR__BUDGET_ORIGINS];
}

static struct weir__origin *find_origin(struct weir__budget *b, const char *name)
{
    struct weir__origin **head = head_of(b, name), *o = *head;

    while (o && strcmp(o->name, name) != 0) o = o->next;
    if (o || !(o = calloc(1, sizeof *o))) return o;
    memcpy(o->name, name, strlen(name) + 1);
    o->next = *head;
    *head = o;
    return o;
}

static void drop_origin(struct weir__budget *b, struct weir__origin *o)
{
    struct weir__origin **at = head_of(b, o->name);

    while (*at != o) at = &(*at)->next;
    *at = o->next;
    free(o);
}

/* ---- strangers; the lock is held ---- */

static void link_stranger(struct weir__budget *b, struct weir__newcomer *s, struct weir__origin *o)
{
    s->origin = o;
    s->prev = b->youngest;
    s->at_prev = o->youngest;
    s->next = s->at_next = NULL;
    *(s->prev ? &s->prev->next : &b->oldest) = s;
    *(s->at_prev ? &s->at_prev->at_next : &o->oldest) = s;
    b->youngest = o->youngest = s;
    b->count++;
    o->count++;
}

static void unlink_stranger(struct weir__budget *b, struct weir__newcomer *s)
{
    struct weir__origin *o = s->origin;

    *(s->prev ? &s->prev->next : &b->oldest) = s->next;
    *(s->next ? &s->next->prev : &b->youngest) = s->prev;
    *(s->at_prev ? &s->at_prev->at_next : &o->oldest) = s->at_next;
    *(s->at_next ? &s->at_next->at_prev : &o->youngest) = s->at_prev;
    s->origin = NULL;
    b->count--;
    if (--o->count == 0) drop_origin(b, o);
}

/* The post is taken back by the owner before its memory goes. A loop that has stopped ends all. */
static void evict(struct weir__budget *b, struct weir__newcomer *s)
{
    unlink_stranger(b, s);
    s->leaving = atomic_load(&s->account->bytes);
    atomic_fetch_add(&b->leaving, s->leaving);
    atomic_fetch_add(&b->evicted, 1);
    weir__loop_post(s->loop, &s->evict);
}

/* ---- what others call ---- */

bool weir__budget_is_tight(const struct weir__budget *b)
{
    return atomic_load(&b->used) > b->limits.bytes / 2;
}

bool weir__budget_make_room(struct weir__budget *b)
{
    bool any;

    weir__mutex_lock(&b->lock);
    any = b->oldest != NULL;
    if (any) evict(b, b->oldest);
    weir__mutex_unlock(&b->lock);
    return any;
}

static bool is_over(const struct weir__budget *b)
{
    return atomic_load(&b->strangers) > b->limits.stranger_bytes + atomic_load(&b->leaving);
}

/* The oldest go until the others are within their share; false: there are no others. Each goes once,
 * so that is no more work than letting them in was. */
static bool keep_share(struct weir__budget *b)
{
    bool over = is_over(b);

    if (!over) return true;
    weir__mutex_lock(&b->lock);
    while ((over = is_over(b)) && b->oldest) evict(b, b->oldest);
    weir__mutex_unlock(&b->lock);
    return !over;
}

unsigned weir__budget_strangers(struct weir__budget *b)
{
    unsigned count;

    weir__mutex_lock(&b->lock);
    count = b->count;
    weir__mutex_unlock(&b->lock);
    return count;
}

void weir__newcomer_enter(struct weir__newcomer *s, const struct weir__account *account,
                          struct weir__loop *loop, const char *peer, void (*fn)(void *arg),
                          void *arg)
{
    struct weir__budget *b = account->budget;
    struct weir__origin *o;
    char name[NAME_BYTES];

    name_origin(peer, name);
    s->loop = loop;
    s->account = account;
    weir__post_init(&s->evict, fn, arg);
    weir__mutex_lock(&b->lock);
    o = find_origin(b, name);
    if (o) {
        link_stranger(b, s, o);
        if (o->count > b->limits.per_address) evict(b, o->oldest);
    }
    weir__mutex_unlock(&b->lock);
}

void weir__newcomer_leave(struct weir__newcomer *s, struct weir__budget *b)
{
    if (!s->loop) return;
    weir__mutex_lock(&b->lock);
    if (s->origin) unlink_stranger(b, s);
    atomic_fetch_sub(&b->leaving, s->leaving);
    s->leaving = 0;
    weir__mutex_unlock(&b->lock);
    weir__loop_unpost(s->loop, &s->evict);
    s->loop = NULL;
}

/* ---- accounts ---- */

static void note_peak(struct weir__budget *b)
{
    size_t peak = atomic_load_explicit(&b->peak, memory_order_relaxed),
           used = atomic_load(&b->used);

    while (used > peak && !atomic_compare_exchange_weak(&b->peak, &peak, used)) continue;
}

static void set_bytes(struct weir__account *a, size_t bytes)
{
    struct weir__budget *b = a->budget;
    size_t before = atomic_load(&a->bytes);

    if (bytes > before) {
        atomic_fetch_add(&b->used, bytes - before);
        if (a->stranger) atomic_fetch_add(&b->strangers, bytes - before);
    } else {
        atomic_fetch_sub(&b->used, before - bytes);
        if (a->stranger) atomic_fetch_sub(&b->strangers, before - bytes);
    }
    atomic_store(&a->bytes, bytes);
}

/* What must be there whether there is room or not, such as a first answer, has the rest. */
static size_t for_growth(const struct weir__budget *b)
{
    return b->limits.bytes - b->limits.bytes / 64;
}

bool weir__account_grow(struct weir__account *a, size_t more)
{
    struct weir__budget *b = a->budget;

    if (more == 0) return true;
    if (more > for_growth(b)) return false;
    set_bytes(a, atomic_load(&a->bytes) + more);
    if (atomic_load(&b->used) > for_growth(b) || (a->stranger && !keep_share(b))) {
        set_bytes(a, atomic_load(&a->bytes) - more);
        return false;
    }
    note_peak(b);
    return true;
}

void weir__account_set(struct weir__account *a, size_t bytes)
{
    size_t before = atomic_load(&a->bytes);

    if (bytes == before) return;
    set_bytes(a, bytes);
    if (bytes < before) return;
    note_peak(a->budget);
    if (a->stranger) keep_share(a->budget);
}

void weir__account_trust(struct weir__account *a)
{
    if (a->stranger) atomic_fetch_sub(&a->budget->strangers, atomic_load(&a->bytes));
    a->stranger = false;
}
