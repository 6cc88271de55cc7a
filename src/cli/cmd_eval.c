#include "base/mem.h"
#include "base/quote.h"
#include "cli/commands.h"
#include "cli/summary.h"
#include "cli/trained.h"

#include <stdio.h>

typedef struct eval_options {
    const char *data;
    int64_t threads;
    bool json;
} eval_options;

static const pl_param params[] = {
    { "data", PL_PARAM_TEXT, offsetof(eval_options, data), NULL, 0, 0, NULL,
      "SRC", "test data (default: that of the run)" },
    { "threads", PL_PARAM_INT, offsetof(eval_options, threads), NULL, 1, 1024,
      NULL, "N", "threads that compute (default: the cores)" },
    { "json", PL_PARAM_FLAG, offsetof(eval_options, json), NULL, 0, 0, NULL,
      NULL, "print one line of JSON" },
};

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
    char hash[65], *text = NULL;
    pl_job_hash(job, hash);
    pl_json *json = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_object(&json));
    PL_TRY_OUT(status, pl_json_set_text(json, "run", run));
    PL_TRY_OUT(status, pl_json_set_text(json, "data", job->test->name));
    PL_TRY_OUT(status, pl_json_set_int(json, "step", step));
    PL_TRY_OUT(status, pl_json_set_int(json, "examples", job->test->count));
    PL_TRY_OUT(status, pl_summary_score(json, &score, true));
    PL_TRY_OUT(status, pl_json_set_text(json, "parameters_sha256", hash));
    PL_TRY_OUT(status, pl_json_text(json, 0, &text));
    printf("%s\n", text);
out:
    pl_mem_free(text);
    pl_json_free(json);
    return status;
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
