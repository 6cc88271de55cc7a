#include "base/mem.h"
#include "base/param.h"
#include "base/thread.h"
#include "cli/commands.h"
#include "data/idx.h"
#include "data/source.h"

#include <stdio.h>
#include <string.h>

typedef struct data_options {
    const char *out;
    int64_t threads;
} data_options;

static const pl_param params[] = {
    { "out", PL_PARAM_TEXT, offsetof(data_options, out), NULL, 0, 0, NULL,
      "DIR", "folder for the files; made when missing" },
    { "threads", PL_PARAM_INT, offsetof(data_options, threads), NULL, 1, 1024,
      NULL, "N", "threads to draw with (default: the cores)" },
};

static pl_status write_split(const char *source, pl_split split,
                             const data_options *options)
{
    pl_dataset *set;
    PL_TRY(pl_source_open(&set, source, split,
                          &(pl_source_opts) {
                              .threads = options->threads > 0
                                             ? (int32_t)options->threads
                                             : pl_thread_cores(),
                          }));
    pl_status status = pl_dataset_write_idx(set, options->out, split);
    if (status == PL_OK)
        printf("%s: %lld examples\n",
               split == PL_SPLIT_TRAIN ? "train" : "test",
               (long long)set->count);
    pl_dataset_free(set);
    return status;
}

static pl_status write_digits(const data_options *options)
{
    if (options->out == NULL || options->out[0] == '\0')
        return PL_FAIL(PL_USAGE, "data digits needs --out DIR");
    PL_TRY(write_split("digits", PL_SPLIT_TRAIN, options));
    PL_TRY(write_split("digits", PL_SPLIT_TEST, options));
    printf("IDX files written to %s; train with --data idx:%s\n", options->out,
           options->out);
    return PL_OK;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    data_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_data, app,
                            "Write the built-in digits as IDX files.", &options,
                            argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status;
    if (words.count != 1 || strcmp(words.list[0], "digits") != 0)
        status = PL_FAIL(PL_USAGE, "expected: data digits --out DIR");
    else
        status = write_digits(&options);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_data = {
    .name = "data",
    .usage = "data digits --out DIR",
    .help = "write the built-in digits as IDX files",
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
