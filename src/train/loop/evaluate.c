/* What a run measures besides its steps: tests over a whole data set, with all
 * parameters in memory or fetched batch by batch if they are remote, and
 * histograms. */
#include "train/answers.h"
#include "train/loop/loop_priv.h"

#include <math.h>

#define EVAL_BATCH        1000 /* maximum rows by default... */
#define SPARSE_EVAL_BATCH 8192 /* likewise, for sparse examples */
#define EVAL_BYTES        ((int64_t)64 << 20) /* ... within this size */

int64_t pl_loop_eval_batch(const pl_dataset *set, int64_t given)
{
    int64_t batch = given;
    if (given <= 0) {
        int64_t row = set->sparse ? 1 : pl_shape_row(set->shape);
        int64_t fit = EVAL_BYTES / (row * (int64_t)sizeof(float));
        int64_t most = set->sparse ? SPARSE_EVAL_BATCH : EVAL_BATCH;
        batch = fit < most ? fit : most;
    }
    if (set->count > 0 && batch > set->count)
        batch = set->count;
    return batch > 0 ? batch : 1;
}

/* Sums over a test set. */
typedef struct tester {
    pl_compute *compute;
    pl_sync *sync; /* if the parameters are remote; or NULL */
    pl_reader *reader;
    pl_tally *tally;         /* for a binary model */
    pl_confusion *confusion; /* or NULL */
    pl_errors *errors;       /* for a regression model; else NULL */
    pl_shape shape;          /* of one example */
    double loss;             /* of all examples */
    int64_t right;           /* right answers... */
    int64_t close;           /* ... labels among the five largest logits ... */
    bool few;                /* ... unless there are no more classes */
    int64_t rows;
} tester;

/* Fetch the weights of a batch. */
static pl_status fetch_weights(const tester *t)
{
    pl_values values;
    const pl_keys *keys;
    pl_compute_grad(t->compute, 0, &keys);
    PL_TRY(t->sync->ops->keyed->look(t->sync, keys, &values));
    pl_compute_place(t->compute, &values);
    return PL_OK;
}

/* A sparse model is binary. */
static pl_status begin_answers(const tester *t, const pl_dataset *set)
{
    int64_t classes = pl_compute_keep_answers(t->compute, t->confusion != NULL);
    if (t->confusion == NULL)
        return PL_OK;
    return pl_answers_begin(t->confusion, set->sparse ? 2 : classes);
}

/* Before the batch is counted. */
static pl_status count_answers(tester *t, const pl_batch *batch,
                               const float *probs)
{
    const pl_answer *answers = pl_compute_answers(t->compute);
    if (t->confusion == NULL || t->confusion->classes == 0)
        return PL_OK;
    if (probs != NULL)
        pl_answers_binary(t->confusion, batch, probs);
    else if (answers != NULL)
        return pl_answers_add(t->confusion, batch, t->rows, t->shape, answers);
    return PL_OK;
}

static pl_status test_batch(tester *t, const pl_batch *batch)
{
    double rows = (double)batch->rows;
    PL_TRY(pl_compute_prepare(t->compute, batch));
    if (t->sync != NULL)
        PL_TRY(fetch_weights(t));
    pl_score score = pl_compute_score(t->compute, batch);
    t->loss += score.loss * rows;
    /* The batch's accuracy was computed in float32; the number of right answers
     * is the nearest integer. */
    t->right += llround(score.accuracy * rows);
    t->few = isnan(score.top5);
    t->close += t->few ? 0 : llround(score.top5 * rows);
    if (t->errors != NULL)
        pl_errors_add(t->errors, batch->rows, pl_compute_outputs(t->compute),
                      &batch->labels);
    const float *probs = pl_compute_probs(t->compute);
    PL_TRY(count_answers(t, batch, probs));
    t->rows += batch->rows;
    if (probs == NULL)
        return PL_OK;
    return pl_tally_add(t->tally, batch->rows, probs, &batch->labels);
}

static pl_status test_all(tester *t, pl_dataset *set)
{
    pl_batch batch;
    for (;;) {
        PL_TRY(pl_reader_next(t->reader, &batch));
        if (batch.rows == 0)
            break;
        PL_TRY(test_batch(t, &batch));
    }
    PL_TRY(pl_dataset_check(set, true));
    if (t->rows == 0)
        return PL_FAIL(PL_FORMAT, "%s has no examples", set->name);
    return PL_OK;
}

pl_status pl_loop_evaluate(pl_compute *compute, pl_dataset *set, int64_t batch,
                           pl_sync *sync, pl_confusion *confusion,
                           pl_score *out)
{
    tester t = { .compute = compute,
                 .confusion = confusion,
                 .shape = set->shape };
    PL_TRY(begin_answers(&t, set));
    if (sync != NULL && sync->ops->keyed != NULL)
        t.sync = sync;
    batch = pl_loop_eval_batch(set, batch);
    pl_status status;
    PL_TRY_OUT(status, pl_reader_new(&t.reader, set,
                                     &(pl_reader_opts) { .batch = batch,
                                                         .one_pass = true }));
    PL_TRY_OUT(status, pl_tally_new(&t.tally));
    if (set->numeric)
        PL_TRY_OUT(status, pl_errors_new(&t.errors, set->classes));
    PL_TRY_OUT(status, test_all(&t, set));
    *out = (pl_score) {
        .loss = t.loss / (double)t.rows,
        .accuracy = (double)t.right / (double)t.rows,
        .top5 = t.few ? (double)NAN : (double)t.close / (double)t.rows,
    };
    if (t.errors != NULL)
        pl_errors_score(t.errors, out);
    if (pl_compute_probs(compute) != NULL)
        pl_tally_score(t.tally, out);
out:
    pl_errors_free(t.errors);
    pl_reader_free(t.reader);
    pl_tally_free(t.tally);
    return status;
}

/* So that no task takes a testing worker for a hung one. */
static void tell_testing(const pl_loop *l, bool begins)
{
    pl_sync *sync = l->opts->sync;
    if (sync->ops->testing != NULL && l->opts->follower)
        sync->ops->testing(sync, l->result->progress.step, begins);
}

/* Record when a target was first met. */
static void note_target(pl_loop *l)
{
    pl_loop_result *result = l->result;
    if (result->target_step >= 0 || l->course.target_step < 0)
        return;
    result->target_step = l->course.target_step;
    result->target_seconds = pl_loop_trained(l);
}

/* Only the last test, or one that may turn out to be the last, keeps
 * answers. */
static pl_confusion *wanted_answers(const pl_loop *l, bool last)
{
    const pl_targets *targets = &l->opts->targets;
    bool may_end = targets->stop_loss > 0 || targets->stop_accuracy > 0 ||
                   targets->patience > 0;
    return last || may_end ? l->opts->confusion : NULL;
}

pl_status pl_loop_test(pl_loop *l, bool last)
{
    pl_confusion *confusion = wanted_answers(l, last);
    uint64_t begin = l->opts->follower ? pl_ticks_now() : l->paused;
    int64_t step = l->result->progress.step;
    if (l->opts->follower) /* the test overwrites the last batch */
        pl_recorder_flush(&l->recorder, true);
    if (!pl_loop_elsewhere(l->opts))
        PL_TRY(pl_loop_need_all(l));
    tell_testing(l, true);
    PL_TRY(pl_loop_evaluate(l->scorer, l->opts->test, l->opts->eval_batch,
                            l->opts->sync, confusion, &l->result->test));
    if (confusion != NULL)
        confusion->step = step;
    tell_testing(l, false);
    pl_course_tested(&l->course, l->result->test.loss,
                     l->result->test.accuracy);
    note_target(l);
    pl_recorder_test(&l->recorder, step, &l->result->test);
    uint64_t end = pl_ticks_now();
    pl_trace_span(l->opts->trace, 0, "evaluate", step, begin, end);
    double seconds = pl_loop_seconds(end - begin);
    l->held += seconds;
    l->result->eval_seconds += seconds;
    l->result->tests++;
    return PL_OK;
}

/* The answers to the last batch of training. */
static void record_predictions(pl_loop *l)
{
    int64_t step = l->result->progress.step, rows;
    if (l->opts->network->sparse) {
        const float *probs = pl_compute_probs(l->computed);
        if (probs != NULL) /* --hogwild keeps none */
            pl_recorder_probabilities(&l->recorder, step, probs, l->batch.rows);
        return;
    }
    const float *logits = pl_compute_logits(l->computed, &rows);
    pl_recorder_predictions(&l->recorder, step, logits, rows,
                            pl_node_shape(l->opts->network->logits).dim[1]);
}

pl_status pl_loop_histograms(pl_loop *l)
{
    record_predictions(l);
    if (pl_loop_elsewhere(l->opts))
        return PL_OK; /* no task has all parameters in memory */
    PL_TRY(pl_loop_need_all(l));
    pl_recorder_histograms(&l->recorder, l->result->progress.step);
    return PL_OK;
}
