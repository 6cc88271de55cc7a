/* live_test.c - decides which test result shows how good a run is, and its
 * format: the first that the run has; for a classifier its accuracy, for a
 * regression model the error in its unit. */
#include "observe/live/live_priv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const measures[] = { "test_accuracy", "test_auc",
                                        "test_rmse", "test_loss" };

#define MEASURES (sizeof measures / sizeof *measures)

void pl_live_take_test(pl_live_run *run)
{
    run->test = NAN;
    for (size_t i = 0; i < MEASURES && !isfinite(run->test); i++) {
        run->measure = pl_metric_find(measures[i]);
        run->test = run->record->ended
                        ? pl_record_number(run->record, measures[i])
                        : pl_live_last(&run->curves, measures[i], NULL);
    }
}

bool pl_live_less_is_better(const pl_metric *measure)
{
    return strcmp(measure->key, "test_rmse") == 0 ||
           strcmp(measure->key, "test_loss") == 0;
}

const char *pl_live_test_text(const pl_metric *measure, double value,
                              char text[PL_LIVE_COUNT])
{
    bool percent = measure->unit[0] == '%';
    snprintf(text, PL_LIVE_COUNT, percent ? "%.2f %%" : "%.4g",
             measure->scale * value);
    return text;
}
