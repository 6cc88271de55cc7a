/* cmd_eval.c - `eval`: tests the newest checkpoint of a run on its test data or
 * on another source. */
#include "app/run/summary.h"
#include "app/train/trained.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/commands.h"

#include <stdio.h>

typedef struct eval_options {
    const char *data;
    int64_t threads;
    bool json;
} eval_options;

static const pl_param params[] = {
    { .name = "data",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(eval_options, data),
      .value = "SRC",
      .help = "test data (default: that of the run)" },
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = offsetof(eval_options, threads),
      .least = 1,
      .most = 1024,
      .help = "threads that compute (default: the cores)" },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(eval_options, json),
      .help = "print one line of JSON" },
};

/* What --json prints. */
typedef struct result {
    const char *run, *data;
    int64_t step, examples;
    pl_test_result test;
    char parameters_sha256[65];
} result;

static const pl_field result_rows[] = {
    { "run", PL_FIELD_TEXT(result, run) },
    { "data", PL_FIELD_TEXT(result, data) },
    { "step", PL_FIELD_INT(result, step) },
    { "examples", PL_FIELD_INT(result, examples) },
    { NULL, PL_FIELD_INLINE(result, test, &pl_test_result_fields) },
    { "parameters_sha256", PL_FIELD_CHARS(result, parameters_sha256) },
};
static const pl_fields result_fields = PL_FIELDS(result, result_rows);

static pl_status print_score(const eval_options *eval, const char *run,
                             int64_t step, const pl_job *job, pl_score score)
{
    if (!eval->json) {
        char data[1024]; /* as another's run.json may name it */
        printf("%s at step %lld on %s: loss %.4f, accuracy %.2f %%", run,
               (long long)step,
               pl_quote_line(data, sizeof data, job->test->name), score.loss,
               100 * score.accuracy);
        if (score.binary)
            printf(", AUC %.4f, precision %.2f %%, recall %.2f %%, "
                   "calibration %.3f",
                   score.auc, 100 * score.precision, 100 * score.recall,
                   score.calibration);
        printf("\n");
        return PL_OK;
    }
    result r = {
        .run = run,
        .data = job->test->name,
        .step = step,
        .examples = job->test->count,
        .test = pl_summary_test(&score, true),
    };
    char *text;
    pl_job_hash(job, r.parameters_sha256);
    PL_TRY(pl_fields_text(&result_fields, &r, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

static pl_status score_test(const pl_job *job, int64_t batch, pl_score *out)
{
    batch = pl_loop_eval_batch(job->test, batch);
    pl_compute *compute;
    PL_TRY(pl_compute_new(&compute, &(pl_compute_opts) {
                                        .network = job->network,
                                        .batch = batch,
                                        .pool = job->pool,
                                        .kernels = job->kernels,
                                        .forward = true,
                                    }));
    pl_status status = pl_loop_evaluate(compute, job->test, batch, NULL, out);
    pl_compute_free(compute);
    return status;
}

static pl_status evaluate(const pl_app *app, const char *run,
                          const eval_options *eval)
{
    pl_trained *trained;
    pl_score score;
    PL_TRY(pl_trained_new(&trained, &(pl_trained_opts) {
                                        .app = app,
                                        .run = run,
                                        .threads = eval->threads,
                                        .test_data = eval->data,
                                    }));
    pl_status status;
    PL_TRY_OUT(status, score_test(&trained->job,
                                  trained->options.train.eval_batch, &score));
    status =
        print_score(eval, run, trained->progress.step, &trained->job, score);
out:
    pl_trained_free(trained);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    eval_options eval;
    pl_words words;
    PL_TRY(pl_command_parse(
        &pl_cmd_eval, app,
        "Test the newest checkpoint of the run in the folder RUN.", &eval, argc,
        argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status;
    if (words.count != 1)
        status = PL_FAIL(PL_USAGE, "eval needs one run folder: eval RUN");
    else
        status = evaluate(app, words.list[0], &eval);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_eval = {
    .name = "eval",
    .usage = "eval RUN [flags]",
    .help = "test the newest checkpoint of a run",
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
