/* summary.c - adds up the reports of all workers into the summary of a run, and
 * prints it as text or JSON. */
#include "app/run/summary.h"

#include "app/run/bottleneck.h"
#include "app/run/traffic.h"
#include "app/view/layout.h"
#include "app/view/output.h"
#include "base/host/ram.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "base/thread.h"
#include "data/sparse/set.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

pl_test_result pl_summary_test(const pl_score *score, bool tested)
{
    bool binary = tested && score->binary;
    bool numeric = tested && score->numeric;
    return (pl_test_result) {
        .loss = tested ? score->loss : NAN,
        .accuracy = tested ? score->accuracy : NAN,
        .auc = binary ? score->auc : NAN,
        .precision = binary ? score->precision : NAN,
        .recall = binary ? score->recall : NAN,
        .calibration = binary ? score->calibration : NAN,
        .top5 = tested && !binary ? score->top5 : NAN,
        .rmse = numeric ? score->rmse : NAN,
        .mae = numeric ? score->mae : NAN,
        .r2 = numeric ? score->r2 : NAN,
    };
}

/* Skipped examples of the files; -1: the data is not sparse. */
static int64_t bad_of(const pl_job *job)
{
    if (job->train == NULL || !pl_sparse_set_is(job->train))
        return -1;
    int64_t bad = pl_sparse_set_bad((pl_sparse_set *)job->train);
    if (job->test != NULL && pl_sparse_set_is(job->test))
        bad += pl_sparse_set_bad((pl_sparse_set *)job->test);
    return bad;
}

pl_worker_report pl_summary_row(const pl_summary_row_opts *opts)
{
    const pl_loop_result *result = opts->result;
    const pl_phases *phases = &result->phases;
    double total =
        phases->input_s + phases->compute_s + phases->send_s + phases->wait_s;
    double whole = total > 0 ? total : 1;
    pl_worker_report row = {
        .index = opts->index,
        .reported = true,
        .steps = result->own_steps,
        .examples = result->own_examples,
        .seconds = total,
        .input_share = phases->input_s / whole,
        .computing_share = phases->compute_s / whole,
        .sending_share = phases->send_s / whole,
        .waiting_share = phases->wait_s / whole,
        .usual_step_seconds = result->usual_step_s,
        .throttled_seconds = result->throttled_s,
        .stolen_share = result->stolen_share,
        .held_seconds = NAN,
        .held_steps = NAN,
        .link_busy_seconds = NAN,
        .train_loss = result->train_loss.loss,
        .train_loss_examples = result->train_loss.examples,
        .dropped = result->dropped,
        .usage = pl_task_usage_read(),
        .events_dropped = opts->events_dropped,
        .test = pl_summary_test(&result->test, result->tested),
    };
    row.usage.bytes_sent = row.usage.bytes_received = 0;
    row.usage.messages_sent = row.usage.messages_received = 0;
    gethostname(row.host, sizeof row.host - 1);
    return row;
}

/* The rows of all tasks: those that the chief gathered, or only ours. */
static pl_status take_rows(pl_summary *s, const pl_summary_opts *opts)
{
    pl_job_reports *reports = opts->reports;
    if (reports != NULL) {
        s->per_worker = reports->workers;
        s->worker_count = reports->worker_count;
        s->per_server = reports->servers;
        s->server_count = reports->server_count;
        s->has_evaluator = reports->has_evaluator;
        s->evaluator = reports->evaluator;
        reports->workers = NULL;
        reports->servers = NULL;
        reports->worker_count = reports->server_count = 0;
        return PL_OK;
    }
    PL_TRY(PL_NEW(s->per_worker, 1));
    s->worker_count = 1;
    s->per_worker[0] = pl_summary_row(&(pl_summary_row_opts) {
        .result = opts->result,
        .events_dropped = opts->events_dropped,
    });
    return PL_OK;
}

/* A number of a row; 0 if a lost worker left none. */
static int64_t known(int64_t value)
{
    return value > 0 ? value : 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t largest_worker(const pl_summary *s)
{
    int64_t most = 0;
    for (size_t i = 0; i < s->worker_count; i++)
        most = larger(most, s->per_worker[i].usage.peak_rss_mb);
    return most;
}

static int64_t largest_server(const pl_summary *s)
{
    int64_t most = 0;
    for (size_t i = 0; i < s->server_count; i++)
        most = larger(most, s->per_server[i].usage.peak_rss_mb);
    return most;
}

/* A task without a report adds nothing; a share of a core that cannot be
 * measured makes the job's unknown. */
static void add_usage(pl_summary *s, const pl_task_usage *usage)
{
    if (isnan(usage->user_seconds))
        return;
    s->total_rss_mb += known(usage->peak_rss_mb);
    s->user_seconds += usage->user_seconds;
    s->system_seconds += usage->system_seconds;
    s->cpu_percent += pl_task_usage_cpu(usage);
    s->disk_read_bytes += known(usage->disk_read_bytes);
    s->disk_written_bytes += known(usage->disk_written_bytes);
}

static void add_usages(pl_summary *s)
{
    for (size_t i = 0; i < s->worker_count; i++)
        add_usage(s, &s->per_worker[i].usage);
    for (size_t i = 0; i < s->server_count; i++)
        add_usage(s, &s->per_server[i].usage);
    if (s->has_evaluator)
        add_usage(s, &s->evaluator.usage);
}

/* Of all workers that left a report. */
static double mean_train_loss(const pl_summary *s)
{
    double sum = 0, examples = 0;
    for (size_t i = 0; i < s->worker_count; i++) {
        const pl_worker_report *row = &s->per_worker[i];
        if (row->train_loss_examples <= 0)
            continue;
        sum += row->train_loss * (double)row->train_loss_examples;
        examples += (double)row->train_loss_examples;
    }
    return examples > 0 ? sum / examples : (double)NAN;
}

/* Add up the rows. */
static void add_up(pl_summary *s)
{
    add_usages(s);
    s->train_loss = mean_train_loss(s);
    for (size_t i = 0; i < s->worker_count; i++) {
        const pl_worker_report *row = &s->per_worker[i];
        s->bytes_sent += known(row->usage.bytes_sent);
        s->bytes_received += known(row->usage.bytes_received);
        s->events_dropped += known(row->events_dropped);
    }
    s->peak_rss_mb = larger(pl_report_mb(pl_ram_peak()), largest_worker(s));
    s->peak_rss_mb = larger(s->peak_rss_mb, largest_server(s));
    if (s->has_evaluator)
        s->peak_rss_mb = larger(s->peak_rss_mb, s->evaluator.usage.peak_rss_mb);
}

/* If tests decide, no worker makes updates while the chief tests; as in lock
 * step, that time does not count as training. */
static double held_seconds(const pl_summary_opts *opts)
{
    pl_targets targets = pl_job_targets(opts->job);
    return pl_targets_any(&targets) ? opts->result->held_seconds : 0;
}

/* In lock step the chief has measured all of it, unless it was restarted. */
static double trained_seconds(const pl_summary_opts *opts, bool own_pace)
{
    const pl_loop_result *result = opts->result;
    int64_t steps = result->progress.step - opts->resumed_step;
    bool late =
        opts->reports != NULL && result->own_steps + result->dropped < steps;
    if (own_pace || late)
        return opts->resumed_seconds + opts->update_seconds -
               (own_pace ? held_seconds(opts) : 0);
    return result->progress.seconds;
}

/* When the target was reached, according to the chief; if it ended the run, the
 * end of the run.  (In async and ssp the chief does not see the others'
 * updates.) */
static double target_seconds(const pl_summary *s, const pl_summary_opts *opts)
{
    const pl_loop_result *result = opts->result;
    if (result->target_step < 0)
        return NAN;
    return result->target_step == s->steps ? s->seconds
                                           : result->target_seconds;
}

/* Training time and speed. */
static void put_pace(pl_summary *s, const pl_summary_opts *opts, bool own_pace)
{
    const pl_progress *progress = &opts->result->progress;
    s->seconds = trained_seconds(opts, own_pace);
    double seconds = s->seconds > 0 ? s->seconds : 1e-9;
    s->steps = progress->step;
    s->examples = progress->examples;
    s->examples_per_s = (double)progress->examples / seconds;
    s->steps_per_s = (double)progress->step / seconds;
    s->target_seconds = target_seconds(s, opts);
}

/* The job's settings. */
static void put_job(pl_summary *s, const pl_summary_opts *opts)
{
    static const char *const modes[] = { "sync", "async", "ssp" };
    static const char *const strategies[] = { "single", "ps", "allreduce" };
    const pl_train_options *train = &opts->job->options->train;
    const pl_cluster *cluster = opts->cluster;
    s->model = opts->job->options->model->name;
    s->strategy = strategies[train->strategy];
    if (train->strategy == PL_TRAIN_STRATEGY_PS)
        s->mode = modes[train->mode];
    s->workers = cluster != NULL ? cluster->workers : 1;
    s->ps = cluster != NULL ? cluster->ps : 0;
    s->batch = train->batch;
    s->micro_batches = train->micro_batches;
    s->kernels = opts->job->kernels->name;
    s->run = train->launched_run != NULL ? train->launched_run : opts->run;
}

/* If the loss was not a number, the parameters are not those of `steps`. */
static void put_hash(pl_summary *s, const pl_summary_opts *opts)
{
    if (opts->result->stopped_by == PL_STOPPED_NAN)
        return;
    if (opts->hash != NULL)
        memcpy(s->parameters_sha256, opts->hash, sizeof s->parameters_sha256);
    else
        pl_job_hash(opts->job, s->parameters_sha256);
}

static bool is_incident(const pl_run_event *event)
{
    return event->kind == PL_EVENT_LOST || event->kind == PL_EVENT_RESTART ||
           event->kind == PL_EVENT_ROLLBACK;
}

/* Add the incidents of the timeline; a restarted chief has not seen all of
 * them. */
static pl_status take_incidents(pl_summary *s, const char *run)
{
    pl_run_events events;
    int64_t undone = 0;
    PL_TRY(pl_run_events_read(&events, run));
    s->started = NAN;
    for (size_t i = 0; i < events.count; i++) {
        const pl_run_event *event = &events.list[i];
        if (event->kind == PL_EVENT_START)
            s->started = event->time;
        if (event->kind == PL_EVENT_ROLLBACK) {
            s->rollbacks++;
            undone += event->from - event->step;
        }
        if (is_incident(event) && s->incident_count < PL_INCIDENTS_MAX)
            events.list[s->incident_count++] = *event;
    }
    s->rolled_back = larger(s->rolled_back, undone);
    s->incidents = events.list;
    if (s->incident_count > 0)
        return PL_OK;
    pl_run_events_close(&events);
    s->incidents = NULL;
    return PL_OK;
}

/* The supervisor's count.  Without a supervisor, server 0 counts the workers
 * that rejoined, until it is lost itself; each rollback follows the restart of
 * a server. */
static int64_t count_restarts(const pl_summary *s, const pl_summary_opts *opts)
{
    int64_t seen = 0;
    for (size_t i = 0; i < s->incident_count; i++)
        seen += s->incidents[i].kind == PL_EVENT_RESTART;
    if (opts->counts != NULL)
        return larger(seen, opts->counts->restarts);
    if (opts->reports == NULL)
        return seen;
    return larger(seen, opts->reports->restarts +
                            (s->server_count > 0 ? s->rollbacks : 0));
}

/* The part of a task's usage that is not its process's. */
static pl_task_usage without_process(const pl_task_usage *usage)
{
    return (pl_task_usage) {
        .bytes_sent = usage->bytes_sent,
        .bytes_received = usage->bytes_received,
        .messages_sent = usage->messages_sent,
        .messages_received = usage->messages_received,
        .peak_rss_mb = -1,
        .alive_seconds = (double)NAN,
        .user_seconds = (double)NAN,
        .system_seconds = (double)NAN,
        .queued_seconds = (double)NAN,
        .disk_read_bytes = -1,
        .disk_written_bytes = -1,
    };
}

/* Threads share one process; only the chief reports its usage. */
static void share_process(pl_summary *s)
{
    for (size_t i = 0; i < s->worker_count; i++)
        if (s->per_worker[i].index != 0)
            s->per_worker[i].usage = without_process(&s->per_worker[i].usage);
    for (size_t i = 0; i < s->server_count; i++)
        s->per_server[i].usage = without_process(&s->per_server[i].usage);
    if (s->has_evaluator)
        s->evaluator.usage = without_process(&s->evaluator.usage);
}

static pl_status find_bottleneck(pl_summary *s, const pl_summary_opts *opts)
{
    const pl_job *job = opts->job;
    pl_bottleneck_opts limits = { .cores = pl_thread_cores() };
    if (s->has_codec && s->codec.layer_count == 0)
        PL_TRY(
            pl_coding_offer(&limits, job->options, job->network, s->workers));
    return pl_bottleneck_find(s, &limits);
}

pl_status pl_summary_make(pl_summary *out, const pl_summary_opts *opts)
{
    const pl_loop_result *result = opts->result;
    const pl_train_options *train = &opts->job->options->train;
    const pl_job_reports *reports = opts->reports;
    bool own_pace = opts->cluster != NULL && train->mode != PL_TRAIN_MODE_SYNC;
    bool mixed = result->progress.mixed || (reports != NULL && reports->mixed);
    pl_summary s = {
        .epochs = result->epochs,
        .examples_left_out = opts->left_out,
        .startup_seconds = opts->startup_s,
        .eval_seconds = result->eval_seconds,
        .checkpoint_seconds = result->save_seconds,
        .tests = result->tests,
        .checkpoints = result->saves,
        .test = pl_summary_test(&result->test, result->tested),
        .stopped_by = pl_stopped_text(result->stopped_by),
        .target_step = result->target_step,
        .resumed_step = opts->resumed_step,
        .faults = opts->counts != NULL ? opts->counts->faults : 0,
        .deterministic =
            !mixed && !own_pace && !(train->hogwild && train->threads > 1),
        .bad_examples = bad_of(opts->job),
        .dropped_gradients =
            reports != NULL ? reports->dropped : result->dropped,
        .rolled_back = result->rolled_back,
    };
    put_pace(&s, opts, own_pace);
    put_job(&s, opts);
    put_hash(&s, opts);
    PL_TRY(take_rows(&s, opts));
    pl_status status = take_incidents(&s, opts->run);
    if (status != PL_OK) {
        pl_summary_close(&s);
        return status;
    }
    s.restarts = train->restarted + count_restarts(&s, opts);
    if (opts->threads)
        share_process(&s);
    add_up(&s);
    if (opts->cluster != NULL && !opts->job->options->model->sparse)
        status = pl_coding_sum_up(&s, &opts->coding, train,
                                  opts->job->network->params, s.workers);
    if (status == PL_OK)
        status = find_bottleneck(&s, opts);
    if (status != PL_OK) {
        pl_summary_close(&s);
        return status;
    }
    if (opts->job->elsewhere && opts->cluster != NULL)
        pl_traffic_estimate(
            &s, &(pl_traffic_opts) {
                    .floats = pl_params_elements(opts->job->network->params),
                    .fetched = opts->hash != NULL && opts->hash[0] != '\0',
                    .shared = opts->shared,
                    .address = opts->cluster->ps_address[0],
                });
    *out = s;
    return PL_OK;
}

/* The columns of the table of workers: only those with information. */
typedef struct worker_columns {
    bool dropped, accuracy, host;
} worker_columns;

static worker_columns columns_of(const pl_summary *s)
{
    worker_columns c = { false, false, false };
    const char *first = NULL;
    for (size_t i = 0; i < s->worker_count; i++) {
        const pl_worker_report *row = &s->per_worker[i];
        if (row->lost)
            continue;
        c.dropped = c.dropped || row->dropped > 0;
        c.accuracy = c.accuracy || isfinite(row->test.accuracy);
        c.host = c.host || (first != NULL && strcmp(first, row->host) != 0);
        first = first != NULL ? first : row->host;
    }
    return c;
}

/* At most 79 columns wide: the host's name, if there are several hosts, comes
 * last and is cut. */
static void print_row(const pl_worker_report *row, const worker_columns *c,
                      FILE *file)
{
    char accuracy[16] = "-", name[64];
    if (isfinite(row->test.accuracy))
        snprintf(accuracy, sizeof accuracy, "%.2f %%",
                 100 * row->test.accuracy);
    fprintf(file, "%6d %9lld %11lld %8.2f %7.0f %% %5.0f %% %5.0f %%",
            row->index, (long long)known(row->steps),
            (long long)known(row->examples), row->seconds,
            100 * (row->computing_share + row->input_share),
            100 * row->sending_share, 100 * row->waiting_share);
    if (c->dropped)
        fprintf(file, " %7lld", (long long)known(row->dropped));
    if (c->accuracy)
        fprintf(file, " %8s", accuracy);
    if (c->host)
        fprintf(file, "  %.*s",
                14 - (c->dropped ? 8 : 0) + (c->accuracy ? 0 : 9),
                pl_quote_line(name, sizeof name, row->host));
    fputc('\n', file);
}

/* The table of workers, if there are several. */
static void print_workers(const pl_summary *s, FILE *file)
{
    if (s->worker_count < 2)
        return;
    worker_columns c = columns_of(s);
    fprintf(file, "\n%6s %9s %11s %8s %9s %7s %7s%s%s%s\n", "worker", "steps",
            "examples", "seconds", "computing", "sending", "waiting",
            c.dropped ? " dropped" : "", c.accuracy ? " accuracy" : "",
            c.host ? "  host" : "");
    for (size_t i = 0; i < s->worker_count; i++) {
        const pl_worker_report *row = &s->per_worker[i];
        if (!row->lost)
            print_row(row, &c, file);
        else
            fprintf(file, "%6zu %9lld  lost before it could report\n", i,
                    (long long)known(row->steps));
    }
}

static void print_test(const pl_test_result *test, FILE *file)
{
    if (isfinite(test->loss) && isfinite(test->accuracy))
        fprintf(file, "test loss      %.4f\ntest accuracy  %.2f %%\n",
                test->loss, 100 * test->accuracy);
    if (isfinite(test->auc))
        fprintf(file,
                "test AUC       %.4f\nprecision      %.2f %%\nrecall         "
                "%.2f %%\ncalibration    %.3f\n",
                test->auc, 100 * test->precision, 100 * test->recall,
                test->calibration);
    if (isfinite(test->rmse))
        fprintf(file,
                "test loss      %.4g\ntest RMSE      %.4g\ntest MAE       "
                "%.4g\ntest R2        %.4f\n",
                test->loss, test->rmse, test->mae, test->r2);
}

/* When --stop-loss or --stop-accuracy was met. */
static void print_target(const pl_summary *s, FILE *file)
{
    if (s->target_step < 0)
        return;
    fprintf(file, "target met     step %lld", (long long)s->target_step);
    if (isfinite(s->target_seconds))
        fprintf(file, ", %.*f s", s->target_seconds < 0.1 ? 4 : 2,
                s->target_seconds);
    fputc('\n', file);
}

/* Of the largest task; with servers, also by role. */
static void print_memory(const pl_summary *s, FILE *file)
{
    fprintf(file, "peak memory    %lld MB", (long long)known(s->peak_rss_mb));
    if (s->server_count > 0) {
        fprintf(file, " (worker %lld MB, ps %lld MB",
                (long long)largest_worker(s), (long long)largest_server(s));
        if (s->has_evaluator && s->evaluator.usage.peak_rss_mb > 0)
            fprintf(file, ", evaluator %lld MB",
                    (long long)s->evaluator.usage.peak_rss_mb);
        fputc(')', file);
    }
    if (s->total_rss_mb > s->peak_rss_mb)
        fprintf(file, ", all tasks %lld MB", (long long)s->total_rss_mb);
    fputc('\n', file);
}

/* From the tasks' own counters, which are exact even for short jobs. */
static void print_processor(const pl_summary *s, FILE *file)
{
    double seconds = s->user_seconds + s->system_seconds;
    if (isnan(seconds))
        return;
    fprintf(file, "processor      %.2f s (user %.2f s, system %.2f s), ",
            seconds, s->user_seconds, s->system_seconds);
    if (isfinite(s->cpu_percent))
        fprintf(file, "%.0f %% of a core\n", s->cpu_percent);
    else
        fputs("too short to measure the share of a core\n", file);
}

/* " near step 812 (after 3.1 s)", approximately: tasks report their steps a few
 * times a second. */
static void say_when(const pl_summary *s, const pl_run_event *event, FILE *file)
{
    if (event->step >= 0)
        fprintf(file, " near step %lld", (long long)event->step);
    if (isfinite(event->time - s->started))
        fprintf(file, " (after %.1f s)", event->time - s->started);
}

/* True if the task lost in incident number `lost` was restarted. */
static bool came_back(const pl_summary *s, size_t lost)
{
    const char *task = s->incidents[lost].task;
    for (size_t i = lost + 1; i < s->incident_count; i++) {
        const pl_run_event *event = &s->incidents[i];
        if (event->kind != PL_EVENT_ROLLBACK && strcmp(event->task, task) == 0)
            return event->kind == PL_EVENT_RESTART;
    }
    return false;
}

/* "worker 1 was lost near step 812 (after 3.1 s) and restarted: was killed by
 * signal 9 (Killed)" */
static void print_lost(const pl_summary *s, size_t index, FILE *file)
{
    const pl_run_event *event = &s->incidents[index];
    char task[80], how[256];
    fprintf(file, "%s was lost", pl_quote_line(task, sizeof task, event->task));
    say_when(s, event, file);
    if (came_back(s, index))
        fputs(" and restarted", file);
    if (event->text[0] != '\0')
        fprintf(file, ": %s", pl_quote_line(how, sizeof how, event->text));
    fputc('\n', file);
}

static void print_rollback(const pl_summary *s, const pl_run_event *event,
                           FILE *file)
{
    fprintf(file, "the job rolled back from step %lld to step %lld",
            (long long)event->from, (long long)event->step);
    if (isfinite(event->time - s->started))
        fprintf(file, " (after %.1f s)", event->time - s->started);
    fputc('\n', file);
}

/* The incidents of the job: a line for each loss and rollback. */
static void print_incidents(const pl_summary *s, FILE *file)
{
    bool first = true;
    if (s->restarts > 0)
        fprintf(file, "restarts       %lld\n", (long long)s->restarts);
    for (size_t i = 0; i < s->incident_count; i++) {
        const pl_run_event *event = &s->incidents[i];
        if (event->kind == PL_EVENT_RESTART)
            continue;
        fputs(first ? "what happened  " : "               ", file);
        first = false;
        if (event->kind == PL_EVENT_LOST)
            print_lost(s, i, file);
        else
            print_rollback(s, event, file);
    }
}

/* Counts of skipped and lost items, if there are any. */
static void print_losses(const pl_summary *s, FILE *file)
{
    if (s->examples_left_out > 0)
        fprintf(file,
                "left out       %lld examples per epoch, different ones "
                "each time\n",
                (long long)s->examples_left_out);
    if (s->bad_examples > 0)
        fprintf(file, "malformed      %lld examples skipped\n",
                (long long)s->bad_examples);
    if (s->faults > 0)
        fprintf(file, "faults         %lld injected by --chaos\n",
                (long long)s->faults);
    if (s->events_dropped > 0)
        fprintf(file, "not recorded   %lld events\n",
                (long long)s->events_dropped);
}

/* A text from a file, on one line. */
static const char *plain(char room[1024], const char *text)
{
    return text != NULL ? pl_quote_line(room, 1024, text) : "?";
}

#define LABEL_COLUMNS 15

/* A line that is wider than the terminal continues below its text. */
static void print_wrapped(FILE *file, const char *label, const char *text)
{
    int columns = pl_output_columns(file);
    size_t room =
        columns > 2 * LABEL_COLUMNS ? (size_t)(columns - 1 - LABEL_COLUMNS) : 0;
    do {
        size_t bytes = pl_layout_break(text, room);
        fprintf(file, "%-*s%.*s\n", LABEL_COLUMNS, label, (int)bytes, text);
        text += bytes + strspn(text + bytes, " ");
        label = "";
    } while (text[0] != '\0');
}

void pl_summary_print(const pl_summary *s, FILE *file)
{
    char number[16], text[1024], stopped[1024];
    fprintf(file,
            "%s: %lld step%s, %.2f epochs in %.2f s (%s ex/s), ended by %s\n",
            plain(text, s->model), (long long)known(s->steps),
            known(s->steps) == 1 ? "" : "s", s->epochs, s->seconds,
            pl_layout_number(s->examples_per_s, number),
            plain(stopped, s->stopped_by));
    if (isfinite(s->train_loss))
        fprintf(file, "train loss     %.4f\n", s->train_loss);
    print_test(&s->test, file);
    print_target(s, file);
    print_losses(s, file);
    print_incidents(s, file);
    if (s->has_bottleneck)
        print_wrapped(file, "bottleneck", plain(text, s->bottleneck.text));
    if (s->has_codec && s->codec.layer_count > 0) {
        pl_coding_text(&s->codec, stopped, sizeof stopped);
        print_wrapped(file, "codec", stopped);
    }
    if (s->has_codec && s->codec.local_steps > 0)
        fprintf(file,
                "local steps    parameters averaged every %lld steps; the "
                "result depends on it\n",
                (long long)s->codec.local_steps);
    if (s->has_dense_traffic) {
        pl_traffic_text(&s->dense_traffic, stopped, sizeof stopped);
        print_wrapped(file, "traffic", plain(text, stopped));
    }
    print_memory(s, file);
    print_processor(s, file);
    fprintf(file, "run folder     %s\n", plain(text, s->run));
    print_workers(s, file);
}
