/* recorder.h - the metrics of a parameter server.
 *
 * Call it a few times a second.  Curves get a point if the job has advanced and
 * one is due (base/record/sampler.h).  docs/formats/run.md lists the names.
 *
 * Threads: the server's. */
#ifndef PL_SYNC_PS_RECORDER_H
#define PL_SYNC_PS_RECORDER_H

#include "base/record/metric.h"
#include "base/record/sampler.h"
#include "sync/ps/server.h"

typedef struct pl_ps_recorder {
    pl_metrics *metrics;
    bool own_pace; /* async, ssp: gradients may be stale */
    struct {
        int step, sent, received, restart, updates, accepted, dropped,
            staleness, waiting, sent_rate, received_rate;
    } tags;
    bool started;
    pl_sampler points;
    int64_t base;           /* the step before this server's first update */
    int64_t seen;           /* updates at the last call */
    pl_ps_server_view last; /* at the last point... */
    uint64_t last_ticks;    /* ... and its time */
} pl_ps_recorder;

/* No close is needed; `metrics` is borrowed. */
pl_status pl_ps_recorder_init(pl_ps_recorder *recorder, pl_metrics *metrics,
                              bool own_pace) PL_MUST_CHECK;

/* Record the state at `now` (ticks); `last`: always make a point. */
void pl_ps_recorder_put(pl_ps_recorder *recorder, const pl_ps_server_view *view,
                        uint64_t now, bool last);

#endif
