#include "cli/resume.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "observe/record.h"

#include <string.h>

#define SUMMARY_MAX ((size_t)1 << 20)

pl_status pl_resume_recall(pl_options *options, pl_json **record)
{
    const char *run = options->train.run;
    char *path;
    PL_TRY(pl_file_join(&path, run, "run.json"));
    bool there = pl_file_exists(path);
    pl_mem_free(path);
    if (!there)
        return PL_OK; /* nothing to resume: start at step 0 */
    const char *model;
    const pl_json *args;
    PL_TRY(pl_run_read(run, record));
    PL_TRY(pl_json_get_text(*record, "model", &model));
    if (strcmp(model, options->model->name) != 0)
        return PL_FAIL(PL_USAGE, "%s is a run of model %s, not of %s", run,
                       model, options->model->name);
    PL_TRY(pl_json_get_object(*record, "args", &args));
    return pl_options_recall(options, args);
}

/* True when the summary is of a run that came to its end, and no other end
 * was given. */
static bool is_over(const pl_options *options, const char *stopped,
                    const pl_json *summary)
{
    int64_t steps = 0;
    double epochs = 0;
    if (strcmp(stopped, "interrupt") == 0 || strcmp(stopped, "nan") == 0 ||
        pl_options_given(options, "stop-loss") ||
        pl_json_get_int(summary, "steps", 0, INT64_MAX, &steps) != PL_OK ||
        pl_json_get_real(summary, "epochs", &epochs) != PL_OK)
        return false;
    if (pl_options_given(options, "steps"))
        return options->train.steps == steps;
    return !pl_options_given(options, "epochs") ||
           (double)options->train.epochs == epochs;
}

pl_status pl_resume_finished(const pl_options *options, pl_json **out)
{
    *out = NULL;
    char *path;
    PL_TRY(pl_file_join(&path, options->train.run, "summary.json"));
    pl_json *summary = NULL;
    const char *stopped;
    pl_status status = pl_json_read_file(&summary, path, SUMMARY_MAX);
    if (status == PL_OK)
        status = pl_json_get_text(summary, "stopped_by", &stopped);
    pl_mem_free(path);
    if (status == PL_OK && is_over(options, stopped, summary)) {
        *out = summary;
        return PL_OK;
    }
    pl_json_free(summary);
    if (status == PL_NOMEM)
        return status;
    /* The checkpoints know how far it came; a summary can be made again. */
    if (status != PL_OK && status != PL_NOTFOUND)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    return PL_OK;
}
