/* steps.c - fills in a job's defaults, chooses the replay of its strategy,
 * bounds jobs whose workers do not wait for each other by the capacity of their
 * links and servers, and finds the limit of a step by leaving out one cost at a
 * time. */
#include "observe/steps/steps_priv.h"

#include <math.h>

const char *const pl_step_limit_names[PL_STEP_LIMITS + 1] = {
    [PL_STEP_COMPUTE] = "computing",
    [PL_STEP_INPUT] = "input",
    [PL_STEP_UPDATE] = "update",
    [PL_STEP_LINK] = "link",
    [PL_STEP_SERVER_LINK] = "server link",
    [PL_STEP_SERVER] = "server processor",
    [PL_STEP_LATENCY] = "latency",
    [PL_STEP_STRAGGLER] = "slow worker",
};

static int32_t most(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

static bool has_servers(const pl_step_job *job)
{
    return job->strategy != PL_STEP_SINGLE &&
           job->strategy != PL_STEP_ALLREDUCE;
}

static pl_step_job resolve(const pl_step_job *given)
{
    pl_step_job job = *given;
    job.workers = job.strategy == PL_STEP_SINGLE ? 1 : most(1, job.workers);
    job.servers = has_servers(&job) ? most(1, job.servers) : 0;
    int32_t tasks = job.apart ? job.workers : most(job.workers, job.servers);
    if (job.hosts < 1 || job.hosts > tasks)
        job.hosts = tasks;
    job.threads = most(1, job.threads);
    job.local_steps = most(1, job.local_steps);
    job.planes = job.local_steps > 1 ? most(1, job.planes) : 1;
    return job;
}

static double seconds_a_byte(double bytes_per_s)
{
    return bytes_per_s > 0 ? 1 / bytes_per_s : 0;
}

/* Which tasks share a host. */
static void place(pl_step_case *c)
{
    const pl_step_job *job = &c->job;
    int32_t hosts = job->hosts, servers = job->servers;
    int32_t most_workers = (job->workers + hosts - 1) / hosts;
    int32_t most_servers = (servers + hosts - 1) / hosts;
    int32_t own_servers = servers / hosts, own_workers = job->workers / hosts;
    c->host_workers = most_workers;
    c->host_servers = job->apart ? 1 : most_servers;
    c->far = job->workers;
    if (job->apart || hosts == 1 || servers == 0)
        return;
    c->near = (double)own_servers / servers;
    c->far = job->workers - own_workers;
    if (servers < hosts) {
        c->home_workers = (double)job->workers * servers / hosts;
        c->home_near = 1.0 / servers;
    }
}

/* Seconds per byte: of the wire, and of the processor that feeds it. */
static void cost_links(pl_step_case *c, const pl_step_net *net,
                       pl_step_limit without)
{
    bool local = c->job.hosts == 1 && !c->job.apart;
    double wire =
        seconds_a_byte(local ? net->local_bytes_per_s : net->bytes_per_s);
    double slow = seconds_a_byte(local ? 0 : c->job.slow_bytes_per_s);
    c->link_s = without == PL_STEP_LINK ? 0 : fmax(wire, net->byte_s);
    c->slow_link_s = fmax(c->link_s, slow);
    c->server_byte_s = without == PL_STEP_SERVER ? 0 : net->byte_s;
    bool free_links = without == PL_STEP_LINK || without == PL_STEP_SERVER_LINK;
    c->server_link_s = fmax(free_links ? 0 : wire, c->server_byte_s);
    c->latency_s = local || without == PL_STEP_LATENCY ? 0 : net->latency_s;
}

static void cost_work(pl_step_case *c, const pl_step_net *net,
                      pl_step_limit without)
{
    const pl_step_work *work = c->work;
    const pl_step_job *job = &c->job;
    bool servers = has_servers(job);
    double crowd =
        job->cores > 0 ? c->host_workers * job->threads / job->cores : 0;
    c->compute = without == PL_STEP_COMPUTE ? 0 : fmax(1, crowd);
    c->input_s = without == PL_STEP_INPUT ? 0 : work->input_s;
    c->update_s = without == PL_STEP_UPDATE ? 0 : work->update_s;
    c->add_s = without == PL_STEP_UPDATE ? 0 : work->add_s;
    c->worker_message_s = without == PL_STEP_LATENCY ? 0 : net->message_s;
    c->message_s =
        servers && without == PL_STEP_SERVER ? 0 : c->worker_message_s;
    if (servers && without != PL_STEP_SERVER) {
        double full =
            job->cores > 0 ? fmax(1, c->host_servers / job->cores) : 1;
        c->server_s = work->update_s * full / job->servers;
        c->server_add_s = work->add_s * full / job->servers;
    }
}

static pl_step_case make_case(const pl_step_work *work, const pl_step_net *net,
                              const pl_step_job *job, pl_step_limit without)
{
    pl_step_case c = { .work = work, .job = resolve(job), .slowdown = 1 };
    for (size_t i = 0; i < work->layer_count; i++) {
        c.push += work->layers[i].push_bytes;
        c.pull += work->layers[i].pull_bytes;
    }
    if (without == PL_STEP_STRAGGLER)
        c.job.slowdown = c.job.stall_s = c.job.slow_bytes_per_s = 0;
    place(&c);
    cost_links(&c, net, without);
    cost_work(&c, net, without);
    if (c.job.slowdown > 0)
        c.slowdown = c.job.slowdown;
    c.stall_s = c.job.stall_s;
    c.differs = c.job.workers > 1 && (c.job.slowdown > 0 || c.job.stall_s > 0 ||
                                      c.job.slow_bytes_per_s > 0);
    return c;
}

double pl_step_compute(const pl_step_case *c, pl_step_who who, double at,
                       const double *arrive, double *ready)
{
    const pl_step_work *work = c->work;
    double factor = c->compute * (who == PL_STEP_SLOW ? c->slowdown : 1);
    size_t count = work->layer_count;
    for (size_t i = 0; i < count; i++)
        at = fmax(at, arrive[i]) + factor * work->layers[i].forward_s;
    at += who == PL_STEP_SLOW ? c->stall_s : 0;
    for (size_t i = count; i-- > 0;) {
        at += factor * work->layers[i].backward_s;
        ready[i] = at;
    }
    for (size_t i = 0; work->whole && i < count; i++)
        ready[i] = at;
    return at;
}

static double compute_s(const pl_step_case *c)
{
    double sum = 0;
    for (size_t i = 0; i < c->work->layer_count; i++)
        sum += c->work->layers[i].forward_s + c->work->layers[i].backward_s;
    return sum * c->compute;
}

static double worker_out(const pl_step_case *c)
{
    return c->host_workers * c->push * (1 - c->near);
}

static double worker_in(const pl_step_case *c)
{
    return c->host_workers * c->pull * (1 - c->near);
}

/* Bytes in and out of a host's servers, for one gradient of each worker. */
static double server_in(const pl_step_case *c)
{
    return c->host_servers * c->push / c->job.servers * c->far;
}

static double server_out(const pl_step_case *c)
{
    return c->host_servers * c->pull / c->job.servers * c->far;
}

static double busiest_link(const pl_step_case *c)
{
    const pl_step_job *job = &c->job;
    double n = job->workers;
    if (job->strategy == PL_STEP_SINGLE || (job->hosts == 1 && !job->apart))
        return 0;
    if (!has_servers(job))
        return 2 * (n - 1) / n * c->push * job->planes / job->local_steps;
    double out = worker_out(c), in = worker_in(c);
    if (job->apart)
        return fmax(fmax(out, in), fmax(server_in(c), server_out(c)));
    return fmax(out + server_out(c), in + server_in(c));
}

/* Time in which one gradient of each worker passes the busiest resource: a
 * lower bound for any order of events. */
static double busiest_s(const pl_step_case *c)
{
    const pl_step_job *job = &c->job;
    double n = job->workers;
    double gradient = c->push / job->servers, answer = c->pull / job->servers;
    double messages =
        ceil(gradient / PL_STEP_PIECE) + ceil(answer / PL_STEP_PIECE);
    double server = c->server_s + c->message_s * messages +
                    c->server_byte_s * (gradient + answer);
    double bound = n * server;
    double out = worker_out(c) * c->link_s, in = worker_in(c) * c->link_s;
    double s_out = server_out(c) * c->server_link_s;
    double s_in = server_in(c) * c->server_link_s;
    if (job->apart || job->hosts == 1)
        bound = fmax(bound, fmax(fmax(out, in), fmax(s_out, s_in)));
    else
        bound = fmax(bound, fmax(out + s_out, in + s_in));
    if (job->cores > 0 && !job->apart)
        bound = fmax(bound, (c->host_workers * job->threads * compute_s(c) +
                             c->host_servers * n * server) /
                                job->cores);
    return bound;
}

/* The cycle of a worker with exclusive links and servers. */
static pl_status cycle(const pl_step_case *c, double near, bool slow,
                       double *step_s)
{
    pl_step_case alone = *c;
    alone.job.workers = 1;
    alone.differs = false;
    alone.host_workers = alone.host_servers = 1;
    alone.near = near;
    alone.far = 1 - near;
    if (slow) {
        alone.compute *= c->slowdown;
        alone.link_s = c->slow_link_s;
    }
    PL_TRY(pl_step_ps(&alone, step_s));
    *step_s += slow ? c->stall_s : 0;
    return PL_OK;
}

/* Workers that do not wait for each other: each runs at its own pace, up to the
 * capacity of shared resources.  In the long run, ssp has the pace of the
 * slowest. */
static pl_status overlap(const pl_step_case *c, double *step_s)
{
    double away_s, n = c->job.workers, home = c->home_workers;
    PL_TRY(cycle(c, c->near, false, &away_s));
    double home_s = away_s, slow_s = away_s;
    if (home > 0)
        PL_TRY(cycle(c, c->home_near, false, &home_s));
    if (c->differs)
        PL_TRY(cycle(c, c->near, true, &slow_s));
    double usual = (home / home_s + (n - home) / away_s) / n;
    double each =
        c->job.strategy == PL_STEP_SSP
            ? fmax(slow_s, away_s)
            : n / ((n - 1) * usual + (c->differs ? 1 / slow_s : usual));
    *step_s = fmax(each, busiest_s(c));
    return PL_OK;
}

static pl_status replay(pl_step_time *out, const pl_step_case *c)
{
    pl_status status = PL_OK;
    double step_s = c->input_s + compute_s(c) + c->update_s;
    switch (c->job.strategy) {
    case PL_STEP_SINGLE:
        break;
    case PL_STEP_ALLREDUCE:
        status = pl_step_ring(c, &step_s);
        break;
    case PL_STEP_SYNC:
        status = pl_step_ps(c, &step_s);
        break;
    case PL_STEP_ASYNC:
    case PL_STEP_SSP:
        status = overlap(c, &step_s);
        break;
    }
    *out = (pl_step_time) {
        .step_s = step_s,
        .gradients_per_s = c->job.workers / step_s,
        .link_bytes = busiest_link(c),
    };
    return status;
}

pl_status pl_step_replay(pl_step_time *out, const pl_step_work *work,
                         const pl_step_net *net, const pl_step_job *job)
{
    pl_step_case c = make_case(work, net, job, PL_STEP_LIMITS);
    return replay(out, &c);
}

/* Links of workers and servers carry the same bytes, so a faster link on one
 * side alone may gain nothing: the servers' link is named if it saves most of
 * the time. */
static pl_step_limit choose_limit(const double gain[PL_STEP_LIMITS])
{
    pl_step_limit limit = PL_STEP_COMPUTE;
    for (int i = 0; i < PL_STEP_LIMITS; i++)
        if (gain[i] > gain[limit])
            limit = (pl_step_limit)i;
    if (limit == PL_STEP_LINK &&
        1 - 1 / gain[PL_STEP_SERVER_LINK] > (1 - 1 / gain[PL_STEP_LINK]) / 2)
        limit = PL_STEP_SERVER_LINK;
    return limit;
}

pl_status pl_step_predict(pl_step_time *out, const pl_step_work *work,
                          const pl_step_net *net, const pl_step_job *job)
{
    pl_step_time time;
    PL_TRY(pl_step_replay(&time, work, net, job));
    for (int i = 0; i < PL_STEP_LIMITS; i++) {
        pl_step_case c = make_case(work, net, job, (pl_step_limit)i);
        pl_step_time without;
        PL_TRY(replay(&without, &c));
        time.gain[i] = time.step_s / without.step_s;
    }
    time.limit = choose_limit(time.gain);
    *out = time;
    return PL_OK;
}
