/* cmd_demo.c - `demo`: shows the main features in two minutes.
 *
 * Every step is a command that a user could type, run as a separate process: a
 * single-process training, the same training as a cluster in which one worker
 * is killed, the page, the comparison and the report.  The results it prints
 * are read from the runs' summaries. */
#include "app/train/interrupt.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/record/summary.h"
#include "base/record/timeline.h"
#include "cli/commands.h"
#include "cli/demo/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH       32
#define WORKERS     2
#define FIRST_STEPS 100
#define STEPS_LEAST 200
#define STEPS_MOST  50000

typedef struct demo_options {
    const char *out;
    double seconds;
    bool quick_end;
} demo_options;

#define FIELD(name) offsetof(demo_options, name)

static const pl_param params[] = {
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(out),
      .fallback = "paceline-demo",
      .value = "DIR",
      .help = "new folder for the runs and the report",
      .why = "The demo writes nothing elsewhere; remove the folder when you "
             "are done." },
    { .name = "seconds",
      .kind = PL_PARAM_REAL,
      .offset = FIELD(seconds),
      .fallback = "15",
      .least = 0.1,
      .most = 3600,
      .value = "S",
      .help = "approximate duration of each of the two trainings",
      .why = "The number of steps follows from the speed of this machine, "
             "which the first run measures." },
    { .name = "no-wait",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quick_end),
      .help = "exit after the report; otherwise, on a terminal, the page "
              "stays until Ctrl-C",
      .why = "For scripts, and for a first look without a browser. The page "
             "can be opened later by `paceline page paceline-demo`." },
};

static pl_status read_summary(const pl_demo *d, const char *run,
                              pl_summary *out)
{
    char *path;
    PL_TRY(pl_mem_format(&path, "%s/%s/summary.json", d->folder, run));
    pl_status status = pl_summary_read(out, path);
    pl_mem_free(path);
    return status;
}

/* Choose the steps of the cluster so that they take about the requested
 * time. */
static pl_status choose_steps(const pl_demo *d, double seconds, int *steps)
{
    pl_summary first;
    PL_TRY(read_summary(d, "first", &first));
    double wanted = first.examples_per_s * seconds / (BATCH * WORKERS);
    pl_summary_close(&first);
    *steps = wanted < STEPS_LEAST  ? STEPS_LEAST
             : wanted > STEPS_MOST ? STEPS_MOST
                                   : (int)wanted / 100 * 100;
    return PL_OK;
}

/* Kill worker 1 as soon as a checkpoint beyond step 0 exists. */
static pl_status lose_worker(pl_demo *d, pl_demo_process *job)
{
    char *run;
    int64_t step = 0;
    PL_TRY(pl_file_join(&run, d->folder, "cluster"));
    pl_status status = pl_demo_wait_checkpoint(d, job, run, &step);
    pl_mem_free(run);
    PL_TRY(status);
    if (step == 0) /* the job ended first */
        return PL_OK;
    return pl_demo_kill_worker(d, job, step);
}

static pl_status run_cluster(pl_demo *d, const char *steps)
{
    pl_demo_process job;
    char *run, batch[16];
    PL_TRY(pl_file_join(&run, d->folder, "cluster"));
    snprintf(batch, sizeof batch, "%d", BATCH);
    const char *const words[] = { "train",
                                  "lenet",
                                  "--workers",
                                  "2",
                                  "--ps",
                                  "1",
                                  "--batch",
                                  batch,
                                  "--steps",
                                  steps,
                                  "--checkpoint-every",
                                  "50",
                                  "--run",
                                  run,
                                  NULL };
    pl_status status = pl_demo_start(d, &job, words);
    if (status == PL_OK) {
        pl_error failed;
        pl_error_save(&failed, lose_worker(d, &job));
        status = pl_demo_finish(d, &job, failed.status != PL_OK);
        if (failed.status != PL_OK)
            status = pl_error_raise(&failed);
    }
    pl_mem_free(run);
    return status;
}

static pl_status run_single(pl_demo *d, const char *name, const char *steps,
                            const char *micro_batches)
{
    char *run, batch[16];
    PL_TRY(pl_file_join(&run, d->folder, name));
    snprintf(batch, sizeof batch, "%d", BATCH);
    const char *const words[] = {
        "train",           "lenet",       "--batch", batch, "--steps", steps,
        "--micro-batches", micro_batches, "--run",   run,   NULL
    };
    pl_status status = pl_demo_run(d, words);
    pl_mem_free(run);
    return status;
}

/* Did the cluster that lost a worker end with the same parameters? */
static pl_status compare_bits(const pl_demo *d)
{
    pl_summary cluster, alone;
    PL_TRY(read_summary(d, "cluster", &cluster));
    pl_status status = read_summary(d, "alone", &alone);
    if (status == PL_OK) {
        bool same =
            strcmp(cluster.parameters_sha256, alone.parameters_sha256) == 0;
        printf("\nThe cluster restarted %lld lost process%s; its "
               "parameters\n%s those of the process that trained\nalone: "
               "SHA-256 %.16s and %.16s\n",
               (long long)cluster.restarts, cluster.restarts == 1 ? "" : "es",
               same ? "are equal, bit for bit, to" : "DIFFER from",
               cluster.parameters_sha256, alone.parameters_sha256);
        pl_summary_close(&alone);
    }
    pl_summary_close(&cluster);
    return status;
}

static pl_status show_results(pl_demo *d)
{
    char *report;
    const char *const compare[] = { "compare", d->folder, NULL };
    pl_demo_title(d, "Compare the runs and write a report");
    PL_TRY(pl_demo_run(d, compare));
    PL_TRY(pl_file_join(&report, d->folder, "report.html"));
    const char *const words[] = { "report", d->folder, "-o", report, NULL };
    pl_status status = pl_demo_run(d, words);
    pl_mem_free(report);
    return status;
}

static pl_status tell_story(pl_demo *d, const demo_options *options)
{
    int count = 0;
    char steps[16], first[16];
    snprintf(first, sizeof first, "%d", FIRST_STEPS);
    pl_demo_title(d, "Train a small model in one process");
    PL_TRY(run_single(d, "first", first, "1"));
    PL_TRY(choose_steps(d, options->seconds, &count));
    snprintf(steps, sizeof steps, "%d", count);
    pl_demo_title(d, "Start the page, which follows the runs from now on");
    PL_TRY(pl_demo_page(d));
    pl_demo_title(d, "Train with two workers and a parameter server; kill one "
                     "worker on the way");
    PL_TRY(run_cluster(d, steps));
    pl_demo_title(d, "Repeat the training in one process, undisturbed");
    PL_TRY(run_single(d, "alone", steps, "2"));
    PL_TRY(compare_bits(d));
    PL_TRY(show_results(d));
    printf("\nLook:  %s/report.html in a browser, or the page: %s\n"
           "Next:  %s train softmax --help\n",
           d->folder, d->url, d->app->program);
    fflush(stdout);
    if (!options->quick_end && isatty(STDOUT_FILENO))
        pl_demo_linger(d);
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    demo_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_demo, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    int count = words.count;
    pl_mem_free(words.list);
    if (count > 0)
        return PL_FAIL(PL_USAGE, "demo takes only flags, no other arguments");
    if (pl_file_exists(options.out))
        return PL_FAIL(PL_USAGE,
                       "--out %s: it already exists; remove it, or name "
                       "another folder",
                       options.out);
    PL_TRY(pl_file_make_folder(options.out));
    pl_demo demo = { .app = app,
                     .folder = options.out,
                     .interrupt = pl_interrupt_catch() };
    pl_status status = tell_story(&demo, &options);
    pl_demo_close(&demo);
    return status;
}

const pl_command pl_cmd_demo = {
    .name = "demo",
    .usage = "demo [flags]",
    .help = "see the whole story in two minutes",
    .about = "Train in one process and as a cluster on this machine, kill a "
             "worker, show the\npage, compare the runs and write a report. "
             "Each step is a real command, which is\nprinted first. Ctrl-C "
             "ends the demo.",
    .examples = {
        { "demo", "two minutes" },
        { "demo --seconds 3", "shorter trainings" },
        { "demo --out /tmp/demo", "into another folder" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
