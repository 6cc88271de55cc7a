/* live_findings.c - sentences about one run, while it goes on or after: what
 * happened to its tasks, whether it still learns, and which of them wait for
 * which.  Findings that compare runs are observe/findings. */
#include "observe/live/live_priv.h"

#include "base/text/quote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVENTS_MOST 4    /* losses and rollbacks that are told one by one */
#define GROWN       4.0  /* times the first loss: it diverges */
#define WORSE       0.01 /* below the best test result: said */
#define WAITS       0.3  /* share of the time that is worth a word */
#define APART       0.2  /* between the shares of two workers */

static void begin(pl_buffer *out)
{
    pl_buffer_text(out, "<li>");
}

static void end(pl_buffer *out)
{
    pl_buffer_text(out, "</li>\n");
}

/* --- what happened ------------------------------------------------------ */

static void put_event(pl_buffer *out, const pl_run_event *event)
{
    begin(out);
    if (event->kind == PL_EVENT_ROLLBACK) {
        pl_buffer_format(out,
                         "The job rolled back from step %lld to step "
                         "%lld.",
                         (long long)event->from, (long long)event->step);
    } else {
        pl_quote_html(out, event->task);
        pl_buffer_text(out, " was lost");
        if (event->step >= 0)
            pl_buffer_format(out, " at step %lld", (long long)event->step);
        if (event->text[0] != '\0') {
            pl_buffer_text(out, ": it ");
            pl_quote_html(out, event->text);
        }
        pl_buffer_text(out, ".");
    }
    end(out);
}

/* The last ones; of more their number. */
static void put_events(pl_buffer *out, const pl_run_events *events)
{
    size_t count = 0, told = 0;
    for (size_t i = 0; i < events->count; i++)
        count += events->list[i].kind == PL_EVENT_LOST ||
                 events->list[i].kind == PL_EVENT_ROLLBACK;
    if (count > EVENTS_MOST) {
        begin(out);
        pl_buffer_format(out,
                         "Tasks were lost, or the job was rolled back, %zu "
                         "times; most recently:",
                         count);
        end(out);
    }
    for (size_t i = 0; i < events->count; i++) {
        const pl_run_event *event = &events->list[i];
        if (event->kind != PL_EVENT_LOST && event->kind != PL_EVENT_ROLLBACK)
            continue;
        if (++told + EVENTS_MOST > count)
            put_event(out, event);
    }
}

/* --- whether it learns -------------------------------------------------- */

static void put_loss(pl_buffer *out, const pl_curves *curves)
{
    const pl_curve *loss = pl_curves_find(curves, "loss");
    if (loss == NULL || loss->count < 2)
        return;
    double first = loss->points[0].y, last = loss->points[loss->count - 1].y;
    if (!(first > 0) || !(last > GROWN * first))
        return;
    begin(out);
    pl_buffer_format(out,
                     "The training diverges: its loss has grown from %.4g to "
                     "%.4g. Lower --lr.",
                     first, last);
    end(out);
}

static void put_test(pl_buffer *out, const pl_curves *curves)
{
    const pl_curve *test = pl_curves_find(curves, "test_accuracy");
    if (test == NULL || test->count < 2)
        return;
    const pl_point *best = test->points, *last = &test->points[test->count - 1];
    for (const pl_point *p = test->points; p < last; p++)
        best = p->y > best->y ? p : best;
    if (best->y - last->y < WORSE)
        return;
    begin(out);
    pl_buffer_format(out,
                     "The test accuracy was best at step %.0f, %.2f %%, and is "
                     "%.2f %% now. --keep-best keeps the best checkpoint.",
                     best->x, 100 * best->y, 100 * last->y);
    end(out);
}

/* --- waiting ------------------------------------------------------------ */

/* The worker that waits least is the one that the others wait for. */
static void put_waiting(pl_buffer *out, const pl_live_tasks *tasks)
{
    const pl_live_task *least = NULL, *most = NULL;
    for (size_t i = 0; i < tasks->count; i++) {
        const pl_live_task *task = &tasks->list[i];
        if (task->lost || !pl_live_task_trains(task) || isnan(task->waiting))
            continue;
        if (least == NULL || task->waiting < least->waiting)
            least = task;
        if (most == NULL || task->waiting > most->waiting)
            most = task;
    }
    if (most == NULL || most->waiting < WAITS)
        return;
    begin(out);
    if (most->waiting - least->waiting > APART) {
        pl_quote_html(out, most->name);
        pl_buffer_format(out, " waits %.0f %% of the time, ",
                         100 * most->waiting);
        pl_quote_html(out, least->name);
        pl_buffer_format(out, " %.0f %%: the others wait for it.",
                         100 * least->waiting);
    } else {
        pl_buffer_format(out,
                         "The workers wait %.0f to %.0f %% of the time for "
                         "gradients or parameters.",
                         100 * least->waiting, 100 * most->waiting);
    }
    end(out);
}

void pl_live_findings(pl_buffer *out, const pl_live_run *run)
{
    pl_buffer_text(out, "<ul class=findings>");
    put_loss(out, &run->curves);
    put_test(out, &run->curves);
    if (!run->record->ended) /* else the summary tells what limited it */
        put_waiting(out, &run->tasks);
    put_events(out, &run->tasks.events);
    pl_buffer_text(out, "</ul>\n");
}
