/* published.c - how far results are from published ones, if the two can be
 * compared and do not depend on the machine: accuracy in points, steps as a
 * difference. */
#include "observe/findings/findings_priv.h"

#include "observe/compare/compare.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdlib.h>

#define DIFFERENCES_MOST 1000

typedef struct published {
    const char *result; /* name in the summary */
    const char *text;
    double factor; /* the difference is shown times this */
    int digits;
    const char *unit;
} published;

static const published known[] = {
    { "test_accuracy", "Test accuracy differs", 100, 2, " points" },
    { "steps", "Steps differ", 1, 0, "" },
};

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static double median(const double *sorted, size_t count)
{
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

/* Repetitions count as one run, by their mean. */
static size_t measure(const pl_records *r, const published *p, double *out)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count && count < DIFFERENCES_MOST; i++) {
        const pl_record *record = &r->list[i];
        double spread, there = pl_experiment_published(record, p->result);
        if (!record->ended || !pl_experiment_comparable(record) ||
            pl_records_first_like(r, i) != i || isnan(there))
            continue;
        double own = pl_compare_mean(r, i, p->result, &spread);
        if (!isnan(own))
            out[count++] = fabs(own - there);
    }
    return count;
}

static void put(const pl_finding *f, const published *p)
{
    double found[DIFFERENCES_MOST];
    size_t count = measure(f->records, p, found);
    if (count < 2 || pl_experiment_machine_bound(f->records, p->result))
        return;
    qsort(found, count, sizeof *found, by_size);
    pl_buffer_format(f->out,
                     "%s from the published values by at most %.*f%s, by "
                     "%.*f%s in the median of %zu values.\n",
                     p->text, p->digits, p->factor * found[count - 1], p->unit,
                     p->digits, p->factor * median(found, count), p->unit,
                     count);
}

void pl_finding_published(const pl_finding *f)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        put(f, &known[i]);
}
