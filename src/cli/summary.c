#include "cli/summary.h"

#include "cli/progress.h"

#include <unistd.h>

/* The peak that getrusage gives may be that of the program which started this
 * one; VmHWM is our own. */
static int64_t peak_rss_mb(void)
{
    char line[256];
    long long kb = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %lld kB", &kb) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return (kb + 1023) / 1024;
}

/* Write `status` through a chain of setters: stops at the first failure. */
#define SET(call)                                                              \
    do {                                                                       \
        if (status == PL_OK)                                                   \
            status = (call);                                                   \
    } while (0)

static pl_status set_score(pl_json *object, const pl_loop_result *result)
{
    if (!result->tested) {
        PL_TRY(pl_json_set_null(object, "test_loss"));
        return pl_json_set_null(object, "test_accuracy");
    }
    PL_TRY(pl_json_set_real(object, "test_loss", result->test.loss));
    return pl_json_set_real(object, "test_accuracy", result->test.accuracy);
}

static pl_status worker_row(pl_json **out, const pl_summary_opts *opts)
{
    const pl_loop_result *result = opts->result;
    const pl_phases *phases = &result->phases;
    double total =
        phases->input_s + phases->compute_s + phases->send_s + phases->wait_s;
    double whole = total > 0 ? total : 1;
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    pl_json *row;
    PL_TRY(pl_json_new_object(&row));
    pl_status status = PL_OK;
    SET(pl_json_set_int(row, "index", 0));
    SET(pl_json_set_text(row, "host", host));
    SET(pl_json_set_int(row, "steps", result->progress.step));
    SET(pl_json_set_int(row, "examples", result->progress.examples));
    SET(pl_json_set_real(row, "seconds", result->progress.seconds));
    SET(pl_json_set_real(row, "input_share", phases->input_s / whole));
    SET(pl_json_set_real(row, "computing_share", phases->compute_s / whole));
    SET(pl_json_set_real(row, "sending_share", phases->send_s / whole));
    SET(pl_json_set_real(row, "waiting_share", phases->wait_s / whole));
    SET(pl_json_set_int(row, "dropped", result->dropped));
    SET(set_score(row, result));
    if (status != PL_OK) {
        pl_json_free(row);
        return status;
    }
    *out = row;
    return PL_OK;
}

static pl_status set_workers(pl_json *summary, const pl_summary_opts *opts)
{
    pl_json *rows, *row;
    PL_TRY(pl_json_new_array(&rows));
    pl_status status = worker_row(&row, opts);
    if (status == PL_OK)
        status = pl_json_append_take(rows, row);
    if (status != PL_OK) {
        pl_json_free(rows);
        return status;
    }
    return pl_json_set_take(summary, "per_worker", rows);
}

pl_status pl_summary_make(pl_json **out, const pl_summary_opts *opts)
{
    const pl_loop_result *result = opts->result;
    const pl_progress *progress = &result->progress;
    const pl_train_options *train = &opts->job->options->train;
    double seconds = progress->seconds > 0 ? progress->seconds : 1e-9;
    char hash[65];
    pl_job_hash(opts->job, hash);

    pl_json *s;
    PL_TRY(pl_json_new_object(&s));
    pl_status status = PL_OK;
    SET(pl_json_set_text(s, "model", opts->job->options->model->name));
    SET(pl_json_set_text(s, "strategy", "single"));
    SET(pl_json_set_null(s, "mode"));
    SET(pl_json_set_int(s, "workers", 1));
    SET(pl_json_set_int(s, "ps", 0));
    SET(pl_json_set_int(s, "batch", train->batch));
    SET(pl_json_set_int(s, "micro_batches", train->micro_batches));
    SET(pl_json_set_int(s, "steps", progress->step));
    SET(pl_json_set_real(s, "epochs", result->epochs));
    SET(pl_json_set_int(s, "examples", progress->examples));
    SET(pl_json_set_real(s, "seconds", progress->seconds));
    SET(pl_json_set_real(s, "startup_seconds", opts->startup_s));
    SET(pl_json_set_real(s, "eval_seconds", result->eval_seconds));
    SET(pl_json_set_real(s, "checkpoint_seconds", result->save_seconds));
    SET(pl_json_set_real(s, "examples_per_s",
                         (double)progress->examples / seconds));
    SET(pl_json_set_real(s, "steps_per_s", (double)progress->step / seconds));
    SET(pl_json_set_real(s, "train_loss", result->train_loss));
    SET(set_score(s, result));
    SET(pl_json_set_text(s, "stopped_by", pl_stopped_text(result->stopped_by)));
    SET(pl_json_set_int(s, "resumed_step", opts->resumed_step));
    SET(pl_json_set_int(s, "restarts", 0));
    SET(pl_json_set_bool(s, "deterministic", !progress->mixed));
    SET(pl_json_set_int(s, "dropped_gradients", result->dropped));
    SET(pl_json_set_int(s, "rolled_back", 0));
    SET(pl_json_set_int(s, "bytes_sent", 0));
    SET(pl_json_set_int(s, "bytes_received", 0));
    SET(pl_json_set_int(s, "peak_rss_mb", peak_rss_mb()));
    SET(pl_json_set_text(s, "kernels", opts->job->kernels->name));
    /* After a blow-up the parameters are not those of `steps`. */
    if (result->stopped_by == PL_STOPPED_NAN)
        SET(pl_json_set_null(s, "parameters_sha256"));
    else
        SET(pl_json_set_text(s, "parameters_sha256", hash));
    SET(pl_json_set_text(s, "run", opts->run));
    SET(set_workers(s, opts));
    if (status != PL_OK) {
        pl_json_free(s);
        return status;
    }
    *out = s;
    return PL_OK;
}

pl_status pl_summary_print(const pl_json *summary, FILE *file)
{
    const char *model, *stopped, *run;
    int64_t steps, examples, rss;
    double epochs, seconds, rate, train_loss = 0, loss, accuracy;
    char number[16];
    PL_TRY(pl_json_get_text(summary, "model", &model));
    PL_TRY(pl_json_get_text(summary, "stopped_by", &stopped));
    PL_TRY(pl_json_get_text(summary, "run", &run));
    PL_TRY(pl_json_get_int(summary, "steps", 0, INT64_MAX, &steps));
    PL_TRY(pl_json_get_int(summary, "examples", 0, INT64_MAX, &examples));
    PL_TRY(pl_json_get_int(summary, "peak_rss_mb", 0, INT64_MAX, &rss));
    PL_TRY(pl_json_get_real(summary, "epochs", &epochs));
    PL_TRY(pl_json_get_real(summary, "seconds", &seconds));
    PL_TRY(pl_json_get_real(summary, "examples_per_s", &rate));
    fprintf(file,
            "%s: %lld steps, %.2f epochs in %.2f s (%s ex/s), ended by "
            "%s\n",
            model, (long long)steps, epochs, seconds,
            pl_progress_number(rate, number), stopped);
    if (pl_json_get_real(summary, "train_loss", &train_loss) == PL_OK)
        fprintf(file, "train loss     %.4f\n", train_loss);
    if (pl_json_get_real(summary, "test_loss", &loss) == PL_OK &&
        pl_json_get_real(summary, "test_accuracy", &accuracy) == PL_OK)
        fprintf(file, "test loss      %.4f\ntest accuracy  %.2f %%\n", loss,
                100 * accuracy);
    fprintf(file, "peak memory    %lld MB\nrun folder     %s\n", (long long)rss,
            run);
    return PL_OK;
}
