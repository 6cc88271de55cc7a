/* train_task.c - one task of a job by its role: parameter server, evaluator, or
 * a worker around the trainer. */
#include "app/task/train_task.h"

#include "app/run/observers.h"
#include "app/run/run_folder.h"
#include "app/run/tracing.h"
#include "app/task/descriptors.h"
#include "app/task/status.h"
#include "app/train/job.h"
#include "app/train/links.h"
#include "app/view/progress.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/cluster/cluster_reach.h"
#include "sync/ps/recorder.h"
#include "sync/ps/sync.h"
#include "train/loop/due.h"
#include "train/recorder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ANY_PORT  "127.0.0.1:0"
#define LINGER_MS 1000 /* for the last messages to be sent */

/* The addresses: from the cluster itself, or from the supervisor. */
static pl_status learn_cluster(const pl_trainer_opts *opts, pl_cluster *out,
                               const pl_cluster **use)
{
    *use = opts->cluster;
    if (opts->control == NULL)
        return PL_OK;
    int64_t limit_ms = opts->options->train.join_timeout * 1000;
    PL_TRY(pl_control_cluster(opts->control, out,
                              pl_deadline_in_ms(pl_clock_real(), limit_ms)));
    *use = out;
    return PL_OK;
}

/* The state of a parameter server. */
typedef struct server_task {
    const pl_trainer_opts *opts;
    atomic_bool *interrupt;
    pl_ps_server *server;
    pl_metrics *metrics;
    char *records; /* the folder of its records; NULL: not known */
    bool located;  /* `records` was decided */
    pl_observers *observers;
    pl_ps_recorder recorder;
    pl_trace *trace; /* with --profile */
} server_task;

static void tell_lost(void *context, bool is_server, int32_t index)
{
    const server_task *task = context;
    pl_task lost = is_server ? (pl_task) { PL_ROLE_PS, index }
                             : pl_cluster_task(task->opts->cluster, index);
    if (task->opts->control != NULL)
        pl_control_lost(task->opts->control, lost);
    else
        pl_observers_lost(task->metrics, lost);
}

static void start_observers(server_task *task)
{
    if (pl_observers_start(&task->observers, &(pl_observers_opts) {
                                                 .options = task->opts->options,
                                                 .run = task->records,
                                                 .task = task->opts->task,
                                                 .metrics = task->metrics,
                                             }) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; the server continues without records",
               pl_error_message());
}

/* The folder for records is known once the chief has joined. */
static void record_server(server_task *task, bool last)
{
    pl_ps_server_view view = pl_ps_server_look(task->server);
    if (!task->located && view.run != NULL) {
        task->located = true;
        pl_trainer_locate(task->opts, view.run_job, view.run, &task->records);
        start_observers(task);
    }
    pl_ps_recorder_put(&task->recorder, &view, pl_ticks_now(), last);
}

/* Called regularly: report the step, check for the end. */
static void tell_step(void *context, int64_t step)
{
    server_task *task = context;
    if (step >= 0)
        record_server(task, false);
    if (task->opts->control == NULL)
        return;
    pl_task_status status = {
        .step = step,
        .loss = NAN,
        .test_loss = NAN,
        .test_accuracy = NAN,
        .waiting = NAN,
    };
    pl_task gone;
    if (step >= 0)
        pl_control_status(task->opts->control, &status);
    while (step >= 0 && pl_control_gone(task->opts->control, &gone))
        pl_ps_server_gone(task->server,
                          pl_cluster_worker(task->opts->cluster, gone));
    if (pl_control_ended(task->opts->control))
        atomic_store(task->interrupt, true);
}

static pl_ps_core_opts core_opts(const pl_trainer_opts *opts,
                                 const pl_kernels *kernels,
                                 const pl_json *settings, pl_codec_topk *topk)
{
    const pl_train_options *train = &opts->options->train;
    return (pl_ps_core_opts) {
        .index = opts->task.index,
        .ps = opts->cluster->ps,
        .workers = opts->cluster->workers,
        .evaluator = opts->cluster->evaluator,
        .named_chief = opts->cluster->named_chief,
        .mode = (pl_ps_mode)train->mode,
        .replicas = (int32_t)train->replicas_to_aggregate,
        .staleness = (int32_t)train->staleness,
        .sum = train->aggregate == PL_AGGREGATE_SUM,
        .on_loss = (pl_on_loss)train->on_worker_loss,
        .heartbeat_ms = pl_options_silence_ms(train),
        .rejoin_ms = train->rejoin_timeout * 1000,
        .join_ms = train->join_timeout * 1000,
        .supervised = opts->control != NULL,
        .held = opts->control != NULL,
        .codec = pl_options_codec(train, topk),
        .kernels = kernels,
        .settings = settings,
    };
}

static pl_status serve(const pl_trainer_opts *opts, pl_ps_server *server,
                       const pl_cluster *known)
{
    pl_cluster learned = { 0 };
    const pl_cluster *cluster = known;
    if (opts->control != NULL)
        PL_TRY(pl_control_address(opts->control, pl_ps_server_address(server)));
    else
        pl_log(PL_LOG_INFO, "ps %d listens on %s", opts->task.index,
               pl_ps_server_address(server));
    if (known == NULL)
        PL_TRY(learn_cluster(opts, &learned, &cluster));
    pl_status status = pl_ps_server_run(server, cluster->ps_address[0]);
    pl_ps_server_view view = pl_ps_server_look(server);
    pl_log(PL_LOG_INFO,
           "ps %d ends at step %lld: %lld MB received, %lld MB sent",
           opts->task.index, (long long)view.step,
           (long long)(view.net.received_bytes >> 20),
           (long long)(view.net.sent_bytes >> 20));
    pl_cluster_close(&learned);
    return status;
}

/* The records of a server: its work, and its host's resources. */
static pl_status watch_server(server_task *task)
{
    const pl_trainer_opts *opts = task->opts;
    PL_TRY(pl_metrics_new(&task->metrics, &(pl_metrics_opts) { 0 }));
    PL_TRY(
        pl_ps_recorder_init(&task->recorder, task->metrics,
                            opts->options->train.mode != PL_TRAIN_MODE_SYNC));
    if (opts->control == NULL)
        return PL_OK;
    task->located = true;
    PL_TRY(pl_mem_copy_text(&task->records, opts->options->train.run));
    start_observers(task);
    return PL_OK;
}

static pl_status open_trace(server_task *task)
{
    if (task->opts->options->train.profile == NULL)
        return PL_OK;
    return pl_trace_new(&task->trace, &(pl_trace_opts) { .lanes = 1 });
}

static pl_status write_trace(const server_task *task)
{
    return pl_tracing_write(&(pl_tracing_opts) {
        .trace = task->trace,
        .run = task->records,
        .sent_to = task->opts->options->train.launched_run,
        .task = task->opts->task,
        .skew = pl_ps_server_look(task->server).skew,
    });
}

/* The only folder that a server reads and writes is the given one.  A server
 * started by hand without --run learns it from the chief, below the folder
 * where it was started. */
static bool shares_folder(void *context, uint64_t job, const char *run)
{
    (void)context;
    return pl_run_folder_is(run, job);
}

static pl_place server_place(const pl_options *options)
{
    if (options->train.run != NULL)
        return (pl_place) { .run = options->train.run };
    return (pl_place) { .within = "." };
}

static pl_status be_server(const pl_trainer_opts *opts)
{
    const pl_kernels *kernels;
    pl_json *settings;
    pl_codec_topk topk;
    PL_TRY(pl_options_kernels(opts->options, &kernels));
    PL_TRY(pl_trainer_settings(opts->options, &settings));
    server_task task = { .opts = opts,
                         .interrupt = pl_trainer_interrupt(opts) };
    /* A restarted server listens at the address that the others know. */
    pl_cluster before = { 0 };
    const char *address = ANY_PORT;
    bool again =
        opts->control != NULL &&
        pl_control_cluster(opts->control, &before,
                           pl_deadline_in_ms(pl_clock_real(), 0)) == PL_OK;
    if (again)
        address = before.ps_address[opts->task.index];
    else if (opts->control == NULL)
        address = opts->cluster->ps_address[opts->task.index];
    pl_range traced;
    pl_status status = pl_options_profile(opts->options, &traced);
    if (status == PL_OK)
        status = open_trace(&task);
    if (status == PL_OK)
        status = pl_ps_server_new(
            &task.server, &(pl_ps_server_opts) {
                              .core = core_opts(opts, kernels, settings, &topk),
                              .optim = pl_options_optim(opts->options),
                              .schedule = pl_options_schedule(opts->options),
                              .address = address,
                              .place = server_place(opts->options),
                              .transport = pl_transport_chosen(
                                  opts->options->train.transport),
                              .keys = opts->keys,
                              .interrupt = task.interrupt,
                              .trace = task.trace,
                              .trace_first = traced.first,
                              .trace_last = traced.last,
                              .shares = shares_folder,
                              .lost = tell_lost,
                              .step = tell_step,
                              .context = &task,
                          });
    if (status == PL_OK)
        status = watch_server(&task);
    if (status == PL_OK)
        status = serve(opts, task.server, again ? &before : NULL);
    if (status == PL_OK)
        record_server(&task, true);
    pl_observers_stop(task.observers, status == PL_OK);
    pl_metrics_free(task.metrics);
    if (status == PL_OK)
        status = write_trace(&task);
    /* The failure, received or its own, is that of the whole job. */
    if (status == PL_CLOSED && opts->control != NULL)
        pl_control_final(opts->control);
    pl_ps_server_free(task.server);
    pl_trace_free(task.trace);
    pl_mem_free(task.records);
    pl_cluster_close(&before);
    pl_json_free(settings);
    return status;
}

/* The evaluator: whenever a test is due, fetch the parameters and test them. */
static pl_status evaluate_on(const pl_trainer_opts *opts, pl_job *job,
                             pl_ps_sync *sync, pl_compute *compute,
                             pl_recorder *recorder)
{
    const pl_train_options *train = &opts->options->train;
    int64_t per_epoch =
        job->train->count / (train->batch * train->micro_batches);
    if (train->mode == PL_TRAIN_MODE_SYNC)
        per_epoch /= opts->cluster->workers;
    if (train->steps_per_epoch > 0)
        per_epoch = train->steps_per_epoch;
    pl_due_pace pace = { train->batch * train->micro_batches, per_epoch };
    pl_due due;
    pl_due_init(&due, train->eval_every, pace, 0);
    for (bool over = false; !over;) {
        pl_score score;
        int64_t step = due.next_step < INT64_MAX ? due.next_step : 1;
        PL_TRY(pl_ps_sync_pull(sync, step));
        pl_ps_sync_view view = pl_ps_sync_look(sync);
        over = view.over;
        PL_TRY(pl_loop_evaluate(compute, job->test, train->eval_batch,
                                pl_ps_sync_base(sync), NULL, &score));
        pl_recorder_test(recorder, view.step, &score);
        if (score.numeric)
            pl_log(PL_LOG_INFO, "step %lld: test loss %.4g, RMSE %.4g",
                   (long long)view.step, score.loss, score.rmse);
        else
            pl_log(PL_LOG_INFO, "step %lld: test loss %.4f, accuracy %.2f %%",
                   (long long)view.step, score.loss, 100 * score.accuracy);
        if (opts->control != NULL)
            pl_control_status(opts->control,
                              &(pl_task_status) {
                                  .step = view.step,
                                  .loss = NAN,
                                  .test_loss = score.loss,
                                  .test_accuracy = score.accuracy,
                                  .waiting = NAN,
                              });
        (void)pl_due_now(&due, view.step, pl_ticks_now());
    }
    return pl_ps_sync_leave(sync);
}

/* The records of an evaluator. */
typedef struct eval_records {
    const pl_trainer_opts *opts;
    pl_metrics *metrics;
    pl_observers *observers;
    char *folder;           /* NULL: not known */
    const pl_ps_sync *sync; /* the evaluator's own */
} eval_records;

/* The resources that the evaluator has used. */
static pl_status report_usage(void *context, char **text)
{
    const eval_records *records = context;
    pl_ps_sync_view view = pl_ps_sync_look(records->sync);
    pl_task_report report;
    pl_task_report_read(&report);
    pl_links_count(&report.usage, &view);
    return pl_fields_text(&pl_evaluator_report_fields, &report, 0, text);
}

static pl_status start_records(eval_records *records)
{
    return pl_observers_start(&records->observers,
                              &(pl_observers_opts) {
                                  .options = records->opts->options,
                                  .run = records->folder,
                                  .task = records->opts->task,
                                  .metrics = records->metrics,
                                  .cluster = records->opts->cluster,
                              });
}

static void use_folder(void *context, uint64_t job, const char *run)
{
    eval_records *records = context;
    if (records->folder != NULL)
        return;
    pl_trainer_locate(records->opts, job, run, &records->folder);
    if (start_records(records) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; testing continues without records",
               pl_error_message());
}

static pl_status run_evaluator(const pl_trainer_opts *opts, pl_job *job)
{
    const pl_train_options *train = &opts->options->train;
    pl_json *settings = NULL;
    pl_ps_sync *sync = NULL;
    pl_compute *compute = NULL;
    eval_records records = { .opts = opts };
    pl_recorder recorder;
    pl_status_line *listener = NULL;
    atomic_bool *interrupt = pl_trainer_interrupt(opts);
    pl_status status;
    if (job->test == NULL)
        return PL_FAIL(PL_USAGE, "an evaluator has nothing to do with "
                                 "--eval-every never");
    PL_TRY_OUT(status, pl_trainer_settings(opts->options, &settings));
    PL_TRY_OUT(status,
               pl_compute_new(&compute, &(pl_compute_opts) {
                                            .network = job->network,
                                            .batch = pl_loop_eval_batch(
                                                job->test, train->eval_batch),
                                            .pool = job->pool,
                                            .kernels = job->kernels,
                                            .forward = true,
                                            .elsewhere = job->elsewhere,
                                        }));
    PL_TRY_OUT(
        status,
        pl_ps_sync_new(&sync,
                       &(pl_ps_sync_opts) {
                           .cluster = opts->cluster,
                           .task = opts->task,
                           .keys = opts->keys,
                           .mode = (pl_ps_mode)train->mode,
                           .transport = pl_transport_chosen(train->transport),
                           .heartbeat_ms = pl_options_silence_ms(train),
                           .join_ms = train->join_timeout * 1000,
                           .rejoin_ms = train->rejoin_timeout * 1000,
                           .settings = settings,
                           .params = job->network->params,
                           .average_rate = job->network->average_rate,
                           .sparse = job->elsewhere ? job->network : NULL,
                           .interrupt = interrupt,
                           .located = opts->control != NULL ? NULL : use_folder,
                           .report = report_usage,
                           .context = &records,
                       }));
    records.sync = sync;
    PL_TRY_OUT(status,
               pl_metrics_new(&records.metrics, &(pl_metrics_opts) { 0 }));
    if (opts->control != NULL) /* it can be ended before it has joined */
        PL_TRY_OUT(status,
                   pl_status_start(&listener, &(pl_status_opts) {
                                                  .metrics = records.metrics,
                                                  .control = opts->control,
                                                  .interrupt = interrupt,
                                              }));
    PL_TRY_OUT(status,
               pl_recorder_init(&recorder, &(pl_recorder_opts) {
                                               .metrics = records.metrics }));
    if (opts->control != NULL) {
        PL_TRY_OUT(status, pl_mem_copy_text(&records.folder, train->run));
        PL_TRY_OUT(status, start_records(&records));
    }
    status = evaluate_on(opts, job, sync, compute, &recorder);
out:
    pl_observers_stop(records.observers, status == PL_OK);
    pl_status_stop(listener);
    pl_metrics_free(records.metrics);
    pl_mem_free(records.folder);
    if (sync != NULL)
        pl_ps_sync_base(sync)->ops->free(pl_ps_sync_base(sync));
    pl_compute_free(compute);
    pl_json_free(settings);
    return status;
}

static pl_status be_evaluator(const pl_trainer_opts *opts)
{
    pl_job job;
    PL_TRY(pl_job_init(&job, &(pl_job_opts) {
                                 .options = opts->options,
                                 .elsewhere = pl_options_keyed(opts->options),
                             }));
    pl_status status = run_evaluator(opts, &job);
    pl_job_close(&job);
    return status;
}

/* A worker of a ring first listens, then learns the addresses of the others. */
static pl_status be_ring_worker(const pl_trainer_opts *opts)
{
    int32_t worker = pl_cluster_worker(opts->cluster, opts->task);
    char name[32];
    snprintf(name, sizeof name, "worker %d", worker);
    pl_trainer_opts with = *opts;
    pl_cluster learned = { 0 };
    bool again =
        opts->control != NULL &&
        pl_control_cluster(opts->control, &learned,
                           pl_deadline_in_ms(pl_clock_real(), 0)) == PL_OK;
    if (again)
        with.cluster = &learned;
    pl_status status;
    PL_TRY_OUT(status,
               pl_endpoint_listen(
                   &with.listen,
                   &(pl_endpoint_opts) {
                       .address = opts->control == NULL || again
                                      ? with.cluster->worker_address[worker]
                                      : ANY_PORT,
                       .name = name,
                       .transport =
                           pl_transport_chosen(opts->options->train.transport),
                       .keys = opts->keys,
                       .self = { PL_PRINCIPAL_WORKER, worker },
                   }));
    if (opts->control != NULL)
        PL_TRY_OUT(status,
                   pl_control_address(opts->control,
                                      pl_endpoint_address(with.listen)));
    else
        pl_log(PL_LOG_INFO, "%s listens on %s", name,
               pl_endpoint_address(with.listen));
    if (!again)
        PL_TRY_OUT(status, learn_cluster(opts, &learned, &with.cluster));
    status = pl_trainer_run(&with);
out:
    pl_endpoint_free(with.listen, LINGER_MS);
    pl_cluster_close(&learned);
    return status;
}

/* A task started by hand must listen at the address that the others use. */
static pl_status check_reach(const pl_trainer_opts *opts)
{
    bool only_here = false;
    if (opts->control != NULL)
        return PL_OK;
    PL_TRY(pl_cluster_check_reach(opts->cluster, opts->task, pl_address_resolve,
                                  &only_here));
    if (only_here)
        pl_log(PL_LOG_WARN,
               "this host's name resolves to loopback here (see /etc/hosts): "
               "only tasks on this host can reach %s %d",
               pl_role_text(opts->task.role), opts->task.index);
    return PL_OK;
}

pl_status pl_train_task(const pl_trainer_opts *opts)
{
    PL_TRY(check_reach(opts));
    PL_TRY(pl_descriptors_ensure(
        opts->cluster, pl_descriptors_of_task(opts->cluster, opts->task)));
    if (opts->task.role == PL_ROLE_PS)
        return be_server(opts);
    if (opts->options->train.strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
        opts->options->train.engine == PL_TRAIN_ENGINE_RING)
        return be_ring_worker(opts);
    pl_cluster learned = { 0 };
    pl_trainer_opts with = *opts;
    PL_TRY(learn_cluster(opts, &learned, &with.cluster));
    pl_status status = opts->task.role == PL_ROLE_EVALUATOR
                           ? be_evaluator(&with)
                           : pl_trainer_run(&with);
    pl_cluster_close(&learned);
    return status;
}
