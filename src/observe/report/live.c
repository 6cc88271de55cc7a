/* live.c - answers the requests of the live page: the list of runs, one run,
 * its logs. No path leaves the runs folder. */
#include "observe/report/live.h"

#include "base/file/file.h"
#include "base/mem.h"
#include "observe/report/assets.h"
#include "observe/report/report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define HTML       "text/html; charset=utf-8"
#define RUN_PATH   "/run/"
#define LOG_BYTES  4096 /* of its end */
#define NOTE_BYTES 256
#define SILENT_S   10 /* tasks write every second */

/* When something in the folder, or in a folder of it, was last written; 0:
 * nothing is there. */
static pl_status last_written(const char *folder, int depth, time_t *out)
{
    char **names;
    size_t count;
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK)
        return status == PL_NOMEM ? status : PL_OK; /* not made yet */
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        struct stat info;
        PL_TRY_OUT(status, pl_file_join(&path, folder, names[i]));
        bool there = stat(path, &info) == 0;
        if (there && S_ISREG(info.st_mode) && info.st_mtime > *out)
            *out = info.st_mtime;
        if (there && S_ISDIR(info.st_mode) && depth > 0)
            status = last_written(path, depth - 1, out);
        pl_mem_free(path);
    }
out:
    pl_mem_free(names);
    return status;
}

static void describe_end(const pl_record *record, char note[NOTE_BYTES])
{
    double accuracy = pl_record_number(record, "test_accuracy");
    double loss = pl_record_number(record, "test_loss");
    int used = snprintf(note, NOTE_BYTES, "ended (%s) at step %.0f",
                        pl_record_stopped_by(record),
                        pl_record_number(record, "steps"));
    if (isfinite(loss) && used < NOTE_BYTES)
        used += snprintf(note + used, (size_t)(NOTE_BYTES - used),
                         ", test loss %.4f", loss);
    if (isfinite(accuracy) && used < NOTE_BYTES)
        snprintf(note + used, (size_t)(NOTE_BYTES - used),
                 ", test accuracy %.2f %%", 100 * accuracy);
}

/* "softmax: ended (epochs) at step 1200, ..." or how fresh its records are. */
static pl_status describe(const pl_record *record, char note[NOTE_BYTES])
{
    char state[NOTE_BYTES];
    time_t last = 0;
    if (record->ended)
        describe_end(record, state);
    else {
        PL_TRY(last_written(record->path, 2, &last));
        time_t age = time(NULL) - last;
        snprintf(state, sizeof state,
                 age > SILENT_S ? "not ended, silent for %lld s"
                                : "going on, last written %lld s ago",
                 (long long)(age > 0 ? age : 0));
    }
    snprintf(note, NOTE_BYTES, "%s: %.200s", record->run.model, state);
    return PL_OK;
}

/* What a URL's path may hold as it is; the rest goes as %XX. */
static void put_encoded(pl_buffer *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
    for (const char *c = text; *c != '\0'; c++)
        if (strchr(plain, *c) != NULL)
            pl_buffer_put(out, c, 1);
        else
            pl_buffer_format(out, "%%%02X", (unsigned)(unsigned char)*c);
}

static pl_status put_run(pl_page *page, const pl_record *record)
{
    char note[NOTE_BYTES];
    pl_buffer href = { 0 };
    PL_TRY(describe(record, note));
    pl_buffer_text(&href, RUN_PATH);
    put_encoded(&href, record->name);
    pl_status status = pl_buffer_status(&href);
    if (status == PL_OK)
        pl_page_link(page, href.data, record->name, note);
    pl_buffer_close(&href);
    return status;
}

static pl_status serve(pl_page *page, bool changing, pl_buffer *body)
{
    PL_TRY(pl_page_status(page));
    pl_page_served(page, changing, body);
    return PL_OK;
}

/* The newest first: names begin with the time. */
static pl_status list_runs(const char *folder, const pl_records *records,
                           pl_buffer *body)
{
    pl_page *page;
    char *title;
    PL_TRY(pl_mem_format(&title, "Runs in %s", folder));
    pl_status status = pl_page_new(&page, title);
    pl_mem_free(title);
    PL_TRY(status);
    for (size_t i = records->count; i-- > 0 && status == PL_OK;)
        status = put_run(page, &records->list[i]);
    for (size_t i = 0; i < pl_json_length(records->left_out); i++) {
        const char *why;
        if (pl_json_get_text(pl_json_at(records->left_out, i), "why", &why) ==
            PL_OK)
            pl_page_text(page, why);
    }
    if (status == PL_OK)
        status = serve(page, true, body);
    pl_page_free(page);
    return status;
}

/* The end of a log, from a whole line on; one that cannot be read, or is
 * empty, is not shown. */
static void put_log(pl_page *page, const char *name, const char *path)
{
    char text[LOG_BYTES + 1], *from = text;
    size_t bytes;
    int64_t first;
    if (pl_file_read_end(path, text, sizeof text, &bytes, &first) != PL_OK ||
        bytes == 0)
        return;
    char *line = memchr(text, '\n', bytes);
    if (first > 0 && line != NULL)
        from = line + 1;
    for (char *c = text; c < text + bytes; c++)
        if (*c == '\0')
            *c = '?';
    pl_page_fold(page, name);
    pl_page_lines(page, from);
    pl_page_unfold(page);
}

/* The ends of the logs. */
static pl_status put_logs(pl_page *page, const pl_record *record)
{
    char *folder, **names;
    size_t count;
    PL_TRY(pl_file_join(&folder, record->path, "log"));
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK) {
        pl_mem_free(folder);
        return status == PL_NOMEM ? status : PL_OK;
    }
    pl_page_heading(page, "Logs");
    for (size_t i = 0; i < count && status == PL_OK; i++) {
        char *path;
        PL_TRY_OUT(status, pl_file_join(&path, folder, names[i]));
        put_log(page, names[i], path);
        pl_mem_free(path);
    }
out:
    pl_mem_free(names);
    pl_mem_free(folder);
    return status;
}

static pl_status show_run(const pl_record *record, pl_buffer *body)
{
    char note[NOTE_BYTES];
    pl_records alone;
    pl_page *page;
    PL_TRY(describe(record, note));
    PL_TRY(pl_records_init(&alone, &record->path, 1));
    pl_status status = PL_FAIL(PL_NOTFOUND, "%s cannot be read", record->path);
    if (alone.count == 1)
        status = pl_report_make(&page, &alone, record->name);
    if (status == PL_OK) {
        pl_page_note(page, note);
        status = put_logs(page, record);
        pl_page_link(page, "/", "All runs", "");
        if (status == PL_OK)
            status = serve(page, !record->ended, body);
        pl_page_free(page);
    }
    pl_records_close(&alone);
    return status;
}

static pl_status no_page(const char *path)
{
    return PL_FAIL(PL_NOTFOUND, "there is no page %s", path);
}

static pl_status show(const char *folder, const char *path,
                      const pl_records *records, pl_buffer *body)
{
    size_t prefix = strlen(RUN_PATH);
    if (strcmp(path, "/") == 0)
        return list_runs(folder, records, body);
    for (size_t i = 0; i < records->count; i++)
        if (strncmp(path, RUN_PATH, prefix) == 0 &&
            strcmp(path + prefix, records->list[i].name) == 0)
            return show_run(&records->list[i], body);
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
        { "/chart.js", "text/javascript; charset=utf-8", pl_asset_chart },
    };
    for (size_t i = 0; i < sizeof assets / sizeof *assets; i++)
        if (strcmp(path, assets[i].path) == 0) {
            *asset = assets[i].get();
            *type = assets[i].type;
            return true;
        }
    return false;
}

pl_status pl_live_page(void *folder, const char *path, pl_buffer *body,
                       const char **type)
{
    pl_asset asset;
    pl_records records;
    char *const paths[] = { folder };
    if (is_asset(path, &asset, type)) {
        pl_buffer_put(body, asset.data, asset.bytes);
        return PL_OK;
    }
    *type = HTML;
    PL_TRY(pl_records_init(&records, paths, 1));
    pl_status status = show(folder, path, &records, body);
    pl_records_close(&records);
    return status;
}
