/* cmd_sweep.c - `sweep`: reads what to run from a file and from flags, lists or
 * runs the cells, and shows the results. */
#include "app/run/runs.h"
#include "app/sweep/about.h"
#include "app/sweep/plan.h"
#include "app/sweep/spec.h"
#include "app/sweep/sweep.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "observe/runs/compare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FILE ((size_t)1 << 20)

typedef struct sweep_options {
    const char *grid;
    const char *out;
    const char *data;
    int64_t repeat;
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
      .help = "folder for the run folders (default: sweeps/ and the name of "
              "FILE)" },
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
    { .name = "list",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(list),
      .help = "print the commands, run nothing" },
    { .name = "quiet",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(quiet),
      .help = "no progress, only what fails" },
};

static pl_status read_spec(const sweep_options *options, const pl_words *words,
                           pl_json **out)
{
    if (words->count == 0)
        return PL_FAIL(PL_USAGE,
                       "sweep needs a file, or --grid and a model: sweep FILE "
                       "| sweep --grid GRID --out DIR -- MODEL [flags]");
    if (options->grid != NULL)
        return pl_sweep_spec_grid(out, words->list[0], options->grid);
    char *text;
    PL_TRY(pl_file_read_text(&text, words->list[0], MOST_FILE));
    pl_status status = pl_sweep_spec_parse(out, text, words->list[0]);
    pl_mem_free(text);
    return status;
}

/* sweeps/<name of the file without its ending> */
static pl_status choose_out(const sweep_options *options, const char *file,
                            char **out)
{
    if (options->out != NULL)
        return pl_mem_copy_text(out, options->out);
    if (options->grid != NULL)
        return PL_FAIL(PL_USAGE, "--grid needs --out DIR, the folder for the "
                                 "runs");
    const char *slash = strrchr(file, '/');
    const char *name = slash != NULL ? slash + 1 : file;
    const char *dot = strrchr(name, '.');
    int length =
        dot != NULL && dot > name ? (int)(dot - name) : (int)strlen(name);
    return pl_mem_format(out, "sweeps/%.*s", length, name);
}

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

static pl_status print_cells(const pl_app *app, const char *model,
                             const char *out, const pl_json *cells)
{
    for (size_t i = 0; i < pl_json_length(cells); i++) {
        const pl_json *cell = pl_json_at(cells, i), *args;
        const char *name, *word;
        PL_TRY(pl_json_get_text(cell, "name", &name));
        PL_TRY(pl_json_get_array(cell, "args", &args));
        printf("%s train %s", app->program, model);
        for (size_t a = 0; a < pl_json_length(args); a++) {
            PL_TRY(pl_json_as_text(pl_json_at(args, a), "args", &word));
            print_word(word);
        }
        char *run;
        PL_TRY(pl_file_join(&run, out, name));
        fputs(" --run", stdout);
        print_word(run);
        putchar('\n');
        pl_mem_free(run);
    }
    return PL_OK;
}

/* What came of it, in one table. */
static pl_status print_results(const pl_app *app, const char *out, bool mean)
{
    pl_records records;
    pl_buffer text = { 0 };
    char *paths[] = { (char *)out };
    PL_TRY(pl_runs_open(&records, paths, 1));
    pl_status status = pl_compare_print(&records, mean, &text);
    pl_records_close(&records);
    if (status == PL_OK)
        printf("%s\nfigures: %s report %s -o report.html\n", text.data,
               app->program, out);
    pl_buffer_close(&text);
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

static pl_status sweep(const pl_app *app, const sweep_options *options,
                       const char *model, const char *out, const pl_json *about,
                       const pl_json *cells)
{
    if (options->list)
        return print_cells(app, model, out, cells);
    /* The trainings are all on this machine. */
    unsetenv("TF_CONFIG");
    pl_error failed;
    pl_error_save(&failed, pl_sweep_run(&(pl_sweep_opts) {
                               .program = app->program,
                               .model = model,
                               .cells = cells,
                               .about = about,
                               .out = out,
                               .quiet = options->quiet,
                           }));
    if (failed.status == PL_OK || failed.status == PL_IO) {
        pl_status status = print_results(app, out, is_repeated(cells));
        if (failed.status == PL_OK)
            return status;
    }
    return pl_error_raise(&failed);
}

static pl_status plan_and_sweep(const pl_app *app, const sweep_options *options,
                                const pl_words *words)
{
    pl_json *spec = NULL, *cells = NULL, *about = NULL;
    char *out = NULL;
    const pl_model *model = NULL;
    const char *name;
    pl_status status;
    PL_TRY_OUT(status, read_spec(options, words, &spec));
    PL_TRY_OUT(status, choose_out(options, words->list[0], &out));
    PL_TRY_OUT(status, pl_json_get_text(spec, "model", &name));
    PL_TRY_OUT(status, pl_app_model(app, name, &model));
    pl_sweep_plan_opts opts = {
        .spec = spec,
        .model = model,
        .flags = words->list + 1,
        .flag_count = words->count - 1,
        .repeat = options->repeat,
        .data = options->data,
    };
    PL_TRY_OUT(status, pl_sweep_plan(&cells, &opts));
    if (!options->quiet && !pl_sweep_plan_has_data(&opts))
        pl_log(PL_LOG_INFO,
               "%s is about other data than the cells are trained on; name "
               "them by --data",
               words->list[0]);
    PL_TRY_OUT(status, pl_sweep_about(&about, &opts));
    status = sweep(app, options, name, out, about, cells);
out:
    pl_json_free(about);
    pl_json_free(cells);
    pl_json_free(spec);
    pl_mem_free(out);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    sweep_options options;
    pl_words words;
    PL_TRY(pl_command_parse(
        &pl_cmd_sweep, app,
        "Train once for each cell of a grid, one after another, each in a run "
        "folder\nof its own. The same command goes on where it was ended.\n\n"
        "  sweep FILE [-- more flags of train]\n"
        "  sweep --grid \"mode=sync,async batch=10,50 workers=1,2\" --out DIR "
        "-- softmax\n\n"
        "A grid with mode, but without ps, has one parameter server; workers=0 "
        "is one\nprocess that trains alone.",
        &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status = plan_and_sweep(app, &options, &words);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_sweep = {
    .name = "sweep",
    .usage = "sweep FILE | --grid GRID -- MODEL",
    .help = "train once for each cell of a grid",
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
