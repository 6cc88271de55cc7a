/* run.c - the records of a run folder inside a program: the data model of the
 * reports, with its curves as arrays. */
#include "paceline/run.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "observe/model/model.h"

#include <string.h>

struct pl_run {
    pl_records records;
    pl_runs_model model;
    char *settings, *summary;
    pl_run_series *series;
    double *numbers; /* the memory of the curves */
    int32_t series_count;
};

/* All curves in one block: steps, times and values of each. */
static pl_status list_series(pl_run *run)
{
    const pl_model_run *from = &run->model.runs[0];
    size_t curves = 0, points = 0;
    for (size_t t = 0; t < from->count; t++)
        for (size_t c = 0; c < from->tasks[t].curves.count; c++, curves++)
            points += from->tasks[t].curves.list[c].count;
    PL_TRY(PL_NEW(run->series, curves + 1));
    PL_TRY(PL_NEW(run->numbers, 3 * points + 1));
    double *at = run->numbers;
    for (size_t t = 0; t < from->count; t++) {
        const pl_model_task *task = &from->tasks[t];
        for (size_t c = 0; c < task->curves.count; c++) {
            const pl_curve *curve = &task->curves.list[c];
            size_t count = curve->count;
            run->series[run->series_count++] = (pl_run_series) {
                .task = task->name,
                .name = curve->name,
                .host = task->host,
                .count = (int64_t)count,
                .step = at,
                .time = at + count,
                .value = at + 2 * count,
            };
            for (size_t i = 0; i < count; i++) {
                at[i] = curve->points[i].x;
                at[count + i] = curve->points[i].time;
                at[2 * count + i] = curve->points[i].y;
            }
            at += 3 * count;
        }
    }
    return PL_OK;
}

static pl_status open_run(pl_run *run, const char *folder)
{
    char *path;
    PL_TRY(pl_mem_copy_text(&path, folder));
    pl_status status = pl_records_init(&run->records, &path, 1);
    pl_mem_free(path);
    PL_TRY(status);
    if (run->records.count != 1)
        return PL_FAIL(run->records.count == 0 ? PL_NOTFOUND : PL_USAGE,
                       "%s holds %zu runs, expected the folder of one", folder,
                       run->records.count);
    const pl_record *record = &run->records.list[0];
    PL_TRY(pl_json_text(record->run.own_json, 0, &run->settings));
    if (record->ended)
        PL_TRY(pl_json_text(record->summary.own_json, 0, &run->summary));
    PL_TRY(pl_model_init(&run->model, &run->records));
    return list_series(run);
}

pl_status pl_run_open(pl_run **out, const char *folder)
{
    pl_run *run;
    PL_TRY(PL_NEW(run, 1));
    pl_status status = open_run(run, folder);
    if (status == PL_OK)
        *out = run;
    else
        pl_run_free(run);
    return status;
}

void pl_run_free(pl_run *run)
{
    if (run == NULL)
        return;
    pl_model_close(&run->model);
    pl_records_close(&run->records);
    pl_mem_free(run->settings);
    pl_mem_free(run->summary);
    pl_mem_free(run->series);
    pl_mem_free(run->numbers);
    pl_mem_free(run);
}

const char *pl_run_settings(const pl_run *run)
{
    return run->settings;
}

const char *pl_run_summary(const pl_run *run)
{
    return run->summary;
}

int32_t pl_run_series_count(const pl_run *run)
{
    return run->series_count;
}

/* `what` number `index` of `count`. */
static pl_status check_index(const char *what, int32_t index, int32_t count)
{
    if (index >= 0 && index < count)
        return PL_OK;
    return PL_FAIL(PL_USAGE, "%s %d: the run has %d", what, index, count);
}

pl_status pl_run_series_get(const pl_run *run, int32_t index,
                            pl_run_series *out)
{
    PL_TRY(check_index("series", index, run->series_count));
    *out = run->series[index];
    return PL_OK;
}

int32_t pl_run_incident_count(const pl_run *run)
{
    return (int32_t)run->model.runs[0].events.count;
}

pl_status pl_run_incident_get(const pl_run *run, int32_t index,
                              pl_run_incident *out)
{
    PL_TRY(check_index("event", index, pl_run_incident_count(run)));
    const pl_run_event *event = &run->model.runs[0].events.list[index];
    *out = (pl_run_incident) {
        .time = event->time,
        .kind = pl_event_kind_names[event->kind],
        .task = event->task,
        .step = event->step,
        .test_loss = event->test_loss,
        .test_accuracy = event->test_accuracy,
        .text = event->text,
    };
    return PL_OK;
}
