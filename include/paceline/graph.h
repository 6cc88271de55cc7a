/* graph.h - a model as a graph of operators.
 *
 * Operators are added by plain calls; each returns the node of its result.  The
 * shape of every result is checked immediately.  After the first error every
 * later call returns NULL, and pl_graph_status() reports which node was wrong
 * and why, so a model need not check each call.
 *
 * Nodes belong to their graph and live as long as it.  A tensor with one value
 * per example has PL_BATCH as its first dimension.
 *
 * Threads: a graph is built by one thread. */
#ifndef PACELINE_GRAPH_H
#define PACELINE_GRAPH_H

#include <paceline/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct pl_graph pl_graph;
typedef struct pl_node pl_node;

/* PL_OK, or the first error with its message. */
pl_status pl_graph_status(const pl_graph *graph) PL_MUST_CHECK;

/* The values of a batch, bound at every step.  Numbers arrive as float32
 * whatever the data set stores; labels are PL_INT32. */
pl_node *pl_input(pl_graph *graph, const char *name, pl_dtype dtype,
                  pl_shape shape);

/* A trained parameter.  `init` sets its first values: zeros, ones, uniform:A
 * (in -A .. A), normal:S (standard deviation S), glorot, he. */
pl_node *pl_parameter(pl_graph *graph, const char *name, pl_shape shape,
                      const char *init);

/* A running average over batches, which no gradient changes: each update moves
 * it by `rate`, 0 .. 1, of the way to the value that its operator computed for
 * the batch.  A rate of 0 keeps it unchanged.  All statistics of a model have
 * one rate. */
pl_node *pl_statistic(pl_graph *graph, const char *name, pl_shape shape,
                      const char *init, float rate);

/* Rename a node; its default name is the operator and a number. */
pl_node *pl_named(pl_node *node, const char *name);
pl_shape pl_node_shape(const pl_node *node);

/* src [n, k], weights [m, k], bias [m] or NULL -> [n, m]: a dense layer. */
pl_node *pl_inner(pl_node *src, pl_node *weights, pl_node *bias);

/* a [n, k], b [k, m] -> [n, m]; nt: b is [m, k]; tn: a is [k, n]. */
pl_node *pl_matmul(pl_node *a, pl_node *b);
pl_node *pl_matmul_nt(pl_node *a, pl_node *b);
pl_node *pl_matmul_tn(pl_node *a, pl_node *b);

/* Add bias [c] to the last dimension of src. */
pl_node *pl_bias(pl_node *src, pl_node *bias);

pl_node *pl_relu(pl_node *src);
pl_node *pl_tanh(pl_node *src);
pl_node *pl_sigmoid(pl_node *src);
pl_node *pl_gelu(pl_node *src); /* exact, not by tanh */
/* Negative numbers times `slope`, 0 or more. */
pl_node *pl_leaky_relu(pl_node *src, float slope);

/* a + b, a * b.  Shapes are aligned at the last dimension: a dimension of size
 * 1, or a missing one, is repeated. */
pl_node *pl_add(pl_node *a, pl_node *b);
pl_node *pl_multiply(pl_node *a, pl_node *b);
/* src repeated to `shape` by that rule. */
pl_node *pl_broadcast(pl_node *src, pl_shape shape);
/* a and b side by side along dimension `axis`, from 1 on. */
pl_node *pl_concat(pl_node *a, pl_node *b, int axis);
pl_node *pl_scale(pl_node *src, float factor);

/* In training each element is dropped (0) with probability `rate`, in 0 .. 1
 * without 1, or kept and multiplied by 1 / (1 - rate); otherwise nothing
 * changes.  What is dropped depends on the seed, the step, the batch, the
 * node and the element alone.  A rate of 0 adds nothing. */
pl_node *pl_dropout(pl_node *src, float rate);

/* The same elements in another shape; the batch stays in front. */
pl_node *pl_reshape(pl_node *src, pl_shape shape);
/* [a, b, c, ...] -> [a, b * c * ...] */
pl_node *pl_flatten(pl_node *src);

/* Images src [batch, channels, height, width], weights [outs, channels,
 * kernel, kernel], bias [outs] or NULL; `pad` zeros on every side. */
pl_node *pl_conv2d(pl_node *src, pl_node *weights, pl_node *bias,
                   int64_t stride, int64_t pad);

/* The largest, or the mean, of each size x size window, every `stride`
 * pixels. */
pl_node *pl_max_pool(pl_node *src, int64_t size, int64_t stride);
pl_node *pl_avg_pool(pl_node *src, int64_t size, int64_t stride);

/* src [n, channels, ...], the others [channels]: each channel minus its mean,
 * divided by its standard deviation, sqrt(variance + epsilon), times `scale`,
 * plus `shift`.  In training, mean and variance are those of the batch,
 * separately for each worker and micro-batch; `mean` and `variance` are
 * statistics that follow them and replace them in tests, and in training where
 * their rate is 0. */
pl_node *pl_batch_norm(pl_node *src, pl_node *scale, pl_node *shift,
                       pl_node *mean, pl_node *variance, float epsilon);

/* Images [batch, channels, height, width] -> the mean of each channel [batch,
 * channels]; the images with `pad` zeros on every side. */
pl_node *pl_global_avg_pool(pl_node *src);
pl_node *pl_pad(pl_node *src, int64_t pad);

/* src [n, ..., c], the others [c]: each row of the last dimension minus its
 * mean, divided by its standard deviation, sqrt(variance + epsilon), times
 * `scale`, plus `shift`. */
pl_node *pl_layer_norm(pl_node *src, pl_node *scale, pl_node *shift,
                       float epsilon);

/* ids [n, ...], whole numbers, table [rows, width] -> [n, ..., width]: rows of
 * the table.  An id that is out of range gives NaN. */
pl_node *pl_embedding(pl_node *ids, pl_node *table);

/* Probabilities over the last dimension; for a loss see pl_softmax_xent. */
pl_node *pl_softmax(pl_node *src);

/* Labels [n] as numbers [n], and as [n, classes]: 1 at the label, 0
 * elsewhere. */
pl_node *pl_label_number(pl_node *labels);
pl_node *pl_one_hot(pl_node *labels, int64_t classes);

/* The loss of each example [n] from two batches of numbers [n, ...], the mean
 * over its elements: (p - t)^2; half of that within `delta`, linear beyond; the
 * cross-entropy of logits and probabilities. */
pl_node *pl_squared_error(pl_node *prediction, pl_node *target);
pl_node *pl_huber(pl_node *prediction, pl_node *target, float delta);
pl_node *pl_binary_xent(pl_node *logits, pl_node *target);

/* logits [n, classes], labels [n] -> the loss of each example [n]. */
pl_node *pl_softmax_xent(pl_node *logits, pl_node *labels);
/* The same where the target is 1 - smoothing at the label and smoothing /
 * classes everywhere. */
pl_node *pl_softmax_xent_smooth(pl_node *logits, pl_node *labels,
                                float smoothing);
/* 1 where the largest logit is the label's, otherwise 0 -> [n]; no gradient. */
pl_node *pl_accuracy(pl_node *logits, pl_node *labels);

/* Over all elements -> a scalar. */
pl_node *pl_mean(pl_node *src);
pl_node *pl_sum(pl_node *src);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
