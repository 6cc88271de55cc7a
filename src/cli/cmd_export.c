/* cmd_export.c - `export`: writes the newest or the best checkpoint of a run as
 * a model that other programs read. */
#include "app/train/trained.h"
#include "base/file/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "nn/onnx/export.h"

typedef struct export_options {
    const char *out;
    bool best;
} export_options;

static const pl_param params[] = {
    { .name = "out",
      .kind = PL_PARAM_TEXT,
      .offset = offsetof(export_options, out),
      .fallback = "model.onnx",
      .traits = PL_PARAM_COMMON,
      .value = "FILE",
      .help = "ONNX file to write (short: -o)",
      .why = "Other programs, such as ONNX Runtime, read the file, and "
             "`paceline train FILE` starts from its weights. Example: -o "
             "lenet.onnx." },
    { .name = "best",
      .kind = PL_PARAM_FLAG,
      .offset = offsetof(export_options, best),
      .traits = PL_PARAM_COMMON,
      .help = "use the checkpoint with the lowest test loss, kept by train "
              "--keep-best",
      .why = "The newest checkpoint is used by default, which may already "
             "overfit. It needs a run that was trained with --keep-best and "
             "has tested at least once." },
};

static pl_status export(const pl_app *app, const char *run,
                        const export_options *options)
{
    pl_trained *trained;
    pl_buffer file = { 0 };
    PL_TRY(pl_trained_new(&trained, &(pl_trained_opts) {
                                        .app = app,
                                        .run = run,
                                        .no_data = true,
                                        .best = options->best,
                                    }));
    pl_status status = pl_onnx_export(trained->job.network, &file);
    if (status != PL_OK)
        status = pl_context(status, "%s", run);
    else
        status = pl_buffer_save(&file, options->out);
    if (status == PL_OK)
        pl_log(PL_LOG_INFO, "%s: step %lld of %s, %zu bytes", options->out,
               (long long)trained->progress.step, run, file.bytes);
    pl_buffer_close(&file);
    pl_trained_free(trained);
    return status;
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    export_options options;
    pl_words words;
    PL_TRY(pl_command_parse(&pl_cmd_export, app, &options, argc, argv, &words));
    if (words.list == NULL)
        return PL_OK;
    pl_status status;
    if (words.count != 1)
        status = PL_FAIL(PL_USAGE, "export needs one run folder: export RUN");
    else
        status = export(app, words.list[0], &options);
    pl_mem_free(words.list);
    return status;
}

const pl_command pl_cmd_export = {
    .name = "export",
    .usage = "export RUN [flags]",
    .help = "write the newest checkpoint of a run as an ONNX model",
    .about =
        "Write the newest checkpoint of the run in the folder RUN as an ONNX "
        "model: its\ninference graph, and its parameters under their names.",
    .examples = {
        { "export runs/a", "to model.onnx" },
        { "export runs/a -o lenet.onnx", "to a file of your choice" },
        { "export runs/a --best", "the checkpoint of --keep-best" },
    },
    .run = run,
    .params = params,
    .param_count = sizeof params / sizeof *params,
};
