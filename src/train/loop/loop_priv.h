/* loop_priv.h - shared by the files of the training loop.
 *
 * course.c       decides the next act
 * loop.c         performs the acts, from joining to leaving
 * loop_setup.c   builds a loop
 * loop_step.c    steps
 * loop_watch.c   detects a loss that explodes
 * loop_sparse.c  additions for steps of sparse models
 * loop_share.c   data shares of lost workers, in own pace
 * loop_deal.c    the same in lock step
 * loop_save.c    checkpoints
 * evaluate.c     tests and histograms */
#ifndef PL_TRAIN_LOOP_LOOP_PRIV_H
#define PL_TRAIN_LOOP_LOOP_PRIV_H

#include "base/host/steal.h"
#include "base/record/histogram.h"
#include "train/compute/aggregate.h"
#include "train/compute/ahead.h"
#include "train/compute/sparse_sum.h"
#include "train/loop/loop.h"
#include "train/recorder.h"

typedef enum pl_loop_phase {
    PL_LOOP_INPUT,
    PL_LOOP_COMPUTE,
    PL_LOOP_SEND,
    PL_LOOP_WAIT,
    PL_LOOP_PHASES,
} pl_loop_phase;

typedef struct pl_loop {
    const pl_loop_opts *opts;
    pl_loop_result *result;
    pl_reader *reader;
    pl_compute *compute;
    pl_compute *computed;      /* computed the last step's gradient */
    pl_compute *scorer;        /* NULL without a test set */
    pl_aggregator *aggregator; /* NULL: gradients are applied directly */
    pl_factors *factors;       /* requested by the sync; or NULL */
    pl_sparse_sum sum;         /* the same for a table with micro-batches... */
    float bias_sum;            /* ... and for its bias */
    pl_ahead *ahead;           /* NULL: batches are read one at a time */
    bool stream;           /* parameters and gradients are exchanged during the
                              computation */
    bool *done;            /* per parameter: this step's gradient is done */
    int needed;            /* parameters used by this step */
    int left;              /* gradients yet to be handed over */
    pl_course course;      /* decides the next act */
    pl_reader *other;      /* reads another worker's share; or NULL */
    pl_deal deal;          /* in lock step: the current deal... */
    pl_workers present;    /* ... the workers that make steps ... */
    bool deals;            /* ... whether there is ... */
    pl_deal next_deal;     /* ... another deal, from its step on; or whether
                              it... */
    bool asks;             /* ... is requested at the end of each epoch... */
    int64_t asked_step;    /* ... and was last, at this step */
    int32_t rank, ranks;   /* of the open reader */
    int64_t next_read;     /* step of the batch that the reader yields next */
    int32_t micro_batches; /* per gradient */
    int64_t grad_examples; /* likewise */
    int64_t update_examples; /* per update */
    int64_t epoch_updates;   /* per pass of all workers; 0: not known */
    pl_recorder recorder;
    pl_batch batch; /* of the last training step */
    uint64_t phase_ticks[PL_LOOP_PHASES];
    double throttled_s;     /* before training (base/host/group.h) */
    pl_steal steal;         /* likewise */
    uint64_t own_ticks;     /* of all phases but waiting, before this step */
    pl_histogram own_steps; /* seconds per step without waiting */
    uint64_t mark;          /* end of the last phase */
    uint64_t paused;        /* when the job was last paused */
    uint64_t save_begun;    /* when the last checkpoint was begun... */
    bool late;              /* ... and whether it was reported as late */
    double held;            /* seconds of tests since the last step */
    double usual_loss;      /* of an untrained model; 0: no step yet */
    bool warned;            /* that the loss exploded */
    int64_t restored;       /* step found when joining, or rolled back to */
    int64_t before;         /* step at which a server was lost; -1: none */
} pl_loop;

/* loop.c */
double pl_loop_seconds(uint64_t ticks);
/* Count the time since the last mark as `phase`. */
void pl_loop_spent(pl_loop *l, pl_loop_phase phase);
/* ... up to that time. */
void pl_loop_spent_until(pl_loop *l, pl_loop_phase phase, uint64_t ticks);
/* The job is at `step` now. */
void pl_loop_arrive(pl_loop *l, int64_t step);
/* The reader of the last batch is about to be freed: record what needs it. */
void pl_loop_forget_batch(pl_loop *l);
/* Seconds of training so far. */
double pl_loop_trained(const pl_loop *l);
/* Fill in the result from the training so far. */
void pl_loop_sum_up(pl_loop *l);

/* loop_setup.c */
pl_status pl_loop_open(pl_loop *l) PL_MUST_CHECK;
void pl_loop_close(pl_loop *l);
/* Steps of this worker per epoch. */
int64_t pl_loop_steps_per_epoch(const pl_loop *l);

/* loop_step.c */
pl_status pl_loop_step(pl_loop *l) PL_MUST_CHECK;
/* All parameters are about to be read. */
pl_status pl_loop_need_all(pl_loop *l) PL_MUST_CHECK;
/* Read the next batch into l->batch. */
pl_status pl_loop_next_batch(pl_loop *l) PL_MUST_CHECK;
/* In lock step, move the reader to the batch of the step, whatever was
 * dropped. */
void pl_loop_align_reader(pl_loop *l);
/* The gradient of the last step, as handed over. */
const float *pl_loop_gradient(const pl_loop *l, int param,
                              const pl_keys **keys);

/* loop_watch.c */
/* After a step was recorded: warn, once, if the loss explodes. */
void pl_loop_watch(pl_loop *l, double loss);

/* loop_save.c */
pl_status pl_loop_save_best(pl_loop *l) PL_MUST_CHECK;
pl_status pl_loop_save(pl_loop *l) PL_MUST_CHECK;
pl_status pl_loop_save_last(pl_loop *l) PL_MUST_CHECK;

/* evaluate.c */
pl_status pl_loop_test(pl_loop *l, bool last) PL_MUST_CHECK;
pl_status pl_loop_histograms(pl_loop *l) PL_MUST_CHECK;

/* loop_share.c */
/* Request a share to continue with, and read it. */
pl_status pl_loop_share(pl_loop *l) PL_MUST_CHECK;
/* Return to the worker's own share, without a request. */
void pl_loop_share_end(pl_loop *l);

/* loop_deal.c */
/* Move the reader to the batch of this step. */
void pl_loop_go(pl_loop *l, int64_t step);
/* Set which workers make steps from here on, as reported on joining. */
pl_status pl_loop_deal_join(pl_loop *l, const pl_standing *at) PL_MUST_CHECK;
/* Before the batch of `step` is read: switch to another deal if it is due. */
pl_status pl_loop_deal_step(pl_loop *l, int64_t step) PL_MUST_CHECK;

/* loop_sparse.c */
/* Are the parameters of a sparse model remote? */
bool pl_loop_elsewhere(const pl_loop_opts *opts);
/* Are batches read ahead? */
bool pl_loop_reads_ahead(const pl_loop_opts *opts);
/* PL_UNSUPPORTED: an option is not available for sparse models. */
pl_status pl_loop_check_sparse(const pl_loop_opts *opts) PL_MUST_CHECK;
/* Fetch the weights at the keys of l->batch. */
pl_status pl_loop_need_keys(pl_loop *l) PL_MUST_CHECK;
/* In lock step, discard batches read ahead for another step. */
pl_status pl_loop_align_ahead(pl_loop *l) PL_MUST_CHECK;
/* Make this step's batch, read ahead, l->batch. */
pl_status pl_loop_take_ahead(pl_loop *l) PL_MUST_CHECK;
/* Before the commit, which carries the keys of the next batch. */
pl_status pl_loop_next_ahead(pl_loop *l) PL_MUST_CHECK;
/* Are gradients of micro-batches summed by keys? */
bool pl_loop_sums(const pl_loop *l);
/* Add the last gradient to the sum. */
pl_status pl_loop_sum_put(pl_loop *l, int32_t micro_batch) PL_MUST_CHECK;
/* The gradient of a parameter in the sum. */
const float *pl_loop_sum(const pl_loop *l, int param, const pl_keys **keys);

#endif
