#include "amqp/slots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/steps.h"

#define PAGE WEIR__AMQP_SLOT_PAGE

static bool grow_pages(struct weir__amqp_slots *s, uint32_t count)
{
    void ***pages = realloc(s->pages, count * sizeof *pages);

    if (!pages) return false;
    memset(pages + s->page_count, 0, (count - s->page_count) * sizeof *pages);
    s->bytes += (count - s->page_count) * sizeof *pages;
    s->pages = pages;
    s->page_count = count;
    return true;
}

bool weir__amqp_slot_put(struct weir__amqp_slots *s, uint32_t at, void *what)
{
    uint32_t page = at / PAGE;

    assert(at < WEIR__AMQP_SLOTS_MAX && what && !weir__amqp_slot(s, at));
    if (page >= s->page_count && !grow_pages(s, page + 1)) return false;
    if (!s->pages[page]) {
        s->pages[page] = calloc(PAGE, sizeof *s->pages[page]);
        if (!s->pages[page]) return false;
        s->bytes += PAGE * sizeof *s->pages[page];
    }
    s->pages[page][at % PAGE] = what;
    s->used++;
    return true;
}

static bool is_empty(void *const *page)
{
    for (uint32_t i = 0; i < PAGE; i++)
        if (page[i]) return false;
    return true;
}

void weir__amqp_slot_clear(struct weir__amqp_slots *s, uint32_t at)
{
    uint32_t page = at / PAGE;

    assert(weir__amqp_slot(s, at));
    s->pages[page][at % PAGE] = NULL;
    s->used--;
    if (!is_empty(s->pages[page])) return;
    free(s->pages[page]);
    s->pages[page] = NULL;
    s->bytes -= PAGE * sizeof *s->pages[page];
}

uint32_t weir__amqp_slot_free(const struct weir__amqp_slots *s, uint32_t max)
{
    uint32_t at = 0;

    for (; at <= max && weir__amqp_slot(s, at); at++) WEIR__STEP();
    return at;
}

void weir__amqp_slots_fini(struct weir__amqp_slots *s)
{
    for (uint32_t i = 0; i < s->page_count; i++) free(s->pages[i]);
    free(s->pages);
    *s = (struct weir__amqp_slots){0};
}
