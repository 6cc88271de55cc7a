/* cmd_report.c - `report`: writes an HTML page about some runs, and on request
 * its tables and figures as files. */
#include "app/run/runs.h"
#include "app/view/output.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/view/plot.h"
#include "observe/report/report.h"

#include <stdio.h>
#include <string.h>

typedef struct report_options {
    const char *out;
    const char *files;
    const char *title;
} report_options;

#define FIELD(name) offsetof(report_options, name)

static const pl_param params[] = {
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(out),
      .fallback = "report.html",
      .value = "FILE",
      .help = "page to write (short: -o); - is standard output",
      .why = "The page is one file that makes no requests, so you can send it "
             "by mail. An existing file is replaced." },
    { .name = "files",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(files),
      .value = "DIR",
      .help = "also write each table and all points of the curves as CSV, and "
              "each figure as SVG (by gnuplot)",
      .why =
          "Use it for figures and tables of a paper, or to analyze the "
          "curves with your own tools. CSV needs nothing; SVG needs gnuplot." },
    { .name = "title",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(title),
      .help = "title of the page (default: the names of the folders)",
      .why = "Give it when readers do not know the names of your folders. "
             "Example: --title \"Batch size and accuracy\"." },
};

/* "Runs of a, b and c" */
static pl_status choose_title(const report_options *options,
                              const pl_words *words, char **out)
{
    pl_buffer text = { 0 };
    if (options->title != NULL)
        return pl_mem_copy_text(out, options->title);
    for (int i = 0; i < words->count && i < 4; i++) {
        size_t length = strlen(words->list[i]);
        while (length > 1 && words->list[i][length - 1] == '/')
            length--;
        const char *name = words->list[i];
        const char *slash = memrchr(name, '/', length);
        pl_buffer_text(&text, i > 0 ? ", " : "");
        if (slash != NULL && slash > name)
            name = slash + 1;
        pl_buffer_put(&text, name, length - (size_t)(name - words->list[i]));
    }
    pl_buffer_text(&text, words->count > 4 ? ", ..." : "");
    pl_status status = pl_buffer_status(&text);
    if (status == PL_OK)
        status = pl_mem_format(out, "Report on %s", text.data);
    pl_buffer_close(&text);
    return status;
}

static pl_status write_page(const pl_page *page, const char *path)
{
    pl_buffer html = { 0 };
    pl_page_html(page, &html);
    pl_status status = pl_buffer_save(&html, path);
    pl_buffer_close(&html);
    return status;
}

static pl_status write_curves(const pl_runs_model *model, const char *folder)
{
    char *path;
    PL_TRY(pl_file_join(&path, folder, "curves.csv"));
    pl_status status = pl_model_write_curves(model, path);
    pl_mem_free(path);
    return status;
}

/* Tables are always written; without gnuplot there are no figures. */
static pl_status write_files(const pl_page *page, const pl_runs_model *model,
                             const char *folder, FILE *notices)
{
    pl_buffer commands = { 0 };
    PL_TRY(pl_file_make_folder(folder));
    PL_TRY(pl_page_write_tables(page, folder));
    PL_TRY(write_curves(model, folder));
    fprintf(notices, "%s: %zu tables\n", folder, pl_page_tables(page));
    if (pl_page_figures(page) == 0)
        return PL_OK;
    pl_page_gnuplot(page, &commands);
    pl_status status = pl_buffer_status(&commands);
    if (status == PL_OK)
        status = pl_plot(&commands, folder);
    pl_buffer_close(&commands);
    PL_TRY(status);
    fprintf(notices, "%s: %zu figures\n", folder, pl_page_figures(page));
    return PL_OK;
}

static pl_status report(const report_options *options, const pl_words *words)
{
    pl_records records = { 0 };
    pl_runs_model model = { 0 };
    pl_page *page = NULL;
    char *title = NULL;
    pl_status status;
    if (words->count == 0)
        return PL_FAIL(PL_USAGE, "report needs run folders, or a folder of "
                                 "them: report RUN... -o FILE");
    PL_TRY_OUT(status, choose_title(options, words, &title));
    PL_TRY_OUT(status, pl_runs_read(&records, words));
    PL_TRY_OUT(status, pl_model_init(&model, &records));
    PL_TRY_OUT(status, pl_report_model(&page, &model, title));
    const char *out = pl_output_path(options->out);
    FILE *notices = pl_output_notices(out);
    PL_TRY_OUT(status, write_page(page, out));
    size_t tables = pl_page_tables(page), figures = pl_page_figures(page);
    fprintf(notices, "%s: %zu run%s, %zu table%s, %zu figure%s\n", options->out,
            records.count, records.count == 1 ? "" : "s", tables,
            tables == 1 ? "" : "s", figures, figures == 1 ? "" : "s");
    if (options->files != NULL)
        status = write_files(page, &model, options->files, notices);
out:
    pl_page_free(page);
    pl_model_close(&model);
    pl_records_close(&records);
    pl_mem_free(title);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    report_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_report, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status = report(&options, &words);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_report = {
    .name = "report",
    .usage = "report RUN... -o FILE",
    .help = "tables and figures of runs, as one HTML page",
    .about =
        "Write one page with the tables and figures of runs. It needs no "
        "network.\nRUN is a run folder, or a folder of run folders, as `sweep` "
        "makes it.",
    .examples = {
        { "report runs -o report.html", "all runs of a folder" },
        { "report runs/a runs/b -o two.html", "two runs" },
        { "report sweeps/a1-batch -o a1.html", "a sweep, with its figures" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
