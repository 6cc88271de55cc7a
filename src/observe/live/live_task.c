/* live_task.c - the state of each task of a run: decides from its newest
 * records and the run's timeline whether it works, is silent or was lost, and
 * what the job waits for then. */
#include "observe/live/live_priv.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/mem.h"
#include "base/record/timeline.h"
#include "base/text/quote.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TASKS_MOST 256
#define EVENTS     ".tfevents."
#define RECENT_S   5 /* over which rates are averaged */

bool pl_live_task_trains(const pl_live_task *task)
{
    return strncmp(task->name, "worker-", 7) == 0 ||
           strncmp(task->name, "chief-", 6) == 0;
}

/* --- reading ------------------------------------------------------------ */

/* Tasks write to events.out.tfevents.<second>.<host>, followed by .<number> if
 * that file existed: the newest file shows the host. */
static pl_status find_host(pl_live_task *task, const char *folder)
{
    char **names;
    size_t count;
    pl_status status = pl_file_list(&names, &count, folder);
    if (status != PL_OK)
        return status == PL_NOMEM ? status : PL_OK;
    long long newest = -1;
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(names[i], EVENTS);
        char *end;
        long long second =
            at != NULL ? strtoll(at + strlen(EVENTS), &end, 10) : -1;
        if (second < newest || second < 0 || *end != '.')
            continue;
        newest = second;
        snprintf(task->host, sizeof task->host, "%s", end + 1);
    }
    pl_mem_free(names);
    return PL_OK;
}

/* The mean over the last seconds: a single point may cover only a few steps. */
static double recent(const pl_curves *curves, const char *name)
{
    const pl_curve *curve = pl_curves_find(curves, name);
    double sum = 0, seconds = 0;
    if (curve == NULL || curve->count == 0)
        return NAN;
    const pl_point *last = &curve->points[curve->count - 1], *p = last;
    for (; p > curve->points && p[-1].time >= last->time - RECENT_S; p--) {
        sum += p->y * (p->time - p[-1].time);
        seconds += p->time - p[-1].time;
    }
    return seconds > 0 ? sum / seconds : last->y;
}

/* For a curve with one point per step. */
static double last_step_time(const pl_curves *curves)
{
    static const char *const names[] = { "loss", "updates_per_s", "test_loss" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const pl_curve *curve = pl_curves_find(curves, names[i]);
        if (curve != NULL && curve->count > 0 &&
            curve->points[curve->count - 1].time > 0)
            return curve->points[curve->count - 1].time;
    }
    return NAN;
}

static void take_curves(pl_live_task *task)
{
    const pl_curves *curves = &task->curves;
    task->step = NAN;
    task->stepped = last_step_time(curves);
    if (isnan(pl_live_last(curves, "loss", &task->step)) &&
        isnan(pl_live_last(curves, "updates_per_s", &task->step)))
        (void)pl_live_last(curves, "test_loss", &task->step);
    task->rate = recent(curves, "examples_per_s");
    task->waiting = recent(curves, "waiting_share");
    task->memory_mb = pl_live_last(curves, "rss_mb", NULL);
    task->sent_bytes = pl_live_last(curves, "bytes_sent", NULL);
    task->received_bytes = pl_live_last(curves, "bytes_received", NULL);
}

/* "worker 1" of the timeline is the task worker-1. */
static bool is_about(const pl_run_event *event, const pl_live_task *task)
{
    const char *dash = strrchr(task->name, '-');
    size_t length = dash != NULL ? (size_t)(dash - task->name) : 0;
    return length > 0 && strncmp(event->task, task->name, length) == 0 &&
           event->task[length] == ' ' &&
           strcmp(event->task + length + 1, dash + 1) == 0;
}

/* Events about the task: counts its restarts; returns its loss if it was
 * neither restarted nor wrote again. */
static const pl_run_event *take_events(pl_live_task *task,
                                       const pl_run_events *events)
{
    const pl_run_event *lost = NULL;
    for (size_t i = 0; i < events->count; i++) {
        const pl_run_event *event = &events->list[i];
        if (!is_about(event, task))
            continue;
        if (event->kind == PL_EVENT_LOST)
            lost = event;
        if (event->kind == PL_EVENT_RESTART) {
            lost = NULL;
            task->restarts++;
        }
    }
    return lost != NULL && (double)task->written <= lost->time + 1 ? lost
                                                                   : NULL;
}

/* --- state -------------------------------------------------------------- */

/* Points become less frequent during a run, and --record-every may request few:
 * a task is late after twice its last interval.  INFINITY: no interval. */
static double allowed_s(const pl_live_task *task)
{
    static const char *const regular[] = { "loss", "updates_per_s",
                                           "test_loss" };
    for (size_t i = 0; i < sizeof regular / sizeof *regular; i++) {
        const pl_curve *curve = pl_curves_find(&task->curves, regular[i]);
        if (curve != NULL && curve->count > 1)
            return PL_LIVE_SILENT_S +
                   2 * (curve->points[curve->count - 1].time -
                        curve->points[curve->count - 2].time);
    }
    return INFINITY;
}

static void tell_lost(pl_live_task *task, const pl_record *record,
                      const pl_run_event *lost)
{
    bool goes_on =
        strcmp(pl_record_arg(record, "on-worker-loss"), "continue") == 0;
    task->lost = true;
    snprintf(task->state, sizeof task->state, "lost: it %s; %s",
             lost->text[0] != '\0' ? lost->text : "fell silent",
             goes_on && pl_live_task_trains(task)
                 ? "the others continue without it"
                 : "its restart is awaited");
}

/* While the job waits for a lost task, the others write nothing. */
static void judge(pl_live_task *task, const pl_record *record,
                  const pl_live_task *awaited)
{
    double silent = difftime(time(NULL), task->written);
    char shown[PL_DURATION];
    bool late = silent > allowed_s(task);
    task->lost = !record->ended && late && awaited == NULL;
    if (record->ended)
        snprintf(task->state, sizeof task->state, "ended");
    else if (late && awaited != NULL)
        snprintf(task->state, sizeof task->state, "waiting for %s",
                 awaited->name);
    else if (late)
        snprintf(task->state, sizeof task->state,
                 "silent for %s; its next step is awaited",
                 pl_live_silence(silent, shown));
    else
        snprintf(task->state, sizeof task->state, "running");
}

static void judge_all(pl_live_tasks *tasks, const pl_record *record,
                      const pl_run_events *events)
{
    const pl_live_task *awaited = NULL;
    for (size_t i = 0; i < tasks->count; i++) {
        pl_live_task *task = &tasks->list[i];
        const pl_run_event *lost = take_events(task, events);
        if (record->ended || lost == NULL)
            continue;
        tell_lost(task, record, lost);
        awaited = task;
    }
    for (size_t i = 0; i < tasks->count; i++)
        if (!tasks->list[i].lost)
            judge(&tasks->list[i], record, awaited);
}

/* --- all tasks ---------------------------------------------------------- */

static void take_read(pl_live_task *task, pl_model_run *read)
{
    for (size_t i = 0; i < read->count; i++) {
        pl_model_task *from = &read->tasks[i];
        if (from->host || strcmp(from->name, task->name) != 0)
            continue;
        task->curves = from->curves;
        from->curves = (pl_curves) { 0 };
        break;
    }
}

static pl_status read_task(pl_live_task *task, const pl_record *record,
                           pl_model_run *read)
{
    char *folder;
    PL_TRY(pl_mem_format(&folder, "%s/events/%s", record->path, task->name));
    pl_status status = pl_live_written(folder, 0, &task->written);
    if (status == PL_OK)
        status = find_host(task, folder);
    pl_mem_free(folder);
    PL_TRY(status);
    if (read != NULL)
        take_read(task, read);
    else
        PL_TRY(pl_live_curves(&task->curves, record->path, task->name));
    take_curves(task);
    return PL_OK;
}

static pl_status read_all(pl_live_tasks *tasks, const pl_record *record,
                          pl_model_run *read, char *const *names, size_t count)
{
    PL_TRY(PL_NEW(tasks->list, count + 1));
    pl_status status = pl_run_events_read(&tasks->events, record->path);
    if (status == PL_NOMEM)
        return status;
    status = PL_OK; /* a run without a timeline still has tasks */
    for (size_t i = 0; i < count && i < TASKS_MOST && status == PL_OK; i++) {
        pl_live_task *task = &tasks->list[tasks->count++];
        status = pl_mem_copy_text(&task->name, names[i]);
        if (status == PL_OK)
            status = read_task(task, record, read);
    }
    if (status == PL_OK)
        judge_all(tasks, record, &tasks->events);
    return status;
}

pl_status pl_live_tasks_init(pl_live_tasks *tasks, const pl_record *record,
                             pl_model_run *read)
{
    char *folder, **names;
    size_t count;
    *tasks = (pl_live_tasks) { 0 };
    PL_TRY(pl_file_join(&folder, record->path, "events"));
    pl_status status = pl_file_list(&names, &count, folder);
    pl_mem_free(folder);
    if (status != PL_OK)
        return status == PL_NOMEM ? status : PL_OK; /* none yet */
    status = read_all(tasks, record, read, names, count);
    pl_mem_free(names);
    if (status != PL_OK)
        pl_live_tasks_close(tasks);
    return status;
}

void pl_live_tasks_close(pl_live_tasks *tasks)
{
    for (size_t i = 0; i < tasks->count; i++) {
        pl_curves_close(&tasks->list[i].curves);
        pl_mem_free(tasks->list[i].name);
    }
    pl_run_events_close(&tasks->events);
    pl_mem_free(tasks->list);
    *tasks = (pl_live_tasks) { 0 };
}

double pl_live_tasks_rate(const pl_live_tasks *tasks)
{
    double sum = NAN;
    for (size_t i = 0; i < tasks->count; i++) {
        const pl_live_task *task = &tasks->list[i];
        if (!task->lost && pl_live_task_trains(task) && isfinite(task->rate))
            sum = isnan(sum) ? task->rate : sum + task->rate;
    }
    return sum;
}

/* --- the strip ---------------------------------------------------------- */

static void put_cell(pl_buffer *out, double value, const char *unit)
{
    char text[PL_LIVE_COUNT];
    if (isfinite(value))
        pl_buffer_format(out, "<td data-sort=\"%.9g\">%s%s", value,
                         pl_live_count(value, text), unit);
    else
        pl_buffer_text(out, "<td>");
}

static void put_task(pl_buffer *out, const pl_live_task *task)
{
    pl_buffer_text(out, task->lost ? "<tr class=missing><td class=text>"
                                   : "<tr><td class=text>");
    pl_quote_html(out, task->name);
    pl_buffer_text(out, "<td class=text>");
    pl_quote_html(out, task->host);
    pl_buffer_text(out, "<td class=text>");
    pl_quote_html(out, task->state);
    put_cell(out, task->step, "");
    put_cell(out, task->rate, "");
    put_cell(out, 100 * task->waiting, " %");
    put_cell(out, task->memory_mb, "");
    put_cell(out, task->restarts, "");
    pl_buffer_text(out, "</tr>\n");
}

void pl_live_tasks_table(pl_buffer *out, const pl_live_tasks *tasks)
{
    if (tasks->count == 0)
        return;
    pl_buffer_text(out,
                   "<div class=wide><table><caption>Tasks</caption><thead><tr>"
                   "<th class=text>task<th class=text>host<th class=text>state"
                   "<th>step<th>examples/s<th>waiting<th>memory [MB]"
                   "<th>restarts</thead><tbody>\n");
    for (size_t i = 0; i < tasks->count; i++)
        put_task(out, &tasks->list[i]);
    pl_buffer_text(out, "</tbody></table></div>\n");
}
