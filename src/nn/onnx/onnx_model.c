/* onnx_model.c - an ONNX file as a model: decides what is rejected before
 * anything is built, which operator sets are read, and where external weights
 * are read from.
 *
 * Paths of external files must lead to a regular file in the model's folder or
 * below, after following links. */
#include "nn/onnx/onnx_model.h"

#include "base/error.h"
#include "base/file/file.h"
#include "base/file/map.h"
#include "base/hash/sha256.h"
#include "base/mem.h"
#include "base/text/quote.h"
#include "nn/onnx/import.h"
#include "tensor/shape.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPSET_LEAST 13
#define OPSET_MOST  20
#define NAMED_MOST  8   /* maximum nodes listed in a message */
#define DIGITS      784 /* pixels of the built-in data */

struct pl_onnx_net {
    pl_model model;
    pl_model_file file; /* must be first: the functions of pl_model_file cast
                           from it */
    pl_onnx *onnx;
    char *path, *name, *help, *folder;
    bool no_weights;
    const char *last; /* "Softmax" if it was left out; or NULL */
};

static const pl_onnx_net *net_of(const pl_model_file *file)
{
    return (const pl_onnx_net *)(const void *)((const char *)file -
                                               offsetof(pl_onnx_net, file));
}

/* --- unsupported operators ---------------------------------------------- */

/* ", node x (LSTM)" for each, up to NAMED_MOST. */
static size_t name_lacking(const pl_onnx_model *model, char *text, size_t room)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < model->node_count; i++) {
        const pl_onnx_node *node = &model->nodes[i];
        bool ours =
            node->domain[0] == '\0' || strcmp(node->domain, "ai.onnx") == 0;
        if ((ours && pl_import_find(node->op) != NULL) ||
            count++ >= NAMED_MOST || used >= room)
            continue;
        used += (size_t)snprintf(
            text + used, room - used, "%snode %.60s (%.40s%s%.40s)",
            used > 0 ? ", " : "", pl_import_node_name(node),
            ours ? "" : node->domain, ours ? "" : ".", node->op);
    }
    return count;
}

static pl_status check_operators(const pl_onnx_model *model)
{
    char text[NAMED_MOST * 192] = "", more[48] = "";
    size_t lacking = name_lacking(model, text, sizeof text);
    if (lacking == 0)
        return PL_OK;
    if (lacking > NAMED_MOST)
        snprintf(more, sizeof more, " and %zu more", lacking - NAMED_MOST);
    return PL_FAIL(PL_UNSUPPORTED,
                   "these operators are not supported: %s%s; docs/onnx.md "
                   "lists the supported ones",
                   text, more);
}

static pl_status check_model(const pl_onnx_model *model)
{
    if (model->opset < OPSET_LEAST || model->opset > OPSET_MOST)
        return PL_FAIL(PL_UNSUPPORTED,
                       "it uses operator set %lld, expected %d to %d: export "
                       "it with opset_version=18",
                       (long long)model->opset, OPSET_LEAST, OPSET_MOST);
    if (model->graph_output_count != 1)
        return PL_FAIL(PL_UNSUPPORTED, "it has %zu outputs, expected one",
                       model->graph_output_count);
    return check_operators(model);
}

/* --- weights ------------------------------------------------------------ */

/* Initializers by name, and results of Constant nodes. */
static const pl_onnx_tensor *find_tensor(const pl_onnx_model *model,
                                         const char *name)
{
    for (size_t i = 0; i < model->initializer_count; i++)
        if (strcmp(model->initializers[i].name, name) == 0)
            return &model->initializers[i];
    for (size_t i = 0; i < model->node_count; i++) {
        const pl_onnx_node *node = &model->nodes[i];
        if (node->output_count != 1 || strcmp(node->outputs[0], name) != 0)
            continue;
        for (size_t a = 0; a < node->attribute_count; a++)
            if (node->attributes[a].t != NULL)
                return node->attributes[a].t;
    }
    return NULL;
}

/* The external file's absolute path, which must be below our folder. */
static pl_status place_of(const pl_onnx_net *net, const char *location,
                          char real[PATH_MAX])
{
    char *path, folder[PATH_MAX];
    PL_TRY(pl_file_join(&path, net->folder, location));
    bool found = location[0] != '/' && realpath(path, real) != NULL &&
                 realpath(net->folder, folder) != NULL;
    pl_mem_free(path);
    size_t length = found ? strlen(folder) : 0;
    if (length == 1)
        length = 0; /* "/" */
    if (!found)
        return PL_FAIL(PL_NOTFOUND,
                       "its weights are in \"%s\", and there is no such file "
                       "in its folder",
                       location);
    if (strncmp(real, folder, length) != 0 || real[length] != '/')
        return PL_FAIL(PL_UNSUPPORTED,
                       "its weights are in \"%s\", which is outside its folder",
                       location);
    return PL_OK;
}

static pl_status read_outside(const pl_onnx_net *net,
                              const pl_onnx_tensor *tensor, void *to)
{
    char path[PATH_MAX];
    pl_map map;
    PL_TRY(place_of(net, tensor->location, path));
    PL_TRY(pl_map_init(&map, path));
    pl_status status;
    int64_t end;
    if (__builtin_add_overflow(tensor->offset, tensor->bytes, &end) ||
        (uint64_t)end > map.bytes)
        status = PL_FAIL(PL_FORMAT,
                         "%s has %zu bytes, but the weights %s are %lld bytes "
                         "from byte %lld on",
                         tensor->location, map.bytes, tensor->name,
                         (long long)tensor->bytes, (long long)tensor->offset);
    else
        status = pl_map_copy(&map, (size_t)tensor->offset, to,
                             (size_t)tensor->bytes);
    pl_map_close(&map);
    return status;
}

/* pl_model_file.values */
static pl_status fill(const pl_model_file *file, const char *parameter,
                      int64_t count, float *to)
{
    const pl_onnx_net *net = net_of(file);
    const pl_onnx_tensor *tensor =
        find_tensor(pl_onnx_get(net->onnx), parameter);
    if (tensor == NULL || tensor->type != PL_ONNX_FLOAT ||
        tensor->count != count)
        return PL_FAIL(PL_FORMAT, "%s: it has no weights %s", net->path,
                       parameter);
    if (tensor->location == NULL) {
        memcpy(to, tensor->data, (size_t)count * sizeof *to);
        return PL_OK;
    }
    if (net->no_weights)
        return PL_OK;
    pl_status status = read_outside(net, tensor, to);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", net->path);
}

/* Tasks of a job must start from the same weights. */
static pl_status hash_outside(pl_onnx_net *net)
{
    const pl_onnx_model *model = pl_onnx_get(net->onnx);
    uint8_t digest[PL_SHA256_BYTES];
    bool any = false;
    pl_sha256 sha;
    pl_sha256_init(&sha);
    for (size_t i = 0; i < model->initializer_count && !net->no_weights; i++) {
        const pl_onnx_tensor *tensor = &model->initializers[i];
        char *bytes;
        if (tensor->location == NULL)
            continue;
        any = true;
        PL_TRY(PL_NEW(bytes, (size_t)tensor->bytes));
        pl_status status = read_outside(net, tensor, bytes);
        if (status == PL_OK)
            pl_sha256_update(&sha, bytes, (size_t)tensor->bytes);
        pl_mem_free(bytes);
        PL_TRY(status);
    }
    pl_sha256_final(&sha, digest);
    if (any)
        pl_sha256_text(digest, net->file.weights_sha256);
    return PL_OK;
}

/* --- the model ---------------------------------------------------------- */

static pl_status build(pl_build *build)
{
    const pl_onnx_net *net = net_of(build->model->file);
    pl_import im = { .build = build, .model = pl_onnx_get(net->onnx) };
    pl_status status = pl_import_run(&im);
    return status == PL_OK ? PL_OK : pl_context(status, "%s", net->path);
}

/* Synthetic examples, or the built-in data if they fit. */
static void choose_data(pl_onnx_net *net)
{
    const pl_onnx_model *model = pl_onnx_get(net->onnx);
    const pl_onnx_value *output = &model->outputs[0];
    pl_model *out = &net->model;
    if (output->has_shape && output->rank == 2 && output->dims[1] > 0 &&
        output->dims[1] <= INT32_MAX)
        out->classes = (int32_t)output->dims[1];
    out->data = "synthetic";
    for (size_t i = 0; i < model->graph_input_count; i++) {
        const pl_onnx_value *input = &model->inputs[i];
        if (find_tensor(model, input->name) != NULL)
            continue;
        out->example.rank = 0;
        for (int d = 1; d < input->rank && input->rank <= PL_MAX_RANK; d++)
            out->example.dim[out->example.rank++] = input->dims[d];
        if (out->example.rank == 0 || pl_shape_check(out->example) != PL_OK ||
            pl_shape_batched(out->example)) {
            out->example.rank = 0;
            out->data = NULL; /* leave examples unchanged */
        } else if (pl_shape_row(out->example) == DIGITS) {
            out->data = NULL;
        }
        break;
    }
}

/* The last operator, if the loss includes it. */
static const char *find_last(const pl_onnx_model *model)
{
    const char *output = model->outputs[0].name;
    for (size_t i = 0; i < model->node_count; i++) {
        const pl_onnx_node *node = &model->nodes[i];
        if (node->output_count > 0 && strcmp(node->outputs[0], output) == 0 &&
            strstr(node->op, "Softmax") != NULL)
            return node->op;
    }
    return NULL;
}

/* Batch normalization exported for inference keeps its averages. */
static bool is_frozen(const pl_onnx_model *model)
{
    for (size_t i = 0; i < model->node_count; i++) {
        const pl_onnx_node *node = &model->nodes[i];
        bool trains = false;
        for (size_t a = 0; a < node->attribute_count; a++)
            trains = trains ||
                     (strcmp(node->attributes[a].name, "training_mode") == 0 &&
                      node->attributes[a].i != 0);
        if (strcmp(node->op, "BatchNormalization") == 0 && !trains)
            return true;
    }
    return false;
}

/* The description of the file shown when a training starts. */
static pl_status describe(pl_onnx_net *net)
{
    const pl_onnx_model *model = pl_onnx_get(net->onnx);
    char producer[256];
    pl_quote_line(producer, sizeof producer, model->producer);
    return pl_mem_format(&net->help, "%s, %zu nodes of ONNX by %s%s%s%s%s",
                         net->name, model->node_count,
                         producer[0] != '\0' ? producer : "an unnamed program",
                         net->last != NULL ? "; its last operator, " : "",
                         net->last != NULL ? net->last : "",
                         net->last != NULL ? ", is part of the loss" : "",
                         is_frozen(model)
                             ? "; it was exported for inference, so its batch "
                               "normalization keeps the averages of the file"
                             : "");
}

static pl_status parse(pl_onnx_net *net, const void *data, size_t bytes)
{
    pl_sha256 sha;
    uint8_t digest[PL_SHA256_BYTES];
    pl_sha256_init(&sha);
    pl_sha256_update(&sha, data, bytes);
    pl_sha256_final(&sha, digest);
    pl_sha256_text(digest, net->file.sha256);
    return pl_onnx_parse(&net->onnx, data, bytes);
}

static pl_status read_file(pl_onnx_net *net, const pl_onnx_net_opts *opts)
{
    pl_map map;
    if (opts->data != NULL)
        return parse(net, opts->data, opts->bytes);
    PL_TRY(pl_map_read(&map, net->path, PL_ONNX_FILE_MOST));
    pl_status status = parse(net, map.data, map.bytes);
    pl_map_close(&map);
    return status;
}

static pl_status fill_net(pl_onnx_net *net, const pl_onnx_net_opts *opts)
{
    const char *slash = strrchr(opts->path, '/');
    const char *name = slash != NULL ? slash + 1 : opts->path;
    PL_TRY(pl_mem_copy_text(&net->path, opts->path));
    PL_TRY(
        pl_mem_copy_text(&net->name, opts->name != NULL ? opts->name : name));
    pl_quote_file_name(net->name); /* folders are named after it */
    PL_TRY(pl_mem_format(&net->folder, "%.*s",
                         slash != NULL ? (int)(slash - opts->path) + 1 : 1,
                         slash != NULL ? opts->path : "."));
    PL_TRY(read_file(net, opts));
    const pl_onnx_model *model = pl_onnx_get(net->onnx);
    PL_TRY(check_model(model));
    net->last = find_last(model);
    PL_TRY(describe(net));
    net->file.path = net->path;
    net->file.values = fill;
    net->model = (pl_model) {
        .name = net->name,
        .help = net->help,
        .build = build,
        .init = PL_INIT_FILE,
        .file = &net->file,
    };
    choose_data(net);
    return hash_outside(net);
}

pl_status pl_onnx_net_new(pl_onnx_net **out, const pl_onnx_net_opts *opts)
{
    pl_onnx_net *net;
    PL_TRY(PL_NEW(net, 1));
    net->no_weights = opts->no_weights;
    pl_status status = fill_net(net, opts);
    if (status != PL_OK) {
        pl_onnx_net_free(net);
        return pl_context(status, "%s", opts->path);
    }
    *out = net;
    return PL_OK;
}

void pl_onnx_net_free(pl_onnx_net *net)
{
    if (net == NULL)
        return;
    pl_onnx_free(net->onnx);
    pl_mem_free(net->path);
    pl_mem_free(net->name);
    pl_mem_free(net->help);
    pl_mem_free(net->folder);
    pl_mem_free(net);
}

const pl_model *pl_onnx_net_model(const pl_onnx_net *net)
{
    return &net->model;
}

pl_onnx_ends pl_onnx_net_ends(const pl_model *model)
{
    const pl_onnx_net *net = net_of(model->file);
    const pl_onnx_model *onnx = pl_onnx_get(net->onnx);
    pl_onnx_ends ends = { .input = "",
                          .output = onnx->outputs[0].name,
                          .last = net->last != NULL ? net->last : "" };
    for (size_t i = 0; i < onnx->graph_input_count; i++)
        if (find_tensor(onnx, onnx->inputs[i].name) == NULL)
            ends.input = onnx->inputs[i].name;
    return ends;
}

bool pl_onnx_is_file(const char *word)
{
    size_t length = strlen(word), ending = strlen("." PL_ONNX_ENDING);
    return length > ending &&
           strcmp(word + length - ending, "." PL_ONNX_ENDING) == 0;
}
