/* cmd_sweep.c - `sweep`: reads the cells from files and flags, lists or runs
 * them, and shows the results. */
#include "app/run/runs.h"
#include "app/sweep/series.h"
#include "app/sweep/spec.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/commands.h"
#include "observe/compare/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sweep_options {
    const char *grid;
    const char *out;
    const char *data;
    const char *hosts, *ssh, *program;
    int64_t repeat;
    bool copy;
    bool quick;
    bool list;
    bool quiet;
} sweep_options;

#define FIELD(name) offsetof(sweep_options, name)

static const pl_param params[] = {
    { .name = "grid",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(grid),
      .value = "GRID",
      .help = "\"FLAG=VALUE,VALUE,... ...\": one training for each combination",
      .why = "For a quick question without a file; it needs --out. "
             "\"lr=0.01,0.1 batch=50,100\" makes four trainings, so the time "
             "is the product of the numbers of values." },
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(out),
      .value = "DIR",
      .help = "folder for the run folders; with several files, a subfolder "
              "named after each (default: sweeps/ and the name of FILE; "
              "sweeps/quick/ with --quick)",
      .why = "Give it to keep sweeps apart: a folder holds one sweep, and the "
             "same command in the same folder continues an interrupted one." },
    { .name = "data",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(data),
      .value = "SRC",
      .help = "data for files that ask for this kind, such as mnist:DIR "
              "(default: the model's own, usually digits)",
      .why = "The published values in a file hold for its data, such as MNIST. "
             "Without this flag the cells train on built-in data, and no "
             "difference to published values is shown." },
    { .name = "hosts",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(hosts),
      .value = "A,B,C",
      .help = "train each cell on these hosts, with `launch` (default: this "
              "machine; inside a Slurm allocation of several nodes: those)",
      .why = "Use it when the cells are jobs of several workers: each cell is "
             "distributed over all of these hosts, one cell after another." },
    { .name = "ssh",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(ssh),
      .value = "COMMAND",
      .needs = "hosts",
      .help = "command to reach a host, such as \"ssh -p 2222\" (default: ssh)",
      .why = "Use it for another port, user or key, such as \"ssh -p 2222 -i "
             "key\". It must reach each host without asking for a password." },
    { .name = "program",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(program),
      .value = "FILE",
      .needs = "hosts",
      .help = "path of paceline on the hosts (default: the path here)",
      .why = "For hosts where paceline is installed at another path, such as "
             "/opt/paceline/bin/paceline. It must be the same version on all "
             "of them; if it is not installed there, use --copy." },
    { .name = "copy",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(copy),
      .needs = "hosts",
      .help = "copy this program to the hosts first",
      .why = "For hosts without paceline and without shared storage. The data "
             "of the cells is copied as well; what a host already has is not "
             "sent again." },
    { .name = "repeat",
      .kind = PL_PARAM_INT,
      .offset = FIELD(repeat),
      .least = 1,
      .most = PL_SWEEP_REPEAT_MOST,
      .help = "run each cell N times, with consecutive seeds",
      .why = "Three repetitions show whether a difference is larger than "
             "chance; `compare --mean` combines them. The sweep takes N times "
             "as long." },
    { .name = "quick",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quick),
      .help = "run a shortened sweep, as the quick line of FILE defines it; "
              "published values are not compared with it",
      .why = "Use it to see in minutes whether a sweep works on your machine "
             "before it runs for hours. Results of a shortened sweep are not "
             "comparable with published ones." },
    { .name = "list",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(list),
      .help = "print the commands without running them",
      .why = "Use it to check a grid before it starts, or to run some of the "
             "commands yourself." },
    { .name = "quiet",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quiet),
      .help = "no progress, only failures",
      .why = "For scheduled jobs; the table of results is still printed at the "
             "end." },
};

static void put_word(pl_buffer *line, const char *word)
{
    pl_buffer_text(line, " ");
    pl_quote_shell(line, word);
}

/* The command of one cell. */
static pl_status put_cell(pl_buffer *line, const pl_app *app,
                          const pl_series *series, const pl_series_sweep *sweep,
                          const pl_json *cell)
{
    const char *const *launch = series->opts->launch;
    const pl_json *args;
    const char *name, *word;
    char *run;
    PL_TRY(pl_json_get_text(cell, "name", &name));
    PL_TRY(pl_json_get_array(cell, "args", &args));
    pl_buffer_text(line, app->program);
    for (size_t w = 0; launch != NULL && launch[w] != NULL; w++)
        put_word(line, launch[w]);
    pl_buffer_format(line, " train %s", sweep->model);
    for (size_t a = 0; a < pl_json_length(args); a++) {
        PL_TRY(pl_json_as_text(pl_json_at(args, a), "args", &word));
        put_word(line, word);
    }
    PL_TRY(pl_file_join(&run, sweep->out, name));
    put_word(line, "--run");
    put_word(line, run);
    pl_mem_free(run);
    return pl_buffer_status(line);
}

static pl_status print_cells(const pl_app *app, const pl_series *series,
                             const pl_series_sweep *sweep)
{
    const pl_json *cells = sweep->cells;
    pl_buffer line = { 0 };
    pl_status status = PL_OK;
    for (size_t i = 0; status == PL_OK && i < pl_json_length(cells); i++) {
        pl_buffer_clear(&line);
        status = put_cell(&line, app, series, sweep, pl_json_at(cells, i));
        if (status == PL_OK)
            puts(line.data);
    }
    pl_buffer_close(&line);
    return status;
}

static bool is_repeated(const pl_json *cells)
{
    int64_t repeat = 1;
    size_t count = pl_json_length(cells);
    return pl_json_get_int(pl_json_at(cells, count - 1), "repeat", 1, INT64_MAX,
                           &repeat) == PL_OK &&
           repeat > 1;
}

/* The results of a sweep in one table; nothing when no run was started. */
static pl_status print_results(const pl_series_sweep *sweep)
{
    pl_records records;
    pl_buffer text = { 0 };
    pl_status status = pl_runs_open(&records, &sweep->out, 1);
    if (status == PL_NOTFOUND)
        return PL_OK;
    PL_TRY(status);
    status = pl_compare_print(&records, is_repeated(sweep->cells), 0, &text);
    if (status == PL_OK && text.bytes > 0)
        printf("%s\n", text.data);
    pl_buffer_close(&text);
    pl_records_close(&records);
    return status;
}

static pl_status sweep(const pl_app *app, const pl_series *series, bool list)
{
    pl_status status = PL_OK;
    for (size_t i = 0; list && i < series->count; i++)
        PL_TRY(print_cells(app, series, &series->list[i]));
    if (list)
        return PL_OK;
    /* It does not apply to the trainings that are started here. */
    unsetenv("TF_CONFIG");
    pl_error failed;
    pl_error_save(&failed, pl_series_run(series));
    if (failed.status == PL_OK || failed.status == PL_IO) {
        for (size_t i = 0; i < series->count && status == PL_OK; i++)
            status = print_results(&series->list[i]);
        printf("figures: %s report %s -o report.html\n", app->program,
               series->many ? series->out : series->list[0].out);
        if (failed.status == PL_OK)
            return status;
    }
    return pl_error_raise(&failed);
}

#define LAUNCH_WORDS 12

/* True in a Slurm allocation of several nodes: the cells use all of them. */
static bool has_nodes(void)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    return getenv("SLURM_JOB_NODELIST") != NULL && nodes != NULL &&
           atoi(nodes) > 1;
}

/* "launch --hosts a,b --"; false: the cells train on this machine. */
static bool make_launch(const sweep_options *options,
                        const char *words[LAUNCH_WORDS])
{
    const struct {
        const char *name, *value;
    } flags[] = {
        { "--hosts", options->hosts },
        { "--ssh", options->ssh },
        { "--program", options->program },
    };
    size_t count = 0;
    if (options->hosts == NULL && !has_nodes())
        return false;
    words[count++] = "launch";
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].value != NULL) {
            words[count++] = flags[i].name;
            words[count++] = flags[i].value;
        }
    if (options->copy)
        words[count++] = "--copy";
    words[count++] = "--";
    words[count] = NULL;
    return true;
}

/* Words before "--" are files, words after it flags; with --grid the first word
 * is the model. */
static pl_status plan_and_sweep(const pl_app *app, const sweep_options *options,
                                const pl_words *words, int flag_count)
{
    pl_series series;
    const char *launch[LAUNCH_WORDS];
    int named = words->count - flag_count;
    bool grid = options->grid != NULL;
    if (grid && named == 0 && flag_count > 0) {
        named++; /* the model follows "--" */
        flag_count--;
    }
    if (named == 0)
        return PL_FAIL(PL_USAGE,
                       "sweep needs a file, or --grid and a model: sweep FILE "
                       "| sweep --grid GRID --out DIR -- MODEL [flags]");
    if (grid && options->out == NULL)
        return PL_FAIL(PL_USAGE, "--grid needs --out DIR, the folder for the "
                                 "runs");
    pl_series_opts opts = {
        .app = app,
        .files = words->list,
        .file_count = grid ? 0 : (size_t)named,
        .grid = options->grid,
        .model = grid ? words->list[0] : NULL,
        .out = options->out,
        .data = options->data,
        .flags = words->list + named,
        .flag_count = flag_count,
        .repeat = options->repeat,
        .quick = options->quick,
        .quiet = options->quiet,
        .launch = make_launch(options, launch) ? launch : NULL,
    };
    PL_TRY(pl_series_init(&series, &opts));
    pl_status status = sweep(app, &series, options->list);
    pl_series_close(&series);
    return status;
}

/* The number of words after the first "--". */
static int words_behind(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            return argc - i - 1;
    return 0;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    sweep_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_sweep, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status =
        plan_and_sweep(app, &options, &words, words_behind(argc, argv));
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_sweep = {
    .name = "sweep",
    .usage = "sweep FILE... | --grid GRID -- MODEL",
    .help = "train once for each cell of a grid",
    .about =
        "Train once for each cell of a grid, one after another, each in a run "
        "folder\nof its own. After an interruption the same command "
        "continues.\n\n  sweep FILE... [-- more flags of train]    a folder: "
        "its files *.sweep\n  sweep --grid \"mode=sync,async batch=10,50 "
        "workers=1,2\" --out DIR -- softmax\n\nA grid with mode but without "
        "ps has one parameter server; workers=0 trains in\none process.",
    .examples = {
        { "sweep examples/sweeps/a1-batch.sweep", "the cells of a file" },
        { "sweep --grid \"batch=10,50\" --out s -- softmax", "a grid of your own" },
        { "sweep examples/sweeps --quick --list", "the commands it would run" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
