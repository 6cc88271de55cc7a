/* op.h - the interface of an operator.
 *
 * One file in ops/ exports one const pl_op: shape rule, forward, gradient and
 * the cases that tests and benchmarks run.  Adding an operator adds a file
 * and a line in PL_OP_LIST.
 *
 * Threads: operators are constant; run() works only on its arguments. */
#ifndef PL_GRAPH_OP_H
#define PL_GRAPH_OP_H

#include "kernels/backend.h"
#include "kernels/cpu/dnn.h"
#include "paceline/graph.h"

#include <stdbool.h>

#define PL_MAX_INPUTS 5

/* State shared by all operators of one execution. */
typedef struct pl_exec_state {
    const pl_kernels *kernels;
    int64_t rows;      /* examples, the size of PL_BATCH */
    float seed;        /* the gradient of the loss with respect to itself */
    uint64_t key;      /* of this batch's random numbers */
    int64_t first_row; /* of this execution's rows, in the whole batch */
    int threads;       /* available to an operator (pl_run_cut); 0 and 1: its
                          own only */
    bool training;     /* gradients follow */
} pl_exec_state;

/* One operator about to run. */
typedef struct pl_op_run {
    const pl_exec_state *state;
    const pl_node *node;
    bool lanes;   /* its batches are in lanes, padded to whole groups */
    bool blocked; /* its images are in blocks of channels */
    bool large;   /* large enough for run_large() */
    const pl_dnn_call *call; /* runs instead of the operator; or NULL */
    const pl_view *in[PL_MAX_INPUTS];
    float *out;
    float *workspace;          /* of this node, if requested */
    float *scratch;            /* likewise */
    const float *in_workspace; /* the workspace of input 0's node */
    /* For a gradient of dense weights: where to keep its factors and the scale
     * of its inputs; NULL: not kept. */
    float *factors, *factor_scale;
} pl_op_run;

typedef struct pl_op pl_op;

/* One set of input shapes.  An input whose first dimension is PL_BATCH holds
 * `batch` examples; other inputs are parameters. */
typedef struct pl_op_case {
    pl_shape inputs[PL_MAX_INPUTS]; /* rank 0 ends the list */
    pl_node *(*build)(pl_node *const *in);
    int32_t label_classes; /* > 0: the last input holds labels below this */
    int64_t batch;         /* size of PL_BATCH */
} pl_op_case;

typedef enum pl_op_layout {
    PL_OP_PLAIN, /* reads and writes row by row */
    PL_OP_LANES, /* reads and writes in lanes */
    PL_OP_ANY, /* follows its first batched input: writes the layout it reads */
} pl_op_layout;

struct pl_op {
    const char *name;
    int least_inputs, most_inputs;
    bool rowwise;  /* row r of the result depends only on row r of batches */
    bool alias;    /* the result is input 0's memory */
    bool training; /* without gradients it is the identity: left out */
    bool mixes;    /* rowwise, except in training unless the node is frozen */
    pl_op_layout layout;
    unsigned reads_views; /* bit i: input i may be uint8, indexed, scaled */
    unsigned in_place;    /* bit i: the result may overwrite input i */
    unsigned integers;    /* bit i: input i holds integers (labels) */

    /* Check the inputs, set node->shape.  The caller names the node. */
    pl_status (*shape)(pl_node *node);
    void (*run)(const pl_op_run *run); /* NULL: nothing to do */
    /* For large layers (graph/large.h), each optional: the same by oneDNN, as a
     * product, or prepared (fill in kind, sizes and bias). */
    void (*run_large)(const pl_op_run *run);
    int64_t (*scratch_large)(const pl_node *node, int64_t batch);
    void (*prepare)(const pl_node *node, pl_dnn_opts *opts);
    /* Likewise, in bfloat16, for a product that has run_large; false: not for
     * this node. */
    bool (*prepare_bf16)(const pl_node *node, pl_dnn_opts *opts);
    bool blocked; /* run() also supports blocked images */
    /* Floats kept with the result for the gradient; default none. */
    int64_t (*workspace)(const pl_node *node, int64_t batch);
    /* Floats needed only while it runs; default none. */
    int64_t (*scratch)(const pl_node *node, int lanes);
    /* Add nodes for the gradient of each input into diff_in[]; entries may
     * stay NULL.  Default: no gradient flows. */
    void (*gradient)(pl_node *node, pl_node *diff, pl_node **diff_in);
    /* Multiply-adds per example; default none. */
    int64_t (*multiply_adds)(const pl_node *node);

    const pl_op_case *cases; /* ended by one without build; may be NULL */
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
    /* Attributes; each is used by the operators it names. */
    float factor;              /* scale, dropout (the rate), normalization
                                  (epsilon), leaky_relu (the slope), losses */
    bool averaged;             /* parameter: a running average; factor is its
                                  rate */
    bool frozen;               /* batch_norm: use running averages only */
    int64_t stride, pad, size; /* convolution, pooling */
    int64_t classes;           /* labels: each is below this; 0: not known */
    int64_t mask;              /* dropout: number of its mask in the graph; row,
                                  concat, slice: the first */
    int axis;                  /* concat, slice */
    char *init;                /* parameter */
};

/* Number of elements of one example, or of all if not batched. */
int64_t pl_node_row(const pl_node *node);
/* A shape rule: the result has the shape of input 0. */
pl_status pl_node_same_shape(pl_node *node);
/* All elements in this run. */
int64_t pl_run_count(const pl_op_run *run, const pl_node *node);
/* Groups of lanes in this run. */
int64_t pl_run_groups(const pl_op_run *run);
/* The planes of images of `channels` channels in this run, one vector per
 * pixel: channels of a group of lanes, or blocks of channels of an example. */
int64_t pl_run_planes(const pl_op_run *run, int64_t channels);
/* Split 0 .. count-1 into ranges at multiples of `grain` and run them on the
 * threads of this execution; one range, on this thread, if there are no others
 * or the operator is small. */
#define PL_CUT 16 /* element by element: a cache line */
typedef void pl_run_range(const pl_op_run *run, int64_t first, int64_t count);
void pl_run_cut(const pl_op_run *run, int64_t count, int64_t grain,
                pl_run_range *range);
/* The same for an operator whose work is reading `node`. */
void pl_run_cut_over(const pl_op_run *run, const pl_node *node, int64_t count,
                     int64_t grain, pl_run_range *range);
/* Input i as float32, if the operator reads no views there. */
const float *pl_run_in(const pl_op_run *run, int i);

/* The sizes of a conv2d node, and its products for one example, the same number
 * in all three directions. */
pl_conv pl_conv2d_sizes(const pl_node *node);
int64_t pl_conv_products(const pl_conv *conv);

/* For a large inner_weights node: add its result to `out`; false: out of
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
