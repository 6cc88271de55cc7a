/* cmd_eval.c - `eval`: tests the newest or the best checkpoint of a run on its
 * test data or on another source, and shows the results by class. */
#include "app/predict/score.h"
#include "app/run/summary.h"
#include "app/train/trained.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/commands.h"

#include <math.h>
#include <stdio.h>

typedef struct eval_options {
    const char *data;
    int64_t threads;
    bool best;
    bool json;
} eval_options;

static const pl_param params[] = {
    { .name = "data",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(eval_options, data),
      .value = "SRC",
      .help = "test data (default: the run's test data; of a run with "
              "--holdout what it held out)",
      .why = "Use it to test a trained model on new examples, such as "
             "csv:march.csv. They must have the shape of the training data, "
             "and are scaled and encoded in the same way." },
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = offsetof(eval_options, threads),
      .least = 1,
      .most = 1024,
      .help = "compute threads (default: the cores)",
      .why = "Lower it to leave cores to other processes, such as a training "
             "that is still in progress. It changes only the time, except in "
             "the last digits of layers that oneDNN computes." },
    { .name = "best",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(eval_options, best),
      .help = "use the checkpoint with the lowest test loss, kept by train "
              "--keep-best",
      .why = "The newest checkpoint is used by default, which may already "
             "overfit. It needs a run that was trained with --keep-best and "
             "has tested at least once." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(eval_options, json),
      .help = "print one line of JSON",
      .why = "For scripts: besides the printed numbers it has the results of "
             "each class, the confusion matrix and the checksum of the "
             "parameters." },
};

/* What --json prints. */
typedef struct result {
    const char *run, *data;
    int64_t step, examples;
    pl_test_result test;
    char parameters_sha256[65];
    pl_class_result *per_class;
    size_t class_count;
    pl_confusion_cell *confusion; /* [label, predicted] */
    size_t cell_count;
} result;

static const pl_field result_rows[] = {
    { "run", PL_FIELD_TEXT(result, run) },
    { "data", PL_FIELD_TEXT(result, data) },
    { "step", PL_FIELD_INT(result, step) },
    { "examples", PL_FIELD_INT(result, examples) },
    { NULL, PL_FIELD_INLINE(result, test, &pl_test_result_fields) },
    { "parameters_sha256", PL_FIELD_CHARS(result, parameters_sha256) },
    { "per_class",
      PL_FIELD_LIST(result, per_class, class_count, &pl_class_result_fields),
      .most = PL_CONFUSION_CLASSES },
    { "confusion",
      PL_FIELD_LIST(result, confusion, cell_count, &pl_confusion_cell_fields),
      .most = PL_CONFUSION_CLASSES * PL_CONFUSION_CLASSES },
};
static const pl_fields result_fields = PL_FIELDS(result, result_rows);

/* The results of one test. */
typedef struct tested {
    const char *run;
    int64_t step;
    const pl_job *job;
    pl_score score;
    pl_confusion confusion;
} tested;

/* "  97.31 %"; a class that was never predicted has no precision. */
static void print_share(double share)
{
    if (isnan(share))
        printf("  %9s", "-");
    else
        printf("  %7.2f %%", 100 * share);
}

static void print_classes(const pl_confusion *confusion)
{
    if (confusion->classes > 0)
        printf("\nclass  examples  precision     recall         F1  most often "
               "mistaken for\n");
    for (int32_t c = 0; c < confusion->classes; c++) {
        pl_class_result row = pl_confusion_class(confusion, c);
        printf("%5d  %8lld", row.index, (long long)row.examples);
        print_share(row.precision);
        print_share(row.recall);
        print_share(row.f1);
        if (row.taken_for >= 0)
            printf("  %d (%lld)", row.taken_for, (long long)row.taken);
        printf("\n");
    }
}

static void print_score(const tested *t)
{
    char data[1024]; /* a run.json may name any text */
    printf("%s at step %lld on %s: loss %.4f", t->run, (long long)t->step,
           pl_quote_line(data, sizeof data, t->job->test->name), t->score.loss);
    if (t->score.numeric)
        printf(", RMSE %.4g, MAE %.4g, R2 %.4f", t->score.rmse, t->score.mae,
               t->score.r2);
    else
        printf(", accuracy %.2f %%", 100 * t->score.accuracy);
    if (!t->score.binary && isfinite(t->score.top5))
        printf(", top-5 accuracy %.2f %%", 100 * t->score.top5);
    if (t->score.binary)
        printf(", AUC %.4f, precision %.2f %%, recall %.2f %%, "
               "calibration %.3f",
               t->score.auc, 100 * t->score.precision, 100 * t->score.recall,
               t->score.calibration);
    printf("\n");
    print_classes(&t->confusion);
}

static pl_status print_json(const tested *t)
{
    const pl_confusion *confusion = &t->confusion;
    pl_class_result classes[PL_CONFUSION_CLASSES];
    result r = {
        .run = t->run,
        .data = t->job->test->name,
        .step = t->step,
        .examples = t->job->test->count,
        .test = pl_summary_test(&t->score, true),
        .per_class = classes,
        .class_count = (size_t)confusion->classes,
        .confusion = confusion->counts,
        .cell_count = confusion->count_count,
    };
    char *text;
    for (int32_t c = 0; c < confusion->classes; c++)
        classes[c] = pl_confusion_class(confusion, c);
    pl_job_hash(t->job, r.parameters_sha256);
    PL_TRY(pl_fields_text(&result_fields, &r, 0, &text));
    printf("%s\n", text);
    pl_mem_free(text);
    return PL_OK;
}

static pl_status evaluate(const pl_app *app, const char *run,
                          const eval_options *eval)
{
    pl_trained *trained;
    PL_TRY(pl_trained_new(&trained, &(pl_trained_opts) {
                                        .app = app,
                                        .run = run,
                                        .threads = eval->threads,
                                        .test_data = eval->data,
                                        .best = eval->best,
                                    }));
    tested t = { .run = run,
                 .step = trained->progress.step,
                 .job = &trained->job };
    pl_status status =
        pl_score_set(t.job, t.job->test, trained->options.train.eval_batch,
                     &t.confusion, &t.score);
    if (status == PL_OK && eval->json)
        status = print_json(&t);
    else if (status == PL_OK)
        print_score(&t);
    pl_confusion_close(&t.confusion);
    pl_trained_free(trained);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    eval_options eval;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_eval, app, &eval, argc, argv, &words));
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
    .about =
        "Test the newest checkpoint of the run in the folder RUN.",
    .examples = {
        { "eval runs/a", "its test loss and accuracy, by class" },
        { "eval runs/a --best", "the checkpoint of --keep-best" },
        { "eval runs/a --data idx:digits", "on other data" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
