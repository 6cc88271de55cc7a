/* resume.c - decides how a run is resumed: its folder must exist, its settings
 * are recalled, and a finished run has nothing left to do. */
#include "app/options/resume.h"

#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param/param.h"

#include <string.h>

bool pl_resume_begun(const char *run)
{
    char *path;
    if (pl_file_join(&path, run, "run.json") != PL_OK)
        return false;
    bool begun = pl_file_exists(path);
    pl_mem_free(path);
    return begun;
}

/* The runs of a folder, as a NULL-terminated list for the caller to free; the
 * texts belong to `names`. */
static pl_status find_runs(const char *folder, char **names, size_t count,
                           const char ***out)
{
    const char **runs;
    size_t used = 0;
    PL_TRY(PL_NEW(runs, count + 1));
    for (size_t i = 0; i < count; i++) {
        char *path;
        pl_status status = pl_file_join(&path, folder, names[i]);
        if (status != PL_OK) {
            pl_mem_free(runs);
            return status;
        }
        if (pl_resume_begun(path))
            runs[used++] = names[i];
        pl_mem_free(path);
    }
    *out = runs;
    return PL_OK;
}

/* The run in `folder` whose name is most similar to `name`, as "prefix" and its
 * name, or NULL. */
static pl_status find_near(const char *folder, const char *prefix,
                           const char *name, char **out)
{
    char **names;
    const char **runs = NULL;
    size_t count;
    *out = NULL;
    if (pl_file_list(&names, &count, folder) != PL_OK)
        return PL_OK; /* no folder, no runs */
    pl_status status = find_runs(folder, names, count, &runs);
    const char *near = status == PL_OK ? pl_param_nearest(name, runs) : NULL;
    if (near != NULL)
        status = pl_mem_format(out, "%s%s", prefix, near);
    pl_mem_free(runs);
    pl_mem_free(names);
    return status;
}

/* The run in the same folder that a mistyped `run` may stand for, or NULL. */
static pl_status find_meant(const char *run, char **out)
{
    char *prefix;
    PL_TRY(pl_mem_copy_text(&prefix, run));
    for (size_t n = strlen(prefix); n > 1 && prefix[n - 1] == '/';)
        prefix[--n] = '\0';
    char *slash = strrchr(prefix, '/');
    size_t length = slash != NULL ? (size_t)(slash - prefix) + 1 : 0;
    char *name;
    pl_status status = pl_mem_copy_text(&name, prefix + length);
    prefix[length] = '\0';
    if (status == PL_OK) {
        status = find_near(length > 0 ? prefix : ".", prefix, name, out);
        pl_mem_free(name);
    }
    pl_mem_free(prefix);
    return status;
}

pl_status pl_resume_check(const pl_options *options)
{
    const pl_train_options *train = &options->train;
    if (!train->resume || train->resume_or_start || train->control > 0 ||
        train->run == NULL || pl_resume_begun(train->run))
        return PL_OK;
    if (pl_file_exists(train->run))
        return PL_FAIL(PL_USAGE,
                       "--resume: %s is not a run folder (it has no "
                       "run.json); leave out --resume to start a run there, "
                       "or give --resume-or-start",
                       train->run);
    char *near;
    PL_TRY(find_meant(train->run, &near));
    pl_status status =
        PL_FAIL(PL_USAGE,
                "--resume: there is no run folder %s%s%s%s; leave out "
                "--resume to start a run there, or give --resume-or-start",
                train->run, near != NULL ? " (did you mean " : "",
                near != NULL ? near : "", near != NULL ? "?)" : "");
    pl_mem_free(near);
    return status;
}

pl_status pl_resume_recall(pl_options *options, pl_run_record *record)
{
    const char *run = options->train.run;
    if (!pl_resume_begun(run))
        return PL_OK;
    PL_TRY(pl_run_record_read(record, run));
    if (strcmp(record->model, options->model->name) != 0)
        return PL_FAIL(PL_USAGE, "%s is a run of model %s, not of %s", run,
                       record->model, options->model->name);
    return pl_options_recall(options, record->args);
}

/* True when the summary is of a run that reached its end, and the user did not
 * change the length. */
static bool is_over(const pl_options *options, const pl_summary *summary)
{
    const char *stopped = summary->stopped_by;
    if (strcmp(stopped, "interrupt") == 0 || strcmp(stopped, "nan") == 0 ||
        PL_GIVEN(options, stop_loss) || PL_GIVEN(options, stop_accuracy) ||
        PL_GIVEN(options, patience))
        return false;
    if (PL_GIVEN(options, steps))
        return options->train.steps == summary->steps;
    return !PL_GIVEN(options, epochs) ||
           (double)options->train.epochs == summary->epochs;
}

pl_status pl_resume_finished(const pl_options *options, pl_summary *out,
                             bool *finished)
{
    char *path;
    PL_TRY(pl_file_join(&path, options->train.run, "summary.json"));
    pl_status status = pl_summary_read(out, path);
    pl_mem_free(path);
    *finished = status == PL_OK && is_over(options, out);
    if (status == PL_OK && !*finished)
        pl_summary_close(out);
    if (status == PL_NOMEM)
        return status;
    /* Checkpoints have the run's progress, and a summary can be written
     * again. */
    if (status != PL_OK && status != PL_NOTFOUND)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    return PL_OK;
}
