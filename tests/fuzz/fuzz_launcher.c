/* fuzz_launcher.c - what a launcher accepts from the agents of its hosts.
 *
 * The first byte is the setting.  With SET_FACTS the rest is what an agent
 * reports of its host.  Otherwise it is parts that end in a NUL: the errors of
 * ssh, each agent's answer when asked whether it can do its part, each one's
 * answer when asked for ports, and what each sends until it closes.  All of a
 * part is there before the launcher reads, so nothing waits. */
#include "app/doctor/doctor.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "job/hosts/cluster_launch_priv.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HOSTS     2
#define PART_MOST 16000 /* bytes; a pipe takes four of them */
#define PATH_MOST 64

/* The setting. */
#define SET_FACTS 0x01
#define SET_HELLO 0x02 /* all agents have said hello */
#define SET_GO_ON 0x04

typedef struct host {
    int to, from; /* the agent's standard output and input */
} host;

typedef struct world {
    const uint8_t *at, *end; /* the parts to come */
    host hosts[HOSTS];
} world;

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

static void print(void *context, const pl_job_task *task, bool error,
                  const char *line)
{
    (void)context, (void)error;
    PL_ASSERT(strlen(task->host->name) > 0);
    PL_ASSERT(strlen(line) < PL_AGENT_CHANNEL_LINE_MAX);
}

/* --- the hosts -------------------------------------------------------- */

/* The next part; its length may be 0. */
static const uint8_t *next_part(world *w, size_t *bytes)
{
    const uint8_t *part = w->at;
    const uint8_t *nul = memchr(part, '\0', (size_t)(w->end - part));
    *bytes = (size_t)((nul != NULL ? nul : w->end) - part);
    w->at = nul != NULL ? nul + 1 : w->end;
    *bytes = *bytes < PART_MOST ? *bytes : PART_MOST;
    return part;
}

/* Every host sends its next part. */
static void send_parts(world *w)
{
    for (int h = 0; h < HOSTS; h++) {
        size_t bytes;
        const uint8_t *part = next_part(w, &bytes);
        PL_ASSERT(write(w->hosts[h].to, part, bytes) == (ssize_t)bytes);
    }
}

/* --- the launcher ----------------------------------------------------- */

static char logs[] = "/tmp/paceline-fuzz-logs-XXXXXX";
static const char *const log_names[] = { "ps-0", "worker-0", "worker-1" };

#define LOGS (sizeof log_names / sizeof *log_names)

static void log_path(char path[PATH_MOST], size_t i)
{
    snprintf(path, PATH_MOST, "%s/%s.log", logs, log_names[i]);
}

/* Logs go nowhere. */
static void make_logs(void)
{
    char path[PATH_MOST];
    if (mkdtemp(logs) == NULL)
        abort();
    for (size_t i = 0; i < LOGS; i++) {
        log_path(path, i);
        if (symlink("/dev/null", path) != 0)
            abort();
    }
}

static void remove_logs(void)
{
    char path[PATH_MOST];
    for (size_t i = 0; i < LOGS; i++) {
        log_path(path, i);
        unlink(path);
    }
    rmdir(logs);
}

static void open_remote(pl_remote *remote, const char *name, host *h,
                        bool hello)
{
    int in[2], out[2];
    int64_t now = pl_clock_now_ns(pl_clock_real());
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        abort();
    *remote = (pl_remote) {
        .host = name, .err = -1, .heard_ns = now, .said_ns = now, .hello = hello
    };
    if (pl_agent_channel_init(&remote->channel, in[0], out[1]) != PL_OK)
        abort();
    *h = (host) { .to = in[1], .from = out[0] };
}

/* The first part, as the messages of ssh. */
static void put_words(world *w, pl_remote *remote)
{
    int err[2];
    size_t bytes;
    const uint8_t *part = next_part(w, &bytes);
    if (pipe2(err, O_CLOEXEC | O_NONBLOCK) != 0 ||
        write(err[1], part, bytes) != (ssize_t)bytes)
        abort();
    close(err[1]);
    remote->err = err[0];
}

/* A wait for answers polls once: agents that have not answered never do. */
static pl_status prepare(world *w, pl_cluster_launch *m)
{
    PL_TRY(pl_cluster_launch_place(m));
    send_parts(w);
    PL_TRY(pl_cluster_launch_try(m));
    send_parts(w);
    return pl_cluster_launch_find_ports(m);
}

static void launch(world *w, pl_hosts *hosts, uint8_t setting)
{
    char *const argv[] = { "paceline", "train", "softmax", NULL };
    pl_secret secret = { 0 };
    pl_cluster cluster;
    if (pl_cluster_local(&cluster, 2, 1, false) != PL_OK)
        abort();
    pl_cluster_launch_opts opts = {
        .hosts = hosts,
        .cluster = &cluster,
        .argv = argv,
        .folder = ".",
        .secret = &secret,
        .logs = logs,
        .restarts = 1,
        .go_on = (setting & SET_GO_ON) != 0,
        .print = print,
    };
    pl_cluster_launch m = { .opts = &opts, .hosts = hosts };
    pl_status status = prepare(w, &m);
    if (status == PL_OK)
        send_parts(w);
    for (int h = 0; h < HOSTS; h++)
        close(w->hosts[h].to);
    if (status == PL_OK)
        status = pl_cluster_launch_supervise(&m);
    PL_ASSERT(status == PL_OK || strlen(pl_error_message()) > 0);
    pl_cluster_launch_close(&m);
    pl_cluster_close(&cluster);
}

static void talk_to_agents(world *w, uint8_t setting)
{
    static char *names[HOSTS] = { "a", "me@b" };
    static const pl_host_list list = { names, HOSTS };
    static const atomic_bool no_waiting = true;
    pl_hosts hosts = { .list = &list,
                       .started = HOSTS,
                       .interrupt = &no_waiting };
    if (PL_NEW(hosts.remotes, HOSTS) != PL_OK ||
        PL_NEW(hosts.all, HOSTS) != PL_OK ||
        PL_NEW(hosts.asked, HOSTS) != PL_OK)
        abort();
    for (int h = 0; h < HOSTS; h++) {
        open_remote(&hosts.remotes[h], names[h], &w->hosts[h],
                    (setting & SET_HELLO) != 0);
        hosts.all[h] = &hosts.remotes[h];
    }
    put_words(w, &hosts.remotes[0]);
    launch(w, &hosts, setting);
    pl_hosts_close(&hosts);
    for (int h = 0; h < HOSTS; h++)
        close(w->hosts[h].from);
}

/* --- facts ------------------------------------------------------------ */

static void judge(const uint8_t *data, size_t bytes)
{
    pl_json *facts;
    pl_diagnosis d = { 0 };
    if (pl_json_parse(&facts, (const char *)data, bytes, "facts") != PL_OK)
        return;
    if (pl_doctor_judge(&d, "a", facts) == PL_OK)
        PL_ASSERT(d.line_count > 0);
    pl_fields_close(&pl_diagnosis_fields, &d);
    pl_json_free(facts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static bool begun;
    if (bytes == 0)
        return 0;
    if (!begun) {
        signal(SIGPIPE, SIG_IGN);
        pl_log_set(no_log, NULL, PL_LOG_ERROR);
        make_logs();
        atexit(remove_logs);
        begun = true;
    }
    world w = { .at = data + 1, .end = data + bytes };
    if ((data[0] & SET_FACTS) != 0)
        judge(data + 1, bytes - 1);
    else
        talk_to_agents(&w, data[0]);
    return 0;
}
