#include "io/worker.h"

#include <stdlib.h>

struct weir__worker {
    struct weir__thread thread;
    struct weir__mutex lock; /* for what follows */
    struct weir__cond changed;
    struct weir__posts posts;
    bool stopping;
};

static struct weir__post *next_post(struct weir__worker *w)
{
    struct weir__post *post;

    weir__mutex_lock(&w->lock);
    while (!(post = weir__posts_take(&w->posts)) && !w->stopping)
        weir__cond_wait(&w->changed, &w->lock, INT64_MAX);
    weir__mutex_unlock(&w->lock);
    return post;
}

static void *run(void *arg)
{
    struct weir__post *post;

    while ((post = next_post(arg))) post->fn(post->arg);
    return NULL;
}

int weir__worker_start(struct weir__worker **out, const char *name, struct weir_error *err)
{
    struct weir__worker *w = calloc(1, sizeof *w);
    int rc;

    *out = NULL;
    if (!w) return weir__fail(err, WEIR_ENOMEM, "out of memory for a worker");
    weir__mutex_init(&w->lock);
    weir__cond_init(&w->changed);
    rc = weir__thread_start(&w->thread, name, run, w, err);
    if (rc == 0)
        *out = w;
    else
        weir__worker_free(w);
    return rc;
}

void weir__worker_stop(struct weir__worker *w)
{
    if (!w) return;
    weir__mutex_lock(&w->lock);
    w->stopping = true;
    weir__cond_broadcast(&w->changed);
    weir__mutex_unlock(&w->lock);
    weir__thread_join(&w->thread);
}

void weir__worker_free(struct weir__worker *w)
{
    if (!w) return;
    weir__worker_stop(w);
    weir__cond_fini(&w->changed);
    weir__mutex_fini(&w->lock);
    free(w);
}

int weir__worker_post(struct weir__worker *w, struct weir__post *post)
{
    bool taken;

    weir__mutex_lock(&w->lock);
    taken = !w->stopping;
    if (taken) weir__posts_put(&w->posts, post);
    weir__cond_signal(&w->changed);
    weir__mutex_unlock(&w->lock);
    return taken ? 0 : WEIR_ECLOSED;
}
