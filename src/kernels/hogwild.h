/* hogwild.h - gradient descent, example by example, on a shared table.
 *
 * Threads read and write the table without locks (Niu, Recht, Re and Wright
 * 2011): sparse examples seldom meet.  The hottest weights would meet all the
 * time, and their cache lines would travel between the cores more than they
 * are used; so each thread has a copy of the first weights of the table,
 * where data that is numbered by frequency has its hottest, and of the bias.
 * From time to time it is merged with the table.
 *
 * Threads: one pl_hogwild each; merging is the caller's to serialize. */
#ifndef PL_KERNELS_HOGWILD_H
#define PL_KERNELS_HOGWILD_H

#include "kernels/sparse.h"

typedef struct pl_hogwild {
    float *table; /* of all threads */
    float *hot;   /* this thread's first weights */
    int64_t hot_count;
    float bias;       /* this thread's */
    int64_t features; /* of the table */
    float lr, l1, l2;
    uint64_t wrong; /* an id beyond the table, where rows were left off */
    double loss;    /* the sum so far, each example's before its update... */
    int64_t right;  /* ... and how many were answered right */
} pl_hogwild;

/* One update for each of the rows first .. first+count-1, in order; none from
 * a row on that has an id beyond the table. */
void pl_hogwild_rows(pl_hogwild *h, const pl_rows *rows, const pl_view *labels,
                     int64_t first, int64_t count);

/* Copy the first weights of the table. */
void pl_hogwild_fetch(int64_t count, const float *shared, float *own,
                      float *base);

/* Merge a thread's copy with the table: weights that no other thread has
 * changed since `base` are taken over, changed ones become the average.  All
 * three are equal then.  (To add up the changes of all threads would be too
 * much: within an item each moves the hottest weights all the way to where the
 * data wants them, and the sum lies as far beyond.) */
void pl_hogwild_merge(int64_t count, float *shared, float *own, float *base);

#endif
