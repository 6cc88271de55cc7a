/* plan.h - a graph prepared to run: order, memory, then steps without
 * allocation.
 *
 * A plan decides what is computed, in which order, and where each result lies;
 * memory of results that are no longer needed is reused.  The memory that one
 * execution takes is known before any is allocated.  An execution (pl_exec) is
 * one set of that memory: parts of a batch run concurrently on several
 * executions of one plan.
 *
 * A plan with gradients is for training; without them, dropout changes nothing
 * and takes no time.
 *
 * Batches are not copied: an input is bound as a view and read in place by
 * operators that support views; for the others it is converted once.
 *
 * Threads: a plan is constant once made; an execution belongs to one thread at
 * a time. */
#ifndef PL_GRAPH_PLAN_H
#define PL_GRAPH_PLAN_H

#include "base/record/trace.h"
#include "graph/graph.h"

typedef struct pl_plan pl_plan;
typedef struct pl_exec pl_exec;

/* What computes convolutions and products: our kernels, with part of the batch
 * on each thread, or oneDNN, with all threads in one operator. */
typedef enum pl_world {
    PL_WORLD_AUTO, /* whichever is faster for these shapes */
    PL_WORLD_SMALL,
    PL_WORLD_LARGE, /* if these kernels have it (pl_dnn_usable) */
} pl_world;

typedef struct pl_plan_opts {
    const pl_graph *graph;     /* required; must outlive the plan */
    int64_t batch;             /* maximum rows of a run; required */
    const pl_kernels *kernels; /* default: the best of this processor */
    pl_node *const *outputs;   /* computed and kept until the next run */
    int output_count;
    pl_node *const *diff; /* of each parameter, NULL: none; or no list */
    int diff_count;
    bool no_fusing; /* every operator is a separate step */
    pl_world world;
    bool bf16;   /* the large world rounds the factors of products to bfloat16;
                    only if pl_dnn_has_bf16 */
    int threads; /* of one operator in the large world; default 1 */
} pl_plan_opts;

typedef struct pl_plan_memory {
    int64_t bytes;          /* of one execution, besides parameters */
    int64_t unshared_bytes; /* bytes without reuse */
    int64_t multiply_adds;  /* of one example, over the whole plan */
    int steps;
    bool large;        /* one execution uses all threads: do not split */
    int64_t row_group; /* rows computed together: split batches there */
} pl_plan_memory;

pl_status pl_plan_new(pl_plan **out, const pl_plan_opts *opts) PL_MUST_CHECK;
void pl_plan_free(pl_plan *plan); /* NULL is fine */
pl_plan_memory pl_plan_measure(const pl_plan *plan);

/* Memory for one execution.  `params` are read; the gradients are written to
 * `grads`, a set of the same layout (NULL if the plan has none).  Both belong
 * to the caller and outlive the execution. */
pl_status pl_exec_new(pl_exec **out, const pl_plan *plan,
                      const pl_params *params,
                      const pl_params *grads) PL_MUST_CHECK;
/* The same in the memory of `host`, if that is large enough: the results of one
 * are lost when the other runs.  The host outlives the guest; NULL is fine. */
pl_status pl_exec_new_in(pl_exec **out, const pl_plan *plan,
                         const pl_params *params, const pl_params *grads,
                         const pl_exec *host) PL_MUST_CHECK;
void pl_exec_free(pl_exec *exec); /* NULL is fine */

/* Write the gradients of later runs to `grads`, a set like the one given to
 * pl_exec_new.  In the large world only to that one: operations were prepared
 * for its memory. */
void pl_exec_bind(pl_exec *exec, const pl_params *grads);

/* The gradient of dense weights is a product of two thin matrices, its factors:
 * the gradients of the outputs [rows, outputs] and the inputs [rows, inputs].
 * Kept factors are consecutive; inputs that are read through a view are kept
 * without its scale. */
typedef struct pl_factor_sizes {
    int64_t outputs, inputs;
} pl_factor_sizes;

/* false: `diff`, the gradient of a parameter, is not such a product. */
bool pl_plan_factors(const pl_node *diff, pl_factor_sizes *out);
/* Keep the factors of `diff` in later runs at `to`, and, unless `scale` is
 * NULL, the scale of the inputs at `scale`: 1 if there is no view. */
void pl_exec_keep_factors(pl_exec *exec, const pl_node *diff, float *to,
                          float *scale);
/* The gradient [outputs, inputs] that this execution would have computed from
 * these factors, bit for bit.  Not while a run is in progress. */
void pl_exec_multiply(const pl_exec *exec, const pl_node *diff, int64_t rows,
                      const float *factors, float scale, float *out);
/* Add it to `out`, in one pass, if oneDNN computes it; false: nothing was
 * written.  The library may split the rows and add partial products, which
 * changes the last bits. */
bool pl_exec_multiply_add(const pl_exec *exec, const pl_node *diff,
                          int64_t rows, const float *factors, float scale,
                          float *out);

/* Supply parameters and take gradients while a run is in progress.  Both are
 * called by the running thread, once per parameter, including those that no
 * step reads or that have no gradient.  If one fails the run ends. */
typedef struct pl_exec_hooks {
    pl_status (*need)(void *context, int param); /* the parameter is about to be
                                                    read */
    pl_status (*ready)(void *context, int param); /* its gradient is done */
    void *context;
    pl_status status; /* out: of the last call */
} pl_exec_hooks;

typedef struct pl_exec_args {
    int64_t rows;         /* 1 .. the plan's batch */
    const pl_view *views; /* one per input of the graph, in order */
    float seed;           /* the gradient of the loss: this part's share */
    uint64_t key;         /* of random numbers: one per batch */
    int64_t first_row;    /* of this part in the batch, so that parts differ */
    pl_exec_hooks *hooks; /* of a plan with gradients; or NULL */
    void (*finished)(void *context); /* called after each operator; or NULL */
    void *finished_context;
    pl_trace *trace; /* may be NULL */
    int lane;        /* of the trace */
    int64_t step;    /* for the trace */
} pl_exec_args;

void pl_exec_run(pl_exec *exec, const pl_exec_args *args);

/* Output number `index`, valid until the next run. */
const float *pl_exec_output(const pl_exec *exec, int index);

#endif
