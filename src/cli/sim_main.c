/* paceline-sim - run simulated jobs: paceline-sim --seeds 1..1000. */
#include "base/log.h"
#include "dist/sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void no_log(void *context, pl_log_level level, const char *line)
{
    (void)context, (void)level, (void)line;
}

int main(int argc, char **argv)
{
    unsigned long long first = 1, last = 100;
    bool verbose = argc == 4 && strcmp(argv[3], "--verbose") == 0;
    if ((argc != 3 && !verbose) || strcmp(argv[1], "--seeds") != 0 ||
        (sscanf(argv[2], "%llu..%llu", &first, &last) != 2 &&
         (sscanf(argv[2], "%llu", &first) != 1 || (last = first, false)))) {
        fprintf(stderr, "usage: paceline-sim --seeds A..B [--verbose]\n");
        return 2;
    }
    if (strchr(argv[2], '.') == NULL)
        last = first;
    if (!verbose)
        pl_log_set(no_log, NULL, PL_LOG_ERROR);
    pl_sim_result result;
    long long failed = 0, steps = 0, kills = 0, freezes = 0, refused = 0;
    long long server_kills = 0;
    for (unsigned long long seed = first; seed <= last; seed++) {
        if (pl_sim_run(seed, verbose, &result) != PL_OK) {
            fprintf(stderr, "%s\n", pl_error_message());
            return 1;
        }
        steps += result.steps;
        kills += result.kills;
        freezes += result.freezes;
        server_kills += result.server_kills;
        refused += result.good && !result.ended_well;
        failed += !result.good;
        if (!result.good)
            printf("seed %llu: %s\n    %s\n", seed, result.why, result.setting);
    }
    printf("%llu seeds, %lld steps, %lld kills, %lld freezes, %lld servers "
           "killed, %lld jobs ended "
           "with a reason, %lld broke an invariant\n",
           last - first + 1, steps, kills, freezes, server_kills, refused,
           failed);
    return failed > 0;
}
