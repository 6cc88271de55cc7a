/* usage.c - converts two readings of the kernel's counters to rates, for the
 * host and for the processes of the job, and formats a row of the CSV file. */
#include "observe/resources/usage.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/mem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define FIELD_BYTES 64 /* of a name or a number, with its comma */
#define PROCESSES   1024
/* Columns besides those of cores and interfaces. */
#define COLUMNS 20
/* ... and those of one role. */
#define ROLE_COLUMNS 5

/* A process at the previous sample. */
typedef struct known {
    pl_process last;
    bool seen; /* also in this sample */
} known;

struct pl_usage {
    const char *root;
    bool roles;
    pl_host_stats now, before;
    double time;    /* of `before` */
    uint64_t ticks; /* likewise, after boot */
    int net_count;
    char names[PL_HOST_NETS][16]; /* of the interfaces in the file */
    pl_net_rates nets[PL_HOST_NETS];
    double *cores;
    known *processes; /* [PROCESSES], known_count in use */
    int known_count;
    double sent_bytes, received_bytes; /* at the previous sample */
    double role_sent_bytes[PL_TASKS_ROLES];
    double role_received_bytes[PL_TASKS_ROLES];
    double peak_mb;
    pl_usage_view view;
    char *line;
    size_t room;
};

static void keep(pl_usage *usage, double time)
{
    pl_core *cores = usage->before.cores;
    char *text = usage->before.text;
    memcpy(cores, usage->now.cores,
           (size_t)usage->now.core_count * sizeof *cores);
    usage->before = usage->now;
    usage->before.cores = cores;
    usage->before.text = text;
    usage->time = time;
    usage->ticks =
        (uint64_t)((double)pl_clock_boot_ns() * 1e-9 * pl_proc_ticks_per_s());
}

static pl_status open_usage(pl_usage *usage)
{
    PL_TRY(pl_host_stats_init(&usage->now, usage->root));
    PL_TRY(pl_host_stats_init(&usage->before, usage->root));
    if (usage->now.core_count > usage->before.core_count)
        usage->now.core_count = usage->before.core_count;
    pl_host_stats_read(&usage->now, usage->root);
    usage->net_count = usage->now.net_count;
    for (int i = 0; i < usage->net_count; i++) {
        memcpy(usage->names[i], usage->now.nets[i].name,
               sizeof usage->names[i]);
        usage->nets[i].name = usage->names[i];
    }
    size_t cores = (size_t)usage->now.core_count;
    usage->room = (COLUMNS + (size_t)ROLE_COLUMNS * PL_TASKS_ROLES + cores +
                   4 * (size_t)usage->net_count) *
                  FIELD_BYTES;
    PL_TRY(PL_NEW(usage->cores, cores));
    PL_TRY(PL_NEW(usage->processes, PROCESSES));
    return PL_NEW(usage->line, usage->room);
}

pl_status pl_usage_new(pl_usage **out, const pl_usage_opts *opts)
{
    pl_usage *usage;
    PL_TRY(PL_NEW(usage, 1));
    usage->root = opts != NULL && opts->root != NULL ? opts->root : PL_PROC;
    usage->roles = opts != NULL && opts->roles;
    pl_status status = open_usage(usage);
    if (status != PL_OK) {
        pl_usage_free(usage);
        return status;
    }
    keep(usage, 0);
    usage->sent_bytes = usage->received_bytes = NAN;
    for (int r = 0; r < PL_TASKS_ROLES; r++)
        usage->role_sent_bytes[r] = usage->role_received_bytes[r] = NAN;
    *out = usage;
    return PL_OK;
}

void pl_usage_free(pl_usage *usage)
{
    if (usage == NULL)
        return;
    pl_host_stats_close(&usage->now);
    pl_host_stats_close(&usage->before);
    pl_mem_free(usage->cores);
    pl_mem_free(usage->processes);
    pl_mem_free(usage->line);
    pl_mem_free(usage);
}

/* Counters that were reset (an interface that came back) give no rate. */
static double rate(uint64_t now, uint64_t before, double seconds)
{
    return now < before || !(seconds > 0) ? NAN
                                          : (double)(now - before) / seconds;
}

static double busy_percent(pl_core now, pl_core before)
{
    if (now.all <= before.all || now.busy < before.busy)
        return NAN;
    return 100 * (double)(now.busy - before.busy) /
           (double)(now.all - before.all);
}

static const pl_interface *find_net(const pl_host_stats *host, const char *name)
{
    for (int i = 0; i < host->net_count; i++)
        if (strcmp(host->nets[i].name, name) == 0)
            return &host->nets[i];
    return NULL;
}

static void view_nets(pl_usage *usage, double seconds)
{
    for (int i = 0; i < usage->net_count; i++) {
        pl_net_rates *net = &usage->nets[i];
        const pl_interface *now = find_net(&usage->now, net->name);
        const pl_interface *before = find_net(&usage->before, net->name);
        net->received_bytes = net->sent_bytes = NAN;
        net->received_packets = net->sent_packets = NAN;
        if (now == NULL || before == NULL)
            continue;
        net->received_bytes =
            rate(now->received_bytes, before->received_bytes, seconds);
        net->sent_bytes = rate(now->sent_bytes, before->sent_bytes, seconds);
        net->received_packets =
            rate(now->received_packets, before->received_packets, seconds);
        net->sent_packets =
            rate(now->sent_packets, before->sent_packets, seconds);
    }
}

static void view_host(pl_usage *usage, double seconds)
{
    const pl_host_stats *now = &usage->now, *before = &usage->before;
    pl_usage_view *view = &usage->view;
    for (int i = 0; i < now->core_count; i++)
        usage->cores[i] = busy_percent(now->cores[i], before->cores[i]);
    view->cpu = busy_percent(now->all, before->all);
    view->cores = usage->cores;
    view->core_count = now->core_count;
    view->load = now->load;
    view->memory_mb = (double)now->memory_kb / 1024;
    view->memory_total_mb = (double)now->memory_total_kb / 1024;
    view->switches = rate(now->switches, before->switches, seconds);
    view->disk_read_bytes =
        rate(now->disk_read_bytes, before->disk_read_bytes, seconds);
    view->disk_written_bytes =
        rate(now->disk_written_bytes, before->disk_written_bytes, seconds);
    view_nets(usage, seconds);
    view->nets = usage->nets;
    view->net_count = usage->net_count;
}

/* The entry of the process.  A process that began since the previous sample
 * used all of its counters in this interval; for one merely unknown until now
 * the share is unknown and left out. */
static known *find_process(pl_usage *usage, const pl_process *now)
{
    for (int i = 0; i < usage->known_count; i++)
        if (usage->processes[i].last.pid == now->pid)
            return &usage->processes[i];
    if (usage->known_count == PROCESSES)
        return NULL;
    known *process = &usage->processes[usage->known_count++];
    bool older = now->began > 0 && now->began < usage->ticks;
    *process = (known) { .last.pid = now->pid };
    if (older)
        process->last = *now;
    return process;
}

static void forget_gone(pl_usage *usage)
{
    int kept = 0;
    for (int i = 0; i < usage->known_count; i++) {
        if (!usage->processes[i].seen)
            continue;
        usage->processes[i].seen = false;
        usage->processes[kept++] = usage->processes[i];
    }
    usage->known_count = kept;
}

static double grown(uint64_t now, uint64_t before)
{
    return now > before ? (double)(now - before) : 0;
}

static void add_process(pl_usage *usage, pid_t pid, pl_usage_role *role)
{
    pl_process now;
    pl_usage_view *view = &usage->view;
    if (!pl_process_read(&now, usage->root, pid))
        return;
    known *process = find_process(usage, &now);
    if (process == NULL)
        return;
    const pl_process *last = &process->last;
    view->job_tasks++;
    view->job_rss_mb += (double)now.rss_kb / 1024;
    view->job_cpu += grown(now.ticks, last->ticks);
    role->tasks++;
    role->rss_mb += (double)now.rss_kb / 1024;
    role->cpu += grown(now.ticks, last->ticks);
    view->job_switches += grown(now.switches, last->switches);
    view->job_read_bytes += grown(now.read_bytes, last->read_bytes);
    view->job_written_bytes += grown(now.written_bytes, last->written_bytes);
    process->last = now;
    process->seen = true;
}

static double traffic_rate(double now, double *before, double seconds)
{
    double rate = now >= *before ? (now - *before) / seconds : NAN;
    *before = now;
    return rate;
}

static void view_roles(pl_usage *usage, const pl_usage_job *job, double seconds)
{
    for (int r = 0; r < PL_TASKS_ROLES; r++) {
        pl_usage_role *role = &usage->view.roles[r];
        role->cpu *= 100 / (pl_proc_ticks_per_s() * seconds);
        role->sent_bytes = traffic_rate(job->role_sent_bytes[r],
                                        &usage->role_sent_bytes[r], seconds);
        role->received_bytes =
            traffic_rate(job->role_received_bytes[r],
                         &usage->role_received_bytes[r], seconds);
    }
}

static void view_job(pl_usage *usage, const pl_usage_job *job, double seconds)
{
    pl_usage_view *view = &usage->view;
    for (int i = 0; i < job->count; i++)
        add_process(usage, job->pids[i],
                    &view->roles[job->roles != NULL ? job->roles[i] : 0]);
    forget_gone(usage);
    view_roles(usage, job, seconds);
    view->job_cpu *= 100 / (pl_proc_ticks_per_s() * seconds);
    view->job_switches /= seconds;
    view->job_read_bytes /= seconds;
    view->job_written_bytes /= seconds;
    view->job_sent_bytes =
        traffic_rate(job->sent_bytes, &usage->sent_bytes, seconds);
    view->job_received_bytes =
        traffic_rate(job->received_bytes, &usage->received_bytes, seconds);
    if (view->job_rss_mb > usage->peak_mb)
        usage->peak_mb = view->job_rss_mb;
    view->job_peak_mb = usage->peak_mb;
}

const pl_usage_view *pl_usage_sample(pl_usage *usage, double time,
                                     const pl_usage_job *job)
{
    double seconds = usage->time > 0 ? time - usage->time : NAN;
    pl_host_stats_read(&usage->now, usage->root);
    usage->view = (pl_usage_view) { .time = time };
    view_host(usage, seconds);
    view_job(usage, job, seconds);
    keep(usage, time);
    return &usage->view;
}

/* The line as it grows. */
typedef struct text {
    char *at;
    size_t left;
} text;

static void put_name(text *t, const char *name, const char *suffix)
{
    int wrote = snprintf(t->at, t->left, "%s%s,", name, suffix);
    PL_ASSERT(wrote > 0 && (size_t)wrote < t->left);
    t->at += wrote;
    t->left -= (size_t)wrote;
}

static void put_number(text *t, double value, int digits)
{
    int wrote = isfinite(value)
                    ? snprintf(t->at, t->left, "%.*f,", digits, value)
                    : snprintf(t->at, t->left, ",");
    PL_ASSERT(wrote > 0 && (size_t)wrote < t->left);
    t->at += wrote;
    t->left -= (size_t)wrote;
}

/* A line ends at its last comma. */
static const char *end_line(const pl_usage *usage, text *t)
{
    t->at[-1] = '\n';
    return usage->line;
}

static void put_role_names(text *t)
{
    static const char *const roles[PL_TASKS_ROLES] = { "worker", "ps",
                                                       "evaluator" };
    static const char *const columns[ROLE_COLUMNS] = {
        "_tasks", "_cpu", "_rss_mb", "_sent_bytes_per_s",
        "_received_bytes_per_s"
    };
    for (int r = 0; r < PL_TASKS_ROLES; r++)
        for (int c = 0; c < ROLE_COLUMNS; c++)
            put_name(t, roles[r], columns[c]);
}

static void put_roles(text *t, const pl_usage_view *view)
{
    for (int r = 0; r < PL_TASKS_ROLES; r++) {
        const pl_usage_role *role = &view->roles[r];
        put_number(t, role->tasks, 0);
        put_number(t, role->cpu, 1);
        put_number(t, role->rss_mb, 1);
        put_number(t, role->sent_bytes, 0);
        put_number(t, role->received_bytes, 0);
    }
}

const char *pl_usage_header(pl_usage *usage)
{
    static const char *const host[] = {
        "load",
        "memory_mb",
        "memory_total_mb",
        "switches_per_s",
        "disk_read_bytes_per_s",
        "disk_written_bytes_per_s",
        "job_tasks",
        "job_cpu",
        "job_rss_mb",
        "job_peak_mb",
        "job_switches_per_s",
        "job_read_bytes_per_s",
        "job_written_bytes_per_s",
        "job_sent_bytes_per_s",
        "job_received_bytes_per_s",
    };
    static const char *const net[] = {
        "_received_bytes_per_s",
        "_sent_bytes_per_s",
        "_received_packets_per_s",
        "_sent_packets_per_s",
    };
    text t = { usage->line, usage->room };
    put_name(&t, "time", "");
    put_name(&t, "cpu", "");
    for (int i = 0; i < usage->now.core_count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%d", i);
        put_name(&t, "cpu", number);
    }
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        put_name(&t, host[i], "");
    if (usage->roles)
        put_role_names(&t);
    for (int n = 0; n < usage->net_count; n++)
        for (size_t i = 0; i < sizeof net / sizeof *net; i++)
            put_name(&t, usage->names[n], net[i]);
    return end_line(usage, &t);
}

const char *pl_usage_line(pl_usage *usage)
{
    const pl_usage_view *view = &usage->view;
    text t = { usage->line, usage->room };
    put_number(&t, view->time, 3);
    put_number(&t, view->cpu, 1);
    for (int i = 0; i < view->core_count; i++)
        put_number(&t, view->cores[i], 1);
    put_number(&t, view->load, 2);
    put_number(&t, view->memory_mb, 1);
    put_number(&t, view->memory_total_mb, 1);
    put_number(&t, view->switches, 0);
    put_number(&t, view->disk_read_bytes, 0);
    put_number(&t, view->disk_written_bytes, 0);
    put_number(&t, view->job_tasks, 0);
    put_number(&t, view->job_cpu, 1);
    put_number(&t, view->job_rss_mb, 1);
    put_number(&t, view->job_peak_mb, 1);
    put_number(&t, view->job_switches, 0);
    put_number(&t, view->job_read_bytes, 0);
    put_number(&t, view->job_written_bytes, 0);
    put_number(&t, view->job_sent_bytes, 0);
    put_number(&t, view->job_received_bytes, 0);
    if (usage->roles)
        put_roles(&t, view);
    for (int n = 0; n < view->net_count; n++) {
        put_number(&t, view->nets[n].received_bytes, 0);
        put_number(&t, view->nets[n].sent_bytes, 0);
        put_number(&t, view->nets[n].received_packets, 0);
        put_number(&t, view->nets[n].sent_packets, 0);
    }
    return end_line(usage, &t);
}
