/* cmd_sweep.c - `sweep`: reads what to run from files and from flags, lists or
 * runs the cells, and shows the results. */
#include "app/run/runs.h"
#include "app/sweep/series.h"
#include "app/sweep/spec.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "observe/runs/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sweep_options {
    const char *grid;
    const char *out;
    const char *data;
    int64_t repeat;
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
      .help =
          "\"FLAG=VALUE,VALUE,... ...\": one training for each combination" },
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(out),
      .value = "DIR",
      .help = "folder for the run folders; of several files each gets a folder "
              "of its name in it (default: sweeps/ and the name of FILE; "
              "sweeps/quick/ with --quick)" },
    { .name = "data",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(data),
      .value = "SRC",
      .help = "mnist:DIR: the data of files that ask for this kind (default: "
              "the model's own, mostly digits)" },
    { .name = "repeat",
      .kind = PL_PARAM_INT,
      .offset = FIELD(repeat),
      .least = 1,
      .most = PL_SWEEP_REPEAT_MOST,
      .help = "run each cell N times, with seeds one apart" },
    { .name = "quick",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quick),
      .help = "a short sweep, as the line quick of FILE says; published values "
              "are not compared with it" },
    { .name = "list",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(list),
      .help = "print the commands, run nothing" },
    { .name = "quiet",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quiet),
      .help = "no progress, only what fails" },
};

/* A word as a shell reads it back; one with control characters, which the
 * terminal would obey, in the $'' of bash. */
static void print_word(const char *word)
{
    bool odd = false;
    for (const char *c = word; *c != '\0'; c++)
        odd = odd || (unsigned char)*c < ' ' || (unsigned char)*c > '~';
    if (!odd && word[0] != '\0' &&
        word[strcspn(word, " '\"\\$&|;<>()*?[]#~`!")] == '\0') {
        printf(" %s", word);
        return;
    }
    fputs(odd ? " $'" : " '", stdout);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            fputs(odd ? "\\'" : "'\\''", stdout);
        else if (odd && *word == '\\')
            fputs("\\\\", stdout);
        else if ((unsigned char)*word < ' ' || (unsigned char)*word > '~')
            printf("\\x%02x", (unsigned)(unsigned char)*word);
        else
            putchar(*word);
    }
    putchar('\'');
}

static pl_status print_cells(const pl_app *app, const pl_series_sweep *sweep)
{
    const pl_json *cells = sweep->cells;
    for (size_t i = 0; i < pl_json_length(cells); i++) {
        const pl_json *cell = pl_json_at(cells, i), *args;
        const char *name, *word;
        PL_TRY(pl_json_get_text(cell, "name", &name));
        PL_TRY(pl_json_get_array(cell, "args", &args));
        printf("%s train %s", app->program, sweep->model);
        for (size_t a = 0; a < pl_json_length(args); a++) {
            PL_TRY(pl_json_as_text(pl_json_at(args, a), "args", &word));
            print_word(word);
        }
        char *run;
        PL_TRY(pl_file_join(&run, sweep->out, name));
        fputs(" --run", stdout);
        print_word(run);
        putchar('\n');
        pl_mem_free(run);
    }
    return PL_OK;
}

static bool is_repeated(const pl_json *cells)
{
    int64_t repeat = 1;
    size_t count = pl_json_length(cells);
    return pl_json_get_int(pl_json_at(cells, count - 1), "repeat", 1, INT64_MAX,
                           &repeat) == PL_OK &&
           repeat > 1;
}

/* What came of a sweep, in one table; nothing when no run was begun. */
static pl_status print_results(const pl_series_sweep *sweep)
{
    pl_records records;
    pl_buffer text = { 0 };
    pl_status status = pl_runs_open(&records, &sweep->out, 1);
    if (status == PL_NOTFOUND)
        return PL_OK;
    PL_TRY(status);
    status = pl_compare_print(&records, is_repeated(sweep->cells), &text);
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
        PL_TRY(print_cells(app, &series->list[i]));
    if (list)
        return PL_OK;
    /* The trainings are all on this machine. */
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

/* Words before "--" are files, those behind it flags; with --grid the first
 * one is the model. */
static pl_status plan_and_sweep(const pl_app *app, const sweep_options *options,
                                const pl_words *words, int flag_count)
{
    pl_series series;
    int named = words->count - flag_count;
    bool grid = options->grid != NULL;
    if (grid && named == 0 && flag_count > 0) {
        named++; /* the model stands behind "--" */
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
    };
    PL_TRY(pl_series_init(&series, &opts));
    pl_status status = sweep(app, &series, options->list);
    pl_series_close(&series);
    return status;
}

/* Words behind the first "--". */
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
    PL_TRY(pl_command_parse(
        &pl_cmd_sweep, app,
        "Train once for each cell of a grid, one after another, each in a run "
        "folder\nof its own. The same command goes on where it was ended.\n\n"
        "  sweep FILE... [-- more flags of train]    a folder: its files "
        "*.sweep\n"
        "  sweep --grid \"mode=sync,async batch=10,50 workers=1,2\" --out DIR "
        "-- softmax\n\n"
        "A grid with mode, but without ps, has one parameter server; workers=0 "
        "is one\nprocess that trains alone.",
        &options, argc, argv, &words));
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
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
