/* model.c - reads what runs recorded over time, once, and decides which flags
 * distinguish the runs of a part. */
#include "observe/model/model.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "observe/compare/compare.h"
#include "observe/model/metric.h"
#include "observe/model/model_priv.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOSE_FLAGS_MOST 3 /* in the name of a run without a sweep */

/* --- parts ------------------------------------------------------------ */

static void find_axes(pl_model_part *part)
{
    const char *names[PL_MODEL_AXES_MOST];
    size_t count = pl_compare_args(&part->records, names, PL_MODEL_AXES_MOST);
    for (size_t i = 0; i < count; i++)
        if (!pl_compare_follows(&part->records, names, count, names[i]))
            part->axes[part->axis_count++] = names[i];
}

static const char *look_up(const pl_records *records, size_t run,
                           const char *flag)
{
    if (!pl_records_flag_applies(records, run, flag))
        return "";
    return pl_record_arg(&records->list[run], flag);
}

/* Cached, since it is used often and expensive to compute. */
static pl_status fill_part(pl_model_part *part)
{
    size_t runs = part->records.count;
    find_axes(part);
    PL_TRY(PL_NEW(part->like, runs));
    PL_TRY(PL_NEW(part->values, runs * part->axis_count + 1));
    for (size_t i = 0; i < runs; i++) {
        part->like[i] = pl_records_first_like(&part->records, i);
        for (size_t a = 0; a < part->axis_count; a++)
            part->values[i * part->axis_count + a] =
                look_up(&part->records, i, part->axes[a]);
    }
    return PL_OK;
}

static pl_status find_parts(pl_runs_model *model)
{
    const pl_records *records = model->records;
    PL_TRY(PL_NEW(model->parts, records->count + 1));
    for (size_t first = 0, end; first < records->count; first = end) {
        pl_model_part *part = &model->parts[model->part_count++];
        part->first = first;
        end = pl_experiment_part(records, first, &part->records);
        PL_TRY(fill_part(part));
    }
    return PL_OK;
}

const char *pl_model_flag(const pl_model_part *part, size_t run,
                          const char *flag)
{
    for (size_t a = 0; a < part->axis_count; a++)
        if (strcmp(part->axes[a], flag) == 0)
            return part->values[run * part->axis_count + a];
    return look_up(&part->records, run, flag);
}

void pl_model_label(const pl_runs_model *model, const pl_model_part *part,
                    size_t run, char *text, size_t room)
{
    const pl_record *record = &part->records.list[run];
    bool loose = record->experiment == NULL;
    text[0] = '\0';
    if (!model->apart && part->axis_count > 0 &&
        !(loose && part->axis_count > LOOSE_FLAGS_MOST))
        pl_compare_label(&part->records, run, part->axes, part->axis_count, "",
                         text, room);
    if (text[0] == '\0')
        snprintf(text, room, "%s", record->name);
}

double pl_model_mean(const pl_model_part *part, size_t first,
                     const char *metric, double *spread)
{
    double sum = 0, squares = 0;
    size_t count = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = first; i < part->records.count; i++) {
            double value =
                part->like[i] == first
                    ? pl_metric_result(&part->records.list[i], metric)
                    : (double)NAN;
            if (isnan(value))
                continue;
            double off = value - sum / (double)(count > 0 ? count : 1);
            if (pass == 0) {
                sum += value;
                count++;
            } else {
                squares += off * off;
            }
        }
    *spread = count > 1 ? sqrt(squares / (double)(count - 1)) : 0;
    return count > 0 ? sum / (double)count : NAN;
}

bool pl_model_is_numeric(const pl_model_part *part, const char *flag,
                         double *least, double *most)
{
    *least = INFINITY;
    *most = -INFINITY;
    for (size_t i = 0; i < part->records.count; i++) {
        const char *text = pl_model_flag(part, i, flag);
        char *end;
        double value = strtod(text, &end);
        if (text[0] == '\0')
            continue;
        if (*end != '\0' || !isfinite(value))
            return false;
        *least = fmin(*least, value);
        *most = fmax(*most, value);
    }
    return *least <= *most;
}

/* --- runs ------------------------------------------------------------- */

static double earlier(double a, double b)
{
    return isnan(a) || b < a ? b : a;
}

/* When the run began: as recorded, or its first point. */
static double begin_of(const pl_record *record, const pl_model_run *run)
{
    double begin = NAN;
    if (record->ended && record->summary.started > 0)
        return record->summary.started;
    for (size_t i = 0; i < run->events.count; i++)
        begin = earlier(begin, run->events.list[i].time);
    for (size_t t = 0; t < run->count; t++)
        for (size_t c = 0; c < run->tasks[t].curves.count; c++) {
            const pl_curve *curve = &run->tasks[t].curves.list[c];
            if (curve->count > 0 && curve->points[0].time > 0)
                begin = earlier(begin, curve->points[0].time);
        }
    return begin;
}

static pl_status read_run(pl_runs_model *model, size_t index)
{
    const pl_record *record = &model->records->list[index];
    pl_model_run *run = &model->runs[index];
    PL_TRY(pl_model_read_tasks(model, run, record->path));
    size_t hosts = run->count;
    PL_TRY(pl_model_read_hosts(model, run, record->path));
    pl_status status = pl_model_add_hosts(run, hosts);
    if (status != PL_OK)
        PL_TRY(pl_record_leave_out(model->left_out, record->path, status));
    status = pl_run_events_read(&run->events, record->path);
    if (status != PL_OK)
        PL_TRY(pl_record_leave_out(model->left_out, record->path, status));
    PL_TRY(pl_model_read_test(model, run, record->path));
    run->begin = begin_of(record, run);
    return PL_OK;
}

static pl_status copy_left_out(pl_runs_model *model)
{
    return model->records->left_out != NULL
               ? pl_json_copy(&model->left_out, model->records->left_out)
               : pl_json_new_array(&model->left_out);
}

pl_status pl_model_init(pl_runs_model *model, const pl_records *records)
{
    *model = (pl_runs_model) { .records = records };
    pl_status status = PL_NEW(model->runs, records->count + 1);
    if (status == PL_OK)
        status = copy_left_out(model);
    if (status == PL_OK)
        status = find_parts(model);
    for (size_t i = 0; i < records->count && status == PL_OK; i++)
        status = read_run(model, i);
    if (status != PL_OK)
        pl_model_close(model);
    return status;
}

void pl_model_set_apart(pl_runs_model *model)
{
    model->apart = true;
    for (size_t p = 0; p < model->part_count; p++)
        for (size_t i = 0; i < model->parts[p].records.count; i++)
            model->parts[p].like[i] = i;
}

void pl_model_close(pl_runs_model *model)
{
    for (size_t i = 0; model->runs != NULL && i < model->records->count; i++) {
        pl_model_run *run = &model->runs[i];
        for (size_t t = 0; t < run->count; t++) {
            pl_mem_free(run->tasks[t].name);
            pl_curves_close(&run->tasks[t].curves);
        }
        pl_mem_free(run->tasks);
        pl_run_events_close(&run->events);
        pl_confusion_close(&run->confusion);
    }
    for (size_t p = 0; p < model->part_count; p++) {
        pl_mem_free(model->parts[p].like);
        pl_mem_free(model->parts[p].values);
    }
    pl_mem_free(model->runs);
    pl_mem_free(model->parts);
    pl_json_free(model->left_out);
    *model = (pl_runs_model) { 0 };
}

const pl_curve *pl_model_curve(const pl_model_run *run, const char *metric)
{
    for (size_t t = 0; t < run->count; t++) {
        const pl_curve *curve = pl_curves_find(&run->tasks[t].curves, metric);
        if (curve != NULL && curve->count > 0)
            return curve;
    }
    return NULL;
}

bool pl_model_has_curve(const pl_runs_model *model, const pl_model_part *part,
                        const char *metric)
{
    for (size_t i = 0; i < part->records.count; i++) {
        const pl_curve *curve =
            pl_model_curve(&model->runs[part->first + i], metric);
        if (curve != NULL && curve->count > 1)
            return true;
    }
    return false;
}
