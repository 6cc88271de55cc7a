/* ps_sync_priv.h - what the files of the sync share.
 *
 * ps_sync.c       joining, dense parameters, the end
 * ps_sync_save.c  the chief: first parameters, checkpoints
 * ps_sync_keys.c  sparse parameters */
#ifndef PL_DIST_PS_SYNC_PRIV_H
#define PL_DIST_PS_SYNC_PRIV_H

#include "dist/heart.h"
#include "dist/ps_sync.h"

/* Batches that were asked for and not used up: that of the gradient on its
 * way, and up to two more. */
#define PL_SYNC_BATCHES 4

typedef struct pl_sync_keys {
    pl_key_batch batches[PL_SYNC_BATCHES]; /* the n-th asked for is at n % .. */
    int64_t asked, taken;
    pl_key_batch look;        /* of a test */
    const pl_key_batch *last; /* of the request sent last; or NULL */
    pl_key_batch *next;       /* goes with the next push; or NULL */
    float *grad;              /* of the batch taken last, in its order */
    int64_t grad_room;
    bool pushed;      /* the outcome of the last push was not looked at */
    unsigned outcome; /* PL_ANSWER_ of it, until commit tells */
} pl_sync_keys;

struct pl_ps_sync {
    pl_sync base;
    pl_ps_sync_opts opts;
    char name[32];
    char host[256];
    int32_t ps;
    bool chief;
    pl_endpoint **ends; /* one a server */
    pl_area *area;      /* the gradient; of sparse parameters, messages */
    pl_ps_client *client;
    pl_heart *heart;
    bool joined;   /* once, at least */
    bool pulled;   /* ... and got parameters: those it had are overwritten */
    bool located;  /* `opts.located` was called */
    bool pushing;  /* the step's request has begun */
    int64_t ready; /* floats from here on were handed over */
    int64_t next_tick_ns;
    int64_t dropped;
    bool over;    /* no more gradients are wanted */
    bool leaving; /* said goodbye */
    bool gone;    /* ... and server 0 was gone before it could answer */
    int64_t own;
    bool broken;        /* since someone was interrupted */
    pl_sync_keys *keys; /* NULL: the parameters are dense */
};

/* Wait until the request at hand is done. */
pl_status pl_ps_sync_finish(pl_ps_sync *self) PL_MUST_CHECK;
/* What the last answer said of the end. */
void pl_ps_sync_hear_end(pl_ps_sync *self);

/* ps_sync_save.c */
/* The chief has joined: see to it that the servers have parameters and, where
 * those are dense, that there is a checkpoint. */
pl_status pl_ps_sync_restore(pl_ps_sync *self,
                             const pl_progress *start) PL_MUST_CHECK;
pl_status pl_ps_sync_save(pl_sync *sync, const pl_progress *progress,
                          bool last) PL_MUST_CHECK;

/* ps_sync_keys.c: the ops of sparse parameters. */
pl_status pl_sync_keys_new(pl_sync_keys **out, int32_t ps) PL_MUST_CHECK;
void pl_sync_keys_free(pl_sync_keys *keys); /* NULL is fine */
void pl_sync_keys_reset(pl_sync_keys *keys);
/* A request is done and another one is about to begin: if it was a push, keep
 * what became of it. */
void pl_sync_keys_note(pl_ps_sync *self);
/* What became of it is known otherwise: the next commit does not tell of a
 * gradient that was dropped. */
void pl_sync_keys_settle(pl_ps_sync *self);
int pl_sync_keys_ahead(const pl_sync *sync);
pl_status pl_sync_keys_ask(pl_sync *sync, const pl_keys *keys,
                           bool later) PL_MUST_CHECK;
pl_status pl_sync_keys_take(pl_sync *sync, pl_values *out) PL_MUST_CHECK;
pl_status pl_sync_keys_look(pl_sync *sync, const pl_keys *keys,
                            pl_values *out) PL_MUST_CHECK;
pl_status pl_sync_keys_ready(pl_sync *sync, int param, const float *grad,
                             const pl_keys *keys) PL_MUST_CHECK;
pl_status pl_sync_keys_commit(pl_sync *sync, pl_commit *out) PL_MUST_CHECK;
pl_status pl_sync_keys_pause(pl_sync *sync, int64_t *step) PL_MUST_CHECK;

#endif
