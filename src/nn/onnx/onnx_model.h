/* onnx_model.h - a model that is read from an ONNX file.
 *
 * The graph of the file becomes a pl_model: its operators become ours, its
 * initializers the parameters, under their names and with their values where
 * --init does not ask for others.  A last Softmax is left out, since the loss
 * is computed from what goes into it.
 *
 * Threads: opened and freed by one; its model may be used by any meanwhile. */
#ifndef PL_NN_ONNX_ONNX_MODEL_H
#define PL_NN_ONNX_ONNX_MODEL_H

#include "nn/model.h"

#define PL_ONNX_ENDING "onnx" /* of the names of files */

typedef struct pl_onnx_net pl_onnx_net;

typedef struct pl_onnx_net_opts {
    const char *path; /* required */
    const char *name; /* of the model; default: the end of the path */
    bool no_weights;  /* what is in files beside this one is not read: the
                         parameters come from a checkpoint */
    const void *data; /* the file's bytes; NULL: read it */
    size_t bytes;
} pl_onnx_net_opts;

/* Read the file.  PL_UNSUPPORTED names every node whose operator we lack. */
pl_status pl_onnx_net_new(pl_onnx_net **out,
                          const pl_onnx_net_opts *opts) PL_MUST_CHECK;
void pl_onnx_net_free(pl_onnx_net *net); /* NULL is fine */

/* As long as the net. */
const pl_model *pl_onnx_net_model(const pl_onnx_net *net);

/* The file's last operator, where it was left out ("Softmax"), and how its
 * input and output are called; "": it has none. */
typedef struct pl_onnx_ends {
    const char *input, *output, *last;
} pl_onnx_ends;
/* Of a model that was read from a file. */
pl_onnx_ends pl_onnx_net_ends(const pl_model *model);

/* True when a word is the name of such a file, not of a model. */
bool pl_onnx_is_file(const char *word);

#endif
