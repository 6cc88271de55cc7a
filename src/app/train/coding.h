/* coding.h - how the gradients of a job travel: the meaning of --codec for the
 * job, and its row in the summary.
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

/* The gradients that a worker of the ring may send as factors; *factors is NULL
 * for none.  The same for all workers. */
pl_status pl_coding_factors(pl_factors **factors, const pl_options *options,
                            const pl_network *network,
                            int32_t workers) PL_MUST_CHECK;

/* State of a codec that belongs in checkpoints; *held stays NULL if there is
 * none. PL_USAGE: the model cannot be trained with the codec. */
pl_status pl_coding_held(pl_held **held, const pl_options *options,
                         const pl_network *network, int32_t workers,
                         bool chief) PL_MUST_CHECK;

/* How layers are chosen among these; `kept` is the choice of the run to resume,
 * or 0. */
pl_link_class pl_coding_link(const pl_train_options *train,
                             const pl_cluster *cluster, int64_t kept);

/* What a worker coded. */
typedef struct pl_coding {
    const pl_factors *factors; /* sent as factors; NULL: none */
    const bool *chosen;        /* which of their layers were */
    double seconds;            /* time spent on coding */
} pl_coding;
/* `sync` NULL: with parameter servers, in that time. */
pl_coding pl_coding_of(const pl_allreduce_sync *sync, pl_factors *factors,
                       double seconds);

/* The summary's row, unless gradients travel plain. */
pl_status pl_coding_sum_up(pl_summary *out, const pl_coding *coding,
                           const pl_train_options *train,
                           const pl_params *params,
                           int32_t workers) PL_MUST_CHECK;
/* The same as a line of text. */
void pl_coding_text(const pl_codec_use *use, char *text, size_t room);

/* Fill in the possible gains of --codec and --local-steps for a job that sends
 * gradients as float32. */
pl_status pl_coding_offer(pl_bottleneck_opts *out, const pl_options *options,
                          const pl_network *network,
                          int32_t workers) PL_MUST_CHECK;

#endif
