/* steps.h - predicts how long a training step takes on a cluster.
 *
 * The model replays the dependencies of one step: the forward pass waits for
 * parameters layer by layer, gradients leave in backward order while the rest
 * is computed, links and servers carry one transfer after another, and the
 * update waits for the last gradient.  docs/performance.md has the formulas.
 *
 *   single     input, forward, backward, update
 *   allreduce  buckets go round a ring, 2 (N - 1) / N of their bytes by each
 *              link; then each worker makes the update.  With local steps only
 *              the last step of a round has sums: of parameters and slots
 *   ps sync    all gradients of a step, one update, the answers
 *   ps async   workers share links and servers without waiting for each other
 *   ps ssp     likewise, at the pace of the slowest worker in the long run
 *
 * Placement is that of launch: worker i and server i on host i mod hosts.  With
 * `apart` the servers have separate hosts.  Links are full duplex, one per
 * host; tasks on one host exchange data in memory.
 *
 * Times are in seconds, sizes in bytes.
 *
 * Pure: no input, no output, no clock.
 *
 * Threads: any. */
#ifndef PL_OBSERVE_STEPS_STEPS_H
#define PL_OBSERVE_STEPS_STEPS_H

#include "paceline/base.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The computation and traffic of one layer on a worker. */
typedef struct pl_step_layer {
    double forward_s, backward_s;
    double push_bytes; /* of the gradient */
    double pull_bytes; /* of the parameters sent back */
} pl_step_layer;

/* One step of a worker, measured without other tasks. */
typedef struct pl_step_work {
    const pl_step_layer *layers; /* in forward order; borrowed */
    size_t layer_count;
    bool whole;      /* parameters are needed before the first layer, and
                        gradients are sent only after the last one is done */
    double input_s;  /* reading the batch */
    double update_s; /* the optimizer over all parameters, once */
    double add_s;    /* adding one whole gradient to another */
} pl_step_work;

typedef struct pl_step_net {
    double bytes_per_s;       /* of a host's link, in each direction; 0:
                                 unlimited */
    double local_bytes_per_s; /* between tasks of one host; 0: unlimited */
    double latency_s;         /* one way */
    double message_s;         /* of a processor, per message */
    double byte_s;            /* of a processor, per byte, at both ends */
} pl_step_net;

typedef enum pl_step_strategy {
    PL_STEP_SINGLE,
    PL_STEP_ALLREDUCE,
    PL_STEP_SYNC,
    PL_STEP_ASYNC,
    PL_STEP_SSP,
} pl_step_strategy;

typedef struct pl_step_job {
    pl_step_strategy strategy;
    int32_t workers, servers; /* servers: of ps */
    int32_t hosts;            /* of the workers; default: one per worker */
    bool apart;               /* servers have separate hosts */
    int32_t cores;            /* per host; 0: tasks never compete for them */
    int32_t threads;          /* per worker; default 1 */
    int32_t local_steps;      /* allreduce: steps that a worker makes
                                 independently between two means; default 1,
                                 sums of gradients in each step */
    int32_t planes;           /* that are averaged: parameters, and slots of the
                                 optimizer; default 1 */
    /* A straggler; 0: none. */
    double slowdown;         /* factor of its computing time */
    double stall_s;          /* time that it pauses in each step */
    double slow_bytes_per_s; /* of its link */
} pl_step_job;

/* The largest cost of a step: without it, the step would be shortest. */
typedef enum pl_step_limit {
    PL_STEP_COMPUTE,
    PL_STEP_INPUT,
    PL_STEP_UPDATE,      /* by the workers themselves */
    PL_STEP_LINK,        /* of all hosts */
    PL_STEP_SERVER_LINK, /* of the servers' hosts only */
    PL_STEP_SERVER,      /* the servers' processors */
    PL_STEP_LATENCY,
    PL_STEP_STRAGGLER, /* the worker that differs */
    PL_STEP_LIMITS,
} pl_step_limit;
extern const char *const pl_step_limit_names[PL_STEP_LIMITS + 1];

typedef struct pl_step_time {
    double step_s;          /* between two gradients of one worker */
    double gradients_per_s; /* of all workers */
    double link_bytes;      /* per step of a worker, in the busier direction of
                               the busiest host link */
    pl_step_limit limit;
    double gain[PL_STEP_LIMITS]; /* factor in gradients/s at no such cost */
} pl_step_time;

/* Fails only with PL_NOMEM. */
pl_status pl_step_predict(pl_step_time *out, const pl_step_work *work,
                          const pl_step_net *net,
                          const pl_step_job *job) PL_MUST_CHECK;
/* The same without `limit` and `gain`, at an eighth of the cost. */
pl_status pl_step_replay(pl_step_time *out, const pl_step_work *work,
                         const pl_step_net *net,
                         const pl_step_job *job) PL_MUST_CHECK;

#endif
