/* import.h - shared by the files that convert the operators of an ONNX file to
 * ours: the values of its graph, and the current node.
 *
 * A function for an operator gets the import with `node` and `in` set, and sets
 * one of the members of `out`.  Its error messages are about the node; the
 * caller prepends the node's name and operator.
 *
 * Threads: one thread. */
#ifndef PL_NN_ONNX_IMPORT_H
#define PL_NN_ONNX_IMPORT_H

#include "nn/model.h"
#include "proto/onnx.h"

#define PL_IMPORT_INPUTS 8 /* of a node */

/* Operators that older operator sets compose of several: GELU, with a gate
 * times * erf(x / sqrt(2)) + plus, and layer normalization. */
typedef enum pl_import_part {
    PL_IMPORT_WHOLE,     /* not part of a composed operator */
    PL_IMPORT_GATE,      /* of a GELU */
    PL_IMPORT_GATED,     /* x times the gate; a factor makes it a GELU */
    PL_IMPORT_MEAN,      /* over the last dimension */
    PL_IMPORT_CENTRED,   /* x less the mean */
    PL_IMPORT_SQUARE,    /* its square */
    PL_IMPORT_VARIANCE,  /* the mean of that, plus an epsilon */
    PL_IMPORT_DEVIATION, /* the square root of that */
    PL_IMPORT_NORMAL,    /* the centred value divided by that */
    PL_IMPORT_SCALED, /* multiplied by a weight; adding a shift completes it */
} pl_import_part;

/* A named value: the result of a node, a weight, a constant, or a list of sizes
 * computed from a shape. */
typedef struct pl_import_value {
    const char *name;
    pl_node *node;                /* NULL: not computed yet, or one of the
                                     others */
    const pl_onnx_tensor *tensor; /* a weight, or a constant */
    bool listed;                  /* `sizes` is set */
    int count;
    int64_t sizes[PL_ONNX_RANK]; /* PL_BATCH: the batch size */
    /* A part of an operator composed of several nodes. */
    pl_import_part part;
    pl_node *of;       /* the operator's input */
    float times, plus; /* of a gate; `plus` also the epsilon of a variance */
    pl_node *scale;    /* of a scaled value */
} pl_import_value;

typedef struct pl_import {
    pl_build *build;
    const pl_onnx_model *model;
    int64_t batch;           /* the file's own batch size; PL_BATCH: any */
    pl_import_value *values; /* by name */
    size_t value_count;
    /* The current node. */
    const pl_onnx_node *node;
    pl_import_value *in[PL_IMPORT_INPUTS]; /* NULL: omitted */
    pl_import_value *out;
} pl_import;

typedef struct pl_import_op {
    const char *name;
    pl_status (*read)(pl_import *im);
} pl_import_op;

/* NULL: not supported. */
const pl_import_op *pl_import_find(const char *name);
/* Tables of import_composed.c, import_norms.c, import_shapes.c and
 * import_windows.c, ended by an entry without a name. */
extern const pl_import_op pl_import_composed[], pl_import_norms[],
    pl_import_shapes[], pl_import_windows[];

/* Is one of the inputs part of a composed operator?  Then pl_import_compose
 * handles the node. */
bool pl_import_has_part(const pl_import *im);
pl_status pl_import_compose(pl_import *im) PL_MUST_CHECK;
/* ReduceMean over the last dimension. */
pl_status pl_import_mean(pl_import *im) PL_MUST_CHECK;

/* Build the graph of the file. */
pl_status pl_import_run(pl_import *im) PL_MUST_CHECK;

/* "conv1", or the name of its result if it has none. */
const char *pl_import_node_name(const pl_onnx_node *node);

/* Input i as a node; a weight becomes a parameter. */
pl_status pl_import_in(pl_import *im, int i, pl_node **out) PL_MUST_CHECK;
/* Input i as a vector, initialized with `init` unless values come from the
 * file; with a rate of 0 or more it is a running average (pl_statistic). */
pl_status pl_import_vector(pl_import *im, int i, const char *init, float rate,
                           pl_node **out) PL_MUST_CHECK;
/* Is input i a constant of one float? */
bool pl_import_is_scalar(const pl_import *im, int i);
/* Input i as a constant: integers, or one float. */
pl_status pl_import_sizes(const pl_import *im, int i, int64_t *sizes,
                          int *count) PL_MUST_CHECK;
pl_status pl_import_scalar(const pl_import *im, int i,
                           float *out) PL_MUST_CHECK;
bool pl_import_has(const pl_import *im, int i);

/* Attributes, with the default if the file has none. */
int64_t pl_import_int(const pl_import *im, const char *name, int64_t fallback);
float pl_import_float(const pl_import *im, const char *name, float fallback);
const char *pl_import_text(const pl_import *im, const char *name,
                           const char *fallback);
/* NULL: not in the file. */
const pl_onnx_attribute *pl_import_attribute(const pl_import *im,
                                             const char *name);
/* The common value of all integers of a list; PL_UNSUPPORTED if they differ. */
pl_status pl_import_same(const pl_import *im, const char *name,
                         int64_t fallback, int64_t *out) PL_MUST_CHECK;

#endif
