/* cmd_compare.c - `compare`: shows the runs of some folders as one table: as
 * text, CSV or JSON. */
#include "app/run/runs.h"
#include "app/view/output.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "observe/compare/compare.h"

#include <stdio.h>
#include <string.h>

typedef struct compare_options {
    bool mean;
    bool json;
    bool csv;
} compare_options;

#define FIELD(name) offsetof(compare_options, name)

static const pl_param params[] = {
    { .name = "mean",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(mean),
      .help =
          "combine runs that differ only in the seed into one row: mean and "
          "spread",
      .why = "Use it for sweeps with --repeat, to see whether a difference is "
             "larger than the spread between seeds." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(json),
      .help =
          "print one line of JSON: a list with one object per run, with the "
          "names of --csv",
      .why = "For programs: numbers are plain, shares are fractions, and a "
             "flag that was not set is null." },
    { .name = "csv",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(csv),
      .help =
          "print CSV: flags as columns flag.NAME, then the results and what "
          "the tasks did",
      .why = "For spreadsheets and data frames: all columns are in one table, "
             "even those that do not fit on a terminal." },
};

static pl_status print_json(const pl_table *table)
{
    pl_json *rows;
    PL_TRY(pl_table_json(table, &rows));
    pl_status status = pl_json_print(rows, stdout);
    pl_json_free(rows);
    return status;
}

static pl_status print_table(const pl_records *records,
                             const compare_options *options, pl_buffer *text)
{
    pl_table *table;
    PL_TRY(pl_compare_all(&table, records, options->mean));
    pl_status status = PL_OK;
    if (options->json)
        status = print_json(table);
    else
        pl_table_csv(table, text);
    pl_table_free(table);
    return status;
}

static pl_status compare(const compare_options *options, const pl_words *words)
{
    pl_records records;
    pl_buffer text = { 0 };
    if (words->count == 0)
        return PL_FAIL(PL_USAGE, "compare needs run folders, or a folder of "
                                 "them: compare RUN...");
    if (options->json && options->csv)
        return PL_FAIL(PL_USAGE, "--json and --csv: give one of them, not "
                                 "both");
    PL_TRY(pl_runs_read(&records, words));
    pl_status status =
        options->json || options->csv
            ? print_table(&records, options, &text)
            : pl_compare_print(&records, options->mean,
                               (size_t)pl_output_columns(stdout), &text);
    if (status == PL_OK)
        status = pl_buffer_status(&text);
    if (status == PL_OK && text.bytes > 0)
        fwrite(text.data, 1, text.bytes, stdout);
    pl_buffer_close(&text);
    pl_records_close(&records);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    compare_options options;
    pl_words words;
    PL_TRY(
        pl_command_parse(&pl_cmd_compare, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status = compare(&options, &words);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_compare = {
    .name = "compare",
    .usage = "compare RUN... [--json|--csv]",
    .help = "runs side by side, in one table",
    .about =
        "Show runs side by side: the flags that set them apart, and the "
        "results.\nRUN is a run folder, a folder of run folders, as `sweep` "
        "makes it, or\na folder of those.",
    .examples = {
        { "compare runs", "all runs of a folder" },
        { "compare runs/a runs/b", "two runs: what sets them apart" },
        { "compare runs --mean --csv", "means over seeds, for a spreadsheet" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
