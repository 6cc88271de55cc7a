/* observers.c - starts and stops the recorders of a task: the event file with
 * HParams and graph, the timeline, and the resource monitor. */
#include "app/run/observers.h"

#include "app/run/model_graph.h"
#include "base/clock.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "observe/record/events.h"
#include "observe/resources/monitor.h"

#include <stdio.h>
#include <string.h>

struct pl_observers {
    pl_observers_opts opts;
    pl_events *events;
    pl_timeline *timeline;
    pl_monitor *monitor;
};

static double now_s(void)
{
    return (double)pl_clock_wall_ns() * 1e-9;
}

static pl_status put_hparams(pl_observers *observers)
{
    const pl_options *options = observers->opts.options;
    pl_event_hparam list[PL_EVENT_HPARAMS] = { { "model",
                                                 options->model->name } };
    int count = 1;
    pl_json *record;
    PL_TRY(pl_options_record(options, PL_OPTIONS_HPARAMS, &record));
    for (size_t i = 0; i < pl_json_length(record) && count < PL_EVENT_HPARAMS;
         i++) {
        const char *name = pl_json_key_at(record, i), *text;
        if (pl_json_get_text(record, name, &text) == PL_OK && text[0] != '\0')
            list[count++] = (pl_event_hparam) { name, text };
    }
    pl_event_hparams(pl_events_begin(observers->events), now_s(), list, count);
    pl_events_end(observers->events);
    pl_json_free(record);
    return PL_OK;
}

static pl_status put_graph(pl_observers *observers)
{
    pl_model_graph *graph;
    int count;
    PL_TRY(pl_model_graph_new(&graph, observers->opts.job->network,
                              observers->opts.cluster));
    const pl_event_node *nodes = pl_model_graph_nodes(graph, &count);
    pl_event_graph(pl_events_begin(observers->events), now_s(), nodes, count);
    pl_events_end(observers->events);
    pl_model_graph_free(graph);
    return PL_OK;
}

/* "<run>/events/worker-0" */
static pl_status start_events(pl_observers *observers)
{
    const pl_observers_opts *opts = &observers->opts;
    char *folder;
    PL_TRY(pl_mem_format(&folder, "%s/events/%s-%d", opts->run,
                         pl_role_text(opts->task.role), opts->task.index));
    pl_status status =
        pl_events_start(&observers->events,
                        &(pl_events_opts) { .metrics = opts->metrics,
                                            .folder = folder,
                                            .start_step = opts->start_step });
    pl_mem_free(folder);
    PL_TRY(status);
    if (opts->job == NULL)
        return PL_OK;
    PL_TRY(put_graph(observers));
    return put_hparams(observers);
}

static void name_task(pl_task task, char *name, size_t room)
{
    snprintf(name, room, "%s %d", pl_role_text(task.role), task.index);
}

/* An unsupervised job starts when its chief starts. */
static pl_status start_timeline(pl_observers *observers)
{
    const pl_observers_opts *opts = &observers->opts;
    const pl_train_options *train = &opts->options->train;
    char task[64];
    name_task(opts->task, task, sizeof task);
    PL_TRY(
        pl_timeline_new(&observers->timeline, &(pl_timeline_opts) {
                                                  .folder = opts->run,
                                                  .task = task,
                                                  .own_only = opts->job == NULL,
                                                  .told = opts->told,
                                                  .context = opts->context,
                                              }));
    pl_metrics_set_timeline(opts->metrics, observers->timeline);
    pl_run_event start = pl_run_event_of(PL_EVENT_START);
    start.step = opts->start_step;
    if (opts->job != NULL && train->control == 0 && train->restarted == 0)
        pl_timeline_put(observers->timeline, &start);
    return PL_OK;
}

/* Each task of a job has its own slot in its host's file. */
static int place_of(pl_task task)
{
    switch (task.role) {
    case PL_ROLE_EVALUATOR:
        return 0;
    case PL_ROLE_CHIEF:
        return 1;
    case PL_ROLE_PS:
        return 2 + 2 * task.index;
    case PL_ROLE_WORKER:
        break;
    }
    return 3 + 2 * task.index;
}

static pl_tasks_role role_of(pl_task task)
{
    switch (task.role) {
    case PL_ROLE_PS:
        return PL_TASKS_PS;
    case PL_ROLE_EVALUATOR:
        return PL_TASKS_EVALUATOR;
    case PL_ROLE_CHIEF:
    case PL_ROLE_WORKER:
        break;
    }
    return PL_TASKS_WORKER;
}

static pl_status start_monitor(pl_observers *observers)
{
    const pl_observers_opts *opts = &observers->opts;
    char *folder;
    PL_TRY(pl_file_join(&folder, opts->run, "resources"));
    pl_status status = pl_monitor_start(
        &observers->monitor, &(pl_monitor_opts) {
                                 .folder = folder,
                                 .place = place_of(opts->task),
                                 .role = role_of(opts->task),
                                 .every_s = opts->options->train.monitor_every,
                                 .metrics = opts->metrics,
                             });
    pl_mem_free(folder);
    return status;
}

pl_status pl_observers_start(pl_observers **out, const pl_observers_opts *opts)
{
    pl_observers *observers;
    PL_TRY(PL_NEW(observers, 1));
    observers->opts = *opts;
    if (opts->run != NULL && start_events(observers) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; training continues without them",
               pl_error_message());
    if (opts->run != NULL && start_timeline(observers) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; training continues without a timeline",
               pl_error_message());
    if (opts->run != NULL && opts->options->train.monitor_every > 0 &&
        start_monitor(observers) != PL_OK)
        pl_log(PL_LOG_WARN, "%s; training continues without them",
               pl_error_message());
    *out = observers;
    return PL_OK;
}

void pl_observers_stop(pl_observers *observers, bool success)
{
    if (observers == NULL)
        return;
    if (observers->events != NULL && observers->opts.job != NULL) {
        pl_event_end(pl_events_begin(observers->events), now_s(), success);
        pl_events_end(observers->events);
    }
    pl_events_stop(observers->events);
    pl_monitor_stop(observers->monitor);
    pl_metrics_set_timeline(observers->opts.metrics, NULL);
    pl_timeline_free(observers->timeline);
    pl_mem_free(observers);
}

void pl_observers_lost(const pl_metrics *metrics, pl_task task)
{
    pl_run_event event = pl_run_event_of(PL_EVENT_LOST);
    name_task(task, event.task, sizeof event.task);
    snprintf(event.text, sizeof event.text, "was declared lost");
    pl_timeline_put(pl_metrics_timeline(metrics), &event);
}

int64_t pl_observers_dropped(const pl_observers *observers)
{
    if (observers == NULL || observers->events == NULL)
        return 0;
    return (int64_t)pl_events_dropped(observers->events);
}
