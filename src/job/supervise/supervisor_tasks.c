/* Starting tasks, and their messages: decides when all addresses are known,
 * which task may declare another one lost, and what the chief is sent. */
#include "job/supervise/supervisor_priv.h"

#include "base/log.h"
#include "base/mem.h"

#include <signal.h>
#include <string.h>

char **pl_supervisor_address(const pl_supervisor *s, const pl_job_task *task)
{
    if (s->here == NULL)
        return NULL; /* it was given an address */
    if (task->task.role == PL_ROLE_PS)
        return &s->cluster.ps_address[task->task.index];
    return s->opts->workers_listen && task->worker >= 0
               ? &s->cluster.worker_address[task->worker]
               : NULL;
}

/* Send tasks the cluster, when all that listen have reported. */
static pl_status tell_cluster(pl_supervisor *s, int first, int end)
{
    pl_json *json;
    pl_control_message message = { .kind = PL_CONTROL_CLUSTER };
    PL_TRY(pl_cluster_json(&s->cluster, &json));
    pl_status status = pl_json_get_object(json, "cluster", &message.body);
    for (int i = first; status == PL_OK && i < end; i++)
        pl_supervisor_tell(s, &s->tasks[i], &message);
    pl_json_free(json);
    return status;
}

/* A chief that is gone gets the counts when it is restarted. */
void pl_supervisor_tell_counts(pl_supervisor *s, int64_t more_faults)
{
    pl_control_message message = {
        .kind = PL_CONTROL_COUNTS,
        .counts.restarts = s->restarts,
    };
    if (s->chaos != NULL)
        message.counts.faults = pl_chaos_faults(s->chaos) + more_faults;
    if (message.counts.faults == 0 && s->restarts == 0)
        return;
    pl_supervisor_tell(s, &s->tasks[s->cluster.ps], &message);
}

void pl_supervisor_tell_gone(pl_supervisor *s)
{
    for (int i = 0; s->cluster.ps > 0 && i < s->count; i++)
        if (s->watched[i].gone)
            pl_supervisor_tell(
                s, &s->tasks[0],
                &(pl_control_message) { .kind = PL_CONTROL_GONE,
                                        .task = s->tasks[i].task });
}

pl_status pl_supervisor_start(pl_supervisor *s, pl_job_task *task)
{
    pl_watched *watched = &s->watched[task->slot];
    bool told = task->host->ops->tell != NULL;
    char name[PL_SUPERVISOR_NAME];
    pl_status status = task->host->ops->start(task->host, task);
    if (task->pid == 0 && status != PL_OK)
        return pl_context(status, "%s", pl_supervisor_name(task, name));
    task->running = true;
    watched->lost = watched->closing = watched->left = false;
    watched->there = !told; /* it cannot send a hello */
    watched->joined = watched->joined || !told;
    task->starts++;
    task->earlier_examples += task->status.examples;
    task->earlier_dropped += task->status.dropped;
    task->status.examples = task->status.dropped = 0;
    task->reported = false;
    PL_TRY(status);
    if (told && s->missing == 0)
        PL_TRY(tell_cluster(s, task->slot, task->slot + 1));
    s->restarts += task->starts > 1;
    if (task->slot == 0 && task->starts > 1)
        pl_supervisor_tell_gone(s);
    pl_supervisor_tell_counts(s, 0);
    return PL_OK;
}

/* --- messages --------------------------------------------------------- */

static void take_address(pl_supervisor *s, const pl_job_task *task,
                         const char *address)
{
    char **place = pl_supervisor_address(s, task);
    if (place == NULL || *place != NULL)
        return; /* it does not listen, or was restarted */
    pl_status status = pl_mem_copy_text(place, address);
    if (status == PL_OK && --s->missing == 0)
        status = tell_cluster(s, 0, s->count);
    if (status != PL_OK)
        pl_supervisor_fail(s, status);
}

/* A task that ps 0 (or, without servers, another worker) declares lost is
 * killed, and restarted when it has ended.  A process that was just restarted
 * and has sent nothing yet cannot be the lost one: that was its predecessor. */
static void take_lost(pl_supervisor *s, const pl_job_task *by, pl_task id)
{
    bool ps_0 = by->task.role == PL_ROLE_PS && by->task.index == 0;
    pl_job_task *task = pl_supervisor_find(s, id);
    if ((s->cluster.ps > 0 && !ps_0) || s->phase != PL_JOB_RUNS ||
        task == NULL || !task->running || (task->starts > 1 && !task->reported))
        return;
    s->watched[task->slot].lost = true;
    task->host->ops->signal(task->host, task, SIGKILL);
}

void pl_supervisor_take_message(void *context, pl_task id,
                                const pl_control_message *message)
{
    pl_supervisor *s = context;
    pl_job_task *task = pl_supervisor_find(s, id);
    pl_watched *watched = &s->watched[task->slot];
    watched->heard_ns = pl_clock_now_ns(pl_clock_real());
    switch (message->kind) {
    case PL_CONTROL_HELLO:
        watched->there = true;
        break;
    case PL_CONTROL_ADDRESS:
        take_address(s, task, message->text);
        break;
    case PL_CONTROL_STATUS:
        task->status = message->status;
        task->reported = watched->joined = true;
        break;
    case PL_CONTROL_EPOCH:
        if (task->worker == 0 && s->opts->epoch != NULL)
            s->opts->epoch(s->opts->context, &message->epoch);
        break;
    case PL_CONTROL_LOST:
        take_lost(s, task, message->task);
        break;
    case PL_CONTROL_ROLLED:
        pl_log(PL_LOG_WARN,
               "the job was rolled back from step %lld to step %lld, its last "
               "checkpoint",
               (long long)message->from, (long long)message->step);
        break;
    case PL_CONTROL_WARNING:
        if (task->worker == 0)
            pl_log(PL_LOG_WARN, "step %lld: %s", (long long)message->step,
                   message->text);
        break;
    case PL_CONTROL_CLOSING:
        watched->closing = true;
        pl_supervisor_tell(
            s, task, &(pl_control_message) { .kind = PL_CONTROL_CLOSING });
        break;
    case PL_CONTROL_FINAL:
        task->final = true;
        if (task->worker == 0)
            pl_supervisor_enter(s, PL_JOB_OVER);
        break;
    default:
        pl_log(PL_LOG_WARN, "%s %d sent a message that is not a task's",
               pl_role_text(id.role), id.index);
    }
}
