/* When a step becomes a point of the curves: the first, then those that the
 * sampler takes, and the last before a test or the end.  A step that is not a
 * point yet is kept as pending; in between, what is shown stays current. */
#include "train/recorder.h"

#include "base/clock.h"

#include <math.h>

#define SMOOTHING 0.02 /* weight of a new loss in the shown average */
/* The norm of a gradient is taken again after so many times what it took. */
#define NORM_PAUSE 200
#define CLASSES    1024 /* of predictions: the most */
/* The tag of those. */
#define PREDICTIONS   "predictions"
#define PROBABILITIES "probabilities"

pl_status pl_recorder_init(pl_recorder *recorder, const pl_recorder_opts *opts)
{
    *recorder = (pl_recorder) { .opts = *opts };
    const struct {
        const char *name;
        int *tag;
    } all[] = {
        { "step", &recorder->tags.step },
        { "epoch", &recorder->tags.epoch },
        { "examples", &recorder->tags.examples },
        { "loss", &recorder->tags.loss },
        { "accuracy", &recorder->tags.accuracy },
        { "learning_rate", &recorder->tags.lr },
        { "tests", &recorder->tags.tests },
        { "test_loss", &recorder->tags.test_loss },
        { "test_accuracy", &recorder->tags.test_accuracy },
        { "test_auc", &recorder->tags.test_auc },
        { "test_precision", &recorder->tags.test_precision },
        { "test_recall", &recorder->tags.test_recall },
        { "test_calibration", &recorder->tags.test_calibration },
        { "own_steps", &recorder->tags.own_steps },
        { "own_examples", &recorder->tags.own_examples },
        { "dropped", &recorder->tags.dropped },
        { "examples_per_s", &recorder->tags.rate },
        { "waiting_share", &recorder->tags.waiting },
        { "gradient_norm", &recorder->tags.norm },
        { "staleness", &recorder->tags.staleness },
        { "bytes_sent", &recorder->tags.sent },
        { "bytes_received", &recorder->tags.received },
        { PL_METRICS_RESTART, &recorder->tags.restart },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PL_TRY(pl_metrics_tag(opts->metrics, all[i].name, all[i].tag));
    return PL_OK;
}

/* Over all parameters; negative where there is no gradient. */
static double gradient_norm(const pl_recorder *recorder)
{
    const pl_recorder_opts *opts = &recorder->opts;
    double squares = 0;
    for (int p = 0; p < pl_params_count(opts->params); p++) {
        int64_t count = 0;
        const float *grad = opts->gradient(opts->context, p, &count);
        if (grad == NULL)
            return -1;
        squares += opts->kernels->sum_squares(count, grad);
    }
    return sqrt(squares);
}

static void record_norm(pl_recorder *recorder, const pl_recorder_step *step)
{
    if (recorder->opts.gradient == NULL)
        return;
    uint64_t begin = pl_ticks_now();
    double norm = gradient_norm(recorder);
    uint64_t end = pl_ticks_now();
    recorder->next_norm = end + NORM_PAUSE * (end - begin);
    recorder->norm_pending = false;
    if (norm >= 0)
        pl_metrics_scalar(recorder->opts.metrics, recorder->tags.norm,
                          step->step, norm);
}

/* A point of its curve, or only what is shown. */
static void put(const pl_recorder *recorder, int tag,
                const pl_recorder_step *step, double value, bool point)
{
    if (point)
        pl_metrics_scalar(recorder->opts.metrics, tag, step->step, value);
    else
        pl_metrics_set(recorder->opts.metrics, tag, value);
}

static void record_accuracy(const pl_recorder *recorder,
                            const pl_recorder_step *step, bool point)
{
    const pl_recorder_opts *opts = &recorder->opts;
    double accuracy =
        opts->accuracy != NULL ? opts->accuracy(opts->context) : NAN;
    if (!isnan(accuracy))
        put(recorder, recorder->tags.accuracy, step, accuracy, point);
}

/* What is measured from one point to the next, or from what was shown last. */
static void record_interval(pl_recorder *recorder, const pl_recorder_step *step,
                            bool point)
{
    const pl_recorder_mark *since =
        point ? &recorder->recorded : &recorder->shown;
    double ticks = (double)(step->now - since->now);
    int64_t made = step->own_examples - since->examples;
    int64_t steps = recorder->steps - since->steps;
    if (ticks > 0 && since->now > 0) {
        put(recorder, recorder->tags.rate, step,
            (double)made / (ticks * pl_ticks_ns() * 1e-9), point);
        put(recorder, recorder->tags.waiting, step,
            (double)(step->waited - since->waited) / ticks, point);
    }
    if (recorder->opts.own_pace && steps > 0)
        put(recorder, recorder->tags.staleness, step,
            (double)(recorder->behind - since->behind) / (double)steps, point);
    recorder->shown = (pl_recorder_mark) {
        .now = step->now,
        .waited = step->waited,
        .examples = step->own_examples,
        .behind = recorder->behind,
        .steps = recorder->steps,
    };
    if (point)
        recorder->recorded = recorder->shown;
}

static void record_traffic(const pl_recorder *recorder)
{
    const pl_recorder_opts *opts = &recorder->opts;
    int64_t sent, received;
    if (opts->sync->ops->traffic == NULL)
        return;
    opts->sync->ops->traffic(opts->sync, &sent, &received);
    pl_metrics_set(opts->metrics, recorder->tags.sent, (double)sent);
    pl_metrics_set(opts->metrics, recorder->tags.received, (double)received);
}

static void set_own(const pl_recorder *recorder, int64_t own_examples,
                    int64_t dropped)
{
    pl_metrics_set(recorder->opts.metrics, recorder->tags.own_examples,
                   (double)own_examples);
    pl_metrics_set(recorder->opts.metrics, recorder->tags.dropped,
                   (double)dropped);
}

/* What follows from the numbers of a step alone. */
static void record_numbers(pl_recorder *recorder, const pl_recorder_step *step,
                           bool point)
{
    const pl_recorder_opts *opts = &recorder->opts;
    put(recorder, recorder->tags.loss, step, recorder->loss, point);
    put(recorder, recorder->tags.lr, step,
        pl_schedule_lr(opts->schedule, step->step), point);
    if (opts->epoch_updates > 0)
        pl_metrics_set(opts->metrics, recorder->tags.epoch,
                       (double)step->step / (double)opts->epoch_updates);
    set_own(recorder, step->own_examples, step->dropped);
    record_interval(recorder, step, point);
    record_traffic(recorder);
    recorder->pending = recorder->pending && !point;
}

void pl_recorder_put(pl_recorder *recorder, const pl_recorder_step *step)
{
    pl_metrics *metrics = recorder->opts.metrics;
    recorder->loss =
        recorder->started
            ? recorder->loss + SMOOTHING * (step->loss - recorder->loss)
            : step->loss;
    recorder->behind += step->behind;
    recorder->steps++;
    recorder->at = *step;
    recorder->pending = recorder->norm_pending = true;
    pl_metrics_set(metrics, recorder->tags.step, (double)step->step);
    pl_metrics_set(metrics, recorder->tags.examples, (double)step->examples);
    pl_metrics_set(metrics, recorder->tags.own_steps, (double)step->own);
    if (recorder->started && step->now < recorder->next)
        return;
    recorder->started = true;
    recorder->next = step->now + (uint64_t)(PL_SAMPLER_S * 1e9 / pl_ticks_ns());
    bool point = pl_sampler_due(&recorder->points, step->now);
    record_numbers(recorder, step, point);
    record_accuracy(recorder, step, point);
    if (point && step->now >= recorder->next_norm)
        record_norm(recorder, step);
}

void pl_recorder_flush(pl_recorder *recorder, bool computed)
{
    bool pending = recorder->pending;
    if (pending)
        record_numbers(recorder, &recorder->at, true);
    if (pending && computed)
        record_accuracy(recorder, &recorder->at, true);
    if (recorder->norm_pending && computed)
        record_norm(recorder, &recorder->at);
}

static void put_event(const pl_recorder *recorder, const pl_run_event *event)
{
    pl_timeline_put(pl_metrics_timeline(recorder->opts.metrics), event);
}

void pl_recorder_restart(pl_recorder *recorder, int64_t step, int64_t from,
                         int64_t restored)
{
    pl_run_event event = pl_run_event_of(PL_EVENT_ROLLBACK);
    recorder->pending = recorder->norm_pending = false;
    pl_metrics_scalar(recorder->opts.metrics, recorder->tags.restart, step,
                      (double)step);
    event.step = restored;
    event.from = from;
    if (restored < from)
        put_event(recorder, &event);
}

void pl_recorder_checkpoint(pl_recorder *recorder, int64_t step)
{
    pl_run_event event = pl_run_event_of(PL_EVENT_CHECKPOINT);
    event.step = step;
    put_event(recorder, &event);
}

void pl_recorder_test(pl_recorder *recorder, int64_t step,
                      const pl_score *score)
{
    pl_metrics *metrics = recorder->opts.metrics;
    const struct {
        int tag;
        double value;
    } all[] = {
        { recorder->tags.test_loss, score->loss },
        { recorder->tags.test_accuracy, score->accuracy },
        { recorder->tags.test_auc, score->auc },
        { recorder->tags.test_precision, score->precision },
        { recorder->tags.test_recall, score->recall },
        { recorder->tags.test_calibration, score->calibration },
    };
    size_t count = score->binary ? sizeof all / sizeof *all : 2;
    for (size_t i = 0; i < count; i++)
        pl_metrics_scalar(metrics, all[i].tag, step, all[i].value);
    pl_metrics_add(metrics, recorder->tags.tests, 1);
    pl_run_event event = pl_run_event_of(PL_EVENT_TEST);
    event.step = step;
    event.test_loss = score->loss;
    event.test_accuracy = score->accuracy;
    put_event(recorder, &event);
}

static void put_histogram(pl_recorder *recorder, const char *group,
                          const char *name, int64_t step, const float *values,
                          int64_t count)
{
    pl_metrics_histogram histogram = {
        .group = group,
        .name = name,
        .step = step,
    };
    pl_histogram_add(&histogram.values, values, count);
    pl_metrics_histogram_put(recorder->opts.metrics, &histogram);
}

void pl_recorder_histograms(pl_recorder *recorder, int64_t step)
{
    const pl_recorder_opts *opts = &recorder->opts;
    for (int p = 0; p < pl_params_count(opts->params); p++) {
        const pl_params_item *item = pl_params_get(opts->params, p);
        put_histogram(recorder, "weights", item->name, step,
                      pl_params_data(opts->params, p), item->count);
        int64_t count = 0;
        const float *grad = opts->gradient != NULL
                                ? opts->gradient(opts->context, p, &count)
                                : NULL;
        if (grad != NULL)
            put_histogram(recorder, "gradients", item->name, step, grad, count);
    }
}

/* The softmax of one row. */
static void probabilities(const float *logits, int64_t classes, float *out)
{
    float most = logits[0], sum = 0;
    for (int64_t c = 1; c < classes; c++)
        most = fmaxf(most, logits[c]);
    for (int64_t c = 0; c < classes; c++)
        sum += out[c] = expf(logits[c] - most);
    for (int64_t c = 0; c < classes; c++)
        out[c] /= sum;
}

void pl_recorder_predictions(pl_recorder *recorder, int64_t step,
                             const float *logits, int64_t rows, int64_t classes)
{
    pl_metrics_histogram histogram = {
        .group = PREDICTIONS,
        .name = PROBABILITIES,
        .step = step,
    };
    float row[CLASSES];
    if (classes > CLASSES)
        return;
    for (int64_t r = 0; r < rows; r++) {
        probabilities(logits + r * classes, classes, row);
        pl_histogram_add(&histogram.values, row, classes);
    }
    pl_metrics_histogram_put(recorder->opts.metrics, &histogram);
}

void pl_recorder_probabilities(pl_recorder *recorder, int64_t step,
                               const float *probs, int64_t rows)
{
    put_histogram(recorder, PREDICTIONS, PROBABILITIES, step, probs, rows);
}

void pl_recorder_end(pl_recorder *recorder, int64_t own_examples,
                     int64_t dropped)
{
    set_own(recorder, own_examples, dropped);
    record_traffic(recorder);
}
