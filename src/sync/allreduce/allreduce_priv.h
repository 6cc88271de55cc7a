/* allreduce_priv.h - what the parts of the all-reduce sync share.
 *
 *   allreduce.c  the steps, the end
 *   join.c       comparing settings, getting the chief's parameters
 *   held.c       the state that a codec holds back, in checkpoints
 *   factors.c    steps in which dense layers travel as factors
 *   rounds.c     --local-steps: training apart, then the mean
 *
 * Threads: one. */
#ifndef PL_SYNC_ALLREDUCE_ALLREDUCE_PRIV_H
#define PL_SYNC_ALLREDUCE_ALLREDUCE_PRIV_H

#include "sync/allreduce/allreduce.h"
#include "sync/allreduce/buckets.h"
#include "sync/allreduce/factors.h"

struct pl_allreduce_sync {
    pl_sync base;
    pl_allreduce_sync_opts opts;
    pl_collective *collective;
    pl_ranks ranks;
    pl_buckets buckets;
    int64_t bucket_bytes; /* 0: not yet measured */
    int64_t floats;       /* of the block */
    int64_t step, end_step;
    pl_bucket started[PL_COLLECTIVE_SUMS_MOST]; /* sums of this step, by
                                                   ticket */
    int32_t sums;
    int32_t expected; /* sums of this step */
    pl_factor_step factors;
    pl_link_class link;        /* as measured by the chief */
    bool unlike;               /* ranks do not compute the same products... */
    bool said;                 /* ... and that was logged */
    int64_t ready;             /* floats from here on were passed to the
                                  engine */
    bool in_step;              /* the status of this step was offered */
    bool compares;             /* the next status has the checksum */
    bool joined;               /* once, at least */
    bool located;              /* opts.located was called */
    bool over;                 /* no more steps */
    bool broken;               /* ... because a worker was interrupted */
    bool mixed;                /* the result differs from a job in which no
                                  worker was lost */
    int64_t dropped;           /* gradients not used */
    int64_t first_ns, last_ns; /* of updates; 0: none */
    double earlier_s;          /* seconds of training before the loaded
                                  checkpoint */
    const pl_bucket *applying;
    uint64_t own_ticks; /* ticks of this commit spent computing */
    /* --local-steps: the step at which the round began, and a copy of the
     * planes there. */
    int64_t begin_step;
    float *begin[1 + PL_MAX_SLOTS];
    /* What is held back (held.c): the velocity before and after the step in
     * progress. */
    float *velocity, *next_velocity;
    int64_t held_step;  /* the step that this state and the residual belong
                           to */
    pl_workers present; /* workers by rank */
    bool keeps;         /* the chief writes checkpoints */
    bool expects;       /* ... and expects one after this step; combined */
    int64_t gathered;   /* step whose state the chief has gathered; -1: none */
    char *reports;
    void *exchanged; /* PL_COLLECTIVE_BYTES_MOST, at the chief for each
                        worker */
};

/* Count the time since `begin` as computing, not waiting. */
void pl_allreduce_computed(pl_allreduce_sync *self, uint64_t begin);

/* Wait in slices; the engine fails the wait when a peer is lost.  The result of
 * an exchange is in `exchanged`. */
pl_status pl_allreduce_exchange(pl_allreduce_sync *self, const void *status,
                                size_t bytes,
                                pl_combine *combine) PL_MUST_CHECK;
/* ... its second half, for a status that was already offered. */
pl_status pl_allreduce_exchanged(pl_allreduce_sync *self) PL_MUST_CHECK;
pl_status pl_allreduce_wait(pl_allreduce_sync *self,
                            int32_t ticket) PL_MUST_CHECK;
pl_status pl_allreduce_quiet(pl_allreduce_sync *self) PL_MUST_CHECK;

/* Begin the sums of the buckets that `ready` completes; `exact`: they are not
 * gradients. */
pl_status pl_allreduce_start(pl_allreduce_sync *self, int64_t ready,
                             bool exact) PL_MUST_CHECK;
/* Begin the ranges that the gradient of `param` completes, when factors
 * travel. */
pl_status pl_allreduce_start_range(pl_allreduce_sync *self,
                                   const pl_sum_range *range) PL_MUST_CHECK;
pl_status pl_allreduce_start_factors(pl_allreduce_sync *self,
                                     int param) PL_MUST_CHECK;
uint32_t pl_allreduce_checksum(const pl_allreduce_sync *self);

/* Rounds, if opts.local_steps > 1.  A round begins with the current parameters,
 * can be undone until it ends, and ends when all ranks have reached its end. */
pl_status pl_allreduce_rounds_init(pl_allreduce_sync *self) PL_MUST_CHECK;
void pl_allreduce_rounds_close(pl_allreduce_sync *self);
void pl_allreduce_begin_round(pl_allreduce_sync *self);
void pl_allreduce_undo_round(pl_allreduce_sync *self);
bool pl_allreduce_round_ends(const pl_allreduce_sync *self);
pl_status pl_allreduce_end_round(pl_allreduce_sync *self) PL_MUST_CHECK;
/* One update from the gradient of this rank. */
void pl_allreduce_update_alone(pl_allreduce_sync *self);

/* What this worker's codec holds back, if opts.held is given.  ready: the
 * gradient of a parameter becomes its velocity.  keep: the step counts.
 * gather: the chief gets the state of all workers.  give: the chief returns it
 * to each worker.  join: a generation begins; `restored`: from a checkpoint,
 * `astray`: some rank has another step's state. */
pl_status pl_allreduce_held_init(pl_allreduce_sync *self) PL_MUST_CHECK;
void pl_allreduce_held_close(pl_allreduce_sync *self);
void pl_allreduce_held_ready(pl_allreduce_sync *self,
                             const pl_params_item *item);
void pl_allreduce_held_keep(pl_allreduce_sync *self);
pl_status pl_allreduce_held_gather(pl_allreduce_sync *self) PL_MUST_CHECK;
pl_status pl_allreduce_held_join(pl_allreduce_sync *self, bool restored,
                                 bool astray) PL_MUST_CHECK;

/* Ops of pl_sync. */
pl_status pl_allreduce_join(pl_sync *sync, pl_standing *at) PL_MUST_CHECK;
pl_status pl_allreduce_save(pl_sync *sync, const pl_progress *progress,
                            bool last) PL_MUST_CHECK;

#endif
