#include "nn/model.h"

#include "nn/init.h"
#include "nn/models.h"
#include "support/unit.h"

static const pl_network_opts small = { .example = { 2, { 3, 4 } },
                                       .classes = 5,
                                       .seed = 9 };

/* The width of the hidden layer comes from the model's own flags. */
static pl_status two_layers_build(pl_build *b)
{
    const int64_t *width = b->options;
    pl_node *hidden =
        pl_relu(pl_dense(b, "hidden", b->input, width != NULL ? *width : 6));
    b->logits = pl_dense(b, "output", hidden, b->classes);
    return PL_OK;
}

static const pl_model two_layers = { .name = "two_layers",
                                     .build = two_layers_build,
                                     .init = "he" };

static pl_network *make(const pl_model *model, const pl_network_opts *opts)
{
    pl_network *network;
    assert_ok(pl_network_new(&network, model, opts));
    return network;
}

static void assert_param(const pl_network *network, int index, const char *name,
                         pl_shape shape)
{
    const pl_params_item *item = pl_params_get(network->params, index);
    assert_string_equal(name, item->name);
    assert_true(pl_shape_equal(shape, item->shape));
    assert_non_null(network->diff[index]);
    assert_true(pl_shape_equal(shape, pl_node_shape(network->diff[index])));
}

static void model_of_dense_layers_has_weights_and_biases(void **state)
{
    (void)state;
    pl_network *network = make(&two_layers, &small);
    assert_int_equal(4, pl_params_count(network->params));
    assert_param(network, 0, "hidden/weights", PL_SHAPE(6, 12));
    assert_param(network, 1, "hidden/bias", PL_SHAPE(6));
    assert_param(network, 2, "output/weights", PL_SHAPE(5, 6));
    assert_param(network, 3, "output/bias", PL_SHAPE(5));
    assert_true(
        pl_shape_equal(PL_SHAPE(PL_BATCH, 5), pl_node_shape(network->logits)));
    assert_int_equal(0, pl_node_shape(network->loss).rank);
    assert_int_equal(0, pl_node_shape(network->accuracy).rank);
    assert_string_equal("output", network->logits->name);
    assert_true(network->forward <= network->loss->id);
    assert_true(network->logits->id < network->forward);
    pl_network_free(network);
    assert_int_equal(0, pl_mem_live());
}

static void model_gets_its_options(void **state)
{
    (void)state;
    const int64_t width = 11;
    pl_network_opts opts = small;
    opts.options = &width;
    pl_network *network = make(&two_layers, &opts);
    assert_param(network, 0, "hidden/weights", PL_SHAPE(11, 12));
    pl_network_free(network);
}

/* Seed and name make a parameter's first values, not the order in the graph
 * nor the layers beside it. */
static void model_starts_each_parameter_by_seed_and_name(void **state)
{
    (void)state;
    const int64_t width = 11;
    pl_network_opts other = small;
    other.options = &width;
    pl_network *a = make(&two_layers, &small);
    pl_network *b = make(&two_layers, &other);
    /* [6, 12] is the beginning of [11, 12]. */
    assert_memory_equal(pl_params_data(a->params, 0),
                        pl_params_data(b->params, 0), sizeof(float[6 * 12]));
    float expected[6 * 12];
    assert_ok(pl_init_fill("he", PL_SHAPE(6, 12), small.seed, "hidden/weights",
                           expected));
    assert_memory_equal(expected, pl_params_data(a->params, 0),
                        sizeof expected);
    for (int i = 0; i < 6; i++) /* whatever --init says */
        assert_true(pl_params_data(a->params, 1)[i] == 0);
    pl_network_free(b);

    other = small;
    other.seed++;
    b = make(&two_layers, &other);
    for (int i = 0; i < 6 * 12; i++)
        assert_true(pl_params_data(a->params, 0)[i] !=
                    pl_params_data(b->params, 0)[i]);
    pl_network_free(a);
    pl_network_free(b);
}

static void model_init_may_be_overridden(void **state)
{
    (void)state;
    pl_network_opts opts = small;
    opts.init = "ones";
    pl_network *network = make(&two_layers, &opts);
    for (int i = 0; i < 6 * 12; i++)
        assert_true(pl_params_data(network->params, 0)[i] == 1);
    pl_network_free(network);

    opts.init = "tens";
    network = NULL;
    assert_fails(
        PL_USAGE,
        "model two_layers: parameter hidden/weights: init \"tens\" is unknown",
        pl_network_new(&network, &two_layers, &opts));
    assert_null(network);
    assert_int_equal(0, pl_mem_live());
}

static pl_status no_logits(pl_build *b)
{
    pl_dense(b, "output", b->input, b->classes);
    return PL_OK;
}

static pl_status wrong_shape(pl_build *b)
{
    b->logits = pl_add(b->input, b->labels);
    return PL_OK;
}

static pl_status same_name(pl_build *b)
{
    b->logits =
        pl_dense(b, "layer", pl_dense(b, "layer", b->input, 4), b->classes);
    return PL_OK;
}

static pl_status too_few_logits(pl_build *b)
{
    b->logits = pl_dense(b, "output", b->input, b->classes - 1);
    return PL_OK;
}

static pl_status high_rank_logits(pl_build *b)
{
    b->logits = b->input;
    b->loss = pl_mean(b->input);
    return PL_OK;
}

static pl_status vector_loss(pl_build *b)
{
    b->logits = pl_dense(b, "output", b->input, b->classes);
    b->loss = pl_softmax_xent(b->logits, b->labels);
    return PL_OK;
}

static pl_status narrow_loss(pl_build *b)
{
    b->logits = pl_dense(b, "output", b->input, b->classes);
    b->loss =
        pl_mean(pl_softmax_xent(pl_dense(b, "narrow", b->input, 2), b->labels));
    return PL_OK;
}

static pl_status third_input(pl_build *b)
{
    pl_node *more =
        pl_input(b->graph, "more", PL_FLOAT32, PL_SHAPE(PL_BATCH, 4));
    b->logits = pl_dense(b, "output", more, b->classes);
    return PL_OK;
}

static pl_status no_parameters(pl_build *b)
{
    b->logits = pl_reshape(b->input, PL_SHAPE(PL_BATCH, 12));
    b->classes = 12;
    return PL_OK;
}

static pl_status taken_name(pl_build *b)
{
    b->logits = pl_dense(b, "optimizer.mine", b->input, b->classes);
    return PL_OK;
}

static pl_status odd_name(pl_build *b)
{
    b->logits = pl_dense(b, "w\xff", b->input, b->classes);
    return PL_OK;
}

static pl_status high_rank(pl_build *b)
{
    pl_shape shape = { PL_MAX_RANK + 1, { PL_BATCH, 1, 1, 1, 3, 4 } };
    b->logits = pl_reshape(b->input, shape);
    return PL_OK;
}

static pl_status gives_up(pl_build *b)
{
    (void)b;
    return PL_FAIL(PL_UNSUPPORTED, "not today");
}

static void model_that_is_wrong_is_named(void **state)
{
    (void)state;
    const struct {
        pl_status (*build)(pl_build *b);
        pl_status status;
        const char *part;
    } wrong[] = {
        { no_logits, PL_SHAPE, "build did not set logits" },
        { wrong_shape, PL_SHAPE, "input labels is int32; expected float32" },
        { same_name, PL_USAGE, "two parameters named 'layer/weights'" },
        { too_few_logits, PL_SHAPE,
          "logits output [batch, 4]: expected [batch, 5]" },
        { high_rank_logits, PL_SHAPE,
          "logits input [batch, 3, 4]: expected [batch, 5]" },
        { vector_loss, PL_SHAPE, "a loss must be a scalar" },
        { narrow_loss, PL_SHAPE, "a column for each of the 5 classes" },
        { third_input, PL_SHAPE, "input more: a model has the input" },
        { no_parameters, PL_SHAPE, "no parameters to train" },
        { taken_name, PL_SHAPE, "begin with optimizer. are taken" },
        { odd_name, PL_SHAPE, "printable ASCII only" },
        { high_rank, PL_SHAPE, "a shape has 7 dimensions, at most 6" },
        { gives_up, PL_UNSUPPORTED, "not today" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pl_network *network = NULL;
        const pl_model model = { .name = "mine", .build = wrong[i].build };
        pl_status status = pl_network_new(&network, &model, &small);
        assert_int_equal(wrong[i].status, status);
        assert_null(network);
        if (strstr(pl_error_message(), wrong[i].part) == NULL ||
            strncmp(pl_error_message(), "model mine: ", 12) != 0)
            fail_msg("\"%s\" is not in: %s", wrong[i].part, pl_error_message());
    }
    assert_int_equal(0, pl_mem_live());
}

static void model_list_can_be_built(void **state)
{
    (void)state;
    for (const pl_model *const *m = pl_model_list(); *m != NULL; m++) {
        assert_non_null((*m)->help);
        pl_network *network =
            make(*m, &(pl_network_opts) {
                         .example = (*m)->example.rank > 0 ? (*m)->example
                                                           : PL_SHAPE(28, 28),
                         .classes = (*m)->sparse ? 2 : 10,
                         .no_values = true,
                     });
        assert_true(pl_params_elements(network->params) > 0);
        pl_network_free(network);
    }
}

static pl_status no_layer(pl_build *b)
{
    (void)b;
    return PL_OK;
}

static pl_status two_sparse(pl_build *b)
{
    pl_sparse_layer(b, "one");
    pl_sparse_layer(b, "two");
    return PL_OK;
}

static void sparse_model_is_a_table_and_a_bias(void **state)
{
    (void)state;
    const pl_network_opts opts = { .example = PL_SHAPE(1000), .classes = 2 };
    pl_network *network = make(&pl_model_sparse, &opts);
    assert_true(network->sparse);
    const pl_params_item *table =
        pl_params_get(network->params, network->table);
    assert_string_equal("sparse/weights", table->name);
    assert_int_equal(1000, table->count);
    assert_int_equal(1, pl_params_get(network->params, network->bias)->count);
    pl_network_free(network);

    pl_model wrong = pl_model_sparse;
    pl_network_opts three = opts;
    three.classes = 3;
    assert_fails(PL_SHAPE, "expected a list of non-zeros with label 0 or 1",
                 pl_network_new(&network, &wrong, &three));
    wrong.build = no_layer;
    assert_fails(PL_SHAPE, "build added no pl_sparse_layer",
                 pl_network_new(&network, &wrong, &opts));
    wrong.build = two_sparse;
    assert_fails(PL_SHAPE, "one pl_sparse_layer and nothing else",
                 pl_network_new(&network, &wrong, &opts));
}

static void network_survives_failed_allocations(void **state)
{
    (void)state;
    pl_network *network = NULL;
    assert_survives_failed_allocations(
        pl_network_new(&network, &two_layers, &small),
        pl_network_free(network));
}

UNIT_TESTS(cmocka_unit_test(model_of_dense_layers_has_weights_and_biases),
           cmocka_unit_test(model_gets_its_options),
           cmocka_unit_test(model_starts_each_parameter_by_seed_and_name),
           cmocka_unit_test(model_init_may_be_overridden),
           cmocka_unit_test(model_that_is_wrong_is_named),
           cmocka_unit_test(model_list_can_be_built),
           cmocka_unit_test(sparse_model_is_a_table_and_a_bias),
           cmocka_unit_test(network_survives_failed_allocations))
