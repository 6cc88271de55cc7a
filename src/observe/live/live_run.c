/* live_run.c - the header of a run's page: its main numbers. */
#include "observe/live/live_priv.h"

#include "base/text/duration.h"
#include "base/text/quote.h"

#include <math.h>
#include <stdio.h>

static void put(pl_buffer *out, const char *label, const char *value)
{
    pl_buffer_text(out, "<div><b>");
    pl_quote_html(out, value);
    pl_buffer_format(out, "</b> <span>%s</span></div>\n", label);
}

/* "N of M" if M is known, with a bar. */
static void put_step(pl_buffer *out, double step, double all)
{
    char text[PL_LIVE_COUNT];
    pl_buffer_format(out, "<div><b>%s", pl_live_count(step, text));
    if (all > 0)
        pl_buffer_format(out, "/%s", pl_live_count(all, text));
    pl_buffer_text(out, "</b> <span>step</span>");
    if (all > 0)
        pl_buffer_format(out,
                         "<progress max=%.0f value=%.0f aria-label=\"steps "
                         "done\"></progress>",
                         all, step);
    pl_buffer_text(out, "</div>\n");
}

void pl_live_header(pl_buffer *out, const pl_live *live, const pl_live_run *run)
{
    int64_t all = run->record->run.end_step;
    char text[PL_LIVE_COUNT];
    pl_buffer_format(out, "<div class=\"numbers%s\">\n",
                     run->running ? " running" : "");
    put(out, "state", run->state);
    if (isfinite(run->step))
        put_step(out, run->step, (double)all);
    if (isfinite(run->left_s)) {
        char left[PL_DURATION];
        put(out, "left", pl_duration_text(run->left_s, left));
    }
    if (isfinite(run->loss)) {
        snprintf(text, sizeof text, "%.4f", run->loss);
        put(out, "loss", text);
    }
    if (isfinite(run->test))
        put(out, run->measure->label,
            pl_live_test_text(run->measure, run->test, text));
    if (isfinite(run->rate))
        put(out, "examples/s", pl_live_count(run->rate, text));
    if (!run->record->ended)
        pl_live_stop_button(out, live, run->record);
    pl_buffer_text(out, "</div>\n");
}
