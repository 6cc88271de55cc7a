/* ps_recorder.h - what a parameter server tells of itself, as metrics.
 *
 * Curves get a point whenever it is called and the job has come further, so
 * call it a few times a second.  docs/formats/run.md lists the names.
 *
 * Threads: the server's. */
#ifndef PL_SYNC_PS_RECORDER_H
#define PL_SYNC_PS_RECORDER_H

#include "base/record/metric.h"
#include "sync/ps/server.h"

typedef struct pl_ps_recorder {
    pl_metrics *metrics;
    bool own_pace; /* async, ssp: gradients may be stale */
    struct {
        int step, sent, received, restart, updates, accepted, dropped,
            staleness, waiting, sent_rate, received_rate;
    } tags;
    bool started;
    int64_t base;           /* the step that this server's updates began from */
    pl_ps_server_view last; /* as of the last point... */
    uint64_t last_ticks;    /* ... which was then */
} pl_ps_recorder;

/* Nothing is to be closed; `metrics` is borrowed. */
pl_status pl_ps_recorder_init(pl_ps_recorder *recorder, pl_metrics *metrics,
                              bool own_pace) PL_MUST_CHECK;

/* How it stands, at `now` (ticks). */
void pl_ps_recorder_put(pl_ps_recorder *recorder, const pl_ps_server_view *view,
                        uint64_t now);

#endif
