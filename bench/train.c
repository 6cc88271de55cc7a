/* Training measured as a user sees it: by running the program. */
#include "base/error.h"
#include "base/file/file.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "bench.h"
#include "data/idx/idx.h"
#include "data/source.h"
#include "spawn.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STARTS      9
#define MAX_BATCHES 3
#define PROBE_FLOPS 2e9 /* of a first run, to size a window */

/* A model and its batches; digits are 28 x 28 images of 10 classes. */
typedef struct workload {
    const char *example; /* a program beside paceline; NULL: paceline */
    const char *model;
    int64_t batches[MAX_BATCHES]; /* a 0 ends them early */
    double flops;                 /* of training on one example */
    const char *data;             /* default: the digits */
} workload;

/* A layer computes as much for its outputs as for the gradient of its weights
 * and for that of its input, which the first layer does not need.  `forward`
 * and `first` count multiply-adds, 2 FLOPs each. */
#define FLOPS(forward, first) (2.0 * (3 * (forward) - (first)))

static const workload workloads[] = {
    { .model = "softmax",
      .batches = { 10, 100, 500 },
      .flops = FLOPS(784 * 10, 784 * 10) },
    { .model = "lenet",
      .batches = { 32, 256 },
      .flops = FLOPS(416520, 28 * 28 * 6 * 25) },
    { .example = "three_blocks",
      .model = "three_blocks",
      .batches = { 32 },
      .flops = FLOPS(902529, 28 * 28 * 11 * 9) },
};
#define WORKLOADS (sizeof workloads / sizeof *workloads)

static const workload alexnet = {
    .model = "alexnet",
    .batches = { 32, 128 },
    .flops = FLOPS(714188480, 70276800),
    .data = "synthetic",
};

/* One run of a workload. */
typedef struct setting {
    const workload *work;
    int64_t batch;
    int threads;
} setting;

/* The environment of this part: a temporary folder and the program. */
typedef struct site {
    char folder[PATH_MAX];
    char program[PATH_MAX];
    char data[PATH_MAX + 16]; /* "idx:FOLDER/digits" */
    char run[PATH_MAX + 16];
} site;

/* One line of JSON from one training. */
typedef struct outcome {
    double steps_per_s;
    double startup_s;
    double seconds; /* from fork to exit */
    double rss_mb;
} outcome;

static pl_status find_program(const bench *b, site *s)
{
    if (b->program != NULL) {
        snprintf(s->program, sizeof s->program, "%s", b->program);
        return PL_OK;
    }
    char own[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    own[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(own, '/');
    if (slash == NULL)
        return PL_FAIL(PL_NOTFOUND, "cannot find the paceline program beside "
                                    "this one; use --program PATH");
    slash[1] = '\0';
    snprintf(s->program, sizeof s->program, "%.*s/paceline", (int)(slash - own),
             own);
    return PL_OK;
}

static pl_status write_digits(const char *folder)
{
    static const pl_split splits[] = { PL_SPLIT_TRAIN, PL_SPLIT_TEST };
    for (int i = 0; i < 2; i++) {
        pl_dataset *set;
        PL_TRY(pl_source_open(&set, "digits", splits[i],
                              &(pl_source_opts) { .threads = 0 }));
        pl_status status = pl_dataset_write_idx(set, folder, splits[i]);
        pl_dataset_free(set);
        PL_TRY(status);
    }
    return PL_OK;
}

static pl_status open_site(const bench *b, site *s)
{
    const char *temp = getenv("TMPDIR");
    snprintf(s->folder, sizeof s->folder, "%s/paceline-bench-XXXXXX",
             temp != NULL ? temp : "/tmp");
    PL_TRY(find_program(b, s));
    if (mkdtemp(s->folder) == NULL)
        return PL_FAIL(PL_IO, "cannot make a folder like %s", s->folder);
    char digits[PATH_MAX + 16];
    snprintf(digits, sizeof digits, "%.*s/digits", PATH_MAX, s->folder);
    snprintf(s->data, sizeof s->data, "idx:%.*s", PATH_MAX, digits);
    snprintf(s->run, sizeof s->run, "%.*s/run", PATH_MAX, s->folder);
    pl_status status = write_digits(digits);
    if (status != PL_OK) {
        pl_error error; /* removing the folder may fail as well */
        pl_error_save(&error, status);
        (void)!pl_file_remove_all(s->folder);
        return pl_error_raise(&error);
    }
    return PL_OK;
}

static pl_status read_outcome(const spawned *child, outcome *out)
{
    pl_json *json;
    PL_TRY(pl_json_parse(&json, child->text, strlen(child->text), "summary"));
    pl_status status = pl_json_get_real(json, "steps_per_s", &out->steps_per_s);
    if (status == PL_OK)
        status = pl_json_get_real(json, "startup_seconds", &out->startup_s);
    pl_json_free(json);
    out->seconds = child->seconds;
    out->rss_mb = (double)child->peak_rss_bytes * 1e-6;
    return status;
}

/* The program of a workload: paceline or one beside it. */
static void program_of(const site *s, const workload *work, char path[PATH_MAX])
{
    const char *slash = strrchr(s->program, '/');
    int folder = slash != NULL ? (int)(slash + 1 - s->program) : 0;
    if (work->example == NULL)
        snprintf(path, PATH_MAX, "%s", s->program);
    else
        snprintf(path, PATH_MAX, "%.*s%s", folder, s->program, work->example);
}

static pl_status train(const site *s, const setting *set, int64_t steps,
                       outcome *out)
{
    char program[PATH_MAX], numbers[3][24];
    program_of(s, set->work, program);
    snprintf(numbers[0], sizeof numbers[0], "%lld", (long long)set->batch);
    snprintf(numbers[1], sizeof numbers[1], "%d", set->threads);
    snprintf(numbers[2], sizeof numbers[2], "%lld", (long long)steps);
    const char *const argv[] = {
        program,
        "train",
        set->work->model,
        "--data",
        set->work->data != NULL ? set->work->data : s->data,
        "--run",
        s->run,
        "--batch",
        numbers[0],
        "--threads",
        numbers[1],
        "--steps",
        numbers[2],
        "--eval-every",
        "never",
        "--checkpoint-every",
        "never",
        "--quiet",
        "--json",
        NULL,
    };
    static spawned child; /* large */
    PL_TRY(pl_file_remove_all(s->run));
    PL_TRY(spawn_run(&child, argv));
    return read_outcome(&child, out);
}

static void print_speed(bench *b, const setting *set, measurement steps_per_s,
                        double rss_mb)
{
    double examples = steps_per_s.median * (double)set->batch;
    double gflops = examples * set->work->flops * 1e-9;
    const limits *most = &b->limits[0];
    table_text(&b->table, "model", set->work->model);
    table_count(&b->table, "batch", set->batch);
    table_count(&b->table, "threads", set->threads);
    table_measured(&b->table, "steps/s", steps_per_s);
    table_count(&b->table, "examples/s", (int64_t)examples);
    table_number(&b->table, "GFLOP/s", gflops);
    table_share(&b->table, "share of peak", gflops,
                set->threads == 1 ? most->gflops_one : most->gflops_all);
    table_number(&b->table, "peak RSS MB", rss_mb);
    table_row_end(&b->table);
}

static pl_status bench_speed(bench *b, const site *s, const setting *set)
{
    outcome out;
    double step_flops = set->work->flops * (double)set->batch;
    PL_TRY(train(s, set, (int64_t)(PROBE_FLOPS / step_flops) + 1, &out));
    int64_t steps = (int64_t)(out.steps_per_s * b->window_s) + 1;
    double rates[MEASURE_WINDOWS];
    for (int w = 0; w < MEASURE_WINDOWS; w++) {
        PL_TRY(train(s, set, steps, &out));
        rates[w] = out.steps_per_s;
    }
    print_speed(b, set, measure_summary(rates, MEASURE_WINDOWS), out.rss_mb);
    return PL_OK;
}

static pl_status bench_workload(bench *b, const site *s, const workload *work)
{
    for (int i = 0; i < MAX_BATCHES && work->batches[i] > 0; i++) {
        setting set = { work, work->batches[i], 1 };
        PL_TRY(bench_speed(b, s, &set));
        set.threads = b->threads;
        if (b->threads > 1)
            PL_TRY(bench_speed(b, s, &set));
    }
    return PL_OK;
}

static pl_status bench_start(bench *b, const site *s)
{
    double startup[STARTS], whole[STARTS];
    const setting set = { &workloads[0], 100, b->threads };
    outcome out;
    PL_TRY(train(s, &set, 1, &out)); /* the page cache is warm */
    for (int i = 0; i < STARTS; i++) {
        PL_TRY(train(s, &set, 1, &out));
        startup[i] = out.startup_s * 1e3;
        whole[i] = out.seconds * 1e3;
    }
    table_measured(&b->table, "start to exit ms",
                   measure_summary(whole, STARTS));
    table_measured(&b->table, "start-up ms", measure_summary(startup, STARTS));
    table_number(&b->table, "peak RSS MB", out.rss_mb);
    table_row_end(&b->table);
    return PL_OK;
}

static pl_status bench_site(bench *b, const site *s)
{
    table_begin(&b->table, "train", "Training on digits",
                "The program itself, plain SGD on plain IDX files; three_blocks"
                " is that of examples/.\nFLOPs are those of products and "
                "convolutions; peak: that of the widest vectors with as\nmany "
                "threads.");
    for (size_t i = 0; i < WORKLOADS; i++)
        PL_TRY(bench_workload(b, s, &workloads[i]));
    table_end(&b->table);
    table_begin(&b->table, "start", "Start of the program",
                "`train softmax --steps 1 --eval-every never --batch 100` on "
                "plain IDX files, page cache\nwarm: from fork to exit, with "
                "the final checkpoint; start-up is what the program says.");
    PL_TRY(bench_start(b, s));
    table_end(&b->table);
    return PL_OK;
}

static pl_status bench_alexnet_site(bench *b, const site *s)
{
    table_begin(&b->table, "alexnet", "Training AlexNet",
                "The program itself, plain SGD on synthetic images [3, 224, "
                "224], 1000 classes, dropout 0.5.\nFLOPs and peak as for "
                "training on digits.");
    PL_TRY(bench_workload(b, s, &alexnet));
    table_end(&b->table);
    return PL_OK;
}

/* Run `part` with data and a folder for runs. */
static pl_status bench_on_site(bench *b,
                               pl_status (*part)(bench *b, const site *s))
{
    static site s; /* large */
    PL_TRY(bench_need_cpu_limits(b));
    PL_TRY(open_site(b, &s));
    pl_error error;
    pl_error_save(&error, part(b, &s));
    pl_status removed = pl_file_remove_all(s.folder);
    return error.status != PL_OK ? pl_error_raise(&error) : removed;
}

pl_status bench_train(bench *b)
{
    return bench_on_site(b, bench_site);
}

pl_status bench_alexnet(bench *b)
{
    return bench_on_site(b, bench_alexnet_site);
}
