#include "cli/rights.h"

#include <string.h>

#include "hub/right.h"

bool weir__rights_parse(const char *text, unsigned *out)
{
    *out = 0;
    for (;;) {
        size_t len = strcspn(text, ",");
        const struct weir__right_name *r = weir__right_names;
        while (r->name && (strlen(r->name) != len || memcmp(r->name, text, len) != 0)) r++;
        if (!r->name) return false;
        *out |= r->right;
        if (!text[len]) return true;
        text += len + 1;
    }
}
