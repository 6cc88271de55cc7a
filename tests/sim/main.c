/* paceline-sim - run simulated jobs: paceline-sim --seeds 1..1000; or measure
 * server 0 of large ones: paceline-sim --scale 1000x32. */
#include "base/clock.h"
#include "base/log.h"
#include "job/cluster/cluster.h"
#include "sim/sim.h"
#include "sim/sim_ring.h"
#include "sim/sim_scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MOST 64

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

typedef pl_status run_fn(const pl_sim_opts *opts, pl_sim_result *result);

typedef struct plan {
    pl_sim_opts opts;
    run_fn *run;
    unsigned long long first, last; /* seeds, both included */
    int jobs;
} plan;

static bool read_flags(int argc, char **argv, plan *p)
{
    bool seeds = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            p->opts.verbose = true;
        } else if (strcmp(argv[i], "--by-hand") == 0) {
            p->opts.by_hand = true;
        } else if (strcmp(argv[i], "--ring") == 0) {
            p->run = pl_sim_ring_run;
        } else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc) {
            p->jobs = atoi(argv[++i]);
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            int found = sscanf(argv[++i], "%llu..%llu", &p->first, &p->last);
            if (found == 1)
                p->last = p->first;
            seeds = found >= 1;
        } else {
            return false;
        }
    }
    return seeds && p->jobs >= 1 && p->jobs <= JOBS_MOST;
}

/* The sums over many histories. */
typedef struct tally {
    long long failed, steps, kills, freezes, refused, server_kills, saves, cuts;
    unsigned long long slowest; /* a seed */
    double longest_s;
} tally;

static void count(tally *t, unsigned long long seed, const pl_sim_result *r)
{
    t->steps += r->steps;
    t->kills += r->kills;
    t->freezes += r->freezes;
    t->server_kills += r->server_kills;
    t->saves += r->saves;
    t->cuts += r->cuts;
    t->refused += r->good && !r->ended_well;
    t->failed += !r->good;
    if (r->seconds > t->longest_s) {
        t->longest_s = r->seconds;
        t->slowest = seed;
    }
}

static void add(tally *t, const tally *other)
{
    t->steps += other->steps;
    t->kills += other->kills;
    t->freezes += other->freezes;
    t->server_kills += other->server_kills;
    t->saves += other->saves;
    t->cuts += other->cuts;
    t->refused += other->refused;
    t->failed += other->failed;
    if (other->longest_s > t->longest_s) {
        t->longest_s = other->longest_s;
        t->slowest = other->slowest;
    }
}

/* Every p->jobs'th seed from `first` on. */
static bool run_seeds(const plan *p, unsigned long long first, tally *t)
{
    pl_sim_opts opts = p->opts;
    pl_sim_result result;
    for (unsigned long long seed = first; seed <= p->last;
         seed += (unsigned long long)p->jobs) {
        opts.seed = seed;
        if (p->run(&opts, &result) != PL_OK) {
            fprintf(stderr, "%s\n", pl_error_message());
            return false;
        }
        count(t, seed, &result);
        if (!result.good) {
            printf("seed %llu: %s\n    %s\n", seed, result.why, result.setting);
            fflush(stdout);
        }
    }
    return true;
}

/* A process for each job, which sends its tally. */
static bool run_jobs(const plan *p, tally *t)
{
    bool good = true;
    int pipes[JOBS_MOST][2];
    if (p->jobs == 1)
        return run_seeds(p, p->first, t);
    for (int j = 0; j < p->jobs; j++) {
        pid_t child = pipe(pipes[j]) == 0 ? fork() : -1;
        if (child < 0) {
            perror("paceline-sim");
            return false;
        }
        if (child == 0) {
            tally own = { 0 };
            bool right = run_seeds(p, p->first + (unsigned long long)j, &own) &&
                         write(pipes[j][1], &own, sizeof own) == sizeof own;
            _exit(right ? 0 : 1);
        }
        close(pipes[j][1]);
    }
    for (int j = 0; j < p->jobs; j++) {
        tally own;
        if (read(pipes[j][0], &own, sizeof own) == sizeof own)
            add(t, &own);
        else
            good = false;
        close(pipes[j][0]);
        wait(NULL);
    }
    return good;
}

#define SCALE_STEPS 100

/* `size`: "WORKERSxSERVERS". */
static int run_scale(const char *size)
{
    static const struct {
        const char *name;
        pl_ps_mode mode;
    } modes[] = { { "sync", PL_PS_SYNC },
                  { "async", PL_PS_ASYNC },
                  { "ssp", PL_PS_SSP } };
    pl_sim_scale_opts opts = { .steps = SCALE_STEPS, .staleness = 3 };
    if (sscanf(size, "%dx%d", &opts.workers, &opts.servers) != 2 ||
        opts.workers < 2 || opts.workers > PL_CLUSTER_WORKERS_MAX ||
        opts.servers < 1 || opts.servers > PL_CLUSTER_PS_MAX) {
        fprintf(stderr,
                "--scale %s: expected WORKERSxSERVERS, 2 to %d workers "
                "and 1 to %d servers\n",
                size, PL_CLUSTER_WORKERS_MAX, PL_CLUSTER_PS_MAX);
        return 2;
    }
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        pl_sim_scale result;
        opts.mode = modes[i].mode;
        if (pl_sim_scale_run(&opts, &result) != PL_OK) {
            fprintf(stderr, "%s: %s\n", modes[i].name, pl_error_message());
            return 1;
        }
        printf(
            "%s, %d workers, %d ps: %lld updates, %d workers lost; ps 0 "
            "received %lld messages and sent %lld: %.3f s, %.2f us a message, "
            "%.2f ms a step of all workers; ticks %.3f s\n",
            modes[i].name, opts.workers, opts.servers,
            (long long)result.updates, result.lost, (long long)result.messages,
            (long long)result.sent, result.message_s,
            1e6 * result.message_s / (double)result.messages,
            1e3 * result.message_s / SCALE_STEPS, result.tick_s);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    plan p = { .run = pl_sim_run, .jobs = 1 };
    tally t = { 0 };
    if (argc == 3 && strcmp(argv[1], "--scale") == 0) {
        pl_log_set(no_log, NULL, PL_LOG_ERROR);
        return run_scale(argv[2]);
    }
    if (!read_flags(argc, argv, &p)) {
        fprintf(stderr, "usage: paceline-sim --seeds A..B [--ring] [--by-hand] "
                        "[--jobs N] [--verbose]\n"
                        "       paceline-sim --scale WORKERSxSERVERS\n");
        return 2;
    }
    if (p.opts.verbose)
        pl_log_set(NULL, NULL, PL_LOG_INFO);
    int64_t begin_ns = pl_clock_now_ns(pl_clock_real());
    if (!run_jobs(&p, &t))
        return 1;
    unsigned long long seeds = p.last - p.first + 1;
    double seconds =
        (double)(pl_clock_now_ns(pl_clock_real()) - begin_ns) * 1e-9;
    printf("%llu seeds (%.0f a second), %lld steps, %lld checkpoints, %lld "
           "kills, %lld freezes, %lld cuts, %lld servers killed, the longest "
           "%.0f s (seed %llu), %lld jobs ended with a reason, %lld broke an "
           "invariant\n",
           seeds, (double)seeds / seconds, t.steps, t.saves, t.kills, t.freezes,
           t.cuts, t.server_kills, t.longest_s, t.slowest, t.refused, t.failed);
    return t.failed > 0;
}
