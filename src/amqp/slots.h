/* slots.h - things under the small numbers that the two sides gave them: channels, handles.
 *
 * Pages of 16, made where there is something, so that a peer that likes large numbers costs no more
 * than one page each. */
#ifndef WEIR_AMQP_SLOTS_H
#define WEIR_AMQP_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR__AMQP_SLOT_PAGE 16
#define WEIR__AMQP_SLOTS_MAX 65536u

struct weir__amqp_slots {
    void ***pages;
    uint32_t page_count;
    uint32_t used; /* slots that are not NULL */
    size_t bytes;  /* allocated */
};

static inline void *weir__amqp_slot(const struct weir__amqp_slots *s, uint32_t at)
{
    void **page;

    if (at / WEIR__AMQP_SLOT_PAGE >= s->page_count) return NULL;
    page = s->pages[at / WEIR__AMQP_SLOT_PAGE];
    return page ? page[at % WEIR__AMQP_SLOT_PAGE] : NULL;
}

/* Puts what at a free slot; false when there is no memory. */
bool weir__amqp_slot_put(struct weir__amqp_slots *, uint32_t at, void *what);
void weir__amqp_slot_clear(struct weir__amqp_slots *, uint32_t at);

/* The lowest free slot up to max; above max when there is none. */
uint32_t weir__amqp_slot_free(const struct weir__amqp_slots *, uint32_t max);

void weir__amqp_slots_fini(struct weir__amqp_slots *);

#endif
