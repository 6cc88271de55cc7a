/* operators.c - a sentence about the operators of traced runs. The only finding
 * that reads files; unreadable traces are skipped, since the table of operators
 * reports them. */
#include "observe/findings/findings_priv.h"

#include "observe/runs/traces.h"

#define NAMED_MOST 3
#define NAMED_FROM 0.05 /* share of the time */

static void put_operators(const pl_records *part, size_t run,
                          const pl_traces *traces, pl_buffer *out)
{
    pl_profile_share list[NAMED_MOST];
    size_t count = pl_profile_longest(traces->workers, list, NAMED_MOST);
    if (count == 0)
        return;
    if (part->count > 1)
        pl_buffer_format(out, "%s: of", part->list[run].name);
    else
        pl_buffer_text(out, "Of");
    pl_buffer_text(out, " the workers' time in operators");
    for (size_t i = 0; i < count; i++)
        if (i == 0 || list[i].share >= NAMED_FROM)
            pl_buffer_format(out, "%s %s takes %.0f %%", i > 0 ? "," : "",
                             list[i].name, 100 * list[i].share);
    pl_buffer_text(out, ".\n");
}

pl_status pl_findings_operators(const pl_records *part, pl_buffer *out)
{
    for (size_t i = 0; part->count <= PL_FINDING_LINES && i < part->count;
         i++) {
        pl_traces traces;
        pl_status status = pl_traces_read(&traces, part->list[i].path);
        if (status == PL_NOMEM)
            return status;
        if (status != PL_OK)
            continue;
        put_operators(part, i, &traces, out);
        pl_traces_close(&traces);
    }
    return pl_buffer_status(out);
}
