/* hogwild.h - gradient descent, example by example, on a shared table.
 *
 * Threads read and write the table without locks (Niu, Recht, Re and Wright
 * 2011): sparse examples seldom conflict.  The hottest weights would conflict
 * all the time, and their cache lines would move between cores more often than
 * they are used.  So each thread has a copy of the bias and of the first
 * weights of the table, the hottest ones if ids are numbered by frequency.  The
 * copy is merged with the table from time to time.
 *
 * Threads: one pl_hogwild each; the caller serializes merges. */
#ifndef PL_KERNELS_HOGWILD_H
#define PL_KERNELS_HOGWILD_H

#include "kernels/sparse.h"

typedef struct pl_hogwild {
    float *table; /* shared by all threads */
    float *hot;   /* this thread's copy of the first weights */
    int64_t hot_count;
    float bias;       /* this thread's */
    int64_t features; /* of the table */
    float lr, l1, l2;
    uint64_t wrong; /* an id beyond the table, at which rows stopped */
    double loss;    /* sum over examples, each before its update... */
    int64_t right;  /* ... and the number of right answers */
} pl_hogwild;

/* One update for each of the rows first .. first+count-1, in order, up to the
 * first row that has an id beyond the table. */
void pl_hogwild_rows(pl_hogwild *h, const pl_rows *rows, const pl_view *labels,
                     int64_t first, int64_t count);

/* Copy the first weights of the table. */
void pl_hogwild_fetch(int64_t count, const float *shared, float *own,
                      float *base);

/* Merge a thread's copy with the table: weights that no other thread has
 * changed since `base` are taken from the copy, changed ones become the
 * average.  All three are equal afterwards.  (Adding up the changes of all
 * threads would overshoot: within an item each thread moves the hottest weights
 * all the way to their optimum.) */
void pl_hogwild_merge(int64_t count, float *shared, float *own, float *base);

#endif
