#include "dist/launch/many.h"

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/quote.h"
#include "dist/launch/agent_task.h"
#include "dist/launch/many_priv.h"

#include <errno.h>
#include <string.h>

#define TICK_MS   50
#define SILENT_MS 4000
#define END_MS    20000

/* --- starting --------------------------------------------------------- */

/* TF_CONFIG=... of one task. */
static pl_status tf_config(const pl_many *m, pl_task task, char **out)
{
    pl_json *config, *self = NULL;
    char *text = NULL;
    PL_TRY(pl_cluster_json(&m->cluster, &config));
    pl_status status;
    PL_TRY_OUT(status, pl_json_new_object(&self));
    PL_TRY_OUT(status, pl_json_set_text(self, "type", pl_role_text(task.role)));
    PL_TRY_OUT(status, pl_json_set_int(self, "index", task.index));
    pl_json *taken = self;
    self = NULL;
    PL_TRY_OUT(status, pl_json_set_take(config, "task", taken));
    PL_TRY_OUT(status, pl_json_text(config, 0, &text));
    status = pl_mem_format(out, "TF_CONFIG=%s", text);
out:
    pl_json_free(self);
    pl_json_free(config);
    pl_mem_free(text);
    return status;
}

/* The words as a list, with one more at the end unless it is NULL. */
static pl_status set_list(pl_json *object, const char *key, char *const *words,
                          const char *more)
{
    pl_json *list;
    pl_status status = PL_OK;
    PL_TRY(pl_json_new_array(&list));
    for (; status == PL_OK && *words != NULL; words++)
        status = pl_json_append_text(list, *words);
    if (status == PL_OK && more != NULL)
        status = pl_json_append_text(list, more);
    if (status != PL_OK) {
        pl_json_free(list);
        return status;
    }
    return pl_json_set_take(object, key, list);
}

static pl_status fill_start(const pl_many *m, const pl_many_task *task,
                            pl_json *message)
{
    char *variable;
    PL_TRY(pl_json_set_text(message, "role", pl_role_text(task->task.role)));
    PL_TRY(pl_json_set_int(message, "index", task->task.index));
    if (m->opts->secret_file != NULL)
        PL_TRY(pl_json_set_text(message, "secret_file", m->opts->secret_file));
    else
        PL_TRY(pl_json_set_text(message, "secret", m->secret));
    /* A chief that was killed finds its own run in the folder, unless it was
     * killed before it had begun. */
    PL_TRY(set_list(message, "argv", m->opts->argv,
                    task->worker == 0 && task->starts > 0 ? "--resume-or-start"
                                                          : NULL));
    PL_TRY(tf_config(m, task->task, &variable));
    char logs[] = PL_AGENT_LOGS "=1";
    char *const environment[] = { variable, logs, NULL };
    pl_status status = set_list(message, "environment", environment, NULL);
    pl_mem_free(variable);
    return status;
}

pl_status pl_many_start(pl_many *m, pl_many_task *task)
{
    pl_json *message;
    PL_TRY(pl_talk_new(&message, "start"));
    pl_status status = fill_start(m, task, message);
    if (status != PL_OK) {
        pl_json_free(message);
        return status;
    }
    task->starts++;
    task->running = true;
    return pl_remote_say(&m->crew->remotes[task->host], message);
}

/* --- ending ----------------------------------------------------------- */

static void enter(pl_many *m, pl_many_phase next)
{
    if (next <= m->phase)
        return;
    m->phase = next;
    m->deadline = pl_deadline_in_ms(
        pl_clock_real(), m->opts->end_ms > 0 ? m->opts->end_ms : END_MS);
    for (int32_t h = 0; next == PL_MANY_ENDED && h < m->crew->hosts->count;
         h++) {
        pl_json *end;
        /* Who cannot be told is ended by its input's end. */
        if (pl_talk_new(&end, "end") == PL_OK &&
            pl_remote_say(&m->crew->remotes[h], end) != PL_OK)
            m->crew->remotes[h].closed = true;
    }
}

/* Keep the first failure; all tasks are to end. */
static void fail(pl_many *m, pl_status status)
{
    if (m->failed.status == PL_OK)
        pl_error_save(&m->failed, status);
    enter(m, PL_MANY_ENDED);
}

/* --- what the agents say ---------------------------------------------- */

static const char *host_name(const pl_many *m, const pl_many_task *task)
{
    return m->crew->hosts->name[task->host];
}

static pl_many_task *find_task(pl_many *m, const pl_remote *remote,
                               const pl_json *message)
{
    pl_task id;
    if (pl_agent_task_id(&id, message) != PL_OK)
        return NULL;
    for (int i = 0; i < m->count; i++)
        if (m->tasks[i].task.role == id.role &&
            m->tasks[i].task.index == id.index &&
            &m->crew->remotes[m->tasks[i].host] == remote)
            return &m->tasks[i];
    return NULL;
}

/* A line of a task's log, whatever the agent says it wrote. */
static bool put_line(FILE *log, const char *text)
{
    pl_buffer line = { 0 };
    pl_quote_terminal(&line, text);
    pl_buffer_text(&line, "\n");
    bool good = pl_buffer_status(&line) == PL_OK &&
                fputs(line.data, log) >= 0 && fflush(log) == 0;
    pl_buffer_close(&line);
    return good;
}

static void take_output(pl_many *m, const pl_many_task *task,
                        const pl_json *message)
{
    const char *text;
    bool error;
    FILE *log = m->logs[task - m->tasks];
    if (pl_json_get_text(message, "text", &text) != PL_OK ||
        pl_json_get_bool(message, "error", &error) != PL_OK)
        return;
    if (log != NULL && !put_line(log, text)) {
        fclose(log); /* the output is still shown */
        m->logs[task - m->tasks] = NULL;
    }
    m->opts->print(m->opts->context, task, host_name(m, task), error, text);
}

/* The words of a task without "paceline: " before and the place behind. */
static void own_words(const char *said, char *text, size_t room)
{
    const char *colon = strstr(said, ": ");
    const char *begin = strchr(said, ' ');
    if (colon != NULL && begin == colon + 1)
        said = colon + 2;
    snprintf(text, room, "%s", said);
    text[pl_error_words(text)] = '\0';
}

static void fail_by(pl_many *m, const pl_many_task *task, int64_t status,
                    const char *how, const char *said)
{
    char words[PL_AGENT_SAID];
    own_words(said, words, sizeof words);
    fail(m, PL_FAIL(status == 2 ? PL_USAGE : PL_PEER,
                    "%s %d on %s %s%s%s; its log: %s/%s-%d.log",
                    pl_role_text(task->task.role), task->task.index,
                    host_name(m, task), how, words[0] != '\0' ? ": " : "",
                    words, m->opts->logs, pl_role_text(task->task.role),
                    task->task.index));
}

static bool can_do_without(const pl_many *m, const pl_many_task *task)
{
    return task->task.role == PL_ROLE_EVALUATOR ||
           (m->opts->go_on && task->worker > 0);
}

static void ended_badly(pl_many *m, pl_many_task *task, int64_t status,
                        const char *how, const char *said)
{
    const char *role = pl_role_text(task->task.role);
    if (m->phase == PL_MANY_ENDED)
        return; /* as it was told */
    if (m->phase == PL_MANY_OVER && task->worker != 0) {
        pl_log(PL_LOG_WARN, "%s %d on %s %s", role, task->task.index,
               host_name(m, task), how);
    } else if (status < 0 && task->starts <= m->opts->restarts) {
        pl_log(PL_LOG_WARN, "%s %d on %s %s; started again (%d of %d)", role,
               task->task.index, host_name(m, task), how, task->starts,
               m->opts->restarts);
        pl_status again = pl_many_start(m, task);
        if (again != PL_OK)
            fail(m, again);
    } else if (can_do_without(m, task)) {
        pl_log(PL_LOG_WARN, "%s %d on %s %s; the job goes on without it", role,
               task->task.index, host_name(m, task), how);
    } else {
        fail_by(m, task, status, how, said);
    }
}

static void take_ended(pl_many *m, pl_many_task *task, const pl_json *message)
{
    int64_t status;
    const char *how, *said;
    if (pl_json_get_int(message, "status", -255, 255, &status) != PL_OK ||
        pl_json_get_text(message, "how", &how) != PL_OK ||
        pl_json_get_text(message, "said", &said) != PL_OK || !task->running)
        return;
    task->running = false;
    if (status != 0) {
        ended_badly(m, task, status, how, said);
        return;
    }
    bool chief = task->worker == 0;
    m->done = m->done || (chief && m->phase != PL_MANY_ENDED);
    if (chief)
        enter(m, PL_MANY_OVER);
}

static void hear(void *context, pl_remote *remote, const pl_json *message)
{
    pl_many *m = context;
    pl_many_task *task = find_task(m, remote, message);
    if (task == NULL)
        return;
    if (strcmp(pl_talk_kind(message), "output") == 0)
        take_output(m, task, message);
    else if (strcmp(pl_talk_kind(message), "ended") == 0)
        take_ended(m, task, message);
}

/* --- the loop --------------------------------------------------------- */

/* A host is gone, and its tasks with it. */
static void lose_host(pl_many *m, int32_t host, pl_status status)
{
    bool needed = false;
    m->crew->remotes[host].closed = true;
    for (int i = 0; i < m->count; i++) {
        pl_many_task *task = &m->tasks[i];
        if (task->host != host || !task->running)
            continue;
        task->running = false;
        needed = needed || !can_do_without(m, task);
    }
    if (m->phase != PL_MANY_RUNS || !needed) {
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
        return;
    }
    /* Why is said at the end, which takes a while: others save first. */
    fail(m, status);
    pl_log(PL_LOG_WARN, "%s is lost; ending the job on the other hosts",
           m->crew->hosts->name[host]);
}

static void look_at_host(pl_many *m, int32_t host)
{
    pl_remote *remote = &m->crew->remotes[host];
    int64_t limit_ms = m->opts->silent_ms > 0 ? m->opts->silent_ms : SILENT_MS;
    if (remote->closed)
        return;
    pl_status status = pl_remote_turn(remote, hear, m);
    if (status == PL_OK && pl_remote_silent_ms(remote) > limit_ms)
        status = PL_FAIL(PL_TIMEOUT,
                         "%s has said nothing for %lld s: it is down, or cut "
                         "off from here",
                         remote->host, (long long)(limit_ms / 1000));
    if (status != PL_OK)
        lose_host(m, host, status);
}

static int running(const pl_many *m)
{
    int count = 0;
    for (int i = 0; i < m->count; i++)
        count += m->tasks[i].running;
    return count;
}

static bool interrupted(const pl_many *m)
{
    return m->opts->interrupt != NULL && atomic_load(m->opts->interrupt);
}

static void watch(pl_many *m)
{
    while (running(m) > 0) {
        pl_remotes_wait(m->crew->all, m->crew->hosts->count, TICK_MS);
        for (int32_t h = 0; h < m->crew->hosts->count; h++)
            look_at_host(m, h);
        if (interrupted(m))
            enter(m, PL_MANY_ENDED);
        if (m->phase == PL_MANY_RUNS || !pl_deadline_passed(m->deadline))
            continue;
        if (m->phase == PL_MANY_ENDED)
            return; /* the end of their input ends them */
        pl_log(PL_LOG_WARN, "%d tasks still run and are ended", running(m));
        enter(m, PL_MANY_ENDED);
    }
}

/* --- the whole -------------------------------------------------------- */

static pl_status open_logs(pl_many *m)
{
    for (int i = 0; i < m->count; i++) {
        char *path;
        pl_task id = m->tasks[i].task;
        PL_TRY(pl_mem_format(&path, "%s/%s-%d.log", m->opts->logs,
                             pl_role_text(id.role), id.index));
        m->logs[i] = fopen(path, "ae");
        pl_status status = m->logs[i] != NULL ? PL_OK
                                              : PL_FAIL(PL_IO, "open %s: %s",
                                                        path, strerror(errno));
        pl_mem_free(path);
        PL_TRY(status);
    }
    return PL_OK;
}

void pl_many_close(pl_many *m)
{
    for (int i = 0; i < m->count; i++)
        if (m->logs[i] != NULL)
            fclose(m->logs[i]);
    pl_keys_wipe(m->secret, sizeof m->secret);
    pl_mem_free(m->logs);
    pl_mem_free(m->tasks);
    pl_cluster_close(&m->cluster);
}

pl_status pl_many_check(const pl_many_opts *opts)
{
    pl_many m = { .opts = opts, .crew = opts->crew };
    pl_status status = pl_many_deal(&m);
    if (status == PL_OK)
        status = pl_many_try(&m);
    pl_many_close(&m);
    return status;
}

pl_status pl_many_supervise(pl_many *m)
{
    PL_TRY(open_logs(m));
    pl_secret_text(m->opts->secret, m->secret);
    for (int i = 0; i < m->count && m->failed.status == PL_OK; i++) {
        pl_status status = pl_many_start(m, &m->tasks[i]);
        if (status != PL_OK)
            fail(m, status);
    }
    watch(m);
    if (m->failed.status != PL_OK)
        return pl_error_raise(&m->failed);
    if (interrupted(m) && !m->done)
        return PL_FAIL(PL_INTERRUPTED, "interrupted");
    if (!m->done)
        return PL_FAIL(PL_PEER,
                       "all tasks have ended, but not the chief as it should; "
                       "logs in %s",
                       m->opts->logs);
    return PL_OK;
}

static pl_status run(pl_many *m)
{
    PL_TRY(pl_many_deal(m));
    PL_TRY(pl_many_try(m));
    PL_TRY(pl_many_find_ports(m));
    return pl_many_supervise(m);
}

pl_status pl_many_run(const pl_many_opts *opts)
{
    pl_many m = { .opts = opts, .crew = opts->crew };
    pl_status status = run(&m);
    pl_many_close(&m);
    return status;
}
