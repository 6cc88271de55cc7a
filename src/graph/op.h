/* op.h - what an operator is.
 *
 * One file in ops/ exports one const pl_op: shape rule, forward, gradient and
 * the cases that tests and benchmarks run.  Adding an operator adds a file
 * and a line in PL_OP_LIST.
 *
 * Threads: operators are constant; run() works only on what it is given. */
#ifndef PL_GRAPH_OP_H
#define PL_GRAPH_OP_H

#include "kernels/backend.h"
#include "kernels/cpu/dnn.h"
#include "paceline/graph.h"

#include <stdbool.h>

#define PL_MAX_INPUTS 5

/* What is the same for all operators of one execution. */
typedef struct pl_exec_state {
    const pl_kernels *kernels;
    int64_t rows;      /* examples, the size of PL_BATCH */
    float seed;        /* the gradient of the loss with respect to itself */
    uint64_t key;      /* of what is random in this batch */
    int64_t first_row; /* of these rows in the whole batch */
    int threads;       /* an operator may use (pl_run_cut); 0 and 1: its own */
    bool training;     /* gradients follow */
} pl_exec_state;

/* One operator about to run. */
typedef struct pl_op_run {
    const pl_exec_state *state;
    const pl_node *node;
    bool lanes;   /* its batches lie in lanes: rows are filled up to groups */
    bool blocked; /* its images lie in blocks of channels */
    bool large;   /* worth run_large() */
    const pl_dnn_call *call; /* runs in place of the operator; or NULL */
    const pl_view *in[PL_MAX_INPUTS];
    float *out;
    float *workspace;          /* this node's, where it asked for one */
    float *scratch;            /* likewise */
    const float *in_workspace; /* the workspace of input 0's node */
    /* Of a gradient of dense weights: where its factors, and the scale of its
     * inputs, are kept; NULL: nowhere. */
    float *factors, *factor_scale;
} pl_op_run;

typedef struct pl_op pl_op;

/* One set of input shapes.  An input whose first dimension is PL_BATCH holds
 * `batch` examples; the others are parameters. */
typedef struct pl_op_case {
    pl_shape inputs[PL_MAX_INPUTS]; /* rank 0 ends the list */
    pl_node *(*build)(pl_node *const *in);
    int32_t label_classes; /* > 0: the last input holds labels below it */
    int64_t batch;         /* where an input has PL_BATCH */
} pl_op_case;

typedef enum pl_op_layout {
    PL_OP_PLAIN, /* reads and writes row after row */
    PL_OP_LANES, /* reads and writes in lanes */
    PL_OP_ANY,   /* follows its first batched input: writes as it reads */
} pl_op_layout;

struct pl_op {
    const char *name;
    int least_inputs, most_inputs;
    bool rowwise;  /* row r of the result needs row r of batches only */
    bool alias;    /* the result is input 0's memory */
    bool training; /* where no gradient is computed, the same: it is left
                      out */
    bool mixes;    /* rowwise, but in training, unless the node is frozen */
    pl_op_layout layout;
    unsigned reads_views; /* bit i: input i may be uint8, indexed, scaled */
    unsigned in_place;    /* bit i: the result may overwrite input i */
    unsigned integers;    /* bit i: input i holds integers (labels) */

    /* Check the inputs, set node->shape.  The caller names the node. */
    pl_status (*shape)(pl_node *node);
    void (*run)(const pl_op_run *run); /* NULL: nothing to do */
    /* For large layers (graph/large.h), each optional: the same by oneDNN,
     * as a product, or prepared (fill in kind, sizes and bias). */
    void (*run_large)(const pl_op_run *run);
    int64_t (*scratch_large)(const pl_node *node, int64_t batch);
    void (*prepare)(const pl_node *node, pl_dnn_opts *opts);
    /* Likewise of a product that has run_large, in bfloat16; false: not of
     * this one. */
    bool (*prepare_bf16)(const pl_node *node, pl_dnn_opts *opts);
    bool blocked; /* run() reads and writes blocked images as well */
    /* Floats kept beside the result for the gradient; default none. */
    int64_t (*workspace)(const pl_node *node, int64_t batch);
    /* Floats needed while it runs only; default none. */
    int64_t (*scratch)(const pl_node *node, int lanes);
    /* Add nodes for the gradient of each input into diff_in[]; entries may
     * stay NULL.  Default: no gradient flows. */
    void (*gradient)(pl_node *node, pl_node *diff, pl_node **diff_in);
    /* Multiplications with additions of one example; default none. */
    int64_t (*multiply_adds)(const pl_node *node);

    const pl_op_case *cases; /* ended by one with no build; may be NULL */
};

struct pl_node {
    pl_graph *graph;
    const pl_op *op;
    char *name;
    int id; /* position in the graph: inputs come first */
    pl_dtype dtype;
    pl_shape shape;
    int input_count;
    pl_node *in[PL_MAX_INPUTS];
    /* Attributes; each belongs to the operators that say so. */
    float factor;              /* scale, dropout (the rate), normalization
                                  (epsilon), leaky_relu (the slope), losses */
    bool averaged;             /* parameter: a running average; factor is its
                                  rate */
    bool frozen;               /* batch_norm: by running averages only */
    int64_t stride, pad, size; /* convolution, pooling */
    int64_t classes;           /* labels: each is below this; 0: not known */
    int64_t mask;              /* dropout: which of the graph's masks; row,
                                  concat, slice: the first */
    int axis;                  /* concat, slice */
    char *init;                /* parameter */
};

/* Number of elements of one example, or of all when not batched. */
int64_t pl_node_row(const pl_node *node);
/* A shape rule: the result is like input 0. */
pl_status pl_node_same_shape(pl_node *node);
/* All elements in this run. */
int64_t pl_run_count(const pl_op_run *run, const pl_node *node);
/* Groups of lanes in this run. */
int64_t pl_run_groups(const pl_op_run *run);
/* The planes of images of `channels` channels in this run, a vector a pixel:
 * channels of a group of lanes, or blocks of channels of an example. */
int64_t pl_run_planes(const pl_op_run *run, int64_t channels);
/* Cut 0 .. count-1 into ranges at multiples of `grain` and run them on the
 * threads of this execution; one range, on this thread, where it has one or
 * the operator is small. */
#define PL_CUT 16 /* element by element: a cache line */
typedef void pl_run_range(const pl_op_run *run, int64_t first, int64_t count);
void pl_run_cut(const pl_op_run *run, int64_t count, int64_t grain,
                pl_run_range *range);
/* The same for an operator whose work is that of reading `node`. */
void pl_run_cut_over(const pl_op_run *run, const pl_node *node, int64_t count,
                     int64_t grain, pl_run_range *range);
/* Input i as float32, where the operator reads no views there. */
const float *pl_run_in(const pl_op_run *run, int i);

/* The sizes of a conv2d node, and its products for one example, which are as
 * many in all three directions. */
pl_conv pl_conv2d_sizes(const pl_node *node);
int64_t pl_conv_products(const pl_conv *conv);

/* An inner_weights node that is large: add its result to `out`; false: no
 * memory, nothing was written. */
bool pl_inner_weights_add(const pl_op_run *run);

extern const pl_op pl_op_input, pl_op_parameter, pl_op_seed;
#define PL_OP_LIST(X)                                                          \
    X(accuracy)                                                                \
    X(add)                                                                     \
    X(avg_pool)                                                                \
    X(avg_pool_grad)                                                           \
    X(batch_moments)                                                           \
    X(batch_norm)                                                              \
    X(batch_norm_src)                                                          \
    X(batch_norm_sums)                                                         \
    X(bias)                                                                    \
    X(binary_xent)                                                             \
    X(binary_xent_grad)                                                        \
    X(binary_xent_target)                                                      \
    X(broadcast)                                                               \
    X(broadcast_sum)                                                           \
    X(concat)                                                                  \
    X(conv2d)                                                                  \
    X(conv2d_bias)                                                             \
    X(conv2d_src)                                                              \
    X(conv2d_weights)                                                          \
    X(crop)                                                                    \
    X(dropout)                                                                 \
    X(embedding)                                                               \
    X(embedding_table)                                                         \
    X(gelu)                                                                    \
    X(gelu_grad)                                                               \
    X(global_avg_pool)                                                         \
    X(global_avg_pool_grad)                                                    \
    X(huber)                                                                   \
    X(huber_grad)                                                              \
    X(inner)                                                                   \
    X(inner_weights)                                                           \
    X(label_number)                                                            \
    X(layer_norm)                                                              \
    X(layer_norm_scale)                                                        \
    X(layer_norm_src)                                                          \
    X(leaky_relu)                                                              \
    X(leaky_relu_grad)                                                         \
    X(matmul)                                                                  \
    X(matmul_nt)                                                               \
    X(matmul_tn)                                                               \
    X(max_pool)                                                                \
    X(max_pool_grad)                                                           \
    X(mean)                                                                    \
    X(multiply)                                                                \
    X(one_hot)                                                                 \
    X(pad)                                                                     \
    X(relu)                                                                    \
    X(relu_grad)                                                               \
    X(reshape)                                                                 \
    X(row)                                                                     \
    X(scale)                                                                   \
    X(sigmoid)                                                                 \
    X(sigmoid_grad)                                                            \
    X(slice)                                                                   \
    X(smooth_xent)                                                             \
    X(smooth_xent_grad)                                                        \
    X(softmax)                                                                 \
    X(softmax_grad)                                                            \
    X(softmax_xent)                                                            \
    X(softmax_xent_grad)                                                       \
    X(spread)                                                                  \
    X(squared_error)                                                           \
    X(squared_error_grad)                                                      \
    X(sum)                                                                     \
    X(sum_rows)                                                                \
    X(tanh)                                                                    \
    X(tanh_grad)
#define PL_OP_EXTERN(name) extern const pl_op pl_op_##name;
PL_OP_LIST(PL_OP_EXTERN)
#undef PL_OP_EXTERN

#endif
