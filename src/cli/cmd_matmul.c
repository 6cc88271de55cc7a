/* Multiply matrices that are spread over workers, in blocks. */
#include "app/matmul/matmul.h"
#include "app/task/descriptors.h"
#include "app/train/interrupt.h"
#include "app/train/memory.h"
#include "base/host/ram.h"
#include "base/mem.h"
#include "base/thread.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELD(f) offsetof(pl_matmul_flags, f)
#define DAY_S    86400

static const pl_param params[] = {
    { .name = "n",
      .kind = PL_PARAM_INT,
      .offset = FIELD(n),
      .fallback = "4096",
      .least = 1,
      .most = PL_MATMUL_N_MAX,
      .traits = PL_PARAM_COMMON,
      .help = "rows and columns of the matrices",
      .why = "Work grows with the cube of N, memory and traffic with its "
             "square: 4096 takes 64 MiB for each matrix. Double it until the "
             "workers compute for some seconds." },
    { .name = "blocks",
      .kind = PL_PARAM_INT,
      .offset = FIELD(blocks),
      .fallback = "8",
      .least = 1,
      .most = PL_MATMUL_BLOCKS_MAX,
      .value = "B",
      .traits = PL_PARAM_COMMON,
      .help = "divide each matrix into B x B blocks",
      .why = "More blocks let computing overlap with sending, but each product "
             "becomes smaller and less efficient. The default suits a few "
             "workers." },
    { .name = "workers",
      .kind = PL_PARAM_INT,
      .offset = FIELD(workers),
      .least = 1,
      .most = PL_MATMUL_WORKERS_MAX,
      .value = "W",
      .traits = PL_PARAM_COMMON,
      .help = "processes to start on this machine (default: 2)",
      .why = "Give the number of processes to compare; more than cores only "
             "compete for the same processor. With --cluster or mpirun the "
             "number is theirs." },
    { .name = "op",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(op),
      .fallback = "product",
      .choices = "trace|product",
      .traits = PL_PARAM_COMMON,
      .help = "trace: the sum of the traces of A_ij A_ji; product: all of A B",
      .why = "`product` measures processors and network together. `trace` does "
             "almost no work, so it shows the cost of moving blocks, which a "
             "good --placement avoids." },
    { .name = "placement",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(placement),
      .fallback = "best",
      .value = "FORMULA",
      .traits = PL_PARAM_COMMON,
      .help = "worker that holds block (i, j), as a formula of i, j, W and B "
              "such as \"(i+j)%W\"; best: the formula that moves the least "
              "data",
      .why = "Give a formula to see what a poor layout costs: the table "
             "compares the bytes that both move. i is the row of a block, j "
             "its column, W the number of workers and B that of blocks in a "
             "row." },
    { .name = "threads",
      .kind = PL_PARAM_INT,
      .offset = FIELD(threads),
      .least = 1,
      .most = 1024,
      .traits = PL_PARAM_COMMON,
      .help = "threads of each worker (default: its share of the cores)",
      .why = "Lower it to leave cores to other processes. The result is exact "
             "with any number." },
    { .name = "seed",
      .kind = PL_PARAM_INT,
      .offset = FIELD(seed),
      .fallback = "1",
      .most = 1e15,
      .help = "seed of the entries",
      .why = "The time does not depend on it; another seed checks the result "
             "with other numbers." },
    { .name = "compare",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(compare),
      .needs = "op=product",
      .traits = PL_PARAM_COMMON,
      .help = "afterwards also compute the product in one process with all "
              "cores, and "
              "compare the speed",
      .why = "Shows what the distribution gains or costs on this machine. It "
             "takes the time and the memory of a second product." },
    { .name = "transport",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(transport),
      .fallback = "auto",
      .choices = "auto|tcp",
      .help = "how blocks are sent; auto: through shared memory on one machine",
      .why = "Choose tcp to measure the cost of network messages on one "
             "machine." },
    { .name = "cluster",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(cluster),
      .value = "FILE",
      .traits = PL_PARAM_COMMON | PL_PARAM_LOCAL,
      .help = "JSON file with the workers and their addresses, on any machines",
      .why = "For workers that you start yourself: run one command on each "
             "host, with its --index. `launch` does the same by one command "
             "over ssh." },
    { .name = "role",
      .kind = PL_PARAM_CHOICE,
      .offset = FIELD(role),
      .fallback = "worker",
      .choices = "chief|worker",
      .traits = PL_PARAM_LOCAL,
      .help = "role of this task in the cluster",
      .why = "Needed only if the cluster file names a chief: its task is "
             "--role chief." },
    { .name = "index",
      .kind = PL_PARAM_INT,
      .offset = FIELD(index),
      .most = PL_MATMUL_WORKERS_MAX - 1,
      .traits = PL_PARAM_COMMON | PL_PARAM_LOCAL,
      .help = "number of this task within its role",
      .why = "Count from 0: the second worker of the file is --index 1. Under "
             "mpirun the rank is the index." },
    { .name = "join-timeout",
      .kind = PL_PARAM_INT,
      .offset = FIELD(join_timeout),
      .least = 1,
      .most = DAY_S,
      .value = "S",
      .help = "seconds to wait for all workers to join (default: 60, or 600 "
              "when workers are started by hand)",
      .why = "Raise it where a queue starts the workers far apart; lower it to "
             "notice a missing host sooner." },
    { .name = "keys",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(keys),
      .value = "FILE",
      .traits = PL_PARAM_COMMON | PL_PARAM_LOCAL,
      .help = "key file of the job, made by `keys -o FILE`; required beyond "
              "loopback (default: the file that PACELINE_KEYS names)",
      .why =
          "With keys all traffic is encrypted. Give each worker a copy of "
          "the same file, readable only by you; anyone who has it can join." },
    { .name = "insecure",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(insecure),
      .traits = PL_PARAM_LOCAL,
      .help = "start without keys beyond loopback",
      .why = "Only on a network where you trust every machine: blocks are "
             "neither encrypted nor authenticated." },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(json),
      .traits = PL_PARAM_COMMON,
      .help = "print the result as one JSON object",
      .why = "For scripts: it has the times, bytes and rates of the tables, as "
             "exact numbers." },
    { .name = "control",
      .kind = PL_PARAM_INT,
      .offset = FIELD(control),
      .least = 3,
      .most = 1e6,
      .value = "FD",
      .traits = PL_PARAM_INTERNAL,
      .help = "set by the supervisor: descriptor of the control socket",
      .why = "Not for use by hand: the process that starts the workers gives "
             "each of them this end of a socket pair." },
};

#define COUNT (sizeof params / sizeof *params)

static bool is_given(const bool *given, const char *name)
{
    for (size_t i = 0; i < COUNT; i++)
        if (strcmp(params[i].name, name) == 0)
            return given[i];
    return false;
}

/* Take this process's task from the cluster in TF_CONFIG, if there is one. */
static pl_status read_environment(pl_matmul_command *c)
{
    const char *text = getenv("TF_CONFIG");
    bool cluster;
    if (text == NULL || text[0] == '\0' || c->flags.control > 0 ||
        c->flags.cluster != NULL)
        return PL_OK;
    PL_TRY(pl_cluster_tf_config_has(text, &cluster, &c->has_task));
    c->has_task = c->has_task && cluster;
    if (!c->has_task)
        return PL_OK;
    PL_TRY(pl_cluster_tf_config(&c->cluster, &c->task, text));
    c->flags.workers = c->cluster.workers;
    return PL_OK;
}

/* The number of workers, and which flag or cluster sets it. */
static pl_status find_workers(pl_matmul_command *c, const bool *given)
{
    pl_matmul_flags *flags = &c->flags;
    pl_matmul_rank rank;
    PL_TRY(read_environment(c));
    if (flags->control == 0 && pl_matmul_rank_find(&rank)) {
        if (is_given(given, "workers") && flags->workers != rank.size)
            return PL_FAIL(PL_USAGE,
                           "--workers %lld: the launcher has started %d; "
                           "leave the flag out",
                           (long long)flags->workers, rank.size);
        flags->workers = rank.size;
    }
    if (flags->cluster != NULL) {
        PL_TRY(pl_cluster_read(&c->cluster, flags->cluster, NULL));
        if (is_given(given, "workers") && flags->workers != c->cluster.workers)
            return PL_FAIL(PL_USAGE, "--workers %lld, but %s has %d workers",
                           (long long)flags->workers, flags->cluster,
                           c->cluster.workers);
        flags->workers = c->cluster.workers;
    }
    if (flags->workers == 0)
        flags->workers = 2;
    if (flags->workers > PL_MATMUL_WORKERS_MAX)
        return PL_FAIL(PL_USAGE, "%lld workers, expected at most %d",
                       (long long)flags->workers, PL_MATMUL_WORKERS_MAX);
    return PL_OK;
}

static pl_status check(const pl_matmul_command *c, const bool *given)
{
    const pl_matmul_flags *flags = &c->flags;
    if (flags->blocks > flags->n)
        return PL_FAIL(PL_USAGE,
                       "--blocks %lld: a matrix of --n %lld has only that many "
                       "rows",
                       (long long)flags->blocks, (long long)flags->n);
    if (flags->compare && c->cluster.workers > 0)
        return PL_FAIL(PL_USAGE, "--compare is for workers on this machine, "
                                 "without --cluster");
    if (flags->keys != NULL && flags->insecure)
        return PL_FAIL(PL_USAGE, "--keys and --insecure: give one of them, "
                                 "not both");
    if (is_given(given, "index") && flags->cluster == NULL &&
        flags->control == 0)
        return PL_FAIL(PL_USAGE, "--index needs --cluster FILE, where the "
                                 "other workers are");
    return PL_OK;
}

static pl_status place(pl_matmul_command *c)
{
    const pl_matmul_flags *flags = &c->flags;
    c->job = (pl_matmul_job) {
        .op = (pl_matmul_op)flags->op,
        .n = flags->n,
        .blocks = (int32_t)flags->blocks,
        .workers = (int32_t)flags->workers,
        .seed = (uint64_t)flags->seed,
    };
    if (strcmp(flags->placement, "best") == 0)
        return pl_placement_best(&c->placement, &c->job);
    pl_status status =
        pl_placement_parse(&c->placement, &c->job, flags->placement);
    return status == PL_OK ? PL_OK : pl_context(status, "--placement");
}

pl_status pl_matmul_memory(const pl_matmul_command *command, int64_t bytes,
                           const char *whose)
{
    pl_ram ram = pl_ram_available();
    char need[PL_BYTES_TEXT], have[PL_BYTES_TEXT];
    if (bytes <= ram.bytes - ram.bytes / 32)
        return PL_OK;
    return PL_FAIL(PL_USAGE,
                   "--n %lld: %s would take %s of memory, but %s has %s "
                   "available; use a smaller --n, or more machines",
                   (long long)command->job.n, whose,
                   pl_memory_text(bytes, need), ram.limit,
                   pl_memory_text(ram.bytes, have));
}

static pl_status work(pl_matmul_command *c, const bool *given)
{
    pl_matmul_rank rank;
    PL_TRY(find_workers(c, given));
    PL_TRY(check(c, given));
    PL_TRY(place(c));
    bool task = c->flags.control > 0 || c->flags.cluster != NULL ||
                c->has_task || pl_matmul_rank_find(&rank);
    if (task && c->flags.cluster != NULL && c->flags.role == PL_ROLE_WORKER &&
        c->cluster.workers - c->cluster.named_chief > 1 &&
        !is_given(given, "index") && !pl_matmul_rank_find(&rank))
        return PL_FAIL(PL_USAGE,
                       "--cluster needs --index N, which of its workers this "
                       "is, from 0 to %d",
                       c->cluster.workers - c->cluster.named_chief - 1);
    PL_TRY(pl_descriptors_ensure_product(c->job.workers));
    return task ? pl_matmul_task(c) : pl_matmul_local(c);
}

/* The same on the hosts of `launch`. */
static pl_status work_on_hosts(pl_matmul_command *c, const bool *given,
                               pl_launch_hosts *hosts, int argc, char **argv)
{
    for (size_t i = 0; i < COUNT; i++)
        if (given[i] && (params[i].traits & PL_PARAM_LOCAL) != 0)
            return PL_FAIL(PL_USAGE,
                           "--%s is not for workers that launch starts",
                           params[i].name);
    if (c->flags.compare)
        return PL_FAIL(PL_USAGE, "--compare is not for workers that launch "
                                 "starts");
    int32_t there =
        hosts->cluster.workers > 0 ? hosts->cluster.workers : hosts->list.count;
    if (!is_given(given, "workers"))
        c->flags.workers = there;
    else if (hosts->cluster.workers > 0 && c->flags.workers != there)
        return PL_FAIL(PL_USAGE,
                       "--workers %lld, but the cluster file has %d workers",
                       (long long)c->flags.workers, there);
    PL_TRY(check(c, given));
    PL_TRY(place(c));
    return pl_matmul_hosts(c, hosts, argc, argv);
}

static pl_status launch(pl_matmul_command *c, const bool *given,
                        const pl_launch_flags *flags, int argc, char **argv)
{
    pl_launch_hosts hosts;
    PL_TRY(pl_launch_hosts_init(&hosts, flags, pl_interrupt_catch()));
    pl_status status = work_on_hosts(c, given, &hosts, argc, argv);
    pl_launch_hosts_close(&hosts);
    return status;
}

/* `flags`: of launch, which starts the workers; NULL: without launch. */
static pl_status parse(const pl_app *app, const pl_launch_flags *flags,
                       int argc, char **argv)
{
    bool given[COUNT] = { false };
    pl_matmul_command c = { .app = app };
    pl_param_group group = { "Flags", params, COUNT, &c.flags, given };
    char **words;
    int count;
    PL_TRY(pl_param_defaults(&group, 1));
    PL_TRY(PL_NEW(words, (size_t)argc + 1));
    pl_status status = pl_param_parse(&group, 1, argc, argv, words, &count);
    if (status == PL_OK && count > 0)
        status = PL_FAIL(PL_USAGE, "matmul takes only flags, found \"%s\"",
                         words[0]);
    if (status == PL_OK)
        status = pl_param_check(
            &(pl_param_facts) { .groups = &group, .group_count = 1 });
    if (status == PL_OK)
        status = flags != NULL ? launch(&c, given, flags, argc, argv)
                               : work(&c, given);
    pl_mem_free(words);
    pl_placement_close(&c.placement);
    pl_cluster_close(&c.cluster);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    if (!pl_app_wants_help(argc, argv))
        return parse(app, NULL, argc, argv);
    pl_matmul_flags flags;
    pl_words words;
    return pl_command_parse(&pl_cmd_matmul, app, &flags, argc, argv, &words);
}

pl_status pl_cmd_matmul_launch(const pl_app *app, const pl_launch_flags *flags,
                               int argc, char **argv)
{
    return parse(app, flags, argc, argv);
}

const pl_command pl_cmd_matmul = {
    .name = "matmul",
    .usage = "matmul [flags]",
    .help = "multiply matrices in blocks, on one machine or many",
    .about =
        "Multiply matrices that are spread over workers in blocks, and count "
        "what moves\nbetween them.  The result is checked against entries that "
        "are computed exactly.",
    .examples = {
        { "matmul --n 4096", "two workers on this machine" },
        { "matmul --n 8192 --blocks 4 --workers 4 --compare", "against one process" },
        { "matmul --placement \"(i+j)%W\"", "another layout of the blocks" },
    },
    .run = run,
    .params = params,
    .param_count = COUNT,
};
