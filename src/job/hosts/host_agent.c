/* A host reached by its agent: decides how a task is started and when the host
 * counts as lost, and keeps the logs of its tasks. */
#include "job/hosts/host_agent.h"

#include "base/mem.h"
#include "base/text/quote.h"
#include "job/hosts/cluster_launch_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SILENT_MS 4000

typedef struct started {
    pl_task task;
    bool here; /* it runs on this host */
    FILE *log; /* NULL: writing failed */
} started;

typedef struct host_agent {
    pl_host base;
    pl_host_agent_opts opts;
    started *tasks;               /* [opts.tasks], by slot */
    char **argv;                  /* of a restarted chief */
    const pl_host_events *events; /* during `turn` */
} host_agent;

/* --- starting --------------------------------------------------------- */

/* TF_CONFIG=... of one task. */
static pl_status tf_config(const host_agent *h, pl_task task, char **out)
{
    pl_json *config, *self = NULL;
    char *text = NULL;
    PL_TRY(pl_cluster_json(h->opts.cluster, &config));
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

static pl_status open_log(const host_agent *h, started *s)
{
    char *path;
    if (s->log != NULL)
        return PL_OK;
    PL_TRY(pl_mem_format(&path, "%s/%s-%d.log", h->opts.logs,
                         pl_role_text(s->task.role), s->task.index));
    s->log = fopen(path, "ae");
    pl_status status =
        s->log != NULL ? PL_OK
                       : PL_FAIL(PL_IO, "open %s: %s", path, strerror(errno));
    pl_mem_free(path);
    return status;
}

static pl_status say_start(host_agent *h, const pl_job_task *task,
                           char *variable)
{
    char secret[PL_SECRET_TEXT], logs[] = PL_AGENT_LOGS "=1";
    char *const environment[] = { variable, logs, NULL };
    pl_secret_text(h->opts.secret, secret);
    /* A chief that was killed finds its run in the folder, unless it was killed
     * before it had begun. */
    bool resume = task->worker == 0 && task->starts > 0;
    pl_status status = pl_remote_say(
        h->opts.remote, &(pl_control_message) {
                            .kind = PL_CONTROL_START,
                            .task = task->task,
                            .argv = resume ? h->argv : h->opts.argv,
                            .environment = environment,
                            .secret = secret,
                            .secret_file = h->opts.secret_file,
                        });
    pl_keys_wipe(secret, sizeof secret);
    return status;
}

static pl_status start(pl_host *host, pl_job_task *task)
{
    host_agent *h = (host_agent *)host;
    started *s = &h->tasks[task->slot];
    char *variable;
    s->task = task->task;
    s->here = true;
    PL_TRY(open_log(h, s));
    PL_TRY(tf_config(h, task->task, &variable));
    pl_status status = say_start(h, task, variable);
    pl_mem_free(variable);
    return status;
}

/* If sending fails, `turn` reports the agent as gone. */
static void send_signal(pl_host *host, const pl_job_task *task, int number)
{
    host_agent *h = (host_agent *)host;
    if (pl_remote_say(h->opts.remote, &(pl_control_message) {
                                          .kind = PL_CONTROL_SIGNAL,
                                          .task = task->task,
                                          .number = number,
                                      }) != PL_OK)
        h->opts.remote->closed = true;
}

/* --- what happens ----------------------------------------------------- */

/* Write a line of a task's log, with the untrusted text of the agent quoted. */
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

static void take_output(host_agent *h, started *s,
                        const pl_control_message *message)
{
    if (s->log != NULL && !put_line(s->log, message->text)) {
        fclose(s->log); /* the output is still shown */
        s->log = NULL;
    }
    h->events->output(h->events->context, s->task, message->error,
                      message->text);
}

static started *find(host_agent *h, pl_task id)
{
    for (int i = 0; i < h->opts.tasks; i++)
        if (h->tasks[i].here && h->tasks[i].task.role == id.role &&
            h->tasks[i].task.index == id.index)
            return &h->tasks[i];
    return NULL;
}

static void hear(void *context, const pl_control_message *message)
{
    host_agent *h = context;
    if (message->kind == PL_CONTROL_RECORD) {
        if (h->opts.run != NULL)
            pl_run_of_host_take(h->opts.run, h->base.name, message);
        return;
    }
    started *s = find(h, message->task);
    if (s == NULL)
        return;
    if (message->kind == PL_CONTROL_OUTPUT)
        take_output(h, s, message);
    else /* as waitpid returns it */
        h->events->ended(h->events->context, s->task,
                         message->number >= 0 ? message->number << 8
                                              : -message->number,
                         message->text);
}

static pl_status look(host_agent *h)
{
    pl_remote *remote = h->opts.remote;
    int64_t limit_ms = h->opts.silent_ms > 0 ? h->opts.silent_ms : SILENT_MS;
    if (remote->closed)
        return PL_FAIL(PL_CLOSED, "the connection to %s was lost",
                       remote->host);
    PL_TRY(pl_remote_turn(remote, hear, h));
    if (pl_remote_silent_ms(remote) > limit_ms)
        return PL_FAIL(PL_TIMEOUT,
                       "%s has been silent for %lld s: it is down or "
                       "unreachable",
                       remote->host, (long long)(limit_ms / 1000));
    return PL_OK;
}

static pl_status turn(pl_host *host, const pl_host_events *events)
{
    host_agent *h = (host_agent *)host;
    h->events = events;
    pl_status status = look(h);
    h->events = NULL;
    if (status != PL_OK && status != PL_NOMEM)
        h->opts.remote->closed = true;
    return status;
}

static int descriptors(const pl_host *host, struct pollfd *polls, int room)
{
    const host_agent *h = (const host_agent *)host;
    if (room < 1)
        return 0;
    polls[0] =
        (struct pollfd) { .fd = h->opts.remote->channel.in, .events = POLLIN };
    return 1;
}

static const pl_host_ops agent_ops = {
    .start = start,
    .signal = send_signal,
    .descriptors = descriptors,
    .turn = turn,
};

/* --- the host --------------------------------------------------------- */

static pl_status build(host_agent *h)
{
    static char resume[] = "--resume-or-start";
    size_t count = 0;
    while (h->opts.argv[count] != NULL)
        count++;
    PL_TRY(PL_NEW(h->tasks, (size_t)h->opts.tasks));
    PL_TRY(PL_NEW(h->argv, count + 2));
    memcpy(h->argv, h->opts.argv, count * sizeof *h->argv);
    h->argv[count] = resume;
    return PL_OK;
}

pl_status pl_host_agent_new(pl_host **out, const pl_host_agent_opts *opts)
{
    host_agent *h;
    PL_TRY(PL_NEW(h, 1));
    h->base = (pl_host) { .ops = &agent_ops, .name = opts->remote->host };
    h->opts = *opts;
    pl_status status = build(h);
    if (status == PL_OK)
        *out = &h->base;
    else
        pl_host_agent_free(&h->base);
    return status;
}

void pl_host_agent_free(pl_host *host)
{
    host_agent *h = (host_agent *)host;
    if (h == NULL)
        return;
    for (int i = 0; h->tasks != NULL && i < h->opts.tasks; i++)
        if (h->tasks[i].log != NULL)
            fclose(h->tasks[i].log);
    pl_mem_free(h->tasks);
    pl_mem_free(h->argv);
    pl_mem_free(h);
}
