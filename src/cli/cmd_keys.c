/* Make the key file of a job whose tasks are started by hand. */
#include "base/mem.h"
#include "cli/commands.h"
#include "net/keys.h"

#include <stdio.h>
#include <string.h>

typedef struct keys_options {
    const char *out;
} keys_options;

static const pl_param params[] = {
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(keys_options, out),
      .value = "FILE",
      .help = "key file to create (short: -o); an existing file is never "
              "replaced",
      .why = "Copy the file to all machines of the job over a safe connection, "
             "and give it to each task as --keys, or by PACELINE_KEYS. Make a "
             "new one for each job; launch and jobs on one machine make their "
             "own." },
};

static pl_status make_file(const char *path)
{
    pl_secret secret;
    PL_TRY(pl_secret_make(&secret));
    pl_status status = pl_secret_write(&secret, path);
    pl_keys_wipe(&secret, sizeof secret);
    if (status == PL_OK)
        printf("%s: the key of one job; copy it to its hosts (mode 600) and "
               "start each task with --keys %s\n",
               path, path);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    keys_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_keys, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status;
    if (words.count != 0 || options.out == NULL || options.out[0] == '\0')
        status = PL_FAIL(PL_USAGE, "expected: keys -o FILE");
    else if (strcmp(options.out, "-") == 0)
        status = PL_FAIL(PL_USAGE, "keys are not printed: name a file, as in "
                                   "keys -o job.key");
    else
        status = make_file(options.out);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_keys = {
    .name = "keys",
    .usage = "keys -o FILE",
    .help = "create the key file of a job on several machines",
    .about =
        "Create the key file of a job: 32 random bytes by which its tasks "
        "authenticate\neach other, and from which the keys of each task are "
        "derived.",
    .examples = {
        { "keys -o job.key", "a file that only you can read" },
        { "keys --out ~/.paceline/job.key", "the same, elsewhere" },
        { "train softmax --keys job.key --cluster c.json --role ps --index 0", "a task that uses the file" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
