/* worker_priv.h - what the files of the worker machine share.
 *
 * worker.c       states and invariants, inputs, the wishes of a step
 * worker_join.c  joining, restoring, the evaluator's pull
 * worker_save.c  checkpoints
 * worker_keys.c  keyed parameters */
#ifndef PL_SYNC_PS_WORKER_WORKER_PRIV_H
#define PL_SYNC_PS_WORKER_WORKER_PRIV_H

#include "base/error.h"
#include "sync/ps/worker/pace.h"
#include "sync/ps/worker/worker.h"

typedef enum pl_worker_state {
    PL_WORKER_OUT,
    PL_WORKER_JOINING,
    PL_WORKER_LOADING,
    PL_WORKER_INITIALIZING,
    PL_WORKER_PULLING,
    PL_WORKER_LOCATING,
    PL_WORKER_READY,
    PL_WORKER_FLUSHING,
    PL_WORKER_COMMITTING,
    PL_WORKER_PUSHING,
    PL_WORKER_PEEKING,
    PL_WORKER_PAUSING,
    PL_WORKER_SHARING,
    PL_WORKER_LOOKING,
    PL_WORKER_FREEZING,
    PL_WORKER_SAVING,
    PL_WORKER_WRITING,
    PL_WORKER_THAWING,
    PL_WORKER_STOPPING,
    PL_WORKER_LEAVING,
    PL_WORKER_LEFT,
    PL_WORKER_GONE,
    PL_WORKER_STATES,
} pl_worker_state;

typedef enum pl_worker_wish {
    PL_WISH_NONE,
    PL_WISH_JOIN,
    PL_WISH_COMMIT,
    PL_WISH_ASK,
    PL_WISH_TAKE,
    PL_WISH_PEEK,
    PL_WISH_READ,
    PL_WISH_PAUSE,
    PL_WISH_SHARE,
    PL_WISH_DEAL,
    PL_WISH_SAVE,
    PL_WISH_STOP,
    PL_WISH_SETTLE,
    PL_WISH_LEAVE,
    PL_WISH_PULL,
} pl_worker_wish;

/* Batches that were requested and are in use: that of the gradient in flight,
 * and up to two more. */
#define PL_WORKER_BATCHES 4

typedef struct pl_worker_keys {
    /* The n-th requested one is at n % PL_WORKER_BATCHES. */
    pl_key_batch batches[PL_WORKER_BATCHES];
    int64_t asked, taken;
    pl_key_batch look;        /* of a test */
    const pl_key_batch *last; /* of the request sent last; or NULL */
    pl_key_batch *next;       /* sent with the next push; or NULL */
    /* Gradients, each in the order of its batch: that of the batch taken last,
     * and that of the push in flight, which may have to be resent. */
    float *grads[2];
    int64_t grad_room[2];
    bool pushed;      /* the outcome of the last push was not read */
    unsigned outcome; /* PL_ANSWER_ of it, until a commit reports it */
} pl_worker_keys;

/* A checkpoint in progress. */
typedef struct pl_worker_save {
    bool first;      /* of the job: no update is made before it is written */
    bool last;       /* of the run: wait until it is written */
    bool thawed;     /* the other workers continue */
    pl_error before; /* the outcome of the previous one... */
    pl_error now;    /* ... and of this one, while the other workers wait */
    char *plan;
} pl_worker_save;

struct pl_ps_worker {
    pl_ps_worker_opts opts;
    const pl_ps_pace *pace;
    pl_ps_client *client;
    pl_worker_state state;
    pl_worker_wish wish;
    pl_error error; /* how the last wish ended */
    bool failed;    /* ... and the only next wish is to join */
    int64_t now_ns, joining_ns;
    bool joined;  /* once, at least */
    bool pulled;  /* ... and got parameters: its first ones are overwritten */
    bool located; /* ops.located was called... */
    bool located_again; /* ... or this wish joined once more for that */
    bool leaving;       /* it said goodbye, and has no answer yet */
    bool pushing;       /* the step's request has begun */
    bool waiting;       /* for parameters: heartbeats say so */
    int64_t ready_from;
    bool over, broken;
    bool paused;            /* the last wish to pause sent a request */
    pl_ps_worker_view told; /* by the last commit */
    int64_t left_own, drops, restored;
    /* Arguments of the wish. */
    bool wait;
    int64_t number, count; /* a step, or gradients, or a range */
    float *to;
    const char *why; /* of a stop, or the report of a goodbye */
    char *text;      /* of pl_mem: of the current request */
    int64_t *counts; /* [workers], of a save */
    pl_worker_save save;
    pl_worker_keys *keys; /* NULL: the parameters are dense */
};

/* worker.c */
void pl_worker_tell(pl_ps_worker *w, pl_phase phase);
/* Begin a wish: `state` waits for the previous request, if any. */
void pl_worker_wish_for(pl_ps_worker *w, pl_worker_wish wish);
/* The wish is done; PL_OK, or how it failed, with its message. */
void pl_worker_done(pl_ps_worker *w, pl_status status);
/* The machine cannot continue: as above, and all wishes but join fail. */
void pl_worker_fail(pl_ps_worker *w, pl_status status);
/* Pull: all parameters if they are dense, otherwise only the job's step. */
void pl_worker_pull(pl_ps_worker *w, unsigned flags, int64_t step);
/* Note from the last answer whether the job is over. */
void pl_worker_hear_end(pl_ps_worker *w);
void pl_worker_advance(pl_ps_worker *w);

/* worker_join.c: a request of a wish to join or pull is done. */
void pl_worker_begin_join(pl_ps_worker *w);
void pl_worker_after_join(pl_ps_worker *w);
void pl_worker_after_restore(pl_ps_worker *w);
void pl_worker_after_pull(pl_ps_worker *w);
void pl_worker_after_locate(pl_ps_worker *w);
void pl_worker_watch_join(pl_ps_worker *w);
/* The servers have parameters: get them. */
void pl_worker_pull_first(pl_ps_worker *w);

/* worker_save.c */
void pl_worker_begin_save(pl_ps_worker *w);
void pl_worker_freeze(pl_ps_worker *w, bool first);
void pl_worker_after_look(pl_ps_worker *w);
void pl_worker_after_freeze(pl_ps_worker *w);
void pl_worker_after_saving(pl_ps_worker *w);
void pl_worker_after_writing(pl_ps_worker *w);
void pl_worker_after_thaw(pl_ps_worker *w);

/* worker_keys.c */
pl_status pl_worker_keys_new(pl_worker_keys **out, int32_t ps) PL_MUST_CHECK;
void pl_worker_keys_free(pl_worker_keys *keys); /* may be NULL */
void pl_worker_keys_reset(pl_worker_keys *keys);
/* A request is done and another one is about to begin: if it was a push, keep
 * its outcome. */
void pl_worker_keys_note(pl_ps_worker *w);
/* The outcome is known otherwise: the next commit does not report a dropped
 * gradient. */
void pl_worker_keys_settle(pl_ps_worker *w);
void pl_worker_keys_commit(pl_ps_worker *w);
void pl_worker_keys_after_push(pl_ps_worker *w);
void pl_worker_keys_begin_ask(pl_ps_worker *w);
void pl_worker_keys_begin_peek(pl_ps_worker *w);

#endif
