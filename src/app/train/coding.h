/* coding.h - how the gradients of a job travel: what --codec means for it, and
 * what its summary tells of that.
 *
 * Threads: one. */
#ifndef PL_APP_TRAIN_CODING_H
#define PL_APP_TRAIN_CODING_H

#include "app/options/options.h"
#include "app/run/bottleneck.h"
#include "base/record/summary.h"
#include "job/cluster/cluster.h"
#include "sync/allreduce/allreduce.h"
#include "train/factors.h"

/* What a worker of the ring may send as factors; *factors is NULL where
 * nothing.  The same for all workers. */
pl_status pl_coding_factors(pl_factors **factors, const pl_options *options,
                            const pl_network *network,
                            int32_t workers) PL_MUST_CHECK;

/* State of a codec that belongs to a checkpoint; *held stays NULL where there
 * is none.  PL_USAGE: the model cannot be trained with it. */
pl_status pl_coding_held(pl_held **held, const pl_options *options,
                         const pl_network *network, int32_t workers,
                         bool chief) PL_MUST_CHECK;

/* What chooses among these: `kept` is that of the run that is resumed, or 0. */
pl_link_class pl_coding_link(const pl_train_options *train,
                             const pl_cluster *cluster, int64_t kept);

/* What a worker did. */
typedef struct pl_coding {
    const pl_factors *factors; /* that travelled; NULL: none */
    const bool *chosen;        /* of their layers, those that did */
    double seconds;            /* spent on it */
} pl_coding;
/* `sync` NULL: of parameter servers, in these seconds. */
pl_coding pl_coding_of(const pl_allreduce_sync *sync, pl_factors *factors,
                       double seconds);

/* The summary's row, where gradients do not travel plain. */
pl_status pl_coding_sum_up(pl_summary *out, const pl_coding *coding,
                           const pl_train_options *train,
                           const pl_params *params,
                           int32_t workers) PL_MUST_CHECK;
/* The same in a line for people. */
void pl_coding_text(const pl_codec_use *use, char *text, size_t room);

/* Fills in what --codec and --local-steps could do for a job that sends
 * gradients as float32. */
pl_status pl_coding_offer(pl_bottleneck_opts *out, const pl_options *options,
                          const pl_network *network,
                          int32_t workers) PL_MUST_CHECK;

#endif
