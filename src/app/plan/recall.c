/* recall.c - one worker's step as a run recorded it: its workers' time for
 * computing and input, per step, divided among the layers by their
 * multiply-adds.  For values that a run does not record (the time of an update,
 * the processor time of messages) it assumes typical costs, which
 * docs/performance.md lists. */
#include "app/plan/work.h"

#include "app/run/run_folder.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/record/summary.h"
#include "train/compute/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MOST 1024
#define UPDATE_SHARE 0.5 /* of computing: the most for an update */
/* Processor time in seconds, per byte or message. */
#define UPDATE_BYTE_S 0.5e-9
#define ADD_BYTE_S    0.2e-9
#define MESSAGE_S     10e-6
#define WIRE_BYTE_S   0.3e-9

/* Seconds of a step, the mean of all workers. */
typedef struct step_times {
    double compute, input, steps;
} step_times;

static pl_status add_up(step_times *times, const pl_summary *summary,
                        const char *run)
{
    for (size_t i = 0; i < summary->worker_count; i++) {
        const pl_worker_report *row = &summary->per_worker[i];
        if (!(row->seconds > 0) || row->steps < 1)
            continue;
        if (row->computing_share > 0)
            times->compute += row->seconds * row->computing_share;
        if (row->input_share > 0)
            times->input += row->seconds * row->input_share;
        times->steps += (double)row->steps;
    }
    if (!(times->steps > 0) || !(times->compute > 0))
        return PL_FAIL(PL_USAGE,
                       "--from %s: its summary.json has no computing times; "
                       "name a run that has made some steps",
                       run);
    return PL_OK;
}

/* Multiply-adds of the operators with parameter `param` as an input. */
static double work_of(const pl_network *network, int param)
{
    const char *name = pl_params_get(network->params, param)->name;
    double work = 0;
    for (int i = 0; i < network->forward; i++) {
        const pl_node *node = pl_graph_get(network->graph, i);
        for (int k = 0; k < node->input_count; k++)
            if (node->in[k]->op == &pl_op_parameter &&
                strcmp(node->in[k]->name, name) == 0 &&
                node->op->multiply_adds != NULL)
                work += (double)node->op->multiply_adds(node);
    }
    return work;
}

/* Divide the time among the layers; equally if no multiply-adds are known. */
static void share_time(pl_forecast_work *work, const pl_network *network,
                       double seconds)
{
    double all = 0;
    size_t count = work->step.layer_count;
    for (size_t i = 0; i < count; i++)
        all += work_of(network, (int)i);
    for (size_t i = 0; i < count; i++) {
        double share =
            all > 0 ? work_of(network, (int)i) / all : 1 / (double)count;
        work->layers[i].forward_s = PL_FORECAST_FORWARD * share * seconds;
        work->layers[i].backward_s =
            (1 - PL_FORECAST_FORWARD) * share * seconds;
    }
}

/* The threads of the run: as they depend on the machine, they are not recalled
 * as other flags are. */
static int32_t threads_of(const pl_run_record *record)
{
    const char *text;
    if (record->args == NULL ||
        pl_json_get_text(record->args, "threads", &text) != PL_OK)
        return 1;
    long threads = strtol(text, NULL, 10);
    return threads >= 1 && threads <= THREADS_MOST ? (int32_t)threads : 1;
}

/* Without servers, workers make the updates and count them as computing. */
static bool counts_update(const pl_summary *summary)
{
    return summary->ps < 1;
}

static pl_status take(pl_forecast_work *work, const pl_job *job,
                      const pl_summary *summary, const char *run)
{
    const pl_train_options *train = &job->options->train;
    step_times times = { 0 };
    pl_compute_size size;
    double bytes = (double)work->parameter_bytes;
    PL_TRY(add_up(&times, summary, run));
    PL_TRY(
        pl_compute_memory(&(pl_compute_opts) { .network = job->network,
                                               .batch = train->batch,
                                               .threads = work->threads,
                                               .bf16 = pl_options_bf16(train),
                                               .kernels = job->kernels },
                          &size));
    double update_s = UPDATE_BYTE_S * bytes;
    double compute = times.compute / times.steps;
    if (counts_update(summary))
        compute -= fmin(update_s, UPDATE_SHARE * compute);
    share_time(work, job->network, compute);
    work->step.whole = !size.large || train->micro_batches > 1;
    work->step.input_s = times.input / times.steps;
    work->step.update_s = update_s;
    work->step.add_s = ADD_BYTE_S * bytes;
    work->net = (pl_step_net) {
        .local_bytes_per_s = PL_FORECAST_LOCAL_RATE,
        .message_s = MESSAGE_S,
        .byte_s = WIRE_BYTE_S,
    };
    return PL_OK;
}

pl_status pl_forecast_recall(pl_forecast_work *out, const pl_options *options,
                             const pl_run_record *record, const char *run)
{
    pl_forecast_work work = { 0 };
    pl_summary summary = { 0 };
    pl_job job = { 0 };
    pl_job_opts opts = { .options = options, .data = PL_JOB_DATA_NONE };
    char *path = NULL;
    pl_status status;
    if (options->model->sparse)
        return PL_FAIL(PL_UNSUPPORTED,
                       "--from %s: its records do not say how many keys a "
                       "batch of the model %s has; plan without --from",
                       run, options->model->name);
    PL_TRY_OUT(status,
               pl_run_folder_examples(record, &opts.example, &opts.classes));
    if (opts.example.rank == 0) {
        status = PL_FAIL(PL_UNSUPPORTED,
                         "--from %s: it was written by an older version that "
                         "did not record the shape of an example; plan "
                         "without --from",
                         run);
        goto out;
    }
    PL_TRY_OUT(status, pl_file_join(&path, run, "summary.json"));
    PL_TRY_OUT(status, pl_summary_read(&summary, path));
    PL_TRY_OUT(status, pl_job_init(&job, &opts));
    PL_TRY_OUT(status, pl_forecast_work_init(&work, &job));
    work.threads = threads_of(record);
    PL_TRY_OUT(status, take(&work, &job, &summary, run));
    *out = work;
    work = (pl_forecast_work) { 0 };
out:
    pl_forecast_work_close(&work);
    pl_job_close(&job);
    pl_summary_close(&summary);
    pl_mem_free(path);
    return status;
}
