/* live_sweep.c - the sweeps of the list: computes the progress of a sweep, and
 * its expected end, from its own record. */
#include "observe/live/live_priv.h"

#include "base/text/duration.h"
#include "base/text/quote.h"
#include "observe/runs/experiment.h"

#include <math.h>
#include <string.h>

/* The cells of a sweep by their state. */
typedef struct sweep_count {
    size_t all, done, running, failed;
    double seconds; /* of finished ones */
} sweep_count;

static void count_cell(sweep_count *count, const pl_json *cell)
{
    const char *state;
    double seconds;
    if (pl_json_get_text(cell, "state", &state) != PL_OK)
        return;
    count->all++;
    count->running += strcmp(state, "running") == 0;
    count->failed += strcmp(state, "failed") == 0;
    if (strcmp(state, "done") != 0)
        return;
    count->done++;
    if (pl_json_has(cell, "seconds") &&
        pl_json_get_real(cell, "seconds", &seconds) == PL_OK)
        count->seconds += seconds;
}

static sweep_count count_cells(const pl_experiment *sweep)
{
    sweep_count count = { 0 };
    const pl_json *cells;
    if (!pl_json_has(sweep->own_json, "cells") ||
        pl_json_get_array(sweep->own_json, "cells", &cells) != PL_OK)
        return count;
    for (size_t i = 0; i < pl_json_length(cells); i++)
        count_cell(&count, pl_json_at(cells, i));
    return count;
}

bool pl_live_sweep_goes_on(const pl_experiment *sweep)
{
    sweep_count count = count_cells(sweep);
    return count.done + count.failed < count.all;
}

static void put_name(pl_buffer *out, const pl_record *record)
{
    pl_buffer_text(out, "<tr><td class=text><a href=\"" PL_LIVE_SWEEP);
    pl_live_encode(out, pl_experiment_name(record));
    pl_buffer_text(out, "\">");
    pl_quote_html(out, pl_experiment_name(record));
    pl_buffer_text(out, "</a>");
}

/* The question of the sweep, if set. */
static void put_title(pl_buffer *out, const pl_record *record)
{
    char title[256];
    pl_experiment_title(record, title, sizeof title);
    if (strcmp(title, pl_experiment_name(record)) != 0)
        pl_quote_html(out, title);
}

static void put_sweep(pl_buffer *out, const pl_record *record)
{
    sweep_count count = count_cells(record->experiment);
    size_t left = count.all - count.done - count.failed;
    char text[PL_DURATION];
    put_name(out, record);
    pl_buffer_format(out,
                     "<td data-sort=%zu><progress max=%zu value=%zu "
                     "aria-label=\"%zu of %zu runs\"></progress> %zu of %zu"
                     "<td>%zu<td>%zu<td>",
                     count.done, count.all, count.done + count.failed,
                     count.done, count.all, count.done, count.all,
                     count.running, count.failed);
    if (left > 0 && count.done > 0)
        pl_buffer_text(out, pl_duration_text((double)left * count.seconds /
                                                 (double)count.done,
                                             text));
    pl_buffer_text(out, "<td><button type=button data-sweep=\"");
    pl_quote_html(out, pl_experiment_name(record));
    pl_buffer_text(out, "\">Show runs</button><td class=text>");
    put_title(out, record);
    pl_buffer_text(out, "</tr>\n");
}

void pl_live_sweeps(pl_buffer *out, const pl_records *records)
{
    const pl_experiment *last = NULL;
    bool any = false;
    for (size_t i = 0; i < records->count; i++) {
        const pl_record *record = &records->list[i];
        if (record->experiment == NULL || record->experiment == last)
            continue; /* runs of a sweep are consecutive */
        if (!any)
            pl_buffer_text(
                out,
                "<div class=wide><table id=sweeps><caption>Sweeps</caption>"
                "<thead><tr><th class=text>sweep<th>runs done<th>running"
                "<th>failed<th>left<th class=plain><th class=text>about"
                "</thead><tbody>\n");
        any = true;
        last = record->experiment;
        put_sweep(out, record);
    }
    if (any)
        pl_buffer_text(out, "</tbody></table></div>\n");
}
