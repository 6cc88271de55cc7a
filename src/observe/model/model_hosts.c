/* model_hosts.c - adds up what the hosts of a job recorded, so that a run over
 * several hosts has curves of the whole job.
 *
 * Hosts sample at different times: the sum has a point at each of these,
 * interpolating linearly between the samples of the other hosts.  A host counts
 * from one sampling interval before its first sample to one after its last, so
 * a lost host soon drops out of the sum; one with a single sample counts
 * throughout.
 */
#include "observe/model/model_priv.h"

#include "base/error.h"
#include "base/mem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns about the job's processes; the others are about the whole host. */
static bool is_of_job(const char *name)
{
    static const char *const begins[] = { "job_", "worker_", "ps_",
                                          "evaluator_" };
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static int by_time(const void *a, const void *b)
{
    double x = ((const pl_point *)a)->time, y = ((const pl_point *)b)->time;
    return (x > y) - (x < y);
}

/* Sort by time and drop duplicates; x counts from the first. */
static void order(pl_curve *sum)
{
    size_t kept = 0;
    qsort(sum->points, sum->count, sizeof *sum->points, by_time);
    for (size_t i = 0; i < sum->count; i++)
        if (i == 0 || sum->points[i].time > sum->points[kept - 1].time)
            sum->points[kept++] = sum->points[i];
    sum->count = kept;
    for (size_t i = 0; i < kept; i++)
        sum->points[i].x = sum->points[i].time - sum->points[0].time;
}

/* The time span in which the host counts. */
static void find_span(const pl_curve *host, double *from, double *to)
{
    const pl_point *p = host->points;
    size_t last = host->count - 1;
    *from = last > 0 ? p[0].time - (p[1].time - p[0].time) : -INFINITY;
    *to =
        last > 0 ? p[last].time + (p[last].time - p[last - 1].time) : INFINITY;
}

/* The host's value at a time; `at` is its last sample before, or its first. */
static double value_at(const pl_curve *host, size_t at, double time)
{
    const pl_point *p = &host->points[at];
    if (time <= p->time || at + 1 == host->count)
        return p->y;
    double way = (time - p->time) / (p[1].time - p->time);
    return p->y + way * (p[1].y - p->y);
}

static void add_host(pl_curve *sum, const pl_curve *host)
{
    double from, to;
    size_t at = 0;
    find_span(host, &from, &to);
    for (size_t i = 0; i < sum->count; i++) {
        double time = sum->points[i].time;
        while (at + 1 < host->count && host->points[at + 1].time <= time)
            at++;
        if (time >= from && time <= to)
            sum->points[i].y += value_at(host, at, time);
    }
}

static pl_status add_metric(pl_curves *sums, const pl_model_task *hosts,
                            size_t count, const char *name)
{
    pl_curve *sum = NULL;
    for (size_t h = 0; h < count; h++) {
        const pl_curve *host = pl_curves_find(&hosts[h].curves, name);
        for (size_t i = 0; host != NULL && i < host->count; i++)
            PL_TRY(pl_curves_add(sums, name, strlen(name),
                                 (pl_point) { .time = host->points[i].time }));
    }
    sum = &sums->list[sums->count - 1];
    order(sum);
    for (size_t h = 0; h < count; h++) {
        const pl_curve *host = pl_curves_find(&hosts[h].curves, name);
        if (host != NULL && host->count > 0)
            add_host(sum, host);
    }
    return PL_OK;
}

static pl_status add_metrics(pl_curves *sums, const pl_model_task *hosts,
                             size_t count)
{
    for (size_t h = 0; h < count; h++)
        for (size_t c = 0; c < hosts[h].curves.count; c++) {
            const pl_curve *curve = &hosts[h].curves.list[c];
            if (curve->count > 0 && is_of_job(curve->name) &&
                pl_curves_find(sums, curve->name) == NULL)
                PL_TRY(add_metric(sums, hosts, count, curve->name));
        }
    return PL_OK;
}

/* Insert the sum before the hosts, so that a search finds it first. */
static pl_status insert(pl_model_run *run, size_t first, pl_model_task task)
{
    PL_TRY(PL_GROW(run->tasks, run->count, run->room));
    memmove(&run->tasks[first + 1], &run->tasks[first],
            (run->count - first) * sizeof *run->tasks);
    run->tasks[first] = task;
    run->count++;
    return PL_OK;
}

pl_status pl_model_add_hosts(pl_model_run *run, size_t first)
{
    pl_model_task all = { .host = true, .sum = true };
    if (run->count < first + 2)
        return PL_OK;
    pl_status status = pl_mem_copy_text(&all.name, "all hosts");
    if (status == PL_OK)
        status =
            add_metrics(&all.curves, &run->tasks[first], run->count - first);
    if (status == PL_OK)
        status = insert(run, first, all);
    if (status != PL_OK) {
        pl_mem_free(all.name);
        pl_curves_close(&all.curves);
    }
    return status;
}
