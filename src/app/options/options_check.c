/* Which flags have an effect: the facts about model, data and job when the
 * flags of `train` are checked, and the wording of the flags' conditions. */
#include "app/options/options_priv.h"

#include "data/source.h"

#define FACTS_MOST 8

static const pl_param_term terms[] = {
    { "model=sparse", "a sparse model",
      "is for sparse models, but this one is dense: leave it out" },
    { "model=dense", "a dense model",
      "is for dense models, but this one is sparse: leave it out" },
    { "source=files", "sparse data in files",
      "is for sparse data in files: leave it out, or give --data FORMAT:FILE" },
    { "source=digits|files|csv|images",
      "`digits`, images, tables, or sparse data in files",
      "is for data that is generated or unpacked, which this data is not: "
      "leave it out" },
    { "source=files|images", "sparse data in files, or images",
      "is for sparse data in files and for images: leave it out" },
    { "source=files|csv", "sparse data in files, or tables",
      "is for files that may be compressed: leave it out" },
    { "data=csv", "--data csv:FILE", NULL },
    { "data=images|tfrecord", "images, in files or as tfrecord", NULL },
    { "data=npy|npz|idx|tfrecord", "arrays: npy, npz, idx or tfrecord", NULL },
    { "shard!=none", NULL,
      "needs the same training data on all workers: leave out --shard none" },
    { "data=tfrecord", "--data tfrecord:FILE", NULL },
    { "data=criteo", "--data criteo:FILE", NULL },
    { "hogwild=false", NULL,
      "has no effect with --hogwild, which updates after each example: leave "
      "out one of them" },
    { "eval-every!=never", "tests", "needs tests, but --eval-every is never" },
    { "loss=cross-entropy", "classes as labels",
      "is for classifiers, but this --loss predicts numbers: leave it out" },
    { "strategy=single", "one process",
      "is for one process: leave it out, or leave out --workers and --ps" },
    { "strategy!=single", "several processes",
      "needs a job of several processes: add --workers N, or --ps N" },
    { "strategy=ps", "a parameter server",
      "needs a parameter server: add --ps N" },
    { "engine=mpi", NULL,
      "needs --engine mpi; with the ring, --on-worker-loss continue trains on "
      "with fewer workers" },
    { "engine!=mpi", NULL,
      "has no effect with --engine mpi, which has its own transport and no "
      "authentication; see --engine ring" },
    { "codec=topk", "--codec topk", "needs --codec topk" },
    { "local-steps!=1", "--local-steps",
      "is for several updates between exchanges: add --local-steps H" },
    { "start=hand", "tasks started by hand",
      "is for tasks started by hand, with --role; tasks started here get "
      "their own keys" },
    { "start=here", "tasks started on this machine",
      "is for jobs that --workers and --ps start on this machine; kill tasks "
      "started by hand yourself" },
    { "start!=hand", "tasks started on this machine",
      "starts a process on this machine; in a cluster, start an evaluator "
      "with --role evaluator" },
    { "metrics", "--metrics ADDRESS",
      "needs --metrics ADDRESS, where the metrics are served" },
    { "cluster", "--cluster FILE",
      "needs --cluster FILE, which holds the entry" },
    { "run", "--run DIR",
      "needs --run DIR, the folder of the run to continue" },
};

static const char *kind_of(const char *name)
{
    return pl_source_is_format(name) ? "files" : name;
}

pl_param_facts pl_options_facts(const pl_options *options)
{
    return (pl_param_facts) {
        .terms = terms,
        .term_count = sizeof terms / sizeof *terms,
        .groups = options->groups,
        .group_count = options->group_count,
    };
}

pl_status pl_options_check_program(const pl_options *options)
{
    for (size_t g = 0; g < options->group_count; g++) {
        const pl_param_group *group = &options->groups[g];
        for (size_t i = 0; i < group->count; i++)
            if (group->given[i] &&
                (group->params[i].traits & PL_OPTION_COMMAND) != 0)
                return PL_FAIL(PL_USAGE,
                               "--%s is for the command line: a training "
                               "inside a program has no terminal, and starts "
                               "no processes that could end; leave it out",
                               group->params[i].name);
    }
    return PL_OK;
}

pl_status pl_options_check(const pl_options *options, const char *start)
{
    const pl_train_options *train = &options->train;
    const pl_model *model = options->model;
    const char *source = train->data != NULL   ? train->data
                         : model->data != NULL ? model->data
                                               : PL_OPTIONS_DATA;
    const char *data = pl_source_name(source);
    const char *test =
        train->test_data != NULL ? pl_source_name(train->test_data) : data;
    pl_param_fact list[FACTS_MOST] = {
        { "model", model->sparse ? "sparse" : "dense" },
        { "data", data },
        { "data", test },
        { "source", kind_of(data) },
        { "source", kind_of(test) },
        { "start", start },
    };
    size_t count = 6;
    if (start == NULL)
        list[count++] = (pl_param_fact) { "strategy", NULL };
    /* Only allreduce has an engine, even if a record names one. */
    if (start == NULL || train->strategy != PL_TRAIN_STRATEGY_ALLREDUCE)
        list[count++] = (pl_param_fact) { "engine", start == NULL ? NULL : "" };
    pl_param_facts facts = pl_options_facts(options);
    facts.list = list;
    facts.count = count;
    return pl_param_check(&facts);
}
