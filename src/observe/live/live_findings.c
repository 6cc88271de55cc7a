/* live_findings.c - sentences about one run, during or after it: events of its
 * tasks, whether it still learns, and which tasks wait for which. Findings that
 * compare runs are in observe/findings. */
#include "observe/live/live_priv.h"

#include "base/text/quote.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EVENTS_MOST 4    /* losses and rollbacks listed individually */
#define GROWN       4.0  /* factor of the first loss: the run diverges */
#define WORSE       0.01 /* reported below the best accuracy or AUC */
#define LARGER      0.1  /* reported above the least error, as a share of it */
#define WAITS       0.3  /* share of the time that is worth reporting */
#define APART       0.2  /* between the shares of two workers */

static void begin(pl_buffer *out)
{
    pl_buffer_text(out, "<li>");
}

static void end(pl_buffer *out)
{
    pl_buffer_text(out, "</li>\n");
}

/* --- events ------------------------------------------------------------- */

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

/* List the last ones; if there are more, their number. */
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

/* --- learning ----------------------------------------------------------- */

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

static void put_test(pl_buffer *out, const pl_live_run *run)
{
    const pl_metric *measure = run->measure;
    const pl_curve *test = pl_curves_find(&run->curves, measure->key);
    char then[PL_LIVE_COUNT], now[PL_LIVE_COUNT];
    if (test == NULL || test->count < 2)
        return;
    double sign = pl_live_less_is_better(measure) ? -1 : 1;
    const pl_point *best = test->points, *last = &test->points[test->count - 1];
    for (const pl_point *p = test->points; p < last; p++)
        best = sign * p->y > sign * best->y ? p : best;
    double lost = sign * (best->y - last->y);
    if (lost < (sign > 0 ? WORSE : LARGER * best->y) || !(lost > 0))
        return;
    begin(out);
    pl_buffer_format(out,
                     "The %s was best at step %.0f, %s, and is %s now. "
                     "--keep-best keeps the best checkpoint.",
                     measure->label, best->x,
                     pl_live_test_text(measure, best->y, then),
                     pl_live_test_text(measure, last->y, now));
    end(out);
}

/* --- waiting ------------------------------------------------------------ */

typedef struct waits {
    const pl_live_task *least, *most; /* NULL: no worker reported */
} waits;

static waits find_waits(const pl_live_tasks *tasks)
{
    waits found = { 0 };
    for (size_t i = 0; i < tasks->count; i++) {
        const pl_live_task *task = &tasks->list[i];
        if (task->lost || !pl_live_task_trains(task) || isnan(task->waiting))
            continue;
        if (found.least == NULL || task->waiting < found.least->waiting)
            found.least = task;
        if (found.most == NULL || task->waiting > found.most->waiting)
            found.most = task;
    }
    return found;
}

static bool matters(waits found)
{
    return found.most != NULL && found.most->waiting >= WAITS;
}

/* Do the others wait for the worker that waits least? */
static bool wait_for_one(waits found)
{
    return found.most->waiting - found.least->waiting > APART;
}

static void put_waiting(pl_buffer *out, const pl_live_tasks *tasks)
{
    waits found = find_waits(tasks);
    if (!matters(found))
        return;
    begin(out);
    if (wait_for_one(found)) {
        pl_quote_html(out, found.most->name);
        pl_buffer_format(out, " waits %.0f %% of the time, ",
                         100 * found.most->waiting);
        pl_quote_html(out, found.least->name);
        pl_buffer_format(out, " %.0f %%: the others wait for it.",
                         100 * found.least->waiting);
    } else {
        pl_buffer_format(out,
                         "The workers wait %.0f to %.0f %% of the time for "
                         "gradients or parameters.",
                         100 * found.least->waiting, 100 * found.most->waiting);
    }
    end(out);
}

void pl_live_waits_text(const pl_live_tasks *tasks, char text[PL_LIVE_WAITS])
{
    waits found = find_waits(tasks);
    text[0] = '\0';
    if (!matters(found))
        return;
    if (wait_for_one(found))
        snprintf(text, PL_LIVE_WAITS, "waiting for %s: %.0f %%",
                 found.least->name, 100 * found.most->waiting);
    else
        snprintf(text, PL_LIVE_WAITS, "waiting: %.0f to %.0f %%",
                 100 * found.least->waiting, 100 * found.most->waiting);
}

void pl_live_findings(pl_buffer *out, const pl_live_run *run)
{
    pl_buffer_text(out, "<ul class=findings>");
    put_loss(out, &run->curves);
    put_test(out, run);
    if (!run->record->ended) /* otherwise the summary names the limit */
        put_waiting(out, &run->tasks);
    put_events(out, &run->tasks.events);
    pl_buffer_text(out, "</ul>\n");
}
