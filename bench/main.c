/* paceline-bench - measure this machine and how well the library uses it.
 *
 * usage: paceline-bench [--only PART] [--json] [--window S] ... */
#include "base/error.h"
#include "base/mem.h"
#include "base/param/param.h"
#include "base/thread.h"
#include "bench.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *only;
    const char *program;
    const char *commit;
    double window;
    bool json;
} options;

#define FIELD(name) offsetof(options, name)
static const pl_param params[] = {
    { .name = "only",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(only),
      .value = "PART",
      .help =
          "one of limits, ops, layers, optim, record, reader, net, allreduce, "
          "sparse, train, alexnet (default: all but alexnet, which takes "
          "minutes)" },
    { .name = "json",
      .kind = PL_PARAM_FLAG,
      .offset = FIELD(json),
      .help = "a line of JSON per row instead of tables" },
    { .name = "window",
      .kind = PL_PARAM_REAL,
      .offset = FIELD(window),
      .fallback = "0.2",
      .least = 0.001,
      .most = 60,
      .value = "S",
      .help = "seconds of one window" },
    { .name = "program",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(program),
      .value = "PATH",
      .help =
          "the paceline to train with (default: the one beside this program)" },
    { .name = "commit",
      .kind = PL_PARAM_TEXT,
      .offset = FIELD(commit),
      .fallback = "unknown",
      .help = "what was measured, for the head of the output" },
};

typedef struct part {
    const char *name;
    pl_status (*run)(bench *b);
    bool asked; /* runs only on request */
} part;

static const part parts[] = {
    { "limits", bench_limits, false },
    { "ops", bench_ops, false },
    { "layers", bench_layers, false },
    { "optim", bench_optim, false },
    { "record", bench_record, false },
    { "reader", bench_reader, false },
    { "net", bench_net, false },
    { "sparse", bench_sparse, false },
    { "allreduce", bench_allreduce, false },
    { "train", bench_train, false },
    { "alexnet", bench_alexnet, true },
};
#define PARTS (sizeof parts / sizeof *parts)

static pl_status run_parts(bench *b, const char *only)
{
    bool found = only == NULL;
    for (size_t i = 0; i < PARTS; i++)
        found = found || strcmp(only, parts[i].name) == 0;
    if (!found)
        return PL_FAIL(PL_USAGE, "--only %s: --help lists the parts", only);
    bench_print_machine(b);
    load_mark begin = bench_load_mark();
    for (size_t i = 0; i < PARTS; i++) {
        if (only == NULL ? parts[i].asked : strcmp(only, parts[i].name) != 0)
            continue;
        pl_status status = parts[i].run(b);
        if (status != PL_OK)
            return pl_context(status, "%s", parts[i].name);
    }
    bench_print_load(b, &begin);
    return PL_OK;
}

static pl_status run(int argc, char **argv)
{
    options o;
    pl_param_group group = { "Flags", params, sizeof params / sizeof *params,
                             &o, NULL };
    char *positional[16];
    int count = 0;
    PL_TRY(pl_param_defaults(&group, 1));
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        printf("usage: paceline-bench [flags]\n\nMeasure the limits of this "
               "machine and what the library makes of them.\n");
        pl_param_print_help(&group, 1, stdout);
        return PL_OK;
    }
    if (argc > 16)
        return PL_FAIL(PL_USAGE, "too many arguments; --help lists them");
    PL_TRY(pl_param_parse(&group, 1, argc - 1, argv + 1, positional, &count));
    if (count > 0)
        return PL_FAIL(PL_USAGE, "unexpected argument \"%s\"", positional[0]);
    static bench b; /* large */
    b.window_s = o.window;
    b.program = o.program;
    b.commit = o.commit;
    b.threads = pl_thread_cores();
    b.table.json = o.json;
    return run_parts(&b, o.only);
}

int main(int argc, char **argv)
{
    pl_mem_keep_freed();
    pl_status status = run(argc, argv);
    if (status == PL_OK)
        return 0;
    fprintf(stderr, "paceline-bench: %s\n", pl_error_message());
    return status == PL_USAGE ? 2 : 1;
}
