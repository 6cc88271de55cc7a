/* job_progress.c - sums the status messages of a job's workers up into metrics,
 * which the usual progress line shows. */
#include "app/view/job_progress.h"

#include "app/view/progress.h"
#include "base/mem.h"
#include "base/thread.h"

#include <math.h>
#include <string.h>

#define RATE_NS      ((int64_t)500 * 1000 * 1000) /* between two measurements */
#define SHOWN        8                            /* workers in the line */
#define DETAIL_BYTES PL_PROGRESS_BYTES

typedef struct worker_rate {
    int64_t examples, at_ns; /* when last measured */
    double rate;             /* examples a second */
} worker_rate;

struct pl_job_progress {
    pl_job_progress_opts opts;
    pl_metrics *metrics;
    int step, examples, loss, tests, test_loss, test_accuracy; /* tags */
    pl_progress_line *line;
    int64_t job_step;
    double shown_loss, shown_accuracy; /* of the last test */
    worker_rate *rates;                /* [workers] */
    pl_mutex lock;
    char detail[DETAIL_BYTES]; /* guarded by lock */
};

static void give_detail(void *context, char *text, size_t room)
{
    pl_job_progress *p = context;
    pl_mutex_lock(&p->lock);
    snprintf(text, room, "%s", p->detail);
    pl_mutex_unlock(&p->lock);
}

static pl_status find_tags(pl_job_progress *p)
{
    PL_TRY(pl_metrics_tag(p->metrics, "step", &p->step));
    PL_TRY(pl_metrics_tag(p->metrics, "examples", &p->examples));
    PL_TRY(pl_metrics_tag(p->metrics, "loss", &p->loss));
    PL_TRY(pl_metrics_tag(p->metrics, "tests", &p->tests));
    PL_TRY(pl_metrics_tag(p->metrics, "test_loss", &p->test_loss));
    return pl_metrics_tag(p->metrics, "test_accuracy", &p->test_accuracy);
}

static pl_status start(pl_job_progress *p)
{
    PL_TRY(PL_NEW(p->rates, (size_t)p->opts.workers));
    PL_TRY(pl_metrics_new(&p->metrics, &(pl_metrics_opts) { 0 }));
    PL_TRY(find_tags(p));
    pl_metrics_set(p->metrics, p->loss, NAN);
    if (p->opts.quiet)
        return PL_OK;
    return pl_progress_start(&p->line, &(pl_progress_opts) {
                                           .metrics = p->metrics,
                                           .file = p->opts.file,
                                           .terminal = p->opts.terminal,
                                           .end_step = p->opts.end_step,
                                           .per_epoch = p->opts.per_epoch,
                                           .detail = give_detail,
                                           .context = p,
                                       });
}

pl_status pl_job_progress_start(pl_job_progress **out,
                                const pl_job_progress_opts *opts)
{
    pl_job_progress *p;
    PL_TRY(PL_NEW(p, 1));
    p->opts = *opts;
    p->shown_loss = p->shown_accuracy = NAN;
    pl_mutex_init(&p->lock);
    pl_status status = start(p);
    if (status != PL_OK) {
        pl_job_progress_stop(p);
        return status;
    }
    *out = p;
    return PL_OK;
}

void pl_job_progress_stop(pl_job_progress *p)
{
    if (p == NULL)
        return;
    pl_progress_stop(p->line);
    pl_metrics_free(p->metrics);
    pl_mutex_close(&p->lock);
    pl_mem_free(p->rates);
    pl_mem_free(p);
}

static int64_t examples_of(const pl_job_task *task)
{
    return task->earlier_examples + task->status.examples;
}

static void measure(worker_rate *rate, int64_t examples, int64_t now_ns)
{
    double seconds = (double)(now_ns - rate->at_ns) * 1e-9;
    if (now_ns - rate->at_ns < RATE_NS)
        return;
    if (rate->at_ns > 0 && examples >= rate->examples)
        rate->rate = (double)(examples - rate->examples) / seconds;
    rate->examples = examples;
    rate->at_ns = now_ns;
}

/* A new test result, of the chief or of who tests for it. */
static void put_test(pl_job_progress *p, const pl_task_status *status)
{
    if (isnan(status->test_accuracy) ||
        (status->test_loss == p->shown_loss &&
         status->test_accuracy == p->shown_accuracy))
        return;
    p->shown_loss = status->test_loss;
    p->shown_accuracy = status->test_accuracy;
    pl_metrics_set(p->metrics, p->test_loss, status->test_loss);
    pl_metrics_set(p->metrics, p->test_accuracy, status->test_accuracy);
    pl_metrics_add(p->metrics, p->tests, 1);
}

/* "dropped 3  w0 120 1.2 k/s, w1 119 1.1 k/s" */
static void write_detail(pl_job_progress *p, const pl_job_task *tasks,
                         int count, int64_t dropped)
{
    char text[DETAIL_BYTES] = "", number[16];
    int used = 0, shown = 0;
    if (dropped > 0)
        used =
            snprintf(text, sizeof text, "dropped %lld  ", (long long)dropped);
    for (int i = 0; i < count && shown < SHOWN; i++) {
        const pl_job_task *task = &tasks[i];
        if (task->worker < 0)
            continue;
        const char *rate =
            pl_progress_number(p->rates[task->worker].rate, number);
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%sw%d %lld %s%s",
                     shown++ > 0 ? ", " : "", task->worker,
                     (long long)task->status.own_steps,
                     task->pid > 0 ? rate : "gone", task->pid > 0 ? "/s" : "");
    }
    if (p->opts.workers > SHOWN)
        snprintf(text + used, sizeof text - (size_t)used, " and %d more",
                 p->opts.workers - SHOWN);
    pl_mutex_lock(&p->lock);
    memcpy(p->detail, text, sizeof text);
    pl_mutex_unlock(&p->lock);
}

/* The chief's loss, or the first there is. */
static double loss_of(const pl_job_task *tasks, int count)
{
    double loss = NAN;
    for (int i = 0; i < count; i++)
        if (tasks[i].worker >= 0 && tasks[i].starts > 0 && isnan(loss) &&
            tasks[i].status.own_steps > 0)
            loss = tasks[i].status.loss;
    return loss;
}

void pl_job_progress_show(void *progress, const pl_job_task *tasks, int count)
{
    pl_job_progress *p = progress;
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    int64_t examples = 0, dropped = 0;
    bool over = false;
    for (int i = 0; i < count; i++) {
        const pl_job_task *task = &tasks[i];
        bool leads = task->task.role == PL_ROLE_PS && task->task.index == 0;
        if ((leads || task->worker == 0) && task->status.step > p->job_step)
            p->job_step = task->status.step;
        if (task->reported &&
            (task->worker == 0 || task->task.role == PL_ROLE_EVALUATOR))
            put_test(p, &task->status);
        over = over || (task->worker == 0 && task->final);
        if (task->worker < 0)
            continue;
        examples += examples_of(task);
        dropped += task->earlier_dropped + task->status.dropped;
        measure(&p->rates[task->worker], examples_of(task), now_ns);
    }
    pl_metrics_set(p->metrics, p->step, (double)p->job_step);
    pl_metrics_set(p->metrics, p->examples, (double)examples);
    pl_metrics_set(p->metrics, p->loss, loss_of(tasks, count));
    write_detail(p, tasks, count, dropped);
    if (over) {
        pl_progress_stop(p->line);
        p->line = NULL;
    }
}

int64_t pl_job_progress_step(const pl_job_progress *progress)
{
    return progress->job_step;
}
