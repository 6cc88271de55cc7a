/* import.h - what the files that turn the operators of an ONNX file into ours
 * share: the values of its graph, and the node that is being read.
 *
 * A function for an operator gets the import with `node` and `in` set, and sets
 * one of the members of `out`.  What it refuses is a sentence about the node,
 * whose name and operator are put in front.
 *
 * Threads: one. */
#ifndef PL_NN_ONNX_IMPORT_H
#define PL_NN_ONNX_IMPORT_H

#include "nn/model.h"
#include "proto/onnx.h"

#define PL_IMPORT_INPUTS 8 /* of a node */

/* What older operator sets compose of several operators: a GELU, of a gate
 * times * erf(x / sqrt(2)) + plus, and layer normalization. */
typedef enum pl_import_part {
    PL_IMPORT_WHOLE,     /* none: a value by itself */
    PL_IMPORT_GATE,      /* of a GELU */
    PL_IMPORT_GATED,     /* x times that; a factor makes it a GELU */
    PL_IMPORT_MEAN,      /* over the last dimension */
    PL_IMPORT_CENTRED,   /* less that */
    PL_IMPORT_SQUARE,    /* of that */
    PL_IMPORT_VARIANCE,  /* plus an epsilon */
    PL_IMPORT_DEVIATION, /* the root of that */
    PL_IMPORT_NORMAL,    /* what is centred over that */
    PL_IMPORT_SCALED,    /* times a weight; a shift ends it */
} pl_import_part;

/* A named value: the result of a node, a weight, a constant, or a list of
 * sizes that was computed from a shape. */
typedef struct pl_import_value {
    const char *name;
    pl_node *node;                /* NULL: not yet, or one of the others */
    const pl_onnx_tensor *tensor; /* a weight, or a constant */
    bool listed;                  /* the sizes below count */
    int count;
    int64_t sizes[PL_ONNX_RANK]; /* PL_BATCH: that of the batch */
    /* A part of an operator that is composed of several. */
    pl_import_part part;
    pl_node *of;       /* what the operator is applied to */
    float times, plus; /* of a gate; `plus`: the epsilon of a variance */
    pl_node *scale;    /* of what is scaled */
} pl_import_value;

typedef struct pl_import {
    pl_build *build;
    const pl_onnx_model *model;
    int64_t batch;           /* the file's own batch size; PL_BATCH: any */
    pl_import_value *values; /* by name */
    size_t value_count;
    /* The node at hand. */
    const pl_onnx_node *node;
    pl_import_value *in[PL_IMPORT_INPUTS]; /* NULL: left out */
    pl_import_value *out;
} pl_import;

typedef struct pl_import_op {
    const char *name;
    pl_status (*read)(pl_import *im);
} pl_import_op;

/* NULL: we lack it. */
const pl_import_op *pl_import_find(const char *name);
/* Tables of import_composed.c, import_norms.c, import_shapes.c and
 * import_windows.c, ended by one without a name. */
extern const pl_import_op pl_import_composed[], pl_import_norms[],
    pl_import_shapes[], pl_import_windows[];

/* One of the inputs is part of a composed operator: pl_import_compose reads the
 * node. */
bool pl_import_has_part(const pl_import *im);
pl_status pl_import_compose(pl_import *im) PL_MUST_CHECK;
/* ReduceMean over the last dimension. */
pl_status pl_import_mean(pl_import *im) PL_MUST_CHECK;

/* Build the graph of the file. */
pl_status pl_import_run(pl_import *im) PL_MUST_CHECK;

/* "conv1", or what the node makes where it has no name. */
const char *pl_import_node_name(const pl_onnx_node *node);

/* Input i as a node; a weight becomes a parameter. */
pl_status pl_import_in(pl_import *im, int i, pl_node **out) PL_MUST_CHECK;
/* Input i as a vector that starts as `init` where it does not start as in the
 * file; with a rate of 0 or more it is a running average (pl_statistic). */
pl_status pl_import_vector(pl_import *im, int i, const char *init, float rate,
                           pl_node **out) PL_MUST_CHECK;
/* Input i is a constant of one float. */
bool pl_import_is_scalar(const pl_import *im, int i);
/* Input i as a constant of integers or of one float. */
pl_status pl_import_sizes(const pl_import *im, int i, int64_t *sizes,
                          int *count) PL_MUST_CHECK;
pl_status pl_import_scalar(const pl_import *im, int i,
                           float *out) PL_MUST_CHECK;
bool pl_import_has(const pl_import *im, int i);

/* Attributes, with what they are where the file has none. */
int64_t pl_import_int(const pl_import *im, const char *name, int64_t fallback);
float pl_import_float(const pl_import *im, const char *name, float fallback);
const char *pl_import_text(const pl_import *im, const char *name,
                           const char *fallback);
/* NULL: the file has none. */
const pl_onnx_attribute *pl_import_attribute(const pl_import *im,
                                             const char *name);
/* The one value that all integers of a list have; PL_UNSUPPORTED when they
 * differ. */
pl_status pl_import_same(const pl_import *im, const char *name,
                         int64_t fallback, int64_t *out) PL_MUST_CHECK;

#endif
