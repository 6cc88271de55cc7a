/* trainer.c - one worker from options to summary: opens data, network and run
 * folder, connects to the strategy, runs the loop and reports. */
#include "app/train/trainer.h"

#include "app/run/observers.h"
#include "app/run/run_folder.h"
#include "app/run/summary.h"
#include "app/run/tracing.h"
#include "app/task/status.h"
#include "app/train/coding.h"
#include "app/train/interrupt.h"
#include "app/train/job.h"
#include "app/train/links.h"
#include "app/view/progress.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "state/manifest.h"
#include "state/snapshot.h"
#include "sync/allreduce/allreduce.h"
#include "sync/allreduce/factors.h"
#include "sync/allreduce/mpi/mpi.h"
#include "sync/allreduce/ring/engine.h"
#include "sync/ps/sync.h"
#include "sync/single/single.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINTS_QUEUE (1U << 18) /* see queue_size */

typedef struct trainer {
    pl_trainer_opts opts;
    const pl_options *options;
    const pl_train_options *train; /* options->train */
    bool joined;                   /* at least once */
    bool chief;
    bool own_pace; /* no lock step: async, ssp */
    int32_t worker, workers;
    pl_job job;
    pl_run_folder folder; /* the chief's */
    char *records;        /* folder of this task's records; NULL: not known */
    char *told_run;       /* the chief's: the path sent to others; or NULL */
    pl_json *settings;    /* what must not change on resume */
    pl_json *common;      /* settings that all tasks must share */
    pl_snapshot *snapshot;
    pl_sync *sync;
    pl_ps_sync *ps;              /* the same object, with servers... */
    pl_allreduce_sync *together; /* ... or without */
    pl_collective *collective;
    pl_factors *factors; /* layers that may travel as factors; NULL: none */
    pl_codec_topk topk;
    pl_held *held; /* what a codec holds back; NULL: nothing to save */
    pl_metrics *metrics;
    pl_trace *trace;
    pl_observers *observers; /* while training */
    pl_status_line *told;    /* of a supervised task, while training */
    pl_hogwild_opts hogwild;
    pl_progress start;
    int64_t per_epoch; /* steps of this worker */
    int64_t left_out;  /* examples left out of each epoch */
    char reads[PL_READS_TEXT];
    pl_loop_result result;
    pl_confusion confusion; /* the chief's, of its last test */
    int64_t events_dropped;
    atomic_bool *interrupt;
    double startup_s;
    char hash[65]; /* of parameters that servers have */
} trainer;

static void close_trainer(trainer *t)
{
    if (t->sync != NULL)
        t->sync->ops->free(t->sync);
    if (t->collective != NULL)
        t->collective->ops->free(t->collective);
    pl_factors_free(t->factors);
    pl_snapshot_free(t->snapshot);
    pl_held_free(t->held);
    pl_json_free(t->settings);
    pl_json_free(t->common);
    pl_metrics_free(t->metrics);
    pl_trace_free(t->trace);
    pl_run_folder_close(&t->folder);
    pl_mem_free(t->records);
    pl_mem_free(t->told_run);
    pl_confusion_close(&t->confusion);
    pl_job_close(&t->job);
}

static pl_reader_opts data_order(const trainer *t)
{
    return (pl_reader_opts) {
        .batch = t->train->batch,
        .micro_batches = (int32_t)t->train->micro_batches,
        .worker = t->worker,
        .workers = t->workers,
        .seed = (uint64_t)t->train->seed,
        .keep_rest = t->train->hogwild,
    };
}

/* Compute the steps of an epoch; refuse an epoch without steps. */
static pl_status count_steps(trainer *t)
{
    pl_reader_opts order = data_order(t);
    pl_reader *reader;
    PL_TRY(pl_reader_new(&reader, t->job.train, &order));
    t->per_epoch = t->train->steps_per_epoch > 0 ? t->train->steps_per_epoch
                                                 : reader->steps_per_epoch;
    t->left_out = reader->left_out;
    pl_reader_describe(reader, t->reads);
    pl_reader_free(reader);
    return PL_OK;
}

/* Total updates of the job; at most INT64_MAX. */
static int64_t end_step(const trainer *t)
{
    int64_t steps;
    if (t->train->steps > 0)
        return t->train->steps;
    if (__builtin_mul_overflow(t->train->epochs, t->per_epoch, &steps) ||
        __builtin_mul_overflow(steps, t->own_pace ? t->workers : 1, &steps))
        return INT64_MAX;
    return steps;
}

static pl_status check_length(const trainer *t)
{
    if (end_step(t) <= PL_MANIFEST_STEP_MAX)
        return PL_OK;
    return PL_FAIL(
        PL_USAGE,
        "--epochs: %lld of %lld steps each%s exceed the %lld steps that "
        "checkpoints can count; lower --epochs%s",
        (long long)t->train->epochs, (long long)t->per_epoch,
        t->own_pace ? " and worker" : "", (long long)PL_MANIFEST_STEP_MAX,
        t->train->steps_per_epoch > 0 ? " or --steps-per-epoch" : "");
}

void pl_trainer_locate(const pl_trainer_opts *opts, uint64_t job,
                       const char *chief, char **out)
{
    if (pl_run_folder_of_task(out, &(pl_task_folder_opts) {
                                       .options = opts->options,
                                       .task = opts->task,
                                       .job = job,
                                       .chief = chief,
                                   }) != PL_OK) {
        *out = NULL;
        pl_log(PL_LOG_WARN, "%s; this task keeps no records",
               pl_error_message());
        return;
    }
    pl_task_log_open(opts->log, *out, opts->task);
}

static pl_status restore(trainer *t)
{
    if (!t->train->resume)
        return PL_OK;
    char *plan = NULL; /* the servers read it once they have joined */
    pl_status status = t->train->strategy == PL_TRAIN_STRATEGY_PS
                           ? pl_snapshot_find(t->snapshot, &t->start, &plan)
                           : pl_snapshot_load(t->snapshot, &t->start);
    pl_mem_free(plan);
    if (status == PL_NOTFOUND) {
        pl_log(PL_LOG_INFO, "no complete checkpoint in %s: starting at step 0",
               t->folder.checkpoints);
        return PL_OK;
    }
    PL_TRY(status);
    if (t->start.step > end_step(t))
        return PL_FAIL(PL_USAGE,
                       "--%s: the training would end at step %lld, but %s is "
                       "already at step %lld",
                       t->train->steps > 0 ? "steps" : "epochs",
                       (long long)end_step(t), t->folder.path,
                       (long long)t->start.step);
    pl_log(PL_LOG_INFO, "resumed at step %lld", (long long)t->start.step);
    return PL_OK;
}

/* Open the run folder and its checkpoints; restore the newest on resume. */
static pl_status open_run(trainer *t)
{
    pl_job *job = &t->job;
    pl_planes planes = pl_job_planes(job);
    pl_held_planes(t->held, &planes);
    PL_TRY(pl_run_folder_init(&t->folder, t->options,
                              t->opts.host != NULL ? t->opts.host->interrupt
                                                   : NULL));
    PL_TRY(pl_options_record(t->options, PL_OPTIONS_KEPT, &t->settings));
    PL_TRY(pl_job_keep_encoding(job, t->settings));
    PL_TRY(pl_snapshot_new(
        &t->snapshot, &(pl_snapshot_opts) {
                          .folder = t->folder.checkpoints,
                          .keep = (int32_t)t->train->keep,
                          .model = t->options->model->name,
                          .settings = t->settings,
                          .params = job->network->params,
                          .planes = planes,
                          .kernels = job->kernels->name,
                          .workers = t->opts.cluster != NULL ? t->workers : 0,
                      }));
    PL_TRY(restore(t));
    PL_TRY(pl_run_folder_record(&t->folder, job));
    pl_task_log_open(t->opts.log, t->folder.path, t->opts.task);
    return pl_mem_copy_text(&t->records, t->folder.path);
}

static pl_ps_sync_view look(const trainer *t)
{
    return pl_links_look(t->ps, t->together, t->collective);
}

static pl_status read_params(void *context, int64_t first, int64_t count,
                             float *to)
{
    return pl_ps_sync_read(((trainer *)context)->ps, first, count, to);
}

/* At the end, while the servers still run, the chief reads the parameters from
 * them. */
static pl_status report_row(void *context, char **text)
{
    trainer *t = context;
    if (t->chief && t->job.elsewhere)
        PL_TRY(pl_job_hash_read(&t->job, read_params, t, t->hash));
    pl_ps_sync_view view = look(t);
    pl_loop_result result = t->result;
    result.own_steps = view.made; /* includes steps before a restart */
    result.own_examples = view.made * t->train->batch * t->train->micro_batches;
    pl_worker_report row = pl_summary_row(&(pl_summary_row_opts) {
        .result = &result,
        .index = t->worker,
        .events_dropped = pl_observers_dropped(t->observers),
    });
    pl_peer_usage peers[PL_REPORT_PEERS_MAX];
    pl_links_report(&row, &view, t->ps, t->opts.cluster->ps, peers);
    pl_status status = pl_fields_text(&pl_worker_report_fields, &row, 0, text);
    if (t->chief && t->opts.control != NULL)
        pl_control_closing(t->opts.control);
    return status;
}

static void tell_joined(void *context)
{
    trainer *t = context;
    t->joined = true;
    if (t->told != NULL)
        pl_status_joined(t->told);
}

/* The path of the run folder for other tasks. */
static pl_status name_folder(trainer *t)
{
    char real[PATH_MAX];
    if (!t->chief || realpath(t->folder.path, real) == NULL)
        return PL_OK;
    return pl_mem_copy_text(&t->told_run, real);
}

/* The supervisor prints them. */
static void tell_event(void *context, const pl_run_event *event)
{
    const trainer *t = context;
    if (t->opts.control != NULL && event->kind == PL_EVENT_ROLLBACK)
        pl_control_rolled(t->opts.control, event->from, event->step);
    else if (t->opts.control != NULL && event->kind == PL_EVENT_WARNING)
        pl_control_warn(t->opts.control, event->step, event->text);
}

static pl_status start_observers(trainer *t)
{
    return pl_observers_start(&t->observers,
                              &(pl_observers_opts) {
                                  .options = t->options,
                                  .run = t->records,
                                  .task = t->opts.task,
                                  .metrics = t->metrics,
                                  .cluster = t->opts.cluster,
                                  .job = t->chief ? &t->job : NULL,
                                  .start_step = t->start.step,
                                  .told = tell_event,
                                  .context = t,
                              });
}

/* Called while joining; nothing has been recorded before. */
static void use_folder(void *context, uint64_t job, const char *run)
{
    trainer *t = context;
    if (t->records != NULL)
        return;
    pl_trainer_locate(&t->opts, job, run, &t->records);
    if (start_observers(t) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; training continues without records",
               pl_error_message());
}

static pl_status open_ps_sync(trainer *t)
{
    const pl_train_options *train = t->train;
    int64_t replicas = train->replicas_to_aggregate;
    bool backup = replicas > 0 && replicas < t->workers;
    bool counted = train->steps > 0 || !t->own_pace;
    pl_targets targets = pl_job_targets(&t->job);
    PL_TRY(pl_trainer_settings(t->options, &t->common));
    PL_TRY(pl_ps_sync_new(
        &t->ps,
        &(pl_ps_sync_opts) {
            .cluster = t->opts.cluster,
            .task = t->opts.task,
            .keys = t->opts.keys,
            .job = t->folder.job,
            .run = t->told_run,
            .mode = (pl_ps_mode)train->mode,
            .backup = backup,
            .still = pl_targets_any(&targets),
            .tests = pl_job_deciding_tests(&t->job, t->per_epoch * t->workers),
            .deals = train->mode == PL_TRAIN_MODE_SYNC && !backup &&
                     train->on_worker_loss == PL_TRAIN_LOSS_CONTINUE,
            .transport = pl_transport_chosen(train->transport),
            .heartbeat_ms = pl_options_silence_ms(train),
            .join_ms = train->join_timeout * 1000,
            .rejoin_ms = train->rejoin_timeout * 1000,
            .end_step = counted ? end_step(t) : 0,
            .run_steps = end_step(t),
            .settings = t->common,
            .codec = pl_options_codec(train, &t->topk),
            .params = t->job.network->params,
            .average_rate = t->job.network->average_rate,
            .sparse = t->job.elsewhere ? t->job.network : NULL,
            .seed = (uint64_t)train->seed,
            .snapshot = t->snapshot,
            .interrupt = t->interrupt,
            .joined = tell_joined,
            .located = t->records != NULL ? NULL : use_folder,
            .report = report_row,
            .context = t,
        }));
    t->sync = pl_ps_sync_base(t->ps);
    return PL_OK;
}

static void tell_lost(void *context, int32_t worker)
{
    const trainer *t = context;
    pl_task task = pl_cluster_task(t->opts.cluster, worker);
    if (t->opts.control != NULL)
        pl_control_lost(t->opts.control, task);
    else
        pl_observers_lost(t->metrics, task);
}

static pl_status open_ring(trainer *t)
{
    const pl_train_options *train = t->train;
    int64_t floats = pl_params_block_count(t->job.network->params);
    PL_TRY(
        pl_coding_factors(&t->factors, t->options, t->job.network, t->workers));
    return pl_ring_engine_new(
        &t->collective, &(pl_ring_engine_opts) {
                            .cluster = t->opts.cluster,
                            .worker = t->worker,
                            .listen = t->opts.listen,
                            .keys = t->opts.keys,
                            .floats = floats,
                            .extra = pl_factor_step_extra(
                                t->factors, t->job.network->params, t->workers,
                                pl_ring_engine_grain(floats)),
                            .transport = pl_transport_chosen(train->transport),
                            .on_loss = (pl_on_loss)train->on_worker_loss,
                            .heartbeat_ms = pl_options_silence_ms(train),
                            .join_ms = train->join_timeout * 1000,
                            .rejoin_ms = train->rejoin_timeout * 1000,
                            .codec = pl_options_codec(train, &t->topk),
                            .kernels = t->job.kernels,
                            .interrupt = t->interrupt,
                            .lost = tell_lost,
                            .context = t,
                        });
}

static pl_status open_engine(trainer *t)
{
    const pl_train_options *train = t->train;
    if (train->engine == PL_TRAIN_ENGINE_RING)
        return open_ring(t);
    return pl_mpi_new(
        &t->collective,
        &(pl_mpi_opts) {
            .floats = pl_params_block_count(t->job.network->params),
            .workers = t->workers,
            .heartbeat_ms = pl_options_silence_ms(train),
            .join_ms = train->join_timeout * 1000,
        });
}

/* --bucket-bytes, or the value of the run to resume. */
static int64_t bucket_bytes(const trainer *t)
{
    return t->train->bucket_bytes > 0 ? t->train->bucket_bytes
                                      : t->start.bucket_bytes;
}

static pl_status open_allreduce(trainer *t)
{
    const pl_train_options *train = t->train;
    PL_TRY(pl_trainer_settings(t->options, &t->common));
    PL_TRY(open_engine(t));
    PL_TRY(pl_allreduce_sync_new(
        &t->together,
        &(pl_allreduce_sync_opts) {
            .collective = t->collective,
            .worker = t->worker,
            .workers = t->workers,
            .sum = train->aggregate == PL_AGGREGATE_SUM,
            .local_steps = train->local_steps,
            .outer_lr = train->outer_lr,
            .outer_momentum = train->outer_momentum,
            .bucket_bytes = bucket_bytes(t),
            .end_step = end_step(t),
            .settings = t->common,
            .params = t->job.network->params,
            .optim = t->job.optim,
            .factors = t->factors,
            .held = t->held,
            .link = t->factors != NULL
                        ? pl_coding_link(train, t->opts.cluster, t->start.link)
                        : PL_LINK_UNKNOWN,
            .schedule = &t->job.schedule,
            .pool = t->job.pool,
            .snapshot = t->snapshot,
            .job = t->folder.job,
            .run = t->told_run,
            .joined = tell_joined,
            .located = t->records != NULL ? NULL : use_folder,
            .report = report_row,
            .context = t,
        }));
    t->sync = pl_allreduce_sync_base(t->together);
    return PL_OK;
}

/* Room for the points of every step of 50 ms, if that many were requested. */
static uint32_t queue_size(const trainer *t)
{
    pl_every_unit unit = t->train->record_every.unit;
    return unit == PL_EVERY_STEPS || unit == PL_EVERY_EXAMPLES
               ? POINTS_QUEUE
               : 0; /* default */
}

static pl_status open_sync(trainer *t)
{
    pl_job *job = &t->job;
    if (t->opts.cluster != NULL)
        PL_TRY(t->train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE
                   ? open_allreduce(t)
                   : open_ps_sync(t));
    else
        PL_TRY(pl_single_new(&t->sync, &(pl_single_opts) {
                                           .params = job->network->params,
                                           .optim = job->optim,
                                           .schedule = &job->schedule,
                                           .pool = job->pool,
                                           .snapshot = t->snapshot,
                                       }));
    PL_TRY(pl_metrics_new(&t->metrics,
                          &(pl_metrics_opts) { .queue = queue_size(t) }));
    if (t->train->profile != NULL)
        PL_TRY(pl_trace_new(
            &t->trace,
            &(pl_trace_opts) { .lanes = pl_pool_threads(job->pool) }));
    return PL_OK;
}

/* The steps to trace: the requested ones, or that many from the start. */
static pl_range trace_steps(const trainer *t)
{
    pl_range steps;
    if (pl_options_profile(t->options, &steps) != PL_OK || steps.first > 0)
        return steps;
    return (pl_range) { t->start.step + 1, t->start.step + steps.last };
}

static pl_status write_trace(const trainer *t)
{
    return pl_tracing_write(&(pl_tracing_opts) {
        .trace = t->trace,
        .run = t->records,
        .sent_to = t->train->launched_run,
        .task = t->opts.task,
        .job = &t->job,
        .skew = t->opts.cluster != NULL ? look(t).skew : (pl_skew) { 0 },
    });
}

static pl_status keep_best(void *context, int64_t step, const pl_score *test)
{
    const trainer *t = context;
    pl_log(PL_LOG_DEBUG, "step %lld has the lowest test loss so far: %g",
           (long long)step, test->loss);
    return pl_snapshot_set_best(t->snapshot,
                                &(pl_best) { .step = step,
                                             .test_loss = test->loss,
                                             .test_accuracy = test->accuracy });
}

static pl_loop_opts loop_opts(trainer *t)
{
    const pl_train_options *train = t->train;
    bool tests = t->chief || train->eval_on == PL_TRAIN_EVAL_WORKERS;
    t->hogwild = (pl_hogwild_opts) {
        .schedule = &t->job.schedule,
        .l1 = train->l1,
        .l2 = train->l2,
        .frozen = t->snapshot != NULL ? pl_snapshot_frozen(t->snapshot) : NULL,
    };
    return (pl_loop_opts) {
        .network = t->job.network,
        .train = t->job.train,
        .test = tests ? t->job.test : NULL,
        .sync = t->sync,
        .pool = t->job.pool,
        .metrics = t->metrics,
        .schedule = &t->job.schedule,
        .trace = t->trace,
        .kernels = t->job.kernels,
        .bf16 = pl_options_bf16(train),
        .interrupt = t->interrupt,
        .order = data_order(t),
        .steps = train->steps,
        .epochs = train->epochs,
        .epoch_steps = train->steps_per_epoch,
        .aggregate = (pl_aggregate)train->aggregate,
        .batch_reduction = (pl_aggregate)train->batch_reduction,
        .clip = train->clip,
        .hogwild = train->hogwild ? &t->hogwild : NULL,
        .targets = pl_job_targets(&t->job),
        .kept_loss = pl_snapshot_best_loss(t->snapshot),
        .keep_best = keep_best,
        .context = t,
        .eval_every = train->eval_every,
        .save_every = train->checkpoint_every,
        .histograms_every = train->histograms_every,
        .record_every = train->record_every,
        .eval_batch = train->eval_batch,
        .confusion = t->chief ? &t->confusion : NULL,
        .trace_first = trace_steps(t).first,
        .trace_last = trace_steps(t).last,
        .start = t->start,
        .far_start = pl_trainer_starts_far(&t->opts),
        .follower = !t->chief,
        .own_pace = t->own_pace,
        .replicas = (int32_t)train->replicas_to_aggregate,
    };
}

static pl_status start_progress(const trainer *t, pl_progress_line **line)
{
    pl_progress_kind kind = pl_progress_chosen(t->train);
    if (kind == PL_PROGRESS_NONE || t->opts.host != NULL)
        return PL_OK;
    return pl_progress_start(
        line, &(pl_progress_opts) {
                  .metrics = t->metrics,
                  .kind = kind,
                  .start_step = t->start.step,
                  .start_examples = t->start.examples,
                  .end_step = end_step(t),
                  .per_epoch = t->per_epoch * (t->own_pace ? t->workers : 1),
              });
}

/* A supervised task reports its progress to its supervisor; others show it. */
static pl_status run_loop(trainer *t)
{
    pl_progress_line *line = NULL;
    if (t->opts.control != NULL)
        PL_TRY(pl_status_start(&t->told, &(pl_status_opts) {
                                             .metrics = t->metrics,
                                             .control = t->opts.control,
                                             .chief = t->chief,
                                             .interrupt = t->interrupt,
                                         }));
    else
        PL_TRY(start_progress(t, &line));
    pl_loop_opts opts = loop_opts(t);
    pl_status status = PL_OK;
    pl_trainer_begun(&t->opts, t->metrics, end_step(t), t->per_epoch);
    if (t->records != NULL) /* otherwise once the chief has sent its folder */
        status = start_observers(t);
    if (status == PL_OK)
        status = pl_loop_run(&opts, &t->result);
    pl_trainer_done(&t->opts);
    t->events_dropped = pl_observers_dropped(t->observers);
    pl_observers_stop(t->observers, status == PL_OK);
    t->observers = NULL;
    pl_progress_stop(line);
    pl_status_stop(t->told);
    t->told = NULL;
    /* When the loop fails, the whole job has failed. */
    if (t->opts.control != NULL && (t->chief || status != PL_OK))
        pl_control_final(t->opts.control);
    if (t->opts.cluster != NULL && look(t).broken &&
        t->result.stopped_by <= PL_STOPPED_EPOCHS)
        t->result.stopped_by = PL_STOPPED_INTERRUPT;
    return status;
}

static void describe_job(const trainer *t)
{
    const pl_dataset *data = t->job.train;
    int64_t examples = t->train->batch * t->train->micro_batches * t->workers;
    char share[64] = "", left_out[64] = "";
    if (t->left_out > 0)
        snprintf(left_out, sizeof left_out, " (%lld left out)",
                 (long long)t->left_out);
    if (t->workers > 1)
        snprintf(share, sizeof share, "; this is worker %d of %d", t->worker,
                 t->workers);
    pl_log(PL_LOG_INFO,
           "%s on %s: %lld examples, %lld steps of %s%lld an epoch%s, %lld "
           "parameters, %d thread%s, %s%s%s",
           t->options->model->name, data->name, (long long)data->count,
           (long long)t->per_epoch, t->train->hogwild ? "up to " : "",
           (long long)examples, left_out,
           (long long)pl_params_elements(t->job.network->params),
           pl_pool_threads(t->job.pool),
           pl_pool_threads(t->job.pool) == 1 ? "" : "s", t->job.kernels->name,
           pl_options_bf16(t->train) ? ", bf16" : "", share);
    if (t->workers > 1 || data->ops->reader_new != NULL)
        pl_log(PL_LOG_INFO, "worker %d of %d reads %s%s", t->worker, t->workers,
               t->reads, data->local ? " (--shard none)" : "");
}

static pl_status say_interrupted(const trainer *t)
{
    char *folder;
    const char *launched = t->train->launched_run;
    PL_TRY(pl_run_folder_word(launched != NULL ? launched : t->folder.path,
                              &folder));
    pl_status status = PL_FAIL(
        PL_INTERRUPTED,
        "interrupted at step %lld; to continue: %s train %s --run %s --resume",
        (long long)t->result.progress.step, t->opts.app->program,
        pl_model_word(t->options->model), folder);
    pl_mem_free(folder);
    return status;
}

static pl_status make_summary(const trainer *t, pl_summary *out)
{
    pl_summary_opts opts = {
        .job = &t->job,
        .result = &t->result,
        .hash = t->job.elsewhere ? t->hash : NULL,
        .run = t->folder.path,
        .resumed_step = t->start.step,
        .left_out = t->left_out,
        .startup_s = t->startup_s,
        .events_dropped = t->events_dropped,
        .threads = t->opts.host != NULL && t->opts.host->threads,
    };
    if (t->opts.cluster == NULL)
        return pl_summary_make(out, &opts);
    pl_ps_sync_view view = look(t);
    pl_job_reports reports = { 0 };
    if (view.reports != NULL)
        PL_TRY(pl_fields_parse(&pl_job_reports_fields, view.reports,
                               strlen(view.reports), "the workers' reports",
                               &reports));
    opts.cluster = t->opts.cluster;
    opts.reports = view.reports != NULL ? &reports : NULL;
    opts.coding = pl_coding_of(t->together, t->factors, view.coding_seconds);
    opts.update_seconds = view.update_seconds;
    opts.shared = view.shared;
    opts.resumed_seconds = t->start.seconds;
    pl_job_counts counts;
    if (t->opts.control != NULL) {
        counts = pl_control_counts(t->opts.control);
        opts.counts = &counts;
    }
    pl_status status = pl_summary_make(out, &opts);
    pl_fields_close(&pl_job_reports_fields, &reports);
    return status;
}

/* Train, then report the result, even if the loss was not a number or the end
 * could not be saved.  An unsaved run has no summary.json, so that a resume
 * repeats it. */
static pl_status train_and_report(trainer *t)
{
    pl_error failed;
    pl_error_save(&failed, run_loop(t));
    bool saved = failed.status == PL_OK || failed.status == PL_NUMERIC;
    if (!t->chief || (!saved && !t->result.ended)) {
        PL_TRY(pl_error_raise(&failed));
        return write_trace(t);
    }
    pl_summary summary;
    PL_TRY(make_summary(t, &summary));
    pl_status status = pl_trainer_show(&t->opts, &summary);
    if (status == PL_OK && saved)
        status = pl_run_folder_end(&t->folder, &summary,
                                   t->result.tested ? &t->confusion : NULL);
    pl_summary_close(&summary);
    PL_TRY(pl_error_raise(&failed));
    PL_TRY(status);
    PL_TRY(write_trace(t));
    if (t->result.stopped_by == PL_STOPPED_INTERRUPT && t->opts.host == NULL)
        return say_interrupted(t);
    return PL_OK;
}

static pl_status run(trainer *t)
{
    PL_TRY(pl_job_init(&t->job, &(pl_job_opts) {
                                    .options = t->options,
                                    .elsewhere = pl_options_keyed(t->options),
                                }));
    PL_TRY(pl_trainer_initial(&t->opts, t->job.network->params));
    PL_TRY(count_steps(t));
    PL_TRY(check_length(t));
    t->job.schedule.run_steps = end_step(t);
    t->interrupt = pl_trainer_interrupt(&t->opts);
    PL_TRY(pl_coding_held(&t->held, t->options, t->job.network, t->workers,
                          t->chief));
    if (t->chief)
        PL_TRY(open_run(t));
    else if (t->opts.control != NULL) /* the folder of its supervisor */
        PL_TRY(pl_mem_copy_text(&t->records, t->train->run));
    PL_TRY(name_folder(t));
    PL_TRY(open_sync(t));
    describe_job(t);
    t->startup_s =
        (double)(pl_clock_now_ns(pl_clock_real()) - t->opts.begin_ns) * 1e-9;
    return train_and_report(t);
}

/* A rank of MPI can only report by its exit status.  An error of its own before
 * it joined the others would recur, so it is reported like a usage error. */
static pl_status settle(const trainer *t, pl_status status)
{
    bool rank = t->opts.cluster != NULL &&
                t->train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
                t->train->engine == PL_TRAIN_ENGINE_MPI;
    bool others = status == PL_CLOSED || status == PL_TIMEOUT ||
                  status == PL_PEER || status == PL_ROLLED ||
                  status == PL_AGAIN || status == PL_INTERRUPTED;
    if (status == PL_OK || !rank || t->joined || others)
        return status;
    pl_error why;
    pl_error_save(&why, status);
    why.status = PL_USAGE;
    return pl_error_raise(&why);
}

pl_status pl_trainer_run(const pl_trainer_opts *opts)
{
    trainer *t;
    PL_TRY(PL_NEW(t, 1));
    t->opts = *opts;
    t->options = opts->options;
    t->train = &opts->options->train;
    t->folder.lock = -1;
    t->chief = true;
    t->workers = 1;
    t->opts.task =
        opts->cluster != NULL ? opts->task : (pl_task) { PL_ROLE_WORKER, 0 };
    if (opts->cluster != NULL) {
        t->chief = pl_cluster_is_chief(opts->cluster, opts->task);
        t->worker = pl_cluster_worker(opts->cluster, opts->task);
        t->workers = opts->cluster->workers;
        t->own_pace = t->train->mode != PL_TRAIN_MODE_SYNC;
    }
    pl_status status = settle(t, run(t));
    close_trainer(t);
    pl_mem_free(t);
    return status;
}
