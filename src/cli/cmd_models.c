/* cmd_models.c - `models`: lists the models, or shows the layers, parameters
 * and planned memory of one. */
#include "app/options/options.h"
#include "app/train/memory.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "cli/help/help.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#define MAX_MODELS 32

static pl_status list_models(const pl_app *app)
{
    const pl_model *models[MAX_MODELS];
    pl_app_models(app, models, MAX_MODELS);
    for (int i = 0; models[i] != NULL; i++)
        printf("%-12s %s\n", models[i]->name, models[i]->help);
    return PL_OK;
}

static pl_shape example_of(const pl_options *options)
{
    if (options->model->sparse && options->train.features > 0)
        return PL_SHAPE(options->train.features);
    pl_shape example = options->model->example;
    return example.rank > 0 ? example : PL_SHAPE(28, 28);
}

/* Parameters that are inputs of this node. */
static int64_t own_params(const pl_node *node)
{
    int64_t count = 0;
    for (int i = 0; i < node->input_count; i++)
        if (node->in[i]->op == &pl_op_parameter && !node->in[i]->averaged)
            count += pl_node_row(node->in[i]);
    return count;
}

static void print_layers(const pl_network *network)
{
    printf("%-20s %-14s %-20s %12s %14s\n", "layer", "operator", "output",
           "parameters", "multiply-adds");
    int64_t total = 0;
    for (int i = 0; i < network->forward; i++) {
        const pl_node *node = pl_graph_get(network->graph, i);
        /* Only layers, not nodes that depend on parameters alone. */
        if (!network->sparse &&
            (!pl_shape_batched(node->shape) ||
             (node->op == &pl_op_input && node->shape.rank == 1)))
            continue;
        char shape[PL_SHAPE_TEXT], name[1024]; /* may come from an ONNX file */
        int64_t work =
            node->op->multiply_adds != NULL ? node->op->multiply_adds(node) : 0;
        total += work;
        printf(
            "%-20s %-14s %-20s %12lld %14lld\n",
            pl_quote_line(name, sizeof name, node->name), node->op->name,
            pl_shape_text(node->shape, shape),
            (long long)(network->sparse ? pl_node_row(node) : own_params(node)),
            (long long)work);
    }
    printf("%-20s %-14s %-20s %12lld %14lld\n", "total", "", "",
           (long long)pl_params_elements(network->params), (long long)total);
}

static void print_bytes(const char *what, int64_t bytes)
{
    char text[PL_BYTES_TEXT];
    printf("  %-22s %10s\n", what, pl_memory_text(bytes, text));
}

static pl_status print_memory(const pl_network *network,
                              const pl_options *options)
{
    const pl_kernels *kernels;
    PL_TRY(pl_options_kernels(options, &kernels));
    /* Test data like the model's, which is not opened. */
    const pl_train_options *train = &options->train;
    const pl_dataset test = {
        .count = -1,
        .shape = example_of(options),
        .sparse = options->model->sparse,
    };
    bool tests = train->eval_every.unit != PL_EVERY_NEVER;
    pl_budget_opts plan = pl_memory_plan(&(pl_memory_opts) {
        .options = options,
        .network = network,
        .kernels = kernels,
        .test = tests ? &test : NULL,
    });
    pl_budget budget;
    PL_TRY(pl_budget_make(&budget, &plan));
    printf("\nmemory at batch %lld with %s\n", (long long)train->batch,
           pl_optim_list()[train->optimizer]->name);
    print_bytes("parameters", budget.params);
    print_bytes("optimizer", budget.optimizer);
    print_bytes("gradients and results", budget.work);
    print_bytes("tests", budget.evaluation);
    print_bytes("checkpoints", budget.checkpoint);
    print_bytes("total, without data", budget.total);
    pl_ram ram = pl_ram_available();
    if (ram.bytes < INT64_MAX)
        print_bytes("available", ram.bytes);
    return PL_OK;
}

static pl_status show_model(pl_options *options, int argc, char **argv)
{
    const pl_model *model = options->model;
    PL_TRY(pl_options_parse(options, argc, argv));
    PL_TRY(pl_options_resolve(options));
    int32_t classes = pl_options_classes(options);
    if (classes == 0)
        classes = model->classes;
    pl_network *network;
    PL_TRY(pl_network_new(&network, model,
                          &(pl_network_opts) {
                              .example = example_of(options),
                              .classes = classes > 0 ? classes : 10,
                              .init = options->train.init,
                              .options = options->model_options,
                              .no_values = true,
                          }));
    printf("%s: %s\n\n", model->name, model->help);
    print_layers(network);
    pl_status status = print_memory(network, options);
    pl_network_free(network);
    return status;
}

static pl_status print_help(const pl_app *app, pl_options *options,
                            const char *topic)
{
    pl_param_fact list[PL_OPTIONS_FACTS];
    pl_param_facts facts = pl_options_help_facts(options, list);
    return pl_help_print(&(pl_help) {
        .app = app,
        .command = &pl_cmd_models,
        .groups = options->groups,
        .group_count = options->group_count,
        .facts = &facts,
        .topic = topic,
    });
}

static pl_status run(const pl_app *app, int argc, char **argv)
{
    bool help = pl_app_wants_help(argc, argv);
    if (argc == 0)
        return list_models(app);
    const pl_model *model;
    PL_TRY(pl_app_model(app, argv[0][0] == '-' ? "softmax" : argv[0], &model));
    pl_options *options;
    PL_TRY(PL_NEW(options, 1));
    pl_status status = pl_options_init(options, model);
    if (status == PL_OK) {
        status = help ? print_help(app, options, pl_help_topic(argc, argv))
                      : show_model(options, argc - 1, argv + 1);
        pl_options_close(options);
    }
    pl_mem_free(options);
    return status;
}

const pl_command pl_cmd_models = {
    .name = "models",
    .usage = "models [NAME [flags]]",
    .help = "list the models, or show one: layers, parameters, memory",
    .about = "Without a name, list the models; with one, show its layers, "
             "parameters, work\nand memory. The flags are those of train.",
    .examples = {
        { "models", "all of them" },
        { "models lenet", "one, layer by layer" },
        { "models alexnet --batch 512", "and its memory at this batch" },
    },
    .run = run,
};
