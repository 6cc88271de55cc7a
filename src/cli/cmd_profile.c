/* Where the time of a traced run went, operator by operator. */
#include "app/view/output.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "observe/runs/traces.h"

#include <stdio.h>
#include <string.h>

typedef struct profile_options {
    const char *merge;
    bool json;
    bool csv;
} profile_options;

static const pl_param params[] = {
    { .name = "merge",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(profile_options, merge),
      .value = "FILE",
      .help = "merge the traces of all tasks into FILE, on one clock",
      .why = "Shows how tasks wait for each other: open the file at "
             "ui.perfetto.dev. Clocks of different hosts are aligned by the "
             "round trips of heartbeats." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(profile_options, json),
      .help = "print JSON: a list with one object per operator, with its role",
      .why = "For programs: the columns of the tables, for workers and servers "
             "together, as exact numbers." },
    { .name = "csv",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(profile_options, csv),
      .help = "print CSV: one table, with a column for the role",
      .why = "For spreadsheets and data frames; it has the same columns as "
             "--json." },
};

static pl_status print_json(const pl_table *table)
{
    pl_json *rows = NULL;
    PL_TRY(pl_table_json(table, &rows));
    pl_status status = pl_json_print(rows, stdout);
    pl_json_free(rows);
    return status;
}

static pl_status print_text(const pl_table *table,
                            void (*put)(const pl_table *, pl_buffer *))
{
    pl_buffer text = { 0 };
    put(table, &text);
    pl_status status = pl_buffer_status(&text);
    if (status == PL_OK)
        fputs(text.data, stdout);
    pl_buffer_close(&text);
    return status;
}

/* For programs: one document, with a column for the role. */
static pl_status print_all(const pl_traces *t, const profile_options *options)
{
    pl_table *table;
    PL_TRY(pl_traces_table(t, "profile", "Time by operator", &table));
    pl_status status =
        options->json ? print_json(table) : print_text(table, pl_table_csv);
    pl_table_free(table);
    return status;
}

/* For people: a table with a title for each role. */
static pl_status print_part(const pl_profile *profile, const char *title)
{
    pl_table *table;
    PL_TRY(pl_profile_table(&(pl_profile_part) { profile, NULL }, 1, "profile",
                            title, &table));
    printf("%s\n", title);
    pl_status status = print_text(table, pl_table_print);
    pl_table_free(table);
    return status;
}

static pl_status print_parts(const pl_traces *t)
{
    if (t->worker_count > 0)
        PL_TRY(print_part(t->workers, "Time of the workers, by operator"));
    if (t->worker_count > 0 && t->server_count > 0)
        putchar('\n');
    if (t->server_count > 0)
        PL_TRY(print_part(t->servers,
                          "Time of the parameter servers, by message"));
    return PL_OK;
}

static pl_status write_merged(const pl_traces *t, const char *path)
{
    pl_json *merged;
    char *text = NULL;
    PL_TRY(pl_profile_merge(t->list, t->count, &merged));
    pl_status status = pl_json_text(merged, 0, &text);
    if (status == PL_OK)
        status = pl_file_output(path, text, strlen(text));
    if (status == PL_OK)
        pl_log(PL_LOG_INFO, "%zu traces written to %s as one", t->count, path);
    pl_mem_free(text);
    pl_json_free(merged);
    return status;
}

static pl_status show(const char *run, const profile_options *options)
{
    pl_traces t;
    pl_status status;
    PL_TRY(pl_traces_read(&t, run));
    PL_TRY_OUT(status, options->json || options->csv ? print_all(&t, options)
                                                     : print_parts(&t));
    int64_t dropped =
        pl_profile_dropped(t.workers) + pl_profile_dropped(t.servers);
    if (dropped > 0)
        pl_log(PL_LOG_WARN,
               "%lld spans did not fit into the traces: profile fewer steps "
               "(--profile A:B)",
               (long long)dropped);
    if (options->merge != NULL)
        status = write_merged(&t, pl_output_path(options->merge));
out:
    pl_traces_close(&t);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    profile_options options;
    pl_words words;
    PL_TRY(
        pl_command_parse(&pl_cmd_profile, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status;
    if (words.count != 1)
        status = PL_FAIL(PL_USAGE, "expected: profile RUN");
    else if (options.json && options.csv)
        status =
            PL_FAIL(PL_USAGE, "--json and --csv: give one of them, not both");
    else
        status = show(words.list[0], &options);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_profile = {
    .name = "profile",
    .usage = "profile RUN [flags]",
    .help = "show where the time of a traced run went, by operator",
    .about =
        "Show where the time went in a run that was trained with --profile: "
        "each operator\nwith its calls, its time, and its speed relative to "
        "the limits of the machine.",
    .examples = {
        { "profile runs/p", "a run trained with --profile" },
        { "profile runs/p --csv", "for a spreadsheet" },
        { "profile runs/p --json", "for a program" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
