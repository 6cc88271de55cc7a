/* status.c - the thread with which a supervised worker reports its progress to
 * the supervisor. */
#include "app/task/status.h"

#include "base/assert.h"
#include "base/mem.h"
#include "base/thread.h"

#include <math.h>

#define TELL_MS 200

struct pl_status_line {
    pl_status_opts opts;
    int step, own_steps, own_examples, dropped, loss, loss_examples, tests,
        test_loss, test_accuracy, waiting, activity; /* tags */
    pl_task_status status;
    pl_thread *thread;
    pl_mutex lock;
    pl_cond wake;
    bool stopping, joined; /* guarded by lock */
};

/* Called with the lock held. */
static void tell(pl_status_line *line)
{
    pl_metrics *metrics = line->opts.metrics;
    pl_task_status *status = &line->status;
    if (pl_metrics_get(metrics, line->tests) > 0) {
        status->test_loss = pl_metrics_get(metrics, line->test_loss);
        status->test_accuracy = pl_metrics_get(metrics, line->test_accuracy);
    }
    status->loss_examples =
        (int64_t)pl_metrics_get(metrics, line->loss_examples);
    if (status->loss_examples > 0)
        status->loss = pl_metrics_get(metrics, line->loss);
    status->step = (int64_t)pl_metrics_get(metrics, line->step);
    status->own_steps = (int64_t)pl_metrics_get(metrics, line->own_steps);
    status->examples = (int64_t)pl_metrics_get(metrics, line->own_examples);
    status->dropped = (int64_t)pl_metrics_get(metrics, line->dropped);
    status->activity = (int)pl_metrics_get(metrics, line->activity);
    if (status->own_steps > 0)
        status->waiting = pl_metrics_get(metrics, line->waiting);
    pl_epoch epoch;
    while (line->opts.chief && pl_metrics_epoch_take(metrics, &epoch))
        pl_control_epoch(line->opts.control, &epoch);
    if (line->joined)
        pl_control_status(line->opts.control, status);
    if (pl_control_ended(line->opts.control))
        atomic_store(line->opts.interrupt, true);
}

static pl_status status_main(void *arg)
{
    pl_status_line *line = arg;
    pl_mutex_lock(&line->lock);
    while (!line->stopping) {
        pl_deadline next = pl_deadline_in_ms(pl_clock_real(), TELL_MS);
        pl_cond_pause_until(&line->wake, &line->lock, &line->stopping, next);
        tell(line);
    }
    pl_mutex_unlock(&line->lock);
    return PL_OK;
}

static pl_status find_tags(pl_status_line *line)
{
    pl_metrics *metrics = line->opts.metrics;
    PL_TRY(pl_metrics_tag(metrics, "step", &line->step));
    PL_TRY(pl_metrics_tag(metrics, "own_steps", &line->own_steps));
    PL_TRY(pl_metrics_tag(metrics, "own_examples", &line->own_examples));
    PL_TRY(pl_metrics_tag(metrics, "dropped", &line->dropped));
    PL_TRY(pl_metrics_tag(metrics, PL_METRICS_TRAIN_LOSS, &line->loss));
    PL_TRY(pl_metrics_tag(metrics, PL_METRICS_TRAIN_LOSS_EXAMPLES,
                          &line->loss_examples));
    PL_TRY(pl_metrics_tag(metrics, "tests", &line->tests));
    PL_TRY(pl_metrics_tag(metrics, "test_loss", &line->test_loss));
    PL_TRY(pl_metrics_tag(metrics, "test_accuracy", &line->test_accuracy));
    PL_TRY(pl_metrics_tag(metrics, "waiting_share", &line->waiting));
    return pl_metrics_tag(metrics, PL_METRICS_ACTIVITY, &line->activity);
}

pl_status pl_status_start(pl_status_line **out, const pl_status_opts *opts)
{
    pl_status_line *line;
    PL_TRY(PL_NEW(line, 1));
    line->opts = *opts;
    line->status = (pl_task_status) {
        .loss = NAN,
        .test_loss = NAN,
        .test_accuracy = NAN,
        .waiting = NAN,
    };
    pl_mutex_init(&line->lock);
    pl_cond_init(&line->wake);
    pl_status status = find_tags(line);
    if (status == PL_OK)
        status = pl_thread_start(&line->thread, "status", status_main, line);
    if (status != PL_OK) {
        pl_status_stop(line);
        return status;
    }
    *out = line;
    return PL_OK;
}

void pl_status_joined(pl_status_line *line)
{
    pl_mutex_lock(&line->lock);
    line->joined = true;
    tell(line);
    pl_mutex_unlock(&line->lock);
}

void pl_status_stop(pl_status_line *line)
{
    if (line == NULL)
        return;
    pl_mutex_lock(&line->lock);
    line->stopping = true;
    pl_cond_signal(&line->wake);
    pl_mutex_unlock(&line->lock);
    if (line->thread != NULL)
        PL_ASSERT(pl_thread_join(line->thread) == PL_OK);
    pl_cond_close(&line->wake);
    pl_mutex_close(&line->lock);
    pl_mem_free(line);
}
