/* The run folder of a job over hosts, the launcher's side: decides which hosts
 * share it, sends the others what a resumed run needs, and at the end waits for
 * the records that they have not sent yet. */
#include "base/clock.h"
#include "base/error.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "job/hosts/cluster_launch_priv.h"
#include "job/hosts/records/place.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLACE_MS  20000
#define STORED_MS 60000
#define SILENT_MS 10000 /* silence of a host that has records to send */
#define TICK_MS   100

/* --- places ----------------------------------------------------------- */

static pl_status fill_place(const pl_cluster_launch *l, const char *token,
                            pl_json *question)
{
    PL_TRY(pl_json_set_text(question, "folder", l->opts->folder));
    if (l->opts->run == NULL)
        return PL_OK;
    PL_TRY(pl_json_set_text(question, "run", l->opts->run));
    return pl_json_set_text(question, "token", token);
}

static pl_status ask_places(pl_cluster_launch *l, const char *token)
{
    for (int32_t h = 0; h < l->hosts->list->count; h++) {
        pl_json *question;
        PL_TRY(pl_agent_channel_new(&question, "place"));
        pl_status status = fill_place(l, token, question);
        if (status != PL_OK) {
            pl_json_free(question);
            return status;
        }
        PL_TRY(pl_hosts_ask(l->hosts, h, question));
    }
    return pl_hosts_wait(l->hosts, PLACE_MS);
}

static pl_status take_place(pl_cluster_launch *l, int32_t host)
{
    const pl_json *answer;
    const char *run;
    pl_run_of_host *own = &l->runs[host];
    PL_TRY(pl_hosts_answer(l->hosts, host, &answer));
    PL_TRY(pl_json_get_text(answer, "run", &run));
    PL_TRY(pl_json_get_bool(answer, "shared", &own->shared));
    PL_TRY(pl_mem_copy_text(&own->run, run));
    return own->shared ? PL_OK : pl_record_sink_new(&own->sink, l->opts->run);
}

/* The chief and all servers write a checkpoint to one folder. */
static pl_status check_servers(const pl_cluster_launch *l)
{
    const pl_host_list *hosts = l->hosts->list;
    int32_t chief = l->host_of[l->cluster.ps];
    for (int32_t i = 0; i < l->cluster.ps; i++) {
        int32_t own = l->host_of[i];
        if (own == chief || (l->runs[own].shared && l->runs[chief].shared))
            continue;
        return PL_FAIL(PL_UNSUPPORTED,
                       "ps %d on %s and the chief on %s do not share the run "
                       "folder %s, where both write checkpoints: choose --run "
                       "in a folder that all hosts share, or put the servers "
                       "on the chief's host (--ps 1, or a --cluster FILE)",
                       i, hosts->name[own], hosts->name[chief], l->opts->run);
    }
    return PL_OK;
}

static pl_status check_places(const pl_cluster_launch *l)
{
    const pl_host_list *hosts = l->hosts->list;
    int32_t apart = 0;
    for (int32_t h = 0; h < hosts->count; h++) {
        if (l->runs[h].shared)
            continue;
        apart++;
        if (l->opts->secret_file != NULL)
            return PL_FAIL(PL_UNSUPPORTED,
                           "%s does not see the run folder %s, where nodes "
                           "read the job's secret: choose --run on a file "
                           "system that all nodes share",
                           hosts->name[h], l->opts->run);
    }
    if (apart > 0)
        pl_log(PL_LOG_INFO,
               "%d of %d hosts do not share the run folder: they send their "
               "records here",
               apart, hosts->count);
    return check_servers(l);
}

static pl_status locate(pl_cluster_launch *l, const char *token)
{
    PL_TRY(ask_places(l, token));
    for (int32_t h = 0; h < l->hosts->list->count; h++)
        PL_TRY(take_place(l, h));
    return check_places(l);
}

pl_status pl_cluster_launch_locate(pl_cluster_launch *l)
{
    pl_secret random;
    char token[PL_SECRET_TEXT], *mark;
    if (l->opts->run == NULL)
        return ask_places(l, NULL);
    PL_TRY(PL_NEW(l->runs, (size_t)l->hosts->list->count));
    PL_TRY(pl_secret_make(&random));
    pl_secret_text(&random, token);
    token[PL_RUN_PLACE_TOKEN] = '\0';
    PL_TRY(pl_mem_format(&mark, "%s/" PL_RUN_PLACE_MARK "%s", l->opts->run,
                         token));
    pl_status status = pl_file_replace(mark, "", 0);
    if (status == PL_OK)
        status = locate(l, token);
    unlink(mark);
    pl_mem_free(mark);
    return status;
}

/* --- a resumed run ---------------------------------------------------- */

static pl_status send_to(void *context, const pl_control_message *message)
{
    return pl_remote_say(context, message);
}

/* Send one message to each host in turn, so that none considers us silent. */
static pl_status send_some(pl_cluster_launch *l, pl_record_source **sources,
                           bool *sent)
{
    *sent = false;
    for (int32_t h = 0; h < l->hosts->list->count; h++) {
        bool more = false;
        if (sources[h] != NULL)
            PL_TRY(pl_record_source_step(sources[h], true, &more));
        *sent = *sent || more;
        PL_TRY(pl_remote_turn(&l->hosts->remotes[h], NULL, NULL));
    }
    return PL_OK;
}

static pl_status send_all(pl_cluster_launch *l, pl_record_source **sources)
{
    bool sent = true;
    for (int32_t h = 0; h < l->hosts->list->count; h++)
        if (!l->runs[h].shared)
            PL_TRY(pl_record_source_new(&sources[h],
                                        &(pl_record_source_opts) {
                                            .run = l->opts->run,
                                            .resume = true,
                                            .send = send_to,
                                            .context = &l->hosts->remotes[h],
                                        }));
    while (sent) {
        if (l->opts->interrupt != NULL && atomic_load(l->opts->interrupt))
            return PL_FAIL(PL_INTERRUPTED, "interrupted");
        PL_TRY(send_some(l, sources, &sent));
    }
    return PL_OK;
}

static pl_status ask_apart(pl_cluster_launch *l, const char *kind)
{
    for (int32_t h = 0; h < l->hosts->list->count; h++) {
        pl_json *question;
        if (l->runs[h].shared || l->hosts->remotes[h].closed)
            continue;
        PL_TRY(pl_agent_channel_new(&question, kind));
        PL_TRY(pl_hosts_ask(l->hosts, h, question));
    }
    return PL_OK;
}

pl_status pl_cluster_launch_restore(pl_cluster_launch *l)
{
    pl_record_source **sources;
    int32_t count = l->hosts->list->count;
    if (l->runs == NULL)
        return PL_OK;
    PL_TRY(PL_NEW(sources, (size_t)count));
    pl_status status = send_all(l, sources);
    for (int32_t h = 0; h < count; h++)
        pl_record_source_free(sources[h]);
    pl_mem_free(sources);
    PL_TRY(status);
    PL_TRY(ask_apart(l, "stored"));
    return pl_hosts_wait(l->hosts, STORED_MS);
}

/* --- received records ------------------------------------------------- */

void pl_run_of_host_take(pl_run_of_host *run, const char *host,
                         const pl_control_message *message)
{
    if (run->sink == NULL)
        return;
    run->taken++;
    pl_status status = pl_record_sink_take(run->sink, message);
    if (status == PL_OK)
        return;
    if (!run->warned)
        pl_log(PL_LOG_WARN,
               "records of %s: %s; the missing part is in %s "
               "there",
               host, pl_error_message(), run->run);
    run->warned = true;
    if (status == PL_PEER || status == PL_FORMAT)
        return; /* only one file is affected */
    pl_record_sink_free(run->sink);
    run->sink = NULL;
}

typedef struct from_host {
    pl_run_of_host *run;
    const char *host;
} from_host;

static void hear(void *context, const pl_control_message *message)
{
    const from_host *from = context;
    if (message->kind == PL_CONTROL_RECORD)
        pl_run_of_host_take(from->run, from->host, message);
}

/* True while this host has not reported that it has sent all. */
static bool collect_from(pl_cluster_launch *l, int32_t host)
{
    pl_remote *remote = &l->hosts->remotes[host];
    pl_run_of_host *run = &l->runs[host];
    from_host from = { run, remote->host };
    if (run->shared || run->over)
        return false;
    int64_t taken = run->taken;
    if (remote->closed || pl_remote_turn(remote, hear, &from) != PL_OK) {
        remote->closed = true;
        return false;
    }
    if (run->taken != taken)
        run->limit = pl_deadline_in_ms(pl_clock_real(), SILENT_MS);
    run->over = remote->answer != NULL;
    return !run->over && !pl_deadline_passed(run->limit);
}

static void name_missing(const pl_cluster_launch *l)
{
    for (int32_t h = 0; h < l->hosts->list->count; h++)
        if (!l->runs[h].shared && !l->runs[h].over)
            pl_log(PL_LOG_WARN,
                   "%s did not send all of its records; the missing part is "
                   "in %s there",
                   l->hosts->list->name[h], l->runs[h].run);
}

void pl_cluster_launch_collect(pl_cluster_launch *l)
{
    bool waiting = true;
    if (l->runs == NULL)
        return;
    if (ask_apart(l, "records") != PL_OK)
        pl_log(PL_LOG_WARN, "%s", pl_error_message());
    for (int32_t h = 0; h < l->hosts->list->count; h++)
        l->runs[h].limit = pl_deadline_in_ms(pl_clock_real(), SILENT_MS);
    while (waiting) {
        waiting = false;
        for (int32_t h = 0; h < l->hosts->list->count; h++)
            waiting = collect_from(l, h) || waiting;
        if (waiting)
            pl_remotes_wait(l->hosts->all, l->hosts->list->count, TICK_MS);
    }
    name_missing(l);
}
