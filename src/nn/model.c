/* Builds a model for a data set: checks the data against what the model
 * accepts, calls the model's build function, adds loss and accuracy, and
 * initializes the parameters. A sparse model has parameters and no graph. */
#include "nn/model.h"

#include "base/mem.h"
#include "base/param/param.h"
#include "nn/init.h"
#include "nn/models.h"
#include "tensor/shape.h"

#include <string.h>

const pl_model *const *pl_model_list(void)
{
    static const pl_model *const list[] = {
        &pl_model_softmax,
        &pl_model_mlp,
        &pl_model_lenet,
        &pl_model_alexnet,
        &pl_model_resnet18,
        &pl_model_sparse,
        NULL,
    };
    return list;
}

const char *pl_model_word(const pl_model *model)
{
    return model->file != NULL ? model->file->path : model->name;
}

/* [28, 28] -> [batch, 28, 28] */
static pl_shape batched(pl_shape example)
{
    pl_shape shape = { .rank = example.rank + 1, .dim = { PL_BATCH } };
    memcpy(shape.dim + 1, example.dim,
           (size_t)example.rank * sizeof *example.dim);
    return shape;
}

/* Labels index the logits or are compared with them, so there must be one logit
 * per class or number. */
static pl_status check_logits(const pl_build *build)
{
    if (build->logits == NULL)
        return PL_FAIL(PL_SHAPE, "build did not set logits");
    pl_shape shape = pl_node_shape(build->logits);
    char text[PL_SHAPE_TEXT];
    if (!pl_shape_equal(shape, PL_SHAPE(PL_BATCH, build->classes)))
        return PL_FAIL(PL_SHAPE, "logits %s %s: expected [batch, %d]",
                       build->logits->name, pl_shape_text(shape, text),
                       build->classes);
    return PL_OK;
}

/* Call the model's function, with default flags if none are given. */
static pl_status call_build(const pl_model *model, pl_build *build)
{
    if (build->options != NULL || model->options_bytes == 0)
        return model->build(build);
    void *options = pl_mem_alloc(1, model->options_bytes);
    PL_TRY(pl_mem_check(options, 1, model->options_bytes));
    pl_param_group group = { .params = model->params,
                             .count = model->param_count,
                             .target = options };
    pl_status status = pl_param_defaults(&group, 1);
    build->options = options;
    if (status == PL_OK)
        status = model->build(build);
    pl_mem_free(options);
    return status;
}

/* Checkpoints use parameter names, and reserve some of them. */
static pl_status check_name(const char *name)
{
    static const char *const taken[] = { "optimizer.", "__metadata__" };
    if (name[0] == '\0')
        return PL_FAIL(PL_SHAPE, "a parameter has no name");
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
        if (strncmp(name, taken[i], strlen(taken[i])) == 0)
            return PL_FAIL(PL_SHAPE,
                           "parameter %s: names that begin with %s are taken",
                           name, taken[i]);
    for (const char *c = name; *c != '\0'; c++)
        if (*c < 0x20 || *c > 0x7e)
            return PL_FAIL(PL_SHAPE,
                           "parameter %s: a name has printable ASCII only",
                           name);
    return PL_OK;
}

/* Reject what a model must not contain, besides wrong shapes. */
static pl_status check_graph(const pl_graph *graph, int most_inputs)
{
    int inputs = 0, parameters = 0;
    for (int i = 0; i < pl_graph_count(graph); i++) {
        const pl_node *node = pl_graph_get(graph, i);
        if (node->op == &pl_op_input && ++inputs > most_inputs)
            return PL_FAIL(PL_SHAPE,
                           "input %s: a model has the input and the labels it "
                           "is given, no more",
                           node->name);
        if (node->op != &pl_op_parameter)
            continue;
        parameters += !node->averaged;
        PL_TRY(check_name(node->name));
    }
    if (parameters == 0)
        return PL_FAIL(PL_SHAPE, "the model has no parameters to train");
    return PL_OK;
}

/* Parameters only: computing with them needs no graph. */
static pl_status build_sparse(pl_network *network, const pl_network_opts *opts)
{
    const pl_model *model = network->model;
    const char *init = opts->init != NULL ? opts->init : model->init;
    if (opts->example.rank != 1 || opts->classes > 2)
        return PL_FAIL(PL_SHAPE,
                       "examples of %d dimensions and %d classes; expected a "
                       "list of non-zeros with label 0 or 1",
                       opts->example.rank, opts->classes);
    pl_build build = {
        .model = model,
        .graph = network->graph,
        .classes = 2,
        .features = opts->example.dim[0],
        .init = init != NULL ? init : "zeros",
        .options = opts->options,
        .context = model->context,
    };
    PL_TRY(call_build(model, &build));
    PL_TRY(pl_graph_status(network->graph));
    if (build.table == NULL)
        return PL_FAIL(PL_SHAPE, "build added no pl_sparse_layer");
    PL_TRY(check_graph(network->graph, 0));
    network->sparse = true;
    network->forward = pl_graph_count(network->graph);
    if (network->forward != 2)
        return PL_FAIL(PL_SHAPE, "a sparse model has one pl_sparse_layer and "
                                 "nothing else");
    network->table = 0;
    network->bias = 1;
    return PL_OK;
}

/* Labels are classes, or as many numbers as the model has outputs. */
static pl_node *add_labels(pl_graph *graph, const pl_network_opts *opts)
{
    bool numeric = opts->loss != PL_OBJECTIVE_CROSS_ENTROPY;
    return pl_graph_add(graph,
                        &(pl_node_opts) {
                            .op = &pl_op_input,
                            .name = "labels",
                            .dtype = numeric ? PL_FLOAT32 : PL_INT32,
                            .shape = numeric ? PL_SHAPE(PL_BATCH, opts->classes)
                                             : PL_SHAPE(PL_BATCH),
                            .classes = numeric ? 0 : opts->classes,
                        });
}

/* One loss per example. */
static pl_node *default_losses(const pl_build *build,
                               const pl_network_opts *opts)
{
    float delta = opts->huber_delta > 0 ? (float)opts->huber_delta : 1;
    switch (opts->loss) {
    case PL_OBJECTIVE_SQUARED_ERROR:
        return pl_squared_error(build->logits, build->labels);
    case PL_OBJECTIVE_HUBER:
        return pl_huber(build->logits, build->labels, delta);
    case PL_OBJECTIVE_CROSS_ENTROPY:
        break;
    }
    return pl_softmax_xent(build->logits, build->labels);
}

/* Set what is minimized.  A model's own loss is already a scalar, to which
 * weights of examples cannot be applied. */
static pl_status choose_loss(pl_build *build, const pl_network_opts *opts,
                             pl_node *weights)
{
    if (build->loss != NULL && weights != NULL)
        return PL_FAIL(PL_USAGE, "it has a loss of its own, and examples with "
                                 "weights need that of --loss");
    if (build->loss != NULL)
        return PL_OK;
    build->loss = default_losses(build, opts);
    if (weights != NULL)
        build->loss = pl_multiply(build->loss, weights);
    build->loss = pl_mean(build->loss);
    return PL_OK;
}

static pl_status build_graph(pl_network *network, const pl_network_opts *opts)
{
    if (network->model->sparse)
        return build_sparse(network, opts);
    if (opts->example.rank >= PL_MAX_RANK)
        return PL_FAIL(PL_SHAPE,
                       "examples have %d dimensions; expected fewer "
                       "than %d",
                       opts->example.rank, PL_MAX_RANK);
    const pl_model *model = network->model;
    const char *init = opts->init != NULL ? opts->init : model->init;
    pl_graph *graph = network->graph;
    pl_build build = {
        .model = model,
        .graph = graph,
        .input = pl_input(graph, "input", PL_FLOAT32, batched(opts->example)),
        .labels = add_labels(graph, opts),
        .classes = opts->classes,
        .numeric = opts->loss != PL_OBJECTIVE_CROSS_ENTROPY,
        .init = init != NULL ? init : "glorot",
        .options = opts->options,
        .context = model->context,
    };
    pl_node *weights = opts->weighted ? pl_input(graph, "weights", PL_FLOAT32,
                                                 PL_SHAPE(PL_BATCH))
                                      : NULL;
    PL_TRY(pl_graph_status(graph));
    PL_TRY(call_build(model, &build));
    PL_TRY(pl_graph_status(graph));
    PL_TRY(check_logits(&build));
    PL_TRY(
        check_graph(graph, opts->weighted ? PL_INPUT_COUNT : PL_INPUT_WEIGHTS));
    PL_TRY(pl_graph_average_rate(graph, &network->average_rate));
    network->forward = pl_graph_count(graph);
    PL_TRY(choose_loss(&build, opts, weights));
    network->logits = build.logits;
    network->loss = build.loss;
    network->numeric = build.numeric;
    if (!build.numeric)
        network->accuracy = pl_mean(pl_accuracy(build.logits, build.labels));
    return pl_graph_status(graph);
}

static pl_status init_param(const pl_network *network, const pl_node *node,
                            uint64_t seed, int index)
{
    const pl_model_file *file = network->model->file;
    const char *spec = node->init != NULL ? node->init : "zeros";
    float *data = pl_params_data(network->params, index);
    if (file != NULL && strcmp(spec, PL_INIT_FILE) == 0)
        return file->values(file, node->name,
                            pl_params_get(network->params, index)->count, data);
    return pl_init_fill(spec, node->shape, seed, node->name, data);
}

static pl_status init_params(pl_network *network, uint64_t seed)
{
    int index = 0;
    const pl_node *node = NULL;
    while ((node = pl_graph_next_param(network->graph, node)) != NULL) {
        pl_status status = init_param(network, node, seed, index);
        if (status != PL_OK)
            return pl_context(status, "parameter %s", node->name);
        index++;
    }
    return PL_OK;
}

pl_status pl_network_new(pl_network **out, const pl_model *model,
                         const pl_network_opts *opts)
{
    pl_network *network;
    PL_TRY(PL_NEW(network, 1));
    network->model = model;
    pl_status status;
    PL_TRY_OUT(status, pl_graph_new(&network->graph));
    PL_TRY_OUT(status, build_graph(network, opts));
    PL_TRY_OUT(status, pl_graph_params(network->graph, &network->params));
    if (!opts->no_values)
        PL_TRY_OUT(status, pl_params_seal(network->params));
    int count = pl_params_count(network->params);
    PL_TRY_OUT(status, PL_NEW(network->diff, (size_t)count));
    if (!network->sparse)
        PL_TRY_OUT(status, pl_graph_differentiate(network->graph, network->loss,
                                                  network->diff, count));
    if (!opts->no_values)
        PL_TRY_OUT(status, init_params(network, opts->seed));
    *out = network;
    network = NULL;
out:
    pl_network_free(network);
    return status == PL_OK ? PL_OK
                           : pl_context(status, "model %s", model->name);
}

void pl_network_free(pl_network *network)
{
    if (network == NULL)
        return;
    pl_params_free(network->params);
    pl_graph_free(network->graph);
    pl_mem_free(network->diff);
    pl_mem_free(network);
}
