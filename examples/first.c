#include <stdio.h>
#include <weir/weir.h>

int main(void)
{
    struct weir_event news = {.body = weir_text("door open"), .partition_key = weir_text("home-7")};
    struct weir *w = NULL;
    struct weir_producer *to = NULL;
    struct weir_receiver *from = NULL;
    struct weir_receipt at;
    struct weir_received got;
    struct weir_error err;
    bool ok = weir_open(&w, "first-data", NULL, &err) == 0 &&
              (weir_hub_create(w, "homes", NULL, &err) == 0 || err.code == WEIR_EEXIST) &&
              weir_producer_open(&to, w, "homes", NULL, &err) == 0 &&
              weir_producer_send(to, &news, 1, 5000, &at, &err) == 0 && /* it is on disk now */
              weir_receiver_open(&from, w, "homes", at.partition, NULL, &err) == 0 &&
              weir_receiver_receive(from, 1, 1000, &got, &err) == 0;

    if (ok) printf("%.*s\n", (int)got.events[0].body.len, got.events[0].body.at);
    if (!ok) fprintf(stderr, "%s\n", err.text);
    weir_receiver_close(from), weir_producer_close(to, -1, NULL);
    return weir_close(w, NULL) != 0 || !ok;
}
