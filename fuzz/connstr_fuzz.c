/* connstr_fuzz.c - any text as a connection string, alone and behind a good beginning with a key.
 *
 * What is taken has an address that can be dialled and one way to get in; what is refused says why
 * without the key. */
#include "fuzz.h"

#include <string.h>

#include "client/connstr.h"

#define SECRET "hush-hush-hush"
#define BEGINNING "SharedAccessKeyName=a;SharedAccessKey=" SECRET ";Endpoint=sb://h"

static void check(const char *text)
{
    struct weir__connstr c;
    struct weir_error err = {0};
    const char *port;

    weir__connstr_is(text);
    if (weir__connstr_parse(&c, text, &err) != 0) {
        ORACLE(err.code == WEIR_EINVAL && strncmp(err.text, "connection string: ", 19) == 0);
        ORACLE(!strstr(err.text, SECRET));
        return;
    }
    ORACLE(weir__connstr_is(text));
    port = strrchr(c.address, ':');
    ORACLE(*c.host && port && port[1] && strspn(port + 1, "0123456789") == strlen(port + 1));
    ORACLE(strstr(c.address, c.host));
    ORACLE(!*c.signature == (*c.key && *c.key_name));
}

int LLVMFuzzerTestOneInput(const uint8_t *at, size_t len)
{
    char text[sizeof BEGINNING + WEIR__CONNSTR_BYTES_MAX];
    size_t room = sizeof text - sizeof BEGINNING;

    if (len > room) len = room;
    if (len) memcpy(text, at, len);
    text[len] = '\0';
    check(text);
    memcpy(text, BEGINNING, sizeof BEGINNING - 1);
    if (len) memcpy(text + sizeof BEGINNING - 1, at, len);
    text[sizeof BEGINNING - 1 + len] = '\0';
    check(text);
    return 0;
}
