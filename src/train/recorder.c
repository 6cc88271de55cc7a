/* Decides when a step becomes a point of the curves: the first step, those that
 * the sampler takes, and the last before a test or the end. A step that is not
 * yet a point is kept as pending; meanwhile the displayed values stay
 * current. */
#include "train/recorder.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

/* The gradient norm is computed again after this many times its own cost. */
#define NORM_PAUSE 200
#define CLASSES    1024 /* maximum for predictions */
/* The tag of predictions. */
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
        { PL_METRICS_TRAIN_LOSS, &recorder->tags.train_loss },
        { PL_METRICS_TRAIN_LOSS_EXAMPLES, &recorder->tags.train_loss_examples },
        { "accuracy", &recorder->tags.accuracy },
        { "learning_rate", &recorder->tags.lr },
        { "tests", &recorder->tags.tests },
        { "test_loss", &recorder->tags.test_loss },
        { "test_accuracy", &recorder->tags.test_accuracy },
        { "test_auc", &recorder->tags.test_auc },
        { "test_precision", &recorder->tags.test_precision },
        { "test_recall", &recorder->tags.test_recall },
        { "test_calibration", &recorder->tags.test_calibration },
        { "test_top5_accuracy", &recorder->tags.test_top5 },
        { "test_rmse", &recorder->tags.test_rmse },
        { "test_mae", &recorder->tags.test_mae },
        { "test_r2", &recorder->tags.test_r2 },
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
        { PL_METRICS_ACTIVITY, &recorder->tags.activity },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        PL_TRY(pl_metrics_tag(opts->metrics, all[i].name, all[i].tag));
    pl_losses_init(&recorder->losses, opts->epoch_steps);
    pl_due_init(&recorder->due, opts->every, opts->pace, opts->start_step);
    return PL_OK;
}

/* Over all parameters; negative if there is no gradient. */
static double gradient_norm(const pl_recorder *recorder)
{
    const pl_recorder_opts *opts = &recorder->opts;
    double squares = 0;
    for (int p = 0; p < pl_params_count(opts->params); p++) {
        int64_t count = 0;
        const float *grad = opts->gradient(opts->context, p, &count);
        if (grad == NULL)
            return -1;
        if (pl_params_get(opts->params, p)->averaged)
            continue;
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

/* Record a point of a curve, or only update the displayed value. */
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

/* Rates and means from one point to the next, or since the last display. */
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

/* Total bytes sent and received by the job's connections; `step` is NULL if no
 * point is recorded. */
static void record_traffic(const pl_recorder *recorder,
                           const pl_recorder_step *step)
{
    const pl_recorder_opts *opts = &recorder->opts;
    int64_t sent, received;
    if (opts->sync->ops->traffic == NULL)
        return;
    opts->sync->ops->traffic(opts->sync, &sent, &received);
    put(recorder, recorder->tags.sent, step, (double)sent, step != NULL);
    put(recorder, recorder->tags.received, step, (double)received,
        step != NULL);
}

static void set_own(const pl_recorder *recorder, int64_t own_examples,
                    int64_t dropped)
{
    pl_metrics_set(recorder->opts.metrics, recorder->tags.own_examples,
                   (double)own_examples);
    pl_metrics_set(recorder->opts.metrics, recorder->tags.dropped,
                   (double)dropped);
}

static void record_loss(pl_recorder *recorder, const pl_recorder_step *step,
                        bool point)
{
    pl_metrics *metrics = recorder->opts.metrics;
    pl_mean_loss mean = pl_losses_mean(&recorder->losses);
    pl_metrics_set(metrics, recorder->tags.train_loss, mean.loss);
    pl_metrics_set(metrics, recorder->tags.train_loss_examples,
                   (double)mean.examples);
    if (point)
        pl_metrics_scalar(metrics, recorder->tags.loss, step->step,
                          pl_losses_point(&recorder->losses).loss);
}

/* Values that follow from this step alone. */
static void record_numbers(pl_recorder *recorder, const pl_recorder_step *step,
                           bool point)
{
    const pl_recorder_opts *opts = &recorder->opts;
    record_loss(recorder, step, point);
    put(recorder, recorder->tags.lr, step,
        pl_schedule_lr(opts->schedule, step->step), point);
    if (opts->epoch_updates > 0)
        pl_metrics_set(opts->metrics, recorder->tags.epoch,
                       (double)step->step / (double)opts->epoch_updates);
    set_own(recorder, step->own_examples, step->dropped);
    record_interval(recorder, step, point);
    record_traffic(recorder, point ? step : NULL);
    recorder->pending = recorder->pending && !point;
}

void pl_recorder_end_epoch(pl_recorder *recorder)
{
    if (recorder->epoch.ended)
        pl_metrics_epoch_put(recorder->opts.metrics, &recorder->epoch.last);
    recorder->epoch.ended = false;
}

static void begin_epoch(pl_recorder *recorder, int64_t number,
                        const pl_recorder_step *step)
{
    recorder->epoch.next = (number + 1) * recorder->opts.epoch_updates;
    recorder->epoch.steps = 0;
    recorder->epoch.loss = 0;
    recorder->epoch.begin = step->now;
    recorder->epoch.examples = step->examples;
}

/* An epoch that ends with this step waits for its test; the previous one no
 * longer does. */
static void count_epoch(pl_recorder *recorder, const pl_recorder_step *step)
{
    int64_t updates = recorder->opts.epoch_updates;
    if (updates <= 0)
        return;
    pl_recorder_end_epoch(recorder);
    if (!recorder->started) /* the duration of the first step is unknown */
        begin_epoch(recorder, (step->step - 1) / updates, step);
    recorder->epoch.steps++;
    recorder->epoch.loss += step->loss;
    if (step->step < recorder->epoch.next)
        return;
    int64_t number = step->step / updates;
    double seconds =
        (double)(step->now - recorder->epoch.begin) * pl_ticks_ns() * 1e-9;
    recorder->epoch.last = (pl_epoch) {
        .epoch = number,
        .step = step->step,
        .steps = recorder->epoch.steps,
        .seconds = seconds,
        .examples_per_s =
            seconds > 0
                ? (double)(step->examples - recorder->epoch.examples) / seconds
                : NAN,
        .loss = recorder->epoch.loss / (double)recorder->epoch.steps,
        .test_loss = NAN,
        .test_accuracy = NAN,
    };
    recorder->epoch.ended = true;
    begin_epoch(recorder, number, step);
}

void pl_recorder_activity(pl_recorder *recorder, pl_activity activity)
{
    pl_metrics_set(recorder->opts.metrics, recorder->tags.activity,
                   (double)activity);
}

/* Is the step a point of the curves? */
static bool is_point(pl_recorder *recorder, const pl_recorder_step *step,
                     bool shows)
{
    if (recorder->opts.every.unit != PL_EVERY_AUTO)
        return pl_due_now(&recorder->due, step->step, step->now);
    return shows && pl_sampler_due(&recorder->points, step->now);
}

void pl_recorder_put(pl_recorder *recorder, const pl_recorder_step *step)
{
    pl_metrics *metrics = recorder->opts.metrics;
    count_epoch(recorder, step);
    pl_losses_add(&recorder->losses, step->loss, step->loss_examples);
    recorder->behind += step->behind;
    recorder->steps++;
    recorder->at = *step;
    recorder->pending = recorder->norm_pending = true;
    pl_metrics_set(metrics, recorder->tags.step, (double)step->step);
    pl_metrics_set(metrics, recorder->tags.examples, (double)step->examples);
    pl_metrics_set(metrics, recorder->tags.own_steps, (double)step->own);
    bool shows = !recorder->started || step->now >= recorder->next;
    bool point = is_point(recorder, step, shows);
    if (!shows && !point)
        return;
    recorder->started = true;
    recorder->next = step->now + (uint64_t)(PL_SAMPLER_S * 1e9 / pl_ticks_ns());
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
    pl_recorder_end_epoch(recorder);
    if (recorder->opts.epoch_updates > 0)
        begin_epoch(recorder, step / recorder->opts.epoch_updates,
                    &recorder->at);
    pl_losses_init(&recorder->losses, recorder->opts.epoch_steps);
    pl_due_init(&recorder->due, recorder->opts.every, recorder->opts.pace,
                step);
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

void pl_recorder_warn(pl_recorder *recorder, int64_t step, const char *text)
{
    pl_run_event event = pl_run_event_of(PL_EVENT_WARNING);
    event.step = step;
    snprintf(event.text, sizeof event.text, "%s", text);
    put_event(recorder, &event);
}

void pl_recorder_test(pl_recorder *recorder, int64_t step,
                      const pl_score *score)
{
    pl_metrics *metrics = recorder->opts.metrics;
    const struct {
        int tag;
        double value;
        bool known;
    } all[] = {
        { recorder->tags.test_loss, score->loss, true },
        { recorder->tags.test_accuracy, score->accuracy, !score->numeric },
        { recorder->tags.test_auc, score->auc, score->binary },
        { recorder->tags.test_precision, score->precision, score->binary },
        { recorder->tags.test_recall, score->recall, score->binary },
        { recorder->tags.test_calibration, score->calibration, score->binary },
        { recorder->tags.test_top5, score->top5,
          !score->binary && !isnan(score->top5) },
        { recorder->tags.test_rmse, score->rmse, score->numeric },
        { recorder->tags.test_mae, score->mae, score->numeric },
        { recorder->tags.test_r2, score->r2, score->numeric },
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].known)
            pl_metrics_scalar(metrics, all[i].tag, step, all[i].value);
    if (score->numeric) /* so that no reader takes it for 0 */
        pl_metrics_set(metrics, recorder->tags.test_accuracy, (double)NAN);
    pl_metrics_add(metrics, recorder->tags.tests, 1);
    if (recorder->epoch.ended) {
        recorder->epoch.last.test_loss = score->loss;
        recorder->epoch.last.test_accuracy = score->accuracy;
        pl_recorder_end_epoch(recorder);
    }
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
        if (grad != NULL && !item->averaged)
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
    record_traffic(recorder, NULL);
}
