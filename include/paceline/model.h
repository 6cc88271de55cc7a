/* model.h - models by name, and models built at run time.
 *
 * A C program usually defines its model as a pl_model (paceline/nn.h).  The
 * alternative is a pl_net: a list of layers that is built by calls, for
 * programs that choose their layers at run time, and for other languages.
 *
 *     pl_net *net;
 *     pl_net_new(&net, "mine");
 *     pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_DENSE, .units = 64 });
 *     pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_RELU });
 *     pl_net_add(net, &(pl_layer) { .kind = PL_LAYER_DENSE });
 *
 * A layer reads the result of the previous layer, or of the layers it names, so
 * lists may branch.  Shapes are checked when the data is known: at the start of
 * a training.
 *
 * Threads: a net is built by one thread; then any may use it.  It must live
 * until the trainings and predictions that use it have been freed. */
#ifndef PACELINE_MODEL_H
#define PACELINE_MODEL_H

#include <paceline/nn.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Built-in model number `index`, from 0; NULL after the last. */
const pl_model *pl_model_builtin(int32_t index);

typedef struct pl_net pl_net;

/* What a layer does with x, the result of `src`. */
typedef enum pl_layer_kind {
    PL_LAYER_DENSE,  /* x (flattened) by weights [units, ...] and a bias; units
                        0: one per class */
    PL_LAYER_CONV2D, /* `units` filters of kernel x kernel over images
                        [channels, height, width]; [height, width] is taken
                        as one channel */
    PL_LAYER_RELU,
    PL_LAYER_TANH,
    PL_LAYER_SIGMOID,
    PL_LAYER_MAX_POOL, /* kernel x kernel windows, every `stride` pixels */
    PL_LAYER_AVG_POOL,
    PL_LAYER_FLATTEN,
    PL_LAYER_RESHAPE,       /* to `shape`, without the batch */
    PL_LAYER_DROPOUT,       /* with probability `rate`, in training only */
    PL_LAYER_ADD,           /* x + the result of `other`; where one has size 1
                               it is repeated */
    PL_LAYER_SCALE,         /* x * rate */
    PL_LAYER_CROSS_ENTROPY, /* x as logits, against the labels: one value per
                               example; `rate` smooths the labels */
    PL_LAYER_MEAN,          /* over all elements: a scalar */
    PL_LAYER_SUM,
    PL_LAYER_MULTIPLY,   /* x * the result of `other`, as ADD */
    PL_LAYER_CONCAT,     /* x and the result of `other` side by side: in
                            channels, or in the first dimension */
    PL_LAYER_LEAKY_RELU, /* negative numbers times `rate` */
    PL_LAYER_GELU,
    PL_LAYER_SOFTMAX,         /* over the last dimension */
    PL_LAYER_BATCH_NORM,      /* of each channel, pl_batch_norm_layer */
    PL_LAYER_LAYER_NORM,      /* over the last dimension */
    PL_LAYER_GLOBAL_AVG_POOL, /* the mean of each channel */
    PL_LAYER_EMBEDDING,       /* whole numbers below `units` as rows of a table,
                                 each of `width` numbers */
    /* One value per example, from x and the labels.  Class labels are converted
     * to numbers: 1 at the class, 0 elsewhere. */
    PL_LAYER_SQUARED_ERROR,
    PL_LAYER_HUBER,                /* linear beyond `rate`; default 1 */
    PL_LAYER_BINARY_CROSS_ENTROPY, /* x as logits */
    PL_LAYER_KINDS
} pl_layer_kind;

#define PL_LAYER_INPUT (-1) /* as `src`: the examples */

typedef struct pl_layer {
    int32_t kind;     /* of pl_layer_kind */
    int32_t src;      /* number of the layer it reads, as returned by
                         pl_net_add; default (0): the previous layer, for the
                         first the input */
    int32_t other;    /* ADD, MULTIPLY, CONCAT: the second operand;
                         PL_LAYER_INPUT is fine */
    const char *name; /* of its parameters: "name/weights", "name/bias"; default
                         "dense1", "conv2": kind and number. Duplicate names are
                         refused */
    int64_t units;
    int64_t kernel;
    int64_t stride; /* default 1; pooling: kernel */
    int64_t pad;    /* CONV2D: zeros on every side; default 0 */
    int64_t width;  /* EMBEDDING */
    double rate;    /* DROPOUT, SCALE and where it is named above */
    pl_shape shape; /* RESHAPE */
} pl_layer;

/* The name goes into records and checkpoints: without "/", and not the name of
 * a built-in model. */
pl_status pl_net_new(pl_net **out, const char *name) PL_MUST_CHECK;
void pl_net_free(pl_net *net); /* NULL is fine */

/* Append a layer.  Returns its number, from 1, or 0 after an error, which
 * pl_net_status reports. */
int32_t pl_net_add(pl_net *net, const pl_layer *layer);
pl_status pl_net_status(const pl_net *net) PL_MUST_CHECK;

/* The layer whose result is the logits, [classes] for each example.  Default:
 * the last one. */
pl_status pl_net_set_logits(pl_net *net, int32_t layer) PL_MUST_CHECK;
/* The layer to be minimized: a scalar.  Default: the mean of the cross-entropy
 * of the logits.  PL_USAGE before pl_net_set_logits. */
pl_status pl_net_set_loss(pl_net *net, int32_t layer) PL_MUST_CHECK;

/* The net as a model, which lives as long as the net; for pl_app_main and every
 * other function that takes a pl_model. */
const pl_model *pl_net_model(const pl_net *net);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
