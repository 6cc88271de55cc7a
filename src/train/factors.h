/* factors.h - gradients of dense layers as their factors.
 *
 * The gradient of a dense layer's weights over a batch is a product of two thin
 * matrices: the gradients of its outputs [rows, outputs] and its inputs [rows,
 * inputs].  If workers exchange these instead, each multiplies and adds the
 * others' factors itself: fewer bytes, the same bits (after Zhang et al.,
 * "Poseidon", 2017).
 *
 * A block of factors holds one worker's part of one gradient:
 *
 *   [0]          the factor of clipping, 1 where nothing was clipped
 *   [1 + layer]  the scale of that layer's inputs (pl_exec_keep_factors)
 *   [first of a layer ...]  for each part of the batch computed separately,
 *                its output gradients, then its inputs
 *
 * Threads: filled by the computing threads; otherwise one. */
#ifndef PL_TRAIN_FACTORS_H
#define PL_TRAIN_FACTORS_H

#include "graph/plan.h"
#include "nn/model.h"

typedef struct pl_factor_layer {
    int param;
    pl_factor_sizes sizes;
    int64_t first; /* offset in a block */
} pl_factor_layer;

typedef struct pl_factors {
    int64_t rows; /* of the batch */
    int count;
    pl_factor_layer *layers;
    int64_t floats; /* of a block */
    float *own;     /* the block of this worker's last gradient */

    /* Set by the computation (pl_compute_opts.factors): the gradient of a layer
     * from a block, before clipping; `room` has as many floats as the gradient,
     * and is used if needs_room. */
    void (*multiply)(const void *source, int layer, const float *block,
                     float *room, float *out);
    bool needs_room;
    /* Add the product to `sum` as it is formed; false: not possible, and
     * nothing was written.  The caller must test that the bits equal those of a
     * product added afterwards (sync/allreduce/factors.c). */
    bool (*multiply_add)(const void *source, int layer, const float *block,
                         float *sum);
    const void *source;
    char arithmetic[96]; /* what its bits depend on, besides the kernels */
} pl_factors;

/* The link between two workers.  On a slower link more products pay. */
typedef enum pl_link_class {
    PL_LINK_UNKNOWN,
    PL_LINK_FAST, /* memory, or more than 10 Gbit/s */
    PL_LINK_10G,
    PL_LINK_1G,
    PL_LINK_SLOW,  /* 100 Mbit/s and less */
    PL_LINK_BYTES, /* only bytes count */
} pl_link_class;
pl_link_class pl_link_class_of(double bytes_per_second);

/* Bytes per step that the busiest link carries for the layer, as factors and as
 * the full gradient. */
int64_t pl_factors_bytes(const pl_factor_layer *layer, int64_t rows,
                         int32_t workers);
int64_t pl_factors_plain_bytes(const pl_factor_layer *layer, int32_t workers);
/* Time for a rank to multiply the others' factors, at nominal speeds. */
double pl_factors_seconds(const pl_factor_layer *layer, int64_t rows,
                          int32_t workers);
/* Is the layer's exchange faster by factors?  Decided from shapes and nominal
 * speeds only, so that all workers and all runs agree. */
bool pl_factors_pay(const pl_factor_layer *layer, int64_t rows, int32_t workers,
                    pl_link_class link);

/* For all layers that take fewer bytes as factors; *out is NULL if there are
 * none. */
pl_status pl_factors_new(pl_factors **out, const pl_network *network,
                         int64_t rows, int32_t workers) PL_MUST_CHECK;
void pl_factors_free(pl_factors *factors); /* NULL is fine */

#endif
