/* series.c - finds the sweep files, plans each, and runs them in the order of
 * the command line, those of a folder in the order of their names. All are
 * planned before the first one runs, so that an error in the last file is not
 * found hours later. */
#include "app/sweep/series.h"

#include "app/sweep/about.h"
#include "app/sweep/spec.h"
#include "app/sweep/sweep.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_FILE ((size_t)1 << 20)
#define ENDING    ".sweep"

/* --- the files -------------------------------------------------------- */

static pl_status add_sweep(pl_series *series, const char *folder,
                           const char *file)
{
    PL_TRY(PL_RESIZE(series->list, series->count + 1));
    pl_series_sweep *sweep = &series->list[series->count++];
    *sweep = (pl_series_sweep) { 0 };
    return folder != NULL ? pl_file_join(&sweep->file, folder, file)
                          : pl_mem_copy_text(&sweep->file, file);
}

/* Compare numbers by value: a2 before a10. */
static int by_version(const void *a, const void *b)
{
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static bool is_sweep(const char *name)
{
    size_t length = strlen(name), ending = strlen(ENDING);
    return name[0] != '.' && length > ending &&
           strcmp(name + length - ending, ENDING) == 0;
}

static pl_status add_folder(pl_series *series, const char *folder)
{
    char **names;
    size_t count, before = series->count;
    PL_TRY(pl_file_list(&names, &count, folder));
    qsort(names, count, sizeof *names, by_version);
    pl_status status = PL_OK;
    for (size_t i = 0; i < count && status == PL_OK; i++)
        if (is_sweep(names[i]))
            status = add_sweep(series, folder, names[i]);
    pl_mem_free(names);
    if (status == PL_OK && series->count == before)
        return PL_FAIL(PL_NOTFOUND, "%s: no file *" ENDING " in this folder",
                       folder);
    return status;
}

static bool is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static pl_status find_files(pl_series *series)
{
    const pl_series_opts *opts = series->opts;
    for (size_t i = 0; i < opts->file_count; i++) {
        bool folder = is_folder(opts->files[i]);
        series->many = series->many || folder || opts->file_count > 1;
        PL_TRY(folder ? add_folder(series, opts->files[i])
                      : add_sweep(series, NULL, opts->files[i]));
    }
    return opts->grid != NULL ? add_sweep(series, NULL, "--grid") : PL_OK;
}

/* --- folders and cells ----------------------------------------------- */

static pl_status choose_out(const pl_series *series, pl_series_sweep *sweep)
{
    const char *slash = strrchr(sweep->file, '/');
    const char *base = slash != NULL ? slash + 1 : sweep->file;
    const char *dot = strrchr(base, '.');
    int length =
        dot != NULL && dot > base ? (int)(dot - base) : (int)strlen(base);
    PL_TRY(pl_mem_format(&sweep->name, "%.*s", length, base));
    if (series->opts->out != NULL && !series->many)
        return pl_mem_copy_text(&sweep->out, series->opts->out);
    return pl_file_join(&sweep->out, series->out, sweep->name);
}

/* Two files with the same name would share a folder. */
static pl_status check_names(const pl_series *series)
{
    for (size_t i = 0; i < series->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(series->list[i].name, series->list[k].name) == 0)
                return PL_FAIL(PL_USAGE,
                               "%s and %s have the same name and would share "
                               "a folder; rename one",
                               series->list[k].file, series->list[i].file);
    return PL_OK;
}

static pl_status read_spec(const pl_series_opts *opts, pl_series_sweep *sweep)
{
    if (opts->grid != NULL)
        return pl_sweep_spec_grid(&sweep->spec, opts->model, opts->grid);
    char *text;
    PL_TRY(pl_file_read_text(&text, sweep->file, MOST_FILE));
    pl_status status = pl_sweep_spec_parse(&sweep->spec, text, sweep->file);
    pl_mem_free(text);
    return status;
}

static pl_status plan_sweep(const pl_series *series, pl_series_sweep *sweep)
{
    const pl_series_opts *opts = series->opts;
    pl_sweep_plan_opts plan = {
        .flags = opts->flags,
        .flag_count = opts->flag_count,
        .repeat = opts->repeat,
        .data = opts->data,
        .quick = opts->quick,
    };
    PL_TRY(read_spec(opts, sweep));
    plan.spec = sweep->spec;
    PL_TRY(pl_json_get_text(sweep->spec, "model", &sweep->model));
    pl_status status = pl_app_model(opts->app, sweep->model, &plan.model);
    if (status == PL_OK)
        status = pl_sweep_plan(&sweep->cells, &plan);
    if (status == PL_USAGE && series->many)
        return pl_context(status, "%s", sweep->file);
    PL_TRY(status);
    return pl_sweep_about(&sweep->about, &plan);
}

pl_status pl_series_init(pl_series *series, const pl_series_opts *opts)
{
    *series = (pl_series) { .opts = opts };
    const char *out = opts->quick ? "sweeps/quick" : "sweeps";
    pl_status status;
    PL_TRY_OUT(status, find_files(series));
    PL_TRY_OUT(status, pl_mem_copy_text(&series->out,
                                        opts->out != NULL ? opts->out : out));
    for (size_t i = 0; i < series->count; i++)
        PL_TRY_OUT(status, choose_out(series, &series->list[i]));
    PL_TRY_OUT(status, check_names(series));
    for (size_t i = 0; i < series->count; i++)
        PL_TRY_OUT(status, plan_sweep(series, &series->list[i]));
    return PL_OK;
out:
    pl_series_close(series);
    return status;
}

void pl_series_close(pl_series *series)
{
    for (size_t i = 0; i < series->count; i++) {
        pl_series_sweep *sweep = &series->list[i];
        pl_mem_free(sweep->file);
        pl_mem_free(sweep->name);
        pl_mem_free(sweep->out);
        pl_json_free(sweep->spec);
        pl_json_free(sweep->cells);
        pl_json_free(sweep->about);
    }
    pl_mem_free(series->list);
    pl_mem_free(series->out);
    *series = (pl_series) { 0 };
}

/* --- running ---------------------------------------------------------- */

/* The differences from the experiment. */
static void say_notes(const pl_series_sweep *sweep)
{
    const pl_json *notes;
    const char *note;
    if (!pl_json_has(sweep->about, "notes") ||
        pl_json_get_array(sweep->about, "notes", &notes) != PL_OK)
        return;
    for (size_t i = 0; i < pl_json_length(notes); i++)
        if (pl_json_as_text(pl_json_at(notes, i), "notes", &note) == PL_OK)
            pl_log(PL_LOG_INFO, "%s: %s", sweep->name, note);
}

static pl_status run_sweep(const pl_series *series,
                           const pl_series_sweep *sweep, pl_sweep_total *total)
{
    const pl_series_opts *opts = series->opts;
    if (!opts->quiet)
        say_notes(sweep);
    return pl_sweep_run(&(pl_sweep_opts) {
        .program = opts->app->program,
        .model = sweep->model,
        .cells = sweep->cells,
        .about = pl_json_length(sweep->about) > 0 ? sweep->about : NULL,
        .out = sweep->out,
        .quiet = opts->quiet,
        .launch = opts->launch,
        .name = series->many ? sweep->name : NULL,
        .total = total,
    });
}

pl_status pl_series_run(const pl_series *series)
{
    pl_sweep_total total = { 0 };
    for (size_t i = 0; i < series->count; i++)
        total.cells += pl_json_length(series->list[i].cells);
    for (size_t i = 0; i < series->count; i++) {
        size_t failed = total.failed;
        pl_status status = run_sweep(series, &series->list[i], &total);
        bool cells = status == PL_IO && total.failed > failed;
        if (status != PL_OK && (!cells || !series->many))
            return status;
    }
    if (total.failed > 0)
        return PL_FAIL(PL_IO,
                       "%zu of %zu cells failed; their logs are in %s/*/log. "
                       "Repeat the command to retry them",
                       total.failed, total.cells, series->out);
    return PL_OK;
}
