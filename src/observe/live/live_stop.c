/* live_stop.c - stopping a run from its page: decides when there is a button,
 * and what is shown if the run cannot be stopped from here. */
#include "observe/live/live_priv.h"

#include "base/text/quote.h"

#include <string.h>
#include <unistd.h>

/* The host where the run was started, if it is another one; NULL: this host, or
 * not known. */
static const char *other_host(const pl_record *record)
{
    const char *host = record->run.machine.host;
    char own[256] = "";
    gethostname(own, sizeof own - 1);
    return host == NULL || strcmp(host, own) == 0 ? NULL : host;
}

void pl_live_stop_button(pl_buffer *out, const pl_live *live,
                         const pl_record *record)
{
    const char *host = other_host(record);
    if (live->can_stop != NULL && live->can_stop(record->path)) {
        pl_buffer_text(out,
                       "<div><button type=button data-stop=\"" PL_LIVE_STOP);
        pl_live_encode(out, record->name);
        pl_buffer_text(out, "\">Stop</button></div>\n");
    } else if (host != NULL) {
        pl_buffer_text(out, "<div><b>");
        pl_quote_html(out, host);
        pl_buffer_text(out,
                       "</b> <span>where it can be stopped</span></div>\n");
    }
}

static pl_status stop_run(const pl_live *live, const pl_record *record)
{
    const char *host = other_host(record);
    if (record->ended)
        return PL_FAIL(PL_CLOSED, "%s has already ended (%s)", record->name,
                       pl_record_stopped_by(record));
    pl_status status = live->stop(record->path);
    if (status != PL_NOTFOUND)
        return status;
    if (host != NULL)
        return PL_FAIL(PL_CLOSED,
                       "%s was started on %s, not on this host: stop it there",
                       record->name, host);
    return PL_FAIL(PL_CLOSED,
                   "no process of this host runs %s: it ended without a "
                   "summary, or was started by hand on another host",
                   record->name);
}

pl_status pl_live_post(void *context, const char *path, pl_buffer *body,
                       const char **type)
{
    const pl_live *live = context;
    char *const paths[] = { live->folder };
    size_t length = strlen(PL_LIVE_STOP);
    pl_records records;
    if (live->stop == NULL || strncmp(path, PL_LIVE_STOP, length) != 0)
        return PL_FAIL(PL_NOTFOUND, "there is no action %s", path);
    PL_TRY(pl_records_init(&records, paths, 1));
    const pl_record *record = pl_live_find(&records, path + length);
    pl_status status =
        record != NULL
            ? stop_run(live, record)
            : PL_FAIL(PL_NOTFOUND, "there is no run %s", path + length);
    if (status == PL_OK) {
        *type = "text/plain; charset=utf-8";
        pl_buffer_format(body, "%s saves and ends\n", record->name);
    }
    pl_records_close(&records);
    return status;
}
