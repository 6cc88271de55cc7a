/* job_progress.c - sums up the status messages of a job's workers in metrics
 * for the usual display, and chooses the activity shown for the whole job: the
 * chief's, unless all wait for a missing task. */
#include "app/view/job_progress.h"

#include "base/mem.h"
#include "base/thread.h"

#include <math.h>
#include <string.h>

#define RATE_NS ((int64_t)500 * 1000 * 1000) /* between two measurements */

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
    pl_progress_view view; /* what only the tasks report; guarded by lock */
};

static void fill(void *context, pl_progress_view *view)
{
    pl_job_progress *p = context;
    pl_mutex_lock(&p->lock);
    memcpy(view->doing, p->view.doing, sizeof view->doing);
    memcpy(view->worker, p->view.worker, sizeof view->worker);
    view->workers = p->view.workers;
    view->dropped = p->view.dropped;
    pl_mutex_unlock(&p->lock);
}

static pl_status find_tags(pl_job_progress *p)
{
    PL_TRY(pl_metrics_tag(p->metrics, "step", &p->step));
    PL_TRY(pl_metrics_tag(p->metrics, "examples", &p->examples));
    PL_TRY(pl_metrics_tag(p->metrics, PL_METRICS_TRAIN_LOSS, &p->loss));
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
    if (p->opts.kind == PL_PROGRESS_NONE)
        return PL_OK;
    return pl_progress_start(&p->line, &(pl_progress_opts) {
                                           .metrics = p->metrics,
                                           .file = p->opts.file,
                                           .kind = p->opts.kind,
                                           .end_step = p->opts.end_step,
                                           .resumed = p->opts.resumed,
                                           .per_epoch = p->opts.per_epoch,
                                           .fill = fill,
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

/* A new test result, from the chief or the evaluator. */
static void put_test(pl_job_progress *p, const pl_task_status *status)
{
    bool numeric = isnan(status->test_accuracy);
    if (isnan(status->test_loss) ||
        (status->test_loss == p->shown_loss &&
         (numeric || status->test_accuracy == p->shown_accuracy)))
        return;
    p->shown_loss = status->test_loss;
    p->shown_accuracy = status->test_accuracy;
    pl_metrics_set(p->metrics, p->test_loss, status->test_loss);
    pl_metrics_set(p->metrics, p->test_accuracy, status->test_accuracy);
    pl_metrics_add(p->metrics, p->tests, 1);
}

/* The workers' mean, as in the summary. */
static double loss_of(const pl_job_task *tasks, int count)
{
    double sum = 0, examples = 0;
    for (int i = 0; i < count; i++) {
        const pl_task_status *status = &tasks[i].status;
        if (tasks[i].worker < 0 || tasks[i].starts == 0 ||
            status->loss_examples <= 0 || isnan(status->loss))
            continue;
        sum += status->loss * (double)status->loss_examples;
        examples += (double)status->loss_examples;
    }
    return examples > 0 ? sum / examples : (double)NAN;
}

/* The activity of a task that does not train; NULL: none. */
static const char *state_of(const pl_job_task *task)
{
    if (task->final)
        return NULL;
    if (!task->running)
        return "not running";
    if (!task->reported)
        return task->starts > 1 ? "restarting" : "starting";
    return pl_activity_text((pl_activity)task->status.activity);
}

static void view_worker(pl_progress_worker *out, const pl_job_task *task,
                        double rate)
{
    const char *state = state_of(task);
    *out = (pl_progress_worker) {
        .index = task->worker,
        .steps = task->status.own_steps,
        .rate = rate,
        .waiting = task->status.waiting,
        .restarts = task->starts > 1 ? task->starts - 1 : 0,
    };
    snprintf(out->state, sizeof out->state, "%s", state != NULL ? state : "");
}

/* The activity of the job: waiting for the first missing task, or the
 * chief's. */
static void say_doing(pl_progress_view *view, const pl_job_task *tasks,
                      int count)
{
    view->doing[0] = '\0';
    int missing = 0;
    const pl_job_task *first = NULL;
    for (int i = 0; i < count; i++) {
        const pl_job_task *task = &tasks[i];
        bool absent = !task->final && (!task->running || !task->reported) &&
                      task->task.role != PL_ROLE_EVALUATOR;
        missing += absent;
        first = absent && first == NULL ? task : first;
        const char *doing = state_of(task);
        if (task->worker == 0 && doing != NULL)
            snprintf(view->doing, sizeof view->doing, "%s", doing);
    }
    if (missing == 0)
        return;
    if (missing == 1)
        snprintf(view->doing, sizeof view->doing, "waiting for %s %d",
                 pl_role_text(first->task.role), first->task.index);
    else
        snprintf(view->doing, sizeof view->doing, "waiting for %d tasks",
                 missing);
}

static void update_view(pl_job_progress *p, const pl_job_task *tasks, int count)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    p->view.workers = 0;
    p->view.dropped = 0;
    for (int i = 0; i < count; i++) {
        const pl_job_task *task = &tasks[i];
        if (task->worker < 0)
            continue;
        worker_rate *rate = &p->rates[task->worker];
        measure(rate, examples_of(task), now_ns);
        p->view.workers++;
        p->view.dropped += task->earlier_dropped + task->status.dropped;
        if (task->worker < PL_VIEW_WORKERS)
            view_worker(&p->view.worker[task->worker], task, rate->rate);
    }
    say_doing(&p->view, tasks, count);
}

void pl_job_progress_show(void *progress, const pl_job_task *tasks, int count)
{
    pl_job_progress *p = progress;
    int64_t examples = 0;
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
        if (task->worker >= 0)
            examples += examples_of(task);
    }
    pl_metrics_set(p->metrics, p->step, (double)p->job_step);
    pl_metrics_set(p->metrics, p->examples, (double)examples);
    pl_metrics_set(p->metrics, p->loss, loss_of(tasks, count));
    pl_mutex_lock(&p->lock);
    update_view(p, tasks, count);
    pl_mutex_unlock(&p->lock);
    if (over) {
        pl_progress_stop(p->line);
        p->line = NULL;
    }
}

void pl_job_progress_epoch(void *progress, const pl_epoch *epoch)
{
    pl_job_progress *p = progress;
    pl_metrics_epoch_put(p->metrics, epoch);
}

int64_t pl_job_progress_step(const pl_job_progress *progress)
{
    return progress->job_step;
}
