/* onnx_model.h - a model that is read from an ONNX file.
 *
 * The graph of the file becomes a pl_model: its operators become ours, its
 * initializers the parameters, with their names, and with their values unless
 * --init is given.  A last Softmax is left out, since the loss is computed from
 * its input.
 *
 * Threads: opened and freed by one thread; in between any thread may use its
 * model. */
#ifndef PL_NN_ONNX_ONNX_MODEL_H
#define PL_NN_ONNX_ONNX_MODEL_H

#include "nn/model.h"

#define PL_ONNX_ENDING "onnx" /* file name extension */

typedef struct pl_onnx_net pl_onnx_net;

typedef struct pl_onnx_net_opts {
    const char *path; /* required */
    const char *name; /* of the model; default: the last part of the path */
    bool no_weights;  /* do not read external files: the parameters come from a
                         checkpoint */
    const void *data; /* the file's bytes; NULL: read it */
    size_t bytes;
} pl_onnx_net_opts;

/* Read the file.  PL_UNSUPPORTED names every node with an unsupported
 * operator. */
pl_status pl_onnx_net_new(pl_onnx_net **out,
                          const pl_onnx_net_opts *opts) PL_MUST_CHECK;
void pl_onnx_net_free(pl_onnx_net *net); /* NULL is fine */

/* Valid as long as the net. */
const pl_model *pl_onnx_net_model(const pl_onnx_net *net);

/* The file's last operator if it was left out ("Softmax"; "": none), and the
 * names of its input and output. */
typedef struct pl_onnx_ends {
    const char *input, *output, *last;
} pl_onnx_ends;
/* For a model that was read from a file. */
pl_onnx_ends pl_onnx_net_ends(const pl_model *model);

/* Is a word the name of such a file, rather than of a model? */
bool pl_onnx_is_file(const char *word);

#endif
