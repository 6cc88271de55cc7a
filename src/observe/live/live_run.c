/* live_run.c - the head of a run's page: its numbers, large. */
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

/* A number with so many digits behind the point; one that is not known is left
 * out. */
static void put_number(pl_buffer *out, const char *label, int digits,
                       double value, const char *unit)
{
    char text[64];
    if (!isfinite(value))
        return;
    snprintf(text, sizeof text, "%.*f%s", digits, value, unit);
    put(out, label, text);
}

void pl_live_header(pl_buffer *out, const pl_live *live, const pl_live_run *run)
{
    int64_t all = run->record->run.end_step;
    char text[64];
    pl_buffer_text(out, "<div class=numbers>\n");
    put(out, "state", run->state);
    if (isfinite(run->step)) {
        snprintf(text, sizeof text, all > 0 ? "%.0f/%lld" : "%.0f", run->step,
                 (long long)all);
        put(out, "step", text);
    }
    if (isfinite(run->left_s)) {
        char left[PL_DURATION];
        put(out, "left", pl_duration_text(run->left_s, left));
    }
    put_number(out, "loss", 4, run->loss, "");
    put_number(out, "test accuracy", 2, 100 * run->accuracy, " %");
    put_number(out, "examples/s", 0, run->rate, "");
    if (!run->record->ended)
        pl_live_stop_button(out, live, run->record);
    pl_buffer_text(out, "</div>\n");
}
