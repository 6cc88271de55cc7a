/* runs.h - run folders as a training leaves them, for tests that read them.
 */
#ifndef PL_TESTS_RUNS_H
#define PL_TESTS_RUNS_H

#include "observe/runs/record.h"
#include "support/folder.h"

/* What is known of the flags of these runs. */
static const pl_param run_flags[] = {
    { .name = "seed", .traits = PL_PARAM_REPEATS },
    { .name = "keep", .traits = PL_PARAM_NOT_COMPARED },
    { .name = "workers" },
    { .name = "strategy", .kind = PL_PARAM_CHOICE, .follows = "workers" },
    { .name = "mode",
      .kind = PL_PARAM_CHOICE,
      .fallback = "sync",
      .needs = "strategy=ps" },
    { .name = "aggregate", .kind = PL_PARAM_CHOICE, .fallback = "mean" },
    { .name = "activation", .kind = PL_PARAM_CHOICE, .fallback = "relu" },
    { .name = "ps", .follows = "strategy" },
    { .name = "replicas", .follows = "workers" },
};
static const pl_param_group run_flag_group = {
    "Flags", run_flags, sizeof run_flags / sizeof *run_flags, NULL, NULL
};

static inline void know_flags(pl_records *records)
{
    records->flags = &run_flag_group;
    records->flag_groups = 1;
}

/* <folder>/<name>/<file> with this text. */
static inline void write_run_file(const char *folder, const char *name,
                                  const char *file, const char *text)
{
    const char *run = test_path(folder, name);
    assert_ok(pl_file_make_folder(run));
    assert_ok(pl_file_replace(test_path(run, file), text, strlen(text)));
}

/* A run of softmax that has ended. */
static inline void write_run(const char *folder, const char *name, int batch,
                             int seed, double seconds, double accuracy)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"format\": 1, \"model\": \"softmax\", \"args\": {\"batch\": "
             "\"%d\", \"lr\": \"0.01\", \"seed\": \"%d\", \"mode\": \"\"}}",
             batch, seed);
    write_run_file(folder, name, "run.json", text);
    snprintf(text, sizeof text,
             "{\"model\": \"softmax\", \"steps\": 100, \"seconds\": %g, "
             "\"test_accuracy\": %g, \"stopped_by\": \"epochs\"}",
             seconds, accuracy);
    write_run_file(folder, name, "summary.json", text);
}

#endif
