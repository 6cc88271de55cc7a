/* The end of tasks: decides whether a task that ended is restarted, whether the
 * job can continue without it, or whether the job ends, and with which
 * message. */
#include "job/supervise/supervisor_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/supervise/child.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define SHOWN_LINES 5 /* lines of a log */
#define LOG_BYTES   2048
#define HOW_BYTES   96

static bool exited_with(int ended, int status)
{
    return WIFEXITED(ended) && WEXITSTATUS(ended) == status;
}

/* Whether it printed the reason. */
static bool said_why(int ended)
{
    return exited_with(ended, 1);
}

static void show_log(const pl_job_task *task)
{
    char text[LOG_BYTES], *rest = text, *line;
    if (task->host->ops->last_lines == NULL)
        return;
    task->host->ops->last_lines(task->host, task, SHOWN_LINES, text,
                                sizeof text);
    while ((line = strsep(&rest, "\n")) != NULL)
        if (line[0] != '\0')
            pl_log_more(PL_LOG_WARN, "  %s", line);
}

/* Its own message: without the leading "paceline: " and the trailing place in
 * the source. */
static void own_words(const pl_supervisor *s, const char *said, char *text,
                      size_t room)
{
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s: ", s->opts->argv[0]);
    size_t length = strlen(prefix);
    snprintf(text, room, "%s",
             strncmp(said, prefix, length) == 0 ? said + length : said);
    text[pl_error_words(text)] = '\0';
}

/* A task that ended on its own before it made progress would do so again. */
static bool may_restart(const pl_supervisor *s, const pl_job_task *task,
                        int ended)
{
    if (task->final || (said_why(ended) && !task->reported) ||
        exited_with(ended, 2) || exited_with(ended, PL_CHILD_NO_EXEC))
        return false;
    return task->starts - s->watched[task->slot].excused <= s->opts->restarts;
}

/* A job can continue without an evaluator and, if requested, without a worker
 * other than the chief.  But not without one that never joined: the others wait
 * for all to join before they begin. */
static bool can_do_without(const pl_supervisor *s, const pl_job_task *task)
{
    if (task->final)
        return false;
    return task->task.role == PL_ROLE_EVALUATOR ||
           (s->opts->go_on && task->worker > 0 &&
            s->watched[task->slot].joined);
}

/* The job ends because of this task. */
static void fail_by(pl_supervisor *s, const pl_job_task *task, int ended,
                    const char *how, const char *said)
{
    bool usage = exited_with(ended, 2);
    char words[LOG_BYTES], often[64] = "", name[PL_SUPERVISOR_NAME];
    char **place = pl_supervisor_address(s, task);
    const char *address = place != NULL ? *place : NULL;
    own_words(s, said, words, sizeof words);
    if (!said_why(ended) && !usage)
        show_log(task);
    if (task->starts > 1)
        snprintf(often, sizeof often, " (start %d)", task->starts);
    bool quote = (said_why(ended) || usage) && words[0] != '\0';
    /* The chief is final once it has saved all and the others may leave. */
    bool saved = task->worker == 0 && task->final && WIFSIGNALED(ended);
    if (saved)
        snprintf(words, sizeof words,
                 "the training is complete and saved, only the summary is "
                 "missing: --resume prints it");
    pl_supervisor_fail(
        s, PL_FAIL(
               usage ? PL_USAGE : PL_PEER,
               "%s%s%s %s%s%s%s; its log: %s/%s-%d.log",
               pl_supervisor_name(task, name), address != NULL ? " at " : "",
               address != NULL ? address : "", how, often,
               quote || saved ? ": " : "", quote || saved ? words : "",
               s->opts->logs, pl_role_text(task->task.role), task->task.index));
}

/* A death caused by chaos does not count for --restarts, nor does the first one
 * of a worker that was killed before it had joined: the job has lost
 * nothing. */
static bool is_excused(pl_supervisor *s, const pl_job_task *task, int ended)
{
    bool hit = s->chaos != NULL && pl_chaos_ended(s->chaos, task->slot);
    return hit || (s->opts->go_on && WIFSIGNALED(ended) &&
                   !s->watched[task->slot].joined && task->starts == 1 &&
                   task->worker > 0);
}

static void restart(pl_supervisor *s, pl_job_task *task, const char *how,
                    bool excused)
{
    char name[PL_SUPERVISOR_NAME];
    pl_supervisor_name(task, name);
    if (excused) {
        pl_log(PL_LOG_INFO, "%s %s; started again", name, how);
    } else {
        pl_log(PL_LOG_WARN,
               "%s %s; started again (%d of %d), its log: %s/%s-%d.log", name,
               how, task->starts - s->watched[task->slot].excused,
               s->opts->restarts, s->opts->logs, pl_role_text(task->task.role),
               task->task.index);
        show_log(task);
    }
    pl_status status = pl_supervisor_start(s, task);
    if (status != PL_OK)
        pl_supervisor_fail(s, status);
    else
        pl_supervisor_note(s, task, PL_EVENT_RESTART, "");
}

/* When the job is over or was asked to end, a death is only logged, and not
 * even that if it was expected. */
static void tell_late_death(const pl_supervisor *s, const pl_job_task *task,
                            int ended, const char *how)
{
    char name[PL_SUPERVISOR_NAME];
    bool as_told = task->final || (said_why(ended) && !task->reported) ||
                   exited_with(ended, 130);
    if (!as_told)
        pl_log(PL_LOG_WARN, "%s %s; its log: %s/%s-%d.log",
               pl_supervisor_name(task, name), how, s->opts->logs,
               pl_role_text(task->task.role), task->task.index);
}

static void ended_badly(pl_supervisor *s, pl_job_task *task, int ended,
                        const char *said)
{
    char how[HOW_BYTES] = "was declared lost and killed";
    char name[PL_SUPERVISOR_NAME];
    bool excused = is_excused(s, task, ended);
    s->watched[task->slot].excused += excused;
    if (!s->watched[task->slot].lost)
        pl_child_how(ended, how, sizeof how);
    if (s->phase <= PL_JOB_OVER && !task->final)
        pl_supervisor_note(s, task, PL_EVENT_LOST, how);
    if (s->phase == PL_JOB_OVER && task->worker == 0) {
        fail_by(s, task, ended, how, said);
    } else if (s->phase == PL_JOB_OVER || s->phase == PL_JOB_ASKED) {
        tell_late_death(s, task, ended, how);
    } else if (s->phase != PL_JOB_RUNS) {
        return; /* as requested */
    } else if (may_restart(s, task, ended)) {
        restart(s, task, how, excused);
    } else if (can_do_without(s, task)) {
        pl_log(PL_LOG_WARN,
               "%s %s and is not restarted; the job continues without it, its "
               "log: %s/%s-%d.log",
               pl_supervisor_name(task, name), how, s->opts->logs,
               pl_role_text(task->task.role), task->task.index);
        show_log(task);
        s->watched[task->slot].gone = task->worker > 0;
        pl_supervisor_tell_gone(s);
    } else {
        fail_by(s, task, ended, how, said);
    }
}

/* The chief decides when the job is over; a server that ended successfully has
 * learned this from it. */
static void ended_well(pl_supervisor *s, const pl_job_task *task)
{
    char name[PL_SUPERVISOR_NAME];
    if (!s->watched[task->slot].there && s->phase == PL_JOB_RUNS) {
        pl_supervisor_fail(
            s, PL_FAIL(PL_PEER,
                       "%s ended with exit status 0 but did not train: the "
                       "program must pass its arguments to pl_app_main in "
                       "every process; its log: %s/%s-%d.log",
                       pl_supervisor_name(task, name), s->opts->logs,
                       pl_role_text(task->task.role), task->task.index));
        return;
    }
    bool chief = task->worker == 0;
    if (chief || task->task.role == PL_ROLE_PS)
        pl_supervisor_enter(s, PL_JOB_OVER);
    s->done = s->done || (chief && s->phase <= PL_JOB_ASKED);
    if (chief && s->phase == PL_JOB_OVER) /* the others must end now */
        pl_supervisor_limit(s, s->opts->end_ms, PL_SUPERVISOR_END_MS);
    if (s->done && s->phase == PL_JOB_OVER)
        pl_supervisor_ask_all(s, !s->tasks[0].running); /* ps 0 */
}

/* Until all have reported, no task knows the others' addresses: a restarted one
 * may listen elsewhere. */
static void forget_address(pl_supervisor *s, const pl_job_task *task)
{
    char **place = pl_supervisor_address(s, task);
    if (s->missing == 0 || place == NULL || *place == NULL)
        return;
    pl_mem_free(*place);
    *place = NULL;
    s->missing++;
}

/* A chief that has said goodbye sends no heartbeats, and its output may take as
 * long as its reader needs.  If it stays stopped, it would never end. */
void pl_supervisor_watch_chief(pl_supervisor *s)
{
    const pl_job_task *chief = &s->tasks[s->cluster.ps];
    pl_watched *watched = &s->watched[chief->slot];
    int64_t now_ns = pl_clock_now_ns(pl_clock_real());
    bool leaves = chief->worker == 0 && chief->running && !watched->lost &&
                  (watched->closing || chief->final);
    if (s->opts->silence_ms <= 0 || s->phase > PL_JOB_OVER || !leaves ||
        chief->pid <= 0 || !pl_child_stopped(chief->pid)) {
        watched->stopped_ns = 0;
        return;
    }
    if (watched->stopped_ns == 0)
        watched->stopped_ns = now_ns;
    if (now_ns - watched->stopped_ns <= s->opts->silence_ms * 1000000)
        return;
    watched->lost = true;
    chief->host->ops->signal(chief->host, chief, SIGKILL);
}

void pl_supervisor_take_ended(void *context, pl_task id, int ended,
                              const char *said)
{
    pl_supervisor *s = context;
    pl_job_task *task = pl_supervisor_find(s, id);
    if (task == NULL || !task->running)
        return;
    task->running = false;
    task->pid = 0;
    forget_address(s, task);
    if (ended != 0)
        ended_badly(s, task, ended, said);
    else
        ended_well(s, task);
}

/* A host is lost, and its tasks with it. */
void pl_supervisor_lose_host(pl_supervisor *s, pl_host *host, pl_status status)
{
    bool needed = false;
    host->lost = true;
    for (int i = 0; i < s->count; i++) {
        pl_job_task *task = &s->tasks[i];
        if (task->host != host || !task->running)
            continue;
        task->running = false;
        pl_supervisor_note(s, task, PL_EVENT_LOST, "its host was lost");
        needed = needed || !can_do_without(s, task);
    }
    if (s->phase != PL_JOB_RUNS || !needed) {
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
        return;
    }
    /* The reason is reported at the end, after other tasks have saved. */
    pl_supervisor_fail(s, status);
    pl_log(PL_LOG_WARN, "%s is lost; ending the job on the other hosts",
           host->name);
}
