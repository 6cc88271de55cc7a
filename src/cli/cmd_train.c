/* cmd_train.c - `train`: decides whether this process is a single trainer, the
 * supervisor of a job or one of its tasks, and starts it. */
#include "app/launch/train_local.h"
#include "app/launch/train_mpirun.h"
#include "app/options/resume.h"
#include "app/task/descriptors.h"
#include "app/task/part.h"
#include "app/task/task_keys.h"
#include "app/task/train_task.h"
#include "app/train/trainer.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/help/help.h"
#include "job/hosts/host_agent.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

/* One `train` command. */
typedef struct session {
    const pl_app *app;
    pl_options options;
    pl_run_record record; /* of the run to resume; zeroed: none */
    pl_part part;
} session;

static void close_session(session *s)
{
    pl_part_close(&s->part);
    pl_run_record_close(&s->record);
    pl_options_close(&s->options);
}

/* True when the run to resume has already ended; then one task of the job has
 * printed its summary. */
static pl_status look_finished(session *s, bool *finished)
{
    const pl_part *part = &s->part;
    pl_summary summary;
    *finished = false;
    if (s->record.model == NULL || s->options.train.control > 0)
        return PL_OK; /* the supervisor has checked */
    PL_TRY(pl_resume_finished(&s->options, &summary, finished));
    if (!*finished)
        return PL_OK;
    pl_log(PL_LOG_INFO, "%s is finished; its summary:", s->options.train.run);
    pl_status status = PL_OK;
    if (part->kind != PL_PART_TASK ||
        pl_cluster_is_chief(&part->cluster, part->task))
        status = pl_trainer_print(&s->options, &summary);
    pl_summary_close(&summary);
    return status;
}

/* Only the task that creates the run folder can check whether the run exists:
 * other tasks' hosts may not have it. */
static pl_status check_resume(const session *s)
{
    const pl_part *part = &s->part;
    if (part->kind == PL_PART_TASK &&
        !pl_cluster_is_chief(&part->cluster, part->task))
        return PL_OK;
    return pl_resume_check(&s->options);
}

/* Only the chief has the records of all tasks.  MPI ranks all have the same
 * flags. */
static pl_status check_metrics(const session *s)
{
    const pl_part *part = &s->part;
    const pl_train_options *train = &s->options.train;
    bool rank = train->strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
                train->engine == PL_TRAIN_ENGINE_MPI;
    if (train->metrics == NULL || part->kind != PL_PART_TASK || rank ||
        pl_cluster_is_chief(&part->cluster, part->task))
        return PL_OK;
    return PL_FAIL(PL_USAGE, "--metrics: only the chief has the records of "
                             "the job; give the flag to that task alone");
}

static pl_status be_task(session *s, int64_t begin_ns)
{
    const pl_part *part = &s->part;
    pl_control *control = NULL;
    if (s->options.train.control > 0) {
        PL_TRY(pl_control_new(&control, (int)s->options.train.control));
        /* Without this, as it was started through /proc/self/exe, its name is
         * "exe". */
        prctl(PR_SET_NAME, s->app->program);
    }
    if (s->options.train.strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
        s->options.train.engine == PL_TRAIN_ENGINE_MPI)
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a rank ends with its launcher */
    pl_task_log *log = NULL;              /* a supervisor keeps one itself */
    pl_job_keys keys;
    bool has_keys = false;
    pl_status status = pl_task_keys(&keys, &has_keys,
                                    &(pl_task_keys_opts) {
                                        .options = &s->options,
                                        .cluster = &part->cluster,
                                        .control = control,
                                        .environment = getenv("PACELINE_KEYS"),
                                        .program = s->app->program,
                                    });
    if (status == PL_OK && control == NULL && getenv(PL_AGENT_LOGS) == NULL)
        status = pl_task_log_new(&log);
    if (status == PL_OK)
        status = pl_train_task(&(pl_trainer_opts) {
            .app = s->app,
            .options = &s->options,
            .cluster = &part->cluster,
            .task = part->task,
            .control = control,
            .keys = has_keys ? &keys : NULL,
            .log = log,
            .begin_ns = begin_ns,
        });
    if (status != PL_OK)
        pl_task_log_line(log, pl_error_message());
    pl_task_log_free(log);
    pl_keys_wipe(&keys, sizeof keys);
    pl_control_free(control);
    return status;
}

static pl_status train(session *s, int argc, char **argv)
{
    int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
    bool finished;
    PL_TRY(pl_options_parse(&s->options, argc, argv));
    if (s->options.train.resume && s->options.train.run != NULL)
        PL_TRY(pl_resume_recall(&s->options, &s->record));
    PL_TRY(pl_part_init(&s->part, &s->options, getenv("TF_CONFIG")));
    PL_TRY(pl_options_resolve(&s->options));
    PL_TRY(check_resume(s));
    PL_TRY(check_metrics(s));
    pl_error_places(s->options.train.verbose);
    if (s->options.train.quiet)
        pl_log_set(NULL, NULL, PL_LOG_WARN);
    PL_TRY(look_finished(s, &finished));
    if (finished)
        return PL_OK;
    if (s->options.model->file != NULL && s->options.train.control == 0)
        pl_log(PL_LOG_INFO, "%s", s->options.model->help);
    switch (s->part.kind) {
    case PL_PART_SUPERVISOR:
        if (s->options.train.strategy == PL_TRAIN_STRATEGY_ALLREDUCE &&
            s->options.train.engine == PL_TRAIN_ENGINE_MPI)
            return pl_train_mpirun(&(pl_train_mpirun_opts) {
                .app = s->app, .options = &s->options });
        return pl_train_local(s->app, &s->options, &s->part.cluster);
    case PL_PART_TASK:
        return be_task(s, begin_ns);
    case PL_PART_ALONE:
        PL_TRY(pl_descriptors_ensure_alone());
        break;
    }
    return pl_trainer_run(&(pl_trainer_opts) {
        .app = s->app,
        .options = &s->options,
        .begin_ns = begin_ns,
    });
}

/* Without a model name, show the flags that some models have. */
static pl_status print_help(const pl_app *app, pl_options *options, bool named,
                            const char *topic)
{
    char usage[128];
    pl_param_fact list[PL_OPTIONS_FACTS];
    pl_param_facts facts = named ? pl_options_help_facts(options, list)
                                 : pl_options_facts(options);
    facts.groups = NULL; /* other flags may still be given */
    facts.group_count = 0;
    snprintf(usage, sizeof usage, "train %s [flags]", options->model->name);
    return pl_help_print(&(pl_help) {
        .app = app,
        .command = &pl_cmd_train,
        .usage = named ? usage : NULL,
        .about = named ? options->model->help : NULL,
        .groups = options->groups,
        .group_count = named ? options->group_count : PL_OPTION_GROUPS - 1,
        .facts = &facts,
        .topic = topic,
    });
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    const pl_model *model = NULL;
    bool help = pl_app_wants_help(argc, argv);
    bool named = argc > 0 && argv[0][0] != '-';
    if (!named && !help)
        return PL_FAIL(PL_USAGE, "train needs a model: train MODEL [flags]; "
                                 "`models` lists them");
    PL_TRY(pl_app_model(app, named ? argv[0] : "softmax", &model));

    session *s;
    PL_TRY(PL_NEW(s, 1));
    s->app = app;
    pl_status status = pl_options_init(&s->options, model);
    if (status == PL_OK) {
        status = help ? print_help(app, &s->options, named,
                                   pl_help_topic(argc, argv))
                      : train(s, argc - 1, argv + 1);
        close_session(s);
    }
    pl_mem_free(s);
    return status;
}

const pl_command pl_cmd_train = {
    .name = "train",
    .usage = "train MODEL [flags]",
    .help = "train a model, on one machine or many",
    .about = "Train a model. `models` lists them; with a model's name the help "
             "has its\ndefaults.",
    .examples = {
        { "train softmax", "on the built-in digits" },
        { "train lenet --workers 3 --ps 1", "four processes on this machine" },
        { "train softmax --run runs/a --resume", "continue a run" },
    },
    .run = run,
};
