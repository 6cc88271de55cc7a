/* channels.h - work channel by channel on batches of any layout.
 *
 * A batch [n, channels, ...] has the numbers of one channel in many places:
 * spans, if the layout keeps pixels of one channel contiguous, or columns, if
 * it keeps channels contiguous.  Normalization is independent of that.
 *
 * Threads: any, on disjoint channels. */
#ifndef PL_GRAPH_CHANNELS_H
#define PL_GRAPH_CHANNELS_H

#include "graph/op.h"

typedef struct pl_channels {
    const pl_kernels *kernels;
    int64_t rows, channels;
    int64_t pixels; /* of one channel of an example */
    int64_t lanes;
    bool in_lanes; /* examples are contiguous */
    bool blocked;  /* channels are contiguous */
} pl_channels;

/* For a batch of this shape in this run. */
pl_channels pl_channels_of(const pl_op_run *run, pl_shape shape);

/* Numbers per channel in this run. */
int64_t pl_channels_numbers(const pl_channels *c);
/* Ranges of channels must begin at multiples of this. */
int64_t pl_channels_grain(const pl_channels *c);
/* Floats in a list with one number per channel, as used below: padded to whole
 * vectors, where a blocked layout reads zeros. */
int64_t pl_channels_room(int64_t channels);

/* sums[i] = the sum of (a - a_less) (b - b_less) over channel first + i.  The
 * lists have a number for each channel; NULL: 0.  b NULL: 1. */
void pl_channels_products(const pl_channels *c, int64_t first, int64_t count,
                          const float *a, const float *a_less, const float *b,
                          const float *b_less, double *sums);

/* dst = a * a_factor + b * b_factor + add over channels from `first` on; b may
 * be NULL, dst may be a source.  Padding of the layout becomes zero. */
void pl_channels_blend(const pl_channels *c, int64_t first, int64_t count,
                       const float *a, const float *a_factor, const float *b,
                       const float *b_factor, const float *add, float *dst);

#endif
