/* metric.h - the counts and measurements of a run in progress.
 *
 * The code that does the work records it here; the progress line, the
 * TensorBoard files and the summary read it.  Four kinds:
 *
 *   gauges and counters: the latest value, one word each, always current;
 *   scalars: a bounded queue of (tag, step, value, time);
 *   histograms: likewise, few and rare, each with its own memory;
 *   epochs: a few results, for displays with a line per epoch.
 *
 * When the reader is late, further scalars and histograms are dropped and
 * counted: recording never waits.  Recording gauges and scalars takes no lock
 * and makes no system call.
 *
 * Threads: tags are registered before the run starts.  Counters and gauges
 * may be set from any thread; scalars and histograms are put by any, taken by
 * one. */
#ifndef PL_BASE_RECORD_METRIC_H
#define PL_BASE_RECORD_METRIC_H

#include "base/record/histogram.h"
#include "base/record/timeline.h"
#include "paceline/base.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct pl_metrics pl_metrics;

typedef struct pl_metrics_opts {
    uint32_t queue; /* scalars kept for the reader, a power of two; 16384 */
} pl_metrics_opts;

typedef struct pl_scalar {
    int tag;
    int64_t step;
    double value;
    int64_t wall_ns;
} pl_scalar;

pl_status pl_metrics_new(pl_metrics **out,
                         const pl_metrics_opts *opts) PL_MUST_CHECK;
void pl_metrics_free(pl_metrics *metrics); /* NULL is fine */

/* A tag for a name ("loss", "examples"); the same name gives the same tag. */
#define PL_METRICS_TAGS 64
pl_status pl_metrics_tag(pl_metrics *metrics, const char *name,
                         int *tag) PL_MUST_CHECK;
int pl_metrics_tag_count(const pl_metrics *metrics);
const char *pl_metrics_tag_name(const pl_metrics *metrics, int tag);

/* A scalar of this name means that the run resumed at its step: records of
 * later steps are void. */
#define PL_METRICS_RESTART "restart"
/* Gauges: a worker's training loss so far (train/losses.h), and the number of
 * examples in that mean. */
#define PL_METRICS_TRAIN_LOSS          "train_loss"
#define PL_METRICS_TRAIN_LOSS_EXAMPLES "train_loss_examples"

void pl_metrics_set(pl_metrics *metrics, int tag, double value);
void pl_metrics_add(pl_metrics *metrics, int tag, double value);
double pl_metrics_get(const pl_metrics *metrics, int tag);

/* Put one scalar; also sets the tag's gauge. */
void pl_metrics_scalar(pl_metrics *metrics, int tag, int64_t step,
                       double value);
bool pl_metrics_take(pl_metrics *metrics, pl_scalar *out); /* false: empty */

/* The distribution of a set of numbers, named "group/name"; both texts live as
 * long as the metrics. */
typedef struct pl_metrics_histogram {
    const char *group, *name;
    int64_t step;
    int64_t wall_ns;
    pl_histogram values;
} pl_metrics_histogram;
void pl_metrics_histogram_put(pl_metrics *metrics,
                              const pl_metrics_histogram *histogram);
/* The caller frees it by pl_mem_free; NULL: there is none. */
pl_metrics_histogram *pl_metrics_histogram_take(pl_metrics *metrics);

/* One epoch that has ended. */
typedef struct pl_epoch {
    int64_t epoch; /* 1 is the first */
    int64_t step;  /* of the job, at its end */
    int64_t steps; /* of this worker in it */
    double seconds;
    double examples_per_s;           /* of the job */
    double loss;                     /* mean over its steps */
    double test_loss, test_accuracy; /* NAN: not tested at its end */
} pl_epoch;
#define PL_METRICS_EPOCHS 64 /* kept; beyond these the oldest are dropped */
void pl_metrics_epoch_put(pl_metrics *metrics, const pl_epoch *epoch);
bool pl_metrics_epoch_take(pl_metrics *metrics,
                           pl_epoch *out); /* false: none */

/* What a task is doing; the value of the gauge PL_METRICS_ACTIVITY. */
typedef enum pl_activity {
    PL_ACTIVITY_TRAIN,
    PL_ACTIVITY_TEST,
    PL_ACTIVITY_SAVE,
    PL_ACTIVITY_JOIN, /* waits for the other tasks */
    PL_ACTIVITIES,
} pl_activity;
#define PL_METRICS_ACTIVITY "activity"
/* "testing", "saving", "waiting for the other tasks"; NULL: it trains. */
const char *pl_activity_text(pl_activity activity);

/* Where events of the run go; NULL: nowhere.  Set before, or by the thread that
 * records them; borrowed. */
void pl_metrics_set_timeline(pl_metrics *metrics, pl_timeline *timeline);
pl_timeline *pl_metrics_timeline(const pl_metrics *metrics);

/* The number of dropped scalars and histograms. */
uint64_t pl_metrics_dropped(const pl_metrics *metrics);

#endif
