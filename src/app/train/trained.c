/* trained.c - rebuilds the network of a finished run from its run.json and
 * loads the newest complete checkpoint, or the best. */
#include "app/train/trained.h"

#include "app/run/run_folder.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "state/snapshot.h"

#include <string.h>

/* The options of the run. */
static pl_status recall_options(pl_trained *trained,
                                const pl_trained_opts *opts)
{
    const pl_model *model;
    PL_TRY(pl_app_model_of_run(opts->app, opts->run, trained->record.model,
                               &model));
    pl_status status = pl_options_init(&trained->options, model);
    if (status != PL_OK) {
        trained->options = (pl_options) { 0 }; /* nothing to close */
        return status;
    }
    PL_TRY(pl_options_recall(&trained->options, trained->record.args));
    return pl_options_resolve(&trained->options);
}

static pl_status build(pl_trained *trained, const pl_trained_opts *opts)
{
    pl_train_options *train = &trained->options.train;
    pl_job_opts job = { .options = &trained->options };
    pl_status status =
        pl_run_folder_examples(&trained->record, &job.example, &job.classes);
    if (status != PL_OK)
        return pl_context(status, "%s/run.json", opts->run);
    job.numbering = (uint32_t)trained->record.numbering;
    job.encoding = trained->record.input;
    job.unlabelled = opts->no_data;
    job.data = opts->no_data && job.example.rank > 0 ? PL_JOB_DATA_NONE
                                                     : PL_JOB_DATA_TEST;
    if (opts->test_data != NULL) {
        train->test_data = opts->test_data;
        /* A holdout is part of the training data, not of other data. */
        if (strcmp(opts->test_data, train->data) != 0)
            train->holdout = 0;
    }
    if (opts->threads > 0)
        train->threads = opts->threads;
    return pl_job_init(&trained->job, &job);
}

static pl_status load(pl_trained *trained, const pl_trained_opts *opts,
                      const pl_json *settings)
{
    char *checkpoints;
    PL_TRY(pl_file_join(&checkpoints, opts->run, "checkpoints"));
    pl_snapshot *snapshot = NULL;
    pl_status status =
        pl_snapshot_new(&snapshot, &(pl_snapshot_opts) {
                                       .folder = checkpoints,
                                       .model = trained->options.model->name,
                                       .settings = settings,
                                       .params = trained->job.network->params,
                                       .planes = pl_job_planes(&trained->job),
                                       .kernels = trained->job.kernels->name,
                                       .best = opts->best,
                                   });
    if (status == PL_OK)
        status = pl_snapshot_load(snapshot, &trained->progress);
    pl_snapshot_free(snapshot);
    pl_mem_free(checkpoints);
    return status;
}

pl_status pl_trained_new(pl_trained **out, const pl_trained_opts *opts)
{
    pl_trained *trained;
    PL_TRY(PL_NEW(trained, 1));
    pl_json *settings = NULL;
    pl_status status;
    PL_TRY_OUT(status, pl_run_record_read(&trained->record, opts->run));
    PL_TRY_OUT(status, recall_options(trained, opts));
    /* Before the test data is replaced: checkpoints have the run's settings. */
    PL_TRY_OUT(status, pl_options_record(&trained->options, PL_OPTIONS_KEPT,
                                         &settings));
    PL_TRY_OUT(status, build(trained, opts));
    PL_TRY_OUT(status, pl_job_keep_encoding(&trained->job, settings));
    PL_TRY_OUT(status, load(trained, opts, settings));
    *out = trained;
    trained = NULL;
out:
    pl_json_free(settings);
    pl_trained_free(trained);
    return status;
}

void pl_trained_free(pl_trained *trained)
{
    if (trained == NULL)
        return;
    pl_job_close(&trained->job);
    pl_options_close(&trained->options);
    pl_run_record_close(&trained->record);
    pl_mem_free(trained);
}
