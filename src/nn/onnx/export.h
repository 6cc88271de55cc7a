/* export.h - a network with its parameters as an ONNX file.
 *
 * Threads: one thread; the network is only read. */
#ifndef PL_NN_ONNX_EXPORT_H
#define PL_NN_ONNX_EXPORT_H

#include "base/buffer.h"
#include "nn/model.h"

/* Append the file: the graph from the input to the logits, as computed outside
 * of training, and the parameters with their names.  A model that was read from
 * a file keeps the names and shape of its input and output, and its last
 * operator.  PL_UNSUPPORTED names an operator that ONNX lacks. */
pl_status pl_onnx_export(const pl_network *network,
                         pl_buffer *out) PL_MUST_CHECK;

#endif
