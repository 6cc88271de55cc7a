/* The supervisor.  One loop: wait briefly, get the events of each host, make
 * requested faults, check the interrupt and the deadline of the phase, show the
 * progress.
 *
 * Phases only move forward:
 *
 *   RUNS  -> OVER    the chief reported that the job is over, or it or a
 *                    server ended successfully; the chief may take any time,
 *                    but once it has ended the others must
 *   RUNS  -> ASKED   interrupted: all were asked to end
 *   any   -> TERM    SIGTERM to all: something failed, or a limit passed
 *   TERM  -> KILL    SIGKILL to all
 *
 * The first failure is kept and is the result.
 *
 * Invariants:
 *   I1  no task is restarted once the outcome of the job is known: from OVER
 *       on
 *   I2  chaos hits no task once the chief is closing or final
 *   I3  a task that never joined is not given up: it is restarted, or ends the
 *       job
 *   I4  every restart is counted, and the count reaches the chief
 *   I5  ps 0 knows which workers are not restarted, and waits for none */
#include "job/supervise/supervisor_priv.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define TICK_MS 50
#define JOIN_MS 60000
#define KILL_MS 10000
#define GONE_MS 30000 /* from SIGKILL to the end of a process */

/* --- setup ------------------------------------------------------------ */

static void add_task(pl_supervisor *s, pl_task id, int32_t worker)
{
    int slot = s->count++;
    const pl_job_hosts *hosts = s->opts->hosts;
    s->tasks[slot] = (pl_job_task) {
        .task = id,
        .worker = worker,
        .slot = slot,
        .host = s->hosts[hosts != NULL ? hosts->host_of[slot] : 0],
    };
}

static pl_status find_hosts(pl_supervisor *s, int tasks)
{
    if (s->opts->hosts != NULL) {
        s->hosts = s->opts->hosts->hosts;
        s->host_count = s->opts->hosts->count;
        return PL_OK;
    }
    s->hosts = &s->here;
    s->host_count = 1;
    s->here = s->opts->here;
    if (s->here != NULL)
        return PL_OK;
    return pl_host_local_new(&s->here, &(pl_host_local_opts) {
                                           .program = s->opts->program,
                                           .argv = s->opts->argv,
                                           .secret = s->opts->secret,
                                           .logs = s->opts->logs,
                                           .tasks = tasks,
                                       });
}

static pl_status add_tasks(pl_supervisor *s)
{
    const pl_cluster *cluster = s->opts->cluster;
    int count = cluster->ps + cluster->workers + cluster->evaluator;
    PL_TRY(find_hosts(s, count));
    PL_TRY(PL_NEW(s->tasks, (size_t)count));
    PL_TRY(PL_NEW(s->watched, (size_t)count));
    PL_TRY(PL_NEW(s->polls, (size_t)(count + s->host_count)));
    for (int32_t i = 0; i < cluster->ps; i++)
        add_task(s, (pl_task) { PL_ROLE_PS, i }, -1);
    for (int32_t i = 0; i < cluster->workers; i++)
        add_task(s, pl_cluster_task(cluster, i), i);
    if (cluster->evaluator)
        add_task(s, (pl_task) { PL_ROLE_EVALUATOR, 0 }, -1);
    return PL_OK;
}

static pl_status build(pl_supervisor *s)
{
    const pl_cluster *cluster = s->opts->cluster;
    PL_TRY(pl_cluster_local(&s->cluster, cluster->workers, cluster->ps,
                            cluster->evaluator));
    s->cluster.named_chief = cluster->named_chief;
    if (s->opts->hosts == NULL)
        s->missing = cluster->ps;
    if (s->opts->workers_listen) {
        PL_TRY(PL_NEW(s->cluster.worker_address, (size_t)cluster->workers));
        s->missing += cluster->workers;
    }
    pl_supervisor_limit(s, s->opts->join_ms, JOIN_MS);
    PL_TRY(add_tasks(s));
    if (s->opts->chaos <= 0)
        return PL_OK;
    return pl_chaos_new(&s->chaos, &(pl_chaos_opts) {
                                       .rate = s->opts->chaos,
                                       .seed = s->opts->chaos_seed,
                                       .freeze_ms = s->opts->freeze_ms,
                                       .tasks = s->count,
                                   });
}

static void tear_down(pl_supervisor *s)
{
    for (int i = 0; i < s->count; i++)
        PL_ASSERT(s->tasks[i].pid == 0 || s->phase == PL_JOB_KILL);
    if (s->opts->here == NULL)
        pl_host_local_free(s->here);
    pl_mem_free(s->tasks);
    pl_mem_free(s->watched);
    pl_mem_free(s->polls);
    pl_chaos_free(s->chaos);
    pl_cluster_close(&s->cluster);
}

const char *pl_supervisor_name(const pl_job_task *task,
                               char name[PL_SUPERVISOR_NAME])
{
    const char *host = task->host->name;
    snprintf(name, PL_SUPERVISOR_NAME, "%s %d%s%s",
             pl_role_text(task->task.role), task->task.index,
             host != NULL ? " on " : "", host != NULL ? host : "");
    return name;
}

/* The step of the job, as last reported by its tasks; -1: unknown. */
static int64_t job_step(const pl_supervisor *s)
{
    int64_t step = -1;
    for (int i = 0; i < s->count; i++)
        if (s->tasks[i].reported && s->tasks[i].status.step > step)
            step = s->tasks[i].status.step;
    return step;
}

void pl_supervisor_note(const pl_supervisor *s, const pl_job_task *task,
                        pl_event_kind kind, const char *how)
{
    pl_run_event event = pl_run_event_of(kind);
    snprintf(event.task, sizeof event.task, "%s %d",
             pl_role_text(task->task.role), task->task.index);
    snprintf(event.text, sizeof event.text, "%s", how);
    event.step = job_step(s);
    pl_timeline_put(s->opts->timeline, &event);
}

pl_job_task *pl_supervisor_find(pl_supervisor *s, pl_task id)
{
    int32_t worker = pl_cluster_worker(&s->cluster, id);
    int32_t slot = id.role == PL_ROLE_PS ? id.index
                   : worker >= 0         ? s->cluster.ps + worker
                                         : s->count - 1;
    if (slot >= s->count || s->tasks[slot].task.role != id.role ||
        s->tasks[slot].task.index != id.index)
        return NULL;
    return &s->tasks[slot];
}

/* --- ending ----------------------------------------------------------- */

void pl_supervisor_tell(pl_supervisor *s, const pl_job_task *task,
                        const pl_control_message *message)
{
    if (task->host->ops->tell == NULL || !task->running)
        return;
    pl_status status = task->host->ops->tell(task->host, task, message);
    if (status != PL_OK)
        pl_supervisor_fail(s, status);
}

static void signal_all(const pl_supervisor *s, int number)
{
    for (int i = 0; i < s->count; i++)
        if (s->tasks[i].running)
            s->tasks[i].host->ops->signal(s->tasks[i].host, &s->tasks[i],
                                          number);
}

void pl_supervisor_ask_all(pl_supervisor *s, bool evaluator)
{
    for (int i = 0; i < s->count; i++)
        if (evaluator || s->tasks[i].task.role != PL_ROLE_EVALUATOR)
            pl_supervisor_tell(
                s, &s->tasks[i],
                &(pl_control_message) { .kind = PL_CONTROL_END });
}

/* Tasks that get no messages get a SIGTERM. */
static void terminate_untold(const pl_supervisor *s)
{
    for (int i = 0; i < s->count; i++) {
        const pl_job_task *task = &s->tasks[i];
        if (task->running && task->host->ops->tell == NULL)
            task->host->ops->signal(task->host, task, SIGTERM);
    }
}

void pl_supervisor_limit(pl_supervisor *s, int64_t ms, int64_t otherwise)
{
    s->deadline = pl_deadline_in_ms(pl_clock_real(), ms > 0 ? ms : otherwise);
}

void pl_supervisor_enter(pl_supervisor *s, pl_phase_of_job next)
{
    if (next <= s->phase)
        return;
    s->phase = next;
    switch (next) {
    case PL_JOB_RUNS:
    case PL_JOB_OVER:
        pl_supervisor_limit(s, s->opts->end_ms, PL_SUPERVISOR_END_MS);
        break;
    case PL_JOB_ASKED:
        pl_supervisor_limit(s, s->opts->end_ms, PL_SUPERVISOR_END_MS);
        pl_supervisor_ask_all(s, true);
        terminate_untold(s);
        break;
    case PL_JOB_TERM:
        pl_supervisor_limit(s, s->opts->kill_ms, KILL_MS);
        pl_supervisor_ask_all(s, true);
        signal_all(s, SIGTERM);
        signal_all(s, SIGCONT); /* a stopped task must run */
        break;
    case PL_JOB_KILL:
        pl_supervisor_limit(s, GONE_MS, 0);
        signal_all(s, SIGKILL);
        break;
    }
}

void pl_supervisor_fail(pl_supervisor *s, pl_status status)
{
    if (s->failed.status == PL_OK)
        pl_error_save(&s->failed, status);
    pl_supervisor_enter(s, PL_JOB_TERM);
}

/* --- the loop --------------------------------------------------------- */

static int running(const pl_supervisor *s)
{
    int count = 0;
    for (int i = 0; i < s->count; i++)
        count += s->tasks[i].running;
    return count;
}

/* "ps 1, worker 0": tasks that still run, or have not reported. */
static void list_tasks(const pl_supervisor *s, bool silent, char *text,
                       size_t room)
{
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < s->count && used < room; i++) {
        char name[PL_SUPERVISOR_NAME];
        char **place = pl_supervisor_address(s, &s->tasks[i]);
        bool listed =
            silent ? place != NULL && *place == NULL : s->tasks[i].running;
        if (!listed)
            continue;
        int wrote =
            snprintf(text + used, room - used, "%s%s", used > 0 ? ", " : "",
                     pl_supervisor_name(&s->tasks[i], name));
        used += wrote > 0 ? (size_t)wrote : room;
    }
}

static void take_output(void *context, pl_task id, bool error, const char *line)
{
    pl_supervisor *s = context;
    const pl_job_task *task = pl_supervisor_find(s, id);
    if (task != NULL && s->opts->print != NULL)
        s->opts->print(s->opts->context, task, error, line);
}

static void wait_a_moment(pl_supervisor *s)
{
    int used = 0;
    for (int32_t h = 0; h < s->host_count; h++)
        if (!s->hosts[h]->lost)
            used += s->hosts[h]->ops->descriptors(
                s->hosts[h], s->polls + used, s->count + s->host_count - used);
    poll(s->polls, (nfds_t)used, TICK_MS);
}

static void look_at_hosts(pl_supervisor *s)
{
    const pl_host_events events = {
        .message = pl_supervisor_take_message,
        .output = take_output,
        .ended = pl_supervisor_take_ended,
        .context = s,
    };
    for (int32_t h = 0; h < s->host_count; h++) {
        pl_host *host = s->hosts[h];
        pl_status status = host->lost ? PL_OK : host->ops->turn(host, &events);
        if (status == PL_NOMEM)
            pl_supervisor_fail(s, status); /* our failure, not the host's */
        else if (status != PL_OK)
            pl_supervisor_lose_host(s, host, status);
    }
}

/* The deadline of the phase has passed; false: nothing more can be done. */
static bool pass_deadline(pl_supervisor *s)
{
    char names[256];
    int64_t join_ms = s->opts->join_ms > 0 ? s->opts->join_ms : JOIN_MS;
    list_tasks(s, s->phase == PL_JOB_RUNS, names, sizeof names);
    switch (s->phase) {
    case PL_JOB_RUNS:
        pl_supervisor_fail(
            s,
            PL_FAIL(PL_TIMEOUT, "%s reported no port within %lld s; logs in %s",
                    names, (long long)(join_ms / 1000), s->opts->logs));
        break;
    case PL_JOB_OVER:
    case PL_JOB_ASKED:
        pl_log(PL_LOG_WARN, "still running, to be ended: %s", names);
        pl_supervisor_enter(s, PL_JOB_TERM);
        break;
    case PL_JOB_TERM:
        pl_supervisor_enter(s, PL_JOB_KILL);
        break;
    case PL_JOB_KILL:
        pl_supervisor_fail(
            s, PL_FAIL(PL_TIMEOUT, "killed, but still running: %s", names));
        return false;
    }
    return true;
}

/* RUNS has a limit until all addresses are known, OVER once the chief has
 * ended. */
static bool phase_has_limit(const pl_supervisor *s)
{
    switch (s->phase) {
    case PL_JOB_RUNS:
        return s->missing > 0;
    case PL_JOB_OVER:
        return s->done;
    default:
        return true;
    }
}

/* From the chief's first step until it says goodbye. */
static bool training(const pl_supervisor *s)
{
    int chief = s->cluster.ps;
    return s->phase == PL_JOB_RUNS && s->tasks[chief].status.step > 0 &&
           !s->watched[chief].closing && !s->tasks[chief].final;
}

static void make_faults(pl_supervisor *s)
{
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    bool on = training(s);
    int hit = pl_chaos_due(s->chaos, s->tasks, on, now_ns);
    pl_chaos_thaw(s->chaos, s->tasks, !on, now_ns);
    if (hit < 0)
        return;
    pl_supervisor_tell_counts(s, 1); /* before the chief may be killed */
    pl_chaos_hit(s->chaos, s->tasks, hit, now_ns);
}

/* ps 0 monitors the others and reports its status all the time: when it is
 * silent, no other task can declare it lost. */
static void watch_first(pl_supervisor *s)
{
    const pl_job_task *first = &s->tasks[0];
    pl_watched *watched = &s->watched[0];
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    if (s->phase != PL_JOB_RUNS || s->opts->silence_ms <= 0 ||
        first->task.role != PL_ROLE_PS || !first->running || !first->reported ||
        watched->lost ||
        now_ns - watched->heard_ns <= s->opts->silence_ms * 1000000)
        return;
    watched->lost = true;
    first->host->ops->signal(first->host, first, SIGKILL);
}

static bool interrupted(const pl_supervisor *s)
{
    return s->opts->interrupt != NULL && atomic_load(s->opts->interrupt);
}

/* Leave the terminal to tasks whose final status was shown. */
static void leave_terminal(pl_supervisor *s)
{
    for (int i = 0; i < s->count; i++)
        if (s->tasks[i].final && !s->watched[i].left) {
            s->watched[i].left = true;
            pl_supervisor_tell(
                s, &s->tasks[i],
                &(pl_control_message) { .kind = PL_CONTROL_FINAL });
        }
}

static void run_loop(pl_supervisor *s)
{
    bool more = true;
    while (more && running(s) > 0) {
        wait_a_moment(s);
        look_at_hosts(s);
        if (s->chaos != NULL)
            make_faults(s);
        watch_first(s);
        pl_supervisor_watch_chief(s);
        if (interrupted(s))
            pl_supervisor_enter(s, PL_JOB_ASKED);
        if (phase_has_limit(s) && pl_deadline_passed(s->deadline))
            more = pass_deadline(s);
        if (s->opts->show != NULL)
            s->opts->show(s->opts->context, s->tasks, s->count);
        leave_terminal(s);
    }
}

static pl_status run(pl_supervisor *s)
{
    pl_run_event start = pl_run_event_of(PL_EVENT_START);
    pl_timeline_put(s->opts->timeline, &start);
    for (int i = 0; i < s->count && s->failed.status == PL_OK; i++) {
        pl_status status = pl_supervisor_start(s, &s->tasks[i]);
        if (status != PL_OK)
            pl_supervisor_fail(s, status);
    }
    run_loop(s);
    if (s->failed.status != PL_OK)
        return pl_error_raise(&s->failed);
    if (interrupted(s) && !s->done)
        return PL_FAIL(PL_INTERRUPTED, "interrupted");
    if (!s->done)
        return PL_FAIL(PL_PEER,
                       "all tasks have ended, but the chief did not finish "
                       "the job; logs in %s",
                       s->opts->logs);
    return PL_OK;
}

pl_status pl_supervisor_run(const pl_supervisor_opts *opts)
{
    pl_supervisor s = { .opts = opts };
    if (opts->here == NULL) /* if ignored, exit statuses would be lost */
        signal(SIGCHLD, SIG_DFL);
    pl_status status = build(&s);
    if (status == PL_OK)
        status = run(&s);
    tear_down(&s);
    return status;
}
