/* recorder.c - turns a parameter server's counters into metrics whenever the
 * job has advanced. */
#include "sync/ps/recorder.h"

#include "base/clock.h"

pl_status pl_ps_recorder_init(pl_ps_recorder *recorder, pl_metrics *metrics,
                              bool own_pace)
{
    *recorder = (pl_ps_recorder) { .metrics = metrics, .own_pace = own_pace };
    const struct {
        const char *name;
        int *tag;
    } all[] = {
        { "step", &recorder->tags.step },
        { "bytes_sent", &recorder->tags.sent },
        { "bytes_received", &recorder->tags.received },
        { PL_METRICS_RESTART, &recorder->tags.restart },
        { "updates_per_s", &recorder->tags.updates },
        { "gradients_accepted", &recorder->tags.accepted },
        { "gradients_dropped", &recorder->tags.dropped },
        { "staleness", &recorder->tags.staleness },
        { "waiting_share", &recorder->tags.waiting },
        { "sent_bytes_per_s", &recorder->tags.sent_rate },
        { "received_bytes_per_s", &recorder->tags.received_rate },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PL_TRY(pl_metrics_tag(metrics, all[i].name, all[i].tag));
    return PL_OK;
}

/* Record the metrics since the last point, `seconds` ago. */
static void record(pl_ps_recorder *recorder, const pl_ps_server_view *view,
                   double seconds)
{
    const pl_ps_server_view *last = &recorder->last;
    int64_t accepted = view->accepted - last->accepted;
    const struct {
        int tag;
        double value;
    } all[] = {
        { recorder->tags.updates,
          (double)(view->updates - last->updates) / seconds },
        { recorder->tags.accepted, (double)view->accepted },
        { recorder->tags.dropped, (double)view->dropped },
        { recorder->tags.waiting, (view->waited_s - last->waited_s) / seconds },
        { recorder->tags.sent_rate,
          (double)(view->net.sent_bytes - last->net.sent_bytes) / seconds },
        { recorder->tags.received_rate,
          (double)(view->net.received_bytes - last->net.received_bytes) /
              seconds },
        { recorder->tags.sent, (double)view->net.sent_bytes },
        { recorder->tags.received, (double)view->net.received_bytes },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        pl_metrics_scalar(recorder->metrics, all[i].tag, view->step,
                          all[i].value);
    if (recorder->own_pace && accepted > 0)
        pl_metrics_scalar(
            recorder->metrics, recorder->tags.staleness, view->step,
            (double)(view->behind - last->behind) / (double)accepted);
}

/* A checkpoint was loaded, in mid-run or at resume: points recorded beyond it
 * are void. */
static void note_base(pl_ps_recorder *recorder, const pl_ps_server_view *view)
{
    int64_t made = view->updates - recorder->seen;
    int64_t base = view->step - view->updates;
    recorder->seen = view->updates;
    if (!view->initialized || base == recorder->base)
        return;
    int64_t step = view->step - made > 0 ? view->step - made : 0;
    recorder->base = base;
    pl_metrics_scalar(recorder->metrics, recorder->tags.restart, step,
                      (double)step);
}

void pl_ps_recorder_put(pl_ps_recorder *recorder, const pl_ps_server_view *view,
                        uint64_t now, bool last)
{
    pl_metrics *metrics = recorder->metrics;
    pl_metrics_set(metrics, recorder->tags.step, (double)view->step);
    pl_metrics_set(metrics, recorder->tags.sent, (double)view->net.sent_bytes);
    pl_metrics_set(metrics, recorder->tags.received,
                   (double)view->net.received_bytes);
    if (recorder->started && view->updates == recorder->last.updates)
        return;
    note_base(recorder, view);
    if (!pl_sampler_due(&recorder->points, now) && !last)
        return;
    double seconds =
        (double)(now - recorder->last_ticks) * pl_ticks_ns() * 1e-9;
    if (recorder->started && seconds > 0)
        record(recorder, view, seconds);
    recorder->started = true;
    recorder->last = *view;
    recorder->last_ticks = now;
}
