/* client.h - the logic of a task that talks to parameter servers, without
 * input or output: the counterpart of core.h.
 *
 * One request at a time goes to all servers (or to server 0 alone): it is
 * begun, messages arrive until it is done, and ticks resend what was lost.
 * Pieces of a gradient are sent as soon as they are ready; pieces of the
 * parameters are stored as soon as they arrive.
 *
 * Threads: one client, one thread. */
#ifndef PL_SYNC_PS_WORKER_CLIENT_H
#define PL_SYNC_PS_WORKER_CLIENT_H

#include "base/clock.h"
#include "base/json/json.h"
#include "net/endpoint.h"
#include "sync/codec.h"
#include "sync/ps/messages/protocol.h"
#include "sync/ps/worker/key_batch.h"
#include "train/loop/deal.h"
#include "train/loop/due.h"

typedef struct pl_ps_client pl_ps_client;

typedef struct pl_ps_client_ops {
    void (*send)(void *context, int32_t ps, const pl_frame *frame,
                 const void *payload, bool lasting);
    /* Optional: our offer of shared memory to server `ps`, and its answer. */
    void (*offer)(void *context, int32_t ps, char offer[PL_OFFER_BYTES]);
    void (*shared)(void *context, int32_t ps, const char *answer);
} pl_ps_client_ops;

typedef struct pl_ps_client_opts {
    const char *role; /* "worker", "evaluator" */
    int32_t index;    /* of a worker: the chief is number 0 */
    int32_t ps;
    int32_t workers;
    pl_ps_mode mode;
    int64_t count;               /* floats of the whole block */
    int64_t piece;               /* floats; default PL_PIECE_FLOATS */
    float *params;               /* [count]; receives pulled parameters; NULL:
                                    sparse, requested by keys */
    int64_t trained;             /* running averages begin here; 0: none */
    double average_rate;         /* ... and their rate */
    int64_t table_first;         /* sparse: the table's place in the block */
    int64_t table_count;         /* ... and its size; 0: dense */
    const pl_codec *codec;       /* of dense gradients; default plain */
    float *encoded;              /* [count] for encoded pieces, if the codec
                                    does not send the gradient itself */
    uint8_t *messages;           /* sparse: shared memory for sent messages */
    size_t message_bytes;        /* of `messages` */
    int64_t end_step, run_steps; /* for servers, which do not know them */
    pl_due_steps tests;          /* the chief's, if they affect training */
    const pl_json *settings;     /* or NULL */
    uint64_t job;                /* its number, if already known; or 0 */
    const char *run; /* the chief's: its run folder, for the others; or NULL */
    const char *host;
    int64_t process;
    int64_t started_ms; /* since boot: of two processes the later one is the
                           task */
    char boot[PL_BOOT_ID];
    const pl_ps_client_ops *ops;
    void *context;
} pl_ps_client_opts;

pl_status pl_ps_client_new(pl_ps_client **out, const pl_ps_client_opts *opts,
                           int64_t now_ns) PL_MUST_CHECK;
void pl_ps_client_free(pl_ps_client *client); /* may be NULL */

/* Handle a message of server `ps`. */
void pl_ps_client_receive(pl_ps_client *client, int32_t ps,
                          const pl_message *message, int64_t now_ns);
void pl_ps_client_tick(pl_ps_client *client, int64_t now_ns);

/* Requests; none may be under way.  Joining comes first. */
void pl_ps_client_join(pl_ps_client *client);
void pl_ps_client_init(pl_ps_client *client, int64_t step);
void pl_ps_client_pull(pl_ps_client *client, unsigned flags, int64_t step);
/* The gradient must not change until the answer is complete. */
void pl_ps_client_push(pl_ps_client *client, int64_t step, const float *grad);
/* Floats from `from` on are final and may be sent; 0: all. */
void pl_ps_client_ready(pl_ps_client *client, int64_t from);

/* The same for sparse parameters.  A batch of keys, with its room for values,
 * must stay valid until the request is done, that of a gradient until the next
 * request is; `want` may be NULL. */
void pl_ps_client_fill(pl_ps_client *client, int64_t step, const char *text);
void pl_ps_client_ask(pl_ps_client *client, unsigned flags, int64_t step,
                      pl_key_batch *want);
void pl_ps_client_push_keys(pl_ps_client *client, int64_t step,
                            const pl_key_batch *of, const float *grad,
                            pl_key_batch *want);
/* Read a range of the block that one server holds, at any step. */
void pl_ps_client_read(pl_ps_client *client, int64_t first, int64_t count,
                       float *to);

void pl_ps_client_pause(pl_ps_client *client);
/* Stop all workers between two gradients, so that all servers save the same
 * state; then let them continue. */
void pl_ps_client_freeze(pl_ps_client *client);
void pl_ps_client_thaw(pl_ps_client *client);
/* Between these two: all servers begin to write their shards.  Plans and texts
 * must stay valid until the request is done. */
void pl_ps_client_save(pl_ps_client *client, int64_t step, const char *plan);
/* Get the outcome of the last save (view.saved), now or when it has ended. */
void pl_ps_client_look_saved(pl_ps_client *client, bool wait);
/* Instead of init: all servers read their shards of a checkpoint of `step`,
 * which includes these gradients of each worker. */
void pl_ps_client_load(pl_ps_client *client, int64_t step,
                       const int64_t *counts, const char *plan);
/* Ask server 0 which data share to read next (view.share), after `count`
 * gradients of the own one.  `wait`: until a share is available, or all others
 * are done. */
void pl_ps_client_share(pl_ps_client *client, int64_t count, bool wait);
/* sync: ask server 0 for the deal of the data from this step on, the first of
 * an epoch; -1: for the current deal. */
void pl_ps_client_deal(pl_ps_client *client, int64_t step, int64_t epoch);
void pl_ps_client_stop(pl_ps_client *client, bool failed, const char *why);
void pl_ps_client_bye(pl_ps_client *client, const char *report);

bool pl_ps_client_busy(const pl_ps_client *client);
/* Whether server 0 has answered the push or pull; parameters may still
 * follow. */
bool pl_ps_client_answered(const pl_ps_client *client);
/* Whether these floats of the parameters have arrived. */
bool pl_ps_client_have(const pl_ps_client *client, int64_t first,
                       int64_t count);
/* The server that holds the first missing one of these floats, or -1. */
int32_t pl_ps_client_missing(const pl_ps_client *client, int64_t first,
                             int64_t count);
/* Joining: the first server that did not answer, or -1. */
int32_t pl_ps_client_absent(const pl_ps_client *client);
/* At any time: notify server 0, once, that this task failed. */
void pl_ps_client_abort(pl_ps_client *client, const char *why);
/* The first server whose answer is not complete, or -1. */
int32_t pl_ps_client_awaited(const pl_ps_client *client);
/* More pieces than the window: acknowledgements must be read. */
bool pl_ps_client_windowed(const pl_ps_client *client);

typedef struct pl_ps_client_view {
    uint32_t incarnation; /* 0: not joined */
    uint32_t generation;
    uint64_t job;
    const char *run;       /* the chief's run folder; NULL: unknown */
    int64_t step;          /* the job's, from server 0's last answer */
    int64_t made;          /* applied gradients of this worker */
    int64_t own;           /* applied gradients of its share, by any worker */
    bool initialized;      /* all servers have parameters, according to server
                              0 */
    unsigned answer;       /* PL_ANSWER_ of the last push or pull */
    const char *report;    /* after bye: all reports, for the chief */
    int64_t dropped;       /* with it: gradients dropped in the whole job */
    int64_t update_ns;     /* ... and from the first update to the last */
    double coding_seconds; /* spent encoding gradients */
    int32_t share;         /* after share: the owner, and... */
    int64_t share_own;     /* ... how many gradients of it were applied */
    pl_saved saved;        /* of the last save... */
    const char *why;       /* ... if it failed */
} pl_ps_client_view;
pl_ps_client_view pl_ps_client_look(const pl_ps_client *client);

/* After deal: the deal, and which workers are present. */
const pl_deal *pl_ps_client_dealt(const pl_ps_client *client,
                                  pl_workers *present);

/* The gradients of each worker, after freeze. */
const int64_t *pl_ps_client_counts(const pl_ps_client *client);

/* A server was lost: rejoin with pl_ps_client_join. */
bool pl_ps_client_rolled(const pl_ps_client *client);

/* PL_OK, or why the task cannot continue: refused, or the job failed. */
pl_status pl_ps_client_outcome(const pl_ps_client *client) PL_MUST_CHECK;

#endif
