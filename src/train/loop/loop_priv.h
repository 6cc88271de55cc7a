/* loop_priv.h - what the files of the training loop share.
 *
 * course.c       what a training does next
 * loop.c         doing it, from joining to leaving
 * loop_setup.c   what a loop is made of
 * loop_step.c    steps
 * loop_watch.c   a loss that explodes
 * loop_sparse.c  what those of sparse models need beside
 * loop_share.c   the shares of workers that are gone, in own pace
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
    pl_compute *computed;      /* what made the gradient of the last step */
    pl_compute *scorer;        /* NULL without a test set */
    pl_aggregator *aggregator; /* NULL: gradients are applied as they come */
    pl_factors *factors;       /* that the sync wants; or NULL */
    pl_sparse_sum sum;         /* the same for a table with micro-batches... */
    float bias_sum;            /* ... and for its bias */
    pl_ahead *ahead;           /* NULL: one batch is read after the other */
    bool stream;           /* parameters and gradients come and go on the way */
    bool *done;            /* one per parameter: this step's gradient is */
    int needed;            /* parameters that this step has */
    int left;              /* gradients that are still to be handed over */
    pl_course course;      /* what is done next */
    pl_reader *other;      /* of another's share, read now; or NULL */
    pl_deal deal;          /* in lock step: whose share is read now... */
    pl_workers present;    /* ... who makes steps ... */
    bool deals;            /* ... and whether there is ... */
    pl_deal next_deal;     /* ... another deal, from its step on; or it... */
    bool asks;             /* ... is asked for at the end of each epoch... */
    int64_t asked_step;    /* ... and was, at this step */
    int32_t rank, ranks;   /* of the open reader */
    int64_t next_read;     /* the step whose batch the reader gives next */
    int32_t micro_batches; /* of one gradient */
    int64_t grad_examples; /* likewise */
    int64_t update_examples; /* of one update */
    int64_t epoch_updates;   /* in one pass of all workers; 0: not known */
    pl_recorder recorder;
    pl_batch batch; /* the last one of training */
    uint64_t phase_ticks[PL_LOOP_PHASES];
    double throttled_s;     /* before training (base/host/group.h) */
    pl_steal steal;         /* likewise */
    uint64_t own_ticks;     /* of these all but waiting, before this step */
    pl_histogram own_steps; /* seconds of a step without waiting */
    uint64_t mark;          /* end of the last phase */
    uint64_t paused;        /* when the job was last */
    uint64_t save_begun;    /* when the last checkpoint was... */
    bool late;              /* ... and that it takes long was said */
    double held;            /* seconds of tests since the last step */
    double usual_loss; /* of a model that has learned nothing; 0: no step yet */
    bool warned;       /* that the loss is far beyond it */
    int64_t restored;  /* the step that joining found, or went back to */
    int64_t before;    /* the step at which a server was lost; -1: none was */
} pl_loop;

/* loop.c */
double pl_loop_seconds(uint64_t ticks);
/* The time since the last mark was spent in `phase`. */
void pl_loop_spent(pl_loop *l, pl_loop_phase phase);
/* ... until then. */
void pl_loop_spent_until(pl_loop *l, pl_loop_phase phase, uint64_t ticks);
/* The job is at `step` now. */
void pl_loop_arrive(pl_loop *l, int64_t step);
/* The reader of the last batch goes: record what needs it. */
void pl_loop_forget_batch(pl_loop *l);
/* Seconds of training so far, in all. */
double pl_loop_trained(const pl_loop *l);
/* What was made so far becomes the result. */
void pl_loop_sum_up(pl_loop *l);

/* loop_setup.c */
pl_status pl_loop_open(pl_loop *l) PL_MUST_CHECK;
void pl_loop_close(pl_loop *l);
/* Steps of this worker in an epoch, as the run counts them. */
int64_t pl_loop_steps_per_epoch(const pl_loop *l);

/* loop_step.c */
pl_status pl_loop_step(pl_loop *l) PL_MUST_CHECK;
/* All parameters are about to be read. */
pl_status pl_loop_need_all(pl_loop *l) PL_MUST_CHECK;
/* Read the next batch to l->batch. */
pl_status pl_loop_next_batch(pl_loop *l) PL_MUST_CHECK;
/* In lock step the batch belongs to the step, whatever was dropped. */
void pl_loop_align_reader(pl_loop *l);
/* The gradient of the last step as it is handed over. */
const float *pl_loop_gradient(const pl_loop *l, int param,
                              const pl_keys **keys);

/* loop_watch.c */
/* After a step was recorded: warn, once, when the loss explodes. */
void pl_loop_watch(pl_loop *l, double loss);

/* loop_save.c */
pl_status pl_loop_save_best(pl_loop *l) PL_MUST_CHECK;
pl_status pl_loop_save(pl_loop *l) PL_MUST_CHECK;
pl_status pl_loop_save_last(pl_loop *l) PL_MUST_CHECK;

/* evaluate.c */
pl_status pl_loop_test(pl_loop *l, bool last) PL_MUST_CHECK;
pl_status pl_loop_histograms(pl_loop *l) PL_MUST_CHECK;

/* loop_share.c */
/* Ask whose share to read on, and read it. */
pl_status pl_loop_share(pl_loop *l) PL_MUST_CHECK;
/* Nothing is asked for: from here on the own share is read. */
void pl_loop_share_end(pl_loop *l);

/* loop_deal.c */
/* The reader gives the batch of this step next. */
void pl_loop_go(pl_loop *l, int64_t step);
/* Who makes steps from here on, as the job told when it was joined. */
pl_status pl_loop_deal_join(pl_loop *l, const pl_standing *at) PL_MUST_CHECK;
/* Before the batch of `step` is read: is it time for another deal? */
pl_status pl_loop_deal_step(pl_loop *l, int64_t step) PL_MUST_CHECK;

/* loop_sparse.c */
/* The parameters of a sparse model are elsewhere. */
bool pl_loop_elsewhere(const pl_loop_opts *opts);
/* Batches are read before their turn. */
bool pl_loop_reads_ahead(const pl_loop_opts *opts);
/* PL_UNSUPPORTED: what is not there for a sparse model. */
pl_status pl_loop_check_sparse(const pl_loop_opts *opts) PL_MUST_CHECK;
/* The weights of l->batch: of its keys only. */
pl_status pl_loop_need_keys(pl_loop *l) PL_MUST_CHECK;
/* In lock step the batch belongs to the step, also one that was read ahead. */
pl_status pl_loop_align_ahead(pl_loop *l) PL_MUST_CHECK;
/* The batch of this step that was read ahead becomes l->batch. */
pl_status pl_loop_take_ahead(pl_loop *l) PL_MUST_CHECK;
/* Before the commit: the keys of the next batch go with it. */
pl_status pl_loop_next_ahead(pl_loop *l) PL_MUST_CHECK;
/* Gradients of micro-batches are summed by their keys... */
bool pl_loop_sums(const pl_loop *l);
/* ... the one that was computed last with those before it... */
pl_status pl_loop_sum_put(pl_loop *l, int32_t micro_batch) PL_MUST_CHECK;
/* ... and this is what they add up to. */
const float *pl_loop_sum(const pl_loop *l, int param, const pl_keys **keys);

#endif
