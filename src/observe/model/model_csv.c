/* model_csv.c - every point of every curve as a table, one line per point; on a
 * page they are thinned.  Lines are written curve by curve, since all of them
 * may not fit in memory. */
#include "base/file/file.h"
#include "base/text/quote.h"
#include "observe/model/model.h"

#include <math.h>
#include <stdio.h>

static const char head[] = "run,task,metric,step,time,value\r\n";

static void put_point(pl_buffer *out, const pl_point *point, bool stepped,
                      double begin)
{
    if (stepped)
        pl_buffer_format(out, "%.0f", point->x);
    pl_buffer_text(out, ",");
    if (point->time > 0 && isfinite(begin))
        pl_buffer_format(out, "%.6f", point->time - begin);
    pl_buffer_format(out, ",%.9g\r\n", point->y);
}

static pl_status put_curve(pl_file_writer *writer, const pl_record *record,
                           const pl_model_run *run, const pl_model_task *task,
                           const pl_curve *curve)
{
    pl_buffer names = { 0 }, lines = { 0 };
    pl_quote_csv(&names, record->name);
    pl_buffer_text(&names, ",");
    pl_quote_csv(&names, task->name);
    pl_buffer_text(&names, ",");
    pl_quote_csv(&names, curve->name);
    pl_buffer_text(&names, ",");
    pl_status status = pl_buffer_status(&names);
    for (size_t i = 0; i < curve->count && status == PL_OK; i++) {
        pl_buffer_put(&lines, names.data, names.bytes);
        put_point(&lines, &curve->points[i], !task->host, run->begin);
        status = pl_buffer_status(&lines);
    }
    if (status == PL_OK && lines.bytes > 0)
        status = pl_file_writer_put(writer, lines.data, lines.bytes);
    pl_buffer_close(&names);
    pl_buffer_close(&lines);
    return status;
}

static pl_status put_runs(pl_file_writer *writer, const pl_runs_model *model)
{
    PL_TRY(pl_file_writer_put(writer, head, sizeof head - 1));
    for (size_t i = 0; i < model->records->count; i++) {
        const pl_model_run *run = &model->runs[i];
        for (size_t t = 0; t < run->count; t++)
            for (size_t c = 0; c < run->tasks[t].curves.count; c++)
                PL_TRY(put_curve(writer, &model->records->list[i], run,
                                 &run->tasks[t],
                                 &run->tasks[t].curves.list[c]));
    }
    return PL_OK;
}

pl_status pl_model_write_curves(const pl_runs_model *model, const char *path)
{
    pl_file_writer *writer;
    PL_TRY(pl_file_writer_new_output(&writer, path));
    pl_status status = put_runs(writer, model);
    if (status == PL_OK)
        status = pl_file_writer_commit(writer);
    pl_file_writer_free(writer);
    return status;
}
