/* live.c - replies to the requests of the live page: the list of runs, one run,
 * several of them. No path leaves the runs folder. */
#include "observe/live/live.h"

#include "base/clock.h"
#include "base/mem.h"
#include "observe/live/live_priv.h"
#include "observe/report/assets.h"
#include "observe/report/page.h"
#include "observe/report/report.h"
#include "observe/runs/experiment.h"

#include <stdio.h>
#include <string.h>

#define HTML           "text/html; charset=utf-8"
#define OVERLAY_MOST   64 /* runs */
#define AGAIN_LEAST_MS 2000
#define AGAIN_MOST_MS  20000
/* Share of a processor that a watched page may use: a job on this host hardly
 * notices it. */
#define WATCH_SHARE 0.004

/* State of one request. */
typedef struct request {
    const pl_live *live;
    const pl_records *records; /* all runs in the folder */
    int64_t begun_ns;          /* processor time of the thread at the start */
} request;

/* Characters that a URL's path may contain are kept; others become %XX. */
void pl_live_encode(pl_buffer *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (const char *c = text; *c != '\0'; c++)
        if (strchr(plain, *c) != NULL)
            pl_buffer_put(out, c, 1);
        else
            pl_buffer_format(out, "%%%02X", (unsigned)(unsigned char)*c);
}

/* The longer a page takes, the longer the interval to its next request. */
static int64_t again_in_ms(const request *asked)
{
    double spent_ms = (double)(pl_clock_thread_ns() - asked->begun_ns) / 1e6;
    double again_ms = spent_ms / WATCH_SHARE;
    return again_ms < AGAIN_LEAST_MS  ? AGAIN_LEAST_MS
           : again_ms > AGAIN_MOST_MS ? AGAIN_MOST_MS
                                      : (int64_t)again_ms;
}

static pl_status serve(const request *asked, pl_page *page, bool changing,
                       pl_buffer *body)
{
    PL_TRY(pl_page_status(page));
    pl_page_served(page, changing ? again_in_ms(asked) : 0, body);
    return PL_OK;
}

static pl_status list_runs(const request *asked, pl_buffer *body)
{
    const pl_records *records = asked->records;
    pl_page *page;
    char *title;
    PL_TRY(pl_mem_format(&title, "Runs in %s", asked->live->folder));
    pl_status status = pl_page_new(&page, title);
    pl_mem_free(title);
    PL_TRY(status);
    pl_buffer table = { 0 };
    pl_live_sweeps(&table, records);
    status = pl_live_table(&table, records);
    if (status == PL_OK)
        pl_page_part(page, &table);
    pl_buffer_close(&table);
    for (size_t i = 0; i < pl_json_length(records->left_out); i++) {
        const char *why;
        if (pl_json_get_text(pl_json_at(records->left_out, i), "why", &why) ==
            PL_OK)
            pl_page_text(page, why);
    }
    if (status == PL_OK)
        status = serve(asked, page, true, body);
    pl_page_free(page);
    return status;
}

/* The header above the figures of a run. */
static pl_status put_header(pl_page *page, const pl_live *live,
                            pl_live_run *run)
{
    pl_buffer part = { 0 };
    pl_live_header(&part, live, run);
    pl_live_findings(&part, run);
    pl_live_tasks_table(&part, &run->tasks);
    pl_status status = pl_buffer_status(&part);
    if (status == PL_OK)
        pl_page_head_part(page, &part);
    pl_buffer_close(&part);
    return status;
}

/* The state of a run and its report; its records are read once. */
static pl_status report_run(pl_page **out, const request *asked,
                            const pl_records *alone, const pl_record *record)
{
    pl_runs_model model;
    pl_live_run run;
    PL_TRY(pl_model_init(&model, alone));
    pl_status status = pl_report_model(out, &model, record->name);
    if (status == PL_OK) {
        pl_page_back(*out, "/", "All runs");
        status = pl_live_run_take(&run, record, &model.runs[0]);
        if (status == PL_OK) {
            status = put_header(*out, asked->live, &run);
            pl_live_run_close(&run);
        }
        if (status != PL_OK)
            pl_page_free(*out);
    }
    pl_model_close(&model);
    return status;
}

static pl_status show_run(const request *asked, const pl_record *record,
                          pl_buffer *body)
{
    pl_records alone;
    pl_page *page;
    PL_TRY(pl_records_init(&alone, &record->path, 1));
    pl_status status =
        alone.count == 1
            ? report_run(&page, asked, &alone, record)
            : PL_FAIL(PL_NOTFOUND, "%s cannot be read", record->name);
    if (status == PL_OK) {
        status = pl_live_logs(page, record);
        if (status == PL_OK)
            status = serve(asked, page, !record->ended, body);
        pl_page_free(page);
    }
    pl_records_close(&alone);
    return status;
}

/* A report of these runs; the caller owns both. */
static pl_status report_of(pl_page **out, pl_records *chosen,
                           char *const *paths, size_t count, const char *title)
{
    PL_TRY(pl_records_init(chosen, paths, count));
    pl_status status = PL_FAIL(PL_NOTFOUND, "%s cannot be read", title);
    if (chosen->count == count)
        status = count > 1 ? pl_report_overlay(out, chosen, title)
                           : pl_report_make(out, chosen, title);
    if (status != PL_OK)
        pl_records_close(chosen);
    return status;
}

const pl_record *pl_live_find(const pl_records *records, const char *name)
{
    for (size_t i = 0; i < records->count; i++)
        if (strcmp(records->list[i].name, name) == 0)
            return &records->list[i];
    return NULL;
}

const pl_record *pl_live_first(const pl_records *records, const char *text,
                               char mark)
{
    const pl_record *found = NULL;
    size_t most = 0;
    for (size_t i = 0; i < records->count; i++) {
        size_t length = strlen(records->list[i].name);
        if (length > most &&
            strncmp(records->list[i].name, text, length) == 0 &&
            (text[length] == mark || text[length] == '\0')) {
            found = &records->list[i];
            most = length;
        }
    }
    return found;
}

/* Several runs in one report: "a:b:c". */
static pl_status show_overlay(const request *asked, const char *names,
                              pl_buffer *body)
{
    const pl_records *records = asked->records;
    char *paths[OVERLAY_MOST];
    size_t count = 0;
    bool changing = false;
    pl_records chosen;
    pl_page *page;
    for (const char *name = names; *name != '\0';) {
        const pl_record *record = pl_live_first(records, name, ':');
        if (record == NULL || count == OVERLAY_MOST)
            return PL_FAIL(PL_NOTFOUND,
                           "overlay: up to %d runs of the list are expected, "
                           "found \"%.80s\"",
                           OVERLAY_MOST, name);
        size_t length = strlen(record->name);
        paths[count++] = record->path;
        changing = changing || !record->ended;
        name += length + (name[length] == ':');
    }
    if (count == 0)
        return PL_FAIL(PL_NOTFOUND, "overlay: no runs are named");
    PL_TRY(report_of(&page, &chosen, paths, count, "Runs side by side"));
    pl_page_back(page, "/", "All runs");
    pl_status status = serve(asked, page, changing, body);
    pl_page_free(page);
    pl_records_close(&chosen);
    return status;
}

/* The runs of a sweep in one report. */
static pl_status show_sweep(const request *asked, const char *name,
                            pl_buffer *body)
{
    const pl_records *records = asked->records;
    char **paths, title[256] = "";
    size_t count = 0;
    bool changing = false;
    pl_records chosen;
    pl_page *page;
    PL_TRY(PL_NEW(paths, records->count + 1));
    for (size_t i = 0; i < records->count; i++) {
        const pl_record *record = &records->list[i];
        if (record->experiment == NULL ||
            strcmp(pl_experiment_name(record), name) != 0)
            continue;
        pl_experiment_title(record, title, sizeof title);
        paths[count++] = record->path;
        changing = pl_live_sweep_goes_on(record->experiment);
    }
    pl_status status = count > 0
                           ? pl_records_init(&chosen, paths, count)
                           : PL_FAIL(PL_NOTFOUND, "there is no sweep %s", name);
    pl_mem_free(paths);
    PL_TRY(status);
    status = pl_report_make(&page, &chosen, title);
    if (status == PL_OK) {
        pl_page_back(page, "/", "All runs");
        status = serve(asked, page, changing, body);
        pl_page_free(page);
    }
    pl_records_close(&chosen);
    return status;
}

static pl_status no_page(const char *path)
{
    return PL_FAIL(PL_NOTFOUND, "there is no page %s", path);
}

static pl_status show(const request *asked, const char *path, pl_buffer *body)
{
    size_t run = strlen(PL_LIVE_RUN), overlay = strlen(PL_LIVE_OVERLAY);
    size_t sweep = strlen(PL_LIVE_SWEEP);
    if (strcmp(path, "/") == 0)
        return list_runs(asked, body);
    if (strncmp(path, PL_LIVE_OVERLAY, overlay) == 0)
        return show_overlay(asked, path + overlay, body);
    if (strncmp(path, PL_LIVE_SWEEP, sweep) == 0)
        return show_sweep(asked, path + sweep, body);
    const pl_record *record = strncmp(path, PL_LIVE_RUN, run) == 0
                                  ? pl_live_find(asked->records, path + run)
                                  : NULL;
    if (record != NULL)
        return show_run(asked, record, body);
    return no_page(path);
}

static bool is_asset(const char *path, pl_asset *asset, const char **type)
{
    const struct {
        const char *path, *type;
        pl_asset (*get)(void);
    } assets[] = {
        { "/page.css", "text/css; charset=utf-8", pl_asset_style },
        { "/page.js", "text/javascript; charset=utf-8", pl_asset_script },
        { "/live.js", "text/javascript; charset=utf-8", pl_asset_live },
        { "/figures.js", "text/javascript; charset=utf-8", pl_asset_figures },
    };
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++)
        if (strcmp(path, assets[i].path) == 0) {
            *asset = assets[i].get();
            *type = assets[i].type;
            return true;
        }
    return false;
}

pl_status pl_live_page(void *context, const char *path, pl_buffer *body,
                       const char **type)
{
    const pl_live *live = context;
    int64_t begun_ns = pl_clock_thread_ns();
    pl_asset asset;
    pl_records records;
    char *const paths[] = { live->folder };
    if (is_asset(path, &asset, type)) {
        pl_buffer_put(body, asset.data, asset.bytes);
        return PL_OK;
    }
    *type = HTML;
    PL_TRY(pl_records_init(&records, paths, 1));
    size_t log = strlen(PL_LIVE_LOG);
    pl_status status;
    if (strncmp(path, PL_LIVE_LOG, log) == 0)
        status = pl_live_log(&records, path + log, body, type);
    else
        status = show(&(request) { live, &records, begun_ns }, path, body);
    pl_records_close(&records);
    return status;
}
