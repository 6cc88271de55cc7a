/* bottleneck.c - names what slowed a run down, and which task.
 *
 * The shares of the workers' time show where it went.  In lock step they only
 * show that all wait, so the task that they wait for is determined first:
 *
 *   ps sync    server 0 adds up the time in which one gradient alone is missing
 *   allreduce  the worker that waits less than all others
 *   ps ssp     likewise
 *   ps async   no worker waits for another: the worker with the longest steps
 *
 * The reason follows from that worker's own time for a step compared with the
 * others': an equal time with late gradients is its link; a longer time in
 * which it was ready to run without a processor is taken by other processes, or
 * by other machines if the hypervisor reports it; a longer mean with the usual
 * median is a task that stops at times; otherwise its processor is slower.
 * docs/observe.md has the table of causes. */
#include "app/run/bottleneck.h"

#include "app/run/bottleneck_priv.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_S      0.001 /* of training: less is too little to judge */
#define HOLDS        0.1   /* share of time held up: less is ignored */
#define LONGER       1.15  /* own time relative to the others': not by chance */
#define LONGER_OWN   1.3   /* the same where no task waits for it */
#define LONGER_WAIT  1.5   /* ... on the path to a server, which varies more */
#define STARVED      0.15  /* share of time ready to run without a processor */
#define THROTTLED    0.1   /* share of time with its quota used up */
#define BUSY         0.7   /* of a core: a task that does nothing else */
#define LACKED       0.5   /* share of time that a server had no processor */
#define SMALL        ((double)(128 << 10)) /* bytes of a step: latency dominates */
#define DROPPED      0.1
#define CROWDED      0.5 /* share of time without a processor: most of it */
#define LEFT         0.5 /* of a host's cores: other processes use the rest */
#define MOSTLY       0.4 /* of a share of time: without a core for most of it */
#define MUCH         2 /* times as long: a shared cause rather than a worker */
#define FEWEST_LINKS 3 /* of a ring, to distinguish them */
#define FROM_DISK    10e6 /* bytes a second of reading: data, not programs */
#define FROM_MEMORY  1e6
#define FEW          0.2 /* of the steps: the worker is slow at times only */

static const char *const names[PL_CAUSES] = {
    [PL_CAUSE_COMPUTING] = "computing",
    [PL_CAUSE_CORES] = "cores",
    [PL_CAUSE_READING] = "reading",
    [PL_CAUSE_SLOW_WORKER] = "slow worker",
    [PL_CAUSE_SERVER] = "server processor",
    [PL_CAUSE_SERVER_LINK] = "server link",
    [PL_CAUSE_LINK] = "link",
    [PL_CAUSE_LATENCY] = "latency",
    [PL_CAUSE_OTHERS] = "other workers",
    [PL_CAUSE_EVALUATION] = "evaluation",
    [PL_CAUSE_CHECKPOINTS] = "checkpoints",
    [PL_CAUSE_STALENESS] = "staleness",
};

/* --- times from the rows ------------------------------------------------ */

static bool is(const char *text, const char *expected)
{
    return text != NULL && strcmp(text, expected) == 0;
}

static pl_step_strategy strategy_of(const pl_summary *s)
{
    if (is(s->strategy, "allreduce"))
        return PL_STEP_ALLREDUCE;
    if (!is(s->strategy, "ps"))
        return PL_STEP_SINGLE;
    return is(s->mode, "async") ? PL_STEP_ASYNC
           : is(s->mode, "ssp") ? PL_STEP_SSP
                                : PL_STEP_SYNC;
}

static bool counts(const pl_worker_report *row)
{
    return row->seconds > LEAST_S && row->steps > 0;
}

/* Seconds of a step for a share of a worker's time. */
static double of_step(const pl_worker_report *row, double share)
{
    return share > 0 ? row->seconds * share / (double)row->steps : 0;
}

/* Seconds of a step in which the worker did not wait. */
static double own_of(const pl_worker_report *row)
{
    return of_step(row, row->input_share) + of_step(row, row->computing_share) +
           of_step(row, row->sending_share);
}

static double known(double value)
{
    return isfinite(value) ? value : 0;
}

static double queued_of_task(const pl_task_usage *usage)
{
    return usage->alive_seconds > 0
               ? known(usage->queued_seconds / usage->alive_seconds)
               : 0;
}

static double queued_of(const pl_worker_report *row)
{
    return queued_of_task(&row->usage);
}

static double link_of(const pl_worker_report *row)
{
    return known(row->link_busy_seconds);
}

static double queued_step_of(const pl_worker_report *row)
{
    return queued_of(row) * row->seconds / (double)row->steps;
}

static void add_row(pl_job_times *t, const pl_worker_report *row)
{
    t->workers++;
    t->speed += (double)row->steps / row->seconds;
    t->step += row->seconds / (double)row->steps;
    t->input += of_step(row, row->input_share);
    t->compute += of_step(row, row->computing_share);
    t->send += of_step(row, row->sending_share);
    t->wait += of_step(row, row->waiting_share);
    t->queued += queued_of(row);
    t->linked += link_of(row) / row->seconds;
    if (row->usage.bytes_sent > 0)
        t->push += (double)row->usage.bytes_sent / (double)row->steps;
    if (row->usage.bytes_received > 0)
        t->pull += (double)row->usage.bytes_received / (double)row->steps;
    t->cores += pl_task_usage_cpu(&row->usage) / 100;
    t->disk += row->usage.disk_read_bytes >= 0
                   ? (double)row->usage.disk_read_bytes / (double)row->steps
                   : NAN;
}

static void divide(pl_job_times *t)
{
    double *const means[] = { &t->step, &t->input,  &t->compute, &t->send,
                              &t->wait, &t->queued, &t->linked,  &t->push,
                              &t->pull, &t->disk,   &t->cores };
    for (size_t i = 0; i < sizeof means / sizeof *means; i++)
        *means[i] /= t->workers;
}

/* Count the workers' hosts; is a server on one of them? */
static void count_hosts(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    t->apart = s->server_count > 0;
    for (size_t i = 0; i < s->worker_count; i++) {
        const char *host = s->per_worker[i].host;
        bool known_host = false;
        for (size_t j = 0; j < i && !known_host; j++)
            known_host = is(host, s->per_worker[j].host);
        t->hosts += !known_host;
        for (size_t j = 0; j < s->server_count; j++)
            t->apart = t->apart && !is(host, s->per_server[j].host);
    }
}

/* A server that lacks a processor much more than the workers do counts as busy
 * as one that uses it. */
static void find_busy_server(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    t->busy_server = -1;
    for (size_t i = 0; i < s->server_count; i++) {
        const pl_task_usage *usage = &s->per_server[i].usage;
        double busy = pl_task_usage_cpu(usage) / 100;
        double queued = queued_of_task(usage);
        if (queued < STARVED || queued < 2 * t->queued)
            queued = 0;
        if (busy + queued > t->server_busy + t->server_queued) {
            t->server_busy = busy;
            t->server_queued = queued;
            t->busy_server = (int32_t)i;
        }
    }
}

/* Mean number of cores of the chief's host that its tasks used; NAN: not known
 * for all of them. */
static double cores_used(const pl_summary *s)
{
    const char *host = s->per_worker[0].host;
    double percent = 0;
    for (size_t i = 0; i < s->worker_count; i++)
        if (is(s->per_worker[i].host, host))
            percent += pl_task_usage_cpu(&s->per_worker[i].usage);
    for (size_t i = 0; i < s->server_count; i++)
        if (is(s->per_server[i].host, host))
            percent += pl_task_usage_cpu(&s->per_server[i].usage);
    return percent / 100;
}

static void add_shares(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    double tests = known(s->eval_seconds), saves = known(s->checkpoint_seconds);
    double whole = known(s->seconds) + tests + saves;
    double gradients = (double)(s->steps + s->dropped_gradients);
    if (whole > 0) {
        t->evaluation = tests / whole;
        t->checkpoints = saves / whole;
    }
    if (s->dropped_gradients > 0 && t->strategy != PL_STEP_SYNC)
        t->stale = (double)s->dropped_gradients / gradients;
}

/* --- the slow worker ---------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

#define OTHERS_MOST 1024

/* The median over all workers except one. */
static double median_others(const pl_summary *s, int32_t but,
                            double (*of)(const pl_worker_report *))
{
    double values[OTHERS_MOST];
    size_t count = 0;
    for (size_t i = 0; i < s->worker_count && count < OTHERS_MOST; i++)
        if ((int32_t)i != but && counts(&s->per_worker[i]))
            values[count++] = of(&s->per_worker[i]);
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, by_size);
    return count % 2 == 1 ? values[count / 2]
                          : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double waiting_of(const pl_worker_report *row)
{
    return known(row->waiting_share);
}

static double wait_seconds_of(const pl_worker_report *row)
{
    return of_step(row, row->waiting_share);
}

static double usual_of(const pl_worker_report *row)
{
    return known(row->usual_step_seconds);
}

static double input_of(const pl_worker_report *row)
{
    return of_step(row, row->input_share);
}

/* The row with the largest `of`; -1: none counts. */
static int32_t largest(const pl_summary *s,
                       double (*of)(const pl_worker_report *))
{
    int32_t found = -1;
    for (size_t i = 0; i < s->worker_count; i++)
        if (counts(&s->per_worker[i]) &&
            (found < 0 || of(&s->per_worker[i]) > of(&s->per_worker[found])))
            found = (int32_t)i;
    return found;
}

static double throttled_of(const pl_worker_report *row)
{
    return fmin(known(row->throttled_seconds) / row->seconds, 1);
}

static double stolen_of(const pl_worker_report *row)
{
    return known(row->stolen_share);
}

static double held_of(const pl_worker_report *row)
{
    return known(row->held_seconds) / row->seconds;
}

/* Busy time of the least busy link; INFINITY: not all are known. */
static double least_link(const pl_summary *s)
{
    double least = INFINITY;
    for (size_t i = 0; i < s->worker_count; i++) {
        if (!isfinite(s->per_worker[i].link_busy_seconds))
            return INFINITY;
        least = fmin(least, link_of(&s->per_worker[i]));
    }
    return least;
}

/* In lock step all wait for the chief while it tests and saves, which does not
 * make it slow. */
static double chief_share(const pl_summary *s, int32_t row)
{
    double busy = known(s->eval_seconds) + known(s->checkpoint_seconds);
    return row == 0 && s->per_worker[0].seconds > 0
               ? busy / s->per_worker[0].seconds
               : 0;
}

/* The row that holds up the others most, and by how much. */
static int32_t find_holder(const pl_summary *s, double *most)
{
    int32_t found = -1;
    for (size_t i = 0; i < s->worker_count; i++) {
        if (!counts(&s->per_worker[i]))
            continue;
        double held = held_of(&s->per_worker[i]) - chief_share(s, (int32_t)i);
        if (found < 0 || held > *most) {
            found = (int32_t)i;
            *most = held;
        }
    }
    return found;
}

static double less_waiting(const pl_worker_report *row)
{
    return -waiting_of(row);
}

/* In a ring all wait equally for the slowest link: the one whose kernel had
 * bytes in flight for longest.  The worker to blame is at one of its ends: the
 * sender, or the receiver if its outgoing link is as busy. */
static void find_slow_link(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    int32_t busiest = largest(s, link_of), count = (int32_t)s->worker_count;
    if (t->strategy != PL_STEP_ALLREDUCE || t->workers < FEWEST_LINKS ||
        t->workers < count || t->slow >= 0)
        return;
    const pl_worker_report *row = &s->per_worker[busiest];
    int32_t behind = (busiest + 1) % count;
    int32_t ahead = (busiest + count - 1) % count;
    double most = link_of(row), usual = least_link(s);
    if (!(most > MUCH * usual) || !(most - usual > HOLDS * row->seconds))
        return;
    double next = link_of(&s->per_worker[behind]);
    double last = link_of(&s->per_worker[ahead]);
    t->slow = next > last && next > MUCH * usual ? behind : busiest;
    t->held = fmin((most - usual) / row->seconds, 1);
    t->slow_link = true;
}

/* The worker that holds up the others, and for which share of the time. */
static void find_held(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    int32_t known_row = largest(s, held_of);
    double held = 0;
    int32_t slow = find_holder(s, &held);
    if (t->strategy != PL_STEP_SYNC || known_row < 0 ||
        !(held_of(&s->per_worker[known_row]) > 0)) {
        slow = largest(s, less_waiting);
        held = slow < 0 ? 0
                        : median_others(s, slow, waiting_of) -
                              waiting_of(&s->per_worker[slow]) -
                              chief_share(s, slow);
    }
    t->slow = held > HOLDS ? slow : -1;
    t->held = fmin(held, 1);
    find_slow_link(t);
}

/* Without lock step: the worker with the longest steps, from its own time or
 * from waiting for servers. */
static void find_behind(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    int32_t slow = largest(s, own_of), far = largest(s, wait_seconds_of);
    double own = own_of(&s->per_worker[slow]);
    double wait = wait_seconds_of(&s->per_worker[far]);
    double others = median_others(s, slow, own_of);
    double near = median_others(s, far, wait_seconds_of);
    t->slow = -1;
    if (own > LONGER_OWN * others && own - others > HOLDS * t->step)
        t->slow = slow;
    else if (wait > LONGER_WAIT * near && wait - near > HOLDS * t->step)
        t->slow = far;
    if (t->slow >= 0) {
        double step = s->per_worker[t->slow].seconds /
                      (double)s->per_worker[t->slow].steps;
        t->held = 1 - (others + near) / step; /* of its own time */
    }
}

static pl_slowness reason_of(const pl_job_times *t)
{
    const pl_summary *s = t->summary;
    const pl_worker_report *row = &s->per_worker[t->slow];
    double longer = own_of(row) - t->others_own;
    double input = input_of(row) - median_others(s, t->slow, input_of);
    if (throttled_of(row) > THROTTLED &&
        throttled_of(row) > 2 * median_others(s, t->slow, throttled_of))
        return PL_SLOW_QUOTA;
    /* The others do not wait for the part that it computes longer. */
    if (t->slow_link)
        return PL_SLOW_LINK;
    bool elsewhere = longer < t->held * row->seconds / (double)row->steps / 2;
    if (t->slowdown < LONGER || elsewhere)
        return t->spells ? PL_SLOW_STOPS : PL_SLOW_LINK;
    if (input > longer / 2)
        return PL_SLOW_INPUT;
    if (stolen_of(row) > STARVED &&
        stolen_of(row) > 2 * median_others(s, t->slow, stolen_of))
        return PL_SLOW_STOLEN;
    if (queued_of(row) > STARVED && t->lacked > longer / 2)
        return PL_SLOW_STARVED;
    return t->spells ? PL_SLOW_STOPS : PL_SLOW_HARDWARE;
}

static void find_slow(pl_job_times *t)
{
    const pl_summary *s = t->summary;
    t->slow = -1;
    if (t->workers < 2)
        return;
    if (t->strategy == PL_STEP_ASYNC)
        find_behind(t);
    else
        find_held(t);
    if (t->slow < 0)
        return;
    const pl_worker_report *row = &s->per_worker[t->slow];
    double usual = usual_of(row), others = median_others(s, t->slow, usual_of);
    t->others_own = median_others(s, t->slow, own_of);
    t->lacked = queued_step_of(row) - median_others(s, t->slow, queued_step_of);
    t->throttled = throttled_of(row);
    t->slowdown = t->others_own > 0 ? own_of(row) / t->others_own : 1;
    /* Its usual step is not much longer, so only a few steps are. */
    t->spells = usual > 0 && others > 0 && t->slowdown >= LONGER &&
                usual / others < 1 + (t->slowdown - 1) / 2;
    if (t->strategy == PL_STEP_SYNC && row->held_steps > 0)
        t->spells = row->held_steps < FEW * (double)row->steps;
    t->slowness = reason_of(t);
    t->spells = t->spells && (t->slowness == PL_SLOW_STOPS ||
                              t->slowness == PL_SLOW_STARVED);
}

static void measure(pl_job_times *t, const pl_summary *s,
                    const pl_bottleneck_opts *opts)
{
    *t = (pl_job_times) {
        .summary = s,
        .opts = opts,
        .strategy = strategy_of(s),
    };
    for (size_t i = 0; i < s->worker_count; i++)
        if (counts(&s->per_worker[i]))
            add_row(t, &s->per_worker[i]);
    if (t->workers == 0)
        return;
    divide(t);
    count_hosts(t);
    find_busy_server(t);
    add_shares(t);
    t->crowded_out = opts->cores > 0 && cores_used(s) < LEFT * opts->cores;
    find_slow(t);
}

/* --- the rules ---------------------------------------------------------- */

/* The share of time that a cause accounts for, if it applies. */
typedef struct rule {
    pl_cause cause;
    double share;
} rule;

/* No link of a ring carried bytes for much of the time; all links are known. */
static bool links_are_idle(const pl_job_times *t, double exchange)
{
    const pl_summary *s = t->summary;
    if (t->strategy != PL_STEP_ALLREDUCE || !isfinite(least_link(s)))
        return false;
    const pl_worker_report *row = &s->per_worker[largest(s, link_of)];
    return link_of(row) / row->seconds < MOSTLY * exchange;
}

pl_reading pl_reading_of(const pl_job_times *t)
{
    double rate = t->input > 0 ? t->disk / t->input : NAN;
    bool busy = t->cores > BUSY * (t->input + t->compute) / t->step;
    return rate >= FROM_DISK            ? PL_READING_DISK
           : rate < FROM_MEMORY && busy ? PL_READING_PARSING
                                        : PL_READING_UNKNOWN;
}

/* The cause of sending and waiting if no worker is to blame. */
static pl_cause exchange_cause(const pl_job_times *t, double exchange)
{
    bool servers = t->busy_server >= 0;
    if (servers && (t->server_busy > BUSY || t->server_queued > LACKED))
        return PL_CAUSE_SERVER;
    if (t->queued > STARVED && t->queued > MOSTLY * exchange &&
        t->linked < MOSTLY * exchange)
        return PL_CAUSE_CORES;
    if (t->push + t->pull <= SMALL)
        return PL_CAUSE_LATENCY;
    if (links_are_idle(t, exchange))
        return PL_CAUSE_OTHERS;
    return servers && t->workers > t->summary->ps ? PL_CAUSE_SERVER_LINK
                                                  : PL_CAUSE_LINK;
}

/* Workers that lack a processor most of the time, because other processes use
 * it, stop at random: none of them is to blame. */
static bool stops_by_chance(const pl_job_times *t)
{
    const pl_summary *s = t->summary;
    return t->slowness == PL_SLOW_STOPS && t->crowded_out &&
           t->queued > CROWDED &&
           queued_of(&s->per_worker[t->slow]) <
               1.5 * median_others(s, t->slow, queued_of);
}

/* Causes that affect all workers equally. */
static bool is_shared(pl_cause cause)
{
    return cause == PL_CAUSE_SERVER || cause == PL_CAUSE_SERVER_LINK ||
           cause == PL_CAUSE_LINK || cause == PL_CAUSE_LATENCY ||
           cause == PL_CAUSE_CORES || cause == PL_CAUSE_EVALUATION ||
           cause == PL_CAUSE_CHECKPOINTS;
}

/* The share of the time spent in steps. */
static double training_of(const pl_job_times *t)
{
    return 1 - t->evaluation - t->checkpoints;
}

static rule choose(const pl_job_times *t)
{
    double training = training_of(t);
    double scale = training / t->step;
    double exchange = (t->send + t->wait) * scale;
    double held = t->slow >= 0 && !stops_by_chance(t) ? t->held * training : 0;
    double computing = t->compute * scale;
    double rest = exchange - (held < exchange ? held : exchange);
    bool no_cores = t->queued > STARVED && t->queued > MOSTLY * computing;
    const rule rules[] = {
        { no_cores ? PL_CAUSE_CORES : PL_CAUSE_COMPUTING, computing },
        { PL_CAUSE_READING, t->input * scale },
        { exchange_cause(t, exchange), rest },
        { PL_CAUSE_EVALUATION, t->evaluation },
        { PL_CAUSE_CHECKPOINTS, t->checkpoints },
        { PL_CAUSE_STALENESS, t->stale > DROPPED ? t->stale : 0 },
    };
    rule found = rules[0];
    for (size_t i = 1; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].share > found.share)
            found = rules[i];
    /* A worker that all others wait for matters more than the largest share:
     * without it they would compute.  But a cause that all wait for much longer
     * matters more than that worker. */
    if (held > 0 && !(found.share > MUCH * held && is_shared(found.cause)))
        found = (rule) { PL_CAUSE_SLOW_WORKER, held };
    return found;
}

/* --- sentences --------------------------------------------------------- */

/* Append text, cut at the end of the room. */
#define PUT(b, ...) put((b)->text, sizeof(b)->text, __VA_ARGS__)

static void put(char *text, size_t room, const char *format, ...)
    PL_PRINTF(3, 4);

static void put(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

static const char *reading(const pl_job_times *t)
{
    static const char *const texts[] = {
        [PL_READING_UNKNOWN] = "reading data",
        [PL_READING_DISK] = "reading data from the disk",
        [PL_READING_PARSING] = "parsing data that was already in memory",
    };
    return texts[pl_reading_of(t)];
}

static const char *phrase(const pl_job_times *t, pl_cause cause)
{
    bool ring = t->strategy == PL_STEP_ALLREDUCE;
    switch (cause) {
    case PL_CAUSE_READING:
        return reading(t);
    case PL_CAUSE_CORES:
        return t->crowded_out ? PL_BOTTLENECK_CROWDED
                              : "tasks without a free core";
    case PL_CAUSE_SERVER_LINK:
        return "waiting for the links of the parameter servers";
    case PL_CAUSE_LINK:
        return ring ? "waiting for the links of the ring"
                    : "waiting for the links to the parameter servers";
    case PL_CAUSE_LATENCY:
        return "waiting for small messages";
    case PL_CAUSE_OTHERS:
        return "waiting for other workers while the links of the ring were "
               "idle";
    case PL_CAUSE_EVALUATION:
        return "testing at the chief";
    case PL_CAUSE_CHECKPOINTS:
        return "writing checkpoints";
    default:
        return "computing";
    }
}

static void put_slow(pl_bottleneck *b, const pl_job_times *t)
{
    const pl_worker_report *row = &t->summary->per_worker[t->slow];
    bool waits = t->strategy != PL_STEP_ASYNC;
    if (waits)
        PUT(b, "waiting for %s on %s: %.0f %% of the time; ", b->task, b->host,
            100 * b->share);
    else
        PUT(b, "%s on %s is slower than the others: ", b->task, b->host);
    switch (t->slowness) {
    case PL_SLOW_QUOTA:
        PUT(b, "its quota of processor time was used up %.0f %% of the time",
            100 * throttled_of(row));
        break;
    case PL_SLOW_STARVED:
        PUT(b,
            "it computes %.1f x as long as they do, and had no processor "
            "%.0f %% of the time",
            t->slowdown, 100 * queued_of(row));
        break;
    case PL_SLOW_STOLEN:
        PUT(b,
            "it computes %.1f x as long as they do, since the hypervisor of "
            "its host gave %.0f %% of the processor time to other machines",
            t->slowdown, 100 * stolen_of(row));
        break;
    case PL_SLOW_INPUT:
        PUT(b, "it takes longer to read data, so its steps take %.1f x as long",
            t->slowdown);
        break;
    case PL_SLOW_STOPS:
        PUT(b, "it stops now and then");
        if (t->slowdown >= LONGER)
            PUT(b, ", its mean step is %.1f x as long", t->slowdown);
        break;
    case PL_SLOW_LINK:
        PUT(b, "it computes as fast as they do, but its link is slow");
        break;
    default:
        PUT(b, "it computes %.1f x as long as they do on a slower processor",
            t->slowdown);
        break;
    }
    if (t->spells && t->slowness == PL_SLOW_STARVED)
        PUT(b, ", in spells");
}

/* The other shares of the time: with the cause's share at most all of it. */
static void put_shares(pl_bottleneck *b, const pl_job_times *t, pl_cause cause)
{
    double scale = training_of(t) / t->step;
    /* The time without a core would have been spent computing. */
    bool computing =
        cause == PL_CAUSE_COMPUTING ||
        (cause == PL_CAUSE_CORES && t->compute * scale == b->share);
    const struct {
        const char *name;
        double share;
        bool named; /* the cause names it */
    } all[] = {
        { "reading", t->input * scale, cause == PL_CAUSE_READING },
        { "computing", t->compute * scale, computing },
        { "sending", t->send * scale, false },
        { "waiting", t->wait * scale, false },
        { "testing", t->evaluation, cause == PL_CAUSE_EVALUATION },
        { "checkpoints", t->checkpoints, cause == PL_CAUSE_CHECKPOINTS },
    };
    const char *between = " (";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].named || all[i].share < 0.005)
            continue;
        PUT(b, "%s%s %.0f %%", between, all[i].name, 100 * all[i].share);
        between = ", ";
    }
    PUT(b, "%s", between[0] == ',' ? ")" : "");
}

static void describe(pl_bottleneck *b, const pl_job_times *t, pl_cause cause)
{
    switch (cause) {
    case PL_CAUSE_SLOW_WORKER:
        put_slow(b, t);
        return;
    case PL_CAUSE_SERVER:
        if (t->server_queued > t->server_busy)
            PUT(b,
                "waiting for %s on %s, which had no processor %.0f %% of the "
                "time: %.0f %% of the step",
                b->task, b->host, 100 * t->server_queued, 100 * b->share);
        else
            PUT(b,
                "waiting for %s on %s, which uses %.0f %% of a core: %.0f %% "
                "of the time",
                b->task, b->host, 100 * t->server_busy, 100 * b->share);
        break;
    case PL_CAUSE_STALENESS:
        PUT(b, "gradients too old to be used: %.0f %% were dropped",
            100 * t->stale);
        return;
    default:
        PUT(b, "%s: %.0f %% of the time", phrase(t, cause), 100 * b->share);
        break;
    }
    put_shares(b, t, cause);
}

static void put_cures(pl_bottleneck *b)
{
    for (size_t i = 0; i < b->cure_count; i++)
        PUT(b, "%s%s: %.1f x as fast", i == 0 ? ". Cures: " : "; ",
            b->cures[i].text, b->cures[i].gain);
}

/* The task to blame, if there is one. */
static void name_task(pl_bottleneck *b, const pl_job_times *t, pl_cause cause)
{
    const pl_summary *s = t->summary;
    const char *host = "";
    if (cause == PL_CAUSE_SLOW_WORKER) {
        b->worker = t->slow;
        snprintf(b->task, sizeof b->task, "worker %d", t->slow);
        host = s->per_worker[t->slow].host;
    } else if (cause == PL_CAUSE_SERVER) {
        snprintf(b->task, sizeof b->task, "ps %d", t->busy_server);
        host = s->per_server[t->busy_server].host;
    }
    snprintf(b->host, sizeof b->host, "%s", host);
}

pl_status pl_bottleneck_find(pl_summary *summary,
                             const pl_bottleneck_opts *opts)
{
    pl_bottleneck *b = &summary->bottleneck;
    pl_job_times t;
    measure(&t, summary, opts);
    summary->has_bottleneck = t.workers > 0;
    if (t.workers == 0)
        return PL_OK;
    rule found = choose(&t);
    *b = (pl_bottleneck) { .share = found.share, .worker = -1 };
    snprintf(b->what, sizeof b->what, "%s", names[found.cause]);
    b->spells = found.cause == PL_CAUSE_SLOW_WORKER && t.spells;
    name_task(b, &t, found.cause);
    describe(b, &t, found.cause);
    PL_TRY(pl_cures_find(b, &t, found.cause));
    put_cures(b);
    return PL_OK;
}
