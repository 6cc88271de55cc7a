/* worker.h - a worker of a parameter-server job, its chief or the evaluator,
 * as a machine without input or output that never blocks.
 *
 * Its inputs are messages of servers, clock ticks, verdicts of the heartbeat
 * and the wishes of the caller (join, commit, save ...); its outputs are
 * messages, calls of pl_ps_worker_ops, and whether the current wish is done.
 * The blocking pl_sync (sync.h) feeds it from sockets until the wish is done;
 * the simulator (tests/sim) feeds the same machine from a queue of events.
 *
 * One wish at a time: each first waits until the previous request is done.  A
 * wish is done when pl_ps_worker_busy is false, with the result of
 * pl_ps_worker_outcome.  PL_ROLLED: the servers' parameters are lost, or server
 * 0 is silent; the next wish must be to join.
 *
 * Threads: one worker, one thread. */
#ifndef PL_SYNC_PS_WORKER_WORKER_H
#define PL_SYNC_PS_WORKER_WORKER_H

#include "sync/ps/worker/client.h"

typedef struct pl_ps_worker pl_ps_worker;

/* A complete checkpoint for the servers to read. */
typedef struct pl_ps_checkpoint {
    int64_t step;
    const int64_t *counts; /* gradients of each worker; borrowed */
    char *plan;            /* of pl_mem, owned by the caller */
} pl_ps_checkpoint;

/* Called with the client's context. */
typedef struct pl_ps_worker_ops {
    /* This task has become a member, and its heartbeats begin; a failure ends
     * the task. */
    pl_status (*joined)(void *context);
    /* It is about to join: heartbeats of the previous membership end. */
    void (*parted)(void *context);
    /* The content of heartbeats from now on. */
    void (*tell)(void *context, int64_t step, pl_phase phase);
    /* With opts.locates: the chief has joined, too; called once, before the
     * first step. */
    void (*located)(void *context, uint64_t job, const char *run);
    /* The newest complete checkpoint, or PL_NOTFOUND. */
    pl_status (*find)(void *context, pl_ps_checkpoint *out);
    /* All workers wait: make the folder of a checkpoint; *plan is allocated by
     * pl_mem. */
    pl_status (*plan)(void *context, int64_t step, const int64_t *counts,
                      char **plan);
    /* Keyed parameters: the first ones, described (train/loop/first.h). */
    pl_status (*describe)(void *context, char **text);
} pl_ps_worker_ops;

typedef struct pl_ps_worker_opts {
    pl_ps_client_opts client;
    const pl_ps_worker_ops *ops;
    const char *name;             /* "worker 1", for messages */
    const char *const *addresses; /* of the servers, likewise; or NULL */
    bool chief;
    bool saves;        /* the chief: checkpoints are saved */
    bool locates;      /* ops.located is to be called */
    bool deals;        /* sync: the data is dealt to the workers present */
    bool backup;       /* sync: a step needs fewer gradients than workers */
    bool still;        /* the chief: no worker continues while it tests */
    int64_t join_ms;   /* default 600000 */
    int64_t rejoin_ms; /* default 60000 */
} pl_ps_worker_opts;

pl_status pl_ps_worker_new(pl_ps_worker **out, const pl_ps_worker_opts *opts,
                           int64_t now_ns) PL_MUST_CHECK;
void pl_ps_worker_free(pl_ps_worker *worker); /* may be NULL */

/* Handle a message of server `ps`. */
void pl_ps_worker_receive(pl_ps_worker *worker, int32_t ps,
                          const pl_message *message, int64_t now_ns);
/* Time has passed; call it every PL_TICK_MS or so. */
void pl_ps_worker_tick(pl_ps_worker *worker, int64_t now_ns);
/* The heartbeat failed with this status, its message in this thread. */
void pl_ps_worker_lost(pl_ps_worker *worker, pl_status status);

/* Whether the current wish is not done. */
bool pl_ps_worker_busy(const pl_ps_worker *worker);
pl_status pl_ps_worker_outcome(const pl_ps_worker *worker) PL_MUST_CHECK;
/* Between wishes: PL_OK, or why the task can only join. */
pl_status pl_ps_worker_check(const pl_ps_worker *worker) PL_MUST_CHECK;

/* Become a member.  The chief ensures that the servers have parameters: those
 * of the last checkpoint, or the first ones, which are saved if dense.  Then
 * the parameters are pulled. */
void pl_ps_worker_join(pl_ps_worker *worker);
/* Stop joining: the task was interrupted. */
void pl_ps_worker_interrupt(pl_ps_worker *worker);

/* A step of dense parameters.  Whether these floats have arrived.  If not, the
 * wait for them begins or continues. */
bool pl_ps_worker_have(pl_ps_worker *worker, int64_t first, int64_t count);
/* Gradients are computed from float `from` on.  The first call of a step begins
 * its push; the gradient, of all floats, must not change until the commit is
 * done. */
void pl_ps_worker_ready(pl_ps_worker *worker, const float *grad, int64_t from);
/* More pieces than the window: acknowledgements must be read meanwhile. */
bool pl_ps_worker_windowed(const pl_ps_worker *worker);
/* The gradient is complete: wait for its outcome; with keyed parameters,
 * possibly for that of the previous one. */
void pl_ps_worker_commit(pl_ps_worker *worker);

/* A step of keyed parameters: ask, take, write the gradient, commit. */

/* Batches to request beyond the next one: 0 or 1. */
int pl_ps_worker_ahead(const pl_ps_worker *worker);
/* The batch to request next: the caller puts keys into it and cuts it. */
pl_key_batch *pl_ps_worker_next_batch(pl_ps_worker *worker);
/* Request it: `later`, with the commit; or now. */
void pl_ps_worker_ask(pl_ps_worker *worker, bool later);
/* Wait for the first batch that was requested and not taken. */
void pl_ps_worker_take(pl_ps_worker *worker);
/* The batch taken last, whose gradient goes with the next commit, and room for
 * that gradient; PL_NOMEM. */
const pl_key_batch *pl_ps_worker_taken(const pl_ps_worker *worker);
pl_status pl_ps_worker_gradient(pl_ps_worker *worker,
                                float **out) PL_MUST_CHECK;
/* The batch of a test, to be filled likewise; then ask and wait. */
pl_key_batch *pl_ps_worker_look_batch(pl_ps_worker *worker);
void pl_ps_worker_peek(pl_ps_worker *worker);
/* Read a range that one server holds. */
void pl_ps_worker_read(pl_ps_worker *worker, int64_t first, int64_t count,
                       float *to);

/* The chief is about to test or save: make the others wait as far as the mode
 * requires, and get the parameters to test. */
void pl_ps_worker_pause(pl_ps_worker *worker);
/* Which data share to read next (pl_ps_client_share). */
void pl_ps_worker_share(pl_ps_worker *worker, int64_t own, bool wait);
/* With opts.deals: get the deal of the data from `step` on, the first of
 * `epoch`.  Joining does this, too. */
void pl_ps_worker_deal(pl_ps_worker *worker, int64_t step, int64_t epoch);
const pl_deal *pl_ps_worker_dealt(const pl_ps_worker *worker,
                                  pl_workers *present);
/* The chief: write a checkpoint.  PL_AGAIN: skipped, since the previous one is
 * still being written; otherwise the outcome of the previous one.  `last`: wait
 * until it is written. */
void pl_ps_worker_save(pl_ps_worker *worker, bool last);
/* End the job for all workers. */
void pl_ps_worker_stop(pl_ps_worker *worker, const char *why);
/* Wait until no worker changes the parameters, and pull them. */
void pl_ps_worker_settle(pl_ps_worker *worker);
/* Say goodbye, with a report as JSON text that must stay valid until that is
 * done. */
void pl_ps_worker_leave(pl_ps_worker *worker, const char *report);
/* This task failed: notify the job, if it still listens. */
void pl_ps_worker_abort(pl_ps_worker *worker, const char *why);

/* The evaluator: wait for parameters of `step` or later.  Rejoins if
 * necessary. */
void pl_ps_worker_pull(pl_ps_worker *worker, int64_t step);

typedef struct pl_ps_worker_view {
    pl_ps_client_view client;
    bool over;          /* no more gradients are accepted */
    bool broken;        /* ... because a task was interrupted */
    bool gone;          /* server 0 was gone after this task had left */
    bool joining;       /* server `absent` has not answered since ... */
    int32_t absent;     /* ... -1: all have */
    int64_t joining_ns; /* ... this time */
    int64_t restored;   /* the chief, joining, gave the servers parameters of
                           this step; -1: they already had some */
    bool paused;        /* after a pause: the step may have changed */
    /* After a commit. */
    bool dropped; /* the gradient was not used */
    bool stop;    /* the job is over ... */
    bool unsent;  /* ... and ended before this gradient could be sent */
    int64_t drops;
    int64_t left_own; /* gradients of its share when it left */
} pl_ps_worker_view;
pl_ps_worker_view pl_ps_worker_look(const pl_ps_worker *worker);

#endif
