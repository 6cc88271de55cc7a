/* summary.c - adds up the reports of all workers into the summary of a run, and
 * prints it as text or JSON. */
#include "app/run/summary.h"

#include "app/run/bottleneck.h"
#include "app/view/progress.h"
#include "base/host/ram.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "data/sparse/set.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

pl_test_result pl_summary_test(const pl_score *score, bool tested)
{
    bool binary = tested && score->binary;
    return (pl_test_result) {
        .loss = tested ? score->loss : NAN,
        .accuracy = tested ? score->accuracy : NAN,
        .auc = binary ? score->auc : NAN,
        .precision = binary ? score->precision : NAN,
        .recall = binary ? score->recall : NAN,
        .calibration = binary ? score->calibration : NAN,
    };
}

/* Examples of files that were passed over; -1: the data is not sparse. */
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

/* The rows of all tasks: those that the chief gathered, or our own. */
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

/* A number of a row; 0 where a lost worker left none. */
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

/* A task that told nothing adds nothing; a share of a core that cannot be
 * measured leaves that of the job unknown. */
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

/* What the rows add up to. */
static void add_up(pl_summary *s)
{
    add_usages(s);
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

/* In lock step the chief has seen all of it, unless it was started again. */
static double trained_seconds(const pl_summary_opts *opts, bool own_pace)
{
    const pl_loop_result *result = opts->result;
    int64_t steps = result->progress.step - opts->resumed_step;
    bool late =
        opts->reports != NULL && result->own_steps + result->dropped < steps;
    if (own_pace || late)
        return opts->resumed_seconds + opts->update_seconds;
    return result->progress.seconds;
}

/* How long it trained, and how fast. */
static void put_pace(pl_summary *s, const pl_summary_opts *opts, bool own_pace)
{
    const pl_progress *progress = &opts->result->progress;
    s->seconds = trained_seconds(opts, own_pace);
    double seconds = s->seconds > 0 ? s->seconds : 1e-9;
    s->steps = progress->step;
    s->examples = progress->examples;
    s->examples_per_s = (double)progress->examples / seconds;
    s->steps_per_s = (double)progress->step / seconds;
}

/* What the job was. */
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
    s->run = opts->run;
}

/* After a blow-up the parameters are not those of `steps`. */
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

/* What the timeline tells of this job; a chief that was restarted has not seen
 * all of it. */
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

/* The supervisor knows.  Without one, server 0 counts the workers that came
 * back, until it is lost itself; a job goes back when a server was. */
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
        .train_loss = result->train_loss,
        .test = pl_summary_test(&result->test, result->tested),
        .stopped_by = pl_stopped_text(result->stopped_by),
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
    add_up(&s);
    pl_bottleneck_find(&s);
    *out = s;
    return PL_OK;
}

static void print_row(const pl_worker_report *row, int64_t all, FILE *file)
{
    char accuracy[16] = "-", seconds[16], name[64];
    if (isfinite(row->test.accuracy))
        snprintf(accuracy, sizeof accuracy, "%.2f %%",
                 100 * row->test.accuracy);
    snprintf(seconds, sizeof seconds, "%.2f", row->seconds);
    double share = all > 0 ? (double)known(row->examples) / (double)all : 0;
    fprintf(file,
            "%6d  %-16.16s %9lld %10lld %5.1f%% %8s %6.1f%% %6.1f%% %6.1f%% "
            "%7lld  %8s\n",
            row->index, pl_quote_line(name, sizeof name, row->host),
            (long long)known(row->steps), (long long)known(row->examples),
            100 * share, seconds,
            100 * (row->computing_share + row->input_share),
            100 * row->sending_share, 100 * row->waiting_share,
            (long long)known(row->dropped), accuracy);
}

/* What each worker did, where there were several. */
static void print_workers(const pl_summary *s, FILE *file)
{
    int64_t all = 0;
    if (s->worker_count < 2)
        return;
    for (size_t i = 0; i < s->worker_count; i++)
        all += known(s->per_worker[i].examples);
    fprintf(file, "\n%6s  %-16s %9s %10s %6s %8s %7s %7s %7s %7s  %8s\n",
            "worker", "host", "steps", "examples", "share", "seconds",
            "comput.", "sending", "waiting", "dropped", "accuracy");
    for (size_t i = 0; i < s->worker_count; i++) {
        const pl_worker_report *row = &s->per_worker[i];
        if (!row->lost)
            print_row(row, all, file);
        else
            fprintf(file, "%6zu  %-16s %9lld  lost before it could report\n", i,
                    "-", (long long)known(row->steps));
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
}

/* Of the largest task; with servers, also of each kind. */
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

/* From the tasks' own counters, which hold however short the job was. */
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
        fputs("too short to tell the share of a core\n", file);
}

/* "worker 1 at 3.1 s, ps 0 at 4.6 s", as far as there is room. */
static void list_incidents(const pl_summary *s, pl_event_kind kind, char *text,
                           size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < s->incident_count && used < room; i++) {
        const pl_run_event *event = &s->incidents[i];
        char task[80];
        if (event->kind != kind)
            continue;
        int wrote = snprintf(text + used, room - used, "%s%s at %.1f s",
                             used > 0 ? ", " : " (",
                             pl_quote_line(task, sizeof task, event->task),
                             event->time - s->started);
        used += wrote > 0 ? (size_t)wrote : room;
    }
    if (used > 0 && used < room - 1)
        snprintf(text + used, room - used, ")");
}

/* What happened to the job on its way. */
static void print_incidents(const pl_summary *s, FILE *file)
{
    char text[512];
    if (s->restarts > 0) {
        list_incidents(s, PL_EVENT_RESTART, text, sizeof text);
        fprintf(file, "restarts       %lld%s\n", (long long)s->restarts, text);
    }
    for (size_t i = 0; i < s->incident_count; i++) {
        const pl_run_event *event = &s->incidents[i];
        if (event->kind == PL_EVENT_ROLLBACK)
            fprintf(file,
                    "rolled back    at %.1f s from step %lld to step %lld\n",
                    event->time - s->started, (long long)event->from,
                    (long long)event->step);
    }
}

/* What went by: only where there was something. */
static void print_losses(const pl_summary *s, FILE *file)
{
    if (s->examples_left_out > 0)
        fprintf(file, "left out       %lld examples an epoch, others in each\n",
                (long long)s->examples_left_out);
    if (s->bad_examples > 0)
        fprintf(file, "bad examples   %lld passed over\n",
                (long long)s->bad_examples);
    if (s->faults > 0)
        fprintf(file, "faults         %lld made by --chaos\n",
                (long long)s->faults);
    if (s->events_dropped > 0)
        fprintf(file, "not recorded   %lld events\n",
                (long long)s->events_dropped);
}

/* A text of a file, on one line. */
static const char *plain(char room[1024], const char *text)
{
    return text != NULL ? pl_quote_line(room, 1024, text) : "?";
}

void pl_summary_print(const pl_summary *s, FILE *file)
{
    char number[16], text[1024], stopped[1024];
    fprintf(file,
            "%s: %lld steps, %.2f epochs in %.2f s (%s ex/s), ended by %s\n",
            plain(text, s->model), (long long)known(s->steps), s->epochs,
            s->seconds, pl_progress_number(s->examples_per_s, number),
            plain(stopped, s->stopped_by));
    if (isfinite(s->train_loss))
        fprintf(file, "train loss     %.4f\n", s->train_loss);
    print_test(&s->test, file);
    print_losses(s, file);
    print_incidents(s, file);
    if (s->has_bottleneck)
        fprintf(file, "bottleneck     %s\n", plain(text, s->bottleneck.text));
    print_memory(s, file);
    print_processor(s, file);
    fprintf(file, "run folder     %s\n", plain(text, s->run));
    print_workers(s, file);
}
