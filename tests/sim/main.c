/* paceline-sim - run simulated jobs: paceline-sim --seeds 1..1000. */
#include "base/log.h"
#include "sim/sim.h"
#include "sim/sim_ring.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

typedef pl_status run_fn(const pl_sim_opts *opts, pl_sim_result *result);

static bool read_flags(int argc, char **argv, pl_sim_opts *opts, run_fn **run,
                       unsigned long long *first, unsigned long long *last)
{
    bool seeds = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            opts->verbose = true;
        } else if (strcmp(argv[i], "--by-hand") == 0) {
            opts->by_hand = true;
        } else if (strcmp(argv[i], "--ring") == 0) {
            *run = pl_sim_ring_run;
        } else if (strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) {
            int found = sscanf(argv[++i], "%llu..%llu", first, last);
            if (found == 1)
                *last = *first;
            seeds = found >= 1;
        } else {
            return false;
        }
    }
    return seeds;
}

int main(int argc, char **argv)
{
    unsigned long long first = 1, last = 100;
    pl_sim_opts opts = { 0 };
    run_fn *run = pl_sim_run;
    if (!read_flags(argc, argv, &opts, &run, &first, &last)) {
        fprintf(stderr, "usage: paceline-sim --seeds A..B [--ring] [--by-hand] "
                        "[--verbose]\n");
        return 2;
    }
    if (!opts.verbose)
        pl_log_set(no_log, NULL, PL_LOG_ERROR);
    pl_sim_result result;
    long long failed = 0, steps = 0, kills = 0, freezes = 0, refused = 0;
    long long server_kills = 0, saves = 0, cuts = 0;
    unsigned long long slowest = first;
    double longest_s = 0;
    for (unsigned long long seed = first; seed <= last; seed++) {
        opts.seed = seed;
        if (run(&opts, &result) != PL_OK) {
            fprintf(stderr, "%s\n", pl_error_message());
            return 1;
        }
        steps += result.steps;
        kills += result.kills;
        freezes += result.freezes;
        server_kills += result.server_kills;
        saves += result.saves;
        cuts += result.cuts;
        if (result.seconds > longest_s) {
            longest_s = result.seconds;
            slowest = seed;
        }
        refused += result.good && !result.ended_well;
        failed += !result.good;
        if (!result.good)
            printf("seed %llu: %s\n    %s\n", seed, result.why, result.setting);
    }
    printf("%llu seeds, %lld steps, %lld checkpoints, %lld kills, %lld "
           "freezes, %lld cuts, %lld servers killed, the longest %.0f s (seed "
           "%llu), %lld jobs ended with a reason, %lld broke an invariant\n",
           last - first + 1, steps, saves, kills, freezes, cuts, server_kills,
           longest_s, slowest, refused, failed);
    return failed > 0;
}
