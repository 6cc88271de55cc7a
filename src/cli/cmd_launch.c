/* Start a training on many hosts. */
#include "app/launch/launch.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIELD(f) offsetof(pl_launch_flags, f)

static const pl_param params[] = {
    { .name = "hosts",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(hosts),
      .value = "A,B,C",
      .help = "hosts to start tasks on, named as for ssh (inside a Slurm "
              "allocation: its nodes)",
      .why = "Tasks are assigned to the hosts in turn, the chief and the first "
             "server to the first host; without --workers each host gets one "
             "worker. The tasks reach each other by these names, so each name "
             "must mean the same host everywhere." },
    { .name = "cluster",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(cluster),
      .value = "FILE",
      .help =
          "JSON file with the tasks and their addresses, on whose hosts they "
          "start",
      .why = "Use it instead of --hosts when you choose the host and the port "
             "of each task yourself, as a firewall may require. "
             "docs/cluster.md shows the file." },
    { .name = "deploy",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(deploy),
      .value = "NAME",
      .needs = "cluster",
      .help = "entry of --cluster to use, if it has several",
      .why = "A file may describe several clusters, such as {\"test\": {...}, "
             "\"lab\": {...}}; with only one, leave the flag out. Example: "
             "--deploy lab." },
    { .name = "ssh",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(ssh),
      .fallback = "ssh",
      .value = "COMMAND",
      .help = "command to reach a host, such as \"ssh -p 2222\"",
      .why =
          "Use it for another port, user or key, such as \"ssh -p 2222 -i "
          "key\". It must reach each host without asking for a password. "
          "Inside a Slurm allocation, without --hosts, srun is used instead." },
    { .name = "program",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(program),
      .value = "FILE",
      .help = "path of paceline on the hosts (default: the path here)",
      .why = "For hosts where paceline is installed at another path, such as "
             "/opt/paceline/bin/paceline. It must be the same version on all "
             "of them; if it is not installed there, use --copy." },
    { .name = "copy",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(copy),
      .help = "copy this program and the files of --data to the hosts first, "
              "except files that they already have with the same checksum",
      .why = "For hosts without paceline and without shared storage. The "
             "program goes to ~/.cache/paceline/bin, data to the same paths as "
             "here; later starts only compare checksums." },
    { .name = "agent",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(agent),
      .traits = PL_PARAM_INTERNAL,
      .help = "set by launch itself, on the hosts",
      .why = "Not for use by hand: it reads its orders from the connection to "
             "launch, and ends with it." },
};

#define COUNT (sizeof params / sizeof *params)

/* The index of the "--" before a task's command; argc: none. */
static int find_dashes(int argc, char **argv)
{
    int at = 0;
    while (at < argc && strcmp(argv[at], "--") != 0)
        at++;
    return at;
}

/* A sweep starts its cells by launch, so it gets the flags. */
static pl_status sweep(const pl_app *app, const pl_launch_flags *flags,
                       int argc, char **argv)
{
    const char *const given[] = { "--hosts",  flags->hosts, "--ssh",
                                  flags->ssh, "--program",  flags->program };
    char **words;
    int count = 0;
    if (flags->cluster != NULL)
        return PL_FAIL(PL_USAGE, "--cluster: the cells of a sweep have tasks "
                                 "of their own; give --hosts");
    if (flags->hosts == NULL && getenv("SLURM_JOB_NODELIST") == NULL)
        return PL_FAIL(PL_USAGE, "no hosts: give --hosts a,b,c, or run launch "
                                 "inside a Slurm allocation (sbatch, salloc)");
    PL_TRY(PL_NEW(words, (size_t)argc + 8));
    for (int i = 0; flags->hosts != NULL && i < 6; i += 2)
        if (given[i + 1] != NULL) {
            words[count++] = (char *)given[i];
            words[count++] = (char *)given[i + 1];
        }
    if (flags->copy)
        words[count++] = (char *)"--copy";
    memcpy(words + count, argv, (size_t)argc * sizeof *words);
    pl_status status = pl_cmd_sweep.run(app, count + argc, words);
    pl_mem_free(words);
    return status;
}

static pl_status check(const pl_launch_flags *flags, int argc, char **argv)
{
    if (flags->hosts != NULL && flags->cluster != NULL)
        return PL_FAIL(PL_USAGE, "--hosts and --cluster: give one of them, "
                                 "not both");
    if (flags->deploy != NULL && flags->cluster == NULL)
        return PL_FAIL(PL_USAGE, "--deploy needs --cluster FILE, whose entry "
                                 "it names");
    if (flags->copy && flags->program != NULL)
        return PL_FAIL(PL_USAGE, "--copy and --program: give one of them, "
                                 "not both");
    if (argc < 1)
        return PL_FAIL(PL_USAGE,
                       "launch needs the command to start: launch --hosts a,b "
                       "-- train MODEL ...");
    if (strcmp(argv[0], "sweep") == 0 || strcmp(argv[0], "matmul") == 0)
        return PL_OK;
    if (strcmp(argv[0], "train") != 0)
        return PL_FAIL(PL_USAGE,
                       "launch starts `train`, `sweep` or `matmul`, found "
                       "\"%s\"",
                       argv[0]);
    if (argc < 2 || argv[1][0] == '-')
        return PL_FAIL(PL_USAGE, "train needs a model: launch --hosts a,b -- "
                                 "train MODEL ...");
    return PL_OK;
}

static pl_status parse(const pl_app *app, int argc, char **argv)
{
    pl_launch_flags flags;
    pl_param_group group = { "Flags", params, COUNT, &flags, NULL };
    char **words;
    int count, dashes = find_dashes(argc, argv);
    PL_TRY(pl_param_defaults(&group, 1));
    PL_TRY(PL_NEW(words, (size_t)argc + 1));
    pl_status status = pl_param_parse(&group, 1, dashes, argv, words, &count);
    if (status == PL_OK && count > 0)
        status = PL_FAIL(PL_USAGE,
                         "\"%s\": put -- before the command to start: launch "
                         "--hosts a,b -- train MODEL ...",
                         words[0]);
    pl_mem_free(words);
    PL_TRY(status);
    if (flags.agent)
        return pl_launch_agent(app);
    int left = dashes < argc ? argc - dashes - 1 : 0;
    PL_TRY(check(&flags, left, argv + dashes + 1));
    if (strcmp(argv[dashes + 1], "sweep") == 0)
        return sweep(app, &flags, left - 1, argv + dashes + 2);
    if (strcmp(argv[dashes + 1], "matmul") == 0)
        return pl_cmd_matmul_launch(app, &flags, left - 1, argv + dashes + 2);
    return pl_launch_job(app, &flags, left, argv + dashes + 1);
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    pl_launch_flags flags;
    pl_words words;
    if (!pl_app_wants_help(argc, argv))
        return parse(app, argc, argv);
    return pl_command_parse(&pl_cmd_launch, app, &flags, argc, argv, &words);
}

const pl_command pl_cmd_launch = {
    .name = "launch",
    .usage = "launch [flags] -- train MODEL ... | sweep ... | matmul ...",
    .help = "train on several hosts, over ssh or in Slurm",
    .about =
        "Start a training on several hosts, over ssh or inside a Slurm "
        "allocation. Tasks\nare assigned to the hosts in turn, their output "
        "appears here and in the run\nfolder, and Ctrl-C ends all of them.",
    .examples = {
        { "launch --hosts a,b,c -- train lenet --ps 1", "over ssh" },
        { "launch -- train alexnet", "inside a Slurm allocation" },
        { "launch --hosts a,b --copy -- train softmax", "hosts without paceline" },
    },
    .run = run,
    .params = params,
    .param_count = COUNT,
};
