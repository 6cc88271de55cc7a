/* live_log.c - the logs of a run: an element for each on its page, and the end
 * of one, which the page requests while the log is open. */
#include "observe/live/live_priv.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/text/quote.h"

#include <string.h>

#define LOG_BYTES ((size_t)64 << 10) /* of its end; live.js mentions it */

/* The files in the run's log folder; none if there is no such folder. */
static pl_status list_logs(const pl_record *record, char **folder,
                           char ***names, size_t *count)
{
    *names = NULL;
    *count = 0;
    PL_TRY(pl_file_join(folder, record->path, "log"));
    pl_status status = pl_file_list(names, count, *folder);
    if (status == PL_NOMEM)
        pl_mem_free(*folder);
    return status == PL_NOMEM ? status : PL_OK;
}

static void put_log(pl_buffer *out, const char *run, const char *name)
{
    pl_buffer_text(out, "<details class=log data-log=\"" PL_LIVE_LOG);
    pl_live_encode(out, run);
    pl_buffer_text(out, "/");
    pl_live_encode(out, name);
    pl_buffer_text(out, "\"><summary>");
    pl_quote_html(out, name);
    pl_buffer_text(out, "</summary><pre tabindex=0></pre></details>\n");
}

pl_status pl_live_logs(pl_page *page, const pl_record *record)
{
    char *folder, **names;
    size_t count;
    pl_buffer part = { 0 };
    PL_TRY(list_logs(record, &folder, &names, &count));
    if (count > 0)
        pl_page_heading(page, "Logs");
    for (size_t i = 0; i < count; i++)
        put_log(&part, record->name, names[i]);
    pl_status status = pl_buffer_status(&part);
    if (status == PL_OK)
        pl_page_part(page, &part);
    pl_buffer_close(&part);
    pl_mem_free(names);
    pl_mem_free(folder);
    return status;
}

/* Begins with a whole line. */
static pl_status read_log(pl_buffer *body, const char *path)
{
    char *text;
    size_t bytes;
    int64_t first;
    PL_TRY(PL_NEW(text, LOG_BYTES + 1));
    pl_status status =
        pl_file_read_end(path, text, LOG_BYTES + 1, &bytes, &first);
    if (status == PL_OK) {
        const char *line = memchr(text, '\n', bytes), *from = text;
        if (first > 0 && line != NULL)
            from = line + 1;
        pl_buffer_put(body, from, bytes - (size_t)(from - text));
    }
    pl_mem_free(text);
    return status;
}

pl_status pl_live_log(const pl_records *records, const char *path,
                      pl_buffer *body, const char **type)
{
    const pl_record *record = pl_live_first(records, path, '/');
    char *folder, *log, **names;
    size_t count, i = 0;
    if (record == NULL || path[strlen(record->name)] != '/')
        return PL_FAIL(PL_NOTFOUND, "there is no log %s", path);
    const char *name = path + strlen(record->name) + 1;
    PL_TRY(list_logs(record, &folder, &names, &count));
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    pl_status status = i < count
                           ? pl_file_join(&log, folder, name)
                           : PL_FAIL(PL_NOTFOUND, "there is no log %s", path);
    if (status == PL_OK) {
        *type = "text/plain; charset=utf-8";
        status = read_log(body, log);
        pl_mem_free(log);
    }
    pl_mem_free(names);
    pl_mem_free(folder);
    return status;
}
