/* What the tasks recorded over steps: loss, accuracy, speed, waiting. */
#include "base/file/file.h"
#include "base/mem.h"
#include "observe/report/report_priv.h"
#include "observe/runs/curve_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MOST 300               /* of one line */
#define EVENTS_MOST ((size_t)1 << 30) /* bytes of one file */
#define LINES_MOST  40 /* of one figure: more cannot be told apart */

/* The curves of one task. */
typedef struct task {
    char *name; /* "worker-0" */
    pl_curves curves;
} task;

/* The tasks of one run. */
typedef struct tasks {
    task *list;
    size_t count;
} tasks;

static const struct kind {
    const char *tag, *name, *title, *label;
    double scale;
    bool all; /* also in one figure of all runs */
} kinds[] = {
    { "loss", "loss", "Training loss", "loss", 1, true },
    { "test_loss", "test-loss", "Test loss", "test loss", 1, true },
    { "test_accuracy", "test-accuracy", "Test accuracy", "test accuracy [%]",
      100, true },
    { "test_auc", "test-auc", "Test AUC", "test AUC", 1, true },
    { "accuracy", "accuracy", "Training accuracy", "accuracy [%]", 100, false },
    { "examples_per_s", "speed", "Speed", "examples/s", 1, false },
    { "waiting_share", "waiting", "Waiting", "share of time [%]", 100, false },
    { "updates_per_s", "updates", "Updates by the servers", "updates/s", 1,
      false },
    { "staleness", "staleness", "Staleness", "updates", 1, false },
    { "gradient_norm", "gradient", "Length of the gradient", "length", 1,
      false },
};

#define KINDS (sizeof kinds / sizeof *kinds)

static void close_tasks(tasks *t)
{
    for (size_t i = 0; i < t->count; i++) {
        pl_mem_free(t->list[i].name);
        pl_curves_close(&t->list[i].curves);
    }
    pl_mem_free(t->list);
    *t = (tasks) { 0 };
}

static pl_status read_file(pl_report *report, task *own, const char *path)
{
    pl_map map;
    pl_status status = pl_map_read(&map, path, EVENTS_MOST);
    if (status == PL_OK) {
        status = pl_events_read(&own->curves, map.data, map.bytes, path);
        pl_map_close(&map);
    }
    return status == PL_OK ? PL_OK : pl_report_leave_out(report, path, status);
}

static pl_status read_task(pl_report *report, task *own, const char *folder)
{
    char **names, *path;
    size_t count;
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK)
        return pl_report_leave_out(report, folder, status);
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        if (strstr(names[i], ".tfevents.") == NULL)
            continue;
        status = pl_file_join(&path, folder, names[i]);
        if (status == PL_OK) {
            status = read_file(report, own, path);
            pl_mem_free(path);
        }
    }
    pl_mem_free(names);
    for (size_t i = 0; i < own->curves.count; i++)
        pl_curve_thin(&own->curves.list[i], POINTS_MOST);
    return status;
}

static pl_status read_names(pl_report *report, tasks *t, const char *folder,
                            char **names, size_t count)
{
    PL_TRY(PL_NEW(t->list, count));
    for (size_t i = 0; i < count; i++) {
        task *own = &t->list[t->count];
        char *path;
        PL_TRY(pl_mem_copy_text(&own->name, names[i]));
        t->count++;
        PL_TRY(pl_file_join(&path, folder, names[i]));
        pl_status status = read_task(report, own, path);
        pl_mem_free(path);
        PL_TRY(status);
    }
    return PL_OK;
}

/* Servers last, so that workers have the same colours in every figure;
 * numbers by value. */
static int by_task(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int x_serves = strncmp(x, "ps-", 3) == 0;
    int y_serves = strncmp(y, "ps-", 3) == 0;
    return x_serves != y_serves ? x_serves - y_serves : strverscmp(x, y);
}

/* A run that recorded nothing has no tasks. */
static pl_status read_tasks(pl_report *report, const pl_record *record,
                            tasks *t)
{
    char *folder, **names;
    size_t count;
    *t = (tasks) { 0 };
    PL_TRY(pl_file_join(&folder, record->path, "events"));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status == PL_OK) {
        qsort(names, count, sizeof *names, by_task);
        status = read_names(report, t, folder, names, count);
        pl_mem_free(names);
    } else if (status == PL_NOTFOUND)
        status = PL_OK;
    else
        status = pl_report_leave_out(report, folder, status);
    pl_mem_free(folder);
    if (status != PL_OK)
        close_tasks(t);
    return status;
}

static void add_curve(pl_figure *figure, const char *name,
                      const pl_curve *curve, double scale)
{
    pl_figure_add_series(figure, name);
    for (size_t i = 0; i < curve->count; i++)
        pl_figure_add_point(figure, curve->points[i].x,
                            scale * curve->points[i].y, 0);
}

static pl_status put_kind(pl_report *report, const pl_record *record,
                          const tasks *t, const struct kind *kind)
{
    char *name, title[256];
    pl_figure *figure;
    PL_TRY(pl_mem_format(&name, "%s-%s", kind->name, record->name));
    snprintf(title, sizeof title, "%s of %s", kind->title, record->name);
    pl_status status = pl_figure_new(&figure, &(pl_figure_opts) {
                                                  .name = name,
                                                  .title = title,
                                                  .x = "step",
                                                  .y = kind->label,
                                              });
    pl_mem_free(name);
    PL_TRY(status);
    for (size_t i = 0; i < t->count && i < LINES_MOST; i++) {
        const pl_curve *curve = pl_curves_find(&t->list[i].curves, kind->tag);
        if (curve != NULL)
            add_curve(figure, t->list[i].name, curve, kind->scale);
    }
    pl_page_take_figure(report->page, figure);
    return PL_OK;
}

/* The first task that has the curve stands for the run. */
static void add_run(pl_figure *figure, const pl_record *record, const tasks *t,
                    const struct kind *kind)
{
    for (size_t i = 0; i < t->count; i++) {
        const pl_curve *curve = pl_curves_find(&t->list[i].curves, kind->tag);
        if (curve != NULL) {
            add_curve(figure, record->name, curve, kind->scale);
            return;
        }
    }
}

/* One figure with all runs. */
static pl_status put_all(pl_report *report, const tasks *runs,
                         const struct kind *kind)
{
    const pl_records *records = report->records;
    char name[64], title[64];
    pl_figure *figure;
    snprintf(name, sizeof name, "%s-of-runs", kind->name);
    snprintf(title, sizeof title, "%s of the runs", kind->title);
    PL_TRY(pl_figure_new(&figure, &(pl_figure_opts) {
                                      .name = name,
                                      .title = title,
                                      .x = "step",
                                      .y = kind->label,
                                  }));
    for (size_t r = 0; r < records->count && r < LINES_MOST; r++)
        add_run(figure, &records->list[r], &runs[r], kind);
    pl_page_take_figure(report->page, figure);
    return PL_OK;
}

static pl_status put_run(pl_report *report, const pl_record *record,
                         const tasks *t)
{
    if (t->count == 0)
        return PL_OK;
    pl_report_fold_run(report, record);
    for (size_t k = 0; k < KINDS; k++)
        PL_TRY(put_kind(report, record, t, &kinds[k]));
    pl_report_unfold_run(report);
    return PL_OK;
}

static pl_status put_runs(pl_report *report, tasks *runs)
{
    const pl_records *records = report->records;
    bool any = false;
    for (size_t r = 0; r < records->count; r++) {
        PL_TRY(read_tasks(report, &records->list[r], &runs[r]));
        any = any || runs[r].count > 0;
    }
    if (!any)
        return PL_OK;
    pl_page_heading(report->page, "Curves");
    for (size_t k = 0; k < KINDS; k++)
        if (kinds[k].all && records->count > 1)
            PL_TRY(put_all(report, runs, &kinds[k]));
    for (size_t r = 0; r < records->count; r++)
        PL_TRY(put_run(report, &records->list[r], &runs[r]));
    return PL_OK;
}

pl_status pl_report_curves(pl_report *report)
{
    size_t count = report->records->count;
    tasks *runs;
    PL_TRY(PL_NEW(runs, count));
    pl_status status = put_runs(report, runs);
    for (size_t i = 0; i < count; i++)
        close_tasks(&runs[i]);
    pl_mem_free(runs);
    return status;
}
